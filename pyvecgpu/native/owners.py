"""Owners of what the C library gives away: arrays, streams, events and graphs.

A function that returns a new handle returns it here as an instance of a ctypes class, whose
finaliser is the C function that drops the handle. ctypes makes the instance inside the call and
calls the finaliser itself, and a signal handler never runs there but between steps of Python code:
so wherever it raises, each handle has an owner and is released once, and the exception goes to the
caller. (A finaliser in Python would print what the handler raised, and lose it and the handle.)

A cycle's owners are finalised by the collector; if an object's __del__ then brings one back, it
holds NULL, which the library calls no array, and not a handle that is another's by now.

What this relies on is so in CPython 3.10 to 3.14: a restype derived from c_void_p gives an
instance, where c_void_p itself gives an int; an instance goes by value to a parameter of its class,
and by reference to a POINTER to it; instancemethod, which only Python's C interface makes, binds a
function of ctypes to an instance as a function of Python binds itself.
"""

import ctypes
from ctypes import POINTER, c_int, c_void_p

from .abi import FUNCTIONS, array, arrays, doubles, event, graph, int64s, ints, out, stream, value

KINDS = (array, stream, event, graph)
# Without argtypes ctypes passes owners, None, its own arrays and byref(...) as they are, and an int
# as a C int; to convert them first, to the same, is a quarter of the time of `a + b`. So functions
# of these have none. An array is an owner wherever they are called; a stream may also be an
# address, of which that would leave 32 bits. Where a handle is written to goes by byref.
PLAIN = {c_int, array, POINTER(array), arrays, out, value, int64s, ints, doubles}
# Numbers and handles that a function reads or writes are given to all others, too, as they are:
# packed bytes, byref(...), an array of ctypes or None.
_ANY = dict.fromkeys((arrays, int64s, ints, doubles), c_void_p)


class Functions:
    """The functions of the ABI table as attributes; `array`, `stream` ... are the owners' classes.

    A new handle is an owner, which is false if it is NULL. With out=True the functions that have
    that parameter are for calls with it: what they return is an int and owns nothing.
    """

    def __init__(self, cdll, owners, out=False):
        for kind, cls in owners.items():
            setattr(self, kind.__name__, cls)
        for name, row in FUNCTIONS.items():
            setattr(self, name, bind(cdll, name, row, owners, out))


def bind(cdll, name, row, owners, with_out):
    """Return a function of the ABI table; see Functions."""
    (restype, argtypes), function = row, cdll[name]
    pointers = {POINTER(kind): POINTER(cls) for kind, cls in owners.items()}
    classes = owners | pointers | {out: owners[array]}
    borrows = with_out and out in argtypes
    function.restype = c_void_p if borrows else classes.get(restype, restype)
    if not PLAIN.issuperset(argtypes):
        classes |= _ANY
        function.argtypes = [classes.get(kind, kind) for kind in argtypes]
    return function


def make_owners(cdll):
    """Return {class of abi.py: a subclass of it that owns what its instances point to}."""
    return {kind: make_owner(cdll, kind) for kind in KINDS}


def make_owner(cdll, kind):
    drop = cdll[f"pvg_{kind.__name__}_drop"]
    cls = type(kind)(kind.__name__, (kind,), {"__slots__": (), "__module__": __name__})
    drop.restype, drop.argtypes = None, [POINTER(cls)]  # nobody is there to be told its status
    cls.__del__ = method(drop)
    return cls


def method(function):
    """Return a method that is function(self), called without a step of Python code in CPython."""
    try:
        instancemethod = ctypes.pythonapi["PyInstanceMethod_New"]
    except AttributeError:  # another Python
        return lambda self: function(self)
    instancemethod.restype, instancemethod.argtypes = ctypes.py_object, [ctypes.py_object]
    return instancemethod(function)


def keep(owners):
    """From now on release nothing: what is alive goes with the process."""
    for cls in owners.values():
        del cls.__del__
