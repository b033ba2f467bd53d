/*
 * column_rows.h - macros by which the kernels of columns read their rows. They take a step of columns of ROWS_AT_ONCE
 * rows at a time, with the step's planes in registers; or one row at a time, which is added to columns of its own.
 */
#ifndef TALLY_CPU_COLUMN_ROWS_H
#define TALLY_CPU_COLUMN_ROWS_H

#include "cpu/column_arithmetic.h"
#include "cpu/columns.h"

#include "exact/round.h"

/* Defines kernel_name, which adds rows (column_form.add), and each_kernel_name, which adds each row to columns of its
 * own (column_form.each). The last arguments are the body of both. `lane` is the type of the planes' lanes; `changed`
 * is how many planes change for most rows. The body may use `is_single`, a constant: 1 if there is one row, of whole
 * steps, and columns have been cleared. */
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
/* How many columns are left from c on. A constant if is_single, so that code for a part of a step is dropped. */
#define LEFT (is_single ? (size_t)STEP : width - c)

/* Load and store a step's planes, vector by vector so that they stay in registers. Of the last step only the
 * columns that exist are stored. */
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

/* Runs the last arguments for each of rows [r0, r1) of the step at column c; `p` points to the row's elements.
 * Elements of a last step that is not whole are first copied and filled up. Prefetches the same columns of the next
 * rows; after the last rows, the next columns. Rows that are far apart are unrolled, where registers suffice, so that
 * each has loads of its own: a processor tells its streams apart by the instructions that read them. */
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

/* Returns where a step's rows lie, and sets *step to the bytes from one to the next. A step takes `whole`
 * bytes of a row, of which `bytes` are left. If these are fewer, returns a copy filled up with zeros. */
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
