"""The "cpu" device: NumPy, made to give what the C library gives.

What an operation computes stands in its row (operations.py); here is what all of them share: the
dtype they compute in, weak scalars, `out`, and the versions of memory. Casts and halves are in
cpu_casts.py. NumPy's warnings (division by zero, overflow) stay as they are and follow
numpy.errstate. backends/__init__.py lists the methods.
"""

import functools
import math
import os

import numpy as np

from ..dtypes import (
    get_default_dtype,
    host_dtype,
    inexact,
    is_integer,
    promote,
    promote_scalar,
    supported,
)
from ..errors import OutOfMemoryError
from ..native.abi import Memory
from ..operations import OPERATIONS, result_dtype
from . import (
    cpu_functions,
    cpu_indexing,
    cpu_making,
    cpu_random,
    cpu_sorting,
    cpu_statistics,
)
from .cpu_casts import CASTS, cast, computable, finished, floats, rounded, scalar, widened
from .cpu_networks import CpuNetworks
from .cpu_results import store, takes_halves, version_of, wrote
from .cpu_ways import BINARY, DEFAULT, REDUCED, SCALAR, UNARY, fits, holds


class CpuBackend(CpuNetworks):
    """Operations on NumPy arrays; raw data are ndarrays of the supported dtypes."""

    def __init__(self, device):
        self.device = device
        self.on_card = False
        self.into = self

    def short_of_memory(self, error):
        """Return NumPy's MemoryError as the same exception as a device's."""
        if isinstance(error, OutOfMemoryError):
            return error
        shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
        requested = None if shape is None else math.prod(shape) * dtype.itemsize
        message = f"out of memory on the CPU: {error}"
        return OutOfMemoryError(message, requested=requested, device="cpu")

    # Arrays

    def empty(self, shape, dtype):
        return np.empty(shape, host_dtype(dtype))

    def describe(self, data):
        itemsize = data.dtype.itemsize
        strides = tuple([stride // itemsize for stride in data.strides])
        return supported(data.dtype), data.shape, strides

    def from_host(self, source):
        if source.dtype.kind == "b":  # any byte other than 0 is true
            return np.asarray(np.not_equal(source.view(np.uint8), 0), order="C")
        return np.array(source, order="C")

    def lend(self, source):
        if source.dtype.kind == "b" and source.size and source.view(np.uint8).max() > 1:
            return np.not_equal(source.view(np.uint8), 0)
        return source

    def to_host(self, data, into=None):
        return data

    def copy_from_host(self, source, data):
        np.copyto(data, self.lend(source))
        wrote(data)

    def version(self, data):
        return version_of(data)

    def pointer(self, data):
        return data.__array_interface__["data"][0]

    def plain(self, data):
        return data.flags.c_contiguous and data.flags.writeable

    def recording(self):
        return None

    def copy(self, data, destination):
        if not destination.flags.writeable:  # before a cast that cannot be, as on a card
            raise ValueError("assignment destination is read-only")
        if np.may_share_memory(data, destination):
            data = data.copy()
        np.copyto(destination, cast(data, destination.dtype))
        wrote(destination)

    def cast(self, a, dtype, out):
        result = CASTS[a.dtype, dtype](a)
        if out is None:
            return result if result is not a else np.array(a, order="C")
        return store(result, out)

    def fill(self, a, value):
        if a.flags.writeable and holds(a.dtype, value):
            a.fill(value)
            wrote(a)
            return
        if isinstance(value, float) and is_integer(a.dtype):
            limits = np.iinfo(a.dtype)
            if not limits.min - 1 < value < limits.max + 1:  # NaN too
                raise OverflowError(f"{value} is out of bounds for {a.dtype}")
            value = int(value)
        np.copyto(a, scalar(value, a.dtype))
        wrote(a)

    def random(self, a, distribution, key, stream, counter):
        cpu_random.fill(a, distribution, key, stream, counter)
        wrote(a)

    def sequence(self, a, start, step, last):
        if isinstance(start, float):
            values = cpu_making.evenly(a.size, start, step, last)
        else:  # modulo 2**64, because neither int64 nor uint64 holds every start and step
            values = np.arange(a.size, dtype=np.uint64)
            values *= np.uint64(step % 2**64)
            values += np.uint64(start % 2**64)
            values = values.view(np.int64) if a.dtype.kind == "i" else values
        np.copyto(a, rounded(values, a.dtype), casting="unsafe")
        wrote(a)

    def eye(self, a, diagonal):
        np.copyto(a, np.eye(*a.shape[-2:], diagonal).astype(a.dtype))
        wrote(a)

    # Operations

    def unary(self, code, a, out):
        function, given = UNARY[code, a.dtype]
        if function is not None:
            if out is None:
                result = function(a)
                return result if type(result) is np.ndarray else np.asarray(result)
            if fits(out, given, a.shape):
                try:
                    function(a, out=out)
                    wrote(out)
                    return out
                except ValueError:  # it is read-only: store says so
                    pass
            return store(function(a), out)
        operation = OPERATIONS[code]
        dtype, (a,) = computable(a)
        if a.dtype.kind not in operation.domain:
            raise TypeError(f"{operation.name} does not take {dtype}")
        if operation.result == "float" and a.dtype.kind not in "fc":
            (a,) = floats(a)
        return store(finished(operation.cpu(a), dtype), out)

    def binary(self, code, a, b, out):
        function, given = BINARY[code, a.dtype, b.dtype]
        if function is not None:
            if out is None:
                result = function(a, b)
                return result if type(result) is np.ndarray else np.asarray(result)
            if fits(out, given, a.shape, b.shape):
                try:
                    function(a, b, out=out)
                    wrote(out)
                    return out
                except ValueError:  # it is read-only: store says so
                    pass
            return store(function(a, b), out)
        operation = OPERATIONS[code]
        dtype, (a, b) = computable(a, b)
        if dtype.kind not in operation.domain:
            raise TypeError(f"{operation.name} does not take two {dtype} arrays")
        if operation.result == "float" and not a.dtype.kind == b.dtype.kind == "f":
            a, b = floats(a, b)
        return store(finished(operation.cpu(a, b), dtype), out)

    def scalar(self, code, a, value, side, out):
        function, given, least, most = SCALAR[code, a.dtype, type(value)]
        if function is not None and least < value < most:
            left, right = (a, value) if side else (value, a)
            if out is None:
                result = function(left, right)
                return result if type(result) is np.ndarray else np.asarray(result)
            if fits(out, given, a.shape):
                try:
                    function(left, right, out=out)
                    wrote(out)
                    return out
                except ValueError:  # it is read-only: store says so
                    pass
            return store(function(left, right), out)
        operation = OPERATIONS[code]
        dtype = promote_scalar(a.dtype, value)
        dtype = inexact(dtype) if operation.result == "float" else dtype
        a = cast(a, dtype)
        if operation.result == "bool" and is_integer(dtype):  # NumPy compares with any integer
            left, right = (a, value) if side else (value, a)
            return store(operation.cpu(left, right), out)
        other = scalar(value, dtype)
        return self.binary(code, a, other, out) if side else self.binary(code, other, a, out)

    def where(self, condition, a, b, out):
        if condition.dtype.kind != "b":
            raise TypeError(f"where: the condition must be bool, not {condition.dtype}")
        if a.dtype is not b.dtype:
            dtype = promote(a.dtype, b.dtype)
            a, b = cast(a, dtype), cast(b, dtype)
        return store(np.where(condition, a, b), out)

    def triangle(self, a, upper, diagonal, out):
        return store((np.triu if upper else np.tril)(a, diagonal), out)

    def concat(self, parts, axis, stacked, dtype):
        if dtype is None:
            dtype = functools.reduce(promote, [part.dtype for part in parts])
        join = np.stack if stacked else np.concatenate
        return np.ascontiguousarray(join([cast(part, dtype) for part in parts], axis))

    def gather(self, a, indices, axes, place, trusted):
        return cpu_indexing.gather(a, indices, axes, place, trusted)

    def scatter(self, a, indices, axes, place, trusted, values):
        if not a.flags.writeable:
            raise ValueError("the array is read-only (a broadcast view)")
        cpu_indexing.scatter(a, indices, axes, place, trusted, values)
        wrote(a)

    def accumulate(self, code, a, indices, axes, place, trusted, values):
        if not a.flags.writeable:
            raise ValueError("the array is read-only (a broadcast view)")
        cpu_indexing.accumulate(OPERATIONS[code].name, a, indices, axes, place, trusted, values)
        wrote(a)

    def reduce(self, code, a, axes, keepdims, out):
        operation, dtype = OPERATIONS[code], a.dtype
        given = REDUCED[code, dtype]
        if given is DEFAULT:
            given = get_default_dtype()
        elif given is None:
            dtype = supported(dtype)
            if dtype.kind not in operation.domain:
                raise TypeError(f"{operation.name} does not take {dtype}")
            given = result_dtype(operation, dtype)
        if dtype.char == "E" or (dtype.char == "e" and not takes_halves(operation, a)):
            a = widened(a)
        result = operation.cpu(a, axes, keepdims)
        if type(result) is not np.ndarray:
            result = np.asarray(result)
        if result.dtype is not given:
            result = rounded(result, given) if given.char == "E" else result.astype(given)
        return result if out is None else store(result, out)

    def clip(self, a, low, high, out):
        if supported(a.dtype).kind not in "uif":
            raise TypeError(f"clip does not take {supported(a.dtype)}")
        result = widened(a)
        if low is not None:
            result = cpu_functions.maximum(result, widened(scalar(low, a.dtype)))
        if high is not None:
            result = cpu_functions.minimum(result, widened(scalar(high, a.dtype)))
        if result is a:
            return store(np.array(a), out)
        return store(_back(result, a.dtype), out)

    def within(self, x, a, b, out):
        if supported(x.dtype).kind not in "uif":
            raise TypeError(f"within does not take {supported(x.dtype)}")
        result = cpu_functions.maximum(widened(x), widened(a))
        result = cpu_functions.minimum(result, widened(b))
        return store(_back(result, x.dtype), out)

    def isclose(self, a, b, rtol, atol, equal_nan):
        dtype = promote(supported(a.dtype), supported(b.dtype))
        if any(supported(x.dtype).kind != "f" for x in (a, b)):
            raise TypeError(f"isclose does not take {dtype}")
        return cpu_functions.isclose(widened(a), widened(b), rtol, atol, equal_nan)

    def nan_to_num(self, a, nan, positive, negative, out):
        dtype = supported(a.dtype)
        if dtype.kind != "f":
            raise TypeError(f"nan_to_num does not take {dtype}")
        values = np.nan_to_num(widened(a), nan=nan, posinf=positive, neginf=negative)
        return store(rounded(np.asarray(values), a.dtype), out)

    def softmax(self, code, a, axes, keepdims, out):
        operation, dtype = OPERATIONS[code], supported(a.dtype)
        if dtype.kind not in operation.domain:
            raise TypeError(f"{operation.name} does not take {dtype}")
        dtype = inexact(dtype)
        function = getattr(cpu_functions, operation.name)
        return store(rounded(function(widened(cast(a, dtype)), axes, keepdims), dtype), out)

    def var(self, a, axes, ddof, root, keepdims, out):
        dtype = supported(a.dtype)
        if dtype.kind not in "buif":
            raise TypeError(f"var does not take {dtype}")
        result = cpu_functions.variance(cpu_statistics.wide(a), axes, ddof, keepdims)
        return store(rounded(np.sqrt(result) if root else result, inexact(dtype)), out)

    def scan(self, code, a, axis, initial, out):
        result = cpu_functions.scan(OPERATIONS[code], widened(a), axis, initial)
        if a.dtype.char == "e":
            return store(cpu_functions.as_half(result), out)
        return store(rounded(result, result_dtype(OPERATIONS[code], supported(a.dtype))), out)

    def nonzero(self, a):
        return np.stack(np.nonzero(widened(a))).astype(np.int64, copy=False)

    def cholesky(self, a, upper):
        return np.linalg.cholesky(a, upper=upper)

    def solve(self, a, b, kind):
        return np.linalg.solve((np.tril(a) if kind == 1 else np.triu(a)) if kind else a, b)

    def inverse(self, a):
        return np.linalg.inv(a)

    def determinant(self, a, kind):
        return np.asarray(np.linalg.slogdet(a)[kind - 1] if kind else np.linalg.det(a))

    def sort(self, a, axis, descending, out):
        return store(cpu_sorting.sort(a, axis, descending), out)

    def argsort(self, a, axis, descending):
        return cpu_sorting.argsort(a, axis, descending)

    def bincount(self, a, weights, length):
        return cpu_sorting.bincount(a, weights, length)

    def searchsorted(self, a, values, right):
        dtype = promote(a.dtype, values.dtype)
        return cpu_sorting.searchsorted(cast(a, dtype), cast(values, dtype), right)

    def matmul(self, a, b, precision, out):
        dtype, (a, b) = computable(a, b)
        return store(finished(np.matmul(a, b), dtype), out)

    # Views

    def slice(self, a, start, step, length):
        key = []
        for first, by, n in zip(start, step, length, strict=True):
            stop = first + by * n
            key.append(slice(first, stop if stop >= 0 else None, by))
        return a[(*key, ...)]  # "..." makes it an array even of no dimensions

    def permute(self, a, axes):
        return np.transpose(a, axes)

    def reshape(self, a, shape):
        return np.reshape(a, shape)

    def diagonal(self, a, offset, axis1, axis2):
        view = np.diagonal(a, offset, axis1, axis2)
        if a.flags.writeable:
            view.flags.writeable = True
        return view

    def part(self, a, imaginary):
        if a.dtype.kind != "c":
            raise TypeError(f"takes a complex dtype, not {a.dtype}")
        return a.imag if imaginary else a.real

    def broadcast_to(self, a, shape):
        return np.broadcast_to(a, shape)

    def contiguous(self, a):
        return np.asarray(a, order="C")

    # The device

    def synchronize(self):
        """Nothing to wait for."""

    def memory_info(self):
        page = os.sysconf("SC_PAGE_SIZE")
        return {
            Memory.MEMORY_FREE: os.sysconf("SC_AVPHYS_PAGES") * page,
            Memory.MEMORY_TOTAL: os.sysconf("SC_PHYS_PAGES") * page,
        }

    def set_memory_limit(self, limit):
        if limit:
            raise ValueError("the memory of the CPU device cannot be limited")

    def empty_cache(self):
        """Nothing is cached."""

    def counter(self, code):
        return 0

    def launch_log(self):
        return ""


def _back(result, dtype):
    """Return what was computed in a wider dtype in its own, in the order that it is in."""
    return rounded(result, dtype) if dtype.char == "E" else result.astype(dtype, copy=False)
