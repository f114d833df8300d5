"""Data sets: what has a length and gives a sample by its number.

Those of arrays also give many samples at once, by batch(indices), which is one gather on the
device that they are on.
"""

import itertools

import numpy as np

from .. import functions as vg
from ..array import Array
from ..functions.arguments import is_host
from ..random import _shared, default_rng


class Dataset:
    """What a data set has: len(data) and data[number]. A class of one's own defines both.

    One that can give many samples at once, stacked, also defines batch(indices); indices are
    integers in a NumPy array.

    >>> class Squares(vg.data.Dataset):
    ...     def __len__(self):
    ...         return 4
    ...
    ...     def __getitem__(self, index):
    ...         return float(index * index)
    >>> [batch.tolist() for batch in vg.data.DataLoader(Squares(), batch_size=2)]
    [[0.0, 1.0], [4.0, 9.0]]
    """

    def __len__(self):
        raise NotImplementedError(f"{type(self).__name__} has no __len__")

    def __getitem__(self, index):
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__")


class TensorDataset(Dataset):
    """Samples that are the rows of arrays: data[i] is a tuple of x[i] of each.

    arrays: Arrays, or NumPy arrays, which stay on the host. TypeError: none of these. ValueError:
    without a first axis, of different lengths, or none at all.

    >>> data = vg.data.TensorDataset(vg.arange(5), vg.ones((5, 2)))
    >>> x, y = data[3]
    >>> len(data), x.item(), y.shape
    (5, 3, (2,))
    """

    def __init__(self, *arrays):
        if not arrays:
            raise ValueError("TensorDataset needs an array or more")
        for x in arrays:
            if not isinstance(x, Array) and not is_host(x):
                raise TypeError(f"TensorDataset takes arrays, not {type(x).__name__}")
        if any(x.ndim == 0 for x in arrays) or len({x.shape[0] for x in arrays}) != 1:
            shapes = ", ".join(str(tuple(x.shape)) for x in arrays)
            raise ValueError(
                f"the arrays have first axes of one length, and not the shapes {shapes}"
            )
        self.tensors = arrays

    def __len__(self):
        return self.tensors[0].shape[0]

    def __getitem__(self, index):
        return tuple([x[index] for x in self.tensors])

    def batch(self, indices):
        """Return the samples at indices, an integer array or a slice: a tuple of arrays.

        >>> data = vg.data.TensorDataset(vg.arange(5) * 10)
        >>> data.batch(np.array([4, 0]))[0].tolist()
        [40, 0]
        """
        if isinstance(indices, slice):
            return tuple([x[indices] for x in self.tensors])
        return tuple([_rows(x, indices) for x in self.tensors])


class Windows(Dataset):
    """Pairs of `length` values in a row and those one place later: a model guesses the next one.

    values: 1-D. ValueError: not so, or not more than `length` of them.

    >>> data = vg.data.Windows(vg.arange(6), 3)
    >>> x, y = data[1]
    >>> len(data), x.tolist(), y.tolist()
    (3, [1, 2, 3], [2, 3, 4])
    """

    def __init__(self, values, length):
        if not isinstance(values, Array) and not is_host(values):
            raise TypeError(f"Windows takes an array, not {type(values).__name__}")
        if values.ndim != 1 or length < 1 or values.shape[0] <= length:
            raise ValueError(f"no windows of {length} in values of shape {tuple(values.shape)}")
        self.values, self.length = values, length

    def __len__(self):
        return self.values.shape[0] - self.length

    def __getitem__(self, index):
        begin = _inside(index, len(self))
        end = begin + self.length
        return self.values[begin:end], self.values[begin + 1 : end + 1]

    def batch(self, indices):
        """Return the samples at indices, an integer array: two arrays of shape (n, length).

        >>> x, y = vg.data.Windows(vg.arange(6), 3).batch(np.array([0, 2]))
        >>> x.tolist(), y.tolist()
        ([[0, 1, 2], [2, 3, 4]], [[1, 2, 3], [3, 4, 5]])
        """
        if isinstance(indices, Array):
            steps = vg.arange(self.length, device=indices.device)
        else:
            steps = np.arange(self.length)
        places = indices[:, None] + steps
        return _rows(self.values, places), _rows(self.values, places + 1)


class Subset(Dataset):
    """Samples of another data set, by their numbers.

    >>> data = vg.data.TensorDataset(vg.arange(5) * 10)
    >>> part = vg.data.Subset(data, [4, 0])
    >>> len(part), part[0][0].item()
    (2, 40)
    """

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = np.asarray(indices, np.int64)

    def __len__(self):
        return len(self.indices)

    def __getitem__(self, index):
        return self.dataset[int(self.indices[_inside(index, len(self))])]


def random_split(dataset, lengths, generator=None):
    """Return Subsets of a data set in random order, of the lengths, or of parts whose sum is 1.

    Of parts, what rounding leaves goes one by one to the first. generator: of vg.random, or a
    seed; None: the process's own, see vg.random.seed. ValueError: lengths of another sum.

    >>> data = vg.data.TensorDataset(vg.arange(10))
    >>> train, test = vg.data.random_split(data, [0.8, 0.2])
    >>> len(train), len(test)
    (8, 2)
    """
    lengths, count = list(lengths), len(dataset)
    if any(isinstance(part, float) for part in lengths):
        if not abs(sum(lengths) - 1) <= 1e-9 or any(part < 0 for part in lengths):
            raise ValueError(f"the sum of the parts {lengths} is not 1")
        lengths = [int(count * part) for part in lengths]
        for i in range(count - sum(lengths)):
            lengths[i % len(lengths)] += 1
    if sum(lengths) != count or any(length < 0 for length in lengths):
        raise ValueError(f"the lengths {lengths} are not those of {count} samples")
    generator = _shared() if generator is None else default_rng(generator)
    order = generator.permutation(count, device="cpu").numpy()
    ends = np.cumsum([0, *lengths])
    return [Subset(dataset, order[a:b]) for a, b in itertools.pairwise(ends)]


def _inside(index, count):
    if not -count <= index < count:
        raise IndexError(f"sample {index} of {count}")
    return index % count


def _rows(x, indices):
    """Return the elements or rows of an array at indices, on the host if both are there."""
    if not isinstance(x, Array):
        return x[indices.numpy() if isinstance(indices, Array) else indices]
    return vg.take(x, indices, axis=0)
