"""Writes the package's .pyi files: `make stubs`, or `python docs/reference/stubs.py [--check]`.

Names, signatures and classes are asked of the package itself; hints.py has the types. What has no
hint there is an error that says so. tests/test_typing.py fails when the files are not what this
writes, and checks the hints by what the manual's examples give and get.
"""

import inspect
import re
import sys
from pathlib import Path

import hints
import numpy as np

import pyvecgpu as vg
from pyvecgpu import typing as types
from pyvecgpu.names import NUMPYS

PACKAGE = Path(vg.__file__).parent
MODULES = {
    "": "__init__.pyi",
    "amp": "amp.pyi",
    "autograd": "autograd/__init__.pyi",
    "data": "data/__init__.pyi",
    "fft": "fft/__init__.pyi",
    "linalg": "linalg/__init__.pyi",
    "nn": "nn/__init__.pyi",
    "nn.functional": "nn/functional/__init__.pyi",
    "nn.init": "nn/init.pyi",
    "nn.utils": "nn/utils.pyi",
    "optim": "optim/__init__.pyi",
    "optim.lr_scheduler": "optim/lr_scheduler.pyi",
    "random": "random/__init__.pyi",
}
HEADER = "# Written by `make stubs` from docs/reference/hints.py and the package itself.\n"
# Overloads of flags overlap: what is given decides, where only the default of the last is shared.
HEADER += "# pyright: reportOverlappingOverload=false\n"
# Where the names that hints use come from.
SOURCES = {
    **dict.fromkeys(("Callable", "Iterable", "Iterator", "Mapping", "Sequence"), "collections.abc"),
    "AbstractContextManager": "contextlib",
    **dict.fromkeys(
        ("IO", "Any", "ClassVar", "Literal", "NamedTuple", "TypeVar", "overload"), "typing"
    ),
    "Self": "typing_extensions",
    "Array": "pyvecgpu.array",
    "BFloat16": "pyvecgpu.dtypes",
    "Device": "pyvecgpu",
    "Generator": "pyvecgpu.random",
    "Dataset": "pyvecgpu.data",
    "Module": "pyvecgpu.nn",
    "Optimizer": "pyvecgpu.optim",
    "LRScheduler": "pyvecgpu.optim.lr_scheduler",
    **dict.fromkeys(types.__all__, "pyvecgpu.typing"),
}


USED = set()  # the rows of hints.py that something needs: tests/test_typing.py asks for it


class MissingHintError(LookupError):
    """A parameter without a hint."""


def public_names(module):
    """What a module declares, or what a plain module has of its own without an underscore."""
    declared = getattr(module, "__all__", None)
    if declared is not None:
        return list(declared)
    own = vars(module).items()
    return [n for n, v in own if n[0] != "_" and getattr(v, "__module__", "") == module.__name__]


def found_at(place):
    """Return what has a full name, such as "linalg.svd"; "" is the package."""
    value = vg
    for part in filter(None, place.split(".")):
        value = getattr(value, part)
    return value


# Functions ----------------------------------------------------------------------------------------


def hint_of(place, parameter):
    """Return the hint of a parameter of the function with a full name."""
    name, default = parameter.name, parameter.default
    for key in (f"{place}.{name}", f"{place.rpartition('.')[2]}.{name}"):
        if key in hints.SPECIAL:
            USED.add(key)
            return _or_none(hints.SPECIAL[key], default)
    if isinstance(default, (bool, str)):
        return type(default).__name__
    if name not in hints.PARAMETERS:
        raise MissingHintError(f"{place}({name}=) has no hint in docs/reference/hints.py")
    USED.add(name)
    return _or_none(hints.PARAMETERS[name], default)


def _or_none(hint, default):
    takes_none = hint in ("Any", "Axis") or hint.endswith("None")
    return f"{hint} | None" if default is None and not takes_none else hint


def _shown(default):
    """Return a default as it stands in a stub."""
    plain = default is None or type(default) in (bool, int, float, str)
    return repr(default) if plain and repr(default) not in ("inf", "nan") else "..."


def _parameter(place, p, case):
    star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    text = f"{star}{p.name}: {case.get(p.name) or hint_of(place, p)}"
    if p.default is p.empty:
        return text
    if p.name not in case:
        return f"{text} = {_shown(p.default)}"
    # Of overloads one has the default: for the others something has to be given.
    is_default = case[p.name] in ("None", f"Literal[{p.default}]")
    return f"{text} = {_shown(p.default)}" if is_default else text


def signature_of(place, function, case=()):
    """Return the text between a function's parentheses; case: hints of an overload."""
    parts, before, all_given = [], None, True
    for p in inspect.signature(function).parameters.values():
        if before is not None and before.kind is p.POSITIONAL_ONLY and p.kind is not before.kind:
            parts.append("/")
        is_first = before is None or before.kind not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        if p.kind is p.KEYWORD_ONLY and is_first:
            parts.append("*")
        is_self = before is None and p.name in ("self", "cls")
        text = p.name if is_self else _parameter(place, p, dict(case))
        if p.kind not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL, p.VAR_KEYWORD):
            # A parameter without a default cannot follow one that has it.
            text = text if all_given or " = " in text else f"{text} = ..."
            all_given = all_given and " = " not in text
        parts.append(text)
        before = p
    if before is not None and before.kind is before.POSITIONAL_ONLY:
        parts.append("/")
    return ", ".join(parts)


def function(place, value, indent="", summary=""):
    """Return the lines of a function or a method; place is its full name."""
    name = place.rpartition(".")[2]
    USED.add(place)
    result, lines = hints.RESULTS.get(place, "Array"), []
    if place in hints.RECORDS:
        result = f"_{hints.RECORDS[place].__name__}"
        lines += [f"class {result}(NamedTuple):"]
        lines += [f"    {field}: Array" for field in hints.RECORDS[place]._fields]
    cases = _cases(place, value, hints.OVERLOADS.get(place, [({}, result)]))
    for case, result in cases:
        lines += [f"{indent}@overload"] if len(cases) > 1 else []
        given = case if isinstance(case, str) else signature_of(place, value, case)
        lines += _definition(f"{indent}def {name}({given}) -> {result}:", indent, summary)
    return lines


def _cases(place, value, cases):
    """Return the cases of a function, where NumPy's arrays alone give NumPy's: Any, here."""
    operands = {
        p.name: hints.OF_ARRAYS[hint_of(place, p)]
        for p in inspect.signature(value).parameters.values()
        if p.default is p.empty and p.name != "self" and hint_of(place, p) in hints.OF_ARRAYS
    }
    is_ours = place.count(".") == place.startswith(("linalg.", "fft."))
    if not operands or not is_ours or "Array" not in cases[0][1] or place in hints.ALWAYS_ARRAYS:
        return cases
    of_arrays = [
        ({**case, name: operands[name]}, result)
        for case, result in cases
        for name in list(operands)[:2]
    ]
    return [*of_arrays, ({}, "Any")]


def _definition(head, indent, summary):
    return [head, f'{indent}    """{summary}"""'] if summary else [f"{head} ..."]


# Classes ------------------------------------------------------------------------------------------


def _bases(cls):
    """Return the names of the classes that a class is derived from, through private ones."""
    if cls.__name__ == "Parameter":
        return ["Array"]  # by its metaclass
    if hasattr(cls, "_fields"):
        return ["NamedTuple"]
    found = []
    for base in cls.__bases__:
        found += _bases(base) if base.__name__[0] == "_" else [base.__name__]
    return [name for name in dict.fromkeys(found) if name != "object"]


def _members(cls):
    """{name: value} of a class, and of private ones below it."""
    private = [base for base in cls.__mro__[1:] if base.__name__[0] == "_"]
    return {name: v for base in (*reversed(private), cls) for name, v in vars(base).items()}


def class_(place, cls, with_summaries=False):
    """Return the lines of a class; place is its full name."""
    bases = _bases(cls)
    lines = [f"class {cls.__name__}{'(' + ', '.join(bases) + ')' if bases else ''}:"]
    members = _members(cls)
    kinds = cls.__annotations__ if hasattr(cls, "_fields") else {}
    kinds = {name: getattr(kind, "__name__", str(kind)) for name, kind in kinds.items()}
    known = hints.ATTRIBUTES.get(place, {})
    kinds |= {n: kind for n, kind in known.items() if not isinstance(members.get(n), property)}
    lines += [f"    {name}: {kind}" for name, kind in kinds.items()]
    for name, value in members.items():
        if name not in kinds and not (name == "__new__" and hasattr(cls, "_fields")):
            lines += _member(place, name, value, with_summaries)
    return lines if len(lines) > 1 else [f"{lines[0]} ..."]


def _member(place, name, value, with_summaries):
    """Return the lines of one member of a class."""
    summary = (value.__doc__ or "").partition("\n")[0] if with_summaries else ""
    own = hints.OF_CLASS.get(place, {}).get(name) or hints.DUNDERS.get(name)
    if name == "__hash__" and value is None:
        return ["    __hash__: ClassVar[None]  # type: ignore[assignment]"]
    if name in ("__init__", "__new__"):
        if place in hints.MADE_ELSEWHERE:
            return []
        result = "None" if name == "__init__" else "Self"
        value = getattr(value, "__func__", value)
        return [f"    def {name}({signature_of(place, value)}) -> {result}: ..."]
    if own and callable(value):
        note = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
        given = ", ".join(filter(None, ("self", own[0])))
        return [f"    def {name}({given}) -> {own[1]}: ...{note}"]
    if name.startswith("_"):
        return []
    if isinstance(value, property):
        return _property(place, name, value, summary)
    if isinstance(value, (staticmethod, classmethod)):
        first = "cls" if isinstance(value, classmethod) else "ctx: Any"
        head = f"    def {name}({first}, *args: Any, **options: Any) -> Any: ..."
        return [f"    @{type(value).__name__}", head]
    if not inspect.isfunction(value):
        return []
    if name in hints.HOOKS:
        given, result = hints.HOOKS[name]
        return [f"    def {name}({', '.join(filter(None, ('self', given)))}) -> {result}: ..."]
    return function(f"{place}.{name}", value, "    ", summary)


def _property(place, name, value, summary):
    kind = hints.ATTRIBUTES.get(place, {}).get(name, "Array")
    lines = ["    @property", *_definition(f"    def {name}(self) -> {kind}:", "    ", summary)]
    if value.fset:
        written = "Any" if kind == "Array" else kind
        lines += [f"    @{name}.setter", f"    def {name}(self, value: {written}) -> None: ..."]
    return lines


# Modules ------------------------------------------------------------------------------------------


def _entry(place, name, value, homes):
    """Return the lines of one public name of a module."""
    full = f"{place}.{name}".lstrip(".")
    if inspect.ismodule(value):
        return [f"from . import {name} as {name}"]
    if value is vg.Array:
        return ["from .array import Array as Array"]
    if inspect.isclass(value) or inspect.isroutine(value):
        module, known = homes.setdefault(id(value), (f"pyvecgpu.{place}".rstrip("."), name))
        if module != f"pyvecgpu.{place}".rstrip("."):
            return [f"from {module} import {known} as {name}"]
        if not inspect.isclass(value):
            return function(full, value)
        if not value.__module__.startswith("pyvecgpu"):
            return [f"from {value.__module__} import {name} as {name}"]
        return class_(full, value)
    if isinstance(value, np.dtype):
        return [f"{name}: np.dtype[np.{'bool_' if name == 'bool' else name}]"]
    if not isinstance(value, (bool, int, float, str, type(None))):
        return [f"{name}: Any"]  # what is indexed, such as mgrid
    return [f"{name}: {type(value).__name__ if value is not None else 'None'}"]


def _finished(lines, file):
    """Return the text of a file: imports of what its hints name, and its lines."""
    if file == "__init__.pyi":  # where bool is a dtype
        hidden = re.compile(r"(?<![\w.])bool\b(?!: np)")
        lines = [hidden.sub("builtins.bool", line) for line in lines]
    body = "\n".join(lines) + "\n"
    here = f"pyvecgpu/{file}".removesuffix(".pyi").removesuffix("/__init__").replace("/", ".")
    imports = {}
    for name, source in SOURCES.items():
        has = re.search(rf"^(class {name}\b|from .* as {name}$|{name} = )", body, re.MULTILINE)
        if source != here and not has and re.search(rf"(?<![\w.\"]){name}\b", body):
            imports.setdefault(source, []).append(name)
    variable = ""
    if re.search(r"\b_F\b", body):
        variable = '_F = TypeVar("_F", bound=Callable[..., Any])\n\n'
        imports["typing"].append("TypeVar")
        imports["collections.abc"] = sorted({*imports.get("collections.abc", []), "Callable"})
    modules = [m for m in ("builtins", "os") if re.search(rf"\b{m}\.", body)]
    head = [f"import {module}" for module in modules]
    head += [f"from {source} import {', '.join(names)}" for source, names in imports.items()]
    head += ["import numpy as np"] if "np." in body else []
    return f"{HEADER}\n{chr(10).join(head)}\n\n{variable}{body}"


def files():
    """{path in the package: text} of all stubs."""
    found = {"array.pyi": _finished(class_("Array", vg.Array, True), "array.pyi")}
    lines = class_("dtypes.BFloat16", type(vg.bfloat16))
    found["dtypes.pyi"] = _finished(lines, "dtypes.pyi")
    homes = {}
    for place, file in MODULES.items():
        module, lines = found_at(place), []
        for name in public_names(module):
            lines += _entry(place, name, getattr(module, name), homes)
        if not place:
            lines += ["__array_api_version__: str", "__array_namespace_info__: Any"]
            lines += [f"from numpy import {name} as {name}" for name in NUMPYS]
        found[file] = _finished(lines, file)
    return found


def main(arguments):
    """Write the files or, with --check, say which of them are not what would be written."""
    texts = files()
    if "--check" not in arguments:
        for path, text in texts.items():
            (PACKAGE / path).write_text(text, encoding="utf-8")
        return
    wrong = [
        path
        for path, text in texts.items()
        if not (PACKAGE / path).is_file() or (PACKAGE / path).read_text(encoding="utf-8") != text
    ]
    if wrong:
        sys.exit(f"not what `make stubs` writes: {', '.join(wrong)}")


if __name__ == "__main__":
    main(sys.argv[1:])
