"""Methods of vg.Array that are functions of the same name, which methods.py binds to the class."""

from . import functions
from .dtype_queries import can_cast
from .functions import arguments, facts, indexing, texts, values
from .short_views import flattened


class NamedMethods:
    """What is bound to Array, as it would stand in its class."""

    def astype(self, dtype, /, *, copy=True, casting="unsafe"):
        """Return the values in another dtype, see vg.astype.

        casting: which casts are allowed, see vg.can_cast. TypeError: this one is not.

        >>> vg.asarray([1.9, -1.9]).astype("int32").tolist()
        [1, -1]
        """
        if casting != "unsafe" and not can_cast(self.dtype, dtype, casting):
            raise TypeError(f"astype: {self.dtype} is not cast to {dtype} with casting={casting!r}")
        return functions.astype(self, dtype, copy=copy)

    def ravel(self, order="C"):
        """Return the elements along one axis, see vg.ravel.

        >>> vg.asarray([[1, 2], [3, 4]]).ravel().tolist()
        [1, 2, 3, 4]
        """
        result = flattened(self) if order == "C" else None
        return functions.ravel(self, order) if result is None else result

    def flatten(self, order="C"):
        """Return a copy of the elements, in C order or another one, along one axis; see vg.ravel.

        >>> x = vg.asarray([[1, 2], [3, 4]])
        >>> y = x.flatten()
        >>> y[0] = 9
        >>> x.tolist()
        [[1, 2], [3, 4]]
        """
        if order == "C":
            return functions.ravel(values.copied(self))
        return values.copied(functions.ravel(self, order))

    def fill(self, value):
        """Write a scalar to every element. OverflowError: the dtype cannot hold it.

        >>> x = vg.empty(3)
        >>> x.fill(2.5)
        >>> x.tolist()
        [2.5, 2.5, 2.5]
        """
        value = arguments.parse_scalar(value, "a value to fill with", complexes=True)
        indexing.set(self, ..., value)

    def clip(self, min=None, max=None, out=None):
        """Return the elements within bounds, see vg.clip.

        >>> vg.asarray([-3, 0, 7]).clip(-1, 5).tolist()
        [-1, 0, 5]
        """
        return functions.clip(self, min, max, out)

    def round(self, decimals=0, out=None):
        """Return the nearest integers, see vg.round.

        >>> vg.asarray([0.5, 1.5, 2.5]).round().tolist()
        [0.0, 2.0, 2.0]
        """
        return functions.round(self, decimals, out)

    def var(
        self,
        axis=None,
        dtype=None,
        out=None,
        ddof=0,
        keepdims=False,
        *,
        where=True,
        mean=None,
        correction=None,
    ):
        """Return the variance, see vg.var.

        >>> vg.asarray([1.0, 3.0]).var(ddof=1).item()
        2.0
        """
        options = {"where": where, "mean": mean, "correction": correction}
        return functions.var(self, axis, dtype, out, ddof, keepdims, **options)

    def std(
        self,
        axis=None,
        dtype=None,
        out=None,
        ddof=0,
        keepdims=False,
        *,
        where=True,
        mean=None,
        correction=None,
    ):
        """Return the standard deviation, see vg.std.

        >>> vg.asarray([[1.0, 3.0], [5.0, 5.0]]).std(axis=1).tolist()
        [1.0, 0.0]
        """
        options = {"where": where, "mean": mean, "correction": correction}
        return functions.std(self, axis, dtype, out, ddof, keepdims, **options)

    def squeeze(self, axis=None):
        """Return a view without axes of length 1, see vg.squeeze.

        >>> vg.ones((1, 3, 1)).squeeze().shape
        (3,)
        """
        return functions.squeeze(self, axis)

    def dot(self, other, /, out=None):
        """Return the product with another array, see vg.dot.

        >>> vg.asarray([[1, 2], [3, 4]]).dot(vg.asarray([1, 10])).tolist()
        [21, 43]
        """
        return functions.dot(self, other, out)

    def trace(self, offset=0, axis1=0, axis2=1, dtype=None):
        """Return the sums of the diagonals, see vg.trace.

        >>> vg.asarray([[1, 2], [3, 4]]).trace().item()
        5
        """
        if dtype is None:
            return functions.trace(self, offset, axis1, axis2)
        return functions.trace(self, offset, axis1, axis2, dtype)

    def swapaxes(self, axis1, axis2, /):
        """Return a view with two axes exchanged, see vg.swapaxes.

        >>> vg.ones((2, 3, 4)).swapaxes(0, 2).shape
        (4, 3, 2)
        """
        return functions.swapaxes(self, axis1, axis2)

    def diagonal(self, offset=0, axis1=0, axis2=1):
        """Return the diagonals, see vg.diagonal.

        >>> vg.asarray([[1, 2], [3, 4]]).diagonal().tolist()
        [1, 4]
        """
        return functions.diagonal(self, offset, axis1, axis2)

    def repeat(self, repeats, /, axis=None):
        """Return every element repeated, see vg.repeat.

        >>> vg.asarray([1, 2]).repeat(2).tolist()
        [1, 1, 2, 2]
        """
        return functions.repeat(self, repeats, axis)

    def nonzero(self):
        """Return where elements are not 0, see vg.nonzero.

        >>> (indices,) = vg.asarray([0, 5, 6]).nonzero()
        >>> indices.tolist()
        [1, 2]
        """
        return functions.nonzero(self)

    def cumsum(self, axis=None, dtype=None, out=None):
        """Return the sums up to each element, see vg.cumsum.

        >>> vg.asarray([[1, 2], [3, 4]]).cumsum(axis=1).tolist()
        [[1, 3], [3, 7]]
        """
        return functions.cumsum(self, axis, dtype, out)

    def cumprod(self, axis=None, dtype=None, out=None):
        """Return the products up to each element, see vg.cumprod.

        >>> vg.asarray([1, 2, 3, 4]).cumprod().tolist()
        [1, 2, 6, 24]
        """
        return functions.cumprod(self, axis, dtype, out)

    def take(self, indices, axis=None, out=None, mode="raise"):
        """Return the elements at indices, see vg.take.

        >>> vg.asarray([10, 20, 30]).take([2, 0]).tolist()
        [30, 10]
        """
        return functions.take(self, indices, axis, out, mode)

    def put(self, indices, values, mode="raise"):
        """Write values at indices into the elements in a row, see vg.put.

        >>> x = vg.asarray([1, 2, 3])
        >>> x.put([0, 2], [10, 30])
        >>> x.tolist()
        [10, 2, 30]
        """
        functions.put(self, indices, values, mode)

    def compress(self, condition, axis=None):
        """Return the parts where a condition is true, see vg.compress.

        >>> vg.asarray([1, 2, 3]).compress([True, False, True]).tolist()
        [1, 3]
        """
        return functions.compress(condition, self, axis)

    def choose(self, choices, out=None, mode="raise"):
        """Return elements of the choices that the elements are the indices of, see vg.choose.

        >>> vg.asarray([0, 1, 0]).choose([vg.asarray([1, 2, 3]), 10]).tolist()
        [1, 10, 3]
        """
        return functions.choose(self, choices, out, mode)

    def sort(self, axis=-1, kind=None, *, descending=False, stable=True):
        """Put the elements in order along an axis, in place, see vg.sort.

        >>> x = vg.asarray([3, 1, 2])
        >>> x.sort()
        >>> x.tolist()
        [1, 2, 3]
        """
        functions.sorting.sort_in_place(self, axis, kind, descending)

    def argsort(self, axis=-1, kind=None, *, descending=False, stable=True):
        """Return the indices that put the elements in order, see vg.argsort.

        >>> vg.asarray([30, 10, 20]).argsort().tolist()
        [1, 2, 0]
        """
        if kind is None and descending is False:
            return functions.argsort(self, axis)
        return functions.argsort(self, axis, kind, descending=descending)

    def searchsorted(self, v, side="left", sorter=None):
        """Return before which elements those of v keep the order, see vg.searchsorted.

        >>> vg.asarray([1, 3, 5]).searchsorted(vg.asarray([0, 4])).tolist()
        [0, 2]
        """
        return functions.searchsorted(self, v, side, sorter)

    def partition(self, kth, axis=-1):
        """Put the kth elements at their places in order, in place, see vg.partition.

        >>> x = vg.asarray([9, 1, 5, 7])
        >>> x.partition(1)
        >>> x[1].item()
        5
        """
        functions.sorting.check_kth(
            "partition", kth, self.shape[arguments.parse_axis(axis, self.ndim)]
        )
        functions.sorting.sort_in_place(self, axis)

    def argpartition(self, kth, axis=-1):
        """Return the indices of what partition gives, see vg.argpartition.

        >>> x = vg.asarray([9, 1, 5, 7])
        >>> x[x.argpartition(1)[1]].item()
        5
        """
        return functions.argpartition(self, kth, axis)

    # The elements in a row, and as bytes ----------------------------------------------------------

    @property
    def flat(self):
        """The elements in C order, to be indexed by one number, written to and iterated over.

        Iterating reads them once. What it is indexed by it copies, as numpy.ndarray.flat does.

        >>> x = vg.asarray([[1, 2], [3, 4]])
        >>> x.flat[2].item(), list(x.flat)
        (3, [1, 2, 3, 4])
        >>> x.flat[1:3] = 0
        >>> x.tolist()
        [[1, 0], [0, 4]]
        """
        return facts.Flat(self)

    @flat.setter
    def flat(self, value):
        facts.Flat(self)[:] = value

    @property
    def flags(self):
        """Facts about the memory: c_contiguous, f_contiguous, aligned, writeable; to be read only.

        >>> x = vg.ones((2, 3))
        >>> x.flags.c_contiguous, x.T.flags["C_CONTIGUOUS"], x.flags.writeable
        (True, False, True)
        """
        return facts.Flags(self)

    def tofile(self, fid, sep="", format="%s"):
        """Write the elements to a file in C order, as bytes or as text with `sep` in between.

        fid: a path, or a file that is open for bytes. OSError: it cannot be written. ImportError:
        bytes of bfloat16 without ml_dtypes.

        >>> vg.asarray([1, 2, 3]).tofile("three.txt", sep=" ")
        >>> vg.loadtxt("three.txt", dtype="int64").tolist()
        [1, 2, 3]
        """
        texts.write_bytes(self, fid, sep, format)

    def dumps(self):
        """Return the array pickled, as bytes; see pickle.dumps.

        >>> import pickle
        >>> pickle.loads(vg.asarray([1, 2]).dumps()).tolist()
        [1, 2]
        """
        import pickle

        return pickle.dumps(self)

    def dump(self, file):
        """Write the array pickled to a file: a path, or a file that is open for bytes.

        >>> vg.asarray([1, 2]).dump("two.pickle")
        >>> import pathlib, pickle
        >>> pickle.loads(pathlib.Path("two.pickle").read_bytes()).tolist()
        [1, 2]
        """
        if hasattr(file, "write"):
            file.write(self.dumps())
            return
        with open(file, "wb") as stream:
            stream.write(self.dumps())
