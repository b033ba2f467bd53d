/*
 * opened.h - an open GPU device of the engine: its struct, the functions that its files share, and the calls of struct
 * device_kind that shaped.c, words.c and terms.c define.
 */
#ifndef TALLY_GPU_OPENED_H
#define TALLY_GPU_OPENED_H

#include "device/device.h"

#include "gpu/queue.h"

#include <pthread.h>
#include <stdbool.h>

struct gpu_device {
    tally_device base;
    const struct gpu_api *api;
    size_t index;
    void *context;   /* the caller's, or NULL */
    unsigned block;  /* threads of a block */
    uint64_t memory; /* bytes it is to use at most */
    struct gpu_facts facts;

    pthread_mutex_t lock; /* guards the fields below */
    struct queue queue;   /* closed where the device was lost */

    /* Guards the fields below, never held for long; taken after `lock` by a thread that takes both. */
    pthread_mutex_t theirs_lock;
    struct queue theirs; /* launches for queues of the caller's; closed until it is needed */
    bool theirs_lost;    /* it is closed because the device was lost */
};

static inline struct gpu_device *own(const tally_device *device) {
    return (struct gpu_device *)device;
}

/* Takes the device's lock, and opens its queue where it is closed. Where that fails, the lock is free again. */
tally_status gpu_enter(struct gpu_device *d);
/* Ends a call whose status is `s`: releases the lock, and returns `s`. After a failure it first
 * waits for the work under way; if the device was lost, it closes the queue. */
tally_status gpu_leave(struct gpu_device *d, tally_status s);

/* Takes the lock of the queue whose launches go to callers' queues. It holds the lock even if it
 * fails, so gpu_leave_theirs() always follows; that waits for nothing. `may_open`: it opens the
 * queue again after a loss, which otherwise is TALLY_ELOST. */
tally_status gpu_enter_theirs(struct gpu_device *d, bool may_open);
tally_status gpu_leave_theirs(struct gpu_device *d, tally_status s);

/* Makes *buffer, which is NULL before, a copy of `size` bytes of the host's, and waits for it. If
 * the device reads host memory, *buffer stands for that. The caller releases it, also after a
 * failure. */
tally_status gpu_bring(struct gpu_device *d, const void *bytes, size_t size, size_t alignment,
                       struct gpu_memory **buffer);

/* Returns TALLY_EINVAL unless the address is a multiple of `alignment`. */
tally_status gpu_check_alignment(const struct gpu_device *d, const void *memory, size_t alignment);

/* Makes a buffer that stands for the caller's memory: the api's wrap or adopt. */
typedef tally_status gpu_taker(struct gpu *gpu, void *theirs, size_t bytes,
                               struct gpu_memory **out);
/* Makes *buffer stand for the caller's memory, or NULL if that is NULL or has no bytes. Returns
 * TALLY_EINVAL if the device has addresses and this one is not aligned. */
tally_status gpu_take(struct gpu_device *d, struct gpu *gpu, gpu_taker *how, const void *theirs,
                      size_t bytes, size_t alignment, struct gpu_memory **buffer);
/* Does gpu_take() by wrap(), for the queue whose launches go to callers' queues. */
tally_status gpu_wrap(struct gpu_device *d, const void *theirs, size_t bytes, size_t alignment,
                      struct gpu_memory **buffer);

/* Do the work of struct device_kind for words of ranks (words.c). */
tally_status gpu_words_measure(tally_device *device, const struct problem *p, size_t n,
                               size_t count, tally_words *out);
tally_status gpu_enqueue_words(tally_device *device, const struct problem *p,
                               const tally_words_call *call);
tally_status gpu_enqueue_values(tally_device *device, const struct problem *p,
                                const tally_values_call *call);
tally_status gpu_enqueue_shared(tally_device *device, const struct problem *p,
                                const tally_shared_call *call);

/* Do the work of struct device_kind for arrays that are added up over ranks (terms.c). */
tally_status gpu_terms(tally_device *device, enum terms_step step, const terms_plan *plan,
                       const tally_terms_call *call);

tally_status gpu_terms_shared(tally_device *device, const terms_plan *plan, unsigned ranks,
                              const tally_terms_shared_call *call);

/* Do the work of struct device_kind for reductions in parts (shaped.c). */
tally_status gpu_shaped(tally_device *device, const struct shaped *s);
tally_status gpu_sort(tally_device *device, const struct shaped *s, struct sorted *out);
tally_status gpu_shaped_resident(tally_device *device, const struct shaped *s);
bool gpu_is_captured(tally_device *device, void *queue);
tally_status gpu_shaped_workspace(tally_device *device, const struct shaped *s, size_t *bytes);
tally_status gpu_shaped_enqueue(tally_device *device, const struct shaped *s,
                                const tally_shaped_call *call);

#endif
