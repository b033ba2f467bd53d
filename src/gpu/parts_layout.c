/* parts_layout.c - see parts_layout.h. */
#include "gpu/parts_layout.h"

#include "base/types.h"
#include "gpu/choice.h"
#include "gpu/record.h"
#include "gpu/tuning.h"
#include "problem/tree.h"

#include <string.h>

_Static_assert(PARTS_HEAD <= PARTS_HEAD_WORDS, "kernels/parts.h");

unsigned parts_sum_words(const struct problem *p) {
    unsigned words = 0;
    for (unsigned monoid = 0; monoid <= MONOID_MAGNITUDES; monoid++)
        if (p->monoids & MONOID_BIT(monoid))
            words += (unsigned)record_words(p, (enum monoid_id)monoid);
    return words;
}

bool parts_have_tree_starts(const struct shaped *s) {
    return problem_has(s->p, MONOID_TREE) &&
           ((s->mask && !parts_drop_hidden(s)) || (s->cut != TALLY_AXES && s->vectors > 1));
}

/* Plans the pieces of `fold`. */
static void plan_pieces(const struct queue *queue, const struct shaped *s, struct parts_layout *l) {
    const uint64_t weight = s->results == 0 ? 0 : l->n + (uint64_t)s->results * PARTS_ROW_WEIGHT;
    const unsigned units = queue_units(queue);
    l->piece = weight / (units * FOLD_PIECES_A_UNIT) + 1;
    if (l->piece < FOLD_PIECE_LEAST) l->piece = FOLD_PIECE_LEAST;
    const uint64_t row = (uint64_t)s->each + PARTS_ROW_WEIGHT;
    if (s->cut == TALLY_AXES && row <= l->piece) l->piece = (l->piece + row - 1) / row * row;
    l->is_cut = s->cut != TALLY_AXES || l->piece % row != 0;
    l->pieces = (weight + l->piece - 1) / l->piece;
    l->grid = parts_grid(queue, l->pieces);
}

/* Plans how elements are brought into an order. */
static void plan_order(const struct shaped *s, struct parts_layout *l) {
    const bool tree = problem_has(s->p, MONOID_TREE);
    l->by_id.is_wanted = !l->alone && sort_is_needed(s);
    l->by_id.n = s->n;
    l->aside = l->by_id.is_wanted && sort_carries_elements(s);
    l->by_id.arrays = !l->aside ? 0 : problem_has(s->p, MONOID_PRODUCTS) ? 2 : 1;
    l->shown.is_wanted = tree && s->mask && !parts_drop_hidden(s);
    l->shown.compacts = true;
    l->shown.n = l->n;
    l->starts_own = s->cut == TALLY_GROUPS && !l->alone;
    l->gathered =
        tree && !l->aside && (l->by_id.is_wanted || l->shown.is_wanted || !parts_are_contiguous(s));
}

void parts_lay_out(const struct queue *queue, const struct shaped *s,
                   const struct strategy *strategy, struct parts_layout *l) {
    const struct problem *p = s->p;
    const bool tree = problem_has(p, MONOID_TREE);
    struct shaped copy;
    bool in_order = false;
    memset(l, 0, sizeof *l);
    l->n = parts_elements(s);
    l->sums = parts_sum_words(p);
    plan_pieces(queue, s, l);
    const struct strategy *on_copy =
        choice_is_poor(strategy) ? choice_for_filled(queue, s, &copy, &in_order) : NULL;
    l->is_filled = on_copy != NULL;
    l->strategy = on_copy ? on_copy : strategy;
    l->alone = l->strategy && l->strategy->unordered;
    plan_order(s, l);
    struct area *area = &l->area;
    area_begin(area, queue->api);
    area_take(area, PARTS_HEAD_WORDS);
    l->edges = area_take(area, l->alone ? 0 : 2 * l->pieces * (PARTS_WORDS + l->sums));
    sort_lay_out(queue, s, &l->by_id, area);
    sort_lay_out(queue, s, &l->shown, area);
    l->starts = area_take(area, l->starts_own ? s->count + 1 : 0);
    l->by_id.starts = l->starts;
    l->tree_starts = area_take(area, parts_have_tree_starts(s) ? s->results + 1 : 0);
    l->copy = area_take_bytes(area, l->gathered ? l->n * type_size(p->type) : 0);
    if (l->is_filled) filled_lay_out(&copy, in_order, area, &l->filled);
    l->slots = l->n / TREE_LEAF + s->results;
    l->values = area_take(area, tree ? (l->slots + 1) * tree_value_size(p) / 8 + 1 : 0);
    l->marked =
        l->strategy && !l->alone && !problem_has(p, MONOID_FAST) && s->results <= MARKED_ROWS;
    const uint64_t left = l->strategy ? s->results / (l->marked ? 8 : 64) + 4 : 0;
    l->left = area_take(area, left);
    l->flags = l->left + left - 2;
    l->own = area_take_pairs(area, l->strategy && l->strategy->words
                                       ? l->strategy->words(queue, l->is_filled ? &copy : s)
                                       : 0);
    l->bytes = 8 * (size_t)area->end;
}
