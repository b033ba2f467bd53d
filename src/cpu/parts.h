/*
 * parts.h - the names of what the exact sum templates make for the kernel NAME, and its vectors.
 */
#ifndef TALLY_CPU_PARTS_H
#define TALLY_CPU_PARTS_H

#include "cpu/vector.h"
#include "exact/sum.h"

#define PART2(name, part) name##_##part
#define PART1(name, part) PART2(name, part)
#define PART(part)        PART1(NAME, part)
#define WINDOW            PART(window)
#define BINS              PART(bins)
#define PROGRESS          PART(progress)

/* As many floats as a vector has doubles, widened exactly; and as many 16-bit floats. */
typedef float vf32half __attribute__((vector_size(TALLY_VECTOR / 2), may_alias));

ALWAYS_INLINE vf64 f64_from_f32(const loose_f32 *p) {
    return __builtin_convertvector(VECTOR_LOAD(vf32half, p), vf64);
}

ALWAYS_INLINE vf64 f64_from_bf16(const loose_u16 *p) {
    typedef uint16_t vu16quarter __attribute__((vector_size(TALLY_VECTOR / 4), may_alias));
    typedef uint32_t vu32half __attribute__((vector_size(TALLY_VECTOR / 2), may_alias));
    const vu32half bits = __builtin_convertvector(VECTOR_LOAD(vu16quarter, p), vu32half) << 16;
    return __builtin_convertvector((vf32half)bits, vf64);
}

/* One element of a 16-bit float as a float. */
ALWAYS_INLINE float f32_from_f16(const loose_u16 *p) {
    return widen_f16((vu16half){0} + *p)[0];
}

ALWAYS_INLINE float f32_from_bf16(const loose_u16 *p) {
    const uint32_t bits = (uint32_t)*p << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
