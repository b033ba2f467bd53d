/*
 * column_rows.h - how the kernels of columns read their rows: ROWS_AT_ONCE of them at a time, a step of columns of each, and
 * bring the step's planes to registers and back; or one row at a time, each to columns of its own.
 */
#ifndef TALLY_CPU_COLUMN_ROWS_H
#define TALLY_CPU_COLUMN_ROWS_H

#include "cpu/column_arithmetic.h"
#include "cpu/columns.h"

#include "exact/round.h"

/* Defines a kernel that adds rows, kernel_name, which does what comes last; and its twin, each_kernel_name, which does it for
 * one row after another. `lane` is the type of the planes' lanes; `changed` is how many planes change for most rows. What comes
 * last may use `is_single`, a constant: 1 if there is one row, of whole steps, and columns have been cleared. */
#define COLUMN_KERNEL(kernel, name, lane, changed, ...)                                            \
    enum { CONCAT(changed_##kernel##_##name, TALLY_ISA) = (changed) };                             \
    ALWAYS_INLINE void CONCAT(add_##kernel##_##name, TALLY_ISA)(                                   \
        uint64_t * planes, size_t stride, const struct column_rows *in, size_t width,              \
        const int is_single, const ptrdiff_t row_ahead) {                                          \
        __VA_ARGS__                                                                                \
    }                                                                                              \
    static void CONCAT(kernel##_##name, TALLY_ISA)(uint64_t * planes, size_t stride,               \
                                                   const struct column_rows *in, size_t width) {   \
        CONCAT(add_##kernel##_##name, TALLY_ISA)(planes, stride, in, width, 0, 0);                 \
    }                                                                                              \
    static void CONCAT(each_##kernel##_##name, TALLY_ISA)(uint64_t * planes, size_t stride,        \
                                                          const struct column_rows *in,            \
                                                          const uint32_t *group, size_t width) {   \
        const size_t rows = in->rows, bytes = width * sizeof(lane);                                \
        const ptrdiff_t x_row = in->x_row, y_row = in->y_row,                                      \
                        row_ahead = x_row * (ptrdiff_t)(EACH_AHEAD / bytes + 1);                   \
        const char *x = in->x;                                                                     \
        for (size_t r = 0; r < rows; r++, x += x_row) {                                            \
            const char *y = in->y ? in->y + (ptrdiff_t)r * y_row : NULL;                           \
            const struct column_rows row = {x, y, x_row, y_row, 1, in->first + r, 1, 0};           \
            char *columns = (char *)planes + group[r] * bytes;                                     \
            const size_t later = r + EACH_STATES_AHEAD < rows ? r + EACH_STATES_AHEAD : rows - 1;  \
            for (size_t plane = 0; plane < (changed); plane++)                                     \
                PREFETCH_COLUMNS((const char *)(planes + plane * stride) + group[later] * bytes,   \
                                 bytes);                                                           \
            CONCAT(add_##kernel##_##name, TALLY_ISA)                                               \
            ((uint64_t *)(void *)columns, stride, &row, width, 1, row_ahead);                      \
        }                                                                                          \
    }
#define PREFETCH_COLUMNS(at, bytes)                                                                \
    for (size_t line_ = 0; line_ < (bytes); line_ += 64)                                           \
    __builtin_prefetch((at) + line_, 1)
/* Columns from the step at c on: a constant if is_single, so that code for a part of a step is dropped. */
#define LEFT (is_single ? (size_t)STEP : width - c)

/* A step's planes, vector by vector so that they stay in registers; of the last step only the columns that
 * are there are stored. */
#define FETCH(into, from, type)                                                                    \
    for (size_t k = 0; k < sizeof into / sizeof into[0]; k++)                                      \
    memcpy(&into[k], (const type *)(from) + k * LANES(type), TALLY_VECTOR)
#define STORE(to, from, type)                                                                      \
    do {                                                                                           \
        type some_[STEP];                                                                          \
        type *into_ = LEFT >= STEP ? (type *)(to) : some_;                                         \
        for (size_t k = 0; k < sizeof from / sizeof from[0]; k++)                                  \
            memcpy(into_ + k * LANES(type), &from[k], TALLY_VECTOR);                               \
        if (LEFT < STEP) memcpy(to, some_, LEFT * sizeof(type));                                   \
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
            if (is_single)                                                                         \
                PREFETCH(p, STEP * sizeof(element), row_ahead, 1);                                 \
            else                                                                                   \
                PREFETCH(p, STEP * sizeof(element), ahead, 2);                                     \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    } while (0)
_Static_assert(ROWS_AT_ONCE == 8, "rows are unrolled");
#define WHOLE_ROWS(element, base, pitch, some, step)                                               \
    whole_rows((base) + (ptrdiff_t)r0 * (pitch) + c * sizeof(element), pitch, r1 - r0,             \
               LEFT * sizeof(element), STEP * sizeof(element), (char *)(some), step)

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
