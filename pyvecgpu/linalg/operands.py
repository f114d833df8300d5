"""What the functions of linalg share: operands that are matrices, their dtype, ways to compute.

float32, float64 and complex numbers are computed in as they are, float16 and bfloat16 in float32,
integers and bools in float64; a result is rounded once to the dtype that a float function gives of
the operands. On the CPU NumPy computes. On a card kernels do, for matrices of up to 64 x 64 where
there are some; cuSOLVER on a GPU, see cusolver.py; and else NumPy on the host, after a copy there
that the counters of transfers show, as they do the one back.
"""

import numpy as np

from ..dispatch import apply
from ..dtypes import float32, float64, inexact, promote, real_dtype
from ..functions.arguments import Operands, is_scalar
from ..functions.layout import astype, broadcast_to
from ..functions.values import to_host
from ..functions.working import work_dtype

LARGEST_OF_KERNELS = 64  # rows of a matrix, as cuda/kernels/factor_kernels.cuh has it


class Matrices:
    """The operands of a call, each in the dtype to compute in; `give` makes what the caller gets.

    exact: integers are computed with as they are. TypeError: a scalar. LinAlgError: the first
    operand has less than `least` dimensions; with `square`, its matrices are not.
    """

    __slots__ = ("_call", "arrays", "backend", "dtype")

    def __init__(self, name, *values, least=2, square=False, exact=False):
        if any(is_scalar(value) for value in values):
            raise TypeError(f"{name} takes arrays, not a scalar")
        self._call = Operands(name, values)
        self.backend = self._call.backend
        dtype = self._call.arrays[0].dtype
        for array in self._call.arrays[1:]:
            dtype = promote(dtype, array.dtype)
        exact = exact and dtype.kind in "iu"
        self.dtype = dtype if exact else inexact(dtype)
        computed = dtype if exact else work_dtype(dtype)
        self.arrays = [astype(array, computed, copy=False) for array in self._call.arrays]
        check_matrices(name, self.arrays[0], least, square)

    def give(self, array, dtype=None):
        """Return an Array, rounded to the dtype of results or to another one, to the caller."""
        return self._call.give(astype(array, dtype or self.dtype, copy=False))

    def give_real(self, array):
        """The same of what is real for complex operands too."""
        return self.give(array, real_dtype(self.dtype))

    def has_kernel(self):
        """Whether the backend's own methods take these matrices."""
        first = self.arrays[0]
        if not self.backend.on_card:
            return True
        return first.shape[-1] <= LARGEST_OF_KERNELS and first.dtype in (float32, float64)


def check_matrices(name, array, least=2, square=False):
    """LinAlgError: fewer dimensions than `least`; with `square`, matrices that are not."""
    if array.ndim < least:
        raise np.linalg.LinAlgError(
            f"{name} takes arrays of {least} or more dimensions, not {array.ndim}"
        )
    if square and array.shape[-1] != array.shape[-2]:
        raise np.linalg.LinAlgError(f"{name} takes square matrices, not of shape {array.shape}")


def on_host(backend, function, *arrays):
    """Return what NumPy's function gives of Arrays, as Arrays: one, or a tuple if it gives one."""
    results = function(*[to_host(array) for array in arrays])
    if isinstance(results, tuple):
        return tuple(apply(backend, "lend", np.asarray(one)) for one in results)
    return apply(backend, "lend", np.asarray(results))


def broadcast_batches(*arrays):
    """Return Arrays whose axes before the last two are the same. ValueError: they do not fit."""
    shape = np.broadcast_shapes(*[array.shape[:-2] for array in arrays])
    return [
        array if array.shape[:-2] == shape else broadcast_to(array, shape + array.shape[-2:])
        for array in arrays
    ]
