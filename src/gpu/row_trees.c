/* row_trees.c - see row_trees.h. */
#include "gpu/row_trees.h"

#include "base/types.h"
#include "gpu/part_kernels.h"
#include "gpu/whole_kernels.h"
#include "problem/tree.h"

#define NODES_LOG 5 /* part_nodes joins 2^5 values */

/* Copies the tree's elements side by side where they do not lie so. */
static tally_status gather(struct reduction *r) {
    const uint64_t bytes = 8 * r->l.copy;
    struct gpu_memory *offsets = reduction_offsets(r);
    const struct gpu_argument gathering[] = {BUFFER(r->c->x), BUFFER(offsets), BUFFER(r->c->work),
                                             VALUE(bytes), VALUE(r->plan)};
    if (!r->l.gathered) return TALLY_OK;
    TALLY_PATH("elements of trees, side by side");
    return part_launch(r->queue, PART_GATHER, reduction_grid(r, r->l.n), gathering, 5);
}

tally_status row_trees_evaluate(struct reduction *r) {
    const struct parts_call *c = r->c;
    const struct parts_layout *l = &r->l;
    const struct problem *p = c->s->p;
    const unsigned warps = (r->queue->block + TREE_LANES - 1) / TREE_LANES;
    const unsigned grid = parts_grid(r->queue, (l->slots + warps - 1) / warps);
    const uint64_t longest = c->s->cut == TALLY_AXES ? c->s->each : l->n;
    struct gpu_memory *x = l->gathered ? c->work : c->x;
    struct kernels k;
    struct part_leaves_plan plan = {.rows = r->tree_rows,
                                    .slots = l->slots,
                                    .first = l->gathered ? 8 * l->copy / type_size(p->type)
                                                         : (uint64_t)c->first_x,
                                    .values = 8 * l->values / tree_value_size(p),
                                    .stride = 1};
    if (l->slots == 0) return TALLY_OK;
    TALLY_PATH("");
    const struct gpu_argument to_leaves[] = {BUFFER(x), BUFFER(r->tree_offsets), BUFFER(c->work),
                                             BUFFER(c->work), VALUE(plan)};
    const struct gpu_argument to_nodes[] = {BUFFER(r->tree_offsets), BUFFER(c->work),
                                            BUFFER(c->work), VALUE(plan)};
    tally_status s = gather(r);
    if (s == TALLY_OK) s = whole_tree_kernels(r->queue, p, &k);
    if (s == TALLY_OK)
        s = r->queue->api->launch(r->queue->gpu, k.part_leaves, grid, r->queue->block, to_leaves,
                                  5);
    for (; s == TALLY_OK && plan.stride < (longest + TREE_LEAF - 1) / TREE_LEAF;
         plan.stride <<= NODES_LOG)
        s = r->queue->api->launch(r->queue->gpu, k.part_nodes, grid, r->queue->block, to_nodes, 4);
    return s;
}
