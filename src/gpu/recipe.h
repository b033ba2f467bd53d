/*
 * recipe.h - which kernel file, with which defines, makes the records of which monoids of a problem; and what is asked of
 * its kernels.
 */
#ifndef TALLY_GPU_RECIPE_H
#define TALLY_GPU_RECIPE_H

#include "gpu/gpu.h"
#include "problem/problem.h"

#define RECIPES_MAX 32 /* the most rows of the table */

/* A row of the table: one launch. */
struct recipe {
    unsigned monoids; /* MONOID_BIT()s: whose records it makes, one behind the other */
    int types;        /* the elements that it is for: recipe.c */
    unsigned index;   /* WANT_INDEX: where that is wanted; 0: where not */
    tally_op bits;    /* MONOID_BITS: the operator; else 0 */
    const char *file;
    const char *define; /* INDEXED, LIFT_...; or NULL */
    const char *op;     /* OP_...; NULL: see recipe.c */
};

/* Finds the launches, by blocks of `block` threads, that make the records of all monoids of a problem: puts their rows
 * into out[], and returns how many they are. */
unsigned recipe_choose(const struct problem *p, const struct gpu_facts *facts, unsigned block,
                       const struct recipe *out[MONOIDS]);
/* Returns the row's number, below RECIPES_MAX. */
unsigned recipe_number(const struct recipe *r);
/* Returns whether the recipe is an exact sum of floats. Its blocks meet limb by limb in one record,
 * or in counting words (kernels/sum.cu), and not on a board (kernels/records.h). */
int recipe_has_limbs(const struct recipe *r);
/* Tiles of a block of an exact sum's kernel: where there would be more, there are further rounds of blocks. */
unsigned recipe_tiles_a_block(const struct recipe *r);
/* Blocks of GPU_BLOCK threads of its kernel that a GPU's multiprocessor has at once, as the kernel file says, too
 * (kernels/tuning.h). */
unsigned recipe_blocks_a_unit(const struct recipe *r, const struct problem *p);
/* Returns whether its program has a kernel `alone` beside `reduce`: kernels/sum.cu,
 * kernels/fold.h. */
int recipe_has_alone(const struct recipe *r);

/* Compiles a recipe's program for the problem's type and blocks of `block` threads. Returns
 * TALLY_EUNSUPPORTED if the device lacks a capability. gpu.h says how long *out lives (build). */
tally_status recipe_build(const struct gpu_api *api, struct gpu *gpu, unsigned block,
                          const struct problem *p, const struct recipe *r,
                          struct gpu_program **out);
/* Compiles a kernel file that is for all types and operators. */
tally_status recipe_build_plain(const struct gpu_api *api, struct gpu *gpu, unsigned block,
                                const char *file, struct gpu_program **out);
/* Compiles a kernel file for elements of one type, with `count` more defines, `words`; the last is
 * OP_.... LOOSE is for arrays with filled-in elements or rows apart (kernels/parts.h). */
tally_status recipe_build_typed(const struct gpu_api *api, struct gpu *gpu, unsigned block,
                                const char *file, const char *const *words, size_t count,
                                bool loose, tally_type type, struct gpu_program **out);

/* Returns whether one launch (for a tree, the last of a few) gives the problem's values: a single
 * value, or both extremes, or their indices. */
int recipe_gives_values(const struct problem *p);
/* Returns the request for these values (kernels/request.h). */
uint32_t recipe_request(const struct problem *p);

#endif
