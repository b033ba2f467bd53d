/*
 * shown.h - skipped NaNs: which elements of a problem with skip_nan are there.
 *
 * An element is shown if neither x nor y has a NaN there. A problem with skip_nan has the results that the problem
 * without the option has for the shown elements alone. No kernel and no schedule knows of the option. A shape gets a
 * mask, which all schedules honour. The shown elements of a whole array are packed side by side, a piece at a time.
 * Where nothing is hidden, nothing is copied.
 */
#ifndef TALLY_SHOWN_H
#define TALLY_SHOWN_H

#include "base/scratch.h"
#include "device/device.h"

#define SHOWN_BLOCK 4096 /* elements that are looked at together */

/* Returns the problem without skip_nan. */
struct problem shown_problem(const struct problem *p);

/* Sets *is_all to whether all elements are shown. TALLY_ESTOPPED. */
tally_status shown_is_all(const struct problem *p, const struct slice *in, int *is_all);

/* The shown elements of a slice, in pieces. Each piece but the last has a multiple of SHOWN_BLOCK elements. */
struct shown_pieces {
    tally_type type;
    struct slice left; /* elements that have not been looked at */
    uint64_t next;     /* the index of the first of them in the slice */
    struct slice piece;
    uint64_t *index; /* each element's index in the slice; NULL if no index is wanted */
    size_t room;     /* elements of a piece, at most */
    struct scratch scratch;
    unsigned char shown[SHOWN_BLOCK];
    /* Room for a piece, used where nothing may be allocated or there is no memory. */
    uint64_t own_index[SHOWN_BLOCK];
    _Alignas(64) char own_x[SHOWN_BLOCK * 8];
    _Alignas(64) char own_y[SHOWN_BLOCK * 8];
};

/* Begins to pack a slice. Allocates room for large pieces, unless the device is the calling thread or the slice is
 * short; shown_end() frees it. */
void shown_begin(struct shown_pieces *s, const tally_device *device, const struct problem *p,
                 const struct slice *in);
/* Makes s->piece and s->index those of the next shown elements; s->piece.n is 0 where there are no more. TALLY_ESTOPPED. */
tally_status shown_next(struct shown_pieces *s);
void shown_end(struct shown_pieces *s);

#define SHOWN_AXES (2 * TALLY_DIMS_MAX) /* more than any shape has */

/* Axes along which a shape's arrays move, from the outermost to the innermost of the mask. Neighbouring axes are
 * merged where one step along the outer one is as long as the whole inner one in all arrays. */
struct shown_axes {
    unsigned count; /* at least one */
    struct extent of[SHOWN_AXES];
};

/* Returns whether a shape's problem skips NaNs, and there are elements that may be some. */
int shown_is_needed(const struct shaped *s);
/* Sets the strides of the shape's mask to those of a new mask with a byte for each element, and *from to the axes
 * with the strides of the old mask. Returns the bytes of the new mask, or SIZE_MAX if they overflow. */
size_t shown_plan(struct shaped *s, struct shown_axes *from);
/* Gives a shape whose problem has skip_nan a mask that hides the NaNs, and what the shape's own mask hides, if there are
 * any NaNs. The caller frees *owned. The arrays lie in host memory. TALLY_ENOMEM, TALLY_ESTOPPED. */
tally_status shown_mask(struct shaped *s, unsigned char **owned);

#endif
