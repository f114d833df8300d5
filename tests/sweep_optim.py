"""The sweep's cases of optimisers, of norms of gradients and of dropout; see sweep.py."""

import itertools

import helpers
import numpy as np
from helpers import assert_within, put
from helpers import fixed_integers as data

import pyvecgpu as vg
from pyvecgpu.dispatch import apply
from pyvecgpu.native.abi import Algorithm, Update

CHOSEN = (
    ("SGD", {"momentum": 0}, 0.5),
    ("SGD", {"momentum": 0.5}, 0.5),
    ("Adam", {"amsgrad": False}, 0.5),
    ("Adam", {"amsgrad": True}, 0.5),
    ("RMSprop", {"momentum": 0}, 5.0),
    ("RMSprop", {"momentum": 0.5}, 5.0),
    ("RMSprop", {"momentum": 0.5, "centered": True}, 0.5 / np.sqrt(0.01 - 0.0001)),
)
MANY = 170  # arrays, of which a launch has a long list


def steps(dtype):
    """Every number of states of every optimiser, of aligned arrays and others, few and many."""
    if not helpers.is_float(dtype):
        return
    for (name, options, change), more in itertools.product(CHOSEN, (0, MANY)):

        def check(device, name=name, options=options, change=change, more=more):
            sizes = (4100, 700, 0, 1, *more * (3,))
            arrays = [data(dtype, (size,), seed) for seed, size in enumerate(sizes)]
            params = [put(device, x).requires_grad_() for x in arrays]
            params.append(helpers.shifted(1)(device, arrays[0]).requires_grad_())
            for p in params:
                p.grad = put(device, np.ones(p.shape, dtype))
            getattr(vg.optim, name)(params, lr=0.5, **options).step()
            for p, x in zip(params, [*arrays, arrays[0]], strict=True):
                expected = helpers.widened(x).astype(np.float64) - change
                assert_within(p.detach(), expected, 1e-6 + 64 * helpers.UNIT_ROUNDOFF[dtype])

        yield f"{name} {options}, {more} more", check


def renewed_steps(dtype):
    """Numbers that the kernel reads from the device, of every algorithm."""
    if not helpers.is_float(dtype):
        return
    for algorithm in Algorithm:

        def check(device, algorithm=algorithm):
            count = 2 if algorithm == Algorithm.ADAM else 1
            p, *states, g = (put(device, np.ones(4100, dtype)) for _ in range(count + 2))
            values = np.zeros(Update.UPDATE_COUNT)
            values[[Update.UPDATE_MOMENTUM, Update.UPDATE_SHARE1, Update.UPDATE_SHARE2]] = 1.0
            if algorithm == Algorithm.RMSPROP:
                values[Update.UPDATE_MOMENTUM] = 0.0
            renewed = values.copy()
            renewed[Update.UPDATE_RATE] = 0.5
            apply(p.backend, "optimize", algorithm, [p, *states], [g], values, put(device, renewed))
            assert_within(p, np.full(4100, 0.5 if algorithm != Algorithm.SGD else 0.0), 1e-3)

        yield f"{algorithm.name} with renewed numbers", check


def norms(patterns):
    def cases(dtype):
        if not helpers.is_float(dtype):
            return
        for pattern, make in patterns.items():

            def check(device, make=make):
                x = data(dtype, (64, 60))
                wide = helpers.widened(x).astype(np.float64)
                p = put(device, x).requires_grad_()
                p.grad = make(device, x)
                for order in (1.0, np.inf, 2.0):
                    norm = vg.nn.utils.get_total_norm([p.grad], order)
                    expected = np.linalg.norm(wide.ravel(), order)
                    assert_within(norm, expected, 2 * helpers.UNIT_ROUNDOFF[dtype] * expected)
                vg.nn.utils.clip_grad_norm_([p], 1.0)
                expected = wide / np.linalg.norm(wide)
                assert_within(p.grad, expected, 1e-8 + helpers.UNIT_ROUNDOFF[dtype])
                y = p.grad.copy()
                apply(y.backend, "clip_norm", [y], None, 2.0)
                helpers.assert_same(y, (p.grad + p.grad).numpy())

            yield f"norm, {pattern}", check

        def check_many(device):
            x = data(dtype, (MANY, 3))
            wide = helpers.widened(x).astype(np.float64)
            rows = [row.copy() for row in put(device, x)]
            norm = vg.nn.utils.get_total_norm(rows)
            expected = np.linalg.norm(wide)
            assert_within(norm, expected, 2 * helpers.UNIT_ROUNDOFF[dtype] * expected)
            apply(rows[0].backend, "clip_norm", rows, None, 2.0)
            helpers.assert_same(vg.stack(rows), (x + x).astype(dtype))

        yield "norm of many", check_many

    return cases


def dropouts(patterns):
    def cases(dtype):
        if not helpers.is_float(dtype):
            return
        for pattern, make in patterns.items():

            def check(device, make=make):
                x = data(dtype, (3, 7, 11))  # one less than a multiple of what a thread has
                u = vg.empty(x.shape, dtype="float32", device=device)
                apply(u.backend, "random", u, 1, 5, 6, 7)
                result = apply(u.backend, "dropout", make(device, x), 0.75, 5, 6, 7, None)
                expected = np.where(u.numpy() < 0.75, 0, x * 4).astype(dtype)
                helpers.assert_same(result, expected)
                renewed = put(device, np.array([1, 2, 3], np.uint64))
                result = apply(u.backend, "dropout", make(device, x), 0.75, 4, 4, 4, renewed)
                helpers.assert_same(result, expected)

            yield f"dropout, {pattern}", check

    return cases
