"""linalg's decompositions, norms and products beside NumPy's: values, shapes, dtypes, refusals."""

import itertools
import math

import helpers
import numpy as np
import pytest
from helpers import LAYOUTS, put

import pyvecgpu as vg
from pyvecgpu.linalg import LinAlgError

linalg = vg.linalg
SHAPES = [(1, 1), (3, 3), (5, 3), (3, 5), (2, 4, 3), (2, 0, 4, 4), (2, 3, 70, 66)]
DTYPES = [np.float32, np.float64]


def near(result, expected, factor=1.0):
    values = helpers.host(result)
    expected = np.asarray(expected)
    assert values.shape == expected.shape
    error = np.abs(values - expected).max(initial=0)
    size = np.abs(expected).max(initial=1)
    assert error <= 1e3 * factor * np.finfo(values.dtype).eps * size, f"{error} of {size}"


def product(a, b):
    return helpers.host(a) @ helpers.host(b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_qr(device, rng, shape, dtype):
    x = rng.standard_normal(shape).astype(dtype)
    array = put(device, x)
    for mode in ("reduced", "complete"):
        result, expected = linalg.qr(array, mode=mode), np.linalg.qr(x, mode)
        assert (result.Q.shape, result.R.shape) == (expected.Q.shape, expected.R.shape)
        assert result.Q.dtype == result.R.dtype == dtype
        near(product(result.Q, result.R), x)
        q = helpers.host(result.Q)
        near(
            q.swapaxes(-1, -2) @ q,
            np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], *[q.shape[-1]] * 2)),
        )
        assert (np.tril(helpers.host(result.R), -1) == 0).all()
    near(np.abs(helpers.host(linalg.qr(array, mode="r"))), np.abs(np.linalg.qr(x, "r")))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_svd(device, rng, shape, dtype):
    x = rng.standard_normal(shape).astype(dtype)
    array = put(device, x)
    values = np.linalg.svd(x.astype(np.float64), compute_uv=False)
    for full in (True, False):
        u, s, vh = linalg.svd(array, full_matrices=full)
        expected = np.linalg.svd(x, full_matrices=full)
        assert (u.shape, s.shape, vh.shape) == tuple(one.shape for one in expected)
        assert u.dtype == s.dtype == vh.dtype == dtype
        near(s, values)
        k = s.shape[-1]
        u, s, vh = (helpers.host(one) for one in (u, s, vh))
        near((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x)
    near(linalg.svdvals(array), values)
    near(linalg.svd(array, compute_uv=False), values)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (2, 5, 5), (0, 3, 3), (70, 70)], ids=str)
def test_eigh(device, rng, shape, dtype):
    x = rng.standard_normal(shape).astype(dtype)
    whole = x + x.swapaxes(-1, -2)
    for uplo, half in (("L", np.tril), ("U", np.triu)):
        array = put(device, half(whole))
        values, vectors = linalg.eigh(array, uplo)
        near(values, np.linalg.eigvalsh(whole.astype(np.float64)))
        near(linalg.eigvalsh(array, uplo), helpers.host(values))
        v = helpers.host(vectors)
        near((v * helpers.host(values)[..., None, :]) @ v.swapaxes(-1, -2), whole)
        assert values.dtype == vectors.dtype == dtype


@pytest.mark.parametrize("dtype", DTYPES)
def test_eig(device, rng, dtype):
    x = rng.standard_normal((2, 5, 5)).astype(dtype)
    array = put(device, x)
    values, vectors = linalg.eig(array)
    assert values.dtype == vectors.dtype == np.result_type(dtype, np.complex64)
    v = helpers.host(vectors)
    near(x @ v, v * helpers.host(values)[..., None, :])
    near(
        np.sort_complex(helpers.host(linalg.eigvals(array))), np.sort_complex(np.linalg.eigvals(x))
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*SHAPES, (0, 3), (3, 0)], ids=str)
def test_pinv_and_rank(device, rng, shape, dtype):
    x = rng.standard_normal(shape).astype(dtype)
    x[..., -1:, :] = 0  # not of full rank, where there are columns enough
    array = put(device, x)
    limit = max(shape[-2:]) * np.finfo(dtype).eps
    near(linalg.pinv(array), np.linalg.pinv(x, rcond=limit), 10)
    near(linalg.pinv(array, rtol=0.5), np.linalg.pinv(x, rcond=0.5), 10)
    near(linalg.pinv(array, 0.5), np.linalg.pinv(x, 0.5), 10)
    rank = linalg.matrix_rank(array)
    assert rank.dtype == vg.int64
    for options in ({}, {"tol": 1.0}, {"rtol": 0.3}):
        if 0 in shape[-2:] and options:
            continue
        expected = np.linalg.matrix_rank(x, **options) if 0 not in shape[-2:] else np.int64(0)
        assert (helpers.host(linalg.matrix_rank(array, **options)) == expected).all()
    if len(shape) == 3:
        each = rng.random(shape[:-2]).astype(dtype)
        near(linalg.pinv(array, rtol=put(device, each)), np.linalg.pinv(x, rcond=each), 10)


def test_rank_of_a_vector(device):
    assert linalg.matrix_rank(vg.zeros(3, device=device)).item() == 0
    assert linalg.matrix_rank(vg.ones(3, device=device)).item() == 1


def test_lstsq_and_cond(device, rng):
    for shape, columns in (((5, 3), ()), ((5, 3), (2,)), ((3, 5), ()), ((4, 4), (1,))):
        a, b = rng.standard_normal(shape), rng.standard_normal((shape[0], *columns))
        result = linalg.lstsq(put(device, a), put(device, b))
        expected = np.linalg.lstsq(a, b)
        assert result[2] == expected[2] and type(result[2]) is int
        for i in (0, 1, 3):
            near(result[i], expected[i])
    x = rng.standard_normal((2, 4, 4))
    for p in (None, 2, -2, 1, -1, np.inf, "fro"):
        near(linalg.cond(put(device, x), p), np.linalg.cond(x, p), 100)


# Norms --------------------------------------------------------------------------------------------

ORDERS = [0, 1, 2, 3, 0.5, -1, -2, math.inf, -math.inf]


@pytest.mark.parametrize("dtype", [np.float16, *DTYPES, np.int32], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_vector_norms(device, rng, layout, dtype):
    x = (rng.integers(1, 9, (3, 4, 5)) * rng.choice([-1, 1], (3, 4, 5))).astype(dtype)
    array = LAYOUTS[layout](device, x)
    wide = x.astype(np.float64)
    for axis, keepdims, ord in itertools.product((None, 0, -1, (0, 2), (2, 1)), (0, 1), ORDERS):
        result = linalg.vector_norm(array, axis=axis, keepdims=bool(keepdims), ord=ord)
        expected = np.linalg.vector_norm(wide, axis=axis, keepdims=bool(keepdims), ord=ord)
        assert result.dtype == (vg.float32 if dtype == np.int32 else dtype)
        near(result, expected)


@pytest.mark.parametrize("shape", [(1, 1), (4, 5), (2, 4, 3), (2, 0, 3, 3), (3, 70, 66)], ids=str)
def test_matrix_norms(device, rng, shape):
    x = rng.standard_normal(shape)
    array = put(device, x)
    for ord, keepdims in itertools.product((1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc"), (0, 1)):
        result = linalg.matrix_norm(array, keepdims=bool(keepdims), ord=ord)
        near(result, np.linalg.matrix_norm(x, keepdims=bool(keepdims), ord=ord))


def test_norm(device, rng):
    x = rng.standard_normal((3, 4, 5))
    array = put(device, x)
    for axis in (None, 0, (1,), (0, 2), [2, 0], (-1, -2)):
        for ord, keepdims in itertools.product((None, 1, 2, -1, np.inf, "fro"), (False, True)):
            one = np.ndim(axis if axis is not None else [0]) == 0 or axis == (1,)
            if (axis is None and ord is not None) or (one and ord == "fro"):
                with pytest.raises(ValueError, match="norm: "):
                    linalg.norm(array, ord, axis)
                continue
            axes = tuple(axis) if isinstance(axis, list) else axis
            near(linalg.norm(array, ord, axis, keepdims), np.linalg.norm(x, ord, axes, keepdims))
    near(linalg.norm(array[0]), np.linalg.norm(x[0]))
    near(linalg.norm(array[0, 0], 3), np.linalg.norm(x[0, 0], 3))
    near(linalg.norm(array[0], "nuc"), np.linalg.norm(x[0], "nuc"))


def test_sums_of_halves_do_not_stand_still(device):
    ones = vg.ones(10_000, dtype="float16", device=device)
    assert linalg.vector_norm(ones).item() == 100
    assert linalg.vector_norm(ones, ord=1).item() == 10_000


# Products -----------------------------------------------------------------------------------------


def test_of_the_last_two_axes(device, rng):
    x = rng.standard_normal((2, 3, 4)).astype(np.float32)
    array = put(device, x)
    for offset in (-2, 0, 1, 5):
        near(linalg.diagonal(array, offset=offset), np.linalg.diagonal(x, offset=offset))
        near(linalg.trace(array, offset=offset), np.linalg.trace(x, offset=offset))
    assert linalg.trace(array, dtype=vg.float64).dtype == vg.float64
    y = rng.standard_normal((2, 3, 4)).astype(np.float32)
    near(linalg.cross(array, put(device, y), axis=1), np.linalg.cross(x, y, axis=1))
    near(linalg.outer(array[0, 0], array[0, 1]), np.linalg.outer(x[0, 0], x[0, 1]))
    near(linalg.vecdot(array, put(device, y)), np.linalg.vecdot(x, y))
    near(linalg.tensordot(array, put(device, y), axes=3), np.linalg.tensordot(x, y, axes=3))
    near(linalg.matmul(array, array.mT), x @ x.swapaxes(-1, -2))
    assert linalg.matrix_transpose(array).shape == (2, 4, 3)


def test_multi_dot(device, rng):
    for sizes in ((2, 3), (2, 3, 4), (10, 100, 5, 50, 1), (3, 9, 2, 8, 4, 7)):
        matrices = [rng.standard_normal(pair) for pair in itertools.pairwise(sizes)]
        if len(matrices) < 2:
            with pytest.raises(ValueError, match="two arrays or more"):
                linalg.multi_dot(matrices)
            continue
        arrays = [put(device, one) for one in matrices]
        near(linalg.multi_dot(arrays), np.linalg.multi_dot(matrices))
        first, last = matrices[0][0], matrices[-1][:, 0]
        middle = matrices[1:-1]
        if middle:
            result = linalg.multi_dot([arrays[0][0], *arrays[1:-1], arrays[-1][:, 0]])
            near(result, np.linalg.multi_dot([first, *middle, last]))


def test_refusals(device):
    x = vg.ones((2, 3), device=device)
    for call, error in (
        (lambda: linalg.qr(x, mode="raw"), ValueError),
        (lambda: linalg.qr(x[0]), LinAlgError),
        (lambda: linalg.svd(x[0]), LinAlgError),
        (lambda: linalg.eigh(x @ x.T, "M"), ValueError),
        (lambda: linalg.pinv(x, 0.1, rtol=0.1), ValueError),
        (lambda: linalg.matrix_rank(x, 0.1, rtol=0.1), ValueError),
        (lambda: linalg.matrix_norm(x, ord=3), ValueError),
        (lambda: linalg.matrix_norm(x, ord="l1"), ValueError),
        (lambda: linalg.matrix_norm(x[0]), LinAlgError),
        (lambda: linalg.vector_norm(x, ord="fro"), TypeError),
        (lambda: linalg.vector_norm(x, axis=2), np.exceptions.AxisError),
        (lambda: linalg.norm(x, axis=(0, 1, 1)), ValueError),
        (lambda: linalg.norm(x[None], 2), ValueError),
        (lambda: linalg.outer(x, x[0]), ValueError),
        (lambda: linalg.cross(x, x, axis=0), ValueError),
        (lambda: linalg.diagonal(x[0]), ValueError),
        (lambda: linalg.multi_dot([x]), ValueError),
        (lambda: linalg.multi_dot([x, x[None], x]), ValueError),
        (lambda: linalg.svd(2.0), TypeError),
    ):
        with pytest.raises(error):
            call()


@pytest.mark.devices("cpu", "sim")
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_has_no_singular_vectors(device, dtype, number):
    """LAPACK does not end of some of these matrices."""
    values = np.array([[-0.75, -2, 0.75], [1.5, -1.25, 1e30], [-0.75, -1, -0.5], [0, -1, 2]], dtype)
    values[3, 0] = number
    a, ones = put(device, values), put(device, np.ones(4, dtype))
    bad = put(device, np.array([1, number, 1, 1], dtype))
    plain = put(device, np.eye(4, 3).astype(dtype))
    calls = {
        "svd": [lambda: vg.linalg.svd(a), lambda: vg.linalg.pinv(a)],
        "lstsq": [lambda: vg.linalg.lstsq(a, ones), lambda: vg.linalg.lstsq(plain, bad)],
    }
    for name, each in calls.items():
        for call in each:
            with pytest.raises(vg.linalg.LinAlgError, match=f"{name}: no convergence"):
                call()
    with pytest.raises(vg.linalg.LinAlgError):
        vg.linalg.svd(vg.stack([put(device, np.ones((4, 3), dtype)), a]))


@pytest.mark.devices("cpu")
def test_a_fit_through_zeros_alone_ends(device):
    x = put(device, np.zeros(5))
    with pytest.raises(vg.linalg.LinAlgError, match="no convergence"):
        vg.polyfit(x, x + 1, 2)
