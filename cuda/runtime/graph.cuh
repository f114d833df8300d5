// Recordings: what a thread does on a device is written down as a CUDA graph, which runs it again
// and again for the price of one launch.
//
// A recording has a stream of its own, the thread's current one while it lasts, so that the work of
// other threads stays out of it. Nothing runs on that stream: no wait, no copy to or from the host
// can be part of a recording. Calls that would need one are refused (refuse_recording), in a
// sentence that begins "recording a graph", and the recording goes on. An operation that runs out
// of memory or fails to launch spoils it: pvg_graph_end says why, and makes no graph.
//
// Memory. The pool keeps an arena per stream, so a recording has one too: new segments, never a
// block that other work uses. Within it the pool hands memory out again as soon as it is freed: the
// graph runs in the order of the recording. Each launch writes to that memory, so the arena stays
// the graph's (pinned) until the graph and all arrays in it are released; then the default stream's
// arenas adopt it. The driver is asked for memory during a recording, which CUDA allows in captures
// of the mode "relaxed".
//
// Ordering. A recording waits for nobody and nobody for it. It notes which storages it reads and
// writes; each launch reads and writes them by the usual rules (stream_reads, stream_writes), with
// versions and waits. Storages from elsewhere are retained; those of the arena count as written,
// whoever last made their contents, for memory that a temporary had before is written to. What
// other streams still do with a storage of the arena when it is released, the next launch waits
// for: its users become users of `arena`, a storage without bytes that stands for all of it.
//
// Whether anything is being recorded, is asked here and nowhere else.
#pragma once
#include "runtime/storage.cuh"

namespace pvg {

struct Graph;

// Whether the calling thread is recording on the device, or work on this stream is being recorded:
// then VALUE, "recording a graph: `what` cannot be part of it ...".
int refuse_recording(int device, const char *what);
int refuse_recording(const Stream *stream, const char *what);
// Whether what is launched on the stream is written down, by us or by somebody else.
bool is_captured(cudaStream_t stream);

// The recording reads or writes the storage. Errors: HOST_MEMORY.
int note_use(Graph *graph, Storage *storage, bool writes);
// The storage's memory comes from the recording's arena. Errors: HOST_MEMORY.
int join_graph(Graph *graph, Storage *storage);
// Before and after the block of such a storage goes back to the arena.
void leave_graph(Graph *graph, const Storage *storage);
void release_graph(Graph *graph);
// The operation that ends on this stream failed, as the error record says.
void spoil_recording(const Stream *stream);

// Host waits for the device, but for what is being recorded on it: cudaDeviceSynchronize, which
// would break the recordings of all threads, or one stream after another.
cudaError_t finish_device(int device);

} // namespace pvg
