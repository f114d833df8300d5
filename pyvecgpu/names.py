"""What to use instead of a name that NumPy, torch or CuPy have and this package does not.

`pyvecgpu.NAME` asks it when there is no such name, and the manual's tables for those who come from
there are written from it.
"""

# NumPy's own, which `pyvecgpu.NAME` gives: kinds of dtypes, numbers as text, and how NumPy warns,
# which is for what the CPU device computes.
NUMPYS = (
    *("False_", "True_", "base_repr", "binary_repr", "complexfloating", "dtype", "errstate"),
    *("exceptions", "floating", "format_float_positional", "format_float_scientific", "generic"),
    *("inexact", "integer", "number", "signedinteger", "typename"),
    "unsignedinteger",
)

# Name: what does the same here.
USE = {
    # NumPy's
    **dict.fromkeys(("isfortran", "require"), "pyvecgpu.contiguous"),
    "asarray_chkfinite": "pyvecgpu.asarray",
    "broadcast": "pyvecgpu.broadcast_arrays",
    "fromregex": "pyvecgpu.asarray(numpy.fromregex(...))",
    "memmap": "pyvecgpu.asarray(numpy.memmap(...))",
    "ndarray": "pyvecgpu.Array",
    # torch's
    **dict.fromkeys(("as_tensor", "from_numpy", "tensor"), "pyvecgpu.asarray"),
    **dict.fromkeys(("bmm", "mm", "mv"), "pyvecgpu.matmul"),
    **dict.fromkeys(("chunk", "tensor_split"), "pyvecgpu.array_split"),
    **dict.fromkeys(("is_tensor",), "isinstance(x, pyvecgpu.Array)"),
    "Tensor": "pyvecgpu.Array",
    "addmm": "pyvecgpu.dense, or c + a @ b",
    "aminmax": "pyvecgpu.min and pyvecgpu.max",
    "bartlett_window": "pyvecgpu.bartlett",
    "blackman_window": "pyvecgpu.blackman",
    "broadcast_tensors": "pyvecgpu.broadcast_arrays",
    "bucketize": "pyvecgpu.searchsorted",
    "cat": "pyvecgpu.concat",
    "chain_matmul": "pyvecgpu.linalg.multi_dot",
    "clamp": "pyvecgpu.clip",
    "clamp_max": "pyvecgpu.minimum",
    "clamp_min": "pyvecgpu.maximum",
    "clone": "pyvecgpu.copy",
    "det": "pyvecgpu.linalg.det",
    "div": "pyvecgpu.divide",
    "eq": "pyvecgpu.equal",
    "expand": "pyvecgpu.broadcast_to",
    "flatten": "pyvecgpu.ravel, or pyvecgpu.reshape",
    "frac": "pyvecgpu.modf",
    "gather": "pyvecgpu.take_along_axis",
    "ge": "pyvecgpu.greater_equal",
    "ger": "pyvecgpu.outer",
    "gt": "pyvecgpu.greater",
    "hamming_window": "pyvecgpu.hamming",
    "hann_window": "pyvecgpu.hanning",
    "histc": "pyvecgpu.histogram",
    "index_select": "pyvecgpu.take",
    "inference_mode": "pyvecgpu.no_grad",
    "inverse": "pyvecgpu.linalg.inv",
    "is_complex": "pyvecgpu.iscomplexobj",
    "is_floating_point": "pyvecgpu.isdtype(x.dtype, 'real floating')",
    "is_nonzero": "bool(x)",
    "kaiser_window": "pyvecgpu.kaiser",
    "kthvalue": "pyvecgpu.partition",
    "le": "pyvecgpu.less_equal",
    "lerp": "x + t * (y - x)",
    "linear": "pyvecgpu.dense",
    "logdet": "pyvecgpu.linalg.slogdet",
    "lt": "pyvecgpu.less",
    "manual_seed": "pyvecgpu.random.seed",
    "masked_fill": "pyvecgpu.where",
    "masked_select": "x[mask]",
    "matrix_power": "pyvecgpu.linalg.matrix_power",
    "movedim": "pyvecgpu.moveaxis",
    "mul": "pyvecgpu.multiply",
    "narrow": "x[a:b]",
    "ne": "pyvecgpu.not_equal",
    "neg": "pyvecgpu.negative",
    "norm": "pyvecgpu.linalg.norm",
    "normal": "pyvecgpu.random.normal",
    "numel": "x.size",
    "permute": "pyvecgpu.permute_dims",
    "pinverse": "pyvecgpu.linalg.pinv",
    "rand": "pyvecgpu.random.rand",
    "rand_like": "pyvecgpu.random.rand(*x.shape)",
    "randint": "pyvecgpu.random.randint",
    "randn": "pyvecgpu.random.randn",
    "randn_like": "pyvecgpu.random.randn(*x.shape)",
    "randperm": "pyvecgpu.random.permutation",
    "repeat_interleave": "pyvecgpu.repeat",
    "rsqrt": "1 / pyvecgpu.sqrt(x)",
    "scatter": "pyvecgpu.put_along_axis",
    "scatter_add": "pyvecgpu.index_add",
    "sgn": "pyvecgpu.sign",
    "slogdet": "pyvecgpu.linalg.slogdet",
    "std_mean": "pyvecgpu.std and pyvecgpu.mean",
    "sub": "pyvecgpu.subtract",
    "svd": "pyvecgpu.linalg.svd",
    "swapdims": "pyvecgpu.swapaxes",
    "t": "pyvecgpu.matrix_transpose",
    "take_along_dim": "pyvecgpu.take_along_axis",
    "topk": "pyvecgpu.top_k",
    "trapz": "pyvecgpu.trapezoid",
    "triangular_solve": "pyvecgpu.linalg.solve_triangular",
    "unbind": "pyvecgpu.unstack",
    "unsqueeze": "pyvecgpu.expand_dims",
    "var_mean": "pyvecgpu.var and pyvecgpu.mean",
    "view": "pyvecgpu.reshape",
    # CuPy's
    **dict.fromkeys(("asnumpy",), "x.numpy()"),
    "asfarray": "pyvecgpu.asarray(x, pyvecgpu.float64)",
    "cuda": "pyvecgpu.device",
    "fromDlpack": "pyvecgpu.from_dlpack",
    "in1d": "pyvecgpu.isin",
    "msort": "pyvecgpu.sort(x, axis=0)",
    "product": "pyvecgpu.prod",
    "cumproduct": "pyvecgpu.cumprod",
}

_LOOPS = """flatiter frompyfunc nditer nested_iters vectorize"""
_DTYPES = """busday_count busday_offset busdaycalendar bytes_ char character clongdouble complex256
    datetime64 datetime_as_string datetime_data flexible float128 is_busday isnat longdouble object_
    rec recarray record str_ strings timedelta64 void"""
_HOST = """ScalarType core ctypeslib emath f2py get_include getbufsize geterr
    geterrcall info lib little_endian sctypeDict setbufsize seterr seterrcall show_config
    show_runtime test testing typecodes ufunc"""
# Of arrays these take shapes or dtypes alone, but NumPy's do not know that.
_SHAPES = "common_type einsum_path mintypecode"
_PARTS = """RawKernel RawModule ElementwiseKernel ReductionKernel"""

# Name: why there is nothing of the kind, with "{}" for the name.
WITHOUT = {
    **dict.fromkeys(
        _LOOPS.split(),
        "it runs Python for every element, and a GPU cannot; use numpy.{} on x.numpy()",
    ),
    **dict.fromkeys(_DTYPES.split(), "arrays have no such dtype"),
    **dict.fromkeys(_HOST.split(), "it is about NumPy itself, as numpy.{}"),
    **dict.fromkeys(_SHAPES.split(), "numpy.{} does, of arrays like these (numpy.empty)"),
    **dict.fromkeys(_PARTS.split(), "kernels of one's own are written in the C library"),
    **dict.fromkeys(
        ["asmatrix", "bmat", "matrix", "ma", "poly1d", "polynomial"],
        "there are no matrices, masked arrays or polynomials as objects; use arrays",
    ),
    "asfortranarray": "new arrays are in C order; x.T is a view in the other",
}


def instead_of(name):
    """Return what to say, behind a semicolon, of a name that is missing here; "" for nothing."""
    if name in USE:
        return f"use {USE[name]}"
    if name in WITHOUT:
        return WITHOUT[name].format(name)
    import numpy

    value = getattr(numpy, name, None) if name in numpy.__all__ else None
    if callable(value) and not isinstance(value, type):
        return f"not in this version yet; use numpy.{name} on x.numpy()"
    return f"numpy.{name} is NumPy's own" if value is not None else ""
