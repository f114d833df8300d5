// pvg_convolution and its gradients, as products with the columns of images (convolution.cuh):
//
//     y = weight @ columns(x)              for each group of channels
//     dx = picture(weight.T @ gradient)
//     dweight = gradient @ columns(x).T
//
// Columns take many times the memory of the images, so that these go by in pieces of the batch. A
// kernel of one element needs no columns, and few channels in a group no product. Deterministic: a
// piece's sums are made by a product, and those of the pieces are added in order.
#include "arrays/copy.cuh"
#include "arrays/operation.cuh"
#include "kernels/matmul/convolution.cuh"
#include "kernels/matmul/dispatch.cuh"
#include "kernels/matmul/operands.cuh"
#include <initializer_list>

namespace pvg {
namespace {

// Bytes of columns at a time; few in the simulator, for tests to have pieces of small batches.
#ifdef PVG_SIMULATOR
constexpr int64_t most_columns = int64_t(1) << 20;
#else
constexpr int64_t most_columns = int64_t(128) << 20;
#endif
// Windows of an image below which those of all images lie side by side in a product: its tiles are
// 128 columns wide.
constexpr int64_t few_windows = 128;

// The operands of one call, contiguous and of one dtype.
struct Task {
    Convolution c;
    Temporary converted[2], straight[2];
    const pvg_array *a, *b;
    int dtype;
};

// ---- Checks -------------------------------------------------------------------------------------

int check_image(const pvg_array *a, const char *what) {
    PVG_PASS(check_kinds(a->dtype, floats));
    PVG_REQUIRE(a->ndim == 4, PVG_ERROR_VALUE, "%s has four axes, not shape %s", what,
                shape_text(a));
    return PVG_OK;
}

int check_groups(const Convolution &c) {
    const long long channels = c.channels, out = c.out, groups = c.groups;
    PVG_REQUIRE(
        groups > 0 && channels > 0 && out > 0 && channels % groups == 0 && out % groups == 0,
        PVG_ERROR_VALUE, "%lld channels and %lld results in %lld groups", channels, out, groups);
    return PVG_OK;
}

// The weight's shape is what channels, groups and windows say.
int check_weight(const Convolution &c, const pvg_array *weight) {
    PVG_REQUIRE(weight->shape[1] == c.inputs() && weight->shape[2] == c.windows.rows.kernel &&
                    weight->shape[3] == c.windows.columns.kernel,
                PVG_ERROR_VALUE,
                "a weight of shape %s for %lld channels, %lld groups and a kernel of (%lld, %lld)",
                shape_text(weight), static_cast<long long>(c.channels),
                static_cast<long long>(c.groups), static_cast<long long>(c.windows.rows.kernel),
                static_cast<long long>(c.windows.columns.kernel));
    return PVG_OK;
}

int check_gradient(const Convolution &c, const pvg_array *gradient) {
    const int64_t shape[] = {c.images, c.out, c.windows.rows.windows, c.windows.columns.windows};
    PVG_REQUIRE(same_shape(gradient, 4, shape), PVG_ERROR_VALUE,
                "a gradient of shape %s, the convolution has %s", shape_text(gradient),
                shape_text(4, shape));
    return PVG_OK;
}

// Both operands, of which the first is asked for by this name.
int check_both(const pvg_array *a, const char *first, const pvg_array *b, const char *second,
               int *device) {
    const pvg_array *operands[] = {a, b};
    PVG_PASS(check_operands(operands, 2, device));
    PVG_PASS(check_image(a, first));
    return check_image(b, second);
}

int open_operands(Call &call, const pvg_array *a, const pvg_array *b, Task *task) {
    const int dtype = promote(a->dtype, b->dtype);
    task->dtype = dtype;
    PVG_PASS(as_dtype(call, a, dtype, &task->converted[0], &a));
    PVG_PASS(as_dtype(call, b, dtype, &task->converted[1], &b));
    PVG_PASS(as_contiguous(call, a, &task->straight[0], &task->a));
    return as_contiguous(call, b, &task->straight[1], &task->b);
}

// ---- Views and pieces ---------------------------------------------------------------------------

// A view of so many elements from `offset` on in a shape; strides: those of C order, or given.
int view(const pvg_array *a, std::initializer_list<int64_t> shape, int64_t offset,
         Temporary *result, std::initializer_list<int64_t> steps = {}) {
    int64_t strides[4];
    const int ndim = static_cast<int>(shape.size());
    contiguous_strides(ndim, shape.begin(), strides);
    return new_view(a, ndim, shape.begin(), steps.size() ? steps.begin() : strides, offset, false,
                    &result->array);
}

int new_shape(Call &call, int dtype, std::initializer_list<int64_t> shape, Temporary *result) {
    return new_array(call.device, dtype, static_cast<int>(shape.size()), shape.begin(),
                     &result->array);
}

int compute_dtype(int dtype) {
    return dtype == PVG_FLOAT16 || dtype == PVG_BFLOAT16 ? static_cast<int>(PVG_FLOAT32) : dtype;
}

// Images whose columns are in memory at a time.
int64_t images_of_a_piece(const Convolution &c, int dtype) {
    const int64_t bytes = c.groups * c.depth() * c.spots() * dtype_size(dtype);
    const int64_t images = most_columns / bytes;
    return images < 1 ? 1 : images < c.images ? images : c.images;
}

// The results of some images, (out, images, windows) as they lie in `to`, of (images, out, windows)
// in `from` from image `first` on; or the other way round.
int exchange(Call &call, const Convolution &c, int64_t first, int64_t images, const pvg_array *from,
             const pvg_array *to, bool back) {
    const int64_t windows = c.spots(), all = images * windows;
    const pvg_array *batch = back ? to : from, *rows = back ? from : to;
    Temporary by_image, by_result;
    PVG_PASS(view(batch, {images, c.out, windows}, first * c.out * windows, &by_image));
    PVG_PASS(view(rows, {images, c.out, windows}, 0, &by_result, {windows, all, 1}));
    return back ? copy_array(call, by_result.array, by_image.array)
                : copy_array(call, by_image.array, by_result.array);
}

// ---- The product and its gradients --------------------------------------------------------------

// y = weight @ columns of some images, which are x itself where `columns` is.
int multiply_images(Call &call, const Convolution &c, const pvg_array *weight,
                    const pvg_array *columns, int64_t first, int64_t images, pvg_array *y,
                    int precision) {
    const int64_t windows = c.spots();
    Temporary w, by_image, part;
    PVG_PASS(view(weight, {c.groups, c.results(), c.depth()}, 0, &w));
    PVG_PASS(view(columns, {images, c.groups, c.depth(), windows}, 0, &by_image));
    PVG_PASS(view(y, {images, c.groups, c.results(), windows}, first * c.out * windows, &part));
    return matmul::multiply(call, {w.array, 1, 1, 2}, {by_image.array, 2, 3, 2}, part.array, 2, 3,
                            precision, {});
}

// The same where the columns of the images lie side by side.
int multiply_side_by_side(Call &call, const Convolution &c, const pvg_array *weight,
                          const pvg_array *columns, int64_t first, int64_t images, pvg_array *y,
                          int precision) {
    const int64_t all = images * c.spots();
    Temporary w, wide, sums;
    PVG_PASS(view(weight, {c.groups, c.results(), c.depth()}, 0, &w));
    PVG_PASS(view(columns, {c.groups, c.depth(), all}, 0, &wide));
    PVG_PASS(new_shape(call, y->dtype, {c.groups, c.results(), all}, &sums));
    PVG_PASS(matmul::multiply(call, {w.array, 1, 1, 2}, {wide.array, 1, 2, 1}, sums.array, 1, 2,
                              precision, {}));
    return exchange(call, c, first, images, sums.array, y, true);
}

int convolve(Call &call, const Task &o, pvg_array *y, int precision) {
    const Convolution &c = o.c;
    if (is_direct(c)) return launch_direct(call, c, o.a, o.b, y);
    const bool side_by_side = c.spots() < few_windows && c.images > 1;
    if (c.is_pointwise() && !side_by_side)
        return multiply_images(call, c, o.b, o.a, 0, c.images, y, precision);
    const int64_t piece = images_of_a_piece(c, o.dtype);
    Temporary columns;
    PVG_PASS(new_shape(call, o.dtype, {piece * c.groups * c.depth() * c.spots()}, &columns));
    for (int64_t first = 0; first < c.images; first += piece) {
        const int64_t images = piece < c.images - first ? piece : c.images - first;
        PVG_PASS(launch_columns(call, c, {first, images, side_by_side}, o.a, columns.array));
        const auto multiply = side_by_side ? multiply_side_by_side : multiply_images;
        PVG_PASS(multiply(call, c, o.b, columns.array, first, images, y, precision));
    }
    return PVG_OK;
}

// columns = weight.T @ gradient of some images.
int multiply_back(Call &call, const Convolution &c, const pvg_array *gradient,
                  const pvg_array *weight, const ColumnsPart &part, const pvg_array *columns,
                  int precision) {
    const int64_t windows = c.spots(), all = part.images * windows;
    Temporary w, g, sums, turned;
    PVG_PASS(view(weight, {c.groups, c.results(), c.depth()}, 0, &w));
    const matmul::Matrix left = {w.array, 1, 2, 1};
    if (!part.side_by_side) {
        PVG_PASS(view(gradient, {part.images, c.groups, c.results(), windows},
                      part.first * c.out * windows, &g));
        PVG_PASS(view(columns, {part.images, c.groups, c.depth(), windows}, 0, &sums));
        return matmul::multiply(call, left, {g.array, 2, 3, 2}, sums.array, 2, 3, precision, {});
    }
    PVG_PASS(new_shape(call, gradient->dtype, {c.groups, c.results(), all}, &turned));
    PVG_PASS(exchange(call, c, part.first, part.images, gradient, turned.array, false));
    PVG_PASS(view(columns, {c.groups, c.depth(), all}, 0, &sums));
    return matmul::multiply(call, left, {turned.array, 1, 2, 1}, sums.array, 1, 2, precision, {});
}

int convolve_input(Call &call, const Task &o, pvg_array *dx, int precision) {
    const Convolution &c = o.c;
    if (is_direct(c)) return launch_direct_input(call, c, o.a, o.b, dx);
    const bool side_by_side = c.spots() < few_windows && c.images > 1;
    if (c.is_pointwise() && !side_by_side)
        return multiply_back(call, c, o.a, o.b, {0, c.images, false}, dx, precision);
    // Halves in float32, as an element is a sum of several columns.
    const int dtype = c.kernel() > 1 ? compute_dtype(o.dtype) : o.dtype;
    if (dtype != o.dtype) precision = PVG_PRECISION_FLOAT32;
    Temporary wide[2], columns;
    const pvg_array *gradient, *weight;
    PVG_PASS(as_dtype(call, o.a, dtype, &wide[0], &gradient));
    PVG_PASS(as_dtype(call, o.b, dtype, &wide[1], &weight));
    const int64_t piece = images_of_a_piece(c, dtype);
    PVG_PASS(new_shape(call, dtype, {piece * c.groups * c.depth() * c.spots()}, &columns));
    for (int64_t first = 0; first < c.images; first += piece) {
        const int64_t images = piece < c.images - first ? piece : c.images - first;
        const ColumnsPart part = {first, images, side_by_side};
        PVG_PASS(multiply_back(call, c, gradient, weight, part, columns.array, precision));
        PVG_PASS(launch_picture(call, c, part, columns.array, dx));
    }
    return PVG_OK;
}

int convolve_weight(Call &call, const Task &o, pvg_array *dweight, int precision) {
    const Convolution &c = o.c;
    if (is_direct(c)) return launch_direct_weight(call, c, o.a, o.b, dweight);
    int64_t piece = images_of_a_piece(c, o.dtype);
    // Sums of several pieces are rounded once: of halves, they are in float32.
    const int dtype = piece < c.images ? compute_dtype(o.dtype) : o.dtype;
    if (dtype != o.dtype) precision = PVG_PRECISION_FLOAT32, piece = images_of_a_piece(c, dtype);
    const int64_t pieces = (c.images - 1) / piece + 1, windows = c.spots();
    Temporary wide[2], columns, turned, parts;
    const pvg_array *gradient, *x;
    PVG_PASS(as_dtype(call, o.a, dtype, &wide[0], &gradient));
    PVG_PASS(as_dtype(call, o.b, dtype, &wide[1], &x));
    PVG_PASS(new_shape(call, dtype, {piece * c.groups * c.depth() * windows}, &columns));
    PVG_PASS(new_shape(call, dtype, {c.out * piece * windows}, &turned));
    if (pieces > 1) PVG_PASS(new_shape(call, dtype, {pieces * dweight->size}, &parts));
    for (int64_t i = 0, first = 0; i < pieces; i++, first += piece) {
        const int64_t images = piece < c.images - first ? piece : c.images - first;
        PVG_PASS(launch_columns(call, c, {first, images, true}, x, columns.array));
        PVG_PASS(exchange(call, c, first, images, gradient, turned.array, false));
        Temporary g, wide, sums;
        PVG_PASS(view(turned.array, {c.groups, c.results(), images * windows}, 0, &g));
        PVG_PASS(view(columns.array, {c.groups, c.depth(), images * windows}, 0, &wide));
        PVG_PASS(view(pieces > 1 ? parts.array : dweight, {c.groups, c.results(), c.depth()},
                      i * dweight->size, &sums));
        PVG_PASS(matmul::multiply(call, {g.array, 1, 1, 2}, {wide.array, 1, 1, 2}, sums.array, 1, 2,
                                  precision, {}));
    }
    return pieces > 1 ? launch_sum_of_parts(call, parts.array, pieces, dweight) : PVG_OK;
}

// ---- Calls --------------------------------------------------------------------------------------

int run_forward(Call &call, const pvg_array *x, const pvg_array *weight, const int64_t *numbers,
                int64_t groups, Output *result) {
    Task task;
    Convolution &c = task.c;
    int device = -1, precision = PVG_PRECISION_DEFAULT;
    PVG_PASS(check_both(x, "an image", weight, "a weight", &device));
    c.images = x->shape[0], c.channels = x->shape[1], c.out = weight->shape[0], c.groups = groups;
    PVG_PASS(check_groups(c));
    PVG_PASS(parse_windows(numbers, x->shape[2], x->shape[3], &c.windows));
    PVG_PASS(check_weight(c, weight));
    PVG_PASS(matmul::check_precision(&precision));
    const int64_t shape[] = {c.images, c.out, c.windows.rows.windows, c.windows.columns.windows};
    PVG_PASS(call.begin(device));
    PVG_PASS(open_operands(call, x, weight, &task));
    PVG_PASS(result->open(call, task.dtype, 4, shape, nullptr, nullptr, 0));
    return result->array->size == 0 ? static_cast<int>(PVG_OK)
                                    : convolve(call, task, result->array, precision);
}

int run_input(Call &call, const pvg_array *gradient, const pvg_array *weight,
              const int64_t *numbers, int64_t groups, int64_t height, int64_t width,
              Output *result) {
    Task task;
    Convolution &c = task.c;
    int device = -1, precision = PVG_PRECISION_DEFAULT;
    PVG_PASS(check_both(gradient, "a gradient", weight, "a weight", &device));
    PVG_REQUIRE(groups > 0 && groups <= weight->shape[0], PVG_ERROR_VALUE,
                "%lld results in %lld groups", static_cast<long long>(weight->shape[0]),
                static_cast<long long>(groups));
    c.images = gradient->shape[0], c.channels = weight->shape[1] * groups;
    c.out = weight->shape[0], c.groups = groups;
    PVG_PASS(check_groups(c));
    PVG_PASS(parse_windows(numbers, height, width, &c.windows));
    PVG_PASS(check_weight(c, weight));
    PVG_PASS(check_gradient(c, gradient));
    PVG_PASS(matmul::check_precision(&precision));
    const int64_t shape[] = {c.images, c.channels, height, width};
    PVG_PASS(call.begin(device));
    PVG_PASS(open_operands(call, gradient, weight, &task));
    PVG_PASS(result->open(call, task.dtype, 4, shape, nullptr, nullptr, 0));
    return result->array->size == 0 ? static_cast<int>(PVG_OK)
                                    : convolve_input(call, task, result->array, precision);
}

int run_weight(Call &call, const pvg_array *gradient, const pvg_array *x, const int64_t *numbers,
               int64_t groups, Output *result) {
    Task task;
    Convolution &c = task.c;
    int device = -1, precision = PVG_PRECISION_DEFAULT;
    PVG_PASS(check_both(gradient, "a gradient", x, "an image", &device));
    c.images = x->shape[0], c.channels = x->shape[1], c.out = gradient->shape[1], c.groups = groups;
    PVG_PASS(check_groups(c));
    PVG_PASS(parse_windows(numbers, x->shape[2], x->shape[3], &c.windows));
    PVG_PASS(check_gradient(c, gradient));
    PVG_PASS(matmul::check_precision(&precision));
    const int64_t shape[] = {c.out, c.inputs(), c.windows.rows.kernel, c.windows.columns.kernel};
    PVG_PASS(call.begin(device));
    PVG_PASS(open_operands(call, gradient, x, &task));
    PVG_PASS(result->open(call, task.dtype, 4, shape, nullptr, nullptr, 0));
    const double zero = 0;
    return gradient->size == 0 ? fill_array(call, result->array, PVG_SCALAR_FLOAT, &zero)
                               : convolve_weight(call, task, result->array, precision);
}

} // namespace

Operations convolution_operations() {
    static constexpr Operation rows[] = {
        {PVG_CONVOLUTION, "convolution", Family::other, floats, Gives::same},
    };
    return rows;
}

} // namespace pvg

PVG_API pvg_array *pvg_convolution(const pvg_array *x, const pvg_array *weight,
                                   const int64_t *windows, int64_t groups) {
    pvg::Call call("convolution");
    pvg::Output result;
    int status = pvg::run_forward(call, x, weight, windows, groups, &result);
    return result.close(call, status);
}

PVG_API pvg_array *pvg_convolution_input(const pvg_array *gradient, const pvg_array *weight,
                                         const int64_t *windows, int64_t groups, int64_t height,
                                         int64_t width) {
    pvg::Call call("convolution_input");
    pvg::Output result;
    int status = pvg::run_input(call, gradient, weight, windows, groups, height, width, &result);
    return result.close(call, status);
}

PVG_API pvg_array *pvg_convolution_weight(const pvg_array *gradient, const pvg_array *x,
                                          const int64_t *windows, int64_t groups) {
    pvg::Call call("convolution_weight");
    pvg::Output result;
    int status = pvg::run_weight(call, gradient, x, windows, groups, &result);
    return result.close(call, status);
}
