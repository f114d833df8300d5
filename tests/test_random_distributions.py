"""Distributions by formula and by table: against their distribution functions, on every device.

Seeds are fixed. A Kolmogorov-Smirnov distance of n numbers is below 1.95 / sqrt(n) in 999 of 1000
samples; exact values of the distribution functions are Python's, or sums of exact fractions.
"""

import inspect
import math
from fractions import Fraction

import helpers
import numpy as np
import pytest
from helpers import assert_same, put

import pyvecgpu as vg
from pyvecgpu.random.gammas import logarithm

N = 20_000


def normal_cdf(x):
    return 0.5 * np.vectorize(math.erfc)(-x / math.sqrt(2))


def triangle_cdf(x, a, c, b):
    low = (x - a) ** 2 / ((b - a) * (c - a)) if c > a else np.zeros_like(x)
    high = 1 - (b - x) ** 2 / ((b - a) * (b - c)) if b > c else np.ones_like(x)
    return np.where(x < c, low, high)


def gamma_cdf(x, a, scale=1.0):
    """The incomplete gamma function's series."""
    x = x / scale
    term = np.exp(a * np.log(np.maximum(x, 1e-300)) - x - math.lgamma(a + 1))
    sum_ = term.copy()
    for n in range(1, 400):
        term = term * x / (a + n)
        sum_ += term
    return sum_


# name: (several parameters, the distribution function).
CONTINUOUS = {
    "standard_normal": ([()], normal_cdf),
    "standard_gamma": ([(0.2,), (1.0,), (2.5,), (40.0,)], gamma_cdf),
    "gamma": ([(0.5, 3.0), (7.0, 0.1)], gamma_cdf),
    "chisquare": ([(1.0,), (5.0,)], lambda x, n: gamma_cdf(x / 2, n / 2)),
    "standard_t": (
        [(1.0,), (2.0,)],
        lambda x, n: 0.5 + (np.arctan(x) / np.pi if n == 1 else x / np.sqrt(2 + x * x) / 2),
    ),
    "f": ([(2.0, 2.0), (2.0, 5.0)], lambda x, n, m: 1 - (1 + 2 * x / m) ** (-m / 2)),
    "beta": (
        [(2.0, 3.0), (0.5, 0.5), (1.0, 4.0)],
        lambda x, a, b: {
            0.5: lambda: 2 / np.pi * np.arcsin(np.sqrt(x)),
            1.0: lambda: 1 - (1 - x) ** 4,
            2.0: lambda: 6 * x**2 - 8 * x**3 + 3 * x**4,
        }[a](),
    ),
    "standard_exponential": ([()], lambda x: -np.expm1(-x)),
    "standard_cauchy": ([()], lambda x: 0.5 + np.arctan(x) / np.pi),
    "lognormal": ([(0.0, 1.0), (2.0, 0.3)], lambda x, m, s: normal_cdf((np.log(x) - m) / s)),
    "laplace": (
        [(0.0, 1.0), (-3.0, 0.5)],
        lambda x, m, s: np.where(
            x < m, np.exp(np.minimum(x - m, 0) / s) / 2, 1 - np.exp(-np.abs(x - m) / s) / 2
        ),
    ),
    "gumbel": ([(0.0, 1.0), (3.0, 2.0)], lambda x, m, s: np.exp(-np.exp(-(x - m) / s))),
    "logistic": ([(0.0, 1.0), (3.0, 2.0)], lambda x, m, s: 1 / (1 + np.exp(-(x - m) / s))),
    "rayleigh": ([(1.0,), (3.0,)], lambda x, s: -np.expm1(-((x / s) ** 2) / 2)),
    "weibull": ([(1.0,), (0.5,), (5.0,)], lambda x, a: -np.expm1(-(x**a))),
    "pareto": ([(1.0,), (3.0,), (0.5,)], lambda x, a: 1 - (1 + x) ** -a),
    "power": ([(1.0,), (3.0,), (0.5,)], lambda x, a: x**a),
    "triangular": ([(0.0, 1.0, 5.0), (-1.0, -1.0, 2.0), (0.0, 2.0, 2.0)], triangle_cdf),
}
CASES = [(name, p) for name, (several, _) in CONTINUOUS.items() for p in several]


def distance(values, cdf):
    """The Kolmogorov-Smirnov distance of a sample from a continuous distribution function."""
    found = cdf(np.sort(values))
    steps = np.arange(values.size + 1) / values.size
    return max(np.abs(found - steps[1:]).max(), np.abs(found - steps[:-1]).max())


@pytest.mark.parametrize(("name", "parameters"), CASES)
def test_distribution_functions(device, name, parameters):
    generator = vg.random.default_rng(2026, device=device)
    for dtype in ("float64", "float32"):
        x = getattr(generator, name)(*parameters, size=N, dtype=dtype)
        assert x.dtype == dtype and x.device == vg.Device(device)
        d = distance(x.numpy().astype(np.float64), lambda v: CONTINUOUS[name][1](v, *parameters))
        assert not d > 1.95 / math.sqrt(N), (dtype, d)


@pytest.mark.parametrize(("name", "parameters"), CASES)
def test_devices_agree(device, name, parameters):
    """float32 is rounded from float64; in float64 a formula's terms are within 4 units each."""
    size = (7, 501)
    for dtype, units in (("float64", 24), ("float32", 4), ("float16", 1)):
        draw = lambda place: getattr(vg.random.default_rng(3, device=place), name)(  # noqa: E731
            *parameters,
            size=size,
            dtype=dtype,  # noqa: B023
        )
        found, expected = draw(device).numpy(), draw("cpu").numpy()
        # A sum of terms, such as loc + scale * z, has the largest term's units.
        scale = np.maximum(np.abs(expected), max(1.0, *map(abs, parameters), 0.0))
        scale = np.abs(expected) if name in ("rayleigh", "weibull", "pareto") else scale
        unit = np.spacing(scale.astype(dtype)).astype(np.float64)
        error = np.abs(found.astype(np.float64) - expected.astype(np.float64))
        with np.errstate(invalid="ignore"):
            same = found == expected
        assert not np.any(~((error <= units * unit) | same)), (dtype, (error / unit).max())


ARRAYS = {
    "lognormal": {"mean": [[0.0], [5.0]], "sigma": [0.1, 0.2, 0.3]},
    "laplace": {"loc": [[0.0], [50.0]], "scale": [0.1, 0.2, 0.3]},
    "gumbel": {"loc": [[0.0], [50.0]], "scale": [0.1, 0.2, 0.3]},
    "logistic": {"loc": [[0.0], [50.0]], "scale": [0.1, 0.2, 0.3]},
    "rayleigh": {"scale": [[1.0], [50.0]]},
    "weibull": {"a": [[1.0], [50.0], [0.0]]},
    "pareto": {"a": [[1.0], [50.0]]},
    "power": {"a": [[1.0], [50.0]]},
    "triangular": {"left": [[0.0], [4.0]], "mode": [5.0, 6.0], "right": 7.0},
    "gamma": {"shape": [[0.5], [30.0]], "scale": [1.0, 2.0]},
    "geometric": {"p": [[0.5], [0.01], [1.0]]},
    "poisson": {"lam": [[0.5, 4.0], [300.0, 0.0]]},
    "binomial": {"n": [[5], [300]], "p": [0.0, 0.1, 1.0]},
}


@pytest.mark.parametrize("name", ARRAYS)
def test_parameters_are_arrays(device, name):
    """Each element is what its own parameters would have given at its place; and broadcast."""
    given = {key: np.asarray(value) for key, value in ARRAYS[name].items()}
    shape = np.broadcast_shapes(*(v.shape for v in given.values()))
    draw = lambda **values: getattr(vg.random.default_rng(8, device=device), name)(**values)  # noqa: E731
    for make in (lambda v: v, lambda v: put(device, v), lambda v: v.tolist()):
        found = draw(**{key: make(v) for key, v in given.items()})
        assert found.shape == shape and found.device == vg.Device(device)
        size = (4, *shape)
        larger = draw(**{key: make(v) for key, v in given.items()}, size=size).numpy()
        for place in np.ndindex(*shape):
            own = {key: np.broadcast_to(v, shape)[place].item() for key, v in given.items()}
            wanted = draw(**own, size=size).numpy()[(slice(None), *place)]
            np.testing.assert_allclose(larger[(slice(None), *place)], wanted, rtol=1e-6)
    with helpers.refused(device, ValueError):
        draw(**given, size=(2, 7, 5))


# Counts -------------------------------------------------------------------------------------------


def poisson_mass(k, lam):
    return math.exp(k * math.log(lam) - lam - math.lgamma(k + 1))


def binomial_mass(k, n, p):
    return float(math.comb(n, k) * Fraction(p) ** k * (1 - Fraction(p)) ** (n - k))


COUNTS = {
    ("geometric", (0.3,)): lambda k: 0.7 ** (k - 1) * 0.3 if k else 0.0,
    ("geometric", (0.02,)): lambda k: 0.98 ** (k - 1) * 0.02 if k else 0.0,
    ("poisson", (0.2,)): lambda k: poisson_mass(k, 0.2),
    ("poisson", (7.5,)): lambda k: poisson_mass(k, 7.5),
    ("poisson", (900.0,)): lambda k: poisson_mass(k, 900.0),
    ("binomial", (1, 0.25)): lambda k: binomial_mass(k, 1, 0.25) if k < 2 else 0.0,
    ("binomial", (20, 0.3)): lambda k: binomial_mass(k, 20, 0.3) if k < 21 else 0.0,
    ("binomial", (700, 0.9)): lambda k: binomial_mass(k, 700, 0.9) if k < 701 else 0.0,
}


@pytest.mark.parametrize("case", COUNTS)
def test_counts(device, case):
    """Chi-square over bins of 20 expected counts or more."""
    name, parameters = case
    found = getattr(vg.random.default_rng(77, device=device), name)(*parameters, size=N)
    assert found.dtype == vg.int64
    counts = np.bincount(found.numpy(), minlength=1200)
    expected = np.array([COUNTS[case](k) for k in range(counts.size)]) * N
    assert abs(expected.sum() - N) <= 1e-6 * N and (counts[expected == 0] == 0).all()
    bins, left, right = [], 0.0, 0
    for one, other in zip(expected, counts, strict=True):
        left, right = left + one, right + other
        if left >= 20:
            bins.append((left, right))
            left, right = 0.0, 0
    bins[-1] = (bins[-1][0] + left, bins[-1][1] + right)
    statistic = sum((o - e) ** 2 / e for e, o in bins)
    degrees = len(bins) - 1
    assert not abs(statistic - degrees) > 4.5 * math.sqrt(2 * degrees)
    cpu = getattr(vg.random.default_rng(77, device="cpu"), name)(*parameters, size=N)
    assert_same(found, cpu.numpy())


def test_large_counts(device):
    generator = vg.random.default_rng(1, device=device)
    for mean, deviation, x in (
        (1e9, math.sqrt(1e9), generator.poisson(1e9, 4000)),
        (3e9, math.sqrt(2.1e9), generator.binomial(10**10, 0.3, 4000)),
    ):
        error = (x.numpy().mean() - mean) * math.sqrt(4000) / deviation
        assert not abs(error) > 4.5
    assert generator.geometric(1e-300, 5).min().item() > 2**60
    assert generator.poisson(0, 9).tolist() == [0] * 9
    assert generator.binomial(7, 1.0, 9).tolist() == [7] * 9
    assert generator.binomial(0, 0.5, 9).tolist() == [0] * 9


# Vectors and orders -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["svd", "eigh", "cholesky"])
def test_multivariate_normal(device, method):
    mean = np.array([1.0, -2.0, 30.0])
    cov = np.array([[2.0, 0.6, -0.2], [0.6, 1.0, 0.3], [-0.2, 0.3, 0.5]])
    for make in (lambda v: v, lambda v: put(device, v), lambda v: v.tolist()):
        generator = vg.random.default_rng(4, device=device)
        x = generator.multivariate_normal(make(mean), make(cov), N, method=method, dtype="float64")
        assert x.shape == (N, 3)
        x = x.numpy()
        assert not np.any(np.abs(x.mean(0) - mean) > 4.5 * np.sqrt(np.diag(cov) / N))
        spread = np.sqrt((np.outer(np.diag(cov), np.diag(cov)) + cov**2) / N)
        assert not np.any(np.abs(np.cov(x.T) - cov) > 4.5 * spread)
        again = vg.random.default_rng(4, device="cpu")
        expected = again.multivariate_normal(mean, cov, N, method=method, dtype="float64").numpy()
        assert not np.any(~(np.abs(x - expected) <= 1e-13 * 40))
    assert generator.multivariate_normal(mean, cov).shape == (3,)
    assert generator.multivariate_normal(mean, cov, (2, 4)).shape == (2, 4, 3)
    flat = generator.multivariate_normal([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]], 50).numpy()
    np.testing.assert_allclose(flat[:, 0], flat[:, 1], atol=1e-6)
    with pytest.warns(RuntimeWarning, match="semidefinite"):
        generator.multivariate_normal([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]])


def test_permuted(device):
    x = np.arange(60.0).reshape(3, 4, 5)
    for axis in (0, 1, 2, -1, None):
        for values in (x, x.astype(np.int8), x.transpose(2, 0, 1), x[::-1, ::2]):
            found = vg.random.default_rng(5, device=device).permuted(put(device, values), axis)
            same = vg.random.default_rng(5, device="cpu").permuted(put("cpu", values), axis)
            assert_same(found, same.numpy())
            ours, theirs = (np.sort(v, axis=axis) for v in (found.numpy(), values))
            assert_same(ours, theirs)
    rows = vg.random.default_rng(1, device=device).permuted(np.tile(np.arange(8), (500, 1)), axis=1)
    assert len({tuple(row) for row in rows.tolist()}) > 450
    counts = np.bincount(rows.numpy()[:, 0], minlength=8)
    assert np.sum((counts - 62.5) ** 2 / 62.5) < 29.9  # 7 degrees, p = 1e-4
    array = put(device, x)
    out = put(device, np.zeros_like(x))
    generator = vg.random.default_rng(5, device=device)
    assert generator.permuted(array, 1, out) is out
    assert_same(out, vg.random.default_rng(5, device="cpu").permuted(put("cpu", x), 1).numpy())
    assert generator.permuted(array, out=array) is array
    assert_same(np.sort(array.numpy(), None), x.ravel())


def test_the_logarithm_has_the_same_bits_everywhere(device):
    u = np.random.default_rng(1).random(20_000)
    x = np.concatenate(
        [u + 1e-12, 1 - u * 1e-9, 1 + u * 1e-6, u * 50, 2.0 ** np.arange(-1022, 1024)]
    )
    found = logarithm(put(device, x)).numpy()
    assert_same(found, logarithm(put("cpu", x)).numpy())
    expected = np.log(x)
    assert not np.any(np.abs(found - expected) > 4 * np.spacing(np.abs(expected)))


def test_gammas_are_decided_alike(device):
    """The rounds of rejection leave the stream at the same place; parameters that are none end."""
    places = []
    for place in (device, "cpu"):
        generator = vg.random.default_rng(21, device=place)
        for a in (0.01, 1.0, 3.3, 1e6, 1e12):
            x = generator.gamma(a, size=5000, dtype="float64").numpy()
            places.append((x, generator.state))
    for (x, state), (y, other) in zip(places[:5], places[5:], strict=True):
        assert state == other
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-300)
    for a, (x, _) in zip((1.0, 3.3, 1e6, 1e12), places[1:5], strict=True):
        assert_mean(x, a, math.sqrt(a))
    generator = vg.random.default_rng(1, device=device)
    odd = generator.gamma(np.array([-1.0, np.nan, np.inf, 0.0, 2.0])).numpy()
    assert np.isnan(odd[:3]).all() and odd[3] == 0 and odd[4] > 0
    out = vg.zeros(7, "float64", device=device)
    assert generator.standard_gamma(2.0, out=out) is out and (out > 0).all().item()


def assert_mean(values, mean, deviation):
    error = abs(values.mean() - mean) * math.sqrt(values.size) / deviation
    assert not error > 4.5, error


def test_dirichlet(device):
    x = vg.random.default_rng(3, device=device).dirichlet([1.0, 1.0, 1.0], N, dtype="float64")
    assert x.shape == (N, 3)
    assert not np.abs(x.numpy().sum(1) - 1).max() > 1e-15 * 4
    for column in x.numpy().T:
        assert not distance(column, lambda v: 1 - (1 - v) ** 2) > 1.95 / math.sqrt(N)
    few = vg.random.default_rng(3, device=device).dirichlet(put(device, np.array([1e-3, 5.0])))
    assert few.shape == (2,) and abs(few.sum().item() - 1) < 1e-6
    assert vg.random.default_rng(3, device=device).dirichlet([2.0], (2, 4)).shape == (2, 4, 1)


# Scalars, refusals, functions ---------------------------------------------------------------------

SINGLE = {
    "beta": (2, 3), "chisquare": (3,), "f": (5, 6), "gamma": (2,), "standard_gamma": (2,),
    "standard_t": (5,), "binomial": (10, 0.5), "choice": (7,), "exponential": (),
    "geometric": (0.5,), "gumbel": (), "laplace": (), "logistic": (), "lognormal": (),
    "normal": (), "pareto": (2.0,), "poisson": (), "power": (2.0,), "rayleigh": (),
    "standard_cauchy": (), "standard_exponential": (), "standard_normal": (),
    "triangular": (0, 1, 2), "uniform": (), "weibull": (2.0,),
}  # fmt: skip


@pytest.mark.parametrize("name", SINGLE)
def test_single_numbers_and_functions(device, name):
    """size None is a Python number; the functions are the methods of the process's generator."""
    kind = int if name in ("binomial", "choice", "geometric", "poisson") else float
    with vg.device(device):
        assert type(getattr(vg.random.default_rng(1), name)(*SINGLE[name])) is kind
        vg.random.seed(6)
        found = getattr(vg.random, name)(*SINGLE[name], size=(2, 3))
        assert found.device == vg.Device(device)
        expected = getattr(vg.random.default_rng(6), name)(*SINGLE[name], size=(2, 3))
        assert_same(found, expected.numpy())
    empty = getattr(vg.random.default_rng(1, device=device), name)(*SINGLE[name], size=(0, 2))
    assert empty.shape == (0, 2)


def test_older_names(device):
    with vg.device(device):
        for function in (vg.random.random_sample, vg.random.sample, vg.random.ranf):
            vg.random.seed(6)
            assert_same(function((2, 3)), vg.random.default_rng(6).random((2, 3)).numpy())
            assert type(function()) is float
        vg.random.seed(6)
        assert vg.random.bytes(5) == vg.random.default_rng(6).bytes(5)
        vg.random.seed(6)
        x = vg.arange(9)
        vg.random.shuffle(x)
        assert x.tolist() == vg.random.default_rng(6).permutation(9).tolist()
        vg.random.seed(6)
        assert vg.random.permutation(9).tolist() == x.tolist()


# NumPy's methods are written in C: as its documentation has them.
POSITIONS = {
    "standard_exponential": ["size", "dtype", "method", "out"],
    "lognormal": ["mean", "sigma", "size"],
    "standard_gamma": ["shape", "size", "dtype", "out"],
    "gamma": ["shape", "scale", "size"],
    "chisquare": ["df", "size"],
    "standard_t": ["df", "size"],
    "f": ["dfnum", "dfden", "size"],
    "beta": ["a", "b", "size"],
    "dirichlet": ["alpha", "size"],
    "laplace": ["loc", "scale", "size"],
    "gumbel": ["loc", "scale", "size"],
    "logistic": ["loc", "scale", "size"],
    "rayleigh": ["scale", "size"],
    "weibull": ["a", "size"],
    "pareto": ["a", "size"],
    "power": ["a", "size"],
    "triangular": ["left", "mode", "right", "size"],
    "standard_cauchy": ["size"],
    "geometric": ["p", "size"],
    "poisson": ["lam", "size"],
    "binomial": ["n", "p", "size"],
    "permuted": ["x", "axis", "out"],
    "multivariate_normal": ["mean", "cov", "size", "check_valid", "tol"],
}


@pytest.mark.parametrize("name", POSITIONS)
def test_arguments_in_numpys_order(name):
    for function in (getattr(vg.random.Generator, name), getattr(vg.random, name)):
        found = inspect.signature(function).parameters.values()
        taken = [p.name for p in found if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "self"]
        assert taken == POSITIONS[name] and hasattr(np.random.Generator, name)


REFUSED = {
    "shape": (lambda g: g.gamma(-1), ValueError, "shape must not"),
    "scale of gamma": (lambda g: g.gamma(1, -1), ValueError, "scale must not"),
    "df": (lambda g: g.chisquare(0), ValueError, "df must be above 0"),
    "t": (lambda g: g.standard_t(-1), ValueError, "df must be above 0"),
    "f": (lambda g: g.f(1, 0), ValueError, "dfden must be above 0"),
    "beta": (lambda g: g.beta(0, 1), ValueError, "a must be above 0"),
    "dirichlet": (lambda g: g.dirichlet([1, 0]), ValueError, "above 0"),
    "gamma's out": (lambda g: g.standard_gamma(1, out=[1]), TypeError, "Array"),
    "sigma": (lambda g: g.lognormal(0, -1), ValueError, "negative"),
    "laplace": (lambda g: g.laplace(0, -1), ValueError, "negative"),
    "gumbel": (lambda g: g.gumbel(0, math.nan), ValueError, "negative"),
    "logistic": (lambda g: g.logistic(0, -1, 3), ValueError, "negative"),
    "rayleigh": (lambda g: g.rayleigh(-1), ValueError, "negative"),
    "weibull": (lambda g: g.weibull(-1), ValueError, "negative"),
    "pareto": (lambda g: g.pareto(0), ValueError, "above 0"),
    "power": (lambda g: g.power(0), ValueError, "above 0"),
    "triangular": (lambda g: g.triangular(0, 3, 2), ValueError, "left <= mode"),
    "no triangle": (lambda g: g.triangular(2, 2, 2), ValueError, "same"),
    "geometric": (lambda g: g.geometric(0), ValueError, r"\(0, 1\]"),
    "poisson": (lambda g: g.poisson(-1), ValueError, "lam"),
    "large": (lambda g: g.poisson(1e11), ValueError, "lam"),
    "nan": (lambda g: g.poisson(math.nan), ValueError, "lam"),
    "text": (lambda g: g.poisson("a"), TypeError, "numbers"),
    "binomial": (lambda g: g.binomial(-1, 0.5), ValueError, "negative"),
    "half": (lambda g: g.binomial(1.5, 0.5), TypeError, "integers"),
    "p": (lambda g: g.binomial(3, 1.5), ValueError, "between"),
    "method": (lambda g: g.standard_exponential(3, method="x"), ValueError, "method"),
    "dtype": (lambda g: g.gumbel(size=3, dtype="int8"), TypeError, "float"),
    "a factor": (lambda g: g.multivariate_normal([0], [[1]], method="x"), ValueError, "method"),
    "a check": (lambda g: g.multivariate_normal([0], [[1]], None, "x"), ValueError, "check_valid"),
    "cov": (lambda g: g.multivariate_normal([0, 1], [[1]]), ValueError, "shapes"),
    "no cov": (lambda g: g.multivariate_normal([0], [[-1]], None, "raise"), ValueError, "semi"),
    "out": (lambda g: g.permuted(vg.ones(3), out=np.ones(3)), TypeError, "Array"),
    "out's shape": (lambda g: g.permuted(vg.ones(3), out=vg.ones(2)), ValueError, "out is"),
    "an axis": (lambda g: g.permuted(vg.ones(3), 1), np.exceptions.AxisError, "axis 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(device, name):
    call, error, match = REFUSED[name]
    with vg.device(device), helpers.refused(device, error, match=match):
        call(vg.random.default_rng(1))
