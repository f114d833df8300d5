# Written by `make stubs` from docs/reference/hints.py and the package itself.
# pyright: reportOverlappingOverload=false

from collections.abc import Sequence
from typing import Any, Literal, overload
from pyvecgpu.array import Array

class Function:
    @staticmethod
    def forward(ctx: Any, *args: Any, **options: Any) -> Any: ...
    @staticmethod
    def backward(ctx: Any, *args: Any, **options: Any) -> Any: ...
    @classmethod
    def apply(cls, *args: Any, **options: Any) -> Any: ...
from pyvecgpu import checkpoint as checkpoint
from pyvecgpu import enable_grad as enable_grad
@overload
def grad(outputs: Sequence[Array] | Array, inputs: Sequence[Array] | Array, grad_outputs: Sequence[Array | None] | Array | None = None, retain_graph: bool | None = None, create_graph: bool = False, allow_unused: Literal[False] = False) -> tuple[Array, ...]: ...
@overload
def grad(outputs: Sequence[Array] | Array, inputs: Sequence[Array] | Array, grad_outputs: Sequence[Array | None] | Array | None = None, retain_graph: bool | None = None, create_graph: bool = False, allow_unused: bool = False) -> tuple[Array | None, ...]: ...
from pyvecgpu import is_grad_enabled as is_grad_enabled
from pyvecgpu import no_grad as no_grad
