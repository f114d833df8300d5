// The pass before a product that wants its operands in another layout; see pretranspose.cuh.
//
// A block moves a tile of 64 x 64 elements through shared memory, where a transposed copy is read
// by columns. It reads whole rows, 16 bytes a thread if their addresses allow, and writes 16 bytes
// a thread always, because the copies are ours and aligned. Both operands' tiles are one grid.
#ifndef PVG_SIMULATOR
#include "kernels/matmul/simt/pretranspose.cuh"
#include "kernels/matmul/sm90/hopper.cuh"

namespace pvg::matmul {

namespace {

constexpr int side = 64, threads = 256;

struct Copy {
    const float *source; // `rows` rows of `columns` elements
    float *destination;  // as many, or if transposed `columns` rows of `rows` elements
    int64_t rows, columns;
    int64_t source_stride, source_item;
    int64_t destination_stride, destination_item;
    unsigned tiles_down, tiles; // of an item
    bool transposed, aligned;   // aligned: the source's rows
};
struct Copies {
    Copy copy[2];
    unsigned first_of_second; // block
};

// 16 bytes at a time, of which every thread has four on their way. Rows hold a multiple of that;
// beyond the matrix there are zeros.
__device__ void read_aligned(float (&tile)[side][side + 1], const Copy &job, const float *from,
                             int rows, int64_t columns) {
    const int x = threadIdx.x % (side / 4) * 4, y = threadIdx.x / (side / 4);
    constexpr int down = threads / (side / 4), steps = side / down;
    float4 values[steps];
#pragma unroll
    for (int i = 0; i < steps; i++) {
        values[i] = make_float4(0, 0, 0, 0);
        if (y + i * down < rows && x < columns)
            values[i] =
                *reinterpret_cast<const float4 *>(from + (y + i * down) * job.source_stride + x);
    }
#pragma unroll
    for (int i = 0; i < steps; i++) {
        float *to = &tile[y + i * down][x];
        to[0] = values[i].x, to[1] = values[i].y, to[2] = values[i].z, to[3] = values[i].w;
    }
}

__device__ void read_unaligned(float (&tile)[side][side + 1], const Copy &job, const float *from,
                               int rows, int64_t columns) {
    const int x = threadIdx.x % side, y = threadIdx.x / side;
    constexpr int down = threads / side, steps = side / down;
    float values[steps];
#pragma unroll
    for (int i = 0; i < steps; i++)
        values[i] =
            y + i * down < rows && x < columns ? from[(y + i * down) * job.source_stride + x] : 0;
#pragma unroll
    for (int i = 0; i < steps; i++) tile[y + i * down][x] = values[i];
}

// Rows of the destination, up to a multiple of 4 elements.
__device__ void write(const float (&tile)[side][side + 1], const Copy &job, float *to, int64_t rows,
                      int64_t columns) {
    const int x = threadIdx.x % (side / 4) * 4, y = threadIdx.x / (side / 4);
    constexpr int down = threads / (side / 4);
    if (x >= columns) return;
#pragma unroll
    for (int i = 0; i < side; i += down) {
        if (y + i >= rows) continue;
        float v[4];
#pragma unroll
        for (int e = 0; e < 4; e++) v[e] = job.transposed ? tile[x + e][y + i] : tile[y + i][x + e];
        *reinterpret_cast<float4 *>(to + (y + i) * job.destination_stride + x) =
            make_float4(v[0], v[1], v[2], v[3]);
    }
}

__global__ void __launch_bounds__(threads) arrange_kernel(const __grid_constant__ Copies copies) {
    __shared__ float tile[side][side + 1];
#if __CUDA_ARCH__ >= 900
    hopper::let_next_kernel_start();
    hopper::wait_for_previous_kernel();
#endif
    const bool second = blockIdx.x >= copies.first_of_second;
    const Copy &job = copies.copy[second];
    const unsigned block = blockIdx.x - (second ? copies.first_of_second : 0);
    const unsigned item = block / job.tiles, number = block % job.tiles;
    const int64_t row = int64_t(number % job.tiles_down) * side;
    const int64_t column = int64_t(number / job.tiles_down) * side;
    const float *from = job.source + item * job.source_item + row * job.source_stride + column;
    const int64_t rows = job.rows - row, columns = job.columns - column;
    const int height = static_cast<int>(rows < side ? rows : side);
    if (job.aligned)
        read_aligned(tile, job, from, height, columns);
    else
        read_unaligned(tile, job, from, height, columns);
    __syncthreads();
    float *to = job.destination + item * job.destination_item;
    if (job.transposed)
        write(tile, job, to + column * job.destination_stride + row, columns, rows);
    else
        write(tile, job, to + row * job.destination_stride + column, rows, columns);
}

int64_t round_up(int64_t value, int64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

// An operand's matrix as it is stored.
struct Stored {
    const void **data;
    int64_t *stride, *item;
    bool *along_k;
    int64_t rows, columns;
};
Stored stored_a(Gemm *g) {
    bool k = g->a_along_k;
    return {&g->a, &g->lda, &g->a_item, &g->a_along_k, k ? g->m : g->k, k ? g->k : g->m};
}
Stored stored_b(Gemm *g) {
    bool k = g->b_along_k;
    return {&g->b, &g->ldb, &g->b_item, &g->b_along_k, k ? g->n : g->k, k ? g->k : g->n};
}

bool has_layout(const Stored &operand, int64_t items, Layout layout) {
    return *operand.along_k == layout.along_k &&
           is_aligned(*operand.data, operand.rows, operand.columns, *operand.stride, items,
                      *operand.item, layout.alignment);
}

// Describes the copy that gives the operand its layout, and the operand as it is afterwards but for
// its address. Copies begin at multiples of 256 bytes.
Copy plan(const Stored &operand, int64_t *items, Layout layout) {
    Copy job{};
    const int alignment = layout.alignment < 4 ? 4 : layout.alignment;
    if (*operand.item == 0) *items = 1;
    job.source = static_cast<const float *>(*operand.data);
    job.rows = operand.rows, job.columns = operand.columns;
    job.source_stride = *operand.stride, job.source_item = *items > 1 ? *operand.item : 0;
    job.transposed = *operand.along_k != layout.along_k;
    job.aligned = is_aligned(*operand.data, operand.rows, operand.columns, *operand.stride, *items,
                             *operand.item, 4);
    const int64_t length = job.transposed ? job.rows : job.columns;
    job.destination_stride = round_up(length, alignment);
    job.destination_item =
        round_up((job.transposed ? job.columns : job.rows) * job.destination_stride, 64);
    job.tiles_down = blocks_for(job.rows, side);
    job.tiles = job.tiles_down * blocks_for(job.columns, side);
    *operand.stride = job.destination_stride;
    *operand.item = *items > 1 ? job.destination_item : 0;
    *operand.along_k = layout.along_k;
    return job;
}

} // namespace

bool is_aligned(const void *data, int64_t rows, int64_t length, int64_t stride, int64_t items,
                int64_t item, int alignment) {
    if (alignment == 1) return true;
    const int64_t most = int64_t(1) << 38; // elements; TMA has 40 bits for bytes
    if (reinterpret_cast<uintptr_t>(data) % 16 != 0 || length % 4 != 0) return false;
    if (rows > 1 && (stride < length || stride % alignment != 0 || stride >= most)) return false;
    return items == 1 || (item >= 0 && item % 4 == 0 && item < most);
}

bool has_layout_a(const Gemm &g, Layout layout) {
    Gemm copy = g;
    return has_layout(stored_a(&copy), g.items, layout);
}
bool has_layout_b(const Gemm &g, Layout layout) {
    Gemm copy = g;
    return has_layout(stored_b(&copy), g.items, layout);
}

int arrange_operands(Call &call, Gemm *g, Layout a, Layout b, Workspace *space) {
    const bool move_a = !has_layout_a(*g, a), move_b = !has_layout_b(*g, b);
    for (const Stored &operand : {stored_a(g), stored_b(g)})
        if (operand.rows == 1) *operand.stride = round_up(operand.columns, 64);
    if (!move_a && !move_b) return PVG_OK;
    Copies copies{};
    int64_t bytes[2] = {0, 0}, blocks[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        if (!(i == 0 ? move_a : move_b)) continue;
        int64_t items = g->items;
        const Copy &job = copies.copy[i] =
            plan(i == 0 ? stored_a(g) : stored_b(g), &items, i == 0 ? a : b);
        bytes[i] = items * job.destination_item * static_cast<int64_t>(sizeof(float));
        blocks[i] = items * job.tiles;
    }
    PVG_PASS(space->open(call, static_cast<size_t>(bytes[0] + bytes[1])));
    float *first = space->as<float>(),
          *second = first + bytes[0] / static_cast<int64_t>(sizeof(float));
    if (move_a) g->a = copies.copy[0].destination = first;
    if (move_b) g->b = copies.copy[1].destination = second;
    copies.first_of_second = blocks_for(blocks[0], 1);
    const LaunchExtras extras = {1, tensor_architecture(g->device) >= 90};
    PVG_LAUNCH_WITH(extras, arrange_kernel, blocks_for(blocks[0] + blocks[1], 1), threads, 0,
                    call.stream, copies);
    return PVG_OK;
}

} // namespace pvg::matmul
#endif
