"""Functions that make matrices: of ones on a diagonal, of one side of it, or with a given one."""

from ..array import wrap
from ..backends import cpu_making
from ..dispatch import apply, observed
from . import short_cards, short_cpu, short_names, short_numpy
from .arguments import Operands, parse_int, parse_shape
from .creation import of_value, place_of
from .indexing import embedded
from .layout import as_array, diagonal, reshape
from .short_calls import made, short
from .values import copied

__all__ = ["diag", "eye", "identity", "tri", "tril", "triu"]


def eye(n_rows, n_cols=None, /, k=0, dtype=None, *, device=None):
    """Return a matrix of zeros with ones on a diagonal.

    n_cols: by default n_rows. k: column - row of the diagonal, 0 for the main one. dtype: by
    default the default float. ValueError: a negative size.

    >>> print(vg.eye(2, 3, k=1))
    [[0. 1. 0.]
     [0. 0. 1.]]
    """
    n_cols = n_rows if n_cols is None else n_cols
    backend, shape, dtype = place_of((n_rows, n_cols), dtype, device)
    k = max(-(2**62), min(parse_int(k, "the place of a diagonal"), 2**62))
    if not backend.on_card and not observed():
        data = cpu_making.eye(*shape, k, dtype)
        if data is not None:
            return wrap(backend, data)
    result = apply(backend, "empty", shape, dtype)
    apply(backend, "eye", result, k)
    return result


def identity(n, /, dtype=None, *, device=None):
    """Return eye(n).

    >>> print(vg.identity(2))
    [[1. 0.]
     [0. 1.]]
    """
    return eye(n, dtype=dtype, device=device)


@made(short_names.tri)
def tri(n_rows, n_cols=None, /, k=0, dtype=None, *, device=None):
    """Return a matrix with ones at and below a diagonal, and zeros above; see eye.

    >>> print(vg.tri(2, 3))
    [[1. 0. 0.]
     [1. 1. 0.]]
    """
    n_cols = n_rows if n_cols is None else n_cols
    ones = of_value(*place_of((n_rows, n_cols), dtype, device), 1)
    return tril(ones, k)


def diag(x, /, k=0):
    """Return a copy of the diagonal of a matrix, or a matrix of zeros with the given diagonal.

    k: column - row of the diagonal. ValueError: x has neither one nor two dimensions.

    >>> vg.diag(vg.asarray([1, 2])).tolist()
    [[1, 0], [0, 2]]
    >>> vg.diag(vg.asarray([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    for way in (short_cpu, short_cards):
        result = way.diagonal_matrix(x, k)
        if result is not None:
            return result
    array, give = as_array("diag", x)
    if array.ndim == 2:
        return give(copied(diagonal(array, k)))
    if array.ndim != 1:
        raise ValueError(f"diag takes one or two dimensions, not {array.ndim}")
    k = parse_int(k, "a diagonal")
    n, length = array.size + abs(k), array.size
    parse_shape((n, n), array.dtype.itemsize)
    start = max(k, 0) + max(-k, 0) * n if length else 0
    flat = embedded(array, (n * n,), (start,), (n + 1 if length > 1 else 1,), (length,))
    return give(reshape(flat, (n, n)))


@short(short_numpy.tril)
def tril(x, /, k=0, *, out=None, device=None):
    """Return matrices, the last two axes of x, with zeros above a diagonal.

    k: column - row of that diagonal, an integer; 0 is the main one. ValueError: less than two axes.

    >>> vg.tril(vg.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 0], [3, 4]]
    """
    return _triangle("tril", x, False, k, out, device)


@short(short_numpy.triu)
def triu(x, /, k=0, *, out=None, device=None):
    """Return matrices, the last two axes of x, with zeros below a diagonal; see tril.

    >>> vg.triu(vg.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 2], [0, 4]]
    >>> vg.triu(vg.asarray([[1, 2], [3, 4]]), 1).tolist()
    [[0, 2], [0, 0]]
    """
    return _triangle("triu", x, True, k, out, device)


def _triangle(name, x, upper, k, out, device):
    if out is device is None:
        result = short_cards.side_of_diagonal(x, upper, k)
        if result is not None:
            return result
    call = Operands(name, (x,), out, device)
    array, k = call.arrays[0], parse_int(k, "a diagonal")
    if array.ndim < 2:
        raise ValueError(f"{name} takes matrices, not an array of shape {array.shape}")
    rows, columns = array.shape[-2:]
    return call.apply("triangle", array, upper, max(-rows, min(k, columns)))
