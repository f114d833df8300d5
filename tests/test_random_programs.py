"""Random programs of 12 lines or more: the CPU is right, and every card gives the CPU's bits.

programs.py says what such a program is; `make test` runs some, `make test-checkers` and `make fuzz`
more of them. A failure prints the
shortest program that fails, and how to replay it:

    pytest tests/test_random_programs.py --seed SEED --programs N      (index < N)
"""

import functools
import re

import numpy as np
import program_functions
import program_layers
import programs
import pytest

import pyvecgpu as vg

CHUNK = 250  # programs to a test
APART = True  # chunks to whoever has time

# One device after the other has the programs of a chunk.
drawn = functools.lru_cache(CHUNK)(programs.draw)


def pytest_generate_tests(metafunc):
    if "chunk" in metafunc.fixturenames:
        metafunc.parametrize("chunk", range(0, metafunc.config.getoption("--programs"), CHUNK))


@pytest.mark.programs
def test_programs(device, chunk, request):
    seed = request.config.getoption("--seed")
    for index in range(chunk, min(chunk + CHUNK, request.config.getoption("--programs"))):
        program = drawn(seed, index)
        if program.problem(device):
            program = program.shrunk(device)
            pytest.fail(
                f"on {device}, (seed, index) = ({seed}, {index}):\n"
                f"{program}\n# {program.problem(device)}"
            )


def test_programs_are_not_trivial(request):
    """Results have elements that are not zero, and every kind of line occurs."""
    made = [programs.draw(request.config.getoption("--seed"), index) for index in range(60)]
    assert all(len(program.lines) >= programs.LINES[0] for program in made)
    text = "\n".join(map(str, made))
    for word in ("add(", "multiply(", "sum(", "argmax(", "matmul(", "where(", "reshape(", "astype(",
                 "copy(", ", out=", "...] = ", "::-1, ", ".mT)"):  # fmt: skip
        assert word in text
    for dtype in programs.DTYPES:
        assert f"dtype={dtype})" in text
    last = [program.run("cpu") for program in made]
    assert sum(programs.largest(list(values.values())[-1]) > 0 for values in last) > 30


def wrong_sum(x, axis=None, keepdims=False):
    return vg.sum(x, axis=axis, keepdims=keepdims) + (1 if x.shape == (3,) else 0)


def wrong_add(a, b, out=None):
    """Operands that overlap `out` are read after they have been written to."""
    if out is None or not isinstance(a, vg.Array):
        return vg.add(a, b, out=out)
    out[...] = a
    return vg.add(out, b, out=out)


WRONG = {
    "sum": (wrong_sum, {"v0": np.arange(6.0).reshape(2, 3)}, ["v1 = v0[0]", "v2 = sum(v1)"]),
    "add": (
        wrong_add,
        {"v0": np.arange(5)},
        ["v1 = copy(v0)", "add(v1[:-1], v1[1:], out=v1[1:])"],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_is_found_and_shrunk(name, monkeypatch):
    wrong, inputs, lines = WRONG[name]
    noise = ["v7 = negative(v0)", "v8 = multiply(v7, 2)", "v9 = minimum(maximum(v8, 0), 8)"]
    noise += ["v10 = copy(v9)", "v10[...] = v8"]
    program = programs.Program(
        {**inputs, "v6": np.ones(3)}, [noise[0], *lines, *noise[1:], "v11 = add(v6, v6)"]
    )
    assert program.problem("cpu") is None
    right = programs.OnDevice.__init__

    def spoiled(self, device):
        right(self, device)
        self.functions[name] = wrong

    monkeypatch.setattr(programs.OnDevice, "__init__", spoiled)
    assert program.problem("cpu") is not None
    shorter = program.shrunk("cpu")
    assert shorter.lines == lines and shorter.inputs.keys() == inputs.keys()


def program_of_layers(rng, count):
    """A program of lines whose results are rounded."""
    inputs = {f"v{i}": np.asarray(rng.integers(-4, 5, shape)).astype(dtype)
              for i, (shape, dtype) in enumerate((((5, 3), "f4"), ((2, 3, 4), "f8"), ((4, 2), "f2"),
                                                  ((6, 2, 2), "f4")))}  # fmt: skip
    names = list(inputs)

    def pick(options):
        return options[rng.integers(len(options))]

    def operand(accept):
        fitting = [name for name in names if accept(inputs[name])]
        return pick(fitting) if fitting else None

    lines = []
    while len(lines) < count:
        line = program_layers.line(rng, pick, operand, inputs)
        if line:
            lines.append(f"v{len(names) + len(lines)} = {line}")
    return programs.Program(inputs, lines)


def test_layers_of_programs(device, rng):
    """Every function, and every gradient, is drawn and right."""
    program = program_of_layers(rng, 300)
    text = "\n".join(program.lines)
    assert set(map(programs.layer_of, program.lines)) == set(program_layers.LAYERS)
    sloped = set(re.findall(r"slope\('(\w+)'", text))
    assert sloped == set(program_layers.LAYERS) - {"slope", "stepped", "drawn"}
    for word in (*program_layers.GATES, *program_layers.STEPS, *program_layers.DRAWN):
        assert f"'{word}'" in text
    assert program.problem(device) is None


@pytest.mark.parametrize("name", sorted(program_layers.LAYERS))
def test_a_wrong_layer_is_found(name, rng, monkeypatch):
    """On the CPU by NumPy; random numbers by another device alone."""
    program = program_of_layers(rng, 300)
    lines = [line for line in program.lines if programs.layer_of(line) == name]
    program = programs.Program(program.inputs, lines)
    right = program_layers.LAYERS[name]
    assert program.problem("cpu") is None
    monkeypatch.setitem(program_layers.LAYERS, name, lambda *x: right(*x) * 1.01)
    found = program.problem("cpu")
    assert (found is None) == (name == "drawn"), found


def test_every_function_of_the_table_is_drawn(request):
    seed, seen = request.config.getoption("--seed"), set()
    for index in range(600):
        seen |= {word for line in drawn(seed, index).lines for word in re.findall(r"\w+\(", line)}
    assert seen >= {f"{name}(" for name in program_functions.NAMES}
    assert len(program_functions.NAMES) > 70


WRONG_OF_TABLE = {name: getattr(vg, name) for name in ("repeat", "logical_xor", "isin", "diff")}


@pytest.mark.parametrize("name", WRONG_OF_TABLE)
def test_a_wrong_function_of_the_table_is_found(name, monkeypatch):
    """One that gives its result backwards."""
    right = programs.OnDevice.__init__

    def spoiled(self, device):
        right(self, device)
        self.functions[name] = lambda *x, **k: vg.flip(WRONG_OF_TABLE[name](*x, **k))

    made = [drawn(1, index) for index in range(400)]
    made = [x for x in made if any(f"{name}(" in line for line in x.lines)]
    monkeypatch.setattr(programs.OnDevice, "__init__", spoiled)
    again = [programs.Program(x.inputs, x.lines) for x in made]
    found = [program for program in again if program.problem("cpu")]
    assert found and len(again) > 4
    assert any(f"{name}(" in line for line in found[0].shrunk("cpu").lines)
