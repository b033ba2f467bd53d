/* reduction.c - see reduction.h. */
#include "gpu/reduction.h"

#include "base/types.h"
#include "gpu/lower_plan.h"
#include "gpu/record.h"
#include "problem/tree.h"

#include <string.h>

_Static_assert(PARTS_DIMS == TALLY_DIMS_MAX && PARTS_LEAF == TREE_LEAF, "kernels/parts.h");
_Static_assert((int)PARTS_AXES == (int)TALLY_AXES && (int)PARTS_SEGMENTS == (int)TALLY_SEGMENTS &&
                   (int)PARTS_GROUPS == (int)TALLY_GROUPS,
               "kernels/parts.h");

static struct part_extent extent_of(const struct extent *e) {
    return (struct part_extent){.length = e->length,
                                .number = e->number,
                                .x = e->x,
                                .y = e->y,
                                .mask = e->mask,
                                .out = e->out};
}

/* Plans the values, and where in a row's record each monoid is. */
static void plan_values(const struct parts_call *c, const struct parts_layout *l,
                        struct parts_plan *plan) {
    const struct problem *p = c->s->p;
    struct lower_plan *lower = &plan->lower;
    static const uint32_t rest[MONOIDS] = {
        [MONOID_NONZERO] = 0, [MONOID_BITS] = 1,     [MONOID_FAST] = 2,
        [MONOID_FACTORS] = 3, [MONOID_EXTREMES] = 5, [MONOID_TREE] = 10};
    uint32_t at = 0;
    lower_plan_of(p, lower);
    lower->indexed = 1;
    for (unsigned monoid = 0; monoid < MONOIDS; monoid++) {
        if (!(p->monoids & MONOID_BIT(monoid))) continue;
        lower->at[monoid] = monoid <= MONOID_MAGNITUDES ? at : l->sums + rest[monoid];
        if (monoid <= MONOID_MAGNITUDES) at += (uint32_t)record_words(p, (enum monoid_id)monoid);
    }
    lower->values = c->values;
    for (unsigned v = 0; v < c->values; v++) {
        lower->value[v] = (uint32_t)p->value[c->only + v].op | (uint32_t)p->value[c->only + v].type
                                                                   << 8;
        plan->out[v] = c->at[c->only + v];
    }
    plan->several = p->values > 1;
    plan->first_value = c->only;
    plan->xored = problem_has(p, MONOID_BITS) && p->bits_op == TALLY_XOR;
}

void reduction_plan(const struct parts_call *c, const struct parts_layout *l,
                    struct parts_plan *plan) {
    const struct shaped *s = c->s;
    memset(plan, 0, sizeof *plan);
    plan_values(c, l, plan);
    plan->rows = (struct part_rows){
        .count = s->results, .each = s->each, .vectors = s->cut == TALLY_AXES ? 1 : s->vectors};
    if (s->cut == TALLY_SEGMENTS) plan->rows.kind = type_size(s->offsets_type);
    plan->piece = l->piece;
    plan->pieces = l->pieces;
    plan->edges = l->edges;
    plan->values = 8 * l->values;
    plan->x = c->first_x;
    plan->y = c->first_y;
    plan->mask = c->first_mask;
    plan->left = l->strategy ? l->left : 0;
    plan->ignore_errors =
        c->ignore_errors && s->cut == TALLY_AXES && !problem_has(s->p, MONOID_TREE);
    plan->out_first = s->out_first;
    plan->number_first = s->number_first;
    plan->n = l->n;
    plan->cut = (uint32_t)s->cut;
    plan->monoids = s->p->monoids;
    plan->sums = l->sums;
    plan->masked = c->mask != NULL;
    plan->absolute = s->cut == TALLY_GROUPS;
    plan->is_flat = s->cut != TALLY_AXES && shape_is_flat(s);
    plan->skip_outside = s->skip_outside != 0;
    plan->ids = (uint32_t)s->ids_type;
    plan->keeps = s->keeps;
    plan->reduces = s->cut == TALLY_AXES ? s->reduces : 1;
    for (unsigned d = 0; d < s->keeps; d++)
        plan->kept[d] = extent_of(&s->kept[d]);
    for (unsigned d = 0; d < plan->reduces; d++)
        plan->reduced[d] = extent_of(&s->reduced[d]);
}

struct gpu_memory *reduction_offsets(const struct reduction *r) {
    return r->c->s->cut == TALLY_GROUPS ? r->c->work : r->c->offsets;
}

unsigned reduction_grid(const struct reduction *r, uint64_t n) {
    return parts_grid(r->queue, (n + r->queue->block - 1) / r->queue->block);
}
