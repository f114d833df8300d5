"""Values and gradients of functions, layers and losses beside torch's, in float64, where it is.

Names are mostly the same in both, so a case is data: a name, arguments and the shapes of operands.
A layer's weights are torch's own, by its state_dict. Devices: the CPU, and cards on which torch is.
"""

import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg
from pyvecgpu import nn
from pyvecgpu.autograd import rules
from pyvecgpu.operations import ROWS

pytestmark = [pytest.mark.needs("torch"), pytest.mark.devices("cpu", "cuda")]
TOLERANCE = 1e-10
KINDS = ("float", "complex")


@pytest.fixture(autouse=True, scope="module")
def used_torch(request):
    """What torch starts and opens when it first needs it is there before any test.

    These are threads of its libraries; with a card also the driver's files, and a thread for the
    backward pass of each device. They stay, and conftest.nothing_left would see them as a test's.
    """
    import torch

    devices = ["cpu"]
    if request.config.getoption("--device") in (None, "cuda") and torch.cuda.is_available():
        devices.append("cuda")
    for device in devices:
        x = torch.eye(3, dtype=torch.float64, device=device).requires_grad_()
        image = torch.nn.functional.conv2d(x[None, None], x[None, None])
        (torch.linalg.svdvals(torch.linalg.cholesky(x @ x)).sum() + image.sum()).backward()
        x.grad.cpu()


def near(found, wanted, what):
    found, wanted = found.numpy(), wanted.detach().resolve_conj().cpu().numpy()
    assert found.shape == wanted.shape, what
    error = np.max(np.abs(found - wanted), initial=0.0)
    assert error <= TOLERANCE * max(1.0, np.max(np.abs(wanted), initial=0.0)), (what, error)


def results(found):
    """The arrays of floats and complex numbers of what a function gave, of both libraries."""
    several = found if isinstance(found, (list, tuple)) else [found]
    flat = [x for one in several for x in (one if isinstance(one, (list, tuple)) else [one])]
    return [x for x in flat if hasattr(x, "shape") and any(k in str(x.dtype) for k in KINDS)]


class Both:
    """Operands of the same values in both libraries."""

    def __init__(self, device, *operands):
        import torch

        self.torch, self.device = torch, device
        self.ours = [put(device, x) for x in operands]
        self.theirs = [torch.asarray(x, device=device) for x in operands]
        for x, y in zip(self.ours, self.theirs, strict=True):
            if x.dtype.kind in "fc":
                x.requires_grad_(), y.requires_grad_()

    def check(self, ours, theirs, weights=()):
        """Compare ours(*operands) with theirs, and gradients: also by pairs of weights."""
        found, wanted = results(ours(*self.ours)), results(theirs(*self.theirs))
        assert len(found) == len(wanted) > 0
        totals = [0.0, 0.0]
        for i, (x, y) in enumerate(zip(found, wanted, strict=True)):
            near(x.detach(), y, f"result {i}")
            own = np.cos(np.arange(x.size) + 1.0 + i).reshape(x.shape)
            own = own * np.exp(1j * own) if x.dtype.kind == "c" else own
            weighted = x * put(self.device, own), y * self.torch.asarray(own, device=self.device)
            totals = [z.real.sum() + total for z, total in zip(weighted, totals, strict=True)]
        totals[0].backward(), totals[1].backward()
        operands = zip(map("operand {}".format, "xyz"), self.ours, self.theirs, strict=False)
        for what, x, y in [*operands, *weights]:
            if x.requires_grad:
                near(x.grad, y.grad, what)


# Functions ----------------------------------------------------------------------------------------

UNARY = [name for name in rules.UNARY if name not in ("relu", "gelu", "silu", "sigmoid", "tanh")]
ACTIVATIONS = {
    "relu": {}, "gelu": {}, "silu": {}, "sigmoid": {}, "tanh": {}, "softplus": {}, "elu": {},
    "leaky_relu": {},
}  # fmt: skip
DOMAINS = {
    "log": (0.2, 3.0), "sqrt": (0.2, 3.0), "log2": (0.2, 3.0), "log10": (0.2, 3.0),
    "log1p": (-0.7, 3.0), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atanh": (-0.9, 0.9),
    "acosh": (1.2, 3.0),
}  # fmt: skip
# Both give 0 of steps, of which torch refuses the gradients.
BINARY = [name for name in rules.BINARY if name not in ("floor_divide", "heaviside")]


@pytest.mark.parametrize("name", UNARY)
def test_unary(device, rng, name):
    x = rng.uniform(*DOMAINS.get(name, (-2.0, 2.0)), (3, 7))
    both = Both(device, x)
    both.check(getattr(vg, name), getattr(both.torch, name))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(device, rng, name):
    both = Both(device, rng.uniform(-3.0, 3.0, (3, 7)))
    functional = both.torch.nn.functional
    both.check(getattr(nn.functional, name), getattr(functional, name))
    if name in ("elu", "leaky_relu"):
        both = Both(device, rng.uniform(-3.0, 3.0, (3, 7)))
        ours, theirs = getattr(nn.functional, name), getattr(functional, name)
        both.check(lambda x: ours(x, 0.3), lambda x: theirs(x, 0.3))
    if name == "gelu":
        both = Both(device, rng.uniform(-3.0, 3.0, (3, 7)))
        both.check(
            lambda x: nn.functional.gelu(x, approximate="tanh"),
            lambda x: functional.gelu(x, approximate="tanh"),
        )


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("shapes", [((3, 7), (3, 7)), ((7,), (3, 1)), ((3, 7), ())])
def test_binary(device, rng, name, shapes):
    low = 0.5 if name in ("pow", "divide", "remainder") else -2.0
    both = Both(device, *(rng.uniform(low, 2.0, shape) for shape in shapes))
    both.check(getattr(vg, name), getattr(both.torch, name))


def by_axis(name, axis, keepdims):
    """A reduction in both libraries; torch's maxima over axes share ties as ours do."""
    import torch

    theirs = getattr(torch, {"max": "amax", "min": "amin"}.get(name, name))
    if axis is None:
        return lambda x: getattr(vg, name)(x), lambda x: theirs(x)
    return (
        lambda x: getattr(vg, name)(x, axis=axis, keepdims=keepdims),
        lambda x: theirs(x, dim=axis, keepdim=keepdims),
    )


@pytest.mark.parametrize("name", [*rules.REDUCE, "logsumexp"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(device, rng, name, axis, keepdims):
    if (name == "prod" and isinstance(axis, tuple)) or (name == "logsumexp" and axis is None):
        axis = 1  # which torch has not
    both = Both(device, rng.permutation(24).reshape(2, 3, 4) / 12.0 + 0.25)
    both.check(*by_axis(name, axis, keepdims))


@pytest.mark.parametrize("correction", [0, 1])
@pytest.mark.parametrize("name", ["var", "std"])
def test_variances(device, rng, name, correction):
    both = Both(device, rng.standard_normal((4, 5)))
    both.check(
        lambda x: getattr(vg, name)(x, axis=1, correction=correction),
        lambda x: getattr(both.torch, name)(x, dim=1, correction=correction),
    )


# (a name for the test, ours and theirs as text of x, y, z and vg or torch, shapes of operands)
EXPRESSIONS = [
    ("matmul", "{0}.matmul(x, y)", [(3, 4), (4, 5)]),
    ("batches", "{0}.matmul(x, y)", [(2, 1, 3, 4), (5, 4, 3)]),
    ("vectors", "{0}.matmul(x, y)", [(4,), (2, 4, 3)]),
    ("einsum", "{0}.einsum('bij,bjk->ki', x, y)", [(2, 3, 4), (2, 4, 5)]),
    ("tensordot", "{0}.tensordot(x, y, 2)", [(2, 3, 4), (3, 4, 5)]),
    ("outer", "{0}.outer(x, y)", [(3,), (4,)]),
    ("linalg norm", "{0}.linalg.vector_norm(x)", [(3, 4)]),
    ("solve", "{0}.linalg.solve(x @ x.mT + 1.0, y)", [(3, 5), (3, 2)]),
    ("inverse", "{0}.linalg.inv(x @ x.mT)", [(3, 5)]),
    ("determinant", "{0}.linalg.det(x @ x.mT)", [(3, 5)]),
    ("cholesky", "{0}.linalg.cholesky(x @ x.mT)", [(3, 5)]),
    ("singular values", "{0}.linalg.svdvals(x)", [(4, 3)]),
    ("eigenvalues", "{0}.linalg.eigvalsh(x + x.mT)", [(4, 4)]),
    ("vectors of eigenvalues", "{0}.abs({0}.linalg.eigh(x + x.mT)[1])", [(4, 4)]),
    ("parts by singular values", "(lambda u, s, v: u[:, :2] * s[:2] @ v[:2])"
     "(*{0}.linalg.svd(x, full_matrices=False))", [(5, 3)]),
    ("orthogonal", "{0}.linalg.qr(x)", [(4, 3)]),
    ("orthogonal of wide", "{0}.linalg.qr(x)", [(3, 4)]),
    ("pseudo-inverse", "{0}.linalg.pinv(x)", [(4, 3)]),
    ("of lower rank", "{0}.linalg.pinv(x @ y, rtol=1e-8) * 1.0", [(4, 2), (2, 3)]),
    ("logarithm of a determinant", "{0}.linalg.slogdet(x)[1]", [(2, 3, 3)]),
    ("sum of singular values", "{0}.linalg.matrix_norm(x, ord='nuc')", [(2, 4, 3)]),
    ("triangular", "{0}.linalg.solve_triangular({0}.tril(x) + 3.0, y, upper=False)",
     [(3, 3), (3, 2)]),
    ("quantiles", "{0}.quantile(x, 0.3)", [(3, 5)]),
    *[(f"condition {p}", f"{{0}}.linalg.cond(x, {p!r})", [(3, 3)])
      for p in (None, 2, -2, "nuc")],  # of others torch writes to what its gradient needs
    ("where", "{0}.where(x > 0, x * y, y)", [(3, 4), (4,)]),
    ("clip", "{0}.clip(x, -0.5, 0.5)", [(3, 4)]),
    ("views", "x.mT[1:, ::2] * x[0, 0] + x.reshape(6, 2)[3:, :1]", [(3, 4)]),
    ("by arrays", "x[y.argsort()] * y", [(5,), (5,)]),
    ("rows twice", "x[[0, 2, 0, 0]]", [(3, 4)]),
    ("masks", "x[x > 0] * 2.0", [(3, 4)]),
    ("concat", "{0}.concat([x, y, x], 1)", [(3, 4), (3, 2)]),
    ("stack", "{0}.stack([x, y, x * y])", [(3,), (3,)]),
    ("cumulative", "x.cumsum(1) * x.cumprod(1)", [(3, 4)]),
    ("triangles", "{0}.tril(x) + {0}.triu(x, 1) * 3.0", [(4, 4)]),
    ("flip and roll", "{0}.flip(x, (0,)) * {0}.roll(x, 1, 1)", [(3, 4)]),
    ("broadcast", "{0}.broadcast_to(x, (3, 4)) * y", [(4,), (3, 4)]),
    ("diagonal", "{0}.diagonal(x) * 2.0", [(4, 4)]),
    ("take", "{0}.take_along_dim(x, x.argsort(1), 1)", [(3, 4)]),
    ("casts", "x.to({0}.float32).to({0}.float64) * 1.0", [(3, 4)]),
    ("second", "(x * x).sum() * x", [(5,)]),
    ("softmax", "{0}.nn.functional.softmax(x, 1)", [(3, 5)]),
    ("log_softmax", "{0}.nn.functional.log_softmax(x, 0)", [(3, 5)]),
    ("dense", "{0}.nn.functional.linear(x, y, z)", [(2, 3, 4), (5, 4), (5,)]),
    ("layer norm", "{0}.nn.functional.layer_norm(x, (5,), y, z)", [(3, 5), (5,), (5,)]),
    ("attention", "{0}.nn.functional.scaled_dot_product_attention(x, y, z)",
     [(2, 2, 5, 4), (2, 2, 6, 4), (2, 2, 6, 3)]),
    ("causal", "{0}.nn.functional.scaled_dot_product_attention(x, y, z, is_causal=True)",
     [(2, 2, 5, 4), (2, 2, 5, 4), (2, 2, 5, 4)]),
    ("masked", "{0}.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=y)",
     [(2, 5, 4), (5, 5)]),
]  # fmt: skip
WORDS = {"take_along_dim": "take_along_axis", "x.to(vg": "x.astype(vg", ".to(vg": ".astype(vg"}
WORDS |= {"upper=False": "lower=True"}
WORDS |= {"x.cumsum(1)": "vg.cumulative_sum(x, axis=1)", "x.cumprod(1)": "vg.cumprod(x, 1)"}


@pytest.mark.parametrize(
    ("text", "shapes"), [x[1:] for x in EXPRESSIONS], ids=[x[0] for x in EXPRESSIONS]
)
def test_expressions(device, rng, text, shapes):
    compare(text, shapes, Both(device, *(rng.standard_normal(shape) for shape in shapes)))


def compare(text, shapes, both):
    """Compare what a text means in both libraries."""
    ours = text.format("vg")
    for theirs, word in WORDS.items():
        ours = ours.replace(theirs, word)
    names = "lambda " + ", ".join("xyz"[: len(shapes)])
    known = {"vg": vg, "torch": both.torch}
    both.check(eval(f"{names}: {ours}", known), eval(f"{names}: {text.format('torch')}", known))


# Complex numbers ----------------------------------------------------------------------------------

OF_COMPLEX = [row.name for row in ROWS if row.family == "unary" and "c" in row.domain
              and row.result != "bool" and row.name != "round"]  # fmt: skip
# The same of complex operands; those behind "real" are real.
COMPLEX = [
    ("products", "x * y / (x + 2.0j) - y * (1.5 - 1j)", [(3, 4), (4,)]),
    ("beside real", "x * y / (x + 2.0) + y ** 2 - x * 1j", [(3, 4), "real", (4,)]),
    ("powers", "x ** y + x ** 3 + x ** (0.3 + 1j) + 2.0 ** x + (1 + 1j) ** x", [(5,), (5,)]),
    ("of a negative number", "x ** y", [(5,), "real", (5,)]),
    ("parts", "x.real * x.imag + {0}.angle(x) * {0}.abs(x)", [(3, 4)]),
    ("made complex", "{0}.exp(1j * x) * x", ["real", (3, 4)]),
    ("reductions", "x.mean(0) * x.sum() + {0}.prod(x)", [(3, 4)]),
    ("variances", "{0}.var(x, correction=1) + {0}.std(x, correction=1)", [(3, 4)]),
    ("cumulative", "x.cumsum(1) * x.cumprod(1)", [(3, 4)]),
    ("matmul", "{0}.matmul(x, y)", [(2, 3, 4), (4, 5)]),
    ("einsum", "{0}.einsum('bij,bjk->ki', x, y)", [(2, 3, 4), (2, 4, 5)]),
    ("vdot", "{0}.vdot(x, y) + {0}.dot(x, y)", [(5,), (5,)]),
    ("where", "{0}.where(x.real > 0, x * y, y)", [(3, 4), (4,)]),
    ("norms", "{0}.linalg.vector_norm(x) + {0}.linalg.matrix_norm(x, ord='nuc')", [(3, 4)]),
    *[(name, f"{{0}}.linalg.{name}(x)", [(2, 3, 3)])
      for name in ("det", "slogdet", "inv", "eigvals", "svdvals", "cond", "pinv")],
    ("solve", "{0}.linalg.solve(x, y)", [(3, 3), (3, 2)]),
    ("cholesky", "{0}.linalg.cholesky(x @ {0}.conj(x.mT))", [(3, 5)]),
    ("orthogonal", "(lambda q, r: q @ (r * r))(*{0}.linalg.qr(x))", [(4, 3)]),
    ("eigenvalues", "{0}.linalg.eigvalsh(x + {0}.conj(x.mT))", [(4, 4)]),
    ("vectors of eigenvalues", "{0}.abs({0}.linalg.eigh(x + {0}.conj(x.mT))[1])", [(4, 4)]),
    ("parts by eigenvalues", "(lambda w, v: {0}.abs(v) * w + v[:1] / v[1:2])({0}.linalg.eig(x)[0], "
     "{0}.linalg.eig(x)[1])", [(4, 4)]),
    ("of real matrices", "{0}.abs({0}.linalg.eig(x)[1]) * {0}.linalg.eig(x)[0]",
     ["real", (4, 4)]),
    ("parts by singular values", "(lambda u, s, v: u[:, :2] * s[:2] @ v[:2])"
     "(*{0}.linalg.svd(x, full_matrices=False))", [(5, 3)]),
    *[(f"{name} {n} {norm}", f"{{0}}.fft.{name}(x, {n}, norm={norm!r})",
       (["real"] if name in ("rfft", "ihfft") else []) + [(3, 6)])
      for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
      for n, norm in ((None, "ortho"), (9, None), (4, "forward"))],
    *[(name, f"{{0}}.fft.{name}(x, (5, 3))", (["real"] if name[0] == "r" else []) + [(2, 4, 4)])
      for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")],
]  # fmt: skip


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_unary_of_complex(device, rng, name):
    both = Both(device, rng.standard_normal((3, 7)) + 1j * rng.standard_normal((3, 7)))
    both.check(getattr(vg, name), getattr(both.torch, "sgn" if name == "sign" else name))


@pytest.mark.parametrize(
    ("text", "operands"), [x[1:] for x in COMPLEX], ids=[x[0] for x in COMPLEX]
)
def test_expressions_of_complex(device, rng, text, operands):
    values = []
    for i, shape in enumerate(operands):
        if shape != "real":
            x = rng.standard_normal(shape)
            is_real = "real" in operands[max(i - 1, 0) : i]
            values.append(x if is_real else x + 1j * rng.standard_normal(shape))
    compare(text, values, Both(device, *values))


def test_second_derivatives(device, rng):
    values = rng.standard_normal(6)
    both = Both(device, values)
    (x,), (y,) = both.ours, both.theirs

    def slopes(library, x):
        inner = (library.tanh(x) * library.exp(x * 0.3)).sum()
        if library is vg:
            inner.backward(create_graph=True)
            return x.grad
        return library.autograd.grad(inner, x, create_graph=True)[0]

    first, second = slopes(vg, x), slopes(both.torch, y)
    near(first.detach(), second, "first")
    found = vg.grad(
        lambda x: (vg.grad(lambda x: (vg.tanh(x) * vg.exp(x * 0.3)).sum())(x) ** 2).sum()
    )
    (second**2).sum().backward()
    near(found(put(device, values)), y.grad, "second")


# Layers -------------------------------------------------------------------------------------------

# (name, arguments, shape of the input, or of several)
LAYERS = [
    ("Linear", {"in_features": 4, "out_features": 3}, (2, 5, 4)),
    ("Linear", {"in_features": 4, "out_features": 3, "bias": False}, (4,)),
    ("LayerNorm", {"normalized_shape": (3, 4)}, (2, 3, 4)),
    ("LayerNorm", {"normalized_shape": 4, "elementwise_affine": False, "eps": 0.1}, (2, 4)),
    ("RMSNorm", {"normalized_shape": 6}, (2, 3, 6)),
    ("GroupNorm", {"num_groups": 2, "num_channels": 4}, (3, 4, 5)),
    ("BatchNorm1d", {"num_features": 4}, (6, 4)),
    ("BatchNorm1d", {"num_features": 4, "momentum": None}, (3, 4, 5)),
    ("BatchNorm2d", {"num_features": 3, "momentum": 0.3}, (2, 3, 4, 5)),
    ("BatchNorm2d", {"num_features": 3, "track_running_stats": False}, (2, 3, 4, 5)),
    ("Conv1d", {"in_channels": 4, "out_channels": 6, "kernel_size": 3, "groups": 2}, (2, 4, 9)),
    ("Conv1d", {"in_channels": 2, "out_channels": 3, "kernel_size": 2, "stride": 2, "padding": 1,
                "dilation": 2}, (2, 2, 9)),
    ("Conv2d", {"in_channels": 3, "out_channels": 4, "kernel_size": 3}, (2, 3, 6, 7)),
    ("Conv2d", {"in_channels": 4, "out_channels": 4, "kernel_size": (3, 2), "stride": (2, 1),
                "padding": (1, 2), "dilation": (1, 2), "groups": 2}, (2, 4, 7, 8)),
    ("Conv2d", {"in_channels": 2, "out_channels": 3, "kernel_size": 3, "padding": "same",
                "bias": False}, (2, 2, 5, 5)),
    ("MaxPool1d", {"kernel_size": 3, "stride": 2, "padding": 1}, (2, 3, 9)),
    ("MaxPool2d", {"kernel_size": 2, "ceil_mode": True}, (2, 3, 5, 7)),
    ("MaxPool2d", {"kernel_size": (3, 2), "stride": 1, "dilation": (1, 2)}, (2, 3, 6, 7)),
    ("AvgPool1d", {"kernel_size": 3, "stride": 2, "padding": 1}, (2, 3, 9)),
    ("AvgPool2d", {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False},
     (2, 3, 6, 7)),
    ("RNN", {"input_size": 3, "hidden_size": 4}, (5, 2, 3)),
    ("RNN", {"input_size": 3, "hidden_size": 4, "nonlinearity": "relu", "num_layers": 2,
             "batch_first": True}, (2, 5, 3)),
    ("LSTM", {"input_size": 3, "hidden_size": 4}, (5, 2, 3)),
    ("LSTM", {"input_size": 3, "hidden_size": 4, "num_layers": 2, "bias": False}, (5, 2, 3)),
    ("GRU", {"input_size": 3, "hidden_size": 4, "batch_first": True}, (2, 5, 3)),
    ("GRU", {"input_size": 3, "hidden_size": 4, "num_layers": 2}, (5, 2, 3)),
    ("Softmax", {"dim": 1}, (2, 5)),
    ("LogSoftmax", {"dim": -1}, (2, 5)),
    ("ELU", {"alpha": 0.7}, (2, 5)),
    ("LeakyReLU", {"negative_slope": 0.2}, (2, 5)),
    ("Softplus", {"beta": 2.0}, (2, 5)),
    ("GELU", {"approximate": "tanh"}, (2, 5)),
    ("ReLU", {}, (2, 5)),
    ("SiLU", {}, (2, 5)),
    ("Sigmoid", {}, (2, 5)),
    ("Tanh", {}, (2, 5)),
    ("Flatten", {}, (2, 3, 4)),
    ("Identity", {}, (2, 3)),
]  # fmt: skip
OTHERS = {"Module", "ModuleDict", "ModuleList", "Sequential", "Dropout", "Embedding"}
OTHERS |= {"MultiheadAttention", "Parameter"}


def test_every_layer_is_compared():
    compared = {x[0] for x in LAYERS} | {x[0] for x in LOSSES} | OTHERS
    assert {name for name in nn.__all__ if name[0].isupper()} == compared


def layers(both, name, options):
    """The same layer in both libraries, in float64 and with the weights of torch's."""
    theirs = getattr(both.torch.nn, name)(**options).to(both.device).double()
    ours = getattr(nn, name)(**options).to(both.device).to("float64")
    ours.load_state_dict({key: x.cpu().numpy() for key, x in theirs.state_dict().items()})
    weights = dict(theirs.named_parameters())
    return ours, theirs, [(key, x, weights[key]) for key, x in ours.named_parameters()]


def after(ours, theirs):
    """What a step in training leaves in buffers."""
    found, wanted = dict(ours.named_buffers()), dict(theirs.named_buffers())
    assert found.keys() == wanted.keys()
    for key, x in found.items():
        near(x.astype("float64"), wanted[key].double(), key)


@pytest.mark.parametrize(
    ("name", "options", "shape"), LAYERS, ids=[f"{x[0]}-{i}" for i, x in enumerate(LAYERS)]
)
@pytest.mark.parametrize("training", [True, False])
def test_layers(device, rng, name, options, shape, training):
    both = Both(device, rng.standard_normal(shape))
    ours, theirs, weights = layers(both, name, options)
    ours.train(training), theirs.train(training)
    # cuDNN has no gradients of recurrent layers in eval mode, of which torch's own kernels have.
    by_cudnn = training or name not in ("RNN", "LSTM", "GRU")
    with both.torch.backends.cudnn.flags(enabled=by_cudnn):
        both.check(ours, theirs, weights)
    after(ours, theirs)


@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"scale_grad_by_freq": True}])
def test_embedding(device, options):
    both = Both(device, np.array([[0, 2, 2], [5, 0, 2]]))
    if "scale_grad_by_freq" in options:
        with pytest.raises(NotImplementedError):
            nn.Embedding(6, 3, **options)
        return
    ours, theirs, weights = layers(
        both, "Embedding", {"num_embeddings": 6, "embedding_dim": 3} | options
    )
    both.check(ours, theirs, weights)


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"kdim": 6, "vdim": 5}])
@pytest.mark.parametrize("causal", [False, True])
def test_multihead_attention(device, rng, options, causal):
    wide = options.get("kdim", 8), options.get("vdim", 8)
    both = Both(device, *(rng.standard_normal((2, 5, size)) for size in (8, *wide)))
    options = {"embed_dim": 8, "num_heads": 2, "batch_first": True} | options
    ours, theirs, weights = layers(both, "MultiheadAttention", options)
    mask = np.triu(np.ones((5, 5), bool), 1) if causal else None
    given = (
        [None, None]
        if mask is None
        else [put(device, mask), both.torch.asarray(mask, device=device)]
    )
    both.check(
        lambda q, k, v: ours(q, k, v, attn_mask=given[0], need_weights=False)[0],
        lambda q, k, v: theirs(q, k, v, attn_mask=given[1], need_weights=False)[0],
        weights,
    )


# Losses -------------------------------------------------------------------------------------------

LABELS = np.array([1, 0, 3, -100, 3])
# (name, arguments, shape of the input, target: labels or a shape)
LOSSES = [
    ("CrossEntropyLoss", {}, (5, 4), LABELS),
    ("CrossEntropyLoss", {"label_smoothing": 0.1}, (5, 4), LABELS),
    ("CrossEntropyLoss", {"ignore_index": 3, "reduction": "sum"}, (4, 4), np.array([1, 3, 2, 3])),
    ("CrossEntropyLoss", {"reduction": "none"}, (5, 4), LABELS),
    ("CrossEntropyLoss", {}, (2, 4, 3), np.array([[0, 1, 2], [3, 3, 1]])),
    ("NLLLoss", {}, (5, 4), LABELS),
    ("MSELoss", {}, (3, 4), (3, 4)),
    ("MSELoss", {"reduction": "sum"}, (3, 4), (3, 4)),
    ("L1Loss", {"reduction": "none"}, (3, 4), (3, 4)),
    ("HuberLoss", {"delta": 0.4}, (3, 4), (3, 4)),
    ("SmoothL1Loss", {"beta": 0.3}, (3, 4), (3, 4)),
    ("BCEWithLogitsLoss", {}, (3, 4), (3, 4)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "options", "shape", "target"),
    LOSSES,
    ids=[f"{x[0]}-{i}" for i, x in enumerate(LOSSES)],
)
def test_losses(device, rng, name, options, shape, target):
    target = rng.random(target) if isinstance(target, tuple) else target
    both = Both(device, rng.standard_normal(shape), target)
    ours, theirs = getattr(nn, name)(**options), getattr(both.torch.nn, name)(**options)
    both.check(ours, theirs)


@pytest.mark.parametrize("name", ["CrossEntropyLoss", "NLLLoss"])
def test_weights_of_classes(device, rng, name):
    weight = rng.uniform(0.5, 2.0, 4)
    both = Both(device, rng.standard_normal((5, 4)), LABELS)
    ours = getattr(nn, name)(weight=put(device, weight))
    theirs = getattr(both.torch.nn, name)(weight=both.torch.asarray(weight, device=device))
    both.check(ours, theirs)
