"""Methods of Module that move parameters and buffers to another device or cast them."""

from ..autograd.transforms import no_grad
from ..device import Device
from ..dtypes import is_float, parse_dtype
from ..functions.creation import device_or_dtype
from .parameters import converted, replace


def to(self, device=None, dtype=None):
    """Move parameters and buffers to a device, cast those of floats to a dtype; return self.

    The parameters stay the same objects, with their gradients. A dtype may also come first.
    TypeError: a dtype that is no float. ValueError: neither a device nor a dtype.

    >>> vg.nn.Linear(2, 3).to("cpu", "float64").weight.dtype
    dtype('float64')
    """
    if device is not None and dtype is None:
        device, dtype = device_or_dtype(device)
    if dtype is not None:
        dtype = parse_dtype(dtype)
        if not is_float(dtype):
            raise TypeError(f"parameters are of floats, not of {dtype}")
    arrays = [*self.parameters(), *self.buffers()]
    with no_grad():
        new = [converted(x.detach(), device, dtype) for x in arrays]
        grads = [None if x.grad is None else converted(x.grad, device, dtype) for x in arrays]
    for array, values, grad in zip(arrays, new, grads, strict=True):
        replace(array, values)
        if grad is not None:
            array.grad = grad
    return self


def cpu(self):
    """Move to the CPU device; return self.

    >>> vg.nn.Linear(2, 3).cpu().weight.device
    Device('cpu')
    """
    return self.to("cpu")


def cuda(self, device=None):
    """Move to a GPU: the first, one of a number or a name; return self.

    DeviceUnavailableError: there is none. ValueError: another device.

    >>> net = vg.nn.Linear(2, 3)
    >>> net = net.cuda() if vg.is_available("cuda") else net
    """
    name = "cuda" if device is None else f"cuda:{device}" if type(device) is int else device
    device = Device(name)
    if device.type != "cuda":
        raise ValueError(f"cuda: {device} is no GPU")
    return self.to(device)


def float(self):
    """Cast parameters and buffers of floats to float32; return self.

    >>> vg.nn.Linear(2, 3, dtype="float64").float().weight.dtype
    dtype('float32')
    """
    return self.to(dtype="float32")


def double(self):
    """Cast parameters and buffers of floats to float64; return self.

    >>> vg.nn.Linear(2, 3).double().weight.dtype
    dtype('float64')
    """
    return self.to(dtype="float64")


def half(self):
    """Cast parameters and buffers of floats to float16; return self.

    >>> vg.nn.Linear(2, 3).half().weight.dtype
    dtype('float16')
    """
    return self.to(dtype="float16")


def bfloat16(self):
    """Cast parameters and buffers of floats to bfloat16; return self.

    >>> vg.nn.Linear(2, 3).bfloat16().weight.dtype == vg.bfloat16
    True
    """
    return self.to(dtype="bfloat16")
