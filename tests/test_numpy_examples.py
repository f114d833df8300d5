"""NumPy's own examples, those in its docstrings, with this package in NumPy's place.

They are of the NumPy that is installed, and nobody has chosen them: every function, method and
module of NumPy that has its name here. An example that comes to the same, or is refused by both,
agrees. Floats have NumPy's dtype for the time. What the examples need that is not here, or on
purpose otherwise, is told below, and of the others nearly all have to agree.
"""

import contextlib
import doctest
import io
import re
import warnings

import numpy as np
import pytest

import pyvecgpu as vg

# The examples leave files open.
pytestmark = [
    pytest.mark.devices("cpu", "sim"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

LEAST = 0.985  # of the examples that are judged
# Of an example's text or of an error: why it is not judged.
APART = {
    r"plt\.|matplotlib|scipy|timeit|getsizeof|help\(|\.info\(": "about other packages",
    r"random|rng|seed": "numbers drawn by another generator",
    r"is not supported; arrays can|dtype=.?object|dtype=.U|datetime|timedelta|recarray|np\.void": (
        "dtypes that arrays do not have"
    ),
    r"np\.ma\b|poly1d|matrix\(|\.view\(|_names": "objects that there are not",
    r"\.base\b|\.flags|order='F'|__array_interface__|mmap_mode|flatiter": "how arrays lie there",
    r"array_repr|repr\(|str\(|empty_like|\bempty\(": "texts, and what lies in memory",
    r"binary_repr\(x": "of an array, whose elements it would bring to the host",
    r"\.dtype\.names|is x\b|np\.uint|np\.int\d+\(|np\.float\d+\(": "scalars with dtypes as classes",
    r"arange\(.*dtype=int|unique_values": "on purpose otherwise",
}


def documented():
    """Yield (name, object) of what both packages have."""
    for name in sorted(np.__all__):
        if hasattr(vg, name):
            yield name, getattr(np, name)
    for part in ("linalg", "fft"):
        for name in getattr(np, part).__all__:
            if hasattr(getattr(vg, part), name):
                yield f"{part}.{name}", getattr(getattr(np, part), name)
    for name in dir(np.ndarray):
        if not name.startswith("_") and hasattr(vg.Array, name):
            yield f"ndarray.{name}", getattr(np.ndarray, name)


def plain(value):
    """Return a value with ndarrays for Arrays."""
    if isinstance(value, vg.Array):
        return value.numpy()
    if isinstance(value, (tuple, list)):
        return [plain(one) for one in value]
    return value


def agree(one, other):
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(agree, one, other))
    numbers = (np.ndarray, np.generic, bool, int, float, complex)
    if not (isinstance(one, numbers) or isinstance(other, np.ndarray)):
        return type(one) is not type(other) or one is other or bool(one == other)
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape:
        return False
    if one.dtype.kind not in "biufc" or other.dtype.kind not in "biufc":
        return repr(one) == repr(other)
    with np.errstate(all="ignore"):
        return np.allclose(one, other, rtol=1e-5, atol=1e-6, equal_nan=True)


def run(source, names):
    """Return what an example gives, or the error that it raises."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            try:
                return plain(eval(compile(source, "example", "eval"), names))
            except SyntaxError:
                return exec(source, names)
        except Exception as error:
            return error


def compare(name, examples, counts):
    """Run the examples of a docstring for both; yield those that are judged and do not agree."""
    theirs, ours = {"np": np}, {"np": vg}
    for example in examples:
        source = example.source.replace("import numpy as np", "pass")
        expected, found = run(source, theirs), run(source, ours)
        both = [isinstance(one, Exception) for one in (found, expected)]
        if all(both) or (not any(both) and agree(found, expected)):
            counts["agree"] += 1
            continue
        told = f"{source} {found!r}"
        if isinstance(expected, Exception) or any(re.search(text, told) for text in APART):
            counts["apart"] += 1
        else:
            counts["not"] += 1
            yield f"{name}: {source.strip()}: {found!r}, not {expected!r}"[:300]
        if both[0] and re.match(r"\w+(, \w+)* = |import|with ", source):
            return  # what follows has not got the names that it needs


def test_numpys_examples(device, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    counts, failures = dict.fromkeys(("agree", "apart", "not"), 0), []
    vg.set_default_dtype("float64")
    try:
        with vg.device(device):
            for name, value in documented():
                examples = doctest.DocTestParser().get_examples(value.__doc__ or "")
                failures += compare(name, examples, counts)
    finally:
        vg.set_default_dtype("float32")
    told = f"{counts}\n" + "\n".join(failures)
    assert counts["agree"] >= 2500, told
    assert counts["apart"] <= 0.05 * counts["agree"], told
    assert counts["agree"] >= LEAST * (counts["agree"] + counts["not"]), told
