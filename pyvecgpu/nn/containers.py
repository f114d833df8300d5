"""Modules of modules: Sequential, ModuleList, ModuleDict."""

from ..functions.arguments import parse_int
from .activations import ReLU
from .layers import Linear, fused
from .module import Module

__all__ = ["ModuleDict", "ModuleList", "Sequential"]


class _Numbered(Module):
    """Modules with the names "0", "1", ..."""

    def _number(self, index):
        index = parse_int(index, "an index")
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} of {len(self)} modules")
        return str(index % len(self))

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self._of([*self._modules.values()][index])
        return self._modules[self._number(index)]

    def __setitem__(self, index, module):
        self._modules[self._number(index)] = _checked(module)

    def __delitem__(self, index):
        del self._modules[self._number(index)]
        if all(name.isdecimal() for name in self._modules):
            several = [*self]
            self._modules.clear()
            self.extend(several)

    def append(self, module):
        """Add a module behind the others; return self."""
        self.add_module(str(len(self)), _checked(module))
        return self

    def extend(self, modules):
        """Add modules behind the others; return self."""
        for module in modules:
            self.append(module)
        return self


def _checked(module):
    if not isinstance(module, Module):
        raise TypeError(f"a Module is wanted, not {type(module).__name__}")
    return module


class Sequential(_Numbered):
    """Modules that are called one after the other: of Modules, or of a dict of them by name.

    >>> net = vg.nn.Sequential(vg.nn.Linear(2, 8), vg.nn.ReLU(), vg.nn.Linear(8, 1))
    >>> net(vg.ones((5, 2))).shape
    (5, 1)
    >>> net[1]
    ReLU()

    A Linear with a ReLU behind it is one layer, Linear(..., activation="relu"), which gives the
    same bits in fewer launches.
    """

    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], dict):
            for name, module in args[0].items():
                self.add_module(name, _checked(module))
        else:
            self.extend(args)

    def _of(self, modules):
        return Sequential(*modules)

    def _number(self, index):
        return [*self._modules][int(super()._number(index))]

    def forward(self, x):
        """Return the last module's result."""
        before = None  # a Linear that waits to see what comes behind it
        for module in self._modules.values():
            if before is not None:
                if type(module) is ReLU and not module._hooks and "forward" not in module.__dict__:
                    x, before = fused(before, x, "relu"), None
                    continue
                x, before = fused(before, x, None), None
            if (
                type(module) is Linear
                and not module.activation
                and not module._hooks
                and "forward" not in module.__dict__
            ):
                before = module
            else:
                x = module(x)
        return x if before is None else fused(before, x, None)


class ModuleList(_Numbered):
    """A list whose Modules belong to the module that has it.

    >>> layers = vg.nn.ModuleList([vg.nn.Linear(2, 2) for _ in range(3)])
    >>> len(layers), len(list(layers.parameters()))
    (3, 6)
    """

    def __init__(self, modules=()):
        super().__init__()
        self.extend(modules)

    def _of(self, modules):
        return ModuleList(modules)

    def insert(self, index, module):
        """Insert a module before the one at an index."""
        several = [*self]
        several.insert(index, _checked(module))
        self._modules.clear()
        self.extend(several)


class ModuleDict(Module):
    """A dict whose Modules belong to the module that has it.

    >>> layers = vg.nn.ModuleDict({"in": vg.nn.Linear(2, 3), "out": vg.nn.Linear(3, 1)})
    >>> layers["out"].weight.shape, list(layers.keys())
    ((1, 3), ['in', 'out'])
    """

    def __init__(self, modules=None):
        super().__init__()
        self.update(modules or {})

    def update(self, modules):
        """Add modules of a dict, or of pairs of a name and a module."""
        for name, module in dict(modules).items():
            self[name] = module

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        if key in self._modules:
            self._modules[key] = _checked(module)
        else:
            self.add_module(key, _checked(module))

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def keys(self):
        """Return the names."""
        return self._modules.keys()

    def items(self):
        """Return pairs of a name and a module."""
        return self._modules.items()

    def values(self):
        """Return the modules."""
        return self._modules.values()
