"""Random numbers on the CPU device: what cuda/kernels/random.cu gives, with NumPy.

Bits and uniform numbers are the same bits. Normal and exponential ones are made of the same
uniform numbers; logarithm, sine and cosine are then NumPy's, of float64.
"""

import functools

import numpy as np

from ..dtypes import host_dtype, supported
from ..native.abi import Distribution

# Blocks of four words at a time: the arrays of a round stay in a core's cache.
CHUNK = 1 << 13
# Blocks that are made at once where few are asked for: one takes as long as a hundred.
AT_ONCE = 1 << 8

_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL = 0x9E3779B9, 0xBB67AE85
_MASK = np.uint64(2**32 - 1)
_HALF = np.uint64(32)


def philox(key, stream, counter, blocks):
    """Return the words of Philox4x32-10, uint32 of shape (blocks, 4): those of consecutive blocks.

    key, stream, counter: of 64 bits. The block's number has 128, with the stream as upper half.
    """
    first = np.arange(blocks, dtype=np.uint64)
    first += np.uint64(counter)  # wraps
    c0, c1 = first & _MASK, first >> _HALF
    c2 = np.full(blocks, stream & 0xFFFFFFFF, np.uint64)
    c3 = np.full(blocks, stream >> 32, np.uint64)
    p0, p1 = np.empty_like(c0), np.empty_like(c0)
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        np.multiply(c0, _MULTIPLIERS[0], out=p0)
        np.multiply(c2, _MULTIPLIERS[1], out=p1)
        _mixed(p1, c1, k0, c0)
        _mixed(p0, c3, k1, c2)
        # The lower halves; their upper ones are cleared when they are mixed. The old ones' memory
        # is that of the next products.
        c1, c3, p0, p1 = p1, p0, c1, c3
        k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF
    words = np.empty((blocks, 4), np.uint32)
    for place, word in enumerate((c0, c1, c2, c3)):
        np.copyto(words[:, place], word, casting="unsafe")
    return words


def _mixed(product, other, key, out):
    """out = the product's upper half, xor another lower half, xor the key."""
    np.right_shift(product, _HALF, out=out)
    np.bitwise_xor(out, other, out=out)
    np.bitwise_xor(out, np.uint64(key), out=out)
    np.bitwise_and(out, _MASK, out=out)


def _words(key, stream, counter, blocks):
    """Return philox(...); few words out of many that were made at once, as one more is soon due."""
    place = counter % AT_ONCE
    if place + blocks > AT_ONCE:
        return philox(key, stream, counter, blocks)
    return _many(key, stream, counter - place)[place : place + blocks]


@functools.lru_cache(maxsize=16)
def _many(key, stream, counter):
    words = philox(key, stream, counter, AT_ONCE)
    words.flags.writeable = False  # others get them again
    return words


def fill(array, distribution, key, stream, counter):
    """Fill an ndarray of any layout; backends/__init__.py and pyvecgpu.h say with what.

    TypeError: the distribution has no numbers of this dtype. ValueError: a read-only array.
    """
    dtype = supported(array.dtype)
    kind = "u" if distribution == Distribution.RANDOM_BITS else "f"
    if dtype.kind != kind:
        raise TypeError(f"random does not take {dtype}")
    if not array.flags.writeable:
        raise ValueError(f"the array of shape {array.shape} and dtype {dtype} is read-only")
    whole = array if array.flags.c_contiguous else np.empty(array.shape, array.dtype)
    flat, make = whole.reshape(-1), _MAKERS[distribution]
    of_a_block = 2 if dtype.itemsize == 8 else 4
    for first in range(0, flat.size, CHUNK * of_a_block):
        part = flat[first : first + CHUNK * of_a_block]
        at = (counter + first // of_a_block) % 2**64
        words = _words(key, stream, at, -(-part.size // of_a_block)).reshape(-1)
        bits = words if of_a_block == 4 else words.astype("<u4", copy=False).view("<u8")
        np.copyto(part, make(bits, dtype)[: part.size], casting="unsafe")
    if whole is not array:
        np.copyto(array, whole)


def moved(place, renewed):
    """Return key, stream and counter, with what is added to them if that is given."""
    if renewed is None:
        return place
    if renewed.dtype != np.uint64:
        raise TypeError(f"renewed numbers are uint64, not {renewed.dtype}")
    if renewed.shape != (3,):
        raise ValueError(f"renewed numbers are 3 side by side, got shape {renewed.shape}")
    return [(one + other) % 2**64 for one, other in zip(place, renewed.tolist(), strict=True)]


def dropout(a, p, key, stream, counter):
    """Return 0 where the float32 number in [0, 1) is below p, elsewhere a / (1 - p)."""
    if not 0 <= p <= 1:
        raise ValueError(f"p is from 0 to 1, not {p}")
    numbers = np.empty(a.shape, np.float32)
    fill(numbers, Distribution.RANDOM_UNIFORM, key, stream, counter)
    scale = a.dtype.type(1 / (1 - p) if p < 1 else 0)
    result = np.multiply(a, scale, out=np.empty(a.shape, a.dtype))
    np.copyto(result, 0, where=numbers < np.float32(p))
    return result


# The highest bits that a uniform number has, by the dtype's name.
_DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def _bits(bits, dtype):
    return bits


def _uniform(bits, dtype):
    digits, wide = _DIGITS[dtype.name], bits.dtype.itemsize * 8
    real = np.float64 if wide == 64 else np.float32
    result = (bits >> bits.dtype.type(wide - digits)).astype(real)
    result *= real(2.0**-digits)
    return result.astype(host_dtype(dtype), copy=False)


def _minus_log(bits):
    """Return -log((bits + 1/2) / 2^n) as float64, from the distance to 1 where that is less."""
    wide = bits.dtype.itemsize * 8
    real = np.float64 if wide == 64 else np.float32
    above = bits >= bits.dtype.type(2 ** (wide - 1))
    x = np.where(above, ~bits, bits).astype(real)
    x *= real(2.0**-wide)
    x += real(2.0 ** (-wide - 1))
    x = x.astype(np.float64, copy=False)
    result = np.log(x)
    np.log1p(-x, out=result, where=above)
    return np.negative(result, out=result)


def _exponential(bits, dtype):
    return _rounded(_minus_log(bits), dtype)


def _normal(bits, dtype):
    radius = _minus_log(bits[0::2])
    radius *= 2
    np.sqrt(radius, out=radius)
    kind, wide = bits.dtype.type, bits.dtype.itemsize * 8
    second = bits[1::2]
    quadrant = (second + kind(2 ** (wide - 3))) >> kind(wide - 2)
    rest = (second - (quadrant << kind(wide - 2))).view(f"i{wide // 8}")
    angle = rest.astype(np.float64 if wide == 64 else np.float32).astype(np.float64, copy=False)
    angle *= np.pi * 2.0 ** (1 - wide)
    sine, cosine = np.sin(angle), np.cos(angle)
    odd, back = (quadrant & kind(1)).astype(bool), (quadrant & kind(2)).astype(bool)
    result = np.empty((second.size, 2))
    result[:, 0] = np.where(odd, -sine, cosine)
    result[:, 1] = np.where(odd, cosine, sine)
    np.negative(radius, out=radius, where=back)
    result *= radius[:, None]
    return _rounded(result.reshape(-1), dtype)


def _rounded(result, dtype):
    """Return float64 in the dtype; halves by float32, in which devices compute them."""
    if dtype.itemsize == 2:
        result = result.astype(np.float32)
    return result.astype(host_dtype(dtype), copy=False)


_MAKERS = {
    Distribution.RANDOM_BITS: _bits,
    Distribution.RANDOM_UNIFORM: _uniform,
    Distribution.RANDOM_NORMAL: _normal,
    Distribution.RANDOM_EXPONENTIAL: _exponential,
}
