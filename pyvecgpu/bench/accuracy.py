"""`bench accuracy`: the largest errors of elementwise functions, in units in the last place (ulp).

float32, functions of one operand: every one of the 2^32 inputs, beside the same function in float64
on the same device. Functions of two: pairs drawn over all exponents and where the function is hard.
float16 and bfloat16: every input, and how many results are not those of rounding once. float64: by
drawn inputs beside the host's long double, where that has more digits than a double.

An ulp is the distance of two neighbouring numbers at the exact result, among the subnormals the
smallest one's. Infinity counts as the power of two behind the largest number, so it may stand for a
result that is less than an ulp away. NaN for a number, or a number for NaN, is an infinite error.
"""

import concurrent.futures
import math
import os
from dataclasses import asdict, dataclass

import numpy as np

import pyvecgpu as vg

from ..functions import nn
from ..operations import ROWS
from .goals import Verdict

GOAL = 2.0  # ulp, of float32
SEED = 20261123
# Inputs of float32 (all of them on a card), pairs, inputs of float64, and inputs at a time.
SIZES = {
    "full": (2**32, 10**9, 10**8, 2**26),
    "cpu": (2**22, 2**20, 2**20, 2**20),
    "quick": (2**14, 2**12, 2**12, 2**14),
}
UNARY = tuple(row.name for row in ROWS if row.family == "unary" and row.result == "float")
PAIRS = ("pow", "atan2", "hypot", "remainder", "logaddexp")
HALVES = ("float16", "bfloat16")
# (digits behind the leading one, the exponents of the smallest normal and behind the largest one)
FORMATS = {
    "float32": (23, -126, 128),
    "float16": (10, -14, 16),
    "bfloat16": (7, -126, 128),
}
# Inputs of float64 whose results are hard to reduce or to round: the one nearest to a multiple of
# pi / 2 (Muller, Elementary Functions, 11.1), and neighbours of 1 and of 0.
HARD = (6381956970095103.0 * 2.0**797, 1 - 2.0**-53, 1 + 2.0**-52, 2.0**-1074, 2.0**-30, 709.78)


@dataclass
class Finding:
    """The largest error of a function in a dtype, and the input or inputs that have it.

    inexact: of halves, how many results are not the exact ones rounded once.
    """

    name: str
    dtype: str
    inputs: int
    ulp: float
    at: tuple
    inexact: int | None = None

    def sentence(self):
        where = ", ".join(f"{value!r}" for value in self.at)
        told = f"{self.name:12} {self.dtype:9} {self.ulp:10.3f} ulp at {where}"
        if self.inexact is not None:
            told += f"; {self.inexact} of {self.inputs} not rounded once"
        return told


def function_of(name):
    return getattr(nn if name in nn.__all__ else vg, name)


class Largest:
    """The largest error so far, and where it was."""

    def __init__(self):
        self.ulp, self.at = -1.0, ()

    def take(self, errors, inputs):
        """Take note of errors, an Array, of inputs: Arrays of the same shape."""
        at = int(vg.argmax(errors))
        ulp = float(errors[at])
        if ulp > self.ulp:
            self.ulp, self.at = ulp, tuple(float(one[at]) for one in inputs)


def errors_of(result, exact, dtype):
    """Return the errors in ulp of a dtype, of a result and of what is exact in float64."""
    digits, lowest, limit = FORMATS[dtype]
    got = vg.clip(vg.astype(result, vg.float64), -(2.0**limit), 2.0**limit)
    want = vg.clip(exact, -(2.0**limit), 2.0**limit)
    unit = vg.exp2(vg.floor(vg.log2(vg.abs(want))))
    unit = vg.maximum(unit, 2.0**lowest) * 2.0**-digits
    errors = vg.abs(got - want) / unit
    errors = vg.where(vg.isnan(want), 0.0, errors)
    return vg.where(vg.isnan(got) == vg.isnan(want), errors, math.inf)


# float32 ------------------------------------------------------------------------------------------


def single_inputs(device, count, at_a_time):
    """Give `count` of all float32 numbers, evenly over their bits, as Arrays of so many."""
    step = 2**32 // count
    first = np.arange(min(count, at_a_time), dtype=np.uint32) * np.uint32(step)
    for start in range(0, 2**32, step * len(first)):
        yield vg.asarray((first + np.uint32(start)).view(np.float32), device=device)


def measure_single(device, names, count, at_a_time):
    """Return the Findings of functions of one float32 operand."""
    largest = {name: Largest() for name in names}
    for x in single_inputs(device, count, at_a_time) if names else ():
        wide = vg.astype(x, vg.float64)
        for name, found in largest.items():
            function = function_of(name)
            found.take(errors_of(function(x), function(wide), "float32"), (x,))
    return [Finding(name, "float32", count, one.ulp, one.at) for name, one in largest.items()]


def magnitudes(random, count, low, high):
    """Return numbers with exponents drawn from low to high, of both signs, in float64."""
    signs = vg.where(random.random(count) < 0.5, -1.0, 1.0)
    return signs * vg.exp2(low + (high - low) * random.random(count, dtype=vg.float64))


def draw_pairs(name, random, count):
    """Return two float32 Arrays; a third of them where the function is hard."""
    any_x, any_y = (magnitudes(random, count, -149, 128) for _ in range(2))
    near_x, near_y = (magnitudes(random, count, -6, 6) for _ in range(2))
    if name == "pow":  # results over all exponents, of bases of any size and close to 1
        near_x = vg.abs(vg.where(random.random(count) < 0.5, any_x, near_x))
        close = 1 + magnitudes(random, count, -22, -1)
        any_x = vg.astype(vg.where(random.random(count) < 0.5, close, near_x), vg.float32)
        exponents = 290 * random.random(count, dtype=vg.float64) - 155
        any_y = exponents / vg.log2(vg.astype(any_x, vg.float64))
    choice = random.random(count) < 2 / 3
    x, y = vg.where(choice, any_x, near_x), vg.where(choice, any_y, near_y)
    return vg.astype(x, vg.float32), vg.astype(y, vg.float32)


def measure_pairs(device, names, count, at_a_time):
    """Return the Findings of functions of two float32 operands."""
    findings = []
    for name in names:
        random, largest = vg.random.default_rng(SEED, device=device), Largest()
        function = function_of(name)
        for start in range(0, count, at_a_time):
            pair = draw_pairs(name, random, min(at_a_time, count - start))
            exact = function(*(vg.astype(one, vg.float64) for one in pair))
            largest.take(errors_of(function(*pair), exact, "float32"), pair)
        findings.append(Finding(name, "float32", count, largest.ulp, largest.at))
    return findings


# The other dtypes ---------------------------------------------------------------------------------


def measure_halves(device, names):
    """Return the Findings of functions of one operand of two bytes, over all inputs."""
    findings = []
    for dtype in HALVES:
        kind = getattr(vg, dtype)
        if dtype == "float16":
            host = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
        else:
            host = (np.arange(2**16, dtype=np.uint32) << 16).view(np.float32)
        x = vg.astype(vg.asarray(host, device=device), kind)
        wide = vg.astype(x, vg.float64)
        for name in names:
            function, largest = function_of(name), Largest()
            result, exact = function(x), function(wide)
            largest.take(errors_of(result, exact, dtype), (x,))
            nearest = vg.astype(exact, kind)
            differ = (result != nearest) & ~(vg.isnan(result) & vg.isnan(nearest))
            inexact = int(vg.count_nonzero(differ))
            findings.append(Finding(name, dtype, 2**16, largest.ulp, largest.at, inexact))
    return findings


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


# What NumPy computes in long double.
LONG = {name: getattr(np, name) for name in UNARY if hasattr(np, name)}
LONG |= {"sigmoid": _sigmoid, "silu": lambda x: x * _sigmoid(x)}


def double_inputs(count):
    """Return float64 inputs: half of them over all bits, half of ordinary size, and HARD."""
    random = np.random.default_rng(SEED)
    bits = random.integers(0, 2**64, count // 2, np.uint64, endpoint=False).view(np.float64)
    ordinary = random.standard_normal(count - count // 2) * 8
    return np.concatenate([bits[np.isfinite(bits)], ordinary, HARD])


def long_errors(name, x, result):
    """Return the largest error in ulp of float64 results, and its place."""
    with np.errstate(all="ignore"):
        exact = LONG[name](x.astype(np.longdouble))
        limit = np.longdouble(2) ** 1023 * 2
        want, got = (
            np.clip(exact, -limit, limit),
            np.clip(result.astype(exact.dtype), -limit, limit),
        )
        _, exponent = np.frexp(want)
        unit = np.ldexp(np.longdouble(1), np.maximum(exponent - 1, -1022) - 52)
        errors = np.abs(got - want) / unit
    errors = np.where(np.isnan(want), 0, errors)
    errors[np.isnan(got) != np.isnan(want)] = np.inf
    at = int(np.argmax(errors))
    return float(errors[at]), (float(x[at]),)


def measure_double(device, names, count, at_a_time):
    """Return the Findings of functions of one float64 operand that long double can judge."""
    if np.finfo(np.longdouble).nmant <= 52:
        return []
    inputs = double_inputs(count)
    pieces = [inputs[at : at + at_a_time] for at in range(0, len(inputs), at_a_time)]
    workers, findings = os.cpu_count() or 1, []
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for name in (name for name in names if name in LONG):
            function, found = function_of(name), []
            for x in pieces:
                result = function(vg.asarray(x, device=device)).numpy()
                parts = (np.array_split(one, workers) for one in (x, result))
                found += pool.map(long_errors, [name] * workers, *parts)
            ulp, at = max(found, key=lambda one: one[0])
            findings.append(Finding(name, "float64", len(inputs), ulp, at))
    return findings


# The command --------------------------------------------------------------------------------------


def judge(findings):
    """Return the Verdicts: float32 within GOAL each, halves by one rounding."""
    single = [one for one in findings if one.dtype == "float32"]
    verdicts = []
    if single:
        share = sum(one.ulp <= GOAL for one in single) / len(single)
        goal = f"float32 functions within {GOAL:g} ulp, as a share of {len(single)}"
        verdicts.append(Verdict(goal, share, "", share == 1))
    for dtype in HALVES:
        halves = [one for one in findings if one.dtype == dtype]
        if halves:
            share = 1 - sum(one.inexact for one in halves) / sum(one.inputs for one in halves)
            goal = f"{dtype} results that are those of rounding once, as a share"
            verdicts.append(Verdict(goal, share, "", share > 0.999))
    return verdicts


def run(device, size, only, say):
    """Measure and print; return the findings as dicts, and the Verdicts."""
    count, pairs, doubles, at_a_time = SIZES[size]
    unary = [name for name in UNARY if only is None or only in name]
    both = [name for name in PAIRS if only is None or only in name]
    findings = []
    for measured in (
        lambda: measure_single(device, unary, count, at_a_time),
        lambda: measure_pairs(device, both, pairs, at_a_time),
        lambda: measure_halves(device, unary),
        lambda: measure_double(device, unary, doubles, min(at_a_time, 2**24)),
    ):
        for finding in measured():
            say(finding.sentence())
            findings.append(finding)
    return [asdict(one) for one in findings], judge(findings)
