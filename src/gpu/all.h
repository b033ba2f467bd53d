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

/* Defined in device.c. Folds n > 0 elements that lie on one GPU device into a clear state, whose n it leaves 0; where
 * `values` is not NULL, it gets the values of their leaves. */
tally_status gpu_fold_resident(tally_device *device, const struct problem *p,
                               const struct slice *in, struct state *into, char *values);

#endif
