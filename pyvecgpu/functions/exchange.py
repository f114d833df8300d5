"""Arrays of other libraries, taken by DLPack, and other ways to make one of what others have."""

import numpy as np

from ..array import Array
from ..device import resolve
from ..dispatch import observed
from ..dtypes import float64, host_dtype, parse_dtype
from . import dlpack
from .arguments import from_host
from .creation import asarray
from .layout import contiguous, reshape, transfer
from .values import copied

__all__ = ["asanyarray", "ascontiguousarray", "from_dlpack", "frombuffer", "fromiter"]


def from_dlpack(x, /, *, device=None, copy=None):
    """Return an Array with the values of another library's array, by DLPack.

    The memory is shared where the Array is on the same device: on the CPU, or on the same GPU,
    whose work is then in the order of both libraries. copy: True always copies, False never does.
    device: None is the array's own. A simulated card gets a copy.
    BufferError: a copy is needed and copy is False, or the values are on a GPU that cannot be used
    here and their library does not bring them to the host. ValueError: a capsule that was taken
    before, or memory that cannot be used. TypeError: x has no __dlpack__, or a dtype of no array.

    >>> values = np.arange(3.0)
    >>> x = vg.from_dlpack(values, device="cpu")
    >>> values[0] = 9
    >>> x.tolist()
    [9.0, 1.0, 2.0]
    """
    if isinstance(x, Array):
        return _of_array(x, device, copy)
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack takes arrays with __dlpack__, not {type(x).__name__}")
    kind = int(x.__dlpack_device__()[0])
    gpu = dlpack.gpu_of(x)
    if device is None and gpu is None and kind == dlpack.GPU:
        raise BufferError(
            "from_dlpack: the values are on a GPU that pyvecgpu cannot use here; device='cpu' asks "
            "their library to copy them to the host"
        )
    target = (gpu or resolve("cpu")) if device is None else resolve(device)
    if gpu is not None and (kind == dlpack.GPU or target is gpu):
        return _given(dlpack.on_gpu(x, gpu), target, copy)
    is_near = kind != dlpack.GPU and target.type == "cpu"
    if copy is False and not is_near:
        raise BufferError(f"from_dlpack: values have to be copied to {target}, and copy is False")
    values = dlpack.on_host(x, bring=kind == dlpack.GPU)
    if target.type == "cpu" and not copy:
        return from_host(values, target.backend)
    return asarray(values, device=target)


def _of_array(x, device, copy):
    return _given(x, x.device if device is None else resolve(device), copy)


def _given(x, target, copy):
    """Return an Array, or what of it is on the target."""
    if copy is False and target is not x.device:
        raise BufferError(f"from_dlpack: {x.device} to {target} needs a copy, and copy is False")
    result = transfer(x, target)
    return copied(result) if copy and result is x else result


# NumPy's other ways to make an array of something -------------------------------------------------


def asanyarray(obj, /, dtype=None, *, device=None, copy=None):
    """Return asarray(obj): there are no subclasses of Array.

    >>> vg.asanyarray([1, 2]).tolist()
    [1, 2]
    """
    return asarray(obj, dtype, device=device, copy=copy)


def ascontiguousarray(obj, /, dtype=None, *, device=None):
    """Return asarray(obj) with its elements in C order without gaps, and at least one axis.

    >>> vg.ascontiguousarray(vg.ones((2, 3)).T).strides
    (8, 4)
    """
    is_plain = type(obj) is Array and dtype is device is None and not observed()
    if is_plain and not obj.backend.on_card and obj.raw.flags.c_contiguous and obj.raw.ndim:
        return obj
    array = contiguous(asarray(obj, dtype, device=device))
    return array if array.ndim else reshape(array, (1,))


def frombuffer(buffer, dtype=None, count=-1, offset=0, *, device=None):
    r"""Return a new 1-D Array of the bytes of an object, as numpy.frombuffer reads them.

    dtype: by default float64, as NumPy's. ValueError: not that many bytes. TypeError: no buffer of
    the host, such as an Array, or a dtype of no array.

    >>> vg.frombuffer(b"\x01\x02\x03", dtype="uint8").tolist()
    [1, 2, 3]
    """
    dtype = host_dtype(float64 if dtype is None else parse_dtype(dtype))
    if isinstance(buffer, Array):  # wherever it is, and whatever Python it is
        raise TypeError("frombuffer takes bytes of the host, not an Array: x.numpy() has them")
    return asarray(np.frombuffer(buffer, dtype, count, offset), device=device)


def fromiter(iterable, dtype, count=-1, *, device=None):
    """Return a new 1-D Array of the numbers that an iterable gives, `count` of them or all.

    ValueError: it gives fewer.

    >>> vg.fromiter((n * n for n in range(4)), "int32").tolist()
    [0, 1, 4, 9]
    """
    dtype = host_dtype(parse_dtype(dtype))
    return asarray(np.fromiter(iterable, dtype, count), device=device)
