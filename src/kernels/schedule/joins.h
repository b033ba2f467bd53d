/*
 * joins.h - rows that pieces cut: their states are merged by a thread, a warp or a block, as their numbers ask for.
 *
 * Before including this header, include pieces.h and row_results.h.
 */
#ifndef TALLY_SCHEDULE_JOINS_H
#define TALLY_SCHEDULE_JOINS_H

#define JOINED 4u /* edges that a thread of join_rows() loads at once */
/* Returns a part of the state of the row that begins in piece `piece` and ends in piece `last`: that of every `step`th
 * piece from `at` on. */
__device__ state join_part(const GLOBAL u64 *work, const parts_plan *p, u64 piece, u64 last, u64 at,
                           u32 step) {
    state s = none();
    UNROLL_NOT
    for (; at <= last; at += JOINED * step) {
        state t[JOINED];
        UNROLL
        for (u32 i = 0; i < JOINED; i++) {
            const u64 from = at + i * step;
            t[i] =
                from > last
                    ? none()
                    : get_edge(work + p->edges + from * EDGE + (from == piece ? STATE_WORDS : 0));
        }
        UNROLL
        for (u32 i = 0; i < JOINED; i++)
            s = merge(s, t[i]);
    }
    return s;
}

#if JOINS_QUAD_DOUBLES
/* A quad-double sum; `lost` is not 0 if it cannot hold the sum. */
typedef struct quad_double {
    double d[4];
    u32 lost;
} quad_double;

PURE void add_to_quad_double(quad_double *a, double x) {
    for (u32 i = 0; i < 4; i++)
        a->d[i] = two_sum(a->d[i], x, &x);
    a->lost |= !(x == 0);
}

/* Merges the states of the row that begins in piece `piece` and ends in piece `last`, all lanes of the warp together.
 * The sum is in lane 0's four doubles. */
__device__ quad_double join_quad_double(const GLOBAL u64 *work, const parts_plan *p, u64 piece,
                                        u64 last) {
    quad_double a = {{0, 0, 0, 0}, 0};
    UNROLL_NOT
    for (u64 at = piece + threadIdx.x % WARP; at <= last; at += WARP) {
        const state s = get_edge(work + p->edges + at * EDGE + (at == piece ? STATE_WORDS : 0));
        a.lost |= s.tag & TAG_LOST;
        add_to_quad_double(&a, double_from(s.w[0]));
        add_to_quad_double(&a, double_from(s.w[1]));
    }
    UNROLL_NOT
    for (u32 lanes = WARP / 2; lanes > 0; lanes /= 2) {
        u64 other[4];
        UNROLL
        for (u32 i = 0; i < 4; i++)
            other[i] = __shfl_down_sync(FULL_WARP, double_bits(a.d[i]), lanes);
        a.lost |= __shfl_down_sync(FULL_WARP, a.lost, lanes);
        UNROLL
        for (u32 i = 0; i < 4; i++)
            add_to_quad_double(&a, double_from(other[i]));
    }
    return a;
}

/* Writes the result of a row from a quad-double, or leaves the row to `fold`. The last two doubles
 * are at most `off` together: if the value is the same that much above and below, it is certain. */
__device__ void put_quad_double(GLOBAL u64 *work, GLOBAL u8 *out, const parts_plan *p, u64 row,
                                u64 n, quad_double a) {
    for (u32 turn = 0; turn < 3; turn++)
        for (u32 i = 3; i-- > 0;)
            a.d[i] = two_sum(a.d[i], a.d[i + 1], &a.d[i + 1]);
    double off = magnitude_of(a.d[2]) + magnitude_of(a.d[3]);
    if (off != 0) off = 2 * off + magnitude_of(a.d[1]) * 0x1p-51;
    u32 lost = a.lost;
    n = elements_of(work, p, row, n);
    state s = {{double_bits(a.d[0]), double_bits(a.d[1] - off)}, 0};
    const u64 bits = state_value(&s, &p->lower, n, 0, VALUE_OP(p, 0), VALUE_TYPE(p, 0), &lost);
    s.w[1] = double_bits(a.d[1] + off);
    if (state_value(&s, &p->lower, n, 0, VALUE_OP(p, 0), VALUE_TYPE(p, 0), &lost) != bits) lost = 1;
    if (lost) {
        TALLY_PATH("left to fold");
        leave_row(work, p->left, row);
    } else {
        TALLY_PATH("put");
        put(out, p, 0, row, bits);
    }
}
#endif

/* A row that was cut: it begins in piece `piece` and ends in piece `last`. */
typedef struct cut_row {
    u64 piece, last, row, start, n;
} cut_row;

/* Returns the row that begins in a piece and is cut; n is 0 if there is none. */
__device__ cut_row get_cut_row(const GLOBAL u8 *offsets, const GLOBAL u64 *work,
                               const parts_plan *p, u64 piece) {
    cut_row r = {piece, 0, 0, 0, 0};
    if (piece >= p->pieces) return r;
    r.row = (work + p->edges + piece * EDGE)[2 * STATE_WORDS];
    if (r.row == 0) return r;
    r.row--;
    r.start = row_start(offsets, p->rows, r.row);
    r.n = row_start(offsets, p->rows, r.row + 1) - r.start;
    r.last =
        (r.start - row_start(offsets, p->rows, 0) + r.row * PARTS_ROW_END + r.n - 1) / p->piece;
    return r;
}

#endif
