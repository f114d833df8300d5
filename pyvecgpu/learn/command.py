"""python -m pyvecgpu learn: the ladder of lessons, read in the terminal, built and run."""

import argparse
import errno
import json
import os
import shutil
import subprocess
import sys
import threading
import time

from ..bench import replacement
from ..bench.article.progress import Progress
from . import ladder, terminal, why
from .ladder import NotThereError

FAILED, NO_DEVICE = 1, 77
CARDS = {"gpu": "cuda", "sim": "sim"}


def main(argv=None):
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m pyvecgpu learn", description="Read, build and run the lessons."
    )
    parser.add_argument(
        "lesson", nargs="?", help='its number, "why", or with --run your own copy as mine/05'
    )
    parser.add_argument("--run", action="store_true", help="build it and run it here")
    parser.add_argument("--card", choices=CARDS, help="with --run: a GPU, or the simulated card")
    parser.add_argument("--quick", action="store_true", help="with why --run: small sizes")
    parser.add_argument("--json", metavar="FILE", help="with why --run: keep the figures")
    arguments = parser.parse_args(argv)
    is_why = arguments.lesson == ladder.WHY
    if (arguments.quick or arguments.json) and not (is_why and arguments.run):
        parser.error("--quick and --json belong to why --run")
    if arguments.card and (is_why or not arguments.run):
        parser.error("--card belongs to --run of a lesson")
    if arguments.run and not arguments.lesson:
        parser.error("--run of which lesson?")
    try:
        return act(arguments, is_why)
    except NotThereError as error:
        print(f"learn: {error}", file=sys.stderr)
        return FAILED


def act(arguments, is_why):
    """Do what was asked for; return the exit status. NotThereError: it cannot be."""
    if not arguments.lesson:
        print(*ladder.listing(), sep="\n")
        return 0
    if is_why and arguments.run:
        return measure(arguments)
    own = arguments.lesson.startswith("mine/")
    name = arguments.lesson if own else ladder.name_of(arguments.lesson)
    checkout = ladder.checkout()
    if arguments.run:
        return run(checkout, name, arguments.card or card())
    if own:
        raise NotThereError("a copy of your own has no page; --run builds and runs it")
    page = checkout.page(name)
    text = page.read_text(encoding="utf-8")
    terminal.show(terminal.render(text, page.parent, sys.stdout.isatty()))
    return 0


def card():
    """Return "gpu" where the driver lists one, as `make lessons` asks it, else "sim"."""
    if shutil.which("nvidia-smi") is None:
        return "sim"
    done = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True)
    return "gpu" if done.stdout.startswith("GPU") else "sim"


# Lessons ------------------------------------------------------------------------------------------


def run(checkout, name, card):
    """Build a lesson, run it, show recorded figures beside its own; return its exit status."""
    program = checkout.program(name)
    path = program.relative_to(checkout.folder / "cuda/lessons").with_suffix("")
    binary = f"build/lessons/{card}/{path.as_posix()}"
    build(checkout, binary)
    print(f"{binary}, on {'a GPU' if card == 'gpu' else 'the simulated card'}", flush=True)
    status, own = follow([checkout.folder / binary], checkout.folder)
    if status == NO_DEVICE:
        print("(The device that the lesson needs is not here.)")
    for line in beside(own, checkout.recorded(program.stem)):
        print(line)
    return status if status >= 0 else FAILED


def follow(program, folder):
    """Run a program and print its lines as they come; return its exit status and the lines.

    It writes to a terminal of its own: into a pipe C programs write when a buffer is full.
    """
    ours, its = os.openpty()
    lines = []
    with open(ours, encoding="utf-8", errors="replace") as reader:
        try:
            process = subprocess.Popen(program, cwd=folder, stdout=its, stderr=its)
        finally:
            os.close(its)
        try:
            for line in reader:
                lines.append(line.rstrip("\r\n"))
                print(lines[-1], flush=True)
        except OSError as error:  # how a terminal ends whose other side is closed
            if error.errno != errno.EIO:
                raise
        finally:
            status = process.wait()
    return status, lines


def beside(own, recorded):
    """Return the lines that show recorded figures beside those of a run."""
    lines = []
    for where, output in recorded:
        pairs = ladder.pair(own, output)
        if pairs:
            lines += ["", f"Recorded beside yours ({where}):"]
        for ours, other in pairs:
            lines += [f"  yours     {ours.strip()}", f"  recorded  {other.strip()}"]
    return lines


def build(checkout, binary):
    """Build a program with make. NotThereError: it does not build, and what the compiler said."""
    command = ["make", "--no-print-directory", binary]
    if "PYTHON" not in os.environ and not (checkout.folder / ".venv").exists():
        command.append(f"PYTHON={sys.executable}")
    try:
        with Waiting(f"building {binary}"):
            done = subprocess.run(command, cwd=checkout.folder, capture_output=True, text=True)
    except FileNotFoundError:
        raise NotThereError("there is no make here, which builds the lessons") from None
    if done.returncode:
        raise NotThereError(f"{binary} was not built:\n{done.stdout}{done.stderr}".rstrip())


class Waiting:
    """Says on a terminal's stderr that something takes time, and how long already."""

    def __init__(self, what, stream=None):
        self.what = what
        self.stream = sys.stderr if stream is None else stream
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self):
        self.began = time.monotonic()
        if self.stream.isatty():
            self.thread.start()
        return self

    def __exit__(self, *error):
        self.over.set()
        if self.thread.is_alive():
            self.thread.join()
            self.stream.write("\r\033[K")
            self.stream.flush()

    def _tell(self):
        while True:
            self.stream.write(f"\r\033[K{self.what}, {time.monotonic() - self.began:.0f} s")
            self.stream.flush()
            if self.over.wait(1):
                return


# Why ----------------------------------------------------------------------------------------------


def measure(arguments):
    """Measure the figures of docs/why.md on this machine; return the exit status."""
    progress = Progress(len(why.PARTS))
    try:
        with replacement(arguments.json) as file:
            kept = why.report(why.setting(arguments.quick), progress.say, progress)
            if file is not None:
                json.dump(kept, file, indent=1)
                file.write("\n")
    except OSError as error:
        raise NotThereError(str(error)) from None
    finally:
        progress.close()
    return 0
