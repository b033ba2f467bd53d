/* choice.c - see choice.h. */
#include "gpu/choice.h"

#include "gpu/columns.h"
#include "gpu/filled.h"
#include "gpu/groups.h"
#include "gpu/quick.h"
#include "gpu/rows.h"
#include "gpu/sort.h"
#include "gpu/vectors.h"

/* The strategies in order of preference: the first one that takes a problem and a shape does it. */
static const struct strategy *const strategies[] = {
    &columns_strategy, /* results side by side */
    &vectors_strategy, /* segments and groups of vectors */
    &rows_strategy,    /* elements side by side */
    &groups_strategy,  /* ids in any order */
    &quick_strategy,   /* a thread or a warp for each short row */
    NULL,
};

/* The strategies for filled copies. */
static const struct strategy *const on_copies[] = {&columns_strategy, &rows_strategy, NULL};

/* Returns the first of a list that takes the problem, or NULL. */
static const struct strategy *first_of(const struct strategy *const *one, const struct queue *queue,
                                       const struct shaped *s) {
    while (*one && !(*one)->takes(queue, s))
        one++;
    return *one;
}

/* Returns whether `fold` and `join` alone lower the problem's values: variances about a mean that is given, or of complex
 * numbers. */
static bool is_exact_only(const struct problem *p) {
    return p->about || p->is_complex;
}

static const struct strategy *choose(const struct queue *queue, const struct shaped *s) {
    return is_exact_only(s->p) || s->results == 0 ? NULL : first_of(strategies, queue, s);
}

const struct strategy *choice_for(const struct queue *queue, const struct shaped *s) {
    const struct strategy *own = choose(queue, s);
    if ((own && own->unordered) || !sort_carries_elements(s)) return own;
    const struct shaped sorted = sort_outcome(s);
    return choose(queue, &sorted);
}

const struct strategy *choice_for_filled(const struct queue *queue, const struct shaped *s,
                                         struct shaped *copy, bool *in_order) {
    for (int turn = 0; turn < 2; turn++) {
        *in_order = turn;
        if (is_exact_only(s->p) || !filled_shape(queue, s, *in_order, copy)) return NULL;
        const struct strategy *one = first_of(on_copies, queue, copy);
        if (one) return one;
    }
    return NULL;
}

bool choice_is_poor(const struct strategy *strategy) {
    return !strategy || strategy == &quick_strategy;
}
