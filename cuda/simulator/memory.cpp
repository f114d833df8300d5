/* Device memory, pinned and managed memory: allocations, what surrounds them, whose an address is.
 *
 * New device memory is filled with 0xFF (NaN, or -1), so that a read before a write shows. An
 * allocation ends at a page that cannot be touched, or less than 256 bytes before one (a card
 * aligns to 256 bytes); the bytes between, and up to 256 in front, hold a pattern that is compared
 * after each launch. AddressSanitizer builds take the memory from malloc instead, which finds a
 * single byte at the very access. Above VIRTUAL_BYTES the memory stays untouched, so that tests of
 * strides beyond 2^32 cost only the pages they use. */
#include "simulator.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/mman.h>

namespace pvg_sim {

static const size_t PAGE = 4096, ALIGNMENT = 256;
static const unsigned char PATTERN = 0xA5;

/* By base address. Never destroyed: memory may still be freed while the process exits. */
static auto &allocations = *new std::map<const char *, Allocation>;

static size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

/* ---- Finding ---- */

const Allocation *find_allocation(const void *address) {
    const char *at = static_cast<const char *>(address);
    auto next = allocations.upper_bound(at);
    if (next == allocations.begin()) return nullptr;
    const Allocation &found = std::prev(next)->second;
    return at <= found.base + found.bytes ? &found : nullptr;
}

const Allocation *next_allocation(const Allocation *previous) {
    auto next = previous ? allocations.upper_bound(previous->base) : allocations.begin();
    return next == allocations.end() ? nullptr : &next->second;
}

void describe_address(const void *address, char *text, size_t bytes) {
    const ptrdiff_t near = 1 << 20;
    const char *at = static_cast<const char *>(address);
    text[0] = 0;
    auto next = allocations.upper_bound(at);
    if (next != allocations.begin()) {
        const Allocation &before = std::prev(next)->second;
        ptrdiff_t past = at - (before.base + before.bytes);
        if (past < near) {
            snprintf(text, bytes, ", %td bytes past the end of an allocation of %zu bytes", past,
                     before.bytes);
            return;
        }
    }
    if (next != allocations.end() && next->second.base - at <= near) {
        snprintf(text, bytes, ", %td bytes in front of an allocation of %zu bytes",
                 next->second.base - at, next->second.bytes);
    }
}

/* ---- The pattern around an allocation ---- */

/* What lies in front of an allocation and behind it, up to the untouchable pages. */
struct Surroundings {
    char *front, *back;
    size_t front_bytes, back_bytes;
};

static Surroundings surroundings(const Allocation &a) {
    char *first = (char *)((uintptr_t)a.base / PAGE * PAGE), *end = a.base + a.bytes;
    size_t front = (size_t)(a.base - first);
    if (front > ALIGNMENT) front = ALIGNMENT;
    return {a.base - front, end, front, round_up((uintptr_t)end, PAGE) - (uintptr_t)end};
}

static bool is_pattern(const char *from, size_t bytes) {
    static const auto pattern = [] {
        struct { unsigned char bytes[ALIGNMENT]; } filled;
        memset(filled.bytes, PATTERN, sizeof filled.bytes);
        return filled;
    }();
    return memcmp(from, pattern.bytes, bytes) == 0; /* never more than ALIGNMENT bytes */
}

static void note_damage(const Allocation &a, const char *from, size_t bytes, Damage *damage) {
    for (size_t i = 0; i < bytes; i++) {
        if ((unsigned char)from[i] == PATTERN) continue;
        ptrdiff_t offset = from + i - a.base;
        if (!damage->allocation) damage->first = offset;
        damage->allocation = &a;
        damage->last = offset;
    }
}

bool find_damage(Damage *damage) {
    *damage = {nullptr, 0, 0};
    for (auto &[base, a] : allocations) {
        if (!a.mapped) continue;
        Surroundings s = surroundings(a);
        if (!is_pattern(s.front, s.front_bytes)) note_damage(a, s.front, s.front_bytes, damage);
        if (damage->allocation) return true;
        if (!is_pattern(s.back, s.back_bytes)) note_damage(a, s.back, s.back_bytes, damage);
        if (damage->allocation) return true;
    }
    return false;
}

void report_damage(const Damage &damage, const char *who) {
    const Allocation &a = *damage.allocation;
    ptrdiff_t bytes = damage.last - damage.first + 1;
    if (damage.first < 0) {
        report(cudaErrorIllegalAddress,
               "%s: %td bytes were written up to %td bytes in front of an allocation of %zu bytes",
               who, bytes, -damage.first, a.bytes);
    } else {
        report(cudaErrorIllegalAddress,
               "%s: %td bytes were written %td bytes past the end of an allocation of %zu bytes",
               who, bytes, damage.first - (ptrdiff_t)a.bytes, a.bytes);
    }
    Surroundings s = surroundings(a);
    memset(s.front, PATTERN, s.front_bytes);
    memset(s.back, PATTERN, s.back_bytes);
}

/* ---- Making and freeing ---- */

#if defined(__SANITIZE_ADDRESS__)

static bool obtain(Allocation &a) {
    void *memory = nullptr;
    if (posix_memalign(&memory, ALIGNMENT, a.bytes)) return false;
    a.base = static_cast<char *>(memory);
    a.mapped = 0;
    return true;
}

static void unmap(const Allocation &) {}

#else

/* Device memory that was freed stays mapped, untouchable: the system would clear new pages. */
static const size_t MOST_SPARE = 64 << 20;
static auto &spare = *new std::multimap<size_t, char *>; /* by the bytes mapped */
static size_t spare_bytes = 0;

static char *take_spare(size_t bytes) {
    auto found = spare.find(bytes);
    if (found == spare.end()) return nullptr;
    char *memory = found->second;
    spare.erase(found);
    spare_bytes -= bytes;
    return memory;
}

static bool keep_spare(char *memory, size_t bytes) {
    if (bytes > MOST_SPARE / 8 || mprotect(memory, bytes, PROT_NONE)) return false;
    while (spare_bytes + bytes > MOST_SPARE) {
        auto largest = std::prev(spare.end());
        spare_bytes -= largest->first;
        munmap(largest->second, largest->first);
        spare.erase(largest);
    }
    spare.emplace(bytes, memory);
    spare_bytes += bytes;
    return true;
}

static char *map_untouchable(size_t bytes, MemoryKind kind) {
    char *memory = kind == MemoryKind::pinned ? nullptr : take_spare(bytes);
    if (memory) return memory;
    void *fresh =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return fresh == MAP_FAILED ? nullptr : static_cast<char *>(fresh);
}

static bool obtain(Allocation &a) {
    size_t usable = round_up(a.bytes, PAGE);
    a.mapped = usable + 2 * PAGE;
    char *memory = map_untouchable(a.mapped, a.kind);
    if (!memory) return false;
    char *first = memory + PAGE;
    if (mprotect(first, usable, PROT_READ | PROT_WRITE)) {
        munmap(memory, a.mapped);
        return false;
    }
    a.base = first + usable - round_up(a.bytes, ALIGNMENT);
    Surroundings s = surroundings(a);
    memset(s.front, PATTERN, s.front_bytes);
    memset(s.back, PATTERN, s.back_bytes);
    return true;
}

static void unmap(const Allocation &a) {
    char *memory = (char *)((uintptr_t)a.base / PAGE * PAGE) - PAGE;
    if (a.kind == MemoryKind::pinned || !keep_spare(memory, a.mapped)) munmap(memory, a.mapped);
}

#endif

static void give_up(const Allocation &a) {
    if (a.registered) return;
    if (a.mapped) {
        unmap(a);
    } else {
        free(a.base);
    }
}

static size_t free_bytes_of(const Card &card) {
    size_t all = (size_t)settings.memory;
    return all - std::min(all, card.bytes_in_use);
}

static cudaError_t allocate(void **result, size_t bytes, MemoryKind kind) {
    Card &card = cards[current_device()];
    bool on_card = kind != MemoryKind::pinned;
    if (!result) return cudaErrorInvalidValue;
    *result = nullptr;
    if (card.sticky) return card.sticky;
    if (cudaError_t error = check_unsafe()) return error;
    if (injected(on_card ? FAULT_MALLOC : FAULT_PINNED)) return cudaErrorMemoryAllocation;
    if (!bytes) return cudaSuccess;
    if (bytes > (on_card ? free_bytes_of(card) : (size_t)settings.memory))
        return cudaErrorMemoryAllocation;
    OpenMemory open;
    Allocation a = {nullptr, bytes, kind, current_device(), 0, false};
    if (!obtain(a)) return cudaErrorMemoryAllocation;
    if (on_card && bytes <= VIRTUAL_BYTES) memset(a.base, POISON, bytes);
    if (on_card) card.bytes_in_use += bytes, counters[COUNT_LIVE_BYTES] += (long long)bytes;
    counters[on_card ? COUNT_MALLOC : COUNT_PINNED_MALLOC]++;
    counters[on_card ? COUNT_LIVE_ALLOCATIONS : COUNT_LIVE_PINNED]++;
    allocations[a.base] = a;
    *result = a.base;
    return cudaSuccess;
}

static void forget(std::map<const char *, Allocation>::iterator found) {
    Allocation a = found->second;
    allocations.erase(found);
    give_up(a);
    if (a.kind == MemoryKind::pinned) {
        counters[COUNT_LIVE_PINNED]--;
        return;
    }
    cards[a.device].bytes_in_use -= a.bytes;
    counters[COUNT_LIVE_ALLOCATIONS]--;
    counters[COUNT_LIVE_BYTES] -= (long long)a.bytes;
}

static cudaError_t release(void *base, bool pinned) {
    if (!base) return cudaSuccess;
    if (cudaError_t error = check_unsafe()) return error;
    auto found = allocations.find(static_cast<char *>(base));
    if (found == allocations.end() || found->second.registered ||
        (found->second.kind == MemoryKind::pinned) != pinned) {
        return cudaErrorInvalidValue;
    }
    OpenMemory open;
    Damage damage;
    if (find_damage(&damage)) report_damage(damage, pinned ? "cudaFreeHost" : "cudaFree");
    forget(found);
    counters[pinned ? COUNT_PINNED_FREE : COUNT_FREE]++;
    return cudaSuccess;
}

void free_card_memory(int device) {
    for (auto next = allocations.begin(); next != allocations.end();) {
        auto one = next++;
        if (one->second.device == device) forget(one);
    }
}

} /* namespace pvg_sim */

/* ---- The runtime's functions ---- */

using namespace pvg_sim;

extern "C" cudaError_t cudaMalloc(void **result, size_t bytes) {
    Call call;
    bind_context();
    return call.finish(allocate(result, bytes, MemoryKind::device));
}

extern "C" cudaError_t cudaMallocManaged(void **result, size_t bytes, unsigned flags) {
    Call call;
    if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost) {
        return call.finish(cudaErrorInvalidValue);
    }
    return call.finish(allocate(result, bytes, MemoryKind::managed));
}

extern "C" cudaError_t cudaHostAlloc(void **result, size_t bytes, unsigned flags) {
    const unsigned known = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    Call call;
    if (flags & ~known) return call.finish(cudaErrorInvalidValue);
    return call.finish(allocate(result, bytes, MemoryKind::pinned));
}

extern "C" cudaError_t cudaMallocHost(void **result, size_t bytes) {
    return cudaHostAlloc(result, bytes, cudaHostAllocDefault);
}

extern "C" cudaError_t cudaFree(void *base) {
    Call call;
    return call.finish(release(base, false));
}

extern "C" cudaError_t cudaFreeHost(void *base) {
    Call call;
    return call.finish(release(base, true));
}

extern "C" cudaError_t cudaHostRegister(void *base, size_t bytes, unsigned) {
    Call call;
    if (!base || !bytes) return call.finish(cudaErrorInvalidValue);
    const Allocation *known = find_allocation(base);
    if (known && static_cast<char *>(base) < known->base + known->bytes) {
        return call.finish(cudaErrorHostMemoryAlreadyRegistered);
    }
    char *first = static_cast<char *>(base);
    allocations[first] = {first, bytes, MemoryKind::pinned, current_device(), 0, true};
    counters[COUNT_LIVE_PINNED]++;
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaHostUnregister(void *base) {
    Call call;
    auto found = allocations.find(static_cast<char *>(base));
    if (found == allocations.end() || !found->second.registered) {
        return call.finish(cudaErrorHostMemoryNotRegistered);
    }
    forget(found);
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaHostGetDevicePointer(void **result, void *host, unsigned flags) {
    Call call;
    const Allocation *a = find_allocation(host);
    if (!result || flags || !a || a->kind != MemoryKind::pinned) {
        return call.finish(cudaErrorInvalidValue);
    }
    *result = host; /* one address space */
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *result,
                                                const void *address) {
    Call call;
    if (!result) return call.finish(cudaErrorInvalidValue);
    *result = cudaPointerAttributes{};
    void *pointer = const_cast<void *>(address);
    const Allocation *a = find_allocation(address);
    if (!a || pointer == a->base + a->bytes) {
        result->type = cudaMemoryTypeUnregistered;
        result->device = cudaInvalidDeviceId;
        result->hostPointer = pointer;
        return call.finish(cudaSuccess);
    }
    bool pinned = a->kind == MemoryKind::pinned, managed = a->kind == MemoryKind::managed;
    result->type = pinned    ? cudaMemoryTypeHost
                   : managed ? cudaMemoryTypeManaged
                             : cudaMemoryTypeDevice;
    result->device = a->device;
    result->devicePointer = pointer;
    result->hostPointer = pinned || managed ? pointer : nullptr;
    return call.finish(cudaSuccess);
}

extern "C" cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
    Call call;
    if (!free_bytes || !total) return call.finish(cudaErrorInvalidValue);
    *total = (size_t)settings.memory;
    *free_bytes = free_bytes_of(cards[current_device()]);
    return call.finish(cudaSuccess);
}
