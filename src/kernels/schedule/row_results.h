/*
 * row_results.h - from a row's state to its results, or to `fold`.
 *
 * Before including this header, include a state, levels.h and spots.h.
 */
#ifndef TALLY_SCHEDULE_ROW_RESULTS_H
#define TALLY_SCHEDULE_ROW_RESULTS_H

#include "../element_type.h"

/* The operator and the type of value number v. Floats' values have the elements' type, but for indices. */
#define VALUE_OP(p, v) ((p)->lower.value[v] & 255)
#if defined(FLOATING)
#define VALUE_TYPE(p, v) (VALUES_ARE_ELEMENTS ? ELEMENT_TYPE : (p)->lower.value[v] >> 8)
#else
#define VALUE_TYPE(p, v) ((p)->lower.value[v] >> 8)
#endif

/* Returns result_spot(). This is a call, as its divisions would be inlined at every caller: a quarter of the time to
 * compile a program at run time. */
OUTLINED i64 result_apart(const parts_plan *p, u64 row) {
    return result_spot(p, row);
}

/* Writes the bits of a row's value number v. */
__device__ void put(GLOBAL u8 *out, const parts_plan *p, u32 v, u64 row, u64 bits) {
    const u32 width = VALUES_ARE_ELEMENTS ? 8 * (u32)sizeof(element) : width_of(VALUE_TYPE(p, v));
    const i64 at = p->out_first + (IS_APART(p) ? result_apart(p, row)
                                               : (i64)row * (p->keeps ? p->kept[0].out : 1));
    out += p->out[v];
    if (width == 64)
        ((GLOBAL u64 *)out)[at] = bits;
    else if (width == 32)
        ((GLOBAL u32 *)out)[at] = (u32)bits;
    else
        ((GLOBAL u16 *)out)[at] = (u16)bits;
}

/* Returns how many elements a row of n places has; others may have been filled in. */
__device__ u64 elements_of(const GLOBAL u64 *work, const parts_plan *p, u64 row, u64 n) {
    return IS_FILLED(p) && p->counts != 0 ? count_of_row(work, p->counts, p->wide_counts, row) : n;
}

/* ADDS_AGAIN is 1 for the one sum of short floats in doubles: its kernels can add a row again that they have lost. */
#if HAS_ONE_FLOAT_SUM && !LONG && !SUMS_IN_FLOATS
#define ADDS_AGAIN 1
#include "lost_sums.h"

/* Writes the values of the rows that lanes have lost. A lane whose `is_lost` is not 0 has one: `row`, of n elements
 * from number s on, which lie `off` further on in memory. All lanes of the warp call this. */
INLINED void add_lost_rows(aligned_elements at, GLOBAL u8 *out, const parts_plan *p, u64 row, u64 s,
                           u64 off, u32 n, u32 is_lost) {
    UNROLL_NOT
    for (u32 lost = warp_votes(is_lost); lost != 0; lost &= lost - 1) {
        const u32 source = lowest_bit(lost), count = __shfl_sync(FULL_WARP, n, source);
        const u64 first = __shfl_sync(FULL_WARP, s + off, source);
        const lost_sum sum = add_again(at.x + at.skew + first, 1, count);
        const u64 bits = lost_sum_value(sum, VALUE_OP(p, 0) == MEAN ? count : 1, VALUE_TYPE(p, 0));
        if (threadIdx.x % WARP == source) put(out, p, 0, row, bits);
    }
}
#else
#define ADDS_AGAIN 0
INLINED void add_lost_rows(aligned_elements at, GLOBAL u8 *out, const parts_plan *p, u64 row, u64 s,
                           u64 off, u32 n, u32 is_lost) {}
#endif

/* Notes that a row's state is lost: leaves the row to `fold`, or returns 1 if the caller has to call add_lost_rows(). */
__device__ u32 lose_row(GLOBAL u64 *work, const parts_plan *p, u64 row) {
    if (ADDS_AGAIN && p->leaves_none) return 1;
    leave_row(work, p->left, row);
    return 0;
}

/* Writes the results of row `row`, which has no elements. */
__device__ void put_nothing(GLOBAL u64 *work, GLOBAL u8 *out, const parts_plan *p, u64 row) {
    u32 lost = 0;
    UNROLL_NOT
    for (u32 v = 0; v < p->lower.values && !lost; v++) {
        const u64 bits = value_of_none(&p->lower, VALUE_OP(p, v), VALUE_TYPE(p, v), &lost);
        if (!lost) put(out, p, v, row, bits);
    }
    if (lost) leave_row(work, p->left, row);
}

/* Writes the results of a row of n > 0 places from its state, or loses the row. `start` is the number of its first element.
 * Returns what lose_row() does, or 0. */
__device__ u32 put_state(GLOBAL u64 *work, GLOBAL u8 *out, const parts_plan *p, u64 row, u64 start,
                         u64 n, state s) {
    const u32 values = SEVERAL_VALUES ? p->lower.values : 1;
    const u64 first = p->absolute ? 0 : start; /* indices count from here */
    u32 lost = 0;
    n = elements_of(work, p, row, n);
    if (IS_FILLED(p) && n == 0) {
        put_nothing(work, out, p, row);
        return 0;
    }
    if (IS_FILLED(p) && may_be_filled(&s)) lost = 1;
    if (values == 1) { /* without a loop */
        const u64 bits =
            state_value(&s, &p->lower, n, first, VALUE_OP(p, 0), VALUE_TYPE(p, 0), &lost);
        if (!lost) put(out, p, 0, row, bits);
    } else {
        UNROLL_NOT
        for (u32 v = 0; v < values; v++) {
            const u64 bits =
                state_value(&s, &p->lower, n, first, VALUE_OP(p, v), VALUE_TYPE(p, v), &lost);
            if (!lost) put(out, p, v, row, bits);
        }
    }
    if (lost) {
        TALLY_PATH_UNLESS("lost", NULL, NEVER_LOST);
        return lose_row(work, p, row);
    }
    TALLY_PATH("put");
    return 0;
}

/* Writes the results of row `row`, which has n elements; the first has the number `start`. Returns what put_state() does. */
__device__ u32 put_row(GLOBAL u64 *work, GLOBAL u8 *out, const parts_plan *p, u64 row, u64 start,
                       u64 n, state s) {
    if (n > 0) return put_state(work, out, p, row, start, n, s);
    put_nothing(work, out, p, row);
    return 0;
}

#if HAS_APPROXIMATE
/* Returns whether a row's near sums determine its value, and writes it. An element has gone through `depth` additions. */
__device__ u32 put_near(GLOBAL u8 *out, const parts_plan *p, u64 row, u32 n, u32 depth, state s) {
    lowered r = {0, 0};
    if (HAS_SQUARES)
        r.lost = !approximate_value_rounds(&p->lower, VALUE_TYPE(p, 0), &s, n, depth, &r.bits);
    else
        r = lower_approximate(double_from(s.w[0]), s.tag, n, VALUE_OP(p, 0), VALUE_TYPE(p, 0));
    if (r.lost) {
        TALLY_PATH("approximate sums that do not suffice");
        return 0;
    }
    TALLY_PATH("approximate sums");
    put(out, p, 0, row, r.bits);
    return 1;
}
#endif

/* How many additions an element of a row of n goes through at most in a lane of a team of 2^t. */
#define LANE_DEPTH(n, t) (((n) >> (t)) + 2 * PACK)

/* Writes a row's results, as put_row() does, from a state that may be approximate: an element has then gone through `depth`
 * additions, and up to five merges of lanes. Returns whether the state determines them; *is_lost becomes what put_state()
 * returns. */
__device__ u32 put_approximate(GLOBAL u64 *work, GLOBAL u8 *out, const parts_plan *p, u64 row,
                               u64 start, u32 n, u32 depth, state s, u32 precision, u32 *is_lost) {
#if HAS_APPROXIMATE
    const u32 there = (u32)elements_of(work, p, row, n);
    const u32 is_near = HAS_SQUARES ? precision == APPROXIMATE : s.tag & TAG_APPROXIMATE;
    if (there > 0 && is_near) return put_near(out, p, row, there, depth, s);
#endif
    *is_lost = put_row(work, out, p, row, start, n, s);
    return 1;
}

/* Returns whether row `row`, which begins at s and ends at e, may be read. If not, notes the wrong
 * offset in work[PARTS_BAD]. */
__device__ u32 is_inside(GLOBAL u64 *work, const parts_plan *p, u64 row, u64 s, u64 e) {
    if (s <= e && e <= p->n) return 1;
    note_least(&work[PARTS_BAD], s > p->n ? row : row + 1);
    return 0;
}

#endif
