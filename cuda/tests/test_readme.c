/* One layer of a network on the GPU: y = sigmoid(x @ weight.T + bias). */
#include "pyvecgpu.h"
#include <stdio.h>

static pvg_array *to_device(int ndim, const int64_t *shape, const float *values) {
    pvg_array *a = pvg_array_empty(0, PVG_FLOAT32, ndim, shape);
    if (a && pvg_copy_from_host(a, values, NULL) == PVG_OK) return a;
    pvg_array_release(a); /* NULL is fine */
    return NULL;
}

int main(void) {
    const float x[2][3] = {{1, 2, 3}, {4, 5, 6}}; /* two samples of three features */
    const float weight[2][3] = {{1, 1, -1}, {0, 1, 0}}, bias[2] = {0, -2}; /* two units */
    const int64_t shape[2] = {2, 3};
    float y[2][2] = {{0}};
    int devices = 0;
    if (pvg_device_count(&devices) != PVG_OK) {
        fprintf(stderr, "%s\n", pvg_last_error());
        return 77;
    }
    pvg_array *device_x = to_device(2, shape, *x), *device_weight = to_device(2, shape, *weight);
    pvg_array *device_bias = to_device(1, shape, bias);
    pvg_array *device_y = pvg_dense(device_x, device_weight, device_bias, PVG_SIGMOID,
                                    PVG_PRECISION_DEFAULT, NULL, NULL);

    int failed = !device_y || pvg_copy_to_host(device_y, *y, NULL) != PVG_OK;
    if (failed) fprintf(stderr, "%s\n", pvg_last_error());
    for (int i = 0; i < 2; i++) printf("%.4f %.4f\n", y[i][0], y[i][1]);

    pvg_array_release(device_y);
    pvg_array_release(device_bias);
    pvg_array_release(device_weight);
    pvg_array_release(device_x);
    return failed || y[0][0] != 0.5f; /* sigmoid(0) */
}
