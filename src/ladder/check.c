/*
 * check.c - is a result right?
 *
 * Integers, min, max and bits have one right answer, bit for bit. A floating sum in the rung's own order may differ
 * from the exact sum by the rung's roundings. An element goes through at most `depth` additions, each with a relative
 * error of at most u, the accumulator's unit roundoff. So, to first order in u,
 *
 *     |sum - exact| <= depth * u * (|x[0]| + |x[1]| + ...)          (Higham, 2002, chapter 4)
 *
 * Rounding the result to its type adds at most one ulp. A product has a relative error of at most u for each of its n
 * factors. The reference has such an error, too, as it is rounded in the order of the canonical tree. If the result or
 * the reference is not finite, only the reference's bits are right.
 */
#include "ladder/check.h"

#include "base/types.h"
#include "ladder/sequential.h"

#include <math.h>

tally_status reference_make(const tally_ladder_options *o, struct reference *out) {
    tally_device *cpu;
    *out = (struct reference){.op = o->op, .type = o->type, .n = o->n};
    tally_status status = tally_open("cpu", &cpu);
    if (status != TALLY_OK) return status;
    const tally_problem problem = {.op = o->op, .type = o->type};
    status = tally_reduce(cpu, &problem, o->x, NULL, o->n, &out->value);
    tally_close(cpu);
    if (status == TALLY_OK && o->op == TALLY_SUM && type_is_float(o->type))
        out->magnitude = sequential_magnitude(o->type, o->x, o->n);
    return status;
}

/* Returns a float's place among all floats of its type, in order; both zeros have place 0. */
static int64_t place(const tally_value *value) {
    const unsigned bits = 8 * (unsigned)tally_type_size(value->type);
    const uint64_t sign = UINT64_C(1) << (bits - 1), b = tally_value_bits(value);
    return b & sign ? -(int64_t)(b & (sign - 1)) : (int64_t)b;
}

static double ulps_between(const tally_value *a, const tally_value *b) {
    if (tally_value_bits(a) == tally_value_bits(b)) return 0;
    if (isnan(tally_value_double(a)) || isnan(tally_value_double(b))) return (double)NAN;
    const double distance = fabs((double)place(a) - (double)place(b));
    return distance > 0 ? distance : 1; /* -0 is not +0 */
}

/* Returns at least the distance from a number to the next one away from zero, and at most twice that. */
static double ulp_of(const tally_value *value) {
    switch (value->type) {
    case TALLY_F16:
        return fmax(ldexp(fabs(tally_value_double(value)), -10), 0x1p-24);
    case TALLY_BF16:
        return fmax(ldexp(fabs(tally_value_double(value)), -7), 0x1p-133);
    case TALLY_F32:
        return fmax(ldexp(fabs(tally_value_double(value)), -23), 0x1p-149);
    default:
        return fmax(ldexp(fabs(tally_value_double(value)), -52), 0x1p-1074);
    }
}

/* Returns the largest distance from the reference at which a result is right: the bounds above. The factor 1.01 leaves
 * room for terms of higher order in u. A product's factor is 2.02, for the result's error and the reference's. */
static double allowance(const struct reference *r, uint64_t depth) {
    const double u = r->type == TALLY_F64 ? 0x1p-53 : 0x1p-24; /* of the accumulator */
    if (r->op == TALLY_SUM) return 1.01 * (double)depth * u * r->magnitude + ulp_of(&r->value);
    return 2.02 * (double)r->n * u * fabs(tally_value_double(&r->value)) + ulp_of(&r->value);
}

static int near_enough(const struct reference *r, const tally_value *value, uint64_t depth) {
    const double got = tally_value_double(value), right = tally_value_double(&r->value);
    return isfinite(got) && isfinite(right) && depth > 0 &&
           fabs(got - right) <= allowance(r, depth);
}

void reference_check(const struct reference *r, const tally_value *value, uint64_t depth,
                     tally_ladder_row *row) {
    const int same = tally_value_bits(value) == tally_value_bits(&r->value);
    const int rounds = type_is_float(r->type) && (r->op == TALLY_SUM || r->op == TALLY_PROD);
    row->value = *value;
    row->correct = same || (rounds && near_enough(r, value, depth));
    row->ulp_error = rounds ? ulps_between(value, &r->value) : same ? 0 : (double)NAN;
}
