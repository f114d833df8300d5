"""Memory: exhaustion and limits, what is held afterwards, canaries, fresh memory, double frees."""

import ctypes
import gc
import sys

import helpers
import numpy as np
import pytest
from helpers import assert_same, put

import pyvecgpu as vg
from pyvecgpu.native import abi, library
from pyvecgpu.native.abi import FUNCTIONS, Status

MIB = 1 << 20


@pytest.fixture
def limited(device):
    """A device that may hold 64 MiB; the limit is taken away afterwards."""
    vg.empty_cache(device)
    vg.set_memory_limit(64 * MIB + vg.memory_info(device).reserved, device)
    yield device
    vg.set_memory_limit(None, device)
    vg.empty_cache(device)


# ---- Exhaustion ----------------------------------------------------------------------------------


@pytest.mark.devices("sim", "cuda")
def test_exhaustion_carries_numbers_and_harms_nothing(limited, rng):
    kept = put(limited, helpers.numbers(rng, 1000, np.dtype(np.float32)))
    with helpers.refused(limited, vg.OutOfMemoryError, kept, match="out of memory") as caught:
        vg.zeros(100 * MIB, dtype="uint8", device=limited)
    error = caught.value
    assert error.requested == 100 * MIB
    assert 0 <= error.free <= vg.memory_info(limited).total
    assert error.reserved <= 64 * MIB + vg.memory_info(limited).reserved
    assert error.device == f"{limited}:0"
    assert str(100 * MIB) in str(error) and "limit" in str(error)
    for call in (
        lambda: vg.broadcast_to(kept[:1], (100 * MIB,)) + kept[:1],
        lambda: kept.reshape(-1, 1) @ vg.broadcast_to(kept[:1], (1, MIB)),
        lambda: vg.broadcast_to(kept[:1], (30 * MIB,)).astype("float64"),
        lambda: vg.broadcast_to(kept, (30_000, 1000)).copy(),
        lambda: vg.exp(vg.broadcast_to(kept[:1], (30 * MIB,))),
    ):
        with helpers.refused(limited, vg.OutOfMemoryError, kept):
            call()


@pytest.mark.devices("sim", "cuda")
@pytest.mark.alone("cuda")
def test_memory_of_the_whole_card(device):
    """Allocations go on until the card is full; then there is an error, and then there is room."""
    vg.empty_cache(device)
    piece = vg.memory_info(device).total // 8
    held, error = [], None
    while error is None:
        try:
            held.append(vg.empty(piece, dtype="uint8", device=device))
        except vg.OutOfMemoryError as caught:
            error = caught.with_traceback(None)
    assert error.requested == piece
    assert error.free < piece
    assert 5 <= len(held) <= 8
    held.pop()
    helpers.assert_works(device)
    vg.empty_cache(device)
    held.append(vg.empty(vg.memory_info(device).free // 2, dtype="uint8", device=device))
    del held
    vg.empty_cache(device)


@pytest.mark.devices("sim", "cuda")
def test_free_and_retry(limited):
    """Cached blocks, also those of other sizes, are given up before an allocation fails."""
    first = vg.zeros(40 * MIB, dtype="uint8", device=limited)
    with helpers.refused(limited, vg.OutOfMemoryError):
        vg.zeros(40 * MIB, dtype="uint8", device=limited)
    del first
    second = vg.ones(50 * MIB, dtype="uint8", device=limited)
    assert vg.sum(second).item() == 50 * MIB
    del second
    small = [vg.zeros(500_000, dtype="uint8", device=limited) for _ in range(60)]
    del small
    assert vg.ones(60 * MIB, dtype="uint8", device=limited)[-1].item() == 1


@pytest.mark.devices("sim", "cuda")
def test_exception_holds_no_memory(limited):
    before = helpers.live(limited)
    try:
        big = vg.zeros(30 * MIB, dtype="uint8", device=limited)
        (big + 1) + (big + 2)
    except vg.OutOfMemoryError as error:
        kept = error
    del big
    kept.__traceback__ = None
    gc.collect()
    assert helpers.live(limited) == before
    assert not any(isinstance(value, vg.Array) for value in vars(kept).values())


@pytest.mark.devices("sim", "cuda")
def test_temporaries_of_a_failed_operation_are_freed(limited):
    """Operands of other dtypes and layouts need temporaries; the last allocation fails."""
    a = vg.ones((1000, 1000), dtype="int32", device=limited)
    b = vg.ones((1000, 1000), dtype="float32", device=limited)
    vg.set_memory_limit(vg.memory_info(limited).reserved + 10 * MIB, limited)
    for call in (
        lambda: a.T + b,
        lambda: a @ b,
        lambda: vg.where(a > 0, a, b),
        lambda: vg.mean(a.T + b),
    ):
        with helpers.refused(limited, vg.OutOfMemoryError, a, b):
            call()


# ---- Limits --------------------------------------------------------------------------------------


@pytest.mark.devices("sim", "cuda")
def test_limits_that_make_no_sense(device):
    total = vg.memory_info(device).total
    for limit in (0, -1, total + 1, 2**63, 2**70, "abc", "", "0", "1.5G", "-1"):
        with helpers.refused(device, ValueError):
            vg.set_memory_limit(limit, device)
    for limit in (1.5, True, [1], b"1"):
        with helpers.refused(device, TypeError):
            vg.set_memory_limit(limit, device)
    assert vg.memory_info(device).limit is None
    vg.set_memory_limit(total, device)
    assert vg.memory_info(device).limit == total
    vg.set_memory_limit("512M", device)
    assert vg.memory_info(device).limit == 512 * MIB
    vg.set_memory_limit(None, device)
    assert vg.memory_info(device).limit is None


@pytest.mark.devices("sim", "cuda")
def test_limit_below_what_is_held(device):
    x = vg.ones(5 * MIB, dtype="uint8", device=device)
    vg.empty_cache(device)
    vg.set_memory_limit(MIB, device)
    try:
        with pytest.raises(vg.OutOfMemoryError):
            vg.zeros(40 * MIB, dtype="uint8", device=device)
        assert x[0].item() == 1
    finally:
        vg.set_memory_limit(None, device)
    helpers.assert_works(device)


# ---- The pool ------------------------------------------------------------------------------------


@pytest.mark.alone("cuda")
@pytest.mark.devices("sim", "cuda")
def test_random_sizes_waste_little(device, rng):
    """Many arrays of random sizes come and go: reserved memory stays near what was in use."""
    vg.empty_cache(device)
    loaded = library.load(device)
    start = vg.memory_info(device)
    base, live = start.reserved, {}
    sizes = np.exp2(rng.uniform(0, 22, 1_000_000)).astype(np.int64)
    slots = rng.integers(0, 500, len(sizes))
    steps = len(sizes) if device == "cuda" else 60_000
    shape, peak, used = (ctypes.c_int64 * 1)(), 0, 0
    for slot, size in zip(slots[:steps].tolist(), sizes[:steps].tolist(), strict=True):
        old = live.pop(slot, None)
        if old:
            loaded.pvg_array_release(old[0])
            used -= old[1]
        shape[0] = size
        live[slot] = loaded.pvg_array_empty(0, 5, 1, shape), size
        used += size
        peak = max(peak, used)
    info = vg.memory_info(device)
    for handle, _ in live.values():
        assert loaded.pvg_array_release(handle) == 0
    assert info.used - start.used >= used
    assert info.reserved - base <= 1.5 * peak, (info.reserved - base, peak)
    assert info.driver_calls - start.driver_calls < 2000
    vg.empty_cache(device)
    after = vg.memory_info(device)
    assert after.used == start.used
    assert after.reserved <= base
    assert abs(after.free - start.free) <= 64 * MIB


@pytest.mark.devices("sim", "cuda")
def test_empty_cache_gives_memory_back(device):
    vg.empty_cache(device)
    before = vg.memory_info(device)
    vg.zeros(100 * MIB, dtype="uint8", device=device)
    cached = vg.memory_info(device)
    assert cached.used == before.used
    assert cached.reserved >= before.reserved + 100 * MIB
    vg.empty_cache(device)
    assert vg.memory_info(device).reserved == before.reserved


@pytest.mark.devices("sim", "cuda")
def test_size_zero_takes_no_memory(device):
    before = vg.memory_info(device)
    x = vg.empty((0, 5), device=device)
    after = vg.memory_info(device)
    assert (after.used, after.blocks, after.allocations) == (
        before.used,
        before.blocks,
        before.allocations,
    )
    assert x.backend.pointer(x.raw) is None


def test_many_arrays_come_and_go(device):
    for _ in range(2000):
        x = vg.zeros(100, device=device)
        y = x[1:].reshape(9, 11).T
    assert y.shape == (11, 9)


def test_cycles_are_collected(device):
    class Holder:
        pass

    for _ in range(20):
        a, b = Holder(), Holder()
        a.other, b.other, a.array = b, a, vg.zeros(1000, device=device)
    del a, b
    gc.collect()


# ---- The C interface -----------------------------------------------------------------------------


@pytest.mark.devices("sim", "cuda")
def test_double_free_and_foreign_handles(device):
    loaded = library.load(device)
    before = helpers.live(device)
    shape = (ctypes.c_int64 * 1)(4)
    handle = loaded.pvg_array_empty(0, 11, 1, shape)
    assert loaded.pvg_array_release(handle) == Status.OK
    anything = ctypes.create_string_buffer(4096)
    bad = [handle, ctypes.addressof(anything), handle + 8, 8, 2**63, 0xDEADBEEF000]
    for pointer in bad:
        assert loaded.pvg_array_release(pointer) == Status.ERROR_VALUE
        assert "released before" in loaded.pvg_last_error().decode()
        assert loaded.pvg_array_ndim(pointer) == -1
        assert loaded.pvg_array_data(pointer) is None
    assert loaded.pvg_array_release(None) == Status.OK
    assert helpers.live(device) == before
    helpers.assert_works(device)


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("kind", ["null", "released", "foreign"])
def test_every_function_checks_its_handles(device, kind):
    """NULL, a released handle and a pointer that is none: a status or NULL, never a crash."""
    loaded = library.load(device)
    shape = (ctypes.c_int64 * 33)(*[1] * 33)
    released = loaded.pvg_array_empty(0, 11, 1, shape)
    loaded.pvg_array_release(released)
    memory = ctypes.create_string_buffer(4096)
    bad = {"null": None, "released": released, "foreign": ctypes.addressof(memory)}[kind]
    numbers = (ctypes.c_int64 * 80)(*[0] * 80)
    ints = (ctypes.c_int * 33)(*range(33))
    arguments = {
        "pvg_array_describe": (bad, numbers),
        "pvg_slice": (bad, numbers, numbers, numbers),
        "pvg_permute": (bad, ints),
        "pvg_reshape": (bad, 1, shape),
        "pvg_broadcast_to": (bad, 1, shape),
        "pvg_contiguous": (bad,),
        "pvg_part": (bad, 0),
        "pvg_copy_from_host": (bad, ctypes.addressof(memory), None),
        "pvg_copy_to_host": (bad, ctypes.addressof(memory), None),
        "pvg_copy": (bad, bad),
        "pvg_cast": (bad, 11, None),
        "pvg_fill": (bad, 3, ctypes.addressof(memory)),
        "pvg_unary": (3, bad, None),
        "pvg_binary": (100, bad, bad, None),
        "pvg_binary_scalar": (100, bad, 3, ctypes.addressof(memory), 1, None),
        "pvg_where": (bad, bad, bad, None),
        "pvg_reduce": (200, bad, -1, None, 0, None),
        "pvg_matmul": (bad, bad, 0, None),
        "pvg_dense": (bad, bad, None, 0, 0, None, None),
        "pvg_dense_backward": (bad, bad, bad, bad, 0, 0, None, None, None),
        "pvg_softmax_backward": (351, bad, bad, 1),
        "pvg_normalize": (bad, bad, bad, 0, 1, 1, 1, 0.0, bad),
        "pvg_normalize_backward": (bad, bad, bad, bad, 0, 1, 1, 1, 0.0, None, None, None),
        "pvg_cross_entropy": (bad, bad, bad, 0, 0.0, bad),
        "pvg_cross_entropy_backward": (bad, bad, bad, bad, bad, 0, 0.0),
        "pvg_activate": (0, bad, 1.0, 20.0),
        "pvg_activate_backward": (0, bad, bad, 1.0, 20.0),
        "pvg_pair_loss": (0, bad, bad, 1.0, 2),
        "pvg_pair_loss_backward": (0, bad, bad, bad, 1.0, 2, 0),
        "pvg_attention": (bad, bad, bad, None, ctypes.c_double(1.0), 0, None),
        "pvg_attention_backward": (
            *[bad] * 4,
            None,
            bad,
            bad,
            ctypes.c_double(1.0),
            0,
            *[None] * 3,
        ),
        "pvg_recurrent": (0, bad, bad, None, bad, None, 0, ctypes.byref(abi.array()), None, None),
        "pvg_recurrent_backward": (0, bad, None, None, bad, bad, None, None, 0, *[None] * 4),
        "pvg_learn": (0, shape, shape, bad, bad, None, bad, 1, (ctypes.c_double * 1)(), numbers),
    }
    good = loaded.pvg_array_empty(0, 11, 1, (ctypes.c_int64 * 1)(4))
    for name, values in arguments.items():
        result = getattr(loaded, name)(*values)
        failed = result is None if FUNCTIONS[name][0] is abi.array else result == Status.ERROR_VALUE
        assert failed, name
        assert loaded.pvg_last_status() == Status.ERROR_VALUE, (name, loaded.pvg_last_error())
        if kind != "null" and FUNCTIONS[name][1][-1] is abi.out:
            with_bad_out = [good if value is bad else value for value in values[:-1]]
            if name != "pvg_where":  # whose condition is a float here
                assert getattr(loaded, name)(*with_bad_out, bad) is None, f"{name} with a bad out"
                assert loaded.pvg_last_status() == Status.ERROR_VALUE
    for name in ("device", "dtype", "ndim", "size", "is_contiguous", "is_readonly", "version"):
        assert getattr(loaded, f"pvg_array_{name}")(bad) == -1
    for name in ("shape", "strides"):
        assert not getattr(loaded, f"pvg_array_{name}")(bad)
    assert loaded.pvg_array_data(bad) is None
    assert loaded.pvg_array_release(good) == Status.OK
    helpers.assert_works(device)


@pytest.mark.devices("sim", "cuda")
def test_wrapped_memory(device):
    """Memory of somebody else: read and written in place, and its deleter called exactly once."""
    loaded = library.load(device)
    x = np.arange(12, dtype=np.float32)
    owner = put(device, x)
    called = []
    deleter = FUNCTIONS["pvg_array_wrap"][1][6](called.append)
    shape, strides = (ctypes.c_int64 * 2)(3, 2), (ctypes.c_int64 * 2)(-4, 2)
    address = owner.backend.pointer(owner.raw)
    handle = loaded.pvg_array_wrap(address + 9 * 4, 0, 11, 2, shape, strides, deleter, 77)
    assert handle, loaded.pvg_last_error()
    view = loaded.pvg_slice(
        handle, (ctypes.c_int64 * 2)(0, 0), (ctypes.c_int64 * 2)(1, 1), (ctypes.c_int64 * 2)(3, 1)
    )
    result = np.empty((3, 2), np.float32)
    assert loaded.pvg_copy_to_host(handle, result.ctypes.data, None) == 0
    assert_same(result, np.array([[9, 11], [5, 7], [1, 3]], np.float32))
    assert loaded.pvg_array_release(handle) == 0
    assert called == []
    assert loaded.pvg_array_release(view) == 0
    assert called == [77]
    for data, dtype in ((None, 11), (address + 2, 11), (address, 99)):
        assert loaded.pvg_array_wrap(data, 0, dtype, 2, shape, None, deleter, 0) is None
    huge = (ctypes.c_int64 * 2)(2**62, 1)
    assert loaded.pvg_array_wrap(address, 0, 11, 2, shape, huge, deleter, 0) is None
    assert called == [77], "on error the deleter is not called"


# ---- Canaries and fresh memory -------------------------------------------------------------------

CANARY_CHILD = """
import ctypes, json, numpy as np, pyvecgpu as vg
from pyvecgpu.native import library
device = {device!r}
loaded = library.load(device)
counts = []
for start, n in ((-1, 1), (64, 1), (0, 64)):
    x = vg.zeros(64, dtype="uint8", device=device)
    address = x.backend.pointer(x.raw) + start
    shape = (ctypes.c_int64 * 1)(n)
    nothing = ctypes.cast(None, loaded.pvg_array_wrap.argtypes[6])
    wrapped = loaded.pvg_array_wrap(address, 0, 5, 1, shape, None, nothing, None)
    loaded.pvg_copy_from_host(wrapped, np.full(n, 7, np.uint8).ctypes.data, None)
    loaded.pvg_array_release(wrapped)
    del x
    counts.append(vg.counters(device)["canary_errors"])
fresh = vg.empty(64, dtype="uint8", device=device).numpy()
print(json.dumps([counts, bool((fresh == 255).all())]))
"""


@pytest.mark.devices("sim", "cuda")
def test_canaries_fire(device):
    """Bytes before and after an array are noticed when it is freed; bytes inside are not."""
    counts, poisoned = helpers.child_result(
        CANARY_CHILD.format(device=device), PYVECGPU_ALLOCATOR="debug"
    )
    assert counts == [1, 2, 2]
    assert poisoned


@pytest.mark.devices("sim", "cuda")
def test_fresh_memory_may_hold_anything(device):
    """Results are fully written even where memory was just used for something else."""
    for _ in range(3):
        spoil = vg.full(4096, np.nan, dtype="float32", device=device)
        del spoil
        x = put(device, np.ones((61, 67), np.float32))
        assert_same(x @ x.T, np.full((61, 61), 67, np.float32))
        assert_same(vg.sum(x, axis=0), np.full(67, 61, np.float32))
        assert_same(x.T.copy(), np.ones((67, 61), np.float32))


def test_references_to_an_array(device):
    x = vg.zeros(3, device=device)
    before = sys.getrefcount(x)
    for _ in range(10):
        x + x
        x[1:]
        vg.add(x, 1.0, out=x)
    assert sys.getrefcount(x) == before
