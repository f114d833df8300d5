# Written by `make stubs` from docs/reference/hints.py and the package itself.
# pyright: reportOverlappingOverload=false

import os
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, ClassVar
from pyvecgpu import Device
from pyvecgpu.typing import ArrayLike, Axis, DType, DTypeLike, DeviceLike, HostArray, Operand, Scalar

class Array:
    __hash__: ClassVar[None]  # type: ignore[assignment]
    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes, a tuple."""
    @property
    def dtype(self) -> DType:
        """The dtype of the elements: NumPy's, or pyvecgpu.bfloat16."""
    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis, a tuple, as in NumPy."""
    @property
    def device(self) -> Device:
        """The Device that holds the values."""
    @property
    def ndim(self) -> int:
        """Number of axes."""
    @property
    def size(self) -> int:
        """Number of elements."""
    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
    def sum(self, axis: Axis = None, dtype: DTypeLike | None = None, out: Array | None = None, keepdims: bool = False, initial: complex | None = None, where: ArrayLike = True) -> Array:
        """Return the sum; 0 of nothing."""
    def prod(self, axis: Axis = None, dtype: DTypeLike | None = None, out: Array | None = None, keepdims: bool = False, initial: complex | None = None, where: ArrayLike = True) -> Array:
        """Return the product; 1 of nothing."""
    def mean(self, axis: Axis = None, dtype: DTypeLike | None = None, out: Array | None = None, keepdims: bool = False, *, where: ArrayLike = True) -> Array:
        """Return the mean, as float; NaN of nothing (with a RuntimeWarning on the CPU)."""
    def max(self, axis: Axis = None, out: Array | None = None, keepdims: bool = False, initial: complex | None = None, where: ArrayLike = True) -> Array:
        """Return the largest element; NaN if any is NaN. ValueError: there is none."""
    def min(self, axis: Axis = None, out: Array | None = None, keepdims: bool = False, initial: complex | None = None, where: ArrayLike = True) -> Array:
        """Return the smallest element; NaN if any is NaN. ValueError: there is none."""
    def argmax(self, axis: int | None = None, out: Array | None = None, keepdims: bool = False) -> Array:
        """Return the index (int64) of the first largest element, or of the first NaN."""
    def argmin(self, axis: int | None = None, out: Array | None = None, keepdims: bool = False) -> Array:
        """Return the index (int64) of the first smallest element, or of the first NaN."""
    def any(self, axis: Axis = None, out: Array | None = None, keepdims: bool = False, *, where: ArrayLike = True) -> Array:
        """Return whether any element is not 0, as bool; NaN is true. False of nothing."""
    def all(self, axis: Axis = None, out: Array | None = None, keepdims: bool = False, *, where: ArrayLike = True) -> Array:
        """Return whether all elements are not 0, as bool; NaN is true. True of nothing."""
    def __radd__(self, other: Operand) -> Array: ...
    def __rsub__(self, other: Operand) -> Array: ...
    def __rmul__(self, other: Operand) -> Array: ...
    def __rtruediv__(self, other: Operand) -> Array: ...
    def __rfloordiv__(self, other: Operand) -> Array: ...
    def __rmod__(self, other: Operand) -> Array: ...
    def __rlshift__(self, other: Operand) -> Array: ...
    def __rrshift__(self, other: Operand) -> Array: ...
    def __rand__(self, other: Operand) -> Array: ...
    def __ror__(self, other: Operand) -> Array: ...
    def __rxor__(self, other: Operand) -> Array: ...
    def __iadd__(self, other: Operand) -> Array: ...
    def __isub__(self, other: Operand) -> Array: ...
    def __imul__(self, other: Operand) -> Array: ...
    def __itruediv__(self, other: Operand) -> Array: ...
    def __ifloordiv__(self, other: Operand) -> Array: ...
    def __imod__(self, other: Operand) -> Array: ...
    def __ilshift__(self, other: Operand) -> Array: ...
    def __irshift__(self, other: Operand) -> Array: ...
    def __iand__(self, other: Operand) -> Array: ...
    def __ior__(self, other: Operand) -> Array: ...
    def __ixor__(self, other: Operand) -> Array: ...
    def __pow__(self, other: Operand) -> Array: ...
    def __rpow__(self, other: Operand) -> Array: ...
    def __ipow__(self, other: Operand) -> Array: ...
    def __divmod__(self, other: Operand) -> tuple[Array, Array]: ...
    def __rdivmod__(self, other: Operand) -> tuple[Array, Array]: ...
    def __matmul__(self, other: Operand) -> Array: ...
    def __rmatmul__(self, other: Operand) -> Array: ...
    def __imatmul__(self, other: Operand) -> Array: ...
    def __neg__(self) -> Array: ...
    def __invert__(self) -> Array: ...
    def __abs__(self) -> Array: ...
    def __round__(self, ndigits: int | None = 0) -> Array: ...
    def __pos__(self) -> Array: ...
    def numpy(self) -> HostArray:
        """Return the values as a new NumPy array. ImportError: bfloat16 without ml_dtypes."""
    def item(self, *index: int | tuple[int, ...]) -> Any:
        """Return the one element as a Python scalar, or the one at an index."""
    def tolist(self) -> Any:
        """Return the values as nested lists of Python scalars; a scalar for 0-d."""
    def tobytes(self, order: str = 'C') -> bytes:
        """Return the bytes of the elements, in C order or "F"ortran's."""
    def __bool__(self) -> bool: ...
    def __contains__(self, value: Any) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> int: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Array]: ...
    def __format__(self, spec: str) -> str: ...
    def to(self, target: DeviceLike | DTypeLike, /) -> Array:
        """Return the values on another device or in another dtype; the Array itself if it fits."""
    def to_device(self, device: DeviceLike, /, *, stream: Any = None) -> Array:
        """Return the values on a device, see to. ValueError: a stream."""
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...
    def cpu(self) -> Array:
        """Return the values on the CPU; the Array itself if it is there."""
    def copy(self) -> Array:
        """Return a contiguous copy on the same device."""
    def contiguous(self) -> Array:
        """Return a view if the elements lie in C order without gaps, else a copy that does."""
    def __copy__(self) -> Array: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> HostArray: ...
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any: ...
    @property
    def requires_grad(self) -> bool:
        """Whether gradients are recorded of what is computed of this Array; see requires_grad_."""
    @requires_grad.setter
    def requires_grad(self, value: bool) -> None: ...
    def requires_grad_(self, requires_grad: bool = True) -> Array:
        """Record, or do not record, gradients of what is computed of this Array; return it."""
    @property
    def grad(self) -> Any:
        """What backward has added up for this Array; None before. It can be set."""
    @grad.setter
    def grad(self, value: Any) -> None: ...
    @property
    def is_leaf(self) -> bool:
        """Whether this Array was not computed of tracked ones."""
    def detach(self) -> Array:
        """Return an Array of the same memory of which no gradients are recorded."""
    @property
    def data(self) -> Array:
        """The values as an Array of the same memory of which no gradients are recorded, as detach."""
    @data.setter
    def data(self, value: Any) -> None: ...
    def backward(self, gradient: Array | HostArray | float | None = None, retain_graph: bool | None = None, create_graph: bool = False) -> None:
        """Add the gradients of this Array to the .grad of the leaves that it was computed of."""
    def register_hook(self, hook: Callable[[Array], Array | None]) -> Any:
        """Let backward call hook(gradient) when the gradient of this Array is complete."""
    def __getitem__(self, key: Any) -> Array: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    @property
    def T(self) -> Array:
        """A view with the axes in reverse order."""
    @property
    def mT(self) -> Array:
        """A view with the last two axes exchanged. ValueError: fewer than two axes."""
    @property
    def real(self) -> Array:
        """The real parts, a view: the array itself if it is not complex."""
    @real.setter
    def real(self, value: Any) -> None: ...
    @property
    def imag(self) -> Array:
        """The imaginary parts, a view; of real arrays zeros, which are read-only."""
    @imag.setter
    def imag(self, value: Any) -> None: ...
    def conj(self) -> Array:
        """Return the complex conjugates, see vg.conj; real numbers are these themselves."""
    def conjugate(self) -> Array:
        """Return the complex conjugates, see vg.conj; real numbers are these themselves."""
    def reshape(self, *shape: Any, order: str = 'C', copy: bool | None = None) -> Array:
        """Return the elements in another shape: x.reshape(2, -1) or x.reshape((2, -1))."""
    def transpose(self, *axes: Any) -> Array:
        """Return a view with the axes permuted; in reverse order without arguments."""
    def astype(self, dtype: DTypeLike, /, *, copy: bool = True, casting: str = 'unsafe') -> Array:
        """Return the values in another dtype, see vg.astype."""
    def ravel(self, order: str = 'C') -> Array:
        """Return the elements along one axis, see vg.ravel."""
    def flatten(self, order: str = 'C') -> Array:
        """Return a copy of the elements, in C order or another one, along one axis; see vg.ravel."""
    def fill(self, value: Scalar) -> None:
        """Write a scalar to every element. OverflowError: the dtype cannot hold it."""
    def clip(self, min: Operand | None = None, max: Operand | None = None, out: Array | None = None) -> Array:
        """Return the elements within bounds, see vg.clip."""
    def round(self, decimals: int = 0, out: Array | None = None) -> Array:
        """Return the nearest integers, see vg.round."""
    def var(self, axis: Axis = None, dtype: DTypeLike | None = None, out: Array | None = None, ddof: float = 0, keepdims: bool = False, *, where: ArrayLike = True, mean: ArrayLike | None = None, correction: float | None = None) -> Array:
        """Return the variance, see vg.var."""
    def std(self, axis: Axis = None, dtype: DTypeLike | None = None, out: Array | None = None, ddof: float = 0, keepdims: bool = False, *, where: ArrayLike = True, mean: ArrayLike | None = None, correction: float | None = None) -> Array:
        """Return the standard deviation, see vg.std."""
    def squeeze(self, axis: Axis = None) -> Array:
        """Return a view without axes of length 1, see vg.squeeze."""
    def dot(self, other: Operand, /, out: Array | None = None) -> Array:
        """Return the product with another array, see vg.dot."""
    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None) -> Array:
        """Return the sums of the diagonals, see vg.trace."""
    def swapaxes(self, axis1: int, axis2: int, /) -> Array:
        """Return a view with two axes exchanged, see vg.swapaxes."""
    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """Return the diagonals, see vg.diagonal."""
    def repeat(self, repeats: ArrayLike, /, axis: int | None = None) -> Array:
        """Return every element repeated, see vg.repeat."""
    def nonzero(self) -> tuple[Array, ...]:
        """Return where elements are not 0, see vg.nonzero."""
    def cumsum(self, axis: int | None = None, dtype: DTypeLike | None = None, out: Array | None = None) -> Array:
        """Return the sums up to each element, see vg.cumsum."""
    def cumprod(self, axis: int | None = None, dtype: DTypeLike | None = None, out: Array | None = None) -> Array:
        """Return the products up to each element, see vg.cumprod."""
    def take(self, indices: ArrayLike, axis: int | None = None, out: Array | None = None, mode: str = 'raise') -> Array:
        """Return the elements at indices, see vg.take."""
    def put(self, indices: ArrayLike, values: ArrayLike, mode: str = 'raise') -> None:
        """Write values at indices into the elements in a row, see vg.put."""
    def compress(self, condition: ArrayLike, axis: int | None = None) -> Array:
        """Return the parts where a condition is true, see vg.compress."""
    def choose(self, choices: Sequence[Operand], out: Array | None = None, mode: str = 'raise') -> Array:
        """Return elements of the choices that the elements are the indices of, see vg.choose."""
    def sort(self, axis: int = -1, kind: str | None = None, *, descending: bool = False, stable: bool = True) -> None:
        """Put the elements in order along an axis, in place, see vg.sort."""
    def argsort(self, axis: int = -1, kind: str | None = None, *, descending: bool = False, stable: bool = True) -> Array:
        """Return the indices that put the elements in order, see vg.argsort."""
    def searchsorted(self, v: ArrayLike, side: str = 'left', sorter: ArrayLike | None = None) -> Array:
        """Return before which elements those of v keep the order, see vg.searchsorted."""
    def partition(self, kth: int | Sequence[int], axis: int = -1) -> None:
        """Put the kth elements at their places in order, in place, see vg.partition."""
    def argpartition(self, kth: int | Sequence[int], axis: int = -1) -> Array:
        """Return the indices of what partition gives, see vg.argpartition."""
    @property
    def flat(self) -> Any:
        """The elements in C order, to be indexed by one number, written to and iterated over."""
    @flat.setter
    def flat(self, value: Any) -> None: ...
    @property
    def flags(self) -> Any:
        """Facts about the memory: c_contiguous, f_contiguous, aligned, writeable; to be read only."""
    def tofile(self, fid: str | os.PathLike[str] | IO[bytes], sep: str = '', format: str = '%s') -> None:
        """Write the elements to a file in C order, as bytes or as text with `sep` in between."""
    def dumps(self) -> bytes:
        """Return the array pickled, as bytes; see pickle.dumps."""
    def dump(self, file: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the array pickled to a file: a path, or a file that is open for bytes."""
    def __add__(self, other: Operand) -> Array: ...
    def __sub__(self, other: Operand) -> Array: ...
    def __mul__(self, other: Operand) -> Array: ...
    def __truediv__(self, other: Operand) -> Array: ...
    def __eq__(self, other: Any) -> Array: ...  # type: ignore[override]
    def __ne__(self, other: Any) -> Array: ...  # type: ignore[override]
    def __lt__(self, other: Operand) -> Array: ...
    def __le__(self, other: Operand) -> Array: ...
    def __gt__(self, other: Operand) -> Array: ...
    def __ge__(self, other: Operand) -> Array: ...
    def __floordiv__(self, other: Operand) -> Array: ...
    def __mod__(self, other: Operand) -> Array: ...
    def __lshift__(self, other: Operand) -> Array: ...
    def __rshift__(self, other: Operand) -> Array: ...
    def __and__(self, other: Operand) -> Array: ...
    def __or__(self, other: Operand) -> Array: ...
    def __xor__(self, other: Operand) -> Array: ...
