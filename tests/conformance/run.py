"""Runs array-api-tests, the array API standard's own tests, on this package: make conformance.

The tests lie in a checkout of github.com/data-apis/array-api-tests with its submodule; nothing of
it is kept here. What is expected to fail stands in expected.txt, each with a reason: a failure that
does not stand there fails the run, and so does one that does and has not happened, but for those
that values decide, which are drawn anew with each change of the package.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXPECTED = Path(__file__).with_name("expected.txt")
VERSION = "2025.12"
MOST_FUNCTIONS = 10  # of those expected to fail on a card


def read_expected(text, device):
    """Return {beginning of a test's name: reason} for a device.

    A paragraph is a reason, in lines that begin with "#", the devices in a line of their own, and
    the tests, one a line. With the word "sometimes" behind the devices it depends on the values
    that are drawn whether they fail; such a reason is a Sometimes.
    """
    found = {}
    for paragraph in text.split("\n\n"):
        lines = paragraph.strip().splitlines()
        reason = " ".join(line[1:].strip() for line in lines if line.startswith("#"))
        rest = [line.strip() for line in lines if not line.startswith("#")]
        if not rest:
            continue
        if not reason:
            raise SystemExit(f"{EXPECTED.name}: no reason is given for {rest[1:]}")
        devices, *tests = rest
        if device in devices.split():
            kind = Sometimes if "sometimes" in devices.split() else str
            found |= dict.fromkeys(tests, kind(reason))
    return found


class Sometimes(str):
    """The reason of tests that fail for some of the values that are drawn."""


def compare(outcomes, expected):
    """Return lines that say what is other than expected.

    outcomes: {name of a test: "passed", "failed", "skipped", ...}.
    """
    lines = []
    for name, outcome in outcomes.items():
        reason = next((r for begin, r in expected.items() if name.startswith(begin)), None)
        if outcome in ("failed", "error") and reason is None:
            lines.append(f"fails: {name}")
        if outcome == "passed" and reason is not None and not isinstance(reason, Sometimes):
            lines.append(f"passes, take it off the list: {name} ({reason})")
    for begin in expected:
        if not any(name.startswith(begin) for name in outcomes):
            lines.append(f"no test has this name: {begin}")
    return lines


def functions(names):
    """Return the test functions among names of tests, in their order."""
    return list(dict.fromkeys(name.partition("[")[0] for name in names))


def run(suite, device, examples, arguments):
    """Run the tests on a device; return {name: outcome}. SystemExit: they do not even begin."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pytest", "array_api_tests", "-q", "--tb=short"]
        command += ["-p", "no:cacheprovider", "--json-report", f"--json-report-file={report}"]
        command += ["--disable-deadline", "--derandomize", "--max-examples", str(examples)]
        subprocess.run([*command, *arguments], cwd=suite, env=environment(device), check=False)
        if not report.exists():
            raise SystemExit(f"{device}: the tests have not begun")
        tests = json.loads(report.read_text())["tests"]
    return {test["nodeid"].removeprefix("array_api_tests/"): test["outcome"] for test in tests}


def environment(device):
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return os.environ | {
        "ARRAY_API_TESTS_MODULE": "pyvecgpu",
        "ARRAY_API_TESTS_VERSION": VERSION,
        "PYTHONPATH": path,
        "PYVECGPU_DEVICE": device,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", type=Path, help="the checkout of array-api-tests")
    parser.add_argument("--device", nargs="+", default=["cpu", "sim"], help="cpu, sim, cuda")
    parser.add_argument("--examples", type=int, default=20, help="that each test tries")
    options, arguments = parser.parse_known_args()
    stubs = options.suite / "array-api/src/array_api_stubs" / f"_{VERSION.replace('.', '_')}"
    if not stubs.is_dir():
        raise SystemExit(f"{options.suite} is no checkout with its submodule: no {stubs}")
    bad = False
    for device in options.device:
        expected = read_expected(EXPECTED.read_text(), device)
        outcomes = run(options.suite, device, options.examples, arguments)
        lines = compare(outcomes, expected)
        listed = functions(expected)
        if device != "cpu" and len(listed) > MOST_FUNCTIONS:
            lines.append(f"{len(listed)} functions are listed, which is more than {MOST_FUNCTIONS}")
        counts = {one: list(outcomes.values()).count(one) for one in sorted({*outcomes.values()})}
        print(f"{device}: {counts}, {len(listed)} functions are expected to fail")
        print("\n".join(f"{device}: {line}" for line in lines), end="\n" if lines else "")
        bad = bad or bool(lines)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
