/*
 * integer_sum.h - the sum of integers in 64 bits or, of those of 64 bits, in 128. state/README says what a state defines.
 *
 * Before including this header, include operators.h and certain/rounding.h, and define VALUES, the type of the plan that
 * says which values are wanted, and LONG: 1 for elements of 64 bits.
 */
#ifndef TALLY_STATE_INTEGER_SUM_H
#define TALLY_STATE_INTEGER_SUM_H

#define STATE_WORDS         (1 + LONG)
#define SHORT_WORD          STATE_WORDS /* none */
#define FIRST_COUNTS        0
#define SEVERAL_VALUES      0
#define VALUES_ARE_ELEMENTS 0
#define NEVER_LOST          NULL

/* The sum is high 2^64 + low, of which `high` counts where LONG. */
typedef struct state {
    u64 low, high;
} state;
typedef state batch;

/* The word above an element's: all ones if the element is negative. */
#if defined(TYPE_I64)
#define WORD_ABOVE(x) (0 - ((x) >> 63))
#else
#define WORD_ABOVE(x) ((u64)0)
#endif

PURE state none(void) {
    const state a = {0, 0};
    return a;
}
PURE void begin(batch *k, u32 at) {
    *k = none();
}
PURE void add_wide(state *a, u64 low, u64 high) {
    a->low += low;
    if (LONG) a->high += high + (a->low < low);
}
INLINED void add(batch *k, element e, u32 at, u32 inside) {
    const u64 x = inside ? (u64)e : 0; /* a negative one gains 2^64 */
    add_wide(k, x, WORD_ABOVE(x));
}
PURE state finish(const batch *k, u64 start) {
    return *k;
}
PURE state merge(state a, state b) {
    add_wide(&a, b.low, b.high);
    return a;
}

PURE u64 state_word(const state *a, u32 k) {
    return k == 0 ? a->low : a->high;
}
PURE state state_of_words(const u64 *words) {
    const state a = {words[0], LONG ? words[STATE_WORDS - 1] : 0};
    return a;
}

/* A value's bits; `lost` is not 0 if the state does not determine them. */
typedef struct lowered {
    u64 bits;
    u32 lost;
} lowered;

#if defined(SIGNED_TYPE)
#define AS_DOUBLE(w)     ((double)(i64)(w))
#define UPPER_HALF_OF(w) ((double)(i32)((w) >> 32))
#define FITS(a)          ((a)->high == 0 - ((a)->low >> 63))
#else
#define AS_DOUBLE(w)     ((double)(w))
#define UPPER_HALF_OF(w) ((double)(u32)((w) >> 32))
#define FITS(a)          ((a)->high == 0)
#endif

/* Returns the bits of the mean of n integers whose sum is w, or w - 2^64 where that is negative.
 * Each half of w is exact as a double. */
SELDOM lowered mean_of_word(u64 w, u64 n, u32 to) {
    lowered r = {0, 0};
    double low;
    const double sum = AS_DOUBLE(w);
    if (sum < 0x1p53 && sum > -0x1p53 && n >> 53 == 0 && to == F64) {
        r.bits = double_bits(sum / (double)n);
        return r;
    }
    const double high = two_sum(UPPER_HALF_OF(w) * 0x1p32, (double)(u32)w, &low);
    if (w != 0) r.bits = pair_quotient(high, low, n, to, &r.lost);
    return r;
}

/* Returns a value. Fewer than 2^31 integers of 32 bits always fit 64. */
PURE u64 state_value(const state *a, const VALUES *p, u64 n, u64 first, u32 op, u32 to, u32 *lost) {
    *lost |= LONG ? !FITS(a) : n >> 31 != 0;
    if (op != MEAN) return a->low;
    const lowered r = mean_of_word(a->low, n, to);
    *lost |= r.lost;
    return r.bits;
}
PURE u64 value_of_none(const VALUES *p, u32 op, u32 to, u32 *lost) {
    return op == MEAN ? float_nan_bits(format_of(to)) : 0;
}
PURE u32 may_be_filled(const state *a) {
    return 0;
}

#endif
