/*
 * sort.h - brings the elements of groups into the order of their ids, and those that a mask shows side by side
 * (kernels/sort.cu).
 *
 * A sort carries the elements themselves (of one array or two), or their numbers. It works in the workspace of the
 * reduction: struct sort_layout says where.
 */
#ifndef TALLY_GPU_SORT_H
#define TALLY_GPU_SORT_H

#include "gpu/area.h"
#include "gpu/strategy.h"

/* One sort: what it is to do, and its places in the workspace, in words. */
struct sort_layout {
    bool is_wanted;
    bool compacts;    /* it uses no ids: it puts the elements that a mask shows before all others */
    uint64_t n;       /* elements before the sort */
    unsigned arrays;  /* arrays of elements that the sort carries along; 0: elements' numbers */
    uint64_t starts;  /* a sort of one pass writes there where groups begin; 0: nowhere */
    unsigned passes;  /* of the sort */
    unsigned digit;   /* bits of the digit of each pass */
    bool wide;        /* numbers have 64 bits, not 32 */
    uint64_t workers; /* which count digits: kernels/sort.cu */
    /* The sort leaves array a at carried[a][0] and the ids at keys[0]. Before its last pass they are at carried[a][1]
     * and keys[1]. */
    uint64_t carried[2][2], keys[2], counts, totals;
};

/* Returns whether groups need a sort, unless a strategy takes them as they are. */
bool sort_is_needed(const struct shaped *s);
/* Returns whether the sort carries the elements. It does not for an index, which counts in the caller's array, nor for
 * vectors, which would be as many copies. */
bool sort_carries_elements(const struct shaped *s);
/* Returns the shape after a sort that carries the elements: those of a group lie side by side, and groups in order. */
struct shaped sort_outcome(const struct shaped *s);
/* Returns whether a device can sort the groups, if they need that. It cannot if there are too many groups. */
bool sort_is_possible(const struct shaped *s);
/* Fails with TALLY_EUNSUPPORTED if not sort_is_possible(). */
tally_status sort_check(const struct shaped *s);

/* Plans the sort, and takes its places from the area. The caller has set is_wanted, compacts, n and arrays. */
void sort_lay_out(const struct queue *queue, const struct shaped *s, struct sort_layout *o,
                  struct area *area);
/* Finds the sort's kernels. */
tally_status sort_prepare(struct queue *queue);
/* Enqueues the sort. `plan` is that of the axis that is sorted. */
tally_status sort_enqueue(struct queue *queue, const struct parts_call *c,
                          const struct sort_layout *o, const struct parts_plan *plan);

/* Returns the grid for a small kernel whose threads look at some of n ids each: at most the blocks of it that the device
 * runs at once. */
unsigned sort_looks_grid(const struct queue *queue, uint64_t n);

#endif
