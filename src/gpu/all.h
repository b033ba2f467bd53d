/*
 * all.h - all devices of a machine as one: "cuda:all", "opencl:all".
 */
#ifndef TALLY_GPU_ALL_H
#define TALLY_GPU_ALL_H

#include "device/device.h"
#include "gpu/tuning.h"
#include "problem/tree.h"

#include <stdbool.h>

/* Returns whether a device's options ask for all devices; *rest are then the other options. */
bool gpu_asks_all(const char *options, const char **rest);

/* Opens all devices of a kind as one, each with the same options. TALLY_EINVAL where `context` is not NULL. */
tally_status gpu_open_all(const struct device_kind *kind, const char *options, void *context,
                          tally_device **out);

/* The rest of an array in host memory that several devices fold: each takes the next free chunk. */
struct gpu_rest {
    size_t each;  /* elements of a chunk, or fewer where a device has no room for so many */
    size_t taken; /* elements that devices have taken so far */
    int ended;    /* a device has failed, or the call was stopped: no further chunk is taken */
};

/* Defined in device.c, as is the next function. Folds the chunks of a slice that this device takes
 * from *rest into a clear state. Its n becomes the number of their elements. Its indices count from
 * the start of the slice. */
tally_status gpu_fold_rest(tally_device *device, const struct problem *p, const struct slice *in,
                           struct gpu_rest *rest, struct state *into);

/* Folds n > 0 elements on one GPU device into a clear state, and leaves its n 0. `values` gets the
 * values of their leaves unless it is NULL. */
tally_status gpu_fold_resident(tally_device *device, const struct problem *p,
                               const struct slice *in, struct state *into, char *values);

#endif
