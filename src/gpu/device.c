/*
 * device.c - a GPU as a device of the engine: the same code for CUDA, OpenCL and the model.
 *
 * Arrays go to the device in chunks; each chunk is a launch for each program of the problem (capability.h), which
 * adds it to records in the device's memory (kernels/records.h). The records are
 * read back once, at the end, and become the states of monoids. So an array may be larger than the device's
 * memory. The host copies a chunk into pinned memory while the one before is still on its way (ring.h). A device
 * that reads host memory as fast as its own (a CPU behind OpenCL) is handed the array itself.
 *
 * An array that lies on the device already is reduced by one launch, or a few for a tree, down to the value; where
 * kernels do not give the values, by a launch for each program, and the host lowers the records.
 *
 * One call at a time uses the device; others wait. A device that is lost is closed, and opened again by the next
 * call. The calls that put work on queues of the caller's, tally_enqueue() and the like, have a queue and a lock of
 * their own, which nobody holds while work is under way: they wait for no reduction. After a loss they fail until a
 * call that may wait has opened that queue again.
 */
#include "base/paths.h"
#include "base/status.h"
#include "base/stop.h"
#include "base/types.h"
#include "gpu/all.h"
#include "gpu/few.h"
#include "gpu/opened.h"
#include "gpu/options.h"
#include "gpu/roof.h"
#include "gpu/shown.h"
#include "gpu/source.h"
#include "gpu/tuning.h"
#include "gpu/whole.h"
#include "gpu/whole_request.h"
#include "gpu/whole_tree.h"
#include "kernels/tuning.h"
#include "problem/lower.h"
#include "problem/tree.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAGING_ALIGNED 4096

/* ---- Opened and closed -------------------------------------------------------------------- */

static tally_status open_queue(struct gpu_device *d, struct queue *queue) {
    if (queue->gpu) return TALLY_OK;
    tally_status s = queue_open(queue, d->api, d->index, d->context, d->block);
    queue->has_slow_doubles = d->facts.has_slow_doubles;
    return s;
}

/* Opens the queue for launches on the caller's queues where it is closed; its lock is held. */
static tally_status open_theirs(struct gpu_device *d) {
    if (d->theirs.gpu) return TALLY_OK;
    tally_status s = queue_open_bare(&d->theirs, d->api, d->index, d->context, d->block);
    d->theirs.has_slow_doubles = d->facts.has_slow_doubles;
    if (s == TALLY_OK) d->theirs_lost = false;
    return s;
}

/* Opens that queue again if it was lost. Every call that uses the device's own queue calls this. */
static tally_status reopen_theirs(struct gpu_device *d) {
    pthread_mutex_lock(&d->theirs_lock);
    tally_status s = d->theirs_lost ? open_theirs(d) : TALLY_OK;
    pthread_mutex_unlock(&d->theirs_lock);
    return s;
}

tally_status gpu_enter(struct gpu_device *d) {
    pthread_mutex_lock(&d->lock);
    tally_status s = open_queue(d, &d->queue);
    if (s == TALLY_OK) s = reopen_theirs(d);
    if (s != TALLY_OK) pthread_mutex_unlock(&d->lock);
    return s;
}

/* Waits for all work under way. */
static tally_status finish(struct gpu_device *d) {
    return d->queue.gpu ? d->api->finish(d->queue.gpu) : TALLY_OK;
}

/* After a failure `s` waits for the work under way, which may use the caller's memory.
 * tally_error() keeps the line of `s`. */
tally_status gpu_leave(struct gpu_device *d, tally_status s) {
    if (s != TALLY_OK && s != TALLY_ELOST) {
        char why[512];
        snprintf(why, sizeof why, "%s", tally_error());
        tally_status finished = finish(d);
        fail(s, "%s", why);
        if (finished == TALLY_ELOST) queue_close(&d->queue);
    } else if (s == TALLY_ELOST) {
        queue_close(&d->queue);
    }
    pthread_mutex_unlock(&d->lock);
    return s;
}

/* ---- Chunks ------------------------------------------------------------------------------- */

/* Brings arrays to the device, chunk by chunk. */
struct feed {
    struct gpu_device *d;
    const char *x, *y; /* y is NULL where there is one array */
    size_t n, element;
    size_t chunk, taken;  /* elements of a chunk; elements before the next chunk */
    bool adopts;          /* the arrays themselves are handed over */
    struct gpu_rest *all; /* the chunks that several devices' feeds share; NULL: this one has all */
};

static size_t at_most(uint64_t limit, size_t value) {
    return value < limit ? value : (size_t)limit;
}

/* Begins a feed of a slice whose chunks, but for the last, are multiples of `grain` elements. */
static tally_status feed_start(struct gpu_device *d, struct feed *f, const struct slice *in,
                               size_t element, size_t grain) {
    const unsigned arrays = in->y ? 2 : 1;
    *f = (struct feed){.d = d, .x = in->x, .y = in->y, .n = in->n, .element = element};
    f->adopts = d->facts.reads_host_memory && (uintptr_t)in->x % element == 0 &&
                (uintptr_t)in->y % element == 0;
    const size_t bytes =
        f->adopts ? at_most(d->facts.allocation_max, SIZE_MAX / 2)
                  : at_most(d->memory / 4 / arrays, at_most(d->facts.allocation_max, STAGING_MAX));
    f->chunk = at_most(whole_launch_max(&d->queue), bytes / element);
    if (grain > 1) f->chunk -= f->chunk % grain;
    if (f->chunk == 0)
        return fail(TALLY_ENOMEM, "%s:%zu has too little memory for a chunk of %zu elements",
                    d->api->name, d->index, grain);
    return TALLY_OK;
}

/* Makes *buffer one array's part of a chunk: the array itself, or the queue's staging buffer number
 * i, to which a copy is on its way. */
static tally_status feed_piece(struct feed *f, struct queue *queue, const char *from, size_t bytes,
                               int i, struct gpu_memory **buffer) {
    const size_t room = (bytes + STAGING_ALIGNED - 1) / STAGING_ALIGNED * STAGING_ALIGNED;
    if (f->adopts) return queue->api->adopt(queue->gpu, (void *)(uintptr_t)from, bytes, buffer);
    tally_status s = queue_reserve(queue, &queue->staging[i], &queue->staging_bytes[i], room);
    if (s != TALLY_OK) return s;
    *buffer = queue->staging[i];
    return queue->api->write(queue->gpu, *buffer, 0, from, bytes);
}

/* Releases the buffers that stand for a chunk of the caller's arrays; staging buffers stay. */
static void feed_release(struct feed *f, struct inputs *in) {
    struct queue *queue = &f->d->queue;
    if (f->adopts) {
        queue->api->release(queue->gpu, in->x);
        queue->api->release(queue->gpu, in->y);
    }
    in->x = in->y = NULL;
}

/* Returns how many elements the next chunk has, from *first on, and takes them; 0 at the end. */
static size_t feed_take(struct feed *f, size_t *first) {
    *first = f->all ? __atomic_fetch_add(&f->all->taken, f->chunk, __ATOMIC_RELAXED) : f->taken;
    f->taken = *first + f->chunk;
    if (*first >= f->n || (f->all && __atomic_load_n(&f->all->ended, __ATOMIC_RELAXED))) return 0;
    return f->n - *first < f->chunk ? f->n - *first : f->chunk;
}

/* Brings the next chunk on its way to the device; in->n is 0 at the end. */
static tally_status feed_next(struct feed *f, struct inputs *in) {
    struct queue *queue = &f->d->queue;
    size_t first;
    const size_t n = feed_take(f, &first);
    *in = (struct inputs){.first = first, .n = n};
    if (n == 0) return TALLY_OK;
    const size_t at = first * f->element, bytes = n * f->element;
    tally_status s = feed_piece(f, queue, f->x + at, bytes, 0, &in->x);
    if (s == TALLY_OK && f->y) s = feed_piece(f, queue, f->y + at, bytes, 1, &in->y);
    if (s != TALLY_OK) feed_release(f, in);
    return s;
}

/* ---- The engine's calls ------------------------------------------------------------------- */

/* Folds the elements of a slice; or, where `rest` is not NULL, those of its chunks that no other device takes. */
static tally_status fold(struct gpu_device *d, const struct problem *p, const struct slice *in,
                         struct gpu_rest *rest, struct state *into) {
    struct inputs chunk;
    struct feed f = {0};
    struct state all;
    uint64_t n = 0;
    state_clear(p, &all);
    tally_status s = feed_start(d, &f, in, type_size(p->type), 1);
    f.all = rest;
    if (rest && rest->each < f.chunk) f.chunk = rest->each;
    if (s == TALLY_OK && f.chunk < in->n) TALLY_PATH("chunks");
    if (s == TALLY_OK && f.chunk >= in->n) TALLY_PATH("one chunk");
    if (s == TALLY_OK) s = whole_clear(&d->queue, p);
    while (s == TALLY_OK && (s = feed_next(&f, &chunk)) == TALLY_OK && chunk.n > 0) {
        s = whole_fold(&d->queue, p, &chunk);
        feed_release(&f, &chunk);
        n += chunk.n;
        if (s == TALLY_OK && stop_asked()) s = stop_status();
    }
    if (s != TALLY_OK && rest) __atomic_store_n(&rest->ended, 1, __ATOMIC_RELAXED);
    if (s == TALLY_OK) s = whole_take(&d->queue, p, &all);
    all.n = n;
    if (s == TALLY_OK) state_merge(p, into, &all, into->n);
    return s;
}

static tally_status gpu_fold(tally_device *device, const struct problem *p, const struct slice *in,
                             struct state *into) {
    struct gpu_device *d = own(device);
    tally_status s = gpu_enter(d);
    return s == TALLY_OK ? gpu_leave(d, fold(d, p, in, NULL, into)) : s;
}

tally_status gpu_fold_rest(tally_device *device, const struct problem *p, const struct slice *in,
                           struct gpu_rest *rest, struct state *into) {
    struct gpu_device *d = own(device);
    tally_status s = gpu_enter(d);
    return s == TALLY_OK ? gpu_leave(d, fold(d, p, in, rest, into)) : s;
}

/* Values of nodes that a launch is working out: bytes of queue->values, from `at` on, that are to go to `out`. */
struct owed {
    char *out;
    size_t at, bytes;
};

static tally_status collect(struct queue *queue, struct owed *owed) {
    tally_status s = TALLY_OK;
    if (owed->bytes > 0)
        s = queue->api->read(queue->gpu, owed->out, queue->values, owed->at, owed->bytes);
    owed->bytes = 0;
    return s;
}

/* Evaluates subtrees of 2^level leaves, chunk by chunk; `out` gets their values. A chunk's values
 * are read back after the next one's copy has begun. */
static tally_status whole_leaves(struct feed *f, const struct problem *p, unsigned level,
                                 char *out) {
    const size_t grain = (size_t)TREE_LEAF << level, size = tree_value_size(p);
    struct queue *queue = &f->d->queue;
    struct owed owed = {0};
    struct inputs chunk;
    tally_status s = TALLY_OK;
    while (s == TALLY_OK && (s = feed_next(f, &chunk)) == TALLY_OK && chunk.n > 0) {
        s = collect(queue, &owed);
        if (s == TALLY_OK) s = whole_tree_leaves(queue, p, chunk.x, chunk.n, level, &owed.at);
        owed.out = out;
        owed.bytes = (chunk.n + grain - 1) / grain * size;
        out += owed.bytes;
        feed_release(f, &chunk);
    }
    return s == TALLY_OK ? collect(queue, &owed) : s;
}

/* Evaluates the subtrees if a chunk has no room for one of that level. The device evaluates subtrees
 * of level `fitting`, and the host joins them. n is a multiple of the elements of the larger
 * subtree. */
static tally_status joined_leaves(struct gpu_device *d, const struct problem *p, const char *x,
                                  size_t n, unsigned level, unsigned fitting, char *out) {
    const size_t grain = (size_t)TREE_LEAF << level, parts = (size_t)1 << (level - fitting);
    const size_t size = tree_value_size(p), element = type_size(p->type);
    char *values = malloc(parts * size);
    tally_status s = TALLY_OK;
    if (!values) return fail(TALLY_ENOMEM, "no memory for %zu values of a tree", parts);
    for (; n > 0 && s == TALLY_OK; n -= grain, x += grain * element, out += size) {
        const struct slice in = {x, NULL, grain};
        struct feed f;
        struct tree t;
        s = feed_start(d, &f, &in, element, (size_t)TREE_LEAF << fitting);
        if (s == TALLY_OK) s = whole_leaves(&f, p, fitting, values);
        tree_clear(&t, 0);
        for (size_t i = 0; i < parts && s == TALLY_OK; i++)
            tree_append(p, &t, values + i * size, fitting);
        if (s == TALLY_OK) memcpy(out, &t.node[0].value, size);
    }
    free(values);
    return s;
}

static tally_status leaves(struct gpu_device *d, const struct problem *p, const void *x, size_t n,
                           unsigned level, char *out) {
    const struct slice in = {x, NULL, n};
    const size_t element = type_size(p->type);
    unsigned fitting = level;
    struct feed f;
    tally_status s = feed_start(d, &f, &in, element, TREE_LEAF);
    while (s == TALLY_OK && fitting > 0 && f.chunk < (size_t)TREE_LEAF << fitting)
        fitting--;
    if (s == TALLY_OK && fitting < level) {
        TALLY_PATH("subtrees that the host joins");
        return joined_leaves(d, p, x, n, level, fitting, out);
    }
    TALLY_PATH("whole subtrees");
    if (s == TALLY_OK) s = feed_start(d, &f, &in, element, (size_t)TREE_LEAF << level);
    return s == TALLY_OK ? whole_leaves(&f, p, level, out) : s;
}

static tally_status gpu_leaves(tally_device *device, const struct problem *p, const void *x,
                               size_t n, unsigned level, void *out) {
    struct gpu_device *d = own(device);
    tally_status s = source_check(p);
    if (s != TALLY_OK) return s;
    s = gpu_enter(d);
    return s == TALLY_OK ? gpu_leave(d, leaves(d, p, x, n, level, out)) : s;
}

/* ---- Data on the device ------------------------------------------------------------------- */

tally_status gpu_check_alignment(const struct gpu_device *d, const void *memory, size_t alignment) {
    if ((uintptr_t)memory % alignment == 0) return TALLY_OK;
    return fail(TALLY_EINVAL, "%s:%zu: memory that should be aligned to %zu bytes is not",
                d->api->name, d->index, alignment);
}

tally_status gpu_take(struct gpu_device *d, struct gpu *gpu, gpu_taker *how, const void *theirs,
                      size_t bytes, size_t alignment, struct gpu_memory **buffer) {
    *buffer = NULL;
    if (!theirs || bytes == 0) return TALLY_OK;
    const tally_status s =
        d->facts.has_addresses ? gpu_check_alignment(d, theirs, alignment) : TALLY_OK;
    return s == TALLY_OK ? how(gpu, (void *)(uintptr_t)theirs, bytes, buffer) : s;
}

tally_status gpu_wrap(struct gpu_device *d, const void *theirs, size_t bytes, size_t alignment,
                      struct gpu_memory **buffer) {
    return gpu_take(d, d->theirs.gpu, d->api->wrap, theirs, bytes, alignment, buffer);
}

/* Returns the problem of the canonical tree alone, for one with other monoids beside it. */
static struct problem tree_problem(const struct problem *p) {
    struct problem tree = *p;
    unsigned i = 0;
    while (p->value[i].op != TALLY_PROD && p->value[i].op != TALLY_USER)
        i++;
    tree.monoids = MONOID_BIT(MONOID_TREE);
    tree.values = 1;
    tree.value[0] = p->value[i];
    return tree;
}

/* Reduces elements that lie in the device's memory: by the kernel that gives the values, or by records from which
 * the host lowers the values. Where `seconds` is not NULL, it is given the device's time for the launches. */
static tally_status reduce_buffers(struct queue *queue, const struct problem *p,
                                   const struct inputs *in, tally_value *out, double *seconds) {
    struct state state;
    tally_value root = {.type = 0};
    double tree_took = 0;
    tally_status s = TALLY_OK;
    if (whole_gives_values(p)) return whole_reduce(queue, p, in, out, seconds);
    state_clear(p, &state);
    if (problem_has(p, MONOID_TREE)) {
        const struct problem tree = tree_problem(p);
        s = whole_reduce(queue, &tree, in, &root, seconds ? &tree_took : NULL);
    }
    if (s == TALLY_OK) s = whole_clear(queue, p);
    if (s == TALLY_OK && seconds) s = queue->api->mark(queue->gpu, 0);
    if (s == TALLY_OK) s = whole_fold(queue, p, in);
    if (s == TALLY_OK && seconds) s = queue->api->mark(queue->gpu, 1);
    if (s == TALLY_OK) s = whole_take(queue, p, &state);
    if (s == TALLY_OK && seconds) s = queue->api->elapsed(queue->gpu, seconds);
    if (s != TALLY_OK) return s;
    if (seconds) *seconds += tree_took;
    state.n = in->n;
    return lower_values(p, &state, &root, out);
}

static void release_inputs(struct gpu_device *d, struct inputs *in) {
    d->api->release(d->queue.gpu, in->x);
    d->api->release(d->queue.gpu, in->y);
}

/* Makes buffers for an array on the device; release_inputs() ends them, also after a
 * failure. */
static tally_status adopt_inputs(struct gpu_device *d, const struct problem *p,
                                 const struct slice *in, struct inputs *buffers) {
    const size_t element = type_size(p->type), bytes = in->n * element;
    struct gpu *gpu = d->queue.gpu;
    *buffers = (struct inputs){.n = in->n};
    tally_status s = gpu_check_alignment(d, in->x, element);
    if (s == TALLY_OK) s = gpu_check_alignment(d, in->y, element);
    if (s == TALLY_OK) s = d->api->adopt(gpu, (void *)(uintptr_t)in->x, bytes, &buffers->x);
    if (s == TALLY_OK && in->y)
        s = d->api->adopt(gpu, (void *)(uintptr_t)in->y, bytes, &buffers->y);
    return s;
}

/* Reduces elements in the device's memory that are no NaNs. */
static tally_status reduce_shown(struct gpu_device *d, const struct problem *p,
                                 const struct inputs *in, tally_value *out) {
    struct queue *queue = &d->queue;
    tally_result result[TALLY_VALUES_MAX];
    struct gpu_memory *results = NULL;
    const size_t bytes = p->values * sizeof *result;
    tally_status s = problem_has(p, MONOID_TREE) ? source_check(p) : TALLY_OK;
    if (s == TALLY_OK) s = queue_reserve_parts(queue, shown_workspace_whole(queue, p, in->n));
    if (s == TALLY_OK) s = d->api->allocate(queue->gpu, bytes, &results);
    if (s == TALLY_OK) s = shown_enqueue_whole(queue, p, in, queue->parts_work, results);
    if (s == TALLY_OK) s = d->api->read(queue->gpu, result, results, 0, bytes);
    d->api->release(queue->gpu, results);
    for (unsigned v = 0; s == TALLY_OK && v < p->values; v++) {
        const tally_status status = (tally_status)result[v].status;
        out[v] = (tally_value){.type = 0};
        if (status == TALLY_OK)
            out[v] = value_of_bits(p->value[v].type, result[v].as.u64);
        else if (p->values == 1)
            s = lower_absence(p, status);
    }
    return s;
}

static tally_status reduce_resident(struct gpu_device *d, const struct problem *p,
                                    const struct slice *in, tally_value *out) {
    struct inputs buffers;
    tally_status s = adopt_inputs(d, p, in, &buffers);
    if (s == TALLY_OK)
        s = p->skip_nan ? reduce_shown(d, p, &buffers, out)
                        : reduce_buffers(&d->queue, p, &buffers, out, NULL);
    release_inputs(d, &buffers);
    return s;
}

static tally_status fold_resident(struct gpu_device *d, const struct problem *p,
                                  const struct slice *in, struct state *into, char *values) {
    const size_t leaves = in->n / TREE_LEAF + (in->n % TREE_LEAF != 0);
    struct queue *queue = &d->queue;
    struct inputs buffers;
    size_t at = 0;
    const bool folds = (p->monoids & ~MONOID_BIT(MONOID_TREE)) != 0;
    tally_status s = adopt_inputs(d, p, in, &buffers);
    if (s == TALLY_OK && folds) s = whole_clear(queue, p);
    if (s == TALLY_OK && folds) s = whole_fold(queue, p, &buffers);
    if (s == TALLY_OK && folds) s = whole_take(queue, p, into);
    if (s == TALLY_OK && values) s = whole_tree_leaves(queue, p, buffers.x, in->n, 0, &at);
    if (s == TALLY_OK && values)
        s = d->api->read(queue->gpu, values, queue->values, at, leaves * tree_value_size(p));
    release_inputs(d, &buffers);
    return s;
}

tally_status gpu_fold_resident(tally_device *device, const struct problem *p,
                               const struct slice *in, struct state *into, char *values) {
    struct gpu_device *d = own(device);
    tally_status s = source_check(p);
    if (s == TALLY_OK) s = gpu_enter(d);
    return s == TALLY_OK ? gpu_leave(d, fold_resident(d, p, in, into, values)) : s;
}

static tally_status gpu_fold_here(tally_device *device, const struct problem *p,
                                  const struct slice *in, struct state *into) {
    return gpu_fold_resident(device, p, in, into, NULL);
}

static tally_status gpu_copy_out(tally_device *device, void *to, const void *from, size_t bytes) {
    struct gpu_device *d = own(device);
    struct gpu_memory *memory = NULL;
    tally_status s = gpu_enter(d);
    if (s != TALLY_OK) return s;
    s = d->api->adopt(d->queue.gpu, (void *)(uintptr_t)from, bytes, &memory);
    if (s == TALLY_OK) s = d->api->read(d->queue.gpu, to, memory, 0, bytes);
    d->api->release(d->queue.gpu, memory);
    return gpu_leave(d, s);
}

static void copy_values(const struct problem *p, const tally_value *from, tally_value *to) {
    memcpy(to, from, p->values * sizeof *to);
}

static tally_status gpu_resident(tally_device *device, const struct problem *p,
                                 const struct slice *in, tally_value *out) {
    struct gpu_device *d = own(device);
    tally_value values[TALLY_VALUES_MAX];
    tally_status s = gpu_enter(d);
    if (s != TALLY_OK) return s;
    s = gpu_leave(d, reduce_resident(d, p, in, values));
    if (s == TALLY_OK) copy_values(p, values, out);
    return s;
}

/* Ends a call on the caller's queue. Unlike gpu_leave(), it waits for nothing: our own queue has no
 * work, and the caller's may be in a capture. */
tally_status gpu_leave_theirs(struct gpu_device *d, tally_status s) {
    if (s == TALLY_ELOST) {
        queue_close(&d->theirs);
        d->theirs_lost = true;
    }
    pthread_mutex_unlock(&d->theirs_lock);
    return s;
}

tally_status gpu_enter_theirs(struct gpu_device *d, bool may_open) {
    pthread_mutex_lock(&d->theirs_lock);
    if (!d->theirs_lost || may_open) return open_theirs(d);
    return fail(TALLY_ELOST, "%s:%zu was lost; tally_workspace() opens it again", d->api->name,
                d->index);
}

/* Makes *bytes the size of the workspace that tally_enqueue() needs, and compiles the kernels that
 * it launches. */
static tally_status gpu_workspace(tally_device *device, const struct problem *p, size_t n,
                                  size_t *bytes) {
    struct gpu_device *d = own(device);
    tally_status s = gpu_enter_theirs(d, true);
    if (s == TALLY_OK && p->skip_nan) {
        s = problem_has(p, MONOID_TREE) ? source_check(p) : TALLY_OK;
        if (s == TALLY_OK) s = shown_prepare_whole(&d->theirs, p, n);
        if (s == TALLY_OK) *bytes = shown_workspace_whole(&d->theirs, p, n);
        return gpu_leave_theirs(d, s);
    }
    if (s == TALLY_OK) s = whole_prepare(&d->theirs, p, n, bytes);
    if (s == TALLY_OK && !whole_gives_values(p)) s = few_prepare(&d->theirs);
    return gpu_leave_theirs(d, s);
}

/* The caller's memory as buffers. Every call asks the driver anew for each of them: a kernel that
 * reads memory after the caller has freed it would end the device's context. */
struct their_memory {
    struct inputs in;
    struct gpu_memory *work, *results;
};

static tally_status wrap(struct gpu_device *d, const struct problem *p, const tally_call *call,
                         struct their_memory *m) {
    struct gpu *gpu = d->theirs.gpu;
    const size_t bytes = call->n * type_size(p->type);
    tally_status s = TALLY_OK;
    *m = (struct their_memory){.in.n = call->n};
    if (call->n > 0) s = d->api->wrap(gpu, call->x, bytes, &m->in.x);
    if (s == TALLY_OK && call->n > 0 && call->y) s = d->api->wrap(gpu, call->y, bytes, &m->in.y);
    if (s == TALLY_OK) s = d->api->wrap(gpu, call->workspace, call->workspace_bytes, &m->work);
    if (s == TALLY_OK)
        s = d->api->wrap(gpu, call->results, p->values * sizeof(tally_result), &m->results);
    return s;
}

static void unwrap(struct gpu_device *d, struct their_memory *m) {
    struct gpu_memory *all[] = {m->in.x, m->in.y, m->work, m->results};
    for (int i = 0; i < 4; i++)
        d->api->release(d->theirs.gpu, all[i]);
}

/* Returns whether a problem with several launches has so few elements that one launch of the kernel
 * for few rows is faster (parts.h). */
static bool is_for_parts(const struct problem *p, size_t n) {
    return !whole_gives_values(p) && few_is_for(p, 1, n);
}

static tally_status enqueue(struct gpu_device *d, const struct problem *p, const tally_call *call) {
    struct queue *queue = &d->theirs;
    struct their_memory m;
    const size_t needs =
        p->skip_nan ? shown_workspace_whole(queue, p, call->n) : whole_workspace(queue, p, call->n);
    if (call->workspace_bytes < needs)
        return fail(TALLY_EINVAL, "%s:%zu: a workspace of %zu bytes, where %zu are needed",
                    d->api->name, d->index, call->workspace_bytes, needs);
    tally_status s = wrap(d, p, call, &m);
    d->api->use(queue->gpu, true, call->queue);
    if (s == TALLY_OK && p->skip_nan)
        s = shown_enqueue_whole(queue, p, &m.in, m.work, m.results);
    else if (s == TALLY_OK && is_for_parts(p, call->n))
        s = few_enqueue_array(queue, p, &m.in, m.results);
    else if (s == TALLY_OK)
        s = whole_enqueue(queue, p, &m.in, m.work, call->workspace, m.results);
    d->api->use(queue->gpu, false, NULL);
    unwrap(d, &m);
    return s;
}

static tally_status check_call(const struct gpu_device *d, const struct problem *p,
                               const tally_call *call) {
    if (!d->facts.has_addresses) return TALLY_OK;
    tally_status s = gpu_check_alignment(d, call->x, type_size(p->type));
    if (s == TALLY_OK) s = gpu_check_alignment(d, call->y, type_size(p->type));
    if (s == TALLY_OK) s = gpu_check_alignment(d, call->workspace, 8);
    if (s == TALLY_OK) s = gpu_check_alignment(d, call->results, 8);
    return s;
}

static tally_status gpu_enqueue(tally_device *device, const struct problem *p,
                                const tally_call *call) {
    struct gpu_device *d = own(device);
    tally_status s = check_call(d, p, call);
    if (s != TALLY_OK) return s;
    s = gpu_enter_theirs(d, false);
    if (s == TALLY_OK) s = enqueue(d, p, call);
    return gpu_leave_theirs(d, s);
}

/* ---- Times in the device's memory ---------------------------------------------------------- */

tally_status gpu_bring(struct gpu_device *d, const void *bytes, size_t size, size_t alignment,
                       struct gpu_memory **buffer) {
    struct gpu *gpu = d->queue.gpu;
    if (d->facts.reads_host_memory && (uintptr_t)bytes % alignment == 0)
        return d->api->adopt(gpu, (void *)(uintptr_t)bytes, size, buffer);
    if (size > d->memory)
        return fail(TALLY_ENOMEM, "%s:%zu has no room for %zu bytes", d->api->name, d->index, size);
    tally_status s = d->api->allocate(gpu, size, buffer);
    if (s == TALLY_OK) s = d->api->write(gpu, *buffer, 0, bytes, size);
    return s == TALLY_OK ? d->api->finish(gpu) : s;
}

#define TIMES 5

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static tally_status time_reduction(struct gpu_device *d, const struct problem *p,
                                   const struct slice *in, tally_value *out, double *seconds) {
    const size_t element = type_size(p->type), bytes = in->n * element;
    struct inputs buffers = {.n = in->n};
    double took[TIMES];
    tally_status s = gpu_bring(d, in->x, bytes, element, &buffers.x);
    if (s == TALLY_OK && in->y) s = gpu_bring(d, in->y, bytes, element, &buffers.y);
    if (s == TALLY_OK) s = reduce_buffers(&d->queue, p, &buffers, out, NULL); /* warms up */
    for (int i = 0; i < TIMES && s == TALLY_OK; i++)
        s = reduce_buffers(&d->queue, p, &buffers, out, &took[i]);
    release_inputs(d, &buffers);
    if (s != TALLY_OK) return s;
    qsort(took, TIMES, sizeof *took, ascending);
    *seconds = took[TIMES / 2];
    return TALLY_OK;
}

static tally_status no_time(const struct gpu_device *d) {
    if (!d->facts.is_simulated) return TALLY_OK;
    return fail(TALLY_EUNSUPPORTED, "the model has no time, and so no read roof");
}

static tally_status gpu_time(tally_device *device, const struct problem *p, const struct slice *in,
                             tally_value *out, double *seconds) {
    struct gpu_device *d = own(device);
    tally_status s = no_time(d);
    if (s == TALLY_OK) s = gpu_enter(d);
    return s == TALLY_OK ? gpu_leave(d, time_reduction(d, p, in, out, seconds)) : s;
}

/* Makes *best the shortest time of the plain reads, and of the cheapest reduction, an `or` of
 * words. */
static tally_status time_reads(struct gpu_device *d, struct gpu_memory *x, size_t bytes,
                               double *best) {
    static const tally_problem words = {.op = TALLY_OR, .type = TALLY_U32};
    struct problem ors;
    tally_value value;
    tally_status s = problem_plan(&words, &ors);
    if (s == TALLY_OK) s = roof_measure(d->api, d->queue.gpu, x, bytes, best);
    for (int run = 0; run < 3 && s == TALLY_OK; run++) {
        const struct inputs in = {.x = x, .n = bytes / 4};
        double seconds = *best;
        s = whole_reduce(&d->queue, &ors, &in, &value, &seconds);
        if (seconds < *best) *best = seconds;
    }
    return s;
}

/* Times reads of as many of the bytes as fit the device; *seconds is scaled to all of them. */
static tally_status read_roof(struct gpu_device *d, const void *bytes, size_t size,
                              double *seconds) {
    struct gpu_memory *buffer = NULL;
    const size_t part = at_most(d->memory / 2, at_most(d->facts.allocation_max, size)) / 16 * 16;
    *seconds = 0;
    if (part == 0) return TALLY_OK;
    tally_status s = gpu_bring(d, bytes, part, 16, &buffer);
    if (s == TALLY_OK) s = time_reads(d, buffer, part, seconds);
    d->api->release(d->queue.gpu, buffer);
    *seconds *= (double)size / (double)part;
    return s;
}

static tally_status gpu_read(tally_device *device, const void *bytes, size_t size,
                             double *seconds) {
    struct gpu_device *d = own(device);
    double took = 0;
    tally_status s = no_time(d);
    if (s == TALLY_OK) s = gpu_enter(d);
    if (s != TALLY_OK) return s;
    s = gpu_leave(d, read_roof(d, bytes, size, &took));
    if (s == TALLY_OK) *seconds = took;
    return s;
}

/* ---- Opening and describing --------------------------------------------------------------- */

static void gpu_close(tally_device *device) {
    struct gpu_device *d = own(device);
    queue_close(&d->queue);
    queue_close(&d->theirs);
    pthread_mutex_destroy(&d->lock);
    pthread_mutex_destroy(&d->theirs_lock);
    free(d);
}

static tally_status gpu_open(const struct device_kind *kind, const struct gpu_api *api,
                             const char *options, void *context, tally_device **out) {
    struct gpu_options given;
    struct gpu_device parsed = {.base.kind = kind, .api = api, .context = context};
    tally_status s = gpu_parse_options(options, api->name, &given);
    if (s == TALLY_OK) s = api->describe(given.index, &parsed.facts);
    if (s != TALLY_OK) return s;
    const struct gpu_facts *facts = &parsed.facts;
    parsed.index = given.index;
    parsed.memory = given.memory;
    parsed.block = given.block ? given.block : facts->is_cpu ? 1 : GPU_BLOCK;
    if (given.doubles) parsed.facts.has_slow_doubles = given.doubles == DOUBLES_SLOW;
    if (parsed.block > facts->block_max)
        return fail(TALLY_EDEVICE, "%s:%zu has no blocks of %u threads, but up to %u", api->name,
                    parsed.index, parsed.block, facts->block_max);
    if (facts->block_only && parsed.block != facts->block_only)
        return fail(TALLY_EDEVICE, "the %s's kernels were built for blocks of %u threads",
                    api->name, facts->block_only);
    if (parsed.memory == 0 || parsed.memory > facts->memory) parsed.memory = facts->memory;
    if (parsed.facts.allocation_max > parsed.memory / 2)
        parsed.facts.allocation_max = parsed.memory / 2;

    struct gpu_device *d = malloc(sizeof *d);
    if (!d) return fail(TALLY_ENOMEM, "no memory for the %s device", api->name);
    *d = parsed;
    s = open_queue(d, &d->queue);
    if (s != TALLY_OK) {
        free(d);
        return s;
    }
    pthread_mutex_init(&d->lock, NULL);
    pthread_mutex_init(&d->theirs_lock, NULL);
    *out = &d->base;
    return TALLY_OK;
}

static void describe_facts(const struct gpu_api *api, size_t index, const struct gpu_facts *facts,
                           tally_device_info *out) {
    snprintf(out->spec, sizeof out->spec, "%s:%zu", api->name, index);
    snprintf(out->name, sizeof out->name, "%s", facts->name);
    if (facts->major > 0)
        snprintf(out->isa, sizeof out->isa, "sm_%d%d", facts->major, facts->minor);
    out->units = facts->units;
    out->memory_bytes = facts->memory;
}

static void gpu_describe(const tally_device *device, tally_device_info *out) {
    const struct gpu_device *d = own(device);
    describe_facts(d->api, d->index, &d->facts, out);
    out->memory_bytes = d->memory;
}

static void gpu_list(const struct gpu_api *api, size_t i, tally_device_info *out) {
    struct gpu_facts facts = {0};
    if (api->describe(i, &facts) != TALLY_OK) snprintf(facts.name, sizeof facts.name, "?");
    describe_facts(api, i, &facts, out);
}

#define GPU_KIND(machine)                                                                          \
    static tally_status machine##_open(const char *options, void *context, tally_device **out) {   \
        const struct device_kind *kind = &machine##_device_kind;                                   \
        const char *rest;                                                                          \
        if (gpu_asks_all(options, &rest)) return gpu_open_all(kind, rest, context, out);           \
        return gpu_open(kind, &machine##_api, options, context, out);                              \
    }                                                                                              \
    static void machine##_list(size_t i, tally_device_info *out) {                                 \
        gpu_list(&machine##_api, i, out);                                                          \
    }                                                                                              \
    static size_t machine##_count(void) {                                                          \
        return machine##_api.count();                                                              \
    }                                                                                              \
    const struct device_kind machine##_device_kind = {                                             \
        .name = #machine,                                                                          \
        .open = machine##_open,                                                                    \
        .close = gpu_close,                                                                        \
        .describe = gpu_describe,                                                                  \
        .count = machine##_count,                                                                  \
        .list = machine##_list,                                                                    \
        .fold = gpu_fold,                                                                          \
        .leaves = gpu_leaves,                                                                      \
        .tree_level = GPU_TREE_LEVEL,                                                              \
        .shaped = gpu_shaped,                                                                      \
        .sort = gpu_sort,                                                                          \
        .shaped_resident = gpu_shaped_resident,                                                    \
        .shaped_workspace = gpu_shaped_workspace,                                                  \
        .shaped_enqueue = gpu_shaped_enqueue,                                                      \
        .resident = gpu_resident,                                                                  \
        .fold_resident = gpu_fold_here,                                                            \
        .copy_out = gpu_copy_out,                                                                  \
        .workspace = gpu_workspace,                                                                \
        .enqueue = gpu_enqueue,                                                                    \
        .is_captured = gpu_is_captured,                                                            \
        .words_measure = gpu_words_measure,                                                        \
        .enqueue_words = gpu_enqueue_words,                                                        \
        .enqueue_values = gpu_enqueue_values,                                                      \
        .enqueue_shared = gpu_enqueue_shared,                                                      \
        .terms = gpu_terms,                                                                        \
        .terms_shared = gpu_terms_shared,                                                          \
        .time = gpu_time,                                                                          \
        .read = gpu_read,                                                                          \
    };
GPU_MACHINES(GPU_KIND)
