/*
 * extremes.h - the greatest key (certain/order.h), and the least one. A NaN's key is the greatest of all, so the greatest
 * key alone says whether there is a NaN. state/README says what a state defines.
 *
 * Before including this header, include operators.h and lower.h, and define HAS_LEAST: 1 where both extremes are
 * wanted; FLIP(p), the `flip` of key_of() (certain/order.h); and VALUES, the type of the plan that says which values
 * are wanted.
 */
#ifndef TALLY_STATE_EXTREMES_H
#define TALLY_STATE_EXTREMES_H

#include "../end_keys.h"

#define STATE_WORDS         (HAS_LEAST && LONG_KEYS ? 2 : 1)
#define SHORT_WORD          STATE_WORDS /* none */
#define FIRST_COUNTS        0
#define SEVERAL_VALUES      1
#define VALUES_ARE_ELEMENTS 1
#define NEVER_LOST          "extremes lose nothing"

/* The greatest and the least key. Nothing reads `least` if HAS_LEAST is 0, so it then takes no register. */
typedef struct state {
    key most, least;
} state;

PURE state none(void) {
    const state a = {0, ~(key)0};
    return a;
}
/* Adds a key, if the element is `inside`. */
PURE void add_key(state *a, key own, u32 inside) {
    const key high = inside ? own : 0, low = inside ? own : ~(key)0;
    a->most = high > a->most ? high : a->most;
    a->least = low < a->least ? low : a->least;
}
PURE state merge(state a, state b) {
    a.most = b.most > a.most ? b.most : a.most;
    a.least = b.least < a.least ? b.least : a.least;
    return a;
}

/* Two short keys share a word. */
PURE u64 state_word(const state *a, u32 k) {
    if (HAS_LEAST && !LONG_KEYS) return (u64)a->most << 32 | a->least;
    return k == 0 ? a->most : a->least;
}
PURE state state_of_words(const u64 *words) {
    state a = none();
    if (HAS_LEAST && !LONG_KEYS) {
        a.most = (key)(words[0] >> 32);
        a.least = (key)(u32)words[0];
        return a;
    }
    a.most = (key)words[0];
    if (HAS_LEAST) a.least = (key)words[STATE_WORDS - 1];
    return a;
}

/* Returns the bits of the greater one of two floats' magnitudes. */
PURE u64 greater_magnitude(u64 a, u64 b) {
    const u64 but_sign = ~(u64)0 >> (65 - 8 * (u32)sizeof(element));
    a &= but_sign;
    b &= but_sign;
    return a > b ? a : b;
}
PURE u64 state_value(const state *a, const VALUES *p, u64 n, u64 first, u32 op, u32 to, u32 *lost) {
    const u32 is_nan = HAS_NANS && a->most > KEY_MOST;
    u64 bits = element_of_key(HAS_LEAST && op == MIN ? a->least : a->most, FLIP(p));
    if (HAS_LEAST && HAS_NANS && op == NORMINF)
        bits = greater_magnitude(bits, element_of_key(a->least, FLIP(p)));
    return is_nan ? float_nan_bits(format_of(ELEMENT_TYPE)) : bits;
}
/* Returns the identity: the infinity, or the least or the greatest integer; of magnitudes 0. */
PURE u64 value_of_none(const VALUES *p, u32 op, u32 to, u32 *lost) {
    if (HAS_LEAST && op == NORMINF) return 0;
    return element_of_key(HAS_LEAST && op == MIN ? KEY_MOST : 0, FLIP(p));
}
PURE u32 may_be_filled(const state *a) {
    return 0;
}

#endif
