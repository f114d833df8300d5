"""Arrays of given values, and of random ones, which are checked by their range and moments."""

import math

import numpy as np

from ..case import DTYPES, FLOATS, ROUNDOFF, Case, expected_rounded, moved

FILLED = {
    "zeros": (lambda vg, n, t: vg.zeros(n, dtype=t), 0),
    "ones": (lambda vg, n, t: vg.ones(n, dtype=t), 1),
    "full": (lambda vg, n, t: vg.full(n, 3, dtype=t), 3),
}
PEERS_FILLED = {
    "zeros": lambda torch, n, t: torch.zeros(n, dtype=t, device="cuda"),
    "ones": lambda torch, n, t: torch.ones(n, dtype=t, device="cuda"),
    "full": lambda torch, n, t: torch.full((n,), 3, dtype=t, device="cuda"),
}


def filled(draw):
    """An array of one number."""
    name, dtype, size = draw.choice(list(FILLED)), draw.choice(DTYPES), draw.size(100, 6 * 10**7)
    (call, value), peer = FILLED[name], PEERS_FILLED[name]
    return Case(
        group="create filled",
        text=f"{name} {dtype} {size}",
        operands=[],
        call=lambda vg: call(vg, size, dtype),
        peer=lambda torch: peer(torch, size, getattr(torch, dtype)),
        expected=lambda: (np.full(size, bool(value) if dtype == "bool" else value), 0),
        bytes=moved([], (size,), dtype),
    )


def ranged(draw):
    """Numbers in equal steps."""
    name, size = draw.choice(("arange", "linspace")), draw.size(100, 4 * 10**7)
    dtype = draw.choice(("float32", "float64", *(("int32", "int64") if name == "arange" else ())))
    calls = {
        "arange": lambda vg: vg.arange(3, size + 3, dtype=dtype),
        "linspace": lambda vg: vg.linspace(-1, 2, size, dtype=dtype),
    }
    peers = {
        "arange": lambda torch, t: torch.arange(3, size + 3, dtype=t, device="cuda"),
        "linspace": lambda torch, t: torch.linspace(-1, 2, size, dtype=t, device="cuda"),
    }

    def expected():
        if name == "arange":
            return expected_rounded(np.arange(3, size + 3, dtype=np.float64), dtype)
        return np.linspace(-1, 2, size), 8 * ROUNDOFF[dtype]

    return Case(
        group=f"create {name}",
        text=f"{dtype} {size}",
        operands=[],
        call=calls[name],
        peer=lambda torch: peers[name](torch, getattr(torch, dtype)),
        expected=expected,
        bytes=moved([], (size,), dtype),
    )


def eye(draw):
    """An identity matrix."""
    dtype, side = draw.choice(DTYPES), draw.size(10, 6000)
    return Case(
        group="create eye",
        text=f"{dtype} {side}",
        operands=[],
        call=lambda vg: vg.eye(side, dtype=dtype),
        peer=lambda torch: torch.eye(side, dtype=getattr(torch, dtype), device="cuda"),
        expected=lambda: (np.eye(side), 0),
        bytes=moved([], (side, side), dtype),
    )


# By name: the lowest and the highest number there may be, the mean, the variance, and by how many
# variances a square differs from it, as a variance.
MOMENTS = {
    "random": (0.0, 1.0, 1 / 2, 1 / 12, 0.8),
    "randn": (-10.0, 10.0, 0.0, 1.0, 2.0),
}
RANDOM = {
    "random": lambda vg, n, t: vg.random.random(n, dtype=t),
    "randn": lambda vg, n, t: vg.random.randn(n, dtype=t),
}
PEERS_RANDOM = {
    "random": lambda torch, n, t: torch.rand(n, dtype=t, device="cuda"),
    "randn": lambda torch, n, t: torch.randn(n, dtype=t, device="cuda"),
}
SIGMAS = 7.0  # that a moment may be off


def floats(draw):
    """Random numbers between 0 and 1, or normal ones."""
    name, dtype = draw.choice(list(RANDOM)), draw.choice(("float32", *FLOATS))
    size = draw.size(100, 4 * 10**7)
    call, peer = RANDOM[name], PEERS_RANDOM[name]
    return Case(
        group=f"random {name}",
        text=f"{dtype} {size}",
        operands=[],
        call=lambda vg: call(vg, size, dtype),
        peer=lambda torch: peer(torch, size, getattr(torch, dtype)),
        expected=None,
        bytes=moved([], (size,), dtype),
        verify=lambda values: odd(values, size, *MOMENTS[name], 2 * ROUNDOFF[dtype]),
    )


def integers(draw):
    """Random integers below a number."""
    dtype, high = draw.choice(("int64", "int32", "uint8")), draw.choice((2, 10, 100, 256))
    size = draw.size(100, 4 * 10**7)
    variance = (high * high - 1) / 12
    return Case(
        group="random integers",
        text=f"{dtype} below {high} {size}",
        operands=[],
        call=lambda vg: vg.random.randint(0, high, size, dtype=dtype),
        peer=lambda torch: torch.randint(
            0, high, (size,), dtype=getattr(torch, dtype), device="cuda"
        ),
        expected=None,
        bytes=moved([], (size,), dtype),
        verify=lambda values: odd(values, size, 0, high - 1, (high - 1) / 2, variance, 1.0, 0.0),
    )


def odd(values, size, low, high, mean, variance, spread, rounded):
    """Return what is wrong with random values, in words; "" if nothing is.

    spread: the variance of the squares of their distance from the mean, in squares of the variance.
    rounded: how much coarse values may shift the moments.
    """
    if values.shape != (size,):
        return f"its shape is {values.shape}, not {(size,)}"
    values = values.astype(np.float64)
    if not (np.all(values >= low) and np.all(values <= high)):
        return f"there are numbers from {np.min(values)} to {np.max(values)}"
    found = np.mean(values)
    if not abs(found - mean) <= SIGMAS * math.sqrt(variance / size) + rounded:
        return f"the mean is {found}, not {mean}"
    found = np.mean((values - mean) ** 2)
    if not abs(found - variance) <= variance * SIGMAS * math.sqrt(spread / size) + rounded:
        return f"the variance is {found}, not {variance}"
    return ""


CLASSES = {filled: 0.3, ranged: 0.5, eye: 0.25, floats: 0.5, integers: 0.25}
