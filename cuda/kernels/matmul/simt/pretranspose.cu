// The pass before a product that wants its operands in another layout; see pretranspose.cuh.
//
// A block moves a tile of 64 x 64 elements through shared memory, where a transposed copy is read
// by columns. It reads whole rows, 16 bytes a thread if their addresses allow, and writes 16 bytes
// a thread always, because the copies are ours and aligned. Both operands' tiles are one grid.
// Where neither is transposed, copy_rows.cuh is faster.
#include "kernels/matmul/instructions.cuh"
#include "kernels/matmul/simt/copy_rows.cuh"
#include "kernels/matmul/simt/pretranspose.cuh"

namespace pvg::matmul {

namespace {

constexpr int side = 64, threads = 256;

struct OperandCopy {
    const float *source; // `rows` rows of `columns` elements
    float *destination;  // as many, or if transposed `columns` rows of `rows` elements
    int64_t rows, columns;
    int64_t source_stride, source_item;
    int64_t destination_stride, destination_item;
    unsigned tiles_down, tiles; // of an item
    bool transposed, aligned;   // aligned: the source's rows
};
struct OperandCopies {
    OperandCopy copy[2];
    unsigned first_of_second; // block
};

// 16 bytes at a time, of which every thread has four on their way. Rows hold a multiple of that;
// beyond the matrix there are zeros.
__device__ void read_aligned(float (&tile)[side][side + 1], const OperandCopy &job,
                             const float *from, int rows, int64_t columns) {
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

__device__ void read_unaligned(float (&tile)[side][side + 1], const OperandCopy &job,
                               const float *from, int rows, int64_t columns) {
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
__device__ void write(const float (&tile)[side][side + 1], const OperandCopy &job, float *to,
                      int64_t rows, int64_t columns) {
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

__global__ void __launch_bounds__(threads)
    arrange_kernel(const __grid_constant__ OperandCopies copies) {
    __shared__ float tile[side][side + 1];
    let_next_kernel_start();
    wait_for_previous_kernel();
    const bool second = blockIdx.x >= copies.first_of_second;
    const OperandCopy &job = copies.copy[second];
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

OperandCopy describe(const Stored &from, const OperandPlan &plan, float *to) {
    OperandCopy job{};
    job.source = static_cast<const float *>(from.data), job.destination = to;
    job.rows = from.rows, job.columns = from.columns;
    job.source_stride = from.stride, job.source_item = from.items > 1 ? from.item : 0;
    job.transposed = plan.copying == Copying::transposed, job.aligned = plan.by_fours;
    job.destination_stride = plan.stride, job.destination_item = plan.item;
    job.tiles_down = blocks_for(job.rows, side);
    job.tiles = job.tiles_down * blocks_for(job.columns, side);
    return job;
}

} // namespace

int arrange_operands(Call &call, Gemm *g, const Plan &plan, Workspace *space) {
    const Stored stored[] = {stored_a(*g), stored_b(*g)};
    const OperandPlan *const plans[] = {&plan.a, &plan.b};
    const void **const data[] = {&g->a, &g->b};
    *g = arranged(*g, plan.a, plan.b);
    const int64_t bytes = plan.a.bytes + plan.b.bytes;
    if (bytes == 0) return PVG_OK;
    PVG_PASS(space->open(call, static_cast<size_t>(bytes)));
    if (plan.a.copying != Copying::transposed && plan.b.copying != Copying::transposed) {
        Stored a = stored[0], b = stored[1];
        PVG_PASS(copy_rows(call, g->dtype, plan, space->as<void>(), &a, &b));
        g->a = a.data, g->b = b.data;
        return PVG_OK;
    }
    float *to = space->as<float>();
    OperandCopies copies{};
    int64_t blocks[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        if (plans[i]->copying == Copying::none) continue;
        copies.copy[i] = describe(stored[i], *plans[i], to);
        blocks[i] = stored[i].items * copies.copy[i].tiles;
        *data[i] = to;
        to += plans[i]->bytes / static_cast<int64_t>(sizeof(float));
    }
    copies.first_of_second = blocks_for(blocks[0], 1);
    PVG_LAUNCH_WITH((LaunchExtras{1, plan.overlap}), arrange_kernel,
                    blocks_for(blocks[0] + blocks[1], 1), threads, 0, call.stream, copies);
    return PVG_OK;
}

} // namespace pvg::matmul
