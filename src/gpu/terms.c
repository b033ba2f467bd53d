/*
 * gpu/terms.c - arrays that are added up over ranks (kernels/terms.h) as calls of a GPU device, on queues of the
 * caller's.
 */
#include "gpu/opened.h"
#include "gpu/recipe.h"
#include "kernels/tuning.h"
#include "status.h"

#include <string.h>

enum { BOUNDS, ROWS, OFFSETS, WORDS, VALUES };
static const char *const names[TERMS_KERNELS] = {"bounds", "rows", "offsets", "words", "values"};

static tally_status prepare(struct queue *queue) {
    struct gpu_kernel *found[TERMS_KERNELS] = {0};
    struct gpu_program *program = NULL;
    if (queue->terms[0]) return TALLY_OK;
    tally_status s = recipe_build_plain(queue->api, queue->gpu, queue->block, "terms.cu", &program);
    for (unsigned i = 0; i < TERMS_KERNELS && s == TALLY_OK; i++)
        s = queue->api->kernel(queue->gpu, program, names[i], &found[i]);
    if (s == TALLY_OK) memcpy(queue->terms, found, sizeof found);
    return s;
}

/* The caller's memory as pieces of the device's. */
struct pieces {
    struct gpu_memory *x, *bounds, *words, *spare, *failed, *workspace, *out, *outcome;
};

static tally_status take_all(struct gpu_device *d, enum terms_step step, const terms_plan *p,
                             const tally_terms_call *c, struct pieces *m) {
    const unsigned element = p->element / 8, word = p->word / 8;
    const int values = step == TERMS_TO_VALUES, bounds = step == TERMS_TO_BOUNDS;
    tally_status s = TALLY_OK;
    *m = (struct pieces){0};
    if (!values) s = gpu_wrap(d, c->x, p->n * element, element, &m->x);
    if (s == TALLY_OK) s = gpu_wrap(d, c->bounds, 4 * BOUND_WORDS * p->blocks, 8, &m->bounds);
    if (s == TALLY_OK && !bounds)
        s = gpu_wrap(d, c->words, (values ? p->count : p->n) * word, word, &m->words);
    if (s == TALLY_OK && !bounds)
        s = gpu_wrap(d, c->spare, p->spare * TERMS_BLOCK * word, word, &m->spare);
    if (s == TALLY_OK && values) s = gpu_wrap(d, c->failed, word, word, &m->failed);
    if (s == TALLY_OK && !bounds)
        s = gpu_wrap(d, c->workspace, 8 * (p->blocks + 1 + terms_chunks(p)), 8, &m->workspace);
    if (s == TALLY_OK && values) s = gpu_wrap(d, c->out, p->count * element, element, &m->out);
    if (s == TALLY_OK && values) s = gpu_wrap(d, c->outcome, sizeof(tally_outcome), 8, &m->outcome);
    return s;
}

static void give_back(struct gpu_device *d, struct pieces *m) {
    struct gpu_memory *all[] = {m->x,      m->bounds,    m->words, m->spare,
                                m->failed, m->workspace, m->out,   m->outcome};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        d->api->release(d->theirs.gpu, all[i]);
}

static void *const nothing = NULL;
#define VALUE(v)                                                                                   \
    { .size = sizeof(v), .value = &(v) }
#define PIECE(m)                                                                                   \
    { .memory = (m), .size = sizeof nothing, .value = &nothing } /* NULL: a null pointer */

/* The grid for so many blocks of elements, of which a warp, or a smaller block of threads, takes one at a time. */
static unsigned grid_for(const struct queue *queue, uint64_t blocks) {
    const unsigned teams = queue->block > 32 ? queue->block / 32 : 1;
    const unsigned units = queue->facts->units ? queue->facts->units : 1;
    const uint64_t most =
        (uint64_t)units * (CPU_SHAPED(queue->block) ? CPU_BLOCKS_A_UNIT : GPU_TERMS_BLOCKS_A_UNIT);
    const uint64_t wanted = blocks / teams + 1;
    return (unsigned)(wanted < most ? wanted : most);
}

static tally_status launch(struct queue *queue, enum terms_step step, const terms_plan *p,
                           const struct pieces *m) {
    const struct gpu_argument to_bounds[] = {PIECE(m->x), VALUE(*p), PIECE(m->bounds)},
                              to_offsets[] = {PIECE(m->bounds), VALUE(*p), PIECE(m->workspace)},
                              to_words[] = {PIECE(m->x), PIECE(m->bounds), PIECE(m->workspace),
                                            VALUE(*p),   PIECE(m->words),  PIECE(m->spare)},
                              to_values[] = {PIECE(m->words),     PIECE(m->spare),
                                             PIECE(m->failed),    PIECE(m->bounds),
                                             PIECE(m->workspace), VALUE(*p),
                                             PIECE(m->out),       PIECE(m->outcome)};
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
    struct pieces m;
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
