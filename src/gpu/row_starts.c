/* row_starts.c - see row_starts.h. */
#include "gpu/row_starts.h"

#include "base/types.h"
#include "gpu/part_kernels.h"

/* Returns the plan of the axis that segments or groups cut: its parts, and its elements. */
static struct parts_plan plan_of_axis(const struct reduction *r) {
    struct parts_plan plan = r->plan;
    plan.rows.count = r->c->s->count;
    plan.n = r->c->s->n;
    return plan;
}

/* Makes the rest of the reduction use the elements that the sort has copied, in the order of their groups. */
static void turn_aside(struct reduction *r) {
    const size_t size = type_size(r->c->s->p->type);
    r->shape_aside = sort_outcome(r->c->s);
    r->aside = *r->c;
    r->aside.s = &r->shape_aside;
    r->aside.x = r->c->work;
    r->aside.first_x = r->plan.x = (int64_t)(8 * r->l.by_id.carried[0][0] / size);
    if (r->c->y) {
        r->aside.y = r->c->work;
        r->aside.first_y = r->plan.y = (int64_t)(8 * r->l.by_id.carried[1][0] / size);
    }
    r->aside.mask = NULL;
    r->plan.skip_outside = 0;
    r->c = &r->aside;
}

/* Enqueues the launch that writes where groups begin, unless the sort has done that; `axis` is the plan of the axis. */
static tally_status find_starts(struct reduction *r, struct parts_plan axis) {
    const struct parts_call *c = r->c;
    const struct sort_layout *o = &r->l.by_id;
    const uint64_t to = r->l.starts, first = o->is_wanted ? 8 * o->keys[0] : 0;
    if (o->is_wanted && o->passes == 1) {
        TALLY_PATH("written by the sort");
        return TALLY_OK;
    }
    TALLY_PATH("from ids");
    axis.ordered = o->is_wanted;
    if (o->is_wanted) axis.ids = c->s->count >> 31 ? TALLY_U32 : TALLY_I32;
    const struct gpu_argument arguments[] = {BUFFER(o->is_wanted ? c->work : c->ids),
                                             BUFFER(c->offsets),
                                             BUFFER(c->work),
                                             VALUE(first),
                                             VALUE(to),
                                             VALUE(axis)};
    const unsigned grid = reduction_grid(r, (uint64_t)c->s->count + 1);
    const unsigned wide = sort_looks_grid(r->queue, c->s->n + 1);
    return part_launch(r->queue, PART_STARTS, grid > wide ? grid : wide, arguments, 6);
}

/* Enqueues the launches that bring the elements of groups into their order, and say where groups begin. */
static tally_status find_groups(struct reduction *r) {
    const struct shaped *shape = r->c->s;
    const struct parts_layout *l = &r->l;
    struct parts_plan axis = plan_of_axis(r);
    tally_status s = sort_check(shape);
    if (s != TALLY_OK) return s;
    if (parts_drop_hidden(shape)) axis.rows.vectors = 1;
    if (l->by_id.is_wanted) s = sort_enqueue(r->queue, r->c, &l->by_id, &axis);
    if (s == TALLY_OK) s = find_starts(r, axis);
    r->plan.rows = (struct part_rows){
        .count = shape->results, .offsets = 8 * l->starts, .kind = 8, .vectors = shape->vectors};
    r->plan.order = l->by_id.is_wanted && !l->aside ? l->by_id.carried[0][0] : 0;
    r->plan.wide_order = l->by_id.wide;
    if (parts_drop_hidden(shape)) r->plan.masked = 0;
    return s;
}

/* Enqueues the launches that find where the rows of the tree's elements begin. If a mask hides some, launches that
 * put the numbers of the shown elements side by side come first. */
static tally_status find_tree_rows(struct reduction *r) {
    const struct parts_call *c = r->c;
    const struct sort_layout *o = &r->l.shown;
    const uint64_t first = 0, to = r->l.tree_starts;
    tally_status s = o->is_wanted ? sort_enqueue(r->queue, c, o, &r->plan) : TALLY_OK;
    if (o->is_wanted)
        TALLY_PATH("from what a mask leaves");
    else
        TALLY_PATH("from parts of vectors");
    r->plan.shown = o->is_wanted ? o->carried[0][0] : 0;
    r->plan.wide_shown = o->wide;
    struct parts_plan plan = r->plan;
    plan.ordered = o->is_wanted;
    plan.row_starts = 1;
    const struct gpu_argument arguments[] = {BUFFER(c->work), BUFFER(r->tree_offsets),
                                             BUFFER(c->work), VALUE(first),
                                             VALUE(to),       VALUE(plan)};
    if (s == TALLY_OK)
        s = part_launch(r->queue, PART_STARTS, reduction_grid(r, (uint64_t)c->s->results + 1),
                        arguments, 6);
    r->tree_rows = (struct part_rows){.count = c->s->results, .offsets = 8 * to, .kind = 8};
    r->tree_offsets = c->work;
    r->plan.tree_starts = 1;
    return s;
}

tally_status row_starts_find(struct reduction *r) {
    const struct parts_call *c = r->c;
    const struct parts_layout *l = &r->l;
    tally_status s = TALLY_OK;
    if (c->s->cut == TALLY_SEGMENTS &&
        !(l->strategy && l->strategy->checks && l->strategy->checks(c->s))) {
        const unsigned grid = reduction_grid(r, (uint64_t)c->s->count + 1);
        struct parts_plan axis = plan_of_axis(r);
        axis.rows.vectors = 1;
        const struct gpu_argument checking[] = {BUFFER(c->offsets), BUFFER(c->work), VALUE(axis)};
        s = part_launch(r->queue, PART_CHECK, grid, checking, 3);
    }
    if (s == TALLY_OK && l->starts_own) s = find_groups(r);
    r->tree_rows = r->plan.rows;
    r->tree_offsets = reduction_offsets(r);
    if (s == TALLY_OK && parts_have_tree_starts(c->s)) s = find_tree_rows(r);
    if (l->aside) turn_aside(r);
    return s;
}
