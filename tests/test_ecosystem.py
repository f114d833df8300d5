"""One real computation with each library that takes arrays of others, on every device.

What they give must be an Array on the same device, with the values that NumPy's arrays give. Their
own creation functions are told no device: the current one is theirs, hence `with vg.device(...)`.
SciPy reads SCIPY_ARRAY_API when it is imported, so its computations and scikit-learn's run in a
child process.
"""

import helpers
import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg

RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 4))
LABELS = (X[:, 0] + X[:, 1] > 0).astype(np.int64)


def check(result, expected, device, rtol=1e-9):
    assert isinstance(result, vg.Array), type(result)
    assert result.device == vg.Device(device)
    np.testing.assert_allclose(result.numpy(), expected, rtol=rtol, atol=1e-9)


# scikit-learn and SciPy ---------------------------------------------------------------------------

CHILD = """
import json
import numpy as np
import pyvecgpu as vg
X = np.random.default_rng(5).normal(size=(60, 4))
Y = X @ np.array([1.0, 2.0, -1.0, 0.5]) + 0.3
LABELS = (X[:, 0] + X[:, 1] > 0).astype(np.int64)
{body}
wrong = []
with vg.device({device!r}):
    for name, call in CALLS.items():
        results, expected = call(vg.asarray), call(np.asarray)
        results, expected = (x if isinstance(x, tuple) else (x,) for x in (results, expected))
        for result, one in zip(results, expected, strict=True):
            if isinstance(one, float):  # a score
                result = np.asarray(result)
            elif not isinstance(result, vg.Array) or result.device != vg.Device({device!r}):
                wrong.append([name, str(type(result))])
                continue
            else:
                result = result.numpy()
            if not np.allclose(result, one, rtol=1e-7, atol=1e-9):
                wrong.append([name, "values"])
print(json.dumps([len(CALLS), wrong]))
"""

LEARN = """
import sklearn
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, r2_score
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.preprocessing import MinMaxScaler, StandardScaler
sklearn.set_config(array_api_dispatch=True)

def ridge(a):
    model = Ridge(alpha=0.5, solver="svd").fit(a(X), a(Y))
    return model.coef_, model.predict(a(X))

def components(solver):
    def fit(a):
        model = PCA(2, svd_solver=solver, random_state=0)
        return abs(model.fit_transform(a(X))), model.explained_variance_
    return fit

def discriminant(a):
    found = LinearDiscriminantAnalysis().fit(a(X), a(LABELS)).predict(a(X))
    return found, float(accuracy_score(a(LABELS), found))

CALLS = {
    "Ridge": ridge,
    **{solver: components(solver) for solver in ("full", "covariance_eigh", "randomized")},
    "LinearDiscriminantAnalysis": discriminant,
    "r2_score": lambda a: float(r2_score(a(Y), a(Y + 0.1))),
    "euclidean_distances": lambda a: euclidean_distances(a(X), a(X[:5] + 1)),
    "MinMaxScaler": lambda a: MinMaxScaler().fit_transform(a(X)),
    "StandardScaler": lambda a: StandardScaler().fit_transform(a(X)),
}
"""

SCIPY = """
import scipy.cluster, scipy.fft, scipy.integrate, scipy.special, scipy.stats
from scipy.spatial.transform import Rotation

def ttest(a):
    # Its distribution is computed by NumPy, on the host, which has to be allowed.
    with vg.implicit_transfers("allow"):
        return scipy.stats.ttest_ind(a(X), a(X[:30])).pvalue

CALLS = {
    "zscore": lambda a: scipy.stats.zscore(a(X)),
    "skew": lambda a: scipy.stats.skew(a(X)),
    "kurtosis": lambda a: scipy.stats.kurtosis(a(X), axis=1),
    "ttest": ttest,
    "logsumexp": lambda a: scipy.special.logsumexp(a(X), axis=1),
    "softmax": lambda a: scipy.special.softmax(a(X), axis=1),
    "whiten": lambda a: scipy.cluster.vq.whiten(a(X)),
    "fft": lambda a: scipy.fft.fft(a(X), axis=0),
    "trapezoid": lambda a: scipy.integrate.trapezoid(a(X), axis=0),
    "rotation": lambda a: Rotation.from_quat(a(X)).as_matrix(),
}
"""


@pytest.mark.needs("sklearn")
def test_scikit_learn(device):
    code = CHILD.format(body=LEARN, device=device)
    count, wrong = helpers.child_result(code, "-W", "ignore", timeout=180, SCIPY_ARRAY_API="1")
    assert count == 9 and wrong == []


@pytest.mark.needs("scipy")
def test_scipy(device):
    code = CHILD.format(body=SCIPY, device=device)
    count, wrong = helpers.child_result(code, "-W", "ignore", timeout=180, SCIPY_ARRAY_API="1")
    assert count == 10 and wrong == []


# einops, xarray, Dask, array-api-compat, array-api-extra ------------------------------------------


@pytest.mark.needs("einops")
def test_einops(device):
    """einops.array_api is its module for libraries of the standard."""
    from einops.array_api import rearrange, reduce, repeat

    def compute(x):
        return (
            rearrange(x, "(b h) (w c) -> b c h w", b=6, c=2),
            reduce(x, "(b h) c -> b c", "mean", b=6),
            reduce(x, "b c -> c", "max"),
            repeat(x, "b c -> b n c", n=3),
        )

    for result, expected in zip(compute(put(device, X)), compute(X), strict=True):
        check(result, expected, device)


@pytest.mark.needs("xarray")
def test_xarray(device):
    import xarray

    def compute(x):
        days = xarray.DataArray(x, dims=("time", "place"), coords={"time": np.arange(60)})
        anomaly = (days - days.mean("time")) / days.std("time")
        far = np.abs(anomaly).where(anomaly > 0, 0.0)
        joined = xarray.concat([anomaly.isel(time=slice(0, 9)), far.isel(time=[3, 1])], "time")
        return joined.data, xarray.dot(days, days.isel(time=0)).data, days.shift(time=1)[1:].data

    with vg.device(device):
        results = compute(put(device, X))
    for result, expected in zip(results, compute(X), strict=True):
        check(result, expected, device)


@pytest.mark.needs("dask")
def test_dask(device):
    import dask
    import dask.array as da
    from dask.array.chunk_types import _HANDLED_CHUNK_TYPES

    def compute(x):
        a = da.from_array(x, chunks=(20, 2), asarray=False)
        square = da.from_array(x, chunks=(20, 4), asarray=False)
        yield (np.exp(a) * 2 - a).sum(axis=0)
        yield a.mean(axis=1)
        yield a.std(axis=0)
        yield a.T @ a
        yield a[5:30:3].rechunk((3, 4))
        yield a.map_blocks(lambda block: block * 2)
        yield da.where(a > 0, a, 0.0)
        yield abs(da.linalg.svd(square)[1])
        yield da.tensordot(a, a, axes=((0,), (0,)))
        yield x[0] + a

    before = list(_HANDLED_CHUNK_TYPES)
    da.register_chunk_type(vg.Array)
    try:
        with dask.config.set(scheduler="synchronous"), vg.device(device):
            for result, expected in zip(compute(put(device, X)), compute(X), strict=True):
                check(result.compute(), expected.compute(), device)
    finally:
        _HANDLED_CHUNK_TYPES[:] = before


@pytest.mark.needs("array_api_compat")
def test_array_api_compat(device):
    import array_api_compat

    x = put(device, X)
    assert array_api_compat.array_namespace(x, put(device, LABELS)) is vg
    assert array_api_compat.is_array_api_obj(x) and array_api_compat.is_writeable_array(x)
    assert array_api_compat.device(x) == x.device and array_api_compat.size(x) == X.size
    assert array_api_compat.to_device(x, "cpu").device == vg.Device("cpu")


@pytest.mark.needs("array_api_extra")
def test_array_api_extra(device):
    import array_api_extra

    def compute(x, labels):
        yield array_api_extra.cov(x.T)
        yield array_api_extra.pad(x, 1)
        yield array_api_extra.at(x * 1, (slice(None), 0)).add(3.0)
        yield array_api_extra.apply_where(x > 0, x, lambda x: x * 2, fill_value=0.0)
        yield array_api_extra.one_hot(labels, 2)
        yield array_api_extra.setdiff1d(labels, labels[:1])

    with vg.device(device):
        results = list(compute(put(device, X), put(device, LABELS)))
    for result, expected in zip(results, compute(X, LABELS), strict=True):
        check(result, expected, device)


@pytest.mark.needs("torch")
@pytest.mark.devices("cpu", "sim")
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8", "bool", "complex64"])
def test_torch_on_the_host(device, dtype):
    import torch

    x = put(device, X).astype(dtype)
    tensor = torch.from_dlpack(x)
    assert str(tensor.dtype) == f"torch.{dtype}" and tensor.shape == (60, 4)
    assert tensor.tolist() == x.tolist()
    tensor[0, 0] = 1
    assert x[0, 0].item() == 1, "the memory is shared"
    back = vg.from_dlpack(tensor.T)
    assert back.dtype == x.dtype and back.tolist() == x.T.tolist()
    back[0, 0] = 0
    assert tensor[0, 0].item() == 0
    assert vg.asarray(torch.ones(3)).dtype == vg.float32
