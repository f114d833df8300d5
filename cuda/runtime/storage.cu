// Storages: how they are made, and what has to be waited for before their memory is used again; see
// storage.cuh.
#include "runtime/device.cuh"
#include "runtime/graph.cuh"
#include "runtime/memory.cuh"
#include "runtime/storage.cuh"
#include "runtime/stream.cuh"
#include <new>
#include <stdlib.h>
#include <string.h>

namespace pvg {

namespace {

Storage *new_storage(int device, void *data, size_t bytes) {
    void *memory = malloc(sizeof(Storage));
    if (!memory) return nullptr;
    Storage *s = new (memory) Storage;
    s->references = 1;
    s->data = data, s->bytes = bytes, s->device = device;
    s->block = nullptr, s->graph = nullptr, s->deleter = nullptr, s->context = nullptr;
    s->version = 0, s->writer = 0;
    s->lock.clear();
    memset(s->readers, 0, sizeof s->readers);
    return s;
}

// The one stream that used the storage; any_stream if none did, 0 if several.
uint64_t sole_user(const Storage *s) {
    uint64_t user = s->writer.load(std::memory_order_relaxed);
    for (uint64_t reader : s->readers) {
        if (reader == 0 || reader == user) continue;
        if (user != 0) return 0;
        user = reader;
    }
    return user != 0 ? user : any_stream;
}

// The block goes back to the stream it came from, which first waits for all others that used it; or
// to its graph, whose launches do.
void free_block(Storage *s, Block *block) {
    ErrorRecord before = error_record; // releasing never reports
    DeviceScope scope;
    // On a lost device no CUDA call can be made: the records alone are put in order.
    uint64_t safe = device_lost || s->graph ? any_stream : sole_user(s);
    if (s->graph) leave_graph(s->graph, s);
    while (Stream *home = deallocate(block, safe)) {
        safe = stream_id(home);
        if (scope.enter(s->device) == PVG_OK) stream_collects(home, s);
    }
    if (s->graph) release_graph(s->graph);
    error_record = before;
}

} // namespace

void release_storage(Storage *s) {
    if (s->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (s->block) free_block(s, s->block);
    if (s->deleter) {
        if (!device_lost) host_collects(s);
        s->deleter(s->context);
    }
    s->~Storage();
    free(s);
}

int allocate_storage(int device, Stream *stream, size_t bytes, Storage **result) {
    void *memory = nullptr;
    Block *block = nullptr;
    PVG_PASS(allocate(device, stream, bytes, &memory, &block));
    Storage *storage = new_storage(device, memory, bytes);
    if (!storage) {
        if (block) (void)deallocate(block, any_stream);
        return fail(PVG_ERROR_HOST_MEMORY, "no host memory for a storage");
    }
    storage->block = block;
    storage->writer.store(stream_id(stream), std::memory_order_relaxed);
    Graph *graph = block ? recording_on(stream) : nullptr;
    int status = graph ? join_graph(graph, storage) : PVG_OK;
    if (status != PVG_OK) {
        (void)deallocate(block, any_stream);
        storage->block = nullptr;
        release_storage(storage);
        return status;
    }
    *result = storage;
    return PVG_OK;
}

int wrap_storage(int device, void *data, size_t bytes, pvg_deleter deleter, void *context,
                 Storage **result) {
    Storage *storage = new_storage(device, data, bytes);
    PVG_REQUIRE(storage, PVG_ERROR_HOST_MEMORY, "no host memory for a storage");
    storage->deleter = deleter, storage->context = context;
    *result = storage;
    return PVG_OK;
}

} // namespace pvg
