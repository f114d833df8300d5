"""Types for the hints of programs: what functions of pyvecgpu take.

    import pyvecgpu as vg
    from pyvecgpu.typing import ArrayLike

    def normalised(values: ArrayLike) -> vg.Array:
        x = vg.asarray(values)
        return (x - x.mean()) / x.std()

The package's own hints are in its .pyi files, which are written by `make stubs`.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from . import Array, Device
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
Numbers: TypeAlias = list[Any] | tuple[Any, ...] | range  # lists of numbers, nested ones too
Operand: TypeAlias = Array | HostArray | Scalar | Numbers  # of functions and operators
ArrayLike: TypeAlias = Operand | Sequence[Any]  # what asarray takes

DType: TypeAlias = np.dtype[Any] | BFloat16
DTypeLike: TypeAlias = DType | type[Any] | str
DeviceLike: TypeAlias = Device | str
ShapeLike: TypeAlias = int | Sequence[int]
Axis: TypeAlias = int | tuple[int, ...] | None  # one axis, several, or all
