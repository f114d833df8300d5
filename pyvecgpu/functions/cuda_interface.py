"""The CUDA array interface, version 3: how Numba, CuPy, torch, mpi4py and others see the memory of
a GPU's arrays, and how theirs is taken."""

import ctypes

import numpy as np

from ..array import Tracked, wrap
from ..device import Device
from ..dtypes import CODES, bfloat16, supported
from ..native import abi, capsules, library
from .arguments import parse_shape
from .dlpack import LEGACY, lend


def describe(array):
    """Return what a GPU's array says of its memory; see Array.__cuda_array_interface__."""
    if array.device.type != "cuda":
        raise AttributeError(
            f"an array on {array.device} is not in a GPU's memory: it has no "
            "__cuda_array_interface__; bring it there with .to('cuda')"
        )
    if type(array) is Tracked:
        raise RuntimeError("the CUDA array interface knows no gradients: use x.detach()")
    if array.dtype is bfloat16:
        raise AttributeError(
            "the CUDA array interface has no bfloat16; hand the array over by DLPack"
        )
    functions = array.backend.functions
    lend(array, LEGACY)
    return {
        "version": 3,
        "shape": array.shape,
        "typestr": array.dtype.str,
        "data": (
            functions.pvg_array_data(array.raw) if array.size else 0,
            bool(functions.pvg_array_is_readonly(array.raw)),
        ),
        "strides": None if functions.pvg_array_is_contiguous(array.raw) else array.strides,
        "stream": LEGACY,
    }


def taken(x):
    """Return an Array of the memory that an object with __cuda_array_interface__ shows.

    The object lives as long as the Array. TypeError: a dtype of no array, or a mask. ValueError:
    strides that are no multiples of the elements, memory of no GPU, a stream 0.
    """
    facts = x.__cuda_array_interface__
    if facts.get("mask") is not None:
        raise TypeError("__cuda_array_interface__: a mask would be lost")
    dtype = supported(np.dtype(facts["typestr"]))
    shape = parse_shape(tuple(facts["shape"]), dtype.itemsize)
    strides = facts.get("strides")
    if strides is not None and any(stride % dtype.itemsize for stride in strides):
        raise ValueError(f"__cuda_array_interface__: strides {strides} of {dtype} elements")
    if strides is not None and len(strides) != len(shape):
        raise ValueError(f"__cuda_array_interface__: shape {shape} with strides {strides}")
    pointer, readonly = facts["data"]
    backend = _device_of(pointer, 0 in shape).backend
    _follow(facts.get("stream"), backend)
    sizes = ctypes.c_int64 * len(shape)
    elements = None if strides is None else sizes(*[s // dtype.itemsize for s in strides])
    data = _wrapped(backend, x, pointer, CODES[dtype], sizes(*shape), elements)
    if readonly:  # as broadcast views are
        data = backend.functions.pvg_broadcast_to(data, len(shape), sizes(*shape))
    return wrap(backend, data)


def _device_of(pointer, is_empty):
    number = ctypes.c_int(0)
    loaded = library.load("cuda")
    if not is_empty and loaded.pvg_memory_device(pointer, number):
        library.raise_last_error(loaded)
    if number.value < 0:
        raise ValueError("__cuda_array_interface__: the address is not in the memory of a GPU")
    return Device(f"cuda:{number.value}")


def _follow(stream, backend):
    """Let work on a GPU wait for the stream that the interface names, if it names one."""
    if stream is None:
        return
    if stream == 0:
        raise ValueError("__cuda_array_interface__: stream 0 is none; 1 is the default stream")
    backend.check(backend.functions.pvg_stream_follow(stream, backend.device.index))


def _wrapped(backend, owner, pointer, code, shape, strides):
    """Return the memory as raw data, which holds a reference to its owner."""
    deleter = ctypes.cast(backend.library.pvg_python_release, abi.deleter)
    capsules.hold(owner)
    data = backend.functions.pvg_array_wrap(
        pointer, backend.device.index, code, len(shape), shape, strides, deleter, id(owner)
    )
    if not data:
        capsules.give_back(owner)
        backend.fail()
    return data
