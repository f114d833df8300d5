"""Orders, choices, and vectors: what a Generator draws of several numbers together."""

import numpy as np

from ..array import Array
from ..backends import cpu_sorting
from ..dtypes import float64, uint64
from ..functions.arguments import is_host, parse_int, parse_shape
from ..functions.creation import asarray
from ..functions.gathering import take_along_axis
from ..functions.layout import astype, reshape
from ..functions.linalg import matmul
from ..functions.sorting import argsort
from ..functions.values import item, to_host
from .arguments import (
    HOST,
    axis_of,
    host_parameters,
    parse_float,
    parse_probabilities,
    root_of,
    taken,
)


class _Orders:
    """What a Generator draws of orders, choices and vectors."""

    def permutation(self, x, axis=0, *, device=None):
        """Return arange(x) in random order, or an array with its parts along an axis so.

        The order is that of random keys of 64 bits, which the host sorts. Keys are equal, and then
        in their old order, with a probability of n^2 / 2^65.

        >>> x = vg.random.default_rng(7).permutation(5)
        >>> vg.sort(x).tolist()
        [0, 1, 2, 3, 4]
        """
        if not isinstance(x, Array) and not is_host(x):
            count = parse_int(x, "x")
            if count < 0:
                raise ValueError(f"x must not be negative, got {count}")
            return asarray(self._order(count), device=self._resolved(device))
        target = x.device if isinstance(x, Array) and device is None else self._resolved(device)
        axis = axis_of(x, axis)
        return taken(x, self._order(x.shape[axis]), axis, target)

    def shuffle(self, x, axis=0):
        """Put the parts of an Array along an axis in random order, in place; as permutation.

        >>> x = vg.arange(5)
        >>> vg.random.default_rng(7).shuffle(x)
        >>> vg.sort(x).tolist()
        [0, 1, 2, 3, 4]
        """
        if not isinstance(x, Array):
            raise TypeError(f"shuffle takes an Array, not {type(x).__name__}")
        x[...] = self.permutation(x, axis)

    def permuted(self, x, axis=None, out=None, *, device=None):
        """Return an array with the elements along an axis in random order, another one in each row.

        axis: None puts all elements in one random order. out: of the same shape and dtype, which
        may be x itself. The order is that of random keys of 64 bits, as permutation's, which are
        sorted on the device. ValueError, TypeError: an out that does not fit.

        >>> x = vg.random.default_rng(7).permuted(vg.arange(6).reshape(2, 3), axis=1)
        >>> vg.sort(x, axis=1).tolist()
        [[0, 1, 2], [3, 4, 5]]
        """
        if not isinstance(x, Array):
            x = asarray(x, device=self._resolved(device))
        elif device is not None:
            x = asarray(x, device=device)
        if out is not None and not isinstance(out, Array):
            raise TypeError(f"out is an Array, not {type(out).__name__}")
        if out is not None and (out.shape != x.shape or out.dtype != x.dtype):
            raise ValueError(f"out is {out.dtype}{out.shape}, and x {x.dtype}{x.shape}")
        whole = reshape(x, -1) if axis is None else x
        place = 0 if axis is None else axis_of(x, axis)
        keys = self._bits(whole.shape, uint64, x.device)
        mixed = reshape(take_along_axis(whole, argsort(keys, axis=place), place), x.shape)
        if out is None:
            return mixed
        out[...] = mixed
        return out

    def _order(self, count):
        keys = to_host(self._bits(count, uint64, HOST))
        return cpu_sorting.argsort(keys, 0, False)

    def choice(self, a, size=None, replace=True, p=None, axis=0, *, device=None):
        """Return elements of arange(a), or parts of an array along an axis, drawn at random.

        replace: whether one may be drawn again. p: the probability of each, else all are alike;
        without replacement each draw is from what is left. Indices are computed on the host.
        ValueError: more than there are, wrong p.

        >>> x = vg.random.default_rng(7).choice(10, 4, replace=False)
        >>> len(set(x.tolist()))
        4
        """
        whole = isinstance(a, Array) or is_host(a)
        axis = axis_of(a, axis) if whole else 0
        count = a.shape[axis] if whole else parse_int(a, "a")
        shape = parse_shape(() if size is None else size, 8)
        indices = self._indices(count, shape, bool(replace), p)
        target = a.device if isinstance(a, Array) and device is None else self._resolved(device)
        result = taken(a, indices, axis, target) if whole else asarray(indices, device=target)
        return item(result) if size is None and result.ndim == 0 else result

    def _indices(self, count, shape, replace, p):
        drawn = int(np.prod(shape, dtype=object))
        if count < 0 or (drawn and not count):
            raise ValueError(f"choice: a has no elements to draw from, {count}")
        if not replace and drawn > count:
            raise ValueError(f"choice: {drawn} of {count} elements without replacement")
        if p is not None:
            p = parse_probabilities(p, count, 0 if replace else drawn)
        if not drawn:
            return np.empty(shape, np.int64)
        if replace and p is None:
            return to_host(self.integers(0, count, shape, device=HOST))
        if p is None:
            return self._order(count)[:drawn].reshape(shape)
        if replace:
            edges = np.cumsum(p)
            edges /= edges[-1]
            draws = to_host(self.random(shape, float64, device=HOST))
            return np.searchsorted(edges, draws, side="right").astype(np.int64, copy=False)
        # The first of exponential clocks that run at these rates: as if drawn one after another.
        clocks = to_host(self.standard_exponential(count, float64, device=HOST))
        times = np.divide(clocks, p, out=np.full(count, np.inf), where=p > 0)
        order = np.argsort(times, kind="stable")[:drawn]
        return order.astype(np.int64, copy=False).reshape(shape)

    def multivariate_normal(
        self,
        mean,
        cov,
        size=None,
        check_valid="warn",
        tol=1e-8,
        *,
        method="svd",
        dtype=None,
        device=None,
    ):
        """Return normal vectors of a mean of shape (n,) and a covariance of shape (n, n).

        size: None is one vector; else the result has the shape (*size, n). method: "cholesky", or
        "svd" and "eigh", which both take the symmetric square root. The root is computed on the
        host in float64, one product on the device does the rest. check_valid: "warn", "raise" or
        "ignore", if the covariance is not symmetric and positive semidefinite by more than tol.
        ValueError: other shapes or names. LinAlgError: not positive definite, with "cholesky".

        >>> rng = vg.random.default_rng(7)
        >>> rng.multivariate_normal([0.0, 5.0], [[1.0, 0.9], [0.9, 1.0]], 3).shape
        (3, 2)
        """
        if method not in ("svd", "eigh", "cholesky"):
            raise ValueError(f"the method is 'svd', 'eigh' or 'cholesky', not {method!r}")
        dtype, device = parse_float(dtype), self._resolved(device)
        mean, cov = host_parameters({"mean": mean, "cov": cov})
        if mean.ndim != 1 or cov.shape != (mean.size, mean.size):
            raise ValueError(f"shapes (n,) and (n, n) are needed, not {mean.shape}, {cov.shape}")
        root = asarray(root_of(cov, method, check_valid, tol), device=device)
        shape = parse_shape(() if size is None else size, 8)
        z = self.standard_normal((*shape, mean.size), float64, device=device)
        result = matmul(z, root.T, precision="ieee") + asarray(mean, device=device)
        return astype(result, dtype, copy=False)
