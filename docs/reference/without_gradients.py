"""Writes the list of what refuses tracked arrays into docs/autograd.md, found by calling all of it.

    PYTHONPATH=. python docs/reference/without_gradients.py

Every public function is called with arrays that require gradients, real and complex ones, in all of
the ways that are below; which of them fit it is for the function to say. What raises
NotImplementedError is listed: functions of such arrays, and functions of which a number has no
gradient. tests/test_manual.py sees that the page has what is found.
"""

import inspect
import itertools
import re
import textwrap
import warnings
from pathlib import Path

import numpy as np

import pyvecgpu as vg

PAGE = Path(__file__).parents[1] / "autograd.md"
BEGIN, END = "<!-- without: begin -->\n", "<!-- without: end -->"
PLACES = {"": vg, "linalg.": vg.linalg, "fft.": vg.fft, "nn.functional.": vg.nn.functional}
# What writes files, or changes the state of the process or what later calls give.
SKIPPED = re.compile(r"save|load|seed|set_|from|enable|disable|empty_cache|synchronize|record")
SHAPES = {"square": (3, 3), "tall": (4, 3), "vector": (3,), "number": ()}
# What stands behind a first operand: the names of other ones, or values.
OTHERS = [(), (0,), (1,), (1, 2), ("same",), ("same", "same"), ("complete",), ("number",)]
REFUSAL = re.compile(r"(.*) has no gradient(?: yet|, as)")
FACTORS = (1.0, 0.6 + 0.8j)  # real arrays, and complex ones


def operand(name, first, factor):
    """Return a tracked Array of that name; what is no name as it is."""
    if not isinstance(name, str) or name not in (*SHAPES, "same"):
        return name
    shape = SHAPES[first if name == "same" else name]
    values = np.random.default_rng(len(shape)).uniform(0.2, 0.9, shape)
    return vg.asarray(values * factor, device="cpu").requires_grad_()


def parameters(function):
    """Return the names of those that may be given by name."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [one.name for one in found if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]


def refusals(function):
    """Return what NotImplementedErrors of a function name, called in all ways."""
    found = set()
    ways = [(others, {}) for others in OTHERS]
    ways += [((), {name: "number"}) for name in parameters(function)]
    for first, (others, named), factor in itertools.product(SHAPES, ways, FACTORS):
        arguments = [operand(name, first, factor) for name in (first, *others)]
        given = {key: operand(name, first, factor) for key, name in named.items()}
        try:
            function(*arguments, **given)
        except NotImplementedError as error:
            refusal = REFUSAL.match(str(error))
            found |= {refusal[1]} if refusal else set()
        except Exception:  # arguments that do not fit
            continue
    return found


def refused():
    """Return {a function: what of it has no gradient}, of arrays, and the same of numbers.

    A refusal names an operation, or a number in words ("a bound of linspace", "quantile's q") or as
    its parameter.
    """
    arrays, numbers = {}, {}
    for place, module in PLACES.items():
        for name in module.__all__:
            function = getattr(module, name)
            if isinstance(function, type) or not callable(function) or SKIPPED.search(name):
                continue
            for text in refusals(function):
                is_number = re.match(r"an? |.*'s ", text) or text in parameters(function)
                (numbers if is_number else arrays).setdefault(place + name, set()).add(text)
    return arrays, numbers


def listed():
    """Return the list as Markdown."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        arrays, numbers = refused()
    texts = []
    for title, found in (("Arrays of", arrays), ("Numbers of", numbers)):
        names = []
        for name, what in sorted(found.items()):
            reasons = sorted(one for one in what if one != name.rpartition(".")[2])
            of_arrays = [one for one in reasons if " " in one]
            reasons = of_arrays if found is arrays else reasons
            names.append(f"`{name}`" + (f" ({', '.join(reasons)})" if reasons else ""))
        text = f"- {title} " + ", ".join(names) + "."
        texts.append(textwrap.fill(text, 100, subsequent_indent="  ", break_on_hyphens=False))
    return "\n".join(texts) + "\n"


def renewed(page):
    """Return the text of the page with the list as it is now."""
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert end, f"{PAGE} has no {BEGIN.strip()} ... {END}"
    return before + BEGIN + listed() + END + after


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
