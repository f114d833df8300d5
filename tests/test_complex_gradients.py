"""Gradients by complex numbers, beside central differences by both parts, and what refuses them.

Operations are read from the table; of composed functions all that take complex numbers.
"""

import itertools

import numpy as np
import pytest
from gradients import check, check_twice
from helpers import put
from test_autograd_rules import LAYOUTS, SHAPES, SMOOTH, function
from test_seam import COMPOSED, COMPOSED_LINALG

import pyvecgpu as vg
from pyvecgpu.operations import ROWS

RANDOM = np.random.default_rng(11)


def numbers(*shape, real=False):
    """Complex numbers at all angles, with magnitudes from 0.4 to 1.6; or these and a sign."""
    lengths = RANDOM.uniform(0.4, 1.6, shape)
    if real:
        return lengths * RANDOM.choice([-1.0, 1.0], shape)
    return lengths * np.exp(1j * RANDOM.uniform(-np.pi, np.pi, shape))


def of_family(family):
    """The operations with values that complex numbers have."""
    rows = [row for row in ROWS if row.family == family and "c" in row.domain]
    return [row.name for row in rows if row.result not in ("bool", "index", "none")]


def both(f, *operands, device):
    check(f, *operands, device=device)
    check_twice(f, *operands, device=device)


# Operations ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", of_family("unary"))
def test_unary(device, name):
    both(function(name), numbers(2, 4), device=device)
    both(lambda x: function(name)(x * (2.0 - 1j)), numbers(3, real=True), device=device)


# Beside each cut, and on it: the slope is that of the side that the sign of zero says.
CUTS = {
    "asin": (2.0, -2.0), "acos": (2.0, -2.0), "atanh": (2.0, -2.0), "acosh": (-2.0, -0.5, 0.5),
    "sqrt": (-2.0,), "log": (-2.0,), "log2": (-2.0,), "log10": (-2.0,), "log1p": (-2.0,),
    "asinh": (2j, -2j), "atan": (2j, -2j),
}  # fmt: skip


@pytest.mark.parametrize("name", CUTS)
def test_cuts(device, name):
    for point, side in itertools.product(CUTS[name], (1.0, -1.0)):
        on = complex(point.real or 0.0 * side, point.imag or 0.0 * side)
        beside = on + 1e-9 * side * (1j if on.real else 1.0)
        found, wanted = [
            vg.grad(lambda z: vg.real(function(name)(z)).sum())(put(device, np.array([z]))).item()
            for z in (on, beside)
        ]
        assert abs(found - wanted) < 1e-6, (on, found, wanted)


PAIRS = [(False, False), (True, False), (False, True)]


@pytest.mark.parametrize("name", of_family("binary"))
@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_binary(device, name, left, right):
    a, b = numbers(2, 3, real=left), numbers(2, 3, real=right)
    both(function(name), a, b, device=device)
    both(function(name), a[:, :1], b[0], device=device)  # broadcast
    check(lambda x: function(name)(x, x * (1 + 0.5j)), a, device=device)


@pytest.mark.parametrize("name", of_family("binary"))
@pytest.mark.parametrize("scalar", [0.7 - 1.2j, 1.5, -2.0, 3, 2, 0.5, 1, 0, 0j], ids=str)
def test_numbers_beside_arrays(device, name, scalar):
    for real in (False, True):
        x = numbers(4, real=real)
        is_real = real and not isinstance(scalar, complex)
        x = np.abs(x) if is_real else x
        if scalar != 0 or name != "divide":
            both(lambda x: function(name)(x, scalar), x, device=device)
        if name == "pow" and scalar == 0:  # which others have no power of
            x = np.abs(x.real) + 1j * x.imag if not real else np.abs(x)
        if name != "pow" or not is_real or scalar >= 0:
            both(lambda x: function(name)(scalar, x), x, device=device)


@pytest.mark.parametrize("kind", ["real", "imaginary"])
def test_powers_of_negative_numbers(device, kind):
    """Whose logarithm is complex where the other operand is."""
    a = numbers(3, real=True) if kind == "real" else numbers(3)
    both(vg.pow, a, numbers(3), device=device)
    both(lambda a: a ** (0.3 + 0.4j), a, device=device)
    both(lambda a: a**-3.5, numbers(3), device=device)
    z = vg.grad(lambda z: vg.real(vg.pow(z, 0j)).sum())(put(device, np.zeros(2, complex)))
    assert z.tolist() == [0j, 0j]


@pytest.mark.parametrize("name", of_family("reduce"))
@pytest.mark.parametrize("axis", [None, 0, (0, 2), -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(device, name, axis, keepdims):
    x = numbers(2, 3, 2)
    both(lambda x: function(name)(x, axis=axis, keepdims=keepdims), x, device=device)
    if name == "prod":
        x[1, 0, 1] = 0.0
        check(lambda x: vg.prod(x, axis=axis, keepdims=keepdims), x, device=device)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("initial", [False, True])
def test_scans(device, name, initial):
    x = numbers(2, 4)
    for axis in (0, 1):
        both(
            lambda x, axis=axis: function(name)(x, axis=axis, include_initial=initial),
            x,
            device=device,
        )


@pytest.mark.parametrize(("a", "b"), SHAPES)
@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_matmul(device, a, b, left, right):
    both(vg.matmul, numbers(*a, real=left), numbers(*b, real=right), device=device)


@pytest.mark.parametrize("name", [*LAYOUTS, "parts"])
def test_layout_and_indexing(device, name):
    if name == "cast":
        call = lambda x: x.astype("complex128") * x  # noqa: E731
    else:
        call = LAYOUTS.get(name) or (lambda x: x.real * x[::-1].imag + vg.imag(x) ** 2)
    both(call, numbers(2, 3), device=device)


def test_casts(device):
    """To complex numbers, of which the gradient comes back real; and to those of less precision."""
    x = numbers(2, 3, real=True)
    both(lambda x: vg.astype(x, "complex128") * (1 + 2j) + x, x, device=device)
    both(lambda x: vg.astype(x, "complex128") ** 2 * vg.conj(x * 1j), x, device=device)
    for dtype in ("float32", "float16", "bfloat16", "complex64"):
        leaf = vg.ones(3, dtype=dtype, device=device).requires_grad_()
        (leaf * put(device, np.full((2, 3), 2 - 1j))).real.sum().backward()
        assert leaf.grad.dtype == leaf.dtype and leaf.grad.shape == (3,)
        assert leaf.grad.tolist() == [4 + 2j if dtype == "complex64" else 4.0] * 3
        plain = leaf.grad.backend.plain(leaf.grad.raw)
        assert plain, "a view of complex memory"


def in_place(a, b):
    c = a * 2.0 + b
    c += 1j
    c /= a.real
    return c


# Composed functions -------------------------------------------------------------------------------

FUNCTIONS = {name: COMPOSED[name] for name in [*SMOOTH, "imag", "real_if_close", "sort_complex"]}
FUNCTIONS |= {f"linalg.{name}": call for name, call in COMPOSED_LINALG.items()}
FUNCTIONS |= {
    "interp of complex": lambda a, b: vg.interp(
        [0.1, 1.2, 5.0], [0.0, 1.0, 2.0, 3.0], vg.ravel(a), left=1j
    ),
    "nan_to_num": lambda a, b: vg.nan_to_num(vg.concat([a, vg.zeros_like(a) * vg.nan])),
    "nan_to_num of arrays": lambda a, b: vg.nan_to_num(a, nan=np.array([1.0, 2.0])),
    "variances": lambda a, b: [
        *(vg.var(a, axis=0), vg.std(a, correction=1), vg.average(a, weights=vg.abs(b))),
        *(vg.nanvar(a), vg.nanstd(a, axis=1), vg.nanmean(a), vg.nansum(a), vg.nanprod(a)),
    ],
    "rows": lambda a, b: vg.linalg.vecdot(a, b) * vg.sum(a.conj().T @ b),
    "methods": lambda a, b: a.real**2 + a.imag * a.conj() + (a * b).mean(),
    "in place": in_place,
}
# Vectors that are determined but for a factor, and what takes only half of a matrix.
FREE = {"linalg.eigh", "linalg.svd", "linalg.cholesky", "linalg.eigvalsh"}
A, B = numbers(2, 2), numbers(2, 2)


def several_of(result):
    """The Arrays of numbers that have gradients, of what a function gave."""
    several = result if isinstance(result, (list, tuple)) else [result]
    return [x for x in several if isinstance(x, vg.Array) and x.dtype.kind in "fc"]


def is_admitted(call):
    """Whether a function takes complex numbers, and gives numbers that have gradients."""
    try:
        with np.errstate(all="ignore"):
            return bool(several_of(call(put("cpu", A), put("cpu", B))))
    except (TypeError, ValueError):
        return False


TAKEN = [name for name in FUNCTIONS if name not in FREE and is_admitted(FUNCTIONS[name])]


def test_many_functions_take_complex_numbers():
    assert len(TAKEN) > 100
    assert {"vdot", "convolve", "cov", "einsum", "linalg.lstsq", *list(FUNCTIONS)[-7:]} <= {*TAKEN}


@pytest.mark.parametrize("name", TAKEN)
def test_composed_functions(device, name):
    call = FUNCTIONS[name]
    for number in (0, 1):

        def of_one(x, number=number):
            operands = [put(device, A), put(device, B)]
            operands[number] = x
            return several_of(call(*operands))

        x = put(device, (A, B)[number])
        plain, moved = of_one(x), of_one(x * 1.001)
        found = of_one(x.detach().requires_grad_())
        changed = [
            i for i, y in enumerate(plain) if not np.array_equal(y.numpy(), moved[i].numpy())
        ]
        tracked = [i for i, y in enumerate(found) if y.requires_grad]
        assert {*changed} <= {*tracked}, f"{name} lost the gradient"
        if tracked:
            check(lambda x: [of_one(x)[i] for i in tracked], (A, B)[number], device=device)  # noqa: B023


# Arrays, hooks and refusals -----------------------------------------------------------------------

Z = np.array([1 + 2j, -3 + 0.5j, 0j])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_leaves(device, dtype):
    """The gradient is dL/dRe + i dL/dIm, in the dtype of the leaf, and adds up."""
    z = put(device, Z.astype(dtype)).requires_grad_()
    assert z.requires_grad and z.is_leaf and "requires_grad=True" in repr(z)
    seen = []
    z.register_hook(lambda g: seen.append(g.dtype) or g * 2.0)
    for count in (1, 2):
        (z.real**2 + 3.0 * z.imag).sum().backward()
        assert z.grad.dtype == dtype and np.allclose(z.grad.numpy(), count * (4 * Z.real + 6j))
    assert seen == [np.dtype(dtype)] * 2
    with vg.no_grad():
        z -= 0.5 * z.grad
    assert np.allclose(z.detach().numpy(), Z - (4 * Z.real + 6j))
    z.grad = put(device, Z.astype(dtype))
    with pytest.raises(ValueError, match="float64 for an array of"):
        z.grad = put(device, Z.real)
    parameter = vg.nn.Parameter(z.detach())
    assert isinstance(parameter, vg.nn.Parameter) and parameter.requires_grad


def test_points_without_a_slope(device):
    """At 0 the magnitude, the angle and the sign have gradient 0, as have norms."""
    spreads = (vg.std, vg.nanstd, lambda z: vg.std(z, where=[True, True, False]))
    for f in (vg.abs, vg.angle, lambda z: vg.real(vg.sign(z)), vg.linalg.norm, *spreads):
        z = put(device, np.zeros(3, complex)).requires_grad_()
        f(z).sum().backward()
        assert z.grad.tolist() == [0j] * 3


def test_a_complex_number_is_no_loss(device):
    z = put(device, Z).requires_grad_()
    with pytest.raises(RuntimeError, match="backward of an array of complex128 needs its gradient"):
        (z * z).sum().backward()
    with pytest.raises(RuntimeError, match="grad of an array of complex128 needs its gradient"):
        vg.autograd.grad((z * z).sum(), z)
    with pytest.raises(TypeError, match="grad: the function gives a real number, not complex128"):
        vg.grad(lambda z: (z * z).sum())(z)
    with pytest.raises(TypeError, match="complex"):
        vg.abs(z).backward(put(device, Z))
    assert z.grad is None
    (z * z).backward(put(device, np.full(3, 2j)))
    assert np.allclose(z.grad.numpy(), 2j * np.conj(2 * Z))
    z.grad = None
    (z * z).backward(vg.ones(3, device=device))  # a real gradient of a complex array
    assert np.allclose(z.grad.numpy(), np.conj(2 * Z))
    with pytest.raises(TypeError, match="an optimiser takes Arrays of floats, not complex128"):
        vg.optim.SGD([z], lr=0.1)


def test_functions_of_numbers(device):
    """Python's complex numbers become Arrays beside others, of their precision."""
    slope = vg.grad(lambda z: vg.abs(z * z))
    assert slope(3 + 4j).item() == pytest.approx(6 + 8j) and slope(3 + 4j).dtype == vg.complex64
    x = put(device, np.array(2.0))
    by = vg.grad(lambda z, y, x: vg.abs(z * y * x), (0, 1, 2))(3 + 4j, 0.5, x)
    assert [g.dtype.name for g in by] == ["complex128", "float64", "float64"]
    assert np.allclose([g.item() for g in by], [0.6 + 0.8j, 10.0, 2.5])
    assert all(g.device == x.device for g in by)
    by = vg.grad(lambda z, y: vg.abs(z * y), (0, 1))(put(device, np.array(3 + 4j)), 2.0)
    assert [g.dtype.name for g in by] == ["complex128", "float64"]
    with pytest.raises(TypeError, match="floats or complex numbers, not int"):
        vg.grad(lambda z: vg.abs(z))(3)


def test_parts_are_views(device):
    z = put(device, Z).requires_grad_()
    y = z * 2.0
    with pytest.raises(RuntimeError, match="gradients cannot follow"):
        y.real[...] = y.imag
    with pytest.raises(RuntimeError, match="gradients cannot follow"):
        real = vg.real(y)
        real += y.imag
    real = y.real
    y += 1.0
    with pytest.raises(RuntimeError, match="is a view of one that add has changed"):
        real * 2.0
    w = z * 1.0
    product = w * w
    with vg.no_grad():
        w.real[...] = 0.0
    with pytest.raises(RuntimeError, match="changed in place"):
        product.real.sum().backward()


class Square(vg.autograd.Function):
    """With a rule of its own, which conjugates what it has kept."""

    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z * z

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return g * vg.conj(2.0 * z)


def test_rules_of_ones_own(device):
    both(Square.apply, Z, device=device)
    both(lambda x: Square.apply(x) * 1j, Z.real, device=device)  # a real operand's real part
    both(lambda x: Square.apply(x * (1 + 1j)) * vg.real(x), Z, device=device)


def test_checkpoint(device):
    block = vg.checkpoint(lambda z, w: {"product": z * w, "sum": vg.sum(vg.conj(z))})

    def f(z, w):
        found = block(z, w)
        return [found["product"] * found["sum"], found["sum"]]

    both(f, Z, Z[::-1] + 1j, device=device)
