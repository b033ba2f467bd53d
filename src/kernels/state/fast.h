/*
 * fast.h - the sum of floats in any order, without an error bound: doubles for columns, elements' own precision
 * for rows (FAST_REAL), where nothing waits for an addition. state/README says what a state defines.
 *
 * Before including this header, include widen.h and certain/rounding.h, and define VALUES, the type of the plan that says
 * which values are wanted; FAST_REAL: double or real; and FAST_MEANS: 1 where means are asked for, too.
 */
#ifndef TALLY_STATE_FAST_H
#define TALLY_STATE_FAST_H

#define STATE_WORDS         1
#define SHORT_WORD          (STATE_WORDS + 0) /* none */
#define FIRST_COUNTS        0
#define SEVERAL_VALUES      0
#define VALUES_ARE_ELEMENTS 1
#define NEVER_LOST          "fast sums lose nothing"

typedef struct state {
    FAST_REAL s;
} state;
typedef state batch;

/* The sum begins at -0, which adds nothing to -0. */
PURE state none(void) {
    const state a = {-(FAST_REAL)0};
    return a;
}
PURE void begin(batch *k, u32 at) {
    *k = none();
}
INLINED void add(batch *k, element e, u32 at, u32 inside) {
    k->s += inside ? (FAST_REAL)widen(e) : -(FAST_REAL)0;
}
PURE state finish(const batch *k, u64 start) {
    return *k;
}
PURE state merge(state a, state b) {
    a.s += b.s;
    return a;
}

PURE u64 state_word(const state *a, u32 k) {
    return double_bits((double)a->s);
}
PURE state state_of_words(const u64 *words) {
    const state a = {(FAST_REAL)double_from(words[0])};
    return a;
}

PURE u64 state_value(const state *a, const VALUES *p, u64 n, u64 first, u32 op, u32 to, u32 *lost) {
    const double value = FAST_MEANS && op == MEAN ? (double)a->s / (double)n : (double)a->s;
    return value == value ? pair_shorter(value, to) : float_nan_bits(format_of(to));
}
PURE u64 value_of_none(const VALUES *p, u32 op, u32 to, u32 *lost) {
    return FAST_MEANS && op == MEAN ? float_nan_bits(format_of(to)) : 0;
}
PURE u32 may_be_filled(const state *a) {
    return 0;
}

#endif
