/*
 * checks.h - what every machine behind gpu.h must do, checked through gpu.h alone.
 */
#ifndef TALLY_TESTS_GPU_CHECKS_H
#define TALLY_TESTS_GPU_CHECKS_H

#include "../c/testing.h"

#include "gpu/gpu.h"
#include "ladder/arithmetic.h"
#include "ladder/rungs.h"

/* Memory: round trips, ranges, fills, copies, nothing at all, and calls that reach too far. */
void check_memory(const struct gpu_api *api);
/* Builds: the same program again, a kernel's name that is none, texts that do not compile. */
void check_builds(const struct gpu_api *api);
/* A few rungs of the ladder, several types, against plain loops. */
void check_ladder(const struct gpu_api *api);
/* The time between two marks. */
void check_time(const struct gpu_api *api);
/* Opens, works and closes `times` times; the process must not grow by more than `bytes`. */
void check_reopening(const struct gpu_api *api, unsigned times, size_t bytes);
/* Large writes, at odd places and of odd sizes, of memory that is changed as soon as write() returns. */
void check_writes(const struct gpu_api *api, struct gpu *gpu);
/* The same without the largest, where there is no ring (gpu/ring.h). */
void check_writes_without_ring(const struct gpu_api *api, struct gpu *gpu);
/* Launches and fills on a queue of the caller's stay in one order with copies. */
void check_queue(const struct gpu_api *api, struct gpu *gpu, void *queue, void (*wait)(void *));
/* Memory that a kernel writes and the host looks at. */
void check_visible(const struct gpu_api *api, struct gpu *gpu);
/* Several threads, each with its own device. */
void check_threads(const struct gpu_api *api, unsigned threads, unsigned rounds);
/* There is no such device, and that is said. */
void check_absence(const struct gpu_api *api, size_t i);

/* The sum of x[0..n), i32, by a rung of the ladder whose grid is free: what all of this uses for work. */
tally_status sum_i32(const struct gpu_api *api, struct gpu *gpu, ladder_rung rung, const int32_t *x,
                     size_t n, int64_t *sum);

#endif
