/*
 * first_extreme.h - the greatest key and the number of the first element that has it. state/README says what a state
 * defines.
 *
 * Before including this header, include operators.h and lower.h, and define FLIP(p) and VALUES, as for extremes, and
 * PLACE, the type of elements' numbers.
 */
#ifndef TALLY_STATE_FIRST_EXTREME_H
#define TALLY_STATE_FIRST_EXTREME_H

#include "../end_keys.h"

#define STATE_WORDS         2
#define SHORT_WORD          (LONG_KEYS ? STATE_WORDS : 0)
#define FIRST_COUNTS        1
#define SEVERAL_VALUES      0
#define VALUES_ARE_ELEMENTS 0
#define NEVER_LOST          NULL
#define NOWHERE             (~0u)

typedef struct state {
    key most;
    PLACE at;
} state;
/* A batch numbers elements with 32 bits. Until a key above 0 comes, `at` is the number of the batch's first element, or
 * NOWHERE if it has none. */
typedef struct batch {
    key most;
    u32 at;
} batch;

PURE state none(void) {
    const state a = {0, ~(PLACE)0};
    return a;
}
PURE void begin(batch *k, u32 at) {
    k->most = 0;
    k->at = at;
}
PURE void add_key(batch *k, key own, u32 at, u32 inside) {
    const key r = inside ? first_nan(own) : 0;
    k->at = r > k->most ? at : k->at;
    k->most = r > k->most ? r : k->most;
}
PURE state finish(const batch *k, u64 start) {
    const state a = {k->most, k->at == NOWHERE ? ~(PLACE)0 : (PLACE)(start + k->at)};
    return a;
}
PURE state merge(state a, state b) {
    return b.most > a.most || (b.most == a.most && b.at < a.at) ? b : a;
}

PURE u64 state_word(const state *a, u32 k) {
    return k == 0 ? a->most : a->at;
}
PURE state state_of_words(const u64 *words) {
    const state a = {(key)words[0], (PLACE)words[1]};
    return a;
}

PURE u64 state_value(const state *a, const VALUES *p, u64 n, u64 first, u32 op, u32 to, u32 *lost) {
    return op == ARGMIN || op == ARGMAX ? a->at - first : key_bits(a->most, FLIP(p));
}
PURE u64 value_of_none(const VALUES *p, u32 op, u32 to, u32 *lost) {
    *lost = 1;
    return 0;
}
/* The identity's key is 0: the first element that has it may be one that was filled in. */
PURE u32 may_be_filled(const state *a) {
    return a->most == 0;
}

#endif
