/*
 * ring.h - large writes to a CUDA device, through a few pieces of pinned host memory.
 *
 * Ordinary memory the device cannot read by itself: the driver copies it piece by piece, and the caller
 * waits for both. Here the CPU copies into one piece while the device reads the ones before. A piece has
 * an event that says when it has been read, and so is free again.
 */
#ifndef TALLY_CUDA_RING_H
#define TALLY_CUDA_RING_H

#include "cuda/driver.h"

/* A piece of 2 MiB takes the bus 40 to 80 us, ten times what starting a copy costs, and is small enough
 * that little of a write of some MiB goes without overlap, and that the CPU's caches hold the ring. Two
 * pieces would overlap; four also bear that one side stands still for a moment. */
enum { RING_PIECES = 4, RING_PIECE = 2 << 20, RING_LEAST = 64 << 10 };

struct ring {
    char *memory; /* the pieces; NULL before the first write, and where there is no pinned memory */
    CUevent read[RING_PIECES];
    unsigned next; /* the piece whose turn it is */
    bool refused;  /* there was no pinned memory: not asked for again */
};

/* Writes on `stream`, which is the same each time. Returns once `from` may be changed; the
 * device may then still be reading the ring. Small writes do without it, and so does memory that the
 * device can read by itself. Needs the context to be current. */
CUresult cuda_ring_write(struct ring *ring, CUstream stream, CUdeviceptr to, const void *from,
                         size_t bytes);

/* Gives back what the driver holds, once the stream has finished. */
void cuda_ring_close(struct ring *ring);

#endif
