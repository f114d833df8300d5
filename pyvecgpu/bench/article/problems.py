"""The two problems of the article: their sizes, their data, and how a result is checked.

Operands are normal random numbers, a long sequence of them repeated as often as it takes. Their
results are compared with float64: additions element by element, in long vectors in pieces spread
over all of them; products C = A B by (C x) against A (B x) for a random vector x, which sees every
element of C and needs no other product.
"""

import time

import numpy as np

from .. import matmul
from ..timing import relative_error

BLOCK = 4_194_301  # random numbers; a prime, so that no two tiles of a matrix are alike
WHOLE = 2**24  # elements up to which all are compared; beyond that
PIECES, PIECE = 64, 2**16  # in pieces
ELEMENTS = 2**22  # converted to float64 at a time
MANY = 1000  # sums, which err as is to be expected; of fewer each may err by half a unit


class Case:
    """A problem in one size; its operands are made when they are asked for, and kept.

    made: bytes of data made so far, and the seconds that took.
    """

    def __init__(self, problem, n, block):
        self.problem, self.n, self.block = problem, n, block
        self.shape = problem.shape(n)
        self.operations = problem.operations(n)
        self.sets = {}
        self.made = 0, 0.0

    def nbytes(self, dtype):
        """Return the bytes of one array."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(dtype).itemsize

    def has(self, dtype):
        return dtype in self.sets

    def arrays(self, dtype):
        """Return (a, b, out) on the host; the values of `out` are undefined."""
        if dtype not in self.sets:
            began = time.perf_counter()
            a, b, out = (np.empty(self.shape, dtype) for _ in range(3))
            repeat_into(a, self.block)
            repeat_into(b, self.block[::-1])
            out.fill(0)  # memory that was never written is not there yet
            self.sets[dtype] = a, b, out
            made, seconds = self.made
            seconds += time.perf_counter() - began
            self.made = made + a.nbytes + b.nbytes + out.nbytes, seconds
        return self.sets[dtype]


def random_block():
    """Return the random numbers that all operands are made of."""
    return np.random.default_rng(0).standard_normal(BLOCK, np.float32)


def repeat_into(array, values):
    """Fill an array with the values, over and over."""
    flat = array.reshape(-1)
    for start in range(0, len(flat), len(values)):
        part = flat[start : start + len(values)]
        part[:] = values[: len(part)]


class Addition:
    """c = a + b on vectors of N elements."""

    name = "vector addition"
    function = "add"  # the name in NumPy and in pyvecgpu, and of the loop in C:
    loop = "add"

    @staticmethod
    def error_allowed(precision, n):
        """Return from which error on a result is wrong. Each sum is rounded to the nearest."""
        bits = np.finfo(precision).nmant + 1
        return 2.0**-bits if n < MANY else matmul.rounding_allowed(bits, 1)

    @staticmethod
    def shape(n):
        return (n,)

    @staticmethod
    def operations(n):
        return n

    @staticmethod
    def pieces(n):
        """Return the slices of a vector that are checked."""
        if n <= WHOLE:
            return [slice(0, n)]
        starts = np.linspace(0, n - PIECE, PIECES).astype(np.int64).tolist()
        return [slice(start, start + PIECE) for start in starts]

    def poison(self, out):
        """Overwrite what will be checked, so that what is not written is seen."""
        for piece in self.pieces(len(out)):
            out[piece] = np.nan

    def error(self, a, b, get):
        """Return the error of a result of which get(slice) gives the values."""
        pieces = self.pieces(len(a))
        expected = [np.add(a[piece], b[piece], dtype=np.float64) for piece in pieces]
        got = [get(piece) for piece in pieces]
        return relative_error(np.concatenate(got), np.concatenate(expected))


class Product:
    """C = A B on N x N matrices."""

    name = "matrix product"
    function = "matmul"
    loop = "multiply"

    @staticmethod
    def error_allowed(precision, n):
        """Return from which error on a result is wrong.

        For float64 twice that of a product alone: each of the check's own three, which add as many
        terms, may err as much, and independent errors add up like the root of four.
        """
        allowed = matmul.error_allowed(precision, n)
        return 2 * allowed if precision == "float64" else allowed

    @staticmethod
    def shape(n):
        return (n, n)

    @staticmethod
    def operations(n):
        return 2 * n**3

    @staticmethod
    def poison(out):
        out.fill(np.nan)

    @staticmethod
    def error(a, b, get):
        """Return the error of a result of which get(slice of rows) gives the values."""
        x = np.random.default_rng(1).standard_normal(len(a))
        return relative_error(times(get(slice(None)), x), times(a, times(b, x)))


def times(matrix, x):
    """Return matrix @ x in float64, a few rows at a time."""
    step = max(1, ELEMENTS // len(x))
    parts = range(0, len(matrix), step)
    return np.concatenate([matrix[i : i + step].astype(np.float64) @ x for i in parts])
