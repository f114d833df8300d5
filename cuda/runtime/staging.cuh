// Large copies between a device and ordinary host memory, through pinned buffers; see staging.cu.
#pragma once
#include "runtime/error.cuh"

namespace pvg {

constexpr int64_t staged_from = 1 << 20; // bytes; smaller copies are faster without

// Copies on a stream of the current device, `device`. Host memory is contiguous and not known to
// CUDA. An upload returns when the source has been read, a download when the bytes have arrived.
// Errors: CUDA; the device then works on none of it any more, and parts may have been written.
int staged_upload(int device, cudaStream_t stream, void *to, const void *from, int64_t bytes);
int staged_download(int device, cudaStream_t stream, void *to, const void *from, int64_t bytes);
// Gives the device's buffers back, after waiting for the copies that use them.
int free_staging(int device);

// A little pinned memory for one copy to the host that is waited for: the driver needs no buffer of
// its own then. NULL for more bytes than there are, or without any: the caller does without.
struct Landing {
    static constexpr int64_t size = 16 << 10;
    unsigned char *bytes;
    explicit Landing(int64_t wanted);
    Landing(const Landing &) = delete;
    Landing &operator=(const Landing &) = delete;
    ~Landing();
};

} // namespace pvg
