/*
 * capability.h - which kernels can do a problem: the table of what each schedule's programs keep, for which monoids,
 * types, operators and types of values, how they are compiled, and what they need.
 */
#ifndef TALLY_GPU_CAPABILITY_H
#define TALLY_GPU_CAPABILITY_H

#include "gpu/gpu.h"
#include "problem/problem.h"

/* Who reads what: whole arrays (whole.c), or reductions in parts (rows.c ...). Columns and vectors keep the same states. */
enum schedule { BY_WHOLE, BY_ROWS, BY_COLUMNS, BY_VECTORS, BY_GROUPS, SCHEDULES };

#define CAPABILITIES 32 /* the most rows of a schedule */

/* Which types of values: ANY: sums have those of the elements' kind, means float types. OWN: the elements' type. INTEGER:
 * sums have integer types, means f64. */
enum given_types { GIVES_ANY, GIVES_OWN, GIVES_INTEGER };

/* A row of the table: a program of a schedule. A set of types, of operators or of results of problem_ends() has a bit for
 * each. A column that a row does not mention is 0. */
struct capability {
    /* The problems. */
    unsigned
        monoids; /* whose states it makes: in parts all of the problem's; of a whole array some, and launches
                            * of other rows make the rest */
    unsigned extremes; /* MONOID_EXTREMES: the results of problem_ends() that it is for */
    unsigned types;    /* of elements */
    unsigned ops; /* operators that it gives; of a whole array: those that it combines bits by */
    enum given_types give; /* in parts: the types of values */
    unsigned values;       /* in parts: how many, at most */
    bool real, imaginary;  /* only for problems that are not, or are, of complex numbers */

    /* The program. */
    const char *file; /* NULL: that of the schedule */
    size_t count;
    const char *define[3];
    unsigned by_size; /* types of which it knows only the size: compiled as unsigned integers */
    unsigned
        doubles; /* types for which it computes with doubles; programs in parts come behind one that always does */
    /* Types of elements that it adds up in floats, on devices whose doubles are fast, and slow: compiled with IN_FLOATS. */
    unsigned in_floats[2];
    bool is_near; /* other types' sums are plain, with a bound: compiled with NEAR */
    bool warps;   /* it needs warps, which blocks shaped like a CPU's lack */

    /* Its launches. */
    unsigned
        blocks; /* that a multiprocessor has at once, as the kernel file says, too (kernels/tuning.h) */
    unsigned
        tiles; /* an exact sum of a whole array of floats: the tiles of a block, before there are more rounds; else 0.
                      * Blocks of such a sum meet limb by limb in one record, or in counting words (kernels/sum.cu), and
                      * not on a board (kernels/records.h). */
    bool
        alone; /* a whole array: it has a kernel `alone` beside `reduce` (kernels/sum.cu, kernels/fold.h) */
    bool certain; /* in parts: every state says what its values are */
    unsigned
        again; /* in parts: types of elements whose lost sums it can add again (kernels/schedule/lost_sums.h) */
    unsigned
        words; /* of a state in the workspace; of groups 0: as GROUPS_RECORD() says, and two more */
    unsigned cell; /* groups: bytes of a cell; 0: as an element's key */
    bool
        twice; /* groups: the last of the words, which has no cell, is found by a sweep of its own */
};

struct queue;
struct shaped;

/* Returns the row by which a schedule in parts does a problem, or NULL. */
const struct capability *capability_for(enum schedule schedule, const struct problem *p);
/* Finds the launches, by blocks of `block` threads, that make the records of all monoids of a whole array: puts their rows
 * into out[], and returns how many they are. */
unsigned capability_cover(const struct problem *p, const struct gpu_facts *facts, unsigned block,
                          const struct capability *out[MONOIDS]);

/* Returns whether a row's kernels, of a schedule in parts, add again what they lose of this shape, so that they leave nothing:
 * rows of at most `most` elements. */
bool capability_adds_again(const struct capability *c, const struct queue *queue,
                           const struct shaped *s, size_t most);

/* Returns the row's number among those of its schedule, below CAPABILITIES. It is the same in each run. */
unsigned capability_number(enum schedule schedule, const struct capability *c);
/* Returns the kernel file of the row's program. */
const char *capability_file(enum schedule schedule, const struct capability *c);
/* Returns the type that its program is compiled for. */
tally_type capability_type(const struct capability *c, const struct problem *p);
/* Returns whether the program computes with doubles. */
bool capability_needs_doubles(const struct capability *c, const struct problem *p);
/* Returns whether it is the canonical tree of whole arrays. */
static inline bool capability_is_tree(const struct capability *c) {
    return c->monoids == MONOID_BIT(MONOID_TREE);
}
/* Returns whether it is an exact sum of a whole array of floats. */
static inline bool capability_has_limbs(const struct capability *c) {
    return c->tiles != 0;
}

#endif
