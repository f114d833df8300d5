"""PTX and SASS of lesson 01's kernel, in ../why.md: `python docs/why/instructions.py`.

Needs nvcc of CUDA 13.0 and cuobjdump, and leaves out what no reader needs: declarations, encodings
and what stands behind the kernel's end. With --check the page is only compared.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parents[1] / "why.md"
LESSON = Path(__file__).parents[2] / "cuda/lessons/01_first_kernel.cu"


def compile_lesson(folder, kind):
    """Return the path of lesson 01 as "ptx" or "cubin"."""
    path = Path(folder) / f"lesson.{kind}"
    command = ["nvcc", "-O3", "-arch=sm_90", f"-{kind}", LESSON, "-o", path]
    subprocess.run(command, check=True, capture_output=True)
    return path


def ptx(folder):
    """Return the kernel's instructions in PTX, a line each."""
    body = compile_lesson(folder, "ptx").read_text().partition("{")[2].partition("}")[0]
    lines = [" ".join(line.split()) for line in body.splitlines()]
    lines = [re.sub(r"_Z10\w+_param_", "param_", line) for line in lines]
    return [line for line in lines if line and not line.startswith(".")]


def sass(folder):
    """Return the kernel's instructions for sm_90, a line each, up to its end."""
    cubin = compile_lesson(folder, "cubin")
    text = subprocess.run(["cuobjdump", "-sass", cubin], check=True, capture_output=True, text=True)
    lines = re.findall(r"^\s+/\*[0-9a-f]{4}\*/\s+(.*?) ;", text.stdout, re.MULTILINE)
    return lines[: lines.index("EXIT") + 1]


def page():
    """Return the text of the page with both."""
    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in (("ptx", ptx(folder)), ("sass", sass(folder))):
            first, last = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
            before, _, rest = text.partition(first)
            after = rest.partition(last)[2]
            block = "\n".join(["```text", *lines, "```"])
            text = f"{before}{first}\n\n{block}\n\n{last}{after}"
    return text


def main(arguments):
    text = page()
    if arguments == ["--check"]:
        return int(text != PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
