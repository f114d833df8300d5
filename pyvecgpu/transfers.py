"""One switch for copies to the host that nobody asked for: NumPy's and others' wish to see an
array's values."""

import warnings

from .errors import ImplicitTransferError

__all__ = ["implicit_transfers"]

_MODES = ("allow", "warn", "error", None)
_mode = None


class implicit_transfers:  # noqa: N801  called like a function
    """Say what happens when something wants an array's values on the host without being told to.

    NumPy does, where an Array is passed to a function of its own, and so does memoryview(x). From
    the beginning (None) arrays on the CPU give a view of their memory, and all others refuse with
    ImplicitTransferError, which names the fix: x.numpy(). "error" makes the CPU refuse, too, so
    that tests on it find what would fail on a GPU. "allow" makes every device give the values, and
    "warn" does with a RuntimeWarning, on the CPU, too.

    It holds at once and for all threads, until it is called again; as a context manager until the
    end of the block: with vg.implicit_transfers("error"): ... ValueError: another mode.

    >>> with vg.implicit_transfers("allow"):
    ...     values = np.asarray(vg.ones(3))
    >>> values.tolist()
    [1.0, 1.0, 1.0]
    """

    def __init__(self, mode, /):
        global _mode
        if mode not in _MODES:
            raise ValueError(f"implicit transfers are 'allow', 'warn', 'error' or None: {mode!r}")
        self.before, _mode = _mode, mode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        global _mode
        _mode = self.before


def mode_of(array):
    """Return "allow", "warn" or "error", whichever holds for an array."""
    return _mode or ("allow" if array.device.type == "cpu" else "error")


def allowed():
    """Whether it was said that values may go to the host, from every device."""
    return _mode in ("allow", "warn")


def permit(array, who, instead, stacklevel=3):
    """ImplicitTransferError if an array's values may not go to `who`; `instead` names the fix."""
    mode = mode_of(array)
    if mode == "error":
        raise ImplicitTransferError(
            f"{who} asked for the values of an array on {array.device}; {instead}"
        )
    if mode == "warn":
        warnings.warn(
            f"{who} took the values of an array on {array.device} to the host; {instead}",
            RuntimeWarning,
            stacklevel=stacklevel,
        )
