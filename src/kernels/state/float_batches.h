/*
 * float_batches.h - batches of several sums at once (float_sums.h), of tiles that are looked at before they are added: sums of
 * floats shorter than f64, and all sums with squares.
 *
 * Sums without squares: while a batch's exponents are few enough apart, plain additions are exact; while they
 * are not too far apart for that, so are additions whose errors are added up plainly. Squares: a batch's sum begins at a
 * power of two that its squares do not double, so that FastTwoSum gives an addition's error; with f64 the sum of
 * elements begins so, too. Of shorter floats nothing is lost then; of f64 so little that most variances and
 * norms are certain all the same (certain/variance.h).
 *
 * Before including this header, include halves.h and float_sums.h.
 */
#ifndef TALLY_STATE_FLOAT_BATCHES_H
#define TALLY_STATE_FLOAT_BATCHES_H

#define ENDS_EARLY (!HAS_SQUARES || !LONG)

/* The elements that a thread has added plainly since its last batch went to the whole state. */
typedef struct batch {
    double sum[VECTOR], error[VECTOR]; /* of elements; `error`: what their additions have lost */
#if HAS_SQUARES
    double square[VECTOR], rest[VECTOR]; /* the same of squares */
#endif
#if HAS_SQUARES && LONG
    u32 high
        [VECTOR]; /* each column's window: the largest exponent field of elements that fit, or 0 */
#elif HAS_SQUARES
    double base; /* where `square` began */
#endif
    u32 most, least; /* the bounds of certain/batch.h */
    u32 room;        /* rows that the batch has room for */
    u32 rough;       /* not 0: something may have been lost */
    u32 used;        /* the batch has elements */
    u32 before;      /* the whole has been begun: it is in memory, as it is seldom needed */
} batch;

INLINED void begin_batch(batch *b, u32 columns) {
    UNROLL
    for (u32 v = 0; v < columns; v++) {
        b->sum[v] = -0.0;
        b->error[v] = 0;
#if HAS_SQUARES
        b->square[v] = b->rest[v] = 0;
#endif
    }
#if HAS_SQUARES && LONG
    UNROLL
    for (u32 v = 0; v < columns; v++)
        b->high[v] = 0;
#elif HAS_SQUARES
    b->base = 0;
#endif
    b->most = NO_MOST;
    b->least = NO_LEAST;
    b->rough = b->used = 0;
    b->room = HAS_SQUARES && LONG ? 0 : BATCH_ROWS;
}

#if HAS_SQUARES
/* Return the numbers at which a batch's sum, and its sum of squares, of column v began. */
#if LONG
PURE double first_of(const batch *b, u32 v) {
    return b->high[v] ? 1.5 * power_of_two((i32)b->high[v] - 1023 + 7) : -0.0;
}
#endif
PURE double base_of(const batch *b, u32 v) {
#if LONG
    return b->high[v] ? power_of_two(2 * ((i32)b->high[v] - 1022) + 5) : 0;
#else
    return b->base;
#endif
}
#endif

/* Makes *to the state of column v's elements in this batch alone. */
INLINED void batch_state(const batch *b, u32 columns, u32 v, state *to) {
    *to = none();
    to->sum.s = b->sum[v];
    to->sum.e = b->error[v];
#if HAS_SQUARES
    to->square = b->square[v] - base_of(b, v);
    to->rest = b->rest[v];
#if LONG
    if (b->high[v]) {
        to->sum.s -= first_of(b, v);
        if (to->sum.s == 0 && to->square == 0) to->sum.seen |= SIGNLESS;
    }
#endif
    if (b->rough != 0) to->sum.seen |= ROUGH;
    settle_pairs(to);
#endif
}

#include "batches.h"

#if ELEMENT_WIDTH == 16
/* Widens the bounds so that they hold for the `there` rows of a tile, too: two elements at a time. */
INLINED void bound_magnitudes(const tile_part *t, u32 columns, u32 rows, u32 there, u32 *most,
                              u32 *least) {
    u32 high = NO_HALVES, low = NO_HALVES;
    UNROLL
    for (u32 k = 0; k < rows * columns / 2; k++) {
        if (2 * k % columns == 0 && NO_ROWS_FROM(2 * k / columns, rows, there)) break;
        note_halves(t->pair[k], &high, &low);
    }
    note_magnitude(float_bits(widen((element)greatest_half(high))), most, least);
    note_magnitude(float_bits(widen((element)smallest_half(low))), most, least);
}
#elif !LONG
INLINED void bound_magnitudes(const tile_part *t, u32 columns, u32 rows, u32 there, u32 *most,
                              u32 *least) {
    UNROLL
    for (u32 k = 0; k < rows * columns; k++) {
        if (k % columns == 0 && NO_ROWS_FROM(k / columns, rows, there)) break;
        note_magnitude(float_bits(widen(t->e[k])), most, least);
    }
}
#endif

#if HAS_SQUARES
/* Adds x^2 to *square, which is at least as large, and the error of that to *rest. Returns the
 * error. */
PURE double add_below(double x, double *square, double *rest) {
    const double before = *square;
    *square = fused(x, x, before);
    const double lost = fused(x, x, before - *square);
    *rest += lost;
    return lost;
}
#endif

#if HAS_SQUARES && LONG
#define FAR 450 /* the largest magnitude of elements' exponents */
/* Opens each column's window for elements up to four times as large as its largest one here.
 * Returns 0 where that is too large, or too small. */
INLINED u32 open_window(batch *b, u32 columns, const tile_part *t, u32 count, const u32 *most) {
    u32 fits = 1;
    UNROLL
    for (u32 v = 0; v < columns; v++) {
        u64 bits = 0;
        UNROLL
        for (u32 k = v; k < count; k += columns)
            bits |= double_bits(t->e[k]);
        const u32 field = bits << 1 == 0 ? 0 : (most[v] >> 20) + 2;
        fits &= field == 0 || (field >= 1023 - FAR && field <= 1023 + FAR);
        b->high[v] = field;
    }
    UNROLL
    for (u32 v = 0; v < columns; v++) {
        if (!fits) b->high[v] = 0;
        b->sum[v] = first_of(b, v);
        b->square[v] = base_of(b, v);
    }
    b->room = BATCH_ROWS;
    return fits;
}
#elif HAS_SQUARES
INLINED u32 open_window(batch *b, u32 columns, u32 most, u32 least) {
    const u32 field = (most >> 23) + 2, high = field < 254 ? field : 254;
    const u32 spread = PLAIN_SPREAD_MOST(BATCH_LOG), lowest = high > spread ? high - spread : 0;
    if (has_special(most)) return 0;
    b->most = high << 23 | 0x7fffffu;
    b->least = lowest > 0 ? (lowest << 24) - 1 : 0;
    if (least < b->least) { /* too far apart for a base: the batch takes any finite elements */
        b->most = 0x7f7fffffu;
        b->least = 0;
        b->rough = 1;
        return 1;
    }
    b->base = power_of_two(2 * ((i32)high - 126) + BATCH_LOG);
    UNROLL
    for (u32 v = 0; v < columns; v++)
        b->square[v] = b->base;
    return 1;
}
#endif

#if HAS_SQUARES && LONG
/* Returns whether a tile does not fit the columns' windows; most[v] becomes the upper half of the largest magnitude. */
INLINED u32 is_outside(const batch *b, const tile_part *t, u32 columns, u32 rows, u32 *most) {
    u32 outside = b->room < rows;
    UNROLL
    for (u32 v = 0; v < columns; v++) {
        most[v] = 0;
        UNROLL
        for (u32 k = 0; k < rows; k++) {
            const u32 magnitude = (u32)(double_bits(t->e[k * columns + v]) >> 32) & 0x7fffffffu;
            most[v] = magnitude > most[v] ? magnitude : most[v];
        }
        outside |= most[v] >> 20 > b->high[v];
    }
    return outside;
}

/* Returns not 0 if the square of x may be too small for a double: add_below()'s error is then 0, though something is lost. */
PURE u64 underflowing_square(double x) {
    return exponent_field(x) < 1023 - 537 ? double_bits(x) << 1 : 0;
}

/* Adds a tile to the batch, or to the whole states if it fits no batch. `from` is where its `count` rows lie. */
INLINED void add_tile(batch *b, state *whole, const tile_part *t, u32 columns, u32 rows, u32 count,
                      row_source from) {
    u32 most[VECTOR];
    u64 lost = 0;
    if (is_outside(b, t, columns, rows, most)) {
        if (b->used) flush_batch(b, columns, whole);
        if (!open_window(b, columns, t, rows * columns, most)) {
            add_all_slowly(b, whole, columns, count, from);
            return;
        }
    }
    count_tile(b, rows);
    UNROLL
    for (u32 k = 0; k < rows; k++)
        UNROLL
    for (u32 v = 0; v < columns; v++) {
        const double x = t->e[k * columns + v], before = b->sum[v];
        if (HAS_SUM) {
            b->sum[v] += x;
            const double error = x + (before - b->sum[v]);
            b->error[v] += error;
            lost |= double_bits(error);
        }
        lost |= double_bits(add_below(x, &b->square[v], &b->rest[v]));
        if (!HAS_SUM) lost |= underflowing_square(x); /* what sums of elements lose tells of them */
    }
    UNROLL
    for (u32 v = 0; v < columns; v++)
        if (b->high[v] == 0) /* zeros lose nothing; squares of subnormal numbers are lost */
            UNROLL
    for (u32 k = 0; k < rows; k++)
        lost |= double_bits(t->e[k * columns + v]) << 1;
    b->rough |= (u32)(lost | lost >> 32);
}

#elif HAS_SQUARES
/* Adds a tile to sums, and to squares above the batch's base. */
INLINED void add_above_base(batch *b, const tile_part *t, u32 columns, u32 rows, u32 there) {
    UNROLL
    for (u32 k = 0; k < rows; k++) {
        if (NO_ROWS_FROM(k, rows, there)) break;
        UNROLL
        for (u32 v = 0; v < columns; v++) {
            const double x = (double)widen(t->e[k * columns + v]);
            if (HAS_SUM) b->sum[v] += x;
            add_below(x, &b->square[v], &b->rest[v]);
        }
    }
}

/* Adds a tile to sums and squares with their errors. */
INLINED void add_with_errors(batch *b, const tile_part *t, u32 columns, u32 rows, u32 there) {
    UNROLL
    for (u32 k = 0; k < rows; k++) {
        if (NO_ROWS_FROM(k, rows, there)) break;
        UNROLL
        for (u32 v = 0; v < columns; v++) {
            const double x = (double)widen(t->e[k * columns + v]);
            double error;
            if (HAS_SUM) {
                b->sum[v] = two_sum(b->sum[v], x, &error);
                b->error[v] += error;
            }
            b->square[v] = two_sum(b->square[v], x * x, &error);
            b->rest[v] += error;
        }
    }
}

/* Adds a tile to the batch, or to the whole states if it fits no batch. `from` is where its `count` rows lie. */
INLINED void add_tile(batch *b, state *whole, const tile_part *t, u32 columns, u32 rows, u32 count,
                      row_source from) {
    u32 most = NO_MOST, least = NO_LEAST;
    bound_magnitudes(t, columns, rows, count, &most, &least);
    if (most > b->most || least < b->least || b->room < rows) {
        if (b->used) flush_batch(b, columns, whole);
        if (!open_window(b, columns, most, least)) {
            add_all_slowly(b, whole, columns, count, from);
            return;
        }
    }
    count_tile(b, rows);
    if (b->base != 0)
        add_above_base(b, t, columns, rows, count);
    else
        add_with_errors(b, t, columns, rows, count);
}

#else
/* Adds a tile plainly. */
INLINED void add_plainly(batch *b, const tile_part *t, u32 columns, u32 rows, u32 there) {
    UNROLL
    for (u32 k = 0; k < rows; k++) {
        if (NO_ROWS_FROM(k, rows, there)) break;
        UNROLL
        for (u32 v = 0; v < columns; v++)
            b->sum[v] += (double)widen(t->e[k * columns + v]);
    }
}

#if ELEMENT_WIDTH == 16
#define ELEMENT_DIGITS (ELEMENT_MANTISSA + 1)
/* Adds a tile that floats hold: a conversion takes as long as eight additions. */
INLINED void add_as_floats(batch *b, const tile_part *t, u32 columns, u32 rows, u32 there) {
    float sum[VECTOR];
    UNROLL
    for (u32 v = 0; v < columns; v++)
        sum[v] = widen(t->e[v]);
    UNROLL
    for (u32 k = 1; k < rows; k++) {
        if (NO_ROWS_FROM(k, rows, there)) break;
        UNROLL
        for (u32 v = 0; v < columns; v++)
            sum[v] += widen(t->e[k * columns + v]);
    }
    UNROLL
    for (u32 v = 0; v < columns; v++)
        b->sum[v] += (double)sum[v];
}
#else
#define ELEMENT_DIGITS FLOAT_DIGITS
INLINED void add_as_floats(batch *b, const tile_part *t, u32 columns, u32 rows, u32 there) {}
#endif

/* Adds a tile to the batch, or to the whole states if it fits no batch. `from` is where its `count` rows lie. */
INLINED void add_tile(batch *b, state *whole, const tile_part *t, u32 columns, u32 rows, u32 count,
                      row_source from) {
    u32 most = NO_MOST, least = NO_LEAST;
    bound_magnitudes(t, columns, rows, count, &most, &least);
    const u32 fits_floats =
        ELEMENT_WIDTH == 16 && float_sums_are_exact(most, spread_of(most, least, OF_SEVERAL_SUMS),
                                                    ELEMENT_DIGITS, rows > 8 ? 4 : 3);
    if (b->most > most) most = b->most;
    if (b->least < least) least = b->least;
    const i32 spread = spread_of(most, least, OF_SEVERAL_SUMS);
    const u32 is_exact = compensated_sums_are_exact(spread, BATCH_LOG);
    if (b->room < rows || !is_exact) {
        if (b->used) flush_batch(b, columns, whole);
        if (!is_exact) {
            add_all_slowly(b, whole, columns, count, from);
            return;
        }
    }
    count_tile(b, rows);
    b->most = most;
    b->least = least;
    if (plain_sums_are_exact(spread, BATCH_LOG)) {
        if (fits_floats)
            add_as_floats(b, t, columns, rows, count);
        else
            add_plainly(b, t, columns, rows, count);
    } else {
        UNROLL
        for (u32 k = 0; k < rows; k++) {
            if (NO_ROWS_FROM(k, rows, count)) break;
            UNROLL
            for (u32 v = 0; v < columns; v++) {
                double error;
                b->sum[v] = two_sum(b->sum[v], (double)widen(t->e[k * columns + v]), &error);
                b->error[v] += error;
            }
        }
    }
}
#endif

#endif
