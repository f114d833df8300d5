// A convolution as its kernels know it: sizes, and the launches of those that are not products.
#pragma once
#include "kernels/windows.cuh"

namespace pvg {

// x (images, channels, height, width), weight (out, channels / groups, rows, columns), all
// contiguous.
struct Convolution {
    int64_t images, channels, out, groups;
    Windows windows;

    int64_t inputs() const { return channels / groups; } // of a group
    int64_t results() const { return out / groups; }     // of a group
    int64_t kernel() const { return elements_of_a_kernel(windows); }
    int64_t spots() const { return windows_of_a_matrix(windows); } // windows of a picture
    int64_t depth() const { return inputs() * kernel(); }          // terms of a result
    int64_t picture() const { return windows.rows.length * windows.columns.length; }
    bool is_pointwise() const { // each element is a window
        return kernel() == 1 && windows.rows.stride == 1 && windows.columns.stride == 1 &&
               spots() == picture();
    }
};

// Columns: for each image, each channel and each element of the kernel the values at all windows,
// so that a convolution is a product of the weight and these. Of some images they lie image by
// image, (images, channels * kernel, windows), or side by side, (channels * kernel, images,
// windows).
struct ColumnsPart {
    int64_t first, images;
    bool side_by_side;
};

// columns = those of x, in its dtype.
int launch_columns(Call &call, const Convolution &c, const ColumnsPart &part, const pvg_array *x,
                   const pvg_array *columns);
// dx = the gradient of the images of the part from that of their columns, which is in dx's dtype or
// in the type that it is computed in: each element gathers.
int launch_picture(Call &call, const Convolution &c, const ColumnsPart &part,
                   const pvg_array *columns, const pvg_array *dx);
// to = the sum of `count` arrays of its size in the type that it is computed in, which lie one
// behind the other, in their order.
int launch_sum_of_parts(Call &call, const pvg_array *parts, int64_t count, const pvg_array *to);

// Whether there are so few channels in a group that sums are made directly, without a product.
bool is_direct(const Convolution &c);
int launch_direct(Call &call, const Convolution &c, const pvg_array *x, const pvg_array *weight,
                  const pvg_array *y);
int launch_direct_input(Call &call, const Convolution &c, const pvg_array *gradient,
                        const pvg_array *weight, const pvg_array *dx);
int launch_direct_weight(Call &call, const Convolution &c, const pvg_array *gradient,
                         const pvg_array *x, const pvg_array *dweight);

} // namespace pvg
