/* ring.c - see ring.h. */
#include "gpu/ring.h"

#include "base/invariant.h"

#include <string.h>

bool gpu_ring_ready(struct gpu_ring *ring, struct gpu *gpu, const struct gpu_ring_calls *calls) {
    const unsigned cores = pool_cores(), threads = cores < RING_THREADS ? cores : RING_THREADS;
    if (ring->at || ring->refused) return ring->at;
    ring->at = calls->open(gpu);
    ring->refused = !ring->at;
    if (ring->at && threads > 1) ring->pool = pool_create(threads);
    return ring->at;
}

struct copy {
    char *to;
    const char *from;
    size_t bytes;
};

static void copy_share(void *context, size_t task, unsigned worker) {
    const struct copy *c = context;
    const size_t begin = task * RING_SHARE, rest = c->bytes - begin;
    (void)worker;
    memcpy(c->to + begin, c->from + begin, rest < RING_SHARE ? rest : RING_SHARE);
}

/* Copies by all threads, or by the caller alone if there are none, or if a stop has been asked for.
 * So the device always gets all bytes; the next test for a stop ends the call. */
static void copy_in(struct gpu_ring *ring, char *to, const char *from, size_t bytes) {
    struct copy c = {to, from, bytes};
    const bool shared = bytes >= 2 * RING_SHARE && ring->pool && pool_claim(ring->pool);
    const int stopped =
        shared && pool_loop(ring->pool, (bytes + RING_SHARE - 1) / RING_SHARE, copy_share, &c);
    if (shared) pool_release(ring->pool);
    if (!shared || stopped) memcpy(to, from, bytes);
}

int gpu_ring_write(struct gpu_ring *ring, struct gpu *gpu, const struct gpu_ring_calls *calls,
                   struct gpu_memory *to, size_t offset, const void *from, size_t bytes) {
    const char *rest = from;
    TALLY_ASSERT(ring->at && ring->next < RING_CHUNKS);
    while (bytes > 0) {
        const unsigned chunk = ring->next;
        const size_t part = bytes < RING_CHUNK ? bytes : RING_CHUNK;
        char *at = ring->at + (size_t)chunk * RING_CHUNK;
        int error = calls->wait(gpu, chunk);
        if (error) return error;
        copy_in(ring, at, rest, part);
        ring->next = (chunk + 1) % RING_CHUNKS;
        error = calls->send(gpu, chunk, at, to, offset, part);
        if (error) return error;
        rest += part;
        offset += part;
        bytes -= part;
    }
    return 0;
}

void gpu_ring_close(struct gpu_ring *ring) {
    pool_destroy(ring->pool);
    ring->pool = NULL;
}
