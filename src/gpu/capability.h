/*
 * capability.h - which kernels can do a problem: the table of what each schedule's programs keep, for which monoids,
 * types, operators and types of values, how they are compiled, and what they need.
 */
#ifndef TALLY_GPU_CAPABILITY_H
#define TALLY_GPU_CAPABILITY_H

#include "gpu/gpu.h"
#include "problem/problem.h"

/* The schedules: a kernel reads an array as a whole (whole.c), or in parts (rows.c ...). Columns and vectors keep the
 * same states. */
enum schedule { BY_WHOLE, BY_ROWS, BY_COLUMNS, BY_VECTORS, BY_GROUPS, SCHEDULES };

#define CAPABILITIES 32 /* the most rows of a schedule */

/* The types of the values that a program gives. ANY: a sum has any type of the elements' kind, float or integer; a
 * mean has any float type. OWN: the elements' type. INTEGER: a sum has any integer type; a mean is f64. */
enum given_types { GIVES_ANY, GIVES_OWN, GIVES_INTEGER };

/* A row of the table: a program of a schedule. A set of types, of operators or of results of problem_ends() has a bit for
 * each. A column that a row does not mention is 0. */
struct capability {
    /* The problems. */
    /* The monoids whose states it makes. In parts: all of the problem's. Of a whole array: some, and launches of
     * other rows make the rest. */
    unsigned monoids;
    unsigned extremes; /* MONOID_EXTREMES: the results of problem_ends() that it is for */
    unsigned types;    /* of elements */
    unsigned ops;      /* operators whose values it gives; whole arrays: those that combine bits */
    enum given_types give; /* in parts: the types of values */
    unsigned values;       /* in parts: the most values */
    bool real, imaginary;  /* only for problems that are not, or are, of complex numbers */

    /* The program. */
    const char *file; /* NULL: that of the schedule */
    size_t count;
    const char *define[3];
    unsigned by_size; /* types of which it knows only the size: compiled as unsigned integers */
    /* Types for which it computes with doubles. Rows in parts need not say so: every reduction in parts needs parts.cu,
     * which always does. */
    unsigned doubles;
    /* Types of elements that it adds up in floats, compiled with IN_FLOATS: [0] on devices whose doubles are fast,
     * [1] on those whose doubles are slow. */
    unsigned in_floats[2];
    bool is_near; /* sums not in floats are plain, with an error bound: compiled with NEAR */
    bool warps;   /* it needs warps, which blocks shaped like a CPU's lack */

    /* Its launches. */
    unsigned blocks; /* that a multiprocessor runs at once: BLOCKS_A_UNIT of the kernel file */
    /* Of an exact sum of a whole array of floats: the most tiles of a block; larger arrays have more rounds of
     * blocks. Else 0. Blocks of such a sum add up their totals limb by limb in one record, or in counting words
     * (kernels/sum.cu), and not on a board (kernels/records.h). */
    unsigned tiles;
    bool
        alone; /* a whole array: it has a kernel `alone` beside `reduce` (kernels/sum.cu, kernels/fold.h) */
    bool certain; /* in parts: every state determines its values, so no row is left to `fold` */
    unsigned
        again; /* in parts: types of elements whose lost sums it can add again (kernels/schedule/lost_sums.h) */
    unsigned words; /* of a state in the workspace; groups, 0: GROUPS_RECORD() + 2 */
    unsigned cell;  /* groups: bytes of a cell; 0: those of an element's key, 4 or 8 */
    bool twice;     /* groups: a second sweep finds the last of the words, which has no cell */
};

struct queue;
struct shaped;

/* Returns the row by which a schedule in parts does a problem, or NULL. */
const struct capability *capability_for(enum schedule schedule, const struct problem *p);
/* Finds the launches, by blocks of `block` threads, that make the records of all monoids of a whole array: puts their rows
 * into out[], and returns how many they are. */
unsigned capability_cover(const struct problem *p, const struct gpu_facts *facts, unsigned block,
                          const struct capability *out[MONOIDS]);

/* Returns whether the kernels of a row of the table, in parts, add lost sums again themselves, so that they leave no
 * row of this shape to `fold`. They do that for rows of at most `most` elements. */
bool capability_adds_again(const struct capability *c, const struct queue *queue,
                           const struct shaped *s, size_t most);

/* Returns the row's number among those of its schedule, below CAPABILITIES. It is the same in each run. */
unsigned capability_number(enum schedule schedule, const struct capability *c);
/* Returns the kernel file of the row's program. */
const char *capability_file(enum schedule schedule, const struct capability *c);
/* Returns the type that the row's program is compiled for. */
tally_type capability_type(const struct capability *c, const struct problem *p);
/* Returns whether the row's program computes with doubles. */
bool capability_needs_doubles(const struct capability *c, const struct problem *p);
/* Returns whether the row is for the canonical tree of whole arrays. */
static inline bool capability_is_tree(const struct capability *c) {
    return c->monoids == MONOID_BIT(MONOID_TREE);
}
/* Returns whether the row is for an exact sum of a whole array of floats. */
static inline bool capability_has_limbs(const struct capability *c) {
    return c->tiles != 0;
}

#endif
