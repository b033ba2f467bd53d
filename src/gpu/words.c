/*
 * gpu/words.c - the state of a reduction as words in the device's memory, for other ranks, and values from the words of
 * all ranks (kernels/words.h), on queues of the caller's; and both at once, where ranks write into each other's memory.
 */
#include "base/status.h"
#include "base/types.h"
#include "exact/kernel_words.h"
#include "gpu/opened.h"
#include "gpu/programs.h"
#include "gpu/whole.h"
#include "kernels/plan.h"

#include "kernels/words.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

_Static_assert(FLOAT_COUNTS == WORDS_COUNTS, "words.cu");
_Static_assert((int)MAILBOX_STOP == TALLY_MAILBOX_STOP &&
                   (int)MAILBOX_ADDRESSES == TALLY_MAILBOX_ADDRESSES &&
                   MAILBOX_RANKS == TALLY_MAILBOX_RANKS &&
                   MAILBOX_BYTES(3) == TALLY_MAILBOX_BYTES(3),
               "words.h");

#define PACK_BLOCKS 5 /* one for each monoid that is a sum, and one for all else */

static tally_status check(const struct problem *p) {
    if (!problem_has(p, MONOID_TREE)) return TALLY_OK;
    return fail(TALLY_EUNSUPPORTED,
                "floating products and users' operators go over the canonical tree, whose leaves "
                "may lie on two ranks: they have no words");
}

/* Makes the plan for words of the problem's state, n elements here; count, ranks and clears are left to the caller. */
static void plan_words(const struct queue *queue, const struct problem *p, uint64_t n,
                       struct words_plan *plan) {
    const unsigned floats = (unsigned)type_is_float(p->type);
    uint32_t added = 0;
    memset(plan, 0, sizeof *plan);
    const size_t records = whole_records_plan(queue, p, n, &plan->lower);
    assert(records <= WORDS_RECORDS);
    (void)records;
    plan->bits = type_bits(p->type);
    plan->is_xor = p->bits_op == TALLY_XOR;
    if (problem_has(p, MONOID_FACTORS) || problem_has(p, MONOID_EXTREMES))
        plan->gathered = WORDS_GATHERED;
    for (unsigned monoid = 0; monoid <= MONOID_MAGNITUDES; monoid++)
        if (p->monoids & MONOID_BIT(monoid))
            added += WORDS_COUNTS +
                     words_limbs(floats, monoid == MONOID_SQUARES || monoid == MONOID_PRODUCTS);
    if (problem_has(p, MONOID_BITS)) added += plan->bits;
    added += problem_has(p, MONOID_NONZERO);
    if (added > 0 || !plan->gathered) plan->added = 1 + added;
}

/* Finds the kernels. If `heads`, also makes the queue's heads, and waits: only gpu_words_measure() may wait. */
static tally_status prepare(struct queue *queue, const struct problem *p, bool heads) {
    struct gpu_program *program = NULL;
    struct gpu_kernel *pack = NULL, *settle = NULL, *allreduce = NULL, *few = NULL;
    tally_status s = whole_prepare_records(queue, p, heads);
    if (s != TALLY_OK || queue->pack) return s;
    s = program_build_plain(queue, "words.cu", &program);
    if (s == TALLY_OK) s = queue->api->kernel(queue->gpu, program, "pack", &pack);
    if (s == TALLY_OK) s = queue->api->kernel(queue->gpu, program, "settle", &settle);
    if (s == TALLY_OK) s = queue->api->kernel(queue->gpu, program, "allreduce", &allreduce);
    if (s == TALLY_OK && queue->facts->has_addresses) /* where there can be other ranks */
        s = queue->api->kernel(queue->gpu, program, "allreduce_few", &few);
    if (s != TALLY_OK) return s;
    queue->allreduce_few = few;
    queue->pack = pack;
    queue->settle = settle;
    queue->allreduce = allreduce;
    return s;
}

tally_status gpu_words_measure(tally_device *device, const struct problem *p, size_t n,
                               size_t count, tally_words *out) {
    struct gpu_device *d = own(device);
    struct words_plan plan;
    (void)count; /* no state needs memory of its own */
    tally_status s = check(p);
    if (s != TALLY_OK) return s;
    s = gpu_enter_theirs(d, true);
    if (s == TALLY_OK) s = prepare(&d->theirs, p, true);
    if (s == TALLY_OK) {
        plan_words(&d->theirs, p, n, &plan);
        *out = (tally_words){.added = plan.added,
                             .gathered = plan.gathered,
                             .workspace_bytes = whole_workspace(&d->theirs, p, n)};
    }
    return gpu_leave_theirs(d, s);
}

static void give_back(struct gpu_device *d, struct gpu_memory **buffers, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        d->api->release(d->theirs.gpu, buffers[i]);
}

static tally_status too_small(const struct gpu_device *d, size_t given, size_t needs) {
    if (given >= needs) return TALLY_OK;
    return fail(TALLY_EINVAL, "%s:%zu: a workspace of %zu bytes, where %zu are needed",
                d->api->name, d->index, given, needs);
}

static tally_status missing(const char *what) {
    return fail(TALLY_EINVAL, "words of ranks: %s is NULL", what);
}

/* Enqueues the records, and writes their places into the plan. If the launch that reads them
 * fails, they are not cleared, and the workspace loses its head: heads_give_up(). */
static tally_status launch_records(struct gpu_device *d, const struct problem *p,
                                   const struct inputs *in, struct words_plan *plan,
                                   struct gpu_memory *work, const void *workspace,
                                   struct records *records) {
    tally_status s = whole_enqueue_records(&d->theirs, p, in, work, workspace, records);
    if (s != TALLY_OK) return s;
    plan->clears = records->head != NULL;
    plan->from = records->from;
    return s;
}

/* Enqueues the records, and the words out of them. */
static tally_status launch_words(struct gpu_device *d, const struct problem *p,
                                 const struct inputs *in, struct words_plan *plan,
                                 struct gpu_memory *work, const void *workspace,
                                 struct gpu_memory *added, struct gpu_memory *gathered,
                                 struct gpu_memory *failed) {
    struct queue *queue = &d->theirs;
    struct records records;
    tally_status s = launch_records(d, p, in, plan, work, workspace, &records);
    if (s != TALLY_OK) return s;
    const struct gpu_argument arguments[] = {BUFFER(records.memory), VALUE(*plan), BUFFER(added),
                                             BUFFER(gathered), BUFFER(failed)};
    s = d->api->launch(queue->gpu, queue->pack, PACK_BLOCKS, queue->block, arguments, 5);
    if (s != TALLY_OK) heads_give_up(records.head);
    return s;
}

static tally_status run_words(struct gpu_device *d, const struct problem *p,
                              const tally_words_call *call) {
    struct queue *queue = &d->theirs;
    struct words_plan plan;
    enum { X, Y, WORK, ADDED, GATHERED, FAILED, BUFFERS };
    struct gpu_memory *m[BUFFERS] = {0};
    const size_t element = type_size(p->type);
    plan_words(queue, p, call->n, &plan);
    tally_status s = too_small(d, call->workspace_bytes, whole_workspace(queue, p, call->n));
    if (s == TALLY_OK && plan.added && !call->added) s = missing("the memory for those added");
    if (s == TALLY_OK && plan.gathered && !call->gathered)
        s = missing("the memory for those gathered");
    if (s == TALLY_OK) s = gpu_wrap(d, call->x, call->n * element, element, &m[X]);
    if (s == TALLY_OK) s = gpu_wrap(d, call->y, call->n * element, element, &m[Y]);
    if (s == TALLY_OK) s = gpu_wrap(d, call->workspace, call->workspace_bytes, 8, &m[WORK]);
    if (s == TALLY_OK) s = gpu_wrap(d, call->added, 8 * plan.added, 8, &m[ADDED]);
    if (s == TALLY_OK) s = gpu_wrap(d, call->gathered, 8 * plan.gathered, 8, &m[GATHERED]);
    if (s == TALLY_OK) s = gpu_wrap(d, call->failed, 16, 8, &m[FAILED]);
    d->api->use(queue->gpu, true, call->queue);
    const struct inputs in = {.x = m[X], .y = m[Y], .n = call->n};
    if (s == TALLY_OK)
        s = launch_words(d, p, &in, &plan, m[WORK], call->workspace, m[ADDED], m[GATHERED],
                         m[FAILED]);
    d->api->use(queue->gpu, false, NULL);
    give_back(d, m, BUFFERS);
    return s;
}

tally_status gpu_enqueue_words(tally_device *device, const struct problem *p,
                               const tally_words_call *call) {
    struct gpu_device *d = own(device);
    tally_status s = check(p);
    if (s != TALLY_OK) return s;
    s = gpu_enter_theirs(d, false);
    if (s == TALLY_OK) s = prepare(&d->theirs, p, false);
    if (s == TALLY_OK) s = run_words(d, p, call);
    return gpu_leave_theirs(d, s);
}

static tally_status run_values(struct gpu_device *d, const struct problem *p,
                               const tally_values_call *call) {
    struct queue *queue = &d->theirs;
    struct words_plan plan;
    enum { ADDED, GATHERED, FAILED, RESULTS, BUFFERS };
    struct gpu_memory *m[BUFFERS] = {0};
    plan_words(queue, p, 0, &plan);
    plan.count = call->count;
    plan.ranks = call->ranks;
    tally_status s = TALLY_OK;
    if (plan.added && !call->added) s = missing("the memory of those added");
    if (s == TALLY_OK && plan.gathered && !call->gathered)
        s = missing("the memory of those gathered");
    if (s == TALLY_OK) s = gpu_wrap(d, call->added, 8 * plan.added * call->count, 8, &m[ADDED]);
    if (s == TALLY_OK)
        s = gpu_wrap(d, call->gathered, 8 * plan.gathered * call->count * call->ranks, 8,
                     &m[GATHERED]);
    if (s == TALLY_OK) s = gpu_wrap(d, call->failed, 16, 8, &m[FAILED]);
    if (s == TALLY_OK)
        s = gpu_wrap(d, call->results, sizeof(tally_result) * p->values * call->count, 8,
                     &m[RESULTS]);
    d->api->use(queue->gpu, true, call->queue);
    const struct gpu_argument arguments[] = {BUFFER(m[ADDED]), BUFFER(m[GATHERED]),
                                             BUFFER(m[FAILED]), VALUE(plan), BUFFER(m[RESULTS])};
    if (s == TALLY_OK)
        s = d->api->launch(queue->gpu, queue->settle, (unsigned)call->count, queue->block,
                           arguments, 5);
    d->api->use(queue->gpu, false, NULL);
    give_back(d, m, BUFFERS);
    return s;
}

tally_status gpu_enqueue_values(tally_device *device, const struct problem *p,
                                const tally_values_call *call) {
    struct gpu_device *d = own(device);
    tally_status s = check(p);
    if (s != TALLY_OK) return s;
    s = gpu_enter_theirs(d, false);
    if (s == TALLY_OK) s = prepare(&d->theirs, p, false);
    if (s == TALLY_OK) s = run_values(d, p, call);
    return gpu_leave_theirs(d, s);
}

/* ---- Ranks that write into each other's memory ---------------------------------------------- */

_Static_assert(TALLY_ESTOPPED *TALLY_ESTOPPED < 256, "a status and its square are bytes");

/* Fills the message of a failed rank: FAILED_WORDS for one rank with this status, and zeros for all other words. */
static tally_status fill_failure(struct gpu_device *d, struct gpu_memory *words, size_t count,
                                 tally_status failure) {
    const struct gpu_api *api = d->api;
    struct gpu *gpu = d->theirs.gpu;
    tally_status s = api->fill(gpu, words, 0, 0, 8 * count);
    if (s == TALLY_OK) s = api->fill(gpu, words, 0, 1, 1);
    if (s == TALLY_OK) s = api->fill(gpu, words, 8, (unsigned char)failure, 1);
    if (s == TALLY_OK) s = api->fill(gpu, words, 12, (unsigned char)(failure * failure), 1);
    return s;
}

/* Returns whether the ranks try pairs first (kernels/words.cu); *monoid is then the monoid whose sum
 * a pair holds. */
static bool tries_pairs(const struct queue *queue, const struct problem *p, uint32_t *monoid) {
    const unsigned op = p->values == 1 ? p->value[0].op : TALLY_USER;
    *monoid = op == TALLY_NORM1 ? MONOID_MAGNITUDES : MONOID_SUM;
    return queue->allreduce_few && type_is_float(p->type) && p->monoids == MONOID_BIT(*monoid) &&
           (op == TALLY_SUM || op == TALLY_MEAN || op == TALLY_NORM1);
}

static tally_status run_shared(struct gpu_device *d, const struct problem *p,
                               const tally_shared_call *call) {
    struct queue *queue = &d->theirs;
    struct words_plan plan;
    struct records records = {.head = NULL};
    enum { X, Y, WORK, WORDS, MAILBOX, RESULTS, BUFFERS };
    struct gpu_memory *m[BUFFERS] = {0};
    const size_t element = type_size(p->type), n = call->failure == TALLY_OK ? call->n : 0;
    plan_words(queue, p, n, &plan);
    plan.count = 1;
    plan.ranks = call->ranks;
    plan.mine = (uint32_t)call->mine;
    plan.packs = call->failure == TALLY_OK;
    plan.tries = tries_pairs(queue, p, &plan.monoid);
    const bool few = plan.tries && plan.packs && n <= FEW_ELEMENTS;
    const size_t own = FAILED_WORDS + plan.added, gathered = plan.gathered * call->ranks;
    assert(own + plan.gathered <= MAILBOX_WORDS);
    tally_status s = too_small(d, call->workspace_bytes, whole_workspace(queue, p, n));
    if (s == TALLY_OK) s = gpu_wrap(d, call->x, n * element, element, &m[X]);
    if (s == TALLY_OK) s = gpu_wrap(d, call->y, n * element, element, &m[Y]);
    if (s == TALLY_OK) s = gpu_wrap(d, call->workspace, call->workspace_bytes, 8, &m[WORK]);
    if (s == TALLY_OK) s = gpu_wrap(d, call->words, 8 * (own + gathered), 8, &m[WORDS]);
    if (s == TALLY_OK) s = gpu_wrap(d, call->mailbox, MAILBOX_BYTES(call->ranks), 8, &m[MAILBOX]);
    if (s == TALLY_OK)
        s = gpu_wrap(d, call->results, sizeof(tally_result) * p->values, 8, &m[RESULTS]);
    d->api->use(queue->gpu, true, call->queue);
    const struct inputs in = {.x = m[X], .y = m[Y], .n = n};
    if (s == TALLY_OK && few) {
        const struct gpu_argument all[] = {BUFFER(m[X]),       BUFFER(m[WORK]),
                                           VALUE(plan),        BUFFER(m[WORDS]),
                                           BUFFER(m[MAILBOX]), BUFFER(m[RESULTS])};
        s = d->api->launch(queue->gpu, queue->allreduce_few, 1, queue->block, all, 6);
        d->api->use(queue->gpu, false, NULL);
        give_back(d, m, BUFFERS);
        return s;
    }
    if (s == TALLY_OK && plan.packs)
        s = launch_records(d, p, &in, &plan, m[WORK], call->workspace, &records);
    else if (s == TALLY_OK)
        s = fill_failure(d, m[WORDS], own + gathered, call->failure);
    const struct gpu_argument arguments[] = {
        BUFFER(plan.packs && s == TALLY_OK ? records.memory : NULL), VALUE(plan), BUFFER(m[WORDS]),
        BUFFER(m[MAILBOX]), BUFFER(m[RESULTS])};
    if (s == TALLY_OK) {
        s = d->api->launch(queue->gpu, queue->allreduce, 1, queue->block, arguments, 5);
        if (s != TALLY_OK) heads_give_up(records.head);
    }
    d->api->use(queue->gpu, false, NULL);
    give_back(d, m, BUFFERS);
    return s;
}

tally_status gpu_enqueue_shared(tally_device *device, const struct problem *p,
                                const tally_shared_call *call) {
    struct gpu_device *d = own(device);
    tally_status s = check(p);
    if (s != TALLY_OK) return s;
    s = gpu_enter_theirs(d, false);
    if (s == TALLY_OK) s = prepare(&d->theirs, p, false);
    if (s == TALLY_OK) s = run_shared(d, p, call);
    return gpu_leave_theirs(d, s);
}
