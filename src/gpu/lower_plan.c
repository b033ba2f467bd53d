/* lower_plan.c - see lower_plan.h. */
#include "gpu/lower_plan.h"

#include "problem/tree.h"

#include <string.h>

_Static_assert(TALLY_F64 == 12 && TALLY_SUM == 1 && TALLY_MEAN == 8 && TALLY_ARGMIN == 16 &&
                   TALLY_USER == 25,
               "lower.cu");
_Static_assert((int)PLAN_MONOIDS == (int)MONOIDS && (int)PLAN_SUM == (int)MONOID_SUM &&
                   (int)PLAN_EXTREMES == (int)MONOID_EXTREMES && (int)PLAN_TREE == (int)MONOID_TREE,
               "plan.h");
_Static_assert(PLAN_VALUES == TALLY_VALUES_MAX, "plan.h");

/* Splits ddof: it is plan->ddof * 2^plan->exponent. */
static void split(double ddof, struct lower_plan *plan) {
    uint64_t bits;
    memcpy(&bits, &ddof, sizeof bits);
    const int field = (int)(bits >> 52 & 2047);
    plan->exponent = (field ? field : 1) - 1075;
    plan->ddof = (bits & ((UINT64_C(1) << 52) - 1)) | (uint64_t)(field != 0) << 52;
}

void lower_plan_of(const struct problem *p, struct lower_plan *out) {
    *out = (struct lower_plan){.type = (uint32_t)p->type,
                               .indexed = (p->extremes & WANT_INDEX) != 0,
                               .complemented = p->bits_op == TALLY_AND,
                               .user = p->user != NULL,
                               .values = p->values};
    if (problem_has(p, MONOID_TREE)) out->identity = tree_identity_bits(p);
    split(p->ddof, out);
    out->about = (uint32_t)p->about;
    out->is_complex = (uint32_t)p->is_complex;
    memcpy(out->mean, p->mean, sizeof out->mean);
    for (unsigned monoid = 0; monoid < MONOIDS; monoid++)
        out->at[monoid] = PLAN_NONE;
    for (unsigned i = 0; i < p->values; i++)
        out->value[i] = (uint32_t)p->value[i].op | (uint32_t)p->value[i].type << 8;
}
