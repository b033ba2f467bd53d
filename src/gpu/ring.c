/* ring.c - see ring.h. */
#include "gpu/ring.h"

#include "invariant.h"

#include <string.h>

bool gpu_ring_ready(struct gpu_ring *ring, struct gpu *gpu, const struct gpu_ring_calls *calls) {
    if (ring->at || ring->refused) return ring->at;
    ring->at = calls->open(gpu);
    ring->refused = !ring->at;
    return ring->at;
}

int gpu_ring_write(struct gpu_ring *ring, struct gpu *gpu, const struct gpu_ring_calls *calls,
                   struct gpu_memory *to, size_t offset, const void *from, size_t bytes) {
    const char *rest = from;
    TALLY_ASSERT(ring->at && ring->next < RING_PIECES);
    while (bytes > 0) {
        const unsigned piece = ring->next;
        const size_t part = bytes < RING_PIECE ? bytes : RING_PIECE;
        char *at = ring->at + (size_t)piece * RING_PIECE;
        int error = calls->wait(gpu, piece);
        if (error) return error;
        memcpy(at, rest, part);
        ring->next = (piece + 1) % RING_PIECES;
        error = calls->send(gpu, piece, at, to, offset, part);
        if (error) return error;
        rest += part;
        offset += part;
        bytes -= part;
    }
    return 0;
}
