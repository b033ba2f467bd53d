/*
 * ring.h - large writes to a device, through a few chunks of host memory that the device reads by itself.
 *
 * A device cannot read ordinary host memory by itself. Its driver copies that, chunk by chunk, to memory that the
 * device can read, and the caller waits for both copies. Here the CPU's cores copy into one chunk while the device
 * reads the ones before. The machine has an event for each chunk, which says when it has been read and so is free
 * again.
 */
#ifndef TALLY_GPU_RING_H
#define TALLY_GPU_RING_H

#include "base/pool.h"
#include "gpu/gpu.h"
#include "gpu/tuning.h"

struct gpu_ring {
    char *at;          /* the chunks, one after another; NULL until gpu_ring_ready(), or refused */
    struct pool *pool; /* threads that copy; NULL: the caller alone does */
    unsigned next;     /* the chunk whose turn it is */
    bool refused;      /* the machine had no memory for the ring: it is not asked again */
};

/* The machine's own calls. Errors are the driver's own numbers; 0 is success. */
struct gpu_ring_calls {
    /* Allocates RING_CHUNKS * RING_CHUNK bytes that the device can read by itself. Returns NULL, with nothing
     * allocated, where there is no such memory. */
    char *(*open)(struct gpu *gpu);
    /* Waits until the device has read a chunk; returns at once where it was never sent. */
    int (*wait)(struct gpu *gpu, unsigned chunk);
    /* Has the device copy the first `bytes` bytes of a chunk, which lie at `at`, to `to`. */
    int (*send)(struct gpu *gpu, unsigned chunk, const char *at, struct gpu_memory *to,
                size_t offset, size_t bytes);
};

/* Makes the ring unless it is there. Returns whether it is. */
bool gpu_ring_ready(struct gpu_ring *ring, struct gpu *gpu, const struct gpu_ring_calls *calls);

/* Writes through a ring that is ready. Returns 0, or the driver's number of the first error. On success
 * `from` may be changed as soon as the call returns; the device may then still be reading the ring. */
int gpu_ring_write(struct gpu_ring *ring, struct gpu *gpu, const struct gpu_ring_calls *calls,
                   struct gpu_memory *to, size_t offset, const void *from, size_t bytes);

/* Ends the ring's threads. The machine frees the ring's memory and its events. */
void gpu_ring_close(struct gpu_ring *ring);

#endif
