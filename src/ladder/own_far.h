/*
 * own_far.h - arrays too long for any memory, of which only the windows are there that some blocks touch.
 */
#ifndef TALLY_LADDER_OWN_FAR_H
#define TALLY_LADDER_OWN_FAR_H

#include "model/model.h"
#include "tally.h"

/* Where the k-th array of a launch begins. */
uintptr_t own_far_base(unsigned k);
/* Maps the windows of an array and makes them buffers of the device; values: the windows' elements, one after another. false: not here. */
bool own_far_map(model_device *d, uintptr_t base, size_t size, const uint64_t *starts,
                 const uint64_t *counts, size_t windows, const void *values);
void own_far_read(uintptr_t base, size_t size, const uint64_t *starts, const uint64_t *counts,
                  size_t windows, void *values);
void own_far_unmap(model_device *d, uintptr_t base, size_t size, const uint64_t *starts,
                   const uint64_t *counts, size_t windows);

#endif
