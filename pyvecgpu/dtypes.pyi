# Written by `make stubs` from docs/reference/hints.py and the package itself.
# pyright: reportOverlappingOverload=false

from typing import Any
import numpy as np

class BFloat16:
    name: str
    kind: str
    char: str
    itemsize: int
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def type(self) -> type[Any]: ...
