/* The passes before and after products on tensor cores, which are ordinary arithmetic: operands
 * split into 16-bit pieces, copied to where TMA can read them, items computed again. The simulated
 * card has no tensor cores, so nothing launches them there but this program, which is linked with
 * the objects of the library and calls what its headers declare. */
#include "arrays/call.cuh"
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/plan/families.cuh"
#include "kernels/matmul/plan/tiles.cuh"
#include "kernels/matmul/simt/copy_rows.cuh"
#include "kernels/matmul/simt/pretranspose.cuh"
#include "kernels/matmul/simt/recompute.cuh"
#include "kernels/matmul/sm80/convert.cuh"
#include "kernels/matmul/sm90/split.cuh"
#include "kernels/matmul/sm90/tensor_operands.cuh"
#include "simulator/tests/check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace {

using namespace pvg;
using namespace pvg::matmul;

const Card h200 = {90, 132, 227 << 10, 228 << 10};
std::mt19937 generator(7);

float random_number() { return std::normal_distribution<float>()(generator); }

template <class T> float value_of_bits(uint16_t bits) {
    T x;
    x.bits = bits;
    return float(x);
}
float value_of(uint16_t bits, int dtype) {
    return dtype == PVG_BFLOAT16 ? value_of_bits<BFloat16>(bits) : value_of_bits<Half>(bits);
}
uint16_t bits_of(float x, int dtype) {
    return dtype == PVG_BFLOAT16 ? BFloat16(x).bits : Half(x).bits;
}
template <class T> std::vector<T> read(const DeviceArray<T> &from) {
    std::vector<T> values(from.count);
    from.read(values.data());
    return values;
}

/* A matrix as it is stored, `offset` elements into memory, NaN around its rows. */
struct Source {
    int items, rows, columns, offset;
    int64_t ld, item;
    std::vector<float> host;
    DeviceArray<float> memory;

    Source(int count, int down, int across, int gap, int from)
        : items(count), rows(down), columns(across), offset(from), ld(across + gap),
          item(down * ld + gap), host((size_t)(offset + items * item), NAN), memory(host.size()) {
        for (int i = 0; i < items; i++)
            for (int r = 0; r < rows; r++)
                for (int c = 0; c < columns; c++) at(i, r, c) = random_number();
    }
    float &at(int i, int r, int c) { return host[(size_t)(offset + i * item + r * ld + c)]; }
    const float *upload() {
        memory.write(host.data());
        return memory.data + offset;
    }
};

/* ---- Pieces ---- */

struct Planes {
    SplitOperand operand = {};
    int64_t size, ranges_of_item, lines;
    DeviceArray<uint16_t> planes;
    DeviceArray<Range> ranges;
    DeviceArray<uint32_t> maxima;
    DeviceArray<float> roots;

    static PlaneShape shape(const Source &x, bool turned, bool lines_are_rows) {
        return {x.items, turned ? x.columns : x.rows, turned ? x.rows : x.columns, turned,
                lines_are_rows};
    }
    Planes(Source &x, bool turned, bool lines_are_rows, int count)
        : Planes(x, shape(x, turned, lines_are_rows), count) {}
    Planes(Source &x, const PlaneShape &s, int count)
        : size(plane_size(s.rows, s.columns)), ranges_of_item(range_count(s)), lines(line_count(s)),
          planes((size_t)(size * count * s.items)), ranges((size_t)(ranges_of_item * s.items)),
          maxima((size_t)(maxima_count(s) * s.items + 1)), roots((size_t)(lines * s.items)) {
        operand = {x.upload(),  x.ld,        x.item,           s.items,     s.rows,
                   s.columns,   s.turned,    s.lines_are_rows, planes.data, plane_pitch(s.columns),
                   ranges.data, maxima.data, roots.data};
    }
    float element(Source &x, int i, int r, int c) const {
        return operand.turned ? x.at(i, c, r) : x.at(i, r, c);
    }
    size_t place(int i, int piece, int count, int r, int64_t c) const {
        return (size_t)((i * count + piece) * size + r * operand.pitch + c);
    }
};

uint32_t magnitude_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits & 0x7fffffff;
}

void check_bf16(Source &x, Planes &p) {
    const auto planes = read(p.planes);
    const auto ranges = read(p.ranges);
    for (int i = 0; i < x.items; i++) {
        uint32_t largest = 0, smallest = ~0u, told_largest = 0, told_smallest = ~0u;
        int wrong = 0;
        for (int r = 0; r < p.operand.rows; r++)
            for (int64_t c = 0; c < p.operand.pitch; c++) {
                double sum = 0;
                for (int piece = 0; piece < bf16_planes; piece++)
                    sum += value_of(planes[p.place(i, piece, bf16_planes, r, c)], PVG_BFLOAT16);
                const float exact = c < p.operand.columns ? p.element(x, i, r, (int)c) : 0;
                wrong += sum != exact;
                if (c >= p.operand.columns) continue;
                largest = std::max(largest, magnitude_bits(exact));
                if (exact != 0) smallest = std::min(smallest, magnitude_bits(exact));
            }
        CHECK_EQUAL(wrong, 0);
        for (int64_t j = 0; j < p.ranges_of_item; j++) {
            const Range &one = ranges[(size_t)(i * p.ranges_of_item + j)];
            told_largest = std::max(told_largest, one.largest);
            told_smallest = std::min(told_smallest, one.smallest);
        }
        CHECK_EQUAL(told_largest, largest);
        CHECK_EQUAL(told_smallest, smallest);
    }
}

/* x 2^s = h + l / 2^11, and 2^s brings the largest of a line between 2^13 and 2^15. */
void check_fp16(Source &x, Planes &p) {
    const auto planes = read(p.planes);
    const auto roots = read(p.roots);
    for (int i = 0; i < x.items; i++) {
        std::vector<float> largest((size_t)p.lines, 0.0f);
        int wrong = 0, out_of_range = 0;
        for (int r = 0; r < p.operand.rows; r++)
            for (int64_t c = 0; c < p.operand.pitch; c++) {
                const double h = value_of(planes[p.place(i, 0, fp16_planes, r, c)], PVG_FLOAT16);
                const double l = value_of(planes[p.place(i, 1, fp16_planes, r, c)], PVG_FLOAT16);
                if (c >= p.operand.columns) {
                    wrong += h != 0 || l != 0;
                    continue;
                }
                const size_t line = (size_t)(p.operand.lines_are_rows ? r : c);
                const double root = roots[(size_t)(i * p.lines) + line]; /* 2^(-s/2) */
                const double exact = p.element(x, i, r, (int)c), scaled = exact / root / root;
                const double error = std::fabs(h + l / 2048 - scaled);
                wrong += !(error <= std::fabs(scaled) * 0x1p-22 + 0x1p-36);
                largest[line] = std::max(largest[line], (float)std::fabs(scaled));
            }
        for (float one : largest) out_of_range += !(one == 0 || (one >= 0x1p13f && one < 0x1p15f));
        CHECK_EQUAL(wrong, 0);
        CHECK_EQUAL(out_of_range, 0);
    }
}

/* Numbers whose pieces are exact in bfloat16: far from the ends of the range. */
void spread_magnitudes(Source &x) {
    for (int i = 0; i < x.items; i++)
        for (int r = 0; r < x.rows; r++)
            for (int c = 0; c < x.columns; c++) {
                x.at(i, r, c) = std::ldexp(x.at(i, r, c), (int)(generator() % 40) - 20);
                if (generator() % 9 == 0) x.at(i, r, c) = 0;
            }
}

void pieces() {
    const int shapes[][2] = {{1, 1}, {64, 64}, {65, 63}, {3, 130}, {130, 70}, {300, 9}, {5, 2500}};
    for (auto [rows, columns] : shapes)
        for (int turned = 0; turned < 2; turned++)
            for (int lines_are_rows = 0; lines_are_rows < 2; lines_are_rows++) {
                const int by = (int)(generator() % 4), items = 1 + (int)(generator() % 2);
                Source a(items, rows, columns, by, by), b(2, columns, 7, 4 - by, 0);
                spread_magnitudes(a);
                Call call("split");
                CHECK_EQUAL(call.begin(0), PVG_OK);
                DeviceArray<unsigned> flags(5000);
                Planes of_a(a, turned, lines_are_rows, bf16_planes);
                Planes of_b(b, turned, lines_are_rows, bf16_planes);
                CHECK_EQUAL(split_bf16(call, &of_a.operand, &of_b.operand, flags.data, 4999), 0);
                check_bf16(a, of_a);
                check_bf16(b, of_b);
                const auto cleared = read(flags);
                CHECK_EQUAL(std::count(cleared.begin(), cleared.end() - 1, 0u), 4999);
                CHECK_EQUAL(cleared.back(), ~0u);
                Planes halves_a(a, turned, lines_are_rows, fp16_planes);
                Planes halves_b(b, turned, lines_are_rows, fp16_planes);
                CHECK_EQUAL(split_fp16(call, &halves_a.operand, &halves_b.operand, flags.data, 10),
                            0);
                check_fp16(a, halves_a);
                check_fp16(b, halves_b);
            }
}

/* What is not finite is in the ranges, and makes the line's root NaN. */
void pieces_of_infinities() {
    Source a(1, 20, 30, 0, 0);
    a.at(0, 7, 11) = INFINITY, a.at(0, 9, 2) = NAN;
    for (int turned = 0; turned < 2; turned++)
        for (int lines_are_rows = 0; lines_are_rows < 2; lines_are_rows++) {
            Call call("split");
            CHECK_EQUAL(call.begin(0), PVG_OK);
            DeviceArray<unsigned> flags(1);
            Planes p(a, turned, lines_are_rows, bf16_planes);
            CHECK_EQUAL(split_bf16(call, &p.operand, nullptr, flags.data, 1), 0);
            uint32_t largest = 0;
            for (const Range &one : read(p.ranges)) largest = std::max(largest, one.largest);
            CHECK(largest > 0x7f800000u);
            Planes halves(a, turned, lines_are_rows, fp16_planes);
            CHECK_EQUAL(split_fp16(call, nullptr, &halves.operand, flags.data, 1), 0);
            const auto roots = read(halves.roots);
            const bool along =
                (turned != 0) == (lines_are_rows != 0); /* a line is a stored column */
            for (size_t line = 0; line < roots.size(); line++) {
                const bool bad = along ? line == 11 || line == 2 : line == 7 || line == 9;
                CHECK_EQUAL(std::isnan(roots[line]), bad);
            }
        }
}

/* ---- Copies of rows ---- */

Gemm product_of(const void *a, const void *b, int m, int n, int k, int dtype, int precision) {
    Gemm g = {};
    g.m = m, g.n = n, g.items = 1, g.k = k;
    g.a = a, g.b = b, g.lda = k, g.ldb = k, g.ldc = n;
    g.a_along_k = g.b_along_k = true;
    g.dtype = g.c_dtype = dtype, g.precision = precision, g.device = 0;
    return g;
}

/* What is at an operand's rows, one element after another, is what was stored, rounded. */
void check_copy(Source &source, const Stored &x, int64_t size, int type) {
    int wrong = 0;
    for (int i = 0; i < source.items; i++)
        for (int r = 0; r < source.rows; r++) {
            const auto *row =
                static_cast<const char *>(x.data) + (i * x.item + r * x.stride) * size;
            std::vector<char> got((size_t)(source.columns * size));
            CHECK_EQUAL(cudaMemcpy(got.data(), row, got.size(), cudaMemcpyDefault), 0);
            for (int k = 0; k < source.columns; k++) {
                const float exact = source.at(i, r, k);
                const uint16_t half = type == PVG_FLOAT32 ? (uint16_t)0 : bits_of(exact, type);
                const void *expected = size == 4 ? (const void *)&exact : &half;
                wrong += memcmp(&got[(size_t)(k * size)], expected, (size_t)size) != 0;
            }
        }
    CHECK_EQUAL(wrong, 0);
}

/* Rows that begin anywhere, of numbers rounded to `type`, or moved as they are. */
void check_rows(int rows, int columns, int gap, int offset, int precision, int type) {
    Source a(2, rows, columns, gap, offset), b(1, rows + 3, columns, 3 - gap, 1);
    const float *const data_a = a.upload(), *const data_b = b.upload();
    Gemm g = product_of(data_a, data_b, rows, rows + 3, columns, PVG_FLOAT32, precision);
    DeviceArray<float> c((size_t)(2 * rows * (rows + 3)));
    g.c = c.data, g.items = 2, g.lda = a.ld, g.ldb = b.ld, g.a_item = a.item;
    g.c_item = rows * (rows + 3);
    Plan plan;
    plan_tensor(g, h200, &plan);
    Call call("copies");
    CHECK_EQUAL(call.begin(0), PVG_OK);
    TensorOperands operands;
    CHECK_EQUAL(prepare_operands(call, g, type, plan, &operands), 0);
    for (Source *source : {&a, &b}) {
        const Stored &x = source == &a ? operands.a : operands.b;
        const bool copied = x.data != (source == &a ? data_a : data_b);
        CHECK(copied || type == PVG_FLOAT32);
        const int64_t size = copied && type != PVG_FLOAT32 ? 2 : 4;
        CHECK(reinterpret_cast<uintptr_t>(x.data) % 16 == 0 && x.stride * size % 16 == 0);
        check_copy(*source, x, size, type);
    }
}

/* Both operands of CUDA cores, of 4 bytes, as they are: items begin at multiples of 256 bytes. */
void check_arranged(int rows, int columns, int gap, int offset) {
    Source a(3, rows, columns, gap, offset), b(3, rows + 3, columns, 3 - gap, 1);
    Gemm g = product_of(a.upload(), b.upload(), rows, rows + 3, columns, PVG_FLOAT32,
                        PVG_PRECISION_IEEE);
    g.items = 3, g.lda = a.ld, g.ldb = b.ld, g.a_item = a.item, g.b_item = b.item;
    Plan plan;
    plan.a = arrange(stored_a(g), {true, 4}), plan.b = arrange(stored_b(g), {true, 4});
    const void *const before[] = {g.a, g.b};
    Call call("arranged");
    CHECK_EQUAL(call.begin(0), PVG_OK);
    Workspace space;
    CHECK_EQUAL(arrange_operands(call, &g, plan, &space), 0);
    for (Source *source : {&a, &b}) {
        const Stored x = source == &a ? stored_a(g) : stored_b(g);
        CHECK(x.data != before[source != &a] && x.stride % 4 == 0 && x.item % 64 == 0);
        check_copy(*source, x, 4, PVG_FLOAT32);
    }
}

/* The same for cp.async: rounded, and halves as they are. */
void check_conversion(int rows, int columns, int gap, int offset, int type) {
    Source a(2, rows, columns, gap, offset);
    const Stored from = {a.upload(), rows, columns, a.ld, 2, a.item, true};
    OperandPlan plan;
    plan.copying = Copying::rows, plan.along_k = true, plan.alignment = 8;
    plan.stride = round_up(columns, 8), plan.item = plan.stride * rows;
    plan.bytes = plan.item * 2 * 2;
    Plan all;
    all.overlap = gap % 2;
    Call call("conversion");
    CHECK_EQUAL(call.begin(0), PVG_OK);
    Workspace space, again;
    const void *data = nullptr, *copied = nullptr;
    CHECK_EQUAL(convert_operand(call, PVG_FLOAT32, type, all, plan, from, &data, &space), 0);
    const Stored there = {data, rows, columns, plan.stride, 2, plan.item, true};
    check_copy(a, there, 2, type);
    CHECK_EQUAL(convert_operand(call, type, type, all, plan, there, &copied, &again), 0);
    CHECK(copied != data);
    check_copy(a, {copied, rows, columns, plan.stride, 2, plan.item, true}, 2, type);
    plan.copying = Copying::none;
    CHECK_EQUAL(convert_operand(call, type, type, all, plan, there, &data, &again), 0);
    CHECK(data == there.data);
}

/* Two operands of 16 bits, moved as they are, whose rows begin anywhere, repeat (stride 0) or lie
 * over each other. What is behind the last one is not theirs. */
void check_halves(int rows, int columns, int64_t stride, int offset) {
    const int64_t item = rows * stride + columns + 1;
    std::vector<uint16_t> host((size_t)(offset + item + (rows - 1) * stride + columns));
    for (uint16_t &x : host) x = (uint16_t)generator();
    DeviceArray<uint16_t> memory(host.size());
    memory.write(host.data());
    Stored stored[] = {{memory.data + offset, rows, columns, stride, 2, item, true},
                       {memory.data + offset + 1, rows, columns - 1, stride, 1, 0, true}};
    Plan plan;
    int64_t bytes = 0;
    for (OperandPlan *one : {&plan.a, &plan.b}) {
        const Stored &x = stored[one == &plan.b];
        one->copying = Copying::rows, one->stride = round_up(x.columns, 8) + 8;
        one->item = one->stride * rows, one->bytes = x.items * one->item * 2;
        bytes += one->bytes;
    }
    DeviceArray<uint16_t> copies((size_t)bytes / 2);
    Call call("copies of halves");
    CHECK_EQUAL(call.begin(0), PVG_OK);
    CHECK_EQUAL(copy_rows(call, PVG_FLOAT16, plan, copies.data, &stored[0], &stored[1]), PVG_OK);
    const auto got = read(copies);
    int wrong = 0;
    for (int which = 0; which < 2; which++) {
        const Stored &x = stored[which];
        const uint16_t *const from = got.data() + (which ? plan.a.bytes / 2 : 0);
        CHECK(x.data == copies.data + (from - got.data()));
        for (int i = 0; i < x.items; i++)
            for (int r = 0; r < rows; r++)
                for (int64_t c = 0; c < x.columns; c++)
                    wrong += from[i * x.item + r * x.stride + c] !=
                             host[(size_t)(offset + which + i * item + r * stride + c)];
    }
    CHECK_EQUAL(wrong, 0);
}

void copies_of_rows() {
    for (int columns : {2, 7, 9, 17, 88, 4031, 4033, 12090})
        for (int64_t stride : {columns, columns + 1, columns + 40, 0, 3})
            for (int rows : {1, 5, 300})
                if (columns * rows < 100000)
                    check_halves(rows, columns, stride, (int)(generator() % 9));
    for (int columns : {1, 7, 8, 33, 70})
        for (int gap = 0; gap < 4; gap++) {
            check_rows(5, columns, gap, gap, PVG_PRECISION_TF32, PVG_FLOAT32);
            check_rows(4, columns, gap, 3 - gap, PVG_PRECISION_BF16, PVG_BFLOAT16);
            check_rows(3, columns, gap, 2, PVG_PRECISION_FP16, PVG_FLOAT16);
            check_conversion(6, columns, gap, 1, PVG_FLOAT16);
            check_conversion(3, columns, gap, 2, PVG_BFLOAT16);
        }
    for (int columns : {3, 33, 71}) check_arranged(21, columns, 1, 1);
    /* By several blocks, of rows that have fewer and more vectors than a block has threads. */
    for (int columns : {5, 70, 1050, 4200}) {
        const int rows = 700 / ((columns + 7) / 8) + 3;
        check_rows(rows, columns, 1, 1, PVG_PRECISION_TF32, PVG_FLOAT32);
        check_rows(rows, columns, 2, 3, PVG_PRECISION_BF16, PVG_BFLOAT16);
    }
}

/* ---- Stretches of halves ---- */

/* Of a k that is cut into stretches, which blocks compute as a whole: sums of each stay float32.
 * The last one is shorter; a and b end where their memory does. */
void check_stretches(int m, int n, int layouts, int dtype, int parts, int rest) {
    const int terms = cost::least_stretch_of_blocks, k = terms * (parts - 1) + rest;
    const bool a_along_k = !(layouts & 1), b_along_k = layouts & 2;
    std::vector<uint16_t> host[2];
    DeviceArray<uint16_t> a((size_t)m * k), b((size_t)n * k);
    for (int i = 0; i < 2; i++) {
        host[i].resize((size_t)(i ? n : m) * k);
        for (uint16_t &x : host[i]) x = bits_of((float)(int)(generator() % 9) - 4, dtype);
        (i ? b : a).write(host[i].data());
    }
    Gemm g = product_of(a.data, b.data, m, n, k, dtype, PVG_PRECISION_DEFAULT);
    g.a_along_k = a_along_k, g.lda = a_along_k ? k : m;
    g.b_along_k = b_along_k, g.ldb = b_along_k ? k : n;
    Gemm stretches = stretch_of(g, 0, terms, parts);
    stretches.last_k = rest;
    DeviceArray<float> c((size_t)(parts * m * n + 1));
    stretches.c = c.data;
    const Plan plan = plan_gemm(*kernel_of(PVG_MATMUL_TENSOR_SMALL), stretches, h200);
    CHECK_EQUAL(plan.rows, 128);
    CHECK(plan.shared_bytes <= h200.shared_of_block && plan.blocks == parts);
    Call call("stretches");
    CHECK_EQUAL(call.begin(0), PVG_OK);
    CHECK_EQUAL(launch_tensor_small(call, stretches, plan), 0);
    const auto result = read(c);
    int wrong = 0;
    for (int part = 0; part < parts; part++)
        for (int r = 0; r < m; r++)
            for (int j = 0; j < n; j++) {
                float exact = 0;
                for (int t = part * terms; t < k && t < (part + 1) * terms; t++)
                    exact += value_of(host[0][(size_t)(a_along_k ? r * k + t : t * m + r)], dtype) *
                             value_of(host[1][(size_t)(b_along_k ? j * k + t : t * n + j)], dtype);
                wrong += result[(size_t)((part * m + r) * n + j)] != exact;
            }
    CHECK_EQUAL(wrong, 0);
}

void stretches_of_halves() {
    const int sides[][2] = {{33, 65}, {66, 40}, {72, 34}, {35, 127}};
    for (int layouts = 0; layouts < 4; layouts++)
        for (int i = 0; i < 4; i++)
            check_stretches(sides[i][0], sides[i][1], (layouts + i) % 4,
                            i % 2 ? PVG_BFLOAT16 : PVG_FLOAT16, 2 + layouts % 2,
                            layouts == 0 ? 512 : 90 * layouts + i);
}

/* ---- Items computed again ---- */

/* Items 1 and 3 of four; `layouts`: bit 0 a along m, bit 1 b along k. */
void check_again(int m, int n, int k, int layouts, bool with_bias) {
    const bool a_along_k = !(layouts & 1), b_along_k = layouts & 2;
    Source a(4, a_along_k ? m : k, a_along_k ? k : m, layouts, 1);
    Source b(1, b_along_k ? n : k, b_along_k ? k : n, 0, 0), bias(1, 1, n, 0, 0);
    const int64_t row = n + 1, item = m * row;
    DeviceArray<float> c((size_t)(4 * item));
    DeviceArray<unsigned> flags(5);
    const unsigned verdicts[] = {0, 1, 0, 7, 1};
    flags.write(verdicts);
    Gemm g = product_of(a.upload(), b.upload(), m, n, k, PVG_FLOAT32, PVG_PRECISION_FLOAT32);
    g.items = 4, g.c = c.data, g.ldc = row, g.c_item = item, g.a_item = a.item, g.lda = a.ld;
    g.ldb = b.ld, g.a_along_k = a_along_k, g.b_along_k = b_along_k;
    if (with_bias) g.epilogue.bias = bias.upload(), g.epilogue.activation = PVG_RELU;
    Call call("again");
    CHECK_EQUAL(call.begin(0), PVG_OK);
    CHECK_EQUAL(launch_recompute(call, g, {flags.data, flags.data + 4}), 0);
    const auto result = read(c);
    int wrong = 0, touched = 0;
    for (int i = 0; i < 4; i++)
        for (int r = 0; r < m; r++)
            for (int j = 0; j < row; j++) {
                const float got = result[(size_t)(i * item + r * row + j)];
                if (j == n || !verdicts[i]) {
                    touched += !std::isnan(got);
                    continue;
                }
                double sum = 0, size = 0;
                for (int l = 0; l < k; l++) {
                    const double term = double(a_along_k ? a.at(i, r, l) : a.at(i, l, r)) *
                                        double(b_along_k ? b.at(0, j, l) : b.at(0, l, j));
                    sum += term, size += std::fabs(term);
                }
                if (with_bias) sum = std::max(0.0, sum + bias.at(0, 0, j)), size += 9;
                wrong += !(std::fabs(got - sum) <= 8 * 0x1p-24 * size);
            }
    CHECK_EQUAL(wrong, 0);
    CHECK_EQUAL(touched, 0);
}

void items_again() {
    for (int layouts = 0; layouts < 4; layouts++) {
        check_again(3, 5, 40, layouts, false);
        check_again(130, 70, 33, layouts, layouts % 2);
    }
    check_again(20, 30, 500, 0, true);
    /* Nothing is to be done. */
    DeviceArray<float> c(1);
    DeviceArray<unsigned> flags(2);
    const unsigned none[] = {1, 0};
    flags.write(none);
    Source a(1, 1, 8, 0, 0), b(1, 1, 8, 0, 0);
    Gemm g = product_of(a.upload(), b.upload(), 1, 1, 8, PVG_FLOAT32, PVG_PRECISION_FLOAT32);
    g.c = c.data;
    Call call("again");
    CHECK_EQUAL(call.begin(0), PVG_OK);
    CHECK_EQUAL(launch_recompute(call, g, {flags.data, flags.data + 1}), 0);
    CHECK(std::isnan(read(c)[0]));
}

/* A sum of all terms in order stays finite; those of 32 of them do not, added up. */
void sums_that_overflow_in_parts() {
    const int m = 3, n = 2, k = 600;
    Source a(1, m, k, 0, 0), b(1, n, k, 0, 0);
    for (int l = 0; l < k; l++) {
        for (int r = 0; r < m; r++) a.at(0, r, l) = 0;
        for (int j = 0; j < n; j++) b.at(0, j, l) = 1;
    }
    const int places[] = {0, 64, 65, 128, 129};
    const float values[] = {3e38f, -2e38f, -2e38f, 2e38f, 2e38f};
    for (int i = 0; i < 5; i++) a.at(0, 1, places[i]) = values[i];
    DeviceArray<float> c(m * n);
    DeviceArray<unsigned> flags(2);
    const unsigned verdicts[] = {1, 1};
    flags.write(verdicts);
    Gemm g = product_of(a.upload(), b.upload(), m, n, k, PVG_FLOAT32, PVG_PRECISION_FLOAT32);
    g.c = c.data;
    Call call("again");
    CHECK_EQUAL(call.begin(0), PVG_OK);
    CHECK_EQUAL(launch_recompute(call, g, {flags.data, flags.data + 1}), 0);
    const auto result = read(c);
    CHECK(result[0] == 0 && result[5] == 0);
    CHECK(std::fabs(result[2] - 3e38f) <= 1e33f && result[2] == result[3]);
}

} // namespace

int main() {
    CHECK_EQUAL(pvg_sim_set("card0", 90), 0);
    pieces();
    pieces_of_infinities();
    copies_of_rows();
    stretches_of_halves();
    items_again();
    sums_that_overflow_in_parts();
    if (pvg_sim_message()[0]) puts(pvg_sim_message()), checks_failed++;
    return finish("passes of products");
}
