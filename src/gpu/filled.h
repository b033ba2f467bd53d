/*
 * filled.h - filled copies: an array's elements side by side in the workspace, and a neutral element in place of each
 * that a mask hides (kernels/filled.cu).
 *
 * So the fast kernels for rows and columns can also reduce arrays with a mask, or whose elements lie apart. If results
 * depend on how many elements of each row the mask shows, these counts lie beside the copy.
 */
#ifndef TALLY_GPU_FILLED_H
#define TALLY_GPU_FILLED_H

#include "device/shown.h"
#include "gpu/queue.h"
#include "gpu/strategy.h"

/* The places of the filled copy in the workspace, in words. */
struct filled_layout {
    uint64_t to, counts; /* the first word of the copy; that of the counts, 0 without counts */
    bool in_order;       /* the copy's axes are in the order of rows */
};

/* Makes *copy the shape that a filled copy of the shape's array has, in the order of the axes in
 * memory or, `in_order`, of rows. Returns whether there can be such a copy: it is for arrays that
 * are large, and where the device has room. */
bool filled_shape(const struct queue *queue, const struct shaped *s, bool in_order,
                  struct shaped *copy);
/* Takes the places of the copy and of the counts from the area. */
void filled_lay_out(const struct shaped *copy, bool in_order, struct area *area,
                    struct filled_layout *l);
tally_status filled_prepare(struct queue *queue);
/* Enqueues the launches that write the copy of the call's array, and the counts, to the call's workspace. `plan` is
 * that of the call. */
tally_status filled_enqueue(struct queue *queue, const struct parts_call *call,
                            const struct parts_plan *plan, const struct filled_layout *l);
/* Enqueues the launch that makes a mask of `n` bytes, from word `to` of the call's work on. It hides the NaNs of the
 * call's array, and the elements that the call's own mask hides. `axes` are those of shown_plan(). */
tally_status filled_show(struct queue *queue, const struct parts_call *call,
                         const struct shown_axes *axes, uint64_t n, uint64_t to);
/* Enqueues a tally_result for each value of a whole array, whose values lie in the call's work from word `values` on. */
tally_status filled_tell(struct queue *queue, const struct parts_call *call, uint64_t values,
                         struct gpu_memory *results);
/* Returns whether the kernels that reduce the copy must know that it is one: they need counts, or
 * give indices. */
bool filled_matters(const struct shaped *copy);
/* Returns the bits of the neutral element, which stands for hidden ones. */
uint64_t filled_neutral(const struct problem *p);

#endif
