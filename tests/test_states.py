"""States of models in files: what is written is read, by NumPy too, or the old file stays."""

import math
import os
import struct
import sys
import warnings
import zipfile

import helpers
import numpy as np
import pytest
from helpers import assert_same, put

import pyvecgpu as vg


def test_arrays_by_name(device, rng, tmp_path):
    path = tmp_path / "net.model"  # taken as it is
    x = {f"0.{dtype}": helpers.integers(rng, (2, 3), dtype) for dtype in helpers.DTYPES}
    vg.save_state(path, {name: put(device, values) for name, values in x.items()})
    assert os.listdir(tmp_path) == ["net.model"]
    loaded = vg.load_state(path, device=device)
    assert list(loaded) == list(x)
    with np.load(path, allow_pickle=False) as file:
        assert file.files == list(x)
    for name, values in x.items():
        assert loaded[name].device == vg.Device(device)
        assert_same(loaded[name], values)
    np.savez(tmp_path / "other.npz", a=np.ones(2))
    assert vg.load_state(tmp_path / "other.npz", device=device)["a"].tolist() == [1.0, 1.0]


def same(one, other):
    if isinstance(one, (vg.Array, np.ndarray)):
        assert_same(other, helpers.host(one))
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            same(one[key], other[key])
    elif isinstance(one, (list, tuple)):
        assert type(one) is type(other) and len(one) == len(other)
        for pair in zip(one, other, strict=True):
            same(*pair)
    else:
        assert type(one) is type(other) and (one == other or one != one), (one, other)


def test_what_is_not_an_array(device, tmp_path):
    a, b = put(device, np.arange(3.0)), np.ones((2, 0))
    state = {
        "state": {0: {"step": 3, "mean": a}, 1: {}},
        "groups": [{"lr": 0.1, "betas": (0.9, 1e-300), "params": [0, 1]}],
        "nothing": None,
        "yes": True,
        "text": '\u00e9\n"',
        "floats": [math.pi, math.inf, -0.0, math.nan, 2**70],
        "a/b": a,
        "a": {"b": b},
        "file": b,
        "__structure__": a,
        "": {"": a},
    }
    path = str(tmp_path / "state.npz")
    vg.save_state(path, state)
    loaded = vg.load_state(path, device=device)
    same(state, loaded)
    assert math.copysign(1, loaded["floats"][2]) == -1
    vg.save_state(path, {})
    assert vg.load_state(path) == {}
    vg.save_state(path, {"file": a, "n": np.float32(0.5)})
    assert vg.load_state(path, device=device)["file"].tolist() == a.tolist()


def test_a_file_stays_if_the_new_one_cannot_be_written(device, tmp_path, monkeypatch):
    path = tmp_path / "state.npz"
    x = put(device, np.arange(4.0))
    vg.save_state(path, {"x": x})

    def fails(stream, **arrays):
        stream.write(b"half of it")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", fails)
        with pytest.raises(OSError, match="No space"):
            vg.save_state(path, {"x": x + 1.0})
    for wrong in ({"x": x, "f": len}, {"x": {1.5: x}}, {"x": {1j}}):
        with pytest.raises(TypeError, match="save_state"):
            vg.save_state(path, wrong)
    assert os.listdir(tmp_path) == ["state.npz"]
    assert vg.load_state(path, device=device)["x"].tolist() == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(TypeError, match="takes a dict, not list"):
        vg.save_state(path, [x])
    with pytest.raises(OSError):
        vg.load_state(tmp_path / "none.npz")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o400])
def test_a_file_keeps_its_mode(tmp_path, mode):
    x = np.arange(3.0)
    for name, write in (
        ("state.npz", lambda path: vg.save_state(path, {"x": x})),
        ("x.npz", lambda path: vg.savez(path, x=x)),
        ("x.npy", lambda path: vg.save(path, x)),
    ):
        path = tmp_path / name
        write(path)
        path.chmod(mode)
        write(path)
        assert path.stat().st_mode & 0o777 == mode
        path.unlink()


def within_itself(kind):
    found = {"x": np.ones(2)}
    if kind == "dict":
        found["own"] = found
    else:
        inner = [1]
        inner.append({"a": (inner, 2)} if kind == "deep" else inner)
        found["own"] = inner
    return found


@pytest.mark.parametrize(("kind", "place"), [("dict", "own"), ("list", "own/1"),
                                             ("deep", "own/1/a/0")])  # fmt: skip
def test_a_state_within_itself(tmp_path, kind, place):
    with pytest.raises(ValueError, match=f"save_state: {place} is .* within itself"):
        vg.save_state(tmp_path / "x.npz", within_itself(kind))
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested too deep"):
        vg.save_state(tmp_path / "x.npz", {"deep": deep})
    assert not os.listdir(tmp_path)
    twice = [1.0]
    vg.save_state(tmp_path / "x.npz", {"a": twice, "b": [twice, twice], "c": ((), ())})
    assert vg.load_state(tmp_path / "x.npz")["b"] == [twice, twice]


def test_files_that_are_cut_off(tmp_path):
    path = tmp_path / "state.npz"
    vg.save_state(path, {"n": 3, "x": np.arange(5.0)})
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="load_state"):
            vg.load_state(path)


def test_files_with_a_wrong_bit(tmp_path):
    """Refused, or of no consequence: a bit of a date, say, which nobody reads."""
    path = tmp_path / "state.npz"
    vg.save_state(path, {"n": 3, "x": np.arange(5.0)})
    whole = path.read_bytes()
    refused = 0
    for place in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[place // 8] ^= 1 << place % 8
        path.write_bytes(changed)
        try:
            loaded = vg.load_state(path)
        except ValueError:
            refused += 1
        else:
            assert set(loaded) == {"n", "x"}, place
            assert loaded["n"] == 3 and loaded["x"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert refused > 4 * len(whole)


@pytest.mark.parametrize(
    "text",
    ["[", "", "\xff", '{"array":"none"}', '{"set":[]}', '{"a":1,"b":2}', '{"dict":[1]}',
     '{"dict":[["a",1],["b",2],["a",1]]}', '{"dict":[[7,{"list":[]}],[7,{"list":[]}]]}',
     '{"array":"x","array":"x"}', '{"dict":[[{},1]]}', '{"dict":3}',
     "[" * 100_000, '{"list":[' * 100_000],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_structures_that_make_no_sense(tmp_path, text):
    content = np.frombuffer(text.encode("latin-1"), np.uint8)
    np.savez(tmp_path / "x.npz", __structure__=content, x=np.ones(2))
    with pytest.raises(ValueError, match="is no state"):
        vg.load_state(tmp_path / "x.npz")


def entry(shape, content=b"", dtype="<f8"):
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode() + content


@pytest.mark.parametrize(
    ("names", "content"),
    [
        (["x.npy"], entry((10**14,))),  # promises more than there is
        (["x.npy"], entry((2,), b"1234567")),
        (["x.npy"], entry((1,), b"123456789")),
        (["x.npy"], entry((-1, -1), b"12345678")),
        (["x.npy"], entry((2**40, 2**40, 0))[:-1]),
        (["x.npy"], entry((1,), b"12345678", "|O")),
        (["x.npy"], entry((1,), b"12345678", "<q9")),
        (["x.npy"], b"\x93NUMPY\1\0\xff\xff" + b"(" * 65535),  # a header too long, and too deep
        (["x.npy"], b"\x93NUMPY\2\0\xff\xff\xff\xff{"),
        (["x.npy"], b"\x93NUMPY\7\0"),
        (["x.npy"], b""),
        (["x.txt"], b"text"),
        (["x.npy", "x.npy"], entry((1,), b"12345678")),
        (["x.npy"], entry("((3,)", b"12345678")),  # tokenize.TokenError
        (["x.npy"], entry("(3,)}\n  {\n {", b"12345678")),  # an IndentationError of it
    ],
    ids=range(15),
)
def test_entries_that_lie(tmp_path, names, content):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that is there twice
        with zipfile.ZipFile(tmp_path / "x.npz", "w") as file:
            for name in names:
                file.writestr(name, content)
    for read in (vg.load_state, vg.data.load_npz):
        with pytest.raises(ValueError, match=r"load_\w+: .*x\.npz"):
            read(tmp_path / "x.npz")


@pytest.mark.parametrize(
    "suffix", [".npz", pytest.param(".safetensors", marks=pytest.mark.needs("safetensors"))]
)
def test_what_is_no_file(tmp_path, suffix):
    os.mkfifo(tmp_path / f"pipe{suffix}")
    os.symlink("/dev/zero", tmp_path / f"zero{suffix}")
    for name in ("pipe", "zero"):
        with pytest.raises(ValueError, match="no file that could have arrays"):
            vg.load_state(tmp_path / f"{name}{suffix}")
    (tmp_path / f"folder{suffix}").mkdir()
    with pytest.raises(IsADirectoryError):
        vg.load_state(tmp_path / f"folder{suffix}")


def test_an_array_is_no_state(tmp_path):
    np.save(tmp_path / "x.npy", np.ones(3))
    with pytest.raises(ValueError, match=r"no \.npz, or damaged"):
        vg.load_state(tmp_path / "x.npy")


def test_without_safetensors(tmp_path, monkeypatch):
    for name in ("safetensors", "safetensors.numpy"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "x.safetensors").write_bytes(b"")
    for call in (
        lambda path: vg.save_state(path, {"x": np.ones(2)}),
        lambda path: vg.load_state(path),
    ):
        with pytest.raises(ImportError, match=r"pip install pyvecgpu\[safetensors\]"):
            call(tmp_path / "x.safetensors")


@pytest.mark.needs("safetensors")
def test_safetensors(device, rng, tmp_path):
    path = tmp_path / "x.safetensors"
    kept = [dtype for dtype in helpers.ALL_DTYPES if dtype != np.complex128]  # which it has not
    x = {
        f"{dtype}/{shape}": helpers.integers(rng, shape, dtype)
        for dtype in kept
        for shape in ((2, 3), (), (0, 2), (1,))
    }
    vg.save_state(path, {name: put(device, values).T for name, values in x.items()})
    loaded = vg.load_state(path, device=device)
    assert set(loaded) == set(x)
    for name, values in x.items():
        assert_same(loaded[name], values.T)
    header = b'{"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}}'
    with_others = tmp_path / "others.safetensors"
    with_others.write_bytes(struct.pack("<Q", len(header)) + header + b"12")
    with pytest.raises(ValueError, match="a is of F8_E4M3, which arrays cannot have"):
        vg.load_state(with_others)
    with pytest.raises(TypeError, match="arrays by name"):
        vg.save_state(path, {"n": 1})
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(ValueError, match="load_state"):
        vg.load_state(path)


ENTRY = '{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'


@pytest.mark.needs("safetensors")
@pytest.mark.parametrize(
    "header",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "{",
        "\xff",
        f'{{"a":{ENTRY},"b":{ENTRY}}}',  # they overlap
        f'{{"a":{ENTRY.replace("[0,4]", "[4,8]")}}}',  # a hole
        f'{{"a":{ENTRY.replace("[0,4]", "[0,400]")}}}',
        f'{{"a":{ENTRY.replace("[0,4]", "[4,0]")}}}',
        f'{{"a":{ENTRY.replace("[1]", "[NaN]")}}}',
        f'{{"a":{ENTRY.replace("[1]", "[true]")}}}',
        f'{{"a":{ENTRY.replace("[1]", "[-1]")}}}',
        f'{{"a":{ENTRY.replace("[1]", f"[{2**64}]")}}}',
    ],
    ids=range(12),
)
def test_safetensors_that_lie(tmp_path, header):
    path = tmp_path / "x.safetensors"
    text = header.encode("latin-1")
    for length in (len(text), len(text) + 1000, 2**63, 3):
        path.write_bytes(struct.pack("<Q", length) + text + b"1234")
        with pytest.raises(ValueError, match="load_state"):
            vg.load_state(path)


TWICE = ["a", "b", "__metadata__", "dtype", "shape", "data_offsets", "of it"]


@pytest.mark.needs("safetensors")
@pytest.mark.parametrize("escaped", [False, True])
@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("name", TWICE)
def test_names_that_are_in_a_header_twice(tmp_path, name, same, escaped):
    """Whichever it is, with the same value or another, and however it is written."""
    path = tmp_path / "x.safetensors"

    def header(twice):
        def members(**pairs):
            found = [f'"{key.replace("_it", " it")}":{value}' for key, value in pairs.items()]
            for i, (key, value) in enumerate(pairs.items()):
                if key.replace("_it", " it") == twice:
                    text = found[i].partition(":")[0][2:]
                    text = f'"\\u{ord(twice[0]):04x}{text}' if escaped else f'"{twice[0]}{text}'
                    found.append(f"{text}:{value if same else others[twice]}")
            return "{" + ",".join(found) + "}"

        def tensor(begin, dtype="F32"):
            place = f"[{begin},{begin + 4}]"
            return members(dtype=f'"{dtype}"', shape="[1]", data_offsets=place)

        others = {"dtype": '"I32"', "shape": "[1,1]", "data_offsets": "[0,8]", "of it": '"y"'}
        others |= {"a": tensor(0, "I32"), "b": tensor(4, "I32"), "__metadata__": "{}"}
        metadata = members(of_it='"x"', other='"x"')
        return members(__metadata__=metadata, a=tensor(0), b=tensor(4))

    def load(twice):
        text = header(twice).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + struct.pack("<2f", 1, 2))
        return {key: x.tolist() for key, x in vg.load_state(path).items()}

    assert load(None) == {"a": [1.0], "b": [2.0]}
    with pytest.raises(ValueError, match=rf"load_state: .*x\.safetensors: .*{name}"):
        load(name)
