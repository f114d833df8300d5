"""Small C and CUDA sources of the benchmarks, compiled when a measurement needs them."""

import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

SHARED = ["-O3", "-shared"]


def find_nvcc():
    """Return the path of nvcc from $NVCC, PATH, $CUDA_HOME or /usr/local/cuda, or None."""
    homes = [os.environ.get("CUDA_HOME"), "/usr/local/cuda"]
    return _first(os.environ.get("NVCC"), "nvcc", *(f"{home}/bin/nvcc" for home in homes if home))


def find_cc():
    """Return the path of a C compiler from $CC or PATH, gcc before others, or None."""
    return _first(os.environ.get("CC"), "gcc", "cc", "clang")


def _first(*places):
    return next(filter(None, (shutil.which(place) for place in places if place)), None)


def load_cuda(source):
    """Compile a .cu file for this GPU; return it as a ctypes.CDLL. OSError: why not."""
    nvcc = find_nvcc()
    if nvcc is None:
        raise OSError("there is no nvcc on PATH, in $CUDA_HOME or in /usr/local/cuda")
    return _load(nvcc, ["-arch=native", "-cudart", "static", "-Xcompiler", "-fPIC"], source)


def load_c(source):
    """Compile a .c file for this CPU, with OpenMP; return it as a ctypes.CDLL. OSError: why not."""
    cc = find_cc()
    if cc is None:
        raise OSError("there is no C compiler: no gcc, cc or clang on PATH")
    return _load(cc, ["-march=native", "-fopenmp", "-fPIC"], source)


def _load(compiler, options, source):
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, source.stem + ".so")
        command = [compiler, *SHARED, *options, str(source), "-o", str(library)]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            why = run.stderr.strip().partition("\n")[0]
            raise OSError(f"{Path(compiler).name} did not compile {source.name}: {why}")
        return ctypes.CDLL(str(library))
