// Numbers that the blocks of a cluster send each other again and again, each to all. They are
// written to the other blocks' shared memory by stores that a barrier there counts (st.async), so
// that who waits there knows that all have come. A barrier of the whole cluster would order all
// memory, which costs 0.9 us a time and waits for every store on its way.
//
//     open_mail(mail), once; then for turn = 0, 1, ...:
//     send_mail(mail, turn, ...), by the first warp
//     wait_for_mail(mail, turn), by all threads, and mail->numbers[turn % 2] are all blocks'
//
// Between the reading of a turn and the next send all threads of a block meet at a barrier. A block
// whose last mail has come may end.
#pragma once
#include "kernels/clusters.cuh"
#include "kernels/hopper.cuh"

namespace pvg::clusters {

constexpr int most_blocks = 8; // of a cluster that every card with clusters has

template <class A, int N> struct alignas(16) Mail {
    A numbers[2][most_blocks][N];
    uint64_t barriers[2];
};

// Makes the barriers; no block sends before all have them. To be followed by wait_for_cluster.
template <class A, int N> __device__ __forceinline__ void open_mail(Mail<A, N> *mail) {
#if PVG_TARGET >= 900
    if (threadIdx.x == 0) {
        for (uint64_t &barrier : mail->barriers)
            hopper::make_barrier(fragments::shared_address(&barrier), 1);
        hopper::publish_barriers();
    }
    arrive_at_cluster();
#endif
}

// Stores at the same place of block `rank`, and counts there.
template <class A>
__device__ __forceinline__ void send_to_block(A *to, unsigned rank, A value, uint64_t *barrier) {
#ifdef PVG_SIMULATOR
    pvg_sim::send_to_block(to, rank, &value, sizeof(A), fragments::shared_address(barrier));
#elif PVG_TARGET >= 900
    const uint32_t place = fragments::shared_address(to);
    const uint32_t counter = fragments::shared_address(barrier);
    if constexpr (sizeof(A) == 4)
        asm volatile("{\n.reg .b32 there, counter;\n"
                     "mapa.shared::cluster.u32 there, %0, %2;\n"
                     "mapa.shared::cluster.u32 counter, %1, %2;\n"
                     "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [there], %3, "
                     "[counter];\n}\n" ::"r"(place),
                     "r"(counter), "r"(rank), "r"(__float_as_uint(value))
                     : "memory");
    else
        asm volatile("{\n.reg .b32 there, counter;\n"
                     "mapa.shared::cluster.u32 there, %0, %2;\n"
                     "mapa.shared::cluster.u32 counter, %1, %2;\n"
                     "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [there], %3, "
                     "[counter];\n}\n" ::"r"(place),
                     "r"(counter), "r"(rank), "l"(__double_as_longlong(value))
                     : "memory");
#endif
}

// By all lanes of the first warp, which have the block's numbers: lane i sends them to block i of
// `blocks`, of which this one is the `own`-th.
template <class A, int N>
__device__ __forceinline__ void send_mail(Mail<A, N> *mail, int64_t turn, int blocks, int own,
                                          const A (&numbers)[N]) {
#if PVG_TARGET >= 900
    const int lane = static_cast<int>(threadIdx.x);
    uint64_t *const barrier = &mail->barriers[turn % 2];
    if (lane == 0)
        hopper::expect_bytes(fragments::shared_address(barrier),
                             blocks * N * static_cast<int>(sizeof(A)));
    if (lane < blocks)
#pragma unroll
        for (int i = 0; i < N; i++)
            send_to_block(&mail->numbers[turn % 2][own][i], static_cast<unsigned>(lane), numbers[i],
                          barrier);
    __syncwarp();
#endif
}

template <class A, int N>
__device__ __forceinline__ void wait_for_mail(Mail<A, N> *mail, int64_t turn) {
#if PVG_TARGET >= 900
    hopper::wait(fragments::shared_address(&mail->barriers[turn % 2]),
                 static_cast<int>(turn / 2 % 2));
#endif
}

} // namespace pvg::clusters
