"""Turn the launches of a CUDA program into calls that g++ accepts, for the simulator.

    python translate.py lesson.cu > lesson.cpp

`kernel<<<grid, block, shared, stream>>>(arguments)` becomes `pvg_sim::configure("kernel", __FILE__,
__LINE__, kernel, grid, block, shared, stream)(arguments)`, and `extern __shared__ T name[];` a
pointer to the launched bytes. Functions of the host alone get an attribute by which the access
checker leaves them as fast as they are. Everything else, the line numbers too, stays. Not
understood: a launch built by token pasting, a kernel with overloads, template arguments that are
not written out.

The program tells mistakes on stderr, its host code cannot touch device memory (the setting "guard")
and, where it is linked with the access checker, its kernels no memory of the host's.
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
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
SCOPE = re.compile(r"(?:namespace(?:\s+[\w:]+)?|extern)\s*$")  # what has functions in its braces
TEMPLATE = re.compile(r"\s*template\s*(?=<)")
HEAD = """#include "simulator/launch_syntax.h"
static const int pvg_sim_settings =
    pvg_sim_set("print", 1) + pvg_sim_set("guard", 1) + pvg_sim_set("races", 0);
"""
NOT_CHECKED = "__attribute__((no_sanitize_thread)) "


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
    call = f"pvg_sim::configure({', '.join(parts)})({arguments})"
    lines_lost = text.count("\n", start, ending) - call.count("\n")
    return call + "\n" * lines_lost, ending + 1


def host_functions(code):
    """Return where the definitions of the functions begin that are the host's alone."""
    code = DIRECTIVE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), code)
    found, begin, scopes, depth = [], 0, 0, 0  # `begin`: of the declaration that is read
    for mark in re.finditer("[{};]", code):
        at, before = mark.start(), code[begin : mark.start()]
        if mark.group() == "{" and depth == 0 and SCOPE.search(before):
            scopes, begin = scopes + 1, at + 1
        elif mark.group() == "{":
            on_device = "__device__" in before or "__global__" in before
            if depth == 0 and before.rstrip().endswith(")") and not on_device:
                found.append(start_of_declaration(code, begin))
            depth += 1
        elif depth == 0:
            scopes, begin = scopes - (mark.group() == "}"), at + 1
        elif mark.group() == "}":
            depth, begin = depth - 1, at + 1
    return found if depth == scopes == 0 else []  # else #if has braces of its own


def start_of_declaration(code, at):
    """Return where a declaration begins, behind `template <...>` if it has that."""
    while template := TEMPLATE.match(code, at):
        at, _ = find_outside_brackets(code, template.end() + 1, ">")
        at += 1
    return at + len(code[at:]) - len(code[at:].lstrip())


def translate(text, path):
    """Return the C++ program for the text of a .cu file; `path` is what messages shall name."""
    for at in reversed(host_functions(blank(text))):
        text = text[:at] + NOT_CHECKED + text[at:]
    code, pieces, done = blank(text), [], 0
    for launch in re.finditer("<<<", code):
        start = start_of_kernel(code, launch.start())
        call, end = launch_call(text, code, start, launch)
        pieces += [text[done:start], call]
        done = end
    program = "".join(pieces) + text[done:]
    program = DYNAMIC_SHARED.sub(r"PVG_DYNAMIC_SHARED(\1, \2);", program)
    return f'{HEAD}#line 1 "{path}"\n{program}'


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
