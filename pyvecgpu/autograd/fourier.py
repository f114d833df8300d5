"""The rule of Fourier transforms, which are linear: each goes back by the transform's adjoint.

That of a sum over exp(-i...) is the sum over exp(+i...) without a factor, or with the same one: the
transform back, with the other norm. Of rfft, which gives half of what mirrors itself, the elements
between the ends come back once and not twice; of irfft, which takes that half, twice. What was cut
off or filled with zeros before is zeros or cut off.
"""

from .. import functions as vg
from ..fft.transforms import transformed
from ..functions.indexing import embedded

_OTHER = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def transformed_back(g, like, name, lengths, axes, norm):
    if name == "hfft":  # irfft of conjugates, and the other norm
        result = transformed_back(g, like, "irfft", lengths, axes, _OTHER[norm])
        return vg.conj(result)
    if name == "ihfft":  # conjugates of rfft, and the other norm
        return transformed_back(vg.conj(g), like, "rfft", lengths, axes, _OTHER[norm])
    other = _OTHER[norm]
    if name.startswith("irfft"):
        result = transformed("rfftn", g, lengths, axes, other)
        result = between_ends(result, lengths[-1], axes[-1], 2.0)
    elif name.startswith("rfft"):
        g = between_ends(g, lengths[-1], axes[-1], 0.5)
        result = transformed("irfftn", g, lengths, axes, other)
    else:
        result = transformed("fftn" if name[0] == "i" else "ifftn", g, lengths, axes, other)
    for axis in axes:
        result = brought_to(result, like.shape[axis], axis)
    return result


def between_ends(x, n, axis, factor):
    """Multiply the elements of half a transform of length n that stand for two."""
    numbers = vg.arange(x.shape[axis], device=x.device)
    inside = (numbers > 0) & (2 * numbers < n)
    inside = vg.reshape(inside, (-1, *[1] * (x.ndim - axis - 1)))
    return vg.where(inside, factor * x, x)


def brought_to(x, n, axis):
    """The first n elements along an axis, or all and zeros."""
    present = x.shape[axis]
    if n < present:
        return vg.copy(x[(*[slice(None)] * axis, slice(0, n))])  # the rest of its memory goes
    if n == present:
        return x
    shape = (*x.shape[:axis], n, *x.shape[axis + 1 :])
    return embedded(x, shape, (0,) * x.ndim, (1,) * x.ndim, x.shape)
