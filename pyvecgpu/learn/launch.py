"""Runs one kernel of the lessons beside NumPy and the C loop, and measures all of it."""

import math
import operator
import time
from ctypes import byref, c_double, c_int64

import numpy as np

from ..bench import loops
from ..device import Device, resolve
from ..dispatch import apply
from ..errors import LaunchError
from ..functions import empty, zeros
from .report import Report

_LAUNCHES = {"cuda": 6, "sim": 1}  # of which the first is not timed unless it is the only one
_ENOUGH = 0.1  # seconds: what takes longer is not measured again
_LONGEST_LOOP = 4e9  # operations of the C loop, some seconds; a longer one is not run
_INVALID_CONFIGURATION = 9  # cudaErrorInvalidConfiguration


def run(kernel, operands, shape, with_numpy, loop, *, grid, block, needs, operations, device):
    """Launch a LessonKernel on copies of the operands; return (result as an ndarray, Report).

    with_numpy(out) computes the same with NumPy, and loop, (name, sizes), is a function of loops.c.
    `needs` are the threads that cover the result along x, y and z; None: the grid given does.
    """
    device = _device(device)
    given = grid is not None
    axes = len(block) if needs is None else len(needs)
    block = _sizes(block, "block" if axes > 1 else "threads", axes)
    if not given:
        pairs = zip(needs, block, strict=False)
        grid = [max(1, math.ceil(need / threads)) for need, threads in pairs]
    grid = _sizes(grid, "grid" if axes > 1 else "blocks", len(grid) if needs is None else axes)
    _check_limits(device, grid, block)
    elements = math.prod(shape)
    covered = elements
    if needs is not None:
        covered = math.prod(map(min, needs, (g * t for g, t in zip(grid, block, strict=True))))
    times = _on_device(device, kernel, operands, shape, grid, block)
    result, milliseconds, resident = times.pop("launch")

    out = np.zeros(shape, np.float32)
    with np.errstate(all="ignore"):  # the kernels do not warn either
        numpy_time = _time(lambda: with_numpy(out))
    c_loop, note = _time_loop(loop, [*operands, out], operations)
    part = covered / elements if elements else 1
    to_device, to_host = sum(a.nbytes for a in operands), result.nbytes
    moved, done = round((to_device + to_host) * part), round(operations * part)
    limit, share = _share(device, moved, done, milliseconds / 1e3)
    return result, Report(
        kernel=kernel.name.removeprefix("LESSON_").lower(),
        device=f"{device} ({device.name})",
        grid=grid,
        block=block,
        elements=elements,
        covered=covered,
        bytes=moved,
        operations=done,
        bytes_to_device=to_device,
        bytes_to_host=to_host,
        c_loop=c_loop,
        numpy=numpy_time,
        kernel_time=milliseconds / 1e3,
        occupancy=_occupancy(device, block, resident),
        limit=limit,
        share=share,
        note=note,
        **times,
    )


# The launch ---------------------------------------------------------------------------------------


def _device(device):
    chosen = resolve(device)
    if chosen.type != "cpu":
        return chosen
    if device is not None:
        raise ValueError(
            "the lessons' kernels are CUDA C, which the CPU cannot run; use device='sim', the "
            "simulated card, or 'cuda'"
        )
    return Device("sim")


def _sizes(sizes, name, axes):
    """Return (x, y, z) for up to `axes` numbers. TypeError, ValueError: they make no sense."""
    try:
        sizes = tuple(operator.index(size) for size in sizes)
    except TypeError:
        raise TypeError(f"{name} must be whole numbers, not {sizes!r}") from None
    if len(sizes) > axes or min(sizes, default=0) < 1:
        shown = sizes[0] if axes == 1 and len(sizes) == 1 else sizes
        what = "a number" if axes == 1 else f"up to {axes} numbers"
        raise ValueError(f"{name} must be {what} of at least 1, not {shown}")
    return sizes + (1,) * (3 - len(sizes))


def _check_limits(device, grid, block):
    """LaunchError if the device would refuse the launch."""
    limits = device.limits
    threads = math.prod(block)
    rows = [(f"{threads} threads per block", threads, limits.max_threads_per_block)]
    for axis, size, blocks in zip("xyz", block, grid, strict=True):
        most, most_blocks = (getattr(limits, f"max_{of}_dim_{axis}") for of in ("block", "grid"))
        rows.append((f"{size} threads along {axis} of a block", size, most))
        rows.append((f"{blocks} blocks along {axis} of the grid", blocks, most_blocks))
    for what, value, most in rows:
        if value > most:
            raise LaunchError(
                f"{what} exceed the limit of {most} of {device.name}",
                code=_INVALID_CONFIGURATION,
                name="cudaErrorInvalidConfiguration",
                operation="learn",
            )


def _on_device(device, kernel, operands, shape, grid, block):
    """Copy, launch and copy back; return a dict of times and launch: (result, ms, blocks)."""
    backend = device.backend
    arrays = [empty(a.shape, dtype=np.float32, device=device) for a in operands]
    out = zeros(shape, dtype=np.float32, device=device)

    def copy_in():
        for source, array in zip(operands, arrays, strict=True):
            apply(backend, "copy_from_host", source, array)
        backend.synchronize()

    backend.synchronize()
    to_device = _time(copy_in)
    milliseconds, resident = c_double(), c_int64()
    handles = [array.raw for array in arrays] + [None] * (3 - len(arrays))
    sizes = [(c_int64 * 3)(*xyz) for xyz in (grid, block)]
    launches = _LAUNCHES[device.type]
    backend.check(
        backend.library.pvg_learn(
            kernel, *sizes, *handles, out.raw, launches, byref(milliseconds), byref(resident)
        )
    )
    result = apply(backend, "to_host", out, None)
    to_host = _time(lambda: apply(backend, "to_host", out, None))
    launch = (result, milliseconds.value, resident.value)
    return {"to_device": to_device, "to_host": to_host, "launch": launch}


# Times and limits ---------------------------------------------------------------------------------


def _time(call):
    """Return the shortest of up to three times of a call, in seconds."""
    best, start = math.inf, time.perf_counter()
    for _ in range(3):
        before = time.perf_counter()
        call()
        after = time.perf_counter()
        best = min(best, after - before)
        if after - start > _ENOUGH:
            break
    return best


def _time_loop(loop, arrays, operations):
    """Return (seconds, "") of the C loop, or (None, why it was not run)."""
    if operations > _LONGEST_LOOP:
        return None, "it would take too long"
    name, sizes = loop
    call, why = loops.bind(name, sizes, arrays)
    return (None, why) if call is None else (_time(call), "")


def _occupancy(device, block, resident):
    if device.type == "sim" or not resident:
        return None
    limits = device.limits
    warps = math.ceil(math.prod(block) / limits.warp_size)
    return resident * warps * limits.warp_size / limits.max_threads_per_multiprocessor


def _share(device, moved, operations, seconds):
    """Return (limit, share): which of the card's limits bounds the work, and the share reached."""
    if device.type == "sim" or seconds <= 0:
        return None, None
    limits = device.limits
    # Two transfers a clock; a multiply-add, which is two operations, a clock of each float32 lane.
    bandwidth = 2e3 * limits.memory_clock_rate * limits.memory_bus_width / 8
    capability = limits.compute_capability_major, limits.compute_capability_minor
    lanes = 64 if capability[0] == 7 or capability in ((6, 0), (8, 0)) else 128
    speed = 2e3 * limits.clock_rate * lanes * limits.multiprocessor_count
    if not bandwidth or not speed:
        return None, None
    least = {"bandwidth": moved / bandwidth, "operations": operations / speed}
    limit = max(least, key=least.get)
    return limit, least[limit] / seconds
