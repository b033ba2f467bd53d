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
    const unsigned char *all;  /* all elements, or NULL */
    uint64_t at;               /* elements that have been handed on */
    unsigned char *buffer;     /* owned */
    size_t room;               /* bytes of it */
    const unsigned char *left; /* elements of the source's last chunk that are not handed on yet */
    size_t left_count;
};

bool operand_open(struct operand *o, const char *name, const struct reading *how);
void operand_close(struct operand *o); /* also one that is all zero */

/* Maps the file if its elements can be used as they are. */
void operand_map(struct operand *o);
/* Makes `all` the elements, mapped or read. Returns false, with a message, if memory is short. */
bool operand_load(struct operand *o);

/* Gives the next elements, `wanted` of them or, at the end, fewer: *got elements at *x, until the
 * next call. */
bool operand_next(struct operand *o, size_t wanted, const void **x, size_t *got);
/* Passes over so many elements, or to the end. */
bool operand_skip(struct operand *o, uint64_t count);

/* Writes the operand's shape as a text such as (3, 4). Returns text. */
enum { SHAPE_TEXT = 400 };
const char *operand_shape(const struct operand *o, char text[SHAPE_TEXT]);
/* Returns whether the two have as many elements, and in one shape but for dimensions of length 1. C
 * and Fortran order are not compared. */
bool operand_matches(const struct operand *o, const struct operand *x);
/* operand_strides() sets the strides of the operand's dimensions, in elements.
 * operand_strides_like() sets them for the dimensions of x, whose lengths are the operand's but for
 * some that are 1. */
void operand_strides(const struct operand *o, ptrdiff_t stride[NPY_DIMS]);
void operand_strides_like(const struct operand *o, const struct source *x,
                          ptrdiff_t stride[NPY_DIMS]);

#endif
