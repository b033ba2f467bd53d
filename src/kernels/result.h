/*
 * result.h - from the last block's total to the caller's value.
 */
#ifndef TALLY_RESULT_H
#define TALLY_RESULT_H

#include "kernel.h"

#include "request.h"

#include "rounding.h"

PURE float_format requested_format(u32 request) {
    const float_format f = {(i32)REQUEST_MANTISSA(request), (i32)REQUEST_BIAS(request)};
    return f;
}

/* Zero bits above a number's leading one; the number without them. For 0: 0. */
PURE i32 zeros_above(u64 x) {
    if (x == 0) return 0;
    return (i32)(x >> 32 ? leading_zeros((u32)(x >> 32)) : 32 + leading_zeros((u32)x));
}

PURE u64 shifted_up(u64 x) {
    return x << zeros_above(x);
}

/* One thread's. */
__device__ void put_result(GLOBAL u64 *result, u32 request, u64 bits, u32 status) {
    write_word(&result[0], bits);
    __threadfence_system();
    write_word(&result[1], (u64)REQUEST_TYPE(request) << 32 | status);
}

#endif
