/*
 * staged.h - the arrays of a shape that lie in a device's memory: brought to the host, or left where they are.
 *
 * Offsets always come to the host. Elements that lie side by side, result by result, stay where they are if there are
 * many of each result, and are then reduced by the device. All others come to the host, with ids and mask.
 */
#ifndef TALLY_MPI_STAGED_H
#define TALLY_MPI_STAGED_H

#include "tally.h"

/* Where the elements of a result begin, in elements from x and from y. */
struct run {
    ptrdiff_t x, y;
    size_t n;
};

struct staged {
    tally_shape shape; /* of the arrays below: all its pointers are the host's */
    const void *x, *y; /* the host's; the device's if there are runs */
    struct run *run;   /* [results] of elements that stay on the device; else NULL */
    void *owned[4];    /* memory for copies */
    int owns;
};

/* Brings the arrays of a shape, whose elements have so many bytes. Call staged_free() also if this fails. */
tally_status staged_bring(struct staged *s, tally_device *device, size_t element,
                          const tally_shape *shape, const void *x, const void *y, size_t results);
void staged_free(struct staged *s);

#endif
