"""NumPy's functions of Arrays, wherever these live; cusolver.py has the same methods."""

import functools

import numpy as np

from .operands import on_host


def of_finite(name, function):
    """Return one of NumPy's functions that refuses what is not finite.

    For some of these matrices LAPACK's singular vectors never converge, and it does not end.
    """

    @functools.wraps(function)
    def compute(*arrays, **options):
        if not all(np.isfinite(one).all() for one in arrays):
            raise np.linalg.LinAlgError(f"{name}: no convergence of elements that are not finite")
        return function(*arrays, **options)

    return compute


svd = of_finite("svd", np.linalg.svd)
lstsq = of_finite("lstsq", np.linalg.lstsq)


class Host:
    """NumPy; on a device other than the CPU, matrices come to the host and results go back."""

    def __init__(self, backend):
        self.backend = backend

    def call(self, function, *arrays, **options):
        """Return what NumPy's function gives of Arrays, as Arrays."""
        return on_host(self.backend, functools.partial(function, **options), *arrays)

    def cholesky(self, a, upper):
        return self.call(np.linalg.cholesky, a, upper=upper)

    def solve(self, a, b):
        return self.call(np.linalg.solve, a, b)

    def inverse(self, a):
        return self.call(np.linalg.inv, a)

    def determinant(self, a, kind):
        """kind: see pvg_determinant."""
        if kind == 0:
            return self.call(np.linalg.det, a)
        return self.call(lambda values: np.linalg.slogdet(values)[kind - 1], a)

    def qr(self, a, mode):
        return self.call(np.linalg.qr, a, mode=mode)

    def svd(self, a, full_matrices):
        return self.call(svd, a, full_matrices=full_matrices)

    def svdvals(self, a):
        return self.call(np.linalg.svd, a, compute_uv=False)

    def eigh(self, a, lower):
        return self.call(np.linalg.eigh, a, UPLO="L" if lower else "U")

    def eigvalsh(self, a, lower):
        return self.call(np.linalg.eigvalsh, a, UPLO="L" if lower else "U")
