// pvg_nonzero: where elements are not 0; see search.cuh.
#include "arrays/operation.cuh"
#include "kernels/search.cuh"
#include "runtime/graph.cuh"

namespace pvg {

namespace {

using search::Search, search::Found;

int run_nonzero(Call &call, const pvg_array *a, Output *result) {
    int device = -1;
    PVG_PASS(check_operands(&a, 1, &device));
    PVG_REQUIRE(a->ndim > 0, PVG_ERROR_VALUE, "an array without axes has no indices");
    PVG_PASS(call.begin(device));
    PVG_PASS(refuse_recording(device, "nonzero, which waits for its number of elements,"));
    Temporary truth, straight;
    Workspace workspace;
    Search job = {};
    int64_t shape[2] = {a->ndim, 0};
    if (a->size == 0) return result->open(call, PVG_INT64, 2, shape, nullptr, nullptr, 0);
    if (is_among(a->dtype, complexes)) PVG_PASS(as_dtype(call, a, PVG_BOOL, &truth, &a));
    PVG_PASS(as_contiguous(call, a, &straight, &a));
    job.data = a->data, job.size = a->size, job.mask = search::significant_bits(a->dtype);
    PVG_PASS(call.reads(a));
    return dispatch_size(a->dtype, [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        if constexpr (sizeof(T) > sizeof(uint64_t)) {
            return refuse_dtype(a->dtype, ordered); // 16 bytes: complex128, which is bool by now
        } else {
            PVG_PASS(search::count_nonzero<T>(call, &job, &workspace, &shape[1]));
            PVG_PASS(result->open(call, PVG_INT64, 2, shape, nullptr, nullptr, 0));
            Found found = {};
            found.indices = data<int64_t>(result->array), found.count = shape[1];
            found.ndim = a->ndim, found.narrow = a->size <= UINT32_MAX;
            for (int d = 0; d < a->ndim; d++) found.shape[d] = a->shape[d];
            return search::write_nonzero<T>(call, job, found);
        }
    });
}

} // namespace

Operations nonzero_operations() {
    static constexpr Operation rows[] = {
        {PVG_NONZERO, "nonzero", Family::other, all_kinds, Gives::index},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_nonzero(const pvg_array *a) {
    pvg::Call call("nonzero");
    pvg::Output result;
    int status = pvg::run_nonzero(call, a, &result);
    return result.close(call, status);
}
