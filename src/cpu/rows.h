/*
 * rows.h - results one after another: each folded from its own elements by the kernels for whole arrays.
 *
 * A row is the elements of one result: a segment, or the elements of an array for which some indices are fixed. Rows
 * can have any strides, a mask and any operator: elements that do not lie side by side are gathered in pieces. The
 * work is cut by elements, not by rows, so that neither a giant row nor a million empty ones make a thread wait; a
 * row that is cut is merged from the states of its pieces (for the canonical tree it is cut where leaves end).
 */
#ifndef TALLY_CPU_ROWS_H
#define TALLY_CPU_ROWS_H

#include "cpu/cpu.h"

struct rows {
    const struct shaped *s; /* which results go where; for TALLY_AXES also where rows lie */
    /* Otherwise row i is x[start[i]..start[i + 1]), and y and mask alike. If `vectors`, row i is part i / s->vectors
     * of vector i % s->vectors: elements [start[part], start[part + 1]) along the axis, or those whose indices along
     * the axis are position[start[part]..start[part + 1]). */
    const void *start;
    int vectors;
    tally_type start_type;
    const char *x, *y;
    const unsigned char *mask;
    int absolute;              /* indices count in the caller's array, not from the row's start */
    const uint64_t *position;  /* NULL, or each element's index in the caller's array */
    const unsigned char *only; /* NULL, or a byte a row: 1 where it is wanted */
};

/* Folds and lowers all rows that are wanted; notes in *absence the first result that does not exist. */
tally_status cpu_rows(struct cpu_device *d, const struct rows *rows, struct absence *absence);

/* Copies those of n elements whose bytes of the mask are not 0, and returns how many these are. Elements have
 * `element` bytes and lie x_step elements apart; bytes of the mask lie mask_step bytes apart. `to` has room for n
 * elements. */
size_t mask_pass(char *to, const char *x, ptrdiff_t x_step, size_t element,
                 const unsigned char *mask, ptrdiff_t mask_step, size_t n);

/* Runs tasks, `body` as for pool_loop(), on all threads of the device, or on the calling one alone where that is as
 * fast or the others are busy. bytes: how many all tasks read.
 * TALLY_ESTOPPED: some tasks have not been run. */
tally_status cpu_share(struct cpu_device *d, size_t bytes, size_t tasks,
                       void (*body)(void *context, size_t task, unsigned worker), void *context);

#endif
