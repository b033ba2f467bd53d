/*
 * widen.h - elements as the floats that are computed with: f64 as it is, all others as f32, exactly.
 */
#ifndef TALLY_WIDEN_H
#define TALLY_WIDEN_H

#include "tuning.h"

#include "operators.h"

#if defined(TYPE_F64)
typedef double real;
#else
typedef float real;
#endif

PURE real widen(element e) {
#if defined(TYPE_F16) && HAS_PTX
    real f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(e));
    return f;
#elif defined(TYPE_F16)
    return half_widened(e);
#elif defined(TYPE_BF16) && HAS_PTX && defined(LIFT_MOMENTS)
    /* nvcc would widen all elements of a tile at first, for which there are not the registers. */
    real f;
    asm("{ .reg .b16 z; mov.b16 z, 0; mov.b32 %0, {z, %1}; }" : "=f"(f) : "h"(e));
    return f;
#elif defined(TYPE_BF16)
    return float_from((u32)e << 16);
#else
    return e;
#endif
}

#endif
