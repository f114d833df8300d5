"""A page in Markdown as a terminal can show it."""

import pydoc
import re
import sys

WIDTH = 100
_BLOCK = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_PICTURE = re.compile(r"^!\[([^]]*)\]\(([^)]+)\)$")
_BADGE = re.compile(r"\[!\[[^]]*\]\([^)]*\)\]\([^)]*\)")
_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")
_STRONG = re.compile(r"\*\*(.+?)\*\*")
_EMPHASIS = re.compile(r"(?<![\w*])\*([^*\n]+)\*(?![\w*])")


def render(text, folder, colours=False):
    """Return the text of a page: links by their words, pictures by where they lie in `folder`.

    With `colours` headings and strong words are bold, by a terminal's codes.
    """
    lines, in_code = [], False
    for line in _BLOCK.sub("", text).splitlines():
        if line.startswith("```"):
            in_code = not in_code
        elif in_code:
            lines.append(f"    {line}")
        else:
            lines.append(_line(line, folder, colours))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def _line(line, folder, colours):
    picture = _PICTURE.match(line)
    if picture:
        return f"    [picture: {picture[1]}; {folder / picture[2]}]"
    line = _LINK.sub(r"\1", _BADGE.sub("", line))
    line = _EMPHASIS.sub(r"\1", line)
    if line.startswith("#"):
        title = line.lstrip("# ")
        return _bold(title, colours) if colours else f"{title}\n{'=' * len(title)}"
    return _STRONG.sub(lambda match: _bold(match[1], colours), line)


def _bold(text, colours):
    return f"\033[1m{text}\033[0m" if colours else text


def show(text):
    """Show a text a screen at a time where stdout is a terminal, else write it."""
    if sys.stdout.isatty():
        pydoc.pager(text)
    else:
        sys.stdout.write(text)
