/* round.c - see round.h. */
#include "exact/round.h"

#include <string.h>

/* The rounding itself is text that kernels share. */
typedef uint32_t u32;
typedef int32_t i32;
typedef uint64_t u64;
#define PURE static
#include "kernels/rounding.h"

static float_format format_of(tally_type type) {
    switch (type) {
    case TALLY_F16:
        return (float_format){10, 15};
    case TALLY_BF16:
        return (float_format){7, 127};
    case TALLY_F32:
        return (float_format){23, 127};
    default:
        return (float_format){52, 1023};
    }
}

tally_value float_from_bits(tally_type type, uint64_t bits) {
    tally_value v = {.type = type};
    switch (type) {
    case TALLY_F16:
        v.as.f16 = (uint16_t)bits;
        break;
    case TALLY_BF16:
        v.as.bf16 = (uint16_t)bits;
        break;
    case TALLY_F32: {
        uint32_t word = (uint32_t)bits;
        memcpy(&v.as.f32, &word, sizeof word);
        break;
    }
    default:
        memcpy(&v.as.f64, &bits, sizeof bits);
    }
    return v;
}

tally_value float_infinity(tally_type type, int negative) {
    return float_from_bits(type, float_infinity_bits(format_of(type), negative != 0));
}

tally_value float_nan(tally_type type) {
    return float_from_bits(type, float_nan_bits(format_of(type)));
}

tally_value float_negative_zero(tally_type type) {
    return float_from_bits(type, float_sign(format_of(type)));
}

tally_value round_to_float(tally_type type, int negative, uint64_t top, int exponent, int sticky) {
    return float_from_bits(type,
                           round_bits(format_of(type), negative != 0, top, exponent, sticky != 0));
}

tally_value round_scaled(tally_type type, __int128 value, int exponent) {
    int negative = value < 0;
    unsigned __int128 magnitude = negative ? -(unsigned __int128)value : (unsigned __int128)value;
    uint64_t high = (uint64_t)(magnitude >> 64), low = (uint64_t)magnitude;
    if (high == 0) {
        if (low == 0) return float_from_bits(type, 0);
        int lead = __builtin_clzll(low);
        return round_to_float(type, negative, low << lead, exponent - lead, 0);
    }
    int lead = __builtin_clzll(high);
    magnitude <<= lead;
    return round_to_float(type, negative, (uint64_t)(magnitude >> 64), exponent - lead + 64,
                          (uint64_t)magnitude != 0);
}

tally_value round_superacc(tally_type type, const struct superacc *a) {
    struct superacc digits = *a;
    superacc_normalise(&digits);
    int negative = digits.limb[SUPERACC_LIMBS - 1] < 0;
    if (negative) {
        for (int i = 0; i < SUPERACC_LIMBS; i++)
            digits.limb[i] = -digits.limb[i];
        superacc_normalise(&digits);
    }
    int i = SUPERACC_LIMBS - 1;
    while (i >= 0 && digits.limb[i] == 0)
        i--;
    if (i < 0) return float_from_bits(type, 0);

    /* The leading digit and the two below it give 65 bits at least; what lies further down only
     * matters as being there or not. */
    unsigned __int128 lead = 0;
    for (int k = 0; k < 3; k++)
        lead = lead << 32 | (i - k >= 0 ? (uint32_t)digits.limb[i - k] : 0);
    int exponent = SUPERACC_LOWEST + 32 * (i - 2);
    int sticky = 0;
    for (int k = i - 3; k >= 0; k--)
        sticky |= digits.limb[k] != 0;
    int shift = __builtin_clz((uint32_t)digits.limb[i]);
    lead <<= 32 + shift; /* the top bit of 96 to the top of 128 */
    return round_to_float(type, negative, (uint64_t)(lead >> 64), exponent + 32 - shift,
                          sticky || (uint64_t)lead != 0);
}

tally_value round_double(tally_type type, double d) {
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return float_from_bits(type, round_float(format_of(type), format_of(TALLY_F64), bits));
}
