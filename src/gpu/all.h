/*
 * all.h - all devices of a machine as one: "cuda:all", "opencl:all".
 */
#ifndef TALLY_GPU_ALL_H
#define TALLY_GPU_ALL_H

#include "device.h"
#include "tree.h"

#include <stdbool.h>

#define GPU_TREE_LEVEL 10 /* subtrees of 2^10 leaves: 2^22 elements a value that the host sees */

/* Whether a device's options ask for all devices; *rest is then what else they say. */
bool gpu_asks_all(const char *options, const char **rest);

/* Opens all devices of a kind as one, each with the same options. TALLY_EINVAL where `context` is not NULL. */
tally_status gpu_open_all(const struct device_kind *kind, const char *options, void *context,
                          tally_device **out);

/* What is left of an array in host memory that several devices fold: each takes the next chunk that nobody has. */
struct gpu_rest {
    size_t each;  /* elements of a chunk, or fewer where a device has no room for so many */
    size_t taken; /* elements */
    int ended; /* a device has failed, or the caller has been told to stop: nobody takes another */
};

/* The next two are defined in device.c. Folds the chunks of a slice that this device takes from *rest into a clear state:
 * n becomes how many elements these had, and indices are the slice's. */
tally_status gpu_fold_rest(tally_device *device, const struct problem *p, const struct slice *in,
                           struct gpu_rest *rest, struct state *into);

/* Folds n > 0 elements that lie on one GPU device into a clear state, whose n it leaves 0; where
 * `values` is not NULL, it gets the values of their leaves. */
tally_status gpu_fold_resident(tally_device *device, const struct problem *p,
                               const struct slice *in, struct state *into, char *values);

#endif
