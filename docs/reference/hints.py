"""The types of parameters and results, by which stubs.py writes the package's .pyi files.

A parameter is known by its name, or by the function's and its name, a flag by its default; one
whose default is None takes None besides. A function without an entry in RESULTS returns an Array.
"""

import inspect

import numpy as np

import pyvecgpu as vg
from pyvecgpu.functions import sets
from pyvecgpu.linalg import decompositions, systems

_INT = """batch_size code count decimals dilation edge_order embed_dim embedding_dim end_dim
    epochs groups hidden_size in_channels in_features input_size k kdim last_epoch length m
    minlength n n_children n_cols n_rows ndim ndmin num num_channels num_embeddings
    num_features num_groups num_heads num_layers offset out_channels out_features
    padding_idx patience skiprows start_dim step_size steps_per_epoch total_iters
    total_steps vdim N M T_max ignore_index free requested reserved axis1 axis2 axisa axisb
    axisc growth_interval num_workers prefetch_factor proj_size divisor_override"""
_FLOAT = """alpha atol base_momentum beta clip_norm clip_value correction d dampening ddof delta
    div_factor dropout dropout_p dx end_factor eps eta_min factor final_div_factor gain
    gamma label_smoothing lr max_lr max_momentum max_norm momentum negative_slope
    norm_type p param pct_start period rtol scale sparsity start_factor std threshold tol
    weight_decay growth_factor backoff_factor init_scale"""
_STR = """name nonlinearity precision subscripts activation message"""
_ARRAY_LIKE = """a1 a2 condition fp indices mask numbers sorter v vals weights xp y ind bins q
    fweights aweights to_begin to_end prepend append repeats spacing src where base
    fill_value nan neginf posinf"""
_OPERAND = """x x1 x2 a b other val values default left right min max"""
_ARRAY = """attn_mask bias gradient input key mean query running_mean running_var tensor weight
    pos_weight preactivation target"""

_WITH_MASKS = (
    *(name for name in vg.__all__ if isinstance(getattr(np, name, None), np.ufunc)),
    "copyto",
    "sum",
    "prod",
    "mean",
    "max",
    "min",
    "amax",
    "amin",
    "any",
    "all",
    "var",
    "std",
)


def _takes_where(name):
    return "where" in inspect.signature(getattr(vg, name)).parameters


PARAMETERS = {
    **dict.fromkeys(_INT.split(), "int"),
    **dict.fromkeys(_FLOAT.split(), "float"),
    **dict.fromkeys(_STR.split(), "str"),
    **dict.fromkeys(_ARRAY_LIKE.split(), "ArrayLike"),
    **dict.fromkeys(_OPERAND.split(), "Operand"),
    **dict.fromkeys(_ARRAY.split(), "Array"),
    **dict.fromkeys(("args", "options", "kw"), "Any"),
    "argnums": "int | tuple[int, ...]",
    "arrays": "Sequence[Array | HostArray]",
    "autocast": "DTypeLike | None",
    "initial": "complex",
    "axes": "Sequence[int] | None",
    "axis": "int",
    "betas": "tuple[float, float]",
    "buffer": "Any",
    "checkpoint": "str | os.PathLike[str] | None",
    "choicelist": "Sequence[Operand]",
    "choices": "Sequence[Operand]",
    "closure": "Callable[[], Any]",
    "collate_fn": "Callable[[list[Any]], Any]",
    "copy": "bool | None",
    "create_graph": "bool | None",
    "data": "Any",
    "dataset": "Dataset",
    "defaults": "dict[str, Any]",
    "density": "bool | None",
    "destination": "int | Sequence[int]",
    "device": "DeviceLike | None",
    "device_type": "DeviceLike | None",
    "dim": "int",
    "dimensions": "Sequence[int]",
    "dims": "Sequence[int]",
    "dst": "Array | HostArray",
    "dtype": "DTypeLike | None",
    "file": "str | os.PathLike[str] | IO[bytes]",
    "fn": "Callable[[Module], Any]",
    "from_": "Operand | DTypeLike",
    "function": "Callable[..., Any]",
    "funclist": "Sequence[Any]",
    "generator": "Generator | int | Sequence[int] | None",
    "grad_outputs": "Sequence[Array | None] | Array | None",
    "high": "Operand",
    "indices_or_sections": "int | Sequence[int] | Array",
    "index": "int",
    "inputs": "Sequence[Array] | Array",
    "iterable": "Iterable[Any]",
    "kernel_size": "int | tuple[int, int]",
    "keys": "Array | HostArray | Sequence[Array | HostArray]",
    "kind": "str | None",
    "kth": "int | Sequence[int]",
    "lengths": "Sequence[float]",
    "limit": "int | str | None",
    "loc": "Operand",
    "loss": "Callable[..., Array]",
    "lam": "ArrayLike",
    "low": "Operand",
    "converters": "Any",
    "cov": "bool | str",
    "deg": "int",
    "delimiter": "str | int | Sequence[int] | None",
    "discont": "float",
    "encoding": "str | None",
    "filling_values": "Any",
    "fname": "Any",
    "mask_func": "Callable[[Array, int], Array]",
    "max_rows": "int | None",
    "max_work": "int",
    "missing_values": "Any",
    "u": "ArrayLike",
    "quotechar": "str | None",
    "sample": "Array | HostArray | Sequence[Array | HostArray]",
    "seq_of_zeros": "ArrayLike",
    "skip_footer": "int",
    "skip_header": "int",
    "w": "ArrayLike",
    "X": "ArrayLike",
    "sigma": "Operand",
    "lr_lambda": "Callable[[int], float] | Sequence[Callable[[int], float]]",
    "memo": "set[int] | None",
    "metrics": "dict[str, Callable[..., Any]] | None",
    "milestones": "Sequence[int]",
    "module": "Module | None",
    "modules": "Iterable[Module]",
    "named": "ArrayLike",
    "names": "Sequence[str] | None",
    "net": "Module",
    "new_shape": "ShapeLike",
    "normalized_shape": "int | Sequence[int]",
    "operands": "Operand",
    **dict.fromkeys(("foreach", "fused"), "bool"),
    "optimiser": "Optimizer",
    "optimizer": "Optimizer",
    "ord": "float | str | None",
    "out": "Array | None",
    "outputs": "Sequence[Array] | Array",
    "pad_width": "ShapeLike | Sequence[Sequence[int]] | dict[int, Any]",
    "padding": "int | tuple[int, int]",
    "param_group": "dict[str, Any]",
    "parameters": "Iterable[Array] | Array",
    "params": "Iterable[Array] | Iterable[tuple[str, Array]] | Iterable[dict[str, Any]]",
    "path": "str | os.PathLike[str]",
    "plot": "str | os.PathLike[str] | None",
    "range": "tuple[float, float] | None",
    "rcond": "float | None",
    "repetitions": "ShapeLike",
    "retain_graph": "bool | None",
    "samples": "Sequence[Any]",
    "scheduler": "LRScheduler | None",
    "schedulers": "Sequence[LRScheduler]",
    "seed": "int | Sequence[int] | None",
    "shape": "ShapeLike",
    "shapes": "Sequence[int]",
    "shift": "int | Sequence[int]",
    "size": "ShapeLike | None",
    "source": "int | Sequence[int]",
    "start": "float",
    "state": "dict[str, Any]",
    "state_dict": "Mapping[str, Any]",
    "step": "float",
    "stop": "float",
    "stream": "Any",
    "stride": "int | tuple[int, int]",
    "tensors": "Iterable[Array] | Array",
    "text": "str",
    "to": "DTypeLike",
    "type1": "DTypeLike",
    "type2": "DTypeLike",
    "usecols": "int | Sequence[int] | None",
    "validation": "Any",
    "vocabulary": "Characters | None",
    "s": "Sequence[int] | None",
}

SPECIAL = {
    "implicit_transfers.mode": "str | None",
    "Array.to.target": "DeviceLike | DTypeLike",
    "Array.astype.dtype": "DTypeLike",
    "Array.reshape.shape": "Any",
    "Array.transpose.axes": "Any",
    "Array.backward.gradient": "Array | HostArray | float | None",
    "Array.register_hook.hook": "Callable[[Array], Array | None]",
    "Array.fill.value": "Scalar",
    "Array.item.index": "int | tuple[int, ...]",
    "Array.to_device.device": "DeviceLike",
    "Array.put.values": "ArrayLike",
    **{f"{name}.where": "ArrayLike" for name in _WITH_MASKS if _takes_where(name)},
    "Device.device": "DeviceLike",
    "OutOfMemoryError.device": "str",
    "append.values": "Operand",
    "append.x": "Array | HostArray",
    **{
        f"{name}.{parameter}": "int | None"
        for name in ("array2string", "array_repr", "array_str")
        for parameter in ("max_line_width", "precision")
    },
    **{
        f"{name}.suppress_small": "bool | None"
        for name in ("array2string", "array_repr", "array_str")
    },
    "array2string.formatter": "dict[str, Callable[..., str]] | None",
    "array2string.threshold": "int | None",
    "array2string.edgeitems": "int | None",
    "array2string.sign": "str | None",
    "array2string.floatmode": "str | None",
    "apply_along_axis.func1d": "Callable[..., Any]",
    "apply_along_axis.arr": "Array | HostArray",
    "apply_along_axis.kwargs": "Any",
    "apply_over_axes.func": "Callable[..., Array]",
    "apply_over_axes.axes": "int | Sequence[int]",
    "Array.tofile.fid": "str | os.PathLike[str] | IO[bytes]",
    "Array.dump.file": "str | os.PathLike[str] | IO[bytes]",
    "fromstring.string": "str",
    "fromstring.sep": "str",
    "array_equal.x1": "ArrayLike",
    "array_equal.x2": "ArrayLike",
    "asarray.obj": "Any",
    "array.obj": "Any",
    "asanyarray.obj": "Any",
    "ascontiguousarray.obj": "Any",
    "astype.dtype": "DTypeLike",
    "bartlett.M": "int",
    "block.arrays": "Any",
    "broadcast_arrays.arrays": "Array | HostArray",
    **{f"atleast_{n}d.arrays": "Operand" for n in (1, 2, 3)},
    "can_cast.casting": "str",
    "cross.axis": "int | None",
    "data.TensorDataset.arrays": "Array | HostArray",
    "data.Subset.indices": "ArrayLike",
    "data.Windows.values": "Array | HostArray",
    "data.collate.device": "DeviceLike | None",
    "delete.obj": "Any",
    "device.device": "DeviceLike",
    "diag_indices.ndim": "int",
    "digitize.right": "bool",
    "fft.fftfreq.d": "float",
    "finfo.dtype": "DTypeLike | Array",
    "frombuffer.dtype": "DTypeLike | None",
    "from_dlpack.x": "Any",
    "fromfunction.function": "Callable[..., Any]",
    "fromiter.dtype": "DTypeLike",
    "grad.function": "Callable[..., Any]",
    "gradient.f": "Array | HostArray",
    "gradient.spacing": "float | Array | HostArray",
    "iinfo.dtype": "DTypeLike | Array",
    "index_add.indices": "ArrayLike",
    "insert.obj": "Any",
    "insert.values": "Operand",
    "is_available.device": "DeviceLike",
    "isdtype.dtype": "DTypeLike",
    "isdtype.kind": "DTypeLike | tuple[DTypeLike, ...]",
    "iscomplexobj.x": "Any",
    "isrealobj.x": "Any",
    "isscalar.element": "Any",
    "iterable.y": "Any",
    "ix_.args": "ArrayLike",
    "linalg.cond.p": "float | str | None",
    "linalg.matrix_norm.ord": "float | str",
    "linalg.multi_dot.arrays": "Sequence[Array | HostArray]",
    "roots.p": "ArrayLike",
    "unwrap.p": "Array | HostArray",
    "issubdtype.arg1": "Any",
    "linalg.tensorinv.ind": "int",
    "issubdtype.arg2": "Any",
    "linalg.matrix_rank.tol": "Operand | None",
    "linalg.matrix_rank.rtol": "Operand | None",
    "linalg.pinv.rtol": "Operand | None",
    "linalg.pinv.rcond": "Operand | None",
    "load.file": "str | os.PathLike[str] | IO[bytes]",
    "meshgrid.arrays": "Array | HostArray",
    "ndim.x": "ArrayLike",
    "nn.Module.to.device": "DeviceLike | DTypeLike | None",
    "nn.Module.cuda.device": "DeviceLike | int | None",
    "nn.Module.get_buffer.target": "str",
    "nn.Module.get_parameter.target": "str",
    "nn.Module.get_submodule.target": "str",
    "nn.Module.register_forward_hook.hook": "Callable[..., Any]",
    "nn.Module.register_forward_hook.prepend": "bool",
    "nn.Module.register_forward_pre_hook.hook": "Callable[..., Any]",
    "nn.Module.register_forward_pre_hook.prepend": "bool",
    "nn.Module.register_buffer.tensor": "Array | None",
    "nn.Module.register_parameter.param": "Parameter | None",
    "nn.ModuleDict.modules": "Mapping[str, Module] | None",
    "nn.Sequential.args": "Module | Mapping[str, Module]",
    "nn.atomic.net": "Any",
    "nn.fit.progress": "bool",
    "nn.fit.seed": "int | None",
    "nn.functional.scaled_dot_product_attention.value": "Array",
    "nn.init.constant_.val": "float",
    "nn.init.kaiming_normal_.a": "float",
    "nn.init.kaiming_uniform_.a": "float",
    "nn.init.normal_.mean": "float",
    **{f"nn.init.{name}.{end}": "float" for name in ("uniform_", "trunc_normal_") for end in "ab"},
    "nn.init.trunc_normal_.mean": "float",
    "piecewise.condlist": "ArrayLike | Sequence[ArrayLike]",
    "printoptions.values": "Any",
    "set_printoptions.values": "Any",
    "ravel_multi_index.multi_index": "Sequence[ArrayLike]",
    "ravel_multi_index.mode": "str | Sequence[str]",
    "geomspace.start": "complex",
    "geomspace.stop": "complex",
    "interp.left": "complex | None",
    "interp.right": "complex | None",
    "pad.mode": "str | Callable[..., Any]",
    "pad.options": "Any",
    "trim_zeros.axis": "int | Sequence[int] | None",
    **{f"{name}.mean": "ArrayLike | None" for name in ("std", "var", "nanstd", "nanvar")},
    **{f"Array.{name}.mean": "ArrayLike | None" for name in ("std", "var")},
    "polyadd.a1": "ArrayLike",
    "polyint.k": "ArrayLike",
    "polyder.p": "ArrayLike",
    "polyint.p": "ArrayLike",
    "polyval.p": "ArrayLike",
    "polyval.x": "ArrayLike",
    "put.v": "ArrayLike",
    "put.x": "Array | HostArray",
    **{
        f"random.{place}{name}": hint
        for place in ("Generator.", "")
        for name, hint in {
            "binomial.n": "ArrayLike",
            "binomial.p": "ArrayLike",
            "beta.a": "Operand",
            "chisquare.df": "Operand",
            "dirichlet.alpha": "ArrayLike",
            "f.dfnum": "Operand",
            "f.dfden": "Operand",
            "gamma.shape": "Operand",
            "gamma.scale": "Operand",
            "standard_gamma.shape": "Operand",
            "standard_t.df": "Operand",
            "choice.a": "int | Array | HostArray",
            "choice.p": "ArrayLike | None",
            "lognormal.mean": "Operand",
            "multivariate_normal.cov": "ArrayLike",
            "triangular.mode": "Operand",
            "multivariate_normal.mean": "ArrayLike",
            "permutation.x": "int | Array | HostArray",
            "permuted.x": "ArrayLike",
            "geometric.p": "ArrayLike",
        }.items()
    },
    "random.rand.size": "int",
    "random.randn.size": "int",
    "result_type.arrays_and_dtypes": "Operand | DTypeLike",
    "save.x": "Array | HostArray",
    "savez.arrays": "Array | HostArray",
    "savez_compressed.arrays": "Array | HostArray",
    "select.condlist": "Sequence[Array | HostArray]",
    "shape.x": "ArrayLike",
    "size.x": "ArrayLike",
    "set_default_dtype.dtype": "DTypeLike",
    "tensordot.axes": "int | Sequence[Any]",
    "trapezoid.x": "ArrayLike | None",
    "trapezoid.y": "ArrayLike",
    "tril_indices.m": "int | None",
    "fftshift.axes": "int | Sequence[int] | None",
}

_TWO, _THREE = "tuple[Array, Array]", "tuple[Array, Array, Array]"
_SOME = "tuple[Array, ...]"

RESULTS = {
    "Stream.synchronize": "None",
    "stream": "AbstractContextManager[Stream]",
    **dict.fromkeys(
        [
            "allclose",
            "array_equal",
            "array_equiv",
            "can_cast",
            "is_available",
            "is_grad_enabled",
            "is_healthy",
            "iscomplexobj",
            "isdtype",
            "isrealobj",
            "isscalar",
            "iterable",
            "issubdtype",
            "may_share_memory",
            "shares_memory",
        ],
        "bool",
    ),
    **dict.fromkeys(
        [
            "copyto",
            "empty_cache",
            "fill_diagonal",
            "index_add",
            "place",
            "put",
            "put_along_axis",
            "putmask",
            "save",
            "save_state",
            "savez",
            "savetxt",
            "savez_compressed",
            "Array.dump",
            "Array.tofile",
            "set_default_dtype",
            "set_matmul_precision",
            "set_memory_limit",
            "set_printoptions",
            "synchronize",
            "random.seed",
            "Array.backward",
            "Array.fill",
            "Array.partition",
            "Array.put",
            "Array.sort",
            "nn.Module.add_module",
            "nn.Module.register_buffer",
            "nn.Module.register_parameter",
            "nn.Module.zero_grad",
            "nn.ModuleList.insert",
            "nn.utils.clip_grad_value_",
            "amp.GradScaler.load_state_dict",
            "amp.GradScaler.unscale_",
            "optim.Optimizer.add_param_group",
            "optim.Optimizer.load_state_dict",
            "optim.Optimizer.zero_grad",
            "optim.lr_scheduler.LRScheduler.load_state_dict",
            "optim.lr_scheduler.LRScheduler.step",
            "random.Generator.shuffle",
            "random.shuffle",
        ],
        "None",
    ),
    **dict.fromkeys(
        ["min_scalar_type", "promote_types", "result_type", "get_default_dtype"], "DType"
    ),
    **dict.fromkeys(["array_split", "dsplit", "hsplit", "split", "vsplit"], "list[Array]"),
    **dict.fromkeys(
        [
            "broadcast_arrays",
            "diag_indices",
            "diag_indices_from",
            "ix_",
            "mask_indices",
            "meshgrid",
            "nonzero",
            "tril_indices",
            "tril_indices_from",
            "triu_indices",
            "triu_indices_from",
            "unravel_index",
            "unstack",
            "Array.nonzero",
        ],
        _SOME,
    ),
    **dict.fromkeys(["divmod", "frexp", "histogram", "modf", "polydiv", "top_k"], _TWO),
    **dict.fromkeys(("nn.functional.dense_backward",), _THREE),
    **dict.fromkeys(["broadcast_shapes", "shape"], "tuple[int, ...]"),
    **dict.fromkeys(["ndim"], "int"),
    **dict.fromkeys(["checkpoint", "grad", "value_and_grad"], "Callable[..., Any]"),
    **dict.fromkeys(["array2string", "array_repr", "array_str"], "str"),
    "histogram2d": _THREE,
    "histogramdd": "tuple[Array, list[Array]]",
    "ndenumerate": "Iterator[tuple[tuple[int, ...], Any]]",
    "polyfit": "Any",
    **{f"atleast_{n}d": "Any" for n in (1, 2, 3)},
    "Array.dumps": "bytes",
    "Array.item": "Any",
    "Array.numpy": "HostArray",
    "Array.register_hook": "Any",
    "Array.tobytes": "bytes",
    "Array.tolist": "Any",
    "counters": "dict[str, int]",
    "data.Characters.decode": "str",
    "data.collate": "Any",
    "data.load_npz": "Any",
    "data.load_text": "tuple[Array, Characters]",
    "data.random_split": "list[Subset]",
    "data.TensorDataset.batch": _SOME,
    "data.Windows.batch": "tuple[Any, Any]",
    "device": "Device",
    "devices": "tuple[Device, ...]",
    "get_matmul_precision": "str",
    "get_printoptions": "dict[str, Any]",
    "gradient": "Any",
    "indices": "Any",
    "intersect1d": "Any",
    "launch_log": "list[LaunchRecord]",
    "linalg.lstsq": "tuple[Array, Array, Any, Array]",
    "load": "Any",
    "load_state": "dict[str, Any]",
    "memory_info": "MemoryInfo",
    "nn.atomic": "AbstractContextManager[None]",
    "nn.fit": "dict[str, list[Any]]",
    "nn.init.calculate_gain": "float",
    "nn.Module.apply": "Self",
    "nn.Module.buffers": "Iterator[Array]",
    "nn.Module.bfloat16": "Self",
    "nn.Module.children": "Iterator[Module]",
    "nn.Module.cpu": "Self",
    "nn.Module.cuda": "Self",
    "nn.Module.double": "Self",
    "nn.Module.eval": "Self",
    "nn.Module.float": "Self",
    "nn.Module.get_parameter": "Parameter",
    "nn.Module.get_submodule": "Module",
    "nn.Module.half": "Self",
    "nn.Module.load_state_dict": "tuple[list[str], list[str]]",
    "nn.Module.modules": "Iterator[Module]",
    "nn.Module.named_buffers": "Iterator[tuple[str, Array]]",
    "nn.Module.named_children": "Iterator[tuple[str, Module]]",
    "nn.Module.named_modules": "Iterator[tuple[str, Module]]",
    "nn.Module.named_parameters": "Iterator[tuple[str, Array]]",
    "nn.Module.parameters": "Iterator[Array]",
    "nn.Module.register_forward_hook": "Any",
    "nn.Module.register_forward_pre_hook": "Any",
    "nn.Module.requires_grad_": "Self",
    "nn.Module.state_dict": "dict[str, Array]",
    "nn.Module.to": "Self",
    "nn.Module.train": "Self",
    "nn.ModuleDict.items": "Any",
    "nn.ModuleDict.keys": "Any",
    "nn.ModuleDict.values": "Any",
    "amp.GradScaler.get_scale": "float",
    "amp.GradScaler.is_enabled": "bool",
    "amp.GradScaler.scale": "Any",
    "amp.GradScaler.state_dict": "dict[str, float]",
    "amp.GradScaler.step": "Any",
    "amp.is_autocast_enabled": "bool",
    "optim.Optimizer.state_dict": "dict[str, Any]",
    "optim.Optimizer.step": "Any",
    "optim.lr_scheduler.LRScheduler.get_last_lr": "list[float]",
    "optim.lr_scheduler.LRScheduler.state_dict": "dict[str, Any]",
    "printoptions": "AbstractContextManager[Any]",
    "random.Generator.bytes": "builtins.bytes",
    "random.bytes": "builtins.bytes",
    "random.Generator.spawn": "list[Generator]",
    "random.default_rng": "Generator",
    "size": "int",
}

# Axes: of these one, several as a tuple, or None for all.
_SEVERAL = """all amax amin any average count_nonzero expand_dims flip logsumexp max mean median min
    nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar
    percentile prod ptp quantile roll size squeeze std sum var gradient linalg.norm
    linalg.vector_norm"""
SPECIAL |= {f"{name}.axis": "Axis" for name in _SEVERAL.split()}
_METHODS = "all any max mean min prod std sum var squeeze"
SPECIAL |= {f"Array.{name}.axis": "Axis" for name in _METHODS.split()}
_PLACES = ["linalg.norm.x", "linalg.matrix_norm.x", "linalg.vector_norm.x"]
SPECIAL |= dict.fromkeys(_PLACES, "Array | HostArray")

# Functions whose result depends on an argument: [({parameter: its hint}, the result), ...].
_FLAG, _NUMBER = "Literal[False]", [({"size": "None"}, "float"), ({"size": "ShapeLike"}, "Array")]
_DRAWN = {
    "float": """beta chisquare exponential f gamma gumbel laplace logistic lognormal normal pareto
        power rayleigh standard_cauchy standard_exponential standard_gamma standard_normal
        standard_t triangular uniform weibull""",
    "int": "binomial geometric poisson",
    "Any": "choice",
}
OVERLOADS = {
    "unique": [
        (dict.fromkeys(("return_index", "return_inverse", "return_counts"), _FLAG), "Array"),
        ({}, _SOME),
    ],
    "linspace": [({"retstep": _FLAG}, "Array"), ({}, "tuple[Array, float]")],
    "average": [({"returned": _FLAG}, "Array"), ({}, _TWO)],
    "dense": [({"with_preactivation": _FLAG}, "Array"), ({}, _TWO)],
    "autograd.grad": [({"allow_unused": _FLAG}, _SOME), ({}, "tuple[Array | None, ...]")],
    "linalg.svd": [({"compute_uv": "Literal[True]"}, "_SVDResult"), ({}, "Array")],
    **{
        f"random.{name}": _NUMBER
        for name in ["random_sample", "ranf", "sample", "Generator.random", "random"]
    },
    **{
        f"random.{place}{name}": [({"size": "None"}, result), ({"size": "ShapeLike"}, "Array")]
        for place in ("Generator.", "")
        for result, names in _DRAWN.items()
        for name in names.split()
    },
    "random.Generator.integers": [({"size": "None"}, "int"), ({"size": "ShapeLike"}, "Array")],
    "random.randint": [({"size": "None"}, "int"), ({"size": "ShapeLike"}, "Array")],
    **{
        name: [
            ({"function": "None"}, "AbstractContextManager[Any]"),
            ({"function": "_F"}, "_F"),
        ]
        for name in ("no_grad", "enable_grad")
    },
}

# Properties and plain attributes.
ATTRIBUTES = {
    "Stream": {"device": "Device", "handle": "int | None"},
    "implicit_transfers": {"before": "str | None"},
    "Array": {
        "shape": "tuple[int, ...]",
        "dtype": "DType",
        "strides": "tuple[int, ...]",
        "flat": "Any",
        "flags": "Any",
        "device": "Device",
        "ndim": "int",
        "size": "int",
        "itemsize": "int",
        "nbytes": "int",
        "requires_grad": "bool",
        "grad": "Any",  # None before there is one
        "is_leaf": "bool",
    },
    "Device": {"name": "str", "type": "str", "index": "int", "limits": "Any"},  # None: "cpu"
    "DeviceLimits": {"compute_capability": "tuple[int, int]"},
    "MemoryInfo": dict.fromkeys(vg.MemoryInfo._fields, "Any"),  # int, or None if it is not known
    "CUDAError": {"code": "int", "name": "str", "operation": "str"},
    "OutOfMemoryError": {
        **dict.fromkeys(("requested", "free", "reserved"), "int | None"),
        "device": "str",
    },
    "finfo": {
        "dtype": "DType",
        "bits": "int",
        **dict.fromkeys(
            [
                "eps",
                "epsneg",
                "max",
                "min",
                "resolution",
                "smallest_normal",
                "smallest_subnormal",
                "tiny",
            ],
            "float",
        ),
    },
    "iinfo": {"dtype": "DType", **dict.fromkeys(("bits", "max", "min"), "int")},
    "dtypes.BFloat16": {
        **dict.fromkeys(("name", "kind", "char"), "str"),
        "itemsize": "int",
        "dtype": "np.dtype[Any]",
        "type": "type[Any]",
    },
    "data.Characters": {"characters": "str"},
    "data.DataLoader": {"dataset": "Dataset", "batch_size": "int"},
    "data.Subset": {"dataset": "Dataset"},
    "data.TensorDataset": {"tensors": "tuple[Array | HostArray, ...]"},
    "data.Windows": {"values": "Array | HostArray", "length": "int"},
    "nn.Module": {"training": "bool"},
    "nn.MultiheadAttention": {},
    "optim.Optimizer": {
        "param_groups": "list[dict[str, Any]]",
        "defaults": "dict[str, Any]",
        "state": "Any",
    },
    "optim.lr_scheduler.LRScheduler": {"optimizer": "Optimizer", "last_epoch": "int"},
    "random.Generator": {"device": "Device", "state": "dict[str, Any]"},
}

# Python's own methods, where a class has them: (parameters, result) or, of operators, an Operand.
_BINARY = "add sub mul truediv floordiv mod pow lshift rshift and or xor matmul"
_ORDER = {f"__{name}__": ("other: Operand", "Array") for name in ["lt", "le", "gt", "ge"]}
_EQUAL = {f"__{name}__": ("other: Any", "Array") for name in ("eq", "ne")}
DUNDERS = {
    **{
        f"__{side}{name}__": ("other: Operand", "Array")
        for side in ("", "r", "i")
        for name in _BINARY.split()
    },
    **_ORDER,
    **{f"__{name}__": ("", "Array") for name in ["neg", "pos", "abs", "invert", "copy"]},
    "__divmod__": ("other: Operand", _TWO),
    "__rdivmod__": ("other: Operand", _TWO),
    "__round__": ("ndigits: int | None = 0", "Array"),
    "__bool__": ("", "bool"),
    "__int__": ("", "int"),
    "__float__": ("", "float"),
    "__complex__": ("", "complex"),
    "__index__": ("", "int"),
    "__len__": ("", "int"),
    "__contains__": ("value: Any", "bool"),
    "__format__": ("spec: str", "str"),
    "__enter__": ("", "Self"),
    "__exit__": ("*error: Any", "None"),
}
# Of a class: where it differs from what stands above.
OF_CLASS = {
    "Array": {
        **_EQUAL,
        "__getitem__": ("key: Any", "Array"),
        "__setitem__": ("key: Any, value: Any", "None"),
        "__iter__": ("", "Iterator[Array]"),
        "__array__": ("dtype: Any = None, copy: bool | None = None", "HostArray"),
        "__array_ufunc__": ("ufunc: Any, method: str, *inputs: Any, **options: Any", "Any"),
        "__array_namespace__": ("*, api_version: str | None = None", "Any"),
        "__dlpack__": (
            "*, stream: Any = None, max_version: tuple[int, int] | None = None, "
            "dl_device: tuple[int, int] | None = None, copy: bool | None = None",
            "Any",
        ),
        "__dlpack_device__": ("", "tuple[int, int]"),
    },
    "nn.Module": {
        "__call__": ("*args: Any, **options: Any", "Any"),
        "__getattr__": ("name: str", "Any"),
    },
    "nn.ModuleList": {
        "__getitem__": ("index: Any", "Any"),
        "__setitem__": ("index: int, module: Module", "None"),
        "__delitem__": ("index: Any", "None"),
        "__iter__": ("", "Iterator[Module]"),
    },
    "nn.ModuleDict": {
        "__getitem__": ("key: str", "Any"),
        "__setitem__": ("key: str, module: Module", "None"),
        "__delitem__": ("key: str", "None"),
        "__iter__": ("", "Iterator[str]"),
    },
    "data.Dataset": {"__getitem__": ("index: int", "Any")},
    "data.DataLoader": {"__iter__": ("", "Iterator[Any]")},
}
OF_CLASS["amp.GradScaler"] = {"update": ("new_scale: float | None = None", "None")}
OF_CLASS["nn.Sequential"] = OF_CLASS["nn.ModuleList"]

# Functions whose result is a named tuple of Arrays, which is private at run time, too.
RECORDS = {
    "unique_all": sets.UniqueAll,
    "unique_counts": sets.UniqueCounts,
    "unique_inverse": sets.UniqueInverse,
    "linalg.svd": decompositions.SVDResult,
    "linalg.qr": decompositions.QRResult,
    "linalg.eigh": decompositions.EighResult,
    "linalg.eig": decompositions.EigResult,
    "linalg.slogdet": systems.SlogdetResult,
}
# Classes whose objects are made by functions.
MADE_ELSEWHERE = {"Array", "random.Generator"}
# Methods that a class of one's own defines, and those that call them: (parameters, result).
_GROUP = "group: dict[str, Any]"
HOOKS = {
    "forward": ("*args: Any, **options: Any", "Any"),
    "extra_repr": ("", "str"),
    "reset_parameters": ("", "None"),
    "check": (_GROUP, "None"),
    "update": (f"p: Array, g: Array, state: dict[str, Any], {_GROUP}", "tuple[Array, Any]"),
    "rate": ("base: float, step: int, group: Any", "float"),
    "rates": ("step: int", "list[float]"),
}
_SIZED = "dtype: DTypeLike | None = None, device: DeviceLike | None = None"
for _name in ("rand", "randn"):
    OVERLOADS[f"random.{_name}"] = [
        (f"*, {_SIZED}", "float"),
        (f"size: int, /, *sizes: int, {_SIZED}", "Array"),
    ]

# Functions give NumPy's arrays where all operands are such. The hints of operands, with what stands
# for them if they are Arrays; and functions that make Arrays of all.
OF_ARRAYS = {
    "Operand": "Array",
    "ArrayLike": "Array",
    "Array | HostArray": "Array",
    "Sequence[Array | HostArray]": "Sequence[Array]",
    "Sequence[ArrayLike]": "Sequence[Array]",
    "Array | HostArray | Sequence[Array | HostArray]": "Array | Sequence[Array]",
}
ALWAYS_ARRAYS = {"empty_like", "full", "full_like", "ones_like", "zeros_like"}
