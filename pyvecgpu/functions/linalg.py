"""Products of matrices."""

from .arguments import Operands, are_operands, is_scalar


def matmul(x1, x2, /, *, out=None, device=None):
    """Return the matrix product as numpy.matmul: (..., m, k) @ (..., k, n), batches broadcast.

    1-D operands are a row and a column. Of bools it is the or of ands; integers wrap.
    ValueError: shapes that do not fit, 0-d operands. TypeError: a Python scalar.
    """
    if is_scalar(x1) or is_scalar(x2):
        raise TypeError("matmul needs arrays; multiply by a scalar with *")
    call = Operands("matmul", (x1, x2), out, device)
    a, b = call.arrays
    return call.deliver(call.backend.matmul(a.data, b.data, call.raw_out))


def operator(left, right, out):
    """Return left @ right; NotImplemented if an operand is of a foreign type."""
    if not are_operands(left, right):
        return NotImplemented
    return matmul(left, right, out=out)
