/*
 * rows.h - results one after another: each folded from its own elements by the kernels for whole arrays.
 *
 * A row is what one result is reduced from: a segment, or the elements of an array with some indices held
 * fast. Any strides, a mask, any operator: what does not lie side by side is gathered in pieces. The work is
 * cut by elements, not by rows, so that neither a giant row nor a million empty ones hold anybody up; a row
 * that is cut is merged from the states of its pieces (over the canonical tree: cut where leaves end).
 */
#ifndef TALLY_CPU_ROWS_H
#define TALLY_CPU_ROWS_H

#include "cpu/cpu.h"

struct rows {
    const struct shaped *s; /* what to write where; of TALLY_AXES also where rows lie */
    /* Of others row i is x[start[i]..start[i + 1]), and y and mask alike. Where `vectors`, row i is part i / s->vectors of
     * vector i % s->vectors: elements [start[part], start[part + 1]) along the axis, or those that position[] has there. */
    const void *start;
    int vectors;
    tally_type start_type;
    const char *x, *y;
    const unsigned char *mask;
    int absolute;              /* indices count in the caller's array, not from the row's start */
    const uint64_t *position;  /* NULL, or where each of these elements stood there */
    const unsigned char *only; /* NULL, or a byte a row: 1 where it is wanted */
};

/* Folds and lowers all rows that are wanted; notes in *absence the first result that does not exist. */
tally_status cpu_rows(struct cpu_device *d, const struct rows *rows, struct absence *absence);

/* Copies those of n elements of `element` bytes, `x_step` of them apart, whose bytes of the mask, `mask_step` apart, are not 0.
 * Returns how many these are; there is room for n. */
size_t mask_pass(char *to, const char *x, ptrdiff_t x_step, size_t element,
                 const unsigned char *mask, ptrdiff_t mask_step, size_t n);

/* Runs tasks, `body` as for pool_loop(), on all threads of the device, or on the calling one alone where that is as
 * fast or the others are busy. bytes: how many all tasks read.
 * TALLY_ESTOPPED: some tasks have not been run. */
tally_status cpu_share(struct cpu_device *d, size_t bytes, size_t tasks,
                       void (*body)(void *context, size_t task, unsigned worker), void *context);

#endif
