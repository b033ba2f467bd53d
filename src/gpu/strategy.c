/* strategy.c - see strategy.h. */
#include "gpu/strategy.h"

#include "base/types.h"
#include "gpu/tuning.h"
#include "kernels/tuning.h"

unsigned parts_blocks_at_once(const struct queue *queue) {
    const unsigned units = queue_units(queue);
    return units * (CPU_SHAPED(queue->block) ? CPU_BLOCKS_A_UNIT : GPU_PRODUCT_BLOCKS_A_UNIT);
}

unsigned block_or(const struct queue *queue, unsigned own) {
    return queue->block == GPU_BLOCK ? own : queue->block;
}

unsigned parts_grid(const struct queue *queue, uint64_t blocks) {
    const unsigned most = parts_blocks_at_once(queue);
    return blocks == 0 ? 1 : blocks < most ? (unsigned)blocks : most;
}

bool parts_are_many(const struct queue *queue, uint64_t n) {
    return n >= queue_units(queue) * (uint64_t)PARTS_MANY_A_UNIT;
}

uint64_t parts_elements(const struct shaped *s) {
    return s->cut == TALLY_AXES ? (uint64_t)s->results * s->each : (uint64_t)s->n * s->vectors;
}

bool parts_drop_hidden(const struct shaped *s) {
    bool is_one = s->cut == TALLY_GROUPS;
    for (unsigned d = 0; d < s->keeps; d++)
        is_one = is_one && s->kept[d].mask == 0;
    return is_one;
}

bool parts_are_contiguous(const struct shaped *s) {
    if (s->cut != TALLY_AXES) return shape_is_flat(s);
    if (s->keeps > 1 || s->reduces > 1) return false;
    if (s->reduces == 1 && s->reduced[0].x != 1) return false;
    return s->keeps == 0 || s->kept[0].x == (ptrdiff_t)s->each;
}

unsigned problem_ends(const struct problem *p) {
    const unsigned both = WANT_LEAST | WANT_GREATEST;
    return ((p->extremes & both) == both ? 2 : (p->extremes & both) != 0) |
           (p->extremes & WANT_INDEX);
}

uint64_t problem_flip(const struct problem *p) {
    const unsigned width = 8 * (unsigned)type_size(p->type);
    const uint64_t all = UINT64_MAX >> (64 - width);
    return (type_is_signed(p->type) ? (uint64_t)1 << (width - 1) : 0) ^
           (p->extremes & WANT_GREATEST ? 0 : all);
}
