"""What the tests share: comparisons with one table of tolerances, layouts, sizes, data, guards.

A result is compared with NumPy's, or with the same computed in a wider type. Comparisons are
written `not (difference <= tolerance)`, so that a NaN nobody expected fails.
"""

import contextlib
import functools
import gc
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

import pyvecgpu as vg
from pyvecgpu.device import siblings
from pyvecgpu.dtypes import CODES
from pyvecgpu.native import library
from pyvecgpu.native.abi import Allocator, Counter, Memory, Option

try:
    import ml_dtypes
except ImportError:  # then the tests go without bfloat16, and conftest.py says so
    ml_dtypes = None


def is_float(dtype):
    """True for the float dtypes; NumPy's kind of ml_dtypes' bfloat16 is "V"."""
    return dtype.kind in "fV"


ROOT = Path(__file__).resolve().parent.parent
WIDE_FLOATS = [np.dtype(np.float32), np.dtype(np.float64)]
BFLOAT16 = np.dtype(ml_dtypes.bfloat16) if ml_dtypes else None
HALVES = [np.dtype(np.float16)] + ([BFLOAT16] if ml_dtypes else [])  # computed in float32
INTEGERS = [dtype for dtype in CODES if dtype.kind in "iu"]
FLOATS = HALVES + WIDE_FLOATS
NUMBERS = INTEGERS + FLOATS
DTYPES = [np.dtype(bool), *NUMBERS]  # those with an order
COMPLEX = [np.dtype(np.complex64), np.dtype(np.complex128)]
ALL_DTYPES = DTYPES + COMPLEX
MOST_PINNED = 26  # buffers of large copies, both ways, of a card; pages for reports and small ones
SIMULATOR_SETTINGS = ("order", "deferred", "skip_kernels", "copy_error", "start_error", "memory")

# Lengths around the sizes of warps, blocks and vectors, and primes that no tile divides.
AWKWARD_SIZES = (0, 1, 31, 33, 1023, 1024, 1025, 4099)
AWKWARD_SHAPES = (
    (0,),
    (),
    (1,),
    (31,),
    (33,),
    (1023,),
    (1025,),
    (7, 11),
    (1, 13),
    (13, 1),
    (3, 5, 7),
)

# ---- Tolerances ----------------------------------------------------------------------------------

# The only table of tolerances. Elementwise functions: units in the last place of the result, per
# device; everything that is not here is bit-exact. NumPy's own float32 exp and log are good to 4;
# gelu of float64, and of float32 on cpu, to 8, but where erfc is subnormal its last place weighs up
# to 19 times as much.
# Halves are computed in float32, so that of them 1 is allowed.
ULPS = {
    "exp": {"cpu": 4, "sim": 2, "cuda": 2},
    "expm1": {"cpu": 4, "sim": 2, "cuda": 2},
    "log": {"cpu": 4, "sim": 2, "cuda": 2},
    "tanh": {"cpu": 4, "sim": 2, "cuda": 2},
    "sin": {"cpu": 4, "sim": 2, "cuda": 2},
    "cos": {"cpu": 4, "sim": 2, "cuda": 2},
    "tan": {"cpu": 4, "sim": 2, "cuda": 2},
    "asin": {"cpu": 4, "sim": 2, "cuda": 2},
    "acos": {"cpu": 4, "sim": 2, "cuda": 2},
    "atan": {"cpu": 4, "sim": 2, "cuda": 2},
    "sinh": {"cpu": 4, "sim": 2, "cuda": 2},
    "cosh": {"cpu": 4, "sim": 2, "cuda": 2},
    "asinh": {"cpu": 4, "sim": 2, "cuda": 2},
    "acosh": {"cpu": 4, "sim": 2, "cuda": 2},
    "atanh": {"cpu": 4, "sim": 2, "cuda": 2},
    "exp2": {"cpu": 4, "sim": 2, "cuda": 2},
    "log1p": {"cpu": 4, "sim": 2, "cuda": 2},
    "log2": {"cpu": 4, "sim": 2, "cuda": 2},
    "log10": {"cpu": 4, "sim": 2, "cuda": 2},
    "pow": {"cpu": 4, "sim": 2, "cuda": 2},
    "atan2": {"cpu": 4, "sim": 2, "cuda": 2},
    "hypot": {"cpu": 4, "sim": 2, "cuda": 2},
    "logaddexp": {"cpu": 2, "sim": 2, "cuda": 2},
    "sigmoid": {"cpu": 4, "sim": 2, "cuda": 2},
    "gelu": {"cpu": 24, "sim": 24, "cuda": 24},
    "silu": {"cpu": 10, "sim": 5, "cuda": 5},
}
# u: half the distance of 1.0 to the next number, the largest relative error of rounding once.
UNIT_ROUNDOFF = {
    np.dtype(np.float16): 2.0**-11,
    BFLOAT16: 2.0**-8,
    np.dtype(np.float32): 2.0**-24,
    np.dtype(np.float64): 2.0**-53,
}
# Sums: at most u * |sum| + this * sum(|x|), "as if summed in twice the precision", halves in
# float32.
_SUM_REST_HALF = dict.fromkeys(HALVES, 2.0**-20)
SUM_REST = _SUM_REST_HALF | {np.dtype(np.float32): 2.0**-40, np.dtype(np.float64): 2.0**-96}
# NumPy adds float32 and float64 as such, pairwise; the error grows with the length's logarithm.
SUM_REST_CPU = SUM_REST | {np.dtype(np.float32): 2.0**-19, np.dtype(np.float64): 32 * 2.0**-53}


def finfo(dtype):
    """Limits of a float dtype."""
    return ml_dtypes.finfo(dtype) if dtype == BFLOAT16 else np.finfo(dtype)


def widened(x):
    """Halves as float32, anything else as it is."""
    return x.astype(np.float32) if x.dtype in HALVES else x


def result_type(a, b):
    """NumPy's promotion of two dtypes; with bfloat16 what the documentation says."""
    if BFLOAT16 not in (a, b):
        return np.result_type(a, b)
    other = b if a == BFLOAT16 else a
    if other.kind == "c":
        return other
    if other == BFLOAT16 or not is_float(other):
        return BFLOAT16
    return np.dtype(np.float64) if other == np.float64 else np.dtype(np.float32)


def rounded(x, dtype):
    """Numbers in a float dtype, rounded once to the nearest, of two nearest to the even one.

    ml_dtypes rounds everything to float32 first, so bfloat16 takes the best of its result and the
    two beside it.
    """
    x = np.asarray(x)
    if dtype != BFLOAT16:
        return x.astype(dtype)

    def distance(candidate):
        value = candidate.astype(np.float64)
        value = np.where(np.isinf(value), np.copysign(2.0**128, value), value)  # the next number
        return np.abs(x.astype(np.longdouble) - value)

    best = x.astype(np.float32).astype(dtype)
    bits = best.view(np.uint16).astype(np.int64)
    for step in (-1, 1):
        other = (bits + step).astype(np.uint16).view(dtype)
        closer = distance(other) < distance(best)
        tie = (distance(other) == distance(best)) & (bits % 2 == 1)
        best = np.where(np.isfinite(x) & (closer | tie), other, best)
    return best


def shortened(x, bits, by=np.rint):
    """Numbers in float64, of which so many bits are left: rounded, or by np.trunc cut off."""
    fraction, exponent = np.frexp(np.asarray(x, np.float64))
    return np.ldexp(by(fraction * 2.0**bits), exponent - bits)


def ulp_distance(a, b):
    """Representable numbers from a to b, elementwise; -0.0 and 0.0 are 0 apart, NaN is not one."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype and a.dtype in FLOATS, (a.dtype, b.dtype)
    kind = {2: np.int16, 4: np.int32, 8: np.int64}[a.dtype.itemsize]
    smallest = np.iinfo(kind).min

    def ordered(x):  # integers in the order of the floats
        bits = x.view(kind).astype(np.int64)
        return np.where(bits < 0, smallest - bits, bits)

    left, right = ordered(np.ascontiguousarray(a)), ordered(np.ascontiguousarray(b))
    larger, smaller = np.maximum(left, right), np.minimum(left, right)
    return (larger.view(np.uint64) - smaller.view(np.uint64)).reshape(a.shape)


def bits(x):
    """The bytes of an Array or ndarray in C order."""
    return host(x).tobytes()


def host(x):
    """An Array's values on the host; an ndarray or scalar as an ndarray."""
    return x.numpy() if isinstance(x, vg.Array) else np.asarray(x)


def assert_same(result, expected, message=""):
    """Equal dtype, shape and values; NaN where NaN is, and zeros of the same sign."""
    result, expected = host(result), np.asarray(expected)
    assert result.dtype == expected.dtype, f"dtype {result.dtype}, not {expected.dtype} {message}"
    assert result.shape == expected.shape, f"shape {result.shape}, not {expected.shape} {message}"
    if expected.dtype.kind == "c":
        assert_same(parts(result), parts(expected), message)
        return
    same = result == expected
    if is_float(expected.dtype):
        same &= np.signbit(result) == np.signbit(expected)
        same |= np.isnan(result) & np.isnan(expected)
    report_worst(~same, result, expected, message)


def parts(x):
    """Complex numbers as floats, with a last axis for their two parts."""
    x = np.asarray(x)
    return np.stack([x.real, x.imag], axis=-1)


def assert_close(result, reference, op, device, message=""):
    """A float result within the table's ulps of `reference`, which has a wider type."""
    result, reference = host(result), np.asarray(reference)
    with np.errstate(over="ignore", under="ignore"):
        nearest = rounded(reference, result.dtype)
    limit = ULPS.get(op, {}).get(device, 0)
    if limit == 0:
        return assert_same(result, nearest, f"{op} {message}")
    limit = 1 if result.dtype in HALVES else limit
    assert result.shape == reference.shape, f"shape {result.shape}, not {reference.shape} {message}"
    distance = ulp_distance(result, nearest)
    wrong = ~(distance <= limit)
    wrong |= np.isinf(nearest) != np.isinf(result)
    # Where an exact result is next to the largest number, infinity is one ulp away and correct.
    wrong &= ~((distance <= 1) & (np.isinf(nearest) | np.isinf(result)))
    wrong |= np.isnan(nearest) != np.isnan(result)
    wrong &= ~(np.isnan(nearest) & np.isnan(result))
    report_worst(wrong, result, nearest, f"{op}: more than {limit} ulp on {device} {message}")


def assert_within(result, reference, tolerance, message=""):
    """|result - reference| <= tolerance elementwise, in the reference's type."""
    result, reference = widened(host(result)), np.asarray(reference)
    assert result.shape == reference.shape, f"shape {result.shape}, not {reference.shape} {message}"
    with np.errstate(invalid="ignore"):
        wrong = ~(np.abs(result - reference) <= tolerance)
    wrong &= ~((result == reference) | (np.isnan(result) & np.isnan(reference)))
    report_worst(wrong, result, reference, message)


def report_worst(wrong, result, expected, message):
    """Fail with the first wrong element, if there is one."""
    if np.any(wrong):
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise AssertionError(
            f"{int(np.sum(wrong))} of {wrong.size} elements differ, first at {at}: "
            f"got {result[at]!r}, expected {expected[at]!r} {message}"
        )


def sum_tolerance(x, axis, dtype, device):
    """Reference and tolerance of sum(x): exact arithmetic along the axes, see SUM_REST."""
    wide = widened(x).astype(np.longdouble)
    total = np.asarray(wide.sum(axis=axis))
    rest = (SUM_REST_CPU if device == "cpu" else SUM_REST)[dtype]
    # The reference's own error: longdouble has at least 53 bits, on x86-64 64.
    own = np.finfo(np.longdouble).eps * math.log2(max(x.size, 2))
    with np.errstate(invalid="ignore"):
        magnitude = np.abs(wide).sum(axis=axis)
        tolerance = UNIT_ROUNDOFF[dtype] * np.abs(total) + (rest + own) * magnitude
    return total, tolerance


def held(values, dtype):
    """Finite values beyond what a float dtype holds (float16: 65504) as infinities."""
    with np.errstate(over="ignore", invalid="ignore"):
        beyond = np.isinf(rounded(values, dtype)) & np.isfinite(values)
    return np.where(beyond, np.copysign(np.inf, values), values)


def product_tolerance(a, b, dtype):
    """Reference and tolerance k * u * (|A| |B|) of a matrix product.

    Halves are summed in float32, and the sum is rounded once.
    """
    wide = np.longdouble if dtype == np.float64 else np.float64
    a, b = a.astype(wide), b.astype(wide)
    product, size = np.matmul(a, b), np.matmul(np.abs(a), np.abs(b))
    k, unit = max(a.shape[-1], 1), UNIT_ROUNDOFF[dtype]
    if dtype not in HALVES:
        return product, k * unit * size
    tolerance = unit * np.abs(product) + k * 2.0**-24 * size + finfo(dtype).smallest_subnormal
    return held(product, dtype), tolerance


# ---- Data and layouts ----------------------------------------------------------------------------


def integers(rng, shape, dtype, low=-8, high=8):
    """Small integer values in any dtype: sums and products of them are exact in float32."""
    if dtype.kind == "c":
        real, imaginary = (integers(rng, shape, np.dtype(float), low, high) for _ in range(2))
        return (real + 1j * imaginary).astype(dtype)
    if dtype.kind in "bu":
        low = 0
    values = rng.integers(low, high + 1, shape)
    return (values > high // 2) if dtype.kind == "b" else values.astype(dtype)


SHAPE = (3, 301)  # rows of sixteen vectors and more, of which the last is short


def fixed_integers(dtype, shape=SHAPE, seed=0):
    """The same small integers every time: all but the float functions of them are exact."""
    return integers(np.random.default_rng([7, seed]), shape, dtype)


def numbers(rng, shape, dtype):
    """Random values over the dtype's range; floats over many magnitudes and both signs."""
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind == "c":
        real, imaginary = (numbers(rng, shape, np.dtype(float)) for _ in range(2))
        return (real + 1j * imaginary).astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    reach = 8 if dtype == np.float16 else 20  # sums of many stay below 65504
    return (rng.standard_normal(shape) * np.exp2(rng.integers(-reach, reach, shape))).astype(dtype)


def specials(dtype):
    """Zeros, infinities, NaN, subnormals, extremes of a float dtype; the ends of an integer one.

    Of a complex one, all pairs of them.
    """
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind == "c":
        of_parts = specials(np.zeros(0, dtype).real.dtype)
        result = np.empty((of_parts.size, of_parts.size), dtype)
        result.real, result.imag = of_parts[:, None], of_parts
        return result.ravel()
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = {info.min, info.max, info.max - 1, info.min + 1, 0, 1, 2, 100}
        return np.array(sorted(values | ({-1, -2} if info.min else set())), dtype)
    info = finfo(dtype)
    positive = [0.0, 1.0, 0.5, 1 / 3, 10.0, info.max, info.tiny, info.smallest_subnormal, np.inf]
    positive = np.array([dtype.type(x) for x in positive], dtype)
    return np.array([*positive, *-positive, dtype.type(np.nan)], dtype)


def put(device, values):
    """The values as an Array on the device."""
    return vg.asarray(values, device=device)


def transposed(device, x):
    return vg.permute_dims(put(device, np.ascontiguousarray(x.T)), tuple(reversed(range(x.ndim))))


def reversed_(device, x):
    return put(device, np.ascontiguousarray(np.flip(x)))[(slice(None, None, -1),) * x.ndim]


def stepped(device, x):
    """Every second element along each axis of something larger."""
    whole = np.full([2 * n + 1 for n in x.shape], poison(x.dtype), x.dtype)
    keys = (slice(1, None, 2),) * x.ndim
    whole[keys] = x
    return put(device, whole)[keys]


def far_apart(device, x):
    """Every ninth element of the last axis of something larger."""
    whole = np.full((*x.shape[:-1], 9 * x.shape[-1]), poison(x.dtype), x.dtype)
    whole[..., ::9] = x
    return put(device, whole)[..., ::9]


def padded_rows(device, x):
    """The last axis contiguous, the rows with a gap: a sub-array."""
    whole = np.full([*x.shape[:-1], x.shape[-1] + 3], poison(x.dtype), x.dtype)
    whole[..., 1:-2] = x
    return put(device, whole)[..., 1 : x.shape[-1] + 1]


def shifted(offset):
    """Contiguous, `offset` elements into its memory: no vector access is aligned by luck."""

    def make(device, x):
        whole = np.full(x.size + offset, poison(x.dtype), x.dtype)
        whole[offset:] = x.ravel()
        return put(device, whole)[offset:].reshape(x.shape)

    return make


def poison(dtype):
    """A value that spoils a result into which it finds its way."""
    return (
        np.nan if is_float(dtype) or dtype.kind == "c" else dtype.kind == "b" or np.iinfo(dtype).max
    )


# name: function (device, values) -> Array of these values, whose memory lies as the name says.
LAYOUTS = {
    "contiguous": put,
    "transposed": transposed,
    "reversed": reversed_,
    "stepped": stepped,
    "padded_rows": padded_rows,
    "shifted": shifted(1),
    "fortran": lambda device, x: put(device, np.asfortranarray(x)),
}


def layouts(x):
    """The names of the layouts that make sense for an array of x's shape."""
    return [n for n in LAYOUTS if x.ndim > 0 or n in ("contiguous", "shifted")]


# ---- Guards --------------------------------------------------------------------------------------


def live(device):
    """(arrays, bytes) in use on a card."""
    return vg.counters(device)["live_arrays"], vg.memory_info(device).used


@contextlib.contextmanager
def allocator(device, which):
    """Take memory by this one of abi.Allocator for a while, for which no array may be alive."""
    loaded = library.load(device)
    gc.collect()
    loaded.set_option(Option.OPTION_ALLOCATOR, which)
    try:
        yield
    finally:
        gc.collect()
        loaded.set_option(Option.OPTION_ALLOCATOR, Allocator.ALLOCATOR_POOL)


# NumPy's OpenBLAS ends its threads when the process forks, and starts them again at a product that
# is large enough: until then there are fewer, and the test that has one would seem to leave some.
FORKS = []
os.register_at_fork(after_in_parent=functools.partial(FORKS.append, None))


def restart_blas():
    """Start the threads of BLAS again, if a fork has ended them."""
    if FORKS:
        FORKS.clear()
        x = np.ones((512, 512))
        x @ x


def simulator_settings(loaded):
    """What the simulated card's settings are now: {name: value}."""
    return {name: loaded.pvg_sim_get(name.encode()) for name in SIMULATOR_SETTINGS}


def in_use(device):
    """What a test could leave behind: {what: how much of it there is}.

    Pinned buffers of large copies are kept until the cache is emptied, each with an event, and so
    is the page for reports, which is registered and has none.
    """
    restart_blas()
    tasks, files = (len(os.listdir(f"/proc/self/{what}")) for what in ("task", "fd"))
    found = {"threads": tasks, "descriptors": files}
    if device is not None and device.partition(":")[0] in ("sim", "cuda"):
        backend = vg.Device(device).backend
        memory = backend.memory_info()
        found["arrays"] = backend.counter(Counter.COUNT_LIVE_ARRAYS)
        found["bytes"], found["blocks"] = memory[Memory.MEMORY_USED], memory[Memory.MEMORY_BLOCKS]
    if device == "sim":
        count = library.load(device).pvg_sim_count
        pinned = count(b"live_pinned")
        found["pinned buffers"] = max(pinned, MOST_PINNED * len(siblings(vg.Device(device))))
        found["streams"] = count(b"live_streams")
        found["events"] = count(b"live_events") + count(b"pinned_free") - count(b"pinned_malloc")
        found["graphs"] = count(b"live_graphs")
        settings = simulator_settings(library.load(device))
        found |= {f"setting {name!r}": value for name, value in settings.items()}
    return found


def imported_since(modules):
    """The installed packages that were imported since `modules` was the set of all modules."""
    new = [sys.modules[name] for name in sys.modules.keys() - modules]
    return {x.__name__ for x in new if "-packages" in (getattr(x, "__file__", None) or "")}


def warm_up(device):
    """Make what a device's library makes once: threads, the default streams and their events."""
    loaded = library.load(device)
    x = put(device, np.zeros(1 << 20, np.uint8))
    loaded.pvg_array_lend(x.raw, 1)  # CUDA's own default stream
    x[...] = 2
    stream = loaded.pvg_stream_create(0)
    loaded.pvg_stream_set_current(stream, 0)
    x[...] = 1
    loaded.pvg_stream_set_current(None, 0)
    loaded.pvg_stream_release(stream)
    x.numpy()


class Refusal:
    """What `refused` has caught: value, the exception."""

    value = None


@contextlib.contextmanager
def refused(device, exception, *arrays, match=None):
    """The block raises exactly `exception`, and nothing else has happened.

    The arrays keep their values and the next operation is correct; that no array and no memory is
    left over is seen at the end of the test (nothing_left in conftest.py). `match` is a regular
    expression that the message has to contain, on cards; on the CPU most messages are NumPy's.
    """
    before = [bits(a) for a in arrays]
    refusal = Refusal()
    try:
        yield refusal
    except exception as error:
        refusal.value = error
        while error is not None:  # tracebacks hold frames, and these hold arrays
            error.__traceback__, error = None, error.__context__
    else:
        raise AssertionError(f"{exception.__name__} was not raised")
    assert type(refusal.value) is exception, f"{type(refusal.value)!r}, not {exception!r}"
    if match and device != "cpu":
        assert re.search(match, str(refusal.value)), f"{match!r} is not in {refusal.value}"
    assert [bits(a) for a in arrays] == before, "an operand or out has changed"
    assert_works(device)


@contextlib.contextmanager
def refused_later(device, exception, match=None):
    """The block, or on a card the next wait for it, raises exactly `exception`; see refused."""
    with refused(device, exception, match=match) as refusal:
        yield refusal
        if device != "cpu":
            vg.synchronize(device)


def assert_works(device):
    """A small computation on the device is right."""
    x = np.arange(33, dtype=np.float32)
    assert_same(put(device, x) + put(device, x), x + x)


# ---- Child processes -----------------------------------------------------------------------------


def child_environment(**variables):
    """The environment of a child that imports this checkout, without PYVECGPU_* of our own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYVECGPU_")}
    paths = [str(ROOT), str(ROOT / "tests"), kept.get("PYTHONPATH", "")]
    kept["PYTHONPATH"] = os.pathsep.join(p for p in paths if p)
    return kept | {name: str(value) for name, value in variables.items()}


def run_child(code, *flags, timeout=60, cwd=None, **variables):
    """Run Python code, or a file, in a new process; return its CompletedProcess (text output)."""
    program = [str(code)] if isinstance(code, Path) else ["-c", code]
    return subprocess.run(
        [sys.executable, *flags, *program],
        env=child_environment(**variables),
        cwd=cwd or ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def child_result(code, *flags, **options):
    """Run Python code that prints JSON as its last line, exits with 0 and is silent on stderr."""
    done = run_child(code, *flags, **options)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}{done.stderr}"
    assert done.stderr == "", done.stderr
    return json.loads(done.stdout.splitlines()[-1])
