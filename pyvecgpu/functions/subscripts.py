"""What the subscripts of einsum say: labels of axes, and how two operands are multiplied."""

import functools
import math

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


@functools.lru_cache(maxsize=1024)
def plan_of(subscripts, shape_a, shape_b):
    """Return ((axes, shape) of a, of b, (shape, axes) of the product, whether it is of rows).

    None in their place: as it is. None alone: the subscripts ask for more, or make no sense.
    """
    try:
        (a, b), result = parse(subscripts, [len(shape_a), len(shape_b)])
    except ValueError:
        return None
    sizes = dict(zip(a, shape_a, strict=True)) | dict(zip(b, shape_b, strict=True))
    fits = len({*a}) == len(a) and len({*b}) == len(b) and {*a} ^ {*b} <= {*result}
    fits = fits and tuple(map(sizes.get, a)) == shape_a and tuple(map(sizes.get, b)) == shape_b
    if not fits or {*result} - {*sizes} or 0 in sizes.values():
        return None
    batch = [label for label in a if label in b and label in result]
    summed = [label for label in a if label in b and label not in result]
    rows = [label for label in a if label not in b]
    columns = [label for label in b if label not in a]

    def axes(labels, wanted):
        order = tuple([labels.index(label) for label in wanted])
        return None if order == tuple(range(len(order))) else order

    def shape(*groups):
        """The batch's axes, and each group of labels as one axis."""
        lengths = [math.prod(sizes[label] for label in group) for group in groups]
        found = (*(sizes[label] for label in batch), *lengths)
        return found, None if all(len(group) == 1 for group in groups) else found

    of_a = axes(a, batch + rows + summed), shape(rows, summed)[1]
    of_b = axes(b, batch + summed + columns), shape(summed, columns)[1]
    product = batch + rows + columns
    natural, full = shape(rows, columns)[0], tuple(sizes[label] for label in product)
    of_result = None if natural == full else full, axes(product, result)
    return of_a, of_b, of_result, not rows and not columns and len(summed) == 1


def parse(subscripts, ndims):
    """Return the labels of each operand and of the result. An ellipsis is numbers for labels."""
    text = subscripts.replace(" ", "")
    given, arrow, wanted = text.partition("->")
    terms = given.split(",")
    if len(terms) != len(ndims):
        raise ValueError(f"einsum: {len(terms)} terms in {subscripts!r} for {len(ndims)} operands")
    labels = [_labels(term, ndim, subscripts) for term, ndim in zip(terms, ndims, strict=True)]
    numbers = sorted({x for one in labels for x in one if isinstance(x, int)})
    found = [x for one in labels for x in one if isinstance(x, str)]
    if arrow:
        before, dots, after = wanted.partition("...")
        result = [*before, *(numbers if dots else []), *after]
        strange = [x for x in result if isinstance(x, str) and x not in found]
        if strange or len(set(result)) != len(result):
            raise ValueError(f"einsum: the result of {subscripts!r} has a label twice or of nobody")
        return labels, result
    return labels, [*numbers, *sorted(x for x in set(found) if found.count(x) == 1)]


def _labels(term, ndim, subscripts):
    before, dots, after = term.partition("...")
    if not set(before + after) <= _LETTERS:
        raise ValueError(f"einsum: labels are letters, in {subscripts!r} {term!r} is not")
    missing = ndim - len(before + after)
    if missing < 0 or (missing and not dots):
        raise ValueError(f"einsum: {term!r} in {subscripts!r} fits no array of {ndim} dimensions")
    return [*before, *range(-missing, 0), *after]
