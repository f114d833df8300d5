/* Static and dynamic shared memory, filled with poison before each block: 0xFF, which is NaN or -1,
 * and in one of the order check's two runs another value.
 *
 * A __shared__ variable is a thread-local (cuda_builtins.h), so all of them, of every kernel, lie
 * in the module's TLS block, one copy per worker. That block grows with the library and is too
 * large to fill for each block of threads. So it is filled once per worker, and after a block only
 * what its kernel uses is filled again: parts of it, which may lie megabytes apart. What a kernel
 * uses is found by looking for bytes that have changed, in its first launches and in some later
 * ones, for a branch may use more. */
#include "worker.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <link.h>
#include <map>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace pvg_sim {

/* Kernels may rely on a multiple of 16 bytes, and get no multiple of more. */
static const size_t LEAD = 16;

/* What lies before and behind it is out of bounds. */
static void guard_dynamic_shared([[maybe_unused]] const Worker &w, [[maybe_unused]] bool on) {
#if defined(__SANITIZE_ADDRESS__)
    char *const first = w.dynamic_shared - LEAD, *const end =
                                                     w.dynamic_shared + w.launch->shared_bytes;
    if (on) {
        __asan_poison_memory_region(first, LEAD);
        __asan_poison_memory_region(end, 1);
    } else {
        __asan_unpoison_memory_region(first, LEAD + w.launch->shared_bytes + 1);
    }
#endif
}

bool obtain_dynamic_shared(Worker &w) {
    void *memory = nullptr;
    if (posix_memalign(&memory, 1024, LEAD + w.launch->shared_bytes + 1)) return false;
    w.dynamic_shared = static_cast<char *>(memory) + LEAD;
    guard_dynamic_shared(w, true);
    return true;
}

void free_dynamic_shared(Worker &w) {
    if (!w.dynamic_shared) return;
    guard_dynamic_shared(w, false);
    free(w.dynamic_shared - LEAD);
    w.dynamic_shared = nullptr;
}

static void set_builtins(Worker &w) {
    worker = &w;
    blockDim = w.launch->block, gridDim = w.launch->grid;
}

void enter_block(Worker &w) {
    set_builtins(w);
    blockIdx = w.place;
}

static bool is_dynamic_shared(const Worker &w, const void *address) {
    return (size_t)(static_cast<const char *>(address) - w.dynamic_shared) < w.launch->shared_bytes;
}

#if defined(__SANITIZE_ADDRESS__) /* plain statics with redzones, which are not poisoned */

void begin_shared(Worker &w) { set_builtins(w); }

void poison_shared(Worker &w) { memset(w.dynamic_shared, w.grid->poison, w.launch->shared_bytes); }

void end_shared(Worker &) {}

bool is_shared(const Worker &w, const void *address) { return is_dynamic_shared(w, address); }

#else

/* ---- The module's TLS block: as far from `worker` in every OS thread ---- */

static ptrdiff_t block_start;
static size_t block_bytes;

static int find_tls_block(dl_phdr_info *info, size_t, void *) {
    ElfW(Addr) here = reinterpret_cast<ElfW(Addr)>(&find_tls_block);
    bool mine = false;
    const ElfW(Phdr) *tls = nullptr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) &part = info->dlpi_phdr[i];
        ElfW(Addr) start = info->dlpi_addr + part.p_vaddr;
        if (part.p_type == PT_LOAD && here >= start && here < start + part.p_memsz) mine = true;
        if (part.p_type == PT_TLS) tls = &part;
    }
    if (mine && tls) {
        block_start = static_cast<char *>(info->dlpi_tls_data) - reinterpret_cast<char *>(&worker);
        block_bytes = tls->p_memsz;
    }
    return mine;
}

/* The compiler must not know what this is reached from: it would call writes beyond `worker` errors
 * (and, built with _FORTIFY_SOURCE, end the process). */
static char *tls_block() {
    char *own = reinterpret_cast<char *>(&worker);
    asm("" : "+r"(own));
    return own + block_start;
}

/* ---- What a kernel uses of it ---- */

static std::mutex footprints_lock;
static auto &footprints = *new std::map<const void *, Footprint>;

static bool is_filled(const char *from, size_t bytes, unsigned char value) {
    return (unsigned char)from[0] == value && memcmp(from, from + 1, bytes - 1) == 0;
}

/* Adds ranges to those of a footprint. Near ones become one: they may be parts of a variable. */
static void add_ranges(Footprint &f, const std::vector<Footprint::Range> &more) {
    const size_t near = 16 << 10;
    std::vector<Footprint::Range> all(f.ranges);
    all.insert(all.end(), more.begin(), more.end());
    std::sort(all.begin(), all.end(), [](auto &a, auto &b) { return a.first < b.first; });
    f.ranges.clear();
    for (const Footprint::Range &next : all) {
        if (f.ranges.empty() || next.first > f.ranges.back().last + near)
            f.ranges.push_back(next);
        else
            f.ranges.back().last = std::max(f.ranges.back().last, next.last);
    }
}

/* Makes w.footprint hold all that has changed. The simulator's own variables do not count. */
static void widen_footprint(Worker &w) {
    const size_t piece = 256;
    std::vector<Footprint::Range> changed;
    const unsigned char poison = w.grid->poison;
    for (void *own : {(void *)&threadIdx, (void *)&blockIdx}) memset(own, poison, sizeof(uint3));
    for (void *own : {(void *)&blockDim, (void *)&gridDim}) memset(own, poison, sizeof(dim3));
    memset((void *)&worker, poison, sizeof worker);
    for (size_t at = 0; at < block_bytes; at += piece) {
        size_t bytes = std::min(piece, block_bytes - at);
        if (is_filled(tls_block() + at, bytes, poison)) continue;
        changed.push_back({at, at + bytes});
    }
    add_ranges(w.footprint, changed);
    set_builtins(w);
}

static void poison_footprint(Worker &w) {
    for (const Footprint::Range &r : w.footprint.ranges)
        memset(tls_block() + r.first, w.grid->poison, r.last - r.first);
    set_builtins(w);
}

static void fill_block(Worker &w, unsigned char value) {
    memset(tls_block(), value, block_bytes);
    set_builtins(w);
}

void begin_shared(Worker &w) {
    const unsigned first_launches = 4, then_each = 64;
    std::lock_guard<std::mutex> hold(footprints_lock);
    if (!block_bytes) dl_iterate_phdr(find_tls_block, nullptr);
    if (!w.has_poison || w.grid->poison != POISON) fill_block(w, w.grid->poison);
    w.has_poison = true;
    set_builtins(w);
    Footprint &known = footprints[w.launch->function];
    known.launches++;
    w.footprint = known;
    w.looks_closely = known.launches <= first_launches || known.launches % then_each == 0;
}

void poison_shared(Worker &w) {
    memset(w.dynamic_shared, w.grid->poison, w.launch->shared_bytes);
    if (w.blocks_run == 0) return; /* the launch before left it clean */
    if (w.blocks_run == 1 && w.looks_closely) widen_footprint(w);
    poison_footprint(w);
}

void end_shared(Worker &w) {
    if (w.looks_closely) {
        widen_footprint(w);
        std::lock_guard<std::mutex> hold(footprints_lock);
        Footprint &known = footprints[w.launch->function];
        add_ranges(known, w.footprint.ranges);
    }
    poison_footprint(w);
    if (w.grid->poison != POISON) fill_block(w, POISON);
}

bool is_shared(const Worker &w, const void *address) {
    return (size_t)(static_cast<const char *>(address) - tls_block()) < block_bytes ||
           is_dynamic_shared(w, address);
}

#endif

} /* namespace pvg_sim */
