/* lower.c - see lower.h. */
#include "exact/lower.h"

#include "base/paths.h"
#include "exact/kernel_words.h"
#include "exact/near.h"
#include "exact/round.h"

#include "kernels/number.h"

#include <string.h>

_Static_assert(SUPERACC_LIMBS + 2 <= NUMBER_DIGITS, "a superaccumulator is a number");
_Static_assert(SUPERACC_LOWEST % 32 == 0, "numbers line up digit by digit");

/* *out = the sum's finite part. */
static void number_of_sum(const struct exact_sum *s, number *out) {
    if (s->spread) {
        const struct superacc *a = &s->limbs;
        TALLY_PATH("a superaccumulator");
#define LIMB(i) a->limb[a->low + (i)]
        NUMBER_OF_LIMBS(LIMB, a->high - a->low, SUPERACC_LOWEST + 32 * a->low, 0, out);
#undef LIMB
        return;
    }
    /* `pending` is moved up by up to 31 bits, so that its lowest digit's exponent is a multiple of 32: five digits at
     * most. */
    TALLY_PATH("one integer");
    const int shift = s->pending_exponent & 31, negative = s->pending < 0;
    unsigned __int128 rest =
        negative ? -(unsigned __int128)s->pending : (unsigned __int128)s->pending;
    out->exponent = s->pending_exponent - shift;
    out->negative = (u32)negative;
    out->digit[0] = (u32)rest << shift;
    rest >>= 32 - shift;
    out->count = 1;
    for (; rest != 0; rest >>= 32)
        out->digit[out->count++] = (u32)rest;
    number_trim(out);
}

/* Returns whether NaNs or infinities decide the value of the sum, or if `negate` of its negative;
 * *out is then that value. */
static int is_special(const struct exact_sum *s, int negate, tally_type type, tally_value *out) {
    if (s->nans || (s->plus && s->minus)) {
        TALLY_PATH("a NaN");
        *out = float_nan(type);
    } else if (s->plus || s->minus) {
        TALLY_PATH("an infinity");
        *out = float_infinity(type, (s->minus != 0) != (negate != 0));
    } else
        return 0;
    return 1;
}

tally_value exact_round(const struct exact_sum *s, uint64_t n, tally_type type) {
    tally_value v;
    if (is_special(s, 0, type, &v)) return v;
    if (n != 0 && !s->mixed) {
        TALLY_PATH("-0");
        return float_negative_zero(type);
    }
    if (!s->spread) {
        TALLY_PATH("one integer");
        return round_scaled(type, s->pending, s->pending_exponent);
    }
    TALLY_PATH("a superaccumulator");
    number a;
    number_of_sum(s, &a);
    return float_from_bits(type, round_number(format_of(type), &a));
}

tally_value exact_quotient(const struct exact_sum *s, uint64_t n, int negative, uint64_t divisor,
                           tally_type type) {
    tally_value v;
    if (is_special(s, negative, type, &v)) return v;
    number a, b;
    number_scratch scratch;
    number_of_sum(s, &a);
    if (a.count == 0) {
        TALLY_PATH("a zero");
        const int minus = (n != 0 && !s->mixed) != (negative != 0);
        return minus ? float_negative_zero(type) : float_from_bits(type, 0);
    }
    a.negative ^= (u32)(negative != 0);
    number_of(divisor, 0, &b);
    return float_from_bits(type, round_quotient(format_of(type), &a, &b, 0, &scratch));
}

tally_value exact_root(const struct exact_sum *s, tally_type type) {
    tally_value v;
    if (is_special(s, 0, type, &v)) return v;
    number a, one;
    number_scratch scratch;
    number_of_sum(s, &a);
    if (near_root(&a, type, &v)) return v;
    number_of(1, 0, &one);
    return float_from_bits(type, round_quotient(format_of(type), &a, &one, 1, &scratch));
}

/* ddof = mantissa * 2^exponent; returns the mantissa. ddof is finite and not negative. */
static u64 split(double ddof, i32 *exponent) {
    uint64_t bits;
    memcpy(&bits, &ddof, sizeof bits);
    const i32 field = (i32)(bits >> 52 & 2047);
    *exponent = (field ? field : 1) - 1075;
    return (bits & ((UINT64_C(1) << 52) - 1)) | (uint64_t)(field != 0) << 52;
}

/* Loads the moments of a part, or those of its distances from the mean that is given. Returns whether they are finite. */
static int numbers_of(const struct exact_moments *m, uint64_t n, number *sum, number *squares,
                      number_scratch *scratch) {
    uint64_t mean = 0;
    if (m->mean) memcpy(&mean, m->mean, sizeof mean);
    if (m->sum->nans || m->sum->plus || m->sum->minus || (mean >> 52 & 2047) == 2047) return 0;
    number_of_sum(m->sum, sum);
    number_of_sum(m->squares, squares);
    if (m->mean) {
        TALLY_PATH("about a mean that is given");
        number_about(mean, n, sum, squares, scratch);
    }
    return 1;
}

tally_value exact_variance(const struct exact_moments *part, unsigned parts, uint64_t n,
                           double ddof, int root, tally_type type) {
    number sum, squares, imaginary, more;
    number_scratch scratch;
    tally_value v;
    i32 exponent;
    const u64 mantissa = split(ddof, &exponent);
    number_of(0, 0, &imaginary);
    if (n == 0 || !numbers_of(&part[0], n, &sum, &squares, &scratch) ||
        (parts == 2 && !numbers_of(&part[1], n, &imaginary, &more, &scratch))) {
        TALLY_PATH("of nothing, or of NaNs and infinities");
        return float_nan(type);
    }
    if (parts == 2) {
        TALLY_PATH("of complex numbers");
        number_add_squares(&squares, &more, &scratch);
    } else if (near_variance(&sum, &squares, n, ddof, root, type, &v))
        return v;
    return float_from_bits(type, round_variance(format_of(type), &sum, &imaginary, &squares, n,
                                                mantissa, exponent, (u32)root, &scratch));
}

int exact_integer(const struct exact_sum *s, tally_type type, tally_value *out) {
    number a;
    number_of_sum(s, &a); /* a sum of integers: the exponent is not negative */
    if (a.count > 0 && a.exponent + 32 * a.count > 64) {
        TALLY_PATH("beyond 64 bits");
        return 0;
    }
    const uint64_t magnitude = (uint64_t)number_digit(&a, 32) << 32 | number_digit(&a, 0);
    if (type == TALLY_U64) {
        TALLY_PATH("u64");
        if (a.negative && magnitude != 0) return 0;
        *out = (tally_value){.type = TALLY_U64, .as.u64 = magnitude};
        return 1;
    }
    TALLY_PATH("i64");
    if (magnitude > (uint64_t)INT64_MAX + a.negative) {
        TALLY_PATH("beyond i64");
        return 0;
    }
    *out = (tally_value){.type = TALLY_I64,
                         .as.i64 = (int64_t)(a.negative ? 0 - magnitude : magnitude)};
    return 1;
}
