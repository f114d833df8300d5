"""linalg's systems of equations, inverses, determinants and factors beside NumPy's in float64."""

import threading

import helpers
import numpy as np
import pytest
from helpers import LAYOUTS, put

import pyvecgpu as vg
from pyvecgpu.linalg import LinAlgError
from pyvecgpu.native import library
from pyvecgpu.native.abi import Option

linalg = vg.linalg
# Around the ends of a warp's matrices and a block's, and beyond what kernels take.
SIZES = [0, 1, 2, 3, 4, 7, 8, 9, 16, 17, 31, 32, 33, 47, 63, 64, 65, 80]
BATCHES = [(), (1,), (5,), (2, 3), (0,), (3, 0), (1, 2, 2)]
REAL = [np.float32, np.float64]


def matrices(rng, shape, dtype):
    """Matrices that are far from singular, with pivots that are not on the diagonal."""
    n = shape[-1]
    x = rng.standard_normal(shape) / max(n, 1) ** 0.5 + np.roll(np.eye(n), 1, axis=0)
    return x.astype(dtype)


def definite(rng, shape, dtype):
    x = rng.standard_normal(shape) / max(shape[-1], 1) ** 0.5
    return (x @ x.swapaxes(-1, -2) + np.eye(shape[-1])).astype(dtype)


def close(result, expected, conditions=1.0, message=""):
    """In norms of the whole matrix, by the dtype's epsilon, the condition and the size."""
    values = helpers.host(result)
    assert values.shape == expected.shape, message
    if not expected.size:
        return
    size = np.abs(expected).max()
    most = 30 * np.finfo(values.dtype).eps * np.max(conditions) * max(expected.shape[-1:] or (1,))
    error = np.abs(values.astype(np.float64) - expected).max()
    assert error <= most * max(size, 1e-30), f"{message}: {error} of {size}, not {most}"


def conditions(x):
    return np.linalg.cond(x.astype(np.float64)) if x.size else 1.0


def check(device, x, b, make=put):
    """Every function of the matrices x, and of right-hand sides."""
    array, sides, message = make(device, x), put(device, b), f"{x.dtype} {x.shape} {b.shape}"
    wide, c = x.astype(np.float64), conditions(x)
    close(linalg.solve(array, sides), np.linalg.solve(wide, b.astype(np.float64)), c, message)
    close(linalg.inv(array), np.linalg.inv(wide), c, message)
    close(linalg.det(array), np.linalg.det(wide), c * x.shape[-1] * 10, message)
    sign, logarithm = np.linalg.slogdet(wide)
    result = linalg.slogdet(array)
    assert (helpers.host(result.sign) == sign).all(), message
    near = np.abs(helpers.host(result.logabsdet) - logarithm)
    assert (near <= 100 * c * np.finfo(x.dtype).eps * max(x.shape[-1], 1)).all(), message


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("n", SIZES)
def test_sizes(device, rng, n, dtype):
    for columns in (1, 2, 15, 16, 17, 40):
        x = matrices(rng, (3, n, n), dtype)
        check(device, x, rng.standard_normal((3, n, columns)).astype(dtype))
        if n > 20:
            break


@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("n", [0, 3, 40])
def test_batches(device, rng, n, batch):
    for dtype in REAL:
        x = matrices(rng, (*batch, n, n), dtype)
        check(device, x, rng.standard_normal((*batch, n, 2)).astype(dtype))
        p = definite(rng, (*batch, n, n), dtype)
        close(linalg.cholesky(put(device, p)), np.linalg.cholesky(p.astype(np.float64)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(device, rng, layout):
    x = matrices(rng, (4, 6, 6), np.float32)
    check(device, x, rng.standard_normal((4, 6, 3)).astype(np.float32), LAYOUTS[layout])
    p = LAYOUTS[layout](device, definite(rng, (4, 6, 6), np.float32))
    lower = linalg.cholesky(p)
    close(lower, np.linalg.cholesky(helpers.host(p).astype(np.float64)))
    again = linalg.solve_triangular(lower, p, lower=True)
    close(vg.matrix_transpose(again), helpers.host(lower).astype(np.float64), 20)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("n", SIZES)
def test_cholesky_reads_one_half(device, rng, n, dtype):
    x = definite(rng, (3, n, n), dtype)
    expected = np.linalg.cholesky(x.astype(np.float64))
    lower = linalg.cholesky(put(device, np.tril(x)))
    upper = linalg.cholesky(put(device, np.triu(x)), upper=True)
    for result, reference in ((lower, expected), (upper, expected.swapaxes(-1, -2))):
        assert result.dtype == dtype
        close(result, reference, conditions(x))
        assert (helpers.host(result)[reference == 0] == 0).all()


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("n", [0, 1, 5, 32, 33, 64, 70])
def test_triangles(device, rng, n, dtype):
    x = (rng.standard_normal((2, n, n)) / max(n, 1) + 2 * np.eye(n)).astype(dtype)
    b = rng.standard_normal((2, n, 3)).astype(dtype)
    for lower, half in ((True, np.tril), (False, np.triu)):
        result = linalg.solve_triangular(put(device, x), put(device, b), lower=lower)
        expected = np.linalg.solve(half(x).astype(np.float64), b.astype(np.float64))
        close(result, expected, conditions(half(x)))


def test_right_hand_sides(device, rng):
    """A vector is one for all matrices; other sides are matrices, whose batches broadcast."""
    x = matrices(rng, (2, 3, 4, 4), np.float64)
    vector = rng.standard_normal(4)
    result = linalg.solve(put(device, x), put(device, vector))
    close(result, np.linalg.solve(x, vector[:, None])[..., 0], conditions(x))
    for shape in ((4, 5), (3, 4, 5), (2, 1, 4, 5), (6, 1, 1, 4, 1)):
        b = rng.standard_normal(shape)
        close(linalg.solve(put(device, x), put(device, b)), np.linalg.solve(x, b), conditions(x))
    one = x[0, 0]
    b = rng.standard_normal((7, 4, 2))
    close(linalg.solve(put(device, one), put(device, b)), np.linalg.solve(one, b), conditions(one))


def test_dtypes(device, rng):
    """Integers and bools are computed in float64, halves in float32; operands are promoted."""
    x = np.array([[2, 1], [7, 5]])
    for dtype in (np.int8, np.uint16, np.int64):
        array = put(device, x.astype(dtype))
        result = linalg.inv(array)
        assert result.dtype == vg.float32 and linalg.det(array).dtype == vg.float32
        close(result, np.linalg.inv(x), 100)
        assert linalg.solve(array, put(device, x.astype(np.float64))).dtype == vg.float64
    half = linalg.solve(put(device, x.astype(np.float16)), put(device, x.astype(np.float16)))
    assert half.dtype == vg.float16
    close(half, np.eye(2), 100)
    flags = put(device, np.eye(3, dtype=bool))
    assert linalg.inv(flags).tolist() == np.eye(3).tolist()
    assert linalg.matrix_power(put(device, x), 2).dtype == x.dtype


def test_numpy_in_numpy_out(rng):
    x = matrices(rng, (3, 3), np.float32)
    for result in (linalg.inv(x), linalg.solve(x, x), linalg.cholesky(x @ x.T), *linalg.qr(x)):
        assert isinstance(result, np.ndarray) and result.dtype == x.dtype
    assert isinstance(linalg.slogdet(x).sign, np.float32)


@pytest.mark.parametrize("n", [5, 20, 40])
@pytest.mark.devices("sim", "cuda")
def test_an_item_alone_has_the_same_bits(device, rng, n):
    x = matrices(rng, (37, n, n), np.float32)
    p = definite(rng, (37, n, n), np.float32)
    array, other = put(device, x), put(device, p)
    for function, whole in (
        (linalg.inv, array),
        (linalg.det, array),
        (linalg.cholesky, other),
        (lambda a: linalg.solve(a, a[..., :3]), array),
    ):
        together = function(whole)
        for i in (0, 17, 36):
            assert helpers.bits(together[i]) == helpers.bits(function(whole[i]))
        assert helpers.bits(together) == helpers.bits(function(whole))


def test_determinants_far_out(device):
    """Products of pivots do not overflow on their way; a singular matrix has determinant 0."""
    d = np.array([1e30, 1e30, 1e-30, -1e-30, 4.0], np.float32)
    x = np.diag(d)[::-1].copy()
    expected = np.linalg.det(x.astype(np.float64))
    close(linalg.det(put(device, x)), np.asarray(expected), 1e3)
    zeros = put(device, np.zeros((2, 3, 3), np.float32))
    assert linalg.det(zeros).tolist() == [0, 0]
    sign, logarithm = linalg.slogdet(zeros)
    assert sign.tolist() == [0, 0] and logarithm.tolist() == [-np.inf] * 2
    large = put(device, np.full((1, 1), 3e38, np.float32) * np.eye(3, dtype=np.float32))
    with np.errstate(over="ignore"):
        assert linalg.det(large).item() == np.inf
    assert linalg.slogdet(large).logabsdet.item() == pytest.approx(3 * np.log(3e38), rel=1e-6)


def test_nan_spreads_and_is_not_singular(device):
    x = np.eye(4, dtype=np.float64)
    x[1, 2] = np.nan
    assert np.isnan(linalg.inv(put(device, x)).numpy()).any()
    assert np.isnan(linalg.det(put(device, x)).item())


@pytest.mark.parametrize("n", [0, 1, 5, 33])
def test_powers(device, rng, n):
    x = matrices(rng, (2, n, n), np.float64)
    array = put(device, x)
    for power in (-3, -1, 0, 1, 2, 3, 6):
        result = linalg.matrix_power(array, power)
        close(result, np.linalg.matrix_power(x, power), conditions(x) ** abs(power))
        assert power == 1 or result is not array
    whole = rng.integers(-3, 3, (n, n))
    expected = np.linalg.matrix_power(whole, 3)
    assert (linalg.matrix_power(put(device, whole), 3).numpy() == expected).all()


SINGULAR = {
    "inv": (lambda a: linalg.inv(a), np.ones((3, 3))),
    "solve": (lambda a: linalg.solve(a, a), np.zeros((2, 4, 4))),
    "solve_triangular": (lambda a: linalg.solve_triangular(a, a), np.diag([1.0, 0, 2])),
    "cholesky": (lambda a: linalg.cholesky(a), -np.eye(40)),
}


@pytest.mark.parametrize("name", SINGULAR)
@pytest.mark.parametrize("dtype", REAL)
def test_singular(device, name, dtype):
    """On the CPU at once; on a card by whatever waits next, once, and without a wait for it."""
    function, values = SINGULAR[name]
    array = put(device, values.astype(dtype))
    if device == "cpu":
        with pytest.raises(LinAlgError):
            function(array)
        return
    for wait in (lambda _: vg.synchronize(device), lambda r: r.numpy(), lambda _: array.tolist()):
        before = vg.counters(device)["waits"]
        result = function(array)
        assert vg.counters(device)["waits"] == before
        with pytest.raises(LinAlgError, match=f"{name}: a matrix is "):
            wait(result)
        vg.synchronize(device)  # nobody is told twice
        assert array.numpy().shape == values.shape
        del result
    assert helpers.host(linalg.inv(put(device, np.eye(2)))).tolist() == [[1, 0], [0, 1]]


@pytest.mark.devices("sim", "cuda")
def test_with_the_option_sync_the_call_itself_raises(device):
    array = put(device, np.zeros((3, 3), np.float32))
    loaded = library.load(device)
    loaded.set_option(Option.OPTION_SYNC, 1)
    try:
        with pytest.raises(LinAlgError, match="inv: a matrix is singular"):
            linalg.inv(array)
    finally:
        loaded.set_option(Option.OPTION_SYNC, 0)
    assert array.tolist() == [[0] * 3] * 3


@pytest.mark.devices("sim", "cuda")
def test_recorded(device):
    """A recording has the kernels in it, and each launch reports again."""
    array = put(device, np.eye(3, dtype=np.float32) * 2)
    results = []
    again = array.backend.record(lambda: results.append(linalg.inv(array)))
    again()
    assert results[0].tolist() == (np.eye(3) / 2).tolist()
    for _ in range(2):
        array[...] = 0.0
        again()
        with pytest.raises(LinAlgError, match="inv: a matrix is singular"):
            results[0].numpy()
    array[...] = vg.eye(3, device=device)
    again()
    assert results[0].tolist() == np.eye(3).tolist()


@pytest.mark.devices("sim", "cuda")
def test_one_thread_is_told(device):
    array = put(device, np.zeros((3, 3), np.float32))
    told = []

    def wait():
        try:
            vg.synchronize(device)
        except LinAlgError:
            told.append(1)

    linalg.inv(array)
    threads = [threading.Thread(target=wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [1]


@pytest.mark.devices("sim")
def test_larger_matrices_cross_to_the_host(device, rng):
    """Beyond 64 x 64: the counters say that the simulated card did not compute it."""
    for n, copies in ((64, 0), (65, 1)):
        array = put(device, matrices(rng, (n, n), np.float32))
        before = vg.counters(device)
        linalg.inv(array)
        after = vg.counters(device)
        assert after["copies_to_host"] - before["copies_to_host"] == copies
        assert after["copies_to_device"] - before["copies_to_device"] == copies


def test_refusals(device):
    x = put(device, np.ones((2, 3, 4), np.float32))
    square = put(device, np.eye(3, dtype=np.float32))
    functions = (linalg.inv, linalg.det, linalg.slogdet, linalg.cholesky, linalg.eigh, linalg.eig)
    for function in functions:
        with pytest.raises(LinAlgError, match="square matrices"):
            function(x)
        with pytest.raises(LinAlgError, match="2 or more dimensions"):
            function(x[0, 0])
        with pytest.raises(TypeError, match="takes arrays"):
            function(3.0)
        with pytest.raises(TypeError, match="takes arrays"):
            function(None)
    with pytest.raises(LinAlgError, match="square"):
        linalg.solve(x, square)
    for shape in ((4,), (), (2, 5), (4, 3)):
        with pytest.raises(ValueError, match="do not fit"):
            linalg.solve(square, vg.ones(shape, device=device))
    with pytest.raises(ValueError, match="broadcast"):
        linalg.solve(vg.ones((2, 3, 3), device=device), vg.ones((3, 3, 1), device=device))
    with pytest.raises(TypeError, match="a power is an integer"):
        linalg.matrix_power(square, 1.5)
    with pytest.raises(LinAlgError, match="square"):
        linalg.matrix_power(x, 2)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers(device, rng, dtype):
    """By NumPy or cuSOLVER, not by kernels: systems, factors, decompositions and norms."""
    x = (rng.standard_normal((2, 5, 5)) + 1j * rng.standard_normal((2, 5, 5))).astype(dtype)
    wide, array = x.astype("complex128"), put(device, x)
    c = np.linalg.cond(wide)

    def same(result, expected):
        values = helpers.host(result)
        assert values.shape == expected.shape
        most = 1e3 * np.finfo(dtype).eps * c.max() * np.abs(expected).max()
        assert np.abs(values - expected).max() <= most

    same(linalg.inv(array), np.linalg.inv(wide))
    same(linalg.solve(array, array[..., :2]), np.linalg.solve(wide, wide[..., :2]))
    same(linalg.det(array), np.linalg.det(wide))
    sign, logarithm = linalg.slogdet(array)
    same(sign, np.linalg.slogdet(wide).sign)
    same(logarithm, np.linalg.slogdet(wide).logabsdet)
    assert sign.dtype == dtype and logarithm.dtype == x.real.dtype
    p = (wide @ wide.conj().swapaxes(-1, -2) + np.eye(5)).astype(dtype)
    for upper in (False, True):
        result = linalg.cholesky(put(device, p), upper=upper)
        same(result, np.linalg.cholesky(p.astype("complex128"), upper=upper))
    values, vectors = (helpers.host(one) for one in linalg.eigh(put(device, p)))
    same((vectors * values[..., None, :]) @ vectors.conj().swapaxes(-1, -2), p)
    q, r = (helpers.host(one) for one in linalg.qr(array))
    same(q @ r, wide)
    u, s, vh = (helpers.host(one) for one in linalg.svd(array))
    same((u * s[..., None, :]) @ vh, wide)
    assert values.dtype == s.dtype == x.real.dtype
    same(linalg.pinv(array), np.linalg.pinv(wide))
    same(linalg.matrix_power(array, -2), np.linalg.matrix_power(wide, -2))
    for ord in (1, 2, "fro", "nuc"):
        same(linalg.matrix_norm(array, ord=ord), np.linalg.matrix_norm(wide, ord=ord))
    for ord in (0, 1, 2, 3, np.inf):
        result = linalg.vector_norm(array, ord=ord)
        assert result.dtype == x.real.dtype
        same(result, np.asarray(np.linalg.vector_norm(wide, ord=ord)))
