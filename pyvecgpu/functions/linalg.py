"""Products of matrices and vectors.

Of float32 operands they are computed in a precision, by name:

    "ieee"     a fused multiply-add a term, in float32
    "float32"  as accurate (within 3 times where few terms make up a sum: most elements are zero,
               or spread over many powers of two), over the whole range of exponents, on tensor
               cores where that is faster; the default
    "fast32"   faster still: an error that is small against a row's or a column's largest element
    "tf32", "bf16", "fp16"  operands rounded to that format, summed in float32

Each is at least as accurate as its name says; a device without such units computes "ieee". Operands
of other dtypes have one precision: float16 and bfloat16 are multiplied exactly and summed in
float32, float64 in float64, integers exactly, the parts of complex numbers like floats. The same
operands give the same bits every time, and an item of a batch has the bits of the product of that
item alone.
"""

import math

import numpy as np

from ..array import Array
from ..dtypes import is_complex
from ..native.abi import MAX_NDIM, Option, Precision
from ..native.choices import choose, chosen
from ..operations import Operation
from . import elementwise, short_cards, short_products
from .arguments import Operands, are_operands, is_scalar, parse_axes, parse_axis, parse_int
from .casting import active
from .layout import as_array, broadcast_to, diagonal, permute_dims, ravel, reshape
from .lists import depth, is_list
from .operators import unary
from .reductions import sum as total
from .short_calls import product, short

__all__ = [
    "dot",
    "get_matmul_precision",
    "inner",
    "kron",
    "matmul",
    "matvec",
    "outer",
    "set_matmul_precision",
    "tensordot",
    "trace",
    "vdot",
    "vecdot",
    "vecmat",
]

PRECISIONS = {
    "ieee": Precision.PRECISION_IEEE,
    "float32": Precision.PRECISION_FLOAT32,
    "fast32": Precision.PRECISION_FAST32,
    "tf32": Precision.PRECISION_TF32,
    "bf16": Precision.PRECISION_BF16,
    "fp16": Precision.PRECISION_FP16,
}
_DEFAULT = int(Precision.PRECISION_DEFAULT)


def get_matmul_precision():
    """Return the precision of products that are given none; see set_matmul_precision.

    >>> vg.get_matmul_precision()
    'float32'
    """
    code = chosen(Option.OPTION_MATMUL_PRECISION)
    return next(name for name, one in PRECISIONS.items() if one == code)


def set_matmul_precision(precision):
    """Choose the precision of products of float32 operands that are given no `precision`.

    precision: "ieee", "float32" (the default), "fast32", "tf32", "bf16" or "fp16"; for the whole
    process. ValueError: another name.

    >>> vg.set_matmul_precision("tf32")
    >>> vg.get_matmul_precision()
    'tf32'
    >>> vg.set_matmul_precision("float32")
    """
    choose(Option.OPTION_MATMUL_PRECISION, _code(precision))


def parse_precision(precision):
    """Return a precision's code, which for None says "the one chosen". ValueError: no such name."""
    return _DEFAULT if precision is None else _code(precision)


def _code(precision):
    try:
        return int(PRECISIONS[precision])
    except (KeyError, TypeError):
        names = ", ".join(repr(name) for name in PRECISIONS)
        raise ValueError(f"precision can be {names}, not {precision!r}") from None


def matmul(x1, x2, /, out=None, *, precision=None, device=None):
    """Return the matrix product as numpy.matmul: (..., m, k) @ (..., k, n), batches broadcast.

    1-D operands are a row and a column. Of bools it is the or of ands; integers wrap. precision: a
    name for this product of float32 operands, by default the one of set_matmul_precision.
    ValueError: shapes that do not fit, 0-d operands, no such precision. TypeError: a Python scalar.

    >>> vg.matmul(vg.asarray([[1, 2], [3, 4]]), vg.asarray([1, 1])).tolist()
    [3, 7]
    >>> vg.matmul(vg.ones((5, 2, 3)), vg.ones((3, 4))).shape
    (5, 2, 4)
    """
    if out is precision is device is None:
        result = product(x1, x2)
        if result is not None:
            return result
    call = _operands("matmul", x1, x2, out, device)
    a, b = call.arrays
    return call.apply("matmul", a, b, parse_precision(precision))


def operator(left, right, out):
    """Return left @ right; NotImplemented if an operand is of a foreign type."""
    if out is None:
        result = product(left, right)
        if result is not None:
            return result
    if not (type(left) is type(right) is Array or are_operands(left, right)):
        return NotImplemented
    return matmul(left, right, out=out)


def vecdot(x1, x2, /, out=None, *, axis=-1, precision=None, device=None):
    """Return the sums of conj(x1) * x2 along one axis, the other axes broadcast.

    axis: a negative integer, counted from the end of both shapes, or a non-negative one if both
    have as many dimensions. precision: see matmul. ValueError: the axis has another length in
    x1 than in x2, or the other axes do not broadcast. AxisError: an operand has no such axis.

    >>> vg.vecdot(vg.asarray([[1, 2], [3, 4]]), vg.asarray([1, 10])).tolist()
    [21, 43]
    """
    if axis == -1 and out is None and device is None:
        if precision is None:
            result = product(x1, x2, True)
            if result is not None:
                return result
        result = short_cards.dots(x1, x2, parse_precision(precision))
        if result is not None:
            return result
    call = _operands("vecdot", x1, x2, out, device)
    a, b = call.arrays
    if is_complex(a.dtype):
        a = unary(Operation.CONJ, a)
    axis = parse_int(axis, "an axis")
    if axis >= 0 and a.ndim != b.ndim:
        raise ValueError("vecdot: operands of different dimensions need a negative axis")
    a, b = (_to_last(operand, parse_axis(axis, operand.ndim)) for operand in (a, b))
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"vecdot: lengths {a.shape[-1]} and {b.shape[-1]} along the axis")
    shape = None  # of the result, where it is not matmul's
    if max(a.ndim, b.ndim) == MAX_NDIM:
        a, b, shape = _with_an_axis_less(a, b)
    row, column = reshape(a, (*a.shape[:-1], 1, a.shape[-1])), reshape(b, (*b.shape, 1))
    result = matmul(row, column, precision=precision)
    return call.deliver_array(reshape(result, result.shape[:-2] if shape is None else shape))


def _with_an_axis_less(a, b):
    """Return vecdot's operands with their first two axes as one, and the shape without their last.

    Products of as many dimensions as there can be need room for a row and a column.
    """
    shape = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    merged = (shape[0] * shape[1], *shape[2:])
    a, b = (reshape(broadcast_to(x, (*shape, x.shape[-1])), (*merged, x.shape[-1])) for x in (a, b))
    return a, b, shape


@short(short_products.tensordot)
def tensordot(x1, x2, /, axes=2, *, precision=None, out=None, device=None):
    """Return the sums of products over axes of x1 and as many of x2; their other axes stay.

    axes: a number n, for the last n of x1 and the first n of x2, or two sequences of axes.
    precision: see matmul. ValueError: not as many axes, or of different lengths. AxisError: no such
    axis. TypeError: axes is neither.

    >>> vg.tensordot(vg.ones((2, 3, 4)), vg.ones((3, 4, 5))).shape
    (2, 5)
    """
    call = _operands("tensordot", x1, x2, out, device)
    a, b = call.arrays
    summed_a, summed_b = _parse_tensordot_axes(axes, a.ndim, b.ndim)
    lengths = [a.shape[axis] for axis in summed_a]
    if lengths != [b.shape[axis] for axis in summed_b]:
        raise ValueError(f"tensordot: shapes {a.shape} and {b.shape} do not fit along {axes}")
    kept_a = [axis for axis in range(a.ndim) if axis not in summed_a]
    kept_b = [axis for axis in range(b.ndim) if axis not in summed_b]
    shape = [a.shape[axis] for axis in kept_a] + [b.shape[axis] for axis in kept_b]
    k = math.prod(lengths)
    rows = math.prod(a.shape[axis] for axis in kept_a)
    columns = math.prod(b.shape[axis] for axis in kept_b)
    left = reshape(permute_dims(a, (*kept_a, *summed_a)), (rows, k))
    right = reshape(permute_dims(b, (*summed_b, *kept_b)), (k, columns))
    return call.deliver_array(reshape(matmul(left, right, precision=precision), tuple(shape)))


def dot(x1, x2, /, out=None, *, precision=None, device=None):
    """Return sums of products over the last axis of x1 and the last but one (or only) of x2.

    Of two matrices it is their product; an operand without axes, or a Python scalar, multiplies.
    precision: see matmul. ValueError: shapes that do not fit.

    >>> vg.dot(vg.asarray([1, 2]), vg.asarray([3, 4])).item()
    11
    """
    if out is precision is device is None:
        result = product(x1, x2, True)
        if result is not None:
            return result
    if _ndim(x1) == 0 or _ndim(x2) == 0:
        return elementwise.multiply(x1, x2, out=out, device=device)
    if _ndim(x2) == 1 or _ndim(x1) == _ndim(x2) == 2:
        return matmul(x1, x2, precision=precision, out=out, device=device)
    return tensordot(x1, x2, axes=([-1], [-2]), precision=precision, out=out, device=device)


def inner(x1, x2, /, *, precision=None, out=None, device=None):
    """Return sums of products over the last axes of both; see dot.

    >>> vg.inner(vg.asarray([[1, 2], [3, 4]]), vg.asarray([1, 10])).tolist()
    [21, 43]
    """
    if out is precision is device is None:
        result = product(x1, x2, True)
        if result is not None:
            return result
    if _ndim(x1) == 0 or _ndim(x2) == 0:
        return elementwise.multiply(x1, x2, out=out, device=device)
    return tensordot(x1, x2, axes=([-1], [-1]), precision=precision, out=out, device=device)


@short(short_products.outer)
def outer(x1, x2, /, out=None, *, device=None):
    """Return the products of every element of x1, a row each, with every element of x2.

    >>> vg.outer(vg.asarray([1, 2]), vg.asarray([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    if type(x1) is type(x2) is Array and out is device is None and x1.backend is x2.backend:
        a, b = x1.shape, x2.shape
        if len(a) == len(b) == 1 and not active:
            return reshape(x1, (a[0], 1)) * x2
    call = _operands("outer", x1, x2, out, device)
    a, b = call.arrays
    return call.deliver_array(reshape(a, (a.size, 1)) * (b if b.ndim == 1 else ravel(b)))


def vdot(x1, x2, /, *, precision=None, device=None):
    """Return the sum of conj(x1) * x2 over all elements, in C order. precision: see matmul.

    ValueError: not as many elements.

    >>> vg.vdot(vg.asarray([[1, 2], [3, 4]]), vg.asarray([[1, 1], [10, 1]])).item()
    37
    """
    if precision is None and device is None:
        result = product(x1, x2, True)
        if result is not None:
            return result
    call = _operands("vdot", x1, x2, None, device)
    a, b = (ravel(x) for x in call.arrays)
    if a.size != b.size:
        raise ValueError(f"vdot: arrays of {a.size} and {b.size} elements")
    return call.give(vecdot(a, b, precision=precision))


def matvec(x1, x2, /, out=None, *, precision=None, device=None):
    """Return the products of matrices (..., m, n) and vectors (..., n), batches broadcast.

    precision: see matmul. ValueError: shapes that do not fit.

    >>> vg.matvec(vg.asarray([[1, 2], [3, 4]]), vg.asarray([[1, 0], [1, 1]])).tolist()
    [[1, 3], [3, 7]]
    """
    is_plain = out is precision is device is None and type(x1) is type(x2) is Array
    if is_plain and len(x2.shape) == 1 < len(x1.shape):
        result = product(x1, x2)
        if result is not None:
            return result
    call = _operands("matvec", x1, x2, out, device)
    a, b = call.arrays
    _check_matrix("matvec", a, b, a.shape[-1:])
    result = matmul(a, reshape(b, (*b.shape, 1)), precision=precision)
    return call.deliver_array(reshape(result, result.shape[:-1]))


def vecmat(x1, x2, /, out=None, *, precision=None, device=None):
    """Return the products conj(x1) @ x2 of vectors (..., n) and matrices (..., n, m).

    Batches are broadcast. precision: see matmul. ValueError: shapes that do not fit.

    >>> vg.vecmat(vg.asarray([1, 10]), vg.asarray([[1, 2], [3, 4]])).tolist()
    [31, 42]
    """
    is_plain = out is precision is device is None and type(x1) is type(x2) is Array
    if is_plain and len(x1.shape) == 1 < len(x2.shape):
        result = product(x1, x2)
        if result is not None:
            return result
    call = _operands("vecmat", x1, x2, out, device)
    a, b = call.arrays
    _check_matrix("vecmat", b, a, b.shape[-2:-1])
    if is_complex(a.dtype):
        a = unary(Operation.CONJ, a)
    result = matmul(reshape(a, (*a.shape[:-1], 1, a.shape[-1])), b, precision=precision)
    return call.deliver_array(reshape(result, (*result.shape[:-2], result.shape[-1])))


def _check_matrix(name, matrix, vector, length):
    if matrix.ndim < 2 or vector.ndim < 1 or vector.shape[-1:] != length:
        shapes = f"matrices {matrix.shape} and vectors {vector.shape}"
        raise ValueError(f"{name}: {shapes} do not fit")


@short(short_products.kron)
def kron(x1, x2, /, *, out=None, device=None):
    """Return blocks of x2, one for each element of x1 and multiplied by it, side by side.

    >>> vg.kron(vg.asarray([1, 10]), vg.asarray([1, 2])).tolist()
    [1, 2, 10, 20]
    """
    call = _operands("kron", x1, x2, out, device)
    a, b = call.arrays
    ndim = max(a.ndim, b.ndim)
    outside, inside = ((1,) * (ndim - x.ndim) + x.shape for x in (a, b))
    a = reshape(a, tuple(n for pair in zip(outside, (1,) * ndim, strict=True) for n in pair))
    b = reshape(b, tuple(n for pair in zip((1,) * ndim, inside, strict=True) for n in pair))
    shape = tuple(n * m for n, m in zip(outside, inside, strict=True))
    return call.deliver_array(reshape(a * b, shape))


@short(short_products.trace)
def trace(x, /, offset=0, axis1=0, axis2=1, dtype=None):
    """Return the sums of the diagonals of the matrices that two axes span; see diagonal and sum.

    >>> vg.trace(vg.asarray([[1, 2], [3, 4]])).item()
    5
    """
    array, give = as_array("trace", x)
    return give(total(diagonal(array, offset, axis1, axis2), axis=-1, dtype=dtype))


def _ndim(x):
    return 0 if is_scalar(x) else depth(x) if is_list(x) else getattr(x, "ndim", None)


def _operands(name, x1, x2, out, device):
    if is_scalar(x1) or is_scalar(x2):
        raise TypeError(f"{name} needs arrays; multiply by a scalar with *")
    return Operands(name, (x1, x2), out, device)


def _to_last(array, axis):
    others = [other for other in range(array.ndim) if other != axis]
    return permute_dims(array, (*others, axis))


def _parse_tensordot_axes(axes, ndim1, ndim2):
    """Return the axes that are summed over, of x1 and of x2, counted from 0."""
    if isinstance(axes, (tuple, list)):
        if len(axes) != 2:
            raise ValueError("tensordot: axes is a number, or two sequences of axes")
        first, second = parse_axes(axes[0], ndim1), parse_axes(axes[1], ndim2)
        if len(first) != len(second):
            raise ValueError(f"tensordot: {len(first)} axes against {len(second)}")
        return first, second
    count = parse_int(axes, "axes")
    if not 0 <= count <= min(ndim1, ndim2):
        raise ValueError(f"tensordot: {count} axes of {ndim1} and {ndim2}")
    return tuple(range(ndim1 - count, ndim1)), tuple(range(count))
