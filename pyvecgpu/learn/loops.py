"""The C loops that a lesson's kernel is compared with: loops.c, compiled when first needed."""

import functools
from ctypes import c_int64, c_void_p
from pathlib import Path

from ..bench import compiled


@functools.cache
def load():
    """Return (the compiled library, "") or (None, the reason) where there is no C compiler."""
    try:
        return compiled.load_c(Path(__file__).with_name("loops.c")), ""
    except OSError as error:
        return None, str(error).splitlines()[0]


def bind(name, sizes, arrays):
    """Return (a function without arguments, "") that runs a loop of loops.c once, or (None, why).

    `sizes` are its leading integers and `arrays` its float32 arrays in C order, the result last.
    """
    library, why = load()
    if library is None:
        return None, why
    function = library[name]

    def run():  # holds the arrays, of which C has only the addresses
        addresses = [c_void_p(array.ctypes.data) for array in arrays]
        function(*map(c_int64, sizes), *addresses)

    return run, ""
