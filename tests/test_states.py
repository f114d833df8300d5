"""States of models in files: what is written is read, by NumPy too, or the old file stays."""

import json
import math
import os
import sys

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


def test_damaged_files(rng, tmp_path):
    path = tmp_path / "state.npz"
    vg.save_state(path, {"n": 3, "x": np.arange(50.0), "y": {"z": np.ones(3)}})
    whole = path.read_bytes()
    for length in (0, 1, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="load_state"):
            vg.load_state(path)
    refused = 0
    for place in rng.integers(0, len(whole), 200):
        changed = bytearray(whole)
        changed[place] ^= 1 << rng.integers(8)
        path.write_bytes(changed)
        try:
            loaded = vg.load_state(path)
        except ValueError:
            refused += 1
        else:
            assert isinstance(loaded, dict)
    assert refused > 50
    for text in ("[", "3", '{"array":"none"}', '{"set":[]}', '{"a":1,"b":2}', '{"dict":[1]}'):
        content = np.frombuffer(text.encode(), np.uint8)
        np.savez(path, __structure__=content, x=np.ones(2))
        if json.loads(text if text != "[" else "0") == 3:
            assert vg.load_state(path) == 3
            continue
        with pytest.raises(ValueError, match="is no state"):
            vg.load_state(path)
    np.savez(path, x=np.array([{}], object))
    with pytest.raises(ValueError, match="load_state"):
        vg.load_state(path)
    np.save(tmp_path / "x.npy", np.ones(3))
    with pytest.raises(ValueError, match="load_state"):
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
    x = {str(d): helpers.integers(rng, (2, 3), np.dtype(d)) for d in ("float32", "int64", "bool")}
    vg.save_state(path, {name: put(device, values).T for name, values in x.items()})
    loaded = vg.load_state(path, device=device)
    assert set(loaded) == set(x)
    for name, values in x.items():
        assert_same(loaded[name], values.T)
    with pytest.raises(TypeError, match="arrays by name"):
        vg.save_state(path, {"n": 1})
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(ValueError, match="load_state"):
        vg.load_state(path)
