/*
 * folds.h - which kernels can do a problem: a table of what each schedule's programs keep, for which monoids, types, operators
 * and value types, and how they are compiled; and a queue's kernels of them.
 */
#ifndef TALLY_GPU_FOLDS_H
#define TALLY_GPU_FOLDS_H

#include "exact/kernel_words.h"
#include "gpu/strategy.h"

#include "kernels/column_values.h"

/* Who reads what (src/gpu/rows.c ...). Columns and vectors keep the same states. */
enum schedule { BY_ROWS, BY_COLUMNS, BY_VECTORS, BY_GROUPS, SCHEDULES };

#define FOLD_KERNELS 6 /* the most kernels of a program */

/* A row of the table: a state of a schedule, and the problems that it is for. */
struct fold {
    unsigned schedules; /* a bit for each that keeps it */
    unsigned monoids;   /* of the problem, exactly */
    unsigned extremes;  /* a bit for each result of problem_ends() that it is for */
    int types;          /* of elements: folds.c */
    unsigned ops;       /* a bit for each operator that it gives */
    int gives;          /* which types of values: folds.c */
    unsigned values;    /* how many, at most */
    bool certain;       /* every state says what its values are */
    const char *file;   /* of the program */
    size_t count;
    const char *define[3];
    unsigned
        words; /* of a state in the workspace; of groups 0: as GROUPS_RECORD() says, and two more */
    unsigned blocks; /* columns: that a multiprocessor has at once */
    unsigned cell;   /* groups: bytes of a cell; 0: as an element's key */
    bool
        twice; /* groups: the last of the words, which has no cell, is found by a sweep of its own */
};

/* Returns the fold by which a schedule does a problem, or NULL. */
const struct fold *fold_for(enum schedule schedule, const struct problem *p);
/* Returns the type that its program is compiled for: integers of one size may share one. */
tally_type fold_type(const struct fold *f, const struct problem *p);
/* Returns the number of a fold, which is the same in each run. */
unsigned fold_number(const struct fold *f);

/* Finds a program's kernels, those of `names` that are not NULL, in the same places of *out. The first has a name. */
tally_status fold_kernels(struct queue *queue, enum schedule schedule, const struct fold *f,
                          bool loose, tally_type type, const char *const *names, unsigned count,
                          struct gpu_kernel *const **out);

/* Plans the values of results of n elements each; n = 0: of any number. */
void plan_column_values(const struct parts_run *run, uint64_t n, struct column_values *plan);

#endif
