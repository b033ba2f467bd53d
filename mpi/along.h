/*
 * along.h - segments and groups along an axis of an array: finds the one that each index of the axis belongs to.
 */
#ifndef TALLY_MPI_ALONG_H
#define TALLY_MPI_ALONG_H

#include "tally.h"

/* Returns whether a shape cuts an axis of an array, and not a whole one. */
int is_along(const tally_shape *shape);
/* Returns the dimension that such a shape cuts. */
unsigned axis_of(const tally_shape *shape);
/* Returns how many elements segments or groups cut: the axis' length, or n. */
size_t length_along(const tally_shape *shape);
/* Returns segment i's offset along what is cut. */
uint64_t offset_along(const tally_shape *shape, size_t i);
/* Writes to part[0 .. length_along()) the number of each index's segment or group, or SIZE_MAX where it has none. The shape's
 * arrays are the host's, and its offsets and ids are good. */
void number_parts(const tally_shape *shape, size_t *part);

#endif
