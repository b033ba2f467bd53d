/*
 * shaped.h - this rank's part of many results: along axes, by segment or by group.
 *
 * Groups are fed as they are. The elements of axes and segments are first copied side by side, result by result, and
 * then fed as groups whose numbers rise. But indices, and the leaves of the canonical tree, count within a result. For
 * these each result has a state of its own: message.c makes one after the other.
 *
 * Arrays of a device come to the host first, but for long results, each of which the device reduces (staged.h).
 * shaped_begin() takes all memory that the end will need, so that a call on which the ranks have agreed cannot fail
 * later.
 */
#ifndef TALLY_MPI_SHAPED_H
#define TALLY_MPI_SHAPED_H

#include "staged.h"

/* Elements of all results, side by side: those of result i are [start[i], start[i + 1]). */
struct gathered {
    size_t *start;
    char *x, *y;
    uint64_t *id;     /* of each element its result */
    ptrdiff_t *place; /* of each result its place in out[] */
};

/* The message in which rank 0 sends the values to all, where it alone knows them. */
struct answer {
    int64_t status;         /* a tally_status */
    int64_t which;          /* the result that has this status; -1: there are no values */
    unsigned char values[]; /* the first value of all results, side by side; then the second */
};

struct shaped {
    tally_device *device;
    const tally_problem *problem;
    /* The shape, until shaped_begin() returns, and the arrays: the host's, but for elements that stay on a device. */
    const tally_shape *shape;
    const void *x, *y;
    void *out[TALLY_VALUES_MAX]; /* NULL where none are wanted on this rank */
    size_t results, values;
    struct staged staged;
    struct gathered g;    /* of axes and segments */
    tally_groups *groups; /* NULL where each result has a state */
    struct answer *answer;
    size_t answer_bytes;
    tally_status status; /* not TALLY_OK: this rank cannot go on, and `line` says why */
    char line[200];
};

/* Begins a part. Its groups are fed when this returns. `out` may be NULL unless is_wanted. Call shaped_end()
 * also if this fails. */
void shaped_begin(struct shaped *s, tally_device *device, int is_resident,
                  const tally_problem *problem, const tally_shape *shape, const void *x,
                  const void *y, void *const out[], int is_wanted);
void shaped_end(struct shaped *s);

/* For results that have a state each: return how many elements of result i this rank has, and feed them to a
 * state. */
size_t shaped_length(const struct shaped *s, size_t i);
tally_status shaped_feed(const struct shaped *s, tally_state *state, size_t i);

/* Put the values of all groups, or of result i, into the answer. Its status becomes that of the first result that
 * fails. */
void shaped_lower_groups(struct shaped *s);
void shaped_lower_state(struct shaped *s, size_t i, const tally_state *state);
/* Writes the answer's values, which must be there, to out[], and returns its status. A failure is that of one
 * result: the values are written nevertheless, and line[] says why. */
tally_status shaped_write(const struct shaped *s, char *line, size_t size);

#endif
