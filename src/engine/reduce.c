/*
 * reduce.c - the public reductions of arrays: in host memory, on a device, on a queue of the caller's, over ranks.
 */
#include "base/fpenv.h"
#include "base/invariant.h"
#include "base/status.h"
#include "device/fold.h"
#include "problem/lower.h"

#include <stdint.h>
#include <stdlib.h>

/* Folds a slice in host memory and lowers the state. */
static tally_status reduce(tally_device *device, const struct problem *p, const struct slice *in,
                           tally_value *out) {
    struct state state;
    struct tree tree;
    tally_value root = {.type = 0};
    const int has_tree = problem_has(p, MONOID_TREE);
    state_clear(p, &state);
    if (has_tree) tree_clear(&tree, 0);
    tally_status s = fold_all(device, p, in, &state, has_tree ? &tree : NULL);
    TALLY_ASSERT(s != TALLY_OK || state_is_possible(p, &state));
    if (s == TALLY_OK && has_tree) root = tree_value(p, &tree);
    return s == TALLY_OK ? lower_values(p, &state, &root, out) : s;
}

tally_status tally_reduce(tally_device *device, const tally_problem *problem, const void *x,
                          const void *y, size_t n, tally_value *out) {
    struct problem p;
    if (!out) return fail(TALLY_EINVAL, "tally_reduce: out is NULL");
    tally_status s = problem_plan(problem, &p);
    if (s == TALLY_OK) s = fold_check(&p, x, y, n);
    if (s != TALLY_OK) return s;
    const struct slice in = {x, y, n};
    struct fp_env caller = fp_env_enter();
    s = reduce(device, &p, &in, out);
    fp_env_leave(caller);
    return s;
}

tally_status tally_reduce_resident(tally_device *device, const tally_problem *problem, void *x,
                                   void *y, size_t n, tally_value *out) {
    struct problem p;
    if (!device || !device->kind->resident || n == 0)
        return tally_reduce(device, problem, x, y, n, out);
    if (!out) return fail(TALLY_EINVAL, "tally_reduce_resident: out is NULL");
    tally_status s = problem_plan(problem, &p);
    if (s == TALLY_OK) s = fold_check(&p, x, y, n);
    if (s != TALLY_OK) return s;
    const struct slice in = {x, y, n};
    struct fp_env caller = fp_env_enter();
    s = device->kind->resident(device, &p, &in, out);
    fp_env_leave(caller);
    return s;
}

tally_status tally_reduce_distributed(tally_device *device, const tally_problem *problem,
                                      const tally_stretch *stretches, size_t count,
                                      tally_value *out) {
    struct problem p;
    struct state state;
    struct tree tree;
    tally_value root = {.type = 0};
    if (!stretches || !out)
        return fail(TALLY_EINVAL, "tally_reduce_distributed: an argument is NULL");
    if (!device || !device->kind->distributed) {
        if (count == 1)
            return tally_reduce_resident(device, problem, stretches->x, stretches->y, stretches->n,
                                         out);
        return fail(TALLY_EINVAL, "this is one device, but the array comes in %zu stretches",
                    count);
    }
    tally_status s = problem_plan(problem, &p);
    if (s == TALLY_OK) s = device_skips_nothing(device, &p);
    if (s != TALLY_OK) return s;
    struct slice *in = count < SIZE_MAX / sizeof *in ? malloc((count + 1) * sizeof *in) : NULL;
    if (!in) return fail(TALLY_ENOMEM, "no memory for %zu stretches", count);
    for (size_t i = 0; i < count && s == TALLY_OK; i++) {
        in[i] = (struct slice){stretches[i].x, stretches[i].y, stretches[i].n};
        s = fold_check(&p, in[i].x, in[i].y, in[i].n);
    }
    if (s == TALLY_OK) {
        struct fp_env caller = fp_env_enter();
        state_clear(&p, &state);
        tree_clear(&tree, 0);
        s = device->kind->distributed(device, &p, in, count, &state, &tree);
        if (s == TALLY_OK) state_settle(&p, &state);
        if (s == TALLY_OK && problem_has(&p, MONOID_TREE)) root = tree_value(&p, &tree);
        if (s == TALLY_OK) s = lower_values(&p, &state, &root, out);
        fp_env_leave(caller);
    }
    free(in);
    return s;
}

tally_status tally_device_time(tally_device *device, const tally_problem *problem, const void *x,
                               const void *y, size_t n, tally_value *out, double *seconds) {
    struct problem p;
    tally_value value[TALLY_VALUES_MAX];
    double took = 0;
    if (!device || !out || !seconds)
        return fail(TALLY_EINVAL, "tally_device_time: an argument is NULL");
    tally_status s = problem_plan(problem, &p);
    if (s == TALLY_OK) s = device_skips_nothing(device, &p);
    if (s == TALLY_OK) s = fold_check(&p, x, y, n);
    if (s != TALLY_OK) return s;
    if (!device->kind->time) return device_refuses(device, "has no memory of its own");
    const struct slice in = {x, y, n};
    struct fp_env caller = fp_env_enter();
    s = n == 0 ? reduce(NULL, &p, &in, value) : device->kind->time(device, &p, &in, value, &took);
    fp_env_leave(caller);
    if (s != TALLY_OK) return s;
    for (unsigned i = 0; i < p.values; i++)
        out[i] = value[i];
    *seconds = took;
    return TALLY_OK;
}

#define STATES_MOST (1u << 24) /* the most states that ranks reduce at once: a block each */

/* ---- On queues of the caller's -------------------------------------------------------------- */

static tally_status check_queues(const tally_device *device) {
    if (device && device->kind->enqueue) return TALLY_OK;
    return device_refuses(device, "has no queues to put a reduction on");
}

tally_status tally_workspace(tally_device *device, const tally_problem *problem, size_t n,
                             size_t *bytes) {
    struct problem p;
    if (!bytes) return fail(TALLY_EINVAL, "tally_workspace: bytes is NULL");
    tally_status s = problem_plan(problem, &p);
    if (s == TALLY_OK && n > SIZE_MAX / 2 / tally_type_size(p.type))
        s = fail(TALLY_EINVAL, "n = %zu elements of %s are more than memory can hold", n,
                 tally_type_name(p.type));
    if (s == TALLY_OK) s = check_queues(device);
    if (s != TALLY_OK) return s;
    struct fp_env caller = fp_env_enter();
    s = device->kind->workspace(device, &p, n, bytes);
    fp_env_leave(caller);
    return s;
}

tally_status tally_enqueue(tally_device *device, const tally_problem *problem,
                           const tally_call *call) {
    struct problem p;
    if (!call) return fail(TALLY_EINVAL, "tally_enqueue: the call is NULL");
    tally_status s = problem_plan(problem, &p);
    if (s == TALLY_OK) s = check_queues(device);
    if (s == TALLY_OK) s = fold_check(&p, call->x, call->y, call->n);
    if (s == TALLY_OK && (!call->workspace || !call->results))
        s = fail(TALLY_EINVAL, "tally_enqueue: workspace or results is NULL");
    if (s != TALLY_OK) return s;
    struct fp_env caller = fp_env_enter();
    s = device->kind->enqueue(device, &p, call);
    fp_env_leave(caller);
    return s;
}

/* ---- Over ranks ----------------------------------------------------------------------------- */

/* Plans a problem over ranks. Its sums are exact even where it asks for fast ones, whose words would be no integers. */
static tally_status plan_words(const tally_device *device, const tally_problem *problem,
                               struct problem *p) {
    tally_problem exact;
    tally_status s = check_queues(device);
    if (s != TALLY_OK) return s;
    if (problem) {
        exact = *problem;
        exact.fast = 0;
    }
    s = problem_plan(problem ? &exact : NULL, p);
    return s == TALLY_OK ? device_skips_nothing(device, p) : s;
}

tally_status tally_words_measure(tally_device *device, const tally_problem *problem, size_t n,
                                 size_t count, tally_words *out) {
    struct problem p;
    tally_words words;
    if (!out) return fail(TALLY_EINVAL, "tally_words_measure: out is NULL");
    tally_status s = plan_words(device, problem, &p);
    if (s == TALLY_OK && n > SIZE_MAX / 2 / tally_type_size(p.type))
        s = fail(TALLY_EINVAL, "n = %zu elements of %s are more than memory can hold", n,
                 tally_type_name(p.type));
    if (s == TALLY_OK && count > STATES_MOST)
        s = fail(TALLY_EINVAL, "%zu states, where there may be %u", count, STATES_MOST);
    if (s != TALLY_OK) return s;
    struct fp_env caller = fp_env_enter();
    s = device->kind->words_measure(device, &p, n, count, &words);
    fp_env_leave(caller);
    if (s == TALLY_OK) *out = words;
    return s;
}

tally_status tally_enqueue_words(tally_device *device, const tally_problem *problem,
                                 const tally_words_call *call) {
    struct problem p;
    if (!call) return fail(TALLY_EINVAL, "tally_enqueue_words: the call is NULL");
    tally_status s = plan_words(device, problem, &p);
    if (s == TALLY_OK) s = fold_check(&p, call->x, call->y, call->n);
    if (s == TALLY_OK && !call->workspace)
        s = fail(TALLY_EINVAL, "tally_enqueue_words: the workspace is NULL");
    if (s != TALLY_OK) return s;
    struct fp_env caller = fp_env_enter();
    s = device->kind->enqueue_words(device, &p, call);
    fp_env_leave(caller);
    return s;
}

tally_status tally_enqueue_shared(tally_device *device, const tally_problem *problem,
                                  const tally_shared_call *call) {
    struct problem p;
    if (!call) return fail(TALLY_EINVAL, "tally_enqueue_shared: the call is NULL");
    tally_status s = plan_words(device, problem, &p);
    if (s == TALLY_OK && call->failure == TALLY_OK) s = fold_check(&p, call->x, call->y, call->n);
    if (s == TALLY_OK && (!call->workspace || !call->words || !call->mailbox || !call->results))
        s = fail(TALLY_EINVAL, "tally_enqueue_shared: memory is NULL");
    if (s == TALLY_OK && (call->ranks > TALLY_MAILBOX_RANKS || call->mine >= call->ranks))
        s = fail(TALLY_EINVAL, "tally_enqueue_shared: rank %zu of %zu", call->mine, call->ranks);
    if (s != TALLY_OK) return s;
    struct fp_env caller = fp_env_enter();
    s = device->kind->enqueue_shared(device, &p, call);
    fp_env_leave(caller);
    return s;
}

tally_status tally_enqueue_values(tally_device *device, const tally_problem *problem,
                                  const tally_values_call *call) {
    struct problem p;
    if (!call) return fail(TALLY_EINVAL, "tally_enqueue_values: the call is NULL");
    tally_status s = plan_words(device, problem, &p);
    if (s == TALLY_OK && call->count > STATES_MOST)
        s = fail(TALLY_EINVAL, "%zu states, where there may be %u", call->count, STATES_MOST);
    if (s == TALLY_OK && call->count > 0 && !call->results)
        s = fail(TALLY_EINVAL, "tally_enqueue_values: results is NULL");
    if (s != TALLY_OK || call->count == 0) return s;
    struct fp_env caller = fp_env_enter();
    s = device->kind->enqueue_values(device, &p, call);
    fp_env_leave(caller);
    return s;
}
