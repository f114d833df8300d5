"""Elementwise functions of large NumPy arrays, in parts: operands go up while results come down.

The way to a device carries as much in one direction as in the other, at the same time. So while one
part of the operands goes to the device, another thread brings the results of the parts before back,
on a stream of its own. No element depends on another: the result is the same to the bit. After an
error `out` may have been written in part.
"""

import _thread
import os
import weakref

import numpy as np

from ..device import resolve
from ..dtypes import CODES, host_dtype
from .arguments import from_host, is_scalar
from .values import to_host

PART_BYTES = 16 << 20  # of the operand with the largest elements
LEAST_PARTS = 2
WAITING = 2  # results that may wait for their way back; they take memory on the device


def compute(function, operands, out, device):
    """Return function(*operands) in `out` or a new array, or None where parts are of no use.

    They are where all operands are NumPy arrays of one shape in C order, and Python scalars; where
    there is enough of them; and where `out` is none of them shifted. `function` gives an Array for
    Arrays and scalars.
    """
    arrays = [operand for operand in operands if not is_scalar(operand)]
    if not arrays or not all(is_suited(array, arrays[0]) for array in arrays):
        return None
    step = PART_BYTES // max(array.itemsize for array in arrays)
    if arrays[0].size < LEAST_PARTS * step or not (out is None or is_place(out, arrays)):
        return None
    backend = resolve(device).backend
    if backend.device.type == "cpu":
        return None
    return run(function, operands, arrays[0].shape, out, backend, step)


def is_suited(array, first):
    return (
        type(array) is np.ndarray
        and array.shape == first.shape
        and array.flags.c_contiguous
        and array.dtype in CODES
    )


def is_place(out, arrays):
    """True if `out` may be written part by part while the arrays are read."""
    if not (type(out) is np.ndarray and out.flags.c_contiguous and out.flags.writeable):
        return False
    same = (out.ctypes.data, out.itemsize)
    return out.shape == arrays[0].shape and all(
        (array.ctypes.data, array.itemsize) == same or not np.may_share_memory(array, out)
        for array in arrays
    )


def run(function, operands, shape, out, backend, step):
    """Compute parts of `step` elements; see compute."""
    flat = [operand if is_scalar(operand) else operand.reshape(-1) for operand in operands]
    size = max(operand.size for operand in flat if not is_scalar(operand))
    downloads = Downloads(backend)
    try:
        downloads.start()
        for start in range(0, size, step):
            part = slice(start, start + step)
            result = function(*(x if is_scalar(x) else from_host(x[part], backend) for x in flat))
            if out is None:
                out = np.empty(shape, host_dtype(result.dtype))
            downloads.put(result, out.reshape(-1)[part])
            if downloads.errors:
                break
    finally:
        try:
            downloads.finish()
        except BaseException:  # a signal handler's: `out` is the thread's until it has ended
            downloads.finish()
            raise
    if downloads.errors:
        raise downloads.errors.pop()
    return out


class Downloads:
    """A thread that brings results back, in the order of put.

    A signal handler may raise anywhere in the calling thread, between a call and the next step too.
    So the two threads share nothing but SimpleQueues, which are written in C and take and give
    whole items; and that the thread has ended, or never began, is known by a token that only it
    keeps. (What queue.Queue and threading.Thread do in Python can be left half done.)
    """

    def __init__(self, backend):
        import queue  # a part of what `import pyvecgpu` would take, and most programs need none

        self.backend, self.errors, self.process = backend, [], os.getpid()
        self.waiting, self.room, self.ended = (queue.SimpleQueue() for _ in range(3))
        for _ in range(WAITING):
            self.room.put(None)
        self.token = Token()
        self.alive = weakref.ref(self.token, self.ended.put)

    def start(self):
        _thread.start_new_thread(bring_back, (self, self.token))

    def put(self, result, place):
        """Let an Array be copied to an ndarray of its shape; waits while too many others wait."""
        self.room.get()
        self.waiting.put((result, place))

    def finish(self):
        """Wait until all is copied, or has failed; may be called again."""
        self.waiting.put(None)
        self.token = None
        if self.alive() is not None and os.getpid() == self.process:  # a forked child has no thread
            self.ended.get()


class Token:
    """What can be weakly referred to."""


def bring_back(downloads, token):
    """Copy what is put until None is; `token` goes when this is done."""
    try:
        with downloads.backend.own_stream():
            while (item := downloads.waiting.get()) is not None:
                downloads.room.put(None)
                copy(*item)
    except BaseException as error:
        downloads.errors.append(error)
        downloads.room.put(None)  # a put that waits goes on, and sees the error
    finally:
        del downloads, token  # the error's traceback holds this function's variables
        item = None


def copy(result, place):
    values = to_host(result, place)
    if values is not place:
        np.copyto(place, values, casting="same_kind")
