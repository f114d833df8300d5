"""Arrays in NumPy's files: what is written is read, by NumPy too, or the old file stays."""

import io
import os

import helpers
import numpy as np
import pytest
from helpers import DTYPES, LAYOUTS, assert_same, put

import pyvecgpu as vg


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_shape_and_layout(device, rng, tmp_path, dtype):
    for shape in ((), (0,), (5,), (3, 4), (2, 0, 3)):
        x = helpers.integers(rng, shape, dtype)
        for layout in LAYOUTS if x.ndim == 2 else ["contiguous"]:
            path = tmp_path / "x.npy"
            vg.save(path, LAYOUTS[layout](device, x))
            loaded = vg.load(path, device=device)
            assert loaded.device == vg.Device(device)
            assert_same(loaded, x)
            assert np.load(path).tobytes() == x.tobytes()
            np.save(path, x)
            assert_same(vg.load(str(path), device=device), x)
    assert os.listdir(tmp_path) == ["x.npy"]


def test_several_arrays(device, rng, tmp_path):
    x = {str(dtype): helpers.integers(rng, (2, 3), dtype) for dtype in DTYPES}
    arrays = {name: put(device, values) for name, values in x.items()}
    first = np.arange(3.0)
    for save in (vg.savez, vg.savez_compressed):
        path = str(tmp_path / save.__name__)
        save(path, first, **arrays)
        loaded = vg.load(f"{path}.npz", device=device)
        assert set(loaded) == {"arr_0", *x}
        assert_same(loaded["arr_0"], first)
        for name, values in x.items():
            assert_same(loaded[name], values)
    with pytest.raises(ValueError, match="arr_0"):
        vg.savez(tmp_path / "y", first, arr_0=first)
    with pytest.raises(ValueError, match="cannot write arrays named"):
        vg.savez(tmp_path / "y", file=first)
    assert not (tmp_path / "y.npz").exists()


def test_open_files_and_names(device, tmp_path):
    x = put(device, np.arange(6.0))
    stream = io.BytesIO()
    vg.save(stream, x)
    vg.save(stream, x[:2])
    stream.seek(0)
    assert [vg.load(stream, device=device).size for _ in range(2)] == [6, 2]
    vg.save(tmp_path / "a.b", x)
    vg.save(os.fsencode(tmp_path / "c"), x)
    assert sorted(os.listdir(tmp_path)) == ["a.b.npy", "c.npy"]
    (tmp_path / "link.npy").symlink_to(tmp_path / "c.npy")
    vg.save(tmp_path / "link", x[:1])
    assert vg.load(tmp_path / "c.npy", device=device).size == 1
    assert (tmp_path / "link.npy").is_symlink()


def test_a_pipe_is_written_to(device, tmp_path):
    path, x = tmp_path / "pipe.npy", put(device, np.arange(6.0))
    os.mkfifo(path)
    end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        vg.save(path, x)
        assert_same(vg.load(io.BytesIO(os.read(end, 10_000)), device=device), np.arange(6.0))
    finally:
        os.close(end)


def test_a_file_is_whole_or_as_it_was(device, tmp_path, monkeypatch):
    path, x = tmp_path / "x.npy", put(device, np.arange(6.0))
    vg.save(path, x)

    def fails(stream, values, **options):
        stream.write(b"half of it")
        stream.flush()
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "save", fails)
    for file in (path, tmp_path / "new"):
        with pytest.raises(OSError, match="no space left"):
            vg.save(file, x[:2])
    assert os.listdir(tmp_path) == ["x.npy"]
    assert_same(vg.load(path, device=device), np.arange(6.0))


@pytest.mark.parametrize(
    "name",
    [
        "x.npy",
        "x.npz",
        "state.npz",
        pytest.param("state.safetensors", marks=pytest.mark.needs("safetensors")),
    ],
)
def test_a_name_is_given_to_what_is_on_the_disk(device, tmp_path, monkeypatch, name):
    x, path, done = put(device, np.arange(6.0)), tmp_path / name, []
    fsync, replace = os.fsync, os.replace
    save = {"x.npy": vg.save, "x.npz": vg.savez}.get(name)

    def synced(number):
        fsync(number)
        done.append(("fsync", os.fstat(number).st_ino, os.fstat(number).st_size))

    def replaced(source, target):
        done.append(("replace", os.stat(source).st_ino, os.stat(source).st_size))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    save(path, x) if save else vg.save_state(path, {"x": x})
    assert [step[0] for step in done] == ["fsync", "replace"]
    assert done[0][1:] == done[1][1:] == (path.stat().st_ino, path.stat().st_size)


KILLED = """
import os, signal
import numpy as np
import pyvecgpu as vg
def fails(stream, values, **options):
    stream.write(b"half of it")
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
np.save = fails
vg.save({path!r}, vg.ones(3, device={device!r}))
"""


def test_a_process_that_is_killed_while_it_writes(device, tmp_path):
    path = str(tmp_path / "x.npy")
    vg.save(path, put(device, np.arange(6.0)))
    result = helpers.run_child(KILLED.format(path=path, device=device))
    assert result.returncode < 0
    assert_same(vg.load(path, device=device), np.arange(6.0))


def test_pickles_are_refused(device, tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.array([{}], object))
    with pytest.raises(ValueError, match="allow_pickle"):
        vg.load(path, device=device)
    path.write_bytes(b"\x80\x04N.")
    with pytest.raises(ValueError, match="pickled"):
        vg.load(path, device=device)


def test_damaged_files(device, tmp_path):
    path = tmp_path / "x.npy"
    vg.save(path, put(device, np.arange(3.0)))
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError):
            vg.load(path, device=device)
    several = tmp_path / "x.npz"
    vg.savez_compressed(several, a=put(device, np.arange(30.0)), b=put(device, np.zeros(2)))
    whole = several.read_bytes()
    for length in range(0, len(whole), 7):
        several.write_bytes(whole[:length])
        with pytest.raises(ValueError):
            vg.load(several, device=device)
    for place in range(0, len(whole), 3):  # one bit: noticed, or of no importance
        several.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        try:
            found = vg.load(several, device=device)
        except ValueError:
            continue
        assert all(x.tolist() in ([*range(30)], [0, 0]) for x in found.values())
    np.save(path, np.ones(2, np.clongdouble))
    with pytest.raises(TypeError, match="is not supported"):
        vg.load(path, device=device)


def test_files_that_cannot_be(device, tmp_path):
    x = put(device, np.ones(2))
    for call, error in (
        (lambda: vg.load(tmp_path / "none.npy"), FileNotFoundError),
        (lambda: vg.load(tmp_path), IsADirectoryError),
        (lambda: vg.save(tmp_path / "none" / "x.npy", x), FileNotFoundError),
        (lambda: vg.save(3, x), TypeError),
        (lambda: vg.load(None), TypeError),
        (lambda: vg.save(tmp_path / "x", [1, 2]), TypeError),
        (lambda: vg.savez(tmp_path / "x", 1), TypeError),
    ):
        with pytest.raises(error):
            call()
    assert os.listdir(tmp_path) == []


def test_what_load_gives_of_several_is_used_as_numpys(device, tmp_path):
    vg.savez(tmp_path / "both.npz", x=vg.ones(2, device=device), y=vg.zeros(3, device=device))
    with vg.load(tmp_path / "both.npz", device=device) as found:
        assert sorted(found.files) == sorted(found) == ["x", "y"]
    found.close()
    assert found["y"].tolist() == [0, 0, 0] and isinstance(found, dict)
