/* ring.c - see ring.h. */
#include "cuda/ring.h"

#include <string.h>

/* Copies without the ring, and waits until `from` has been read. */
static CUresult write_directly(CUstream stream, CUdeviceptr to, const void *from, size_t bytes) {
    CUresult error = cu.cuMemcpyHtoDAsync(to, from, bytes, stream);
    return error ? error : cu.cuStreamSynchronize(stream);
}

void cuda_ring_close(struct ring *ring) {
    for (int i = 0; i < RING_PIECES; i++)
        if (ring->read[i]) cu.cuEventDestroy(ring->read[i]);
    if (ring->memory) cu.cuMemFreeHost(ring->memory);
    *ring = (struct ring){.refused = ring->refused};
}

/* Makes the ring, unless it is there; whether it is. */
static bool ring_ready(struct ring *ring) {
    void *memory = NULL;
    if (ring->memory || ring->refused) return ring->memory;
    CUresult error =
        cu.cuMemHostAlloc(&memory, (size_t)RING_PIECES * RING_PIECE, CU_MEMHOSTALLOC_PORTABLE);
    if (error == CUDA_SUCCESS) ring->memory = memory;
    for (int i = 0; i < RING_PIECES && error == CUDA_SUCCESS; i++)
        error = cu.cuEventCreate(&ring->read[i], CU_EVENT_DISABLE_TIMING);
    if (error == CUDA_SUCCESS) return true;
    ring->refused = true;
    cuda_ring_close(ring);
    return false;
}

/* Whether CUDA knows a byte of the host's: memory that is pinned, registered or managed. */
static bool is_known(const void *at) {
    struct pointer_facts facts;
    return driver_pointer((CUdeviceptr)(uintptr_t)at, &facts) == CUDA_SUCCESS && facts.type != 0;
}

/* One piece: waits until it is free, fills it and has it read. */
static CUresult write_piece(struct ring *ring, CUstream stream, CUdeviceptr to, const void *from,
                            size_t bytes) {
    const unsigned i = ring->next;
    char *piece = ring->memory + (size_t)i * RING_PIECE;
    CUresult error = cu.cuEventSynchronize(ring->read[i]); /* at once where never recorded */
    if (error) return error;
    memcpy(piece, from, bytes);
    error = cu.cuMemcpyHtoDAsync(to, piece, bytes, stream);
    if (error == CUDA_SUCCESS) error = cu.cuEventRecord(ring->read[i], stream);
    ring->next = (i + 1) % RING_PIECES;
    return error;
}

CUresult cuda_ring_write(struct ring *ring, CUstream stream, CUdeviceptr to, const void *from,
                         size_t bytes) {
    const char *at = from;
    if (bytes == 0) return CUDA_SUCCESS;
    if (bytes <= RING_LEAST || (is_known(at) && is_known(at + bytes - 1)) || !ring_ready(ring))
        return write_directly(stream, to, from, bytes);
    CUresult error = CUDA_SUCCESS;
    while (bytes > 0 && error == CUDA_SUCCESS) {
        const size_t part = bytes < RING_PIECE ? bytes : RING_PIECE;
        error = write_piece(ring, stream, to, at, part);
        at += part;
        to += part;
        bytes -= part;
    }
    /* A piece may be under way without an event that says so. */
    if (error) cu.cuStreamSynchronize(stream);
    return error;
}
