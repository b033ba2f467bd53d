/* context.c - see context.h. */
#include "cuda/context.h"

#include "base/invariant.h"
#include "cuda/errors.h"

#include <pthread.h>
#include <stdatomic.h>

static struct device {
    pthread_rwlock_t lock; /* read: a call is under way. write: the context is reset */
    atomic_bool lost;
    atomic_uint generation;
} devices[DEVICES_MAX] = {[0 ... DEVICES_MAX - 1] = {.lock = PTHREAD_RWLOCK_INITIALIZER}};

/* Marks the device as lost if this error is the end of the primary context. (A caller's own context is not
 * ours to begin anew.) */
static void note_loss(const struct gpu *gpu, CUresult error) {
    if (gpu->primary && cuda_is_final(error)) devices[gpu->index].lost = true;
}

CUresult cuda_begin(struct gpu *gpu) {
    struct device *d = &devices[gpu->index];
    CUcontext current = NULL;
    TALLY_ASSERT(!gpu->entered);
    pthread_rwlock_rdlock(&d->lock);
    CUresult error = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!gpu->primary || gpu->generation == d->generation) {
        gpu->pushed = cu.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != gpu->context;
        error = gpu->pushed ? cu.cuCtxPushCurrent(gpu->context) : CUDA_SUCCESS;
        gpu->entered = error == CUDA_SUCCESS;
        if (gpu->entered) return CUDA_SUCCESS;
        note_loss(gpu, error);
    }
    pthread_rwlock_unlock(&d->lock);
    return error;
}

CUresult cuda_end(struct gpu *gpu, CUresult error) {
    struct device *d = &devices[gpu->index];
    CUcontext ours;
    TALLY_ASSERT(gpu->entered);
    const CUresult popped = gpu->pushed ? cu.cuCtxPopCurrent(&ours) : CUDA_SUCCESS;
    gpu->entered = false;
    if (error == CUDA_SUCCESS) error = popped;
    note_loss(gpu, error);
    pthread_rwlock_unlock(&d->lock);
    return error;
}

tally_status cuda_enter(struct gpu *gpu) {
    return cuda_outcome(gpu->index, cuda_begin(gpu), "entering the device's context");
}

tally_status cuda_leave(struct gpu *gpu, CUresult error, const char *what) {
    return cuda_outcome(gpu->index, cuda_end(gpu, error), what);
}

/* Resets the device's primary context and begins a new generation, unless another thread has done
 * so. First waits until no call is under way. */
static CUresult begin_anew(struct gpu *gpu) {
    struct device *d = &devices[gpu->index];
    CUresult error = CUDA_SUCCESS;
    pthread_rwlock_wrlock(&d->lock);
    if (d->lost) {
        error = cu.cuDevicePrimaryCtxReset(gpu->device);
        if (error == CUDA_SUCCESS) {
            d->generation++;
            d->lost = false;
        }
    }
    pthread_rwlock_unlock(&d->lock);
    return error;
}

CUresult context_retain(struct gpu *gpu) {
    struct device *d = &devices[gpu->index];
    CUresult error = d->lost ? begin_anew(gpu) : CUDA_SUCCESS;
    if (error) return error;
    pthread_rwlock_rdlock(&d->lock);
    error = cu.cuDevicePrimaryCtxRetain(&gpu->context, gpu->device);
    gpu->primary = true;
    gpu->generation = d->generation;
    note_loss(gpu, error);
    pthread_rwlock_unlock(&d->lock);
    return error;
}

void context_release(struct gpu *gpu) {
    struct device *d = &devices[gpu->index];
    if (gpu->given) return;
    pthread_rwlock_rdlock(&d->lock);
    cu.cuDevicePrimaryCtxRelease(gpu->device);
    pthread_rwlock_unlock(&d->lock);
}

/* Finds whether `context` is the device's primary one, without making a primary one where there is none. */
static CUresult is_primary(CUdevice device, CUcontext context, bool *out) {
    unsigned flags = 0;
    int active = 0;
    CUcontext primary = NULL;
    CUresult error = cu.cuDevicePrimaryCtxGetState(device, &flags, &active);
    *out = false;
    if (error || !active) return error;
    error = cu.cuDevicePrimaryCtxRetain(&primary, device);
    if (error) return error;
    *out = primary == context;
    return cu.cuDevicePrimaryCtxRelease(device);
}

CUresult context_take(struct gpu *gpu, CUcontext context) {
    struct device *d = &devices[gpu->index];
    gpu->context = context;
    gpu->given = true;
    pthread_rwlock_rdlock(&d->lock);
    CUresult error = is_primary(gpu->device, context, &gpu->primary);
    gpu->generation = d->generation;
    note_loss(gpu, error);
    pthread_rwlock_unlock(&d->lock);
    return error;
}
