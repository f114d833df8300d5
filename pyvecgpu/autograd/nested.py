"""Arrays in containers: dicts, lists, tuples and named tuples of them, and of these again."""

import copy


def mapped(function, tree):
    """Return a container with function(leaf) for every leaf; None stays."""
    if tree is None:
        return None
    if isinstance(tree, dict):
        result = copy.copy(tree)  # an OrderedDict, too, of the same keys
        result.update([(key, mapped(function, value)) for key, value in tree.items()])
        return result
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[mapped(function, value) for value in tree])
    if isinstance(tree, (list, tuple)):
        return type(tree)([mapped(function, value) for value in tree])
    return function(tree)


def leaves(tree):
    """Return what a container holds, in order, as a list."""
    found = []
    mapped(found.append, tree)
    return found
