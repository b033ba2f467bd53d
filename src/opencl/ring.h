/*
 * ring.h - large writes to an OpenCL device that is no CPU, through a few pieces of its own host memory.
 *
 * Such memory, a buffer that is mapped once and for all, is what OpenCL has for pinned memory: drivers
 * read it without a copy in between. The CPU copies into one piece while the device reads the ones
 * before. A piece has an event that says when it has been read, and so is free again.
 */
#ifndef TALLY_OPENCL_RING_H
#define TALLY_OPENCL_RING_H

#include "opencl/opencl.h"

#include <stdbool.h>

/* For the reasons that cuda/ring.h gives. */
enum { RING_PIECES = 4, RING_PIECE = 2 << 20, RING_LEAST = 64 << 10 };

struct ring {
    cl_mem memory; /* the pieces; NULL before the first write, and where there is no such memory */
    char *at;      /* where the host sees them */
    cl_event read[RING_PIECES];
    unsigned next; /* the piece whose turn it is */
    bool refused;  /* there was no such memory: not asked for again */
};

/* Writes by `queue`, an in-order one of `context`, the same each time. Returns once `from` may be changed;
 * the device may then still be reading the ring. Small writes do without it. */
cl_int opencl_ring_write(struct ring *ring, cl_context context, cl_command_queue queue, cl_mem to,
                         size_t offset, const void *from, size_t bytes);

/* Gives all back. Its last command may be under way. */
void opencl_ring_close(struct ring *ring, cl_command_queue queue);

#endif
