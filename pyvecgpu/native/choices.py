"""What a process chooses for all devices: the default float dtype and the precision of products.

A choice is kept here, as a code of the C library, and nowhere else in Python. Every library gets
all of them when it is loaded and each that is made later, so a call that says nothing means the
same on all devices.
"""

import threading

from .abi import DType, Option, Precision

_lock = threading.Lock()
_libraries = []
_codes = {
    Option.OPTION_DEFAULT_FLOAT: int(DType.FLOAT32),
    Option.OPTION_MATMUL_PRECISION: int(Precision.PRECISION_FLOAT32),
}

chosen = _codes.__getitem__  # the code that an Option has


def choose(option, code):
    """Make a code that of an Option, here and in every loaded library."""
    with _lock:
        for library in _libraries:
            library.set_option(option, code)
        _codes[option] = int(code)


def follow(library):
    """Give a library that was just loaded the choices made so far and, from now on, later ones."""
    with _lock:
        for option, code in _codes.items():
            library.set_option(option, code)
        _libraries.append(library)
