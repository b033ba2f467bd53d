/* fold.c - see fold.h. */
#include "device/fold.h"

#include "base/status.h"
#include "base/stop.h"
#include "base/types.h"
#include "device/shown.h"

/* Most node values that a device evaluates in one call: enough work for all threads, and an array of
 * 16 KiB, which a stack can hold. */
#define LEAF_BATCH 2048

tally_status fold_check(const struct problem *p, const void *x, const void *y, size_t n) {
    const int two = problem_has(p, MONOID_PRODUCTS);
    if (n > 0 && !x) return fail(TALLY_EINVAL, "the array is NULL but n is %zu", n);
    if (n > 0 && two && !y)
        return fail(TALLY_EINVAL,
                    "dot and complex elements need two arrays, and the second is NULL");
    if (!two && y) return fail(TALLY_EINVAL, "a second array is for dot and complex elements only");
    if (n > SIZE_MAX / 16 && n > SIZE_MAX / 2 / type_size(p->type)) /* seldom divides */
        return fail(TALLY_EINVAL, "n = %zu elements of %s are more than memory can hold", n,
                    tally_type_name(p->type));
    return TALLY_OK;
}

static uint64_t index_of(const struct shown_pieces *s, uint64_t at) {
    return at == NO_INDEX ? NO_INDEX : s->index[at];
}

/* Folds a piece of a slice's shown elements into a state. from->index[] has their indices in the slice; `from` is
 * NULL if the piece is the whole slice. `first` is the slice's first index in the state, without the elements that
 * the state has skipped (state_merge()). `p` has skip_nan. */
static tally_status fold_piece(tally_device *device, const struct problem *p,
                               const struct slice *piece, const struct shown_pieces *from,
                               uint64_t first, struct state *into) {
    const struct problem plain = shown_problem(p);
    struct state more;
    struct extremes *e = &more.extremes;
    state_clear(p, &more);
    const tally_status s = fold_slice(device, &plain, piece, &more);
    if (s != TALLY_OK) return s;
    if (from && from->index) {
        e->at_least = index_of(from, e->at_least);
        e->at_greatest = index_of(from, e->at_greatest);
    }
    state_merge(p, into, &more, first);
    state_settle(p, into);
    return TALLY_OK;
}

/* Folds the shown elements of a slice into a state and, unless it is NULL, a tree. */
static tally_status fold_shown(tally_device *device, const struct problem *p,
                               const struct slice *in, struct state *into, struct tree *tree) {
    const struct problem plain = shown_problem(p);
    struct shown_pieces pieces;
    struct state after = *into;
    shown_begin(&pieces, device, p, in);
    tally_status s = shown_next(&pieces);
    while (s == TALLY_OK && pieces.piece.n > 0) {
        s = fold_piece(device, p, &pieces.piece, &pieces, into->n, &after);
        if (s == TALLY_OK && tree)
            s = fold_leaves(device, &plain, pieces.piece.x, pieces.piece.n, tree);
        if (s == TALLY_OK) s = shown_next(&pieces);
    }
    shown_end(&pieces);
    if (problem_counts_skipped(p)) after.extremes.skipped += in->n - (after.n - into->n);
    if (s == TALLY_OK) *into = after;
    return s;
}

tally_status fold_slice(tally_device *device, const struct problem *p, const struct slice *in,
                        struct state *into) {
    if (in->n == 0) return TALLY_OK;
    if (!device) device = cpu_calling_thread();
    if (p->skip_nan) return fold_all(device, p, in, into, NULL);
    if ((p->monoids & ~MONOID_BIT(MONOID_TREE)) == 0) { /* elements are only counted */
        into->n += in->n;
        return TALLY_OK;
    }
    tally_status s = device->kind->fold(device, p, in, into);
    if (s == TALLY_OK) state_settle(p, into);
    return s;
}

/* Returns how many of n elements to evaluate next, and the level of their nodes. They are whole
 * nodes of the device's level if the tree's run ends at the start of one, and single leaves before
 * and after those. */
static size_t next_part(const tally_device *device, const struct tree *tree, size_t n,
                        unsigned *level) {
    const unsigned best = device->kind->tree_level;
    const uint64_t subtree = UINT64_C(1) << best, begun = tree->next % subtree;
    const size_t grain = (size_t)subtree * TREE_LEAF;
    size_t part = n;
    *level = begun == 0 && n >= grain ? best : 0;
    if (*level > 0)
        part = n / grain * grain;
    else if (best > 0 && begun > 0 && (subtree - begun) * TREE_LEAF < n)
        part = (size_t)(subtree - begun) * TREE_LEAF;
    const size_t batch = (size_t)LEAF_BATCH * TREE_LEAF << *level;
    return part < batch ? part : batch;
}

tally_status fold_leaves(tally_device *device, const struct problem *p, const void *x, size_t n,
                         struct tree *into) {
    union tree_value values[LEAF_BATCH];
    const size_t size = tree_value_size(p), element = type_size(p->type);
    const char *at = x;
    if (!device) device = cpu_calling_thread();
    for (size_t m; n > 0; n -= m, at += m * element) {
        unsigned level;
        if (stop_asked()) return stop_status();
        m = next_part(device, into, n, &level);
        tally_status s = device->kind->leaves(device, p, at, m, level, values);
        if (s != TALLY_OK) return s;
        const size_t grain = (size_t)TREE_LEAF << level;
        for (size_t i = 0; i < m / grain + (m % grain != 0); i++)
            tree_append(p, into, (const char *)values + i * size, level);
    }
    return TALLY_OK;
}

tally_status fold_all(tally_device *device, const struct problem *p, const struct slice *in,
                      struct state *into, struct tree *tree) {
    tally_status s = TALLY_OK;
    if (p->skip_nan) {
        int is_all;
        s = shown_is_all(p, in, &is_all);
        if (s == TALLY_OK && !is_all) return fold_shown(device, p, in, into, tree);
        if (s == TALLY_OK) s = fold_piece(device, p, in, NULL, into->n, into);
    } else
        s = fold_slice(device, p, in, into);
    if (s == TALLY_OK && tree) s = fold_leaves(device, p, in->x, in->n, tree);
    return s;
}
