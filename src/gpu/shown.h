/*
 * gpu/shown.h - skipped NaNs of arrays in a GPU's memory: reductions in parts with a mask that the device makes
 * (device/shown.h). The mask lies in the workspace, behind what parts.h wants. Problems without skip_nan, and
 * shapes without elements, go to parts.h as they are.
 */
#ifndef TALLY_GPU_SHOWN_H
#define TALLY_GPU_SHOWN_H

#include "gpu/parts.h"

/* Do what parts_workspace(), parts_prepare() and parts_enqueue() do. */
size_t shown_workspace(const struct queue *queue, const struct shaped *s);
tally_status shown_prepare(struct queue *queue, const struct shaped *s);
tally_status shown_enqueue(struct queue *queue, const struct parts_call *call);

/* Do this for an array as a whole, of n elements; `results` gets a tally_result for each value. */
size_t shown_workspace_whole(const struct queue *queue, const struct problem *p, uint64_t n);
tally_status shown_prepare_whole(struct queue *queue, const struct problem *p, uint64_t n);
tally_status shown_enqueue_whole(struct queue *queue, const struct problem *p,
                                 const struct inputs *in, struct gpu_memory *work,
                                 struct gpu_memory *results);

#endif
