/* sequential.c - see sequential.h. */
#include "ladder/sequential.h"

#include "ladder/arithmetic.h"

void sequential_reduce(tally_op op, tally_type type, const void *x, uint64_t n, tally_value *out) {
    const ladder_arithmetic *arithmetic = ladder_arithmetic_of(type, op);
    uint64_t accumulator = 0; /* room for any, aligned */
    arithmetic->reduce(x, n, &accumulator);
    ladder_result(arithmetic, &accumulator, n, out);
}

double sequential_magnitude(tally_type type, const void *x, uint64_t n) {
    return ladder_magnitude(type, x, n);
}
