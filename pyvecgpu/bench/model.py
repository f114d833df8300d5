"""How well the planner chooses: the chosen kernel of random products beside every other one.

Each product is computed by the kernel that the table chooses and by each that is forced, as far as
it can compute the product and keeps what its precision promises; all take turns, and are timed by
device events. The goal is that the chosen one is within 1.25x of the fastest in 95 of 100 cases.
Beside that: of each kernel the time that a unit of its own model takes, and how far products differ
from that. The constants of cuda/kernels/matmul/plan/cost.cuh are measured by it: a unit of the
tensor kernel is a clock cycle.
"""

import contextlib
import functools
import statistics
import time
from ctypes import c_int64
from dataclasses import asdict, dataclass

import numpy as np

import pyvecgpu as vg

from ..native.abi import Card, DType, MatmulKernel, Option, Plan, Precision, Product
from .goals import Verdict
from .timing import BFLOAT16

CASES = {"full": 500, "cpu": 0, "quick": 16}
LARGEST = {"full": 5000, "quick": 24}
MOST_TERMS = 2e11  # of a product, all items: some milliseconds
MOST_BYTES = 4e8
WITHIN, SHARE = 1.25, 0.95
WORST = 20
BATCH_SECONDS = 1e-3
MOST_CALLS = 100
ROUNDS = {"full": 5, "quick": 1}

_FFMA = ("ffma_128x128", "ffma_64x128", "ffma_64x64", "ffma_64x32", "ffma_tma")
_IEEE = ("tiled", "gemv", "tiny", "thin", "outer", *_FFMA)
_ROUNDED = ("tensor", "tensor_sm80", "gemv", "tiny", "thin", "outer")
_TF32 = ("tensor_tf32", *_ROUNDED)
_HALVES = ("tensor", "tensor_small", "tensor_sm80", "tiled", "gemv", "tiny", "outer")
# By format: (dtype, precision, the kernels that keep its promise).
FORMATS = {
    "ieee": (np.float32, "ieee", _IEEE),
    "float32": (np.float32, "float32", ("bf16x6", *_IEEE)),
    "fast32": (np.float32, "fast32", ("fp16x3", "bf16x6", *_IEEE)),
    "tf32": (np.float32, "tf32", _TF32),
    "bf16": (np.float32, "bf16", _ROUNDED),
    "fp16": (np.float32, "fp16", _ROUNDED),
    "float16": (np.float16, None, _HALVES),
    "bfloat16": (BFLOAT16, None, _HALVES),
    "float64": (np.float64, None, ("dmma", "tiled", "gemv", "tiny", "thin", "outer")),
}


@dataclass
class Case:
    """A product: (items, m, k) @ (items, k, n), operands stored along k or across."""

    format: str
    items: int
    m: int
    n: int
    k: int
    a_along_k: bool
    b_along_k: bool
    padding: int  # elements behind each row of a and b

    @property
    def name(self):
        batch = f"{self.items} x " if self.items > 1 else ""
        layout = f"{'nt'[not self.a_along_k]}{'tn'[not self.b_along_k]}"
        padding = f" +{self.padding}" if self.padding else ""
        return f"{self.format} {batch}{self.m}x{self.n}x{self.k} {layout}{padding}"

    @property
    def terms(self):
        return self.items * self.m * self.n * self.k


def cases(size, seed):
    """Return the random products of a seed, for a key of CASES.

    Sizes, or their logarithms, are even; every other product's are multiples of 64.
    """
    random = np.random.default_rng(seed)
    drawn = []
    while len(drawn) < CASES[size]:
        if random.random() < 0.5:
            sizes = random.integers(1, LARGEST[size], 3, endpoint=True)
        else:
            sizes = np.exp(random.uniform(0, np.log(LARGEST[size]), 3)).round()
        m, n, k = (int(x) for x in sizes)
        if random.random() < 0.5:
            m, n, k = (-(-x // 64) * 64 if x > 32 else x for x in (m, n, k))
        items = int(np.exp(random.uniform(0, np.log(256)))) if random.random() < 0.25 else 1
        case = Case(
            format=str(random.choice(list(FORMATS))),
            items=items if size == "full" else min(items, 3),
            m=m,
            n=n,
            k=k,
            a_along_k=bool(random.random() < 0.6),
            b_along_k=bool(random.random() < 0.4),
            padding=int(random.integers(1, 8)) if random.random() < 0.2 else 0,
        )
        elements = case.items * (m * k + k * n + m * n)
        if case.terms <= MOST_TERMS and elements * 8 <= MOST_BYTES:
            drawn.append(case)
    return drawn


def operand(case, rows, columns, straight, device):
    """Return a random array (items, rows, columns), stored by rows or by columns, with padding."""
    stored = (rows, columns) if straight else (columns, rows)
    shape = (case.items, stored[0], stored[1] + case.padding)
    dtype = FORMATS[case.format][0]
    random = np.random.default_rng(1)
    line = random.standard_normal(min(int(np.prod(shape)), 1 << 16), np.float32)
    host = np.resize(line, shape)
    array = vg.asarray(host, device=device)
    array = vg.astype(array, dtype, copy=False)[:, :, : stored[1]]
    return array if straight else vg.transpose(array, (0, 2, 1))


# Plans --------------------------------------------------------------------------------------------


def numbers(enumeration, values):
    """Return an array of numbers for C, at the indices of an enumeration."""
    count = max(enumeration)
    return (c_int64 * count)(*[int(values.get(member, 0)) for member in enumeration][:count])


def card_of(device):
    """Return what plans know of a device."""
    card = (c_int64 * Card.CARD_COUNT)()
    device.backend.check(device.backend.library.pvg_plan_card(device.index, card))
    return card


def product_of(m, n, k, *, dtype, precision, kernel, **others):
    """Return a product as the planner is asked: others are members of Product, in lower case."""
    values = {
        "m": m,
        "n": n,
        "k": k,
        "dtype": DType[dtype.upper()],
        "precision": Precision[f"PRECISION_{precision.upper()}"],
        "kernel": kernel,
        **others,
    }
    return numbers(Product, {Product[f"PRODUCT_{x.upper()}"]: values[x] for x in values})


def product_of_case(case, a, b, kernel):
    """Return a case with its operands as the planner is asked."""
    return product_of(
        case.m,
        case.n,
        case.k,
        dtype=a.dtype.name,
        precision=FORMATS[case.format][1] or "float32",
        kernel=kernel,
        items=case.items,
        a_along_k=case.a_along_k,
        b_along_k=case.b_along_k,
        a_stride=(case.k if case.a_along_k else case.m) + case.padding,
        b_stride=(case.k if case.b_along_k else case.n) + case.padding,
        c_stride=case.n,
        a_item=a.strides[0] // a.itemsize,
        b_item=b.strides[0] // b.itemsize,
        c_item=case.m * case.n,
    )


def plan_of(device, card, case, a, b, kernel):
    """Return the plan of a case by a kernel, as a dict; None if the kernel cannot compute it."""
    plan = (c_int64 * Plan.PLAN_COUNT)()
    product = product_of_case(case, a, b, kernel)
    if device.backend.library.pvg_plan_product(card, product, plan) != 0:
        return None
    return dict(zip(Plan, plan, strict=False))


# Measuring ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def forced(device, kernel):
    """Compute products by a kernel for a while."""
    set_option = device.backend.library.set_option
    set_option(Option.OPTION_MATMUL_KERNEL, kernel)
    try:
        yield
    finally:
        set_option(Option.OPTION_MATMUL_KERNEL, MatmulKernel.MATMUL_AUTO)


def measure(case, library, card, size):
    """Return a row: the chosen kernel, and for each the seconds of a call and the model's time."""
    device = library.device
    a = operand(case, case.m, case.k, case.a_along_k, device)
    b = operand(case, case.k, case.n, not case.b_along_k, device)
    precision = FORMATS[case.format][1]
    out = vg.matmul(a, b, precision=precision)
    plans = {"auto": plan_of(device, card, case, a, b, MatmulKernel.MATMUL_AUTO)}
    for name in FORMATS[case.format][2]:
        plan = plan_of(device, card, case, a, b, MatmulKernel[f"MATMUL_{name.upper()}"])
        if plan is not None and is_present(device, a, b, precision, out, name):
            plans[name] = plan
    chosen = MatmulKernel(plans["auto"][Plan.PLAN_KERNEL]).name.removeprefix("MATMUL_").lower()
    seconds = {name: [] for name in plans}
    calls = {name: calls_of(name, a, b, precision, out, library) for name in plans}
    for _ in range(ROUNDS[size]):
        for name in plans:
            seconds[name].append(time_of(name, a, b, precision, out, library, *calls[name]))
    measured = {name: statistics.median(times) for name, times in seconds.items()}
    reckoned = {name: plan[Plan.PLAN_RECKONED] for name, plan in plans.items()}
    return {"name": case.name, **asdict(case), "chosen": chosen} | {
        "seconds": measured,
        "reckoned": reckoned,
    }


def is_present(device, a, b, precision, out, name):
    """Whether the library has the kernel: a plan can be made for one that it has not."""
    try:
        with forced(device, MatmulKernel[f"MATMUL_{name.upper()}"]):
            vg.matmul(a, b, precision=precision, out=out)
    except ValueError:
        return False
    return True


def calls_of(name, a, b, precision, out, library):
    """Return how many calls make a batch, and the seconds that each takes the host."""
    trial = 5
    with forced(library.device, MatmulKernel[f"MATMUL_{name.upper()}"]):
        repeat(1, a, b, precision, out)
        library.synchronize()
        began = time.perf_counter()
        repeat(trial, a, b, precision, out)
        host = (time.perf_counter() - began) / trial
        library.synchronize()
    taken = time_of(name, a, b, precision, out, library, trial, host)
    return max(1, min(MOST_CALLS, round(BATCH_SECONDS / max(taken, 1e-9)))), host


def time_of(name, a, b, precision, out, library, calls, host):
    """Return the seconds that a call takes the device, which finds its operands in the cache."""
    with forced(library.device, MatmulKernel[f"MATMUL_{name.upper()}"]):
        work = functools.partial(repeat, calls, a, b, precision, out)
        return library.device_seconds(work, host * calls) / calls


def repeat(calls, a, b, precision, out):
    for _ in range(calls):
        vg.matmul(a, b, precision=precision, out=out)


# What is told -------------------------------------------------------------------------------------


def loss(row):
    """Return how many times longer the chosen kernel takes than the fastest one, itself aside."""
    others = [seconds for name, seconds in row["seconds"].items() if name != "auto"]
    return row["seconds"]["auto"] / min([row["seconds"]["auto"], *others])


def judge(rows):
    """Return the Verdict."""
    goal = f"the chosen kernel within {WITHIN:g}x of the fastest in {SHARE:.0%} of the cases"
    if not rows:
        return Verdict(goal, None, "", None)
    share = sum(loss(row) <= WITHIN for row in rows) / len(rows)
    return Verdict(goal, share, "", share >= SHARE)


def scales(rows):
    """Return {kernel: (cases, seconds of a unit of its model, tenth and last tenth as multiples)}.

    Only of cases that take long enough for the model: launches are in none.
    """
    ratios = {}
    for row in rows:
        for name, reckoned in row["reckoned"].items():
            if name != "auto" and reckoned > 0:
                ratios.setdefault(name, []).append(row["seconds"][name] / reckoned)
    found = {}
    for name, values in sorted(ratios.items()):
        low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
        found[name] = (len(values), float(middle), float(low / middle), float(high / middle))
    return found


def run(library, size, seed, say):
    """Measure and print; return the rows, the scales and the Verdict."""
    card = card_of(library.device)
    rows = []
    for case in cases(size, seed):
        rows.append(measure(case, library, card, size))
    say(f"seed {seed}, {len(rows)} products, by the chosen kernel and by the others; the worst:")
    for row in sorted(rows, key=loss, reverse=True)[:WORST]:
        fastest = min(row["seconds"], key=row["seconds"].get)
        say(
            f"{row['name']:44} {row['chosen']:13} {row['seconds']['auto'] * 1e6:10.1f} us, "
            f"{loss(row):5.2f}x {fastest}"
        )
    say("kernel            cases   ns a unit of its model, and a tenth below and above")
    found = scales(rows)
    for name, (count, unit, low, high) in found.items():
        say(f"{name:16} {count:6} {unit * 1e9:12.4g}   {low:5.2f}x {high:5.2f}x")
    return rows, found, judge(rows)
