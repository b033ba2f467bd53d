/*
 * context.h - a CUDA device in one of its contexts: struct gpu, and how calls enter and leave the context.
 *
 * Each struct gpu works in the device's primary context, the one that everything else in the process uses, so that device
 * pointers can be handed in; or in a context of the caller's. A call makes that context current for its thread and
 * afterwards puts back what was there.
 *
 * Some errors are the end of a context: a kernel that goes astray, a device that fails. The device is
 * then marked as lost, all calls of all struct gpu on it fail, and the next open resets the context
 * and begins a new generation. A struct gpu of an older generation holds nothing any more: it can
 * only be closed. A lock that calls hold for reading keeps the reset away from calls under way.
 * A context of the caller's is never reset here, unless it is the primary one, for which generations
 * count, too. Any other is lost for good after such an error: the driver then fails every call.
 */
#ifndef TALLY_CUDA_CONTEXT_H
#define TALLY_CUDA_CONTEXT_H

#include "cuda/driver.h"
#include "gpu/cache.h"
#include "gpu/gpu.h"
#include "gpu/memory.h"
#include "gpu/ring.h"

#include <stdbool.h>

#define DEVICES_MAX 64

struct gpu {
    size_t index;
    char name[24]; /* "cuda:0" */
    CUdevice device;
    CUcontext context;
    bool given;          /* the context is the caller's */
    bool primary;        /* it is the device's primary one */
    unsigned generation; /* of the primary context, as of open() */
    bool entered;        /* a call is between cuda_begin() and cuda_end() */
    bool pushed;         /* and it has made the context current */
    CUstream stream;     /* ours */
    CUstream queue;      /* where launches and fills go: to ours, or to a caller's */
    struct gpu_ring ring;
    CUevent read[RING_CHUNKS]; /* of each chunk of the ring: the device has read it */
    CUevent marks[2];
    bool marked[2];
    struct gpu_facts facts;
    struct gpu_memory_list memory;
    struct gpu_cache cache;
    struct graphs *graphs; /* graphs.h; NULL before launches are held back */
};

/* Begins a call: on success the context is current for this thread, and stays alive until cuda_end(), which
 * every success needs. A context that is current already is not pushed. */
CUresult cuda_begin(struct gpu *gpu);
/* Ends a call with the result `error`, and restores the caller's context. Returns `error`, or the
 * error of the restore. */
CUresult cuda_end(struct gpu *gpu, CUresult error);
/* Do cuda_begin() and cuda_end() with a status and a line for tally_error(). Functions that free memory or
 * programs call cuda_begin() and cuda_end() themselves, to keep the line of an earlier failure. */
tally_status cuda_enter(struct gpu *gpu);
tally_status cuda_leave(struct gpu *gpu, CUresult error, const char *what);

/* Becomes a holder of the primary context, which is reset first where the device was lost. */
CUresult context_retain(struct gpu *gpu);
/* Uses a context of the caller's; it stays the caller's. */
CUresult context_take(struct gpu *gpu, CUcontext context);
/* Ends the use of either context: releases the primary one, and leaves the caller's as it is. */
void context_release(struct gpu *gpu);

#endif
