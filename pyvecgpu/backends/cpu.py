"""The "cpu" device: NumPy, made to give what the C library gives.

What an operation computes stands in its row (operations.py); here is what all of them share: the
dtype they compute in, weak scalars, `out`, and the versions of memory. Casts and halves are in
cpu_casts.py. NumPy's warnings (division by zero, overflow) stay as they are and follow
numpy.errstate. backends/__init__.py lists the methods.
"""

import functools
import itertools
import math
import os
import weakref

import numpy as np

from ..dtypes import (
    float32,
    get_default_dtype,
    host_dtype,
    inexact,
    is_bfloat16,
    is_float,
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
    cpu_layers,
    cpu_making,
    cpu_optimizing,
    cpu_random,
    cpu_rows,
    cpu_sequences,
    cpu_sorting,
    cpu_statistics,
    cpu_windows,
)
from .cpu_casts import cast, computable, finished, floats, rounded, scalar, widened
from .cpu_ways import BINARY, DEFAULT, REDUCED, SCALAR, UNARY, fits, holds

FEW_HALVES = 2000  # elements of float16 that are compared sooner than they are cast to float32


class CpuBackend:
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
        result = cast(a, dtype)
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
        dtype = promote(a.dtype, b.dtype)
        return store(np.where(condition, cast(a, dtype), cast(b, dtype)), out)

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
        return store(np.array(a) if result is a else rounded(result, a.dtype), out)

    def within(self, x, a, b, out):
        if supported(x.dtype).kind not in "uif":
            raise TypeError(f"within does not take {supported(x.dtype)}")
        result = cpu_functions.maximum(widened(x), widened(a))
        result = cpu_functions.minimum(result, widened(b))
        return store(rounded(result, x.dtype), out)

    def isclose(self, a, b, rtol, atol, equal_nan):
        dtype = promote(supported(a.dtype), supported(b.dtype))
        if any(supported(x.dtype).kind != "f" for x in (a, b)):
            raise TypeError(f"isclose does not take {dtype}")
        a, b = widened(a), widened(b)
        with np.errstate(invalid="ignore", over="ignore"):
            real = np.result_type(a, b).type
            size = np.abs(b)
            result = np.abs(a - b) <= size * real(rtol) + real(atol)
        result &= size < np.inf
        result |= a == b
        if equal_nan:
            result |= (a != a) & (b != b)
        return np.asarray(result)

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

    def dense(self, x, weight, bias, activation, precision, preactivation, out):
        operands = [operand for operand in (x, weight, bias) if operand is not None]
        check_floats("dense", operands)
        dtype, operands = computable(*operands)
        z = cpu_layers.preactivation(*operands)
        if preactivation is not None:
            store(finished(z, dtype), preactivation)
        y = OPERATIONS[activation].cpu(z) if activation else z
        return store(finished(y, dtype), out)

    def dense_backward(self, gradient, x, weight, preactivation, activation, precision, wanted):
        operands = [a for a in (gradient, x, weight, preactivation) if a is not None]
        check_floats("dense_backward", operands)
        dtype, _ = computable(gradient, x, weight)
        operands = [widened(cast(operand, dtype)) for operand in operands]
        before = operands[3] if preactivation is not None else None
        slope = OPERATIONS[activation].slope if activation else None
        found = cpu_layers.backward(*operands[:3], before, slope, wanted)
        finish = (finished, finished, rounded)
        return [end(x, dtype) for end, x in zip(finish, found, strict=True) if x is not None]

    def optimize(self, algorithm, targets, parts, numbers, renewed):
        cpu_optimizing.optimize(algorithm, targets, parts, numbers, renewed)
        for target in targets:
            wrote(target)

    def total_norm(self, parts, order):
        return cpu_optimizing.total_norm(parts, order)

    def clip_norm(self, targets, norm, most):
        cpu_optimizing.clip_norm(targets, norm, most)
        for target in targets:
            wrote(target)

    def dropout(self, a, p, key, stream, counter, renewed):
        check_floats("dropout", [a])
        place = cpu_random.moved((key, stream, counter), renewed)
        return rounded(cpu_random.dropout(widened(a), p, *place), a.dtype)

    def softmax_backward(self, code, gradient, a, naxes):
        check_floats("softmax_backward", [gradient, a])
        dtype, axes = a.dtype, tuple(range(a.ndim - naxes, a.ndim))
        operands = [widened(cast(operand, dtype)) for operand in (gradient, a)]
        logarithm = OPERATIONS[code].name == "log_softmax"
        return rounded(cpu_rows.softmax_backward(*operands, axes, logarithm), dtype)

    def normalize(self, x, weight, bias, axis, naxes, groups, centered, epsilon, statistics):
        check_floats("normalize", [a for a in (x, weight, bias) if a is not None])
        picture = cpu_rows.Picture(x.shape, axis, naxes, groups)
        wide = widened(x)
        numbers = [a if a is None else cast(widened(a), wide.dtype) for a in (weight, bias)]
        given = statistics if groups == -1 else None
        result, found = cpu_rows.normalize(wide, *numbers, picture, centered, epsilon, given)
        if statistics is not None and given is None:
            store(found.reshape(statistics.shape), statistics)
        return rounded(result, x.dtype)

    def normalize_backward(
        self, gradient, x, weight, statistics, axis, naxes, groups, centered, epsilon, wanted
    ):
        check_floats("normalize_backward", [gradient, x])
        picture = cpu_rows.Picture(x.shape, axis, naxes, groups)
        wide = widened(x)
        operands = [cast(widened(gradient), wide.dtype), wide]
        operands.append(weight if weight is None else cast(widened(weight), wide.dtype))
        operands += [statistics, picture, centered, epsilon, groups == -1]
        dx, *rest = cpu_rows.normalize_backward(*operands)
        dtype = statistics.dtype if weight is None else weight.dtype
        return [rounded(dx, x.dtype), *([rounded(one, dtype) for one in rest] if wanted else ())]

    def cross_entropy(self, x, labels, weights, ignored, smoothing, statistics):
        check_floats("cross_entropy", [x])
        wide = widened(x)
        weights = weights if weights is None else cast(widened(weights), wide.dtype)
        losses, found = cpu_rows.cross_entropy(wide, labels, weights, ignored, smoothing)
        store(found.reshape(3, *statistics.shape[1:]), statistics[:3])
        if statistics.shape[0] == 3:
            return store(losses, None)
        mean, total = cpu_rows.mean_of_losses(losses, found[1])
        statistics.reshape(4, -1)[3, :1] = total
        return mean

    def cross_entropy_backward(self, dloss, x, labels, weights, statistics, ignored, smoothing):
        check_floats("cross_entropy_backward", [x] if dloss is None else [dloss, x])
        wide = widened(x)
        weights = weights if weights is None else cast(widened(weights), wide.dtype)
        of_mean = statistics.shape[0] == 4
        if dloss is None:
            dloss = np.ones(() if of_mean else labels.shape, wide.dtype)
        gradient = cast(widened(dloss), wide.dtype)
        if of_mean and labels.size:
            gradient = np.broadcast_to(gradient / statistics.reshape(4, -1)[3, 0], labels.shape)
        operands = (gradient, wide, labels, weights, statistics[:3])
        result = cpu_rows.cross_entropy_backward(*operands, ignored, smoothing)
        return rounded(result, x.dtype)

    def pool(self, code, a, places, windows, with_padding):
        check_floats("pool", [a])
        x = widened(a)
        if OPERATIONS[code].name == "mean":
            return finished(cpu_windows.means(x, windows, with_padding), a.dtype)
        result = cpu_windows.largest(x, windows, places)
        if places is not None:
            wrote(places)
        return finished(result, a.dtype)

    def pool_backward(self, code, gradient, places, windows, with_padding, height, width):
        check_floats("pool_backward", [gradient])
        shape = (*gradient.shape[:-2], height, width)
        g = widened(gradient)
        result = cpu_windows.pool_backward(g, places, windows, with_padding, shape)
        return finished(result, gradient.dtype)

    def convolution(self, x, weight, windows, groups):
        check_floats("convolution", [x, weight])
        dtype, operands = alike(x, weight)
        return finished(cpu_windows.convolution(*operands, windows, groups), dtype)

    def convolution_input(self, gradient, weight, windows, groups, height, width):
        check_floats("convolution_input", [gradient, weight])
        dtype, operands = alike(gradient, weight)
        return finished(
            cpu_windows.convolution_input(*operands, windows, groups, height, width), dtype
        )

    def convolution_weight(self, gradient, x, windows, groups):
        check_floats("convolution_weight", [gradient, x])
        dtype, operands = alike(gradient, x)
        return finished(cpu_windows.convolution_weight(*operands, windows, groups), dtype)

    def attention(self, query, keys, values, mask, scale, causal, logsum):
        operands = cpu_sequences.operands_of("attention", query, keys, values)
        result, sums = cpu_sequences.attention(*operands, mask, scale, causal)
        if logsum is not None:
            store(sums, logsum)
        return rounded(result, query.dtype)

    def attention_backward(
        self, gradient, query, keys, values, mask, output, logsum, scale, causal
    ):
        operands = cpu_sequences.operands_of(
            "attention_backward", query, keys, values, gradient, output
        )
        results = cpu_sequences.attention_backward(*operands, logsum, mask, scale, causal)
        return [rounded(x, query.dtype) for x in results]

    def recurrent(self, cell, inputs, weight, bias, hidden, state, backwards, keep):
        operands = (inputs, weight, bias, hidden, state)
        return cpu_sequences.recurrent(cell, *operands, bool(backwards), keep)

    def recurrent_backward(
        self, cell, gradient, dlast, dstate, weight, hiddens, states, gates, backwards
    ):
        operands = (gradient, dlast, dstate, weight, hiddens, states, gates)
        return cpu_sequences.recurrent_backward(cell, *operands, bool(backwards))

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


# Versions -----------------------------------------------------------------------------------------

_versions = {}  # id of an ndarray that owns memory: [weak reference to it, version]
_clock = itertools.count(1)  # no two writes of the process have the same version


def owner_of(data):
    """Return the ndarray at the bottom of a view, or the array itself."""
    while isinstance(data.base, np.ndarray):
        data = data.base
    return data


def version_of(data):
    """Return the number of the last write to the memory, through whichever view; 0: no write."""
    entry = _versions.get(id(owner_of(data)))
    return entry[1] if entry else 0


def wrote(data):
    """Give the memory of an ndarray, and with it all views of it, a new version."""
    owner = data if data.base is None else owner_of(data)
    key = id(owner)
    entry = _versions.get(key)
    if entry is None:
        # The callback is no Python code, in which a signal handler's exception would be lost.
        reference = weakref.ref(owner, functools.partial(_versions.pop, key))
        _versions[key] = [reference, next(_clock)]
    else:
        entry[1] = next(_clock)


# What the methods are made of ---------------------------------------------------------------------


def store(result, out):
    """Return the result as an ndarray, written to `out` if there is one.

    ValueError: out has another shape or is read-only. TypeError: its dtype is of a lower kind.
    """
    if type(result) is not np.ndarray:
        result = np.asarray(result)
    if out is None:
        return result
    if not out.flags.writeable:
        raise ValueError("out is read-only (a broadcast view)")
    if out.shape != result.shape:
        raise ValueError(f"out has shape {out.shape}, the result has {result.shape}")
    kinds = [float32 if is_bfloat16(x.dtype) else x.dtype for x in (result, out)]
    if not np.can_cast(*kinds, "same_kind"):
        raise TypeError(
            f"cannot cast the result from {result.dtype} to out's {out.dtype} "
            'with casting rule "same_kind"'
        )
    if is_bfloat16(out.dtype):
        result = rounded(result, out.dtype)
    elif is_bfloat16(result.dtype):
        result = widened(result)  # ml_dtypes knows no cast to float16
    np.copyto(out, result, casting="same_kind")
    wrote(out)
    return out


def alike(*operands):
    """Return the dtype of a result, and the operands in it, halves as float32."""
    dtype, operands = computable(*operands)
    return dtype, [widened(cast(operand, dtype)) for operand in operands]


def takes_halves(operation, a):
    """Whether a reduction of float16 as it is is exact and, of few elements, sooner there."""
    if operation.result == "bool":
        return True
    return operation.order is not None and a.size <= FEW_HALVES


def check_floats(name, operands):
    for operand in operands:
        if not is_float(operand.dtype):
            raise TypeError(f"{name} takes float arrays, not {operand.dtype}")
