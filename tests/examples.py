"""The public names with a docstring of their own, and their examples: what `make docs` shows."""

import doctest
import inspect
import re

import numpy as np

import pyvecgpu as vg

MODULES = {
    "vg": vg,
    "vg.autograd": vg.autograd,
    "vg.data": vg.data,
    "vg.fft": vg.fft,
    "vg.linalg": vg.linalg,
    "vg.nn": vg.nn,
    "vg.nn.functional": vg.nn.functional,
    "vg.nn.init": vg.nn.init,
    "vg.nn.utils": vg.nn.utils,
    "vg.optim": vg.optim,
    "vg.optim.lr_scheduler": vg.optim.lr_scheduler,
    "vg.random": vg.random,
}
# Classes whose methods are part of the manual one by one.
CLASSES = {
    "vg.Array": vg.Array,
    "vg.data.Characters": vg.data.Characters,
    "vg.nn.Module": vg.nn.Module,
    "vg.optim.Optimizer": vg.optim.Optimizer,
    "vg.optim.lr_scheduler.LRScheduler": vg.optim.lr_scheduler.LRScheduler,
    "vg.random.Generator": vg.random.Generator,
}
# What a class of one's own defines: the example of the whole class has it.
HOOKS = {
    "vg.nn.Module.training",
    "vg.optim.Optimizer.check",
    "vg.optim.Optimizer.update",
    "vg.optim.lr_scheduler.LRScheduler.rate",
    "vg.optim.lr_scheduler.LRScheduler.rates",
}
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")


def documented():
    """{full name: function, class or property} of all that has to have an example."""
    found = {}
    for path, module in MODULES.items():
        for name in public_names(module):
            value = getattr(module, name)
            if inspect.isroutine(value) or inspect.isclass(value):
                found[f"{path}.{name}"] = value
    for path, cls in CLASSES.items():
        for name in dir(cls):
            value = inspect.getattr_static(cls, name)
            if not name.startswith("_") and (callable(value) or isinstance(value, property)):
                found[f"{path}.{name}"] = value
    of_numpy = {name for name, value in found.items() if value.__doc__ == np_doc(value)}
    return {name: v for name, v in sorted(found.items()) if name not in HOOKS | of_numpy}


def np_doc(value):
    """The docstring of what is NumPy's own class here under its own name; "" else."""
    module = getattr(value, "__module__", None) or ""
    return value.__doc__ if module.startswith("numpy") else ""


def public_names(module):
    """What a module declares, or what a plain module of functions has without an underscore."""
    declared = getattr(module, "__all__", None)
    if declared is not None:
        return declared
    own = vars(module).items()
    return [n for n, v in own if n[0] != "_" and getattr(v, "__module__", "") == module.__name__]


class Checker(doctest.OutputChecker):
    """Compares numbers by a tolerance: devices agree to the last digits but one or two."""

    def check_output(self, want, got, optionflags):
        if super().check_output(want, got, optionflags):
            return True
        parts = [" ".join(_NUMBER.sub("#", text).split()) for text in (want, got)]
        parts = [re.sub(r"\s*([\[\]#])\s*", r"\1", part) for part in parts]
        numbers = [np.array([float(n) for n in _NUMBER.findall(text)]) for text in (want, got)]
        if parts[0] != parts[1] or len(numbers[0]) != len(numbers[1]):
            return False
        error, size = np.abs(numbers[1] - numbers[0]), np.abs(numbers[0])
        return bool(np.all(error <= 1e-6 + 1e-5 * size))


def run(name, docstring, device):
    """Run the examples of a docstring on a device; return (how many there are, what is wrong)."""
    examples = doctest.DocTestParser().get_examples(docstring or "", name)
    test = doctest.DocTest(examples, {"vg": vg, "np": np}, name, None, None, docstring)
    told = []
    runner = doctest.DocTestRunner(Checker(), verbose=False)
    with vg.device(device):
        runner.run(test, out=told.append)
    return len(examples), "".join(told)
