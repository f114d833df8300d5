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
# Blocks that are made at once where few are asked for: one takes as long as a hundred. Each time
# that the same stream goes on there are twice as many, up to a number.
AT_ONCE, MOST_AT_ONCE = 1 << 7, 1 << 12
FEW = 1 << 5  # blocks of which the numbers are kept, too
STREAMS = 16  # whose blocks are kept

_MULTIPLIERS = np.array([[0xD2511F53], [0xCD9E8D57]], np.uint64)
_WEYL = np.array([[0x9E3779B9], [0xBB67AE85]], np.uint64)
_MASK, _HALF = np.uint64(2**32 - 1), np.uint64(32)
_ROUNDS = np.arange(10, dtype=np.uint64).reshape(10, 1, 1)


def philox(key, stream, counter, blocks):
    """Return the words of Philox4x32-10, uint32 of shape (blocks, 4): those of consecutive blocks.

    key, stream, counter: of 64 bits. The block's number has 128, with the stream as upper half.
    """
    first = np.arange(blocks, dtype=np.uint64)
    first += np.uint64(counter)  # wraps
    # Words 0 and 2 of all blocks, and words 1 and 3: a round does the same to both pairs.
    even, odd, product = [np.empty((2, blocks), np.uint64) for _ in range(3)]
    np.bitwise_and(first, _MASK, out=even[0])
    np.right_shift(first, _HALF, out=odd[0])
    even[1], odd[1] = stream & 0xFFFFFFFF, stream >> 32
    keys = np.array([[key & 0xFFFFFFFF], [key >> 32]], np.uint64) + _WEYL * _ROUNDS
    for added in keys & _MASK:
        np.multiply(even, _MULTIPLIERS, out=product[::-1])
        # Even words: the product's upper half, xor the odd ones' lower half, xor the key.
        np.right_shift(product, _HALF, out=even)
        np.bitwise_xor(even, odd, out=even)
        np.bitwise_xor(even, added, out=even)
        np.bitwise_and(even, _MASK, out=even)
        # Odd words are the lower halves; their upper ones are cleared with the even words'. The old
        # ones' memory is that of the next products.
        odd, product = product, odd
    words = np.empty((blocks, 2, 2), np.uint32)
    np.copyto(words[:, :, 0], even.T, casting="unsafe")
    np.copyto(words[:, :, 1], odd.T, casting="unsafe")
    return words.reshape(blocks, 4)


def _words(key, stream, counter, blocks):
    """Return philox(...); few words out of many that were made at once, as more are soon due."""
    if blocks >= MOST_AT_ONCE:
        return philox(key, stream, counter, blocks)
    first, words = _ahead.get((key, stream), (counter, _NO_WORDS))
    begin, count = counter - first, len(words)
    if not 0 <= begin <= count:  # the stream does not go on from there
        begin, count, words = 0, 0, _NO_WORDS
    end = begin + blocks
    if end > count:
        made = max(min(2 * count, MOST_AT_ONCE), AT_ONCE, end - count)
        more = philox(key, stream, (counter - begin + count) % 2**64, made)
        words = np.concatenate((words[begin:], more)) if begin < count else more
        words.flags.writeable = False  # others get them again
        begin, end = 0, blocks
        _ahead.pop((key, stream), None)
        for oldest in list(_ahead)[: 1 - STREAMS]:
            _ahead.pop(oldest, None)
        _ahead[key, stream] = counter, words
    return words[begin:end]


_NO_WORDS = np.empty((0, 4), np.uint32)
# {(key, stream): (number of a block, the words from there on)}; threads only take and put items.
_ahead = {}


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
    blocks, place = -(-flat.size // of_a_block), counter % AT_ONCE
    if blocks <= FEW and place + blocks <= AT_ONCE:
        numbers = _numbers(distribution, dtype, key, stream, counter - place)
        flat[...] = numbers[place * of_a_block : place * of_a_block + flat.size]
        if whole is not array:
            np.copyto(array, whole)
        return
    for first in range(0, flat.size, CHUNK * of_a_block):
        part = flat[first : first + CHUNK * of_a_block]
        at = (counter + first // of_a_block) % 2**64
        words = _words(key, stream, at, -(-part.size // of_a_block))
        np.copyto(part, make(_bits_of(words, dtype), dtype)[: part.size], casting="unsafe")
    if whole is not array:
        np.copyto(array, whole)


def _bits_of(words, dtype):
    """Return words in a row, as numbers of 64 bits for a dtype of as many."""
    words = words.reshape(-1)
    return words.astype("<u4", copy=False).view("<u8") if dtype.itemsize == 8 else words


@functools.lru_cache(maxsize=64)
def _numbers(distribution, dtype, key, stream, counter):
    """Return the numbers of AT_ONCE blocks, of which the next few draws take some each."""
    words = _words(key, stream, counter, AT_ONCE)
    numbers = _MAKERS[distribution](_bits_of(words, dtype), dtype).astype(host_dtype(dtype))
    numbers.flags.writeable = False
    return numbers


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
    result = _signed(bits >> bits.dtype.type(wide - digits)).astype(real)
    result *= real(2.0**-digits)
    return result.astype(host_dtype(dtype), copy=False)


def _signed(bits):
    """Return numbers whose highest bit is 0 as signed ones, which become floats sooner."""
    return bits.view(np.int64 if bits.dtype.itemsize == 8 else np.int32)


def _minus_log(bits):
    """Return -log((bits + 1/2) / 2^n) as float64, from the distance to 1 where that is less."""
    wide = bits.dtype.itemsize * 8
    real = np.float64 if wide == 64 else np.float32
    above = bits >= bits.dtype.type(2 ** (wide - 1))
    x = _signed(np.where(above, ~bits, bits)).astype(real)
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
