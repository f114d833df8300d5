"""What leaves out elements, and what looks rows up: dropout and embedding."""

from ...array import Tracked, wrap
from ...dispatch import apply
from ...functions.arguments import parse_int
from ...functions.choosing import where
from ...functions.layout import expand_dims, reshape
from ...native.abi import FROM_START
from ...random import renewed
from ...short_views import looked_up
from .operands import gathered, narrow, number

__all__ = ["dropout", "embedding"]


def dropout(x, /, p=0.5, training=True):
    """Return x with elements, each with probability p, set to 0, and others divided by 1 - p.

    training: False for x as it is. The random numbers are the process's own, see vg.random.seed;
    in a recording each launch has the next ones.
    ValueError: p is not from 0 to 1.

    >>> x = vg.nn.functional.dropout(vg.ones(100), 0.5)
    >>> set(x.tolist()) <= {0.0, 2.0}
    True
    """
    p = number(p, "p", 0.0, 1.0)
    if not training or not p:
        return x
    call, (array,) = gathered("dropout", x)
    array = narrow(array, array)
    return call.give(dropped(array, p, renewed(array.size, array.backend)))


def dropped(array, p, place):
    """Return dropout of an Array of floats by the random numbers at a place of random.renewed."""
    *place, numbers = place
    numbers = numbers and wrap(array.backend, numbers)
    return apply(array.backend, "dropout", array, p, *place, numbers)


def embedding(input, weight, padding_idx=None):
    """Return the rows of weight (rows, features) with the numbers in input: (..., features).

    padding_idx: a row that gets no gradient; a negative one counts from the end. IndexError: a
    number that is negative or beyond the last row; on a GPU it comes with a later operation or when
    results are read. TypeError: no integers. ValueError: weight has not two dimensions, or no row
    padding_idx.

    >>> weight = vg.asarray([[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]])
    >>> vg.nn.functional.embedding(vg.asarray([2, 0]), weight).tolist()
    [[2.0, 2.5], [0.0, 0.5]]
    """
    # Nothing gets a gradient, so that the row of padding_idx is one as any.
    rows = looked_up(weight, input)
    if rows is not None:
        padding_row(padding_idx, weight.shape[0])
        return rows
    call, (numbers, weight) = gathered("embedding", input, weight, needed=2)
    if numbers.dtype.kind not in "iu":
        raise TypeError(f"embedding: the rows' numbers are integers, not of {numbers.dtype}")
    if weight.ndim != 2:
        raise ValueError(f"embedding: weight is (rows, features), not of shape {weight.shape}")
    planes = reshape(numbers, (1, *numbers.shape))
    rows = apply(weight.backend, "gather", weight, planes, (0,), 0, FROM_START)
    padding_idx = padding_row(padding_idx, weight.shape[0])
    if padding_idx is not None and type(rows) is Tracked:
        rows = where(expand_dims(numbers == padding_idx, axis=-1), rows.detach(), rows)
    return call.give(rows)


def padding_row(padding_idx, count):
    """Return which of so many rows gets no gradient, from 0 on. ValueError: it is none of them."""
    if padding_idx is None:
        return None
    padding_idx = parse_int(padding_idx, "padding_idx")
    if not -count <= padding_idx < count:
        raise ValueError(f"padding_idx={padding_idx} of {count} embeddings")
    return padding_idx % count
