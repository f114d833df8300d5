// The portable product: every dtype, layout, batch and device, by the kernel of tile.cuh.
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/simt/tile.cuh"

namespace pvg::matmul {

namespace {

// Whether packs of the operand (0: groups of c) may be moved at once, in every item.
bool is_aligned(const void *data, int64_t stride, int operand, const Walk<3> &batch, int dtype) {
    int64_t size = dtype_size(dtype), bytes = least(16, 4 * static_cast<int>(size));
    for (int i = 0; i < batch.ndim; i++) stride |= batch.strides[operand][i];
    return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(bytes) == 0 &&
           stride * size % bytes == 0;
}

// Signed integers are multiplied as the unsigned ones of their size: results have the same bits.
template <class T, bool = is_signed<T>> struct SameBits : std::make_unsigned<T> {};
template <class T> struct SameBits<T, false> : Tag<T> {};

template <class To> int launch(Call &call, const Problem &problem) {
    Product p = problem.product;
    int64_t items = problem.items;
    int dtype = problem.dtype;
    const Plan plan = plan_tiled(problem);
    fold_batch(&p, &items);
    p.a.aligned = is_aligned(p.a.data, p.a.along_k ? p.a.stride : p.a.k_stride, 1, p.batch, dtype);
    p.b.aligned = is_aligned(p.b.data, p.b.along_k ? p.b.stride : p.b.k_stride, 2, p.batch, dtype);
    p.c_aligned = is_aligned(p.c, p.c_row, 0, p.batch, dtype) &&
                  is_aligned(problem.epilogue.preactivation, p.c_row, 0, p.batch, dtype);
    const To to(destination_of(p, problem.epilogue, dtype));
    auto start = [&](auto tag) {
        using Element = typename decltype(tag)::type;
        using T = typename SameBits<Element>::type;
        return launch_planned_tile<T>(call.stream, p, items, plan, to);
    };
    if constexpr (std::is_same_v<To, Destination>)
        return dispatch<floats>(dtype, start);
    else
        return dispatch<ordered>(dtype, start);
}

} // namespace

int launch_tiled(Call &call, const Problem &problem) {
    return problem.epilogue.is_plain() ? launch<PlainDestination>(call, problem)
                                       : launch<Destination>(call, problem);
}

} // namespace pvg::matmul
