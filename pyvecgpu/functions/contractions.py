"""einsum: sums of products, written as labels of axes.

Every operand loses the labels that no other operand and not the result has. Then two at a time are
multiplied as a batch of matrices: labels that both have and that are needed later are the batch,
what both have and nobody needs is summed over. Pairs are taken from left to right, or in the order
that the package opt_einsum finds to be cheap, where it is installed.

What is to be done of two operands that take nothing but permutations, reshapes and one product is
kept by subscripts and shapes: to find it out takes longer than a small product.
"""

import functools
import importlib.util
import math
import string

from ..array import Array, Tracked
from ..dispatch import WAYS
from ..dtype_queries import result_type
from . import short_cards, short_numpy
from .arguments import Operands, is_scalar, parse_int, strong
from .casting import active
from .layout import astype, broadcast_to, diagonal, permute_dims, reshape
from .linalg import matmul, parse_precision
from .reductions import sum as total
from .short_calls import short
from .values import copied

__all__ = ["einsum"]

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


@short(short_numpy.einsum)
def einsum(subscripts, /, *operands, optimize=True, precision=None, out=None, device=None):
    """Return the sum of products that subscripts describe, such as "bij,bjk->bik", as numpy.einsum.

    optimize: True takes many operands in the order that opt_einsum finds, if it is installed; False
    from left to right. precision: see matmul. Axes may have numbers instead of letters, in a list
    behind each operand: einsum(a, [0, 1], b, [1], [0]). ValueError: subscripts that make no sense
    or do not fit the operands. TypeError: no subscripts, or scalars alone.

    >>> a, b = vg.ones((5, 2, 3)), vg.ones((5, 3, 4))
    >>> vg.einsum("bij,bjk->bik", a, b).shape
    (5, 2, 4)
    >>> vg.einsum("ii", vg.asarray([[1, 2], [3, 4]])).item()
    5
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _with_letters(subscripts, *operands)
    if all(is_scalar(x) for x in operands):
        raise TypeError("einsum takes arrays after the subscripts")
    if len(operands) == 2 and out is None and device is None and not active:
        result = _of_two(subscripts, *operands, precision)
        if result is not None:
            return result
    call = Operands("einsum", operands, out, device)
    terms, result = _parse(subscripts, [getattr(x, "ndim", 0) for x in call.arrays])
    dtype = result_type(*call.arrays)
    parts = [
        strong(x, call.backend, dtype) if is_scalar(x) else astype(x, dtype, copy=False)
        for x in call.arrays
    ]
    sizes = _sizes(subscripts, terms, parts)
    parts = [_Part(x, term) for x, term in zip(parts, terms, strict=True)]
    for first, second in _path(terms, result, sizes, optimize):
        b, a = parts.pop(second), parts.pop(first)
        others = {*result, *(label for part in parts for label in part.labels)}
        a, b = a.only(others | {*b.labels}), b.only(others | {*a.labels})
        parts.append(_contract(a, b, others, sizes, precision))
    (part,) = parts
    part = part.only({*result})
    array = permute_dims(part.array, [part.labels.index(label) for label in result])
    shape = tuple(sizes[label] for label in result)
    return call.deliver_array(array if array.shape == shape else copied(broadcast_to(array, shape)))


def _with_letters(*given):
    """Return (subscripts, operands) of operands with lists of axes' numbers behind each."""
    operands, lists = given[: len(given) // 2 * 2 : 2], [*given[1::2]]
    if len(given) % 2:
        lists.append(given[-1])
    if not all(isinstance(axes, (list, tuple)) for axes in lists):
        raise TypeError("einsum: subscripts are a text, or a list of axes behind each operand")
    terms = ["".join(map(_letter, axes)) for axes in lists]
    result = "->" + terms.pop() if len(given) % 2 else ""
    return ",".join(terms) + result, operands


def _letter(axis):
    """Return the letter of an axis with a number; in their order, as results are sorted by it."""
    letters = string.ascii_uppercase + string.ascii_lowercase
    if axis is Ellipsis:
        return "..."
    number = parse_int(axis, "einsum: an axis")
    if not 0 <= number < len(letters):
        raise ValueError(f"einsum: axes have numbers from 0 to {len(letters) - 1}, not {number}")
    return letters[number]


_ARRAYS = (Array, Tracked)


def _of_two(subscripts, a, b, precision):
    """Return the product of two Arrays by a plan that is kept, or None: the long way."""
    if type(a) not in _ARRAYS or type(b) not in _ARRAYS or a.backend is not b.backend:
        return None
    plan = _plan(subscripts, a.shape, b.shape)
    if plan is None:
        return None
    (axes_a, shape_a), (axes_b, shape_b), (shape, axes), is_dots = plan
    code = parse_precision(precision)
    if is_dots and axes is None:
        result = short_cards.dots(_permuted(a, axes_a), _permuted(b, axes_b), code)
        if result is not None:
            return result
    a, b = _reshaped(_permuted(a, axes_a), shape_a), _reshaped(_permuted(b, axes_b), shape_b)
    product = WAYS["matmul"](a.backend, a, b, code, None)
    return _permuted(_reshaped(product, shape), axes)


def _permuted(array, axes):
    return array if axes is None else WAYS["permute"](array.backend, array, axes)


def _reshaped(array, shape):
    return array if shape is None else WAYS["reshape"](array.backend, array, shape)


@functools.lru_cache(maxsize=1024)
def _plan(subscripts, shape_a, shape_b):
    """Return ((axes, shape) of a, of b, (shape, axes) of the product, whether it is of rows).

    None in their place: as it is. None alone: the subscripts ask for more, or make no sense.
    """
    try:
        (a, b), result = _parse(subscripts, [len(shape_a), len(shape_b)])
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


class _Part:
    """An Array and the labels of its axes, each once."""

    def __init__(self, array, labels):
        for label in dict.fromkeys(labels):
            while labels.count(label) > 1:
                i = labels.index(label)
                j = labels.index(label, i + 1)
                if array.shape[i] != array.shape[j]:
                    raise ValueError(f"einsum: {label!r} of one operand has lengths {array.shape}")
                array = diagonal(array, 0, i, j)
                labels = [one for k, one in enumerate(labels) if k not in (i, j)] + [label]
        self.array, self.labels = array, list(labels)

    def only(self, wanted):
        """The part, summed over the labels that are not wanted."""
        lost = [i for i, label in enumerate(self.labels) if label not in wanted]
        if not lost:
            return self
        array = total(self.array, axis=tuple(lost), dtype=self.array.dtype)
        return _Part(array, [label for label in self.labels if label in wanted])

    def in_order(self, groups, sizes):
        """The elements as an Array with an axis for each group of labels."""
        order = [label for group in groups for label in group]
        array = permute_dims(self.array, [self.labels.index(label) for label in order])
        array = broadcast_to(array, tuple(sizes[label] for label in order))
        return reshape(array, tuple(math.prod(sizes[x] for x in group) for group in groups))


def _contract(a, b, needed, sizes, precision):
    """Multiply two parts and sum over what both have and nobody needs."""
    both = [label for label in a.labels if label in b.labels]
    batch = [label for label in both if label in needed]
    summed = [label for label in both if label not in needed]
    rows = [label for label in a.labels if label not in b.labels]
    columns = [label for label in b.labels if label not in a.labels]
    left = a.in_order((batch, rows, summed), sizes)
    right = b.in_order((batch, summed, columns), sizes)
    product = matmul(left, right, precision=precision)
    labels = batch + rows + columns
    return _Part(reshape(product, tuple(sizes[label] for label in labels)), labels)


def _parse(subscripts, ndims):
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


def _sizes(subscripts, terms, arrays):
    """{label: length}, where axes of length 1 are repeated."""
    sizes = {}
    for labels, array in zip(terms, arrays, strict=True):
        for label, n in zip(labels, array.shape, strict=True):
            known = sizes.setdefault(label, n)
            if known == 1:
                sizes[label] = n
            elif n not in (1, known):
                raise ValueError(
                    f"einsum: {label!r} of {subscripts!r} is of length {known} and {n}"
                )
    return sizes


def _path(terms, result, sizes, optimize):
    """Yield the two operands to multiply next; the product becomes the last operand."""
    count = len(terms)
    if optimize and count > 2 and importlib.util.find_spec("opt_einsum"):
        import opt_einsum

        letters = {label: chr(0x100 + i) for i, label in enumerate(sizes)}
        text = ",".join("".join(letters[x] for x in labels) for labels in terms)
        text += "->" + "".join(letters[x] for x in result)
        shapes = [tuple(sizes[x] for x in labels) for labels in terms]
        for step in opt_einsum.contract_path(text, *shapes, shapes=True)[0]:
            yield from _in_pairs(sorted(step), count)
            count -= len(step) - 1
        return
    for remaining in range(count, 1, -1):
        yield (0, 1) if remaining == count else (0, remaining - 1)


def _in_pairs(step, count):
    """Yield a step of several operands as pairs of them."""
    while len(step) > 1:
        *step, first, second = step
        yield first, second
        count -= 1
        step = [*step, count - 1]
