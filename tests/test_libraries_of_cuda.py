"""cuSOLVER's and cuFFT's callers on the simulated card, with NumPy in the libraries' place.

The stand-ins have the documented parameters and work on the card's memory by address: columns after
columns, leading dimensions, pivots counted from 1. What the true libraries compute is tested by
test_systems.py, test_decompositions.py and test_fft.py on a GPU.
"""

import contextlib
import ctypes

import helpers
import numpy as np
import pytest
from gradients import check, check_twice
from helpers import put

import pyvecgpu as vg
from pyvecgpu.linalg.cusolver import Cusolver
from pyvecgpu.native import toolkit

DTYPES = {0: np.float32, 1: np.float64, 4: np.complex64, 5: np.complex128}
pytestmark = pytest.mark.devices("sim")


def memory(address, count, kind):
    """The numbers at an address of the card; kind: a cudaDataType or a NumPy dtype."""
    dtype = np.dtype(DTYPES[kind] if isinstance(kind, int) else kind)
    return np.frombuffer((ctypes.c_char * (count * dtype.itemsize)).from_address(address), dtype)


def columns(address, rows, count, leading, kind):
    """A matrix of the card whose columns follow each other, as one that writes through."""
    assert leading >= rows
    return memory(address, leading * count, kind).reshape(count, leading)[:, :rows].T


def output(pointer, kind, value):
    ctypes.cast(pointer, ctypes.POINTER(kind))[0] = value


class Solver:
    """cuSOLVER: `call` counts its arguments as the table of signatures has them."""

    def __init__(self, signatures):
        self.signatures, self.streams = signatures, []

    def call(self, function, *arguments):
        assert len(arguments) == len(self.signatures[function]), function
        for letter, argument in zip(self.signatures[function], arguments, strict=True):
            toolkit.KINDS[letter].from_param(argument) if letter != "p" else None
        name = function.removeprefix("cusolverDn")
        if name.endswith("_bufferSize"):
            if "gqr" in name:
                return output(arguments[-1], ctypes.c_int, 5)
            output(arguments[-2], ctypes.c_size_t, 64)
            return output(arguments[-1], ctypes.c_size_t, 32)
        if name[0] in "SDCZ" and "gqr" in name:
            return self.orgqr(
                DTYPES["SDCZ".index(name[0]) // 2 * 4 + "SDCZ".index(name[0]) % 2], *arguments
            )
        return getattr(self, name)(*arguments)

    def Create(self, handle):  # noqa: N802  as the library has them
        output(handle, ctypes.c_void_p, 1)

    CreateParams = Create

    def SetStream(self, handle, stream):  # noqa: N802
        self.streams.append(stream)

    def Xgetrf(self, h, p, m, n, kind, a, lda, pivots, computed, *work):  # noqa: N802
        assert kind == computed and work[1] == 64 and work[3] == 32
        x, order, info = columns(a, m, n, lda, kind), memory(pivots, n, np.int64), work[-1]
        memory(info, 1, np.int32)[:] = 0
        for k in range(n):
            order[k] = np.abs(x[k:, k]).argmax() + k + 1
            x[[k, order[k] - 1]] = x[[order[k] - 1, k]]
            if x[k, k] == 0:
                memory(info, 1, np.int32)[:] = k + 1
                continue
            x[k + 1 :, k] /= x[k, k]
            x[k + 1 :, k + 1 :] -= np.outer(x[k + 1 :, k], x[k, k + 1 :])

    def Xgetrs(self, h, p, trans, n, count, kind, a, lda, pivots, kind_b, b, ldb, info):  # noqa: N802
        lu, x = columns(a, n, n, lda, kind), columns(b, n, count, ldb, kind_b)
        whole = (np.tril(lu, -1) + np.eye(n)) @ np.triu(lu)
        for k, other in reversed(list(enumerate(memory(pivots, n, np.int64) - 1))):
            whole[[k, other]] = whole[[other, k]]
        assert trans in (0, 1)
        x[...] = np.linalg.solve(whole.T if trans else whole, x)
        memory(info, 1, np.int32)[:] = 0

    def Xpotrf(self, h, p, half, n, kind, a, lda, computed, *work):  # noqa: N802
        x = columns(a, n, n, lda, kind)
        try:
            factor = np.linalg.cholesky(x, upper=bool(half))
        except np.linalg.LinAlgError:
            memory(work[-1], 1, np.int32)[:] = 1
            return
        x[...] = np.triu(factor) + np.tril(x, -1) if half else np.tril(factor) + np.triu(x, 1)

    def Xgeqrf(self, h, p, m, n, kind, a, lda, kind_t, tau, computed, *work):  # noqa: N802
        x = columns(a, m, n, lda, kind)
        reflectors, taus = np.linalg.qr(x.copy(), "raw")
        x[...] = reflectors.T
        memory(tau, min(m, n), kind_t)[:] = taus

    def orgqr(self, dtype, h, m, n, k, a, lda, tau, work, length, info):
        assert length == 5
        x, taus = columns(a, m, n, lda, dtype), memory(tau, k, dtype)
        q = np.eye(m, dtype=dtype)
        for i in reversed(range(k)):
            v = np.concatenate([np.zeros(i), [1], x[i + 1 :, i]])
            q -= taus[i] * np.outer(v, v.conj() @ q)
        x[...] = q[:, :n]

    def Xgesvd(  # noqa: N802
        self, h, p, jobu, jobv, m, n, kind, a, lda, kind_s, s, kind_u, u, ldu, kind_v, v, ldv, *work
    ):
        assert jobu == jobv and m >= n and work[0] == kind == kind_u == kind_v
        result = np.linalg.svd(columns(a, m, n, lda, kind), full_matrices=jobu == ord("A"))
        memory(s, n, kind_s)[:] = result.S
        if jobu != ord("N"):
            columns(u, m, result.U.shape[1], ldu, kind)[...] = result.U
            columns(v, n, n, ldv, kind)[...] = result.Vh

    def Xsyevd(  # noqa: N802
        self, h, p, vectors, half, n, kind, a, lda, kind_w, w, computed, *work
    ):
        x = columns(a, n, n, lda, kind)
        result = np.linalg.eigh(x, "U" if half else "L")
        memory(w, n, kind_w)[:] = result.eigenvalues
        x[...] = result.eigenvectors if vectors else np.nan


@pytest.fixture
def solver(device, monkeypatch):
    made = []

    def load(name, signatures):
        assert name == "cuSOLVER"
        made.append(Solver(signatures))
        return made[-1]

    monkeypatch.setattr(toolkit, "load", load)
    monkeypatch.setattr(toolkit, "on_device", lambda index: contextlib.nullcontext())
    monkeypatch.setattr("pyvecgpu.linalg.cusolver._thread", type("Thread", (), {})())
    return Cusolver(vg.Device(device).backend)


def matrices(rng, shape, dtype):
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def adjoint(x):
    return x.swapaxes(-1, -2).conj()


def close(result, expected):
    values = helpers.host(result)
    assert values.shape == expected.shape and values.dtype == expected.dtype
    error = np.abs(values - expected).max(initial=0)
    assert error <= 2e3 * np.finfo(values.dtype).eps * np.abs(expected).max(initial=1)


OF_NUMBERS = pytest.mark.parametrize("dtype", DTYPES.values())
BATCHES = pytest.mark.parametrize("batch", [(), (3,), (2, 2), (0,)], ids=str)


@OF_NUMBERS
@BATCHES
def test_systems(device, solver, rng, batch, dtype):
    x, b = matrices(rng, (*batch, 5, 5), dtype), matrices(rng, (*batch, 5, 3), dtype)
    array = put(device, x)
    close(solver.solve(array, put(device, b)), np.linalg.solve(x, b))
    close(solver.inverse(array), np.linalg.inv(x))
    close(solver.determinant(array, 0), np.asarray(np.linalg.det(x)))
    sign, logarithm = np.linalg.slogdet(x)
    close(solver.determinant(array, 1), np.asarray(sign))
    close(solver.determinant(array, 2), np.asarray(logarithm))
    p = (x @ adjoint(x) + np.eye(5)).astype(dtype)
    for upper in (False, True):
        half = np.triu(p) if upper else np.tril(p)
        close(solver.cholesky(put(device, half), upper), np.linalg.cholesky(p, upper=upper))
    assert helpers.host(array).tobytes() == x.tobytes()


@OF_NUMBERS
@BATCHES
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (1, 4)], ids=str)
def test_decompositions(device, solver, rng, shape, batch, dtype):
    x = matrices(rng, (*batch, *shape), dtype)
    array = put(device, x)
    for mode in ("reduced", "complete"):
        expected = np.linalg.qr(x, mode)
        for result, reference in zip(solver.qr(array, mode), expected, strict=True):
            close(result, reference)
    close(solver.qr(array, "r"), np.linalg.qr(x, "r"))
    for full in (True, False):
        u, s, vh = (helpers.host(one) for one in solver.svd(array, full))
        expected = np.linalg.svd(x, full_matrices=full)
        assert (u.shape, vh.shape) == (expected.U.shape, expected.Vh.shape)
        close(s, expected.S)
        k = s.shape[-1]
        close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x)
    close(solver.svdvals(array), np.linalg.svd(x, compute_uv=False))
    assert helpers.host(array).tobytes() == x.tobytes()


@OF_NUMBERS
@BATCHES
def test_eigenvalues(device, solver, rng, batch, dtype):
    x = matrices(rng, (*batch, 4, 4), dtype)
    whole = x + adjoint(x)
    for lower, half in ((True, np.tril), (False, np.triu)):
        array = put(device, half(whole))
        values, vectors = (helpers.host(one) for one in solver.eigh(array, lower))
        close(values, np.linalg.eigvalsh(whole))
        close((vectors * values[..., None, :]) @ adjoint(vectors), whole)
        close(solver.eigvalsh(array, lower), values)


def test_errors_and_streams(device, solver, simulator):
    zeros = put(device, np.zeros((2, 3, 3), np.float32))
    for call in (lambda: solver.inverse(zeros), lambda: solver.cholesky(zeros, False)):
        with pytest.raises(np.linalg.LinAlgError):
            call()
    assert solver.determinant(zeros, 0).tolist() == [0, 0]
    assert solver.determinant(zeros, 1).tolist() == [0, 0]
    stream = simulator.pvg_stream_create(0)
    simulator.pvg_stream_set_current(stream, 0)
    solver.eigvalsh(zeros, True)
    simulator.pvg_stream_set_current(None, 0)
    assert solver.library.streams[-1] == simulator.pvg_stream_handle(stream)
    assert simulator.pvg_stream_release(stream) == 0
    assert solver.library.streams[0] != solver.library.streams[-1]


# Transforms ---------------------------------------------------------------------------------------


class Transforms:
    """cuFFT: plans are numbers, transforms NumPy's, undivided."""

    def __init__(self, signatures):
        self.signatures, self.plans, self.destroyed = signatures, [], []

    def call(self, function, *arguments):
        assert len(arguments) == len(self.signatures[function]), function
        for letter, argument in zip(self.signatures[function], arguments, strict=True):
            toolkit.KINDS[letter].from_param(argument) if letter != "p" else None
        return getattr(self, function.removeprefix("cufft"))(*arguments)

    def Create(self, plan):  # noqa: N802  as the library has them
        self.plans.append({})
        output(plan, ctypes.c_int, len(self.plans) - 1)

    def Destroy(self, plan):  # noqa: N802
        self.destroyed.append(plan)

    def SetAutoAllocation(self, plan, automatic):  # noqa: N802
        assert automatic == 0

    def SetStream(self, plan, stream):  # noqa: N802
        self.plans[plan]["stream"] = stream

    def SetWorkArea(self, plan, area):  # noqa: N802
        assert area
        self.plans[plan]["area"] = area

    def XtMakePlanMany(  # noqa: N802
        self,
        plan,
        rank,
        n,
        inside,
        step,
        given,
        kind,
        outside,
        out_step,
        gives,
        to,
        batch,
        size,
        by,
    ):
        assert (rank, inside, outside, step, out_step) == (1, None, None, 1, 1) and by in (4, 5)
        length = ctypes.cast(n, ctypes.POINTER(ctypes.c_longlong))[0]
        self.plans[plan.value] |= {"n": length, "rows": (given, gives), "batch": batch}
        self.plans[plan.value]["kinds"] = kind, to
        output(size, ctypes.c_size_t, 128)

    def XtExec(self, plan, source, target, direction):  # noqa: N802
        made = self.plans[plan]
        kinds, n, batch = made["kinds"], made["n"], made["batch"]
        assert made["stream"] and made["area"]
        given, gives = (
            memory(place, batch * row, kind).reshape(batch, row)
            for place, row, kind in zip((source, target), made["rows"], kinds, strict=True)
        )
        if kinds[0] < 4:
            gives[...] = np.fft.rfft(given, n)
        elif kinds[1] < 4:
            gives[...] = np.fft.irfft(given, n, norm="forward")
        else:
            function, norm = ((np.fft.fft, "backward"), (np.fft.ifft, "forward"))[direction == 1]
            gives[...] = function(given, n, norm=norm)


@pytest.fixture
def transforms(device, monkeypatch):
    from pyvecgpu.fft import cufft

    monkeypatch.setattr(toolkit, "load", lambda name, signatures: Transforms(signatures))
    monkeypatch.setattr(toolkit, "on_device", lambda index: contextlib.nullcontext())
    monkeypatch.setattr(cufft, "_thread", type("Thread", (), {})())
    return cufft.Cufft(vg.Device(device).backend)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_of_one_axis(device, transforms, rng, name, norm):
    for dtype in (np.float32, np.float64, np.complex64, np.complex128):
        if np.dtype(dtype).kind == "c" and name in ("rfft", "ihfft"):
            continue
        x = rng.standard_normal((3, 6, 5)) * (1 + 1j if np.dtype(dtype).kind == "c" else 1)
        x = x.astype(dtype)
        for axis, length in ((2, 5), (1, 8), (0, 1), (1, 3)):
            expected = getattr(np.fft, name)(x, length, axis, norm)
            result = transforms.transform(name, put(device, x), (length,), (axis,), norm)
            close(result, expected)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_transforms_of_several_axes(device, transforms, rng, name, norm):
    x = rng.standard_normal((3, 4, 5))
    for axes, lengths in (((0, 1, 2), (3, 4, 5)), ((2, 0), (8, 2)), ((1,), (6,))):
        expected = getattr(np.fft, name)(x, lengths, axes, norm)
        result = transforms.transform(name, put(device, x), lengths, axes, norm)
        close(result, expected)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "irfftn"])
def test_gradients_of_transforms(device, transforms, rng, name, monkeypatch):
    def computed(name, array, lengths, axes, norm):
        return transforms.transform(name, array, lengths, axes, norm)

    monkeypatch.setattr("pyvecgpu.fft.transforms._computed", computed)
    x = rng.standard_normal((2, 5)) * (1 if name in ("rfft", "ihfft", "rfftn") else 1 + 0.5j)
    check(getattr(vg.fft, name), x, device=device)
    check_twice(lambda x: vg.abs(getattr(vg.fft, name)(x, norm="ortho")) ** 4, x, device=device)
    assert transforms.library.plans


def test_plans_are_kept_and_given_back(device, transforms, rng):
    array = put(device, rng.standard_normal((2, 40)).astype(np.float32))
    library = transforms.library
    for _ in range(3):
        transforms.transform("rfft", array, (40,), (1,), "backward")
    assert len(library.plans) == 1 and not library.destroyed
    for length in range(1, 17):
        transforms.transform("rfft", array, (length,), (1,), "backward")
    assert library.destroyed == [0] and len(library.plans) == 17
