"""What a training took and gave, on which device it was faster, and why."""

from typing import NamedTuple

import numpy as np

import pyvecgpu as vg

BUSY = 1e6  # operations a microsecond: at less than a teraflop/s a card mostly waits for launches


class Run(NamedTuple):
    """What a training took and gave."""

    device: vg.Device
    epochs: int
    steps: int
    images: int  # seen in all steps
    seconds: float
    accuracy: float
    launches: int  # of kernels; 0 on the CPU
    losses: list = ()  # of each epoch
    read: np.ndarray = None  # in the images held out
    operations: float | None = None  # of floats in one step's products, where they were counted

    def images_per_second(self):
        return self.images / self.seconds


def check_no_copies(before, after, steps, orders=0):
    """AssertionError if the counters show copies between host and device.

    orders: of batches, which are drawn on the host before an epoch's first step.
    """
    to_device = after["copies_to_device"] - before["copies_to_device"] - orders
    to_host = after["copies_to_host"] - before["copies_to_host"]
    if to_device > 0 or to_host:
        raise AssertionError(
            f"the data did not stay on the device: in {steps} steps there were {to_device} copies "
            f"to it and {to_host} back to the host"
        )


def verdict(run, cpu):
    """Return sentences: which of the two runs was faster, as measured, and why."""
    pair = [(run.seconds, str(run.device)), (cpu.seconds, "the CPU device (NumPy)")]
    (quick, faster), (slow, slower) = sorted(pair)
    sentence = (
        f"Faster was {faster}, {slow / quick:.1f} times: {quick:.2f} s against {slow:.2f} s "
        f"on {slower} for the same training. "
    )
    if run.device.type == "sim":
        return sentence + (
            "The simulated card is the same GPU code run thread by thread on the host, for "
            "learning and testing: its time says nothing about a GPU."
        )
    return sentence + reason(run, run.seconds < cpu.seconds)


def reason(run, is_faster):
    """Return sentences: what a GPU's steps were busy with."""
    micros, launches = run.seconds / run.steps * 1e6, run.launches / run.steps
    each = f"{micros:.0f} us, {micros / launches:.1f} us a launch. "
    text = f"A step took {run.device} {launches:.0f} kernel launches and {each}"
    busy = False
    if run.operations is not None:
        busy = run.operations / micros >= BUSY
        text = (
            f"A step of this network is {run.operations / 1e6:.0f} million floating-point "
            f"operations, which {run.device} did in {launches:.0f} kernel launches and {each}"
        )
        if not busy:
            text += "So its time goes into starting kernels, not into arithmetic. "
    if busy:
        return text.rstrip()
    if is_faster:
        return text + "A larger network gives each kernel more to do."
    return text + "The CPU has nothing to start; a larger network gives each kernel more to do."
