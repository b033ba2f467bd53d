/*
 * parts_layout.h - the plan of a reduction in parts: its strategy, what comes before and after that, and where in the
 * workspace everything lies. It follows from the problem, the shape and the device.
 */
#ifndef TALLY_GPU_PARTS_LAYOUT_H
#define TALLY_GPU_PARTS_LAYOUT_H

#include "gpu/area.h"
#include "gpu/filled.h"
#include "gpu/sort.h"
#include "gpu/strategy.h"

#define PARTS_HEAD_WORDS 4 /* the first words of the workspace: the outcome */

/* Sizes and places are in words of the workspace unless the name says bytes. */
struct parts_layout {
    uint64_t n;                      /* elements in all rows, at most */
    const struct strategy *strategy; /* NULL: `fold` does all rows */
    bool alone;                      /* the strategy does all rows, and wants no order */
    bool is_filled;                  /* the strategy is given a filled copy of the array */
    struct filled_layout filled;     /* where the filled copy is */

    /* Before the strategy. */
    struct sort_layout by_id; /* brings the elements of the axis into the order of their groups */
    struct sort_layout shown; /* for the tree: puts the numbers of shown elements side by side */
    bool aside;      /* the sort by ids carries elements: what follows finds sorted groups */
    bool starts_own; /* the work has offsets that say where groups begin */
    bool gathered;   /* the tree's elements are copied to the workspace, side by side */
    uint64_t slots;  /* room for the values of so many leaves of trees */

    /* What the strategy leaves. */
    bool marked;    /* rows that it leaves are marked, a byte each */
    uint64_t left;  /* the bits or marks of these rows begin there */
    uint64_t own;   /* the strategy's own words begin there, at a multiple of 16 bytes */
    uint64_t flags; /* the last two words of that area: the strategy's flags (struct parts_run) */
    uint64_t piece, pieces; /* of `fold`: a piece's weight, and how many there are */
    bool is_cut;            /* a row may begin in one piece and end in another */
    unsigned grid, sums;    /* of `fold`; words of the records of a row's sums */

    /* Each is the word of the workspace at which its array begins. */
    uint64_t edges, starts, tree_starts, copy, values;
    size_t bytes; /* of the workspace */
    struct area area;
};

/* Plans a reduction by a strategy, which choice_for() has returned. */
void parts_lay_out(const struct queue *queue, const struct shaped *s,
                   const struct strategy *strategy, struct parts_layout *l);
/* Returns the words of the records of a row's sums. */
unsigned parts_sum_words(const struct problem *p);
/* Returns whether the work has words that say where the rows of the tree's elements begin. It has if a mask leaves
 * the tree fewer elements than the rows have, or if there are several vectors. */
bool parts_have_tree_starts(const struct shaped *s);

#endif
