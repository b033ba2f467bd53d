/* folds.c - see folds.h. */
#include "gpu/folds.h"

#include "base/types.h"
#include "gpu/filled.h"
#include "gpu/tuning.h"
#include "kernels/tuning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct column_fold column_folds[COLUMNS_FOLDS] = {
    {MONOID_BIT(MONOID_SUM),
     0,
     FLOATS | INTEGERS,
     3,
     GPU_COLUMN_BLOCKS_A_UNIT,
     2,
     {"FOLD_SUM", "OP_SUM"}},
    {MONOID_BIT(MONOID_SUM) | MONOID_BIT(MONOID_SQUARES),
     0,
     FLOATS,
     5,
     GPU_PRODUCT_BLOCKS_A_UNIT,
     2,
     {"FOLD_MOMENTS", "OP_SUM"}},
    {MONOID_BIT(MONOID_SQUARES),
     0,
     FLOATS,
     5,
     GPU_PRODUCT_BLOCKS_A_UNIT,
     2,
     {"FOLD_MOMENTS", "OP_SUM"}},
    {MONOID_BIT(MONOID_FAST), 0, FLOATS, 1, GPU_COLUMN_BLOCKS_A_UNIT, 2, {"FOLD_FAST", "OP_SUM"}},
    {MONOID_BIT(MONOID_EXTREMES),
     1,
     FLOATS | INTEGERS | BY_SIZE,
     1,
     GPU_BLOCKS_A_UNIT,
     2,
     {"FOLD_END", "OP_MIN"}},
    {MONOID_BIT(MONOID_EXTREMES),
     2,
     FLOATS | INTEGERS | BY_SIZE,
     2,
     GPU_BLOCKS_A_UNIT,
     2,
     {"FOLD_ENDS", "OP_MIN"}},
    {MONOID_BIT(MONOID_EXTREMES),
     1 | WANT_INDEX,
     FLOATS | INTEGERS | BY_SIZE,
     2,
     GPU_COLUMN_BLOCKS_A_UNIT,
     3,
     {"FOLD_END", "INDEXED", "OP_MIN"}},
};

/* Returns whether the kernels can lower to the problem's value number v. */
static bool gives_value(const struct problem *p, unsigned v) {
    switch (p->value[v].op) {
    case TALLY_SUM:
        return type_is_float(p->type) == type_is_float(p->value[v].type);
    case TALLY_MEAN:
        return type_is_float(p->value[v].type);
    case TALLY_VAR:
    case TALLY_STD:
    case TALLY_SUMSQ:
    case TALLY_NORM2:
        return type_is_float(p->type);
    case TALLY_MIN:
    case TALLY_MAX:
    case TALLY_ARGMIN:
    case TALLY_ARGMAX:
        return true;
    default:
        return false;
    }
}

bool find_column_fold(const struct problem *p, unsigned *fold, tally_type *type) {
    static const tally_type by_size[] = {
        [1] = TALLY_U8, [2] = TALLY_U16, [4] = TALLY_U32, [8] = TALLY_U64};
    const bool floats = type_is_float(p->type);
    if (p->values > COLUMNS_VALUES) return false;
    for (unsigned v = 0; v < p->values; v++)
        if (!gives_value(p, v)) return false;
    for (*fold = 0; *fold < COLUMNS_FOLDS; ++*fold) {
        const struct column_fold *f = &column_folds[*fold];
        if (f->monoids != p->monoids || f->extremes != problem_ends(p)) continue;
        if (!(f->types & (floats ? FLOATS : INTEGERS))) continue;
        *type = !floats && f->types & BY_SIZE ? by_size[type_size(p->type)] : p->type;
        return true;
    }
    return false;
}

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
