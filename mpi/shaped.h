/*
 * shaped.h - this rank's part of many results: along axes, by segment or by group.
 *
 * Groups are fed as they are. The elements of axes and segments are first brought side by side, result by result;
 * then they are groups, too, whose numbers rise. Where an index is asked for, which counts within the result, or the
 * tree, whose leaves count within the result, each result has a state of its own instead: message.c takes one after the other.
 *
 * Arrays of a device come to the host first, but for long results, each of which the device reduces (staged.h).
 * What begins a part takes all the memory that its end will need, so that what the ranks have agreed on cannot fail later.
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

/* What one rank sends to all where it alone knows the values. */
struct answer {
    int64_t status;         /* a tally_status */
    int64_t which;          /* the result that has it; -1: there are no values at all */
    unsigned char values[]; /* those of all results, side by side; then the next value of all */
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

/* Begins a part. Its groups are fed when this returns. `out` may be NULL unless is_wanted. shaped_end() also where this
 * fails. */
void shaped_begin(struct shaped *s, tally_device *device, int is_resident,
                  const tally_problem *problem, const tally_shape *shape, const void *x,
                  const void *y, void *const out[], int is_wanted);
void shaped_end(struct shaped *s);

/* Where each result has a state: how many elements of result i this rank has, and feeds a state with them. */
size_t shaped_length(const struct shaped *s, size_t i);
tally_status shaped_feed(const struct shaped *s, tally_state *state, size_t i);

/* Put the values of all groups, or of result i, into the answer, whose status is that of the first that fails. */
void shaped_lower_groups(struct shaped *s);
void shaped_lower_state(struct shaped *s, size_t i, const tally_state *state);
/* Writes the answer's values, of which there are some, to out[], and returns its status; *line becomes why it is a failure: one
 * result's, whose values are written nevertheless. */
tally_status shaped_write(const struct shaped *s, char *line, size_t size);

#endif
