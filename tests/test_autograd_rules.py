"""Every rule of gradients against central differences in float64, and at kinks and ties."""

import itertools

import numpy as np
import pytest
from gradients import check, check_twice
from helpers import put
from test_seam import COMPOSED

import pyvecgpu as vg
from pyvecgpu.autograd import rules
from pyvecgpu.backends import METHODS
from pyvecgpu.operations import ROWS

functional = vg.nn.functional
RANDOM = np.random.default_rng(5)


def function(name):
    return getattr(vg, name, None) or getattr(functional, name)


def inside(low, high, shape=(2, 3)):
    return RANDOM.uniform(low, high, shape)


# Where the functions are smooth; without a line: -2 to 2.
DOMAINS = {
    "log": (0.2, 3.0), "sqrt": (0.2, 3.0), "log2": (0.2, 3.0), "log10": (0.2, 3.0),
    "log1p": (-0.7, 3.0), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atanh": (-0.9, 0.9),
    "acosh": (1.2, 3.0), "reciprocal": (0.3, 2.0), "tan": (-1.2, 1.2),
    "floor": (0.1, 0.9), "ceil": (0.1, 0.9), "trunc": (0.1, 0.9), "round": (0.6, 1.4),
}  # fmt: skip
A, B = inside(0.5, 1.4), inside(1.6, 2.4)
UNARY = [row for row in ROWS if row.family == "unary"]
BINARY = [row for row in ROWS if row.family == "binary"]


def test_every_operation_has_a_rule_or_gives_no_floats():
    tables = {"unary": rules.UNARY, "binary": rules.BINARY, "reduce": rules.REDUCE}
    without = ("bool", "index", "none")
    for family, table in tables.items():
        wanted = {
            row.name
            for row in ROWS
            if row.family == family and "f" in row.domain and row.result not in without
        }
        assert set(table) == wanted
    general = {"unary", "binary", "scalar", "reduce", "scan", "softmax"}
    no_inputs = {"empty", "from_host", "lend"}
    writes = {name for name, (_, written, gives) in METHODS.items() if gives in ("nothing", "host")}
    left = set(METHODS) - general - no_inputs - writes - rules.WITHOUT - rules.WHOLE_NUMBERS
    assert left <= set(rules.METHODS), left - set(rules.METHODS)


@pytest.mark.parametrize("name", rules.UNARY)
def test_unary(device, name):
    x = inside(*DOMAINS.get(name, (-2.0, 2.0)))
    check(function(name), x, device=device)
    check_twice(function(name), x, device=device)


@pytest.mark.parametrize("name", rules.BINARY)
def test_binary(device, name):
    check(function(name), A, B, device=device)
    check(function(name), B, A, device=device)
    check_twice(function(name), A, B, device=device)
    check(function(name), A[0], B[:, :1], device=device)  # broadcast
    check(lambda x: function(name)(x, 1.5), A, device=device)
    check(lambda x: function(name)(1.5, x), A, device=device)
    check(lambda x: function(name)(x, x * x), A, device=device)


@pytest.mark.parametrize("name", rules.REDUCE)
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2), -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(device, name, axis, keepdims):
    x = RANDOM.permutation(24).reshape(2, 3, 4) / 12.0 + 0.25
    check(lambda x: function(name)(x, axis=axis, keepdims=keepdims), x, device=device)
    if axis == 1:
        check_twice(lambda x: function(name)(x, axis=1, keepdims=keepdims), x, device=device)


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_products_of_zeros(device, zeros):
    x = inside(0.5, 1.5, (4, 3))
    x.reshape(-1)[: 4 * zeros : 4] = 0.0
    x[1, :zeros] = 0.0
    for f in (
        lambda x: vg.prod(x, axis=0),
        lambda x: vg.prod(x),
        lambda x: vg.cumulative_prod(x, axis=0),
        lambda x: vg.cumulative_prod(x, axis=1, include_initial=True),
    ):
        check(f, x, device=device)
        check_twice(f, x, device=device)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("initial", [False, True])
def test_scans(device, name, initial):
    x = inside(0.5, 1.5, (3, 5))
    for axis in (0, 1):

        def f(x, axis=axis):
            return function(name)(x, axis=axis, include_initial=initial)

        check(f, x, device=device)
        check_twice(f, x, device=device)


SHAPES = [
    ((2, 3), (3, 4)),
    ((3,), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3,)),
    ((2, 2, 3), (3, 4)),
    ((2, 3), (2, 3, 4)),
    ((2, 1, 2, 3), (3, 3, 2)),
    ((3,), (2, 3, 2)),
    ((2, 2, 3), (3,)),
    ((0, 3), (3, 2)),
]


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_matmul(device, a, b):
    check(vg.matmul, inside(-1, 1, a), inside(-1, 1, b), device=device)
    check_twice(vg.matmul, inside(-1, 1, a), inside(-1, 1, b), device=device)


@pytest.mark.parametrize("activation", [None, "relu", "tanh", "sigmoid", "gelu", "silu"])
@pytest.mark.parametrize("with_bias", [False, True])
def test_dense(device, activation, with_bias):
    bias = [inside(-1, 1, (2,))] if with_bias else []
    for shape in ((4, 3), (3,), (2, 2, 3)):
        operands = inside(-1, 1, shape), inside(-1, 1, (2, 3)), *bias

        def f(*operands):
            return vg.dense(*operands, activation=activation)

        check(f, *operands, device=device)
        check_twice(f, *operands, device=device)
    check(
        lambda *operands: vg.dense(*operands, activation=activation, with_preactivation=True),
        *operands,
        device=device,
    )


MASK = np.array([[True, False, True], [False, False, True]])
LAYOUTS = {
    "where": lambda x: vg.where(put(x.device, MASK), x, 2.0 * x),
    "triu": lambda x: vg.triu(x, 1) * x,
    "tril": lambda x: vg.tril(x) * x,
    "slice": lambda x: x[1:, ::-2] * 3.0,
    "diagonal": lambda x: vg.diagonal(x, 1, 1, 0) * 3.0,
    "element": lambda x: x[1, 2] * x[0, 0],
    "none and ellipsis": lambda x: x[..., None, 1] * x[None, :, :1],
    "permute": lambda x: x.T * 2.0,
    "reshape": lambda x: x.reshape(-1) * x.T.reshape(-1),
    "broadcast": lambda x: vg.broadcast_to(x, (2, 2, 3)) * x,
    "contiguous": lambda x: x.T.contiguous() * 2.0,
    "copy": lambda x: x.copy() * x,
    "cast": lambda x: x.astype("float64") * x,
    "gather": lambda x: x[[1, 0, 1, -1]] * 2.0,
    "gather pairs": lambda x: x[[1, 0, 1, 1], [2, 0, 2, -1]] * 2.0,
    "gather apart": lambda x: x[None][:, [1, 0, 1], :1, None][[0]],
    "mask": lambda x: x[put(x.device, MASK)] * 2.0,
    "mask of rows": lambda x: x[np.array([False, True])],
    "nothing": lambda x: x[:0].sum() + x.sum() + x[np.zeros(0, int)].sum(),
    "along": lambda x: vg.take_along_axis(x, np.array([[0, 2, 2, -1], [1, 1, 1, 1]]), 1),
    "along rows": lambda x: vg.take_along_axis(x, np.array([[0, 1, 1], [1, 1, 0], [0, 0, 0]]), 0),
    "diag of a row": lambda x: vg.diag(x[0], 1) + vg.diag(x[1], -1) + vg.diag(x.T[0, :1], 1).sum(),
    "concat": lambda x: vg.concat([x, 2.0 * x, x[:1]], axis=0) * 3.0,
    "stack": lambda x: vg.stack([x, x * x], axis=1),
    "roll": lambda x: vg.roll(x, (1, 2), (0, 1)) * x,
    "repeat": lambda x: vg.repeat(x, 2, axis=1) * vg.tile(x, (1, 2)),
    "pad": lambda x: vg.pad(x, 1, "reflect"),
    "to the CPU": lambda x: x.to("cpu").to(x.device) * x,
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout_and_indexing(device, name):
    x = inside(-1, 1)
    check(LAYOUTS[name], x, device=device)
    check_twice(LAYOUTS[name], x, device=device)


def positive(a):
    return vg.matmul(a, vg.matrix_transpose(a)) + 2 * vg.eye(4, dtype="float64", device=a.device)


SYSTEMS = {
    "inverse": lambda a, b: vg.linalg.inv(a),
    "solve": lambda a, b: vg.linalg.solve(a, b),
    "lower": lambda a, b: vg.linalg.solve_triangular(a, b, lower=True),
    "upper": lambda a, b: vg.linalg.solve_triangular(a, b, lower=False),
    "determinant": lambda a, b: vg.linalg.det(a),
    "logarithm": lambda a, b: vg.linalg.slogdet(a).logabsdet,
    "cholesky": lambda a, b: vg.linalg.cholesky(positive(a)),
    "upper cholesky": lambda a, b: vg.linalg.cholesky(positive(a), upper=True),
    "sort": lambda a, b: vg.sort(a, axis=1),
    "sort downwards": lambda a, b: vg.sort(a, axis=-1, descending=True),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_systems_and_sorting(device, name, rng):
    a = rng.standard_normal((2, 4, 4)) + 4 * np.eye(4)
    b = rng.standard_normal((2, 4, 3))
    call = SYSTEMS[name]
    if name in ("solve", "lower", "upper"):
        check(call, a, b, device=device)
        check_twice(call, a, b, device=device)
    else:
        check(lambda a: call(a, None), a, device=device)
        check_twice(lambda a: call(a, None), a, device=device)


def test_weights_of_counts(device, rng):
    numbers = put(device, np.array([3, 0, 3, 1, 0, 3]))
    check(lambda w: vg.bincount(numbers, w), rng.standard_normal(6), device=device)


def test_casts_cast_back(device):
    x = put(device, A.astype(np.float32)).requires_grad_()
    y = x.astype("float64") * put(device, B)
    y.sum().backward()
    assert y.dtype == np.float64 and x.grad.dtype == np.float32
    assert np.array_equal(x.grad.numpy(), B.astype(np.float32))
    x.grad = None
    (x * put(device, B)).sum().backward()  # promoted
    assert np.array_equal(x.grad.numpy(), B.astype(np.float32))
    assert not x.astype("int32").requires_grad


# Composed functions get their gradients from what they are made of: for all that test_seam calls.
SMOOTH = sorted(
    set(COMPOSED)
    - {"place", "put", "put_along_axis", "fill_diagonal", "index_add"}  # write to what they get
    - {"frombuffer", "fromfunction"}  # of no array
    - {"histogram", "histogram2d", "histogram_bin_edges", "histogramdd"}  # steps
    - {"dropout"}  # another one every time
    - {"imag"}  # of real numbers zeros
    - {"divmod", "geomspace", "linspace", "logspace", "eye", "identity", "tri"}
    - {"bartlett", "blackman", "hamming", "hanning", "kaiser"}  # of a number alone
)


@pytest.mark.parametrize("name", SMOOTH)
def test_composed_functions(device, name):
    a, b = put(device, A[:, :2]).requires_grad_(), put(device, B[:, :2])
    result = COMPOSED[name](a, b)
    several = result if isinstance(result, (list, tuple)) else [result]
    if not any(isinstance(x, vg.Array) and x.requires_grad for x in several):
        plain = COMPOSED[name](a.detach(), b)
        plain = plain if isinstance(plain, (list, tuple)) else [plain]
        kinds = {x.dtype.kind for x in plain if isinstance(x, vg.Array)}
        assert kinds <= set("biu") or name == "extract", f"{name} lost the gradient"
        return
    check(lambda a: COMPOSED[name](a, b), A[:, :2], device=device)


MASK_OF_ROWS = np.array([[True, False, True], [False, False, False]])
VALUES = {
    "sum": lambda a, x: vg.sum(x, axis=1, initial=a),
    "prod": lambda a, x: vg.prod(x, axis=0, initial=a, where=MASK_OF_ROWS),
    "max": lambda a, x: vg.max(x, axis=1, initial=a, where=MASK_OF_ROWS),
    "min": lambda a, x: vg.amin(x, initial=a - 5.0) * x,
    "max of nothing": lambda a, x: vg.max(x[:0], axis=0, initial=a),
    "full": lambda a, x: vg.full((2, 3), a, dtype="float64", device=x.device) * x,
    "full_like": lambda a, x: vg.full_like(x, a) * x,
    "nan_to_num": lambda a, x: vg.nan_to_num(vg.where(x > 1.0, vg.nan, x), nan=a, posinf=2 * a) * x,
}


@pytest.mark.parametrize("name", VALUES)
def test_numbers_that_are_values(device, name):
    """Of functions that take a number for an element: it may be a tracked one."""
    a = np.array(0.7)
    check(VALUES[name], a, A, device=device)
    check_twice(lambda a, x: VALUES[name](a * a, x), a, A, device=device)
    x, number = put(device, A), put(device, a)
    plain, tracked = VALUES[name](number, x), VALUES[name](number.requires_grad_(), x)
    assert plain.dtype == tracked.dtype and plain.device == tracked.device
    assert np.array_equal(plain.numpy(), tracked.detach().numpy())
    if name in ("sum", "prod"):
        check(lambda a: VALUES[name](a, x), np.array(0.7 + 0.5j), device=device)


NAN_FUNCTIONS = ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin"]
OTHERS = ["var", "std", "ptp", "softmax", "log_softmax", "logsumexp", "fabs", "deg2rad"]


@pytest.mark.parametrize("name", NAN_FUNCTIONS + OTHERS)
def test_other_composed_functions(device, name):
    axis = {} if name in ("fabs", "deg2rad") else {"axis": 1}
    check(lambda x: function(name)(x, **axis), A, device=device)
    check_twice(lambda x: function(name)(x, **axis), A, device=device)


# Kinks and ties -----------------------------------------------------------------------------------


def gradient(f, x, device):
    return vg.grad(lambda x: f(x).sum())(put(device, np.asarray(x, np.float64))).numpy().tolist()


def test_kinks(device):
    assert gradient(vg.abs, [-1.0, 0.0, 2.0], device) == [-1.0, 0.0, 1.0]
    assert gradient(vg.relu, [-1.0, 0.0, 2.0], device) == [0.0, 0.0, 1.0]
    assert gradient(vg.sign, [-1.0, 0.0, 2.0], device) == [0.0, 0.0, 0.0]
    assert gradient(lambda x: vg.copysign(x, -1.0), [-1.0, 0.0, 2.0], device) == [1.0, 0.0, -1.0]
    for f in (vg.floor, vg.ceil, vg.trunc, vg.round):
        assert gradient(f, [-1.0, 0.5, 2.0], device) == [0.0] * 3


def test_remainders(device):
    """Where the result is 0 as well, and of quotients that are rounded to the next integer."""
    a = put(device, np.array([0.0, -0.0, 3.0, -3.0, 1.0, -4.0, 7.5, 1.0, 3.0])).requires_grad_()
    b = put(device, np.array([1.5, -1.5, 1.5, 1.5, -0.7, 1.5, 2.5, 0.1, np.inf])).requires_grad_()
    vg.fmod(a, b).sum().backward()
    assert a.grad.tolist() == [1.0] * 9
    assert b.grad.tolist() == [0.0, 0.0, -2.0, 2.0, 1.0, 2.0, -3.0, -9.0, 0.0]
    b.grad = None
    vg.remainder(a, b)[:-1].sum().backward()
    assert np.isfinite(b.grad.numpy()).all()
    x = [0.0, -0.0, 2.0, -3.0, 1.25]
    assert gradient(lambda x: vg.fmod(x, 1.5), x, device) == [1.0] * 5
    assert gradient(lambda x: vg.fmod(3.0, x), [1.5, -2.0], device) == [-2.0, 1.0]
    assert gradient(lambda x: vg.modf(x)[0], x, device) == [1.0] * 5
    assert gradient(lambda x: vg.modf(x)[1], x, device) == [0.0] * 5


def fmod(a, b):
    return vg.fmod(a, b) * a * b


def test_remainders_beside_differences(device):
    a, b = np.array([[1.0, -4.0, 7.2]]), np.array([[0.7], [-1.6]])
    check(vg.fmod, a, b, device=device)
    check(fmod, a, b, device=device)
    check_twice(fmod, a, b, device=device)
    check_twice(lambda x: vg.modf(x)[0] * x, a + 0.25, device=device)


BENT = {
    "abs": vg.abs,
    "relu": vg.relu,
    "leaky_relu": functional.leaky_relu,
    "l1_loss": lambda x: functional.l1_loss(x, vg.zeros_like(x)),
    "copysign": lambda x: vg.copysign(x, -1.0),
    "dense": lambda x: vg.dense(x, vg.ones((2, 3), device=x.device), activation="relu"),
}


@pytest.mark.parametrize("name", BENT)
def test_slopes_of_slopes_that_do_not_change(device, name):
    """They are zeros, as torch's, though the first gradient is of numbers alone."""
    x = put(device, np.array([-1.0, 0.0, 2.0], np.float32)).requires_grad_()
    (plain,) = vg.autograd.grad(BENT[name](x).sum(), x)
    (g,) = vg.autograd.grad(BENT[name](x).sum(), x, create_graph=True)
    assert g.tolist() == plain.tolist()
    (g * g).sum().backward()
    assert x.grad.tolist() == [0.0] * 3


# As torch has them, but for hypot, of which it has NaN.
ZERO_SLOPES = {
    "norm": vg.linalg.norm,
    "norm of rows": lambda x: vg.linalg.norm(x, axis=1),
    "norm of a matrix": lambda x: vg.linalg.matrix_norm(x, keepdims=True),
    "norm of degree 1": lambda x: vg.linalg.norm(x, 1, axis=1),
    "norm of degree 3": lambda x: vg.linalg.vector_norm(x, ord=3),
    "norm of degree 1.5": lambda x: vg.linalg.vector_norm(x, axis=0, ord=1.5),
    "largest": lambda x: vg.linalg.vector_norm(x, ord=vg.inf),
    "std": lambda x: vg.std(x + 3.0),
    "std of what is no NaN": vg.nanstd,
    "std of some": lambda x: vg.std(x + 1.0, axis=0, where=np.array([[True], [False]])),
    "std of rows": lambda x: vg.std(x, axis=1, correction=1, keepdims=True),
    "atan2": lambda x: vg.atan2(x, 2.0 * x),
    "atan2 of numbers": lambda x: vg.atan2(0.0, x) + vg.atan2(x, 0.0),
    "hypot": lambda x: vg.hypot(x, x),
}


@pytest.mark.parametrize("name", ZERO_SLOPES)
def test_zeros_at_points_without_a_slope(device, name):
    f = ZERO_SLOPES[name]
    assert gradient(f, np.zeros((2, 3)), device) == [[0.0] * 3] * 2
    x = np.array([[0.5, -1.0, 2.0], [1.0, 3.0, -0.25]])
    check(f, x, device=device)
    check_twice(f, x, device=device)
    x[0] = 0.0
    assert np.isfinite(gradient(f, x, device)).all()
    if name == "norm of degree 1.5":  # whose second derivative is infinite
        return
    again = vg.grad(lambda x: (vg.grad(lambda x: f(x).sum())(x) ** 2).sum())
    assert np.isfinite(again(put(device, np.zeros((2, 3)))).numpy()).all()


def test_roots_at_zero(device):
    for f in (vg.sqrt, vg.cbrt):
        assert gradient(f, [0.0, 1.0], device)[0] == np.inf
    x = np.array([-8.0, 1.0, 27.0])
    assert gradient(vg.cbrt, x, device) == pytest.approx([1 / 12, 1 / 3, 1 / 27])
    check_twice(vg.cbrt, x, device=device)


def test_angles_of_tiny_and_huge_points(device):
    for scale in (1e-200, 1e200):
        found = gradient(lambda x, scale=scale: vg.atan2(x, scale), [scale, 0.0], device)
        assert found == pytest.approx([0.5 / scale, 1.0 / scale])


def test_ties(device):
    for f in (vg.maximum, vg.minimum):
        assert gradient(lambda x, f=f: f(x, x * 1.0), [1.0, 2.0], device) == [1.0, 1.0]
        assert gradient(lambda x, f=f: f(x, 2.0), [2.0], device) == [0.5]
    assert gradient(vg.max, [1.0, 3.0, 3.0, 3.0], device) == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])
    assert gradient(lambda x: vg.min(x, axis=1), [[1.0, 1.0], [0.0, 2.0]], device) == [
        [0.5, 0.5],
        [1.0, 0.0],
    ]


def test_powers_at_zero(device):
    assert gradient(lambda x: x**2, [0.0, -3.0], device) == [0.0, -6.0]
    assert gradient(lambda x: x**0, [0.0, -3.0], device) == [0.0, 0.0]
    assert gradient(lambda x: vg.pow(x, 3), [0.0, -3.0], device) == [0.0, 27.0]
    assert gradient(lambda x: vg.pow(0.0, x), [1.0, 2.0], device) == [0.0, 0.0]
    zero = put(device, np.zeros(2))
    assert gradient(lambda x: vg.pow(zero, x), [1.0, 2.0], device) == [0.0, 0.0]
    assert gradient(lambda x: vg.pow(x, zero), [0.0, 2.0], device) == [0.0, 0.0]


@pytest.mark.parametrize("name", ["gelu", "silu", "sigmoid", "tanh"])
def test_activations_far_out(device, name):
    far = [-np.inf, -1e4, -50.0, 50.0, 1e4, np.inf]
    found = gradient(function(name), far, device)
    assert np.all(np.isfinite(found))
    above = 0.0 if name in ("sigmoid", "tanh") else 1.0
    assert np.allclose(found, [0.0] * 3 + [above] * 3)


def test_second_derivative_of_gelu_at_zero(device):
    f = vg.grad(vg.grad(lambda x: functional.gelu(x).sum()))
    assert f(put(device, np.array(0.0))).item() == pytest.approx(2.0 / np.sqrt(2.0 * np.pi))


def test_many_of_one_place(device):
    """Sums of thousands of gradients of one element, in pairs."""
    rows = np.repeat(np.arange(3), [5000, 1, 77])
    x = put(device, np.ones((4, 2), np.float32)).requires_grad_()
    x[RANDOM.permutation(rows)].sum().backward()
    assert x.grad.numpy().tolist() == [[5000.0] * 2, [1.0] * 2, [77.0] * 2, [0.0] * 2]


def test_layouts_of_operands(device):
    """Operands that are views: transposed, reversed, strided, broadcast."""
    base = inside(0.5, 1.5, (4, 4))
    views = [
        lambda x: x[::2, 1:],
        lambda x: x.T[1:3, :3],
        lambda x: x[::-2, 2::-1],
        lambda x: vg.broadcast_to(x[0, :3], (2, 3)),
    ]
    for one, other in itertools.product(views, views):
        check(
            lambda x, y, one=one, other=other: one(x) * vg.exp(other(y)), base, base, device=device
        )
