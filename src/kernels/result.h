/*
 * result.h - how the last block writes a value and its status to a launch's `result` (request.h).
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

/* Writes the value's bits, then the status with the type above it. One thread calls this. */
__device__ void put_result(GLOBAL u64 *result, u32 request, u64 bits, u32 status) {
    write_word(&result[0], bits);
    if (request & REQUEST_WATCHED) __threadfence_system();
    write_word(&result[1], (u64)REQUEST_TYPE(request) << 32 | status);
}

#endif
