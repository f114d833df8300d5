"""Random programs until the time is up: `make fuzz SECONDS=600`, for a night 30,000.

The CPU device is compared with NumPy's exact integers, the cards with the CPU device. A program
that is wrong is printed with as few lines as make it wrong, and how to run it again:

    PYTHONPATH=.:tests python tests/fuzz.py --seed SEED --index INDEX

programs.py makes them; tests/test_random_programs.py runs some in every `make test`.
"""

import argparse
import itertools
import sys
import time

import programs

import pyvecgpu as vg

MOST = 5  # failures that are told


def devices():
    """Those that are there."""
    found = ["cpu", "sim"]
    try:
        vg.Device("cuda")
    except vg.DeviceUnavailableError as error:
        print(f"no GPU: {error}")
    else:
        found.append("cuda")
    return found


def check(seed, index, places):
    """Run one program everywhere; what is wrong, as text."""
    program = programs.draw(seed, index)
    for device in places:
        if program.problem(device):
            shorter = program.shrunk(device)
            yield (f"on {device}, --seed {seed} --index {index}:\n{shorter}\n"
                   f"# {shorter.problem(device)}\n")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description="random programs")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns() // 1000 % 10**9)
    parser.add_argument("--index", type=int, help="only this program")
    parser.add_argument("--count", type=int, help="so many programs, if there is time")
    parser.add_argument("--devices", nargs="+", choices=("cpu", "sim", "cuda"), help="only these")
    options = parser.parse_args()
    places, end = options.devices or devices(), time.monotonic() + options.seconds
    failures, count = [], 0
    indices = itertools.count() if options.count is None else range(options.count)
    if options.index is not None:
        indices = [options.index]
    for index in indices:
        if options.index is None and (time.monotonic() > end or len(failures) >= MOST):
            break
        for failure in check(options.seed, index, places):
            failures.append(failure)
            print(failure, flush=True)
        count += 1
    print(f"seed {options.seed}: {count} programs on {', '.join(places)}, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
