"""States of models in files: dicts of arrays by name, and what optimisers and schedules keep.

A file is NumPy's .npz without pickles: each array is an entry, whose name is the way to it, such as
"model/0.weight". What is not an array stands in one more entry, as JSON. A path that ends with
.safetensors has that format, by its library, for dicts of arrays alone.
"""

import os
import struct

import numpy as np

from ..array import Array
from ..dtypes import parse_dtype
from .arguments import is_host
from .files import _arrays, _values, _write, opened, read_npz

__all__ = ["load_state", "save_state"]

_STRUCTURE = "__structure__"
_TENSORS = ".safetensors"
_TAKEN = ("file", "allow_pickle", _STRUCTURE)  # names that numpy.savez and this file have


def save_state(path, state, /):
    """Write a state to a file: a dict by name of arrays, or of dicts, lists, numbers, strings, ...

    The file is there as a whole, or what was there before still is. path: is taken as it is.
    A file that was there keeps its mode. TypeError: anything else in the state. ValueError: it lies
    within itself, or too deep. OSError: it cannot be written. ImportError: safetensors is not
    installed.

    >>> net = vg.nn.Linear(3, 2)
    >>> vg.save_state("net.npz", net.state_dict())
    >>> sorted(vg.load_state("net.npz"))
    ['bias', 'weight']
    """
    if not isinstance(state, dict):
        raise TypeError(f"save_state takes a dict, not {type(state).__name__}")
    path = os.fsdecode(os.fspath(path))
    if path.endswith(_TENSORS):
        return _save_tensors(path, state)
    arrays = {}
    try:
        structure = _packed(state, "", arrays)
        flat = all(isinstance(x, (Array, np.ndarray)) for x in state.values())
        if not flat or list(arrays) != list(state):
            import json

            text = json.dumps(structure, separators=(",", ":")).encode()
            arrays[_STRUCTURE] = np.frombuffer(text, np.uint8)
    except RecursionError:
        raise ValueError("save_state: the state is nested too deep") from None
    _write(path, "", lambda stream: np.savez(stream, **arrays))


def load_state(path, /, *, device=None):
    """Return the state in a file of save_state, or in an .npz or .safetensors file of arrays.

    device: of its arrays. ValueError: no such file, or a damaged one. TypeError: a dtype that
    arrays cannot have. OSError: it cannot be read. ImportError: safetensors is not installed.

    >>> vg.save_state("run.npz", {"model": {"weight": vg.ones(2)}, "epoch": 3})
    >>> state = vg.load_state("run.npz")
    >>> state["epoch"], state["model"]["weight"].tolist()
    (3, [1.0, 1.0])
    """
    path = os.fsdecode(os.fspath(path))
    if path.endswith(_TENSORS):
        return _arrays("load_state", path, _load_tensors(path), device)
    found = read_npz("load_state", path)
    text = found.pop(_STRUCTURE, None)
    arrays = _arrays("load_state", path, found, device)
    if text is None:
        return arrays
    import json

    try:
        return _unpacked(json.loads(text.tobytes(), object_pairs_hook=_once), arrays)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"load_state: {path} is no state: {error!r}") from None


# What is not an array -----------------------------------------------------------------------------


def _packed(value, name, arrays, above=()):
    """Return a value for JSON, of one entry by its kind; arrays go into `arrays` under a name.

    above: ids of what the value lies in.
    """
    if isinstance(value, (Array, np.ndarray)):
        name = name or "array"
        while name in arrays or name in _TAKEN:
            name += "'"
        arrays[name] = _values("save_state", value)
        return {"array": name}
    if id(value) in above:
        raise ValueError(f"save_state: {name} is {type(value).__name__} that lies within itself")
    if isinstance(value, dict):
        items, above = [], (*above, id(value))
        for key, part in value.items():
            if not isinstance(key, (str, int)):
                raise TypeError(f"save_state: {name or 'the state'} has the key {key!r}")
            place = f"{name}/{key}" if name else str(key)
            items.append([key, _packed(part, place, arrays, above)])
        return {"dict": items}
    if isinstance(value, (list, tuple)):
        kind, above = "list" if isinstance(value, list) else "tuple", (*above, id(value))
        parts = [_packed(part, f"{name}/{i}", arrays, above) for i, part in enumerate(value)]
        return {kind: parts}
    if is_host(value):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"save_state: {name} is {type(value).__name__}, which a file cannot keep")


def _unpacked(value, arrays):
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "array":
        return arrays[content]
    if kind == "dict":
        return _once([(key, _unpacked(part, arrays)) for key, part in content])
    parts = [_unpacked(part, arrays) for part in content]
    if kind not in ("list", "tuple"):
        raise ValueError(f"there is a {kind!r} in it")
    return parts if kind == "list" else tuple(parts)


def _once(pairs):
    """Return the dict of some pairs. ValueError: a name is there twice, of which one would win."""
    found = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r} is there twice")
        found[name] = value
    return found


# safetensors --------------------------------------------------------------------------------------

# Its names of dtypes, which its own reader for NumPy does not all know.
_TENSOR_DTYPES = {"BOOL": "bool", "F16": "float16", "BF16": "bfloat16", "C64": "complex64"}
_TENSOR_DTYPES |= {f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)}
_TENSOR_DTYPES |= {f"U{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)}
_TENSOR_DTYPES |= {"F32": "float32", "F64": "float64"}


def _library():
    try:
        import safetensors.numpy
    except ImportError:
        raise ImportError(
            "files of safetensors need its library: pip install pyvecgpu[safetensors]"
        ) from None
    return safetensors


def _save_tensors(path, state):
    library = _library()
    for name, value in state.items():
        if not isinstance(name, str) or not isinstance(value, (Array, np.ndarray)):
            kind = type(value).__name__
            raise TypeError(f"save_state: safetensors has arrays by name, not {name!r}: {kind}")
    values = {name: np.asarray(_values("save_state", x), order="C") for name, x in state.items()}
    content = library.numpy.save(values)
    _write(path, "", lambda stream: stream.write(content))


def _load_tensors(path):
    library = _library()
    with opened("load_state", path) as stream:
        content = stream.read()
    try:
        found = library.deserialize(content)
        _check_names(content)
    except (library.SafetensorError, ValueError) as error:
        raise ValueError(f"load_state: {path}: {error}") from None
    return {name: _tensor(path, name, **tensor) for name, tensor in found}


def _check_names(content):
    """ValueError: a name is twice in the header, of which the library has checked all else."""
    import json

    (length,) = struct.unpack_from("<Q", content)
    json.loads(content[8 : 8 + length].decode(), object_pairs_hook=_once)


def _tensor(path, name, dtype, shape, data):
    """Return one array of a file of safetensors."""
    if dtype not in _TENSOR_DTYPES:
        raise ValueError(f"load_state: {path}: {name} is of {dtype}, which arrays cannot have")
    return np.frombuffer(data, parse_dtype(_TENSOR_DTYPES[dtype])).reshape(shape)
