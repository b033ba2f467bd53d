/* sum.c - see sum.h. */
#include "exact/sum.h"

#include "base/invariant.h"
#include "base/paths.h"

void exact_sum_clear(struct exact_sum *s) {
    s->pending = 0;
    s->pending_exponent = 0;
    s->spread = 0;
    s->mixed = 0;
    s->nans = s->plus = s->minus = 0;
}

struct superacc *exact_sum_limbs(struct exact_sum *s) {
    if (!s->spread) {
        TALLY_PATH("opened");
        superacc_clear(&s->limbs);
        if (s->pending != 0) superacc_add(&s->limbs, s->pending, s->pending_exponent);
        s->spread = 1;
    }
    TALLY_ASSERT(superacc_is_valid(&s->limbs));
    return &s->limbs;
}

void exact_sum_add(struct exact_sum *s, __int128 value, int exponent) {
    if (value == 0) return;
    if (!s->spread) {
        if (s->pending == 0) {
            TALLY_PATH("the first integer");
            s->pending = value;
            s->pending_exponent = exponent;
            return;
        }
        __int128 sum;
        if (exponent == s->pending_exponent && !__builtin_add_overflow(s->pending, value, &sum)) {
            TALLY_PATH("an integer of the same scale");
            s->pending = sum;
            return;
        }
    }
    superacc_add(exact_sum_limbs(s), value, exponent);
}

void exact_sum_merge(struct exact_sum *s, const struct exact_sum *from) {
    if (from->spread) {
        TALLY_PATH("limbs");
        superacc_merge(exact_sum_limbs(s), &from->limbs);
    } else
        exact_sum_add(s, from->pending, from->pending_exponent);
    TALLY_ASSERT(s->mixed <= 1 && from->mixed <= 1);
    TALLY_ASSERT(s->nans + from->nans >= from->nans);
    TALLY_ASSERT(s->plus + from->plus >= from->plus && s->minus + from->minus >= from->minus);
    s->mixed |= from->mixed;
    s->nans += from->nans;
    s->plus += from->plus;
    s->minus += from->minus;
}

void exact_sum_negate(struct exact_sum *s) {
    const uint64_t plus = s->plus;
    s->plus = s->minus;
    s->minus = plus;
    s->mixed = 1;
    if (s->spread)
        superacc_negate(&s->limbs);
    else if (__builtin_sub_overflow((__int128)0, s->pending, &s->pending))
        superacc_negate(exact_sum_limbs(s)); /* -2^127 has no negative in 128 bits */
}

int exact_sum_subtract(struct exact_sum *s, const struct exact_sum *from) {
    if (from->nans > s->nans || from->plus > s->plus || from->minus > s->minus) return 0;
    struct exact_sum negative = *from;
    exact_sum_negate(&negative);
    negative.nans = negative.plus = negative.minus = 0;
    s->nans -= from->nans;
    s->plus -= from->plus;
    s->minus -= from->minus;
    exact_sum_merge(s, &negative);
    s->mixed = 1;
    return 1;
}
