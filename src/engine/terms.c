/* terms.c - the public calls for arrays that are added up over ranks: each checks what it is given, and lets the
 * device, or the calling thread, do it. */
#include "exact/terms.h"
#include "base/fpenv.h"
#include "base/status.h"
#include "device/device.h"

#include <stdint.h>

tally_status tally_terms_measure(const tally_terms *terms, tally_terms_sizes *out) {
    terms_plan plan;
    tally_terms_sizes sizes;
    if (!out) return fail(TALLY_EINVAL, "tally_terms_measure: out is NULL");
    tally_status s = terms_plan_of(terms, &plan, &sizes);
    if (s == TALLY_OK) *out = sizes;
    return s;
}

static int is_host(const tally_device *device) {
    return !device || device->kind == &cpu_device_kind;
}

static tally_status check_device(const tally_device *device) {
    if (is_host(device) || device->kind->terms) return TALLY_OK;
    return device_refuses(device, "does not add up arrays");
}

tally_status tally_terms_prepare(tally_device *device) {
    tally_status s = check_device(device);
    if (s != TALLY_OK || is_host(device)) return s;
    const struct fp_env caller = fp_env_enter();
    s = device->kind->terms(device, TERMS_TO_BOUNDS, NULL, NULL);
    fp_env_leave(caller);
    return s;
}

static tally_status missing(const char *what) {
    return fail(TALLY_EINVAL, "an array over ranks: %s is NULL", what);
}

/* Returns TALLY_EINVAL if memory is missing that a step reads or writes. */
static tally_status check(enum terms_step step, const terms_plan *p, const tally_terms_call *c) {
    if (!c) return missing("the call");
    if (step == TERMS_TO_VALUES && (c->first > p->n || c->count > p->n - c->first))
        return fail(TALLY_EINVAL, "%zu elements from %zu on are not among %llu", c->count, c->first,
                    (unsigned long long)p->n);
    if (step != TERMS_TO_BOUNDS && !c->workspace) return missing("the workspace");
    if (p->n == 0) return TALLY_OK;
    if (!c->bounds) return missing("bounds");
    if (step != TERMS_TO_VALUES && !c->x) return missing("x");
    if (step != TERMS_TO_BOUNDS && p->spare > 0 && !c->spare) return missing("spare");
    if (step == TERMS_TO_WORDS && !c->words) return missing("words");
    if (step != TERMS_TO_VALUES || c->count == 0) return TALLY_OK;
    return !c->words ? missing("words") : !c->out ? missing("out") : TALLY_OK;
}

static tally_status run(tally_device *device, enum terms_step step, const tally_terms *terms,
                        const tally_terms_call *call) {
    terms_plan plan;
    tally_terms_sizes sizes;
    tally_status s = terms_plan_of(terms, &plan, &sizes);
    if (s == TALLY_OK) s = check_device(device);
    if (s == TALLY_OK) s = check(step, &plan, call);
    if (s != TALLY_OK) return s;
    if (step == TERMS_TO_VALUES) {
        plan.first = call->first;
        plan.count = call->count;
    }
    const struct fp_env caller = fp_env_enter();
    if (is_host(device))
        terms_run(step, &plan, call);
    else
        s = device->kind->terms(device, step, &plan, call);
    fp_env_leave(caller);
    return s;
}

tally_status tally_terms_bounds(tally_device *device, const tally_terms *terms,
                                const tally_terms_call *call) {
    return run(device, TERMS_TO_BOUNDS, terms, call);
}

tally_status tally_terms_words(tally_device *device, const tally_terms *terms,
                               const tally_terms_call *call) {
    return run(device, TERMS_TO_WORDS, terms, call);
}

tally_status tally_terms_values(tally_device *device, const tally_terms *terms,
                                const tally_terms_call *call) {
    return run(device, TERMS_TO_VALUES, terms, call);
}

/* ---- Ranks that reach each other's memory ---------------------------------------------------- */

tally_status tally_terms_shared_prepare(tally_device *device) {
    if (is_host(device) || !device->kind->terms_shared)
        return device_refuses(device, "has no memory that other devices can reach");
    const struct fp_env caller = fp_env_enter();
    const tally_status s = device->kind->terms_shared(device, NULL, 0, NULL);
    fp_env_leave(caller);
    return s;
}

static tally_status check_shared(const tally_terms *t, const tally_terms_shared_call *c) {
    if (!c) return missing("the call");
    if (t->ranks > TALLY_MAILBOX_RANKS || c->mine >= t->ranks)
        return fail(TALLY_EINVAL, "rank %zu of %u, of whom there may be %d", c->mine, t->ranks,
                    TALLY_MAILBOX_RANKS);
    if (t->shard && (t->n % t->shard != 0 || t->n / t->shard != t->ranks))
        return fail(TALLY_EINVAL, "%zu elements are not %u shards of %zu", t->n, t->ranks,
                    t->shard);
    if (c->mailbox && !c->outcome) return missing("the outcome");
    if (c->failure != TALLY_OK)
        return c->mailbox ? TALLY_OK : fail(TALLY_EINVAL, "a failure that no rank can hear of");
    for (size_t rank = 0; rank < t->ranks && t->n > 0; rank++) {
        const int gets = !t->shard || rank == c->mine;
        if (!c->x[rank] || (gets && !c->out[rank])) return missing("x or out");
    }
    return TALLY_OK;
}

tally_status tally_terms_shared(tally_device *device, const tally_terms *terms,
                                const tally_terms_shared_call *call) {
    terms_plan plan;
    tally_terms_sizes sizes;
    tally_status s = terms_plan_of(terms, &plan, &sizes);
    if (s != TALLY_OK) return s;
    if (is_host(device) || !device->kind->terms_shared)
        return device_refuses(device, "has no memory that other devices can reach");
    s = check_shared(terms, call);
    if (s != TALLY_OK) return s;
    const struct fp_env caller = fp_env_enter();
    s = device->kind->terms_shared(device, &plan, terms->ranks, call);
    fp_env_leave(caller);
    return s;
}
