"""Types for the hints of programs: what functions of pyvecgpu take.

    import pyvecgpu as vg
    from pyvecgpu.typing import Operand

    def normalised(x: Operand) -> vg.Array:
        return (x - vg.mean(x)) / vg.std(x)

The package's own hints are in its .pyi files, which are written by `make stubs`.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from .array import Array
from .device import Device
from .dtypes import BFloat16

__all__ = [
    "ArrayLike",
    "Axis",
    "DType",
    "DTypeLike",
    "DeviceLike",
    "HostArray",
    "Operand",
    "Scalar",
    "ShapeLike",
]

Scalar: TypeAlias = bool | int | float | complex | np.generic
HostArray: TypeAlias = np.ndarray[Any, Any]  # NumPy's
Operand: TypeAlias = Array | HostArray | Scalar  # of elementwise functions and operators
ArrayLike: TypeAlias = Operand | Sequence[Any]  # what asarray takes

DType: TypeAlias = np.dtype[Any] | BFloat16
DTypeLike: TypeAlias = DType | type[Any] | str
DeviceLike: TypeAlias = Device | str
ShapeLike: TypeAlias = int | Sequence[int]
Axis: TypeAlias = int | tuple[int, ...] | None  # one axis, several, or all
