/*
 * reduce.c - the public reductions, of an array and of a stream.
 *
 * An array is a stream of one piece, except that a stream of a tree reduction must keep the elements of
 * an unfinished leaf until the rest of it arrives.
 */
#include "device.h"
#include "fpenv.h"
#include "status.h"
#include "tree.h"

#include <stdlib.h>
#include <string.h>

/* Tree values that a device is asked for at a time: enough work for all threads, and an array that a
 * stack can hold. */
#define LEAF_BATCH 2048

/* A reduction under way. */
struct running {
    struct reduction plan;
    tally_device *device;
    struct partial partial; /* all methods but the tree's */
    struct tree tree;       /* METHOD_TREE */
};

static tally_status check_array(const void *x, size_t n, tally_type type) {
    if (n > 0 && !x) return fail(TALLY_EINVAL, "the array is NULL but n is %zu", n);
    if (n > SIZE_MAX / 2 / tally_type_size(type))
        return fail(TALLY_EINVAL, "n = %zu elements of %s are more than memory can hold", n,
                    tally_type_name(type));
    return TALLY_OK;
}

static void start(struct running *run, tally_device *device) {
    run->device = device ? device : cpu_calling_thread();
    partial_clear(&run->plan, &run->partial);
    tree_clear(&run->tree);
}

/* How many of n elements to evaluate next, and in subtrees of which level: whole subtrees of the device's
 * level wherever the tree stands at the start of one, single leaves before and after those. */
static size_t next_part(const struct running *run, size_t n, unsigned *level) {
    const unsigned best = run->device->kind->tree_level;
    const uint64_t subtree = UINT64_C(1) << best, begun = run->tree.leaves % subtree;
    const size_t grain = (size_t)subtree * TREE_LEAF;
    size_t part = n;
    *level = begun == 0 && n >= grain ? best : 0;
    if (*level > 0)
        part = n / grain * grain;
    else if (best > 0 && begun > 0 && (subtree - begun) * TREE_LEAF < n)
        part = (size_t)(subtree - begun) * TREE_LEAF;
    const size_t batch = (size_t)LEAF_BATCH * TREE_LEAF << *level;
    return part < batch ? part : batch;
}

/* Appends x[0..n), which begins at a leaf's start, to the tree. */
static tally_status add_leaves(struct running *run, const void *x, size_t n) {
    union tree_value values[LEAF_BATCH];
    size_t size = tree_value_size(&run->plan), element = tally_type_size(run->plan.type);
    const char *p = x;
    for (size_t m; n > 0; n -= m, p += m * element) {
        unsigned level;
        m = next_part(run, n, &level);
        tally_status s = run->device->kind->leaves(run->device, &run->plan, p, m, level, values);
        if (s != TALLY_OK) return s;
        const size_t grain = (size_t)TREE_LEAF << level;
        for (size_t i = 0; i < m / grain + (m % grain != 0); i++)
            tree_append(&run->plan, &run->tree, (const char *)values + i * size, level);
    }
    return TALLY_OK;
}

static tally_status add(struct running *run, const void *x, size_t n) {
    if (n == 0) return TALLY_OK;
    if (run->plan.method == METHOD_TREE) return add_leaves(run, x, n);
    return run->device->kind->fold(run->device, &run->plan, x, n, &run->partial);
}

static tally_status result(const struct running *run, tally_value *out) {
    if (run->plan.method != METHOD_TREE) return partial_value(&run->plan, &run->partial, out);
    *out = tree_value(&run->plan, &run->tree);
    return TALLY_OK;
}

static tally_status reduce(struct running *run, tally_device *device, const void *x, size_t n,
                           tally_value *out) {
    tally_status s = check_array(x, n, run->plan.type);
    if (s != TALLY_OK) return s;
    struct fp_env caller = fp_env_enter();
    start(run, device);
    s = add(run, x, n);
    if (s == TALLY_OK) s = result(run, out);
    fp_env_leave(caller);
    return s;
}

static tally_status plan_user(const tally_operator *op, tally_type type, struct reduction *out) {
    *out = (struct reduction){.type = type, .out = type, .method = METHOD_TREE, .user = op};
    if (!op || !op->combine || !op->identity)
        return fail(TALLY_EINVAL, "a user operator needs a combine function and an identity");
    if (!tally_type_name(type)) return fail(TALLY_ETYPE, "%d is no element type", (int)type);
    return TALLY_OK;
}

tally_status tally_reduce(tally_device *device, tally_op op, tally_type type, const void *x,
                          size_t n, const tally_options *options, tally_value *out) {
    if (!out) return fail(TALLY_EINVAL, "tally_reduce: out is NULL");
    struct running run;
    tally_status s = reduction_plan(op, type, options, &run.plan);
    return s == TALLY_OK ? reduce(&run, device, x, n, out) : s;
}

tally_status tally_reduce_user(tally_device *device, const tally_operator *op, tally_type type,
                               const void *x, size_t n, tally_value *out) {
    if (!out) return fail(TALLY_EINVAL, "tally_reduce_user: out is NULL");
    struct running run;
    tally_status s = plan_user(op, type, &run.plan);
    return s == TALLY_OK ? reduce(&run, device, x, n, out) : s;
}

tally_status tally_reduce_resident(tally_device *device, tally_op op, tally_type type, void *memory,
                                   size_t n, const tally_options *options, tally_value *out) {
    if (!device || !device->kind->resident || n == 0)
        return tally_reduce(device, op, type, memory, n, options, out);
    if (!out) return fail(TALLY_EINVAL, "tally_reduce_resident: out is NULL");
    struct reduction plan;
    tally_status s = reduction_plan(op, type, options, &plan);
    if (s == TALLY_OK) s = check_array(memory, n, type);
    if (s != TALLY_OK) return s;
    struct fp_env caller = fp_env_enter();
    s = device->kind->resident(device, &plan, memory, n, out);
    fp_env_leave(caller);
    return s;
}

tally_status tally_device_time(tally_device *device, tally_op op, tally_type type, const void *x,
                               size_t n, const tally_options *options, tally_value *out,
                               double *seconds) {
    struct reduction plan;
    tally_value value;
    double took = 0;
    if (!device || !out || !seconds)
        return fail(TALLY_EINVAL, "tally_device_time: an argument is NULL");
    tally_status s = reduction_plan(op, type, options, &plan);
    if (s == TALLY_OK) s = check_array(x, n, type);
    if (s != TALLY_OK) return s;
    if (!device->kind->time)
        return fail(TALLY_EUNSUPPORTED, "%s has no memory of its own", device->kind->name);
    if (n == 0) {
        s = tally_reduce(NULL, op, type, x, 0, options, &value);
    } else {
        struct fp_env caller = fp_env_enter();
        s = device->kind->time(device, &plan, x, n, &value, &took);
        fp_env_leave(caller);
    }
    if (s != TALLY_OK) return s;
    *out = value;
    *seconds = took;
    return TALLY_OK;
}

/* ---- On queues of the caller's -------------------------------------------------------------- */

static tally_status check_queues(const tally_device *device) {
    if (device && device->kind->enqueue) return TALLY_OK;
    return fail(TALLY_EUNSUPPORTED, "%s has no queues to put a reduction on",
                device ? device->kind->name : "the calling thread");
}

static tally_status workspace(tally_device *device, const struct reduction *plan, size_t n,
                              size_t *bytes) {
    if (!bytes) return fail(TALLY_EINVAL, "tally_workspace: bytes is NULL");
    tally_status s = check_queues(device);
    if (s != TALLY_OK) return s;
    struct fp_env caller = fp_env_enter();
    s = device->kind->workspace(device, plan, n, bytes);
    fp_env_leave(caller);
    return s;
}

tally_status tally_workspace(tally_device *device, tally_op op, tally_type type, size_t n,
                             const tally_options *options, size_t *bytes) {
    struct reduction plan;
    tally_status s = reduction_plan(op, type, options, &plan);
    return s == TALLY_OK ? workspace(device, &plan, n, bytes) : s;
}

tally_status tally_workspace_user(tally_device *device, const tally_operator *op, tally_type type,
                                  size_t n, size_t *bytes) {
    struct reduction plan;
    tally_status s = plan_user(op, type, &plan);
    return s == TALLY_OK ? workspace(device, &plan, n, bytes) : s;
}

static tally_status enqueue(tally_device *device, const struct reduction *plan,
                            const struct native_call *call) {
    tally_status s = check_queues(device);
    if (s == TALLY_OK) s = check_array(call->memory, call->n, plan->type);
    if (s == TALLY_OK && (!call->workspace || !call->result))
        s = fail(TALLY_EINVAL, "tally_enqueue: workspace or result is NULL");
    if (s != TALLY_OK) return s;
    struct fp_env caller = fp_env_enter();
    s = device->kind->enqueue(device, plan, call);
    fp_env_leave(caller);
    return s;
}

tally_status tally_enqueue(tally_device *device, tally_op op, tally_type type, void *memory,
                           size_t n, const tally_options *options, void *workspace_,
                           size_t workspace_bytes, void *queue, void *result_) {
    const struct native_call call = {memory, n, workspace_, workspace_bytes, queue, result_};
    struct reduction plan;
    tally_status s = reduction_plan(op, type, options, &plan);
    return s == TALLY_OK ? enqueue(device, &plan, &call) : s;
}

tally_status tally_enqueue_user(tally_device *device, const tally_operator *op, tally_type type,
                                void *memory, size_t n, void *workspace_, size_t workspace_bytes,
                                void *queue, void *result_) {
    const struct native_call call = {memory, n, workspace_, workspace_bytes, queue, result_};
    struct reduction plan;
    tally_status s = plan_user(op, type, &plan);
    return s == TALLY_OK ? enqueue(device, &plan, &call) : s;
}

/* ---- Streams ------------------------------------------------------------------------------ */

struct tally_stream {
    struct running run;
    tally_operator user;       /* a copy of the user's, to which run.plan points */
    union tree_value identity; /* a copy of the user's identity */
    size_t waiting;            /* elements in leaf[] */
    _Alignas(64) char leaf[TREE_LEAF * sizeof(double)]; /* METHOD_TREE: the unfinished leaf */
};

static tally_status new_stream(const struct reduction *plan, tally_device *device,
                               tally_stream **out) {
    size_t size = (sizeof(tally_stream) + 63) / 64 * 64;
    tally_stream *stream = aligned_alloc(64, size);
    if (!stream) return fail(TALLY_ENOMEM, "no memory for a stream (%zu bytes)", size);
    stream->run.plan = *plan;
    stream->waiting = 0;
    if (plan->user) {
        stream->user = *plan->user;
        memcpy(&stream->identity, plan->user->identity, tally_type_size(plan->type));
        stream->user.identity = &stream->identity;
        stream->run.plan.user = &stream->user;
    }
    start(&stream->run, device);
    *out = stream;
    return TALLY_OK;
}

tally_status tally_stream_create(tally_device *device, tally_op op, tally_type type,
                                 const tally_options *options, tally_stream **out) {
    if (!out) return fail(TALLY_EINVAL, "tally_stream_create: out is NULL");
    struct reduction plan;
    tally_status s = reduction_plan(op, type, options, &plan);
    return s == TALLY_OK ? new_stream(&plan, device, out) : s;
}

tally_status tally_stream_create_user(tally_device *device, const tally_operator *op,
                                      tally_type type, tally_stream **out) {
    if (!out) return fail(TALLY_EINVAL, "tally_stream_create_user: out is NULL");
    struct reduction plan;
    tally_status s = plan_user(op, type, &plan);
    return s == TALLY_OK ? new_stream(&plan, device, out) : s;
}

/* Completes the waiting leaf, evaluates whole leaves where they lie, keeps the rest. */
static tally_status feed_leaves(tally_stream *stream, const char *x, size_t n) {
    size_t element = tally_type_size(stream->run.plan.type);
    tally_status s = TALLY_OK;
    if (stream->waiting > 0) {
        size_t m = TREE_LEAF - stream->waiting < n ? TREE_LEAF - stream->waiting : n;
        memcpy(stream->leaf + stream->waiting * element, x, m * element);
        if (stream->waiting + m == TREE_LEAF) s = add_leaves(&stream->run, stream->leaf, TREE_LEAF);
        if (s != TALLY_OK) return s;
        stream->waiting = (stream->waiting + m) % TREE_LEAF;
        x += m * element;
        n -= m;
    }
    size_t whole = n / TREE_LEAF * TREE_LEAF;
    if (whole > 0) s = add_leaves(&stream->run, x, whole);
    if (s == TALLY_OK && n > whole) {
        memcpy(stream->leaf, x + whole * element, (n - whole) * element);
        stream->waiting = n - whole;
    }
    return s;
}

/* Feeds a tree. A device may fail after some leaves; the stream is then as it was. (What waited is still
 * in front of leaf[].) */
static tally_status feed_tree(tally_stream *stream, const char *x, size_t n) {
    const struct tree before = stream->run.tree;
    const size_t waiting = stream->waiting;
    tally_status s = feed_leaves(stream, x, n);
    if (s != TALLY_OK) {
        stream->run.tree = before;
        stream->waiting = waiting;
    }
    return s;
}

tally_status tally_stream_feed(tally_stream *stream, const void *x, size_t n) {
    if (!stream) return fail(TALLY_EINVAL, "tally_stream_feed: the stream is NULL");
    tally_status s = check_array(x, n, stream->run.plan.type);
    if (s != TALLY_OK || n == 0) return s;
    struct fp_env caller = fp_env_enter();
    s = stream->run.plan.method == METHOD_TREE ? feed_tree(stream, x, n) : add(&stream->run, x, n);
    fp_env_leave(caller);
    return s;
}

tally_status tally_stream_result(tally_stream *stream, tally_value *out) {
    if (!stream || !out) return fail(TALLY_EINVAL, "tally_stream_result: an argument is NULL");
    struct fp_env caller = fp_env_enter();
    tally_status s = TALLY_OK;
    if (stream->waiting > 0) {
        /* The waiting leaf counts as the array's last, in a copy: more may still come. */
        struct running whole = stream->run;
        s = add_leaves(&whole, stream->leaf, stream->waiting);
        if (s == TALLY_OK) s = result(&whole, out);
    } else {
        s = result(&stream->run, out);
    }
    fp_env_leave(caller);
    return s;
}

void tally_stream_destroy(tally_stream *stream) {
    free(stream);
}
