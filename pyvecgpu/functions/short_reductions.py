"""Short ways of reductions on the CPU device: what computes them, without the seam before it.

They are for short_calls.short: see short_numpy.py. float16 goes the long way.
"""

import numpy as np

from ..backends.cpu_ways import DEFAULT, REDUCED
from ..dtypes import get_default_dtype
from ..operations import OPERATIONS, codes
from .arguments import parse_axes


def of_axes(code):
    """Return the short way of a reduction over an axis, several or all."""
    compute, is_index = OPERATIONS[code].cpu, code in (codes.ARGMAX, codes.ARGMIN)
    code = int(code)

    def reduce(x, axis=None, keepdims=False):
        if type(x) is not np.ndarray or not x.size or type(keepdims) is not bool:
            return None
        dtype = REDUCED[code, x.dtype]
        if dtype is None or x.dtype.char == "e":
            return None
        if dtype is DEFAULT:
            dtype = get_default_dtype()
        if axis is not None:
            ndim = x.ndim
            if type(axis) is int and -ndim <= axis < ndim:
                axis = (axis % ndim,)
            elif is_index:
                return None
            else:
                axis = parse_axes(axis, ndim)
        result = compute(x, axis, keepdims)
        return result if result.dtype is dtype else result.astype(dtype)

    return reduce


sum, prod, mean = of_axes(codes.SUM), of_axes(codes.PROD), of_axes(codes.MEAN)
max, min = of_axes(codes.MAX), of_axes(codes.MIN)
argmax, argmin = of_axes(codes.ARGMAX), of_axes(codes.ARGMIN)
any, all = of_axes(codes.ANY), of_axes(codes.ALL)
