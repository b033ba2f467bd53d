/*
 * opened.h - an open GPU device of the engine: what device.c keeps of one, for whoever writes more of its calls (shaped.c).
 */
#ifndef TALLY_GPU_OPENED_H
#define TALLY_GPU_OPENED_H

#include "device.h"

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

    pthread_mutex_t lock; /* held by whoever uses what follows */
    struct queue queue;   /* closed after a failure */

    pthread_mutex_t
        theirs_lock;     /* the same, for a moment; taken after `lock` by whoever takes both */
    struct queue theirs; /* launches for queues of the caller's; closed until it is needed */
    bool theirs_lost;    /* and closed, after a failure */
};

static inline struct gpu_device *own(const tally_device *device) {
    return (struct gpu_device *)device;
}

/* Takes the device, whose queue is then open; the call came to `s`, which is returned: after a failure what is
 * under way is waited for, as it may use the caller's memory. */
tally_status gpu_enter(struct gpu_device *d);
tally_status gpu_leave(struct gpu_device *d, tally_status s);

/* The same for the queue whose launches go to queues of the caller's. */
tally_status gpu_enter_theirs(struct gpu_device *d, bool may_open);
tally_status gpu_leave_theirs(struct gpu_device *d, tally_status s);

/* Bytes of the host's in a piece of the device's memory; the host's memory itself where that will do. */
tally_status gpu_bring(struct gpu_device *d, const void *bytes, size_t size, size_t alignment,
                       struct gpu_memory **piece);

/* TALLY_EINVAL where memory of the caller's is not aligned. */
tally_status gpu_check_alignment(const struct gpu_device *d, const void *memory, size_t alignment);

/* What makes a piece of the device's memory of the caller's: the api's wrap or adopt. */
typedef tally_status gpu_taker(struct gpu *gpu, void *theirs, size_t bytes,
                               struct gpu_memory **out);
/* Memory of the caller's as a piece; none for NULL and for no bytes. TALLY_EINVAL where the device has addresses and
 * this one is not aligned. */
tally_status gpu_take(struct gpu_device *d, struct gpu *gpu, gpu_taker *how, const void *theirs,
                      size_t bytes, size_t alignment, struct gpu_memory **piece);
/* The same, wrapped, for the caller's queues. */
tally_status gpu_wrap(struct gpu_device *d, const void *theirs, size_t bytes, size_t alignment,
                      struct gpu_memory **piece);

/* Those of words for ranks. */
tally_status gpu_words_measure(tally_device *device, const struct problem *p, size_t n,
                               size_t count, tally_words *out);
tally_status gpu_enqueue_words(tally_device *device, const struct problem *p,
                               const tally_words_call *call);
tally_status gpu_enqueue_values(tally_device *device, const struct problem *p,
                                const tally_values_call *call);

/* That of arrays which are added up over ranks. */
tally_status gpu_terms(tally_device *device, enum terms_step step, const terms_plan *plan,
                       const tally_terms_call *call);

/* The calls of struct device_kind for reductions in parts. */
tally_status gpu_shaped(tally_device *device, const struct shaped *s);
tally_status gpu_sort(tally_device *device, const struct shaped *s, struct sorted *out);
tally_status gpu_shaped_resident(tally_device *device, const struct shaped *s);
tally_status gpu_shaped_workspace(tally_device *device, const struct shaped *s, size_t *bytes);
tally_status gpu_shaped_enqueue(tally_device *device, const struct shaped *s,
                                const tally_shaped_call *call);

#endif
