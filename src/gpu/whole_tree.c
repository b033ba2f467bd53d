/* whole_tree.c - see whole_tree.h. */
#include "gpu/whole_tree.h"

#include "gpu/whole_kernels.h"
#include "kernels/tuning.h"
#include "problem/tree.h"

#define NODES_LEVELS 5 /* levels that one launch of `nodes` combines */

/* Returns the grid for `blocks` blocks: at most those that the device runs at once. */
static unsigned grid_for(const struct queue *queue, uint64_t blocks) {
    const unsigned most =
        queue_units(queue) * (CPU_SHAPED(queue->block) ? CPU_BLOCKS_A_UNIT : GPU_BLOCKS_A_UNIT);
    return blocks == 0 ? 1 : blocks < most ? (unsigned)blocks : most;
}

static uint64_t leaf_count(uint64_t n) {
    return (n + TREE_LEAF - 1) / TREE_LEAF;
}

unsigned whole_tree_root(uint64_t n) {
    const uint64_t leaves = leaf_count(n);
    return leaves > 1 ? 64 - (unsigned)__builtin_clzll(leaves - 1) : 0;
}

/* The values of a tree that one launch computes: `count` of them from number `at` on. */
struct tree_step {
    uint64_t at, count;
    uint32_t levels; /* above the step before */
};

/* Most launches of a tree: one for the leaves, one for every NODES_LEVELS of 64 levels. */
#define TREE_STEPS (1 + (64 + NODES_LEVELS - 1) / NODES_LEVELS)

_Static_assert(2 + MONOIDS + TREE_STEPS <= AREA_GUARDS,
               "the head and its rest, boards, steps (whole.c)");

/* Lays out the values of the leaves of n elements and of the nodes that each launch of `nodes` makes, up to a level.
 * Returns the number of steps. */
static unsigned lay_out(const struct problem *p, uint64_t n, unsigned level,
                        struct tree_step step[TREE_STEPS], struct area *area) {
    const size_t size = tree_value_size(p);
    uint64_t count = leaf_count(n);
    uint32_t levels = 0;
    for (unsigned i = 0;; i++) {
        const uint64_t word = area_take_bytes(area, count * size);
        step[i] = (struct tree_step){.at = 8 * word / size, .count = count, .levels = levels};
        if (level == 0) return i + 1;
        levels = level < NODES_LEVELS ? level : NODES_LEVELS;
        level -= levels;
        count = (count + (1u << levels) - 1) >> levels;
    }
}

size_t whole_tree_bytes(const struct area *area, const struct problem *p, uint64_t n,
                        unsigned level) {
    struct tree_step step[TREE_STEPS];
    struct area whole = *area;
    lay_out(p, n, level, step, &whole);
    return 8 * (size_t)whole.end;
}

tally_status whole_tree_enqueue(struct queue *queue, const struct problem *p, struct gpu_memory *x,
                                uint64_t n, unsigned level, const struct area *area,
                                struct gpu_memory *values, uint32_t request,
                                struct gpu_memory *result, uint64_t *at) {
    struct kernels k;
    struct tree_step step[TREE_STEPS];
    struct area whole = *area;
    const unsigned warps = (queue->block + TREE_LANES - 1) / TREE_LANES;
    const unsigned steps = lay_out(p, n, level, step, &whole);
    const uint64_t count = step[0].count, from = step[0].at;
    const uint64_t identity = n == 0 ? tree_identity_bits(p) : 0;
    const uint32_t asked = steps == 1 ? request : 0;
    const struct gpu_argument to_leaves[] = {BUFFER(x),     VALUE(n),        BUFFER(values),
                                             VALUE(from),   VALUE(identity), VALUE(asked),
                                             BUFFER(result)};
    area_guard(&whole, queue->gpu, values);
    tally_status s = whole_tree_kernels(queue, p, &k);
    if (s != TALLY_OK) return s;
    s = queue->api->launch(queue->gpu, k.first, grid_for(queue, (count + warps - 1) / warps),
                           queue->block, to_leaves, 7);
    for (unsigned i = 1; s == TALLY_OK && i < steps; i++) {
        const struct tree_step *below = &step[i - 1];
        const uint64_t parts = below->count / (warps * TREE_LANES) + 1;
        const uint32_t last = i + 1 == steps ? request : 0;
        const struct gpu_argument to_nodes[] = {
            BUFFER(values),    VALUE(below->at), VALUE(below->count), VALUE(step[i].levels),
            VALUE(step[i].at), VALUE(last),      BUFFER(result)};
        s = queue->api->launch(queue->gpu, k.second, grid_for(queue, parts), queue->block, to_nodes,
                               7);
    }
    *at = step[steps - 1].at;
    return s;
}

tally_status whole_tree_leaves(struct queue *queue, const struct problem *p, struct gpu_memory *x,
                               uint64_t n, unsigned level, size_t *at) {
    uint64_t first = 0;
    struct area area;
    area_begin(&area, queue->api);
    tally_status s = queue_reserve(queue, &queue->values, &queue->values_bytes,
                                   whole_tree_bytes(&area, p, n, level));
    if (s == TALLY_OK)
        s = whole_tree_enqueue(queue, p, x, n, level, &area, queue->values, 0, NULL, &first);
    *at = (size_t)first * tree_value_size(p);
    return s;
}
