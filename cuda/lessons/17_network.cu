/* Lesson 17: a neural network, trained from zero.
 *
 *     nvcc -O3 -arch=native 17_network.cu -o 17_network && ./17_network
 *
 * There are 256 points in a plane on two spirals that are wound into each other, and the network is
 * to tell from a point's two coordinates on which spiral it lies. Three layers (lesson 15), of 16,
 * 16 and 1 outputs, turn the coordinates into one number between 0 and 1, the probability of the
 * second spiral. The first two layers end with tanh, the last one with the sigmoid.
 *
 * At first the weights are random and the answers worthless. How bad they are is said by the LOSS:
 * the mean of -log(probability given to the right answer), 0.69 for mere guessing and 0 for
 * certainty that is always right. A step of training is
 *
 *     forward    all points through the layers, one after the other
 *     backward   how much does the loss change with each weight? The answers, one for each weight,
 *                are the GRADIENT. By the chain rule of calculus they follow from the last layer to
 *                the first: each layer hands back how much the loss changes with its inputs.
 *     update     move each weight a little in the direction in which the loss falls
 *
 * and 400 steps are enough. There is no more to it: a large language model is trained by the same
 * three parts, with more layers of more kinds.
 *
 * What to look for: the loss; the map of the plane at the end, with # where the network says that
 * it is the second spiral; and how the gradient is checked. A wrong gradient often still learns,
 * only worse, so "the loss falls" is no test. Here each of the 337 numbers is compared with a C
 * loop that moves that one weight and computes the loss anew. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Forward: y = f(W x + b) for all points. x is points x inputs, y is points x outputs. One thread
 * per element of y. params has W, outputs x inputs, and after it b. */
static __global__ void forward(const float *params, const float *x, float *y, int points,
                               int inputs, int outputs, bool is_last) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= points * outputs) return;
    int point = i / outputs, output = i % outputs;
    float sum = params[outputs * inputs + output];
    for (int j = 0; j < inputs; j++) sum += params[output * inputs + j] * x[point * inputs + j];
    y[i] = is_last ? 1 / (1 + expf(-sum)) : tanhf(sum);
}

/* Backward begins here: delta is how much the loss changes with the last layer's W x + b. For the
 * sigmoid s(z) and this loss it is simply the answer minus the right one, over the number of
 * points. (s' is s (1 - s), so the derivative of -log s is s - 1, that of -log(1 - s) is s - 0.) */
static __global__ void last_delta(const float *answer, const float *target, float *delta,
                                  int points) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < points) delta[i] = (answer[i] - target[i]) / points;
}

/* From a layer's delta to the delta of the layer before it, whose outputs are this one's inputs x.
 * An input goes into all outputs, so it collects from all. The derivative of tanh is 1 - tanh^2,
 * and x is a tanh already. One thread per element of x. */
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

/* The gradient of W and b: the sum over all points of delta times what the weight was multiplied
 * with, an input, or 1 for b. One thread per parameter: always the same order, so the training
 * gives the same network every time (lesson 12). */
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

/* Down the slope, with MOMENTUM: the velocity remembers nine tenths of its last value, so that
 * steps in the same direction add up and those to and fro cancel out. One thread per parameter. */
static __global__ void update(float *params, float *velocity, const float *gradient, int count,
                              float rate, float momentum) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    velocity[i] = momentum * velocity[i] + gradient[i];
    params[i] -= rate * velocity[i];
}

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

enum { LAYERS = 3, POINTS = 256, WIDEST = 16, STEPS = 400, CHECKED_STEPS = 2, THREADS = 128 };
static const int sizes[LAYERS + 1] = {2, WIDEST, WIDEST, 1}; /* inputs, then each layer's outputs */
enum { PARAMS = (2 + 1) * WIDEST + (WIDEST + 1) * WIDEST + (WIDEST + 1) * 1 };
static const float rate = 0.3f, momentum = 0.9f;

/* What lives on the device. values[0] are the points, values[l + 1] what layer l makes of them. */
typedef struct {
    float *params, *gradient, *velocity, *target, *values[LAYERS + 1], *deltas[LAYERS + 1];
} Network;

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* Where the parameters of a layer begin. */
static int first_param(int layer) {
    int first = 0;
    for (int l = 0; l < layer; l++) first += (sizes[l] + 1) * sizes[l + 1];
    return first;
}

static int blocks_for(int threads) { return (threads + THREADS - 1) / THREADS; }

static void run_forward(const Network *net) {
    for (int l = 0; l < LAYERS; l++) {
        forward<<<blocks_for(POINTS * sizes[l + 1]), THREADS>>>(
            net->params + first_param(l), net->values[l], net->values[l + 1], POINTS, sizes[l],
            sizes[l + 1], l == LAYERS - 1);
        CHECK(cudaGetLastError());
    }
}

static void run_backward(const Network *net) {
    last_delta<<<blocks_for(POINTS), THREADS>>>(net->values[LAYERS], net->target,
                                                net->deltas[LAYERS], POINTS);
    CHECK(cudaGetLastError());
    for (int l = LAYERS - 1; l >= 0; l--) {
        gradient_of_params<<<blocks_for((sizes[l] + 1) * sizes[l + 1]), THREADS>>>(
            net->deltas[l + 1], net->values[l], net->gradient + first_param(l), POINTS, sizes[l],
            sizes[l + 1]);
        CHECK(cudaGetLastError());
        if (l == 0) break; /* nobody asks how the loss changes with the points */
        backward<<<blocks_for(POINTS * sizes[l]), THREADS>>>(
            net->params + first_param(l), net->deltas[l + 1], net->values[l], net->deltas[l],
            POINTS, sizes[l], sizes[l + 1]);
        CHECK(cudaGetLastError());
    }
}

static void train_step(const Network *net) {
    run_forward(net);
    run_backward(net);
    update<<<blocks_for(PARAMS), THREADS>>>(net->params, net->velocity, net->gradient, PARAMS, rate,
                                            momentum);
    CHECK(cudaGetLastError());
}

/* The C loop, in double: the network's answer for one point, and the loss over all. */
static double answer_on_host(const double *params, double x, double y) {
    double values[2][WIDEST] = {{x, y}};
    for (int l = 0; l < LAYERS; l++) {
        const double *w = params + first_param(l), *b = w + sizes[l] * sizes[l + 1];
        const double *from = values[l % 2];
        for (int o = 0; o < sizes[l + 1]; o++) {
            double sum = b[o];
            for (int i = 0; i < sizes[l]; i++) sum += w[o * sizes[l] + i] * from[i];
            values[(l + 1) % 2][o] = l == LAYERS - 1 ? 1 / (1 + exp(-sum)) : tanh(sum);
        }
    }
    return values[LAYERS % 2][0];
}

static double loss_on_host(const double *params, const float *points, const float *target) {
    double sum = 0;
    for (int p = 0; p < POINTS; p++) {
        double answer = answer_on_host(params, points[2 * p], points[2 * p + 1]);
        sum -= log(target[p] == 1 ? answer : 1 - answer);
    }
    return sum / POINTS;
}

/* The larger one of `worst` and the size of a difference; infinite for ever if that is NaN. */
static double larger(double worst, double difference) {
    if (isnan(difference)) return INFINITY;
    return fabs(difference) > worst ? fabs(difference) : worst;
}

/* One step on the device and the same in C. The gradient in C: move each parameter a little up and
 * a little down; the difference of the losses over the distance is the slope. Slow, and with
 * nothing in common with the kernels. Returns the largest difference. */
static double check_step(const Network *net, const float *h_points, const float *h_target,
                         float *h_velocity) {
    float before[PARAMS], after[PARAMS], gradient[PARAMS];
    double moved[PARAMS], worst = 0, little = 1e-4;
    CHECK(cudaMemcpy(before, net->params, sizeof before, cudaMemcpyDeviceToHost));
    train_step(net);
    CHECK(cudaMemcpy(gradient, net->gradient, sizeof before, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(after, net->params, sizeof before, cudaMemcpyDeviceToHost));
    for (int i = 0; i < PARAMS; i++) moved[i] = before[i];
    for (int i = 0; i < PARAMS; i++) {
        moved[i] = before[i] + little;
        double up = loss_on_host(moved, h_points, h_target);
        moved[i] = before[i] - little;
        double down = loss_on_host(moved, h_points, h_target);
        moved[i] = before[i];
        double slope = (up - down) / (2 * little);
        h_velocity[i] = momentum * h_velocity[i] + (float)slope;
        worst = larger(worst, gradient[i] - slope);
        worst = larger(worst, after[i] - (before[i] - rate * h_velocity[i]));
    }
    return worst;
}

/* Two spirals: the even points go out from the centre one way, the odd ones the opposite way. */
static void make_points(float *points, float *target) {
    for (int p = 0; p < POINTS; p++) {
        double radius = (p / 2 + 0.5) / (POINTS / 2);
        double angle = 2 * M_PI * radius + M_PI * (p % 2);
        points[2 * p] = (float)(radius * cos(angle));
        points[2 * p + 1] = (float)(radius * sin(angle));
        target[p] = (float)(p % 2);
    }
}

/* Random parameters; those of a layer with many inputs are smaller, so that sums stay near 1. */
static void make_params(float *params) {
    unsigned state = 1;
    for (int l = 0; l < LAYERS; l++) {
        for (int i = first_param(l); i < first_param(l + 1); i++) {
            state = state * 1664525u + 1013904223u;
            params[i] = ((float)(state >> 8) / (1 << 23) - 1) * sqrtf(6.0f / sizes[l]);
        }
    }
}

static void print_map(const double *params) {
    for (int row = 0; row < 21; row++) {
        for (int col = 0; col < 43; col++) {
            double answer = answer_on_host(params, (col - 21) / 19.0, (10 - row) / 9.0);
            putchar(answer > 0.5 ? '#' : '.');
        }
        putchar('\n');
    }
}

static float *new_device_array(size_t count, const float *h_from) {
    float *x;
    CHECK(cudaMalloc(&x, count * sizeof(float)));
    if (h_from) CHECK(cudaMemcpy(x, h_from, count * sizeof(float), cudaMemcpyHostToDevice));
    return x;
}

int main(void) {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        printf("no CUDA device: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    float h_points[2 * POINTS], h_target[POINTS], h_answer[POINTS];
    float h_params[PARAMS], h_velocity[PARAMS] = {};
    double params[PARAMS];
    make_points(h_points, h_target);
    make_params(h_params);
    printf("device: %s; %d points, %d parameters\n", device.name, POINTS, PARAMS);

    Network net = {};
    net.params = new_device_array(PARAMS, h_params);
    net.gradient = new_device_array(PARAMS, NULL);
    net.velocity = new_device_array(PARAMS, h_velocity); /* zeros */
    net.target = new_device_array(POINTS, h_target);
    net.values[0] = new_device_array(2 * POINTS, h_points);
    for (int l = 1; l <= LAYERS; l++) {
        net.values[l] = new_device_array((size_t)POINTS * sizes[l], NULL);
        net.deltas[l] = new_device_array((size_t)POINTS * sizes[l], NULL);
    }

    double difference = 0, us = 0, launch_us = 0, loss = 0, answers_differ = 0;
    for (int step = 0; step < CHECKED_STEPS; step++) {
        difference = larger(difference, check_step(&net, h_points, h_target, h_velocity));
    }
    printf("%d steps against the C loop: largest difference %.1e\n", CHECKED_STEPS, difference);

    int right = 0;
    for (int step = CHECKED_STEPS; step <= STEPS; step++) {
        if (step % 100 == 0) {
            CHECK(cudaMemcpy(h_params, net.params, sizeof h_params, cudaMemcpyDeviceToHost));
            for (int i = 0; i < PARAMS; i++) params[i] = h_params[i];
            loss = loss_on_host(params, h_points, h_target);
            printf("step %3d: loss %.4f\n", step, loss);
        }
        if (step == STEPS) break;
        double start = now_us();
        train_step(&net);
        launch_us += now_us() - start; /* all are launched, few are done */
        CHECK(cudaDeviceSynchronize());
        us += now_us() - start;
    }
    run_forward(&net);
    CHECK(cudaMemcpy(h_answer, net.values[LAYERS], sizeof h_answer, cudaMemcpyDeviceToHost));
    for (int p = 0; p < POINTS; p++) {
        double answer = answer_on_host(params, h_points[2 * p], h_points[2 * p + 1]);
        answers_differ = larger(answers_differ, h_answer[p] - answer);
        right += (h_answer[p] > 0.5f) == (h_target[p] == 1);
    }
    print_map(params);
    printf("%d of %d points right, answers within %.1e of the C loop's\n", right, POINTS,
           answers_differ);
    printf("measured: %.1f us a step of %d kernels, the last of which is launched after %.1f us\n",
           us / (STEPS - CHECKED_STEPS), 3 * LAYERS + 1, launch_us / (STEPS - CHECKED_STEPS));

    for (int l = 0; l <= LAYERS; l++) {
        CHECK(cudaFree(net.values[l]));
        CHECK(cudaFree(net.deltas[l])); /* deltas[0] is NULL, and freeing that is allowed */
    }
    CHECK(cudaFree(net.params));
    CHECK(cudaFree(net.gradient));
    CHECK(cudaFree(net.velocity));
    CHECK(cudaFree(net.target));
    return difference <= 1e-5 && answers_differ <= 1e-4 && loss <= 0.05 && right >= 250 ? 0 : 1;
}

/* Exercises (solutions/17_network.cu):
 *
 * 1. Train by ADAM, the method that most networks are trained with. Each parameter has two running
 *    means, of its gradient g and of its square, and divides one by the root of the other:
 *        mean = 0.9 mean + 0.1 g,  square = 0.999 square + 0.001 g g,
 *        parameter -= rate * (mean / (1 - 0.9^step)) / (sqrt(square / (1 - 0.999^step)) + 1e-8)
 *    with step = 1, 2, 3, ... and a rate of 0.02. The divisions by 1 - 0.9^step are there because
 *    the means begin at 0. check_step() knows the old rule: leave out its comparison of `after`,
 *    and keep that of the gradient. How many steps until the loss is below 0.05?
 * 2. Let the network learn a curve: one input x, one output without the sigmoid, the loss is the
 *    mean of (answer - sin(3 x))^2 / 2. What changes in last_delta, and why is it so little? */
