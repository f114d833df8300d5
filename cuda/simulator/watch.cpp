/* The access checker: every load and store of a kernel, by what is known of that memory.
 *
 * In the "watch" build the kernels are compiled with -fsanitize=thread, which puts a call in front
 * of each access; watch_calls.cpp has those functions, and they come here. An access is an error
 *   - of memory that is no kernel's: the host's, reached through a pointer in a struct, or freed
 *   - after one of another thread that nothing orders before it, one of the two writing.
 *
 * What orders two accesses is what CUDA says: a barrier those of a block, a barrier of a warp those
 * of its lanes, and between blocks only an atomic (or volatile) access that saw another one, which
 * had a __threadfence() before it. Each byte has a cell with its last write and its last read. A
 * block counts time: a barrier or a fence begins a new moment. An access is ordered before what
 * comes now if the moment up to which its thread, its warp or its block is known here is later.
 * Blocks run one after another, so the values are right whatever is reported. */
#ifdef PVG_SIM_WATCH
#include "watch.h"

#include "code_place.h"

#include <cstring>
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unordered_map>

namespace pvg_sim {
namespace watch {

/* ---- Who touched a byte, and when ---- */

struct Stamp {
    uint64_t block : 29; /* its number in the grid, from 1; 0: nobody */
    uint64_t thread : 10;
    uint64_t several : 1; /* readers: another one read at about that time as well */
    uint64_t strong : 1;  /* atomic or volatile */
    uint64_t moment : 23;
};

struct Cell { Stamp write, read; };

/* The cells of 4096 bytes of memory. Those of an earlier launch are as good as none. */
struct Page {
    uint64_t launch;
    Cell cells[PAGE];
};

constexpr size_t MOST_PAGES_KEPT = 4096, RECENT = 512;
static auto &pages = *new std::unordered_map<uintptr_t, Page *>;
static struct {
    uintptr_t number;
    Page *page;
} recent[RECENT];
static uint64_t launch_number;

static Page *make_page() {
    void *memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) abort();
    return static_cast<Page *>(memory);
}

static Cell *cell_of(uintptr_t address) {
    uintptr_t number = address / PAGE;
    auto &slot = recent[number % RECENT];
    if (!slot.page || slot.number != number) {
        Page *&page = pages[number];
        if (!page) page = make_page();
        if (page->launch != launch_number) memset(page->cells, 0, sizeof page->cells);
        page->launch = launch_number;
        slot = {number, page};
    }
    return &slot.page->cells[address % PAGE];
}

static void forget_cells() {
    launch_number++;
    memset(recent, 0, sizeof recent);
    if (pages.size() <= MOST_PAGES_KEPT) return;
    for (auto &[number, page] : pages) munmap(page, sizeof *page);
    pages.clear();
}

uintptr_t easy_pages[EASY];

/* ---- What is ordered ---- */

/* Moments up to which others are known, by block and thread of it, warp of it, or all of it. */
using View = std::unordered_map<uint64_t, uint64_t>;

constexpr unsigned WHOLE = 2047, FIRST_WARP = 1024;
static uint64_t key(uint64_t block, unsigned part) { return block << 11 | part; }

static void raise(View &view, uint64_t part, uint64_t moment) {
    uint64_t &known = view[part];
    if (known < moment) known = moment;
}

static void merge(View &into, const View &from) {
    for (const auto &[part, moment] : from) raise(into, part, moment);
}

static bool knows(const View &view, uint64_t part, uint64_t moment) {
    auto found = view.find(part);
    return found != view.end() && found->second > moment;
}

/* What is known through an atomic: for sure, and if there had been a fence before each of them. */
struct Known { View fenced, hoped; };

/* The block that runs. Never destroyed, like what follows. */
struct Block {
    uint64_t number, moment;
    uint64_t barrier;                   /* the moment of its last barrier */
    uint64_t warp_barrier[MAX_THREADS]; /* of each thread's last barrier of its warp */
    Known seen;                         /* of other blocks */
    View fenced;                        /* what its atomics tell others */
};
static auto &now = *new Block();
static auto &published = *new std::unordered_map<uintptr_t, Known>; /* by address of the atomic */

void begin_launch() {
    forget_cells();
    published.clear();
    memset(easy_pages, 0, sizeof easy_pages);
}

void begin_block(uint64_t block) {
    now.number = block + 1, now.moment = 1, now.barrier = 0;
    memset(now.warp_barrier, 0, sizeof now.warp_barrier);
    now.seen.fenced.clear(), now.seen.hoped.clear(), now.fenced.clear();
}

void block_barrier() { now.barrier = ++now.moment; }

void warp_barrier(unsigned first, unsigned lanes) {
    now.moment++;
    for (; lanes; lanes &= lanes - 1) {
        now.warp_barrier[first + (unsigned)__builtin_ctz(lanes)] = now.moment;
    }
}

void fence(unsigned thread) {
    now.moment++;
    merge(now.fenced, now.seen.fenced);
    raise(now.fenced, key(now.number, WHOLE), now.barrier);
    raise(now.fenced, key(now.number, FIRST_WARP + thread / WARP), now.warp_barrier[thread]);
    raise(now.fenced, key(now.number, thread), now.moment);
}

static void synchronise(uintptr_t address, bool reads, bool writes) {
    auto told = published.find(address);
    if (reads && told != published.end()) {
        merge(now.seen.fenced, told->second.fenced);
        merge(now.seen.hoped, told->second.hoped);
    }
    if (!writes) return;
    Known &here = published[address];
    merge(here.fenced, now.fenced);
    merge(here.hoped, now.seen.hoped);
    raise(here.hoped, key(now.number, WHOLE), now.moment + 1);
}

static bool knows(const View &view, const Stamp &other) {
    return knows(view, key(other.block, WHOLE), other.moment) ||
           knows(view, key(other.block, FIRST_WARP + other.thread / WARP), other.moment) ||
           knows(view, key(other.block, other.thread), other.moment);
}

/* An atomic access needs no fence to come before what follows an atomic that saw it. */
static bool is_ordered(const Stamp &other, unsigned thread) {
    if (!other.block) return true;
    if (other.block != now.number) {
        return knows(other.strong ? now.seen.hoped : now.seen.fenced, other);
    }
    if (now.barrier > other.moment || (other.thread == thread && !other.several)) return true;
    return other.thread / WARP == thread / WARP && now.warp_barrier[thread] > other.moment;
}

/* ---- Reports ---- */

struct Event {
    Worker &w;
    uintptr_t address;
    size_t bytes;
    Access how;
    const void *place;
    bool shared;
};

static const char *verb(Access how) {
    switch (how) {
    case Access::read:
    case Access::volatile_read: return "reads";
    case Access::atomic: return "changes, by an atomic,";
    default: return "writes";
    }
}

[[noreturn]] static void give_up(const Event &e, const char *what) {
    char code[256];
    describe_code(e.place, code, sizeof code);
    fail_kernel(cudaErrorLaunchFailure, "it %s %zu bytes of %s memory%s%s", verb(e.how), e.bytes,
                e.shared ? "shared" : "global", code, what);
}

[[noreturn]] static void report_unordered(const Event &e, const Stamp &other, bool wrote) {
    const dim3 &block = e.w.launch->block, &grid = e.w.launch->grid;
    const char *did = wrote ? "written" : "read";
    char what[512];
    if (other.block == now.number) {
        unsigned t = (unsigned)other.thread;
        snprintf(what, sizeof what,
                 " that thread (%u,%u,%u) of its block has %s, and no barrier is between the two",
                 t % block.x, t / block.x % block.y, t / block.x / block.y, did);
        give_up(e, what);
    }
    uint64_t b = other.block - 1;
    snprintf(what, sizeof what, " that block (%u,%u,%u) has %s in the same launch: %s",
             (unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y),
             (unsigned)(b / grid.x / grid.y), did,
             knows(now.seen.hoped, other)
                 ? "a __threadfence() is missing before the atomic or volatile access that told so"
                 : "blocks run in any order, several at a time; without atomics an update is lost "
                   "and a value is an old one");
    give_up(e, what);
}

/* ---- Whose memory it is ---- */

/* The module that the kernels are in: its tables, its __constant__ and __device__ variables. */
static struct { uintptr_t first, last; } module_image;

static int find_image(dl_phdr_info *info, size_t, void *kernel) {
    uintptr_t first = UINTPTR_MAX, last = 0, here = reinterpret_cast<uintptr_t>(kernel);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) &part = info->dlpi_phdr[i];
        if (part.p_type != PT_LOAD) continue;
        uintptr_t start = info->dlpi_addr + part.p_vaddr;
        if (start < first) first = start;
        if (start + part.p_memsz > last) last = start + part.p_memsz;
    }
    if (here < first || here >= last) return 0;
    module_image = {first, last};
    return 1;
}

static bool lies_in(uintptr_t address, const void *start, size_t bytes) {
    return address - reinterpret_cast<uintptr_t>(start) < bytes;
}

static bool is_builtin(uintptr_t address) {
    return lies_in(address, &threadIdx, sizeof threadIdx) ||
           lies_in(address, &blockIdx, sizeof blockIdx) ||
           lies_in(address, &blockDim, sizeof blockDim) ||
           lies_in(address, &gridDim, sizeof gridDim);
}

static void note_page(uintptr_t page) { easy_pages[page % EASY] = ~page; }

/* A kernel may touch all of this: the page of the address is easy if it has nothing else. */
static bool allow(uintptr_t address, const void *start, size_t bytes) {
    uintptr_t page = address / PAGE, first = reinterpret_cast<uintptr_t>(start);
    if (page * PAGE >= first && (page + 1) * PAGE <= first + bytes) note_page(page);
    return true;
}

static bool is_own(const Worker &w, uintptr_t address) {
    const Fiber &fiber = *w.current;
    if (lies_in(address, fiber.stack, fiber.bytes)) return allow(address, fiber.stack, fiber.bytes);
    if (!is_builtin(address)) return false;
    note_page(address / PAGE); /* with other thread-locals, whose address nobody has */
    return true;
}

/* The launch's arguments. */
static bool is_argument(const Launch &launch, uintptr_t address) {
    static uint64_t of_launch;
    static size_t bytes;
    if (of_launch != launch_number) bytes = malloc_usable_size(launch.closure);
    of_launch = launch_number;
    return lies_in(address, launch.closure, bytes);
}

static bool is_global(const Event &e) {
    static const Allocation *last; /* allocations stay during a launch */
    static uint64_t of_launch;
    const void *address = reinterpret_cast<const void *>(e.address);
    if (of_launch != launch_number) last = nullptr;
    of_launch = launch_number;
    if (last && lies_in(e.address, last->base, last->bytes)) {
        return allow(e.address, last->base, last->bytes);
    }
    const Allocation *found = find_allocation(address);
    if (found && lies_in(e.address, found->base, found->bytes)) {
        last = found;
        return allow(e.address, found->base, found->bytes);
    }
    uintptr_t kernel = reinterpret_cast<uintptr_t>(e.w.launch->function);
    if (kernel < module_image.first || kernel >= module_image.last) {
        dl_iterate_phdr(find_image, reinterpret_cast<void *>(kernel));
    }
    return e.address >= module_image.first && e.address < module_image.last;
}

[[noreturn]] static void report_foreign(const Event &e) {
    char code[256], near[256];
    describe_code(e.place, code, sizeof code);
    if (e.address < PAGE) {
        fail_kernel(cudaErrorIllegalAddress,
                    "it %s %zu bytes at %p%s: illegal access through a null pointer", verb(e.how),
                    e.bytes, reinterpret_cast<const void *>(e.address), code);
    }
    describe_address(reinterpret_cast<const void *>(e.address), near, sizeof near);
    fail_kernel(cudaErrorIllegalAddress,
                "it %s %zu bytes at %p%s, which is no device memory: the host's, or freed%s",
                verb(e.how), e.bytes, reinterpret_cast<const void *>(e.address), code, near);
}

/* ---- The rules ---- */

/* Of several readers that nothing orders, one stands for all. */
static void note_read(Stamp &reader, const Stamp &own) {
    if (is_ordered(reader, own.thread)) {
        reader = own;
        return;
    }
    reader.several = 1;
    reader.strong = reader.strong && own.strong;
    if (reader.block == own.block) reader.moment = own.moment;
}

static void check_byte(const Event &e, uintptr_t address) {
    const unsigned thread = e.w.self;
    const bool strong = e.how >= Access::volatile_read;
    const bool loads = e.how == Access::read || e.how == Access::volatile_read;
    Cell &cell = *cell_of(address);
    if (e.shared && cell.write.block != now.number) cell.write = Stamp{};
    if (e.shared && cell.read.block != now.number) cell.read = Stamp{};
    /* Of two volatile stores one is lost; other strong accesses come one after another. */
    bool both_strong = strong && cell.write.strong && e.how != Access::volatile_write;
    if (!both_strong && !is_ordered(cell.write, thread)) report_unordered(e, cell.write, true);
    const Stamp own = {now.number, thread, 0, strong, now.moment};
    if (loads) return note_read(cell.read, own);
    both_strong = strong && cell.read.strong;
    if (!both_strong && !is_ordered(cell.read, thread)) report_unordered(e, cell.read, false);
    cell.write = own;
}

void access(Worker &w, const void *pointer, size_t bytes, Access how, const void *place) {
    uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
    if (is_own(w, address) || is_argument(*w.launch, address)) return;
    Event e = {w, address, bytes, how, place, is_shared(w, pointer)};
    if (!e.shared && !is_global(e)) report_foreign(e);
    if (!settings.races) return;
    if (how >= Access::volatile_read && !e.shared) {
        synchronise(address, how != Access::volatile_write, how != Access::volatile_read);
    }
    for (size_t i = 0; i < bytes; i++) check_byte(e, address + i);
}

} /* namespace watch */
} /* namespace pvg_sim */
#endif
