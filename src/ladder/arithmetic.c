/*
 * arithmetic.c - see arithmetic.h. The loops are compiled without vectorisation, so that they do take one
 * element after another.
 */
#include "ladder/arithmetic.h"

#include "base/types.h"
#include "ladder/host_dialect.h"

#include <string.h>

#include "arithmetic_texts.h" /* made by the build: arithmetic_text.h for every type and operator */

#define ROW(NAME, name, kind, bits)                                                                \
    [TALLY_##                                                                                      \
        NAME] = {[TALLY_SUM] = &name##_sum_arithmetic, [TALLY_PROD] = &name##_prod_arithmetic,     \
                 [TALLY_MIN] = &name##_min_arithmetic, [TALLY_MAX] = &name##_max_arithmetic,       \
                 [TALLY_AND] = &name##_and_arithmetic, [TALLY_OR] = &name##_or_arithmetic,         \
                 [TALLY_XOR] = &name##_xor_arithmetic},
static const ladder_arithmetic *const rows[TYPE_ROWS][TALLY_XOR + 1] = {TALLY_TYPES(ROW)};

const ladder_arithmetic *ladder_arithmetic_of(tally_type type, tally_op op) {
    return (unsigned)type < TYPE_ROWS && (unsigned)op <= TALLY_XOR ? rows[type][op] : NULL;
}

double ladder_magnitude(tally_type type, const void *x, uint64_t n) {
    switch (type) {
    case TALLY_F16:
        return f16_sum_magnitude(x, n);
    case TALLY_BF16:
        return bf16_sum_magnitude(x, n);
    case TALLY_F32:
        return f32_sum_magnitude(x, n);
    default:
        return f64_sum_magnitude(x, n);
    }
}

/* ---- Results -------------------------------------------------------------------------------- */

/* Returns the bits of the 16-bit float nearest to `value`, ties to even, in the format with this bias and so many
 * bits of fraction. */
static uint16_t narrow(float value, unsigned fraction, int bias) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    const uint32_t infinite = (0x7fffu >> fraction) << fraction;
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) return (uint16_t)(infinite | 1u << (fraction - 1));

    int exponent = (int)(bits >> 23) - 127 + bias; /* in the narrow format */
    uint64_t digits = (bits & 0x7fffff) | (bits >> 23 ? 0x800000 : 0);
    if (bits >> 23 == 0) exponent++;
    unsigned drop = 23 - fraction;
    if (exponent < 1) { /* subnormal there: the exponent stays, digits move down */
        unsigned down = (unsigned)(1 - exponent);
        drop += down < 32 ? down : 32;
        exponent = 1;
    }
    const uint64_t half = UINT64_C(1) << (drop - 1), rest = digits & (2 * half - 1);
    uint64_t kept = digits >> drop;
    kept += rest > half || (rest == half && (kept & 1));
    /* A carry out of the fraction belongs to the exponent, and so does the leading digit. */
    kept += (uint64_t)(exponent - 1) << fraction;
    return (uint16_t)(sign | (kept > infinite ? infinite : kept));
}

void ladder_result(const ladder_arithmetic *of, const void *accumulator, uint64_t n,
                   tally_value *out) {
    const int computed = of->op == TALLY_SUM || of->op == TALLY_PROD;
    tally_value value = {.type = of->type};

    if (computed && of->type != TALLY_F16 && of->type != TALLY_BF16)
        value.type = of->accumulator_type;
    memcpy(&value.as, accumulator, of->accumulator_size);
    if (computed && of->type == TALLY_F64) {
        if (n == 0 && of->op == TALLY_SUM) value.as.f64 = 0;
        if (value.as.f64 != value.as.f64) value.as.u64 = UINT64_C(0x7ff8000000000000);
    } else if (computed && of->accumulator_type == TALLY_F32) {
        if (n == 0 && of->op == TALLY_SUM) value.as.f32 = 0;
        if (value.as.f32 != value.as.f32) value.as.u32 = 0x7fc00000;
        const float f = value.as.f32;
        if (of->type == TALLY_F16)
            value.as.f16 = narrow(f, 10, 15);
        else if (of->type == TALLY_BF16)
            value.as.bf16 = narrow(f, 7, 127);
    }
    *out = value;
}
