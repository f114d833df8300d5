"""Calls as users type them, for test_short_numpy.py: their operands' names are those there."""

TYPED = """
m.clip(a, 0, 1); m.clip(b, 0, 1); m.clip(b, 0.0, 2); m.clip(T, 0, None); m.clip(b, -1, 0);
m.clip(b, None, 0); m.clip(b, -0.0, 1); m.clip(b, 0, 0); m.clip(z, 0, 1); m.clip(b[:1], 0, -1);
m.clip(v, 0, 1); m.clip(a, 0, 300); m.clip(a, -1, 2**70); m.clip(a, 0.5, 1); m.clip(e, 0, 1);
m.clip(a, True, 2); m.clip(a, 0, m.nan); m.clip(a, min=0); a.clip(0, 1); m.clip(B, 0, 2.0);
m.round(a, 2); m.round(b, 1); m.round(T / 3, 3); m.round(b / 7, 12); m.round(a, -1); m.round(z, 1);
m.round(e, 2); m.round(a * 2.0**120, 30); m.round(a, 400); m.round(a, 39); m.round(v, True);
m.round(b * 1e300, 9); round(b, 2); b.round(1); m.round(a, 1.0); m.round(C, 1); a ** 0.5; b ** 0.5;
T ** 0.5; a ** 1.7; z ** 0.5; a * 0.5; 0.5 * a; T * 0.25; 1.5 / (T * T + 1); a / 3; 2 / (b + 20);
a - 0.5; a * m.nan; a * 1e300; a / 2**30; a < 0.5; a == 2.0; m.maximum(a, 0.5); m.minimum(0.5, b);
m.add(a, 0.5); m.multiply(a, 0.5, out=c); a // 0.3; a % 0.7; a & 0.5; m.logaddexp(a, 0.5);
m.array([1.0, 2.0, 3.0]); m.array([1, 2]); m.array([True, False]); m.array([[1.5], [2]]);
m.array([1, 2.5]); m.array([2**63]); m.array([2**63, 0.5]); m.array([]); m.array([2**62, -1]);
m.array([2**63, -1]); m.array([2**70]); m.array([1, [2]]); m.array([1j]);
m.array([1, 2], dtype=a.dtype); m.array([0.1, 300.0], dtype=a.dtype); m.array([1, 2], ndmin=2);
m.asarray((1.0, 2.0)); m.asarray([[0.1, 2], [3, 4]], dtype="float64"); m.asarray([a, b]);
m.asarray([1.0, a]); m.asarray([True, 2]); m.asarray([True, 0.5]); m.array([None]); m.array(["a"]);
m.asarray([1.0], copy=False); m.asarray([0.1, 2], device="cpu"); m.asarray([0.1], dtype="bfloat16");
m.unravel_index(7, (3, 4)); m.unravel_index(12, (3, 4)); m.unravel_index([1, 2], (3, 4));
m.unravel_index(-1, (3, 4)); m.unravel_index(7, 12); m.unravel_index(7.0, (3, 4));
m.unravel_index(True, (3, 4)); m.unravel_index([], (3, 4));
m.unravel_index(7, (3, 4), device="cpu"); m.ravel_multi_index((1, 2), (3, 4));
m.ravel_multi_index((3, 2), (3, 4)); m.ravel_multi_index((1, i), (3, 4));
m.ravel_multi_index((1,), (3, 4)); m.ravel_multi_index(([1, 2], [2, 3]), (3, 4));
m.ravel_multi_index((1, 2.0), (3, 4)); m.ravel_multi_index((-1, 2), (3, 4));
m.ravel_multi_index((1, True), (3, 4)); m.ravel_multi_index((1, 9), (3, 4), "wrap");
m.ravel_multi_index((1, 2), (3, 4), device="cpu"); m.unwrap(a); m.unwrap(c); m.unwrap(b);
m.unwrap(A * 2); m.unwrap(T * 3); m.unwrap(a, axis=0); m.unwrap(z); m.unwrap(e); m.unwrap(a[:1]);
m.unwrap(a, period=4); m.unwrap(A, 9); m.unwrap(C * 2); m.average(a, weights=c * c);
m.average(A, 0, B); m.average(A, 1, weights=B * B); m.average(b); m.gradient(c); m.gradient(v);
m.trapezoid(c); m.trapezoid(T); m.cov(B); m.corrcoef(c.reshape(4, 6)); m.allclose(a, a);
m.allclose(a, b); m.allclose(b, b, equal_nan=True); m.allclose(A, a[:6]); m.allclose(a, b[:5]);
m.allclose(e, e); m.allclose(a, a + 1e-9); m.allclose(a, i); m.allclose(a, 1);
m.allclose(c, c * 1.00001); m.allclose(c, c + 1, 0.0, 1.0); m.allclose(a, a, -1.0, -1.0);
m.isclose(a, b); m.isclose(b, b, equal_nan=True); m.isclose(T, T.T.T + 0.0); m.isclose(z, z);
m.interp(c, [-9.0, 0.0, 9.0], [1.0, 2.0, 3.0]); m.interp(c, m.sort(c), a);
m.interp(c, m.sort(c), c); m.interp(c, m.sort(a)[:20], c[:20]); m.interp(A, a[:0], a[:0]);
m.interp(c, c[:1], a[2:3]); m.interp(c, c[::-1], c); m.interp(c, m.arange(24, dtype=a.dtype), b);
m.sort(b); m.sort(-b); m.sort(a * 0); m.sort(-a * 0); m.sort(B, 0); m.sort(m.abs(b)); m.unique(c);
m.unique(c * 0); m.unique(-(c * 0)); m.unique_all(m.abs(c)); m.unique_counts(c * 0);
m.union1d(c, c * 0); m.union1d(c, -(c * 0)); m.setdiff1d(c * 0, a); m.intersect1d(c, c * 0);
m.median(c * 0); m.median(m.abs(c), 0); m.quantile(c * 0, 0.5); m.percentile(A * 0, 5, axis=1);
m.linalg.norm(a * 100); m.linalg.norm(C); m.linalg.norm(v); m.linalg.norm(z * 3);
a @ A.reshape(6, 4); A[:, 0] @ A; A[1] @ A.T; m.vecmat(A[:, 0], A); m.matvec(A, A[0]); T @ A;
m.matmul(A.T, B[:, 0]); m.where(mask, a, b); m.where(A > 0, T, B); m.where(mask, a, i);
m.where(mask, a, b, out=c); m.take(a, indices=i); m.tri(n_rows=3); m.logspace(start=0, stop=1);
m.cumsum(x=a); m.sort(x=a); m.logspace(0, 3, 50); m.logspace(0, 3); m.logspace(0, 1, 5, False);
m.logspace(1, 1, 4); m.logspace(2, -1.5, 7, base=2); m.logspace(0, 1, 1); m.logspace(0, 1, 0);
m.logspace(0, 1, -1); m.logspace(0, 3, 9, dtype=a.dtype); m.logspace(0, 400, 3);
m.logspace(0, m.inf, 3); m.logspace(0, 2, 4, base=-2.0); m.logspace(0, 1, 5.0);
m.logspace(0, 1, 3, device="cpu"); m.meshgrid(a, b); m.meshgrid(a, i, indexing="ij");
m.meshgrid(z, v); m.meshgrid(a, e); m.meshgrid(a[:2], b[:3], v[:4]);
m.meshgrid(a[:2], b[:3], sparse=True); m.meshgrid(A, a); m.meshgrid(a[:2], b[:3], copy=False);
m.meshgrid(); m.meshgrid(a, b, indexing="x"); m.full(3, 2.5); m.meshgrid(*[a[:1]] * 9);
m.meshgrid(a); m.full((2, 3), 0.0); m.full(3, -0.0); m.full(3, m.nan); m.full(-1, 0.5);
m.full(2, 0.5, dtype=a.dtype); m.full(2, 3.0, device="cpu"); m.full(2, 1e300); m.full("a", 1.0)
"""
