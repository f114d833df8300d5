"""What computes: CpuBackend (NumPy) and CudaBackend (the C library), with the same methods.

A backend works on raw data: NumPy arrays for CpuBackend, handles of the C library (ints) for
CudaBackend. A method that gives an array returns raw data, or None after an error that `fail()`
then raises; with `out` it writes there and returns `out`. Shapes, axes and keys were parsed before,
once for all backends: shapes are tuples of ints that fit, axes count from 0.

    empty(shape, dtype)                    from_host(ndarray)
    to_host(data, into=None)               an ndarray: `into`, of the same shape, if it is of use
    describe(data) -> dtype, shape, strides in elements
    unary(code, a, out)                    binary(code, a, b, out)      where(condition, a, b, out)
    scalar(code, a, value, side, out)      value: bool, int or float, the right operand if side is 1
    reduce(code, a, axes, keepdims, out)   axes: a tuple, or None for all
    matmul(a, b, precision, out)
    dense(x, weight, bias, activation, precision, preactivation, out)
    dense_backward(gradient, x, weight, preactivation, activation, precision)  three results
    cast(a, dtype, out)                    copy(source, destination)    fill(a, value)
    slice(a, start, step, length)          permute(a, axes)             reshape(a, shape)
    broadcast_to(a, shape)                 contiguous(a)                pointer(a)
    release(data)                          fail()
    synchronize()                          memory_info()                set_memory_limit(limit)
    empty_cache()                          counter(code)                launch_log()
    own_stream()                           for a thread that has none; not on the CPU
    record(work)                           a function that does it again; not on the CPU
"""
