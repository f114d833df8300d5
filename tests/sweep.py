"""A compact program that launches every kernel: each operation, dtype and access pattern, checked.

Arrays have 4,096 elements or fewer wherever that is enough to choose the kernel, so the sweep also
serves the slow checkers: compute-sanitizer (sanitize.py), the debug allocator, and the test that no
kernel of the library was left out (both in test_coverage.py). No pytest is needed.
"""

import functools
import re
import subprocess
import warnings
from typing import NamedTuple

import helpers
import numpy as np
import sweep_complex
import sweep_losses
import sweep_optim
import sweep_rows
from helpers import DTYPES, HALVES, SHAPE, assert_close, assert_same, assert_within, put
from helpers import fixed_integers as data
from references import (
    BINARY,
    FLOAT_FUNCTIONS,
    UNARY,
    assert_binary,
    binary_reference,
    lookup,
    takes,
    unary_reference,
)
from sweep_products import forced_products, gradients, layers, products, stretches
from sweep_sequences import attentions, recurrences
from sweep_windows import windows

import pyvecgpu as vg
from pyvecgpu import learn
from pyvecgpu.dispatch import apply
from pyvecgpu.dtypes import supported
from pyvecgpu.native.abi import Distribution
from pyvecgpu.operations import ROWS

# Aligned vectors; unaligned ones; rows; rows of small steps; any strides.
PATTERNS = {
    "contiguous": helpers.put,
    "shifted": helpers.shifted(1),
    "rows": helpers.padded_rows,
    "stepped": helpers.stepped,
    "strided": helpers.far_apart,
}


class Case(NamedTuple):
    """One group of checks. `dtype` is the one that its kernels are made for."""

    name: str
    dtype: np.dtype
    run: object  # function of the device's name


def cases():
    """All cases, in a fixed order."""
    found = []
    for group in (
        unary,
        binary,
        powers,
        comparison_of_64_bits,
        where,
        triangles,
        joins,
        bounds,
        nearness,
        sweep_optim.steps,
        sweep_optim.norms(PATTERNS),
        sweep_optim.dropouts(PATTERNS),
        sweep_optim.renewed_steps,
        sequences,
        gathers,
        moves,
        numbers,
        casts,
        reductions,
        variances,
        exponentials,
        scans,
        searches,
        matrices,
        sorts,
        products,
        forced_products,
        stretches,
        layers,
        gradients,
        sweep_rows.normalisations,
        sweep_rows.losses,
        sweep_losses.activations,
        sweep_losses.pairs,
        windows,
        attentions,
        recurrences,
        lessons,
    ):
        for dtype in DTYPES:
            found += [Case(name, dtype, run) for name, run in group(dtype)]
    for group in (
        where,
        triangles,
        joins,
        sequences,
        gathers,
        moves,
        searches,
        sweep_complex.functions(PATTERNS),
        sweep_complex.casts(PATTERNS),
        sweep_complex.reductions,
        sweep_complex.products,
    ):
        for dtype in helpers.COMPLEX:
            found += [Case(name, dtype, run) for name, run in group(dtype)]
    return found


def run(device, chosen=None):
    """Run the cases (None: all) on a device; return how many. AssertionError: a wrong result."""
    chosen = cases() if chosen is None else chosen
    with np.errstate(all="ignore"):
        for case in chosen:
            try:
                case.run(device)
            except AssertionError as error:
                raise AssertionError(f"{case.name} of {case.dtype} on {device}: {error}") from None
    return len(chosen)


# ---- Kernels of the library ----------------------------------------------------------------------


def kernels(path):
    """The kernels of a built library: {offset of the host symbol: readable name}."""
    lines = subprocess.run(
        ["nm", path], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    symbols = [line.split(" ", 2) for line in lines if " t _ZN3pvg" in line or " T _ZN3pvg" in line]
    # Our own end in _kernel. No clones (a "."), no host stubs, nothing local to a function (_ZZ).
    kernel = re.compile("|".join(["_kernel", *lesson_kernels()]))
    chosen = [
        s for s in symbols if kernel.search(s[2]) and "." not in s[2] and "device_stub" not in s[2]
    ]
    names = "\n".join(symbol for _, _, symbol in chosen)
    readable = subprocess.run(["c++filt"], input=names, capture_output=True, text=True, check=True)
    pairs = zip(chosen, readable.stdout.splitlines(), strict=True)
    return {int(offset, 16): shorten(name) for (offset, _, _), name in pairs}


def lesson_kernels():
    """Patterns of the lessons' kernels, as the compiler names them: learn.cu has them all."""
    found = []
    cuda = helpers.ROOT / "cuda"
    for file in re.findall(
        r'^#include "(lessons/.*)"', (cuda / "kernels/learn.cu").read_text(), re.M
    ):
        part = (cuda / file).read_text().split("#ifndef PVG_LESSON_KERNELS")[0]
        number = re.search(r"\d+", file)[0]
        for name in re.findall(r"__global__ void (\w+)\(", part):
            found.append(rf"9lesson_{number}L?{len(name)}{name}E")
    return found


def shorten(name):
    """A demangled kernel without its namespaces, return type and parameters."""
    name = name.replace("(anonymous namespace)::", "").replace("pvg::", "").removeprefix("void ")
    return name.rsplit(">(", 1)[0] + ">" if ">(" in name else name.split("(")[0]


# What cards from compute capability 9.0 on do not launch: float32 heads of up to 128 features are
# for tensor cores from 8.0 on, and blocks that share rows or channels are a cluster from 9.0 on.
OF_OLDER_CARDS = re.compile(
    r"attention::attention_(query_|keys_|)kernel<float, [12]>"
    r"|(slope|normalize|channel)_parts_kernel<.*, false>"
)


def launched(device):
    """Offsets of the kernels in the launch log."""
    return {record.offset for record in vg.launch_log(device)}


# ---- Elementwise ---------------------------------------------------------------------------------


def unary(dtype):
    for name in UNARY:
        if takes(name, dtype):
            for pattern, make in PATTERNS.items():
                yield (
                    f"{name}, {pattern}",
                    lambda device, name=name, make=make: check_unary(device, name, dtype, make),
                )


def into_rows(device, function, *arrays):
    """The result of a function, and the same where its rows have gaps between them."""
    result = function(*arrays)
    out = helpers.padded_rows(device, np.zeros(SHAPE, helpers.host(result).dtype))
    function(*arrays, out=out)
    assert_same(out, helpers.host(result))
    return result


def check_unary(device, name, dtype, make):
    x = data(dtype)
    if name in ("log", "sqrt"):
        x = np.abs(x)
    result, reference = into_rows(device, lookup(name), make(device, x)), unary_reference(name, x)
    if name in FLOAT_FUNCTIONS:
        assert_close(result, reference, name, device)
    else:
        assert_same(result, reference)


def binary(dtype):
    for name in BINARY:
        if takes(name, dtype):
            for pattern, make in PATTERNS.items():
                yield (
                    f"{name}, {pattern}",
                    lambda device, name=name, make=make: check_binary(device, name, dtype, make),
                )
            yield (
                f"{name}, broadcast",
                lambda device, name=name: check_broadcast(device, name, dtype),
            )
            yield f"{name}, scalar", lambda device, name=name: check_scalar(device, name, dtype)


def check_binary(device, name, dtype, make):
    a, b = data(dtype), data(dtype, seed=1)
    assert_binary(device, name, getattr(vg, name)(make(device, a), make(device, b)), a, b)
    if name not in ("divide", "equal"):
        return
    # Results of the wrong layout go through a temporary, or are written in place.
    expected = binary_reference(name, a, b)
    out = make(device, np.ones(SHAPE, expected.dtype))
    getattr(vg, name)(put(device, a), make(device, b), out=out)
    assert_same(out, expected)


def check_broadcast(device, name, dtype):
    a, row, column = data(dtype), data(dtype, SHAPE[1:], 2), data(dtype, (SHAPE[0], 1), 3)
    for other in (row, column):
        for left, right in ((a, other), (other, a)):
            result = getattr(vg, name)(put(device, left), put(device, right))
            assert_binary(device, name, result, left, right)


def check_scalar(device, name, dtype):
    x = data(dtype, (1030,))
    value = np.full((), 1, dtype)
    array = put(device, x)
    if takes(name, dtype):
        for left, right, result in (
            (x, value, getattr(vg, name)(array, value.item())),
            (value, x, getattr(vg, name)(value.item(), array)),
            (x[::2], value, getattr(vg, name)(array[::2], value.item())),
        ):
            assert_binary(device, name, result, left, right)


def powers(dtype):
    """By a whole number, in every access pattern."""
    if dtype.kind == "b":
        return

    def check(device, make):
        x = np.sign(data(dtype))
        assert_same(make(device, x) ** 3, x)

    for pattern, make in PATTERNS.items():
        yield f"cubes, {pattern}", functools.partial(check, make=make)


def comparison_of_64_bits(dtype):
    """int64 beside uint64, which no common dtype holds, has kernels of its own."""
    if dtype in (np.int64, np.uint64):
        other = np.dtype(np.uint64 if dtype == np.int64 else np.int64)
        for pattern, make in PATTERNS.items():

            def check(device, make=make):
                a, b = helpers.specials(dtype), np.resize(helpers.specials(other), SHAPE[1])
                a, b = (np.ascontiguousarray(x) for x in np.broadcast_arrays(a[:, None], b[None]))
                for name in ("equal", "less", "greater_equal"):
                    result = getattr(vg, name)(make(device, a), make(device, b))
                    assert_same(result, binary_reference(name, a, b))

            yield f"exact comparison, {pattern}", check


def where(dtype):
    for pattern, make in PATTERNS.items():

        def check(device, make=make):
            mask, a, b = data(np.dtype(bool)), data(dtype), data(dtype, seed=1)
            arrays = (make(device, one) for one in (mask, a, b))
            assert_same(into_rows(device, vg.where, *arrays), np.where(mask, a, b))

        yield f"where, {pattern}", check


# ---- Copies --------------------------------------------------------------------------------------


def triangles(dtype):
    for pattern, make in PATTERNS.items():

        def check(device, make=make):
            a = data(dtype)
            x = make(device, a)
            assert_same(vg.tril(x, 2), np.tril(a, 2))
            assert_same(vg.triu(x, -3), np.triu(a, -3))

        yield f"triangle, {pattern}", check


def joins(dtype):
    """Along rows and across them, in units of an element and of several."""
    for pattern, make in PATTERNS.items():

        def check(device, make=make):
            a, b = data(dtype), data(dtype, seed=1)
            parts = [make(device, a), put(device, b), make(device, b)[:, :3]]
            assert_same(vg.concat(parts, axis=1), np.concatenate([a, b, b[:, :3]], 1))
            assert_same(vg.concat(parts[:2]), np.concatenate([a, b]))
            assert_same(vg.stack(parts[:2], axis=-1), np.stack([a, b], -1))

        yield f"join, {pattern}", check

    def check_aligned(device):
        a, b = data(dtype, (4, 32)), data(dtype, (4, 16), 1)
        assert_same(vg.concat([put(device, a), put(device, b)], axis=1), np.hstack([a, b]))

    yield "join, aligned", check_aligned

    def check_arranged(device):
        x = data(dtype)
        array, row = put(device, x), data(dtype, SHAPE[1:])
        for axis in (None, 0, 1):
            assert_same(vg.roll(array, 5, axis), np.roll(x, 5, axis))
            assert_same(vg.repeat(array, 2, axis), np.repeat(x, 2, axis))
        assert_same(vg.tile(array, (2, 1, 3)), np.tile(x, (2, 1, 3)))
        assert_same(vg.pad(array, ((1, 2), (3, 0))), np.pad(x, ((1, 2), (3, 0))))
        assert_same(vg.diag(put(device, row), -2), np.diag(row, -2))
        assert_same(vg.diagonal(array, 2) + array[0, 0], np.diagonal(x, 2) + x[0, 0])

    yield "roll, repeat, pad and diagonals", check_arranged


def bounds(dtype):
    if dtype.kind == "b":
        return
    for pattern, make in PATTERNS.items():

        def check(device, make=make):
            x = data(dtype)
            expected = np.clip(helpers.widened(x), 1, 3).astype(dtype)
            assert_same(into_rows(device, vg.clip, make(device, x), 1, 3), expected)
            low, high = np.full_like(x, 1), np.full_like(x, 3)
            arrays = (make(device, one) for one in (x, low, high))
            assert_same(into_rows(device, vg.clip, *arrays), expected)

        yield f"clip, {pattern}", check


def nearness(dtype):
    if not helpers.is_float(dtype):
        return
    for pattern, make in PATTERNS.items():

        def check(device, make=make):
            x, y = data(dtype), data(dtype, seed=1)
            wide, other = helpers.widened(x), helpers.widened(y)
            close = vg.isclose(make(device, x), make(device, y), 0.25, 0.5)
            assert_same(close, np.abs(wide - other) <= 0.25 * np.abs(other) + 0.5)
            gone = np.where(wide == wide[1, 1], np.nan, wide).astype(dtype)
            expected = np.where(wide == wide[1, 1], 7, wide).astype(dtype)
            assert_same(vg.nan_to_num(make(device, gone), nan=7), expected)

        yield f"isclose and nan_to_num, {pattern}", check


def sequences(dtype):
    def check_eye(device):
        assert_same(vg.eye(37, 41, -2, dtype=dtype, device=device), np.eye(37, 41, -2, dtype=dtype))

    def check(device):
        values = np.arange(5, 105, 3).astype(dtype)
        assert_same(vg.arange(5, 105, 3, dtype=dtype, device=device), values)
        target = vg.zeros((2, 80), dtype=dtype, device=device)[1, 3:71:2]
        start, step = (5.0, 3.0) if helpers.is_float(dtype) else (5, 3)
        apply(target.backend, "sequence", target, start, step, None)
        assert_same(target, values)

    yield "eye", check_eye
    if dtype.kind not in "bc":
        yield "sequence", check


def check_no_columns(device, dtype):
    """The indices are looked at all the same."""
    array = put(device, data(dtype, (40, 0)))
    assert_same(array[put(device, np.arange(5))], data(dtype, (5, 0)))


def gathers(dtype):
    """Rows of indices, that are moved in words of every size, and the ways to the last value."""
    for columns in (1, 2, 3, 4, 8, 16, 32):

        def check(device, columns=columns):
            x, rows = data(dtype, (40, columns)), np.arange(60) * 7 % 40 - 20
            y, others = x.reshape(5, 8, columns), np.arange(60) % 5
            assert_same(
                put(device, y)[put(device, others), put(device, rows // 5)], y[others, rows // 5]
            )
            array, given = put(device, x), put(device, rows)
            assert_same(array[given], x[rows])
            assert_same(array[given, 0], x[rows, 0])
            values = data(dtype, (60, columns), 1)
            array[given] = put(device, values)
            x = x.copy()
            x[rows] = values
            assert_same(array, x)

        yield f"rows of {columns} by number", check

    yield "rows of nothing by number", lambda device: check_no_columns(device, dtype)

    def check_long(device):
        x, rows = data(dtype, (3, 5, 701)), np.arange(130) ** 2 % 5 - 2
        assert_same(put(device, x)[:, put(device, rows)], x[:, rows])
        assert_same(put(device, x[:, :, 1:])[:, put(device, rows)], x[:, :, 1:][:, rows])
        x, columns = data(dtype, (5, 9, 90)), np.arange(6200) ** 2 % 90 - 45
        assert_same(put(device, x)[:, :, put(device, columns)], x[:, :, columns])

    yield "long rows by number", check_long
    many = (
        (3000, (), 1, 64),
        (5000, (), 1, 64),
        (17_000, (), 2, 64),
        (17_000, (), 2, 4000),
        (5000, (2,), 1, 64),
        (5000, (2,), 2, 64),
        (5000, (3,), 2, 64),
        (5000, (3,), 1, 40_000),
        (140_000, (), 1, 40_000),  # parted, where clusters take fewer
    )
    for count, columns, step, parts in many:

        def check_many(device, count=count, columns=columns, step=step, parts=parts):
            if device == "sim" and count > 2**17:  # which has a card that parts the 17,000
                return
            x, indices = data(dtype, (parts, *columns)), np.arange(count) ** 2 % parts
            values, expected = data(dtype, (count, *columns), 1), x.copy()
            expected[indices] = values
            for card in (device, "sim:1") if device == "sim" else (device,):  # which has clusters
                array = put(card, x)
                array[put(card, np.repeat(indices, step))[::step]] = put(card, values)
                assert_same(array, expected)

        yield f"{count} values for {parts} parts {columns}, every {step}. index", check_many

    def check_columns(device):
        for parts in (64, 40_000):
            x, indices = data(dtype, (3, parts)), np.arange(5000) ** 2 % parts
            array, values = put(device, x), data(dtype, (3, 5000), 1)
            array[:, put(device, indices)] = put(device, values)
            x = x.copy()
            x[:, indices] = values
            assert_same(array, x)

    yield "columns by many numbers", check_columns

    def check_pairs(device):
        x, indices = data(dtype, (64,)), (np.arange(5000) ** 2 % 64).reshape(-1, 2)
        array, values = put(device, x), data(dtype, indices.shape, 1)
        array[put(device, indices)] = put(device, values)
        x = x.copy()
        x[indices] = values
        assert_same(array, x)

    yield "5000 values by indices in pairs", check_pairs

    def check_masks(device):
        x, mask = data(dtype, (90, 61)), np.arange(90 * 61).reshape(90, 61) % 3 == 0
        array, given = put(device, x), put(device, mask)
        assert_same(array[given], x[mask])
        assert_same(array[given[:, 1]], x[mask[:, 1]])
        for pattern, make in PATTERNS.items():
            array, y = make(device, x), x.copy()
            array[given] = 1
            y[mask] = 1
            assert_same(array, y, pattern)

    yield "where bools are true", check_masks

    def check_sums(device):
        indices = np.arange(3000) ** 2 % 64 - 32
        for columns in (1, 3, 40):
            x = (np.arange(64 * columns) % 5).astype(dtype).reshape(64, columns)
            values = (np.arange(3000 * columns) % 2).astype(dtype).reshape(3000, columns)
            array = put(device, x)
            vg.index_add(array, put(device, indices), put(device, values))
            x = x.copy()
            if x.dtype.name in ("float16", "bfloat16"):
                wide = x.astype(np.float32)
                np.add.at(wide, indices, values.astype(np.float32))
                x = wide.astype(x.dtype)
            else:
                np.add.at(x, indices, values)
            assert_same(array, x)

    yield "sums of what has one place", check_sums


def moves(dtype):
    for pattern, make in PATTERNS.items():

        def check(device, make=make):
            x = data(dtype)
            assert_same(make(device, x).copy(), x)
            target = make(device, np.zeros(SHAPE, dtype))
            target[...] = put(device, x)
            assert_same(target, x)
            target[...] = True
            assert_same(target, np.ones(SHAPE, dtype))

        yield f"copy and fill, {pattern}", check
    for name, rows, columns, first in (
        ("aligned", 64, 64, 0),
        ("partial tiles", 48, 80, 0),
        ("shifted", 49, 67, 1),
        ("wide", 17, 200, 3),
    ):

        def check(device, rows=rows, columns=columns, first=first):
            x = data(dtype, (rows, columns))
            array = put(device, x)[:, first:]
            assert_same(array.T.copy(), x[:, first:].T)
            target = vg.zeros((columns - first, rows + first), dtype=dtype, device=device)
            target[:, first:] = array.T
            assert_same(target[:, first:], x[:, first:].T)

        yield f"transposed copy, {name}", check

    def short_axes(device):
        x = data(dtype, (5, 31, 3, 71))
        assert_same(vg.permute_dims(put(device, x), (2, 0, 3, 1)).copy(), x.transpose(2, 0, 3, 1))

    yield "permuted copy of short axes", short_axes


def numbers(dtype):
    """Random numbers, whole vectors and what is left of one."""
    bits, *floats = Distribution
    kind = supported(dtype).kind
    for distribution in [bits] if kind == "u" else floats if kind == "f" else []:
        for pattern, make in PATTERNS.items():

            def check(device, make=make, distribution=distribution):
                x, y = (make(name, np.zeros(SHAPE, dtype)) for name in (device, "cpu"))
                for array in (x, y):
                    apply(array.backend, "random", array, int(distribution), 1, 2, 3)
                if distribution in (Distribution.RANDOM_BITS, Distribution.RANDOM_UNIFORM):
                    assert_same(x, helpers.host(y))
                else:
                    expected = helpers.widened(helpers.host(y))
                    assert_within(x, expected, 64 * helpers.UNIT_ROUNDOFF[dtype])

            yield f"random {distribution.name}, {pattern}", check
    if kind in "iu":

        def check_integers(device):
            for count in {8: (100, 2**33 + 1), 4: (100, 70_001)}.get(dtype.itemsize, (100,)):
                x, y = (
                    vg.random.default_rng(3, device=one).integers(3, count, (5, 31), dtype)
                    for one in (device, "cpu")
                )
                assert_same(x, helpers.host(y))

        yield "random integers", check_integers


def casts(dtype):
    for source in DTYPES:
        for pattern, make in PATTERNS.items():

            def check(device, source=source, make=make):
                x = (
                    np.abs(data(source))
                    if dtype.kind == "u" and source.kind != "b"
                    else data(source)
                )
                assert_same(make(device, x).astype(dtype), x.astype(dtype))
                target = make(device, np.zeros(SHAPE, dtype))
                target[...] = put(device, x)
                assert_same(target, x.astype(dtype))

            yield f"cast from {source}, {pattern}", check


# ---- Reductions ----------------------------------------------------------------------------------

# (shape, axis): short and long rows, whole and in chunks, columns, both, and neither.
REDUCED = {
    "short rows": ((90, 45), 1),
    "one long row": ((4090,), 0),
    "columns": ((33, 60), 0),
    "tall columns": ((2045, 2), 0),
    "columns of a batch": ((5, 20, 7), 1),
    "everything": ((31, 33), None),
    "axes that do not touch": ((6, 7, 8), (0, 2)),
    "columns in chunks": ((4001, 20), 0),
    "narrow columns in chunks": ((20_001, 2), 0),
    "axes apart, columns first": ((4100, 2, 3), (0, 2)),
    "axes apart, rows first": ((3, 2, 4100), (0, 2)),
    "axes apart, a middle one first": ((3, 2, 1400, 2, 3), (0, 2, 4)),
    "axes apart, neighbours in blocks": ((132, 5, 37, 7), (1, 3)),
    "shifted rows": ((1, 4091), 1),
    "shifted columns": ((602, 12), 0),
}


def reductions(dtype):
    for row in ROWS:
        if row.family != "reduce":
            continue
        make = factors if row.identity == 1 else data
        for name, (shape, axis) in REDUCED.items():
            if row.result != "index" or not isinstance(axis, tuple):

                def check(device, row=row, make=make, shape=shape, axis=axis, name=name):
                    x = make(dtype, shape)
                    array = put(device, x)
                    if name.startswith("shifted"):
                        x, array = x[:, 1:], array[:, 1:]
                    check_reduction(device, row, x, array, axis)

                yield f"{row.name}, {name}", check

        def check(device, row=row, make=make):
            # Everything, in the order of axes that lie the other way round.
            x = make(dtype, (31, 33))
            check_reduction(device, row, x.T, put(device, x).T, None)

        yield f"{row.name}, everything turned round", check

        def check(device, row=row, make=make):
            # Rows that are cut into chunks are longer than 4,096 elements; the stored ones are not.
            x = make(dtype, (3, 1), 5)
            long = np.broadcast_to(x, (3, 70_000))
            check_reduction(device, row, long, vg.broadcast_to(put(device, x), long.shape), 1)

        yield f"{row.name}, rows in chunks", check
        if row.identity is not None:
            yield f"{row.name}, of nothing", lambda d, row=row: check_of_nothing(d, row, dtype)


def factors(dtype, shape, seed=0):
    """Numbers whose products are exact and not 0: odd integers, and 1.0 and -1.0."""
    x = data(dtype, shape, seed)
    if helpers.is_float(dtype):
        return np.where(x < 0, -1, 1).astype(dtype)
    return x if dtype.kind == "b" else x | 1


def check_reduction(device, row, x, array, axis):
    result = getattr(vg, row.name)(array, axis=axis)
    if row.result != "float":
        if row.result == "wide" and x.dtype in HALVES:
            expected = getattr(np, row.name)(helpers.widened(x), axis=axis).astype(x.dtype)
        else:
            expected = getattr(np, row.name)(x, axis=axis)
        return assert_same(result, expected)
    reference = getattr(np, row.name)(helpers.widened(x), axis=axis, dtype=np.float64)
    unit = helpers.UNIT_ROUNDOFF[helpers.host(result).dtype]
    assert_within(result, reference, np.abs(reference) * 2 * max(unit, 2.0**-24) + 2.0**-60)


def check_of_nothing(device, row, dtype):
    nothing = np.zeros((0, 5), dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the CPU's, of a mean
        result = helpers.host(getattr(vg, row.name)(put(device, nothing), axis=0))
    if row.result == "float":
        assert np.isnan(result).all()
    else:
        assert_same(result, getattr(np, row.name)(nothing, axis=0))


# ---- Variances and exponentials ------------------------------------------------------------------


def variances(dtype):
    if not helpers.is_float(dtype):
        return
    for name, (shape, axis) in (REDUCED | {"rows in chunks": ((1, 70_000), 1)}).items():

        def check(device, shape=shape, axis=axis, name=name):
            x = data(dtype, shape)
            array, wide = put(device, x), helpers.widened(x).astype(np.longdouble)
            if name == "shifted rows":
                wide, array = wide[:, 1:], array[:, 1:]
            unit = helpers.UNIT_ROUNDOFF[dtype] + x.size * 2.0**-60  # NumPy's own
            for function in ("var", "std"):
                expected = getattr(np, function)(wide, axis=axis)
                result = getattr(vg, function)(array, axis=axis)
                assert_within(result, expected, 256 * unit * np.abs(expected))

        yield f"variance, {name}", check
    for name, (shape, axis) in (REDUCED | THIN | {"rows in chunks": ((1, 70_000), 1)}).items():

        def check_sums(device, shape=shape, axis=axis):
            x = data(dtype, shape)
            x.reshape(-1)[::3] = np.nan
            array, wide = put(device, x), helpers.widened(x).astype(np.longdouble)
            unit = helpers.UNIT_ROUNDOFF[dtype] + x.size * 2.0**-60
            bound = 16 * unit * (1 + np.nansum(np.abs(wide), axis=axis))
            for function in (np.nansum, np.nanmean):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)  # of nothing but NaN
                    expected = function(wide, axis=axis)
                assert_within(getattr(vg, function.__name__)(array, axis=axis), expected, bound)
            expected = np.var(np.nan_to_num(wide), axis=axis)
            result = vg.var(vg.nan_to_num(array), axis=axis)
            assert_within(result, expected, 256 * unit * np.abs(expected) + unit)

        yield f"without NaN, {name}", check_sums


# Columns that a thread has, or several.
THIN = {
    "short columns": ((2, 8200), 0),
    "columns of a few": ((9, 33, 5), 1),
    "wide columns": ((2, 3, 65_700), 1),
}


# (shape, axis) of rows of a few lanes, of a warp, of a block, with shared memory, in two passes.
SOFT_ROWS = {
    **REDUCED,
    "rows of a pack": ((70, 3), 1),
    "rows of a warp": ((5, 200), 1),
    "long rows of a warp": ((2, 500), 1),
    "longer rows of a warp": ((2, 900), 1),
    "rows of a block": ((2, 1500), 1),
    "rows in shared memory": ((2, 20_000), 1),
    "two passes": ((1, 200_000), 1),  # more than the registers and shared memory of a block
    "axis of one": ((6, 1, 7), 1),
}


def exponentials(dtype):
    if not helpers.is_float(dtype):
        return
    for name, (shape, axis) in (SOFT_ROWS | THIN).items():
        patterns = PATTERNS if np.prod(shape) < 5000 else {"contiguous": helpers.put}
        for pattern, make in patterns.items():

            def check(device, shape=shape, axis=axis, make=make):
                x = data(dtype, shape)
                check_exponentials(make(device, x), helpers.widened(x), axis, dtype)

            yield f"exponentials, {name}, {pattern}", check


def check_exponentials(array, x, axis, dtype):
    x = x.astype(np.longdouble)
    most = x.max(axis=axis, keepdims=True)
    logarithm = most + np.log(np.exp(x - most).sum(axis=axis, keepdims=True))
    unit = max(helpers.UNIT_ROUNDOFF[dtype], 2.0**-52) + x.size * 2.0**-57  # NumPy's own
    expected = np.exp(x - logarithm)
    least = 2.0**-24 if dtype.itemsize == 2 else 2.0**-126  # a subnormal float16 has fewer digits
    assert_within(vg.softmax(array, axis), expected, 64 * unit * expected + least)
    spread = 16 * unit * (1 + np.abs(x - most) + np.abs(logarithm - most))
    assert_within(vg.log_softmax(array, axis), x - logarithm, spread)
    result = vg.logsumexp(array, axis, keepdims=True)
    assert_within(result, logarithm, 16 * unit * (1 + np.abs(logarithm)))


# ---- Scans ---------------------------------------------------------------------------------------

# (shape, axis): short rows, rows of one tile, columns, and both in chunks.
SCANNED = {
    "short rows": ((90, 45), 1),
    "a row": ((1, 4091), 1),
    "columns": ((33, 60), 0),
    "tall columns": ((1200, 3), 0),
    "columns of many chunks": ((2200, 3), 0),
    "shifted rows": ((3, 1301), 1),
}


def scans(dtype):
    for name, (shape, axis) in SCANNED.items():

        def check(device, shape=shape, axis=axis, name=name):
            x = data(dtype, shape) // 8 if dtype.kind in "iuf" else data(dtype, shape)
            array = put(device, x)
            if name == "shifted rows":
                x, array = x[:, 1:], array[:, 1:]
            check_scans(device, x, array, axis)

        yield f"scan, {name}", check

    def check(device):
        x = np.zeros(30_000, dtype)
        x[::400] = 1
        check_scans(device, x, put(device, x), 0)

    yield "scan, a row in chunks", check


def check_scans(device, x, array, axis):
    """Sums are exact where they are small integers; products of factors 1 and 0."""
    for function, reference, values in (
        (vg.cumulative_sum, np.cumsum, x),
        (vg.cumulative_prod, np.cumprod, x != 0),
    ):
        operand = array if values is x else (array != 0).astype(x.dtype)
        wide = np.float64 if helpers.is_float(x.dtype) else None
        expected = reference(helpers.widened(values.astype(x.dtype)), axis=axis, dtype=wide)
        result = function(operand, axis=axis)
        assert_same(result, expected.astype(helpers.host(result).dtype))


def searches(dtype):
    for pattern, make in PATTERNS.items():

        def check(device, make=make):
            x = data(dtype)
            assert_same(vg.argwhere(make(device, x)), np.argwhere(x))

        yield f"nonzero, {pattern}", check


def matrices(dtype):
    """Matrices of a warp and of a block."""
    if dtype not in (np.float32, np.float64):
        return
    for n in (5, 40):

        def check(device, n=n):
            x = data(dtype, (3, n, n)) / 16 + np.eye(n, dtype=dtype) * 4
            x, tolerance = x.astype(dtype), 1e-3 if dtype == np.float32 else 1e-10
            p, wide = x @ x.swapaxes(-1, -2), x.astype(np.float64)
            array = put(device, x)
            assert_within(
                vg.linalg.solve(array, array[..., :3]), np.eye(n)[:, :3] + 0 * x[..., :3], tolerance
            )
            assert_within(vg.linalg.inv(array), np.linalg.inv(wide), tolerance)
            sign, logarithm = np.linalg.slogdet(wide)
            assert_within(vg.linalg.slogdet(array).logabsdet, logarithm, tolerance * n)
            assert_same(vg.linalg.slogdet(array).sign, sign.astype(dtype))
            lower = np.linalg.cholesky(p.astype(np.float64))
            assert_within(vg.linalg.cholesky(put(device, p)), lower, tolerance)

        yield f"factors of {n} x {n}", check


ROWS_TO_SORT = {
    "short rows": (40, 60),
    "a row of a block": (1, 1000),
    "a long row": (1, 5000),
    "long rows": (2, 4200),
    "one row": (1, 9000),
}


def sorts(dtype):
    for name, shape in ROWS_TO_SORT.items():

        def check(device, shape=shape):
            x = data(dtype, shape)
            array, wide = put(device, x), helpers.widened(x)
            assert_same(vg.sort(array), np.sort(wide).astype(dtype))
            assert_same(vg.argsort(array), np.argsort(wide, kind="stable"))
            row = np.sort(wide[0]).astype(dtype)
            expected = np.searchsorted(helpers.widened(row), wide)
            assert_same(vg.searchsorted(put(device, row), array), expected)

        yield f"sort, {name}", check

    def firsts(device):
        # rows in a block of each size
        for length in (40, 600, 2100, 8200):
            x = data(dtype, (length,))
            order = np.argsort(-helpers.widened(x).astype("float64"), kind="stable")[:2]
            values, indices = vg.top_k(put(device, x), 2)
            assert_same(indices, order)
            assert_same(values, x[order])

    yield "first few", firsts

    def long_search(device):
        # more than shared memory takes
        row = np.sort(helpers.widened(data(dtype, (33_000,)))).astype(dtype)
        expected = np.searchsorted(helpers.widened(row), helpers.widened(row[::40]))
        assert_same(vg.searchsorted(put(device, row), put(device, row[::40])), expected)
        if dtype.kind == "u":  # several at the same time
            found = vg.searchsorted(put(device, row), put(device, np.resize(row[::40], 1 << 16)))
            assert_same(found, np.resize(expected, 1 << 16))

    yield "search in a long row", long_search

    def uniques(device):
        # by one block, by several, and by the whole card
        for size in (30, 5000, 40_000 if dtype.itemsize <= 2 else 4200):
            x = data(dtype, (size,))
            if dtype.kind == "f" and size == 5000:
                x[-2:] = np.nan
            expected = np.unique(helpers.widened(x), equal_nan=False).astype(dtype)
            assert_same(vg.unique_values(put(device, x)), expected)

    yield "unique", uniques
    if dtype.kind in "iu":
        yield "bincount", lambda device: check_counts(device, dtype)


def check_counts(device, dtype):
    x = np.abs(data(dtype, (3000,)))
    weights = x.astype(np.float64)
    array = put(device, x)
    for least in (0, 5000):
        assert_same(vg.bincount(array, minlength=least), np.bincount(x, minlength=least))
    assert_same(vg.bincount(array, put(device, weights)), np.bincount(x, weights))


# ---- Lessons -------------------------------------------------------------------------------------


def lessons(dtype):
    """The kernels of cuda/lessons; the references are this library's own functions."""
    if dtype != np.float32:
        return
    a, b, tall = data(dtype), data(dtype, seed=1), data(dtype, (SHAPE[1], 65), seed=2)
    shape = (3, 4, 5)
    calls = {
        "vector_add": (lambda x, y: x + y, [a.ravel(), b.ravel()], {}),
        "matrix_add": (lambda x, y: x + y, [a, b], {}),
        "slow matrix_add": (lambda x, y: x + y, [a, b], {"slow": True}),
        "tensor_add": (lambda x, y: x + y, [data(dtype, shape), data(dtype, shape, 1)], {}),
        "sigmoid": (vg.sigmoid, [a.ravel()], {}),
        "layer": (
            lambda x, weight, bias: vg.dense(x, weight, bias, "sigmoid"),
            [a / 8, b[:2] / 8, b[0, :2]],
            {},
        ),
    }
    for kernel in ("naive", "coalesced", "tiled", "registers"):
        calls[f"{kernel} matmul"] = vg.matmul, [a, tall], {"kernel": kernel}
    for name, (reference, operands, options) in calls.items():

        def check(device, name=name, reference=reference, operands=operands, options=options):
            expected = helpers.host(reference(*(vg.asarray(x, device="cpu") for x in operands)))
            if device == "cpu":
                result = helpers.host(reference(*(put("cpu", x) for x in operands)))
            else:
                function = getattr(learn, name.split()[-1])
                result, report = function(*operands, device=device, **options)
                assert report.covered == report.elements == expected.size
            assert_within(result, expected, 1e-6 * np.abs(expected))

        yield f"lesson's {name}", check


if __name__ == "__main__":
    import sys

    print(f"{run(sys.argv[1])} cases")
