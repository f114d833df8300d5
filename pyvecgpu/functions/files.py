"""Arrays in files, NumPy's own: .npy with one array, .npz with several by name.

bfloat16 is written as NumPy writes that of ml_dtypes, as two bytes of no known type, and such are
read as bfloat16. Pickles are neither written nor read. What is written under a path is there as a
whole, or what was there before still is.
"""

import errno
import io
import math
import os
import struct

import numpy as np
from numpy.lib import format as npy

from ..array import Array
from ..dtypes import bfloat16, host_dtype
from .arguments import host_array, is_host
from .creation import asarray
from .values import to_host

__all__ = ["load", "save", "savez", "savez_compressed"]

_ZIP = b"PK"  # what an .npz begins with

_END_BYTES = 22  # of the last record of a .zip file
_UNTOLD = 0xFFFF  # its number of entries if they are more


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


class Loaded(dict):
    """The Arrays of an .npz file by their names; all are read, so that nothing is left open."""

    @property
    def files(self):
        """The names, as NumPy's NpzFile has them."""
        return [*self]

    def close(self):
        """Do nothing, where NumPy closes the file."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def load(file, /, *, device=None):
    """Return the Array in a file, or of several a dict of Arrays by name, with NumPy's `files`.

    file: a path, or a file that is open for bytes. device: where they shall be. OSError: it cannot
    be read. ValueError: it is no such file, or holds pickles. TypeError: a dtype that arrays cannot
    have. ImportError: bfloat16 without ml_dtypes.

    >>> vg.save("x.npy", vg.asarray([1, 2]))
    >>> vg.load("x.npy").tolist()
    [1, 2]
    """
    if not hasattr(file, "read"):
        with open(os.fspath(file), "rb") as stream:
            return load(stream, device=device)
    start = file.read(len(_ZIP))
    file.seek(-len(start), os.SEEK_CUR)
    if start == _ZIP:
        name = getattr(file, "name", "the file")
        return Loaded(_arrays("load", name, unpacked("load", file), device))
    import tokenize

    try:
        return _array(np.load(file, allow_pickle=False), device)
    except EOFError as error:
        raise ValueError(f"load: the file is empty or cut off: {error}") from None
    except (SyntaxError, tokenize.TokenError) as error:  # NumPy reads headers of Python 2, too
        raise ValueError(f"load: the file has a damaged header: {error}") from None


def read_npz(caller, path):
    """Return {name: ndarray} of an .npz file. ValueError: damaged, or it promises too much."""
    with opened(caller, path) as stream:
        return unpacked(caller, stream)


def opened(caller, path):
    """Open a file to read. ValueError: a pipe or a device, which may never end."""
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise ValueError(f"{caller}: {path} is no file that could have arrays in it")
    return open(path, "rb")


def unpacked(caller, stream):
    """The same of an open file."""
    import tokenize
    import zipfile
    import zlib

    name = getattr(stream, "name", "the file")
    kinds = (EOFError, KeyError, MemoryError, RuntimeError, TypeError, ValueError, struct.error)
    kinds += (SyntaxError, tokenize.TokenError)  # NumPy reads headers of Python 2, too
    try:
        with zipfile.ZipFile(stream) as file:
            return _entries(file)
    except (*kinds, zipfile.BadZipFile, zlib.error) as error:  # encrypted and packed anew, too
        raise ValueError(f"{caller}: {name} is no .npz, or damaged: {error}") from None
    except OSError as error:
        if error.errno != errno.EINVAL:  # of a place beyond what a file can have
            raise
        raise ValueError(f"{caller}: {name} is damaged: {error}") from None


def _entries(file):
    found, entries = {}, file.infolist()
    promised = _entry_count(file.fp)
    if promised not in (len(entries), _UNTOLD):
        raise ValueError(f"it promises {promised} entries, and has {len(entries)}")
    for entry in entries:
        name = entry.filename.removesuffix(".npy")
        if name in found or name == entry.filename:
            raise ValueError(f"it has {entry.filename!r}, which is no array, or there twice")
        with file.open(entry) as stream:  # the header first: no memory for more than there is
            version = npy.read_magic(stream)
            read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
            shape, _, dtype = read(stream)
            if dtype.hasobject:
                raise ValueError(f"{name} has pickles in it")
            promised = stream.tell() + math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or promised != entry.file_size:
            raise ValueError(f"{name} is of {entry.file_size} bytes, and promises {promised}")
        with file.open(entry) as stream:
            found[name] = npy.read_array(stream, allow_pickle=False)
    return found


def _entry_count(stream):
    """Return how many entries the end of a .zip file promises: a comment may have swallowed some.

    PKWARE's APPNOTE.TXT, 4.3.16: the last record begins with PK, 5, 6, has 22 bytes and a comment.
    """
    stream.seek(0, os.SEEK_END)
    stream.seek(max(0, stream.tell() - _END_BYTES - 0xFFFF))
    data = stream.read()
    return struct.unpack_from("<H", data, data.rfind(b"PK\5\6") + 10)[0]


def _array(values, device):
    if values.dtype.kind == "V" and values.dtype.itemsize == 2 and values.dtype.names is None:
        values = values.view(host_dtype(bfloat16))
    return asarray(values, device=device)


def _arrays(caller, path, found, device):
    """Return {name: Array} of ndarrays by name. TypeError: a dtype that arrays cannot have."""
    arrays = {}
    for name, values in found.items():
        try:
            arrays[name] = _array(values, device)
        except TypeError as error:
            raise TypeError(f"{caller}: {path} has {name!r}: {error}") from None
    return arrays


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
            if os.path.exists(path):  # who may read the old one may read the new one
                os.chmod(beside, os.stat(path).st_mode & 0o7777)
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())  # else a name without its content may outlive a crash
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
