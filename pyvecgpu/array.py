"""vg.Array: values on a device, with NumPy's operators and methods.

One class for all devices: `backend` computes (backends/__init__.py), `data` is what it computes on.
Operators between two Arrays of one device call the backend at once; everything else (scalars, NumPy
arrays, errors) takes the way through `functions`.
"""

import threading

import numpy as np

from .dtypes import bfloat16, float32
from .errors import DeviceUnavailableError, ImplicitTransferError
from .native.abi import Operation

_new = object.__new__


class _Refusals(threading.local):
    """How often NumPy was refused the values of a card's array, in each thread."""

    count = 0


_refusals = _Refusals()


def wrap(backend, data):
    """Return a new Array that owns the raw data; the backend's exception if it is None."""
    if data is None:
        backend.fail()
    array = _new(Array)
    array.backend = backend
    array.data = data
    return array


def _operator(name, code):
    """Return the method of a binary operator, for an operation of pvg_binary.

    This is the path that decides what a small operation costs: no call but the backend's own.
    """

    def method(self, other):
        backend = self.backend
        kind = type(other)
        if kind is Array and other.backend is backend:
            data = backend.binary(code, self.data, other.data, None)
        elif kind is float:
            data = backend.scalar(code, self.data, other, 1, None)
        else:
            return functions.elementwise.operator(code, self, other, None)
        if data is None:
            backend.fail()
        array = _new(Array)
        array.backend = backend
        array.data = data
        return array

    return _named(method, name)


def _reflected(name, code):
    """Return the method for `other + array`, where `other` is no Array."""
    return _named(lambda self, other: functions.elementwise.operator(code, other, self, None), name)


def _in_place(name, code):
    """Return the method for `array += other`."""
    return _named(lambda self, other: functions.elementwise.operator(code, self, other, self), name)


def _named(method, name):
    method.__name__, method.__qualname__ = name, f"Array.{name}"
    return method


class Array:
    """Values of one dtype in a rectangular shape on one device.

    Make one with vg.asarray, vg.zeros, vg.ones, vg.full, vg.empty or vg.arange. Slices, reshapes
    and transposes are views of the same memory. An operation of a device returns before it is done;
    reading values (numpy, item, tolist, print) waits for it.
    """

    __slots__ = ("__weakref__", "_description", "backend", "data")
    __hash__ = None  # == is elementwise

    def __new__(cls, *args, **kwargs):
        raise TypeError("make an Array with vg.asarray(values) or vg.zeros(shape)")

    def __del__(self):
        self.backend.release(self.data)

    # What it is -----------------------------------------------------------------------------------

    @property
    def _layout(self):
        """(dtype, shape, strides in elements), asked for once."""
        try:
            return self._description
        except AttributeError:
            self._description = self.backend.describe(self.data)
            return self._description

    @property
    def shape(self):
        """Lengths of the axes, a tuple."""
        return self._layout[1]

    @property
    def dtype(self):
        """The dtype of the elements: NumPy's, or pyvecgpu.bfloat16."""
        return self._layout[0]

    @property
    def strides(self):
        """Bytes from one element to the next along each axis, a tuple, as in NumPy."""
        dtype, _, strides = self._layout
        return tuple([stride * dtype.itemsize for stride in strides])

    @property
    def device(self):
        """The Device that holds the values."""
        return self.backend.device

    @property
    def ndim(self):
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self):
        """Number of elements."""
        size = 1
        for length in self.shape:
            size *= length
        return size

    @property
    def itemsize(self):
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self):
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def T(self):  # noqa: N802
        """A view with the axes in reverse order."""
        return functions.transpose(self)

    @property
    def mT(self):  # noqa: N802
        """A view with the last two axes exchanged. ValueError: fewer than two axes."""
        return functions.matrix_transpose(self)

    # Values on the host ---------------------------------------------------------------------------

    def numpy(self):
        """Return the values as a new NumPy array. ImportError: bfloat16 without ml_dtypes."""
        values = self.backend.to_host(self.data)
        return values.copy() if values is self.data else values

    def item(self):
        """Return the one element as a bool, int or float. ValueError: not exactly one element."""
        if self.size != 1:
            raise ValueError(f"only an array of size 1 has an item(), not one of {self.shape}")
        return self._host_values().item()

    def tolist(self):
        """Return the values as nested lists of Python scalars; a scalar for 0-d."""
        return self._host_values().tolist()

    def _host_values(self):
        """Return the values as a NumPy array to be read; bfloat16 as float32, which NumPy has."""
        array = functions.astype(self, float32) if self.dtype is bfloat16 else self
        return array.backend.to_host(array.data)

    def __bool__(self):
        if self.size != 1:
            raise ValueError(f"the truth value of an array of shape {self.shape} is ambiguous")
        return bool(self.item())

    def _number(self, kind):
        if self.size != 1:
            raise TypeError(f"only an array of size 1 can become {kind}, not one of {self.shape}")
        return self.item()

    def __int__(self):
        return int(self._number("an int"))

    def __float__(self):
        return float(self._number("a float"))

    def __index__(self):
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError("only integer 0-d arrays can be an index")
        return self.item()

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over an array without axes")
        return (self[i] for i in range(self.shape[0]))

    def __repr__(self):
        values = functions.printing.text(self, "Array(")
        return f"Array({values}, dtype={self.dtype.name}, device='{self.device}')"

    def __str__(self):
        return functions.printing.text(self, "")

    def __format__(self, spec):
        return format(self.item() if spec and self.ndim == 0 else str(self), spec)

    # Other devices, dtypes and protocols ----------------------------------------------------------

    def to(self, target, /):
        """Return the values on another device or in another dtype; the Array itself if it fits.

        target: a Device or its name ("cuda:0"), or a dtype or its name ("float64").
        DeviceUnavailableError: the device is not there. ValueError, TypeError: neither.
        """
        return functions.creation.to(self, target)

    def cpu(self):
        """Return the values on the CPU; the Array itself if it is there."""
        return functions.creation.to(self, "cpu")

    def astype(self, dtype, /, *, copy=True):
        """Return the values in another dtype, see vg.astype."""
        return functions.astype(self, dtype, copy=copy)

    def copy(self):
        """Return a contiguous copy on the same device."""
        return wrap(self.backend, self.backend.cast(self.data, self.dtype, None))

    def contiguous(self):
        """Return a view if the elements lie in C order without gaps, else a copy that does."""
        return functions.layout.contiguous(self)

    __copy__ = copy

    def __deepcopy__(self, memo):
        return self.copy()

    def __reduce__(self):
        return _unpickle, (self._host_values(), str(self.device), self.dtype)

    def __array__(self, dtype=None, copy=None):
        if self.device.type != "cpu":
            _refusals.count += 1
            raise ImplicitTransferError(
                f"NumPy asked for the values of an array on {self.device}; "
                "copy them to the host with .numpy()"
            )
        return np.array(self.data, dtype=dtype, copy=copy)

    # NumPy's functions and `ndarray + Array` arrive here; the result is an Array.
    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        function = functions.UFUNCS.get(ufunc.__name__) if method == "__call__" else None
        if function is None or options:
            call = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            raise TypeError(
                f"numpy.{call} does not take pyvecgpu arrays in this way; "
                "use a function of pyvecgpu, or numpy on x.numpy()"
            )
        return function(*inputs, out=out[0] if out else None)

    # NumPy's other functions do what they do to any object: some use its methods and attributes. If
    # one asked for the values of a card's array it fails, even if it went on without them, as
    # numpy.array_equal does, which would then say False.
    def __array_function__(self, function, types, arguments, options):
        before = _refusals.count
        result = function._implementation(*arguments, **options)
        if _refusals.count != before:
            raise ImplicitTransferError(
                f"numpy.{function.__name__} asked for the values of an array on a card; "
                "copy them to the host with .numpy()"
            )
        return result

    # Indexing and layout --------------------------------------------------------------------------

    def __getitem__(self, key):
        return functions.indexing.get(self, key)

    def __setitem__(self, key, value):
        functions.indexing.set(self, key, value)

    def reshape(self, *shape, copy=None):
        """Return the elements in another shape: x.reshape(2, -1) or x.reshape((2, -1))."""
        return functions.reshape(self, shape[0] if len(shape) == 1 else shape, copy=copy)

    def transpose(self, *axes):
        """Return a view with the axes permuted; in reverse order without arguments."""
        if not axes or axes == (None,):
            return functions.transpose(self)
        return functions.transpose(self, axes[0] if isinstance(axes[0], (tuple, list)) else axes)

    # Reductions -----------------------------------------------------------------------------------

    def sum(self, axis=None, dtype=None, keepdims=False, out=None):
        """Return the sum over some or all axes, see vg.sum."""
        return functions.sum(self, axis=axis, dtype=dtype, keepdims=keepdims, out=out)

    def mean(self, axis=None, dtype=None, keepdims=False, out=None):
        """Return the mean over some or all axes, see vg.mean; of the elements in another dtype."""
        x = self if dtype is None else functions.astype(self, dtype, copy=False)
        return functions.mean(x, axis=axis, keepdims=keepdims, out=out)

    def max(self, axis=None, keepdims=False, out=None):
        """Return the largest element over some or all axes, see vg.max."""
        return functions.max(self, axis=axis, keepdims=keepdims, out=out)

    def min(self, axis=None, keepdims=False, out=None):
        """Return the smallest element over some or all axes, see vg.min."""
        return functions.min(self, axis=axis, keepdims=keepdims, out=out)

    def argmax(self, axis=None, keepdims=False, out=None):
        """Return the index of the first largest element, see vg.argmax."""
        return functions.argmax(self, axis=axis, keepdims=keepdims, out=out)

    # Operators ------------------------------------------------------------------------------------

    __add__ = _operator("__add__", int(Operation.ADD))
    __sub__ = _operator("__sub__", int(Operation.SUBTRACT))
    __mul__ = _operator("__mul__", int(Operation.MULTIPLY))
    __truediv__ = _operator("__truediv__", int(Operation.DIVIDE))
    __eq__ = _operator("__eq__", int(Operation.EQUAL))
    __ne__ = _operator("__ne__", int(Operation.NOT_EQUAL))
    __lt__ = _operator("__lt__", int(Operation.LESS))
    __le__ = _operator("__le__", int(Operation.LESS_EQUAL))
    __gt__ = _operator("__gt__", int(Operation.GREATER))
    __ge__ = _operator("__ge__", int(Operation.GREATER_EQUAL))

    __radd__ = _reflected("__radd__", int(Operation.ADD))
    __rsub__ = _reflected("__rsub__", int(Operation.SUBTRACT))
    __rmul__ = _reflected("__rmul__", int(Operation.MULTIPLY))
    __rtruediv__ = _reflected("__rtruediv__", int(Operation.DIVIDE))

    __iadd__ = _in_place("__iadd__", int(Operation.ADD))
    __isub__ = _in_place("__isub__", int(Operation.SUBTRACT))
    __imul__ = _in_place("__imul__", int(Operation.MULTIPLY))
    __itruediv__ = _in_place("__itruediv__", int(Operation.DIVIDE))

    def __matmul__(self, other):
        return functions.linalg.operator(self, other, None)

    def __rmatmul__(self, other):
        return functions.linalg.operator(other, self, None)

    def __imatmul__(self, other):
        return functions.linalg.operator(self, other, self)

    def __neg__(self):
        return functions.negative(self)

    def __pos__(self):
        return self.copy()

    def __abs__(self):
        return functions.abs(self)


def _unpickle(values, device, dtype):
    """Return an Array on the device it was pickled from, or on the CPU if that is not there."""
    try:
        return functions.asarray(values, dtype=dtype, device=device)
    except DeviceUnavailableError as error:
        import warnings

        warnings.warn(
            f"an array pickled on {device} was loaded on the CPU: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return functions.asarray(values, dtype=dtype, device="cpu")


# The methods need the functions only when they are called; the functions need Array at once.
from . import functions  # noqa: E402
