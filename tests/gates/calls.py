"""R3: calls of the library at random, in C and in Python, by the million: none goes wrong.

`make gates GATES=R3` builds the programs in C; that of libFuzzer needs clang's runtime.
"""

import re
import subprocess
import time

import helpers
import programs

from .parts import ROOT, Part

SEED = 1_000_000  # of the first calls; those that go on have the next ones
SETTINGS = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}


def from_c(variant):
    """A part that runs cuda/tests/fuzz.c as it was built for `make fuzz`."""

    def run(device, start, wanted, end):
        program, seed = ROOT / "build" / "tests" / variant / "fuzz", SEED + start
        seconds = max(int(end - time.monotonic()), 1)
        done = told(program, str(seconds), str(seed))
        return counted(rf"fuzz: seed {seed}: (\d+) calls, nothing wrong", done.stdout)

    return run


def chosen(device, start, wanted, end):
    """Calls of fuzz_guided.c. What libFuzzer kept of earlier ones is in build/corpus."""
    kept = ROOT / "build" / "corpus"
    kept.mkdir(parents=True, exist_ok=True)
    seconds = max(int(end - time.monotonic()), 1)
    done = told(
        ROOT / "build" / "tests" / "guided" / "fuzz_guided",
        *(f"-max_total_time={seconds}", "-max_len=2000", "-len_control=0", "-entropic=0"),
        *("-artifact_prefix=build/", "-verbosity=0", "build/corpus"),
    )
    return counted(r"fuzz_guided: \d+ inputs, (\d+) calls, nothing wrong", done.stderr)


def told(program, *arguments):
    """Run a program; what it says if it finds something is the AssertionError's."""
    assert program.exists(), f"there is no {program.relative_to(ROOT)}; `make gates` builds it"
    done = subprocess.run(
        [program, *arguments], cwd=ROOT, env=helpers.child_environment(**SETTINGS),
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.returncode} {done.stdout} {done.stderr[-4000:]}"
    return done


def counted(pattern, text):
    found = re.search(pattern, text)
    assert found, f"no count in {text!r}"
    return int(found[1])


def in_python(device, start, wanted, end):
    """Programs of 12 lines and more: the CPU device beside NumPy, a card beside the CPU device."""
    done = 0
    while done < wanted and (time.monotonic() < end or not done):
        index = start + done
        wrong = programs.draw(SEED, index).problem(device)
        assert not wrong, f"programs.draw({SEED}, {index}): {wrong}"
        done += 1
    return done


PARTS = [
    Part("calls from C", 10_000_000, from_c("sim"), ("sim",)),
    Part("calls under AddressSanitizer", 1_000_000, from_c("asan"), ("sim",)),
    Part("calls chosen by libFuzzer", 1_000_000, chosen, ("sim",)),
    Part("programs", 200_000, in_python),
]
