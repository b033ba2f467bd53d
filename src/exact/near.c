/* near.c - see near.h. */
#include "exact/near.h"

#include "base/paths.h"
#include "exact/round.h"

#include <string.h>

/* ---- What kernels/certain/ needs --------------------------------------------------------------- */

enum { F32 = TALLY_F32, F64 = TALLY_F64 };
enum { VAR = TALLY_VAR, STD = TALLY_STD, NORM2 = TALLY_NORM2, SUMSQ = TALLY_SUMSQ };

static inline u64 double_bits(double x) {
    u64 bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double double_from(u64 bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline u32 float_bits(float x) {
    u32 bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

#define fused(a, b, c) __builtin_fma(a, b, c)
#define square_root(x) __builtin_sqrt(x)

#include "kernels/certain/variance.h"

/* ---- Numbers as doubles ------------------------------------------------------------------------ */

#define DIGITS 4       /* of a number that are looked at: 97 bits or more */
#define ROUGH  0x1p-94 /* what these leave out, and the second double's rounding, at most */
#define LEAST  (-900)  /* exponents of a number's lowest bit that is looked at, ... */
#define MOST   850     /* ... and of its highest */

/* A number's magnitude as high + low, exactly or within ROUGH of it. (A variance is that of the negative elements, too.) */
typedef struct near_number {
    double high, low;
    int is_exact;
} near_number;

/* Makes *out a number's magnitude. Returns whether doubles have room for it. */
static int near_number_of(const number *a, near_number *out) {
    unsigned __int128 top = 0;
    const i32 used = a->count < DIGITS ? a->count : DIGITS;
    const i32 exponent = a->exponent + 32 * (a->count - used);
    *out = (near_number){.is_exact = a->count == used};
    if (a->count == 0) return 1;
    for (i32 i = 0; i < used; i++)
        top = top << 32 | a->digit[a->count - 1 - i];
    const u32 bits = 32 * (u32)used - leading_zeros(a->digit[a->count - 1]);
    if (exponent < LEAST || exponent + (i32)bits > MOST) return 0;
    const double unit = double_from((u64)(1023 + exponent) << 52);
    /* The 53 highest bits; of the others, 75 at most, 53 and the rest. */
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
    if (n >> 53 != 0 || !near_number_of(sum, &s) || !near_number_of(squares, &q)) {
        TALLY_PATH("numbers that doubles have no room for");
        return 0;
    }
    const double rough = s.is_exact && q.is_exact ? 0 : ROUGH;
    const u64 bits = variance_value(s.high, s.low, q.high, q.low, n, ddof, (u32)(root != 0),
                                    (u32)type, rough, &lost);
    if (lost) {
        TALLY_PATH("a variance that they do not decide");
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
        TALLY_PATH("a root that they do not decide");
        return 0;
    }
    TALLY_PATH("a root");
    *out = float_from_bits(type, bits);
    return 1;
}
