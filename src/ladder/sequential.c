/*
 * sequential.c - see sequential.h. The loops are compiled without vectorisation, so that they are what
 * they say.
 */
#include "ladder/sequential.h"

#include "ladder/host_dialect.h"
#include "model/ladder.h"
#include "table.h"

#include "sequential_loops.h" /* made by the build: sequential_loop.h for every type and operator */

#define LOOPS(NAME, name, kind, bits)                                                              \
    [TALLY_##NAME] = {[TALLY_SUM] = name##_sum_reduce, [TALLY_PROD] = name##_prod_reduce,          \
                      [TALLY_MIN] = name##_min_reduce, [TALLY_MAX] = name##_max_reduce,            \
                      [TALLY_AND] = name##_and_reduce, [TALLY_OR] = name##_or_reduce,              \
                      [TALLY_XOR] = name##_xor_reduce},
static void (*const loops[][TALLY_XOR + 1])(const void *x, u64 n,
                                            void *result) = {TALLY_TYPES(LOOPS)};

void sequential_reduce(tally_op op, tally_type type, const void *x, uint64_t n, tally_value *out) {
    uint64_t accumulator = 0; /* room for any, aligned */
    loops[type][op](x, n, &accumulator);
    ladder_result(ladder_instance_of(type, op), &accumulator, n, out);
}

double sequential_magnitude(tally_type type, const void *x, uint64_t n) {
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
