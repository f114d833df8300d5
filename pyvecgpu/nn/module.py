"""Module: a part of a network, with parameters, buffers and modules of its own by name."""

import copy

from ..array import Array
from ..functions.values import copied
from . import hooks, moving, states
from .parameters import Parameter


class Module:
    """A part of a network: derive from it, call super().__init__() first, and define forward.

    Attributes that are Parameters or Modules are found by name, as parameters of the whole and in
    its state_dict. AttributeError: one is assigned before super().__init__().

    >>> class Net(vg.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = vg.nn.Linear(2, 3)
    ...
    ...     def forward(self, x):
    ...         return vg.relu(self.layer(x))
    >>> net = Net()
    >>> net(vg.ones((5, 2))).shape
    (5, 3)
    >>> [name for name, _ in net.named_parameters()]
    ['layer.weight', 'layer.bias']
    """

    training = True
    _hooks = None

    def __init__(self):
        for kind in ("_parameters", "_buffers", "_modules"):
            self.__dict__[kind] = {}
        self.__dict__["_volatile"] = set()  # buffers that no state_dict has

    def forward(self, *args, **options):
        """Compute the result; calling the module calls it.

        >>> vg.nn.ReLU().forward(vg.asarray([-1.0, 2.0])).tolist()
        [0.0, 2.0]
        """
        raise NotImplementedError(f"{type(self).__name__} has no forward(...)")

    def __call__(self, *args, **options):
        if self._hooks:
            return hooks.called(self, args, options)
        return self.forward(*args, **options)

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Call hook(module, args) before each forward; return a handle with remove().

        What it returns, unless None, takes the arguments' place: a tuple, or one argument.
        prepend: before the other hooks. with_kwargs: hook(module, args, kwargs), which returns None
        or (args, kwargs). A step that is recorded calls hooks when it is recorded. TypeError: no
        function.

        >>> net = vg.nn.ReLU()
        >>> handle = net.register_forward_pre_hook(lambda module, args: args[0] + 1)
        >>> net(vg.asarray([-1.0, 2.0])).tolist()
        [0.0, 3.0]
        >>> handle.remove()
        """
        return hooks.add(self, "before", hook, prepend, with_kwargs)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Call hook(module, args, output) after each forward; return a handle with remove().

        What it returns, unless None, takes the output's place. prepend: before the other hooks.
        with_kwargs: hook(module, args, kwargs, output). A step that is recorded calls hooks when it
        is recorded. TypeError: no function.

        >>> net, shapes = vg.nn.Sequential(vg.nn.Linear(2, 3), vg.nn.ReLU()), []
        >>> handle = net[0].register_forward_hook(lambda module, args, y: shapes.append(y.shape))
        >>> y = net(vg.ones((5, 2)))
        >>> shapes
        [(5, 3)]
        >>> handle.remove()
        """
        return hooks.add(self, "after", hook, prepend, with_kwargs)

    # Attributes -----------------------------------------------------------------------------------

    def __setattr__(self, name, value):
        kinds = ("_parameters", "_buffers", "_modules")
        kind = None
        if isinstance(value, Parameter):
            kind = "_parameters"
        elif isinstance(value, Module):
            kind = "_modules"
        if "_parameters" not in self.__dict__:
            if kind:
                raise AttributeError(f"{name!r} is assigned before super().__init__()")
            object.__setattr__(self, name, value)
            return
        if kind is None:
            kind = next((one for one in kinds if name in self.__dict__[one]), None)
            if kind and not (value is None or (kind == "_buffers" and isinstance(value, Array))):
                given = type(value).__name__
                raise TypeError(f"{name!r} is one of the module's {kind[1:]}, and {given} is none")
        if kind is None:
            object.__setattr__(self, name, value)
            return
        for one in kinds:
            if one != kind:
                self.__dict__[one].pop(name, None)
        self.__dict__.pop(name, None)
        self.__dict__[kind][name] = value

    def __getattr__(self, name):
        own = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            found = own.get(kind)
            if found and name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def __delattr__(self, name):
        for kind in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__[kind]:
                del self.__dict__[kind][name]
                self._volatile.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self):
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def register_parameter(self, name, param):
        """Add a Parameter, or None for one that this module goes without, by name.

        >>> net = vg.nn.Module()
        >>> net.register_parameter("scale", vg.nn.Parameter(vg.ones(1)))
        >>> [name for name, _ in net.named_parameters()]
        ['scale']
        """
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"{name!r} is a Parameter or None, not {type(param).__name__}")
        self._add("_parameters", name, param)

    def register_buffer(self, name, tensor, persistent=True):
        """Add an Array, or None, that is no parameter but moves with the module.

        persistent: it is in the state_dict.

        >>> net = vg.nn.Module()
        >>> net.register_buffer("mean", vg.zeros(3))
        >>> list(net.state_dict()), list(net.parameters())
        (['mean'], [])
        """
        if tensor is not None and not isinstance(tensor, Array):
            raise TypeError(f"{name!r} is an Array or None, not {type(tensor).__name__}")
        self._add("_buffers", name, tensor)
        if not persistent:
            self._volatile.add(name)

    def add_module(self, name, module):
        """Add a Module, or None, by name.

        >>> net = vg.nn.Module()
        >>> net.add_module("first", vg.nn.Linear(2, 3))
        >>> net.first.weight.shape
        (3, 2)
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{name!r} is a Module or None, not {type(module).__name__}")
        self._add("_modules", name, module)

    def _add(self, kind, name, value):
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"{name!r} is registered before super().__init__()")
        if not isinstance(name, str):
            raise TypeError(f"a name is a string, not {type(name).__name__}")
        if not name or "." in name:
            raise KeyError(f"a name is not empty and has no dot, but this is {name!r}")
        if name not in self.__dict__[kind] and hasattr(self, name):
            raise KeyError(f"attribute {name!r} exists")
        self.__dict__[kind][name] = value

    # What it has ----------------------------------------------------------------------------------

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """Give (name, module) of this one, whose name is the prefix, and of all within it.

        >>> net = vg.nn.Sequential(vg.nn.Linear(2, 3), vg.nn.ReLU())
        >>> [name for name, _ in net.named_modules()]
        ['', '0', '1']
        """
        memo = set() if memo is None else memo
        if id(self) in memo:
            return
        if remove_duplicate:
            memo.add(id(self))
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                inner = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, inner, remove_duplicate)

    def modules(self):
        """Give this module and all within it, each once.

        >>> net = vg.nn.Sequential(vg.nn.Linear(2, 3), vg.nn.ReLU())
        >>> len(list(net.modules()))
        3
        """
        for _, module in self.named_modules():
            yield module

    def named_children(self):
        """Give (name, module) of the modules directly within this one, each module once.

        >>> net = vg.nn.Sequential(vg.nn.Linear(2, 3), vg.nn.ReLU())
        >>> [name for name, _ in net.named_children()]
        ['0', '1']
        """
        seen = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self):
        """Give the modules directly within this one, each once.

        >>> net = vg.nn.Sequential(vg.nn.Linear(2, 3), vg.nn.ReLU())
        >>> len(list(net.children()))
        2
        """
        for _, module in self.named_children():
            yield module

    def _named(self, kind, prefix, recurse, remove_duplicate):
        seen = set()
        several = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for place, module in several if recurse else [(prefix, self)]:
            for name, array in module.__dict__[kind].items():
                if array is None or id(array) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(array))
                yield (f"{place}.{name}" if place else name), array

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """Give (name, Parameter) of this module's and, with recurse, of all modules within it.

        Without remove_duplicate a parameter that has several names comes with each of them.

        >>> {name: p.shape for name, p in vg.nn.Linear(2, 3).named_parameters()}
        {'weight': (3, 2), 'bias': (3,)}
        """
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        """Give the parameters, each once.

        >>> sum(p.size for p in vg.nn.Linear(2, 3).parameters())
        9
        """
        for _, array in self.named_parameters(recurse=recurse):
            yield array

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Give (name, Array) of the buffers; see named_parameters.

        >>> [name for name, _ in vg.nn.BatchNorm1d(4).named_buffers()]
        ['running_mean', 'running_var', 'num_batches_tracked']
        """
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """Give the buffers, each once.

        >>> len(list(vg.nn.BatchNorm1d(4).buffers()))
        3
        """
        for _, array in self.named_buffers(recurse=recurse):
            yield array

    def get_submodule(self, target):
        """Return the module of a name with dots. AttributeError: there is none.

        >>> net = vg.nn.Sequential(vg.nn.Sequential(vg.nn.Linear(2, 3)))
        >>> net.get_submodule("0.0")
        Linear(in_features=2, out_features=3, bias=True)
        """
        module = self
        for name in target.split(".") if target else ():
            module = module.__dict__["_modules"].get(name)
            if module is None:
                raise AttributeError(f"{type(self).__name__} has no module {target!r}")
        return module

    def get_parameter(self, target):
        """Return the Parameter of a name with dots. AttributeError: there is none.

        >>> net = vg.nn.Sequential(vg.nn.Linear(2, 3))
        >>> net.get_parameter("0.bias").shape
        (3,)
        """
        return self._found("_parameters", "parameter", target)

    def get_buffer(self, target):
        """Return the buffer of a name with dots. AttributeError: there is none.

        >>> net = vg.nn.Sequential(vg.nn.BatchNorm1d(3))
        >>> net.get_buffer("0.running_mean").tolist()
        [0.0, 0.0, 0.0]
        """
        return self._found("_buffers", "buffer", target)

    def _found(self, kind, what, target):
        owner, _, name = target.rpartition(".")
        found = self.get_submodule(owner).__dict__[kind].get(name)
        if found is None:
            raise AttributeError(f"{type(self).__name__} has no {what} {target!r}")
        return found

    # States ---------------------------------------------------------------------------------------

    def state_dict(self, *, prefix="", keep_vars=False):
        """Return {name: Array} of all parameters and persistent buffers, in the same memory.

        prefix: what each name begins with. keep_vars: the Parameters themselves, not detached.

        >>> net = vg.nn.Linear(2, 3)
        >>> sorted(net.state_dict(prefix="net."))
        ['net.bias', 'net.weight']
        >>> net.state_dict(keep_vars=True)["bias"] is net.bias
        True
        """
        return states.state_dict(self, prefix, keep_vars)

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copy values of a state_dict into the parameters and buffers, all or none.

        state_dict: {name: Array, NumPy's array, or what numpy.asarray takes}. Return (missing_keys,
        unexpected_keys). assign: the Arrays take the place of parameters and buffers instead, with
        dtype, device and memory of their own (NumPy's are uploaded); only requires_grad stays as it
        was. An optimiser is to be made after that. StateError, which is a ValueError and a
        RuntimeError and names every key: one is missing or not expected, but for strict=False, or
        values have another shape. TypeError, with the key: values that are no numbers, complex ones
        of a real parameter.

        >>> a, b = vg.nn.Linear(2, 3), vg.nn.Linear(2, 3)
        >>> missing, unexpected = b.load_state_dict(a.state_dict())
        >>> vg.array_equal(a.weight, b.weight), missing
        (True, [])
        >>> _ = b.load_state_dict(a.double().state_dict(), assign=True)
        >>> b.weight.dtype
        dtype('float64')
        """
        return states.load_state_dict(self, state_dict, strict, assign)

    def __getstate__(self):
        state = dict(self.__dict__)
        for kind in ("_parameters", "_buffers"):
            state[kind] = {n: states.packed(x) for n, x in state.get(kind, {}).items()}
        return state

    def __setstate__(self, state):
        for kind in ("_parameters", "_buffers"):
            state[kind] = {n: states.unpacked(x) for n, x in state[kind].items()}
        self.__dict__.update(state)

    def __deepcopy__(self, memo):
        """Return a copy with memory of its own; a parameter of several names stays one."""
        result = memo[id(self)] = object.__new__(type(self))
        for key, value in self.__dict__.items():
            if key in ("_parameters", "_buffers"):
                value = {name: _copy(array, memo) for name, array in value.items()}
            else:
                value = copy.deepcopy(value, memo)
            result.__dict__[key] = value
        return result

    # Changing all of it ---------------------------------------------------------------------------

    def apply(self, fn):
        """Call fn(module) for every module within this one, and at last for itself; return self.

        >>> net = vg.nn.Sequential(vg.nn.Linear(2, 3))
        >>> net = net.apply(lambda module: print(type(module).__name__))
        Linear
        Sequential
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode=True):
        """Set whether this module and all within it are being trained; return self.

        >>> net = vg.nn.Dropout(0.5).eval()
        >>> net.train().training
        True
        """
        if not isinstance(mode, bool):
            raise ValueError(f"the mode is True or False, not {mode!r}")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        """Set that it is in use, not in training; return self.

        >>> net = vg.nn.Dropout(0.5).eval()
        >>> net(vg.ones(3)).tolist()
        [1.0, 1.0, 1.0]
        """
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Set whether the parameters require gradients; return self.

        >>> net = vg.nn.Linear(2, 3).requires_grad_(False)
        >>> net(vg.ones((1, 2))).requires_grad
        False
        """
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Forget the gradients of the parameters, or set them to 0.

        >>> net = vg.nn.Linear(2, 3)
        >>> net(vg.ones((1, 2))).sum().backward()
        >>> net.zero_grad()
        >>> print(net.weight.grad)
        None
        """
        for parameter in self.parameters():
            if set_to_none or parameter.grad is None:
                parameter.grad = None
            else:
                parameter.grad = parameter.grad.detach() * 0.0

    to, cpu, cuda = moving.to, moving.cpu, moving.cuda
    float, double, half, bfloat16 = moving.float, moving.double, moving.half, moving.bfloat16

    # Printing -------------------------------------------------------------------------------------

    def extra_repr(self):
        """Return what stands in the parentheses of repr: here parameters with their shapes.

        >>> vg.nn.Linear(2, 3).extra_repr()
        'in_features=2, out_features=3, bias=True'
        """
        own = [f"{n}={tuple(x.shape)}" for n, x in self._parameters.items() if x is not None]
        return ", ".join(own)

    def __repr__(self):
        lines = []
        for name, module in self._modules.items():
            lines += f"({name}): {module!r}".splitlines()
        extra = self.extra_repr()
        if not lines:
            return f"{type(self).__name__}({extra})"
        lines = [f"  {line}" for line in ([extra] if extra else []) + lines]
        return "\n".join([f"{type(self).__name__}(", *lines, ")"])


def _copy(array, memo):
    """Return a copy of a parameter or a buffer, the same one for the same one."""
    if array is None:
        return None
    if id(array) not in memo:
        result = copied(array.detach())
        if isinstance(array, Parameter):
            result = Parameter(result, array.requires_grad)
        memo[id(array)] = result
    return memo[id(array)]
