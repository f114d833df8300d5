"""The package's own order: imports go one way, one seam to the backends, public names stand once.

All of it is read from the sources, so that what is imported only within a function counts as well.
"""

import ast
import importlib
import sys

import helpers
import pytest

import pyvecgpu as vg
from pyvecgpu import dispatch
from pyvecgpu.backends import METHODS

PACKAGE = helpers.ROOT / "pyvecgpu"
TOPICS = ["accumulating", "aliases", "applying", "arithmetic", "assigning", "binning", "bits",
          "choosing", "combined", "comparing", "complexes", "contractions", "creation",
          "differences",
          "elementwise", "exchange", "exponentials", "files", "gathering", "grids", "histograms",
          "joining", "layers", "layout", "linalg", "makers", "mathematics", "matrices", "nans",
          "neighbours", "nn", "padding", "polynomials", "printing", "quantiles", "queries",
          "ranges", "reductions", "scans", "searching", "sets", "sorting", "special", "states",
          "statistics", "texts", "windows"]  # fmt: skip

# The short ways of operators and their functions beside dispatch.apply.
SHORT_WAYS = {
    "dispatch.py": {"binary", "scalar", "unary"},
    "functions/short_operations.py": {"binary", "unary"},
    "backends/recording.py": {"empty", "slice", "copy_from_host"},  # numbers of a backend's own
}


def sources():
    """{module: path} of the whole package."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = ("pyvecgpu", *path.relative_to(PACKAGE).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = sources()


def parse(path):
    return ast.parse(path.read_text(), str(path))


def imported(module, tree):
    """The modules of the package that one imports, anywhere in it.

    A package is imported with each of its modules, by all but what lies within it.
    """
    package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in MODULES}
        if isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) + 1 - node.level]
            origin = ".".join([*(base if node.level else []), *filter(None, [node.module])])
            for alias in node.names:
                name = f"{origin}.{alias.name}"
                found |= {name if name in MODULES else origin} & set(MODULES)
    parents = {name.rpartition(".")[0] for name in found} - {"", "pyvecgpu"}
    return found | {parent for parent in parents if not f"{module}.".startswith(f"{parent}.")}


def cycle(graph):
    """A list of modules each of which imports the next, and the last the first; None: no cycle."""
    done, path = set(), []

    def visit(module):
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return None
        path.append(module)
        found = next(filter(None, map(visit, sorted(graph[module]))), None)
        path.pop()
        done.add(module)
        return found

    return next(filter(None, map(visit, sorted(graph))), None)


def test_imports_go_one_way():
    graph = {module: imported(module, parse(path)) for module, path in MODULES.items()}
    assert graph["pyvecgpu.nn.functional"] >= {"pyvecgpu.functions", "pyvecgpu.functions.nn"}
    assert "pyvecgpu.demo" in graph["pyvecgpu.__main__"], "imports within functions count"
    found = cycle(graph)
    assert found is None, "imports in a circle: " + " -> ".join(found)


def test_a_circle_is_found():
    assert cycle({"a": {"b", "c"}, "b": set(), "c": {"d"}, "d": {"c", "b"}}) == ["c", "d", "c"]
    assert cycle({"a": {"a"}}) == ["a", "a"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) is None


def test_array_knows_no_function():
    assert imported("pyvecgpu.array", parse(PACKAGE / "array.py")) == set()


BACKENDS = ("backend", "into")


def computing_calls(tree):
    """(method, line) where a computing method of what is called as backends are is used."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if name.strip("_") in BACKENDS:
                yield node.attr, node.lineno
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
            owner = node.args[0]
            if (getattr(owner, "attr", "") or getattr(owner, "id", "")) in BACKENDS:
                yield "getattr", node.lineno


def test_only_the_seam_calls_a_backend():
    for path in MODULES.values():
        name = str(path.relative_to(PACKAGE))
        calls = list(computing_calls(parse(path)))
        allowed = SHORT_WAYS.get(name, set())
        beside = [f"{name}:{line}: {method}" for method, line in calls if method not in allowed]
        assert not beside, f"not through dispatch.apply: {beside}"
        unused = allowed - {method for method, _ in calls}
        assert not unused, f"{name} takes no short way to {unused} any more"


def test_what_counts_as_a_call_of_a_backend():
    code = "x.backend.reshape(a, b); backend.unary(1, 2, None); getattr(x.backend, 'cast')"
    code += "; backend.into.where(a, b)"
    assert {method for method, _ in computing_calls(ast.parse(code))} == {
        "reshape",
        "unary",
        "where",
        "getattr",
    }
    others = "backend.synchronize(); functions.reshape(a, b); x.backend.describe(x.raw)"
    assert not list(computing_calls(ast.parse(others)))


def test_numpys_private_names_are_not_used():
    for path in MODULES.values():
        for node in ast.walk(parse(path)):
            if not isinstance(node, ast.Attribute) or not node.attr.startswith("_"):
                continue
            owner = node.value
            while isinstance(owner, (ast.Attribute, ast.Call)):
                owner = owner.value if isinstance(owner, ast.Attribute) else owner.func
            numpys = getattr(owner, "id", "") in ("np", "numpy", "function", "ufunc", "error")
            dunder = node.attr.startswith("__")
            assert not numpys or dunder, f"{path.name}:{node.lineno}: {node.attr}"


# Public names -------------------------------------------------------------------------------------


def declared(tree):
    """The names in a module's `__all__`, which has to be a list of literals."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ast.literal_eval(node.value)
    return None


def defined(tree):
    """The names of a module's own functions, classes and values."""
    names = {node.name for node in tree.body if hasattr(node, "name")}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def test_a_public_name_stands_where_it_is_defined_and_nowhere_else():
    homes = {f"functions.{topic}": PACKAGE / "functions" / f"{topic}.py" for topic in TOPICS}
    gradients = ("autograd.function", "autograd.transforms")
    others = (*gradients, "amp", "device", "dtype_queries", "dtypes", "errors", "streams")
    others = (*others, "linalg.fitting", "transfers")
    homes |= {name: (PACKAGE / name.replace(".", "/")).with_suffix(".py") for name in others}
    seen = {}
    for home, path in homes.items():
        tree = parse(path)
        names = declared(tree)
        assert names == sorted(set(names), key=lambda n: (n.islower(), n)), f"{home}: order"
        assert set(names) <= defined(tree), f"{home}: {set(names) - defined(tree)}"
        for name in names:
            assert name not in seen, f"{name} is in {home} and in {seen[name]}"
            seen[name] = home
    topics = {path.stem for path in (PACKAGE / "functions").glob("*.py") if declared(parse(path))}
    assert topics == set(TOPICS), "a module of functions with public names of its own"
    only_nn = set(importlib.import_module("pyvecgpu.functions.nn").__all__)
    assert set(vg.__all__) == {
        "Array",
        "__version__",
        "amp",
        "autograd",
        "data",
        "fft",
        "linalg",
        "newaxis",
        "nn",
        "optim",
        "random",
    } | (set(seen) - only_nn - {"GradScaler", "is_autocast_enabled"})
    both = {"log_softmax", "softmax"} | set(vg.functions.layers.__all__)
    folder = PACKAGE / "nn" / "functional"
    composed = [declared(parse(path)) or [] for path in folder.glob("[!_]*.py")]
    assert sum(map(len, composed)) > 10
    assert set(vg.nn.functional.__all__) == only_nn | both | set().union(*composed)
    for module in (vg, vg.nn, vg.nn.functional, vg.nn.init):
        assert len(module.__all__) == len(set(module.__all__))
        assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize("name", ["dense_backward", "gelu", "silu"])
def test_some_names_are_those_of_networks_alone(name):
    assert name in vg.nn.functional.__all__ and not hasattr(vg, name)


def test_the_package_is_what_is_tested():
    assert {module for module in sys.modules if module.startswith("pyvecgpu")} <= set(MODULES)
    assert dispatch.__name__ in MODULES
