// Streams: one non-blocking default stream per device, others on request, and who waits for whom.
#pragma once
#include "runtime/storage.cuh"

namespace pvg {

struct Graph;

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
// A stream of somebody else's, on the storage's device, which is current, waits for what has to be
// done before it may read the storage, or write to it, too. If it may be remembered, it counts as a
// reader.
int lend_to_stream(cudaStream_t handle, Storage *storage, bool writes);
// `stream` waits for all work issued so far on a stream of somebody else's, on the same device.
int follow_stream(Stream *stream, cudaStream_t handle);
// Let `home` wait for every other stream that still uses the storage: after that its memory may be
// reused on `home`.
void stream_collects(Stream *home, Storage *storage);
// Host waits for every stream that still uses the storage: after that its memory is the caller's
// again.
void host_collects(Storage *storage);
// Whoever still uses `from` counts as a reader of `to` from now on.
void pass_on_users(const Storage *from, Storage *to);
// Host waits for the stream; sticky errors become DEVICE_LOST. `what` names the wait in messages.
int wait_on_host(Stream *stream, const char *what);

// For graph.cu. A new stream on which the graph is recorded, the calling thread's current one until
// it is closed; its memory stays where it is then.
int open_recording(int device, Graph *graph, Stream **result);
void close_recording(Stream *stream);
// What is recorded on the stream, or on the calling thread's current one; NULL if nothing is.
Graph *recording_on(const Stream *stream);
Graph *thread_recording(int device);
// Host waits for all streams of a device on which nothing is recorded.
cudaError_t finish_streams(int device);

} // namespace pvg
