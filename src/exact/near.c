/* near.c - see near.h. */
#include "exact/near.h"

#include "base/paths.h"
#include "exact/round.h"

/* The types and operators that kernels/certain/ names. */
enum { BF16 = TALLY_BF16, F32 = TALLY_F32, F64 = TALLY_F64 };
enum { VAR = TALLY_VAR, STD = TALLY_STD, NORM2 = TALLY_NORM2, SUMSQ = TALLY_SUMSQ };

#define fused(a, b, c) __builtin_fma(a, b, c)
#define square_root(x) __builtin_sqrt(x)

#include "kernels/certain/variance.h"

#define DIGITS 4 /* highest digits that become two doubles: at least 97 bits */
/* Error bound of the two doubles, relative: the digits below these are less than 2^-96 of the number, and the second
 * double is rounded by at most 2^-105 of it. */
#define ROUGH 0x1p-94
#define LEAST                                                                                      \
    (-900)       /* least exponent of the digits' lowest bit: every double here is a normal one */
#define MOST 850 /* greatest exponent above the digits' highest bit */

/* A number's magnitude: high + low, exactly or within ROUGH of it. Signs do not matter to a variance. */
typedef struct near_number {
    double high, low;
    int is_exact;
} near_number;

/* Converts a number's magnitude. Returns 0 if its exponent is too large or too small for doubles. */
static int near_number_of(const number *a, near_number *out) {
    unsigned __int128 top = 0;
    const i32 used = a->count < DIGITS ? a->count : DIGITS;
    const i32 exponent = a->exponent + 32 * (a->count - used);
    *out = (near_number){.is_exact = a->count == used};
    if (a->count == 0) return 1;
    for (i32 i = 0; i < used; i++)
        top = top << 32 | a->digit[a->count - 1 - i];
    const u32 bits = 32 * (u32)used - leading_zeros(a->digit[a->count - 1]);
    if (exponent < LEAST || exponent + (i32)bits > MOST) {
        TALLY_PATH("beyond the range of doubles");
        return 0;
    }
    const double unit = double_from((u64)(1023 + exponent) << 52);
    /* The 128 bits are split into 53, 53 and at most 22, each of which a double holds. */
    const u32 below = bits > 53 ? bits - 53 : 0, low = below > 53 ? below - 53 : 0;
    const u64 first = (u64)(top >> below);
    const unsigned __int128 left = top - ((unsigned __int128)first << below);
    const u64 second = (u64)(left >> low), third = (u64)left & (((u64)1 << low) - 1);
    out->high = (double)first * double_from((u64)(1023 + below) << 52) * unit;
    out->low = ((double)second * (double)((u64)1 << low) + (double)third) * unit;
    out->is_exact &= third == 0;
    return 1;
}

int near_variance(const number *sum, const number *squares, u64 n, double ddof, int root,
                  tally_type type, tally_value *out) {
    near_number s, q;
    u32 lost = 0;
    if (!near_number_of(sum, &s) || !near_number_of(squares, &q)) return 0;
    const double rough = s.is_exact && q.is_exact ? 0 : ROUGH;
    const u64 bits = variance_value(s.high, s.low, q.high, q.low, n, ddof, (u32)(root != 0),
                                    (u32)type, rough, &lost);
    if (lost) {
        TALLY_PATH("a variance that doubles do not decide");
        return 0;
    }
    TALLY_PATH("a variance");
    *out = float_from_bits(type, bits);
    return 1;
}

int near_root(const number *squares, tally_type type, tally_value *out) {
    near_number q;
    u32 lost = 0;
    if (!near_number_of(squares, &q)) return 0;
    const u64 bits = norm_value(q.high, q.low, (u32)type, q.is_exact ? 0 : ROUGH * q.high, &lost);
    if (lost) {
        TALLY_PATH("a root that doubles do not decide");
        return 0;
    }
    TALLY_PATH("a root");
    *out = float_from_bits(type, bits);
    return 1;
}
