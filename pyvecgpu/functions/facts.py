"""What Array.flat and Array.flags give: the elements in a row, and facts about their layout."""

from . import indexing
from .gathering import _in_a_row, _write_back
from .values import copied, readable


class Flat:
    """The elements of an Array in C order, as one row: to be indexed, written to, iterated over."""

    __slots__ = ("base",)

    def __init__(self, array):
        self.base = array

    def __repr__(self):
        return f"<the {len(self)} elements of an array in a row>"

    def __len__(self):
        return self.base.size

    def __iter__(self):
        return iter(readable(self.base).ravel().tolist())  # read once

    def __getitem__(self, key):
        if isinstance(key, tuple) and len(key) > 1:
            raise IndexError("the elements in a row take one index")
        return copied(indexing.get(_in_a_row(self.base), key))

    def __setitem__(self, key, value):
        if isinstance(key, tuple) and len(key) > 1:
            raise IndexError("the elements in a row take one index")
        row = _in_a_row(self.base)
        indexing.set(row, key, value)
        _write_back(row, self.base)

    def copy(self):
        return copied(_in_a_row(self.base))


class Flags:
    """Facts about an Array's memory, as NumPy names them; none of them can be set."""

    __slots__ = ("aligned", "c_contiguous", "f_contiguous", "writeable")

    def __init__(self, array):
        shape, strides, itemsize = array.shape, array.strides, array.itemsize
        self.c_contiguous = _without_gaps(shape[::-1], strides[::-1], itemsize)
        self.f_contiguous = _without_gaps(shape, strides, itemsize)
        self.aligned = True
        if array.backend.on_card:
            self.writeable = not array.backend.functions.pvg_array_is_readonly(array.raw)
        else:
            self.writeable = bool(array.raw.flags.writeable)

    contiguous = property(lambda self: self.c_contiguous)
    fnc = property(lambda self: self.f_contiguous and not self.c_contiguous)
    forc = property(lambda self: self.f_contiguous or self.c_contiguous)
    behaved = property(lambda self: self.aligned and self.writeable)

    def __getitem__(self, name):
        if not isinstance(name, str) or not hasattr(self, name.lower()) or name[0] == "_":
            raise KeyError(f"no such flag: {name!r}")
        return getattr(self, name.lower())

    def __repr__(self):
        return "\n".join(f"  {name.upper()} : {getattr(self, name)}" for name in self.__slots__)


def _without_gaps(shape, strides, step):
    """Return whether elements lie one after another, the first of the axes the fastest."""
    if 0 in shape:
        return True
    for length, stride in zip(shape, strides, strict=True):
        if length > 1 and stride != step:
            return False
        step *= length
    return True
