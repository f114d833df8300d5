"""Gradients of decompositions and of what is made of them, beside central differences."""

import helpers
import numpy as np
import pytest
from gradients import check, check_twice
from helpers import put

import pyvecgpu as vg
from pyvecgpu.dispatch import observe

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
    """Beyond those of kernels: along one direction, in which all elements change.

    Eigenvalues may be so close that a difference has to be of few steps, and of the fourth order.
    """
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
    near, far = ((value(x + h * way) - value(x - h * way)) / (2 * h) for h in (1e-6, 2e-6))
    wanted = (4 * near - far) / 3
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

    for empty in ((0, 3), (3, 0), (0, 0), (2, 0, 0)):
        for tracked in (False, True):
            with pytest.raises(np.linalg.LinAlgError, match="not defined on empty"):
                linalg.cond(put(device, np.zeros(empty)).requires_grad_(tracked))
    assert linalg.cond(put(device, np.zeros((0, 3, 3))).requires_grad_()).shape == (0,)


EQUAL = ([1.0, 1.0, 1.0], [2.0, 2.0, 3.0], [3.0, 0.5, 0.5], [-2.0, 2.0, 2.0])
SIGNED = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])  # turns, and exactly


@pytest.mark.parametrize("values", EQUAL, ids=str)
def test_what_equal_values_do_not_spoil(device, rng, values):
    """What stays as it is when vectors of equal values are mixed, whatever these values are."""
    x = SIGNED * np.array(values)
    below = np.concatenate([x, np.zeros((1, 3))])
    for one in (x, x.T, below, below.T, np.stack([x, np.eye(3)]), x + 0j, below * 1j):
        check(lambda x: product_of_vectors(linalg.svd(x, False)), one, device=device)
    x = np.diag(values)
    pair = [i for i in range(3) if values.count(np.sort(values)[i]) == 2]

    def projection(x):
        vectors = linalg.eigh(hermitian(x))[1][:, pair]
        return vectors @ adjoint(vectors)

    for one in (x, x + 0j):
        check(projection, one, device=device)
        check(lambda x: linalg.eigvalsh(hermitian(x)).sum(), one, device=device)


def product_of_vectors(result):
    return result[0] @ result[2]


def test_equal_values_leave_out_what_is_of_single_vectors(device):
    """As docs/autograd.md has it: vectors beside values, each by its own, lack a part."""
    weights = np.array([[1.0, 2.0], [3.0, 4.0]])
    x = put(device, np.eye(2)).requires_grad_()
    values, vectors = linalg.eigh(x)
    ((vectors * values) @ vectors.T * put(device, weights)).sum().backward()
    assert np.allclose(x.grad.numpy(), np.diag([1.0, 4.0]))
    x = put(device, np.eye(2)).requires_grad_()
    u, s, vh = linalg.svd(x)
    ((u * s) @ vh * put(device, weights)).sum().backward()
    assert np.allclose(x.grad.numpy(), np.array([[1.0, -0.5], [0.5, 4.0]]))


@pytest.mark.parametrize("kind", "dD")
@pytest.mark.parametrize("shape", [(2, 2), (3, 2), (2, 3)], ids=str)
def test_norms_of_zeros(device, shape, kind):
    """As docs/autograd.md has them: 0, or of singular values what any vectors of these give."""
    zeros, values = np.zeros(shape, kind), min(shape)
    for ord in ("fro", 1, -1, np.inf, -np.inf):
        assert not vg.grad(lambda x, ord=ord: linalg.norm(x, ord))(put(device, zeros)).numpy().any()
    for ord, share in (("nuc", 1.0), (2, 1.0 / values), (-2, 1.0 / values)):
        found = vg.grad(lambda x, ord=ord: linalg.norm(x, ord))(put(device, zeros)).numpy()
        assert np.allclose(np.linalg.svd(found, compute_uv=False), share, 1e-6)


def test_a_rank_that_is_not_full_gives_finite_gradients(device):
    rank_one = put(device, np.outer([1.0, 2.0, 3.0], [1.0, -1.0])).requires_grad_()
    linalg.pinv(rank_one).sum().backward()
    assert np.isfinite(rank_one.grad.numpy()).all()


def matrices_of_rank(rng, n, rank, kind):
    """Matrices of that rank: exactly singular ones, and products, which are nearly so."""
    a, b = (rng.integers(-3, 4, shape) + np.eye(*shape) for shape in ((n, rank), (rank, n)))
    a, b = (a + 1j * b.T, b) if kind == "c" else (a, b)
    scale = 0.37 + 0.1 * rng.standard_normal(n)
    rows = [i for i in range(n) if i >= n - rank]
    zeros = np.zeros((n, n), a.dtype)
    zeros[rows] = (rng.standard_normal((n, n)) + (1j if kind == "c" else 0.0))[rows]
    return np.stack([a @ b, scale * (a @ b), a @ b * scale[:, None], zeros, zeros.T])


@pytest.mark.parametrize("kind", "fc")
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_determinants_of_singular_matrices(device, rng, n, kind):
    """Of every rank, beside regular ones in a batch, which give what they give alone."""
    regular = rng.standard_normal((2, n, n)) * (1 + 1j if kind == "c" else 1)
    for rank in range(n):
        singular = matrices_of_rank(rng, n, rank, kind)
        check(linalg.det, np.concatenate([regular, singular]), device=device)
        check(linalg.det, singular[0] * 1e-3, device=device)
        x = put(device, singular).requires_grad_()
        linalg.det(x).sum().backward() if kind == "f" else linalg.det(x).real.sum().backward()
        if rank < n - 1:
            assert np.abs(x.grad.numpy()).max() <= 1e-8
    check_twice(linalg.det, regular, device=device)


@pytest.mark.parametrize("dtype", "fdFD")
def test_determinants_of_every_condition(device, rng, dtype):
    """Up to what is singular to rounding, each beside its gradient by singular values."""
    eps = np.finfo(dtype).eps
    for least in 10.0 ** -np.arange(0.0, 1.2 * -np.log10(eps), 0.5):
        n = int(rng.integers(1, 7))
        parts = rng.standard_normal((2, 2, n, n))
        a = parts[0] + 1j * parts[1] if dtype in "FD" else parts[0]
        u, v = (np.linalg.qr(x)[0] for x in a)
        s = np.exp(rng.standard_normal(n))
        s[-1] *= least
        others = np.array([np.prod(np.delete(s, i)) for i in range(n)])
        wanted = np.conj(np.linalg.det(u) * np.linalg.det(v)) * ((u * others) @ v)
        x = put(device, ((u * s) @ v).astype(dtype)).requires_grad_()
        linalg.det(x).real.backward() if dtype in "FD" else linalg.det(x).backward()
        close = np.abs(x.grad.numpy() - wanted).max() / np.abs(wanted).max()
        assert close <= 2000 * eps, (least, n, close)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [40, 66])
def test_determinants_of_large_singular_matrices(device, rng, n, dtype):
    """Beside the gradient by singular values."""
    a = rng.standard_normal((n, n)) / np.sqrt(n)
    a[n // 2] = 0.0
    a[:, 3] *= 20.0
    u, s, vh = np.linalg.svd(a)
    others = np.array([np.prod(np.delete(s, i)) for i in range(n)])
    wanted = np.linalg.det(u) * np.linalg.det(vh) * (u * others) @ vh
    x = put(device, a.astype(dtype)).requires_grad_()
    linalg.det(x).backward()
    close = np.abs(x.grad.numpy() - wanted).max() / np.abs(wanted).max()
    assert close <= np.finfo(dtype).eps * 10_000, close


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("n", [1, 4, 64])
def test_determinants_go_back_without_the_host(device, rng, n):
    """Of matrices of kernels, whether one is singular or not."""
    x = rng.standard_normal((3, n, n))
    x[1, 0] = 0.0
    x = put(device, x).requires_grad_()
    value, calls = linalg.det(x).sum(), []
    with observe(lambda call: calls.append(call.method)):
        value.backward()
    assert calls and not {"to_host", "lend", "nonzero"} & set(calls)


def test_gradients_of_gradients_of_singular_determinants(device):
    """They are refused, if need be when something is read; slogdet and inv have none at all."""
    x = put(device, np.array([[1.0, 2.0], [2.0, 4.0]]))
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        vg.grad(lambda x: (vg.grad(linalg.det)(x) ** 2).sum())(x).numpy()
    for call in (linalg.inv, lambda x: linalg.slogdet(x).logabsdet):
        with pytest.raises(np.linalg.LinAlgError, match=r"[Ss]ingular"):
            vg.grad(lambda x, call=call: call(x).sum())(x).numpy()
    empty = put(device, np.zeros((0, 0))).requires_grad_()
    linalg.det(empty).backward()
    assert empty.grad.shape == (0, 0)


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


def smooth(roots):
    """A number of all roots in which one that is very far away does not count."""
    return vg.sum((vg.real(roots) + 2.0) * vg.exp(-vg.real(roots * vg.conj(roots))))


@pytest.mark.parametrize("complex_too", [False, True])
@pytest.mark.parametrize("zeros", [(0, 0), (0, 1), (1, 0), (2, 1)], ids=str)
def test_roots_of_coefficients_with_zeros_at_the_ends(device, rng, zeros, complex_too):
    """A root at 0 moves with the last coefficients, as all others do; one beyond all comes."""
    for n in (1, 2, 3, 5):
        p = rng.standard_normal(n) + (1j * rng.standard_normal(n) if complex_too else 0.0)
        p = np.concatenate([np.zeros(zeros[0]), p, np.zeros(zeros[1])])
        check(lambda p: smooth(vg.roots(p)), p, device=device)
        if not zeros[0]:
            check_twice(lambda p: smooth(vg.roots(p)), p, device=device)
        tracked = vg.roots(put(device, p).requires_grad_()).detach()
        helpers.assert_same(tracked, vg.roots(put(device, p)).numpy(), "tracked or not")


def test_roots_that_are_several(device):
    """They have no gradient, and leave those of the others alone."""
    p = put(device, np.array([1.0, -3.0, 0.0, 0.0]))
    found = vg.grad(lambda p: vg.max(vg.real(vg.roots(p))))(p).numpy()
    assert np.allclose(found, [-3.0, -1.0, -1.0 / 3.0, -1.0 / 9.0], 1e-12)
    for values in ([1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]):
        p = put(device, np.array(values))
        found = vg.grad(lambda p: vg.sum(vg.real(vg.roots(p))))(p).numpy()
        assert not np.isfinite(found).all()
    for values in ([0.0, 0.0], [0.0, 3.0], [2.0]):
        p = put(device, np.array(values)).requires_grad_()
        vg.real(vg.roots(p)).sum().backward()
        assert p.grad.tolist() == [0.0] * len(values)


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
