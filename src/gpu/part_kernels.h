/*
 * part_kernels.h - the kernels of kernels/parts.cu, which reduce in parts whatever the problem is.
 */
#ifndef TALLY_GPU_PART_KERNELS_H
#define TALLY_GPU_PART_KERNELS_H

#include "gpu/queue.h"

/* The kernels' places in queue->part[]. */
enum part_kernel {
    PART_FOLD,
    PART_JOIN,
    PART_CHECK,
    PART_STARTS,
    PART_GATHER,
    PART_REPORT,
    PART_QUICK,
    PART_FEW
};

/* Finds all of them. TALLY_EUNSUPPORTED where the device cannot run them. */
tally_status part_kernels_find(struct queue *queue);
/* Enqueues a launch of one that has been found. */
tally_status part_launch(struct queue *queue, enum part_kernel kernel, unsigned grid,
                         const struct gpu_argument *arguments, size_t count);

#endif
