"""Which test calls which function of the package: a plugin of pytest, `-p mutants.calls`.

With MUTANTS_CALLS=FILE it writes for each test how long it took and what it called, and with
MUTANTS_FIRST=FILE it runs only the tests that the file names, in the file's order. A function is
its file and its name, as `name_at` finds it around a line of a mutant.
"""

import ast
import collections
import functools
import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "pyvecgpu"


def functions(text):
    """{first line: (name with those around it, last line)} of a module's functions."""
    found = {}

    def visit(node, prefix):
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}.{child.name}".lstrip(".")
                if not isinstance(child, ast.ClassDef):
                    lines = [child.lineno, *(one.lineno for one in child.decorator_list)]
                    found[min(lines)] = name, child.end_lineno
            visit(child, name)

    visit(ast.parse(text), "")
    return found


def name_at(text, line):
    """The innermost function around a line; "" for none."""
    around = [(first, name) for first, (name, last) in functions(text).items()
              if first <= line <= last]  # fmt: skip
    return max(around, default=(0, ""))[1]


class Calls:
    """What a run has recorded: for each test its seconds and the functions that it calls."""

    def __init__(self, path):
        found = json.loads(Path(path).read_text())
        self.tests = {test: (seconds, {found["names"][i] for i in numbers})
                      for test, (seconds, numbers) in found["tests"].items()}  # fmt: skip

    def adopt(self, other, device, ours, slower=4):
        """Take what another device's tests call for what ours call that are not recorded."""
        for test, (seconds, called) in other.tests.items():
            same = test.replace(f"[{device}-", f"[{ours}-").replace(f"[{device}]", f"[{ours}]")
            if same != test:
                self.tests.setdefault(same, (slower * seconds, called))

    def enters(self, path):
        """Whether any test calls a function of a file."""
        return any(c.startswith(f"{path}:") for _, called in self.tests.values() for c in called)

    def of(self, path, name, near=(), each=5, whole=60):
        """Tests that call a function, at most `whole` seconds of them, and `each` of a file's.

        The files come first most of whose tests call it, or that concern it: `near`. Without a
        name: the functions of a file.
        """
        files, every = collections.defaultdict(list), collections.Counter()
        for test, (seconds, called) in self.tests.items():
            file = test.split("::")[0]
            every[file] += 1
            if (
                f"{path}:{name}" in called
                if name
                else any(c.startswith(f"{path}:") for c in called)
            ):
                files[file].append((test, seconds))
        concern = {f"tests/test_{one}.py" for one in near}
        share_of = {file: len(files[file]) / every[file] + (file in concern) / 2 for file in files}
        chosen, left = [], whole
        for file in sorted(files, key=share_of.get, reverse=True):
            share = 0
            for test, seconds in spread(files[file]):
                if share + seconds <= each and seconds <= left:
                    share, left = share + seconds, left - seconds
                    chosen.append(test)
        return chosen


def spread(items):
    """The same items, such that the first few are from everywhere."""
    step = max(1, len(items) // 8)
    return [item for i in range(step) for item in items[i::step]]


class Recorder:
    def __init__(self, path):
        self.path, self.codes, self.found = Path(path), {}, {}

    def __call__(self, frame, event, arg):
        code = frame.f_code
        if id(code) not in self.codes:
            self.codes[id(code)] = code

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        self.codes, begun = {}, time.perf_counter()
        sys.settrace(self)
        threading.settrace(self)
        yield
        sys.settrace(None)
        threading.settrace(None)
        self.found[item.nodeid] = round(time.perf_counter() - begun, 4), set(self.codes.values())

    def pytest_sessionfinish(self):
        names, tests, at = {}, {}, functools.cache(names_of)
        for test, (seconds, codes) in self.found.items():
            called = {at(code.co_filename).get(code.co_firstlineno) for code in codes} - {None}
            tests[test] = seconds, [names.setdefault(name, len(names)) for name in sorted(called)]
        self.path.write_text(json.dumps({"names": list(names), "tests": tests}))


def names_of(file):
    """{line: function} of a file of the package; nothing of another one's."""
    path = Path(file)
    if PACKAGE not in path.parents:
        return {}
    short = path.relative_to(PACKAGE.parent).as_posix()
    return {first: f"{short}:{name}" for first, (name, _) in functions(path.read_text()).items()}


class Chosen:
    def __init__(self, path):
        self.names = {name: i for i, name in enumerate(Path(path).read_text().split("\n"))}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        items[:] = sorted((item for item in items if item.nodeid in self.names),
                          key=lambda item: self.names[item.nodeid])  # fmt: skip


def pytest_configure(config):
    for name, kind in (("MUTANTS_CALLS", Recorder), ("MUTANTS_FIRST", Chosen)):
        if os.environ.get(name):
            config.pluginmanager.register(kind(os.environ[name]))
