"""Batches that threads make ahead: while a step computes, the next ones are read and uploaded.

A thread uploads on a stream of its own, beside the step's work, and arrays know the order. What
threads of one process can do beside each other is what releases Python's lock: files, NumPy's
larger operations, uploads.
"""

import collections
import itertools

from ..streams import Stream, stream


def ahead(make, keys, workers, window, device):
    """Yield make(key) of every key, in order, made by threads, at most `window` ahead.

    What make raises is raised in its batch's place. When the generator is closed no more batches
    are begun, and those that were are waited for.
    """
    from concurrent.futures import ThreadPoolExecutor

    own = Stream(device=device)

    def one(key):
        with device, stream(own):
            return make(key)

    keys = iter(keys)
    pool = ThreadPoolExecutor(workers, "pyvecgpu.data")
    try:
        waiting = collections.deque(pool.submit(one, key) for key in itertools.islice(keys, window))
        while waiting:
            batch = waiting.popleft().result()
            waiting.extend(pool.submit(one, key) for key in itertools.islice(keys, 1))
            yield batch
            del batch
    finally:
        pool.shutdown(cancel_futures=True)
