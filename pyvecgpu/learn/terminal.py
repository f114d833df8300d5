"""A page in Markdown as a terminal can show it."""

import pydoc
import re
import sys

WIDTH = 100
_BLOCK = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_FENCE = re.compile(r"^```.*\n", re.MULTILINE)
_BADGE = re.compile(r"\[!\[[^]]*\]\([^)]*\)\]\([^)]*\)")
_PICTURE = re.compile(r"^!\[([^]]*)\]\(([^)]+)\)$", re.MULTILINE)
_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")
_STRONG = re.compile(r"\*\*([^*]+)\*\*")
_EMPHASIS = re.compile(r"(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def render(text, folder, colours=False):
    """Return the text of a page: links by their words, pictures by where they lie in `folder`.

    With `colours` headings and strong words are bold, by a terminal's codes.
    """
    parts = _FENCE.split(_BLOCK.sub("", text))  # prose and code in turn
    parts[::2] = (_prose(part, folder, colours) for part in parts[::2])
    parts[1::2] = (re.sub("(?m)^(?=.)", "    ", part) for part in parts[1::2])
    lines = "".join(parts).splitlines()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(map(str.rstrip, lines))).strip() + "\n"


def _prose(text, folder, colours):
    text = _PICTURE.sub(lambda match: f"    [picture: {match[1]}; {folder / match[2]}]", text)
    text = _LINK.sub(r"\1", _BADGE.sub("", text))
    text = _EMPHASIS.sub(r"\1", text)
    text = _STRONG.sub(lambda match: _bold(match[1], colours), text)
    return _HEADING.sub(lambda match: _heading(match[1], colours), text)


def _heading(title, colours):
    return _bold(title, colours) if colours else f"{title}\n{'=' * len(title)}"


def _bold(text, colours):
    return f"\033[1m{text}\033[0m" if colours else text


def show(text):
    """Show a text a screen at a time where stdout is a terminal, else write it."""
    if sys.stdout.isatty():
        pydoc.pager(text)
    else:
        sys.stdout.write(text)
