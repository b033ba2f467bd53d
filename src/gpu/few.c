/* few.c - see few.h. */
#include "gpu/few.h"

#include "gpu/part_kernels.h"
#include "gpu/reduction.h"
#include "gpu/tuning.h"

bool few_is_for(const struct problem *p, uint64_t results, uint64_t each) {
    return !problem_has(p, MONOID_TREE) && results > 0 && each > 0 && results <= PARTS_FEW_ROWS &&
           each <= PARTS_FEW_EACH && results * each <= PARTS_FEW_ELEMENTS;
}

bool few_takes(const struct parts_call *call) {
    const struct shaped *s = call->s;
    return call->ignore_errors && s->cut == TALLY_AXES && few_is_for(s->p, s->results, s->each);
}

tally_status few_prepare(struct queue *queue) {
    return part_kernels_find(queue);
}

#if defined(TALLY_DEBUG)
static const char *never_few(const struct path_table *t, const unsigned at[PATH_AXES]) {
    struct problem p;
    const char *why = problem_path(at[0], at[1], &p);
    (void)t;
    if (why) return why;
    return problem_has(&p, MONOID_TREE) ? "the canonical tree takes launches of its own" : NULL;
}
PATH_TABLE(few_paths, "few elements on a GPU", never_few, &path_ops, &path_types);
#endif

/* Enqueues the launch. It writes each value alone or, if `as_results`, in a tally_result. */
static tally_status enqueue(struct queue *queue, const struct parts_call *call, bool as_results) {
    const struct shaped *s = call->s;
    const struct parts_layout l = {.n = parts_elements(s), .sums = parts_sum_words(s->p)};
    struct parts_plan plan;
    reduction_plan(call, &l, &plan);
    plan.ignore_errors = 1;
    plan.as_results = as_results;
    const struct gpu_argument arguments[] = {BUFFER(call->x),    BUFFER(call->y),
                                             BUFFER(call->mask), BUFFER(call->means),
                                             BUFFER(call->out),  VALUE(plan)};
    tally_status status = part_kernels_find(queue);
    if (status != TALLY_OK) return status;
    if (s->p->values == 1)
        TALLY_PATH_OF(few_paths, (unsigned)s->p->value[0].op, (unsigned)s->p->type);
    return part_launch(queue, PART_FEW, parts_grid(queue, s->results), arguments, 6);
}

tally_status few_enqueue(struct queue *queue, const struct parts_call *call) {
    return enqueue(queue, call, false);
}

tally_status few_enqueue_array(struct queue *queue, const struct problem *p,
                               const struct inputs *in, struct gpu_memory *results) {
    const struct shaped row = {.p = p,
                               .cut = TALLY_AXES,
                               .results = 1,
                               .reduces = 1,
                               .reduced[0] = {.length = in->n, .x = 1, .y = 1},
                               .each = in->n};
    struct parts_call call = {
        .s = &row, .x = in->x, .y = in->y, .out = results, .values = p->values};
    for (unsigned v = 0; v < p->values; v++)
        call.at[v] = v * sizeof(tally_result);
    return enqueue(queue, &call, true);
}
