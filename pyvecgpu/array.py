"""vg.Array: values on a device.

One class for all devices: `backend` computes (backends/__init__.py), `data` is what it computes on
and releases what it owns when it goes.
The class says what an Array is and knows no function; methods.py binds operators and methods to it.
"""

from functools import partial


class Array:
    """Values of one dtype in a rectangular shape on one device.

    Make one with vg.asarray, vg.zeros, vg.ones, vg.full, vg.empty or vg.arange. Slices, reshapes
    and transposes are views of the same memory. An operation of a device returns before it is done;
    reading values (numpy, item, tolist, print) waits for it.
    """

    __slots__ = ("__weakref__", "_description", "_node", "backend", "data")
    __hash__ = None  # == is elementwise

    def __new__(cls, *args, **kwargs):
        raise TypeError("make an Array with vg.asarray(values) or vg.zeros(shape)")

    @property
    def _layout(self):
        """(dtype, shape, strides in elements), asked for once."""
        try:
            return self._description
        except AttributeError:
            self._description = self.backend.describe(self.data)
            return self._description

    @property
    def shape(self):
        """Lengths of the axes, a tuple."""
        return self._layout[1]

    @property
    def dtype(self):
        """The dtype of the elements: NumPy's, or pyvecgpu.bfloat16."""
        return self._layout[0]

    @property
    def strides(self):
        """Bytes from one element to the next along each axis, a tuple, as in NumPy."""
        dtype, _, strides = self._layout
        return tuple([stride * dtype.itemsize for stride in strides])

    @property
    def device(self):
        """The Device that holds the values."""
        return self.backend.device

    @property
    def ndim(self):
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self):
        """Number of elements."""
        size = 1
        for length in self.shape:
            size *= length
        return size

    @property
    def itemsize(self):
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self):
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def _version(self):
        """A number that every write to this Array's memory changes, through whichever view."""
        return self.backend.version(self.data)


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
    array.data = data
    return array
