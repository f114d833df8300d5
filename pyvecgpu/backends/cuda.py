"""The "cuda" and "sim" devices: each method is one call of the C library, on handles.

Some are the C functions themselves; backends/__init__.py lists the methods and says what they
return.
"""

import contextlib
import functools
import math
import struct
import threading
from ctypes import Structure, Union, byref, c_double, c_int64, c_uint64

import numpy as np

from ..dtypes import CODES, DTYPES, host_dtype, supported
from ..native.abi import MAX_NDIM, Memory, ScalarKind, Status, Update, Windows
from ..native.library import raise_last_error
from ..operations import OPERATIONS
from .recording import Recording

_Description = c_int64 * (3 + 2 * MAX_NDIM)
_THREE = struct.Struct("3q").unpack_from
_LAYOUTS = [struct.Struct(f"{2 * n}q").unpack_from for n in range(MAX_NDIM + 1)]
_MemoryValues = c_int64 * Memory.MEMORY_COUNT
# C numbers: functions take bytes as a pointer (native/owners.py), and to pack them takes a third of
# the time that a ctypes array or byref(c_double(...)) does.
_int64s = [struct.Struct(f"{n}q").pack for n in range(MAX_NDIM + 1)]
_ints = [struct.Struct(f"{n}i").pack for n in range(MAX_NDIM + 1)]
_double, _complex = struct.Struct("d").pack, struct.Struct("2d").pack
_int64, _uint64, _uint8 = (struct.Struct(kind).pack for kind in "qQB")
_numbers = struct.Struct(f"{int(Update.UPDATE_COUNT)}d").pack
_windows = struct.Struct(f"{int(Windows.WINDOWS_COUNT)}q").pack
_BOOL, _INT, _UINT, _FLOAT, _COMPLEX = map(int, ScalarKind)


class _Value(Union):
    _fields_ = (("integer", c_int64), ("natural", c_uint64), ("real", c_double))


class _Number(Structure):
    """What pvg_item gives."""

    _anonymous_ = ("value",)
    _fields_ = (("kind", c_int64), ("value", _Value), ("imaginary", c_double))


def _axes_of(axes):
    """Return (count, C numbers) of axes."""
    return (-1, None) if axes is None else (len(axes), _ints[len(axes)](*axes))


def _order_of(strides):
    """Return the axes, outermost first, of an array in no C order; None: C order will do."""
    if len(strides) < 2 or list(strides) == sorted(strides, reverse=True) or min(strides) < 1:
        return None
    return sorted(range(len(strides)), key=strides.__getitem__, reverse=True)


@functools.cache
def _addresses(n):
    return struct.Struct(f"{n}P").pack


def _handles(arrays):
    """Return (count, C handles) of a list of arrays, which has to stay for the call."""
    n = len(arrays)
    return n, _addresses(n)(*[x.value or 0 for x in arrays])


class CudaBackend:
    """Operations on one device of a Library; `into` is the backend of calls with an `out`."""

    def __init__(self, device, library, functions=None):
        self.device = device
        self.on_card = True
        self.library = library
        self.functions = functions = functions or library.owning
        into = functions is library.into
        self.into = self if into else CudaBackend(device, library, library.into)
        self.unary = functions.pvg_unary
        self.binary = functions.pvg_binary
        self.where = functions.pvg_where
        self.within = functions.pvg_within
        self.triangle = functions.pvg_triangle
        self.scan = functions.pvg_scan
        self.nonzero = functions.pvg_nonzero
        self.cholesky = functions.pvg_cholesky
        self.solve = functions.pvg_solve
        self.inverse = functions.pvg_inverse
        self.determinant = functions.pvg_determinant
        self.sort = functions.pvg_sort
        self.argsort = functions.pvg_argsort
        self.searchsorted = functions.pvg_searchsorted
        self.bincount = functions.pvg_bincount
        self.matmul = functions.pvg_matmul
        self.dense = functions.pvg_dense
        self.softmax_backward = functions.pvg_softmax_backward
        self.normalize = functions.pvg_normalize
        self.cross_entropy = functions.pvg_cross_entropy
        self.cross_entropy_backward = functions.pvg_cross_entropy_backward
        self.activate = functions.pvg_activate
        self.activate_backward = functions.pvg_activate_backward
        self.pair_loss = functions.pvg_pair_loss
        self.pair_loss_backward = functions.pvg_pair_loss_backward
        self.contiguous = functions.pvg_contiguous
        self.part = functions.pvg_part
        self.diagonal = functions.pvg_diagonal
        self.dropout = functions.pvg_dropout
        self.pointer = functions.pvg_array_data
        self.version = functions.pvg_array_version
        self.counter = functions.pvg_counter
        self._thread = threading.local()  # its recording

    def short_of_memory(self, error):
        """Return a MemoryError of Python as it is: a device's own is made by `fail`."""
        return error

    def fail(self):
        """Raise the exception for this thread's last error."""
        raise_last_error(self.library)

    def plain(self, data):
        functions = self.functions
        contiguous = functions.pvg_array_is_contiguous(data)
        return contiguous == 1 and functions.pvg_array_is_readonly(data) == 0

    def check(self, status):
        """Raise the exception if a call returned a status other than 0."""
        if status:
            raise_last_error(self.library)

    # Arrays and host memory

    def empty(self, shape, dtype):
        n = len(shape)
        return self.functions.pvg_array_empty(
            self.device.index, CODES[dtype], n, _int64s[n](*shape)
        )

    def describe(self, data):
        info = _Description()
        if self.functions.pvg_array_describe(data, info):
            self.fail()
        dtype, _, n = _THREE(info)
        layout = _LAYOUTS[n](info, 24)
        return DTYPES[dtype], layout[:n], layout[n:]

    def from_host(self, source):
        data = self.empty(source.shape, supported(source.dtype))
        if data:
            self.copy_from_host(source, data)
        return data

    lend = from_host

    def copy_from_host(self, source, data):
        strides = None if source.flags.c_contiguous else _int64s[source.ndim](*source.strides)
        self.check(self.functions.pvg_copy_from_host(data, source.ctypes.data, strides))

    def to_host(self, data, into=None):
        dtype, shape, _ = self.describe(data)
        dtype = host_dtype(dtype)
        if into is not None and into.dtype == dtype and into.flags.writeable:
            result = into
        else:
            result = np.empty(shape, dtype)
        strides = None if result.flags.c_contiguous else _int64s[result.ndim](*result.strides)
        self.check(self.functions.pvg_copy_to_host(data, result.ctypes.data, strides))
        return result

    def download(self, data, dtype, shape, strides=None):
        """Return the values as a new ndarray, with its axes in the order of these strides."""
        order = _order_of(strides) if strides else None
        if order is None:
            result, strides = np.empty(shape, host_dtype(dtype)), None
        else:
            result = np.empty([shape[axis] for axis in order], host_dtype(dtype))
            result = result.transpose(sorted(order, key=order.__getitem__))
            strides = _int64s[len(shape)](*result.strides)
        address = result.__array_interface__["data"][0]  # .ctypes takes twice as long
        if self.functions.pvg_copy_to_host(data, address, strides):
            self.fail()
        return result

    def number(self, data):
        found = _Number()
        if self.functions.pvg_item(data, byref(found)):
            if self.library.pvg_last_status() == Status.ERROR_VALUE:
                return None
            self.fail()
        kind = found.kind
        if kind == _FLOAT:
            return found.real
        if kind == _INT:
            return found.integer
        if kind == _BOOL:
            return found.integer != 0
        return found.natural if kind == _UINT else complex(found.real, found.imaginary)

    @contextlib.contextmanager
    def own_stream(self):
        """Let the calling thread, which has chosen no stream, work on a new one."""
        functions, index = self.functions, self.device.index
        stream = functions.pvg_stream_create(index)
        if not stream:
            self.fail()
        try:
            self.check(functions.pvg_stream_set_current(stream, index))
            yield
        finally:
            functions.pvg_stream_set_current(None, index)

    def copy(self, data, destination):
        if self.functions.pvg_copy(data, destination):
            self.fail()

    def cast(self, a, dtype, out):
        return self.functions.pvg_cast(a, CODES[dtype], out)

    def fill(self, a, value):
        kind, number = self.as_scalar(a, value)
        if self.functions.pvg_fill(a, kind, number):
            self.fail()

    def random(self, a, distribution, key, stream, counter):
        if self.functions.pvg_random(a, distribution, key, stream, counter):
            self.fail()

    # Operations

    def scalar(self, code, a, value, side, out):
        compute, kind = self.functions.pvg_binary_scalar, type(value)
        if kind is float:
            return compute(code, a, _FLOAT, _double(value), side, out)
        if kind is bool:
            return compute(code, a, _BOOL, _uint8(value), side, out)
        if kind is int and not -(2**63) <= value < 2**63:
            value = self.narrowed(code, a, value)
        kind, number = self.as_scalar(a, value)
        return compute(code, a, kind, number, side, out)

    def narrowed(self, code, a, value):
        """Return what says beside an array the same as an integer beyond the range of int64 does.

        Floats are promoted to, divisions are done in float, and integers are compared with any
        integer: all of them lie on the same side of one that C cannot be given as of an infinity.
        OverflowError: the operation needs the value in an integer dtype that cannot hold it.
        """
        kind = self.describe(a)[0].kind
        if kind in "fc" or (kind == "u" and 0 <= value < 2**64):
            return value
        result = OPERATIONS[code].result
        if result == "float":
            return float(value)
        if result != "bool":
            raise OverflowError(f"{value} is out of bounds for the integers of the array")
        return math.inf if value > 0 else -math.inf

    def as_scalar(self, a, value):
        """Return (kind, C number) of a scalar beside the array `a`."""
        kind = type(value)
        if kind is int and -(2**63) <= value < 2**63:
            return _INT, _int64(value)
        if isinstance(value, float):
            return _FLOAT, _double(value)
        if isinstance(value, complex):
            return _COMPLEX, _complex(value.real, value.imag)
        if isinstance(value, bool):
            return _BOOL, _uint8(value)
        if -(2**63) <= value < 2**63:
            return _INT, _int64(value)
        if 0 <= value < 2**64:
            return _UINT, _uint64(value)
        dtype = self.describe(a)[0]
        if dtype.kind == "b":
            return _BOOL, _uint8(1)
        if dtype.kind not in "fc":
            raise OverflowError(f"{value} is out of bounds for {dtype}")
        return _FLOAT, _double(float(value))

    def reduce(self, code, a, axes, keepdims, out):
        reduce = self.functions.pvg_reduce
        if axes is None:
            return reduce(code, a, -1, None, keepdims, out)
        return reduce(code, a, len(axes), _ints[len(axes)](*axes), keepdims, out)

    def sequence(self, a, start, step, last):
        if isinstance(start, float):
            kind, start, step = _FLOAT, _double(start), _double(step)
        else:
            kind, start, step = _INT, _uint64(start % 2**64), _uint64(step % 2**64)
        last = None if last is None else _double(last)
        if self.functions.pvg_sequence(a, kind, start, step, last):
            self.fail()

    def eye(self, a, diagonal):
        if self.functions.pvg_eye(a, diagonal):
            self.fail()

    def clip(self, a, low, high, out):
        if isinstance(high if low is None else low, float):
            kind, number = _FLOAT, _double
        else:
            kind, number = _INT, _int64
        low = None if low is None else number(low)
        high = None if high is None else number(high)
        return self.functions.pvg_clip(a, kind, low, high, out)

    def isclose(self, a, b, rtol, atol, equal_nan):
        return self.functions.pvg_isclose(a, b, rtol, atol, equal_nan, None)

    def nan_to_num(self, a, nan, positive, negative, out):
        return self.functions.pvg_nan_to_num(a, nan, positive, negative, out)

    def softmax(self, code, a, axes, keepdims, out):
        count, places = _axes_of(axes)
        return self.functions.pvg_softmax(code, a, count, places, keepdims, out)

    def var(self, a, axes, ddof, root, keepdims, out):
        count, places = (-1, None) if axes is None else (len(axes), _ints[len(axes)](*axes))
        return self.functions.pvg_var(a, count, places, ddof, root, keepdims, out)

    def concat(self, parts, axis, stacked, dtype):
        n, handles = _handles(parts)
        code = -1 if dtype is None else CODES[dtype]
        return self.functions.pvg_concat(handles, n, axis, stacked, code)

    def gather(self, a, indices, axes, place, trusted):
        n = len(axes)
        return self.functions.pvg_gather(a, indices, n, _ints[n](*axes), place, trusted)

    def scatter(self, a, indices, axes, place, trusted, values):
        n = len(axes)
        self.check(
            self.functions.pvg_scatter(a, indices, n, _ints[n](*axes), place, trusted, values)
        )

    def accumulate(self, code, a, indices, axes, place, trusted, values):
        n = len(axes)
        call = self.functions.pvg_accumulate
        self.check(call(code, a, indices, n, _ints[n](*axes), place, trusted, values))

    def dense_backward(self, gradient, x, weight, preactivation, activation, precision, wanted):
        functions = self.functions
        make, results, places = functions.array, [], []
        for one in wanted:
            if one:
                result = make()
                results.append(result)
                places.append(byref(result))
            else:
                places.append(None)
        operands = (gradient, x, weight, preactivation, activation, precision)
        if functions.pvg_dense_backward(*operands, *places):
            self.fail()
        return results

    def optimize(self, algorithm, targets, parts, numbers, renewed):
        _, changed = _handles(targets)
        n, gradients = _handles(parts)
        call = self.functions.pvg_optimize
        if call(algorithm, changed, gradients, n, _numbers(*numbers), renewed):
            self.fail()

    def total_norm(self, parts, order):
        n, handles = _handles(parts)
        return self.functions.pvg_total_norm(handles, n, order)

    def clip_norm(self, targets, norm, most):
        n, handles = _handles(targets)
        self.check(self.functions.pvg_clip_norm(handles, n, norm, most))

    def normalize_backward(
        self, gradient, x, weight, statistics, axis, naxes, groups, centered, epsilon, wanted
    ):
        functions = self.functions
        results = [functions.array() for _ in range(3 if wanted else 1)]
        self.check(
            functions.pvg_normalize_backward(
                *(gradient, x, weight, statistics, axis, naxes, groups, centered, epsilon),
                *(map(byref, results) if wanted else (byref(results[0]), None, None)),
            )
        )
        return results

    def pool(self, code, a, places, windows, with_padding):
        return self.functions.pvg_pool(code, a, places, _windows(*windows), with_padding)

    def pool_backward(self, code, gradient, places, windows, with_padding, height, width):
        numbers = _windows(*windows)
        return self.functions.pvg_pool_backward(
            code, gradient, places, numbers, with_padding, height, width
        )

    def convolution(self, x, weight, windows, groups):
        return self.functions.pvg_convolution(x, weight, _windows(*windows), groups)

    def convolution_input(self, gradient, weight, windows, groups, height, width):
        return self.functions.pvg_convolution_input(
            gradient, weight, _windows(*windows), groups, height, width
        )

    def convolution_weight(self, gradient, x, windows, groups):
        return self.functions.pvg_convolution_weight(gradient, x, _windows(*windows), groups)

    def attention(self, query, keys, values, mask, scale, causal, logsum):
        return self.functions.pvg_attention(query, keys, values, mask, scale, causal, logsum)

    def attention_backward(
        self, gradient, query, keys, values, mask, output, logsum, scale, causal
    ):
        operands = (gradient, query, keys, values, mask, output, logsum)
        results = [self.functions.array() for _ in range(3)]
        places = map(byref, results)
        self.check(self.functions.pvg_attention_backward(*operands, scale, causal, *places))
        return results

    def recurrent(self, cell, inputs, weight, bias, hidden, state, backwards, keep):
        functions = self.functions
        results = [functions.array() for _ in range(3)]
        hiddens, states, gates = map(byref, results)
        operands = (cell, inputs, weight, bias, hidden, state, backwards)
        self.check(functions.pvg_recurrent(*operands, hiddens, states, gates if keep else None))
        return [x for x in results if x]

    def recurrent_backward(
        self, cell, gradient, dlast, dstate, weight, hiddens, states, gates, backwards
    ):
        functions = self.functions
        operands = (cell, gradient, dlast, dstate, weight, hiddens, states, gates, backwards)
        results = [functions.array() for _ in range(4)]
        self.check(functions.pvg_recurrent_backward(*operands, *map(byref, results)))
        return [x for x in results if x]

    # Views

    def slice(self, a, start, step, length):
        pack = _int64s[len(start)]
        return self.functions.pvg_slice(a, pack(*start), pack(*step), pack(*length))

    def permute(self, a, axes):
        return self.functions.pvg_permute(a, None if axes is None else _ints[len(axes)](*axes))

    def reshape(self, a, shape):
        return self.functions.pvg_reshape(a, len(shape), _int64s[len(shape)](*shape))

    def broadcast_to(self, a, shape):
        return self.functions.pvg_broadcast_to(a, len(shape), _int64s[len(shape)](*shape))

    # The device

    def attribute(self, code):
        value = c_int64()
        self.check(self.functions.pvg_device_attribute(self.device.index, code, byref(value)))
        return value.value

    def synchronize(self):
        self.check(self.functions.pvg_synchronize(self.device.index))

    def memory_info(self):
        values = _MemoryValues()
        self.check(self.functions.pvg_memory_info(self.device.index, values))
        return dict(enumerate(values))

    def set_memory_limit(self, limit):
        self.check(self.functions.pvg_set_memory_limit(self.device.index, limit))

    def empty_cache(self):
        self.check(self.functions.pvg_empty_cache(self.device.index))

    def launch_log(self):
        return self.functions.pvg_launch_log().decode()

    def recording(self):
        return getattr(self._thread, "recording", None)

    def record(self, work):
        """Record what work() does on the device instead of doing it; return a function to do it.

        The function may be called any number of times, each time at the price of one launch, and
        uses the arrays that work() used, with what is in them then; and numbers of the host that
        change from one launch to the next, see recording.py.
        """
        functions, index = self.functions, self.device.index
        before, outer = functions.pvg_stream_current(index), self.recording()
        recording = Recording(self)
        try:
            self.check(functions.pvg_graph_begin(index))
            self._thread.recording = recording
            work()
            graph = functions.pvg_graph_end(index)
        except BaseException:
            if functions.pvg_stream_current(index) != before:  # the recording's own, until it ends
                functions.pvg_graph_end(index)
            raise
        finally:
            recording.end()
            self._thread.recording = outer  # which refuses to have another one in it
        if not graph:
            self.fail()
        return functools.partial(recording.launch, functools.partial(self._launch, graph))

    def _launch(self, graph):
        self.check(self.functions.pvg_graph_launch(graph))
