"""Gradients of decompositions and of what is made of them, beside central differences."""

import numpy as np
import pytest
from gradients import check, check_twice
from helpers import put

import pyvecgpu as vg

linalg = vg.linalg
SHAPES = {"square": (3, 3), "tall": (4, 3), "wide": (2, 4), "batch": (2, 3, 3), "large": (66, 66)}


def symmetric(x):
    return x + vg.matrix_transpose(x)


def positive(x):
    unit = vg.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    return x @ vg.matrix_transpose(x) + 2.0 * unit


def signs(vectors):
    """Return what makes the largest element of every column positive, without a gradient.

    A solver may choose another sign for x than for what is next to it.
    """
    with vg.no_grad():
        rows = vg.argmax(vg.abs(vectors), axis=-2, keepdims=True)
        return vg.sign(vg.take_along_axis(vectors, rows, axis=-2))


def svd(x, full_matrices=False):
    u, s, vh = linalg.svd(x, full_matrices)
    return u * signs(u), s, vg.matrix_transpose(signs(u)) * vh


def eigh(x, uplo="L"):
    values, vectors = linalg.eigh(symmetric(x), uplo)
    return values, vectors * signs(vectors)


# Of every shape, and of square matrices alone.
FUNCTIONS = {
    "qr": lambda x: linalg.qr(x),
    "r": lambda x: linalg.qr(x, "r"),
    "svd": svd,
    "svdvals": linalg.svdvals,
    "pinv": linalg.pinv,
    "cond": linalg.cond,
    "cond -2": lambda x: linalg.cond(x, -2),
    "nuclear": lambda x: linalg.matrix_norm(x, ord="nuc"),
    "spectral": lambda x: linalg.norm(x, 2, axis=(-2, -1), keepdims=True),
    "smallest": lambda x: linalg.matrix_norm(x, ord=-2),
}
OF_SQUARE = {
    "eigh": eigh,
    "upper": lambda x: eigh(x, "U"),
    "eigvalsh": lambda x: linalg.eigvalsh(symmetric(x)),
    "complete": lambda x: linalg.qr(x, "complete"),
    "whole svd": lambda x: svd(x, full_matrices=True),
    "cholesky": lambda x: linalg.cholesky(positive(x)),
    "upper cholesky": lambda x: linalg.cholesky(positive(x), upper=True),
    "inv": lambda x: linalg.inv(positive(x)),
    "solve": lambda x: linalg.solve(positive(x), x),
    "lower": lambda x: linalg.solve_triangular(positive(x), x, lower=True),
    "det": lambda x: linalg.det(x / 8.0),
    "logarithm": lambda x: linalg.slogdet(x).logabsdet,
}
NORMS = (1, -1, np.inf, -np.inf, "fro", "nuc")
OF_SQUARE |= {f"cond {p}": lambda x, p=p: linalg.cond(x, p) for p in NORMS}
CASES = [(name, shape) for name in FUNCTIONS for shape in ("square", "tall", "wide", "batch")]
CASES += [(name, shape) for name in OF_SQUARE for shape in ("square", "batch")]


def of(name):
    return {**FUNCTIONS, **OF_SQUARE}[name]


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_gradients(device, rng, name, shape):
    x = rng.standard_normal(SHAPES[shape])
    check(of(name), x, device=device)
    check_twice(of(name), x, device=device)


@pytest.mark.parametrize("name", [*FUNCTIONS, *OF_SQUARE])
def test_large_matrices(device, rng, name):
    """Beyond those of kernels: along one direction, in which all elements change."""
    x, way = (rng.standard_normal(SHAPES["large"]) for _ in range(2))
    x += 20.0 * np.diag(1.0 + np.arange(66) / 66)
    weights = []

    def value(values, tracked=False):
        array = put(device, values).requires_grad_(tracked)
        results = of(name)(array)
        sums = 0.0
        for i, one in enumerate(results if isinstance(results, tuple) else [results]):
            if len(weights) <= i:
                weights.append(put(device, rng.standard_normal(one.shape)))
            sums = (one * weights[i]).sum() + sums
        return (array, sums) if tracked else sums.item()

    array, result = value(x, True)
    result.backward()
    found = (array.grad.numpy() * way).sum()
    wanted = (value(x + 1e-5 * way) - value(x - 1e-5 * way)) / 2e-5
    assert abs(found - wanted) <= 1e-4 * (abs(wanted) + 1), (found, wanted)


@pytest.mark.parametrize("points", [(5, 3), (3, 3), (2, 3)], ids=str)
@pytest.mark.parametrize("columns", [(), (2,)], ids=str)
def test_least_squares(device, rng, points, columns):
    a, b = rng.standard_normal(points), rng.standard_normal((points[0], *columns))

    def results(a, b):
        x, residuals, rank, s = linalg.lstsq(a, b)
        assert rank == min(points)
        return [x, s] + ([residuals] if residuals.size else [])

    check(results, a, b, device=device)
    check_twice(results, a, b, device=device)
    plain = linalg.lstsq(put(device, a), put(device, b))
    found = linalg.lstsq(put(device, a).requires_grad_(), put(device, b))
    for one, other in zip(plain, found, strict=True):
        assert np.shape(one) == np.shape(other)
        assert np.allclose(getattr(one, "numpy", lambda one=one: one)(), other.detach().numpy()
                           if isinstance(other, vg.Array) else other)  # fmt: skip
    y = put(device, b).requires_grad_()
    assert vg.polyfit(put(device, np.arange(float(points[0]))), y, 1).requires_grad


def test_conditions_of_other_norms(device, rng):
    """With a gradient they are what they are without one, and refuse the same shapes and norms."""
    x = put(device, rng.standard_normal((2, 3, 3)))
    for p in (None, 2, -2, *NORMS):
        found = linalg.cond(x.detach().requires_grad_(), p)
        assert found.requires_grad
        assert np.allclose(found.detach().numpy(), linalg.cond(x, p).numpy(), 1e-12, 0.0), p
    tall = put(device, rng.standard_normal((4, 3))).requires_grad_()
    with pytest.raises(np.linalg.LinAlgError):
        linalg.cond(tall, 1)
    with pytest.raises(ValueError, match="ord is"):
        linalg.cond(x.requires_grad_(), 3)
    with pytest.raises(np.linalg.LinAlgError):
        linalg.cond(put(device, np.ones((3, 3))).requires_grad_(), "fro").item()


def test_equal_values_do_not_spoil_what_does_not_depend_on_vectors(device):
    x = put(device, np.eye(3)).requires_grad_()
    u, s, vh = linalg.svd(x)
    (((u * s) @ vh) ** 2).sum().backward()
    assert np.allclose(x.grad.numpy(), 2 * np.eye(3))
    x = put(device, np.eye(3)).requires_grad_()
    values, vectors = linalg.eigh(x)
    (((vectors * values) @ vg.matrix_transpose(vectors)) ** 2).sum().backward()
    assert np.allclose(x.grad.numpy(), 2 * np.eye(3))
    rank_one = put(device, np.outer([1.0, 2.0, 3.0], [1.0, -1.0])).requires_grad_()
    linalg.pinv(rank_one).sum().backward()
    assert np.isfinite(rank_one.grad.numpy()).all()


# Complex matrices, and eigenvalues that are -------------------------------------------------------


def adjoint(x):
    return vg.conj(vg.matrix_transpose(x))


def hermitian(x):
    return x + adjoint(x)


def definite(x):
    return x @ adjoint(x) + 2.0 * vg.eye(x.shape[-1], dtype=x.dtype, device=x.device)


def turned(vectors):
    """Vectors whose first elements are positive, which says their factors, with a gradient."""
    return vectors * vg.conj(vg.sign(vectors[..., :1, :]))


def complex_svd(x, full_matrices=False):
    u, s, vh = linalg.svd(x, full_matrices)
    factors = vg.conj(vg.sign(u[..., :1, :]))
    return u * factors, s, vg.conj(vg.matrix_transpose(factors)) * vh


def with_turned(result):
    return result[0], turned(result[1])


def in_order(values):
    """By real parts, then by imaginary ones; an order of NumPy's may be another nearby."""
    with vg.no_grad():
        order = vg.argsort(vg.real(values) + 1e-3 * vg.imag(values), axis=-1)
    return vg.take_along_axis(values, order, axis=-1)


COMPLEX = FUNCTIONS | {
    "svd": complex_svd,
    "fro": lambda x: linalg.norm(x) * linalg.vector_norm(x, axis=-1, ord=3),
    "adjoint": lambda x: (
        vg.vecdot(x, 2.0 * x) * linalg.matrix_norm(x, ord=1, keepdims=True)[..., 0]
    ),
}
OF_COMPLEX_SQUARE = {
    "eig": lambda x: with_turned(linalg.eig(x)),
    "eigvals": lambda x: in_order(linalg.eigvals(x)),
    "eigh": lambda x: with_turned(linalg.eigh(hermitian(x))),
    "upper": lambda x: with_turned(linalg.eigh(hermitian(x), "U")),
    "eigvalsh": lambda x: linalg.eigvalsh(hermitian(x)),
    "complete": lambda x: linalg.qr(x, "complete"),
    "whole svd": lambda x: complex_svd(x, full_matrices=True),
    "cholesky": lambda x: linalg.cholesky(definite(x)),
    "upper cholesky": lambda x: linalg.cholesky(definite(x), upper=True),
    "inv": linalg.inv,
    "solve": lambda x: linalg.solve(x, x @ x + x[..., :1, :]),
    "lower": lambda x: linalg.solve_triangular(x, x.real, lower=True),
    "upper half": lambda x: linalg.solve_triangular(x, x * x, lower=False),
    "det": linalg.det,
    "sign": lambda x: linalg.slogdet(x).sign,
    "logarithm": lambda x: linalg.slogdet(x).logabsdet,
    "power": lambda x: linalg.matrix_power(x, 3) + linalg.matrix_power(x, -2),
}
OF_COMPLEX_SQUARE |= {f"cond {p}": lambda x, p=p: linalg.cond(x, p) for p in NORMS}
COMPLEX_CASES = [(name, shape) for name in COMPLEX for shape in ("square", "tall", "wide", "batch")]
COMPLEX_CASES += [(name, shape) for name in OF_COMPLEX_SQUARE for shape in ("square", "batch")]


@pytest.mark.parametrize(("name", "shape"), COMPLEX_CASES)
def test_gradients_of_complex_matrices(device, rng, name, shape):
    x = rng.standard_normal(SHAPES[shape]) + 1j * rng.standard_normal(SHAPES[shape])
    x[..., range(2), range(2)] += np.array([2.0, -1.0 + 1j])
    call = {**COMPLEX, **OF_COMPLEX_SQUARE}[name]
    check(call, x, device=device)
    check_twice(call, x, device=device)


@pytest.mark.parametrize("name", ["cholesky", "eigvalsh", "eigh"])
def test_of_half_a_matrix(device, rng, name):
    """The gradient of what reads half of a Hermitian matrix is Hermitian, and so one of both."""
    x = rng.standard_normal((4, 4)) + 1j * rng.standard_normal((4, 4))
    x = put(device, x @ x.conj().T + np.eye(4)).requires_grad_()
    result = getattr(linalg, name)(x)
    result = result if isinstance(result, vg.Array) else vg.abs(result[1])
    weights = put(device, rng.standard_normal(result.shape))
    vg.real(result * weights).sum().backward()
    found = x.grad.numpy()
    assert np.allclose(found, found.conj().T, 1e-12, 1e-12) and np.abs(found).max() > 0.01


REAL = {name: OF_COMPLEX_SQUARE[name] for name in ("eig", "eigvals")}
REAL |= {
    "real eigenvalues": lambda x: with_turned(linalg.eig(positive(x))),
    "roots": lambda x: vg.sort_complex(vg.roots(x[..., 0])),
    "polynomial": lambda x: vg.poly(x),
    "from roots": lambda x: vg.poly(x[0]) * vg.poly(x[1] * 1j),
}


@pytest.mark.parametrize("name", REAL)
def test_eigenvalues_of_real_matrices(device, rng, name):
    x = np.array([[0.3, -1.2, 0.4], [1.5, 0.1, -0.7], [0.2, 0.5, -1.1]])  # two of three are complex
    for values in (x, x + 0.1 * rng.standard_normal((3, 3)), np.stack([x, -x.T]), x + 0.5j * x.T):
        if values.ndim == 3 and name not in ("eig", "eigvals", "real eigenvalues"):
            continue
        if values.dtype.kind == "c" and name == "real eigenvalues":
            continue
        check(REAL[name], values, device=device)
        check_twice(REAL[name], values, device=device)
    x = put(device, x.astype(np.float32)).requires_grad_()
    sum(vg.abs(one).sum() for one in linalg.eig(x)).backward()
    assert x.grad.dtype == np.float32


@pytest.mark.parametrize(("left", "right"), [(True, False), (False, True)])
def test_systems_of_real_and_complex(device, rng, left, right):
    a, b = rng.standard_normal((3, 3)) + 3.0 * np.eye(3), rng.standard_normal((3, 2))
    a, b = (a, b * 1j + 1.0) if left else (a * (1 + 1j) + a.T, b)
    check(linalg.solve, a, b, device=device)
    check_twice(linalg.solve, a, b, device=device)

    def solution(a, b):
        x, residuals, _, s = linalg.lstsq(a, b)
        return x, residuals, s

    a = np.concatenate([a, a[:1] * 2.0 - a[1:2] + 0.3 * a[2:]])
    check(solution, a, np.concatenate([b, b[1:2] + 1.0]), device=device)
    check_twice(solution, a, np.concatenate([b, b[1:2] + 1.0]), device=device)


def test_what_has_no_gradient_says_so(device):
    tall = put(device, np.ones((4, 3))).requires_grad_()
    calls = [
        lambda: linalg.qr(tall, "complete"),
        lambda: linalg.svd(tall),
        lambda: linalg.qr(tall * 1j, "complete"),
        lambda: linalg.svd(tall * 1j),
    ]
    for call in calls:
        with pytest.raises(NotImplementedError, match=r"not determine .* vectors; .*detach\(\)"):
            call()
        with vg.no_grad():
            call()
