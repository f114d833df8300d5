"""What the notebooks share: a card for the lessons' kernels, a clock, pictures.

The notebooks lie beside this file and import it as `chapter`.
"""

import time

import pyvecgpu as vg
from pyvecgpu.bench.article import plots

ENOUGH = 0.02  # seconds: so long a call is repeated


def card():
    """Return the Device for pyvecgpu.learn, or None if there is none, and print a sentence on it.

    The current device if it runs CUDA kernels, else the simulated card if that is built.
    """
    device = vg.zeros(0).device
    if device.type == "cpu":
        try:
            device = vg.Device("sim")
        except vg.DeviceUnavailableError as error:
            print(
                "There is no GPU and no simulated card, so the cells that launch the lessons' "
                f"kernels do nothing here: {error}"
            )
            return None
    print(f"The lessons' kernels run on {device}, {device.name}.")
    if device.type == "sim":
        print("The CPU simulates this card, so its times say nothing about a GPU.")
    return device


def seconds(call):
    """Return how long one call takes on the current device, over as many calls as fill ENOUGH.

    Operations return before the device is done. So the clock stops after `vg.synchronize()`, which
    waits for all of them.
    """
    call()  # the first call may load the kernel and fetch memory
    calls = 1
    while True:
        vg.synchronize()
        began = time.perf_counter()
        for _ in range(calls):
            call()
        vg.synchronize()
        taken = time.perf_counter() - began
        if taken >= ENOUGH:
            return taken / calls
        calls *= 4


def pyplot():
    """Return matplotlib.pyplot; None, and a sentence is printed, if matplotlib is not installed."""
    try:
        plots.require()
    except ModuleNotFoundError as error:
        print(error)
        return None
    from matplotlib import pyplot

    return pyplot
