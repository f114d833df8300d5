"""DataLoader: a data set in batches, on a device, in order or in a random one."""

import numbers

import numpy as np

from .. import functions as vg
from ..array import Array
from ..device import Device, resolve
from ..functions.arguments import is_host
from ..random import _shared, default_rng
from .ahead import ahead
from .datasets import Subset, TensorDataset, Windows


class DataLoader:
    """Batches of a data set, of which each `for` takes all: in order, or in a new random one.

    Arrays of a data set are brought to the device once; of NumPy arrays each batch is. The batches
    of a TensorDataset are one gather on the device each, and copies of slices where the order is
    theirs: to change a batch leaves the data alone. collate_fn: makes a batch of a list of samples;
    by default as `collate`. generator: of vg.random, or a seed, for the order; None: the process's
    own, see vg.random.seed. drop_last: without the last batch if it is smaller. num_workers:
    threads that make batches of what is on the host, prefetch_factor for each, ahead of the step
    and bring them to the device beside it; the data set is then read by several threads at once.
    Order and values are the same without. pin_memory and persistent_workers are torch's and mean
    nothing: uploads go through pinned memory, and threads cost little to start.
    ValueError: batch_size or prefetch_factor is below 1, num_workers below 0.

    >>> x, y = vg.arange(5), vg.arange(5) * 10
    >>> loader = vg.data.DataLoader(vg.data.TensorDataset(x, y), batch_size=2)
    >>> for a, b in loader:
    ...     print(a.tolist(), b.tolist())
    [0, 1] [0, 10]
    [2, 3] [20, 30]
    [4] [40]
    """

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=False,
        *,
        collate_fn=None,
        drop_last=False,
        generator=None,
        device=None,
        num_workers=0,
        prefetch_factor=2,
        pin_memory=False,
        persistent_workers=False,
    ):
        self.dataset, self.batch_size = dataset, _counted(batch_size, "batch_size", 1)
        self.num_workers = _counted(num_workers, "num_workers", 0)
        self.prefetch_factor = _counted(prefetch_factor, "prefetch_factor", 1)
        self.shuffle, self.drop_last, self.collate_fn = bool(shuffle), bool(drop_last), collate_fn
        self.generator = _shared() if generator is None else default_rng(generator)
        self.device = None if device is None else Device(device)
        self._source, self._numbers = _resolved(dataset)
        if self.device is not None:
            self._source = _placed(self._source, self.device)

    def __len__(self):
        count = len(self.dataset)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def __iter__(self):
        keys, on_device = self._keys(self._order()), _home(self._source) is not None
        if self.num_workers and not (on_device and self.collate_fn is None):
            window = self.num_workers * self.prefetch_factor
            yield from ahead(self._batch, keys, self.num_workers, window, resolve(self.device))
        else:
            yield from map(self._batch, keys)

    def _keys(self, order):
        """Yield for each batch the places of its samples in the source."""
        for begin in range(0, len(self) * self.batch_size, self.batch_size):
            end = min(begin + self.batch_size, len(self.dataset))
            yield slice(begin, end) if order is None else order[begin:end]

    def _order(self):
        """Return the numbers of an epoch's samples in the source; None: as they are there."""
        count, order = len(self.dataset), self._numbers
        if self.shuffle:
            mixed = self.generator.permutation(count, device="cpu").numpy()
            order = mixed if order is None else order[mixed]
        device = _home(self._source)
        if order is None or device is None or self.collate_fn is not None:
            return order
        return vg.asarray(order, device=device)  # one upload for all batches of an epoch

    def _batch(self, indices):
        source = self._source
        if self.collate_fn is None and hasattr(source, "batch"):
            if isinstance(indices, slice) and type(source) is not TensorDataset:
                indices = np.arange(indices.start, indices.stop)
            batch = source.batch(indices)
            if isinstance(indices, slice):  # views
                batch = tuple([vg.copy(x) if isinstance(x, Array) else x for x in batch])
            return _uploaded(batch, self.device)
        if isinstance(indices, slice):
            indices = range(indices.start, indices.stop)
        samples = [source[int(i)] for i in indices]
        if self.collate_fn is not None:
            return self.collate_fn(samples)
        return collate(samples, self.device)


def _counted(value, name, least):
    """Return a parameter as an int. TypeError: it is none. ValueError: it is below `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} is an integer, not {value!r}")
    if value < least:
        raise ValueError(f"{name} must be {least} or more, got {value}")
    return int(value)


def collate(samples, device=None):
    """Return samples as one: arrays and numbers stacked, tuples and dicts part by part.

    Strings and all else stay in a list. device: of what comes of numbers and NumPy arrays.

    >>> x, y = vg.data.collate([(vg.ones(2), 3), (vg.zeros(2), 4)])
    >>> x.tolist(), y.tolist()
    ([[1.0, 1.0], [0.0, 0.0]], [3, 4])
    """
    first = samples[0]
    if isinstance(first, Array):
        stacked = vg.stack(samples)
        return stacked if device is None else stacked.to(device)
    if isinstance(first, dict):
        return {key: collate([sample[key] for sample in samples], device) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise ValueError("samples of one batch have equally many parts")
        return tuple([collate(list(part), device) for part in zip(*samples, strict=True)])
    if is_host(first):
        return vg.asarray(np.stack(samples), device=device)
    if isinstance(first, numbers.Number):
        return vg.asarray(list(samples), device=device)
    return list(samples)


def _resolved(dataset):
    """Return what lies below Subsets, and the numbers there of the samples; None: all in order."""
    found = None
    while isinstance(dataset, Subset):
        found = dataset.indices if found is None else dataset.indices[found]
        dataset = dataset.dataset
    return dataset, found


def _placed(source, device):
    """Return a data set whose Arrays are on a device."""
    if type(source) is TensorDataset:
        arrays = [x.to(device) if isinstance(x, Array) else x for x in source.tensors]
        return TensorDataset(*arrays)
    if type(source) is Windows and isinstance(source.values, Array):
        return Windows(source.values.to(device), source.length)
    return source


def _home(source):
    """Return the device on which a data set's batches are gathered; None: the host."""
    arrays = source.tensors if type(source) is TensorDataset else ()
    arrays = (source.values,) if type(source) is Windows else arrays
    same = {x.device if isinstance(x, Array) else None for x in arrays}
    return same.pop() if len(same) == 1 else None


def _uploaded(batch, device):
    """Return a batch whose NumPy arrays are Arrays."""
    if not isinstance(batch, tuple):
        return vg.asarray(batch, device=device) if is_host(batch) else batch
    return tuple([_uploaded(part, device) for part in batch])
