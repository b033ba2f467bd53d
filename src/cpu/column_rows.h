/*
 * column_rows.h - how the kernels of columns read their rows: ROWS_AT_ONCE of them at a time, a step of columns of each, and
 * bring the step's planes to registers and back.
 */
#ifndef TALLY_CPU_COLUMN_ROWS_H
#define TALLY_CPU_COLUMN_ROWS_H

#include "cpu/column_arithmetic.h"
#include "cpu/columns.h"

#include "exact/round.h"

/* A step's planes, vector by vector so that they stay in registers; of the last step only the columns that
 * are there are stored. */
#define FETCH(into, from, type)                                                                    \
    for (size_t k = 0; k < sizeof into / sizeof into[0]; k++)                                      \
    memcpy(&into[k], (const type *)(from) + k * LANES(type), TALLY_VECTOR)
#define STORE(to, from, type)                                                                      \
    do {                                                                                           \
        type some_[STEP];                                                                          \
        type *into_ = width - c >= STEP ? (type *)(to) : some_;                                    \
        for (size_t k = 0; k < sizeof from / sizeof from[0]; k++)                                  \
            memcpy(into_ + k * LANES(type), &from[k], TALLY_VECTOR);                               \
        if (width - c < STEP) memcpy(to, some_, (width - c) * sizeof(type));                       \
    } while (0)

#define EACH_ROW_BLOCK(element)                                                                    \
    KERNEL_PATH("of columns");                                                                     \
    for (size_t r0 = 0; r0 < in->rows; r0 += ROWS_AT_ONCE)                                         \
        for (size_t c = 0; c < width; c += STEP)

/* Does what comes last for rows [r0, r1) of the step at column c: `p` is the row's elements. Those of a last step that
 * is not whole are copied first and filled up. What is asked for ahead: the same columns of the next rows; where there
 * are none, the next columns. Rows that are far apart have loads of their own each, where registers suffice: a processor
 * tells its streams apart by the instructions that read them. */
#define EACH_ROW(element, base, pitch, ...)                                                        \
    do {                                                                                           \
        const size_t r1 = in->rows - r0 < ROWS_AT_ONCE ? in->rows : r0 + ROWS_AT_ONCE;             \
        const int dense = (pitch) == (ptrdiff_t)(width * sizeof(element));                         \
        const int apart = (pitch) >= COLUMNS_APART || (pitch) <= -COLUMNS_APART;                   \
        const ptrdiff_t next = (pitch)*ROWS_AT_ONCE;                                               \
        const ptrdiff_t ahead = dense ? (next > 8192 ? next : 8192) : r1 < in->rows ? next : 4096; \
        element some[ROWS_AT_ONCE][STEP];                                                          \
        ptrdiff_t step;                                                                            \
        const char *at_row = WHOLE_ROWS(element, base, pitch, some, &step);                        \
        if (TALLY_VECTOR == 64 && apart && r1 - r0 == ROWS_AT_ONCE) UNROLL(8)                      \
        for (size_t i_ = 0; i_ < ROWS_AT_ONCE; i_++) {                                             \
            const size_t r = r0 + i_;                                                              \
            (void)r;                                                                               \
            const element *p = (const element *)(at_row + (ptrdiff_t)i_ * step);                   \
            PREFETCH(p, STEP * sizeof(element), ahead, 2);                                         \
            __VA_ARGS__                                                                            \
        }                                                                                          \
        else for (size_t r = r0; r < r1; r++, at_row += step) {                                    \
            const element *p = (const element *)at_row;                                            \
            PREFETCH(p, STEP * sizeof(element), ahead, 2);                                         \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    } while (0)
_Static_assert(ROWS_AT_ONCE == 8, "rows are unrolled");
#define WHOLE_ROWS(element, base, pitch, some, step)                                               \
    whole_rows((base) + (ptrdiff_t)r0 * (pitch) + c * sizeof(element), pitch, r1 - r0,             \
               (width - c) * sizeof(element), STEP * sizeof(element), (char *)(some), step)

/* Returns where rows lie, and in *step how far apart; a step takes `whole` bytes of each, and
 * `bytes` are left. If they are shorter than a step, it is a copy filled up with zeros. */
ALWAYS_INLINE const char *whole_rows(const char *x, ptrdiff_t pitch, size_t rows, size_t bytes,
                                     size_t whole, char *copy, ptrdiff_t *step) {
    *step = pitch;
    if (bytes >= whole) return x;
    *step = (ptrdiff_t)whole;
    memset(copy, 0, rows * whole);
    for (size_t r = 0; r < rows; r++)
        memcpy(copy + r * whole, x + (ptrdiff_t)r * pitch, bytes);
    return copy;
}

#endif
