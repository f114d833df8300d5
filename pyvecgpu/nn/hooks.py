"""Functions that a Module calls before and after its forward.

A module without hooks has no Hooks and pays for one look at a class attribute.
"""

from ..autograd.arrays import Handle


class Hooks:
    """Of one module: {Handle: (function, whether it takes the options, too)} in their order."""

    def __init__(self):
        self.before, self.after = {}, {}

    def __bool__(self):
        return bool(self.before or self.after)


def add(module, place, hook, prepend, with_kwargs):
    """Add a function to a module's `before` or `after`, at the end or in front; return its Handle.

    TypeError: it is no function.
    """
    if not callable(hook):
        raise TypeError(f"a hook is a function, not {type(hook).__name__}")
    if module._hooks is None:
        module.__dict__["_hooks"] = Hooks()
    hooks = getattr(module._hooks, place)
    handle, others = Handle(hooks), dict(hooks) if prepend else {}
    if prepend:
        hooks.clear()
    hooks[handle] = hook, bool(with_kwargs)
    hooks.update(others)
    return handle


def called(module, args, options):
    """Return what a module with hooks gives for these arguments."""
    for hook, with_kwargs in [*module._hooks.before.values()]:
        if with_kwargs:
            found = hook(module, args, options)
            if found is not None:
                args, options = _pair(found)
            continue
        found = hook(module, args)
        if found is not None:
            args = found if isinstance(found, tuple) else (found,)
    result = module.forward(*args, **options)
    for hook, with_kwargs in [*module._hooks.after.values()]:
        given = (args, options, result) if with_kwargs else (args, result)
        found = hook(module, *given)
        result = result if found is None else found
    return result


def _pair(found):
    if not isinstance(found, tuple) or len(found) != 2:
        raise RuntimeError(
            f"a hook with_kwargs returns None or (args, kwargs), not {type(found).__name__}"
        )
    return found
