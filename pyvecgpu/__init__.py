"""pyvecgpu: arrays and neural-network operations on NVIDIA GPUs for NumPy users.

    import pyvecgpu as vg

    x = vg.asarray(numpy_array)           # to the GPU, or the CPU where there is none
    y = vg.sigmoid(x @ weights + 1)       # stays there
    y.numpy()                             # and comes back

Devices are "cpu" (NumPy), "cuda" (GPUs) and "sim" (a simulated card). Functions carry the names and
the meaning of the Python array API standard. `python -m pyvecgpu info` shows what there is.
Importing the package starts nothing: the library is loaded when its device is first used.
"""

import importlib

from . import dtype_queries as _dtype_queries
from . import dtypes as _dtypes
from . import errors as _errors
from . import functions
from . import methods as _methods  # noqa: F401  binds what Array can do
from .array import Array
from .device import *
from .device import __all__ as _of_devices  # as vg.device is a function
from .dtype_queries import *
from .dtypes import *
from .errors import *
from .functions import *
from .streams import *
from .streams import __all__ as _of_streams
from .transfers import *
from .transfers import __all__ as _of_transfers

__version__ = "0.1.0"

newaxis = None
__array_api_version__ = "2025.12"
__array_namespace_info__ = _dtype_queries.ArrayNamespaceInfo

# Parts that are imported when they are first asked for, and functions that stand in such a part.
_PARTS = ("amp", "autograd", "data", "fft", "linalg", "nn", "optim", "random")
_OF_PARTS = {
    "autocast": "amp",
    "checkpoint": "autograd.function",
    "enable_grad": "autograd.transforms",
    "grad": "autograd.transforms",
    "is_grad_enabled": "autograd.transforms",
    "no_grad": "autograd.transforms",
    "poly": "linalg.fitting",
    "polyfit": "linalg.fitting",
    "roots": "linalg.fitting",
    "value_and_grad": "autograd.transforms",
}

__all__ = ["Array", "__version__", "newaxis"]
__all__ += _PARTS
__all__ += _OF_PARTS
__all__ += _of_devices
__all__ += _dtype_queries.__all__
__all__ += _dtypes.__all__
__all__ += _errors.__all__
__all__ += functions.__all__
__all__ += _of_streams
__all__ += _of_transfers


def __getattr__(name):
    """Import the part or NumPy's name that is asked for, or say what to use instead of it."""
    if name in _PARTS:
        return importlib.import_module(f".{name}", __name__)
    if name in _OF_PARTS:
        value = getattr(importlib.import_module(f".{_OF_PARTS[name]}", __name__), name)
        globals()[name] = value
        return value
    text = f"module 'pyvecgpu' has no attribute {name!r}"
    if name.startswith("_"):
        raise AttributeError(text)
    from .names import NUMPYS, instead_of

    if name in NUMPYS:
        import numpy

        globals()[name] = getattr(numpy, name)
        return globals()[name]
    instead = instead_of(name)
    if instead:
        raise AttributeError(f"{text}; {instead}")
    import difflib

    close = difflib.get_close_matches(name, __all__, 1)
    raise AttributeError(f"{text}; did you mean {close[0]!r}?" if close else text)


def __dir__():
    return sorted({*globals(), *__all__})
