"""Arrays written as indices, such as mgrid[0:3, 0:4] and r_[1:4, 0], and indices one by one.

They are made on the current device; r_ and c_ put them beside the Arrays that they are given.
"""

import numpy as np

from ..array import Array
from ..dtype_queries import result_type
from .arguments import is_host, is_scalar
from .creation import asarray, full
from .joining import concat, stack
from .layout import as_array, astype, broadcast_arrays, permute_dims, reshape, swapaxes
from .ranges import arange, linspace
from .values import readable

__all__ = ["c_", "index_exp", "mgrid", "ndenumerate", "ndindex", "ogrid", "r_", "s_"]

s_ = np.s_  # slices as objects: NumPy's own
index_exp = np.index_exp
ndindex = np.ndindex  # tuples of ints: NumPy's own


def ndenumerate(x, /):
    """Return an iterator of (index, value) over an array's elements, which are read once, at first.

    >>> [index for index, value in vg.ndenumerate(vg.asarray([[1, 0], [0, 4]])) if value]
    [(0, 0), (1, 1)]
    """
    array, _ = as_array("ndenumerate", x)
    values = readable(array).copy()
    return zip(np.ndindex(values.shape), values.ravel().tolist(), strict=True)


def _line(part, name):
    """Return the numbers of a slice: start, stop and step, or, of a step 3j, three to stop."""
    if not isinstance(part, slice):
        raise TypeError(f"{name} takes slices, not {type(part).__name__}")
    start = 0 if part.start is None else part.start
    if part.stop is None:
        raise ValueError(f"{name}: a slice needs a stop")
    if isinstance(part.step, complex):
        return linspace(start, part.stop, int(abs(part.step)))
    return arange(start, part.stop, 1 if part.step is None else part.step)


class _Grid:
    """mgrid and ogrid: coordinates along each axis of a grid, whole or along their axis alone."""

    def __init__(self, name, sparse):
        self._name, self._sparse = name, sparse

    def __repr__(self):
        return f"<{self._name}: index it with slices>"

    def __getitem__(self, key):
        if not isinstance(key, tuple):
            return _line(key, self._name)
        lines = [_line(part, self._name) for part in key]
        if not lines:
            raise ValueError(f"{self._name}: there is no slice")
        dtype = result_type(*lines)
        shapes = [[-1 if i == j else 1 for j in range(len(lines))] for i in range(len(lines))]
        lines = [
            reshape(astype(line, dtype, copy=False), shape)
            for line, shape in zip(lines, shapes, strict=True)
        ]
        return tuple(lines) if self._sparse else stack(broadcast_arrays(*lines))


class _Joined:
    """r_ and c_: arrays, numbers and slices in a row, joined along an axis."""

    def __init__(self, name, axis, ndmin, place):
        self._name, self._axis, self._ndmin, self._place = name, axis, ndmin, place

    def __repr__(self):
        return f"<{self._name}: index it with arrays, numbers and slices>"

    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        axis, ndmin, place = self._axis, self._ndmin, self._place
        if key and isinstance(key[0], str):
            axis, ndmin, place = self._directive(key[0], axis, ndmin, place)
            key = key[1:]
        if not key:
            raise ValueError(f"{self._name}: there is nothing to join")
        device = next((x.device for x in key if isinstance(x, Array)), None)
        parts = [self._part(x, ndmin, place, device) for x in key]
        dtype = result_type(*parts)
        shape = (1,) * max(ndmin, 1)
        joined = [full(shape, x, dtype=dtype, device=device) if is_scalar(x) else x for x in parts]
        return concat([astype(x, dtype, copy=False) for x in joined], axis=axis)

    def _directive(self, text, axis, ndmin, place):
        try:
            numbers = [int(number) for number in text.split(",")]
        except ValueError:
            raise ValueError(
                f"{self._name}: {text!r} is not of the kind '0,2,0'; there are no matrices"
            ) from None
        if len(numbers) > 3:
            raise ValueError(f"{self._name}: {text!r} has more than three numbers")
        given = dict(enumerate(numbers))
        return given.get(0, axis), given.get(1, ndmin), given.get(2, place)

    def _part(self, x, ndmin, place, device):
        """Return one part with ndmin dimensions or more, a Python scalar as it is."""
        if isinstance(x, str):
            raise ValueError(f"{self._name}: a text is the first that is given")
        if is_scalar(x):
            return x
        if isinstance(x, slice):
            line = asarray(_line(x, self._name), device=device)
            line = reshape(line, (1,) * (ndmin - 1) + line.shape)
            return swapaxes(line, -1, place) if ndmin > 1 and place != -1 else line
        if not isinstance(x, (Array, list, tuple)) and not is_host(x):
            raise TypeError(f"{self._name} takes arrays, numbers and slices, not {x!r}")
        array = asarray(x, device=None if isinstance(x, Array) else device)
        missing = ndmin - array.ndim
        if array.ndim == 0:
            array, missing = reshape(array, (1,) * max(ndmin, 1)), 0
        if missing <= 0:
            return array
        array = reshape(array, (1,) * missing + array.shape)
        if place == -1:
            return array
        first = place if place >= 0 else place + missing + 1
        axes = list(range(ndmin))
        return permute_dims(array, axes[:first] + axes[missing:] + axes[first:missing])


mgrid = _Grid("mgrid", False)
ogrid = _Grid("ogrid", True)
r_ = _Joined("r_", 0, 1, -1)
c_ = _Joined("c_", -1, 2, 0)
