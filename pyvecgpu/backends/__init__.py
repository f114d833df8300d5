"""What computes: CpuBackend (NumPy) and CudaBackend (the C library), with the same methods.

A backend works on raw data: NumPy arrays for CpuBackend, owners of handles of the C library
(native/owners.py) for CudaBackend. A method that gives an array returns raw data; CudaBackend's,
whose `on_card` is true, return what is false after an error, which `fail()` then raises. With `out`
a method is that of the backend's `into`: it writes there, and what it returns owns nothing. Shapes,
axes and keys were parsed before, once for all backends: shapes are tuples of ints that fit, axes
count from 0.

METHODS lists what computes, copies, makes an array or a view of one. dispatch.py calls these and
nothing else does. Beside them a backend has

    describe(data) -> dtype, shape, strides in elements
    download(data, dtype, shape)           a new ndarray of what is so described; not on the CPU
    number(data)                           the one element; None if it has more; not on the CPU
    version(data)                          a number that every write to its memory changes
    pointer(data)
    plain(data)                            in C order without gaps, and may be written to
    synchronize()                          memory_info()                set_memory_limit(limit)
    empty_cache()                          counter(code)                launch_log()
    own_stream()                           for a thread that has none; not on the CPU
    recording()                            the Recording that this thread makes, or None
    record(work)                           a function that does it again; not on the CPU
    short_of_memory(error)                 what is raised instead of a MemoryError
"""

ARRAY, ARRAYS, HOST, NOTHING = "array", "arrays", "host", "nothing"


def _method(parameters, gives=ARRAY, written="out"):
    """Return (parameters in their order, those that are written to, what the method gives)."""
    names = tuple(parameters.split())
    return names, tuple(name for name in written.split() if name in names), gives


# The parameters that are raw data, or None; those of from_host and its like are of NumPy.
ARRAY_PARAMETERS = (
    *("a", "b", "x", "weight", "bias", "condition", "gradient", "preactivation"),
    *("data", "destination", "indices", "places", "values", "weights", "labels", "statistics"),
    *("out", "norm", "renewed"),
    *("query", "keys", "mask", "logsum", "output", "inputs", "hidden", "state"),
    *("dlast", "dstate", "dloss", "target", "hiddens", "states", "gates"),
)

# Parameters that are lists of raw data: to read, and to write to. Gradients are those of
# dispatch.whole, not of the method.
PARTS, TARGETS = "parts", "targets"
LISTS = (PARTS, TARGETS)

METHODS = {
    # Memory: `into` is an ndarray of the same shape that is filled if it is of use.
    "empty": _method("shape dtype"),
    "from_host": _method("source"),
    "lend": _method("source"),  # from_host for use within a call: uncopied on the CPU
    "copy_from_host": _method("source data", NOTHING, "data"),
    "to_host": _method("data into", HOST, "into"),
    "copy": _method("data destination", NOTHING, "destination"),
    "fill": _method("a value", NOTHING, "a"),
    # distribution: of native/abi.py. key, stream, counter: ints of 64 bits, see pvg_random.
    "random": _method("a distribution key stream counter", NOTHING, "a"),
    # start + i * step: ints, which wrap, or floats, and then what the last one is instead, or None
    "sequence": _method("a start step last", NOTHING, "a"),
    "eye": _method("a diagonal", NOTHING, "a"),
    # Operations. value: of Python, the right operand if side is 1. axes: None for all.
    "cast": _method("a dtype out"),
    "unary": _method("code a out"),
    "binary": _method("code a b out"),
    "scalar": _method("code a value side out"),
    "where": _method("condition a b out"),
    "triangle": _method("a upper diagonal out"),
    "clip": _method("a low high out"),  # both ints or both floats, or None
    "within": _method("x a b out"),  # maximum(x, a), and of it the minimum with b; of one dtype
    "isclose": _method("a b rtol atol equal_nan"),
    "nan_to_num": _method("a nan positive negative out"),  # floats; all of them numbers
    # along an axis, or a new one if stacked; dtype: None for what the parts are promoted to
    "concat": _method("parts axis stacked dtype"),
    # indices: (axes, ...), see pvg_gather; place: where "..." goes, or ALONG.
    "gather": _method("a indices axes place trusted"),
    "scatter": _method("a indices axes place trusted values", NOTHING, "a"),
    "accumulate": _method("code a indices axes place trusted values", NOTHING, "a"),
    "reduce": _method("code a axes keepdims out"),
    # Of softmax, its logarithm and logsumexp, which alone has use for keepdims.
    "softmax": _method("code a axes keepdims out"),
    "var": _method("a axes ddof root keepdims out"),  # root: the standard deviation
    "scan": _method("code a axis initial out"),
    "nonzero": _method("a"),  # int64 (ndim, count)
    # Of (..., n, n); on a card n is 64 at most. kind: see pvg_solve and pvg_determinant.
    "cholesky": _method("a upper"),
    "solve": _method("a b kind"),
    "inverse": _method("a"),
    "determinant": _method("a kind"),
    "sort": _method("a axis descending out"),
    "argsort": _method("a axis descending"),
    # numbers below `length`: how many of each, or the sums of the weights, which may be None
    "bincount": _method("a weights length"),
    "searchsorted": _method("a values right"),  # right: behind elements that are equal
    "matmul": _method("a b precision out"),
    "dense": _method(
        "x weight bias activation precision preactivation out", ARRAY, "preactivation out"
    ),
    # wanted: which of the gradients of x, weight and bias are computed, three bools
    "dense_backward": _method(
        "gradient x weight preactivation activation precision wanted", ARRAYS
    ),
    # One step of an optimiser. algorithm, numbers: of native/abi.py; targets: parameters, then as
    # many of the first state, of the next; parts: the gradients. renewed: None, or what is read
    # instead of numbers, new at each launch of a recording (recording.py).
    "optimize": _method("algorithm targets parts numbers renewed", NOTHING, "targets"),
    "total_norm": _method("parts order"),  # 1.0, 2.0 or inf, of all elements
    # times most / norm, at most 1; times most if the norm is None
    "clip_norm": _method("targets norm most", NOTHING, "targets"),
    # the numbers of `random`, in float32; renewed: None, or what is added to key, stream, counter
    "dropout": _method("a p key stream counter renewed"),
    # Of the last naxes axes; a: the result of softmax or of its logarithm.
    "softmax_backward": _method("code gradient a naxes"),
    # Of items, naxes axes of channels from `axis` on, and the rest: see pvg_normalize.
    "normalize": _method(
        "x weight bias axis naxes groups centered epsilon statistics", ARRAY, "statistics"
    ),
    # wanted: the gradients of weight and bias as well
    "normalize_backward": _method(
        "gradient x weight statistics axis naxes groups centered epsilon wanted", ARRAYS
    ),
    # Of rows along the last axis: the losses of labels, see pvg_cross_entropy.
    "cross_entropy": _method("x labels weights ignored smoothing statistics", ARRAY, "statistics"),
    "cross_entropy_backward": _method("dloss x labels weights statistics ignored smoothing"),
    # curve, loss, reduction: of native/abi.py; x: of relu, sigmoid and tanh the result.
    "activate": _method("curve x first second"),
    "activate_backward": _method("curve gradient x first second"),
    # x and target: of one shape and dtype; of_target: its gradient, else that of x
    "pair_loss": _method("loss x target number reduction"),
    "pair_loss_backward": _method("loss dloss x target number reduction of_target"),
    # windows: the numbers of pvg_windows. code: max or mean; of max places may be written or None.
    "pool": _method("code a places windows with_padding", ARRAY, "places"),
    "pool_backward": _method("code gradient places windows with_padding height width"),
    # Of images (n, channels, height, width); height and width are those of what is returned.
    "convolution": _method("x weight windows groups"),
    "convolution_input": _method("gradient weight windows groups height width"),
    "convolution_weight": _method("gradient x windows groups"),
    # Sequences. mask, logsum, bias and what only some cells have may be None.
    "attention": _method("query keys values mask scale causal logsum", ARRAY, "logsum"),
    "attention_backward": _method(
        "gradient query keys values mask output logsum scale causal", ARRAYS
    ),
    # cell: of native/abi.py. keep: gives what the backward pass needs. Of those it has they give
    # (hiddens, states, gates) and (dinputs, dproducts, dhidden, dcell), see pvg_recurrent.
    "recurrent": _method("cell inputs weight bias hidden state backwards keep", ARRAYS),
    "recurrent_backward": _method(
        "cell gradient dlast dstate weight hiddens states gates backwards", ARRAYS
    ),
    # Views; contiguous and reshape copy where no view will do.
    "slice": _method("a start step length"),
    "permute": _method("a axes"),
    "reshape": _method("a shape"),
    "broadcast_to": _method("a shape"),
    "contiguous": _method("a"),
    "diagonal": _method("a offset axis1 axis2"),  # their diagonals along a new last axis
    "part": _method("a imaginary"),  # the real or the imaginary parts of complex numbers
}
