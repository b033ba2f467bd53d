/*
 * gpu/terms.c - arrays that are added up over ranks (kernels/terms.h) as calls of a GPU device, on queues of the
 * caller's; by words, or where the arrays lie, in the memory of all ranks' devices (kernels/shared_terms.h).
 */
#include "base/status.h"
#include "gpu/opened.h"
#include "gpu/programs.h"
#include "kernels/plan.h"
#include "kernels/tuning.h"

#include "kernels/words.h"

#include "kernels/shared_terms.h"

#include <string.h>

enum { BOUNDS, ROWS, OFFSETS, WORDS, VALUES };
static const char *const names[TERMS_KERNELS] = {"bounds", "rows", "offsets", "words", "values"};

static tally_status prepare(struct queue *queue) {
    struct gpu_kernel *found[TERMS_KERNELS] = {0};
    struct gpu_program *program = NULL;
    if (queue->terms[0]) return TALLY_OK;
    tally_status s = program_build_plain(queue, "terms.cu", &program);
    if (s == TALLY_OK) s = program_find(queue, program, names, TERMS_KERNELS, found);
    if (s == TALLY_OK) memcpy(queue->terms, found, sizeof found);
    return s;
}

/* The caller's memory as buffers. */
struct buffers {
    struct gpu_memory *x, *bounds, *words, *spare, *failed, *workspace, *out, *outcome;
};

static tally_status take_all(struct gpu_device *d, enum terms_step step, const terms_plan *p,
                             const tally_terms_call *c, struct buffers *m) {
    const unsigned element = p->element / 8, word = p->word / 8;
    const int values = step == TERMS_TO_VALUES, bounds = step == TERMS_TO_BOUNDS;
    tally_status s = TALLY_OK;
    *m = (struct buffers){0};
    if (!values) s = gpu_wrap(d, c->x, p->n * element, element, &m->x);
    if (s == TALLY_OK) s = gpu_wrap(d, c->bounds, 4 * BOUND_WORDS * p->blocks, 8, &m->bounds);
    if (s == TALLY_OK && !bounds)
        s = gpu_wrap(d, c->words, (values ? p->count : p->n) * word, word, &m->words);
    if (s == TALLY_OK && !bounds)
        s = gpu_wrap(d, c->spare, p->spare * TERMS_BLOCK * word, word, &m->spare);
    if (s == TALLY_OK && values) s = gpu_wrap(d, c->failed, word, word, &m->failed);
    if (s == TALLY_OK && !bounds)
        s = gpu_wrap(d, c->workspace, 8 * terms_work_words(p), 8, &m->workspace);
    if (s == TALLY_OK && values) s = gpu_wrap(d, c->out, p->count * element, element, &m->out);
    if (s == TALLY_OK && values) s = gpu_wrap(d, c->outcome, sizeof(tally_outcome), 8, &m->outcome);
    return s;
}

static void give_back(struct gpu_device *d, struct buffers *m) {
    struct gpu_memory *all[] = {m->x,      m->bounds,    m->words, m->spare,
                                m->failed, m->workspace, m->out,   m->outcome};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        d->api->release(d->theirs.gpu, all[i]);
}

/* Returns the grid for `blocks` blocks of elements; a warp, or a smaller block of threads, takes
 * one at a time. */
static unsigned grid_for(const struct queue *queue, uint64_t blocks) {
    const unsigned teams = queue->block > 32 ? queue->block / 32 : 1;
    const unsigned units = queue_units(queue);
    const uint64_t most =
        (uint64_t)units * (CPU_SHAPED(queue->block) ? CPU_BLOCKS_A_UNIT : GPU_TERMS_BLOCKS_A_UNIT);
    const uint64_t wanted = blocks / teams + 1;
    return (unsigned)(wanted < most ? wanted : most);
}

static tally_status launch(struct queue *queue, enum terms_step step, const terms_plan *p,
                           const struct buffers *m) {
    const struct gpu_argument to_bounds[] = {BUFFER(m->x), VALUE(*p), BUFFER(m->bounds)},
                              to_offsets[] = {BUFFER(m->bounds), VALUE(*p), BUFFER(m->workspace)},
                              to_words[] = {BUFFER(m->x), BUFFER(m->bounds), BUFFER(m->workspace),
                                            VALUE(*p),    BUFFER(m->words),  BUFFER(m->spare)},
                              to_values[] = {BUFFER(m->words),     BUFFER(m->spare),
                                             BUFFER(m->failed),    BUFFER(m->bounds),
                                             BUFFER(m->workspace), VALUE(*p),
                                             BUFFER(m->out),       BUFFER(m->outcome)};
    const struct gpu_api *api = queue->api;
    tally_status s = TALLY_OK;
    if (step == TERMS_TO_BOUNDS) {
        if (p->blocks == 0) return TALLY_OK;
        return api->launch(queue->gpu, queue->terms[BOUNDS], grid_for(queue, p->blocks),
                           queue->block, to_bounds, 3);
    }
    if (step == TERMS_TO_VALUES)
        return api->launch(queue->gpu, queue->terms[VALUES],
                           grid_for(queue, p->count / TERMS_BLOCK + 2), queue->block, to_values, 8);
    if (m->spare)
        s = api->fill(queue->gpu, m->spare, 0, 0, (size_t)(p->spare * TERMS_BLOCK * p->word / 8));
    const unsigned chunks = (unsigned)terms_chunks(p);
    if (s == TALLY_OK)
        s = api->launch(queue->gpu, queue->terms[ROWS], chunks, queue->block, to_offsets, 3);
    if (s == TALLY_OK)
        s = api->launch(queue->gpu, queue->terms[OFFSETS], chunks, queue->block, to_offsets, 3);
    if (s != TALLY_OK || p->blocks == 0) return s;
    return api->launch(queue->gpu, queue->terms[WORDS], grid_for(queue, p->blocks), queue->block,
                       to_words, 6);
}

static tally_status run(struct gpu_device *d, enum terms_step step, const terms_plan *p,
                        const tally_terms_call *c) {
    struct buffers m;
    tally_status s = take_all(d, step, p, c, &m);
    d->api->use(d->theirs.gpu, true, c->queue);
    if (s == TALLY_OK) s = launch(&d->theirs, step, p, &m);
    d->api->use(d->theirs.gpu, false, NULL);
    give_back(d, &m);
    return s;
}

tally_status gpu_terms(tally_device *device, enum terms_step step, const terms_plan *plan,
                       const tally_terms_call *call) {
    struct gpu_device *d = own(device);
    tally_status s = gpu_enter_theirs(d, !plan);
    if (s == TALLY_OK) s = prepare(&d->theirs);
    if (s == TALLY_OK && plan) s = run(d, step, plan, call);
    return gpu_leave_theirs(d, s);
}

/* ---- Ranks that reach each other's memory ---------------------------------------------------- */

static tally_status prepare_shared(struct gpu_device *d) {
    struct queue *queue = &d->theirs;
    struct gpu_kernel *rank_barrier = NULL, *add_up = NULL;
    struct gpu_program *program = NULL;
    if (queue->add_up) return TALLY_OK;
    if (!d->facts.has_addresses)
        return device_refuses(&d->base, "has no memory that other devices can reach");
    tally_status s = program_build_plain(queue, "shared_terms.cu", &program);
    if (s == TALLY_OK) s = queue->api->kernel(queue->gpu, program, "rank_barrier", &rank_barrier);
    if (s == TALLY_OK) s = queue->api->kernel(queue->gpu, program, "add_up", &add_up);
    if (s == TALLY_OK) queue->rank_barrier = rank_barrier;
    if (s == TALLY_OK) queue->add_up = add_up;
    return s;
}

/* Plans which elements this rank adds up: its shard, or an even share of all elements, rounded up to SHARE_GRAIN of
 * them, which are whole lines of memory. */
#define SHARE_GRAIN 128
static void plan_share(terms_plan *p, unsigned ranks, const tally_terms_shared_call *c,
                       shared_terms_plan *plan) {
    uint64_t each = p->shard;
    *plan = (shared_terms_plan){.ranks = ranks,
                                .mine = (uint32_t)c->mine,
                                .arrays = c->arrays,
                                .failure = (uint32_t)c->failure};
    if (!each) each = (p->n / ranks / SHARE_GRAIN + 1) * SHARE_GRAIN;
    p->first = each * c->mine < p->n ? each * c->mine : p->n;
    p->count = p->n - p->first < each ? p->n - p->first : each;
    plan->to = p->shard ? 0 : p->first;
    uint64_t places = p->first * p->element / 8 | plan->to * p->element / 8;
    for (unsigned rank = 0; rank < ranks; rank++) {
        places |= plan->x[rank] = (uint64_t)(uintptr_t)c->x[rank];
        if (!p->shard || rank == c->mine)
            places |= plan->out[plan->outs++] = (uint64_t)(uintptr_t)c->out[rank];
    }
    plan->in_packs = places % 16 == 0;
}

static unsigned grid_of_shares(const struct queue *queue, const terms_plan *p) {
    const unsigned units = queue_units(queue);
    const uint64_t most =
        (uint64_t)units *
        (CPU_SHAPED(queue->block) ? CPU_BLOCKS_A_UNIT : GPU_SHARED_TERMS_BLOCKS_A_UNIT);
    const uint64_t wanted = p->count * p->element / 128 / queue->block + 1;
    return (unsigned)(wanted < most ? wanted : most);
}

static tally_status launch_shared(struct queue *queue, const terms_plan *p,
                                  const shared_terms_plan *plan, struct gpu_memory *mailbox,
                                  struct gpu_memory *outcome) {
    const struct gpu_api *api = queue->api;
    const uint32_t first = 0, later = 1;
    const struct gpu_argument before[] = {BUFFER(mailbox), VALUE(*plan), VALUE(first),
                                          BUFFER(outcome)},
                              behind[] = {BUFFER(mailbox), VALUE(*plan), VALUE(later),
                                          BUFFER(outcome)},
                              sums[] = {VALUE(*p), VALUE(*plan), BUFFER(outcome)};
    tally_status s = TALLY_OK;
    if (mailbox) s = api->launch(queue->gpu, queue->rank_barrier, 1, queue->block, before, 4);
    if (s == TALLY_OK && p->count > 0 && !plan->failure)
        s = api->launch(queue->gpu, queue->add_up, grid_of_shares(queue, p), queue->block, sums, 3);
    if (s == TALLY_OK && mailbox)
        s = api->launch(queue->gpu, queue->rank_barrier, 1, queue->block, behind, 4);
    return s;
}

static tally_status run_shared(struct gpu_device *d, const terms_plan *p, unsigned ranks,
                               const tally_terms_shared_call *c) {
    terms_plan terms = *p;
    shared_terms_plan plan;
    struct gpu_memory *m[4] = {0};
    const unsigned element = p->element / 8;
    plan_share(&terms, ranks, c, &plan);
    const size_t sums = p->shard ? p->shard : p->n;
    tally_status s = gpu_wrap(d, c->mailbox, MAILBOX_BYTES(ranks), 8, &m[0]);
    if (s == TALLY_OK) s = gpu_wrap(d, c->outcome, sizeof(tally_outcome), 8, &m[1]);
    if (s == TALLY_OK && !plan.failure)
        s = gpu_wrap(d, c->x[c->mine], p->n * element, element, &m[2]);
    if (s == TALLY_OK && !plan.failure)
        s = gpu_wrap(d, c->out[c->mine], sums * element, element, &m[3]);
    d->api->use(d->theirs.gpu, true, c->queue);
    if (s == TALLY_OK) s = launch_shared(&d->theirs, &terms, &plan, m[0], m[1]);
    d->api->use(d->theirs.gpu, false, NULL);
    for (unsigned i = 0; i < 4; i++)
        d->api->release(d->theirs.gpu, m[i]);
    return s;
}

tally_status gpu_terms_shared(tally_device *device, const terms_plan *plan, unsigned ranks,
                              const tally_terms_shared_call *call) {
    struct gpu_device *d = own(device);
    tally_status s = gpu_enter_theirs(d, !plan);
    if (s == TALLY_OK) s = prepare_shared(d);
    if (s == TALLY_OK && plan) s = run_shared(d, plan, ranks, call);
    return gpu_leave_theirs(d, s);
}
