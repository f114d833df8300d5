"""Transforms on a GPU by cuFFT, which native/toolkit.py loads at the first use.

A transform along several axes is one along each: the axis is brought to the end, cut or filled with
zeros, and copied to memory without gaps, where cuFFT transforms all rows at once, on the thread's
current stream. Its plans are kept for the thread, a few of them.
"""

import collections
import ctypes
import math
import threading

import numpy as np

from ..dispatch import apply
from ..dtypes import uint8
from ..functions.complexes import conj
from ..functions.elementwise import multiply
from ..functions.indexing import set as assign
from ..functions.layout import astype, moveaxis
from ..functions.values import copied
from ..native import toolkit

# Of the arguments, see toolkit.KINDS.
SIGNATURES = {
    "cufftCreate": "p",
    "cufftDestroy": "i",
    "cufftSetAutoAllocation": "ii",
    "cufftSetStream": "ip",
    "cufftSetWorkArea": "ip",
    "cufftXtMakePlanMany": "iippllipllilpi",
    "cufftXtExec": "ippi",
}
TYPES = {"f": 0, "d": 1, "F": 4, "D": 5}  # CUDA_R_32F and so on
COMPLEX = {"f": "F", "d": "D", "F": "F", "D": "D"}
REAL = {"F": "f", "D": "d"}
FORWARD, BACKWARD = -1, 1  # CUFFT_FORWARD, CUFFT_INVERSE
KEPT = 16  # plans of a thread

_thread = threading.local()


class Cufft:
    """The transforms of one GPU."""

    def __init__(self, backend):
        self.backend = backend
        self.library = toolkit.load("cuFFT", SIGNATURES)

    def transform(self, name, x, lengths, axes, norm):
        """Return what NumPy's function of this name gives; lengths: of the transforms."""
        forward = name in ("fft", "fftn", "rfft", "rfftn", "hfft")
        order = list(zip(lengths, axes, strict=True))
        if name in ("rfft", "rfftn", "ihfft"):
            x = self.along(x, *order.pop(), to_complex=True)
        elif name not in ("irfft", "irfftn", "hfft"):
            x = astype(x, COMPLEX[x.dtype.char])
        last = order.pop() if name in ("irfft", "irfftn", "hfft") else None
        for length, axis in reversed(order) if last is None else order:
            x = self.along(x, length, axis, direction=FORWARD if forward else BACKWARD)
        if last is not None:
            x = astype(x, COMPLEX[x.dtype.char], copy=False)
            x = conj(x) if name == "hfft" else x
            x = self.along(x, *last, direction=BACKWARD, to_real=True)
        elif name == "ihfft":
            x = conj(x)
        scale = _scale(norm, forward, math.prod(lengths))
        return x if scale == 1 else multiply(x, scale)

    def along(self, x, length, axis, direction=FORWARD, to_complex=False, to_real=False):
        """Return one transform, undivided, of an axis cut or filled to the length."""
        half = length // 2 + 1
        rows = self.fitted(moveaxis(x, axis, -1), half if to_real else length)
        char = x.dtype.char
        given = char if to_complex else COMPLEX[char]
        if rows.dtype.char != given:
            rows = astype(rows, given)
        gives = COMPLEX[char] if to_complex else REAL[given] if to_real else given
        shape = (*rows.shape[:-1], half if to_complex else length)
        result = apply(self.backend, "empty", shape, np.dtype(gives))
        if result.size:
            batch = math.prod(shape[:-1])
            with toolkit.on_device(self.backend.device.index):
                self.execute(rows, result, length, batch, (given, gives), direction)
        return moveaxis(result, -1, axis)

    def fitted(self, x, length):
        """Return a new contiguous copy whose last axis is cut to a length, or filled with zeros."""
        present = x.shape[-1]
        if present >= length:
            return copied(x[..., :length])
        result = apply(self.backend, "empty", (*x.shape[:-1], length), x.dtype)
        apply(self.backend, "fill", result, 0)
        assign(result, (..., slice(0, present)), x)
        return result

    def execute(self, rows, result, length, batch, chars, direction):
        plan, size = self.plan(length, batch, chars)
        functions = self.backend.library
        stream = functions.pvg_stream_current(self.backend.device.index)
        self.library.call("cufftSetStream", plan, functions.pvg_stream_handle(stream))
        # Memory of the pool and not the plan's own: a plan may be used on several streams.
        work = apply(self.backend, "empty", (max(size, 1),), uint8)
        self.library.call("cufftSetWorkArea", plan, self.backend.pointer(work.raw))
        places = self.backend.pointer(rows.raw), self.backend.pointer(result.raw)
        self.library.call("cufftXtExec", plan, *places, direction)

    def plan(self, length, batch, chars):
        """Return (plan, bytes that it needs to work) of transforms of contiguous rows."""
        plans = _thread.__dict__.setdefault("plans", collections.OrderedDict())
        key = self.backend.device.index, length, batch, chars
        if key not in plans:
            if len(plans) == KEPT:
                self.backend.synchronize()  # the oldest may be at work
                self.library.call("cufftDestroy", plans.popitem(last=False)[1][0])
            plans[key] = self.made(length, batch, chars)
        plans.move_to_end(key)
        return plans[key]

    def made(self, length, batch, chars):
        plan, size = ctypes.c_int(), ctypes.c_size_t()
        given, gives = (TYPES[char] for char in chars)
        rows = [length // 2 + 1 if REAL.get(char) in chars else length for char in chars]
        self.library.call("cufftCreate", ctypes.byref(plan))
        self.library.call("cufftSetAutoAllocation", plan, 0)
        n = ctypes.byref(ctypes.c_longlong(length))
        self.library.call(
            "cufftXtMakePlanMany", plan, 1, n, None, 1, rows[0], given, None, 1, rows[1], gives,
            batch, ctypes.byref(size), TYPES[COMPLEX[chars[0]]],
        )  # fmt: skip
        return plan.value, size.value


def _scale(norm, forward, n):
    if norm == "ortho":
        return n**-0.5
    return 1.0 / n if forward == (norm == "forward") else 1.0
