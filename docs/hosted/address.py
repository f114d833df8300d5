"""Writes pyvecgpu's address into hosted.ipynb, and a badge that opens it where the pages have room.

The address is `Repository` of pyproject's [project.urls]. While there is none the badges are left
out, and the notebook asks for the address: `python docs/hosted/address.py`, with --check to compare
only. Run in the repository's top folder.
"""

import re
import sys
from pathlib import Path

NOTEBOOK = "docs/hosted/hosted.ipynb"
PAGES = ("README.md", "docs/why.md", "docs/notebooks/README.md")
FIRST = "<!-- badge: begin, written by python docs/hosted/address.py -->"
LAST = "<!-- badge: end -->"
SERVICE = "https://colab.research.google.com"
VARIABLE = re.compile(r'(?<=REPOSITORY = \\").*?(?=\\")')


def address(text):
    """Return the repository's address from the text of pyproject.toml; "" if it has none."""
    table = re.search(r"^\[project\.urls\]\n(.*?)(?=^\[|\Z)", text, re.MULTILINE | re.DOTALL)
    found = re.search(r'^"?Repository"? *= *"(.*)"', table[1], re.MULTILINE) if table else None
    return found[1].removesuffix("/").removesuffix(".git") if found else ""


def badge(url):
    """Return the line that opens the notebook; "" for an address that the service cannot read."""
    place = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+)", url)
    if not place:
        return ""
    return (
        f"[![open it in a hosted notebook]({SERVICE}/assets/colab-badge.svg)]"
        f"({SERVICE}/github/{place[1]}/blob/main/{NOTEBOOK})"
    )


def filled(path, text, url):
    """Return the text of a page or of the notebook, with the address in it."""
    if path == NOTEBOOK:
        return VARIABLE.sub(url, text, count=1)
    before, _, rest = text.partition(FIRST)
    line = badge(url)
    block = f"{FIRST}\n\n{line}\n\n{LAST}" if line else f"{FIRST}\n{LAST}"
    return before + block + rest.partition(LAST)[2]


def main(arguments):
    """Write, or with --check compare; return the exit code."""
    url = address(Path("pyproject.toml").read_text(encoding="utf-8"))
    out_of_date = False
    for path in (*PAGES, NOTEBOOK):
        text = Path(path).read_text(encoding="utf-8")
        new = filled(path, text, url)
        if new != text and arguments == ["--check"]:
            print(f"{path}: out of date; run python docs/hosted/address.py", file=sys.stderr)
            out_of_date = True
        elif new != text:
            Path(path).write_text(new, encoding="utf-8")
    return int(out_of_date)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
