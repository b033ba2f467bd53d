/*
 * operand.h - an input of a reduction in parts: an array, a mask, ids or offsets; whole in memory, or
 * handed on in order, as many elements at a time as are wanted.
 *
 * Every function that returns false has already written the line that says why.
 */
#ifndef TALLY_CLI_OPERAND_H
#define TALLY_CLI_OPERAND_H

#include "input/source.h"

struct operand {
    struct source source;
    bool is_open;
    uint64_t n;                /* elements; SOURCE_UNKNOWN until the end of a pipe */
    size_t element;            /* bytes of one */
    const unsigned char *all;  /* all of them, or NULL */
    uint64_t at;               /* elements that have been handed on */
    unsigned char *buffer;     /* owned */
    size_t room;               /* bytes of it */
    const unsigned char *left; /* of the source's last chunk, what has not been handed on */
    size_t left_count;
};

bool operand_open(struct operand *o, const char *name, const struct reading *how);
void operand_close(struct operand *o); /* also one that is all zero */

/* Maps it, where that can be. */
void operand_map(struct operand *o);
/* Makes it whole, mapped or read; a line where there is no memory. */
bool operand_load(struct operand *o);

/* The next elements, `wanted` of them or, at the end, fewer: *got at *x, until the next call. */
bool operand_next(struct operand *o, size_t wanted, const void **x, size_t *got);
/* Passes over so many elements, or to the end. */
bool operand_skip(struct operand *o, uint64_t count);

/* Its shape as a text such as (3, 4). Returns text. */
enum { SHAPE_TEXT = 400 };
const char *operand_shape(const struct operand *o, char text[SHAPE_TEXT]);
/* Returns whether the two have their elements in the same places: as many, and in one shape and
 * order. */
bool operand_matches(const struct operand *o, const struct operand *x);
/* Set the strides of its dimensions, in elements; and those of an array that has the lengths of x, but for those that are
 * 1, where x has the dimensions. */
void operand_strides(const struct operand *o, ptrdiff_t stride[NPY_DIMS]);
void operand_strides_like(const struct operand *o, const struct source *x,
                          ptrdiff_t stride[NPY_DIMS]);

#endif
