/*
 * folds.h - the states that schedules of columns keep (kernels/column_states.h): which of them a problem needs, and how
 * they are lowered to its values.
 */
#ifndef TALLY_GPU_FOLDS_H
#define TALLY_GPU_FOLDS_H

#include "exact/kernel_words.h"
#include "gpu/strategy.h"

#include "kernels/column_values.h"

enum { FLOATS = 1, INTEGERS = 2, BY_SIZE = 4 };

/* The defines for problems of exactly these monoids. `extremes` is a result of problem_ends(). Types: with BY_SIZE,
 * integers of one size share a program. */
struct column_fold {
    unsigned monoids, extremes;
    int types;
    unsigned words;  /* of a state */
    unsigned blocks; /* that a multiprocessor has at once */
    size_t count;
    const char *define[3];
};
extern const struct column_fold column_folds[COLUMNS_FOLDS];

/* Finds the fold for a problem: its number, and the type that the program is compiled for. Returns whether there is
 * one. */
bool find_column_fold(const struct problem *p, unsigned *fold, tally_type *type);
/* Plans the values of results of n elements each; n = 0: of any number. */
void plan_column_values(const struct parts_run *run, uint64_t n, struct column_values *plan);

#endif
