/* column_values.c - see column_values.h. */
#include "gpu/column_values.h"

#include "gpu/filled.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns 1 / (n (n - ddof)), or 1 for n = 0; 0 if n or ddof is out of the usual range. */
static double variance_scale(uint64_t n, const struct lower_plan *lower) {
    const double count = (double)n, ddof = ldexp((double)lower->ddof, lower->exponent);
    const int is_far = lower->ddof != 0 && abs(lower->exponent) > 64;
    if (lower->ddof >> 53 != 0 || is_far || (n > 0 && !(ddof < count))) return 0;
    return n == 0 ? 1 : 1 / (count * (count - ddof));
}

void plan_column_values(const struct parts_run *run, uint64_t n, struct column_values *plan) {
    const struct parts_call *call = run->call;
    const struct lower_plan *lower = &run->plan.lower;
    const double scale = variance_scale(n, lower);
    memset(plan, 0, sizeof *plan);
    plan->count = call->values;
    memcpy(plan->value, lower->value, call->values * sizeof *plan->value);
    memcpy(plan->out, run->plan.out, call->values * sizeof *plan->out);
    plan->ddof = lower->ddof;
    plan->exponent = lower->exponent;
    memcpy(&plan->scale, &scale, sizeof scale);
    plan->flip = problem_flip(call->s->p);
    plan->filled = run->plan.filled;
    plan->neutral = call->s->filled ? filled_neutral(call->s->p) : 0;
}
