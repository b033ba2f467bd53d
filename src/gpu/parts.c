/* parts.c - see parts.h. */
#include "gpu/parts.h"

#include "base/status.h"
#include "base/types.h"
#include "gpu/choice.h"
#include "gpu/few.h"
#include "gpu/part_kernels.h"
#include "gpu/reduction.h"
#include "gpu/row_starts.h"
#include "gpu/row_trees.h"
#include "gpu/source.h"
#include "gpu/tuning.h"
#include "gpu/whole_kernels.h"

_Static_assert(PARTS_OUTCOME_BYTES <= 8 * PARTS_HEAD, "parts.h");

size_t parts_workspace(const struct queue *queue, const struct shaped *s) {
    struct parts_layout l;
    parts_lay_out(queue, s, choice_for(queue, s), &l);
    return l.bytes;
}

tally_status parts_prepare(struct queue *queue, const struct shaped *s) {
    struct shaped aside = sort_outcome(s);
    struct parts_layout l;
    struct kernels k;
    bool in_order;
    tally_status status = sort_check(s);
    if (status != TALLY_OK) return status;
    parts_lay_out(queue, s, choice_for(queue, s), &l);
    status = part_kernels_find(queue);
    if (status == TALLY_OK && (l.by_id.is_wanted || l.shown.is_wanted))
        status = sort_prepare(queue);
    if (status == TALLY_OK && problem_has(s->p, MONOID_TREE))
        status = whole_tree_kernels(queue, s->p, &k);
    if (status == TALLY_OK && l.is_filled) {
        choice_for_filled(queue, s, &aside, &in_order);
        status = filled_prepare(queue);
    }
    if (status == TALLY_OK && l.strategy && l.strategy->prepare)
        status = l.strategy->prepare(queue, l.aside || l.is_filled ? &aside : s);
    return status;
}

/* ---- Rows by a strategy ---------------------------------------------------------------------- */

/* Returns a mark that none of the last 254 calls had: the workspace may still hold their marks. */
static uint64_t next_mark(struct queue *queue) {
    return queue->mark = queue->mark % 255 + 1;
}

/* Enqueues a filled copy of the array, and has the strategy reduce that. Rows that the strategy leaves are reduced from
 * the array itself. */
static tally_status fill(struct reduction *r, struct parts_run *own) {
    const struct parts_call *c = r->c;
    const size_t size = type_size(c->s->p->type);
    bool in_order;
    choice_for_filled(r->queue, c->s, &r->shape_aside, &in_order);
    if (in_order)
        TALLY_PATH("a copy in the order of rows");
    else
        TALLY_PATH("a copy in the order of memory");
    r->aside = *c;
    r->aside.s = &r->shape_aside;
    r->aside.x = c->work;
    r->aside.first_x = (int64_t)(8 * r->l.filled.to / size);
    r->aside.mask = NULL;
    own->call = &r->aside;
    reduction_plan(&r->aside, &r->l, &own->plan);
    own->plan.left = r->plan.left;
    own->plan.filled = 1;
    own->plan.counts = r->l.filled.counts;
    own->plan.wide_counts = c->s->each >> 32 != 0;
    return filled_enqueue(r->queue, c, &r->plan, &r->l.filled);
}

/* Returns whether some row may be left for `fold` and `join`, for r->may_leave. */
static bool may_leave(const struct reduction *r) {
    const struct shaped *s = r->c->s;
    const struct strategy *strategy = r->l.strategy;
    return !strategy || !strategy->is_certain || r->l.is_filled || s->cut != TALLY_AXES ||
           s->each == 0 || !strategy->is_certain(r->queue, s);
}

/* Has the strategy enqueue its launches, after clearing the words that have to be 0 before them: the bits of the rows
 * that it leaves and, if it is alone, all its words. Marks are never cleared. */
static tally_status follow(struct reduction *r, struct gpu_memory *offsets) {
    struct queue *queue = r->queue;
    struct parts_run own = {.queue = queue,
                            .call = r->c,
                            .offsets = offsets,
                            .plan = r->plan,
                            .own = r->l.own,
                            .flags = r->l.flags};
    const uint64_t end = r->l.alone ? r->l.bytes : 8 * r->l.own;
    tally_status s = TALLY_OK;
    if (r->l.marked)
        TALLY_PATH("rows that are left are marked");
    else
        TALLY_PATH("rows that are left have bits");
    own.plan.leaves_none = !r->may_leave;
    if (!r->l.marked && r->may_leave)
        s = queue->api->fill(queue->gpu, r->c->work, 8 * r->l.left, 0, end - 8 * r->l.left);
    if (s == TALLY_OK && r->l.is_filled) s = fill(r, &own);
    return s == TALLY_OK ? r->l.strategy->enqueue(&own) : s;
}

/* ---- All of it ------------------------------------------------------------------------------- */

#if defined(TALLY_DEBUG)
static const char *never_alone(const struct path_table *t, const unsigned at[PATH_AXES]) {
    struct problem p;
    const char *why = problem_path(at[0], at[1], &p);
    (void)t;
    if (why) return why;
    return source_check(&p) == TALLY_OK ? NULL : "such a user's operator runs on the CPU";
}
PATH_TABLE(alone_paths, "parts on a GPU, by `fold` alone", never_alone, &path_ops, &path_types);
#endif

/* Does parts_enqueue() with a strategy, or NULL. */
static tally_status enqueue(struct queue *queue, const struct parts_call *call,
                            const struct strategy *strategy) {
    const struct shaped *shaped = call->s;
    struct reduction r = {.queue = queue, .c = call};
    parts_lay_out(queue, shaped, strategy, &r.l);
    r.may_leave = may_leave(&r);
    reduction_plan(call, &r.l, &r.plan);
    if (r.l.marked) r.plan.left |= next_mark(queue) << PARTS_MARK_AT;
    tally_status s = part_kernels_find(queue);
    area_guard(&r.l.area, queue->gpu, call->work);
    if (s == TALLY_OK && !call->keep_outcome && !r.plan.ignore_errors)
        s = queue->api->fill(queue->gpu, call->work, 0, 0xff, 8 * PARTS_HEAD_WORDS);
    if (r.l.alone) TALLY_PATH("a strategy that wants no order");
    if (r.l.alone) return s == TALLY_OK ? follow(&r, NULL) : s;
    if (s == TALLY_OK) s = row_starts_find(&r);
    if (s != TALLY_OK || shaped->results == 0) return s;
    if (problem_has(shaped->p, MONOID_TREE)) s = row_trees_evaluate(&r);
    if (s != TALLY_OK) return s;
    r.plan.tree = r.tree_rows;
    struct gpu_memory *offsets = reduction_offsets(&r);
    call = r.c;
    const struct gpu_argument folding[] = {
        BUFFER(call->x),     BUFFER(call->y),    BUFFER(call->mask), BUFFER(offsets),
        BUFFER(call->means), BUFFER(call->work), BUFFER(call->out),  VALUE(r.plan)};
    const struct gpu_argument joining[] = {BUFFER(offsets), BUFFER(call->means), BUFFER(call->work),
                                           BUFFER(call->out), VALUE(r.plan)};
    if (r.l.strategy)
        s = follow(&r, offsets);
    else if (shaped->p->values == 1)
        TALLY_PATH_OF(alone_paths, (unsigned)shaped->p->value[0].op, (unsigned)shaped->p->type);
    if (!r.may_leave) TALLY_PATH("no row is left");
    if (s != TALLY_OK || !r.may_leave) return s;
    s = part_launch(queue, PART_FOLD, r.l.grid, folding, 8);
    if (r.l.pieces > 1 && r.l.is_cut) TALLY_PATH("rows that are cut");
    if (s == TALLY_OK && r.l.pieces > 1 && r.l.is_cut)
        s = part_launch(queue, PART_JOIN, parts_grid(queue, r.l.pieces - 1), joining, 5);
    return s;
}

tally_status parts_enqueue(struct queue *queue, const struct parts_call *call) {
    const struct strategy *strategy = choice_for(queue, call->s);
    if (few_takes(call) && choice_is_poor(strategy)) return few_enqueue(queue, call);
    queue_hold(queue);
    return queue_send(queue, enqueue(queue, call, strategy));
}

tally_status parts_report(struct queue *queue, struct gpu_memory *work, struct gpu_memory *to) {
    const struct gpu_argument arguments[] = {BUFFER(work), BUFFER(to)};
    tally_status s = part_kernels_find(queue);
    if (s != TALLY_OK) return s;
    return part_launch(queue, PART_REPORT, 1, arguments, 2);
}

struct parts_outcome parts_outcome(const uint64_t *word) {
    struct parts_outcome o = {.bad = word[PARTS_BAD], .absence = {.number = UINT64_MAX}};
    const uint64_t first = word[PARTS_ABSENT];
    if (first != UINT64_MAX)
        o.absence = (struct absence){.number = first / 64,
                                     .status = first & 1 ? TALLY_EINVAL : TALLY_ERANGE,
                                     .value = (unsigned)(first % 64 / 2)};
    return o;
}
