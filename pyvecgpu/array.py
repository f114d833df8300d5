"""vg.Array: values on a device.

One class for all devices: `backend` computes (backends/__init__.py), `raw` is what it computes on
and releases what it owns when it goes.
The class says what an Array is and knows no function; methods.py binds operators and methods to it.
"""

from functools import partial


class Array:
    """Values of one dtype in a rectangular shape on one device.

    Make one with vg.asarray, vg.zeros, vg.ones, vg.full, vg.empty or vg.arange. Slices, reshapes
    and transposes are views of the same memory. An operation of a device returns before it is done;
    reading values (numpy, item, tolist, print) waits for it.

    >>> x = vg.asarray([[1, 2, 3], [4, 5, 6]])
    >>> x.shape, x.dtype
    ((2, 3), dtype('int64'))
    >>> x[1, 1:] = 0
    >>> print(x * 10 + 1)
    [[11 21 31]
     [41  1  1]]
    """

    __slots__ = ("__weakref__", "_description", "_node", "backend", "raw")
    __hash__ = None  # == is elementwise

    def __new__(cls, *args, **kwargs):
        raise TypeError("make an Array with vg.asarray(values) or vg.zeros(shape)")

    @property
    def _layout(self):
        """(dtype, shape, strides in elements), asked for once."""
        # Not by an exception, which costs more than a small operation.
        found = getattr(self, "_description", None)
        if found is None:
            found = self._description = self.backend.describe(self.raw)
        return found

    @property
    def shape(self):
        """Lengths of the axes, a tuple.

        >>> vg.ones((2, 3)).shape
        (2, 3)
        """
        found = getattr(self, "_description", None)  # the short way: shapes are asked for often
        return self._layout[1] if found is None else found[1]

    @property
    def dtype(self):
        """The dtype of the elements: NumPy's, or pyvecgpu.bfloat16.

        >>> vg.asarray([1.5]).dtype, vg.asarray([1]).dtype
        (dtype('float32'), dtype('int64'))
        """
        found = getattr(self, "_description", None)
        return self._layout[0] if found is None else found[0]

    @property
    def strides(self):
        """Bytes from one element to the next along each axis, a tuple, as in NumPy.

        >>> x = vg.ones((2, 3))
        >>> x.strides, x.T.strides
        ((12, 4), (4, 12))
        """
        dtype, _, strides = self._layout
        return tuple([stride * dtype.itemsize for stride in strides])

    @property
    def device(self):
        """The Device that holds the values.

        >>> vg.ones(2, device="cpu").device
        Device('cpu')
        """
        return self.backend.device

    @property
    def ndim(self):
        """Number of axes.

        >>> vg.ones((2, 3)).ndim
        2
        """
        return len(self.shape)

    @property
    def size(self):
        """Number of elements.

        >>> vg.ones((2, 3)).size
        6
        """
        size = 1
        for length in self.shape:
            size *= length
        return size

    @property
    def itemsize(self):
        """Bytes of one element.

        >>> vg.ones(2, dtype="float16").itemsize
        2
        """
        return self.dtype.itemsize

    @property
    def nbytes(self):
        """Bytes of all elements.

        >>> vg.ones((2, 3)).nbytes
        24
        """
        return self.size * self.dtype.itemsize

    @property
    def _version(self):
        """A number that every write to this Array's memory changes, through whichever view."""
        return self.backend.version(self.raw)


class Tracked(Array):
    """An Array that gradients are recorded for; `_node` is where it stands in their graph.

    It has a class of its own so that the operators of all others need not ask whether they are
    tracked. An Array becomes one, and ceases to be, by its `__class__`.
    """

    __slots__ = ()


new = partial(object.__new__, Array)  # cheaper to call than what it stands for


def wrap(backend, data):
    """Return a new Array of what a backend gave as raw data; its exception if that is none."""
    if backend.on_card and not data:
        backend.fail()
    array = new()
    array.backend = backend
    array.raw = data
    return array
