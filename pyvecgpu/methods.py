"""Operators, methods and NumPy's protocols of vg.Array, bound to the class when this is imported.

Operators between two Arrays of one device, or an Array and a float, take the short way of
dispatch.py; everything else (scalars, NumPy arrays, errors) that through `functions`.
"""

import sys

from . import functions, protocols
from .array import Array, Tracked
from .device import Device
from .dispatch import operator, tracked_operator
from .errors import DeviceUnavailableError
from .functions import (
    arguments,
    creation,
    cuda_interface,
    dlpack,
    elementwise,
    indexing,
    linalg,
    printing,
    values,
)
from .operations import ROWS, Operation

_STANDARDS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def _operator(code):
    """Return the method of a binary operator, for an operation of pvg_binary."""
    return operator(code, elementwise.operator)


def _reflected(code):
    """Return the method for `other + array`, where `other` is no Array."""
    return lambda self, other: elementwise.operator(int(code), other, self, None)


def _in_place(code):
    """Return the method for `array += other`."""
    return lambda self, other: elementwise.operator(int(code), self, other, self)


def _reduction(row):
    """Return the method of a reduction, its arguments as those of NumPy's method."""
    function = getattr(functions, row.name)

    def accumulate(self, axis=None, dtype=None, out=None, keepdims=False):
        return function(self, axis, dtype, out, keepdims)

    def reduce(self, axis=None, out=None, keepdims=False):
        return function(self, axis, out, keepdims=keepdims)

    method = accumulate if row.result in ("wide", "float") else reduce
    method.__doc__ = function.__doc__
    return method


# Python's names of binary operators, and their operations.
_BINARY = {
    "add": Operation.ADD,
    "sub": Operation.SUBTRACT,
    "mul": Operation.MULTIPLY,
    "truediv": Operation.DIVIDE,
    "eq": Operation.EQUAL,
    "ne": Operation.NOT_EQUAL,
    "lt": Operation.LESS,
    "le": Operation.LESS_EQUAL,
    "gt": Operation.GREATER,
    "ge": Operation.GREATER_EQUAL,
    "floordiv": Operation.FLOOR_DIVIDE,
    "mod": Operation.REMAINDER,
    "lshift": Operation.BITWISE_LEFT_SHIFT,
    "rshift": Operation.BITWISE_RIGHT_SHIFT,
    "and": Operation.BITWISE_AND,
    "or": Operation.BITWISE_OR,
    "xor": Operation.BITWISE_XOR,
}


def _autograd():
    """Return autograd/arrays.py, which is imported when gradients are first spoken of."""
    from .autograd import arrays

    return arrays


class _Methods:
    """What is bound to Array, as it would stand in its class."""

    __radd__ = _reflected(Operation.ADD)
    __rsub__ = _reflected(Operation.SUBTRACT)
    __rmul__ = _reflected(Operation.MULTIPLY)
    __rtruediv__ = _reflected(Operation.DIVIDE)
    __rfloordiv__ = _reflected(Operation.FLOOR_DIVIDE)
    __rmod__ = _reflected(Operation.REMAINDER)
    __rpow__ = _reflected(Operation.POW)
    __rlshift__ = _reflected(Operation.BITWISE_LEFT_SHIFT)
    __rrshift__ = _reflected(Operation.BITWISE_RIGHT_SHIFT)
    __rand__ = _reflected(Operation.BITWISE_AND)
    __ror__ = _reflected(Operation.BITWISE_OR)
    __rxor__ = _reflected(Operation.BITWISE_XOR)

    __iadd__ = _in_place(Operation.ADD)
    __isub__ = _in_place(Operation.SUBTRACT)
    __imul__ = _in_place(Operation.MULTIPLY)
    __itruediv__ = _in_place(Operation.DIVIDE)
    __ifloordiv__ = _in_place(Operation.FLOOR_DIVIDE)
    __imod__ = _in_place(Operation.REMAINDER)
    __ilshift__ = _in_place(Operation.BITWISE_LEFT_SHIFT)
    __irshift__ = _in_place(Operation.BITWISE_RIGHT_SHIFT)
    __iand__ = _in_place(Operation.BITWISE_AND)
    __ior__ = _in_place(Operation.BITWISE_OR)
    __ixor__ = _in_place(Operation.BITWISE_XOR)

    def __pow__(self, other, modulo=None):
        return NotImplemented if modulo is not None else elementwise.raised(self, other, None)

    def __ipow__(self, other):
        return elementwise.raised(self, other, self)

    def __divmod__(self, other):
        return elementwise.division(self, other)

    def __rdivmod__(self, other):
        return elementwise.division(other, self)

    def __matmul__(self, other):
        return linalg.operator(self, other, None)

    def __rmatmul__(self, other):
        return linalg.operator(other, self, None)

    def __imatmul__(self, other):
        return linalg.operator(self, other, self)

    def __neg__(self):
        return functions.negative(self)

    def __invert__(self):
        return functions.bitwise_invert(self)

    def __round__(self, ndigits=0):
        return functions.round(self, 0 if ndigits is None else ndigits)

    def __pos__(self):
        return values.copied(self)

    def __abs__(self):
        return functions.abs(self)

    # Values on the host ---------------------------------------------------------------------------

    def numpy(self):
        """Return the values as a new NumPy array. ImportError: bfloat16 without ml_dtypes.

        RuntimeError: the array is tracked, and what NumPy computes has no gradients.
        """
        protocols.check_untracked(self)
        return values.to_numpy(self)

    def item(self):
        """Return the one element as a Python scalar. ValueError: not exactly one element."""
        return values.item(self)

    def tolist(self):
        """Return the values as nested lists of Python scalars; a scalar for 0-d."""
        return values.readable(self).tolist()

    def tobytes(self):
        """Return the bytes of the elements in C order. ImportError: bfloat16 without ml_dtypes."""
        return values.to_host(self).tobytes()

    def __bool__(self):
        if self.size != 1:
            raise ValueError(f"the truth value of an array of shape {self.shape} is ambiguous")
        return bool(values.item(self))

    def __contains__(self, value):
        return bool(values.item(functions.any(self == value)))

    def __int__(self):
        return int(_number(self, "an int"))

    def __float__(self):
        return float(_number(self, "a float"))

    def __complex__(self):
        return complex(_number(self, "a complex number"))

    def __index__(self):
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError("only integer 0-d arrays can be an index")
        return values.item(self)

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over an array without axes")
        return (self[i] for i in range(self.shape[0]))

    def __repr__(self):
        text = printing.text(self, "Array(")
        tracked = ", requires_grad=True" if type(self) is Tracked else ""
        return f"Array({text}, dtype={self.dtype.name}, device='{self.device}'{tracked})"

    def __str__(self):
        return printing.text(self, "")

    def __format__(self, spec):
        return format(values.item(self) if spec and self.ndim == 0 else str(self), spec)

    # Other devices, dtypes and protocols ----------------------------------------------------------

    def to(self, target, /):
        """Return the values on another device or in another dtype; the Array itself if it fits.

        target: a Device or its name ("cuda:0"), or a dtype or its name ("float64").
        DeviceUnavailableError: the device is not there. ValueError, TypeError: neither.
        """
        return creation.to(self, target)

    def to_device(self, device, /, *, stream=None):
        """Return the values on a device, see to. ValueError: a stream."""
        if stream is not None:
            raise ValueError("to_device: each device has a stream of its own; stream is None")
        return creation.to(self, Device(device))

    def __dlpack_device__(self):
        """Return the kind of memory in DLPack's numbers, and which of its kind."""
        return dlpack.place_of(self)

    def __dlpack__(self, /, *, stream=None, max_version=None, dl_device=None, copy=None):
        """Return the values as a capsule of DLPack, which from_dlpack of other libraries takes.

        stream: of CUDA, in which the values are there then: None for its default stream, -1 for no
        order. copy: True always copies, False never does. dl_device: (1, 0) for a copy on the host.
        max_version: without it, or below (1, 0), the capsule is of DLPack before version 1.
        BufferError: another device, a stream on the host, a copy that is needed and not wanted,
        read-only memory before version 1, gradients. ValueError: a stream that is none.
        """
        return dlpack.hand_over(self, stream, max_version, dl_device, copy)

    def __array_namespace__(self, /, *, api_version=None):
        """Return pyvecgpu itself. ValueError: a version of the standard that is not known."""
        if api_version not in (None, *_STANDARDS):
            raise ValueError(f"versions of the array API are {_STANDARDS}, not {api_version!r}")
        return sys.modules[__package__]

    def cpu(self):
        """Return the values on the CPU; the Array itself if it is there."""
        return creation.to(self, "cpu")

    def astype(self, dtype, /, *, copy=True):
        """Return the values in another dtype, see vg.astype."""
        return functions.astype(self, dtype, copy=copy)

    def ravel(self):
        """Return the elements along one axis, see vg.ravel."""
        return functions.ravel(self)

    def flatten(self):
        """Return a copy of the elements, in C order, along one axis."""
        return functions.ravel(values.copied(self))

    def fill(self, value):
        """Write a scalar to every element. OverflowError: the dtype cannot hold it."""
        value = arguments.parse_scalar(value, "a value to fill with", complexes=True)
        indexing.set(self, ..., value)

    def clip(self, min=None, max=None, out=None):
        """Return the elements within bounds, see vg.clip."""
        return functions.clip(self, min, max, out)

    def round(self, decimals=0, out=None):
        """Return the nearest integers, see vg.round."""
        return functions.round(self, decimals, out)

    def var(self, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, correction=None):
        """Return the variance, see vg.var."""
        return functions.var(self, axis, dtype, out, ddof, keepdims, correction=correction)

    def std(self, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, correction=None):
        """Return the standard deviation, see vg.std."""
        return functions.std(self, axis, dtype, out, ddof, keepdims, correction=correction)

    def squeeze(self, axis=None):
        """Return a view without axes of length 1, see vg.squeeze."""
        return functions.squeeze(self, axis)

    def dot(self, other, /, out=None):
        """Return the product with another array, see vg.dot."""
        return functions.dot(self, other, out)

    def trace(self, offset=0, axis1=0, axis2=1, dtype=None):
        """Return the sums of the diagonals, see vg.trace."""
        return functions.trace(self, offset, axis1, axis2, dtype)

    def swapaxes(self, axis1, axis2, /):
        """Return a view with two axes exchanged, see vg.swapaxes."""
        return functions.swapaxes(self, axis1, axis2)

    def diagonal(self, offset=0, axis1=0, axis2=1):
        """Return the diagonals, see vg.diagonal."""
        return functions.diagonal(self, offset, axis1, axis2)

    def repeat(self, repeats, /, axis=None):
        """Return every element repeated, see vg.repeat."""
        return functions.repeat(self, repeats, axis)

    def nonzero(self):
        """Return where elements are not 0, see vg.nonzero."""
        return functions.nonzero(self)

    def cumsum(self, axis=None, dtype=None, out=None):
        """Return the sums up to each element, see vg.cumsum."""
        return functions.cumsum(self, axis, dtype, out)

    def cumprod(self, axis=None, dtype=None, out=None):
        """Return the products up to each element, see vg.cumprod."""
        return functions.cumprod(self, axis, dtype, out)

    def take(self, indices, axis=None):
        """Return the elements at indices, see vg.take."""
        return functions.take(self, indices, axis)

    def put(self, indices, values):
        """Write values at indices into the elements in a row, see vg.put."""
        functions.put(self, indices, values)

    def compress(self, condition, axis=None):
        """Return the parts where a condition is true, see vg.compress."""
        return functions.compress(condition, self, axis)

    def choose(self, choices):
        """Return elements of the choices that the elements are the indices of, see vg.choose."""
        return functions.choose(self, choices)

    def sort(self, axis=-1, kind=None, *, descending=False, stable=True):
        """Put the elements in order along an axis, in place, see vg.sort."""
        functions.sorting.sort_in_place(self, axis, kind, descending)

    def argsort(self, axis=-1, kind=None, *, descending=False, stable=True):
        """Return the indices that put the elements in order, see vg.argsort."""
        return functions.argsort(self, axis, kind, descending=descending)

    def searchsorted(self, v, side="left", sorter=None):
        """Return before which elements those of v keep the order, see vg.searchsorted."""
        return functions.searchsorted(self, v, side, sorter)

    def partition(self, kth, axis=-1):
        """Put the kth elements at their places in order, in place, see vg.partition."""
        functions.sorting.check_kth(
            "partition", kth, self.shape[arguments.parse_axis(axis, self.ndim)]
        )
        functions.sorting.sort_in_place(self, axis)

    def argpartition(self, kth, axis=-1):
        """Return the indices of what partition gives, see vg.argpartition."""
        return functions.argpartition(self, kth, axis)

    def copy(self):
        """Return a contiguous copy on the same device."""
        return values.copied(self)

    def contiguous(self):
        """Return a view if the elements lie in C order without gaps, else a copy that does."""
        return functions.contiguous(self)

    __copy__ = copy

    def __deepcopy__(self, memo):
        return values.copied(self)

    def __reduce__(self):
        return _unpickle, (values.readable(self), str(self.device), self.dtype)

    def __array__(self, dtype=None, copy=None):
        """Return the values as an ndarray: of the same memory, on the CPU.

        ImplicitTransferError: on another device; vg.implicit_transfers says when.
        """
        return protocols.as_ndarray(self, dtype, copy)

    def __buffer__(self, flags, /):  # from Python 3.12 on
        return protocols.as_buffer(self, flags)

    @property
    def __cuda_array_interface__(self):
        """Where the elements are in a GPU's memory, for libraries that read it there.

        AttributeError: the array is not on a GPU, or of bfloat16.
        """
        return cuda_interface.describe(self)

    # NumPy's functions and `ndarray + Array` arrive here; the result is an Array.
    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        return protocols.call_ufunc(self, ufunc, method, inputs, out, options)

    def __array_function__(self, function, types, arguments, options):
        return protocols.call_function(self, function, types, arguments, options)

    # Gradients ------------------------------------------------------------------------------------

    @property
    def requires_grad(self):
        """Whether gradients are recorded of what is computed of this Array; see requires_grad_."""
        return type(self) is Tracked

    @requires_grad.setter
    def requires_grad(self, value):
        _autograd().require(self, bool(value))

    def requires_grad_(self, requires_grad=True):
        """Record, or do not record, gradients of what is computed of this Array; return it.

        TypeError: no floats. RuntimeError: False for what was computed of tracked arrays.
        """
        return _autograd().require(self, bool(requires_grad))

    @property
    def grad(self):
        """What backward has added up for this Array; None before. It can be set.

        Only a leaf has one: an Array that requires gradients and was not computed of such.
        """
        return _autograd().gradient_of(self)

    @grad.setter
    def grad(self, value):
        _autograd().set_gradient(self, value)

    @property
    def is_leaf(self):
        """Whether this Array was not computed of tracked ones."""
        return _autograd().is_leaf(self)

    def detach(self):
        """Return an Array of the same memory of which no gradients are recorded."""
        return _autograd().detach(self)

    def backward(self, gradient=None, retain_graph=None, create_graph=False):
        """Add the gradients of this Array to the .grad of the leaves that it was computed of.

        gradient: that of this Array, in its shape; None is 1 for a single element. create_graph:
        the gradients can be differentiated. retain_graph: the graph is kept for another time; by
        default as create_graph. RuntimeError: nothing is tracked, several elements without a
        gradient, a graph that was used before, an array that was changed in place since.
        """
        _autograd().backward(self, gradient, retain_graph, create_graph)

    def register_hook(self, hook):
        """Let backward call hook(gradient) when the gradient of this Array is complete.

        What the hook returns takes the gradient's place, None leaves it. Return a handle, whose
        remove() takes the hook away. RuntimeError: the array is not tracked.
        """
        return _autograd().register_hook(self, hook)

    # Indexing and layout --------------------------------------------------------------------------

    def __getitem__(self, key):
        return indexing.get(self, key)

    def __setitem__(self, key, value):
        indexing.set(self, key, value)

    @property
    def T(self):  # noqa: N802
        """A view with the axes in reverse order."""
        return functions.transpose(self)

    @property
    def mT(self):  # noqa: N802
        """A view with the last two axes exchanged. ValueError: fewer than two axes."""
        return functions.matrix_transpose(self)

    @property
    def real(self):
        """The real parts, a view: the array itself if it is not complex."""
        return functions.real(self)

    @real.setter
    def real(self, value):
        indexing.set(functions.real(self), ..., value)

    @property
    def imag(self):
        """The imaginary parts, a view; of real arrays zeros, which are read-only."""
        return functions.imag(self)

    @imag.setter
    def imag(self, value):
        if not functions.iscomplexobj(self):
            raise TypeError(f"an array of {self.dtype} has no imaginary parts to write to")
        indexing.set(functions.imag(self), ..., value)

    def conj(self):
        """Return the complex conjugates, see vg.conj."""
        return functions.conj(self)

    conjugate = conj

    def reshape(self, *shape, copy=None):
        """Return the elements in another shape: x.reshape(2, -1) or x.reshape((2, -1))."""
        return functions.reshape(self, shape[0] if len(shape) == 1 else shape, copy=copy)

    def transpose(self, *axes):
        """Return a view with the axes permuted; in reverse order without arguments."""
        if not axes or axes == (None,):
            return functions.transpose(self)
        return functions.transpose(self, axes[0] if isinstance(axes[0], (tuple, list)) else axes)


def _number(array, kind):
    if array.size != 1:
        raise TypeError(f"only an array of size 1 can become {kind}, not one of {array.shape}")
    return values.item(array)


def _unpickle(values, device, dtype):
    """Return an Array on the device it was pickled from, or on the CPU if that is not there."""
    try:
        return creation.asarray(values, dtype=dtype, device=device)
    except DeviceUnavailableError as error:
        import warnings

        warnings.warn(
            f"an array pickled on {device} was loaded on the CPU: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return creation.asarray(values, dtype=dtype, device="cpu")


def _bind(members, cls=Array):
    """Make the members of a class those of Array, which tracebacks and help() then say they are."""
    for name, member in members.items():
        function = member.fget if isinstance(member, property) else member
        if not callable(function):
            continue  # what every class has: __module__, __doc__, __dict__ and the like
        if "<locals>" in function.__qualname__:
            function.__name__ = name
        function.__qualname__ = f"Array.{function.__name__}"
        setattr(cls, name, member)


Array.__array_priority__ = 100  # before NumPy's arrays, for those who look at it

_bind({row.name: _reduction(row) for row in ROWS if row.family == "reduce"})
_bind(vars(_Methods))
_bind({f"__{name}__": _operator(code) for name, code in _BINARY.items()})
_bind(
    {f"__{name}__": tracked_operator(code, elementwise.operator) for name, code in _BINARY.items()},
    Tracked,
)
