"""Files with data: IDX, as MNIST's are, CSV, .npz, and text.

A file that is damaged, cut off or something else is a ValueError, one that cannot be opened an
OSError. Nothing is unpickled, and no memory is taken for more than a file has.
"""

import gzip
import math
import os
import zlib
from numbers import Integral

import numpy as np

from .. import functions as vg
from ..dtypes import bfloat16, get_default_dtype, parse_dtype
from ..functions.files import _arrays, read_npz

_IDX_DTYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_PIECE = 1 << 22
_GZIP = b"\x1f\x8b"
_DAMAGES = (EOFError, zlib.error, gzip.BadGzipFile)


def load_idx(path, *, device=None):
    """Return the Array in an IDX file, gzip's or plain, in the dtype and shape that it names.

    ValueError: no such file, cut off, or longer than its header says.

    >>> with open("labels.idx", "wb") as file:
    ...     size = file.write(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
    >>> vg.data.load_idx("labels.idx").tolist()
    [7, 8, 9]
    """
    with open(path, "rb") as plain:
        packed = plain.read(2) == _GZIP
        plain.seek(0)
        try:
            values = _read_idx(gzip.GzipFile(fileobj=plain) if packed else plain)
        except (*_DAMAGES, ValueError) as error:
            raise ValueError(f"load_idx: {os.fspath(path)}: {error}") from None
    return vg.asarray(values, device=device)


def _read_idx(file):
    head = _exactly(file, 4, "its header")
    if head[:2] != b"\0\0" or head[2] not in _IDX_DTYPES:
        raise ValueError(f"no IDX file: it begins with {head.hex(' ')}")
    shape = np.frombuffer(_exactly(file, 4 * head[3], "its shape"), ">u4").tolist()
    dtype = np.dtype(_IDX_DTYPES[head[2]])
    values = _exactly(file, math.prod(shape) * dtype.itemsize, f"values of the shape {shape}")
    if file.read(1):
        raise ValueError(f"there is more in it than values of the shape {shape}")
    values = np.frombuffer(values, dtype).reshape(shape)
    return values.astype(dtype.newbyteorder("="), copy=False)


def _exactly(file, count, what):
    """Return the next bytes, read in pieces, as a header may promise what is not there."""
    found = bytearray()
    while len(found) < count:
        piece = file.read(min(_PIECE, count - len(found)))
        if not piece:
            raise ValueError(f"it ends after {len(found)} of {count} bytes for {what}")
        found += piece
    return bytes(found)


def load_csv(path, *, delimiter=",", skiprows=0, usecols=None, dtype=None, device=None):
    r"""Return the numbers of a text file, an Array of shape (rows, columns).

    skiprows: lines before the numbers, such as a header. usecols: the numbers of the columns that
    are wanted. dtype: None is the default float. ValueError: a line that is not of numbers, of
    another length, or no line at all. TypeError: a dtype that arrays cannot have.

    >>> with open("data.csv", "w") as file:
    ...     size = file.write("1,2\n3,4\n")
    >>> vg.data.load_csv("data.csv").tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    options = {"delimiter": delimiter, "skiprows": skiprows, "usecols": usecols, "ndmin": 2}
    dtype = get_default_dtype() if dtype is None else parse_dtype(dtype)
    read = "float64" if dtype is bfloat16 else dtype
    with open(path, encoding="utf-8-sig", newline=None) as file:
        try:
            if not any(line.strip() for line in _after(file, skiprows)):
                raise ValueError("there are no numbers in it")
            file.seek(0)
            if file.read(1) != "\ufeff":
                file.seek(0)
            values = np.loadtxt(file, read, comments=None, quotechar='"', **options)
        except ValueError as error:
            raise ValueError(f"load_csv: {os.fspath(path)}: {error}") from None
    return vg.asarray(values, dtype=dtype, device=device)


def _after(file, count):
    for number, line in enumerate(file):
        if number >= count:
            yield line


def load_npz(path, names=None, *, device=None):
    """Return the arrays of an .npz file: a dict by name, or with `names` a tuple of those.

    Others than those may be of any dtype. ValueError: no such file, a damaged one, pickles in it,
    or a name that is not there. TypeError: a dtype that arrays cannot have.

    >>> np.savez("data.npz", x=[1, 2], y=[3.0])
    >>> x, y = vg.data.load_npz("data.npz", ("x", "y"))
    >>> x.tolist(), y.tolist()
    ([1, 2], [3.0])
    """
    path = os.fspath(path)
    found = read_npz("load_npz", path)
    if names is None:
        return _arrays("load_npz", path, found, device)
    names = list(names)
    lacking = [name for name in names if name not in found]
    if lacking:
        raise ValueError(f"load_npz: {path} has {sorted(found)}, and not {lacking}")
    arrays = _arrays("load_npz", path, {name: found[name] for name in names}, device)
    return tuple([arrays[name] for name in names])


class Characters:
    """The characters of a text, in order, and their numbers: the vocabulary of a model.

    >>> letters = vg.data.Characters("hello")
    >>> len(letters), letters.encode("hole").tolist()
    (4, [1, 3, 2, 0])
    """

    def __init__(self, text):
        self.characters = "".join(sorted(set(text)))
        self._numbers = {character: i for i, character in enumerate(self.characters)}

    def __len__(self):
        return len(self.characters)

    def __repr__(self):
        return f"Characters({self.characters!r})"

    def encode(self, text, *, device=None):
        """Return a text as an Array of int64. ValueError: a character that is not known.

        >>> vg.data.Characters("abc").encode("cab").tolist()
        [2, 0, 1]
        """
        try:
            values = [self._numbers[character] for character in text]
        except KeyError as error:
            raise ValueError(f"the vocabulary has no {error.args[0]!r}") from None
        return vg.asarray(np.array(values, np.int64), device=device)

    def decode(self, numbers):
        """Return the text of integers, an array's or a list's, or of one.

        ValueError: out of range. TypeError: no integers, or more than one row of them.

        >>> letters = vg.data.Characters("abc")
        >>> letters.decode(letters.encode("cab"))
        'cab'
        """
        values = numbers.tolist() if hasattr(numbers, "tolist") else numbers
        values = list(values) if hasattr(values, "__iter__") else [values]
        for value in values:
            if not isinstance(value, Integral):
                kind = type(value).__name__
                raise TypeError(f"Characters.decode takes integers in a row, and {kind} is none")
        if not all(0 <= value < len(self) for value in values):
            raise ValueError(f"a number that is none of the {len(self)} characters'")
        return "".join([self.characters[value] for value in values])


def load_text(path, vocabulary=None, *, encoding="utf-8", device=None):
    """Return a text as an Array of numbers, int64, and the Characters that they stand for.

    vocabulary: Characters to use; by default those of the text. ValueError: the text is in another
    encoding, empty, or has a character that the vocabulary lacks.

    >>> with open("text.txt", "w") as file:
    ...     size = file.write("abba")
    >>> numbers, letters = vg.data.load_text("text.txt")
    >>> numbers.tolist(), letters.decode(numbers)
    ([0, 1, 1, 0], 'abba')
    """
    try:
        with open(path, encoding=encoding) as file:
            text = file.read()
    except UnicodeDecodeError as error:
        raise ValueError(f"load_text: {os.fspath(path)}: {error}") from None
    if not text:
        raise ValueError(f"load_text: {os.fspath(path)} is empty")
    vocabulary = Characters(text) if vocabulary is None else vocabulary
    return vocabulary.encode(text, device=device), vocabulary
