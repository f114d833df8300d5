"""Python's C interface, as far as sharing memory with other libraries needs it: capsules of DLPack,
and references that the C library gives back.

A capsule's destructor and the deleter of an object's memory are functions of the C library: one in
Python would be called while Python goes down, and end the process by a signal.
"""

import ctypes
import functools
from ctypes import c_char_p, c_int, c_uint8, c_uint64, c_void_p, py_object

# Of a tensor of DLPack, by whether it has a version: the capsule's name and, once it was taken, the
# other; and where in the structure the dtype and the flags are.
NAMES = {True: b"dltensor_versioned", False: b"dltensor"}
_USED = {True: b"used_dltensor_versioned", False: b"used_dltensor"}
_TENSOR = {True: 32, False: 0}
_DTYPE, _FLAGS = 20, 24
IS_COPIED = 2  # a flag

BFLOAT16, UINT16 = (4, 16), (1, 16)  # code and bits of dtypes

_FOR_THE_LIBRARY = (
    *("Py_IsInitialized", "PyGILState_Ensure", "PyGILState_Release", "Py_DecRef"),
    *("PyCapsule_IsValid", "PyCapsule_GetPointer"),
)


def introduce(library):
    """Tell a library the functions that it calls of Python."""
    try:
        addresses = [ctypes.cast(ctypes.pythonapi[name], c_void_p) for name in _FOR_THE_LIBRARY]
    except AttributeError:  # another Python: its capsules and references are not given back
        return
    library.pvg_python(*addresses)


@functools.cache
def _function(name, restype, *argtypes):
    """Return a function of Python's C interface; a call that fails raises what it says."""
    function = ctypes.pythonapi[name]
    function.restype, function.argtypes = restype, argtypes
    return function


def new(pointer, versioned, library):
    """Return a capsule with a tensor of a library, which it deletes if nobody takes it."""
    make = _function("PyCapsule_New", py_object, c_void_p, c_char_p, c_void_p)
    return make(pointer, _kept(NAMES[versioned]), _destructor(library))


@functools.cache
def _destructor(library):
    return ctypes.cast(library.pvg_python_capsule, c_void_p)


def _kept(name):
    """The name, which is there as long as the process: a capsule has its address only."""
    if name not in _forever:
        _forever.add(name)
        hold(name)
    return name


_forever = set()


def hold(thing):
    """Add a reference to an object, which somebody who knows its address gives back."""
    _function("Py_IncRef", None, py_object)(thing)


def give_back(thing):
    """Take back the reference that `hold` has added."""
    _function("Py_DecRef", None, py_object)(thing)


def content(capsule):
    """Return (address of the tensor, whether it has a version); ValueError: not there any more."""
    is_valid = _function("PyCapsule_IsValid", c_int, py_object, c_char_p)
    for versioned, name in NAMES.items():
        if is_valid(capsule, name):
            get = _function("PyCapsule_GetPointer", c_void_p, py_object, c_char_p)
            return get(capsule, name), versioned
    raise ValueError("DLPack: this is no capsule with a tensor, or one that was taken before")


def mark(capsule, versioned, taken):
    """Say that the capsule's tensor is somebody else's now, or that it is not."""
    name = (_USED if taken else NAMES)[versioned]
    _function("PyCapsule_SetName", c_int, py_object, c_char_p)(capsule, _kept(name))


def dtype_of(capsule):
    """Return code and bits of the tensor's dtype, in DLPack's numbers; ValueError as `content`."""
    address, versioned = content(capsule)
    return tuple((c_uint8 * 2).from_address(address + _TENSOR[versioned] + _DTYPE))


def set_dtype(capsule, dtype):
    """Change the dtype of a tensor that is the caller's own."""
    address, versioned = content(capsule)
    (c_uint8 * 2).from_address(address + _TENSOR[versioned] + _DTYPE)[:] = dtype


def add_flag(capsule, flag):
    """Set a flag of a tensor that is the caller's own, if it has a version and so has flags."""
    address, versioned = content(capsule)
    if versioned:
        c_uint64.from_address(address + _FLAGS).value |= flag
