"""pyvecgpu.learn: the lessons' kernels compute what NumPy does, and the report is true."""

import re
import shutil
from ctypes import byref, c_double, c_int64

import numpy as np
import pytest
from helpers import assert_within

import pyvecgpu as vg
from pyvecgpu import learn
from pyvecgpu.bench import loops
from pyvecgpu.native.abi import LessonKernel, Status

on_cards = pytest.mark.devices("sim", "cuda")
KERNELS = ("naive", "coalesced", "tiled", "registers")


def draw(rng, *shapes):
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def logistic(x):
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def check_report(report, result, device):
    """What has to be true of every launch that covers all."""
    assert report.covered == report.elements == result.size
    assert report.bytes == report.bytes_to_device + report.bytes_to_host
    assert report.bytes_to_host == result.nbytes
    times = [report.numpy, report.kernel_time, report.to_device, report.to_host]
    assert min(times) > 0
    assert report.device.startswith(device)
    measured = report.occupancy, report.share, report.limit
    if device == "sim":
        assert measured == (None, None, None)
        assert "not on the simulated card" in str(report)
    else:
        assert 0 < report.occupancy <= 1
        assert 0 < report.share < 1.5  # beyond 1 where the data stays in the cache
        assert f"{report.occupancy:.0%}" in str(report)
    if loops.load()[0] is not None:
        assert report.c_loop > 0 and report.note == ""


@on_cards
@pytest.mark.parametrize("name, ndim", [("vector_add", 1), ("matrix_add", 2), ("tensor_add", 3)])
def test_additions_of_awkward_shapes(device, rng, name, ndim):
    for shape in ((0, 3, 5), (1, 1, 1), (3, 33, 65), (65, 3, 33)):
        a, b = draw(rng, shape[:ndim], shape[:ndim])
        result, report = getattr(learn, name)(a, b, device=device)
        np.testing.assert_array_equal(result, a + b)
        if result.size:
            check_report(report, result, device)


@on_cards
def test_slow_matrix_add_takes_the_row_from_x(device, rng):
    a, b = draw(rng, (5, 40), (5, 40))
    result, report = learn.matrix_add(a, b, slow=True, device=device)
    np.testing.assert_array_equal(result, a + b)
    assert report.kernel == "matrix_add_slow" and report.grid == (1, 5, 1)
    result, report = learn.matrix_add(a, b, grid=(1, 1), block=(2, 8), slow=True, device=device)
    assert report.covered == 16
    np.testing.assert_array_equal(result[:2, :8], (a + b)[:2, :8])
    assert not result[2:].any() and not result[:, 8:].any()


@on_cards
def test_sigmoid(device, rng):
    x = np.append(draw(rng, 1000)[0] * 10, np.float32([0, 100, -100, np.inf, -np.inf]))
    result, report = learn.sigmoid(x, device=device)
    with np.errstate(over="ignore"):
        expected = logistic(x)
    assert_within(result, expected, 1e-6 * expected + 1e-37)
    check_report(report, result, device)


@on_cards
@pytest.mark.parametrize("kernel", KERNELS)
def test_products_of_awkward_shapes(device, rng, kernel):
    for m, k, n in ((1, 1, 1), (33, 17, 65), (70, 40, 3), (2, 0, 3), (0, 3, 2)):
        a, b = draw(rng, (m, k), (k, n))
        result, report = learn.matmul(a, b, kernel=kernel, device=device)
        bound = np.abs(a).astype(np.float64) @ np.abs(b) * k * 2.0**-23
        assert_within(result, a.astype(np.float64) @ b, bound)
        assert report.kernel == f"matmul_{kernel}" and report.operations == 2 * m * n * k
        if m and k:
            check_report(report, result, device)


@on_cards
def test_layer_of_a_vector_and_of_a_batch(device, rng):
    x, W, b = draw(rng, (7, 45), (19, 45), 19)
    expected = logistic(x.astype(np.float64) @ W.T + b)
    result, report = learn.layer(x, W, b, device=device)
    assert_within(result, expected, 1e-5)
    check_report(report, result, device)
    one, _ = learn.layer(x[3], W, b, device=device)
    assert one.shape == (19,)
    assert_within(one, expected[3], 1e-5)
    none, _ = learn.layer(x[:0], W, b, device=device)
    assert none.shape == (0, 19)


@on_cards
def test_a_launch_too_small_leaves_zeros(device, rng):
    a, b = draw(rng, 500_000, 500_000)
    result, report = learn.vector_add(a, b, blocks=1, threads=1024, device=device)
    np.testing.assert_array_equal(result[:1024], (a + b)[:1024])
    assert not result[1024:].any()
    assert (report.covered, report.elements, report.bytes) == (1024, 500_000, 3 * 4 * 1024)
    assert "vector_add<<<1, 1,024>>>" in str(report)
    assert "covered 1,024 of 500,000 elements" in str(report) and "stay 0" in str(report)
    assert str(report).count("all elements") == (1 if loops.load()[0] is None else 2)
    whole, report = learn.vector_add(a, b, blocks=1954, threads=256, device=device)
    np.testing.assert_array_equal(whole, a + b)
    assert "covered 500,000 of 500,000 elements" in str(report) and "stay 0" not in str(report)
    assert "all elements" not in str(report)


@on_cards
def test_part_of_a_tensor(device, rng):
    a, b = draw(rng, (4, 6, 10), (4, 6, 10))
    result, report = learn.tensor_add(a, b, grid=(2, 1, 3), block=(4, 4, 1), device=device)
    expected = np.zeros_like(a)
    expected[:3, :4, :8] = (a + b)[:3, :4, :8]
    np.testing.assert_array_equal(result, expected)
    assert report.covered == 3 * 4 * 8


@on_cards
def test_a_block_beyond_the_limit_is_refused_before_the_launch(device, rng):
    a, b = draw(rng, 500_000, 500_000)
    before = vg.counters(device)["launches"]
    message = f"500000 threads per block exceed the limit of 1024 of {vg.Device(device).name}"
    with pytest.raises(vg.LaunchError, match=f"^{re.escape(message)}$") as caught:
        learn.vector_add(a, b, blocks=1, threads=500_000, device=device)
    assert caught.value.name == "cudaErrorInvalidConfiguration"
    assert vg.counters(device)["launches"] == before
    result, _ = learn.vector_add(a, b, device=device)  # the card is as usable as before
    np.testing.assert_array_equal(result, a + b)
    assert vg.is_healthy()


@on_cards
def test_every_limit_of_a_launch(device, rng):
    a, b = draw(rng, (2, 2, 2), (2, 2, 2))
    for options, message in (
        ({"block": (1, 1, 128)}, "128 threads along z of a block exceed the limit of 64"),
        ({"grid": (1, 65_536, 1)}, "65536 blocks along y of the grid exceed the limit of 65535"),
        ({"grid": (2**31, 1, 1)}, "2147483648 blocks along x of the grid"),
    ):
        with pytest.raises(vg.LaunchError, match=message):
            learn.tensor_add(a, b, device=device, **options)


@on_cards
def test_the_default_device(device, rng):
    a, b = draw(rng, 100, 100)
    with vg.device(device):
        assert learn.vector_add(a, b)[1].device.startswith(device)


def test_instead_of_the_cpu_by_default_the_simulated_card(rng):
    a, b = draw(rng, 100, 100)
    with vg.device("cpu"):
        assert learn.vector_add(a, b)[1].device.startswith("sim")


def test_the_cpu_is_refused(rng):
    a, b = draw(rng, 100, 100)
    with pytest.raises(ValueError, match="CUDA C, which the CPU cannot run; use device='sim'"):
        learn.vector_add(a, b, device="cpu")


def test_wrong_arguments(rng):
    a, b, matrix = draw(rng, 100, 100, (10, 10))
    long = np.zeros((2**30 + 1, 0), "float32")
    for error, message, call in (
        (TypeError, "NumPy array, not list", lambda: learn.sigmoid([1.0])),
        (TypeError, r"x is float64; use x\.astype", lambda: learn.sigmoid(np.ones(3))),
        (ValueError, "1 dimensions", lambda: learn.sigmoid(matrix)),
        (ValueError, "must be the same", lambda: learn.vector_add(a, b[1:])),
        (ValueError, "threads must be a number", lambda: learn.sigmoid(a, threads=0)),
        (ValueError, "blocks must be a number", lambda: learn.sigmoid(a, blocks=-1)),
        (TypeError, "whole numbers", lambda: learn.sigmoid(a, threads=2.5)),
        (ValueError, "up to 2", lambda: learn.matrix_add(matrix, matrix, grid=(1, 1, 1))),
        (ValueError, "cannot be multiplied", lambda: learn.matmul(matrix, matrix[1:])),
        (ValueError, "it can be 'naive'", lambda: learn.matmul(matrix, matrix, kernel="fast")),
        (ValueError, "do not fit together", lambda: learn.layer(a, matrix, b)),
        (ValueError, r"up to 2\^30 rows and columns", lambda: learn.matmul(long[:0, :0], long.T)),
    ):
        with pytest.raises(error, match=message), vg.device("sim"):
            call()


@on_cards
def test_operands_need_not_be_contiguous(device, rng):
    (a,) = draw(rng, (6, 10))
    result, _ = learn.matmul(a[:, ::2], a[::-1, 1:].T[:5], device=device)
    assert_within(result, a[:, ::2].astype(np.float64) @ a[::-1, 1:].T[:5], 1e-5)


def test_without_a_compiler_the_c_loop_is_left_out(rng, monkeypatch):
    loops.load.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    try:
        _, report = learn.vector_add(*draw(rng, 10, 10), device="sim")
    finally:
        loops.load.cache_clear()
    assert report.c_loop is None
    assert re.search("C loop *not measured  there is no C compiler", str(report))


def test_a_long_c_loop_is_not_run(monkeypatch, rng):
    monkeypatch.setattr("pyvecgpu.learn.launch._LONGEST_LOOP", 99)
    _, report = learn.vector_add(*draw(rng, 100, 100), device="sim")
    assert report.c_loop is None and "not measured  it would take too long" in str(report)


def test_loops_compute_what_numpy_does(rng):
    library, why = loops.load()
    assert library is not None, why
    x, W, b = draw(rng, (7, 45), (19, 45), 19)
    y, total, product, curve = (np.zeros(s, np.float32) for s in ((7, 19), 19, (7, 7), 19))
    loops.bind("layer", [7, 19, 45], [W, x, b, y])[0]()
    loops.bind("add", [19], [b, b, total])[0]()
    loops.bind("multiply", [7, 7, 45], [x, np.ascontiguousarray(x.T), product])[0]()
    loops.bind("sigmoid", [19], [b, curve])[0]()
    assert_within(y, logistic(x.astype(np.float64) @ W.T + b), 1e-5)
    np.testing.assert_array_equal(total, b + b)
    assert_within(product, x.astype(np.float64) @ x.T, 1e-4)
    assert_within(curve, logistic(b), 1e-6)


# The C function's own checks ----------------------------------------------------------------------


def call_learn(device, kernel, arrays, out, grid=(1, 1, 1), block=(32, 1, 1), launches=1):
    """pvg_learn's status and message."""
    library = vg.Device(device).backend.library
    handles = [array.raw for array in arrays] + [None] * (3 - len(arrays))
    sizes = [(c_int64 * 3)(*xyz) for xyz in (grid, block)]
    status = library.pvg_learn(
        kernel, *sizes, *handles, out.raw, launches, byref(c_double()), byref(c_int64())
    )
    return status, library.pvg_last_error().decode()


@on_cards
def test_pvg_learn_refuses_what_would_leave_the_arrays(device):
    a = vg.ones((64, 64), dtype=vg.float32, device=device)
    out, row = vg.zeros_like(a), a[0]
    doubles, short = a.astype(vg.float64), vg.zeros((3,), dtype=vg.float32, device=device)
    add, tiled = LessonKernel.LESSON_VECTOR_ADD, LessonKernel.LESSON_MATMUL_TILED
    naive, layer = LessonKernel.LESSON_MATMUL_NAIVE, LessonKernel.LESSON_LAYER
    for status, message, call in (
        (Status.ERROR_VALUE, "unknown lesson kernel 77", (77, [a, a], out)),
        (Status.ERROR_VALUE, "shapes differ", (add, [a, a], short)),
        (Status.ERROR_VALUE, "share memory", (add, [a, out], out)),
        (Status.ERROR_VALUE, "contiguous", (add, [a.T, a], out)),
        (Status.ERROR_TYPE, "takes float32", (add, [a, doubles], out)),
        (Status.ERROR_VALUE, "2 dimensions", (LessonKernel.LESSON_MATRIX_ADD, [row, row], short)),
        (Status.ERROR_VALUE, "from 1 to", (add, [a, a], out, (0, 1, 1))),
        (Status.ERROR_VALUE, "launches", (add, [a, a], out, (1, 1, 1), (32, 1, 1), 0)),
        (Status.ERROR_VALUE, "takes (m, k)", (tiled, [a, row], out)),
        (Status.ERROR_VALUE, "block must be (32, 32, 1)", (tiled, [a, a], out)),
        (Status.ERROR_VALUE, "can count", (naive, [a, a], out, (2**30, 1, 1))),
        (Status.ERROR_VALUE, "more than the batch", (layer, [a, a, row], out, (8, 65, 1))),
        (Status.ERROR_VALUE, "block must be (256, 1, 1)", (layer, [a, a, row], out)),
        (Status.ERROR_VALUE, "takes W", (layer, [a, a, short], out)),
        (Status.ERROR_LAUNCH, "vector_add", (add, [a, a], out, (1, 1, 1), (2048, 1, 1))),
    ):
        found, text = call_learn(device, *call)
        assert found == status and message in text, text
    assert not out.numpy().any()
    assert call_learn(device, add, [a, a], out, (64, 1, 1), (64, 1, 1), 3)[0] == 0
    np.testing.assert_array_equal(out.numpy(), np.full((64, 64), 2, np.float32))
