/* float_sum.c - see float_sum.h. */
#include "exact/float_sum.h"

#include "exact/round.h"

void float_sum_clear(struct float_sum *s) {
    s->pending = 0;
    s->pending_exponent = 0;
    s->spread = 0;
    s->specials = 0;
    s->mixed = 0;
    s->count = 0;
}

struct superacc *float_sum_limbs(struct float_sum *s) {
    if (!s->spread) {
        superacc_clear(&s->limbs);
        if (s->pending != 0) superacc_add(&s->limbs, s->pending, s->pending_exponent);
        s->spread = 1;
    }
    return &s->limbs;
}

void float_sum_add(struct float_sum *s, __int128 value, int exponent) {
    if (value == 0) return;
    if (!s->spread && s->pending == 0) {
        s->pending = value;
        s->pending_exponent = exponent;
        return;
    }
    superacc_add(float_sum_limbs(s), value, exponent);
}

void float_sum_merge(struct float_sum *s, const struct float_sum *from) {
    if (from->spread)
        superacc_merge(float_sum_limbs(s), &from->limbs);
    else
        float_sum_add(s, from->pending, from->pending_exponent);
    s->specials |= from->specials;
    s->mixed |= from->mixed;
    s->count += from->count;
}

tally_value float_sum_round(const struct float_sum *s, tally_type type) {
    enum { BOTH = SEEN_PLUS_INF | SEEN_MINUS_INF };
    if ((s->specials & SEEN_NAN) || (s->specials & BOTH) == BOTH) return float_nan(type);
    if (s->specials) return float_infinity(type, s->specials & SEEN_MINUS_INF);
    if (s->count != 0 && !s->mixed) return float_negative_zero(type);
    return s->spread ? round_superacc(type, &s->limbs)
                     : round_scaled(type, s->pending, s->pending_exponent);
}
