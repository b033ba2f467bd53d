/* round.c - see round.h. */
#include "exact/round.h"

#include "base/invariant.h"
#include "base/types.h"
#include "kernels/half.h"

#include <string.h>

static const float_format formats[TYPE_ROWS] = {
#define FORMAT(NAME, mantissa, bias) [TALLY_##NAME] = {mantissa, bias},
    TALLY_FLOATS(FORMAT)
#undef FORMAT
};

float_format format_of(tally_type type) {
    TALLY_ASSERT(type_is_float(type));
    return formats[type];
}

tally_value float_from_bits(tally_type type, uint64_t bits) {
    return value_of_bits(type, bits);
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

tally_value round_double(tally_type type, double d) {
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return float_from_bits(type, round_float(format_of(type), format_of(TALLY_F64), bits));
}

float half_to_float(uint16_t bits) {
    const uint32_t word = half_bits_widened(bits);
    float f;
    memcpy(&f, &word, sizeof f);
    return f;
}
