/*
 * graphs.h - launches of one call that go to the device together.
 *
 * The host takes some 3 us for a launch, and 2 for that of a graph, however many kernels that has. So the launches of
 * a call are held back until all are there. When the same kernels have gone to the same queue in grids of the same
 * sizes several times, they are made a graph; then a call sets the graph's arguments, and launches it. (A graph that
 * was given other kernels or grids each time would save nothing.) Held launches go one by one if there is only one,
 * if a caller captures the queue into a graph of its own, or if a graph cannot be made.
 *
 * Launches of programs that may be dropped (gpu/cache.h) are not held back: a graph would keep a dropped kernel.
 */
#ifndef TALLY_CUDA_GRAPHS_H
#define TALLY_CUDA_GRAPHS_H

#include "cuda/context.h"

/* Holds launches back from here on until graphs_send(). Does nothing if there is no memory for that. */
void graphs_hold(struct gpu *gpu);

/* Holds back a launch, and copies its arguments. Returns whether it did: false where launches are not held back now, or
 * this one cannot be. */
bool graphs_take(struct gpu *gpu, struct gpu_kernel *kernel, unsigned grid, unsigned block,
                 const struct gpu_argument *arguments, size_t count);

/* Puts the held launches on their queue. Every call whose work has to follow them there calls this first, before
 * cuda_begin(). */
tally_status graphs_flush(struct gpu *gpu);

/* Returns whether anything is held: then no memory may be freed. */
bool graphs_has_held(const struct gpu *gpu);

/* Does graphs_flush(), and holds no launches back from here on. */
tally_status graphs_send(struct gpu *gpu);

/* Frees all graphs; with `alive` false the context, and they with it, are gone. */
void graphs_close(struct gpu *gpu, bool alive);

#endif
