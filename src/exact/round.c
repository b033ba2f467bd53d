/* round.c - see round.h. */
#include "exact/round.h"

#include <string.h>

/* What rounding needs to know of a format: bits of mantissa without the implicit one, and the
 * exponent bias, which is also the largest exponent of a finite number. */
struct format {
    int mantissa;
    int bias;
};

static struct format format_of(tally_type type) {
    switch (type) {
    case TALLY_F16:
        return (struct format){10, 15};
    case TALLY_BF16:
        return (struct format){7, 127};
    case TALLY_F32:
        return (struct format){23, 127};
    default:
        return (struct format){52, 1023};
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

static uint64_t exponent_field(struct format f, uint64_t field) {
    return field << f.mantissa;
}

static uint64_t sign_bit(tally_type type) {
    return UINT64_C(1) << (8 * tally_type_size(type) - 1);
}

tally_value float_infinity(tally_type type, int negative) {
    struct format f = format_of(type);
    uint64_t bits = exponent_field(f, 2 * (uint64_t)f.bias + 1);
    return float_from_bits(type, bits | (negative ? sign_bit(type) : 0));
}

tally_value float_nan(tally_type type) {
    struct format f = format_of(type);
    uint64_t quiet = UINT64_C(1) << (f.mantissa - 1);
    return float_from_bits(type, exponent_field(f, 2 * (uint64_t)f.bias + 1) | quiet);
}

tally_value float_negative_zero(tally_type type) {
    return float_from_bits(type, sign_bit(type));
}

tally_value round_to_float(tally_type type, int negative, uint64_t top, int exponent, int sticky) {
    struct format f = format_of(type);
    uint64_t sign = negative ? sign_bit(type) : 0;
    if (top == 0) return float_from_bits(type, 0);

    /* The number lies in [2^e, 2^(e+1)). Its last kept bit weighs 2^(e - mantissa), but never less
     * than the format's smallest subnormal. */
    int e = exponent + 63;
    int last = e - f.mantissa;
    int smallest = 1 - f.bias - f.mantissa;
    if (last < smallest) last = smallest;
    int drop = last - exponent; /* bits of top below the last kept one: >= 63 - 52 = 11 */
    uint64_t kept = 0, half = 0, below = 0;
    if (drop < 64) {
        kept = top >> drop;
        half = (top >> (drop - 1)) & 1;
        below = top & ((UINT64_C(1) << (drop - 1)) - 1);
    } else if (drop == 64) {
        half = top >> 63;
        below = top << 1;
    } else {
        below = top;
    }
    if (half && (below != 0 || sticky || (kept & 1))) kept++;

    /* A subnormal's kept bits are its encoding; a normal's implicit bit counts one into the exponent
     * field. A carry out of the mantissa rightly raises the exponent in both. */
    uint64_t bits = kept;
    if (e >= 1 - f.bias) bits += exponent_field(f, (uint64_t)(e + f.bias - 1));
    if (e > f.bias || bits >= exponent_field(f, 2 * (uint64_t)f.bias + 1))
        return float_infinity(type, negative);
    return float_from_bits(type, sign | bits);
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
    int negative = bits >> 63 != 0, field = (int)(bits >> 52 & 2047);
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    if (field == 2047) return mantissa ? float_nan(type) : float_infinity(type, negative);
    if (field == 0 && mantissa == 0)
        return negative ? float_negative_zero(type) : float_from_bits(type, 0);
    if (field == 0)
        field = 1;
    else
        mantissa |= UINT64_C(1) << 52;
    int lead = __builtin_clzll(mantissa);
    return round_to_float(type, negative, mantissa << lead, field - 1075 - lead, 0);
}
