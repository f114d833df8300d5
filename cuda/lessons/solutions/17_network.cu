/* Solutions of lesson 17.
 *
 *     nvcc -O3 -arch=native 17_network.cu -o 17_network && ./17_network
 *
 * 1. adam() divides a parameter's step by the usual size of its gradient, so that all parameters
 *    move about `rate` a step, those with small gradients too. At first both means are too small,
 *    as they began at 0; the divisions by 1 - beta^step put that right.
 * 2. Only the sigmoid at the end goes; last_delta() does not change at all. The derivative of
 *    (answer - target)^2 / 2 is answer - target. With the sigmoid and the loss -log(probability) it
 *    came out as the same, because that loss was chosen for the sigmoid.
 *
 * Both networks here are 16 wide, have three layers and are trained by Adam. The gradient of the
 * first step is compared with the slope of the loss in a C loop, as in the lesson. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static __global__ void forward(const float *params, const float *x, float *y, int points,
                               int inputs, int outputs, bool use_tanh, bool use_sigmoid) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= points * outputs) return;
    int point = i / outputs, output = i % outputs;
    float sum = params[outputs * inputs + output];
    for (int j = 0; j < inputs; j++) sum += params[output * inputs + j] * x[point * inputs + j];
    y[i] = use_tanh ? tanhf(sum) : use_sigmoid ? 1 / (1 + expf(-sum)) : sum;
}

static __global__ void last_delta(const float *answer, const float *target, float *delta,
                                  int points) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < points) delta[i] = (answer[i] - target[i]) / points;
}

static __global__ void backward(const float *params, const float *delta, const float *x,
                                float *delta_before, int points, int inputs, int outputs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= points * inputs) return;
    int point = i / inputs, input = i % inputs;
    float sum = 0;
    for (int o = 0; o < outputs; o++) {
        sum += params[o * inputs + input] * delta[point * outputs + o];
    }
    delta_before[i] = sum * (1 - x[i] * x[i]);
}

static __global__ void gradient_of_params(const float *delta, const float *x, float *gradient,
                                          int points, int inputs, int outputs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, weights = outputs * inputs;
    if (i >= weights + outputs) return;
    bool is_weight = i < weights;
    int output = is_weight ? i / inputs : i - weights, input = is_weight ? i % inputs : 0;
    float sum = 0;
    for (int p = 0; p < points; p++) {
        sum += delta[p * outputs + output] * (is_weight ? x[p * inputs + input] : 1);
    }
    gradient[i] = sum;
}

/* mean and square are the running means of the gradient and of its square; `step` counts from 1. */
static __global__ void adam(float *params, float *mean, float *square, const float *gradient,
                            int count, int step, float rate) {
    const float beta1 = 0.9f, beta2 = 0.999f;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    mean[i] = beta1 * mean[i] + (1 - beta1) * gradient[i];
    square[i] = beta2 * square[i] + (1 - beta2) * gradient[i] * gradient[i];
    float m = mean[i] / (1 - powf(beta1, (float)step));
    float s = square[i] / (1 - powf(beta2, (float)step));
    params[i] -= rate * m / (sqrtf(s) + 1e-8f);
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

enum { LAYERS = 3, POINTS = 256, WIDEST = 16, MOST_STEPS = 1000, THREADS = 128 };

/* What to learn: the number of inputs, the kind of answer, the points, when it is good enough. */
typedef struct {
    const char *name;
    int inputs;
    bool is_probability;
    float points[2 * POINTS], target[POINTS];
    double good_loss;
} Task;

typedef struct {
    int sizes[LAYERS + 1];
    bool is_probability;
    float *params, *gradient, *mean, *square, *target, *values[LAYERS + 1], *deltas[LAYERS + 1];
} Network;

static int first_param(const int *sizes, int layer) {
    int first = 0;
    for (int l = 0; l < layer; l++) first += (sizes[l] + 1) * sizes[l + 1];
    return first;
}

static int blocks_for(int threads) { return (threads + THREADS - 1) / THREADS; }

static void run_forward(const Network *net) {
    for (int l = 0; l < LAYERS; l++) {
        forward<<<blocks_for(POINTS * net->sizes[l + 1]), THREADS>>>(
            net->params + first_param(net->sizes, l), net->values[l], net->values[l + 1], POINTS,
            net->sizes[l], net->sizes[l + 1], l < LAYERS - 1, net->is_probability);
        CHECK(cudaGetLastError());
    }
}

static void train_step(const Network *net, int step) {
    const int *sizes = net->sizes;
    int count = first_param(sizes, LAYERS);
    run_forward(net);
    last_delta<<<blocks_for(POINTS), THREADS>>>(net->values[LAYERS], net->target,
                                                net->deltas[LAYERS], POINTS);
    CHECK(cudaGetLastError());
    for (int l = LAYERS - 1; l >= 0; l--) {
        int first = first_param(sizes, l);
        gradient_of_params<<<blocks_for((sizes[l] + 1) * sizes[l + 1]), THREADS>>>(
            net->deltas[l + 1], net->values[l], net->gradient + first, POINTS, sizes[l],
            sizes[l + 1]);
        CHECK(cudaGetLastError());
        if (l == 0) break;
        backward<<<blocks_for(POINTS * sizes[l]), THREADS>>>(
            net->params + first, net->deltas[l + 1], net->values[l], net->deltas[l], POINTS,
            sizes[l], sizes[l + 1]);
        CHECK(cudaGetLastError());
    }
    adam<<<blocks_for(count), THREADS>>>(net->params, net->mean, net->square, net->gradient, count,
                                         step, 0.02f);
    CHECK(cudaGetLastError());
}

/* The C loop: the loss of given parameters over all points. */
static double loss_on_host(const double *params, const int *sizes, const Task *task) {
    double loss = 0;
    for (int p = 0; p < POINTS; p++) {
        double values[2][WIDEST] = {};
        for (int i = 0; i < sizes[0]; i++) values[0][i] = task->points[p * sizes[0] + i];
        for (int l = 0; l < LAYERS; l++) {
            const double *w = params + first_param(sizes, l), *b = w + sizes[l] * sizes[l + 1];
            for (int o = 0; o < sizes[l + 1]; o++) {
                double sum = b[o];
                for (int i = 0; i < sizes[l]; i++) sum += w[o * sizes[l] + i] * values[l % 2][i];
                values[(l + 1) % 2][o] = l < LAYERS - 1 ? tanh(sum) : sum;
            }
        }
        double answer = values[LAYERS % 2][0], target = task->target[p];
        if (task->is_probability) {
            loss += log(1 + exp(target == 1 ? -answer : answer)); /* -log(sigmoid(+-answer)) */
        } else {
            loss += (answer - target) * (answer - target) / 2;
        }
    }
    return loss / POINTS;
}

static float *new_device_array(size_t count, const float *h_from) {
    float *x;
    CHECK(cudaMalloc(&x, count * sizeof(float)));
    CHECK(cudaMemset(x, 0, count * sizeof(float)));
    if (h_from) CHECK(cudaMemcpy(x, h_from, count * sizeof(float), cudaMemcpyHostToDevice));
    return x;
}

/* The largest difference between the gradient on the device and the slope of the loss, for which
 * each parameter is moved a little up and down; infinite if one is NaN. */
static double gradient_error(const Network *net, const Task *task, double *params, int count) {
    double worst = 0, little = 1e-4;
    float *gradient = (float *)malloc(count * sizeof(float));
    if (!gradient) exit(1);
    CHECK(cudaMemcpy(gradient, net->gradient, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; i++) {
        double before = params[i];
        params[i] = before + little;
        double up = loss_on_host(params, net->sizes, task);
        params[i] = before - little;
        double down = loss_on_host(params, net->sizes, task);
        params[i] = before;
        double difference = fabs(gradient[i] - (up - down) / (2 * little));
        if (!(difference <= worst)) worst = isnan(difference) ? INFINITY : difference;
    }
    free(gradient);
    return worst;
}

/* Trains until the loss, computed by the C loop, is good enough. Returns whether it became so,
 * and the gradient was right. */
static bool train(const Task *task) {
    Network net = {};
    net.sizes[0] = task->inputs;
    net.sizes[1] = net.sizes[2] = WIDEST;
    net.sizes[LAYERS] = 1;
    net.is_probability = task->is_probability;
    int count = first_param(net.sizes, LAYERS);
    float *h_params = (float *)malloc(count * sizeof(float));
    double *params = (double *)malloc(count * sizeof(double)); /* the same for the C loops */
    if (!h_params || !params) exit(1);
    unsigned state = 1;
    for (int i = 0; i < count; i++) {
        bool is_first = i < first_param(net.sizes, 1);
        state = state * 1664525u + 1013904223u;
        h_params[i] = ((float)(state >> 8) / (1 << 23) - 1) * (is_first ? 1.7f : 0.6f);
        params[i] = h_params[i];
    }
    net.params = new_device_array(count, h_params);
    net.gradient = new_device_array(count, NULL);
    net.mean = new_device_array(count, NULL);
    net.square = new_device_array(count, NULL);
    net.target = new_device_array(POINTS, task->target);
    net.values[0] = new_device_array(POINTS * task->inputs, task->points);
    for (int l = 1; l <= LAYERS; l++) {
        net.values[l] = new_device_array((size_t)POINTS * net.sizes[l], NULL);
        net.deltas[l] = new_device_array((size_t)POINTS * net.sizes[l], NULL);
    }

    int step = 0;
    double loss = loss_on_host(params, net.sizes, task), first_loss = loss;
    train_step(&net, ++step);
    double error = gradient_error(&net, task, params, count);
    while (step < MOST_STEPS && !(loss <= task->good_loss)) {
        while (step % 10) train_step(&net, ++step);
        CHECK(cudaMemcpy(h_params, net.params, count * sizeof(float), cudaMemcpyDeviceToHost));
        for (int i = 0; i < count; i++) params[i] = h_params[i];
        loss = loss_on_host(params, net.sizes, task);
        if (!(loss <= task->good_loss)) train_step(&net, ++step);
    }
    printf("%s: the gradient is within %.1e of the slope; ", task->name, error);
    printf("the loss fell from %.4f to %.4f in %d steps\n", first_loss, loss, step);

    for (int l = 0; l <= LAYERS; l++) {
        CHECK(cudaFree(net.values[l]));
        CHECK(cudaFree(net.deltas[l]));
    }
    float *others[] = {net.params, net.gradient, net.mean, net.square, net.target};
    for (float *each : others) CHECK(cudaFree(each));
    free(h_params);
    free(params);
    return loss <= task->good_loss && error <= 1e-5;
}

int main(void) {
    int devices;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    static Task spirals = {"1. two spirals", 2, true, {}, {}, 0.05};
    static Task curve = {"2. sin(3 x)", 1, false, {}, {}, 0.001};
    for (int p = 0; p < POINTS; p++) {
        double radius = (p / 2 + 0.5) / (POINTS / 2);
        double angle = 2 * M_PI * radius + M_PI * (p % 2);
        spirals.points[2 * p] = (float)(radius * cos(angle));
        spirals.points[2 * p + 1] = (float)(radius * sin(angle));
        spirals.target[p] = (float)(p % 2);
        curve.points[p] = 2.0f * p / (POINTS - 1) - 1;
        curve.target[p] = sinf(3 * curve.points[p]);
    }
    bool good = train(&spirals);
    good = train(&curve) && good;
    return good ? 0 : 1;
}
