/*
 * ladder.c - finding the ladder's kernels, and what their results say.
 */
#include "model/ladder.h"

#include <string.h>

/* The build lists all compiled instances here: INSTANCE(type, op, TYPE, OP). */
#define INSTANCE(t, o, T, O) extern const ladder_instance tally_ladder_##t##_##o;
#include "instances.h"
#undef INSTANCE

#define INSTANCE(t, o, T, O) [TALLY_##T][TALLY_##O] = &tally_ladder_##t##_##o,
static const ladder_instance *const instances[TALLY_F64 + 1][TALLY_XOR + 1] = {
#include "instances.h"
};

#define RUNG(ID, name, kernel, file, INPUT, EXTRA, pairs, shared, idea, waste, mends)              \
    {name, #kernel, file, LADDER_##INPUT, LADDER_##EXTRA, pairs, idea, waste, mends},
static const ladder_rung_info rungs[] = {LADDER_RUNGS(RUNG)};
#undef RUNG

const ladder_rung_info *ladder_rung_of(ladder_rung rung) {
    return (unsigned)rung < LADDER_RUNG_COUNT ? &rungs[rung] : NULL;
}

const ladder_rung_info *ladder_rung_named(const char *name, ladder_rung *out) {
    for (unsigned i = 0; i < LADDER_RUNG_COUNT; i++)
        if (strcmp(rungs[i].name, name) == 0) {
            if (out) *out = (ladder_rung)i;
            return &rungs[i];
        }
    return NULL;
}

unsigned ladder_shared(ladder_rung rung, unsigned B) {
    switch (rung) {
#define RUNG(ID, name, kernel, file, INPUT, EXTRA, pairs, shared, ...)                             \
    case LADDER_##ID:                                                                              \
        return shared;
        LADDER_RUNGS(RUNG)
#undef RUNG
    case LADDER_RUNG_COUNT:
        break;
    }
    (void)B;
    return 0;
}

unsigned ladder_grid(ladder_rung rung, uint64_t n, unsigned block, unsigned factor,
                     unsigned processors) {
    const int pairs = rungs[rung].pairs;
    const uint64_t segment = (uint64_t)2 * block * (pairs == PAIRS_FACTOR ? factor : 1);
    uint64_t grid = n / segment + (n % segment != 0);
    if (pairs == PAIRS_GRID && grid > (uint64_t)4 * processors) grid = (uint64_t)4 * processors;
    if (grid > INT32_MAX) return 0;
    return grid ? (unsigned)grid : 1;
}

const ladder_instance *ladder_instance_of(tally_type type, tally_op op) {
    return (unsigned)type <= TALLY_F64 && (unsigned)op <= TALLY_XOR ? instances[type][op] : NULL;
}

const model_kernel *model_kernel_of(ladder_rung rung, tally_type type, tally_op op) {
    const ladder_instance *instance = ladder_instance_of(type, op);
    return instance && (unsigned)rung < LADDER_RUNG_COUNT ? instance->rungs[rung] : NULL;
}

/* ---- Results -------------------------------------------------------------------------------- */

/* A float, by its bits, as the nearest number with so many bits of exponent and fraction. */
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

void ladder_result(const ladder_instance *instance, const void *accumulator, uint64_t n,
                   tally_value *out) {
    const int arithmetic = instance->op == TALLY_SUM || instance->op == TALLY_PROD;
    tally_value value = {.type = instance->type};

    if (arithmetic && instance->type != TALLY_F16 && instance->type != TALLY_BF16)
        value.type = instance->accumulator_type;
    memcpy(&value.as, accumulator, instance->accumulator_size);
    if (arithmetic && instance->type == TALLY_F64) {
        if (n == 0 && instance->op == TALLY_SUM) value.as.f64 = 0;
        if (value.as.f64 != value.as.f64) value.as.u64 = UINT64_C(0x7ff8000000000000);
    } else if (arithmetic && instance->accumulator_type == TALLY_F32) {
        if (n == 0 && instance->op == TALLY_SUM) value.as.f32 = 0;
        if (value.as.f32 != value.as.f32) value.as.u32 = 0x7fc00000;
        const float f = value.as.f32;
        if (instance->type == TALLY_F16)
            value.as.f16 = narrow(f, 10, 15);
        else if (instance->type == TALLY_BF16)
            value.as.bf16 = narrow(f, 7, 127);
    }
    *out = value;
}
