"""The manual's tables for those who come from NumPy, torch or CuPy.

NumPy is asked for its names. Those of torch 2.15 and CuPy 14.2 stand in names.json, as they need
not be there. What there is under the same name is asked of the package, other names and reasons of
pyvecgpu/names.py.
"""

import json
from pathlib import Path

import numpy as np

import pyvecgpu as vg
from pyvecgpu.names import NUMPYS, USE, WITHOUT

LIBRARIES = ("NumPy", "torch", "CuPy")
RECORDED = json.loads((Path(__file__).parent / "names.json").read_text(encoding="utf-8"))

INTRODUCTIONS = {
    "NumPy": """\
Most programs run with `import pyvecgpu as np` up to the first line that needs what is listed below.
What differs where the name is the same:

- **Python floats make float32 arrays**: `vg.asarray(0.5).dtype` is float32, which GPUs compute
  quickly; `vg.set_default_dtype(vg.float64)` is NumPy's way. NumPy's arrays keep their dtype.
- **What goes in comes out**: functions of NumPy's arrays compute on the device and return NumPy's
  arrays; of Arrays they return Arrays, which stay on their device, and so do reductions:
  `vg.sum(x)` is an Array without axes, `.item()` makes a number of it.
- **Lists are made arrays by `vg.asarray` alone**: `vg.exp([1, 2])` is a TypeError.
- **Values come to the host only when asked to**: by `x.numpy()`, `x.item()`, `x.tolist()`, `print`.
- **Operations return before they are done**; reading waits, and so does `vg.synchronize()`.
- **Random streams are others** than NumPy's, the same on all devices.
- Division by zero and the like give inf and nan without a warning on a card.
""",
    "torch": """\
Arrays behave like NumPy's, layers and optimisers like torch's. What differs:

- **Axes are `axis`, not `dim`**, and `keepdims`, not `keepdim`, in functions of arrays.
- **Results of `max(x, axis)` are values alone**; `vg.argmax` has the places.
- **Promotion is NumPy's**: int64 and float32 give float64; Python's numbers are weak.
- **Devices** are "cuda", "cuda:1", "cpu" and "sim"; new arrays are made on the GPU, if there is
  one, or where `with vg.device(...)` says: `.cuda()` is not needed.
- **Gradients** are torch's: `requires_grad_()`, `backward()`, `.grad`, `vg.no_grad()`; besides,
  `vg.grad(function)` gives a function.
- **Methods of arrays are NumPy's**: `x.sum(axis=0)`, not all of torch's.
""",
    "CuPy": """\
Both follow NumPy. What differs:

- **Python floats make float32 arrays**, as in torch; `vg.set_default_dtype(vg.float64)` changes it.
- **One program runs everywhere**: without a GPU on the CPU, and on "sim", a simulated card.
- **`x.numpy()`** is `x.get()` or `cupy.asnumpy(x)`; `vg.asarray` is `cupy.asarray`.
- **Functions take NumPy's arrays**, too, and return NumPy's then.
- **Gradients, layers and optimisers** are in the package; kernels of one's own are not: the C
  library is the place for them.
""",
}
# The same name, and something else is meant.
OTHERWISE = {
    "torch": {
        "equal": "where elements are the same; torch's one answer is `vg.array_equal`",
        "index_add": "in place: `vg.index_add(x, indices, values, axis=0)`",
        "max": "values alone, and so do `min`, `median` and `sort`",
        "meshgrid": '`indexing="xy"` by default; torch\'s is "ij"',
        "nonzero": "a tuple of indices; torch's matrix is `vg.argwhere`",
        "select": "by conditions; torch's is `x[i]`",
        "split": "into so many parts, or at places; torch's is by sizes",
        "std": "divided by n, as `var`; torch's default is `correction=1`",
        "transpose": "all axes in reverse; torch's two axes are `vg.swapaxes`",
    },
}
# Their module: ours, with the page's heading.
PARTS = {
    "NumPy": {"numpy": "", "numpy.linalg": "linalg", "numpy.fft": "fft", "numpy.random": "random"},
    "torch": {
        "torch": "",
        "torch.linalg": "linalg",
        "torch.fft": "fft",
        "torch.nn": "nn",
        "torch.nn.functional": "nn.functional",
        "torch.nn.init": "nn.init",
        "torch.optim": "optim",
        "torch.optim.lr_scheduler": "optim.lr_scheduler",
        "torch.utils.data": "data",
    },
    "CuPy": {"cupy": "", "cupy.linalg": "linalg", "cupy.fft": "fft", "cupy.random": "random"},
}


def theirs(module):
    """Return the public names of a module of another library."""
    if not module.startswith("numpy"):
        return RECORDED[module]
    found = np
    for part in module.split(".")[1:]:
        found = getattr(found, part)
    return sorted(name for name in found.__all__ if name[0] != "_")


def ours(part):
    """{name: full name} of a module of this package; of `random` the methods of Generator, too."""
    module = vg
    for name in filter(None, part.split(".")):
        module = getattr(module, name)
    prefix = f"vg.{part}.".replace("..", ".")
    names = getattr(module, "__all__", None) or [n for n in vars(module) if n[0] != "_"]
    found = {name: prefix + name for name in (*names, *(() if part else NUMPYS))}
    if part == "random":
        own = [name for name in dir(vg.random.Generator) if name[0] != "_"]
        found = {**{name: f"vg.random.Generator.{name}" for name in own}, **found}
    if part == "nn.functional":  # what is a function of arrays as well
        found = {**{name: f"vg.{name}" for name in vg.__all__}, **found}
    return found


def link(full, homes):
    """Return a link to a name's place in the reference, or the name."""
    name = full.rpartition(".")[2]
    home = homes.get(full)
    if home is None and full.startswith("vg.random.Generator."):
        home = homes["vg.random.Generator"]
    return f"[{name}](../reference/{home}#{full[3:]})" if home else f"`{name}`"


def section(module, part, homes):
    """Return the tables of one module."""
    here = ours(part)
    names = theirs(module)
    same = [link(here[name], homes) for name in names if name in here]
    other = {name: USE[name] for name in names if name not in here and name in USE}
    rest = [name for name in names if name not in here and name not in USE]
    lines = [f"## {module}", f"The same name, {len(same)} of {len(names)}: {', '.join(same)}."]
    if other:
        rows = [f"| `{module}.{n}` | `{o.replace('pyvecgpu.', 'vg.')}` |" for n, o in other.items()]
        lines += ["Another name:", "\n".join(["| There | Here |", "|-|-|", *rows])]
    meant = OTHERWISE.get(module, {})
    if meant:
        rows = [f"| {link(here[name], homes)} | {what} |" for name, what in meant.items()]
        lines += ["Of these mean something else:", "\n".join(["| Name | Here |", "|-|-|", *rows])]
    groups = {}
    for name in rest:
        reason = WITHOUT.get(name, "not here, or not yet").replace("numpy.{}", "NumPy's")
        groups.setdefault(reason, []).append(f"`{name}`")
    if groups:
        rows = [f"| {', '.join(names)} | {reason} |" for reason, names in groups.items()]
        lines += ["Not here:", "\n".join(["| Names | Why |", "|-|-|", *rows])]
    return "\n\n".join(lines)


def page(library, homes):
    """Return the page for those who come from a library; homes: {full name: page of it}."""
    parts = [f"# Coming from {library}", INTRODUCTIONS[library]]
    parts += [section(module, part, homes) for module, part in PARTS[library].items()]
    return "\n\n".join(parts)
