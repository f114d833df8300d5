"""The C loops that a GPU is compared with: loops.c, compiled when they are needed."""

from ctypes import c_double, c_int, c_int64, c_void_p
from pathlib import Path

from .. import compiled

ARRAYS = [c_int64, c_void_p, c_void_p, c_void_p]


class Loops:
    """The functions of loops.c. OSError: they cannot be compiled here, and why."""

    def __init__(self, cores):
        self.cores = cores
        self.library = library = compiled.load_c(Path(__file__).with_name("loops.c"))
        for name in ("add", "multiply"):
            getattr(library, f"{name}_on_one_core").argtypes = [*ARRAYS, c_int64]
            getattr(library, f"{name}_on_all_cores").argtypes = [*ARRAYS, c_int64, c_int]
        library.fill.argtypes = [c_int64, c_void_p, c_double, c_int]
        library.triad.argtypes = [*ARRAYS, c_double, c_int]
        library.multiply_add_work.restype = c_int64
        library.multiply_add.argtypes, library.multiply_add.restype = [c_int64, c_int], c_double

    def call(self, name, all_cores):
        """Return a function (a, b, out, calls) of arrays in C order; name: "add", "multiply"."""
        function = getattr(self.library, f"{name}_on_{'all_cores' if all_cores else 'one_core'}")
        threads = [self.cores] if all_cores else []
        for_name = {"add": lambda a: a.size, "multiply": len}[name]

        def run(a, b, out, calls):
            function(for_name(a), a.ctypes.data, b.ctypes.data, out.ctypes.data, calls, *threads)

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
