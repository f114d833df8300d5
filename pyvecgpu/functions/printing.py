"""What print shows of an array, fetching from the device only the elements that are shown."""

import numpy as np

from ..dtypes import bfloat16, float32
from .arguments import parse_int
from .indexing import get
from .layout import as_array, astype
from .values import to_host

__all__ = [
    "array2string",
    "array_repr",
    "array_str",
    "get_printoptions",
    "printoptions",
    "set_printoptions",
]


def get_printoptions():
    """Return a dict of how arrays are printed: NumPy's options, which hold here, too.

    >>> vg.get_printoptions()["threshold"]
    1000
    """
    return np.get_printoptions()


def set_printoptions(*values, **options):
    """Change how arrays are printed, NumPy's as well; see numpy.set_printoptions.

    >>> vg.set_printoptions(precision=3)
    >>> print(vg.asarray([1 / 3, 2 / 3]))
    [0.333 0.667]
    >>> vg.set_printoptions(precision=8)
    """
    np.set_printoptions(*values, **options)


def printoptions(*values, **options):
    """Return a context in which arrays are printed with other options; see set_printoptions.

    >>> with vg.printoptions(precision=2):
    ...     print(vg.asarray([1 / 3, 2 / 3]))
    [0.33 0.67]
    """
    return np.printoptions(*values, **options)


def array2string(
    a, /, max_line_width=None, precision=None, suppress_small=None, separator=" ", prefix="", *,
    formatter=None, threshold=None, edgeitems=None, sign=None, floatmode=None, suffix="",
):  # fmt: skip
    """Return the values of an array as text, as NumPy prints them; see numpy.array2string.

    >>> vg.array2string(vg.asarray([1 / 3, 2 / 3]), precision=2, separator=", ")
    '[0.33, 0.67]'
    """
    if not isinstance(formatter, (dict, type(None))):
        raise TypeError(f"array2string: formatter is a dict, not {type(formatter).__name__}")
    array, _ = as_array("array2string", a)
    options = np.get_printoptions()
    most = options["threshold"] if threshold is None else parse_int(threshold, "threshold")
    edge = options["edgeitems"] if edgeitems is None else parse_int(edgeitems, "edgeitems")
    values, most = _shown(array, most, edge)
    return np.array2string(
        values, max_line_width, precision, suppress_small, separator, prefix, formatter=formatter,
        threshold=most, edgeitems=edgeitems, sign=sign, floatmode=floatmode, suffix=suffix,
    )  # fmt: skip


def array_repr(a, /, max_line_width=None, precision=None, suppress_small=None):
    """Return repr(a), with other options than those of printoptions.

    >>> vg.array_repr(vg.asarray([1 / 3], device="cpu"), precision=2)
    "Array([0.33], dtype=float32, device='cpu')"
    """
    array, _ = as_array("array_repr", a)
    with _options(max_line_width, precision, suppress_small):
        return repr(a if array is not a else array)


def array_str(a, /, max_line_width=None, precision=None, suppress_small=None):
    """Return str(a), with other options than those of printoptions.

    >>> vg.array_str(vg.asarray([1 / 3, 2.0]), precision=2)
    '[0.33 2.  ]'
    """
    as_array("array_str", a)
    with _options(max_line_width, precision, suppress_small):
        return str(a)


def _options(max_line_width, precision, suppress_small):
    given = {"linewidth": max_line_width, "precision": precision, "suppress": suppress_small}
    return np.printoptions(**{name: x for name, x in given.items() if x is not None})


def _shown(array, threshold, edge):
    """Return the values that are shown of an array, and the threshold that then holds."""
    if array.dtype is bfloat16:
        array = astype(array, float32)  # which NumPy prints whether or not ml_dtypes is there
    if array.device.type == "cpu" or array.size <= threshold:
        return to_host(array), threshold
    return _edges(array, 0, edge), 0


def text(array, prefix):
    """Return the values as NumPy prints them, for a line that begins with `prefix`."""
    options = np.get_printoptions()
    if array.dtype is bfloat16:
        array = astype(array, float32)  # which NumPy prints whether or not ml_dtypes is there
    if array.ndim == 0 and not prefix:
        return str(to_host(array)[()])  # all digits of a scalar, as NumPy's str of a 0-d array
    if array.device.type == "cpu":
        return np.array2string(to_host(array), separator=", " if prefix else " ", prefix=prefix)
    if array.size <= options["threshold"]:
        values, threshold = to_host(array), options["threshold"]
    else:
        values, threshold = _edges(array, 0, options["edgeitems"]), 0
    separator = ", " if prefix else " "
    return np.array2string(values, separator=separator, prefix=prefix, threshold=threshold)


def _edges(array, axis, edge):
    """Return the first and last items along every axis, one more than NumPy shows of a long one."""
    while axis < array.ndim and array.shape[axis] <= 2 * edge + 1:
        axis += 1
    if axis == array.ndim:
        return to_host(array)
    before = (slice(None),) * axis
    ends = slice(0, edge + 1), slice(-edge, None)
    parts = [get(array, (*before, end)) for end in ends]
    return np.concatenate([_edges(part, axis + 1, edge) for part in parts], axis)
