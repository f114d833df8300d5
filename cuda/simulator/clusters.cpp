/* Clusters: blocks that run together, and read each other's shared memory.
 *
 * A worker keeps a worker of its own for every further block of a cluster, all on its OS thread. It
 * lets the threads of one block run until none can go on, then those of the next, until all blocks
 * have ended. What a block shares is its dynamic shared memory: static shared memory is one for all
 * of an OS thread, so kernels that are launched in clusters must not have any. */
#include "worker.h"

#include <cstring>

namespace pvg_sim {

/* ---- Inside a kernel ---- */

/* A launch without clusters is one in clusters of one block. */
static Cluster &own_cluster(Worker &w) {
    if (!w.cluster) w.cluster = new Cluster(); /* kept as long as the worker */
    if (w.launch->cluster == 1) {
        w.cluster->size = 1, w.cluster->blocks[0] = &w;
    }
    return *w.cluster;
}

static bool has_ended(const Worker &block) { return block.started && !block.alive; }

void cluster_barrier(const char *file, int line) {
    require_capability(90, "barrier.cluster");
    Cluster &cluster = own_cluster(*worker);
    for (unsigned i = 0; i < cluster.size; i++) {
        const Worker &block = *cluster.blocks[i];
        if (block.alive < block.thread_count) {
            fail_kernel(cudaErrorLaunchFailure,
                        "%u threads of block %u of the cluster returned "
                        "without reaching its barrier",
                        block.thread_count - block.alive, i);
        }
    }
    if (++cluster.arrived < cluster.size * worker->thread_count) {
        return sleep_for(&cluster, file, line);
    }
    cluster.arrived = 0;
    for (unsigned i = 0; i < cluster.size; i++) wake_all(*cluster.blocks[i], &cluster);
}

const void *in_cluster(const void *pointer, unsigned rank, size_t bytes) {
    require_capability(90, "mapa");
    Worker &w = *worker;
    const Cluster &cluster = own_cluster(w);
    const uint32_t address = shared_address(pointer);
    const char *own = static_cast<const char *>(shared_pointer(address, bytes));
    if (rank >= cluster.size) {
        fail_kernel(cudaErrorIllegalAddress, "shared memory of block %u of a cluster of %u", rank,
                    cluster.size);
    }
    const Worker &there = *cluster.blocks[rank];
    if (has_ended(there)) {
        fail_kernel(cudaErrorIllegalAddress,
                    "it reads the shared memory of block %u of its cluster, which has ended", rank);
    }
    return there.dynamic_shared + (own - w.dynamic_shared);
}

void send_to_block(void *pointer, unsigned rank, const void *value, size_t bytes,
                   uint32_t barrier) {
    Worker *const here = worker;
    memcpy(const_cast<void *>(in_cluster(pointer, rank, bytes)), value, bytes);
    worker = here->cluster->blocks[rank];
    race::release(worker->events->order, 0);
    bytes_have_come(barrier, bytes);
    worker = here;
}

/* ---- Running one ---- */

bool begin_cluster(Worker &w) {
    const unsigned size = w.grid->launch->cluster;
    Cluster &cluster = own_cluster(w);
    cluster.size = size;
    cluster.blocks[0] = &w;
    for (unsigned i = 1; i < size; i++) {
        if (!cluster.blocks[i]) cluster.blocks[i] = new Worker();
        Worker &block = *cluster.blocks[i];
        block.grid = w.grid, block.cluster = &cluster, block.has_poison = true;
        if (!begin_launch(block)) return false;
    }
    enter_block(w);
    return true;
}

void end_cluster(Worker &w) {
    for (unsigned i = 1; i < w.cluster->size; i++) {
        enter_block(*w.cluster->blocks[i]);
        end_launch(*w.cluster->blocks[i]);
    }
    enter_block(w);
}

static bool can_run(const Worker &block) {
    return block.started < block.thread_count || block.ready_head != block.ready_tail;
}

/* One block after another, until none has a thread that can go on; false: one has failed. */
static bool run_in_turns(Cluster &cluster, bool backwards) {
    for (bool again = true; again;) {
        again = false;
        for (unsigned i = 0; i < cluster.size; i++) {
            Worker &block = *cluster.blocks[backwards ? cluster.size - 1 - i : i];
            if (!can_run(block)) continue;
            enter_block(block);
            run_another(block);
            if (block.failed) return false;
            again = true;
        }
    }
    return true;
}

void run_cluster(Worker &w, uint64_t number) {
    Cluster &cluster = *w.cluster;
    cluster.arrived = 0;
    for (unsigned i = 0; i < cluster.size; i++) {
        Worker &block = *cluster.blocks[i];
        enter_block(block);
        if (i) poison_shared(block);
        begin_block(block, number * cluster.size + i);
    }
    const bool whole = run_in_turns(cluster, w.grid->order == REVERSE);
    for (unsigned i = 0; i < cluster.size; i++) {
        Worker &block = *cluster.blocks[i];
        enter_block(block);
        if (!whole) block.failed = true;
        end_block(block);
    }
    enter_block(w);
}

} /* namespace pvg_sim */
