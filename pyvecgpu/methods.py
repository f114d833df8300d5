"""Operators, methods and NumPy's protocols of vg.Array, bound to the class when this is imported.

Operators between two Arrays of one device, or an Array and a float, take the short way of
dispatch.py; everything else (scalars, NumPy arrays, errors) that through `functions`.
"""

import functools
import sys

from . import functions, protocols
from .array import Array, Tracked, new, wrap
from .device import Device
from .dispatch import (
    _listeners,
    apply,
    in_place,
    operator,
    reflected,
    sign_operator,
    tracked_operator,
)
from .errors import DeviceUnavailableError
from .functions import (
    creation,
    cuda_interface,
    dlpack,
    indexing,
    linalg,
    operators,
    orders,
    printing,
    values,
)
from .named_methods import NamedMethods
from .operations import ROWS, Operation
from .short_views import flattened, number, reshaped

_STANDARDS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def _operator(code):
    """Return the method of a binary operator, for an operation of pvg_binary."""
    return operator(code, operators.operator)


def _reflected(code):
    """Return the method for `other + array`, where `other` is no Array."""
    return reflected(code, operators.operator)


def _in_place(code):
    """Return the method for `array += other`."""
    return in_place(code, operators.operator)


def _reduction(row):
    """Return the method of a reduction, its arguments as those of NumPy's method."""
    function = getattr(functions, row.name)

    def accumulate(self, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=True):
        if initial is None and where is True:
            return function(self, axis, dtype, out, keepdims)
        return function(self, axis, dtype, out, keepdims, initial, where)

    def mean(self, axis=None, dtype=None, out=None, keepdims=False, *, where=True):
        return function(self, axis, dtype, out, keepdims, where=where)

    def extreme(self, axis=None, out=None, keepdims=False, initial=None, where=True):
        return function(self, axis, out, keepdims, initial, where)

    def truth(self, axis=None, out=None, keepdims=False, *, where=True):
        return function(self, axis, out, keepdims, where=where)

    def place(self, axis=None, out=None, keepdims=False):
        return function(self, axis, out, keepdims=keepdims)

    methods = {"sum": accumulate, "prod": accumulate, "mean": mean, "max": extreme, "min": extreme}
    method = methods.get(row.name) or (truth if row.name in ("any", "all") else place)
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


@functools.cache
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
        return NotImplemented if modulo is not None else operators.raised(self, other, None)

    def __rpow__(self, other):
        return operators.operator(Operation.POW, other, self, None)

    def __ipow__(self, other):
        return operators.raised(self, other, self)

    def __divmod__(self, other):
        return operators.division(self, other)

    def __rdivmod__(self, other):
        return operators.division(other, self)

    def __matmul__(self, other):
        return linalg.operator(self, other, None)

    def __rmatmul__(self, other):
        return linalg.operator(other, self, None)

    def __imatmul__(self, other):
        return linalg.operator(self, other, self)

    __neg__ = sign_operator(Operation.NEGATIVE, functions.negative)
    __invert__ = sign_operator(Operation.BITWISE_INVERT, functions.bitwise_invert)
    __abs__ = sign_operator(Operation.ABS, functions.abs)

    def __round__(self, ndigits=0):
        return functions.round(self, 0 if ndigits is None else ndigits)

    def __pos__(self):
        return values.copied(self)

    # Values on the host ---------------------------------------------------------------------------

    def numpy(self):
        """Return the values as a new NumPy array. ImportError: bfloat16 without ml_dtypes.

        Its axes lie in the order of this array's: of x.T in Fortran order.
        RuntimeError: the array is tracked, and what NumPy computes has no gradients.

        >>> x = vg.asarray([1, 2])
        >>> values = x.numpy()
        >>> values[0] = 9
        >>> x.tolist()
        [1, 2]
        """
        protocols.check_untracked(self)
        return values.to_numpy(self)

    def item(self, *index):
        """Return the one element as a Python scalar, or the one at an index.

        index: one of each axis, also as a tuple, or one number that counts all elements in C order.
        ValueError: not exactly one element, or not an index of each axis. IndexError: none there.

        >>> vg.asarray([[2.5]]).item()
        2.5
        >>> x = vg.asarray([[1, 2], [3, 4]])
        >>> x.item(2), x.item(0, 1)
        (3, 2)
        """
        if index:
            return values.item(indexing.get(self, orders.position(self.shape, index)))
        found = number(self)
        return values.item(self) if found is None else found

    def tolist(self):
        """Return the values as nested lists of Python scalars; a scalar for 0-d.

        >>> vg.asarray([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        >>> vg.asarray(2.5).tolist()
        2.5
        """
        return values.readable(self).tolist()

    def tobytes(self, order="C"):
        r"""Return the bytes of the elements, in C order or "F"ortran's.

        ValueError: another order. ImportError: bfloat16 without ml_dtypes.

        >>> vg.asarray([1, 2], dtype="uint8").tobytes()
        b'\x01\x02'
        """
        if order == "A":
            flags = self.flags  # of the Array: its values on the host may lie in another order
            order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
        return values.to_host(self).tobytes(order)

    def __bool__(self):
        found = number(self)
        if found is not None:
            return bool(found)
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

        >>> vg.ones(2).to("float16").dtype
        dtype('float16')
        >>> vg.ones(2).to("cpu").device
        Device('cpu')
        """
        return creation.to(self, target)

    def to_device(self, device, /, *, stream=None):
        """Return the values on a device, see to. ValueError: a stream.

        >>> vg.ones(2).to_device("cpu").device
        Device('cpu')
        """
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
        """Return the values on the CPU; the Array itself if it is there.

        >>> x = vg.ones(2, device="cpu")
        >>> x.cpu() is x
        True
        """
        return creation.to(self, "cpu")

    def copy(self):
        """Return a contiguous copy on the same device.

        >>> x = vg.asarray([1, 2])
        >>> y = x.copy()
        >>> y[0] = 9
        >>> x.tolist()
        [1, 2]
        """
        return values.copied(self)

    def contiguous(self):
        """Return a view if the elements lie in C order without gaps, else a copy that does.

        >>> vg.ones((2, 3)).T.contiguous().strides
        (8, 4)
        """
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
        """Whether gradients are recorded of what is computed of this Array; see requires_grad_.

        >>> w = vg.asarray([1.0, 2.0])
        >>> w.requires_grad = True
        >>> (w * 2).requires_grad
        True
        """
        return type(self) is Tracked

    @requires_grad.setter
    def requires_grad(self, value):
        _autograd().require(self, bool(value))

    def requires_grad_(self, requires_grad=True):
        """Record, or do not record, gradients of what is computed of this Array; return it.

        TypeError: neither floats nor complex numbers. RuntimeError: False for what was computed of
        tracked arrays.

        >>> w = vg.asarray([1.0, 2.0]).requires_grad_()
        >>> (w * w).sum().backward()
        >>> w.grad.tolist()
        [2.0, 4.0]
        """
        return _autograd().require(self, bool(requires_grad))

    @property
    def grad(self):
        """What backward has added up for this Array; None before. It can be set.

        Only a leaf has one: an Array that requires gradients and was not computed of such.

        >>> w = vg.asarray([3.0]).requires_grad_()
        >>> (w * w).sum().backward()
        >>> w.grad.item()
        6.0
        >>> w.grad = None
        """
        return _autograd().gradient_of(self)

    @grad.setter
    def grad(self, value):
        _autograd().set_gradient(self, value)

    @property
    def is_leaf(self):
        """Whether this Array was not computed of tracked ones.

        >>> w = vg.asarray([1.0]).requires_grad_()
        >>> w.is_leaf, (w * 2).is_leaf
        (True, False)
        """
        return _autograd().is_leaf(self)

    def detach(self):
        """Return an Array of the same memory of which no gradients are recorded.

        >>> w = vg.asarray([1.0, 2.0]).requires_grad_()
        >>> w.detach().numpy().tolist()
        [1.0, 2.0]
        """
        return _autograd().detach(self)

    @property
    def data(self):
        """The values as an Array of the same memory of which no gradients are recorded, as detach.

        Writing to it, and setting it, write to the memory; a graph that needs what was there before
        says so in backward. TypeError: it is set to no Array, or to one of another dtype.
        ValueError: to one of another shape or device.

        >>> w = vg.asarray([1.0, 2.0]).requires_grad_()
        >>> w.data -= 0.5
        >>> w.data[0] = 9
        >>> w.tolist(), w.requires_grad
        ([9.0, 1.5], True)
        >>> w.data = vg.asarray([3.0, 4.0])
        >>> w.tolist()
        [3.0, 4.0]
        """
        return _autograd().detach(self)

    @data.setter
    def data(self, values):
        _autograd().put(self, values)

    def backward(self, gradient=None, retain_graph=None, create_graph=False):
        """Add the gradients of this Array to the .grad of the leaves that it was computed of.

        gradient: that of this Array, in its shape; None is 1 for a single element. create_graph:
        the gradients can be differentiated. retain_graph: the graph is kept for another time; by
        default as create_graph. RuntimeError: nothing is tracked, several elements without a
        gradient, a graph that was used before, an array that was changed in place since.

        >>> w = vg.asarray([1.0, 2.0]).requires_grad_()
        >>> y = w * 3
        >>> y.backward(vg.asarray([1.0, 10.0]))
        >>> w.grad.tolist()
        [3.0, 30.0]
        """
        _autograd().backward(self, gradient, retain_graph, create_graph)

    def register_hook(self, hook):
        """Let backward call hook(gradient) when the gradient of this Array is complete.

        What the hook returns takes the gradient's place, None leaves it. Return a handle, whose
        remove() takes the hook away. RuntimeError: the array is not tracked. TypeError, ValueError:
        the hook gave backward no Array of the gradient's shape, dtype and device.

        >>> w = vg.asarray([1.0]).requires_grad_()
        >>> handle = w.register_hook(lambda gradient: gradient * 100)
        >>> (w * 2).sum().backward()
        >>> w.grad.item()
        200.0
        >>> handle.remove()
        """
        return _autograd().register_hook(self, hook)

    # Indexing and layout --------------------------------------------------------------------------

    def __getitem__(self, key):
        return indexing.get(self, key)

    def __setitem__(self, key, value):
        indexing.set(self, key, value)

    @property
    def T(self):  # noqa: N802
        """A view with the axes in reverse order.

        >>> vg.ones((2, 3)).T.shape
        (3, 2)
        """
        backend = self.backend
        if type(self) is not Array or _listeners:
            return apply(backend, "permute", self, tuple(range(self.ndim))[::-1])
        if not backend.on_card:
            return wrap(backend, self.raw.T)
        data = backend.functions.pvg_permute(self.raw, None)  # array.wrap, in the same step
        if not data:
            backend.fail()
        result = new()
        result.backend = backend
        result.raw = data
        return result

    @property
    def mT(self):  # noqa: N802
        """A view with the last two axes exchanged. ValueError: fewer than two axes.

        >>> vg.ones((5, 2, 3)).mT.shape
        (5, 3, 2)
        """
        return functions.matrix_transpose(self)

    @property
    def real(self):
        """The real parts, a view: the array itself if it is not complex.

        >>> x = vg.asarray([1 + 2j])
        >>> x.real = 7
        >>> x.tolist()
        [(7+2j)]
        """
        return functions.real(self)

    @real.setter
    def real(self, value):
        indexing.set(functions.real(self), ..., value)

    @property
    def imag(self):
        """The imaginary parts, a view; of real arrays zeros, which are read-only.

        >>> vg.asarray([1 + 2j]).imag.tolist()
        [2.0]
        """
        return functions.imag(self)

    @imag.setter
    def imag(self, value):
        if not functions.iscomplexobj(self):
            raise TypeError(f"an array of {self.dtype} has no imaginary parts to write to")
        indexing.set(functions.imag(self), ..., value)

    def conj(self):
        """Return the complex conjugates, see vg.conj; real numbers are these themselves.

        >>> vg.asarray([1 + 2j]).conj().tolist()
        [(1-2j)]
        """
        is_real = self.dtype.kind in "iuf"
        return self if is_real else functions.conj(self)

    conjugate = conj

    def reshape(self, *shape, order="C", copy=None):
        """Return the elements in another shape: x.reshape(2, -1) or x.reshape((2, -1)).

        >>> vg.arange(6).reshape(2, -1).tolist()
        [[0, 1, 2], [3, 4, 5]]
        """
        wanted = shape[0] if len(shape) == 1 else shape
        if order == "C" and copy is None:
            is_flat = type(wanted) is int and wanted == -1
            result = flattened(self) if is_flat else reshaped(self, wanted)
            if result is not None:
                return result
        return functions.reshape(self, wanted, order, copy=copy)

    def transpose(self, *axes):
        """Return a view with the axes permuted; in reverse order without arguments.

        >>> vg.ones((2, 3, 4)).transpose(2, 0, 1).shape
        (4, 2, 3)
        """
        if not axes or axes == (None,):
            return functions.transpose(self)
        return functions.transpose(self, axes[0] if isinstance(axes[0], (tuple, list)) else axes)


def _number(array, kind):
    found = number(array)
    if found is not None:
        return found
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
_bind(vars(NamedMethods))
_bind({f"__{name}__": _operator(code) for name, code in _BINARY.items()})
_bind(
    {f"__{name}__": tracked_operator(code, operators.operator) for name, code in _BINARY.items()},
    Tracked,
)
