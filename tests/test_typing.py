"""Type hints: the .pyi files are up to date, true of what examples give, and known to checkers.

mypy and pyright check the files themselves, every example of the manual as a typed program, and
programs with mistakes, which they have to find.
"""

import ast
import doctest
import functools
import inspect
import json
import os
import re
import subprocess
import sys
import types
import typing
from pathlib import Path

import examples
import helpers
import numpy as np
import pytest

import pyvecgpu as vg
from pyvecgpu import typing as hints

STUBS = sorted((helpers.ROOT / "pyvecgpu").rglob("*.pyi"))
OWN = [*map(str, STUBS), str(helpers.ROOT / "pyvecgpu" / "typing.py")]
DOCUMENTED = examples.documented()
# What a class of one's own defines, or what its example calls by another class.
HOOKS = {"vg.nn.Module.forward"}  # and what only a GPU can
HOOKS |= set() if vg.is_available("cuda") else {"vg.nn.Module.cuda"}


def run(command, folder):
    environment = {**os.environ, "PYTHONPATH": str(helpers.ROOT)}
    command = [str(part) for part in command]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


def mypy(folder, *files, strict=True):
    """What mypy says, a line each; nothing if it has no objection."""
    options = ["--strict"] if strict else []
    command = [sys.executable, "-m", "mypy", *options, "--cache-dir", folder / "cache", *files]
    path = folder / "mypy.ini"
    path.write_text(f"[mypy]\nmypy_path = {helpers.ROOT}\n")
    result = run([*command, "--config-file", path], folder)
    assert result.returncode in (0, 1), result.stdout + result.stderr
    return [line for line in result.stdout.splitlines() if not line.startswith(("Succ", "Found"))]


def pyright(folder, *files):
    """What pyright says, a line each."""
    settings = {"extraPaths": [str(helpers.ROOT)], "include": [str(file) for file in files]}
    settings |= {"reportUnusedExpression": "none", "pythonVersion": "3.12"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"]
    result = run([*command, "-p", folder / "pyrightconfig.json"], folder)
    assert result.returncode in (0, 1), result.stdout + result.stderr
    found = json.loads(result.stdout)["generalDiagnostics"]
    lines = [(one["range"]["start"]["line"] + 1, one["severity"], one["message"]) for one in found]
    return [f"{line}: {severity}: {message}" for line, severity, message in lines]


CHECKERS = [
    pytest.param(mypy, marks=pytest.mark.needs("mypy"), id="mypy"),
    pytest.param(pyright, marks=pytest.mark.needs("pyright"), id="pyright"),
]


def test_stubs_are_what_the_generator_writes():
    script = helpers.ROOT / "docs" / "reference" / "stubs.py"
    result = run([sys.executable, script, "--check"], helpers.ROOT)
    assert result.returncode == 0, f"{result.stderr[-500:]}: run `make stubs`"
    assert (helpers.ROOT / "pyvecgpu" / "py.typed").is_file()
    assert len(STUBS) > 10


def test_every_hint_is_of_use():
    script = "import hints, stubs; stubs.files(); rows = (hints.PARAMETERS, hints.SPECIAL, "
    script += (
        "hints.RESULTS, hints.OVERLOADS); print({k for row in rows for k in row} - stubs.USED)"
    )
    result = run([sys.executable, "-c", script], helpers.ROOT / "docs" / "reference")
    assert result.stdout.strip() == "set()", result.stdout + result.stderr


@pytest.mark.parametrize("checker", CHECKERS)
def test_the_hints_themselves(checker, tmp_path):
    assert checker(tmp_path, *OWN) == []


def typed_program():
    """All examples as one program, a function each."""
    lines = ["import numpy as np", "import pyvecgpu as vg", ""]
    for number, (name, value) in enumerate(DOCUMENTED.items()):
        lines += ["", f"def example_{number}() -> None:  # {name}"]
        for example in doctest.DocTestParser().get_examples(value.__doc__):
            lines += [f"    {line}" for line in example.source.splitlines()]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("checker", CHECKERS)
def test_examples_check_clean(checker, tmp_path):
    file = tmp_path / "every_example.py"
    file.write_text(typed_program())
    assert file.read_text().count("def example_") == len(DOCUMENTED)
    options = {"strict": False} if checker is mypy else {}  # examples define functions
    assert checker(tmp_path, file, **options) == []


PROGRAM = """\
import numpy as np
import pyvecgpu as vg
from pyvecgpu.typing import ArrayLike, DeviceLike


class Net(vg.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = vg.nn.Sequential(vg.nn.Linear(1, width), vg.nn.Tanh(), vg.nn.Linear(width, 1))

    def forward(self, x: vg.Array) -> vg.Array:
        result: vg.Array = self.layers(x)
        return result


def normalised(values: ArrayLike, axis: int | None = None) -> vg.Array:
    x = vg.asarray(values)
    return (x - vg.mean(x, axis=axis, keepdims=True)) / vg.std(x, axis=axis, keepdims=True)


def place(values: ArrayLike, device: DeviceLike) -> vg.Array:
    return vg.asarray(values, dtype=vg.float16, device=device)


with vg.device("cpu") as current:
    x = vg.linspace(-1, 1, 64).reshape(-1, 1)
    total: float = x.sum().item()
    shape: tuple[int, ...] = (x @ x.T).shape
    host = np.asarray(x.numpy())
    net = Net(8).to(current)
    optimiser = vg.optim.Adam(net.parameters(), lr=1e-2)
    for inputs, targets in vg.data.DataLoader(vg.data.TensorDataset(x, vg.sin(3 * x)), 16):
        loss = vg.nn.functional.mse_loss(net(inputs), targets)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    values, vectors = vg.linalg.eigh(vg.eye(3))
    q = vg.linalg.qr(vg.eye(3)).Q
    where = vg.nonzero(x > 0)[0]
    rng = vg.random.default_rng(7)
    noise = rng.normal(size=(3, 2)) + rng.normal()
    x[2:5] = 0
    x += 1
    print(normalised(x), place([1, 2], vg.device("cpu")), -x, 1 / x, abs(x), len(x), float(x[0, 0]))
"""

REVEALED = {
    "vg.ones(3)": "Array",
    "vg.ones(3) + 1": "Array",
    "2.0 * vg.ones(3)": "Array",
    "vg.add(1, vg.ones(3))": "Array",
    "vg.concat([vg.ones(3), vg.ones(2)])": "Array",
    "vg.ones(3) > 0": "Array",
    "vg.ones(3).T": "Array",
    "vg.ones(3).shape": "tuple[int, ...]",
    "vg.ones(3).sum(axis=0)": "Array",
    "vg.allclose(vg.ones(3), 1)": "bool",
    "vg.random.rand(2)": "Array",
    "vg.random.rand()": "float",
    "vg.random.default_rng(1).normal(0, 1, 3)": "Array",
    "vg.random.default_rng(1).integers(3)": "int",
    "vg.unique(vg.ones(3))": "Array",
    "vg.unique(vg.ones(3), return_counts=True)": "tuple[Array, ...]",
    "vg.linalg.svd(vg.eye(2)).S": "Array",
    "vg.device('cpu')": "Device",
    "vg.split(vg.ones(4), 2)": "list[Array]",
}

MISTAKES = {
    "vg.nonexistent": "nonexistent",
    "vg.ones(3).nonexistent": "nonexistent",
    "vg.linalg.nonexistent": "nonexistent",
    "vg.nn.functional.nonexistent": "nonexistent",
    "vg.ones('a')": "str|Literal",
    "vg.sum(vg.ones(3), axes=0)": "axes|overload",
    "vg.abs(x=vg.ones(3))": "x|overload",
    "vg.exp('1')": "str|Literal",
    "vg.ones(3).sum().item('3')": "str|Literal",
    "vg.add(None, vg.ones(1))": "None",
}


@pytest.mark.parametrize("checker", CHECKERS)
def test_an_ordinary_program_checks_clean(checker, tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    assert checker(tmp_path, file) == []


def test_the_program_runs(capsys):
    exec(compile(PROGRAM, "program", "exec"), {"__name__": "program"})
    assert capsys.readouterr().out


@pytest.mark.parametrize("checker", CHECKERS)
def test_what_is_revealed(checker, tmp_path):
    file = tmp_path / "revealed.py"
    lines = ["import pyvecgpu as vg", *(f"reveal_type({code})" for code in REVEALED)]
    file.write_text("\n".join(lines) + "\n")
    said = checker(tmp_path, file)
    assert len(said) == len(REVEALED)
    for line, expected in zip(said, REVEALED.values(), strict=True):
        line = re.sub(r"(pyvecgpu|builtins)\.(\w+\.)*", "", line)
        assert line.endswith(f'is "{expected}"'), line


@pytest.mark.parametrize("checker", CHECKERS)
def test_mistakes_are_found(checker, tmp_path):
    file = tmp_path / "mistakes.py"
    file.write_text("\n".join(["import pyvecgpu as vg", *MISTAKES]) + "\n")
    said = checker(tmp_path, file)
    for number, (code, word) in enumerate(MISTAKES.items(), 2):
        here = [line for line in said if re.search(rf"(^|:){number}: error", line)]
        assert here and re.search(word, " ".join(here)), f"{code} passes: {said}"


# Results, as they are ----------------------------------------------------------------------------


def results_of_stubs():
    """{full name: the hints of its results}, read from the .pyi files: several of overloads."""
    found = {}
    for file in STUBS:
        parts = file.relative_to(helpers.ROOT / "pyvecgpu").with_suffix("").parts
        parts = [part for part in parts if part not in ("__init__", "array")]
        tree = ast.parse(file.read_text())
        prefix = ".".join(["vg", *parts])
        for node in tree.body:
            owner = f"{prefix}.{node.name}" if isinstance(node, ast.ClassDef) else prefix
            for one in node.body if isinstance(node, ast.ClassDef) else [node]:
                if isinstance(one, ast.FunctionDef):
                    hint = ast.unparse(one.returns).replace("builtins.", "")
                    found.setdefault(f"{owner}.{one.name}", set()).add(hint)
    return found


RESULTS = results_of_stubs()


def fits(value, hint):
    """Whether a value is of the type that a hint names."""
    tree = ast.parse(hint, mode="eval").body if isinstance(hint, str) else hint
    if isinstance(tree, ast.BinOp):
        return fits(value, tree.left) or fits(value, tree.right)
    if isinstance(tree, ast.Constant):
        return value is None
    if isinstance(tree, ast.Subscript):
        items = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
        name = tree.value.id
        if name == "tuple" and isinstance(value, tuple):
            if len(items) == 2 and getattr(items[1], "value", None) is ...:
                return all(fits(one, items[0]) for one in value)
            return len(value) == len(items) and all(map(fits, value, items))
        if name == "list" and isinstance(value, list):
            return all(fits(one, items[0]) for one in value)
        if name == "dict" and isinstance(value, dict):
            return all(fits(k, items[0]) and fits(v, items[1]) for k, v in value.items())
        return name in ("Callable", "AbstractContextManager", "Iterator")
    name = tree.id
    if name == "DType":
        return isinstance(value, (np.dtype, type(vg.bfloat16)))
    if name.startswith("_"):
        return type(value).__name__ == name[1:] or name == "_F"
    kinds = {"Any": object, "Self": object, "HostArray": np.ndarray, "Array": vg.Array}
    kinds |= {c.__name__: c for c in (int, float, complex, bool, str, bytes)}
    classes = [vars(module)[name] for module in examples.MODULES.values() if name in vars(module)]
    return isinstance(value, kinds.get(name) or classes[0])


def spied(name, function, wrong, seen):
    """Return a function that looks at its results."""

    @functools.wraps(function)
    def call(*arguments, **options):
        result = function(*arguments, **options)
        seen.add(name)
        hints_of = RESULTS[name] - {"Any"} or {"Any"}  # Any: of NumPy's arrays
        if not any(fits(result, hint) for hint in hints_of):
            wrong.append(f"{name} gave {type(result).__name__}, not {RESULTS[name]}")
        return result

    return call


def spied_module(path, module, wrong, seen):
    """Return a module like another one, whose functions look at their results."""
    double = types.ModuleType(path)
    double.__dict__.update(vars(module))
    for name in examples.public_names(module):
        value = getattr(module, name)
        if inspect.ismodule(value) and f"{path}.{name}" in examples.MODULES:
            value = spied_module(f"{path}.{name}", value, wrong, seen)
        elif inspect.isfunction(value) and f"{path}.{name}" in RESULTS:
            value = spied(f"{path}.{name}", value, wrong, seen)
        setattr(double, name, value)
    return double


def test_results_are_what_the_hints_say(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    wrong, seen = [], set()
    with monkeypatch.context() as patch:
        for path, cls in examples.CLASSES.items():
            for name in dir(cls):
                value = inspect.getattr_static(cls, name)
                if inspect.isfunction(value) and f"{path}.{name}" in RESULTS:
                    patch.setattr(cls, name, spied(f"{path}.{name}", value, wrong, seen))
        double = spied_module("vg", vg, wrong, seen)
        for name, value in DOCUMENTED.items():
            found = doctest.DocTestParser().get_examples(value.__doc__)
            test = doctest.DocTest(found, {"vg": double, "np": np}, name, None, None, None)
            said = []
            runner = doctest.DocTestRunner(examples.Checker(), verbose=False)
            with vg.device("cpu"):
                runner.run(test, out=said.append)
            assert not said, "".join(said)
    assert not wrong, "\n".join(wrong)
    functions = {n for n in RESULTS if inspect.isfunction(DOCUMENTED.get(n))}
    told = {DOCUMENTED[name].__doc__ for name in seen & set(DOCUMENTED)}  # others share it
    unseen = {n for n in functions - seen if DOCUMENTED[n].__doc__ not in told}
    assert unseen == HOOKS, "no example calls it"


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (1, "int", True),
        (1.5, "int", False),
        (None, "Array | None", True),
        ((1, 2), "tuple[int, ...]", True),
        ((1, "a"), "tuple[int, ...]", False),
        ((1, 2, 3), "tuple[int, int]", False),
        ({"a": [1]}, "dict[str, list[int]]", True),
        ({"a": ["b"]}, "dict[str, list[int]]", False),
        (vg.bfloat16, "DType", True),
    ],
)
def test_what_fits(value, hint, expected):
    assert fits(value, hint) == expected


def test_types_for_programs():
    assert vg.Array in typing.get_args(hints.Operand) and type(vg.bfloat16) in typing.get_args(
        hints.DType
    )
    assert sorted(hints.__all__) == sorted(set(hints.__all__))
    assert Path(hints.__file__).name == "typing.py"
