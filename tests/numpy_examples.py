"""The examples in NumPy's docstrings, computed by NumPy and by this package: what is here too.

    PYTHONPATH=. python tests/numpy_examples.py [NAME ...]     what differs or raises

Nobody here has chosen them. Each docstring is run twice, with `np` for NumPy and for this package,
and the values of each line are compared: shapes, kinds of dtypes, numbers to the digits of float32,
which floats are here by default. Not run are lines that import other packages or measure time.
"""

import contextlib
import doctest
import io
import json
import os
import sys
import tempfile
import warnings
from collections import Counter

import numpy as np

import pyvecgpu as vg

LEFT_OUT = ("plt.", "timeit", "tracemalloc", "subprocess", "getpass", "scipy", "matplotlib")
TOLERANCE = 1e-4
SAME, OTHER, RAISES, BOTH_RAISE = "same", "other values", "raises", "both raise"


def documented():
    """Yield (full name, what NumPy has by it) of all that is here too."""
    places = [("", np, vg), ("linalg.", np.linalg, vg.linalg), ("fft.", np.fft, vg.fft)]
    places.append(("ndarray.", np.ndarray, vg.Array))
    for prefix, numpys, ours in places:
        for name in sorted(dir(numpys)):
            value = getattr(numpys, name)
            if not name.startswith("_") and hasattr(ours, name) and value.__doc__:
                yield prefix + name, value


def examples(value):
    """The lines of a docstring that stand behind >>>; none of one that cannot be read."""
    try:
        return [one.source for one in doctest.DocTestParser().get_examples(value.__doc__)]
    except ValueError:
        return []


def computed(source, names):
    """(the value of a line or None, the exception that it raises or None)."""
    try:
        code = compile(source, "<example>", "eval")
    except SyntaxError:
        code = compile(source, "<example>", "exec")
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return eval(code, names), None
        except Exception as error:  # whatever an example raises is its result
            return None, error


def on_host(value):
    if isinstance(value, (list, tuple)):
        return [on_host(one) for one in value]
    return value.numpy() if isinstance(value, vg.Array) else value


def are_alike(ours, numpys):
    ours, numpys = on_host(ours), on_host(numpys)
    if isinstance(ours, list) and isinstance(numpys, list):
        pairs = zip(ours, numpys, strict=False)
        return len(ours) == len(numpys) and all(are_alike(*pair) for pair in pairs)
    if isinstance(numpys, (str, dict, type(None))):
        return isinstance(ours, type(numpys))
    try:
        x, y = np.asarray(ours), np.asarray(numpys)
    except ValueError:
        return False
    if y.dtype.kind not in "biufc":
        return True  # an object of NumPy's, of which only that it is there is known
    if x.shape != y.shape or x.dtype.kind != y.dtype.kind:
        return False
    return np.allclose(x.astype(complex), y.astype(complex), TOLERANCE, TOLERANCE, equal_nan=True)


def outcomes(name, value):
    """Yield (line, what became of it, more about it) of a docstring's lines."""
    numpys, ours = {"np": np, "numpy": np}, {"np": vg, "numpy": vg}
    for source in examples(value):
        if any(word in source for word in LEFT_OUT) or name == "test":
            continue
        here = source.replace("numpy", "pyvecgpu") if "import " in source else source
        (wanted, refused), (found, error) = computed(source, numpys), computed(here, ours)
        if error is not None and refused is not None:
            yield source, BOTH_RAISE, ""
        elif error is not None:
            yield source, RAISES, f"{type(error).__name__}: {error}"
        elif refused is not None or not are_alike(found, wanted):
            yield source, OTHER, f"{on_host(found)!r} instead of {wanted!r}"
        else:
            yield source, SAME, ""


@contextlib.contextmanager
def in_another_folder():
    """Inside the block, what examples write goes to a folder that is removed behind it."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def run(chosen=()):
    """Return (how many lines have which outcome, what is to be told of those that are not same)."""
    counts, told = Counter(), []
    with in_another_folder():
        for name, value in documented():
            if chosen and name not in chosen:
                continue
            for source, outcome, more in outcomes(name, value):
                counts[outcome] += 1
                if outcome in (OTHER, RAISES):
                    line, reason = " ".join(source.split()), " ".join(more.split())[:200]
                    told.append(f"{name}: {outcome}: {line}: {reason}")
    return counts, told


def main(chosen):
    counts, told = run(chosen)
    print("\n".join(told))
    print(json.dumps(counts))


if __name__ == "__main__":
    main(sys.argv[1:])
