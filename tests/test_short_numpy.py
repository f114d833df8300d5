"""Short ways of the CPU device: NumPy's results are what the long ways give, to the bit."""

import numpy as np
import pytest
from helpers import host, put
from short_texts import TYPED

import pyvecgpu as vg
from pyvecgpu.dispatch import observe
from pyvecgpu.fft import short_fft
from pyvecgpu.functions import (
    short_counts,
    short_joining,
    short_names,
    short_numpy,
    short_polynomials,
    short_products,
    short_sets,
    short_ufuncs,
)
from pyvecgpu.linalg import short_linalg

OTHERS = short_fft, short_joining, short_names, short_polynomials, short_products, short_sets

pytestmark = pytest.mark.devices("cpu")

DTYPES = ("float32", "float64", "float16", "int64", "int32", "uint8", "uint64", "bool")


def operands(device, dtype):
    """Arrays by the names in the texts: rows and matrices, indices, masks; some are views."""
    rng = np.random.default_rng(5)
    values = rng.integers(-8, 9, (3, 24))
    if np.dtype(dtype).kind == "f":
        values = values / 4
        values[0, :2], values[1, :3] = (0.0, -0.0), (-0.0, np.nan, np.inf)
    with np.errstate(invalid="ignore"):
        a, b, c = values.astype(dtype)
    found = {"a": a, "b": b, "v": c[::2], "e": a[:0], "z": a[3], "A": a.reshape(4, 6)}
    found |= {"c": c, "B": b.reshape(4, 6), "T": c.reshape(6, 4).T, "C": a.reshape(2, 3, 4)}
    found["E"] = np.eye(4).astype(dtype)
    found |= {"mask": rng.random(24) < 0.5, "i": rng.permutation(24), "j": rng.integers(-4, 4, 7)}
    found |= {"J": rng.integers(-6, 6, (4, 2)), "u": np.arange(3, dtype="uint64")}
    arrays = {name: put(device, np.array(value)) for name, value in found.items()}
    arrays["v"], arrays["T"] = put(device, c)[::2], put(device, c.reshape(6, 4)).T
    return arrays | {"m": vg, "np": np}


def run(device, dtype, text):
    """What a text does, while it may and while it must not go the short way: results, operands."""
    outcomes = []
    for watched in (False, True):
        names = operands(device, dtype)
        try:
            if watched:
                with observe(lambda call: None):
                    result = eval(text, names)
            else:
                result = eval(text, names)
        except Exception as error:
            result = type(error), str(error)
        names.pop("__builtins__", None)
        arrays = [one for one in names.values() if isinstance(one, vg.Array)]
        outcomes.append((result, arrays))
    return outcomes


def assert_alike(found, expected, text):
    if isinstance(expected, (tuple, list)):
        assert type(found) is type(expected), text
        assert len(found) == len(expected), text
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other, text)
    elif isinstance(expected, vg.Array):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), text
        assert found.flags.writeable == expected.flags.writeable, text
        if expected.size:
            both = zip(found.strides, expected.strides, expected.shape, strict=True)
            assert all(one == other or n == 1 for one, other, n in both), text
        assert _bits(host(found)) == _bits(host(expected)), text
    else:
        assert found == expected, text


def _bits(values):
    """Return the bytes of an ndarray, all NaN alike."""
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), values.dtype.type(np.nan), values)
    return values.tobytes()


def texts(several):
    return tuple([one.strip() for one in several.split(";")])


READS = texts("""
A.T; T.T; z.T; C.T; A.reshape(24); A.reshape((2, -1)); T.reshape(-1); T.reshape((4, 6)); A.ravel();
a.reshape(-2); a.reshape((5, 5)); a.reshape((2, -1, -1)); a.reshape((1,) * 33); e.reshape(-1);
e.reshape((0, -1)); z.reshape(()); z.reshape((1, 1)); a.reshape(True); m.ravel(T);
m.squeeze(A[None]);
m.squeeze(a[:1]); m.squeeze(z); m.reshape(A, [3, 8]); m.reshape(A, (3.0, 8));
a[i]; a[mask]; A[j]; T[j % 4]; A[:, j % 6]; A[[0, 2]]; A[:, [0, 2]]; a[30:]; A[[0, 1], [2, 3]];
A[None]; A[None, 1, ..., None]; a[[24]]; a[u]; a[[2**64 - 1]]; A[mask]; C[:, j % 3];
C[j % 2, :, j % 4]; a[...]; a[[]]; z[None]; z[mask]; m.take(a, i); m.take(A, j);
m.take(A, j, axis=1); m.take(T, j, axis=-1); m.take(a, [1, -1]); m.take(a, 3); m.take(a, u);
m.take(A, j, axis=2); m.take(a, j + 40); m.take(z, j * 0); m.take(a, mask); m.take(A, J);
m.take(e, j); m.take_along_axis(a, i); m.take_along_axis(A, J % 4);
m.take_along_axis(T, J % 4, 1); m.take_along_axis(A, J); m.take_along_axis(a, i, axis=None);
m.take_along_axis(A, i); m.take_along_axis(A, J + 9, axis=1); m.take_along_axis(a, i, axis=1);
m.compress(mask, a); m.compress(mask[:3], A, axis=0); m.compress(mask, A, axis=1);
m.compress(mask[:4], T, axis=1); m.compress(mask, A); m.compress(A > 1, a); m.compress(i, a);
m.compress(mask, a[:9]); m.extract(mask, A); m.extract(A > 0, T); m.extract(i, a);
m.extract(A > 0, a[:5]); m.delete(a, 3); m.delete(a, -1); m.delete(A, 1, axis=1);
m.delete(A, 5); m.delete(T, 0, axis=0); m.delete(a, 24); m.delete(A, 0, axis=2);
m.delete(a, True); m.insert(a, 3, 1); m.insert(A, 1, b[:4], axis=1); m.insert(a, -1, b);
m.insert(A, 2, 1, axis=0); m.insert(a, 25, 1); m.insert(a, 1, 0.5); m.insert(T, 1, v);
m.append(a, b); m.append(A, T); m.append(A, B, axis=1); m.append(A, a, axis=0); m.append(a, i);
m.pad(a, 2); m.pad(A, 1); m.pad(T, 0); m.pad(a, 2, 'edge'); m.pad(a, 1, constant_values=-0.0);
m.pad(A, 1, constant_values=3); m.pad(z, 1); m.pad(a, -1); m.pad(a, 1, constant_values=300);
m.tril(A); m.triu(T, 1); m.tril(C, -1); m.triu(a); m.tril(A, -2**70); m.concatenate([a, b]);
m.concatenate([A, T], axis=1); m.stack([a, b], axis=1); m.hstack([A, A]); m.vstack([a, b]);
m.column_stack([a, B.ravel()]); m.tile(A, 2); m.repeat(a, 3); m.roll(T, 3); m.nonzero(a);
m.nonzero(A); m.nonzero(T); m.nonzero(z); m.nonzero(e); m.flatnonzero(A); m.flatnonzero(T);
m.argwhere(a); m.argwhere(A); m.argwhere(e);
m.sort(a); m.sort(A, 0); m.sort(T); m.sort(z); m.sort(e); m.sort(a, axis=None);
m.sort(a, descending=True); m.argsort(a); m.argsort(T, axis=0); m.argsort(A, 2); m.argsort(z);
m.searchsorted(m.sort(b), a); m.searchsorted(m.sort(a), A, "right"); m.searchsorted(A, a);
m.searchsorted(a, i); m.searchsorted(m.sort(b), v, side="middle");
m.unique_values(a); m.unique_values(T);
m.trace(A, True); m.diff(a, True); m.compress(mask[:3] | True, C[:, :0], axis=2);
m.compress(mask[:5] | True, C[:, :0], axis=2); m.tile(e, -1); m.tile(e, 2);
m.insert(a[:2], 0, A[:1, :1]); m.lexsort([A]); m.lexsort(A); m.lexsort([A, B], axis=1);
m.unravel_index(i[:0], (-1, 3)); m.unravel_index(i, (4, 6)); m.fft.fftfreq(8, 0.5, "float32");
m.fft.irfft(A[:, :0], 3); m.fft.hfft(A[:0], 3, 0); m.fft.fft(A[:, :0], 3)
""")
COMPUTED = texts("""
m.inner(a, b); m.inner(A, B); m.inner(A, a[:6]); m.inner(A, a); m.inner(C, C); m.inner(z, a);
m.tensordot(A, B, ([1], [1])); m.tensordot(A, T, 2); m.tensordot(a, b, 0); m.tensordot(A, B, 1);
m.tensordot(A, B, ([0, 1], [0, 1])); m.tensordot(A, B, ([-1], [1])); m.tensordot(A, B, -1);
m.outer(a, b); m.outer(A, v); m.outer(a, i); m.kron(a[:3], b); m.kron(A, B); m.kron(A, a);
m.trace(A); m.trace(C, 1, 0, 2); m.trace(a); m.trace(A, 9); m.cross(a[:3], b[:3]); m.cross(a, b);
m.cross(A.reshape(-1, 3), b[:3]); m.einsum("ij->i", A); m.einsum("ij->j", T); m.einsum("ij->", A);
m.einsum("ii->i", A[:4, :4]); m.einsum("ijk->ki", C); m.einsum("ijk->ik", C); m.einsum("i", A);
A @ T.T; A @ A; a @ b; C @ T[0, :4]; m.matmul(A, T); m.dot(a, b); m.vecdot(a, b); m.vecdot(A, B);
m.matmul(A, A.T); m.dot(A, B.T); m.dot(A, C); m.vecdot(a, v); m.product(a, b);
m.cumsum(a); m.cumsum(A, 0); m.cumsum(T, 1); m.cumsum(A, axis=-1); m.cumprod(a); m.cumprod(C, 1);
m.cumsum(-a * 0); m.cumprod(A, 2); m.cumsum(z); m.cumsum(e); m.cumprod(a * 100); m.cumprod(T);
m.cumprod(a / 64); m.cumsum(a * 4096); m.cumulative_sum(a, include_initial=True);
m.diff(a); m.diff(A); m.diff(A, axis=0); m.diff(C, 1, 1); m.diff(a, 2); m.diff(z);
m.diff(a, axis=1); m.diff(e);
m.ediff1d(A); m.ediff1d(z); m.ediff1d(a, 0); m.gradient(b); m.gradient(a); m.gradient(a[:1]);
m.gradient(a[:2]); m.gradient(a, 2.0); m.gradient(A); m.trapezoid(a); m.trapezoid(A);
m.trapezoid(z); m.trapezoid(a, dx=2.0); m.convolve(a, b[:5]); m.convolve(b[:4], a, "same");
m.convolve(a, b[:2], "same"); m.convolve(a, b[:6], "valid"); m.convolve(a, b, "other");
m.convolve(a, e); m.convolve(A, a); m.vander(a, 5); m.vander(a); m.vander(a[:9], 3, True);
m.vander(a, 0); m.vander(a, 1);
m.average(a); m.average(A, 1); m.average(A, axis=0, weights=T.T.reshape(4, 6)); m.average(e);
m.average(a, weights=b, returned=True); m.average(A, weights=a); m.average(A, 2);
m.average(a, weights=b);
m.cov(A); m.cov(a); m.cov(T); m.cov(A, rowvar=False); m.cov(a[:1]); m.cov(A[:1]); m.cov(C);
m.corrcoef(A); m.corrcoef(a); m.corrcoef(A, T); m.corrcoef(A[:, :1])
""")
UFUNCS = texts("""
m.fmod(a, b); m.fmod(a, v); m.fmod(a, 3); m.fmod(A, 2.5); m.fmod(7, a); m.fmod(a, 0); m.fmod(z, z);
m.fmod(a, i); m.fmod(a, 300); m.fmod(a, -1); m.fmod(a, 2**70); m.gcd(a, b); m.gcd(A, 6);
m.gcd(a, -4); m.gcd(i, i * 2); m.lcm(a, b); m.lcm(A, 6); m.lcm(a, 200); m.gcd(A, b);
m.modf(a); m.modf(T); m.modf(z); m.frexp(b); m.frexp(z); m.ldexp(a, i); m.ldexp(a, 3);
m.ldexp(a, b); m.sinc(a); m.sinc(A); m.sinc(z); m.sinc(e); m.nextafter(a, b); m.nextafter(a, 1.0);
m.nextafter(T, 0); m.spacing(b); m.spacing(z); m.bitwise_count(a); m.bitwise_count(T);
m.isposinf(b); m.isneginf(-b); m.isposinf(z); m.float_power(a, b); m.float_power(A, 3);
m.float_power(A, 0.5); m.float_power(2, b); m.modf(e); m.frexp(e); m.gcd(e, e); m.fmod(e, e)
""")
COUNTS = texts("""
m.bincount(i); m.bincount(j); m.bincount(a); m.bincount(i, a); m.bincount(i, b, 40);
m.bincount(i, minlength=30); m.bincount(J); m.bincount(i, j); m.bincount(u); m.bincount(e);
m.digitize(a, m.sort(v)); m.digitize(A, m.sort(v), right=True); m.digitize(a, m.sort(v)[::-1]);
m.digitize(a, b); m.digitize(z, m.sort(v)); m.digitize(a, [1, 2]); m.digitize(b, m.sort(v));
m.histogram(a, 5); m.histogram(v, 10); m.histogram(b, 3); m.histogram(e, 3); m.histogram(A);
m.histogram(a, -1); m.histogram(a, bins=4, range=(0, 2)); m.isin(a, b); m.isin(A, v); m.isin(e, a);
m.isin(a, 1); m.isin(a, b, invert=True); m.isin(b, b); m.median(a); m.median(A, axis=0);
m.median(T, 1); m.median(b); m.median(v); m.median(z); m.median(e); m.median(A, axis=2);
m.median(a[2:9]); m.median(a, keepdims=True); m.quantile(a, 0.3); m.quantile(v, 0.25);
m.quantile(A, 0.9, axis=1); m.quantile(b, 0.5); m.quantile(a, 1.5); m.quantile(a, [0.1, 0.2]);
m.percentile(a, 30); m.percentile(v, 75); m.percentile(T, 10, axis=0); m.percentile(a, 101);
m.nanargmax(a); m.nanargmax(b); m.nanargmin(B, axis=1); m.nanargmax(b[1:2]); m.nanargmin(z);
m.nanargmin(A, 0); m.nanargmax(e); m.nancumsum(b); m.nancumsum(B, axis=0); m.nancumprod(b);
m.nancumsum(a * 100); m.nancumprod(T, 1); m.nancumsum(z); m.nancumsum(e); m.copyto(a, b);
m.copyto(A, b[:6]); m.copyto(a, 1); m.copyto(a, 0.5); m.copyto(a, i); m.copyto(a, a[::-1]);
m.copyto(a, 300); m.copyto(A, B, where=A > 1); m.copyto(v, v * 2); m.copyto(a, b[:5]);
m.copyto(m.broadcast_to(z, (3,)), 1); m.putmask(a, mask, b); m.putmask(a, mask, 1);
m.putmask(a, mask, 0.5); m.putmask(a, mask, b[:5]); m.putmask(A, mask, b); m.putmask(a, a > 1, a);
m.putmask(v, v > 0, v * 2); m.putmask(T, T > 0, T * 2); m.putmask(a, mask, 300);
m.unique(a); m.unique(A); m.unique(m.abs(b) + 1); m.unique(b, equal_nan=False); m.unique(e);
m.unique(a, return_counts=True); m.unique(i); m.packbits(mask); m.packbits(a); m.packbits(A, 1);
m.packbits(A > 1, axis=0, bitorder="little"); m.packbits(mask, bitorder="other"); m.unpackbits(a);
m.unpackbits(A, axis=1); m.unpackbits(A, axis=2); m.unpackbits(a, count=9); m.unpackbits(T);
m.vdot(a, b); m.vdot(A, B); m.vdot(a, v); m.matvec(A, a[:6]); m.matvec(A, a); m.matvec(C, a[:4]);
m.matvec(T, B[0]); m.vecmat(a[:4], A); m.vecmat(a, A); m.vecmat(A, B); a.argsort(); A.argsort(0);
a.cumsum(); A.cumsum(1); A.cumprod(dtype="float64"); A.trace(); A.trace(1); v.searchsorted(a);
m.sort(b).searchsorted(a, "right"); m.argsort(a, descending=False); m.argsort(a, kind="stable");
m.sort(a, stable=False); m.cumsum(a, dtype=None, out=None); m.argsort(a, stable=True, other=1);
m.sum(T); m.sum(T, axis=0); m.sum(T, axis=1); m.clip(a, 1, 2); m.clip(A, -1, 2);
m.interp(a, m.arange(4, dtype=a.dtype), a[6:10]); m.interp(b, v, a[:12]);
m.interp(A, b[2:4], a[:2]);
m.interp(z, m.arange(3, dtype=a.dtype), b[:3]); m.interp(a, m.arange(4), a[6:10], left=1);
m.isreal(b); m.isreal(T); m.iscomplex(A); m.isreal(z); m.dstack([a, b]); m.dstack([A, B]);
m.arange(5); m.arange(2, 9, 3, dtype=a.dtype); m.arange(3, 1); m.arange(0, -3, -1);
m.cbrt(c); m.deg2rad(a); m.rad2deg(b); m.deg2rad(T); m.degrees(z); m.radians(a > 1);

m.arange(300, dtype=a.dtype); m.arange(True); m.arange(-0.0, 3); m.arange(2**40, 2**40 + 2);
m.arange(2**24, 2**24 + 3, dtype=a.dtype); m.arange(5, 5); m.arange(0, 5, 0); m.arange(0, 2**62)
""")
LINALG = texts("""
m.linalg.inv(A[:, :4] + E); m.linalg.inv(A); m.linalg.inv(C); m.linalg.inv(E * 0);
m.linalg.det(E * 3); m.linalg.det(C); m.linalg.det(m.stack([E, E * 2])); m.linalg.det(z);
m.linalg.solve(E * 4 + 1, A); m.linalg.solve(E * 4 + 1, a[:4]); m.linalg.solve(E, a);
m.linalg.solve(m.stack([E, E * 2]), A[:, :2]); m.linalg.solve(E * 0, a[:4]);
m.linalg.cholesky(E * 4); m.linalg.cholesky(E * 4 + 1, upper=True); m.linalg.cholesky(-E);
m.linalg.trace(A); m.linalg.trace(C, 1); m.linalg.trace(a)
""")
DECOMPOSED = texts("""
m.linalg.inv(E, None); m.nonzero(a, 5); m.cumsum(a, None, None, None, None); m.roots(a, 1);
m.cumsum(a, None, None, None); m.linalg.inv(C[0, :3, :3]);
m.linalg.slogdet(E * 3); m.linalg.slogdet(m.stack([E, E * 2]));
m.linalg.slogdet(A); m.linalg.tensorinv(E, 1); m.linalg.tensorinv(E, 0); m.linalg.tensorinv(A, 1);
m.linalg.tensorsolve(E + 1, a[:4]); m.linalg.tensorsolve(A, a); m.linalg.qr(A); m.linalg.qr(A, "r");
m.linalg.qr(A, "complete"); m.linalg.qr(a); m.linalg.qr(A, "raw"); m.linalg.svd(A);
m.linalg.svd(A, False); m.linalg.svd(A, compute_uv=False); m.linalg.svd(a); m.linalg.svdvals(A);
m.linalg.svdvals(C); m.linalg.eigh(E + 1); m.linalg.eigh(E + 1, "U"); m.linalg.eigh(E, "x");
m.linalg.eigvalsh(E + 1); m.linalg.eigvalsh(E + 1, UPLO="u"); m.linalg.eigvalsh(A);
m.linalg.eig(E + 1); m.linalg.eig(A); m.linalg.eigvals(E * 2 + 1); m.linalg.eigvals(a);
m.linalg.pinv(A); m.linalg.pinv(C); m.linalg.pinv(E * 0); m.linalg.pinv(A, 0.1);
m.linalg.pinv(A, rtol=0.1); m.linalg.pinv(a); m.linalg.pinv(A[:0]); m.linalg.matrix_rank(A);
m.linalg.matrix_rank(C); m.linalg.matrix_rank(a); m.linalg.matrix_rank(A, 0.5);
m.linalg.matrix_rank(E * 0); m.linalg.cond(E + 1); m.linalg.cond(E + 1, 1); m.linalg.cond(A);
m.linalg.lstsq(A, a[:4]); m.linalg.lstsq(A.T, a[:6]); m.linalg.lstsq(A.T, T.T, 0.1);
m.linalg.lstsq(A, a); m.linalg.matrix_power(E + 1, 5); m.linalg.matrix_power(E + 1, 1);
m.linalg.matrix_power(E + 1, 0); m.linalg.matrix_power(E * 2, -1); m.linalg.matrix_power(A, 2);
m.linalg.norm(a); m.linalg.norm(A); m.linalg.norm(A, axis=1); m.linalg.norm(A, "fro");
m.linalg.norm(b); m.linalg.norm(e); m.linalg.norm(T); m.linalg.vector_norm(a);
m.linalg.vector_norm(C); m.linalg.vector_norm(A, ord=1); m.linalg.vector_norm(A, axis=0);
m.linalg.vector_norm(z, keepdims=True); m.linalg.matrix_norm(A); m.linalg.matrix_norm(C);
m.linalg.matrix_norm(A, ord=2); m.linalg.matrix_norm(a); m.linalg.matrix_norm(A, keepdims=True);
m.linalg.diagonal(A); m.linalg.diagonal(C, 1); m.linalg.diagonal(A, -9); m.linalg.diagonal(a);
m.linalg.outer(a, b); m.linalg.outer(a[:3], v); m.linalg.outer(A, a); m.linalg.outer(a, i);
m.linalg.multi_dot([A, A.T, A]); m.linalg.multi_dot([A.T, A, T.T]); m.linalg.multi_dot([A, B.T]);
m.linalg.multi_dot([A, B, A]); m.linalg.multi_dot((a[:4], A, b[:6])); m.linalg.multi_dot([a]);
m.roots(a); m.roots(a[2:8]); m.roots(e); m.roots(A); m.roots(b); m.roots(a * 0); m.poly(a[:6]);
m.poly(b); m.poly(E + 1); m.poly(A); m.poly(z); m.polyfit(a, v.tolist() * 2, 2);
m.polyfit(m.arange(9.0), a[:9], 2); m.polyfit(c[:9], a[:9], 3); m.polyfit(c, a, 0);
m.polyfit(c[:6], T.T, 2); m.polyfit(c, a, -1); m.polyfit(c, a[:5], 1);
m.polyfit(c, a, 1, cov=True)
""")
TRANSFORMS = texts(
    "; ".join(
        f"m.fft.{name}(a); m.fft.{name}(A); m.fft.{name}(A, 4, 0); m.fft.{name}(T, axis=-2);"
        f"m.fft.{name}(a, 40, norm='ortho'); m.fft.{name}(b, norm='other'); m.fft.{name}(z);"
        f"m.fft.{name}(e); m.fft.{name}(a, 0); m.fft.{name}(a, axis=1); m.fft.{name}(a, 2.0)"
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    )
) + texts(
    "; ".join(
        f"m.fft.{name}(A); m.fft.{name}(C); m.fft.{name}(a); m.fft.{name}(T, axes=(1,));"
        f"m.fft.{name}(C, axes=(0, 2), norm='forward'); m.fft.{name}(C, (2, 2)); m.fft.{name}(z);"
        f"m.fft.{name}(A, axes=()); m.fft.{name}(A, axes=(0, 0)); m.fft.{name}(A, axes=(2,))"
        for name in ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
    )
)
NAMED = texts("""
m.fft.fftshift(a); m.fft.fftshift(T); m.fft.fftshift(A, 1); m.fft.ifftshift(C); m.fft.fftshift(z);
m.fft.ifftshift(a[:5]); m.fft.fftshift(a, 3); m.fft.fftfreq(7); m.fft.fftfreq(8, 0.1);
m.fft.rfftfreq(9, dtype=a.dtype); m.fft.rfftfreq(0); m.fft.fftfreq(True); m.fft.fftfreq(5, d=0);
m.fft.fftfreq(5, device="cpu"); m.tri(3); m.tri(3, 5, 1); m.tri(3, dtype=a.dtype); m.tri(-1);
m.tri(2, k=-1); m.tri(2.0); m.tril_indices(4); m.triu_indices(4, 1, 6); m.tril_indices(3, -1, 5);
m.triu_indices(3, -2); m.tril_indices(0); m.triu_indices(-1); m.tril_indices(3, 2**70);
m.tril_indices_from(A); m.triu_indices_from(T, 1); m.triu_indices_from(a); m.tril_indices_from(C);
m.indices((3, 4)); m.indices((2, 1, 3), a.dtype); m.indices(5); m.indices(()); m.indices((0, 2));
m.indices((2, 3), sparse=True); m.indices((-1, 2)); m.bartlett(5); m.blackman(7, dtype="float64");
m.hamming(9); m.hanning(4, device="cpu"); m.hanning(4); m.kaiser(6, 5); m.kaiser(6, 2.5);
m.kaiser(6, "b");
m.bartlett(1); m.hamming(0); m.hanning(-1); m.blackman(3.0); m.blackman(3, dtype="float16");
m.diagonal(A); m.diagonal(T, -1); m.diagonal(C, 1, 2, 0); m.diagonal(a); m.diagonal(A, 2**40);
m.diagonal(A, 9); m.diagonal(A, 0, 1, 1); m.diagonal(m.broadcast_to(z, (2, 2))); A.diagonal(1);
A.trace(); T.trace(-1); m.swapaxes(A, 0, 1); m.swapaxes(C, -1, 0); m.swapaxes(A, 0, 2);
C.swapaxes(0, 2); m.rollaxis(C, 2); m.rollaxis(C, 0, 3); m.rollaxis(A, 2); m.rollaxis(C, -1, -2);
m.rollaxis(A, 1, 9); m.unstack(A); m.unstack(T, axis=1); m.unstack(a); m.unstack(z);
m.unstack(A, axis=2); m.unstack(e); m.unstack(C, axis=-1); m.atleast_2d(a); m.atleast_2d(z);
m.atleast_2d(C); m.atleast_1d(a); m.atleast_1d(z); m.atleast_3d(a); m.atleast_3d(z);
m.atleast_3d(T); m.atleast_3d(C); m.atleast_1d(T, z); m.atleast_3d(v);
m.atleast_3d(e); m.atleast_2d(v); m.atleast_2d(a, A); m.broadcast_arrays(a); m.broadcast_arrays(T);
m.broadcast_arrays(A, a[:6]); m.broadcast_arrays(z); m.dsplit(C, 2); m.dsplit(C, 3);
m.dsplit(C, [1]); m.dsplit(A, 2); m.dsplit(C, 0); m.imag(a); m.imag(T); m.imag(z); m.imag(e);
m.angle(a); m.angle(b); m.angle(T); m.angle(A, True); m.angle(z); m.unravel_index(i % 20, (4, 5));
m.unravel_index(J % 9, (3, 3)); m.unravel_index(j, (9, 9)); m.unravel_index(u, (4,));
m.unravel_index(i, (2, 2)); m.unravel_index(i, 24); m.unravel_index(a, (4, 6));
m.ravel_multi_index((i % 4, i % 5), (4, 5)); m.ravel_multi_index((j, j), (9, 9));
m.ravel_multi_index((i, i), (5, 5)); m.ravel_multi_index((i, i), (5, 5), "wrap");
m.ravel_multi_index((i % 4,), (4, 5)); m.ravel_multi_index((a, a), (4, 5)); m.block([a, b]);
m.block([[A, B], [B, T]]); m.block([[A], [B]]); m.block([a, 1]); m.block([[a], b]); m.block(A);
m.block([A, a]); m.block([[A, A[:2]]]); m.block([]); m.block([z, z]); m.block([i, a]);
m.choose(i % 2, [a, b]); m.choose(i % 3, [a, b, 1]); m.choose(i, [a, b]); m.choose(j % 2, [1, 2]);
m.choose(mask, [a, b]); m.choose(J % 2, [J, J]); m.choose(i % 2 - 1, [a, b]); m.choose(i, []);
m.choose(u, [a[:3], b[:3]]); m.choose(a, [a, b]); m.choose(i % 2, (a, b));
m.piecewise(a, [mask, ~mask], [1, 0]); m.piecewise(A, [A > 1], [2]); m.piecewise(a, [mask], [1, 2]);
m.piecewise(a, [mask, mask], [1, lambda x: -x]); m.piecewise(a, [mask], [b]);
m.piecewise(a, [mask], [0.5]); m.piecewise(a, [i > 3], [300]); m.piecewise(a, mask, [1]);
m.polyval(a[:4], b); m.polyval(a[:4], A); m.polyval(a[:3], i); m.polyval(A, a); m.polyval(e, a);
m.polyval(a[:2], z); m.polyadd(a, b); m.polyadd(a, b[:5]); m.polysub(a, b); m.polysub(v, a[:12]);
m.polyadd(A, a); m.polyadd(a, i); m.polyder(a); m.polyder(a, 2); m.polyder(a[:1]); m.polyder(e);
m.polyder(A); m.polyint(a); m.polyint(b, 2); m.polyint(a, k=2.0); m.polyint(a, k=3); m.polyint(e);
m.polyint(A); m.i0(a); m.i0(A * 8); m.i0(b); m.i0(T); m.i0(z); m.i0(e); m.frexp(a); m.frexp(b);
m.frexp(a * 3); m.spacing(a); m.spacing(b); m.nextafter(a, b); m.nextafter(a, a); m.ldexp(a, i % 3);
m.nextafter(a, i); m.modf(a); m.modf(b); m.sinc(a); m.isposinf(a); m.isneginf(b); m.isposinf(T);
m.ldexp(b, J[:, 0].sum()); m.ldexp(a, b); m.interp(a, m.arange(-3, 3, dtype=a.dtype), b[3:9]);
m.unique_counts(a); m.unique_counts(A); m.unique_counts(b); m.unique_counts(e); m.unique_inverse(a);
m.unique_inverse(T); m.unique_inverse(b); m.unique_inverse(c); m.unique_all(c); m.unique_all(A);
m.unique_all(b); m.unique_counts(c); m.unique_inverse(T * 0 + 3); m.intersect1d(a, c);
m.intersect1d(c, c + 1); m.intersect1d(A, T); m.intersect1d(a, i); m.intersect1d(a, e);
m.intersect1d(c, c, True); m.intersect1d(a, c, return_indices=True); m.union1d(a, c);
m.union1d(c, c + 1); m.union1d(b, b); m.union1d(A, 3); m.setdiff1d(a, c); m.setdiff1d(c, a + 1);
m.setdiff1d(b, a); m.setdiff1d(a, c, assume_unique=True); m.setxor1d(a, c); m.setxor1d(c, c + 1);
m.setxor1d(b, c); m.setxor1d(A, T); m.lexsort((a, b)); m.lexsort((A, T)); m.lexsort([b, a, b]);
m.lexsort((A, B), 0); m.lexsort(A); m.lexsort((a, e)); m.lexsort((z, z)); m.lexsort(());
m.lexsort((a, i)); m.sort_complex(a); m.sort_complex(b); m.sort_complex(A); m.sort_complex(z);
m.median(a); m.median(A); m.median(b); m.median(c); m.median(T, 1); m.nanmedian(a); m.nanmedian(b);
m.nanmedian(c); m.nanmedian(A); m.nanmedian(e); m.median(e); m.quantile(c, 0.3); m.quantile(a, 0.5);
m.quantile(c / 3, 0.7); m.nanpercentile(c / 3, 12);
m.quantile(c, 0); m.quantile(c, 1.0); m.quantile(b, 0.9); m.quantile(a, 2); m.percentile(c, 33);
m.percentile(a, 50, axis=0); m.percentile(A, 50, axis=1); m.percentile(c, [10, 20]);
m.nanquantile(c, 0.4); m.nanquantile(b, 0.6); m.nanquantile(a, 0.5, axis=0); m.nanpercentile(b, 77);
m.nanpercentile(c, 77, keepdims=True); m.quantile(c, 0.3, method="lower"); m.histogram(c, 7);
m.histogram(a, 5); m.histogram(b, 5); m.histogram(A, 3); m.histogram(a * 0, 4); m.histogram(a, 0);
m.histogram(e, 3); m.histogram_bin_edges(c, 7); m.histogram_bin_edges(a * 0, 7);
m.histogram_bin_edges(b, 4); m.histogram_bin_edges(e, 4); m.histogram_bin_edges(c, "rice");
m.correlate(a, c[:5]); m.correlate(c[:5], a); m.correlate(a, c[:4], "same");
m.correlate(c, a[2:6], "full"); m.correlate(a, e); m.correlate(A, a); m.correlate(a, i);
m.cumulative_sum(a); m.cumulative_sum(A, axis=1); m.cumulative_sum(A); m.cumulative_prod(c);
m.cumulative_prod(T, axis=0); m.cumulative_sum(a, axis=3); m.cumulative_sum(z);
m.cumulative_prod(a, include_initial=True); m.array_equiv(a, a); m.array_equiv(A, A[0]);
m.array_equiv(a, b); m.array_equiv(A, T); m.array_equiv(a, 3); m.stack([T, T]); m.stack([T, A]);
m.concatenate([T, T]); m.concatenate([T, A], axis=1); m.stack([T, T], axis=-1); m.vstack([T, T]);
m.concat([a, i]); m.concat([T, T], 2); m.dstack([a, b]); m.nan_to_num(b); m.nan_to_num(T);
m.unique(a, True); m.diff(T); m.diff(T, axis=0); m.diff(C.T, 1, 1); m.geomspace(1, 1000, 4);
m.geomspace(-2, -3.5, 7, False); m.geomspace(1, 0, 5); m.geomspace(1, -2, 5); m.geomspace(2, 2, 3);
m.geomspace(1, 9, 1); m.geomspace(1, 9, 5, dtype="int32"); m.geomspace(1, 9, 5, dtype="float64");
m.logaddexp2(b, c); m.logaddexp2(A, T); m.stack([a, e]); m.stack([a, i], 1);
m.concatenate([T, T], None); m.tile(a, True)
""")
CHOICES = texts("""
m.argpartition(c, 3); m.argpartition(A, 2); m.argpartition(A, 1, 0); m.argpartition(c, 30);
m.argpartition(c, -1); m.argpartition(z, 0); c.argpartition(7); m.argpartition(c, [1, 2]);
m.partition(c, 3); m.partition(A, 2); m.partition(A, 1, 0); m.partition(c, 30); m.partition(z, 0);
m.partition(c, -1); m.partition(c * 0, 3); m.partition(c, [1, 2]); m.partition(e, 0)
""")
WRITES = texts("""
a.__setitem__(3, 1); a.__setitem__(slice(None, None, 2), 0); A.__setitem__(1, 3);
a.__setitem__(i, 1); a.__setitem__(i, b); a.__setitem__(mask, 1); a.__setitem__(i, a);
A.__setitem__((slice(None), [0, 2]), 1); a.__setitem__(24, 1); a.__setitem__(i, 0.5);
A.__setitem__(j % 4, b[:6]); a.__setitem__(slice(None), b); v.__setitem__(j, 2);
a.__setitem__(slice(None), a[::-1]); i.__setitem__(i, i); i.__setitem__(mask, i);
a.__setitem__(u, 1); a.__setitem__(i, 300); a.__setitem__(i, b[:3]);
m.broadcast_to(z, (3,)).__setitem__(0, 1); a.__setitem__(i, B); m.put(a, i, b); m.put(A, j, 1);
m.put(a, j, b); m.put(a, j, b[:2]); m.put(v, j, 1); m.put(a, [0, -1], 0.5); m.put(a, [24], 1);
m.put(i, i, i); m.put(a, j, b[:1]); m.put(T, j, 1); m.put(a, [], 1); m.put(a, [0, 99], 1);
m.put_along_axis(a, i, b, 0); m.put_along_axis(A, J, 1, axis=1);
m.put_along_axis(A, J, B[:, :2], axis=1); m.put_along_axis(T, J % 4, 1, axis=-1);
m.put_along_axis(a, i, 1, axis=1); m.put_along_axis(A, J, a, axis=1);
m.put_along_axis(A, J + 9, 1, axis=1); m.put_along_axis(A, J[:1], 1, axis=1);
m.put_along_axis(i, i, i, 0); m.put_along_axis(v, j, 1, -1);
m.fill_diagonal(A, 1); m.fill_diagonal(A[:, :2], 1); m.fill_diagonal(T, 2);
m.fill_diagonal(A.reshape(8, 3), 1, True); m.fill_diagonal(A.reshape(8, 3), 1);
m.fill_diagonal(a, 1);
m.fill_diagonal(A, 0.5); m.fill_diagonal(A, b[:4]); m.fill_diagonal(A, 300); m.place(a, mask, [1]);
m.place(a, mask, [1, 2, 3]); m.place(A, A > 0, [2]); m.place(a, mask, [0.5]); m.place(a, mask, []);
m.place(a, mask, b); m.place(a, mask[:3], [1]); m.place(T, T > 0, [1, 2]); m.place(a, i, [1]);
m.putmask(a, mask, b); m.putmask(A, A > 0, B); m.place(mask[1:], mask[:-1], [False]);
m.putmask(mask[1:], mask[:-1], False); m.putmask(mask[:-1], mask[1:], True)
""")

EVERY = (*READS, *WRITES, *COMPUTED, *UFUNCS, *COUNTS, *LINALG, *DECOMPOSED, *TRANSFORMS)
EVERY = (*EVERY, *NAMED, *texts(TYPED))

HELPERS = {
    "distinct",
    "along_one",
    "along_several",
    "float_of",
    "numbers_of",
    "raised_cosine",
    "rounded",
}
# Units in the last place that ways may differ by.
NEAR = {"m.cbrt(c)": 1, "m.logaddexp2(b, c)": 2, "m.logaddexp2(A, T)": 2}


@pytest.mark.parametrize("dtype", DTYPES)
def test_calls_are_those_of_the_long_way(device, dtype):
    for text in EVERY:
        (found, arrays), (expected, others) = run(device, dtype, text)
        if text in NEAR and isinstance(expected, vg.Array):
            assert found.dtype == expected.dtype
            one, other = host(found).astype("float64"), host(expected).astype("float64")
            eps = np.finfo(host(expected).dtype).eps
            np.testing.assert_allclose(one, other, rtol=NEAR[text] * eps, atol=eps)
            continue
        assert_alike(found, expected, text)
        for one, other in zip(arrays, others, strict=True):
            assert_alike(one, other, text)


def test_calls_go_the_short_way(device):
    """Else the test above compares the long way with itself."""
    modules = short_numpy, short_ufuncs, short_counts, short_linalg, *OTHERS
    names = {module.__name__: module for module in modules}
    ways = [item for module in modules for item in vars(module).items()]
    for name, way in ways:
        if name.startswith(("_", "of_")) or getattr(way, "__module__", "") not in names:
            continue
        if name in HELPERS:
            continue
        of = [f"{module}.{name}(" for module in ("m", "linalg", "fft")]
        calls = [text for text in (*EVERY, *CHOICES) if any(one in text for one in of)]
        gave = [_result(name, way, device, dtype, text) for text in calls for dtype in DTYPES]
        assert any(one is not None for one in gave), name


def _result(name, way, device, dtype, text):
    """What a way gives of the raw operands of a text."""
    arrays = operands(device, dtype)
    raws = {name: x.raw if isinstance(x, vg.Array) else x for name, x in arrays.items()}
    there = {name: staticmethod(way), "sort": np.sort, "stack": np.stack, "arange": np.arange}
    raws["m"] = type(
        "Module", (), there | {one: type("Module", (), dict(there)) for one in ("linalg", "fft")}
    )
    try:
        return eval(text, raws)
    except (TypeError, ValueError, IndexError, ArithmeticError, AttributeError):
        return None


def test_integers_beside_floats_are_the_default_float(device):
    """Both ways go through the same function of the backend."""
    operations = ("x ** 0.5", "0.5 ** x", "x * 0.1", "0.1 - x", "x / 3", "2 / x", "x < 0.5")
    operations += ("m.maximum(x, 0.5)", "m.minimum(0.5, x)", "m.arctan2(0.5, x)", "x * 1e300")
    operations += ("x % 0.7", "m.logaddexp(x, 0.5)", "m.copysign(x, -0.5)", "x / 2**30")
    for default in ("float32", "float64"):
        vg.set_default_dtype(default)
        try:
            for dtype in ("int64", "int16", "uint64", "bool"):
                x = operands(device, dtype)["T"]
                for text in operations:
                    found = eval(text, {"x": x, "m": vg})
                    expected = eval(text, {"x": x.astype(default), "m": vg})
                    assert found.dtype == expected.dtype, text
                    np.testing.assert_array_equal(host(found), host(expected), text)
        finally:
            vg.set_default_dtype("float32")


WRITTEN = ("m.fill_diagonal(A, 1)", "m.place(a, mask, [1])", "m.putmask(a, mask, b)")


def test_writes_are_seen_by_versions(device):
    for text in (*WRITES[:7], "m.put(a, i, b)", "m.put_along_axis(a, i, b, 0)", *WRITTEN):
        names = operands(device, "float32")
        array = names["A" if "A" in text else "a"]
        before = array._version
        eval(text, names)
        assert array._version != before, text


def test_partitions_have_their_element_in_its_place(device):
    """Which of the other elements comes first NumPy leaves open, and errors are the long way's."""
    for dtype in DTYPES:
        for text in CHOICES:
            (found, arrays), (expected, _) = run(device, dtype, text)
            if isinstance(expected, tuple):
                assert found == expected, text
                continue
            assert found.dtype == expected.dtype and found.shape == expected.shape
            assert found is not arrays[0] and found.flags.writeable
            x = host(arrays[[*operands(device, dtype)].index("A" if "(A" in text else "c")])
            axis = 0 if text.endswith(", 0)") else -1
            order = host(found)
            if "arg" in text:
                order = np.take_along_axis(x, order, axis)
            if "* 0" in text:
                x = x * 0
            kth = {"(c, 3)": 3, "(A, 2)": 2, "(A, 1, 0)": 1, "(c, -1)": -1, "n(7)": 7}
            for words, place in kth.items():
                if text.endswith(words):
                    whole = np.sort(x, axis)
                    np.testing.assert_array_equal(
                        order.take(place, axis), whole.take(place, axis), text
                    )
                    np.testing.assert_array_equal(np.sort(order, axis), whole, text)
