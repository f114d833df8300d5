"""Numbers in text files and in files of bytes: NumPy reads and writes, Arrays are on the device.

dtype: one of arrays, by default float64 as in NumPy. device: where the result shall be.
"""

import io
import os

import numpy as np

from ..array import Array
from ..dtypes import bfloat16, float32, float64, host_dtype, parse_dtype
from .arguments import host_array, is_host, is_scalar, parse_int
from .creation import asarray
from .values import readable, to_host

__all__ = ["fromfile", "fromstring", "genfromtxt", "loadtxt", "savetxt"]


def loadtxt(
    fname, /, dtype=float64, comments="#", delimiter=None, converters=None, skiprows=0,
    usecols=None, unpack=False, ndmin=0, encoding=None, max_rows=None, *, quotechar=None,
    device=None,
):  # fmt: skip
    """Return the numbers in a text file, a row each line; see numpy.loadtxt.

    fname: a path, an open file, or lines. unpack: columns for rows. OSError: it cannot be read.
    ValueError: what is no number, rows of several lengths. TypeError: no dtype of arrays.

    >>> vg.loadtxt(["1 2", "3 4"], dtype="int64").tolist()
    [[1, 2], [3, 4]]
    """
    found = np.loadtxt(
        fname, _read_as(dtype), comments, delimiter, converters, skiprows, usecols, unpack, ndmin,
        encoding, max_rows, quotechar=quotechar,
    )  # fmt: skip
    return asarray(found, dtype, device=device)


def genfromtxt(
    fname, /, dtype=float64, comments="#", delimiter=None, skip_header=0, skip_footer=0,
    converters=None, missing_values=None, filling_values=None, usecols=None, *, autostrip=False,
    invalid_raise=True, max_rows=None, encoding=None, ndmin=0, device=None,
):  # fmt: skip
    """Return the numbers in a text file in which some are missing; see numpy.genfromtxt.

    fname: a path, an open file, or lines. filling_values: for what is missing, by default NaN, or
    -1 in integers. OSError: it cannot be read. ValueError: rows of several lengths. TypeError: no
    dtype of arrays.

    >>> vg.genfromtxt(["1,2", "3,"], delimiter=",", filling_values=0).tolist()
    [[1.0, 2.0], [3.0, 0.0]]
    """
    found = np.genfromtxt(
        fname, _read_as(dtype), comments, delimiter, skip_header, skip_footer, converters,
        missing_values, filling_values, usecols, autostrip=autostrip, invalid_raise=invalid_raise,
        max_rows=max_rows, encoding=encoding, ndmin=ndmin,
    )  # fmt: skip
    return asarray(found, dtype, device=device)


def savetxt(
    fname, X, /, fmt="%.18e", delimiter=" ", newline="\n", header="", footer="", comments="# ",
    encoding=None,
):  # fmt: skip
    """Write an array of one or two dimensions, or several rows, to a text file; see numpy.savetxt.

    fname: a path, to be compressed if it ends with .gz, or an open file. ValueError: more
    dimensions, a format that does not fit. OSError: it cannot be written.

    >>> vg.savetxt("table.txt", vg.asarray([[1, 2], [3, 4]]), fmt="%d")
    >>> vg.loadtxt("table.txt", dtype="int64").tolist()
    [[1, 2], [3, 4]]
    """
    values = _table(X)
    np.savetxt(fname, values, fmt, delimiter, newline, header, footer, comments, encoding)


def _table(X):
    """Return what is written as an ndarray."""
    if isinstance(X, Array):
        return readable(X)
    if isinstance(X, (list, tuple)):
        return np.asarray([_table(one) for one in X])
    if is_host(X):
        return host_array(X)
    if is_scalar(X):
        return X
    kind = type(X).__name__
    raise TypeError(f"savetxt takes arrays, not {kind}; make one with asarray(...)")


def fromfile(file, /, dtype=float64, count=-1, sep="", offset=0, *, device=None):
    """Return the elements in a file of bytes, or of numbers that `sep` is between.

    file: a path or an open file. count: how many, or -1 for all. offset: bytes to be left out in
    front. OSError: it cannot be read. ValueError: what is no number. TypeError: no dtype of arrays.

    >>> vg.asarray([1, 2, 3], dtype="int16").tofile("three.bin")
    >>> vg.fromfile("three.bin", "int16").tolist()
    [1, 2, 3]
    """
    found = np.fromfile(file, _bytes_as(dtype, sep), count, sep, offset=offset)
    return asarray(found, dtype, device=device)


def fromstring(string, /, dtype=float64, count=-1, *, sep, device=None):
    """Return the numbers in a text, which `sep` is between.

    count: how many, or -1 for all. ValueError: no `sep`, or what is no number; of bytes there is
    frombuffer. TypeError: no text, no dtype of arrays.

    >>> vg.fromstring("1, 2, 3", "int64", sep=",").tolist()
    [1, 2, 3]
    """
    if not isinstance(string, str):
        raise TypeError(f"fromstring takes a text, not {type(string).__name__}")
    if not isinstance(sep, str) or not sep:
        raise ValueError("fromstring: sep is what stands between numbers; see frombuffer")
    values = np.fromstring(string, _read_as(dtype), parse_int(count, "count"), sep=sep)
    return asarray(values, dtype, device=device)


def write_bytes(array, file, sep, format):
    """Write the elements of an Array as bytes or, with `sep` between, as text: Array.tofile."""
    values = readable(array) if sep else to_host(array)
    if hasattr(file, "write") and not _has_number(file):  # in memory: NumPy wants a file
        text = sep.join(format % x for x in values.ravel().tolist())
        file.write(values.tobytes() if not sep else text.encode())
    elif hasattr(file, "write"):
        values.tofile(file, sep, format)
    else:
        values.tofile(os.fspath(file), sep, format)


def _has_number(file):
    try:
        file.fileno()
    except (AttributeError, io.UnsupportedOperation):
        return False
    return True


def _read_as(dtype):
    """Return the dtype that NumPy reads text as."""
    dtype = parse_dtype(dtype)
    return np.dtype(float32) if dtype == bfloat16 else dtype


def _bytes_as(dtype, sep):
    return _read_as(dtype) if sep else host_dtype(parse_dtype(dtype))
