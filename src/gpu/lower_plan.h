/*
 * lower_plan.h - the plan by which kernels lower records to the values of a problem (kernels/plan.h).
 */
#ifndef TALLY_GPU_LOWER_PLAN_H
#define TALLY_GPU_LOWER_PLAN_H

#include "exact/kernel_words.h"
#include "kernels/plan.h"
#include "problem/problem.h"

/* Makes *out the plan for lowering all values of a problem; the caller fills in n and the places of records. */
void lower_plan_of(const struct problem *p, struct lower_plan *out);

#endif
