"""The sweep's cases of windows: pools and convolutions, every kernel of theirs, in all floats."""

import functools
import itertools

import helpers
import numpy as np
from helpers import fixed_integers, put

import pyvecgpu as vg
from pyvecgpu.autograd import grad

F = vg.nn.functional
FAR = 2**31 - 1  # a stride with which positions have 64 bits

# kernel, stride, padding of pools over rows of 8 x 9: each way through the kernels.
POOLS = [
    ((2, 2), (2, 2), (0, 0)),
    ((3, 3), (2, 2), (1, 1)),
    ((3, 2), (1, 1), (1, 0)),
    ((5, 5), (2, 1), (2, 1)),
    ((2, 3), (FAR, 1), (1, 1)),
    ((8, 9), (1, FAR), (0, 4)),
]
# channels, results, groups, kernel, stride, padding, and images: products of both kinds, a kernel
# of one element, and few channels in a group
CONVOLUTIONS = [
    (3, 4, 1, (3, 3), (1, 1), 1, 2),
    (2, 6, 2, (2, 3), (2, 1), 0, 1),
    (4, 4, 4, (3, 3), (1, 2), 1, 2),
    (3, 2, 1, (1, 1), (1, 1), 0, 1),
    (3, 2, 1, (1, 1), (2, 2), 0, 1),
]


def windows(dtype):
    """Each device's results beside those of the CPU in float64, exact sums of small integers."""
    if not helpers.is_float(dtype):
        return
    for number, (kernel, stride, padding) in enumerate(POOLS):
        how = (kernel, stride, padding)
        for name, call in (
            ("largest", lambda x, how=how: F.max_pool2d(x, *how)),
            ("means", lambda x, how=how: F.avg_pool2d(x, *how)),
            ("means inside", lambda x, how=how: F.avg_pool2d(x, *how, count_include_pad=False)),
        ):
            x = fixed_integers(dtype, (2, 8, 9), number)
            yield f"{name}, {kernel}", functools.partial(check, call, dtype, [x], name != "largest")
    for channels, results, groups, kernel, stride, padding, images in CONVOLUTIONS:
        how = (None, stride, padding, 1, groups)
        operands = [
            np.sign(fixed_integers(dtype, (images, channels, 8, 9))).astype(dtype),
            np.sign(fixed_integers(dtype, (results, channels // groups, *kernel), 1)).astype(dtype),
        ]
        call = functools.partial(lambda x, w, how: F.conv2d(x, w, *how), how=how)
        yield f"convolution, {kernel}", functools.partial(check, call, dtype, operands, False)


def check(call, dtype, operands, rounds, device):
    found, wanted = (
        with_gradients(call, where, operands, kind)
        for where, kind in ((device, dtype), ("cpu", np.float64))
    )
    for one, exact in itertools.zip_longest(found, wanted):
        exact = exact.astype(np.float64)
        allowed = 8 * float(helpers.finfo(dtype).eps) * np.abs(exact) if rounds else 0.0
        helpers.assert_within(one, exact, allowed + np.zeros(exact.shape))


def with_gradients(call, device, operands, dtype):
    leaves = [put(device, x.astype(dtype)).requires_grad_() for x in operands]
    y = call(*leaves)
    weights = np.arange(y.size).reshape(y.shape) % 3 - 1
    slopes = grad(y, leaves, put(device, weights.astype(dtype)))
    alone = call(*[leaf.detach() for leaf in leaves])  # nobody asks for places
    return [one.detach().numpy() for one in (y, alone, *slopes)]
