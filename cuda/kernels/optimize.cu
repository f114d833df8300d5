// pvg_optimize: a step of SGD, Adam or RMSprop for all parameters of a network.
//
// A thread reads 16 bytes of the parameter, of each of its states and of the gradient, and writes
// the first ones back: nothing is read or written twice, and there are no arrays in between.
#include "arrays/operation.cuh"
#include "kernels/elementwise.cuh"
#include "kernels/together.cuh"
#include "runtime/graph.cuh"
#include "runtime/stream.cuh"

namespace pvg {

namespace {

constexpr int optimize_threads = 256;

// The algorithms. Each changes x: a parameter, its states, and last the gradient. Its numbers are
// computed in float64 and rounded once, on the host or, if they are renewed for each launch of a
// recording, by each thread: so that both give the same bits, no number is of two operations. C is
// the type that elements are computed in.

template <class C> struct Decay { // what all begin with
    C rate, weight_decay;
    bool maximize, decays;

    __host__ __device__ explicit Decay(const double *numbers)
        : rate(static_cast<C>(numbers[PVG_UPDATE_RATE])),
          weight_decay(static_cast<C>(numbers[PVG_UPDATE_WEIGHT_DECAY])),
          maximize(numbers[PVG_UPDATE_MAXIMIZE] != 0),
          decays(numbers[PVG_UPDATE_WEIGHT_DECAY] != 0) {}
    Decay() = default;
    __device__ __forceinline__ C gradient(C p, C g) const {
        g = maximize ? -g : g;
        return decays ? g + p * weight_decay : g;
    }
};

template <class C> struct Sgd : Decay<C> {
    C momentum, fresh; // fresh: 1 - dampening
    bool nesterov, first;

    Sgd() = default;
    __host__ __device__ explicit Sgd(const double *numbers)
        : Decay<C>(numbers), momentum(static_cast<C>(numbers[PVG_UPDATE_MOMENTUM])),
          fresh(static_cast<C>(1 - numbers[PVG_UPDATE_DAMPENING])),
          nesterov(numbers[PVG_UPDATE_NESTEROV] != 0), first(numbers[PVG_UPDATE_FIRST] != 0) {}
    static int states(const double *numbers) { return numbers[PVG_UPDATE_MOMENTUM] != 0; }
    template <int A> __device__ __forceinline__ void operator()(C (&x)[A]) const {
        C g = this->gradient(x[0], x[A - 1]);
        if constexpr (A == 3) {
            x[1] = first ? g : x[1] * momentum + g * fresh;
            g = nesterov ? g + x[1] * momentum : x[1];
        }
        x[0] = x[0] - g * this->rate;
    }
};

template <class C> struct Adam : Decay<C> {
    C beta1, rest1, beta2, rest2, epsilon, width, kept; // rest: 1 - beta; kept: of the weights

    Adam() = default;
    __host__ __device__ explicit Adam(const double *numbers) : Decay<C>(numbers) {
        const double one = numbers[PVG_UPDATE_BETA1], two = numbers[PVG_UPDATE_BETA2];
        beta1 = static_cast<C>(one), rest1 = static_cast<C>(1 - one);
        beta2 = static_cast<C>(two), rest2 = static_cast<C>(1 - two);
        epsilon = static_cast<C>(numbers[PVG_UPDATE_EPSILON]);
        width = static_cast<C>(sqrt(numbers[PVG_UPDATE_SHARE2]));
        this->rate = static_cast<C>(numbers[PVG_UPDATE_RATE] / numbers[PVG_UPDATE_SHARE1]);
        kept = static_cast<C>(1 - numbers[PVG_UPDATE_SHRINK]);
    }
    static int states(const double *numbers) { return numbers[PVG_UPDATE_AMSGRAD] != 0 ? 3 : 2; }
    template <int A> __device__ __forceinline__ void operator()(C (&x)[A]) const {
        const C g = this->gradient(x[0], x[A - 1]);
        x[1] = x[1] * beta1 + g * rest1;
        x[2] = x[2] * beta2 + g * g * rest2;
        C square = x[2];
        if constexpr (A == 5) x[3] = square = maximum(x[3], square);
        x[0] = x[0] * kept - x[1] / (sqrt(square) / width + epsilon) * this->rate;
    }
};

template <class C> struct RmsProp : Decay<C> {
    C alpha, rest, epsilon, momentum; // rest: 1 - alpha
    bool centered;

    RmsProp() = default;
    __host__ __device__ explicit RmsProp(const double *numbers)
        : Decay<C>(numbers), alpha(static_cast<C>(numbers[PVG_UPDATE_BETA2])),
          rest(static_cast<C>(1 - numbers[PVG_UPDATE_BETA2])),
          epsilon(static_cast<C>(numbers[PVG_UPDATE_EPSILON])),
          momentum(static_cast<C>(numbers[PVG_UPDATE_MOMENTUM])),
          centered(numbers[PVG_UPDATE_CENTERED] != 0) {}
    static int states(const double *numbers) {
        return 1 + (numbers[PVG_UPDATE_CENTERED] != 0) + (numbers[PVG_UPDATE_MOMENTUM] != 0);
    }
    template <int A> __device__ __forceinline__ void operator()(C (&x)[A]) const {
        const C g = this->gradient(x[0], x[A - 1]);
        x[1] = x[1] * alpha + g * g * rest;
        C square = x[1];
        if constexpr (A > 3)
            if (centered) {
                x[2] = x[2] * alpha + g * rest;
                square = square - x[2] * x[2];
            }
        C change = g / (sqrt(square) + epsilon);
        if constexpr (A > 3)
            if (A == 5 || !centered) change = x[A - 2] = x[A - 2] * momentum + change;
        x[0] = x[0] - change * this->rate;
    }
};

// What a launch does: an algorithm, and where its numbers are if they are not the recorded ones.
template <class Algorithm> struct Step {
    Algorithm recorded;
    const double *renewed;

    __device__ __forceinline__ Algorithm algorithm() const {
        return renewed ? Algorithm(renewed) : recorded;
    }
};

template <class T, class List>
__global__ void __launch_bounds__(optimize_threads)
    optimize_kernel(const __grid_constant__ List batch) {
    using C = ComputeType<T>;
    constexpr int A = List::arrays, count = 16 / sizeof(T), chunk = optimize_threads * count;
    using V = Vector<T, count>;
    int64_t number;
    const Part<A> &part = batch.find(blockIdx.x, &number);
    const auto change = batch.job.algorithm();
    const int64_t begin = number * chunk;
    if (begin + chunk <= part.size && is_aligned(part)) {
        const int64_t first = begin + threadIdx.x * count;
        V in[A];
#pragma unroll
        for (int a = 0; a < A - 1; a++)
            in[a] = *reinterpret_cast<const V *>(static_cast<const T *>(part.at[a]) + first);
        in[A - 1] = load_once<T, count>(static_cast<const T *>(part.at[A - 1]) + first);
#pragma unroll
        for (int e = 0; e < count; e++) {
            C x[A];
#pragma unroll
            for (int a = 0; a < A; a++) x[a] = C(in[a].element[e]);
            change(x);
#pragma unroll
            for (int a = 0; a < A - 1; a++) in[a].element[e] = T(x[a]);
        }
#pragma unroll
        for (int a = 0; a < A - 1; a++) store_at_once(static_cast<T *>(part.at[a]) + first, in[a]);
        return;
    }
    for (int e = 0; e < count; e++) {
        const int64_t i = begin + e * optimize_threads + threadIdx.x;
        if (i >= part.size) return;
        C x[A];
#pragma unroll
        for (int a = 0; a < A; a++) x[a] = C(static_cast<const T *>(part.at[a])[i]);
        change(x);
#pragma unroll
        for (int a = 0; a < A - 1; a++) static_cast<T *>(part.at[a])[i] = T(x[a]);
    }
}

// All parameters of one dtype; `arrays` are n parameters, n of each state, n gradients.
template <class T, int A, class Job>
int launch_optimize(Call &call, const Together &arrays, int n, const Job &job) {
    const auto launch = [&](const auto &batch) -> int {
        PVG_LAUNCH((optimize_kernel<T, std::decay_t<decltype(batch)>>),
                   blocks_for(batch.chunks(), 1), optimize_threads, 0, call.stream, batch);
        return PVG_OK;
    };
    Batches<A, Job> batches(job, optimize_threads * (16 / sizeof(T)));
    for (int i = 0; i < n; i++) {
        if (arrays[i]->dtype != DtypeOf<T>::value) continue;
        void *at[A];
        for (int a = 0; a < A; a++) at[a] = arrays[a * n + i]->data;
        PVG_PASS(batches.add(at, arrays[i]->size, launch));
    }
    return batches.finish(launch);
}

// Launches of an algorithm with so many states, which is one of those given.
template <template <class> class Algorithm, int... STATES>
int launch_algorithm(Call &call, const Together &arrays, int n, const double *numbers,
                     const double *renewed) {
    const int states = Algorithm<float>::states(numbers);
    const auto of_dtype = [&](auto tag) -> int {
        using T = typename decltype(tag)::type;
        using Chosen = Algorithm<ComputeType<T>>;
        const Step<Chosen> job = {Chosen(numbers), renewed};
        int status = PVG_OK;
        (void)((states == STATES &&
                (status = launch_optimize<T, STATES + 2>(call, arrays, n, job), true)) ||
               ...);
        return status;
    };
    for (const int dtype : {PVG_FLOAT16, PVG_BFLOAT16, PVG_FLOAT32, PVG_FLOAT64})
        PVG_PASS(dispatch<floats>(dtype, of_dtype));
    return PVG_OK;
}

int check_algorithm(int algorithm, const double *numbers, int *states) {
    PVG_REQUIRE(numbers, PVG_ERROR_VALUE, "there are no numbers");
    switch (algorithm) {
    case PVG_SGD: *states = Sgd<float>::states(numbers); return PVG_OK;
    case PVG_ADAM:
        for (const int share : {PVG_UPDATE_SHARE1, PVG_UPDATE_SHARE2})
            PVG_REQUIRE(numbers[share] > 0 && numbers[share] <= 1, PVG_ERROR_VALUE,
                        "the share of means is above 0, at most 1, not %g", numbers[share]);
        *states = Adam<float>::states(numbers);
        return PVG_OK;
    case PVG_RMSPROP: *states = RmsProp<float>::states(numbers); return PVG_OK;
    }
    PVG_REQUIRE(false, PVG_ERROR_VALUE, "%d is no algorithm of optimisers", algorithm);
}

// A recording does the same again and again: not what is different in the next step.
int check_recording(const Call &call, int algorithm, pvg_array *const *targets, int n,
                    const double *numbers, const pvg_array *renewed) {
    if (!is_captured(call.stream)) return PVG_OK;
    PVG_REQUIRE(algorithm != PVG_ADAM || renewed, PVG_ERROR_VALUE,
                "recording a graph: a step of Adam with numbers of the host cannot be part of it, "
                "as its corrections are of the number of the step; put them on the device");
    const bool first =
        algorithm == PVG_SGD && numbers[PVG_UPDATE_MOMENTUM] != 0 && numbers[PVG_UPDATE_FIRST] != 0;
    const Graph *graph = thread_recording(call.device);
    bool made = first;
    for (int i = 0; i < n; i++) made = made || (graph && targets[i]->storage->graph == graph);
    PVG_REQUIRE(!made, PVG_ERROR_VALUE,
                "recording a graph: states that begin in it would begin anew at each launch; take "
                "a step before");
    return PVG_OK;
}

int check_shapes(const pvg_array *p, const pvg_array *other, const char *what) {
    PVG_REQUIRE(same_shape(other, p->ndim, p->shape), PVG_ERROR_VALUE,
                "a %s of shape %s for a parameter of %s", what, shape_text(other), shape_text(p));
    PVG_REQUIRE(other->dtype == p->dtype, PVG_ERROR_TYPE, "a %s of dtype %s for a parameter of %s",
                what, dtype_name(other->dtype), dtype_name(p->dtype));
    return PVG_OK;
}

int run_optimize(Call &call, int algorithm, pvg_array *const *targets,
                 const pvg_array *const *gradients, int n, const double *numbers,
                 const pvg_array *renewed) {
    int states = 0, device = -1, other = -1;
    PVG_REQUIRE(n >= 0 && n <= INT32_MAX / 8, PVG_ERROR_VALUE, "%d parameters", n);
    PVG_PASS(check_algorithm(algorithm, numbers, &states));
    if (n == 0) return PVG_OK;
    PVG_REQUIRE(targets && gradients, PVG_ERROR_VALUE, "the lists of arrays are missing");
    PVG_PASS(check_operands(targets, n * (1 + states), &device));
    PVG_PASS(check_operands(gradients, n, &other));
    PVG_REQUIRE(device == other, PVG_ERROR_VALUE,
                "parameters live on device %d, their gradients on device %d", device, other);
    for (int i = 0; i < n; i++) {
        for (int s = 1; s <= states; s++)
            PVG_PASS(check_shapes(targets[i], targets[s * n + i], "state"));
        PVG_PASS(check_shapes(targets[i], gradients[i], "gradient"));
    }
    PVG_PASS(check_numbers(renewed, PVG_FLOAT64, PVG_UPDATE_COUNT, device));
    PVG_PASS(call.begin(device));
    PVG_PASS(check_recording(call, algorithm, targets, n * (1 + states), numbers, renewed));
    Together arrays;
    PVG_PASS(arrays.open(call, targets, n * (1 + states), gradients, n));
    if (renewed) PVG_PASS(call.reads(renewed));
    const double *at = renewed ? data<double>(renewed) : nullptr;
    switch (algorithm) {
    case PVG_SGD: PVG_PASS((launch_algorithm<Sgd, 0, 1>(call, arrays, n, numbers, at))); break;
    case PVG_ADAM: PVG_PASS((launch_algorithm<Adam, 2, 3>(call, arrays, n, numbers, at))); break;
    default: PVG_PASS((launch_algorithm<RmsProp, 1, 2, 3>(call, arrays, n, numbers, at))); break;
    }
    return arrays.close(call);
}

} // namespace

Operations optimize_operations() {
    static constexpr Operation rows[] = {
        {PVG_OPTIMIZE, "optimize", Family::other, floats, Gives::none},
    };
    return rows;
}

} // namespace pvg

PVG_API int pvg_optimize(int algorithm, pvg_array *const *targets,
                         const pvg_array *const *gradients, int n, const double *numbers,
                         const pvg_array *renewed) {
    pvg::Call call("optimize");
    return pvg::run_optimize(call, algorithm, targets, gradients, n, numbers, renewed);
}
