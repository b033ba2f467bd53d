/*
 * vectors.h - segments and groups along an axis, for devices that know those of one vector only.
 *
 * The vectors are copied one behind another, some at a time. The segments of all of them are then the segments of one
 * long vector, and the groups are its groups: group g of vector v has the number v * count + g. So a shape of any strides
 * is few reductions, whatever the number of its vectors.
 */
#ifndef TALLY_VECTORS_H
#define TALLY_VECTORS_H

#include "device/device.h"

/* Reduces the segments or groups of a shape that is not flat, in host memory, by the device's shaped(). Needs memory
 * for copies of VECTORS_COPIED elements or of one vector, and where there are groups for as many ids. */
tally_status shaped_by_vectors(tally_device *device, const struct shaped *s);

/* Check all offsets, or all ids, in order. TALLY_EINVAL with the line about the first that is wrong. Unless
 * s->skip_outside, an id outside of all groups is wrong if the mask shows one of its elements. */
tally_status vectors_check_offsets(const struct shaped *s);
tally_status vectors_check_ids(const struct shaped *s);

/* Returns in .x, .y and .mask how far a vector's elements lie from those of vector 0; in .out and .number the place
 * and the number of its first result. */
struct extent vector_at(const struct shaped *s, size_t vector);

#endif
