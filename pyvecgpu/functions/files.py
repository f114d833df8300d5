"""Arrays in files, NumPy's own: .npy with one array, .npz with several by name.

bfloat16 is written as NumPy writes that of ml_dtypes, as two bytes of no known type, and such are
read as bfloat16. Pickles are neither written nor read. What is written under a path is there as a
whole, or what was there before still is.
"""

import io
import os

import numpy as np

from ..array import Array
from ..dtypes import bfloat16, host_dtype
from .arguments import host_array, is_host
from .creation import asarray
from .values import to_host

__all__ = ["load", "save", "savez", "savez_compressed"]


def save(file, x, /):
    """Write an array to a file; see numpy.save.

    file: a path, to which .npy is added if it lacks it, or a file that is open for bytes. OSError:
    it cannot be written. ImportError: bfloat16 without ml_dtypes.

    >>> vg.save("x.npy", vg.asarray([1, 2]))
    >>> np.load("x.npy").tolist()
    [1, 2]
    """
    values = _values("save", x)
    _write(file, ".npy", lambda stream: np.save(stream, values, allow_pickle=False))


def savez(file, /, *arrays, **named):
    """Write several arrays to a file, by name, others as arr_0, arr_1, ...; see numpy.savez.

    file: as of save, with .npz. ValueError: a name twice.

    >>> vg.savez("both.npz", x=vg.asarray([1, 2]), y=vg.ones(2))
    >>> sorted(vg.load("both.npz"))
    ['x', 'y']
    """
    _save_several("savez", np.savez, file, arrays, named)


def savez_compressed(file, /, *arrays, **named):
    """Write several arrays to a compressed file; see savez.

    >>> vg.savez_compressed("small.npz", x=vg.zeros(1000))
    >>> vg.load("small.npz")["x"].shape
    (1000,)
    """
    _save_several("savez_compressed", np.savez_compressed, file, arrays, named)


def load(file, /, *, device=None):
    """Return the Array in a file, or of several a dict of Arrays by name.

    file: a path, or a file that is open for bytes. device: where they shall be. OSError: it cannot
    be read. ValueError: it is no such file, or holds pickles. TypeError: a dtype that arrays cannot
    have. ImportError: bfloat16 without ml_dtypes.

    >>> vg.save("x.npy", vg.asarray([1, 2]))
    >>> vg.load("x.npy").tolist()
    [1, 2]
    """
    try:
        found = np.load(file, allow_pickle=False)
    except EOFError as error:
        raise ValueError(f"load: the file is empty or cut off: {error}") from None
    if isinstance(found, np.ndarray):
        return _array(found, device)
    with found:
        return {name: _array(found[name], device) for name in found.files}


def _array(values, device):
    if values.dtype.kind == "V" and values.dtype.itemsize == 2 and values.dtype.names is None:
        values = values.view(host_dtype(bfloat16))
    return asarray(values, device=device)


def _values(name, x):
    """Return the values of an Array or a NumPy array. TypeError: another object."""
    if isinstance(x, Array):
        return to_host(x)
    if is_host(x):
        return host_array(x)
    raise TypeError(f"{name} takes arrays, not {type(x).__name__}; make one with asarray(...)")


def _save_several(name, function, file, arrays, named):
    found = {f"arr_{i}": _values(name, x) for i, x in enumerate(arrays)}
    for key, x in named.items():
        if key in found:
            raise ValueError(f"{name}: there are two arrays of the name {key!r}")
        found[key] = _values(name, x)
    # As a dict, for NumPy's own parameters are names, too.
    if {"file", "allow_pickle"} & found.keys():
        raise ValueError(f"{name}: NumPy cannot write arrays named 'file' or 'allow_pickle'")
    _write(file, ".npz", lambda stream: function(stream, **found))


def _write(file, suffix, write):
    """Call write(stream) for an open file, or for one that then takes the place of the path."""
    if hasattr(file, "write"):
        write(file)
        return
    path = os.fspath(file)
    if not isinstance(path, str):
        path = os.fsdecode(path)
    path = os.path.realpath(path if path.endswith(suffix) else path + suffix)
    if os.path.exists(path) and not os.path.isfile(path):
        _write_to_pipe(path, write)
        return
    folder, name = os.path.split(path)
    beside = os.path.join(folder, f".{name}.{os.urandom(8).hex()}")
    try:
        with open(beside, "xb") as stream:
            write(stream)
        os.replace(beside, path)
    except BaseException:
        if os.path.exists(beside):
            os.unlink(beside)
        raise


def _write_to_pipe(path, write):
    """Write to what cannot be replaced, and in which NumPy finds no position."""
    whole = io.BytesIO()
    write(whole)
    with open(path, "wb") as stream:
        stream.write(whole.getbuffer())
