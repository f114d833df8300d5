"""What a run of a lesson's kernel says about itself: Report, and how it reads."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Report:
    """How a lesson's kernel was launched and what was measured; times in seconds.

    None stands for what is not known: the C loop where it was not run (`note` says why), and on
    the simulated card occupancy, limit and share, as it has no speed of its own.
    """

    kernel: str  # name in the lesson
    device: str
    grid: tuple[int, int, int]  # blocks in x, y, z
    block: tuple[int, int, int]  # threads in x, y, z
    elements: int  # of the result
    covered: int  # of these, those that a thread computed; the others stay 0
    bytes: int  # that the kernel has to read and write at least, for the covered elements
    operations: int  # additions and multiplications, for the covered elements
    bytes_to_device: int
    bytes_to_host: int
    c_loop: float | None  # one core, compiled with -O3 -march=native
    numpy: float
    kernel_time: float  # by the device's clock
    to_device: float  # copying the operands
    to_host: float  # copying the result
    occupancy: float | None  # warps that a multiprocessor can run at once, of its most: 0 to 1
    limit: str | None  # what bounds the kernel on this card: "bandwidth" or "operations"
    share: float | None  # of that limit: 0 to 1
    note: str = ""

    def __str__(self):
        lines = [f"{self.kernel}<<<{_size(self.grid)}, {_size(self.block)}>>> on {self.device}"]
        text = f"covered {self.covered:,} of {self.elements:,} elements"
        if self.covered < self.elements:
            text += ": the launch is too small, and the others stay 0 in the result"
        lines.append(text)
        whole = ["all elements"] if self.covered < self.elements else []  # the kernel does a part
        lines.append(_row("C loop", self.c_loop, self.note or ", ".join(["one core", *whole])))
        lines.append(_row("NumPy", self.numpy, *whole))
        lines.append(_row("kernel", self.kernel_time, _rate(self)))
        lines.append(_row("to the device", self.to_device, f"{self.bytes_to_device:,} bytes"))
        lines.append(_row("to the host", self.to_host, f"{self.bytes_to_host:,} bytes"))
        if self.occupancy is None:
            lines.append("occupancy and share of the limit: not on the simulated card")
        else:
            share = "not known for this card" if self.share is None else f"{self.share:.0%}"
            bound = f" ({_LIMITS[self.limit]})" if self.limit else ""
            lines.append(f"occupancy {self.occupancy:.0%}; of the card's limit{bound}: {share}")
        return "\n  ".join(lines)


_LIMITS = {"bandwidth": "memory bandwidth", "operations": "float32 operations"}


def _size(xyz):
    """(4, 1, 1) as 4, and (4, 2, 1) as (4, 2)."""
    used = max([1] + [axis + 1 for axis in range(3) if xyz[axis] != 1])
    return f"{xyz[0]:,}" if used == 1 else str(tuple(xyz[:used]))


def _row(name, seconds, remark=""):
    time = "not measured" if seconds is None else f"{_duration(seconds):>12}"
    return f"{name:<14}{time}  {remark}".rstrip()


def _duration(seconds):
    for unit, scale in (("s", 1), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.2f} {unit}"
    return f"{seconds / 1e-6:.2f} us"


def _rate(report):
    if report.occupancy is None or report.kernel_time <= 0:
        return f"{report.bytes:,} bytes"
    if report.limit == "operations":
        return f"{report.operations / report.kernel_time / 1e9:,.0f} GFLOP/s"
    return f"{report.bytes:,} bytes, {report.bytes / report.kernel_time / 1e9:,.0f} GB/s"
