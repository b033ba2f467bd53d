/*
 * own_far.h - arrays too long for any memory, of which only the windows are there that some blocks touch.
 */
#ifndef TALLY_LADDER_OWN_FAR_H
#define TALLY_LADDER_OWN_FAR_H

#include "model/model.h"
#include "tally.h"

/* An array of elements of `size` bytes from the address `base` on, and its windows: counts[i] elements from number starts[i]
 * on. Windows ascend and are apart from each other. */
struct own_windows {
    uintptr_t base;
    size_t size;
    const uint64_t *starts, *counts;
    size_t windows;
};

/* Returns the address where the k-th array of a launch begins. */
uintptr_t own_far_base(unsigned k);
/* Maps the windows and makes them buffers of the device. They hold `values`, one window's elements after another's. Returns
 * false where the system does not give these addresses; then nothing is mapped. */
bool own_far_map(model_device *d, const struct own_windows *w, const void *values);
/* Copies the elements of all windows, one window's after another's. */
void own_far_read(const struct own_windows *w, void *values);
void own_far_unmap(model_device *d, const struct own_windows *w);

#endif
