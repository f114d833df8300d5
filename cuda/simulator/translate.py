"""Turn the launches of a CUDA program into calls that g++ accepts, for the simulator.

    python translate.py lesson.cu > lesson.cpp

`kernel<<<grid, block, shared, stream>>>(arguments)` becomes `pvg_sim::launch("kernel", __FILE__,
__LINE__, kernel, grid, block, shared, stream, arguments)`, and `extern __shared__ T name[];` a
pointer to the launched bytes. Everything else, the line numbers too, stays. Not understood: a
launch built by token pasting, a kernel with overloads, template arguments that are not written out.
"""

import re
import sys
from itertools import pairwise

# Comments and literals, where <<< means nothing.
SKIPPED = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r'|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
    r"|(?<!\w)'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)
DYNAMIC_SHARED = re.compile(
    r"extern\s+__shared__\s+(?:(?:__align__|alignas)\s*\([^)]*\)\s*)?"
    r"([\w:<> ]+?)\s+(\w+)\s*\[\s*\]\s*;"
)
NAME = re.compile(r"(?:::)?(?:\w+::)*\w+$")
REPORTS_TO_STDERR = 'static const int pvg_sim_prints = pvg_sim_set("print", 1);'


class TranslationError(Exception):
    """A launch that this translator cannot take apart."""


def blank(text):
    """Return the text with comments and literals as spaces, so that a search sees code only."""
    return SKIPPED.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def line_of(code, at):
    """Return the number of the line that holds a position."""
    return code.count("\n", 0, at) + 1


def find_outside_brackets(code, at, stop):
    """Return where `stop` comes next outside all brackets, and the commas on the way there."""
    start, depth, commas = at, 0, []
    while at < len(code):
        if depth == 0 and code.startswith(stop, at):
            return at, commas
        depth += (code[at] in "([{") - (code[at] in ")]}")
        if code[at] == "," and depth == 0:
            commas.append(at)
        at += 1
    raise TranslationError(f"line {line_of(code, start)}: no {stop} after a launch's <<<")


def opening_of(code, at):
    """Return the position of the bracket that the one at `at` closes."""
    closing = code[at]
    opening = {")": "(", ">": "<"}[closing]
    depth = 0
    while at >= 0:
        depth += (code[at] == closing) - (code[at] == opening)
        if depth == 0:
            return at
        at -= 1
    raise TranslationError(f"a {closing} in front of <<< closes nothing")


def start_of_kernel(code, end):
    """Walk back from <<< over `(expression)` or `scope::name<template, arguments>`."""
    at = len(code[:end].rstrip())
    if code[at - 1] == ")":
        return opening_of(code, at - 1)
    if code[at - 1] == ">":
        at = len(code[: opening_of(code, at - 1)].rstrip())
    name = NAME.search(code[:at])
    if not name:
        raise TranslationError(f"line {line_of(code, end)}: no kernel's name in front of <<<")
    return name.start()


def launch_call(text, code, start, launch):
    """Return the call for the launch whose <<< is `launch`, and where the launch ends."""
    kernel = text[start : launch.start()].rstrip()
    close, commas = find_outside_brackets(code, launch.end(), ">>>")
    cuts = [launch.end() - 1, *commas, close]
    configuration = [text[a + 1 : b].strip(" ") for a, b in pairwise(cuts)]
    if not 2 <= len(configuration) <= 4:
        raise TranslationError(f"line {line_of(code, close)}: <<< >>> has 2 to 4 values")
    configuration += ["0", "nullptr"][len(configuration) - 2 :]
    opening = code.index("(", close)
    ending, _ = find_outside_brackets(code, opening + 1, ")")
    arguments = text[opening + 1 : ending]
    name = re.sub(r"\s+", " ", kernel).replace('"', "'")
    parts = [f'"{name}"', "__FILE__", "__LINE__", kernel, *configuration]
    if arguments.strip():
        parts.append(arguments)
    call = f"pvg_sim::launch({', '.join(parts)})"
    lines_lost = text.count("\n", start, ending) - call.count("\n")
    return call + "\n" * lines_lost, ending + 1


def translate(text, path):
    """Return the C++ program for the text of a .cu file; `path` is what messages shall name."""
    code, pieces, done = blank(text), [], 0
    for launch in re.finditer("<<<", code):
        start = start_of_kernel(code, launch.start())
        call, end = launch_call(text, code, start, launch)
        pieces += [text[done:start], call]
        done = end
    program = "".join(pieces) + text[done:]
    program = DYNAMIC_SHARED.sub(r"PVG_DYNAMIC_SHARED(\1, \2);", program)
    return f'{REPORTS_TO_STDERR}\n#line 1 "{path}"\n{program}'


def main(paths):
    """Translate the one file that is named; return the exit status."""
    if len(paths) != 1:
        print("usage: python translate.py program.cu > program.cpp", file=sys.stderr)
        return 2
    with open(paths[0], encoding="utf-8") as source:
        text = source.read()
    try:
        sys.stdout.write(translate(text, paths[0]))
    except TranslationError as problem:
        print(f"translate.py: {paths[0]}: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
