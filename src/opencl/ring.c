/* ring.c - see ring.h. */
#include "opencl/ring.h"

#include <string.h>

void opencl_ring_close(struct ring *ring, cl_command_queue queue) {
    for (int i = 0; i < RING_PIECES; i++)
        if (ring->read[i]) cl.clReleaseEvent(ring->read[i]);
    if (ring->at) cl.clEnqueueUnmapMemObject(queue, ring->memory, ring->at, 0, NULL, NULL);
    if (ring->memory) cl.clReleaseMemObject(ring->memory);
    *ring = (struct ring){.refused = ring->refused};
}

/* Makes the ring, unless it is there; whether it is. */
static bool ring_ready(struct ring *ring, cl_context context, cl_command_queue queue) {
    const size_t bytes = (size_t)RING_PIECES * RING_PIECE;
    cl_int error = CL_SUCCESS;
    if (ring->at || ring->refused) return ring->at;
    cl_mem memory =
        cl.clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, NULL, &error);
    if (error == CL_SUCCESS) {
        ring->memory = memory;
        void *at =
            cl.clEnqueueMapBuffer(queue, memory, 1, CL_MAP_WRITE, 0, bytes, 0, NULL, NULL, &error);
        if (error == CL_SUCCESS) ring->at = at;
    }
    if (ring->at) return true;
    ring->refused = true;
    opencl_ring_close(ring, queue);
    return false;
}

/* One piece: waits until it is free, fills it and has it read. */
static cl_int write_piece(struct ring *ring, cl_command_queue queue, cl_mem to, size_t offset,
                          const void *from, size_t bytes) {
    const unsigned i = ring->next;
    char *piece = ring->at + (size_t)i * RING_PIECE;
    if (ring->read[i]) {
        const cl_int error = cl.clWaitForEvents(1, &ring->read[i]);
        if (error) return error;
        cl.clReleaseEvent(ring->read[i]);
        ring->read[i] = NULL;
    }
    memcpy(piece, from, bytes);
    ring->next = (i + 1) % RING_PIECES;
    const cl_int error =
        cl.clEnqueueWriteBuffer(queue, to, 0, offset, bytes, piece, 0, NULL, &ring->read[i]);
    return error ? error : cl.clFlush(queue); /* or it might wait for the next command */
}

cl_int opencl_ring_write(struct ring *ring, cl_context context, cl_command_queue queue, cl_mem to,
                         size_t offset, const void *from, size_t bytes) {
    const char *at = from;
    cl_int error = CL_SUCCESS;
    if (bytes <= RING_LEAST || !ring_ready(ring, context, queue))
        return cl.clEnqueueWriteBuffer(queue, to, 1, offset, bytes, from, 0, NULL, NULL);
    while (bytes > 0 && error == CL_SUCCESS) {
        const size_t part = bytes < RING_PIECE ? bytes : RING_PIECE;
        error = write_piece(ring, queue, to, offset, at, part);
        at += part;
        offset += part;
        bytes -= part;
    }
    return error;
}
