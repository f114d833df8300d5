"""Views at every offset and with odd strides of rows and batches, through all that reads vectors.

The memory of an array is aligned, and most arrays begin where it does; a kernel that loads or
stores vectors must also be right, and aligned, where a view begins anywhere. Operands and results
of every width lie here at all distances from a multiple of 16 bytes. No pytest is needed:
test_alignment.py runs this in a process of its own, in the build that sees misaligned accesses.
"""

import forced
import helpers
import numpy as np

import pyvecgpu as vg
from pyvecgpu.dispatch import apply
from pyvecgpu.native.abi import Algorithm
from pyvecgpu.nn.utils import get_total_norm

DTYPES = [np.dtype(name) for name in ("i1", "f2", "f4", "f8")]  # one of each size
VECTOR = 16  # bytes
PADS = ((0, 1), (1, 0), (4, 0))  # elements behind a row, and behind an item of a batch
B, M, N, K = 3, 21, 40, 36  # a batch of matrices
LONG = (10, M, N)  # more than a block has of any dtype
ROWS = [*range(0, M, 2), *range(1, M, 2)]


def place(rng, shape, dtype, offset, pads, device):
    """Values, and an Array of them `offset` elements into its memory, with gaps."""
    pad, behind = pads
    values = helpers.integers(rng, shape, dtype, -2, 2)
    *batch, rows, columns = (1, 1, *shape)[-max(len(shape), 2) :]
    items, item = int(np.prod(batch)), rows * (columns + pad) + behind
    whole = helpers.put(device, helpers.integers(rng, offset + items * item, dtype, -2, 2))
    view = whole[offset:].reshape(items, item)[:, : rows * (columns + pad)]
    view = view.reshape(*batch, rows, columns + pad)[..., :columns]
    view = view if len(shape) > 1 else view[0]
    view[...] = values
    return values, view


def assign(x, out, key=...):
    out[key] = x
    return out


def mark_nonzero(x, out):
    """Ones where the operand is not 0, by their indices."""
    flags = np.zeros(x.shape, helpers.host(out).dtype)
    flags[tuple(np.asarray(i.numpy()) for i in vg.nonzero(x))] = 1
    out[...] = flags
    return out


def multiply(x, y, out):
    return vg.matmul(x, y, out=out)


def multiply_few(x, y, out):
    """By the kernel that is for few terms, of which devices other than the CPU have one."""
    if str(out.device).startswith("cpu"):
        return multiply(x, y, out)
    with forced.forced(str(out.device), "outer"):
        return multiply(x, y, out)


def calls(dtype):
    """{name: (shapes of the operands, shape of the result, function)} for a dtype."""
    found = {
        "copy": ([(M, N)], (M, N), assign),
        "copy of a batch": ([(B, M, N)], (B, M, N), assign),
        "transposed copy": ([(N, M)], (M, N), lambda x, out: assign(x.T, out)),
        "transposed batch": ([(B, N, M)], (B, M, N), lambda x, out: assign(x.mT, out)),
        "fill": ([], (M, N), lambda out: assign(True, out)),
        "add": ([(M, N), (M, N)], (M, N), lambda x, y, out: vg.add(x, y, out=out)),
        "row": ([(B, M, N), (N,)], (B, M, N), lambda x, y, out: vg.maximum(x, y, out=out)),
        "scalar": ([(M, N)], (M, N), lambda x, out: vg.multiply(x, True, out=out)),
        "where": ([(M, N)] * 2, (M, N), lambda x, y, out: vg.where(x == y, x, y, out=out)),
        "triangle": ([(M, N)], (M, N), lambda x, out: vg.tril(x, 3, out=out)),
        "rows by number": ([(M, N)], (M, N), lambda x, out: assign(x[ROWS], out)),
        "rows to numbers": ([(M, N)], (M, N), lambda x, out: assign(x, out, ROWS)),
        "sum of rows": ([(M, N)], (M,), lambda x, out: assign(vg.sum(x, axis=1), out)),
        "sum of columns": ([(M, N)], (N,), lambda x, out: assign(vg.sum(x, axis=0), out)),
        "narrow columns": ([(600, 12)], (12,), lambda x, out: assign(vg.sum(x, axis=0), out)),
        "cut columns": (
            [(600, 14)], (13,), lambda x, out: assign(vg.sum(x[:, 1:], axis=0), out)
        ),
        "largest of a batch": ([(B, M, N)], (B, N), lambda x, out: vg.max(x, axis=1, out=out)),
        "scan of rows": ([(M, N)], (M, N), lambda x, out: assign(vg.cumsum(x, 1), out)),
        "scan of columns": ([(M, N)], (M, N), lambda x, out: assign(vg.cumsum(x, 0), out)),
        "nonzero": ([(M, N)], (M, N), mark_nonzero),
        "sort": ([(M, N)], (M, N), lambda x, out: assign(vg.sort(x, 1), out)),
        "argsort": ([(M, N)], (M, N), lambda x, out: assign(vg.argsort(x, 1), out)),
        "places": ([(M,), (M, N)], (M, N), lambda x, y, out: assign(vg.searchsorted(x, y), out)),
        "product": ([(M, K), (K, N)], (M, N), multiply),
        "transposed product": (
            [(K, M), (N, K)], (M, N), lambda x, y, out: vg.matmul(x.T, y.T, out=out)
        ),
        "batch": ([(B, M, K), (B, K, N)], (B, M, N), multiply),
        "small batch": ([(B, 9, 8), (B, 8, 7)], (B, 9, 7), multiply),
        "row by matrix": ([(1, 300), (300, N)], (1, N), multiply),
        "matrix by column": ([(N, 300), (300,)], (N,), multiply),
    }  # fmt: skip
    if helpers.is_float(dtype):
        found["few terms"] = ([(70, 5), (5, 140)], (70, 140), multiply_few)
        found["few terms, turned"] = (
            [(5, 70), (140, 5)],
            (70, 140),
            lambda x, y, out: multiply_few(x.T, y.T, out),
        )
        found["dense"] = (
            [(M, K), (N, K), (N,)], (M, N), lambda x, w, b, out: vg.dense(x, w, b, "relu", out=out)
        )  # fmt: skip
        found["normalised rows"] = ([(M, N)] * 2, None, normalised)
        found["cross-entropy"] = ([(M, N)] * 2, None, of_labels)
        found["windows"] = ([(2, 6, M, 9), (6, 2, 3, 3), (2, 6, M - 2, 7)], None, windows)
        found["gradients"] = ([(M, N), (M, K), (N, K), (M, N)], None, gradients)
        found["step"] = ([LONG, LONG], LONG, step)
        found["clip"] = ([LONG], LONG, clip)
        found["norm"] = ([LONG], (1,), lambda x, out: assign(get_total_norm([x]), out))
        found["dropout"] = ([(M, N)], (M, N), dropout)
    return found


def normalised(x, g, out):
    """Each of the normalisations and of softmax, and the gradients of what it is of."""
    found = []
    numbers = x[0].detach()
    for function in (
        lambda a, w: vg.nn.functional.layer_norm(a, N, w, w, 1.0),
        lambda a, w: vg.nn.functional.batch_norm(a, None, None, w, w, True, eps=1.0),
        lambda a, w: vg.softmax(a * 0.125) * w,
    ):
        a, w = x.detach().requires_grad_(), numbers.detach().requires_grad_()
        y = function(a, w)
        y.backward(g)
        found += [y.detach(), a.grad, w.grad]
    return found


def of_labels(x, w, out):
    a = x.detach().requires_grad_()
    labels = vg.arange(M, dtype="int32", device=x.device) % N
    losses = vg.nn.functional.cross_entropy(a, labels, w[0] * w[0], reduction="none")
    losses.sum().backward()
    return losses.detach(), a.grad


def gradients(g, x, w, z, out):
    return vg.nn.functional.dense_backward(g, x, w, z, "relu")


def step(x, g, out):
    """A step of plain descent, in place: one with a learning rate of 1 and no other number."""
    out[...] = x
    apply(out.backend, "optimize", Algorithm.SGD, [out], [g], [1.0] + [0.0] * 14, None)
    return out


def clip(x, out):
    out[...] = x
    norm = vg.full((), 4.0, dtype="float32", device=x.device)
    apply(out.backend, "clip_norm", [out], norm, 2.0)
    return out


def dropout(x, out):
    return assign(apply(x.backend, "dropout", x, 0.5, 1, 2, 3, None), out)


def windows(x, w, g, out):
    """A convolution of a pool, and all of their gradients."""
    leaves = x.detach().requires_grad_(), w.detach().requires_grad_()
    y = vg.nn.functional.max_pool2d(leaves[0], 3, 1, 1)
    y = vg.nn.functional.avg_pool2d(y, 2, 1, 1)[..., 1:, 1:]
    y = vg.nn.functional.conv2d(y, leaves[1], groups=3)
    return y.detach(), *vg.autograd.grad(y, leaves, g)


def run(device, seed=20240607):
    """Run all calls on a device; return how many. AssertionError: a wrong result."""
    count = 0
    for dtype in DTYPES:
        for offset in range(VECTOR // dtype.itemsize + 1):
            aligned = offset * dtype.itemsize % VECTOR == 0
            for pads in PADS if aligned else PADS[offset % 3 :][:1]:
                rng = np.random.default_rng([seed, dtype.itemsize, offset, *pads])
                for name, (shapes, shape, function) in calls(dtype).items():
                    check(rng, device, dtype, offset, pads, name, shapes, shape, function)
                    count += 1
    return count


def check(rng, device, dtype, offset, pads, name, shapes, shape, function):
    """One call, whose first operand is at the offset, the others and the result anywhere."""
    places = [offset, *rng.integers(0, VECTOR // dtype.itemsize + 1, 4).tolist()]
    operands = [
        place(rng, one, dtype, at, pads, device) for one, at in zip(shapes, places, strict=False)
    ]
    straight = [helpers.put(device, x) for x, _ in operands]
    views = [view for _, view in operands]
    if shape is None:
        expected, results = function(*straight, out=None), function(*views, out=None)
    else:
        expected = [function(*straight, out=vg.zeros(shape, dtype=dtype, device=device))]
        _, out = place(rng, shape, dtype, places[-1] if shapes else offset, pads, device)
        results = [function(*views, out=out)]
    for result, one in zip(results, expected, strict=True):
        helpers.assert_same(result, helpers.host(one), f"{name} of {dtype}: {offset}, {pads}")
