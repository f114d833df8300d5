"""Data sets, batches and their order, and files: IDX, CSV, .npz, text, whole and damaged."""

import contextlib
import gc
import gzip
import struct
import threading
import time
import weakref

import helpers
import numpy as np
import pytest
from helpers import assert_same, put

import pyvecgpu as vg
from pyvecgpu.data.ahead import ahead
from pyvecgpu.dispatch import observe
from pyvecgpu.streams import POOL

data = vg.data
COUNT = 23


def pair(device, count=COUNT):
    return put(device, np.arange(count * 2.0).reshape(count, 2)), put(device, np.arange(count))


class Squares(data.Dataset):
    """One of a user's own: numbers, NumPy arrays, names."""

    def __len__(self):
        return 7

    def __getitem__(self, index):
        return {"x": np.full(2, index, np.float32), "y": index**2, "name": f"n{index}"}


# Data sets ----------------------------------------------------------------------------------------


def test_tensor_dataset(device):
    x, y = pair(device)
    rows = data.TensorDataset(x, y)
    assert len(rows) == COUNT and rows[3][0].tolist() == [6.0, 7.0] and rows[-1][1].item() == 22
    with pytest.raises(ValueError, match="first axes of one length"):
        data.TensorDataset(x, y[:-1])
    with pytest.raises(ValueError, match="first axes"):
        data.TensorDataset(vg.asarray(1.0, device=device))
    with pytest.raises(ValueError, match="an array or more"):
        data.TensorDataset()
    with pytest.raises(TypeError, match="not list"):
        data.TensorDataset([1, 2])


def test_windows(device):
    values = np.arange(10, dtype=np.int64)
    for array in (values, put(device, values)):
        pairs = data.Windows(array, 4)
        assert len(pairs) == 6
        assert [x.tolist() for x in pairs[-1]] == [[5, 6, 7, 8], [6, 7, 8, 9]]
        (x, y), (last, _) = data.DataLoader(pairs, 4, device=device)
        assert isinstance(x, vg.Array) and x.device == vg.Device(device)
        assert x.tolist() == [[i, i + 1, i + 2, i + 3] for i in range(4)]
        assert (y - x).tolist() == [[1] * 4] * 4 and last.shape == (2, 4)
        mixed = [int(x[0, 0]) for x, _ in data.DataLoader(pairs, 1, True, device=device)]
        assert sorted(mixed) == list(range(6))
    for wrong in (10, 0):
        with pytest.raises(ValueError, match=f"no windows of {wrong}"):
            data.Windows(values, wrong)
    with pytest.raises(IndexError):
        pairs[6]


@pytest.mark.parametrize(
    "lengths", [[20, 3], [0.8, 0.2], [1.0], [23], [0, 23, 0], [0.5, 0.25, 0.25]], ids=str
)
def test_random_split(lengths):
    numbers = data.TensorDataset(np.arange(COUNT))
    parts = data.random_split(numbers, lengths, vg.random.default_rng(1))
    again = data.random_split(numbers, lengths, 1)
    found = [[int(part[i][0]) for i in range(len(part))] for part in parts]
    assert found == [[int(part[i][0]) for i in range(len(part))] for part in again]
    numbers = [n for part in found for n in part]
    assert sorted(numbers) == list(range(COUNT)) != numbers
    if isinstance(lengths[0], int):
        assert [len(part) for part in parts] == lengths
    else:
        assert all(abs(len(p) - COUNT * x) <= 1 for p, x in zip(parts, lengths, strict=True))


@pytest.mark.parametrize("lengths", [[20], [24, -1], [0.5, 0.4], [1.5, -0.5], []])
def test_lengths_of_another_sum(lengths):
    with pytest.raises(ValueError, match=r"the lengths|the sum of the parts"):
        data.random_split(data.TensorDataset(np.arange(COUNT)), lengths)


# Batches ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("batch_size", [1, 4, 23, 30])
def test_batches_in_order(device, batch_size, drop_last):
    x, y = pair(device)
    loader = data.DataLoader(data.TensorDataset(x, y), batch_size, drop_last=drop_last)
    full, rest = divmod(COUNT, batch_size)
    sizes = [batch_size] * full + ([rest] if rest and not drop_last else [])
    for _ in range(2):
        batches = list(loader)
        assert [len(b) for b, _ in batches] == sizes and len(loader) == len(sizes)
        rows = [row for b, _ in batches for row in b.tolist()]
        assert rows == x.tolist()[: sum(sizes)]
        assert [n for _, b in batches for n in b.tolist()] == list(range(sum(sizes)))


@pytest.mark.parametrize("kind", ["arrays", "host", "windows", "subset", "samples"])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("batch_size", [1, 4, COUNT])
def test_a_batch_that_is_changed_leaves_the_data_alone(device, kind, shuffle, batch_size):
    x, y = pair(device)
    made = {
        "arrays": lambda: data.TensorDataset(x, y),
        "host": lambda: data.TensorDataset(x.numpy(), y.numpy()),
        "windows": lambda: data.Windows(y, 3),
        "subset": lambda: data.Subset(data.TensorDataset(x, y), np.arange(COUNT)),
        "samples": Squares,
    }
    before = x.tolist(), y.tolist()
    loader = data.DataLoader(made[kind](), batch_size, shuffle, generator=1, device=device)
    found = []
    for _ in range(2):
        loader.generator.state = vg.random.default_rng(1).state
        batches = [[*b.values()][:2] if isinstance(b, dict) else b for b in loader]
        found.append([part.tolist() for batch in batches for part in batch])
        for part in [part for batch in batches for part in batch]:
            part *= 0
    assert found[0] == found[1] and (x.tolist(), y.tolist()) == before


def test_shuffling(device):
    """Rows stay together, each is there once, an epoch is unlike the other; a seed tells which."""
    x, y = pair(device)
    host = data.TensorDataset(x.numpy(), y.numpy())
    orders = []
    for rows in (data.TensorDataset(x, y), host):
        loader = data.DataLoader(rows, 5, shuffle=True, generator=vg.random.default_rng(3),
                                 device=device)  # fmt: skip
        epochs = []
        for _ in range(2):
            batches = list(loader)
            assert all(b.device == vg.Device(device) for batch in batches for b in batch)
            assert all((a[:, 0] / 2).tolist() == b.tolist() for a, b in batches)
            epochs.append([n for _, b in batches for n in b.tolist()])
        assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(COUNT))
        assert epochs[0] != epochs[1] and epochs[0] != list(range(COUNT))
        orders.append(epochs)
    assert orders[0] == orders[1]
    loader.generator.state = vg.random.default_rng(3).state
    assert [n for _, b in loader for n in b.tolist()] == orders[0][0]
    orders = []
    for _ in range(2):  # of the process's own generator
        vg.random.seed(8)
        orders.append([n for _, b in data.DataLoader(host, 5, True) for n in b.tolist()])
    assert orders[0] == orders[1]
    other = data.DataLoader(host, 5, True, generator=4, device=device)
    assert [n for _, b in other for n in b.tolist()] != orders[0]


def test_subsets_of_subsets(device):
    x, y = pair(device)
    first = data.Subset(data.TensorDataset(x, y), [20, 3, 5, 9, 11])
    part = data.Subset(first, [4, 0, 1])
    assert [int(part[i][1]) for i in range(3)] == [11, 20, 3] and int(part[-1][1]) == 3
    assert [b.tolist() for _, b in data.DataLoader(part, 2)] == [[11, 20], [3]]
    mixed = [n for _, b in data.DataLoader(part, 2, shuffle=True) for n in b.tolist()]
    assert sorted(mixed) == [3, 11, 20]
    with pytest.raises(IndexError):
        part[3]


def test_batches_are_made_on_the_device(device):
    """In an epoch nothing of the data set is copied between the host and the device."""
    x, y = pair(device)
    loader = data.DataLoader(data.TensorDataset(x, y), 4, shuffle=True)
    batches = iter(loader)
    next(batches)
    calls = []
    with observe(lambda call: calls.append(call)):
        rest = list(batches)
    assert len(rest) == 5 and calls
    assert not {"to_host", "from_host"} & {call.method for call in calls}


def test_nothing_to_take(device):
    empty = data.TensorDataset(vg.zeros((0, 3), device=device))
    for shuffle in (False, True):
        loader = data.DataLoader(empty, 4, shuffle=shuffle)
        assert list(loader) == [] and len(loader) == 0


def test_data_sets_of_ones_own(device):
    (first, last) = data.DataLoader(Squares(), 4, device=device)
    assert first["x"].tolist() == [[i, i] for i in range(4)] and first["x"].dtype == np.float32
    assert last["y"].tolist() == [16, 25, 36] and last["name"] == ["n4", "n5", "n6"]
    assert first["x"].device == first["y"].device == vg.Device(device)
    mixed = [n for b in data.DataLoader(Squares(), 2, shuffle=True) for n in b["name"]]
    assert sorted(mixed) == [f"n{i}" for i in range(7)]
    loader = data.DataLoader(Squares(), 3, collate_fn=lambda samples: [s["y"] for s in samples])
    assert list(loader) == [[0, 1, 4], [9, 16, 25], [36]]
    arrays = data.collate([(vg.ones(2, device=device), 1.5)] * 3, device)
    assert arrays[0].shape == (3, 2) and arrays[1].tolist() == [1.5] * 3
    with pytest.raises(ValueError, match="equally many parts"):
        data.collate([(1, 2), (1,)])


def test_one_of_ones_own_with_batches(device):
    class Doubles(data.Dataset):
        def __len__(self):
            return 5

        def batch(self, indices):
            return indices * 2

    assert [b.tolist() for b in data.DataLoader(Doubles(), 3, device=device)] == [[0, 2, 4], [6, 8]]


@pytest.mark.parametrize(("size", "error"), [(0, ValueError), (-1, ValueError), (2.0, TypeError),
                                             (True, TypeError)])  # fmt: skip
def test_sizes_of_batches(size, error):
    with pytest.raises(error, match="batch_size"):
        data.DataLoader(Squares(), size)


@pytest.mark.parametrize(("generator", "error", "kind"), [
    (np.random.default_rng(1), TypeError, r"numpy\.random\..*Generator"),
    (np.random.RandomState(1), TypeError, r"numpy\.random\..*RandomState"),
    (1.5, TypeError, "float"), ("x", TypeError, "str"), (-1, ValueError, "-1"),
])  # fmt: skip
def test_generators_of_something_else(generator, error, kind):
    numbers = data.TensorDataset(np.arange(4))
    for call in (
        lambda: data.DataLoader(numbers, 2, shuffle=True, generator=generator),
        lambda: data.random_split(numbers, [2, 2], generator),
        lambda: vg.random.default_rng(generator),
    ):
        with pytest.raises(error, match=rf"a seed is .* or a Generator of vg\.random, not {kind}$"):
            call()


# Threads that work ahead --------------------------------------------------------------------------


class Slow(data.Dataset):
    """Numbers, of which some take longer; it knows who asked, and fails at one of them."""

    def __init__(self, fails=None, pause=0.0005):
        self.fails, self.pause, self.asked, self.threads = fails, pause, [], set()

    def __len__(self):
        return 40

    def __getitem__(self, index):
        self.asked.append(index)
        self.threads.add(threading.current_thread())
        if index == self.fails:
            raise KeyError(index)
        time.sleep(self.pause * (8 if index % 8 == 0 else 1))
        return np.full(3, index, np.float32), index


def assert_no_threads(rows):
    assert rows.threads and not any(thread.is_alive() for thread in rows.threads)


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_give_what_one_thread_gives(device, workers):
    x, y = pair("cpu")
    for rows in (Slow(), data.TensorDataset(x.numpy(), y.numpy())):
        for chosen in ({}, {"shuffle": True}, {"batch_size": 7, "drop_last": True}):
            epochs = []
            for count in (0, workers):
                chosen = {"batch_size": 4, "generator": 5, "device": device, **chosen}
                loader = data.DataLoader(rows, num_workers=count, **chosen)
                batches = [batch for _ in range(2) for batch in loader]
                assert {b.device for batch in batches for b in batch} == {vg.Device(device)}
                epochs.append([[b.tolist() for b in batch] for batch in batches])
            assert epochs[0] == epochs[1]
    slow = Slow()
    with vg.device(device):
        used = [b for b, _ in data.DataLoader(slow, 4, num_workers=workers)]
    assert {b.device for b in used} == {vg.Device(device)}, "the current device is the consumer's"
    assert threading.current_thread() not in slow.threads
    assert len(slow.threads) <= workers
    assert_no_threads(slow)


@pytest.mark.devices("sim", "cuda")
def test_workers_upload_on_a_stream_of_their_own(device):
    """One that is not the step's, and the same for all of them; the step's work waits for it."""
    streams = []

    def collated(samples):
        streams.append(current_stream(device))
        return vg.asarray(np.stack([row for row, _ in samples]), device=device)

    rows = Slow(pause=0)
    loader = data.DataLoader(rows, 4, device=device, num_workers=3, collate_fn=collated)
    with vg.stream(device=device):
        own = current_stream(device)
        sums = [(batch * 2).sum().item() for batch in loader]
    assert len(set(streams)) == 1 and own not in streams
    assert current_stream(device) not in streams
    assert sums == [6.0 * sum(range(i, i + 4)) for i in range(0, 40, 4)]


def current_stream(device):
    functions = vg.device(device).backend.functions
    return functions.pvg_stream_current(vg.device(device).index)


def test_workers_are_ahead_by_so_much_and_no_more(device):
    rows = Slow()
    batches = iter(data.DataLoader(rows, 2, device=device, num_workers=2, prefetch_factor=3))
    assert not rows.asked, "nothing is begun before the first batch is asked for"
    next(batches)
    deadline = time.monotonic() + 20
    while len(rows.asked) < 2 * (2 * 3 + 1) and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.02)
    assert len(rows.asked) == 2 * (2 * 3 + 1)
    batches.close()
    assert_no_threads(rows)
    rows = Slow(pause=0.02)
    batches = iter(data.DataLoader(rows, 2, device=device, num_workers=1, prefetch_factor=20))
    next(batches)
    batches.close()
    assert len(rows.asked) < 40, "what is not begun is left out"


def test_a_batch_that_was_used_is_not_kept(device):
    """Its memory is free while the next one is made and waited for."""

    class Batch:
        pass

    gone, last = [], []

    def make(key):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and (len(last) < key or (key and last[key - 1]())):
            time.sleep(0.001)  # until the batch before was used, and then until it is gone
        gone.append(key == 0 or (len(last) >= key and last[key - 1]() is None))
        return Batch()

    with contextlib.closing(ahead(make, range(4), 1, 1, vg.Device(device))) as batches:
        for _ in range(4):
            batch = next(batches)
            last.append(weakref.ref(batch))
            del batch
    assert gone == 4 * [True]


def test_an_error_comes_in_its_place(device):
    for _ in range(POOL):  # streams that are kept, with an event each
        for batch in data.DataLoader(Slow(pause=0), 40, device=device, num_workers=2):
            assert batch[1].tolist() == [*range(40)]
    del batch
    gc.collect()
    time.sleep(0.05)  # a thread that was joined has a moment to go
    live = helpers.in_use(device)
    rows, seen = Slow(fails=13), []
    with pytest.raises(KeyError, match="13"):
        for batch in data.DataLoader(rows, 4, device=device, num_workers=2):
            seen += batch[1].tolist()
    assert seen == list(range(12))
    assert_no_threads(rows)
    rows = Slow()
    for batch in data.DataLoader(rows, 4, device=device, num_workers=2):
        if batch[1].tolist()[0] == 8:
            break
    assert_no_threads(rows)
    del batch
    gc.collect()
    deadline = time.monotonic() + 20
    while helpers.in_use(device) != live and time.monotonic() < deadline:
        time.sleep(0.001)  # a thread that was joined has a moment to go
    assert helpers.in_use(device) == live


def test_what_is_on_the_device_needs_no_workers(device):
    x, y = pair(device)
    before = threading.active_count()
    for _ in data.DataLoader(data.TensorDataset(x, y), 4, num_workers=3):
        assert threading.active_count() == before or device == "cpu"


@pytest.mark.parametrize(("name", "value", "error"), [("num_workers", -1, ValueError),
                         ("num_workers", 1.0, TypeError), ("num_workers", True, TypeError),
                         ("prefetch_factor", 0, ValueError)])  # fmt: skip
def test_numbers_of_workers(name, value, error):
    with pytest.raises(error, match=name):
        data.DataLoader(Squares(), **{name: value})


# Files --------------------------------------------------------------------------------------------

KINDS = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def idx(code, values):
    head = struct.pack(f">HBB{values.ndim}I", 0, code, values.ndim, *values.shape)
    return head + values.astype(KINDS[code]).tobytes()


@pytest.mark.parametrize("code", KINDS)
def test_idx(device, rng, tmp_path, code):
    for shape in ((4,), (3, 5, 7), (0, 2)):
        values = rng.integers(0, 100, shape).astype(np.dtype(KINDS[code]).newbyteorder("="))
        content = idx(code, values)
        for name, written in (("x", content), ("x.gz", gzip.compress(content))):
            (tmp_path / name).write_bytes(written)
            loaded = data.load_idx(tmp_path / name, device=device)
            assert loaded.device == vg.Device(device)
            assert_same(loaded, values)


def test_damaged_idx(rng, tmp_path):
    path = tmp_path / "x"
    whole = idx(0x0B, rng.integers(0, 9, (3, 4)))
    packed = gzip.compress(whole)
    wrong = [whole[:n] for n in range(len(whole))] + [packed[:n] for n in range(len(packed))]
    wrong += [whole + b"\0", b"\1" + whole[1:], b"\0\0\x07" + whole[3:]]
    wrong += [gzip.compress(whole + b"x")]
    wrong += [b"\0\0\x0e\3" + b"\xff" * 12 + b"abc", b"\0\0\x08\xff" + b"\0\0\0\1" * 255 + b"a"]
    wrong += [packed[:15] + bytes([packed[15] ^ 255]) + packed[16:], packed[:-8] + b"12345678"]
    for content in wrong:
        path.write_bytes(content)
        with pytest.raises(ValueError):
            data.load_idx(path)
    with pytest.raises(FileNotFoundError):
        data.load_idx(tmp_path / "none")


def test_csv(device, rng, tmp_path):
    path = tmp_path / "x.csv"
    x = rng.standard_normal((5, 3))
    np.savetxt(path, x, delimiter=",", header="a,b,c", comments="", fmt="%.17g")
    assert_same(data.load_csv(path, skiprows=1, dtype="float64", device=device), x)
    loaded = data.load_csv(path, skiprows=1, usecols=(2, 0), device=device)
    assert_same(loaded, x[:, [2, 0]].astype(np.float32))
    path.write_bytes(b'\xef\xbb\xbf1;"2"\r\n3;4\r\n')
    assert_same(data.load_csv(path, delimiter=";", dtype="int64"), np.array([[1, 2], [3, 4]]))
    path.write_text("7")
    assert data.load_csv(path).tolist() == [[7.0]]


@pytest.mark.parametrize("dtype", [*helpers.DTYPES, vg.bfloat16, "bfloat16"], ids=str)
def test_csv_of_every_dtype(device, tmp_path, dtype):
    path = tmp_path / "x.csv"
    path.write_text("1,0\n1,1\n")
    loaded = data.load_csv(path, dtype=dtype, device=device)
    assert loaded.dtype == (vg.bfloat16 if str(dtype) == "bfloat16" else np.dtype(dtype))
    assert loaded.tolist() == [[1, 0], [1, 1]]
    for wrong in ("foo", "U3"):
        with pytest.raises(TypeError, match="arrays can be: bool"):
            data.load_csv(path, dtype=wrong)


@pytest.mark.parametrize("text", ["", "a,b\n", "\n\n", "1,2\n3\n", "1,x\n", "1,\n", "1,2\n3,\xff"])
def test_damaged_csv(tmp_path, text):
    (tmp_path / "x.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"load_csv: .*x\.csv"):
        data.load_csv(tmp_path / "x.csv", skiprows=0)


def test_npz(device, tmp_path):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=np.arange(300.0), b=np.ones((2, 2), np.int32))
    loaded = data.load_npz(path, device=device)
    assert set(loaded) == {"a", "b"} and loaded["a"].device == vg.Device(device)
    b, a = data.load_npz(path, ["b", "a"], device=device)
    assert_same(a, np.arange(300.0))
    assert_same(b, np.ones((2, 2), np.int32))
    with pytest.raises(ValueError, match=r"has \['a', 'b'\], and not \['c'\]"):
        data.load_npz(path, ["a", "c"])
    np.savez(tmp_path / "mixed.npz", a=np.arange(3), names=np.array(["x", "y"]))
    (a,) = data.load_npz(tmp_path / "mixed.npz", iter(["a"]), device=device)
    assert_same(a, np.arange(3))
    for read in (data.load_npz, vg.load_state, vg.load):
        with pytest.raises(
            TypeError, match=rf"{read.__name__}: .*mixed\.npz has 'names': dtype <U1"
        ):
            read(tmp_path / "mixed.npz")
    whole = path.read_bytes()
    middle = whole[:200] + b"\0" * 50 + whole[250:]
    for content in (b"", whole[:100], whole[:-5], b"PK\3\4", middle):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="load_npz"):
            data.load_npz(path)
    np.save(tmp_path / "y.npy", np.ones(2))
    with pytest.raises(ValueError, match=r"is no \.npz"):
        data.load_npz(tmp_path / "y.npy")
    np.savez(path, x=np.array([{}], object))
    with pytest.raises(ValueError, match="load_npz"):
        data.load_npz(path)


def test_text(device, tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("hello w\u00f6rld\n", encoding="utf-8")
    values, characters = data.load_text(path, device=device)
    assert values.dtype == np.int64 and values.device == vg.Device(device) and len(characters) == 10
    assert characters.decode(values) == "hello w\u00f6rld\n" == characters.decode(values.tolist())
    assert characters.decode(values[0]) == "h" and "w" in repr(characters)
    path.write_text("low", encoding="utf-8")
    again, same = data.load_text(path, characters)
    assert same is characters and characters.decode(again) == "low"
    with pytest.raises(ValueError, match="vocabulary has no 'x'"):
        characters.encode("lox")
    with pytest.raises(ValueError, match="none of the 10"):
        characters.decode([10])
    assert characters.decode(0) == characters.decode([np.int64(0)]) == characters.decode([0])
    for bad, kind in (([0.5], "float"), (np.ones(2), "float"), (["a"], "str"), ("ab", "str"),
                      ([[1, 2]], "list"), (values[None], "list"), (None, "NoneType")):  # fmt: skip
        with pytest.raises(TypeError, match=f"decode takes integers in a row, and {kind} is none"):
            characters.decode(bad)
    for content, message in ((b"", "empty"), (b"\xff\xfe\xfd", "decode")):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"load_text: .*{message}"):
            data.load_text(path)
