"""The C loops that a GPU is compared with: loops.c, compiled when they are first needed."""

import functools
from ctypes import c_double, c_int, c_int64, c_void_p
from pathlib import Path

from . import compiled

# What each loop takes: so many sizes, then so many arrays, the result last.
TAKES = {"add": (1, 3), "sigmoid": (1, 2), "multiply": (3, 3), "layer": (3, 4)}


@functools.cache
def load():
    """Return (the compiled library, "") or (None, the reason) where they cannot be compiled."""
    try:
        library = compiled.load_c(Path(__file__).with_name("loops.c"))
    except OSError as error:
        return None, str(error).splitlines()[0]
    for name, (sizes, arrays) in TAKES.items():
        types = [c_int64] * sizes + [c_void_p] * arrays + [c_int64]
        getattr(library, name).argtypes = types
        if name in ("add", "multiply"):
            getattr(library, f"{name}_on_all_cores").argtypes = [*types, c_int]
    library.fill.argtypes = [c_int64, c_void_p, c_double, c_int]
    library.triad.argtypes = [c_int64, c_void_p, c_void_p, c_void_p, c_double, c_int]
    library.multiply_add_work.restype = c_int64
    library.multiply_add.argtypes, library.multiply_add.restype = [c_int64, c_int], c_double
    return library, ""


def bind(name, sizes, arrays):
    """Return (a function without arguments, "") that runs a loop on one core, or (None, why).

    `sizes` are its leading integers and `arrays` its float32 arrays in C order, the result last.
    """
    library, why = load()
    if library is None:
        return None, why
    function = getattr(library, name)

    def run():  # holds the arrays, of which C has only the addresses
        function(*sizes, *(array.ctypes.data for array in arrays), 1)

    return run, ""


class Loops:
    """The loops on one core and on all. OSError: they cannot be compiled here, and why."""

    def __init__(self, cores):
        self.cores = cores
        self.library, why = load()
        if self.library is None:
            raise OSError(why)

    def call(self, name, all_cores):
        """Return a function (a, b, out, calls) of arrays in C order; name: "add", "multiply"."""
        function = getattr(self.library, f"{name}_on_all_cores" if all_cores else name)
        threads = [self.cores] if all_cores else []

        def run(a, b, out, calls):
            sizes = [out.size] if name == "add" else [*out.shape, len(b)]
            function(*sizes, a.ctypes.data, b.ctypes.data, out.ctypes.data, calls, *threads)

        return run

    def fill(self, array, value):
        """Write a value to all elements of a float64 array, from all cores."""
        self.library.fill(array.size, array.ctypes.data, value, self.cores)

    def triad(self, a, b, c, scalar, cores):
        """Compute a = b + scalar * c on float64 arrays."""
        pointers = [array.ctypes.data for array in (a, b, c)]
        self.library.triad(a.size, *pointers, scalar, cores)

    def multiply_add(self, steps, cores):
        """Do multiply_add_work(steps, cores) operations; return a number that has to be 2."""
        return self.library.multiply_add(steps, cores)

    def multiply_add_work(self, steps, cores):
        return self.library.multiply_add_work() * steps * cores
