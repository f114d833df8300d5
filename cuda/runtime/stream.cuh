// Streams: one non-blocking default stream per device, others on request, and who waits for whom.
#pragma once
#include "runtime/storage.cuh"

namespace pvg {

// The calling thread's current stream on a device, made at first use.
int current_stream(int device, Stream **result);
int default_stream(int device, Stream **result);
uint64_t stream_id(const Stream *stream);
cudaStream_t stream_handle(const Stream *stream);
// `waiter` waits for all work issued so far on the stream with this id; nothing to do if that
// stream is gone.
int wait_for(Stream *waiter, uint64_t other);
// The rules of architecture: a read waits for the last writer, a write for the writer and all
// readers.
int stream_reads(Stream *stream, Storage *storage);
int stream_writes(Stream *stream, Storage *storage);
// Let `home` wait for every other stream that still uses the storage: after that its memory may be
// reused on `home`.
void stream_collects(Stream *home, Storage *storage);
// Host waits for every stream that still uses the storage: after that its memory is the caller's
// again.
void host_collects(Storage *storage);
// Host waits for the stream; sticky errors become DEVICE_LOST. `what` names the wait in messages.
int wait_on_host(Stream *stream, const char *what);

} // namespace pvg
