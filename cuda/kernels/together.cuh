// Many arrays in one launch: what optimisers and norms do with all parameters of a network.
//
// A launch gets a Batch: what is to be done, and a list of parts, each the same elements of A
// arrays. As many parts as a kernel's parameters can describe go together: so many bytes of them
// are copied by each launch that there is a kernel for short lists, and one for long ones. A block
// has one chunk of one part, which it looks for in the list; all its threads find the same one.
#pragma once
#include "arrays/call.cuh"
#include "arrays/vector.cuh"
#include <algorithm>
#include <stdlib.h>

namespace pvg {

// Of a kernel's parameters: a short list's, and the most that a driver of this toolkit takes.
constexpr size_t short_list_bytes = 4096, long_list_bytes = 32764;

template <int A> struct Part {
    void *at[A];
    int64_t size; // elements; not 0
    int64_t end;  // chunks of the list up to here
};

template <int A, class Job, size_t BYTES> struct Batch {
    static constexpr int arrays = A;
    static constexpr int most = static_cast<int>((BYTES - sizeof(Job) - 16) / sizeof(Part<A>));
    Job job;
    int count;
    Part<A> parts[most];

    int64_t chunks() const { return count ? parts[count - 1].end : 0; }
    // The part that a chunk of the list belongs to, and which of its chunks it is.
    __device__ __forceinline__ const Part<A> &find(int64_t chunk, int64_t *its_own) const {
        int low = 0, high = count - 1;
        while (low < high) {
            const int middle = (low + high) / 2;
            if (chunk >= parts[middle].end)
                low = middle + 1;
            else
                high = middle;
        }
        *its_own = chunk - (low ? parts[low - 1].end : 0);
        return parts[low];
    }
};

// Whether 16 bytes of each array can be moved at once.
template <int A> __device__ __forceinline__ bool is_aligned(const Part<A> &part) {
    uintptr_t bits = 0;
#pragma unroll
    for (int a = 0; a < A; a++) bits |= reinterpret_cast<uintptr_t>(part.at[a]);
    return bits % 16 == 0;
}

// 16 aligned bytes that nobody needs again soon.
template <class T, int V>
__device__ __forceinline__ Vector<T, V> load_once(const T *from) {
    static_assert(sizeof(T) * V == 16);
    const uint4 words = __ldcs(reinterpret_cast<const uint4 *>(from));
    Vector<T, V> vector;
    memcpy(&vector, &words, sizeof vector);
    return vector;
}

// Parts from a list, launched whenever a batch is full: launch(batch) for each, a long or a short
// one.
template <int A, class Job> struct Batches {
    using Long = Batch<A, Job, long_list_bytes>;
    using Short = Batch<A, Job, short_list_bytes>;
    static_assert(sizeof(Long) <= long_list_bytes && sizeof(Short) <= short_list_bytes);
    Long batch;
    int64_t per_chunk; // elements

    Batches(const Job &job, int64_t chunk) : per_chunk(chunk) { batch.job = job, batch.count = 0; }

    // Errors: those of launch.
    template <class F> int add(void *const (&at)[A], int64_t size, F &&launch) {
        if (size == 0) return PVG_OK;
        const int64_t chunks = size / per_chunk + (size % per_chunk != 0);
        if (batch.count == batch.most || batch.chunks() + chunks > INT32_MAX)
            PVG_PASS(finish(launch));
        Part<A> &part = batch.parts[batch.count];
        for (int a = 0; a < A; a++) part.at[a] = at[a];
        part.size = size, part.end = batch.chunks() + chunks;
        batch.count++;
        return PVG_OK;
    }
    template <class F> int finish(F &&launch) {
        if (batch.count > Short::most) {
            PVG_PASS(launch(batch));
        } else if (batch.count) {
            Short few;
            few.job = batch.job, few.count = batch.count;
            std::copy_n(batch.parts, batch.count, few.parts);
            PVG_PASS(launch(few));
        }
        batch.count = 0;
        return PVG_OK;
    }
};

// Arrays of a call as such kernels take them: contiguous, and none that is written to sharing its
// memory with another. Of what is not so a copy is used instead, and in the end copied back, so
// that the result is as if all had been read before the first was written.
struct Together {
    // `written` arrays that are written to, and then those that are only read. All memory is there,
    // and the stream has waited for others, before the caller's first launch.
    // Errors: VALUE (read-only), TYPE (not of floats), MEMORY, HOST_MEMORY.
    int open(Call &call, pvg_array *const *targets, int written, const pvg_array *const *sources,
             int read) {
        const int n = written + read;
        items = static_cast<Item *>(calloc(static_cast<size_t>(n) + 1, sizeof(Item)));
        PVG_REQUIRE(items, PVG_ERROR_HOST_MEMORY, "no host memory for a list of %d arrays", n);
        count = n, targets_count = written;
        for (int i = 0; i < n; i++) {
            items[i].given =
                i < written ? targets[i] : const_cast<pvg_array *>(sources[i - written]);
            PVG_PASS(check_kinds(items[i].given->dtype, floats));
            PVG_REQUIRE(i >= written || !items[i].given->readonly, PVG_ERROR_VALUE,
                        "an array of shape %s that would be written to is read-only",
                        shape_text(items[i].given));
            items[i].apart = !is_contiguous(items[i].given);
        }
        if (written) PVG_PASS(part_overlapping());
        for (int i = 0; i < n; i++) PVG_PASS(prepare(call, &items[i], i < written));
        return PVG_OK;
    }
    const pvg_array *operator[](int i) const { return items[i].used; }
    // Copies back what was written to copies.
    int close(Call &call) {
        for (int i = 0; i < targets_count; i++)
            if (items[i].apart) PVG_PASS(copy_array(call, items[i].used, items[i].given));
        return PVG_OK;
    }

    Together() = default;
    Together(const Together &) = delete;
    Together &operator=(const Together &) = delete;
    ~Together() {
        for (int i = 0; i < count; i++)
            if (items[i].used != items[i].given) release(items[i].used);
        free(items);
    }

private:
    struct Item {
        pvg_array *given, *used;
        bool apart;
    };
    struct Span {
        uintptr_t begin, end;
        int item;
    };
    Item *items = nullptr;
    int count = 0, targets_count = 0;

    static int prepare(Call &call, Item *item, bool is_written) {
        if (item->apart) {
            PVG_PASS(new_array(call.device, item->given->dtype, item->given->ndim,
                               item->given->shape, &item->used));
            PVG_PASS(copy_array(call, item->given, item->used));
            if (is_written) PVG_PASS(call.writes(item->given)); // later there is no wait to fail
        } else {
            item->used = item->given;
        }
        return is_written ? call.writes(item->used) : call.reads(item->used);
    }

    // Sorted by where they begin, every array that overlaps an earlier one overlaps the one of
    // these that reaches farthest; so if a pair has a target, one such is found.
    int part_overlapping() {
        Span *spans = static_cast<Span *>(malloc((static_cast<size_t>(count) + 1) * sizeof(Span)));
        PVG_REQUIRE(spans, PVG_ERROR_HOST_MEMORY, "no host memory for a list of %d arrays", count);
        int n = 0;
        for (int i = 0; i < count; i++) {
            const pvg_array *a = items[i].given;
            if (items[i].apart || a->size == 0) continue;
            const uintptr_t begin = reinterpret_cast<uintptr_t>(a->data);
            spans[n++] = {begin, begin + static_cast<uintptr_t>(a->size * dtype_size(a->dtype)), i};
        }
        std::sort(spans, spans + n, [](const Span &a, const Span &b) { return a.begin < b.begin; });
        for (int i = 1, far = 0; i < n; i++) {
            if (spans[i].begin < spans[far].end)
                for (const int item : {spans[far].item, spans[i].item})
                    if (item < targets_count) items[item].apart = true;
            if (spans[i].end > spans[far].end) far = i;
        }
        free(spans);
        return PVG_OK;
    }
};

} // namespace pvg
