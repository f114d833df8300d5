"""einsum, and the products that are made of others, as NumPy's."""

import string

import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg

ROUNDS = 40


def draw(rng):
    """(subscripts, NumPy arrays) of a random sum of products; small integers, so exact."""
    letters = list(rng.permutation(list(string.ascii_letters[:5])))
    sizes = {letter: int(rng.integers(0 if rng.random() < 0.1 else 1, 4)) for letter in letters}
    dtype = str(rng.choice(["float64", "float32", "int32", "int64", "bool"]))
    dots = rng.random() < 0.3
    batch = tuple(int(n) for n in rng.integers(1, 3, 2))
    terms, arrays = [], []
    for _ in range(rng.integers(1, 5)):
        term = [str(x) for x in rng.choice(letters, rng.integers(0, 4))]
        shape = [1 if rng.random() < 0.05 else sizes[x] for x in term]
        for i, x in enumerate(term):
            shape[i] = shape[term.index(x)]
        text = "".join(term)
        if dots and rng.random() < 0.7:
            extra = batch[int(rng.integers(3)) :]
            place = int(rng.integers(len(term) + 1))
            text = text[:place] + "..." + text[place:]
            shape[place:place] = [1 if rng.random() < 0.2 else n for n in extra]
        terms.append(text)
        arrays.append(rng.integers(-3, 4, shape).astype(dtype))
    found = sorted({x for term in terms for x in term if x != "."})
    subscripts = ",".join(terms)
    if rng.random() < 0.7:
        kept = [str(x) for x in rng.permutation(found)[: rng.integers(len(found) + 1)]]
        subscripts += "->" + ("..." if dots else "") + "".join(kept)
    return subscripts, arrays


@pytest.mark.parametrize("optimize", [True, False])
def test_random_subscripts(device, rng, optimize):
    done = 0
    for _ in range(4 * ROUNDS):
        subscripts, arrays = draw(rng)
        ours = [put(device, x) for x in arrays]
        try:
            expected = np.einsum(subscripts, *arrays)
        except ValueError:
            with pytest.raises(ValueError, match=r"einsum|broadcast"):
                vg.einsum(subscripts, *ours, optimize=optimize)
            continue
        result = vg.einsum(subscripts, *ours, optimize=optimize)
        assert result.shape == expected.shape and result.dtype == expected.dtype, subscripts
        assert np.array_equal(result.numpy(), expected), subscripts
        done += 1
    assert done > 2 * ROUNDS


def test_einsum_of_numpy_arrays_and_into_out(device, rng):
    a, b = rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 4, 5))
    assert isinstance(vg.einsum("bij,bjk->bik", a, b, device=device), np.ndarray)
    out = vg.zeros((2, 3, 5), dtype="float64", device=device)
    x, y = put(device, a), put(device, b)
    assert vg.einsum("bij,bjk->bik", x, y, out=out) is out
    assert np.allclose(out.numpy(), a @ b, rtol=1e-14)
    assert np.array_equal(vg.einsum("bij->jib", x).numpy(), np.einsum("bij->jib", a))


@pytest.mark.parametrize(
    "subscripts, shapes, exception",
    [
        ("ij", [(2,)], ValueError),
        ("ij,jk", [(2, 2)], ValueError),
        ("ij->ik", [(2, 2)], ValueError),
        ("ij->ii", [(2, 2)], ValueError),
        ("i1", [(2, 2)], ValueError),
        ("ij,jk", [(2, 3), (2, 3)], ValueError),
        ("ii", [(2, 3)], ValueError),
        ("i", [], TypeError),
        (("i", "j"), [(2,)], TypeError),
    ],
)
def test_refusals(device, subscripts, shapes, exception):
    arrays = [vg.ones(shape, device=device) for shape in shapes]
    with pytest.raises(exception, match="einsum"):
        vg.einsum(subscripts, *arrays)


@pytest.mark.parametrize("name", ["dot", "inner", "outer", "kron"])
def test_products(device, rng, name):
    done = 0
    for _ in range(ROUNDS):
        shapes = [tuple(int(n) for n in rng.integers(1, 4, rng.integers(4))) for _ in range(2)]
        if rng.random() < 0.7 and all(shapes):  # that they fit
            first = list(shapes[1])
            first[-2 if name == "dot" and len(first) > 1 else -1] = shapes[0][-1]
            shapes[1] = tuple(first)
        dtypes = rng.choice(["float32", "int64", "float64", "int16"], 2)
        a, b = (rng.integers(-9, 9, s).astype(t) for s, t in zip(shapes, dtypes, strict=True))
        x, y = put(device, a), put(device, b)
        try:
            expected = getattr(np, name)(a, b)
        except ValueError:
            with pytest.raises(ValueError):
                getattr(vg, name)(x, y)
            continue
        result = getattr(vg, name)(x, y)
        assert result.shape == np.shape(expected) and np.array_equal(result.numpy(), expected)
        done += 1
    assert done > ROUNDS // 2


def test_dot_takes_scalars(device):
    x = put(device, np.arange(3, dtype=np.float32))
    assert np.array_equal(vg.dot(x, 2).numpy(), [0, 2, 4])
    assert np.array_equal(vg.dot(3.0, x).numpy(), [0, 3, 6])


def test_trace(device, rng):
    for _ in range(ROUNDS):
        a = rng.integers(-9, 9, rng.integers(1, 5, rng.integers(2, 5))).astype("int32")
        k = int(rng.integers(-4, 5))
        axes = [int(i) for i in rng.permutation(a.ndim)[:2]]
        result = vg.trace(put(device, a), k, *axes)
        expected = np.trace(a, k, *axes)
        assert result.shape == np.shape(expected) and np.array_equal(result.numpy(), expected)
    assert vg.trace(vg.ones((2, 2), device=device), dtype="int64").dtype == vg.int64
