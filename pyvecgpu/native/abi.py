"""The C ABI of cuda/pyvecgpu.h as data: enumerations and the table of exported functions.

FUNCTIONS maps each symbol to (restype, argtypes), where a handle is one of the classes array,
stream, event and graph; as a restype it is a new reference. ENUMS maps the C enumerations to
IntEnums whose member names are the header's without "PVG_"; but pvg_operation is Operation of
operations.py, where an operation's code stands in its row. library.py and owners.py bind from them;
nothing here loads anything.
"""

from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_char_p,
    c_double,
    c_int,
    c_int64,
    c_longlong,
    c_uint64,
    c_void_p,
)
from enum import IntEnum

ABI_VERSION = 3
MAX_NDIM = 32
ALONG = -1  # a place of pvg_gather: indices lie along the array
FROM_START = 2  # instead of `trusted`: negative indices are out of range, too


class Status(IntEnum):
    OK = 0
    ERROR_VALUE = 1
    ERROR_TYPE = 2
    ERROR_INDEX = 3
    ERROR_AXIS = 4
    ERROR_OVERFLOW = 5
    ERROR_MEMORY = 6
    ERROR_HOST_MEMORY = 7
    ERROR_UNAVAILABLE = 8
    ERROR_LAUNCH = 9
    ERROR_DEVICE_LOST = 10
    ERROR_CUDA = 11
    ERROR_LINALG = 12


class DType(IntEnum):
    BOOL = 0
    INT8 = 1
    INT16 = 2
    INT32 = 3
    INT64 = 4
    UINT8 = 5
    UINT16 = 6
    UINT32 = 7
    UINT64 = 8
    FLOAT16 = 9
    BFLOAT16 = 10
    FLOAT32 = 11
    FLOAT64 = 12
    COMPLEX64 = 13
    COMPLEX128 = 14


class ScalarKind(IntEnum):
    SCALAR_BOOL = 0
    SCALAR_INT = 1
    SCALAR_UINT = 2
    SCALAR_FLOAT = 3
    SCALAR_COMPLEX = 4


class Key(IntEnum):
    KEY_INTEGER = 0
    KEY_SLICE = 1
    KEY_NEW = 2
    KEY_REST = 3
    KEY_START = 4
    KEY_STOP = 8
    KEY_STEP = 16
    KEY_ARRAY = 32


class Distribution(IntEnum):
    RANDOM_BITS = 0
    RANDOM_UNIFORM = 1
    RANDOM_NORMAL = 2
    RANDOM_EXPONENTIAL = 3


class Algorithm(IntEnum):
    SGD = 0
    ADAM = 1
    RMSPROP = 2


class Update(IntEnum):
    UPDATE_RATE = 0
    UPDATE_WEIGHT_DECAY = 1
    UPDATE_MAXIMIZE = 2
    UPDATE_MOMENTUM = 3
    UPDATE_DAMPENING = 4
    UPDATE_NESTEROV = 5
    UPDATE_FIRST = 6
    UPDATE_EPSILON = 7
    UPDATE_BETA1 = 8
    UPDATE_BETA2 = 9
    UPDATE_SHARE1 = 10
    UPDATE_SHARE2 = 11
    UPDATE_SHRINK = 12
    UPDATE_AMSGRAD = 13
    UPDATE_CENTERED = 14
    UPDATE_COUNT = 15


class Windows(IntEnum):
    WINDOWS_KERNEL = 0
    WINDOWS_STRIDE = 2
    WINDOWS_BEFORE = 4
    WINDOWS_BEHIND = 6
    WINDOWS_DILATION = 8
    WINDOWS_COUNT = 10


class Precision(IntEnum):
    PRECISION_DEFAULT = 0
    PRECISION_IEEE = 1
    PRECISION_FLOAT32 = 2
    PRECISION_FAST32 = 3
    PRECISION_TF32 = 4
    PRECISION_BF16 = 5
    PRECISION_FP16 = 6


class MatmulKernel(IntEnum):
    MATMUL_AUTO = 0
    MATMUL_TILED = 1
    MATMUL_FFMA_128X128 = 2
    MATMUL_FFMA_64X128 = 3
    MATMUL_FFMA_64X64 = 4
    MATMUL_FFMA_64X32 = 5
    MATMUL_FFMA_TMA = 6
    MATMUL_TENSOR = 7
    MATMUL_TENSOR_SM80 = 8
    MATMUL_BF16X6 = 9
    MATMUL_FP16X3 = 10
    MATMUL_DMMA = 11
    MATMUL_GEMV = 12
    MATMUL_TINY = 13
    MATMUL_TENSOR_SMALL = 14
    MATMUL_THIN = 15
    MATMUL_TENSOR_TF32 = 16
    MATMUL_OUTER = 17


class Card(IntEnum):
    CARD_ARCHITECTURE = 0
    CARD_MULTIPROCESSORS = 1
    CARD_SHARED_OF_BLOCK = 2
    CARD_SHARED_OF_MULTIPROCESSOR = 3
    CARD_COUNT = 4


class Product(IntEnum):
    PRODUCT_M = 0
    PRODUCT_N = 1
    PRODUCT_K = 2
    PRODUCT_ITEMS = 3
    PRODUCT_DTYPE = 4
    PRODUCT_PRECISION = 5
    PRODUCT_KERNEL = 6
    PRODUCT_A_ALONG_K = 7
    PRODUCT_B_ALONG_K = 8
    PRODUCT_A_STRIDE = 9
    PRODUCT_B_STRIDE = 10
    PRODUCT_C_STRIDE = 11
    PRODUCT_A_ITEM = 12
    PRODUCT_B_ITEM = 13
    PRODUCT_C_ITEM = 14
    PRODUCT_A_ADDRESS = 15
    PRODUCT_B_ADDRESS = 16
    PRODUCT_C_ADDRESS = 17
    PRODUCT_HAS_BIAS = 18
    PRODUCT_COUNT = 19


class Plan(IntEnum):
    PLAN_KERNEL = 0
    PLAN_ROWS = 1
    PLAN_COLUMNS = 2
    PLAN_TILES = 3
    PLAN_SLICES = 4
    PLAN_SPLITS = 5
    PLAN_SPLITS_IN_SEQUENCE = 6
    PLAN_DEPTH = 7
    PLAN_TERMS = 8
    PLAN_K_BLOCKS = 9
    PLAN_K_STEP = 10
    PLAN_WHOLE = 11
    PLAN_CUT = 12
    PLAN_PAIR = 13
    PLAN_CLUSTER = 14
    PLAN_PART_ROWS = 15
    PLAN_ITEMS = 16
    PLAN_BLOCKS = 17
    PLAN_THREADS = 18
    PLAN_SHARED_BYTES = 19
    PLAN_WORKSPACE = 20
    PLAN_A_COPIED = 21
    PLAN_B_COPIED = 22
    PLAN_A_BYTES = 23
    PLAN_B_BYTES = 24
    PLAN_RECKONED = 25
    PLAN_STRETCHES = 26
    PLAN_STRETCH_TERMS = 27
    PLAN_TURNED = 28
    PLAN_COUNT = 29


class Curve(IntEnum):
    CURVE_SOFTPLUS = 0
    CURVE_LEAKY_RELU = 1
    CURVE_ELU = 2
    CURVE_RELU = 3
    CURVE_SIGMOID = 4
    CURVE_TANH = 5
    CURVE_GELU = 6
    CURVE_SILU = 7


class Loss(IntEnum):
    LOSS_SQUARE = 0
    LOSS_ABSOLUTE = 1
    LOSS_HUBER = 2
    LOSS_SMOOTH = 3
    LOSS_LOGITS = 4


class Losses(IntEnum):
    LOSSES_EACH = 0
    LOSSES_SUM = 1
    LOSSES_MEAN = 2


class Cell(IntEnum):
    CELL_TANH = 0
    CELL_RELU = 1
    CELL_LSTM = 2
    CELL_GRU = 3


class Option(IntEnum):
    OPTION_SYNC = 0
    OPTION_LAUNCH_LOG = 1
    OPTION_ALLOCATOR = 2
    OPTION_DEFAULT_FLOAT = 3
    OPTION_MATMUL_PRECISION = 4
    OPTION_MATMUL_KERNEL = 5


class Allocator(IntEnum):
    ALLOCATOR_POOL = 0
    ALLOCATOR_DIRECT = 1
    ALLOCATOR_DEBUG = 2


class Memory(IntEnum):
    MEMORY_USED = 0
    MEMORY_RESERVED = 1
    MEMORY_PEAK = 2
    MEMORY_LIMIT = 3
    MEMORY_FREE = 4
    MEMORY_TOTAL = 5
    MEMORY_BLOCKS = 6
    MEMORY_ALLOCATIONS = 7
    MEMORY_DRIVER_CALLS = 8
    MEMORY_COUNT = 9


class Counter(IntEnum):
    COUNT_LAUNCHES = 0
    COUNT_COPIES_TO_DEVICE = 1
    COUNT_BYTES_TO_DEVICE = 2
    COUNT_COPIES_TO_HOST = 3
    COUNT_BYTES_TO_HOST = 4
    COUNT_WAITS = 5
    COUNT_LIVE_ARRAYS = 6
    COUNT_CANARY_ERRORS = 7


class ErrorValue(IntEnum):
    ERROR_VALUE_CUDA_CODE = 0
    ERROR_VALUE_REQUESTED = 1
    ERROR_VALUE_FREE = 2
    ERROR_VALUE_RESERVED = 3
    ERROR_VALUE_DEVICE = 4


class DeviceAttribute(IntEnum):
    MAX_THREADS_PER_BLOCK = 0
    MAX_BLOCK_DIM_X = 1
    MAX_BLOCK_DIM_Y = 2
    MAX_BLOCK_DIM_Z = 3
    MAX_GRID_DIM_X = 4
    MAX_GRID_DIM_Y = 5
    MAX_GRID_DIM_Z = 6
    MAX_SHARED_MEMORY_PER_BLOCK = 7
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 8
    MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 9
    RESERVED_SHARED_MEMORY_PER_BLOCK = 10
    TOTAL_CONSTANT_MEMORY = 11
    WARP_SIZE = 12
    MULTIPROCESSOR_COUNT = 13
    MAX_THREADS_PER_MULTIPROCESSOR = 14
    MAX_BLOCKS_PER_MULTIPROCESSOR = 15
    MAX_REGISTERS_PER_BLOCK = 16
    MAX_REGISTERS_PER_MULTIPROCESSOR = 17
    CLOCK_RATE = 18
    MEMORY_CLOCK_RATE = 19
    MEMORY_BUS_WIDTH = 20
    L2_CACHE_SIZE = 21
    COMPUTE_CAPABILITY_MAJOR = 22
    COMPUTE_CAPABILITY_MINOR = 23
    ASYNC_ENGINE_COUNT = 24
    CONCURRENT_KERNELS = 25
    ECC_ENABLED = 26
    INTEGRATED = 27
    CAN_MAP_HOST_MEMORY = 28
    UNIFIED_ADDRESSING = 29
    MANAGED_MEMORY = 30
    COOPERATIVE_LAUNCH = 31
    MEMORY_POOLS_SUPPORTED = 32
    MAX_PITCH = 33
    TEXTURE_ALIGNMENT = 34
    PCI_BUS_ID = 35
    PCI_DEVICE_ID = 36
    PCI_DOMAIN_ID = 37
    COMPUTE_MODE = 38
    KERNEL_EXEC_TIMEOUT = 39
    SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO = 40
    GLOBAL_L1_CACHE_SUPPORTED = 41
    DEVICE_ATTRIBUTE_COUNT = 42


class LessonKernel(IntEnum):
    LESSON_VECTOR_ADD = 0
    LESSON_MATRIX_ADD = 1
    LESSON_MATRIX_ADD_SLOW = 2
    LESSON_TENSOR_ADD = 3
    LESSON_SIGMOID = 4
    LESSON_MATMUL_NAIVE = 5
    LESSON_MATMUL_COALESCED = 6
    LESSON_MATMUL_TILED = 7
    LESSON_MATMUL_REGISTERS = 8
    LESSON_LAYER = 9


ENUMS = {
    "pvg_status": Status,
    "pvg_dtype": DType,
    "pvg_scalar_kind": ScalarKind,
    "pvg_distribution": Distribution,
    "pvg_key": Key,
    "pvg_algorithm": Algorithm,
    "pvg_update": Update,
    "pvg_windows": Windows,
    "pvg_precision": Precision,
    "pvg_matmul_kernel": MatmulKernel,
    "pvg_card": Card,
    "pvg_product": Product,
    "pvg_plan": Plan,
    "pvg_cell": Cell,
    "pvg_curve": Curve,
    "pvg_loss": Loss,
    "pvg_losses": Losses,
    "pvg_option": Option,
    "pvg_allocator": Allocator,
    "pvg_memory": Memory,
    "pvg_counter": Counter,
    "pvg_error_value": ErrorValue,
    "pvg_device_attribute_code": DeviceAttribute,
    "pvg_lesson_kernel": LessonKernel,
}


class Handle(c_void_p):
    """A pvg_array *, pvg_stream * ..., see owners.py for who releases what it points to."""

    __slots__ = ()


class array(Handle):  # noqa: N801  as C spells them
    __slots__ = ()


class out(array):  # noqa: N801
    """An array to write to, which is returned then and is no new reference; NULL for a new one."""

    __slots__ = ()


class stream(Handle):  # noqa: N801
    __slots__ = ()


class event(Handle):  # noqa: N801
    __slots__ = ()


class graph(Handle):  # noqa: N801
    __slots__ = ()


class value(c_void_p):  # noqa: N801
    """Where the value of a scalar is."""

    __slots__ = ()


class arrays(c_void_p):  # noqa: N801
    """Where handles of arrays are, one behind the other."""

    __slots__ = ()


pointer = c_void_p  # to anything else, and what is returned without a reference
int64s = POINTER(c_int64)
ints = POINTER(c_int)
doubles = POINTER(c_double)
deleter = CFUNCTYPE(None, c_void_p)

FUNCTIONS = {
    # The library
    "pvg_abi_version": (c_int, []),
    "pvg_build_info": (c_char_p, []),
    "pvg_set_option": (c_int, [c_int, c_int64]),
    "pvg_get_option": (c_int, [c_int, int64s]),
    "pvg_counter": (c_int64, [c_int]),
    "pvg_launch_log": (c_char_p, []),
    "pvg_operations": (c_char_p, []),
    "pvg_supports": (c_int, [c_int, c_int]),
    "pvg_promote": (c_int, [c_int, c_int]),
    "pvg_dtype_name": (c_char_p, [c_int]),
    "pvg_dtype_size": (c_int64, [c_int]),
    # Errors
    "pvg_last_status": (c_int, []),
    "pvg_last_error": (c_char_p, []),
    "pvg_last_error_operation": (c_char_p, []),
    "pvg_last_error_cuda_name": (c_char_p, []),
    "pvg_last_error_value": (c_int64, [c_int]),
    # Devices
    "pvg_device_count": (c_int, [ints]),
    "pvg_driver_version": (c_int, [ints]),
    "pvg_runtime_version": (c_int, [ints]),
    "pvg_device_name": (c_char_p, [c_int]),
    "pvg_device_attribute": (c_int, [c_int, c_int, int64s]),
    "pvg_synchronize": (c_int, [c_int]),
    "pvg_is_healthy": (c_int, []),
    # Memory
    "pvg_memory_info": (c_int, [c_int, int64s]),
    "pvg_set_memory_limit": (c_int, [c_int, c_int64]),
    "pvg_empty_cache": (c_int, [c_int]),
    # Streams and events
    "pvg_stream_create": (stream, [c_int]),
    "pvg_stream_wrap": (stream, [pointer, c_int]),
    "pvg_stream_release": (c_int, [stream]),
    "pvg_stream_drop": (c_int, [POINTER(stream)]),
    "pvg_stream_synchronize": (c_int, [stream]),
    "pvg_stream_set_current": (c_int, [stream, c_int]),
    "pvg_stream_current": (pointer, [c_int]),
    "pvg_stream_handle": (pointer, [stream]),
    "pvg_stream_wait_event": (c_int, [stream, event]),
    "pvg_event_create": (event, [c_int]),
    "pvg_event_release": (c_int, [event]),
    "pvg_event_drop": (c_int, [POINTER(event)]),
    "pvg_event_record": (c_int, [event, stream]),
    "pvg_event_synchronize": (c_int, [event]),
    "pvg_event_query": (c_int, [event, ints]),
    "pvg_event_elapsed": (c_int, [event, event, doubles]),
    # Graphs
    "pvg_graph_begin": (c_int, [c_int]),
    "pvg_graph_end": (graph, [c_int]),
    "pvg_graph_launch": (c_int, [graph]),
    "pvg_graph_release": (c_int, [graph]),
    "pvg_graph_drop": (c_int, [POINTER(graph)]),
    # Arrays
    "pvg_array_empty": (array, [c_int, c_int, c_int, int64s]),
    "pvg_array_wrap": (array, [pointer, c_int, c_int, c_int, int64s, int64s, deleter, pointer]),
    "pvg_array_release": (c_int, [array]),
    "pvg_array_drop": (c_int, [POINTER(array)]),
    "pvg_array_device": (c_int, [array]),
    "pvg_array_dtype": (c_int, [array]),
    "pvg_array_ndim": (c_int, [array]),
    "pvg_array_size": (c_int64, [array]),
    "pvg_array_shape": (int64s, [array]),
    "pvg_array_strides": (int64s, [array]),
    "pvg_array_data": (pointer, [array]),
    "pvg_array_is_contiguous": (c_int, [array]),
    "pvg_array_is_readonly": (c_int, [array]),
    "pvg_array_version": (c_int64, [array]),
    "pvg_array_describe": (c_int, [array, int64s]),
    # Memory shared with other libraries
    "pvg_dlpack_export": (pointer, [array, c_int, c_int, c_int64]),
    "pvg_dlpack_import": (array, [pointer, c_int, c_int]),
    "pvg_array_lend": (c_int, [array, pointer]),
    "pvg_stream_follow": (c_int, [pointer, c_int]),
    "pvg_memory_device": (c_int, [pointer, ints]),
    "pvg_python": (None, [pointer] * 6),
    "pvg_python_capsule": (None, [pointer]),
    "pvg_python_release": (None, [pointer]),
    # Views
    "pvg_slice": (array, [array, int64s, int64s, int64s]),
    "pvg_index": (array, [array, c_int, int64s]),
    "pvg_permute": (array, [array, ints]),
    "pvg_reshape": (array, [array, c_int, int64s]),
    "pvg_broadcast_to": (array, [array, c_int, int64s]),
    "pvg_contiguous": (array, [array]),
    "pvg_part": (array, [array, c_int]),
    "pvg_diagonal": (array, [array, c_int64, c_int, c_int]),
    # Copies
    "pvg_copy_from_host": (c_int, [array, pointer, int64s]),
    "pvg_copy_to_host": (c_int, [array, pointer, int64s]),
    "pvg_item": (c_int, [array, int64s]),
    "pvg_copy": (c_int, [array, array]),
    "pvg_cast": (array, [array, c_int, out]),
    "pvg_repeat": (array, [array, c_int, int64s, c_int]),
    "pvg_pad": (array, [array, c_int, value, int64s]),
    "pvg_diag": (array, [array, c_int64]),
    "pvg_roll": (array, [array, c_int, c_int, c_int64]),
    "pvg_fill": (c_int, [array, c_int, value]),
    "pvg_random": (c_int, [array, c_int, c_uint64, c_uint64, c_uint64]),
    "pvg_random_integers": (
        array,
        [c_int, c_int, c_int, int64s, c_int, c_uint64, c_int64, *[c_uint64] * 3],
    ),
    "pvg_sequence": (c_int, [array, c_int, value, value, value]),
    "pvg_eye": (c_int, [array, c_int64]),
    # Operations
    "pvg_unary": (array, [c_int, array, out]),
    "pvg_binary": (array, [c_int, array, array, out]),
    "pvg_binary_scalar": (array, [c_int, array, c_int, value, c_int, out]),
    "pvg_where": (array, [array, array, array, out]),
    "pvg_triangle": (array, [array, c_int, c_int64, out]),
    "pvg_clip": (array, [array, c_int, value, value, out]),
    "pvg_within": (array, [array, array, array, out]),
    "pvg_isclose": (array, [array, array, c_double, c_double, c_int, out]),
    "pvg_nan_to_num": (array, [array, c_double, c_double, c_double, out]),
    "pvg_concat": (array, [arrays, c_int, c_int, c_int, c_int]),
    "pvg_gather": (array, [array, array, c_int, ints, c_int, c_int]),
    "pvg_scatter": (c_int, [array, array, c_int, ints, c_int, c_int, array]),
    "pvg_index_get": (array, [array, c_int, int64s]),
    "pvg_index_set": (c_int, [array, c_int, int64s, out, c_int, value]),
    "pvg_accumulate": (c_int, [c_int, array, array, c_int, ints, c_int, c_int, array]),
    "pvg_reduce": (array, [c_int, array, c_int, ints, c_int, out]),
    "pvg_softmax": (array, [c_int, array, c_int, ints, c_int, out]),
    "pvg_var": (array, [array, c_int, ints, c_double, c_int, c_int, out]),
    "pvg_nansum": (array, [array, c_int, ints, c_int, c_int]),
    "pvg_scan": (array, [c_int, array, c_int, c_int, out]),
    "pvg_nonzero": (array, [array]),
    "pvg_cholesky": (array, [array, c_int]),
    "pvg_solve": (array, [array, array, c_int]),
    "pvg_inverse": (array, [array]),
    "pvg_determinant": (array, [array, c_int]),
    "pvg_sort": (array, [array, c_int, c_int, out]),
    "pvg_argsort": (array, [array, c_int, c_int]),
    "pvg_top_k": (array, [array, c_int64, c_int, c_int, POINTER(array)]),
    "pvg_unique": (array, [array, c_int]),
    "pvg_searchsorted": (array, [array, array, c_int]),
    "pvg_bincount": (array, [array, array, c_int64]),
    "pvg_matmul": (array, [array, array, c_int, out]),
    "pvg_vecdot": (array, [array, array, c_int]),
    "pvg_dense": (array, [array, array, array, c_int, c_int, array, out]),
    "pvg_dense_backward": (
        c_int,
        [array, array, array, array, c_int, c_int, *[POINTER(array)] * 3],
    ),
    "pvg_optimize": (c_int, [c_int, arrays, arrays, c_int, doubles, array]),
    "pvg_total_norm": (array, [arrays, c_int, c_double]),
    "pvg_clip_norm": (c_int, [arrays, c_int, array, c_double]),
    "pvg_dropout": (array, [array, c_double, c_uint64, c_uint64, c_uint64, array]),
    "pvg_softmax_backward": (array, [c_int, array, array, c_int]),
    "pvg_normalize": (array, [array, array, array, c_int, c_int, c_int64, c_int, c_double, array]),
    "pvg_normalize_backward": (
        c_int,
        [*[array] * 4, c_int, c_int, c_int64, c_int, c_double, *[POINTER(array)] * 3],
    ),
    "pvg_cross_entropy": (array, [array, array, array, c_int64, c_double, array]),
    "pvg_cross_entropy_backward": (array, [*[array] * 5, c_int64, c_double]),
    "pvg_activate": (array, [c_int, array, c_double, c_double]),
    "pvg_activate_backward": (array, [c_int, array, array, c_double, c_double]),
    "pvg_pair_loss": (array, [c_int, array, array, c_double, c_int]),
    "pvg_pair_loss_backward": (array, [c_int, array, array, array, c_double, c_int, c_int]),
    "pvg_pool": (array, [c_int, array, array, int64s, c_int]),
    "pvg_pool_backward": (array, [c_int, array, array, int64s, c_int, c_int64, c_int64]),
    "pvg_convolution": (array, [array, array, int64s, c_int64]),
    "pvg_convolution_input": (array, [array, array, int64s, c_int64, c_int64, c_int64]),
    "pvg_convolution_weight": (array, [array, array, int64s, c_int64]),
    # Sequences
    "pvg_attention": (array, [array, array, array, array, c_double, c_int, array]),
    "pvg_attention_backward": (
        c_int,
        [*[array] * 7, c_double, c_int, *[POINTER(array)] * 3],
    ),
    "pvg_recurrent": (c_int, [c_int, *[array] * 5, c_int, *[POINTER(array)] * 3]),
    "pvg_recurrent_backward": (c_int, [c_int, *[array] * 7, c_int, *[POINTER(array)] * 4]),
    # Learning
    "pvg_learn": (
        c_int,
        [c_int, int64s, int64s, array, array, array, array, c_int64, doubles, int64s],
    ),
    # For tests
    "pvg_plan_product": (c_int, [int64s, int64s, int64s]),
    "pvg_plan_card": (c_int, [c_int, int64s]),
    "pvg_plan_rule": (c_char_p, [c_int]),
}

# What the simulated card exports besides (cuda/simulator/pyvecgpu_sim.h).
SIMULATOR_FUNCTIONS = {
    "pvg_sim_set": (c_int, [c_char_p, c_longlong]),
    "pvg_sim_get": (c_longlong, [c_char_p]),
    "pvg_sim_fail": (None, [c_char_p, c_longlong]),
    "pvg_sim_message": (c_char_p, []),
    "pvg_sim_reset": (None, []),
    "pvg_sim_count": (c_longlong, [c_char_p]),
}
