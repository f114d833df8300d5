/* pyvecgpu: arrays and neural-network operations on NVIDIA GPUs, as a plain C library.
 *
 *     #include "pyvecgpu.h"
 *
 *     int64_t shape[2] = {1000, 1000};
 *     pvg_array *a = pvg_array_empty(0, PVG_FLOAT32, 2, shape);      // memory on device 0
 *     pvg_copy_from_host(a, host_data, NULL);                        // NULL strides: C order
 *     pvg_array *b = pvg_unary(PVG_SIGMOID, a, NULL);                // NULL out: a new array
 *     pvg_copy_to_host(b, host_result, NULL);                        // waits for the result
 *     pvg_array_release(b);
 *     pvg_array_release(a);
 *
 * Conventions, the same everywhere:
 *
 * - Arrays are opaque handles. The library owns their memory; a handle is a view (dtype, shape,
 *   strides, offset) of reference-counted memory. Whoever receives a new handle releases it once,
 *   with pvg_array_release, or with pvg_array_drop, which takes the variable's address and makes it
 *   NULL, so that it may be done twice. Streams, events and graphs have the same two functions.
 * - A function that makes an array returns a new handle, or NULL. With `out` given it writes there
 *   and returns `out` itself, without a new reference. `out` must have the result's shape; its
 *   dtype may differ where NumPy's casting rule "same_kind" allows it; it may overlap the operands
 *   in any way (the result is as if they had been copied first).
 * - Every other function that can fail returns a status: PVG_OK (0) or one of PVG_ERROR_*. After a
 *   NULL or a status other than PVG_OK, pvg_last_status and pvg_last_error tell this thread what
 *   happened, and nothing has changed: operands and `out` are as they were (only a copy to or from
 *   the host that fails half way leaves its destination half written). The library never prints,
 *   exits, aborts or throws, and it reads no environment.
 * - Shapes, strides and sizes are int64_t and count elements; strides of host memory count bytes,
 *   as NumPy's do. Dimensions: 0 to PVG_MAX_NDIM. A size of 0 is allowed everywhere and launches
 *   nothing.
 * - Work runs in order on the calling thread's current stream and returns before it is done;
 *   copying to the host waits. Arrays remember which streams read and wrote them, so work on
 *   several streams never needs events by hand.
 * - Results are the same bits from run to run: no result depends on the load, the stream or which
 *   of the devices of one compute capability computes it.
 * - All functions may be called from several threads. One array may be read by many threads at
 *   once; writing to an array that another thread is using needs the caller's own lock.
 * - Numbers in the enumerations never change their meaning; new ones are appended. */
#ifndef PYVECGPU_H
#define PYVECGPU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PVG_API __attribute__((visibility("default")))
#else
#define PVG_API
#endif

#define PVG_ABI_VERSION 3 /* compare with pvg_abi_version() */
#define PVG_MAX_NDIM 32

typedef struct pvg_array pvg_array;
typedef struct pvg_stream pvg_stream;
typedef struct pvg_event pvg_event;
typedef struct pvg_graph pvg_graph;

/* Called once, from any thread, when memory given to pvg_array_wrap is no longer used. */
typedef void (*pvg_deleter)(void *context);

/* ---- Enumerations ---------------------------------------------------------------------------- */

enum pvg_status {
    PVG_OK = 0,
    PVG_ERROR_VALUE = 1,        /* a shape, size, code or handle that makes no sense */
    PVG_ERROR_TYPE = 2,         /* a dtype that the operation does not take */
    PVG_ERROR_INDEX = 3,        /* an index out of range */
    PVG_ERROR_AXIS = 4,         /* an axis out of range */
    PVG_ERROR_OVERFLOW = 5,     /* a number that its dtype cannot hold */
    PVG_ERROR_MEMORY = 6,       /* device memory is exhausted, or the limit set is reached */
    PVG_ERROR_HOST_MEMORY = 7,  /* host memory is exhausted */
    PVG_ERROR_UNAVAILABLE = 8,  /* no driver, no such device, or a forked child process */
    PVG_ERROR_LAUNCH = 9,       /* a kernel could not be started */
    PVG_ERROR_DEVICE_LOST = 10, /* a kernel failed; this process cannot use the device any more */
    PVG_ERROR_CUDA = 11,        /* any other error of the CUDA runtime */
    PVG_ERROR_LINALG = 12       /* a matrix that is singular, or not positive definite */
};

/* The numbers between, and the next two, are reserved. float16 and bfloat16 are stored in two bytes
 * and computed in float32; a result is rounded once, when it is stored. */
enum pvg_dtype {
    PVG_BOOL = 0, /* one byte, 0 or 1 */
    PVG_INT8 = 1,
    PVG_INT16 = 2,
    PVG_INT32 = 3,
    PVG_INT64 = 4,
    PVG_UINT8 = 5,
    PVG_UINT16 = 6,
    PVG_UINT32 = 7,
    PVG_UINT64 = 8,
    PVG_FLOAT16 = 9,   /* IEEE 754's binary16 */
    PVG_BFLOAT16 = 10, /* the upper half of a float32 */
    PVG_FLOAT32 = 11,
    PVG_FLOAT64 = 12,
    PVG_COMPLEX64 = 13, /* two float32: the real part, the imaginary one */
    PVG_COMPLEX128 = 14 /* two float64 */
};

/* The C type behind the `value` pointer of a scalar. Scalars are weak: an int beside a float32
 * array is a float32. */
enum pvg_scalar_kind {
    PVG_SCALAR_BOOL = 0,   /* uint8_t, 0 or 1 */
    PVG_SCALAR_INT = 1,    /* int64_t */
    PVG_SCALAR_UINT = 2,   /* uint64_t */
    PVG_SCALAR_FLOAT = 3,  /* double */
    PVG_SCALAR_COMPLEX = 4 /* double[2] */
};

/* What an item of a key is: its four numbers. Of a slice's numbers those that are given are added
 * to its kind: PVG_KEY_SLICE | PVG_KEY_STOP is a[:stop]. */
enum pvg_key {
    PVG_KEY_INTEGER = 0, /* index, from the end if negative, and two zeros: the axis goes */
    PVG_KEY_SLICE = 1,   /* start, stop, step */
    PVG_KEY_NEW = 2,     /* zeros: a new axis of length 1 */
    PVG_KEY_REST = 3,    /* zeros: "...", all axes that no other item is for */
    PVG_KEY_START = 4,
    PVG_KEY_STOP = 8,
    PVG_KEY_STEP = 16,
    PVG_KEY_ARRAY = 32 /* of pvg_index_get and pvg_index_set: the address of a pvg_array of integers
                          or of bools, PVG_FROM_START or 0, and 0 */
};

/* Operation codes. "float" functions of bool and integer operands give the default float dtype
 * (pvg_set_option). */
enum pvg_operation {
    PVG_NONE = 0, /* no operation; no activation of a layer */
    /* pvg_unary: out[i] = f(a[i]) */
    PVG_NEGATIVE = 1, /* -a; integers wrap; not for bool */
    PVG_ABS = 2,      /* |a|; integers wrap; of complex numbers a float */
    PVG_EXP = 3,      /* float */
    PVG_LOG = 4,      /* float; natural logarithm */
    PVG_SQRT = 5,     /* float */
    PVG_TANH = 6,     /* float */
    PVG_SIGMOID = 7,  /* float; 1 / (1 + exp(-a)) */
    PVG_RELU = 8,     /* a > 0 ? a : 0, NaN stays NaN; not for bool */
    PVG_GELU = 9,     /* float; a (1 + erf(a / sqrt(2))) / 2, Hendrycks and Gimpel 2016 */
    PVG_SILU = 10,    /* float; a / (1 + exp(-a)) */
    PVG_EXPM1 = 11,   /* float; exp(a) - 1, with all digits near 0 */
    PVG_FLOOR = 12,   /* this and the next seven: integers stay; not for bool */
    PVG_CEIL = 13,
    PVG_TRUNC = 14,
    PVG_ROUND = 15,          /* to the nearest integer, half way to the even one */
    PVG_SIGN = 16,           /* -1, 0 or 1; NaN stays NaN */
    PVG_SQUARE = 17,         /* a * a; integers wrap */
    PVG_POSITIVE = 18,       /* a */
    PVG_RECIPROCAL = 19,     /* float; 1 / a */
    PVG_BITWISE_INVERT = 20, /* of bool: not; not for floats */
    PVG_SIN = 21,            /* this and the next fourteen: float */
    PVG_COS = 22,
    PVG_TAN = 23,
    PVG_ASIN = 24,
    PVG_ACOS = 25,
    PVG_ATAN = 26,
    PVG_SINH = 27,
    PVG_COSH = 28,
    PVG_ASINH = 29,
    PVG_ACOSH = 30,
    PVG_ATANH = 31,
    PVG_EXP2 = 32,     /* 2 to the power a */
    PVG_LOG1P = 33,    /* log(1 + a), with all digits near 0 */
    PVG_LOG2 = 34,     /* to the base 2 */
    PVG_LOG10 = 35,    /* to the base 10 */
    PVG_ISNAN = 40,    /* this and the next three: bool */
    PVG_ISINF = 41,    /* either infinity */
    PVG_ISFINITE = 42, /* neither NaN nor infinite */
    PVG_CONJ = 48,     /* the complex conjugate; not for bool */
    PVG_SIGNBIT = 43,  /* below 0, or -0.0, or a NaN with that sign */
    /* pvg_binary, pvg_binary_scalar: out[i] = f(a[i], b[i]) in the promoted dtype */
    PVG_ADD = 100,         /* bool: or */
    PVG_SUBTRACT = 101,    /* not for two bools */
    PVG_MULTIPLY = 102,    /* bool: and */
    PVG_DIVIDE = 103,      /* float */
    PVG_MAXIMUM = 104,     /* NaN if either is NaN; maximum(-0.0, 0.0) is 0.0 */
    PVG_MINIMUM = 105,     /* NaN if either is NaN; minimum(0.0, -0.0) is -0.0 */
    PVG_BITWISE_AND = 106, /* these three not for floats */
    PVG_BITWISE_OR = 107,
    PVG_BITWISE_XOR = 108,
    PVG_REMAINDER = 109, /* of a / b rounded down: has b's sign; integers by 0: 0; not for bool */
    PVG_FLOOR_DIVIDE = 110, /* a / b rounded down; integers by 0: 0; not for bool */
    PVG_POW = 111, /* a to the power b; integers wrap, negative powers of them are rounded toward
                    * zero; not for bool */
    PVG_BITWISE_LEFT_SHIFT = 112,  /* b negative or not below the width: 0; these two only for */
    PVG_BITWISE_RIGHT_SHIFT = 113, /* integers; the same: 0, or -1 of a negative a */
    PVG_ATAN2 = 114,               /* this and the next two: float; the angle of (b, a) */
    PVG_HYPOT = 115,               /* sqrt(a a + b b) without overflow in between */
    PVG_COPYSIGN = 116,            /* |a| with b's sign */
    PVG_LOGADDEXP = 117,           /* log(exp(a) + exp(b)), without overflow in between */
    PVG_FMAX = 118,                /* the larger one, or the other one if one is NaN */
    PVG_FMIN = 119,                /* the smaller one, or the other one if one is NaN */
    PVG_EQUAL = 120,               /* the comparisons give bool */
    PVG_NOT_EQUAL = 121,
    PVG_LESS = 122,
    PVG_LESS_EQUAL = 123,
    PVG_GREATER = 124,
    PVG_GREATER_EQUAL = 125,
    PVG_HEAVISIDE = 126, /* float; 0 where a is negative, b where it is 0, 1 where it is positive */
    PVG_LOGICAL_AND = 127, /* these three: bool, of numbers that are true unless they are 0 */
    PVG_LOGICAL_OR = 128,
    PVG_LOGICAL_XOR = 129,
    /* pvg_reduce, over some or all axes */
    PVG_SUM = 200,  /* bool and signed: int64; unsigned: uint64; floats as in twice the precision */
    PVG_MEAN = 201, /* float */
    PVG_MAX = 202,  /* NaN if any is NaN */
    PVG_MIN = 203,  /* NaN if any is NaN */
    PVG_ARGMAX = 204, /* int64 index of the first largest or NaN; over all axes (C order) or one */
    PVG_PROD = 205,   /* dtypes as of PVG_SUM; integers wrap, floats are multiplied in float64 */
    PVG_ARGMIN = 206, /* int64 index of the first smallest or NaN; axes as of PVG_ARGMAX */
    PVG_ANY = 207,    /* bool: any is not 0; NaN is true */
    PVG_ALL = 208,    /* bool: none is 0 */
    /* functions of their own, here for pvg_supports */
    PVG_FILL = 300,
    PVG_COPY = 301,
    PVG_CAST = 302,
    PVG_WHERE = 303,
    PVG_MATMUL = 304,
    PVG_DENSE = 305,
    PVG_TRIANGLE = 306,
    PVG_GATHER = 307,
    PVG_SCATTER = 308,
    PVG_SCAN = 309,
    PVG_NONZERO = 310,
    PVG_CHOLESKY = 311, /* this and the next three: of float32 and float64 alone */
    PVG_SOLVE = 312,
    PVG_INVERSE = 313,
    PVG_DETERMINANT = 314,
    PVG_ACCUMULATE = 315,
    PVG_RANDOM = 320,
    PVG_SORT = 330,
    PVG_ARGSORT = 331,
    PVG_SEARCHSORTED = 332,
    PVG_BINCOUNT = 333,
    PVG_POOL = 340, /* this and the next one: of floats alone */
    PVG_CONVOLUTION = 341,
    PVG_CONCAT = 350,
    PVG_SOFTMAX = 351, /* this and the next three: float, of bool and integers the default */
    PVG_LOG_SOFTMAX = 352,
    PVG_LOGSUMEXP = 353,
    PVG_VAR = 354,
    PVG_SEQUENCE = 355,
    PVG_EYE = 356,
    PVG_CLIP = 357,
    PVG_ISCLOSE = 358, /* bool; this and the next one only for floats */
    PVG_NAN_TO_NUM = 359,
    PVG_NORMALIZE = 360, /* this and the next: of float dtypes */
    PVG_CROSS_ENTROPY = 361,
    PVG_WITHIN = 363,
    PVG_ATTENTION = 370, /* this and the next one: float */
    PVG_RECURRENT = 371,
    PVG_OPTIMIZE = 380, /* these six: float dtypes */
    PVG_TOTAL_NORM = 381,
    PVG_CLIP_NORM = 382,
    PVG_DROPOUT = 383,
    PVG_ACTIVATE = 384,
    PVG_PAIR_LOSS = 385
};

/* Activations of pvg_activate, the first three, and pvg_activate_backward. */
enum pvg_curve {
    PVG_CURVE_SOFTPLUS = 0,   /* log(1 + exp(first x)) / first; x where first x > second */
    PVG_CURVE_LEAKY_RELU = 1, /* x, up to 0 first x */
    PVG_CURVE_ELU = 2,        /* x, up to 0 first (exp(x) - 1) */
    PVG_CURVE_RELU = 3,       /* this and the next two: by their result */
    PVG_CURVE_SIGMOID = 4,
    PVG_CURVE_TANH = 5,
    PVG_CURVE_GELU = 6,
    PVG_CURVE_SILU = 7
};

/* Losses of pvg_pair_loss, of the distance d of two numbers. */
enum pvg_loss {
    PVG_LOSS_SQUARE = 0,   /* d^2 */
    PVG_LOSS_ABSOLUTE = 1, /* |d| */
    PVG_LOSS_HUBER = 2,    /* d^2 / 2 where |d| < number, else number (|d| - number / 2) */
    PVG_LOSS_SMOOTH = 3,   /* that divided by number; |d| for 0 */
    PVG_LOSS_LOGITS = 4    /* (1 - t) x + log(1 + exp(-x)) of x and its target t */
};

/* What is made of losses. */
enum pvg_losses { PVG_LOSSES_EACH = 0, PVG_LOSSES_SUM = 1, PVG_LOSSES_MEAN = 2 };

/* What pvg_optimize makes of parameters and gradients. */
enum pvg_algorithm {
    PVG_SGD = 0,    /* states: the momentum's buffer, unless that is 0 */
    PVG_ADAM = 1,   /* the means of gradients and of their squares; with AMSGRAD the largest mean */
    PVG_RMSPROP = 2 /* the mean of squares; if CENTERED that of gradients; unless MOMENTUM is 0 its
                     * buffer */
};

/* Indices into the numbers of pvg_optimize; each is for the algorithms that are named. */
enum pvg_update {
    PVG_UPDATE_RATE = 0,         /* all; the learning rate */
    PVG_UPDATE_WEIGHT_DECAY = 1, /* all */
    PVG_UPDATE_MAXIMIZE = 2,     /* all; this and others without a number: 0, or not 0 */
    PVG_UPDATE_MOMENTUM = 3,     /* SGD, RMSPROP */
    PVG_UPDATE_DAMPENING = 4,    /* SGD */
    PVG_UPDATE_NESTEROV = 5,     /* SGD */
    PVG_UPDATE_FIRST = 6,        /* SGD; the buffer becomes the gradient, whatever it holds */
    PVG_UPDATE_EPSILON = 7,      /* ADAM, RMSPROP */
    PVG_UPDATE_BETA1 = 8,        /* ADAM */
    PVG_UPDATE_BETA2 = 9,        /* ADAM; RMSPROP's alpha */
    PVG_UPDATE_SHARE1 = 10,      /* ADAM; 1 - beta1^step, of steps from 1 on: above 0, at most 1 */
    PVG_UPDATE_SHARE2 = 11,      /* ADAM; 1 - beta2^step */
    PVG_UPDATE_SHRINK = 12,      /* ADAM; weights lose this part first: rate * decay for AdamW's */
    PVG_UPDATE_AMSGRAD = 13,     /* ADAM */
    PVG_UPDATE_CENTERED = 14,    /* RMSPROP */
    PVG_UPDATE_COUNT = 15
};

/* What pvg_random fills an array with. */
enum pvg_distribution {
    PVG_RANDOM_BITS = 0,       /* unsigned dtypes: any number, all alike */
    PVG_RANDOM_UNIFORM = 1,    /* this and the next two: float dtypes; in [0, 1), as many bits as
                                * the significand has: float16 11, bfloat16 8, float32 24,
                                * float64 53 */
    PVG_RANDOM_NORMAL = 2,     /* of mean 0 and variance 1, by Box and Muller's method */
    PVG_RANDOM_EXPONENTIAL = 3 /* of mean 1; never 0 */
};

/* Windows over the last two axes of an array, for pvg_pool and pvg_convolution: an array of numbers
 * that these are the indices of, each of the rows, and one behind it of the columns. Window (p, q)
 * has the elements at rows p * stride - before + i * dilation, i below the kernel's rows, and at
 * such columns; there are as many windows as fit into the array and what is around it, `before` in
 * front and `behind` behind it. */
enum pvg_windows {
    PVG_WINDOWS_KERNEL = 0,
    PVG_WINDOWS_STRIDE = 2,
    PVG_WINDOWS_BEFORE = 4,
    PVG_WINDOWS_BEHIND = 6,
    PVG_WINDOWS_DILATION = 8,
    PVG_WINDOWS_COUNT = 10
};

/* How products of float32 matrices are computed. Every one sums in float32 and is at least as
 * accurate as said here; a device without the units that a precision is about computes IEEE.
 * Operands of other dtypes ignore it: float16 and bfloat16 are multiplied exactly and summed in
 * float32, float64 in float64, integers exactly. */
enum pvg_precision {
    PVG_PRECISION_DEFAULT = 0, /* what PVG_OPTION_MATMUL_PRECISION says */
    PVG_PRECISION_IEEE = 1,    /* one fused multiply-add a term: |error| is at most
                                * (sqrt(k) + 8) 2^-24 (|a| |b|) where rounding errors are
                                * independent, as of random data, and always at most
                                * k 2^-24 (|a| |b|), as of a constant row, if no partial sum
                                * overflows */
    PVG_PRECISION_FLOAT32 = 2, /* as accurate (within 3 times where few terms make up a sum), over
                                * the whole range of exponents, and Inf, NaN and subnormal numbers
                                * as IEEE; on tensor cores where that is faster */
    PVG_PRECISION_FAST32 = 3,  /* operands rounded to 22 bits of a row's or a column's largest */
    PVG_PRECISION_TF32 = 4,    /* operands rounded to 11 bits, exponents as float32 */
    PVG_PRECISION_BF16 = 5,    /* operands rounded to bfloat16 */
    PVG_PRECISION_FP16 = 6     /* operands rounded to float16: larger than 65504 is infinite */
};

/* The kernels of products, for tests: PVG_OPTION_MATMUL_KERNEL forces one. cuda/kernels/matmul says
 * what each does and when it is chosen. */
enum pvg_matmul_kernel {
    PVG_MATMUL_AUTO = 0,
    PVG_MATMUL_TILED = 1, /* any dtype, layout and device */
    PVG_MATMUL_FFMA_128X128 = 2,
    PVG_MATMUL_FFMA_64X128 = 3,
    PVG_MATMUL_FFMA_64X64 = 4,
    PVG_MATMUL_FFMA_64X32 = 5,
    PVG_MATMUL_FFMA_TMA = 6,
    PVG_MATMUL_TENSOR = 7,
    PVG_MATMUL_TENSOR_SM80 = 8,
    PVG_MATMUL_BF16X6 = 9,
    PVG_MATMUL_FP16X3 = 10,
    PVG_MATMUL_DMMA = 11,
    PVG_MATMUL_GEMV = 12,
    PVG_MATMUL_TINY = 13,
    PVG_MATMUL_TENSOR_SMALL = 14,
    PVG_MATMUL_THIN = 15,
    PVG_MATMUL_TENSOR_TF32 = 16,
    PVG_MATMUL_OUTER = 17
};

/* For tests: a card, a product and the plan of how it is computed there, as arrays of numbers that
 * these are the indices of. cuda/kernels/matmul/plan says more about each. */
enum pvg_card {
    PVG_CARD_ARCHITECTURE = 0, /* compute capability times ten that the code for it was built for;
                                * 90: with the instructions of 9.0a, 89: without them */
    PVG_CARD_MULTIPROCESSORS = 1,
    PVG_CARD_SHARED_OF_BLOCK = 2, /* bytes of shared memory that can be asked for */
    PVG_CARD_SHARED_OF_MULTIPROCESSOR = 3,
    PVG_CARD_COUNT = 4
};
/* Strides in elements, of rows as they are stored, and from item to item. */
enum pvg_product {
    PVG_PRODUCT_M = 0,
    PVG_PRODUCT_N = 1,
    PVG_PRODUCT_K = 2,
    PVG_PRODUCT_ITEMS = 3,
    PVG_PRODUCT_DTYPE = 4,
    PVG_PRODUCT_PRECISION = 5,
    PVG_PRODUCT_KERNEL = 6,    /* pvg_matmul_kernel; AUTO: the table chooses */
    PVG_PRODUCT_A_ALONG_K = 7, /* 1: a is stored as (m, k), 0: as (k, m) */
    PVG_PRODUCT_B_ALONG_K = 8, /* 1: b is stored as (n, k), 0: as (k, n) */
    PVG_PRODUCT_A_STRIDE = 9,
    PVG_PRODUCT_B_STRIDE = 10,
    PVG_PRODUCT_C_STRIDE = 11,
    PVG_PRODUCT_A_ITEM = 12, /* 0: all items share it */
    PVG_PRODUCT_B_ITEM = 13,
    PVG_PRODUCT_C_ITEM = 14,
    PVG_PRODUCT_A_ADDRESS = 15, /* nothing is read there */
    PVG_PRODUCT_B_ADDRESS = 16,
    PVG_PRODUCT_C_ADDRESS = 17,
    PVG_PRODUCT_HAS_BIAS = 18,
    PVG_PRODUCT_COUNT = 19
};
enum pvg_plan {
    PVG_PLAN_KERNEL = 0, /* pvg_matmul_kernel */
    PVG_PLAN_ROWS = 1,   /* of a tile of c */
    PVG_PLAN_COLUMNS = 2,
    PVG_PLAN_TILES = 3,  /* of an item, or of its first part */
    PVG_PLAN_SLICES = 4, /* of k, inside of a tile, or of one that is cut */
    PVG_PLAN_SPLITS = 5, /* of k, by blocks that share a tile */
    PVG_PLAN_SPLITS_IN_SEQUENCE = 6,
    PVG_PLAN_DEPTH = 7,    /* of k, what slices and splits are counted in */
    PVG_PLAN_TERMS = 8,    /* of k, in a split of GEMV */
    PVG_PLAN_K_BLOCKS = 9, /* of a schedule, 0 without one: k in blocks of the depth */
    PVG_PLAN_K_STEP = 10,  /* blocks that slices are multiples of */
    PVG_PLAN_WHOLE = 11,   /* tiles, or pairs of them, that are not cut */
    PVG_PLAN_CUT = 12,     /* and that are cut */
    PVG_PLAN_PAIR = 13,    /* 1: two blocks side by side share loads; 2: one below the other */
    PVG_PLAN_CLUSTER = 14,
    PVG_PLAN_PART_ROWS = 15, /* of c, at a time */
    PVG_PLAN_ITEMS = 16,     /* at a time */
    PVG_PLAN_BLOCKS = 17,    /* of the largest launch */
    PVG_PLAN_THREADS = 18,
    PVG_PLAN_SHARED_BYTES = 19,
    PVG_PLAN_WORKSPACE = 20, /* bytes, beside copies */
    PVG_PLAN_A_COPIED = 21,  /* 0: read where it is, 1: by rows, 2: transposed, 3: into pieces */
    PVG_PLAN_B_COPIED = 22,
    PVG_PLAN_A_BYTES = 23, /* of its copies */
    PVG_PLAN_B_BYTES = 24,
    PVG_PLAN_RECKONED = 25, /* time by the kernel's model, in a unit of its own; 0: it has none */
    /* More than 1: k is cut into so many stretches of so many terms each, and one of what is left,
     * whose sums are added up after. All other numbers are then those of one stretch by itself. */
    PVG_PLAN_STRETCHES = 26,
    PVG_PLAN_STRETCH_TERMS = 27,
    /* 1: the product of the transposed matrices is computed, and the numbers are its own. */
    PVG_PLAN_TURNED = 28,
    PVG_PLAN_COUNT = 29
};

enum pvg_option {
    PVG_OPTION_SYNC = 0, /* 1: wait after every operation, so that errors name theirs; default 0 */
    PVG_OPTION_LAUNCH_LOG = 1,    /* 1: keep the names of kernels for pvg_launch_log; default 0 */
    PVG_OPTION_ALLOCATOR = 2,     /* one of pvg_allocator; only while no array is alive */
    PVG_OPTION_DEFAULT_FLOAT = 3, /* PVG_FLOAT32 (default) or PVG_FLOAT64 */
    PVG_OPTION_MATMUL_PRECISION = 4, /* one of pvg_precision; FLOAT32 by default */
    PVG_OPTION_MATMUL_KERNEL = 5     /* one of pvg_matmul_kernel; AUTO by default */
};

enum pvg_allocator {
    PVG_ALLOCATOR_POOL = 0,   /* freed memory is kept and handed out again without a driver call */
    PVG_ALLOCATOR_DIRECT = 1, /* every array is one cudaMalloc: for compute-sanitizer */
    PVG_ALLOCATOR_DEBUG = 2   /* direct, with canaries around each array and 0xFF in fresh memory */
};

/* Indices into the values of pvg_memory_info; bytes unless said otherwise. */
enum pvg_memory {
    PVG_MEMORY_USED = 0,         /* in arrays */
    PVG_MEMORY_RESERVED = 1,     /* taken from the driver: used and cached */
    PVG_MEMORY_PEAK = 2,         /* largest USED so far */
    PVG_MEMORY_LIMIT = 3,        /* set by pvg_set_memory_limit; 0: none */
    PVG_MEMORY_FREE = 4,         /* free on the device, as the driver says */
    PVG_MEMORY_TOTAL = 5,        /* of the device */
    PVG_MEMORY_BLOCKS = 6,       /* live allocations (a count) */
    PVG_MEMORY_ALLOCATIONS = 7,  /* allocations so far (a count) */
    PVG_MEMORY_DRIVER_CALLS = 8, /* cudaMalloc and cudaFree so far (a count) */
    PVG_MEMORY_COUNT = 9
};

/* For pvg_counter: counts since the library was loaded, over all devices and threads. */
enum pvg_counter {
    PVG_COUNT_LAUNCHES = 0,
    PVG_COUNT_COPIES_TO_DEVICE = 1,
    PVG_COUNT_BYTES_TO_DEVICE = 2,
    PVG_COUNT_COPIES_TO_HOST = 3,
    PVG_COUNT_BYTES_TO_HOST = 4,
    PVG_COUNT_WAITS = 5,        /* times the host waited for the device */
    PVG_COUNT_LIVE_ARRAYS = 6,  /* handles not yet released */
    PVG_COUNT_CANARY_ERRORS = 7 /* writes outside an array found by PVG_ALLOCATOR_DEBUG */
};

/* For pvg_last_error_value. */
enum pvg_error_value {
    PVG_ERROR_VALUE_CUDA_CODE = 0, /* the cudaError_t, 0 if none was involved */
    PVG_ERROR_VALUE_REQUESTED = 1, /* PVG_ERROR_MEMORY: bytes asked for, */
    PVG_ERROR_VALUE_FREE = 2,      /*   bytes free on the device, */
    PVG_ERROR_VALUE_RESERVED = 3,  /*   bytes this library holds, */
    PVG_ERROR_VALUE_DEVICE = 4     /*   and on which device */
};

/* For pvg_device_attribute. Bytes, kHz and counts as the CUDA runtime gives them; flags: 0 or 1. */
enum pvg_device_attribute_code {
    PVG_MAX_THREADS_PER_BLOCK = 0,
    PVG_MAX_BLOCK_DIM_X = 1,
    PVG_MAX_BLOCK_DIM_Y = 2,
    PVG_MAX_BLOCK_DIM_Z = 3,
    PVG_MAX_GRID_DIM_X = 4,
    PVG_MAX_GRID_DIM_Y = 5,
    PVG_MAX_GRID_DIM_Z = 6,
    PVG_MAX_SHARED_MEMORY_PER_BLOCK = 7,
    PVG_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 8,
    PVG_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 9,
    PVG_RESERVED_SHARED_MEMORY_PER_BLOCK = 10,
    PVG_TOTAL_CONSTANT_MEMORY = 11,
    PVG_WARP_SIZE = 12,
    PVG_MULTIPROCESSOR_COUNT = 13,
    PVG_MAX_THREADS_PER_MULTIPROCESSOR = 14,
    PVG_MAX_BLOCKS_PER_MULTIPROCESSOR = 15,
    PVG_MAX_REGISTERS_PER_BLOCK = 16,
    PVG_MAX_REGISTERS_PER_MULTIPROCESSOR = 17,
    PVG_CLOCK_RATE = 18,        /* kHz */
    PVG_MEMORY_CLOCK_RATE = 19, /* kHz */
    PVG_MEMORY_BUS_WIDTH = 20,  /* bits */
    PVG_L2_CACHE_SIZE = 21,
    PVG_COMPUTE_CAPABILITY_MAJOR = 22,
    PVG_COMPUTE_CAPABILITY_MINOR = 23,
    PVG_ASYNC_ENGINE_COUNT = 24, /* copy engines */
    PVG_CONCURRENT_KERNELS = 25,
    PVG_ECC_ENABLED = 26,
    PVG_INTEGRATED = 27,
    PVG_CAN_MAP_HOST_MEMORY = 28,
    PVG_UNIFIED_ADDRESSING = 29,
    PVG_MANAGED_MEMORY = 30,
    PVG_COOPERATIVE_LAUNCH = 31,
    PVG_MEMORY_POOLS_SUPPORTED = 32,
    PVG_MAX_PITCH = 33,
    PVG_TEXTURE_ALIGNMENT = 34,
    PVG_PCI_BUS_ID = 35,
    PVG_PCI_DEVICE_ID = 36,
    PVG_PCI_DOMAIN_ID = 37,
    PVG_COMPUTE_MODE = 38, /* 0 default, 2 prohibited, 3 exclusive process */
    PVG_KERNEL_EXEC_TIMEOUT = 39,
    PVG_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO = 40,
    PVG_GLOBAL_L1_CACHE_SUPPORTED = 41,
    PVG_DEVICE_ATTRIBUTE_COUNT = 42
};

/* The kernels of the lessons (cuda/lessons), for pvg_learn: operands and the shape of `out`. */
enum pvg_lesson_kernel {
    PVG_LESSON_VECTOR_ADD = 0,       /* a, b, out of one shape */
    PVG_LESSON_MATRIX_ADD = 1,       /* a, b, out (rows, columns): column from x, row from y */
    PVG_LESSON_MATRIX_ADD_SLOW = 2,  /* the same: row from x, column from y */
    PVG_LESSON_TENSOR_ADD = 3,       /* a, b, out (depth, rows, columns): x, y, z from the last */
    PVG_LESSON_SIGMOID = 4,          /* a, out of one shape */
    PVG_LESSON_MATMUL_NAIVE = 5,     /* a (m, k), b (k, n), out (m, n): row from x, column from y */
    PVG_LESSON_MATMUL_COALESCED = 6, /* the same: column from x, row from y */
    PVG_LESSON_MATMUL_TILED = 7,     /* the same; block (32, 32), a tile of as many elements */
    PVG_LESSON_MATMUL_REGISTERS = 8, /* the same; block (16, 16), a tile of 64 x 64 elements */
    PVG_LESSON_LAYER = 9 /* a = W (outputs, inputs), b = x (batch, inputs), c = bias (outputs,),
                          * out (batch, outputs); block 256, grid (outputs / 8 rounded up, batch) */
};

/* ---- The library ----------------------------------------------------------------------------- */

/* PVG_ABI_VERSION of the library; differs from the header's if they do not belong together. */
PVG_API int pvg_abi_version(void);
/* Lines "key: value": version, toolkit, architectures, compiler, simulator (yes or no). Static. */
PVG_API const char *pvg_build_info(void);
/* Set or read one of pvg_option; both process-wide. Errors: VALUE. */
PVG_API int pvg_set_option(int option, int64_t value);
PVG_API int pvg_get_option(int option, int64_t *value);
/* The number behind one of pvg_counter; -1 for an unknown one. */
PVG_API int64_t pvg_counter(int counter);
/* One line "offset launches expression" per kernel launched while PVG_OPTION_LAUNCH_LOG was 1; the
 * offset is that of the kernel's host symbol in this library, in hexadecimal. The text is this
 * thread's until its next call. */
PVG_API const char *pvg_launch_log(void);
/* One line "code name family domain result identity order" per operation. Family: unary, binary,
 * reduce or other. Domain: what it takes, letters of buifc (bool, unsigned, signed, float,
 * complex). Result: same, float, bool, real, wide (64 bits of integers), index or none. Of a
 * reduction, identity: none, 0 or 1, and order: none, largest or smallest. Static. */
PVG_API const char *pvg_operations(void);
/* 1 if the operation takes operands of this dtype, else 0. */
PVG_API int pvg_supports(int operation, int dtype);
/* The dtype that NumPy's promotion gives for two; -1 for an unknown one. bfloat16 beside bool or an
 * integer is bfloat16, beside float16 it is float32. */
PVG_API int pvg_promote(int dtype_a, int dtype_b);
/* "float32"; the reserved codes have their names already; "?" for an unknown one. Static. */
PVG_API const char *pvg_dtype_name(int dtype);
/* Bytes of one element; 0 for an unknown dtype. */
PVG_API int64_t pvg_dtype_size(int dtype);

/* ---- Errors, one record per thread ----------------------------------------------------------- */

/* The status of this thread's last call that could fail. */
PVG_API int pvg_last_status(void);
/* A sentence: operation, shapes, dtypes, CUDA's error name, failing call, file:line. Until this
 * thread's next call. */
PVG_API const char *pvg_last_error(void);
/* The operation that failed, "" if none; and the name of the cudaError_t, "" if none. */
PVG_API const char *pvg_last_error_operation(void);
PVG_API const char *pvg_last_error_cuda_name(void);
/* A number of the last error, one of pvg_error_value; -1 for an unknown one. */
PVG_API int64_t pvg_last_error_value(int which);

/* ---- Devices --------------------------------------------------------------------------------- */

/* Number of usable devices. Errors: UNAVAILABLE with the reason (no driver, driver too old, no
 * device, forked child). */
PVG_API int pvg_device_count(int *count);
/* Version of the driver (0: none) and of the runtime, 1000 * major + 10 * minor. */
PVG_API int pvg_driver_version(int *version);
PVG_API int pvg_runtime_version(int *version);
/* The device's name; static. NULL on error. */
PVG_API const char *pvg_device_name(int device);
/* One of pvg_device_attribute_code, read once and cached. Errors: UNAVAILABLE, VALUE. */
PVG_API int pvg_device_attribute(int device, int attribute, int64_t *value);
/* Wait for all work of this library on the device. Raises what kernels did wrong: DEVICE_LOST,
 * CUDA. */
PVG_API int pvg_synchronize(int device);
/* 1 until a sticky error was seen on any device of this process, then 0 for good. */
PVG_API int pvg_is_healthy(void);

/* ---- Memory ---------------------------------------------------------------------------------- */

/* values[PVG_MEMORY_COUNT], indexed by pvg_memory. */
PVG_API int pvg_memory_info(int device, int64_t *values);
/* Refuse to hold more than this many bytes on the device; 0: no limit. Errors: VALUE if negative or
 * above the total. */
PVG_API int pvg_set_memory_limit(int device, int64_t bytes);
/* Give cached memory back to the driver, and the host buffers of large copies (waits for the
 * device). */
PVG_API int pvg_empty_cache(int device);

/* ---- Streams and events ---------------------------------------------------------------------- */

/* A new stream on the device; or one made elsewhere (a cudaStream_t), which stays its owner's. NULL
 * on error. */
PVG_API pvg_stream *pvg_stream_create(int device);
PVG_API pvg_stream *pvg_stream_wrap(void *cuda_stream, int device);
/* Waits for the stream's work and forgets it. No other thread may be using it; one whose current
 * stream it is goes back to the default one. */
PVG_API int pvg_stream_release(pvg_stream *stream);
PVG_API int pvg_stream_drop(pvg_stream **stream);
PVG_API int pvg_stream_synchronize(pvg_stream *stream);
/* Make this stream the calling thread's current one on its device; NULL with a device: the device's
 * default stream. */
PVG_API int pvg_stream_set_current(pvg_stream *stream, int device);
/* The calling thread's current stream on the device; not a new reference. NULL on error. */
PVG_API pvg_stream *pvg_stream_current(int device);
/* The cudaStream_t behind a stream; NULL on error. */
PVG_API void *pvg_stream_handle(pvg_stream *stream);
/* Later work on the stream waits for the event. */
PVG_API int pvg_stream_wait_event(pvg_stream *stream, pvg_event *event);
/* An event, recorded on a stream, waited for, asked (*done 0 or 1), and timed against a later one
 * (milliseconds): both of one device, recorded and waited for. Errors: VALUE, CUDA. */
PVG_API pvg_event *pvg_event_create(int device);
PVG_API int pvg_event_release(pvg_event *event);
PVG_API int pvg_event_drop(pvg_event **event);
PVG_API int pvg_event_record(pvg_event *event, pvg_stream *stream);
PVG_API int pvg_event_synchronize(pvg_event *event);
PVG_API int pvg_event_query(pvg_event *event, int *done);
PVG_API int pvg_event_elapsed(pvg_event *start, pvg_event *stop, double *milliseconds);

/* ---- Graphs ---------------------------------------------------------------------------------- */

/* From here until pvg_graph_end, what the calling thread does on the device is recorded instead of
 * run: its current stream is the recording's. Arrays made meanwhile are in the graph's memory and
 * get their contents by its launches, each of which may write to all of it; what the recording only
 * read, its launches read as it is then. Arrays from elsewhere that it uses live at least as long
 * as the graph. What needs a result or another stream cannot be recorded: copies from and to the
 * host, waiting, events, pvg_stream_set_current, pvg_empty_cache, pvg_learn, launching a graph give
 * errors of kind VALUE that begin "recording a graph", and the recording goes on. Errors: VALUE (a
 * recording is going on already), UNAVAILABLE, HOST_MEMORY, CUDA. */
PVG_API int pvg_graph_begin(int device);
/* Ends the recording, also on errors: NULL, and the status of the operation that failed in it for
 * want of memory or in a launch; VALUE if this thread is not recording on the device. */
PVG_API pvg_graph *pvg_graph_end(int device);
/* Does what was recorded, on the calling thread's current stream, after and before other streams'
 * work on the same arrays as if it were called again. (Kernels are counted when they are recorded.)
 * Errors: VALUE, MEMORY, CUDA. */
PVG_API int pvg_graph_launch(pvg_graph *graph);
/* Waits for the graph's launches and forgets it; its memory is free again once the arrays in it are
 * released too. No other thread may be using it. */
PVG_API int pvg_graph_release(pvg_graph *graph);
PVG_API int pvg_graph_drop(pvg_graph **graph);

/* ---- Arrays ---------------------------------------------------------------------------------- */

/* A new array with undefined contents. Errors: UNAVAILABLE, TYPE, VALUE (negative or overflowing
 * shape), MEMORY. */
PVG_API pvg_array *pvg_array_empty(int device, int dtype, int ndim, const int64_t *shape);
/* Device memory that is somebody else's, as an array. strides in elements, NULL: C order. deleter
 * may be NULL. Every element must be aligned to its dtype and lie in memory that the device may use
 * (VALUE where the first one does not; the rest is trusted). On error the deleter is not called. */
PVG_API pvg_array *pvg_array_wrap(void *data, int device, int dtype, int ndim, const int64_t *shape,
                                  const int64_t *strides, pvg_deleter deleter, void *context);
/* Give a handle back. NULL is fine; a handle released before, or none of ours, is an error of kind
 * VALUE. */
PVG_API int pvg_array_release(pvg_array *array);
/* Give back the handle in a variable, unless it is NULL there, and make it NULL first. As a
 * finaliser may do it at any time, a success leaves this thread's last error as it is. */
PVG_API int pvg_array_drop(pvg_array **array);
/* What a handle is. For a bad handle: -1 or NULL, and no error is recorded. shape and strides
 * (elements) have ndim entries and live as long as the handle; data points to the element at index
 * 0, ..., 0. */
PVG_API int pvg_array_device(const pvg_array *array);
PVG_API int pvg_array_dtype(const pvg_array *array);
PVG_API int pvg_array_ndim(const pvg_array *array);
PVG_API int64_t pvg_array_size(const pvg_array *array);
PVG_API const int64_t *pvg_array_shape(const pvg_array *array);
PVG_API const int64_t *pvg_array_strides(const pvg_array *array);
PVG_API void *pvg_array_data(const pvg_array *array);
/* 1 if the elements lie in C order without gaps; 1 if it must not be written (a broadcast view). */
PVG_API int pvg_array_is_contiguous(const pvg_array *array);
PVG_API int pvg_array_is_readonly(const pvg_array *array);
/* Changes whenever the memory behind the handle may have been written. */
PVG_API int64_t pvg_array_version(const pvg_array *array);
/* info[3 + 2 * ndim] = dtype, device, ndim, shape..., strides...; room for 3 + 2 * PVG_MAX_NDIM is
 * always enough. */
PVG_API int pvg_array_describe(const pvg_array *array, int64_t *info);

/* ---- Memory shared with other libraries ------------------------------------------------------ */

/* A tensor of DLPack that shares the array's memory, which lives at least as long: a pointer to a
 * DLManagedTensorVersioned of version 1.1, or, with versioned 0, to a DLManagedTensor. Whoever has
 * it calls its deleter once, in any thread. on_host: 1 says that the memory is the host's, for a
 * device whose memory is. flags: of DLPack, beside "read-only". Orders nothing: see
 * pvg_array_lend. Errors: VALUE (a recording, or read-only without a version), HOST_MEMORY. */
PVG_API void *pvg_dlpack_export(const pvg_array *array, int versioned, int on_host, int64_t flags);
/* Such a tensor of another library as an array, on whose stream its owner has made it ready: the
 * calling thread's current one. The deleter is called when nobody uses the memory any more, and not
 * on an error. Errors: VALUE (another device, memory that cannot be used), TYPE. */
PVG_API pvg_array *pvg_dlpack_import(void *tensor, int versioned, int device);
/* Let a stream of another library (a cudaStream_t; NULL or 1 is CUDA's default stream, 2 the
 * thread's) wait until it may read the array and, unless it is read-only, write to it. CUDA's
 * default stream and those of pvg_stream_wrap count as readers from now on: later writes here, and
 * new arrays in the memory, wait for them. Errors: VALUE, CUDA. */
PVG_API int pvg_array_lend(const pvg_array *array, void *cuda_stream);
/* Let the calling thread's current stream wait for all work issued so far on such a stream. */
PVG_API int pvg_stream_follow(void *cuda_stream, int device);
/* On which device memory is, any library's; -1 if it is not a device's. Errors: UNAVAILABLE. */
PVG_API int pvg_memory_device(const void *data, int *device);
/* Functions of Python's C interface for the next two, which do nothing before: Py_IsInitialized,
 * PyGILState_Ensure, PyGILState_Release, Py_DecRef, PyCapsule_IsValid, PyCapsule_GetPointer. */
PVG_API void pvg_python(void *is_initialized, void *take_lock, void *give_lock, void *release,
                        void *is_capsule, void *content);
/* The destructor of a capsule of Python with a tensor of DLPack: deletes one that nobody took. */
PVG_API void pvg_python_capsule(void *capsule);
/* A pvg_deleter for memory that an object of Python owns: gives a reference to it back. */
PVG_API void pvg_python_release(void *object);

/* ---- Views: new handles on the same memory --------------------------------------------------- */

/* Element (start + i * step) for i < length, along every axis (ndim entries each). Errors: VALUE,
 * INDEX. */
PVG_API pvg_array *pvg_slice(const pvg_array *a, const int64_t *start, const int64_t *step,
                             const int64_t *length);
/* What a key of Python shows, a[key]: of each of its n items four numbers, a pvg_key and what it
 * has. A slice's numbers are brought into range, as Python does. Axes without an item stay whole.
 * Errors: INDEX (an integer out of range, more items than axes, a second PVG_KEY_REST), VALUE
 * (another kind, a step of 0, more than PVG_MAX_NDIM axes). */
PVG_API pvg_array *pvg_index(const pvg_array *a, int n, const int64_t *items);
/* Axis i of the result is axis axes[i] of a; with axes NULL they come in reverse order. Errors:
 * AXIS, VALUE (repeated axis). */
PVG_API pvg_array *pvg_permute(const pvg_array *a, const int *axes);
/* The same elements in C order under another shape, in which one -1 is worked out, or, ndim -1 and
 * shape NULL, without axes of length 1; copies if no view can do it. */
PVG_API pvg_array *pvg_reshape(const pvg_array *a, int ndim, const int64_t *shape);
/* A read-only view repeated along new axes and axes of length 1. Errors: VALUE. */
PVG_API pvg_array *pvg_broadcast_to(const pvg_array *a, int ndim, const int64_t *shape);
/* The array itself (a new handle) if it is contiguous, else a contiguous copy. */
PVG_API pvg_array *pvg_contiguous(const pvg_array *a);
/* The real (0) or imaginary (1) parts of a complex array, which can be written to through the view.
 * Errors: TYPE. */
PVG_API pvg_array *pvg_part(const pvg_array *a, int imaginary);
/* The diagonals of the matrices that two axes span, along a new last axis: where the index along
 * axis2 is that along axis1 plus offset. Errors: VALUE (fewer than two axes; one twice), AXIS. */
PVG_API pvg_array *pvg_diagonal(const pvg_array *a, int64_t offset, int axis1, int axis2);

/* ---- Copies ---------------------------------------------------------------------------------- */

/* Between an array and host memory of the same shape and dtype, any byte strides, any alignment;
 * NULL: C order. The source may be changed as soon as the call returns; the destination is complete
 * when the call returns. Any byte other than 0 becomes true in a bool array. */
PVG_API int pvg_copy_from_host(pvg_array *array, const void *source, const int64_t *byte_strides);
PVG_API int pvg_copy_to_host(const pvg_array *array, void *destination,
                             const int64_t *byte_strides);
/* The one element of an array as a number: numbers[0] is its pvg_scalar_kind, numbers[1] what a
 * bool or an integer is, of uint64 its bits, or the bytes of a float as double; numbers[2] those of
 * the imaginary part. Waits for the device. Errors: VALUE (not exactly one element). */
PVG_API int pvg_item(const pvg_array *a, int64_t *numbers);
/* destination[...] = source, broadcast and cast. Floats outside an integer dtype's range are
 * clamped to it, NaN gives 0; other casts are as in C. Errors: VALUE, UNAVAILABLE, MEMORY. */
PVG_API int pvg_copy(const pvg_array *source, pvg_array *destination);
/* A contiguous copy with another dtype (or the same; -1: its own). */
PVG_API pvg_array *pvg_cast(const pvg_array *a, int dtype, pvg_array *out);
/* A copy with each of n axes repeated counts[i] times, as a whole (whole 1) or element by element
 * (whole 0). Of n beyond the array's axes these are the last. Errors: VALUE (fewer axes, a negative
 * count, a result that is too large). */
PVG_API pvg_array *pvg_repeat(const pvg_array *a, int n, const int64_t *counts, int whole);
/* A copy with so many elements more along each axis, widths[2 i] before and widths[2 i + 1] behind,
 * which are the weak scalar. Errors: VALUE (a negative width), OVERFLOW and TYPE as of pvg_fill. */
PVG_API pvg_array *pvg_pad(const pvg_array *a, int kind, const void *value, const int64_t *widths);
/* A square matrix of zeros that has a 1-D array where column - row is `offset`. Errors: VALUE. */
PVG_API pvg_array *pvg_diag(const pvg_array *a, int64_t offset);
/* A copy with the elements moved by `shift` along an axis, those beyond the end to the beginning;
 * or with flat 1 along all axes as if they were one, in C order. Errors: AXIS, VALUE (flat). */
PVG_API pvg_array *pvg_roll(const pvg_array *a, int axis, int flat, int64_t shift);
/* Every element = the scalar. Errors: OVERFLOW if the dtype cannot hold an integer, TYPE. */
PVG_API int pvg_fill(pvg_array *array, int kind, const void *value);
/* array[...] = random numbers (pvg_distribution): Philox4x32-10 of the key and of blocks of four
 * words, whose numbers of 128 bits have the stream as their upper half. Element i in C order is
 * made of word i % 4 of block counter + i / 4, or, in dtypes of 8 bytes, of words 2 (i % 2) and
 * 2 (i % 2) + 1 of block counter + i / 2, the lower half first; a normal number of the two that its
 * pair takes. The block's number wraps. Errors: VALUE (read-only, unknown distribution), TYPE. */
PVG_API int pvg_random(pvg_array *array, int distribution, uint64_t key, uint64_t stream,
                       uint64_t counter);
/* A new array of an integer dtype: low + (word % count), of words of 32 or 64 bits (word_bits) as
 * pvg_random makes them. One of more than the largest multiple of the count is drawn again: from
 * the same word of the same block of stream + 0x9E3779B97F4A7C15, and so on. count 0: 2^word_bits.
 * Errors: VALUE (word_bits), TYPE. */
PVG_API pvg_array *pvg_random_integers(int device, int dtype, int ndim, const int64_t *shape,
                                       int word_bits, uint64_t count, int64_t low, uint64_t key,
                                       uint64_t stream, uint64_t counter);
/* Fills a 1-D array: a[i] = start + i * step, by kind PVG_SCALAR_INT of integers, which wrap, by
 * PVG_SCALAR_FLOAT of floats, computed in float64 and rounded once. last: what the last element is
 * instead, or NULL. Errors: VALUE (read-only; not 1-D; kind), TYPE (another dtype). */
PVG_API int pvg_sequence(pvg_array *a, int kind, const void *start, const void *step,
                         const void *last);
/* Fills matrices, the last two axes: 1 where column - row is `diagonal`, else 0. Errors: VALUE
 * (read-only; fewer than two axes). */
PVG_API int pvg_eye(pvg_array *a, int64_t diagonal);

/* ---- Operations, with broadcasting and promotion as in NumPy --------------------------------- */

PVG_API pvg_array *pvg_unary(int operation, const pvg_array *a, pvg_array *out);
PVG_API pvg_array *pvg_binary(int operation, const pvg_array *a, const pvg_array *b,
                              pvg_array *out);
/* With a weak scalar as the right operand (side 1) or the left one (side 0). Errors: as pvg_binary,
 * and OVERFLOW if the array's integer dtype cannot hold the scalar. */
PVG_API pvg_array *pvg_binary_scalar(int operation, const pvg_array *a, int kind, const void *value,
                                     int side, pvg_array *out);
/* out[i] = condition[i] ? a[i] : b[i]; condition is bool. */
PVG_API pvg_array *pvg_where(const pvg_array *condition, const pvg_array *a, const pvg_array *b,
                             pvg_array *out);
/* Of each matrix (the last two axes) the elements on one side of a diagonal, zeros on the other:
 * those with column - row >= diagonal (upper 1), or <= diagonal (upper 0). Errors: VALUE (fewer
 * than two axes; upper neither). */
PVG_API pvg_array *pvg_triangle(const pvg_array *a, int upper, int64_t diagonal, pvg_array *out);
/* n arrays one behind the other along an axis, or with stacked 1 side by side along a new one, in
 * `dtype`, or with -1 in what their dtypes are promoted to. Errors: VALUE (none; shapes that differ
 * along another axis; no axis to join along; stacked neither), AXIS, TYPE. */
PVG_API pvg_array *pvg_concat(const pvg_array *const *parts, int n, int axis, int stacked,
                              int dtype);
/* Elements below `low` are replaced by it, and then those above `high` by that; NaN stays NaN. Both
 * are weak scalars of one pvg_scalar_kind, or NULL. Errors: VALUE (NaN to integers), TYPE (bool, a
 * scalar of another kind than the array's), OVERFLOW. */
PVG_API pvg_array *pvg_clip(const pvg_array *a, int kind, const void *low, const void *high,
                            pvg_array *out);
/* The same with arrays as bounds, of a's dtype, all three broadcast: maximum(a, low), and of that
 * minimum(., high). Errors: VALUE, TYPE (bool, several dtypes). */
PVG_API pvg_array *pvg_within(const pvg_array *a, const pvg_array *low, const pvg_array *high,
                              pvg_array *out);
/* Where |a - b| <= atol + rtol |b| or a == b, or with equal_nan 1 both are NaN; broadcast. Halves
 * are compared in float32. Errors: VALUE (equal_nan neither), TYPE (no floats). */
PVG_API pvg_array *pvg_isclose(const pvg_array *a, const pvg_array *b, double rtol, double atol,
                               int equal_nan, pvg_array *out);
/* Elements, but numbers for NaN and for infinity of either sign. Errors: TYPE (no floats). */
PVG_API pvg_array *pvg_nan_to_num(const pvg_array *a, double nan, double positive, double negative,
                                  pvg_array *out);
/* Elements at the places that indices name along `count` axes of `a`, 0 to ndim - 1, each once.
 * `indices` holds integers, negative ones counted from the end, in the shape (count, ...), a plane
 * for each axis; the axes "..." stand in the result before the `place`-th of those axes of `a` that
 * are not indexed. With PVG_ALONG as the place there is one axis, and `indices` has as many
 * dimensions as `a` and the result's shape: that of `a` but for the length of this axis.
 * One out of range is taken for the nearest that is not; and unless `trusted` is 1, which says that
 * the caller has looked, it is reported: the next wait for the device, of whatever kind, ends with
 * INDEX, and names it. Errors: AXIS, VALUE, TYPE; INDEX (any index along an axis of length 0). */
#define PVG_ALONG (-1)
#define PVG_FROM_START 2 /* instead of `trusted`: negative indices are out of range, too */
PVG_API pvg_array *pvg_gather(const pvg_array *a, const pvg_array *indices, int count,
                              const int *axes, int place, int trusted);
/* Writes values, broadcast and cast as by pvg_copy, to the elements that pvg_gather would give. Of
 * several values for one element the last one in C order is what it gets. Nothing is written by an
 * index that is reported. */
PVG_API int pvg_scatter(pvg_array *a, const pvg_array *indices, int count, const int *axes,
                        int place, int trusted, const pvg_array *values);
/* What a key with arrays among its items (pvg_key) names, as a copy: pvg_gather in one call, beside
 * slices and integers. Arrays of integers are broadcast together; an array of bools stands alone,
 * for as many of the first axes as it has, and a call with one waits for the number of its true
 * elements, so that it cannot be recorded. Errors: VALUE for all that is not for this function
 * (0-d arrays, other dtypes and mixtures, what does not fit); else as pvg_gather. */
PVG_API pvg_array *pvg_index_get(const pvg_array *a, int n, const int64_t *items);
/* a[key] = values, or, with values NULL, a weak scalar, as pvg_scatter does it. Bools of the shape
 * of `a` take a scalar only, and wait for nothing. Errors: VALUE as of pvg_index_get; OVERFLOW and
 * TYPE (the scalar); else as pvg_scatter. */
PVG_API int pvg_index_set(pvg_array *a, int n, const int64_t *items, const pvg_array *values,
                          int kind, const void *value);
/* The same with each element combined with all values for it, by PVG_ADD, PVG_SUBTRACT,
 * PVG_MULTIPLY, PVG_MAXIMUM or PVG_MINIMUM: first these with each other (those to subtract are
 * added), in an order that depends on shapes and indices alone, float16 and bfloat16 in float32;
 * then the element with what came out. PVG_SUM: what the array contains counts as zeros, of every
 * element. If a launch fails, some elements have got theirs already.
 * Errors: as pvg_scatter; VALUE (another operation, 2^32 or
 * more indices); TYPE (extremes of complex numbers, differences of bool). */
PVG_API int pvg_accumulate(int operation, pvg_array *a, const pvg_array *indices, int count,
                           const int *axes, int place, int trusted, const pvg_array *values);
/* Over naxes axes (negative ones count from the end), or over all with naxes -1 and axes NULL.
 * keepdims 1 leaves the reduced axes with length 1. Errors: AXIS, VALUE (repeated axis; MAX, MIN,
 * ARGMAX, ARGMIN of nothing; ARGMAX, ARGMIN of several). */
PVG_API pvg_array *pvg_reduce(int operation, const pvg_array *a, int naxes, const int *axes,
                              int keepdims, pvg_array *out);
/* Exponentials over some or all axes, as of pvg_reduce: exp(a) over its sum (operation
 * PVG_SOFTMAX), the logarithm of that (PVG_LOG_SOFTMAX), both in the shape of `a`, or the logarithm
 * of the sum (PVG_LOGSUMEXP); without overflow, and halves in float32. Where an infinity is the
 * largest the first two give NaN, and the third gives it. Errors: AXIS, VALUE (another operation; a
 * repeated axis; of nothing), TYPE (complex numbers). */
PVG_API pvg_array *pvg_softmax(int operation, const pvg_array *a, int naxes, const int *axes,
                               int keepdims, pvg_array *out);
/* The sum of squared distances from the mean over max(count - ddof, 0), or with root 1 the square
 * root of that; axes and keepdims as of pvg_reduce. Halves are computed in float32, bool and
 * integers in float64. Errors: AXIS, VALUE (root neither; a repeated axis), TYPE (complex
 * numbers). */
PVG_API pvg_array *pvg_var(const pvg_array *a, int naxes, const int *axes, double ddof, int root,
                           int keepdims, pvg_array *out);
/* The sum of the elements that are no NaN, or with mean 1 their mean, in which NaN is what there is
 * of none; axes, keepdims and rounding as of pvg_reduce. Errors: AXIS, VALUE (mean neither; a
 * repeated axis), TYPE (no floats). */
PVG_API pvg_array *pvg_nansum(const pvg_array *a, int naxes, const int *axes, int mean,
                              int keepdims);
/* Of each element along an axis and all before it the sum (operation PVG_SUM) or the product
 * (PVG_PROD). Dtypes are theirs; integers wrap; sums of float16 and bfloat16 are made in float32,
 * all others of floats in float64. initial 1: the result is one longer along the axis, and begins
 * with 0 or 1. Errors: AXIS, VALUE (another operation; initial neither). */
PVG_API pvg_array *pvg_scan(int operation, const pvg_array *a, int axis, int initial,
                            pvg_array *out);
/* Where elements are not 0 (NaN is not), in C order: int64 (ndim, count), a row of indices for each
 * axis. Waits for `count`, so that it cannot be recorded. Errors: VALUE (an array without axes). */
PVG_API pvg_array *pvg_nonzero(const pvg_array *a);
/* Of batches (..., n, n) of matrices of up to 64 x 64, float32 or float64; an item of a batch has
 * the bits of that item alone. What a kernel finds out, that a matrix is singular or not positive
 * definite, is the error LINALG of the wait that follows, whichever that is: a copy to the host, or
 * the synchronisation of a device, a stream or an event; the result of that matrix has no meaning.
 * Errors: TYPE, VALUE (not square, larger, kind).
 *
 * Cholesky's lower factor, of the lower half of the matrix, or with upper 1 the upper one. */
PVG_API pvg_array *pvg_cholesky(const pvg_array *a, int upper);
/* x with a @ x == b (..., n, k), batches not broadcast. kind 0: by rows exchanged for the largest
 * pivots; 1 and 2: of a only the lower, or upper, half with the diagonal is there. */
PVG_API pvg_array *pvg_solve(const pvg_array *a, const pvg_array *b, int kind);
PVG_API pvg_array *pvg_inverse(const pvg_array *a);
/* (...,): kind 0 the determinants, 1 their signs, 2 the logarithms of their magnitudes. */
PVG_API pvg_array *pvg_determinant(const pvg_array *a, int kind);
/* The elements in order along an axis, and int64 indices of where they stood; descending 1: in the
 * reverse order. NaN is the largest. Indices of equal elements ascend: all NaN are equal, and 0.0
 * and -0.0, which pvg_sort puts in front of 0.0. Fewer than 2^32 elements along the axis. Errors:
 * AXIS, VALUE (descending neither). */
PVG_API pvg_array *pvg_sort(const pvg_array *a, int axis, int descending, pvg_array *out);
PVG_API pvg_array *pvg_argsort(const pvg_array *a, int axis, int descending);
/* The first k elements along an axis of the order of pvg_argsort, descending or with smallest 1
 * not, and in *indices where they stood; NULL, there too, on an error. k up to 1,024, and not where
 * a sort is the better way. Errors: AXIS, VALUE (smallest neither; k out of range, a better way),
 * TYPE (complex). */
PVG_API pvg_array *pvg_top_k(const pvg_array *a, int64_t k, int axis, int smallest,
                             pvg_array **indices);
/* The elements that differ, 1-D, in the order of pvg_sort; of -0.0 and 0.0 the first, and of NaN
 * with equal_nan 1 one, else all. Waits for their number. Errors: VALUE (equal_nan, a recording,
 * 2^32 elements or more), TYPE (complex). */
PVG_API pvg_array *pvg_unique(const pvg_array *a, int equal_nan);
/* For each value how many elements of a sorted array, 1-D, stand before it: those that are less,
 * and with right 1 those that are equal, too; int64. In the order of pvg_sort, after promotion.
 * Errors: VALUE (not 1-D; right neither). */
PVG_API pvg_array *pvg_searchsorted(const pvg_array *sorted, const pvg_array *values, int right);
/* How often each of the numbers 0 to length - 1 is there, int64; or with weights, an array of the
 * same shape or NULL, the sum of those that stand beside it, float64, added as they stand. Other
 * numbers are not counted. Errors: VALUE (length, shapes), TYPE (numbers that are no integers). */
PVG_API pvg_array *pvg_bincount(const pvg_array *numbers, const pvg_array *weights, int64_t length);
/* Matrix product as numpy.matmul: (..., m, k) @ (..., k, n); 1-D operands are rows and columns;
 * batches broadcast. bool: or of ands; integers wrap. `precision` is one of pvg_precision. The same
 * operands give the same bits, and an item of a batch those of the product of that item alone.
 * Errors: VALUE (shapes, 0-d operands, precision). */
PVG_API pvg_array *pvg_matmul(const pvg_array *a, const pvg_array *b, int precision,
                              pvg_array *out);
/* Sums of products along the last axis, the others broadcast: pvg_matmul of rows and columns; rows
 * of up to 1024 floats are added by a few lanes each, halves in float32. Errors: VALUE (other
 * lengths, 0-d operands, shapes, precision). */
PVG_API pvg_array *pvg_vecdot(const pvg_array *a, const pvg_array *b, int precision);
/* One layer, activation(z) with z = x @ weight.T + bias: x (..., in), weight (out, in), bias (out,)
 * or NULL; float dtypes. `activation` is PVG_NONE, PVG_SIGMOID, PVG_TANH, PVG_RELU, PVG_GELU or
 * PVG_SILU. z, which the backward pass needs, is written to `preactivation` unless that is NULL: a
 * contiguous array of the result's shape and dtype that shares no memory with another one. Errors:
 * VALUE, TYPE. */
PVG_API pvg_array *pvg_dense(const pvg_array *x, const pvg_array *weight, const pvg_array *bias,
                             int activation, int precision, pvg_array *preactivation,
                             pvg_array *out);
/* The backward pass of a layer: with dz = gradient * activation'(preactivation), (..., out),
 * dx = dz @ weight, (..., in); dweight = dz.T @ x, (out, in); dbias = dz summed over its rows,
 * (out,). dz is computed as the activation is, and rounded to the dtype before it is multiplied.
 * Each is a new handle in *dx, *dweight, *dbias; a NULL pointer there: not wanted. preactivation
 * may be NULL where activation is PVG_NONE. On failure nothing is stored. Errors: VALUE, TYPE. */
PVG_API int pvg_dense_backward(const pvg_array *gradient, const pvg_array *x,
                               const pvg_array *weight, const pvg_array *preactivation,
                               int activation, int precision, pvg_array **dx, pvg_array **dweight,
                               pvg_array **dbias);
/* Of each window (pvg_windows) over matrices (..., height, width) the largest element, or the mean:
 * operation PVG_MAX or PVG_MEAN, (..., rows, columns of windows). NaN is the largest; of equal ones
 * the first is taken, and nothing around the matrix, so that a window beside it gives -infinity.
 * Where in the kernel that was, row * columns + column, or -1 for nowhere, is written to `places`
 * unless that is NULL: an int32 array of the result's shape, contiguous. Means count zeros around
 * the matrix if with_padding is 1, else they are of what is in it. Halves are summed in float32.
 * Errors: VALUE (another operation, fewer than two axes, windows that do not fit, places), TYPE. */
PVG_API pvg_array *pvg_pool(int operation, const pvg_array *a, pvg_array *places,
                            const int64_t *windows, int with_padding);
/* The gradient of matrices (..., height, width) from that of what pvg_pool gave of them: each
 * element gathers from the windows that it is in. places, of PVG_MAX: those that were written.
 * Errors: as pvg_pool; VALUE (a gradient of another shape). */
PVG_API pvg_array *pvg_pool_backward(int operation, const pvg_array *gradient,
                                     const pvg_array *places, const int64_t *windows,
                                     int with_padding, int64_t height, int64_t width);
/* The convolution of images x (n, channels, height, width), without turning the kernel round:
 * weight (out, channels / groups, rows, columns), whose last two are those of the windows
 * (pvg_windows); the result is (n, out, rows, columns of windows), with zeros around the images.
 * The sums are products of matrices, of halves in float32, and their precision is what
 * PVG_OPTION_MATMUL_PRECISION says. Errors: VALUE (shapes, groups, windows that do not fit), TYPE
 * (no floats). */
PVG_API pvg_array *pvg_convolution(const pvg_array *x, const pvg_array *weight,
                                   const int64_t *windows, int64_t groups);
/* The gradients of both operands from that of the result: of x, which is (height, width) large, and
 * of the weight. Every sum is made in one order. Errors: as pvg_convolution; VALUE (a gradient of
 * another shape). */
PVG_API pvg_array *pvg_convolution_input(const pvg_array *gradient, const pvg_array *weight,
                                         const int64_t *windows, int64_t groups, int64_t height,
                                         int64_t width);
PVG_API pvg_array *pvg_convolution_weight(const pvg_array *gradient, const pvg_array *x,
                                          const int64_t *windows, int64_t groups);

/* One step of an optimiser (pvg_algorithm) for n parameters of any float dtypes, in one launch for
 * each dtype and some hundred arrays. targets: n parameters, then n arrays of the first state, n of
 * the next; gradients: n. What belongs to a parameter has its shape and dtype. float16 and bfloat16
 * are computed in float32, and rounded when they are stored. numbers[PVG_UPDATE_COUNT], indexed by
 * pvg_update. The formulas are those of torch.optim's pages. All memory is there before the first
 * launch; if a later launch fails, some parameters and their states have been changed already.
 *
 * renewed: NULL, or a contiguous float64 array of PVG_UPDATE_COUNT elements that the kernels read
 * instead of `numbers`, which then only say how many states there are. So a step can be part of a
 * recording, whose numbers are new at each launch; without it ADAM is refused there, and so are
 * FIRST and targets that the recording has made. Errors: VALUE (shapes, read-only targets, an
 * unknown algorithm, shares), TYPE. */
PVG_API int pvg_optimize(int algorithm, pvg_array *const *targets,
                         const pvg_array *const *gradients, int n, const double *numbers,
                         const pvg_array *renewed);
/* The norm of all elements of n arrays of float dtypes, 0-d, in what the dtypes are promoted to: of
 * order 1, 2 or infinity; without overflow in between, summed in float64 in an order that depends
 * on the shapes alone. Two launches, if there are no more than two hundred arrays of one dtype.
 * Errors: VALUE (none; another order), TYPE. */
PVG_API pvg_array *pvg_total_norm(const pvg_array *const *parts, int n, double order);
/* Multiplies n arrays in place by most / (norm + 1e-6), computed in float64, where that is below 1
 * or NaN; by `most` itself if norm is NULL. norm: one element of a float dtype. Errors: VALUE
 * (read-only targets, size), TYPE. */
PVG_API int pvg_clip_norm(pvg_array *const *targets, int n, const pvg_array *norm, double most);

/* out[i] = u[i] < p ? 0 : a[i] / (1 - p), where u are the float32 numbers in [0, 1) that pvg_random
 * makes of the same key, stream and counter, whatever the dtype of a is; halves are computed in
 * float32. With p 1 all are 0. renewed: NULL, or a contiguous uint64 array of three elements that
 * are added to key, stream and counter; in a recording, they can be new at each launch. Errors:
 * VALUE (p is not from 0 to 1), TYPE. */
PVG_API pvg_array *pvg_dropout(const pvg_array *a, double p, uint64_t key, uint64_t stream,
                               uint64_t counter, const pvg_array *renewed);
/* The backward pass of pvg_softmax over the last naxes axes (operation PVG_SOFTMAX or
 * PVG_LOG_SOFTMAX): of the gradient of its result, and the result, the gradient of its operand, in
 * the result's dtype; halves are computed in float32. Errors: AXIS, VALUE (shapes, another
 * operation), TYPE. */
PVG_API pvg_array *pvg_softmax_backward(int operation, const pvg_array *gradient,
                                        const pvg_array *result, int naxes);
/* (x - mean) / sqrt(variance + epsilon) * weight + bias, of float dtypes; halves in float32. x is
 * items (the axes before `axis`), channels (naxes axes from there) and what is left, any of which
 * may be no axis. groups 1 or more: mean and variance are those of as many groups of neighbouring
 * channels of each item, with all that is left; of naxes last axes and 1 group, of each row. groups
 * 0: those of each channel, over all items. groups -1: so many, and they are read from `statistics`
 * instead. centered 0: a mean of 0, so that the variance is the mean of the squares. weight and
 * bias, each may be NULL, have the shape of the channels. The result is new, in the shape and dtype
 * of x.
 *
 * statistics: two arrays in one, all means and all variances (of the count, not one less): float64
 * for float64, else float32; contiguous, with a first axis of 2 and that many elements behind it;
 * written, unless groups is -1; if a launch fails they may have been, too. It may be NULL with
 * groups 1 or more. Errors: AXIS, VALUE (shapes, channels that are not so many groups, memory that
 * is shared), TYPE. */
PVG_API pvg_array *pvg_normalize(const pvg_array *x, const pvg_array *weight, const pvg_array *bias,
                                 int axis, int naxes, int64_t groups, int centered, double epsilon,
                                 pvg_array *statistics);
/* The backward pass: the gradients of x, in its dtype, and of weight and bias, in weight's, or if
 * that is NULL in that of the statistics, and in the shape of the channels. With groups -1 the
 * statistics are constants. Each is a new handle in *dx, *dweight, *dbias; NULL for dweight and
 * dbias both: they are not wanted. On failure nothing is stored. Errors: as above. */
PVG_API int pvg_normalize_backward(const pvg_array *gradient, const pvg_array *x,
                                   const pvg_array *weight, const pvg_array *statistics, int axis,
                                   int naxes, int64_t groups, int centered, double epsilon,
                                   pvg_array **dx, pvg_array **dweight, pvg_array **dbias);
/* Losses -sum over c of t[c] * weight[c] * log(softmax(x))[c] of rows x (..., classes), in float32,
 * of float64 in float64: t is 1 - smoothing at the row's label, plus smoothing / classes for each
 * class. labels: integers (...); rows of the label `ignored` have the loss 0. Any other label that
 * is no class is reported as an index of pvg_gather is, and its row has the loss 0. weight:
 * (classes,) or NULL, for 1. statistics: (3, ...), of the losses' dtype, contiguous, written: the
 * logarithms of the sums of exp(x); the weights of the labels, 0 of rows that do not count; the
 * sums over c of t[c] * weight[c], times what rounding the logarithm took from exp. Or (4, ...):
 * then the result is the mean, the sum of losses over that of the labels' weights, of no axes, and
 * the fourth part begins with the latter sum. The result is new. Errors: VALUE (shapes, no classes,
 * memory that is shared), TYPE. */
PVG_API pvg_array *pvg_cross_entropy(const pvg_array *x, const pvg_array *labels,
                                     const pvg_array *weight, int64_t ignored, double smoothing,
                                     pvg_array *statistics);
/* The backward pass: x's gradient, in its dtype, of that of the losses (...) or of the mean; NULL:
 * of ones. */
PVG_API pvg_array *pvg_cross_entropy_backward(const pvg_array *gradient, const pvg_array *x,
                                              const pvg_array *labels, const pvg_array *weight,
                                              const pvg_array *statistics, int64_t ignored,
                                              double smoothing);
/* An activation with numbers (pvg_curve), of float dtypes, halves computed in float32; numbers that
 * it does not have are not used. The result is new. Errors: VALUE (another activation), TYPE. */
PVG_API pvg_array *pvg_activate(int curve, const pvg_array *x, double first, double second);
/* The backward pass of every activation, in the dtype of x: the operand, but of relu, sigmoid and
 * tanh the result. At 0 relu and leaky_relu have the slope below it. Errors: VALUE, TYPE. */
PVG_API pvg_array *pvg_activate_backward(int curve, const pvg_array *gradient, const pvg_array *x,
                                         double first, double second);
/* Losses (pvg_loss) of x and target, of one shape and one float dtype: each, or their sum or mean
 * (pvg_losses), in float32, of float64 in float64; sums are made in float64, of float64 in twice as
 * many digits. The result is new. Errors: VALUE (shapes, a number below 0), TYPE. */
PVG_API pvg_array *pvg_pair_loss(int loss, const pvg_array *x, const pvg_array *target,
                                 double number, int reduction);
/* The backward pass: x's gradient, or with of_target 1 the target's, in their dtype, of that of the
 * result; NULL: of ones. The absolute value has slope 0 at 0. Errors: as above. */
PVG_API pvg_array *pvg_pair_loss_backward(int loss, const pvg_array *gradient, const pvg_array *x,
                                          const pvg_array *target, double number, int reduction,
                                          int of_target);

/* ---- Sequences ------------------------------------------------------------------------------- */

/* What a recurrent layer does with a step's gates. */
enum pvg_cell {
    PVG_CELL_TANH = 0, /* h = tanh(g) */
    PVG_CELL_RELU = 1, /* h = max(g, 0) */
    PVG_CELL_LSTM = 2, /* four gates: input, forget, cell, output; a state c beside h */
    PVG_CELL_GRU = 3   /* three gates: reset, update, new */
};

/* softmax(query @ keys.T * scale + mask) @ values for query (..., L, E), keys (..., S, E) and
 * values (..., S, V), whose leading dimensions broadcast: (..., L, V). The matrix (L, S) is not in
 * memory. One float dtype; E and V are 1 to 256, S at least 1. mask: NULL, or what broadcasts to
 * (..., L, S), read where it lies: bool, true where a key takes part, or floats, which are added.
 * causal 1: queries take part with keys up to their own number. A query without any key gives NaN.
 * From compute capability 8.0 on E and V of up to 128 are multiplied on tensor cores: float32 in
 * two parts of 11 bits each and three products, which errs as float32 does; rows of infinities, or
 * of numbers from 2^128 - 2^116 on, go on CUDA cores.
 * The logarithms of the sums of exponentials, which the backward pass needs, are written to
 * `logsum` unless that is NULL: (..., L), contiguous, float64 for float64 and float32 for others,
 * sharing no memory with another one. Errors: VALUE, TYPE. */
PVG_API pvg_array *pvg_attention(const pvg_array *query, const pvg_array *keys,
                                 const pvg_array *values, const pvg_array *mask, double scale,
                                 int causal, pvg_array *logsum);
/* Its backward pass: `gradient` is that of `result`, both (..., L, V). New handles with all leading
 * dimensions: *dquery (..., L, E), *dkeys (..., S, E), *dvalues (..., S, V). On failure nothing is
 * stored. Errors: VALUE, TYPE. */
PVG_API int pvg_attention_backward(const pvg_array *gradient, const pvg_array *query,
                                   const pvg_array *keys, const pvg_array *values,
                                   const pvg_array *mask, const pvg_array *result,
                                   const pvg_array *logsum, double scale, int causal,
                                   pvg_array **dquery, pvg_array **dkeys, pvg_array **dvalues);
/* A recurrent layer over all steps (pvg_cell). inputs (steps, N, gates H): each step's part of the
 * gates, to which hidden @ weight.T + bias is added, with weight (gates H, H) and bias (gates H,)
 * or NULL; hidden and, of LSTM alone, state: (N, H), what h and c are before the first step.
 * backwards 1: the last step is the first. One float dtype. New handles: *hiddens (steps + 1, N, H)
 * is h before, between and behind the steps, in the order of the inputs: with `backwards` what was
 * given comes last. *states is the same of c, or NULL but of LSTM; *gates is what the backward pass
 * needs of LSTM and GRU, (steps, N, 4 H), or NULL. Either pointer may be NULL: not wanted, but the
 * states of LSTM. On failure nothing is stored. Errors: VALUE, TYPE. */
PVG_API int pvg_recurrent(int cell, const pvg_array *inputs, const pvg_array *weight,
                          const pvg_array *bias, const pvg_array *hidden, const pvg_array *state,
                          int backwards, pvg_array **hiddens, pvg_array **states,
                          pvg_array **gates);
/* Its backward pass. gradient (steps, N, H): of h behind every step; dlast and, of LSTM, dstate
 * (N, H): beside it of the last ones, or NULL. hiddens, states and gates are what pvg_recurrent
 * gave. New handles: *dinputs (steps, N, gates H); *dproducts the same of hidden @ weight.T + bias,
 * or NULL where it is *dinputs, which it is but of GRU; *dhidden and, of LSTM, *dcell (N, H), of
 * what was before the first step. On failure nothing is stored. Errors: VALUE, TYPE. */
PVG_API int pvg_recurrent_backward(int cell, const pvg_array *gradient, const pvg_array *dlast,
                                   const pvg_array *dstate, const pvg_array *weight,
                                   const pvg_array *hiddens, const pvg_array *states,
                                   const pvg_array *gates, int backwards, pvg_array **dinputs,
                                   pvg_array **dproducts, pvg_array **dhidden, pvg_array **dcell);

/* ---- Learning -------------------------------------------------------------------------------- */

/* Launch a lesson's kernel (pvg_lesson_kernel) `launches` times with exactly this grid and block
 * (x, y, z), and wait. Operands that a kernel does not take are NULL; all arrays are float32 and
 * contiguous, and `out` shares no memory with the others. Elements of `out` that the launch does
 * not reach stay as they are. *milliseconds: the mean time of a launch by the device's clock, all
 * but the first, or the only one; *occupancy: the blocks that a multiprocessor can run at once;
 * both 0 for an empty `out`, where nothing is launched. Errors: VALUE (shapes, or a grid or block
 * that the kernel cannot take), TYPE, LAUNCH (the device's limits), DEVICE_LOST. */
PVG_API int pvg_learn(int kernel, const int64_t *grid, const int64_t *block, const pvg_array *a,
                      const pvg_array *b, const pvg_array *c, pvg_array *out, int64_t launches,
                      double *milliseconds, int64_t *occupancy);

/* ---- For tests ------------------------------------------------------------------------------- */

/* How a product would be computed (pvg_plan) on a card (pvg_card), which need not exist. Errors:
 * VALUE (no such product, or the kernel cannot compute it). */
PVG_API int pvg_plan_product(const int64_t *card, const int64_t *product, int64_t *plan);
/* What plans know of a device: card[PVG_CARD_COUNT]. */
PVG_API int pvg_plan_card(int device, int64_t *card);
/* A row of the table that chooses kernels, "dtype | precision | m, n and k | kernel | code", from 0
 * on, and NULL behind the last one. Valid until the thread's next call. */
PVG_API const char *pvg_plan_rule(int number);

/* ---- Short names ----------------------------------------------------------------------------- */

#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)
static inline pvg_array *pvg_add(const pvg_array *a, const pvg_array *b) {
    return pvg_binary(PVG_ADD, a, b, NULL);
}
static inline pvg_array *pvg_subtract(const pvg_array *a, const pvg_array *b) {
    return pvg_binary(PVG_SUBTRACT, a, b, NULL);
}
static inline pvg_array *pvg_multiply(const pvg_array *a, const pvg_array *b) {
    return pvg_binary(PVG_MULTIPLY, a, b, NULL);
}
static inline pvg_array *pvg_divide(const pvg_array *a, const pvg_array *b) {
    return pvg_binary(PVG_DIVIDE, a, b, NULL);
}
static inline pvg_array *pvg_exp(const pvg_array *a) { return pvg_unary(PVG_EXP, a, NULL); }
static inline pvg_array *pvg_tanh(const pvg_array *a) { return pvg_unary(PVG_TANH, a, NULL); }
static inline pvg_array *pvg_sigmoid(const pvg_array *a) { return pvg_unary(PVG_SIGMOID, a, NULL); }
static inline pvg_array *pvg_relu(const pvg_array *a) { return pvg_unary(PVG_RELU, a, NULL); }
static inline pvg_array *pvg_gelu(const pvg_array *a) { return pvg_unary(PVG_GELU, a, NULL); }
static inline pvg_array *pvg_silu(const pvg_array *a) { return pvg_unary(PVG_SILU, a, NULL); }
static inline pvg_array *pvg_sum(const pvg_array *a) {
    return pvg_reduce(PVG_SUM, a, -1, NULL, 0, NULL);
}
#endif

#ifdef __cplusplus
}
#endif
#endif
