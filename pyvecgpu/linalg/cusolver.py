"""Matrices on a GPU by cuSOLVER, which native/toolkit.py loads at the first use.

Matrices are column by column there, so that the memory of an array in C order is its transpose. All
works on the thread's current stream, on copies in new memory, which that stream may use at once.
An item of a batch follows another. The wait at the end is for cuSOLVER's own errors.
"""

import ctypes
import math
import threading

import numpy as np

from ..dispatch import apply
from ..dtypes import int32, int64, real_dtype, uint8
from ..functions.choosing import where
from ..functions.elementwise import abs, divide, log, multiply, not_equal
from ..functions.indexing import set as assign
from ..functions.layout import broadcast_to, diagonal, matrix_transpose
from ..functions.matrices import eye, tril, triu
from ..functions.ranges import arange
from ..functions.reductions import prod
from ..functions.reductions import sum as total
from ..functions.values import copied, to_host
from ..native import toolkit
from .host import Host

# Of the arguments, see toolkit.KINDS; "..._bufferSize" gives bytes on the device and on the host.
SIGNATURES = {
    "cusolverDnCreate": "p",
    "cusolverDnCreateParams": "p",
    "cusolverDnSetStream": "pp",
    "cusolverDnXgetrf_bufferSize": "ppllipl" + "ipp",
    "cusolverDnXgetrf": "ppllipl" + "pipzpzp",
    "cusolverDnXgetrs": "ppilliplpiplp",
    "cusolverDnXpotrf_bufferSize": "ppilipl" + "ipp",
    "cusolverDnXpotrf": "ppilipl" + "ipzpzp",
    "cusolverDnXgeqrf_bufferSize": "ppllipl" + "ip" + "ipp",
    "cusolverDnXgeqrf": "ppllipl" + "ip" + "ipzpzp",
    "cusolverDnXgesvd_bufferSize": "ppccllipl" + "ip" + "ipl" + "ipl" + "ipp",
    "cusolverDnXgesvd": "ppccllipl" + "ip" + "ipl" + "ipl" + "ipzpzp",
    "cusolverDnXsyevd_bufferSize": "ppiilipl" + "ip" + "ipp",
    "cusolverDnXsyevd": "ppiilipl" + "ip" + "ipzpzp",
}
ORGQR = {"f": "Sorgqr", "d": "Dorgqr", "F": "Cungqr", "D": "Zungqr"}
for _name in ORGQR.values():
    SIGNATURES[f"cusolverDn{_name}_bufferSize"] = "piiipipp"
    SIGNATURES[f"cusolverDn{_name}"] = "piiipippip"
TYPES = {"f": 0, "d": 1, "F": 4, "D": 5}  # CUDA_R_32F and so on
LOWER, UPPER = 0, 1  # CUBLAS_FILL_MODE_...
TRANSPOSED = 1  # CUBLAS_OP_T

_thread = threading.local()  # handles, by device: one is for one thread at a time


class Cusolver(Host):
    """host.Host's methods on one GPU; what is not here is NumPy's, on the host."""

    def __init__(self, backend):
        super().__init__(backend)
        self.library = toolkit.load("cuSOLVER", SIGNATURES)
        self.on_the_host = []  # workspaces, until their work is done

    # Memory and calls

    def empty(self, shape, dtype):
        return apply(self.backend, "empty", shape, dtype)

    def address(self, array, item=0):
        """Where the item of a batch begins, in memory without gaps; matrices by default."""
        return self.backend.pointer(array.raw) + item * _bytes_of_item(array)

    def handles(self):
        """Return (handle, parameters) for this thread and device, on the current stream."""
        known = _thread.__dict__.setdefault("handles", {})
        index = self.backend.device.index
        if index not in known:
            handle, parameters = ctypes.c_void_p(), ctypes.c_void_p()
            self.library.call("cusolverDnCreate", ctypes.byref(handle))
            self.library.call("cusolverDnCreateParams", ctypes.byref(parameters))
            known[index] = handle, parameters
        self.library.call("cusolverDnSetStream", known[index][0], current_stream(self.backend))
        return known[index]

    def compute(self, function, arguments, kind, info, extra=()):
        """Call a function of the 64-bit interface with workspaces of the sizes that it asks for.

        extra: arguments that only the function itself takes, before the type it computes in.
        """
        device, host = ctypes.c_size_t(), ctypes.c_size_t()
        sizes = ctypes.byref(device), ctypes.byref(host)
        self.library.call(f"{function}_bufferSize", *arguments, kind, *sizes)
        work = self.empty((max(device.value, 1),), uint8)
        buffer = ctypes.create_string_buffer(max(host.value, 1))
        self.on_the_host.append(buffer)
        places = self.address(work), device.value, ctypes.addressof(buffer), host.value
        self.library.call(function, *arguments, *extra, kind, *places, info)

    def each(self, items, work):
        """Call work(handle, parameters, item, info) for the items of a batch; return the infos."""
        infos = self.empty((max(items, 1),), int32)
        apply(self.backend, "fill", infos, 0)
        start = self.backend.pointer(infos.raw)
        with toolkit.on_device(self.backend.device.index):
            handle, parameters = self.handles()
            for item in range(items):
                work(handle, parameters, item, start + 4 * item)
        found = to_host(infos)
        self.on_the_host.clear()
        return found

    # Systems

    def factor(self, a):
        """Return what getrf makes of the transposes of matrices, its pivots, and its infos."""
        lu, n, kind = copied(a), a.shape[-1], TYPES[a.dtype.char]
        pivots = self.empty((*a.shape[:-2], n), int64)

        def work(handle, parameters, item, info):
            place = self.backend.pointer(pivots.raw) + item * n * 8
            arguments = handle, parameters, n, n, kind, self.address(lu, item), n
            self.compute("cusolverDnXgetrf", arguments, kind, info, (place,))

        return lu, pivots, self.each(_items(a), work)

    def solve(self, a, b):
        if not (a.size and b.size):
            return super().solve(a, b)
        lu, pivots, infos = self.factor(a)
        _check("solve: a matrix is singular", infos)
        x, n, kind = copied(matrix_transpose(b)), a.shape[-1], TYPES[a.dtype.char]

        def work(handle, parameters, item, info):
            place = self.backend.pointer(pivots.raw) + item * n * 8
            self.library.call(
                "cusolverDnXgetrs", handle, parameters, TRANSPOSED, n, b.shape[-1],
                kind, self.address(lu, item), n, place, kind, self.address(x, item), n, info,
            )  # fmt: skip

        self.each(_items(a), work)
        return matrix_transpose(x)

    def inverse(self, a):
        one = eye(a.shape[-1], dtype=a.dtype, device=a.device)
        return self.solve(a, broadcast_to(one, a.shape))

    def determinant(self, a, kind):
        if not a.size or a.dtype.kind == "c":
            return super().determinant(a, kind)
        lu, pivots, _ = self.factor(a)
        pivot = diagonal(lu, 0, -2, -1)
        if kind == 2:
            return total(log(abs(pivot)), axis=-1)
        places = arange(1, a.shape[-1] + 1, dtype=int64, device=a.device)
        swaps = total(not_equal(pivots, places), axis=-1)
        odd = not_equal(swaps % 2, 0)
        if kind == 1:
            size = abs(pivot)
            pivot = where(not_equal(pivot, 0), divide(pivot, size), 0.0)
        value = prod(pivot, axis=-1)
        return where(odd, multiply(value, -1.0), value)

    def cholesky(self, a, upper):
        if not a.size:
            return super().cholesky(a, upper)
        factors, n, kind = copied(a), a.shape[-1], TYPES[a.dtype.char]
        half = LOWER if upper else UPPER  # of the transposes

        def work(handle, parameters, item, info):
            arguments = handle, parameters, half, n, kind, self.address(factors, item), n
            self.compute("cusolverDnXpotrf", arguments, kind, info)

        infos = self.each(_items(a), work)
        _check("cholesky: a matrix is not positive definite", infos)
        return triu(factors) if upper else tril(factors)

    # Decompositions

    def qr(self, a, mode):
        m, n = a.shape[-2:]
        k = min(m, n)
        if not a.size:
            return super().qr(a, mode)
        columns = m if mode == "complete" else k
        factors, kind, char = copied(matrix_transpose(a)), TYPES[a.dtype.char], a.dtype.char
        taus, q = self.empty((*a.shape[:-2], k), a.dtype), None

        def work(handle, parameters, item, info):
            tau = self.backend.pointer(taus.raw) + item * k * a.dtype.itemsize
            arguments = handle, parameters, m, n, kind, self.address(factors, item), m, kind, tau
            self.compute("cusolverDnXgeqrf", arguments, kind, info)

        def make_q(handle, parameters, item, info):
            tau = self.backend.pointer(taus.raw) + item * k * a.dtype.itemsize
            arguments = handle, m, columns, k, self.address(q, item), m, tau
            length, name = ctypes.c_int(), f"cusolverDn{ORGQR[char]}"
            self.library.call(f"{name}_bufferSize", *arguments, ctypes.byref(length))
            scratch = self.empty((max(length.value, 1),), a.dtype)
            self.library.call(name, *arguments, self.address(scratch), length.value, info)

        self.each(_items(a), work)
        r = triu(matrix_transpose(factors[..., :columns]))
        if mode == "r":
            return r
        q = self.empty((*a.shape[:-2], columns, m), a.dtype)
        apply(self.backend, "fill", q, 0)
        assign(q, (..., slice(0, k), slice(None)), factors[..., :k, :])
        self.each(_items(a), make_q)
        return matrix_transpose(q), r

    def svd(self, a, full_matrices):
        return self.singular(a, "A" if full_matrices else "S")

    def svdvals(self, a):
        return self.singular(a, "N")

    def singular(self, a, job):
        """Return (U, S, Vh), or with job "N" S alone. cuSOLVER takes no matrix wider than high."""
        m, n = a.shape[-2:]
        if not a.size:
            full = {"compute_uv": False} if job == "N" else {"full_matrices": job == "A"}
            return self.call(np.linalg.svd, a, **full)
        wide = m < n
        work_on = copied(a if wide else matrix_transpose(a))
        high, low = max(m, n), min(m, n)
        kind, real = TYPES[a.dtype.char], real_dtype(a.dtype)
        of_values = TYPES[real.char]
        batch = a.shape[:-2]
        s = self.empty((*batch, low), real)
        u = self.empty((*batch, high if job == "A" else low, high), a.dtype)
        vh = self.empty((*batch, low, low), a.dtype)
        code = ord(job)

        def work(handle, parameters, item, info):
            values = self.backend.pointer(s.raw) + item * low * real.itemsize
            arguments = (
                handle, parameters, code, code, high, low, kind, self.address(work_on, item), high,
                of_values, values, kind, self.address(u, item), high,
                kind, self.address(vh, item), low,
            )  # fmt: skip
            self.compute("cusolverDnXgesvd", arguments, kind, info)

        _check("svd: no convergence", self.each(_items(a), work))
        if job == "N":
            return s
        return (vh, s, u) if wide else (matrix_transpose(u), s, matrix_transpose(vh))

    def eigh(self, a, lower):
        return self.symmetric(a, lower, True)

    def eigvalsh(self, a, lower):
        return self.symmetric(a, lower, False)[0]

    def symmetric(self, a, lower, with_vectors):
        if not a.size:
            return super().eigh(a, lower)
        vectors, n = copied(matrix_transpose(a)), a.shape[-1]
        kind, real = TYPES[a.dtype.char], real_dtype(a.dtype)
        values = self.empty(a.shape[:-1], real)
        half = LOWER if lower else UPPER

        def work(handle, parameters, item, info):
            place = self.backend.pointer(values.raw) + item * n * real.itemsize
            arguments = (
                handle, parameters, int(with_vectors), half, n, kind, self.address(vectors, item),
                n, TYPES[real.char], place,
            )  # fmt: skip
            self.compute("cusolverDnXsyevd", arguments, kind, info)

        _check("eigh: no convergence", self.each(_items(a), work))
        return values, matrix_transpose(vectors)


def current_stream(backend):
    """Return the CUDA handle of the calling thread's current stream."""
    return backend.library.pvg_stream_handle(
        backend.library.pvg_stream_current(backend.device.index)
    )


def _items(a):
    return math.prod(a.shape[:-2])


def _bytes_of_item(array):
    return math.prod(array.shape[-2:]) * array.dtype.itemsize


def _check(text, infos):
    if infos.any():
        raise np.linalg.LinAlgError(text)
