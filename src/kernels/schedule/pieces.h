/*
 * pieces.h - a warp's piece of the work: so many elements and ends of rows; where it begins and ends; and the edges, where it
 * leaves the states of rows that pieces cut.
 *
 * Before including this header, include a state, levels.h, teams.h and spots.h.
 */
#ifndef TALLY_SCHEDULE_PIECES_H
#define TALLY_SCHEDULE_PIECES_H

#define TEAM_LOG  3            /* log2 of the largest team below a whole warp */
#define TEAM_MOST (64 * CHUNK) /* the largest mean length of rows for teams below a warp */
#define TEAM_ROWS 16           /* in pieces of fewer rows the limit is half of TEAM_MOST */
/* The beginning of a piece: element `at` of row `row`; `whole` if that row begins in the piece. */
typedef struct bound {
    u64 row, at;
    u32 whole;
} bound;

/* A search for the last row before which elements and ends of rows weigh at most u. It is one of low to high - 1; the
 * lanes of a warp look at rows `step` apart. */
typedef struct search {
    u64 u, low, high, step;
} search;

/* Returns the lane's vote: whether a row `step` * (lane + 1) behind s->low has at most s->u before
 * it. */
__device__ u32 probe(const search *s, const GLOBAL u8 *offsets, part_rows r, u64 origin) {
    const u64 row = s->low + s->step * (threadIdx.x % WARP + 1);
    return row < s->high && row_start(offsets, r, row) - origin + row * PARTS_ROW_END <= s->u;
}

/* Narrows the search by the lanes' votes: the set bits below the first 0 are those of rows that are not too far. */
PURE void narrow(search *s, u32 votes) {
    s->low += s->step * lowest_bit(~votes);
    s->high = s->low + s->step < s->high ? s->low + s->step : s->high;
}

/* Finds the first row of the piece and that of the next one, at the same time; all lanes of the warp call it. Where
 * offsets are wrong it finds some row, the same for both warps that look for it. */
__device__ void find_both(const GLOBAL u8 *offsets, part_rows r, search *a, search *b) {
    const u64 origin = row_start(offsets, r, 0);
    UNROLL_NOT
    while (a->high - a->low > 1 || b->high - b->low > 1) {
        a->step = (a->high - a->low + WARP - 1) / WARP;
        b->step = (b->high - b->low + WARP - 1) / WARP;
        const u32 in_a = probe(a, offsets, r, origin), in_b = probe(b, offsets, r, origin);
        narrow(a, warp_votes(in_a));
        narrow(b, warp_votes(in_b));
    }
}

__device__ bound bound_of(const search *s, const GLOBAL u8 *offsets, part_rows r) {
    const u64 origin = row_start(offsets, r, 0), start = row_start(offsets, r, s->low);
    const u64 end = row_start(offsets, r, s->low + 1);
    const u64 into = s->u - (start - origin + s->low * PARTS_ROW_END);
    const bound b = {s->low, into < end - start ? start + into : end, into == 0};
    return b;
}

/* Finds where a piece begins, and where the next one does; `checks`: offsets may be wrong. */
INLINED void find_bounds(const GLOBAL u8 *offsets, const parts_plan *p, u64 piece, u32 checks,
                         bound *from, bound *until) {
    const u64 rows = p->rows.count, weight = p->rows.each + PARTS_ROW_END;
    search a = {piece * p->piece, 0, rows, 0}, b = {(piece + 1) * p->piece, 0, rows, 0};
    if (p->rows.kind == 0) {
        a.low = a.u / weight;
        b.low = b.u / weight < rows ? b.u / weight : rows - 1;
    } else {
        if (checks && piece == 0) a.high = 1;
        find_both(offsets, p->rows, &a, &b);
    }
    *from = bound_of(&a, offsets, p->rows);
    *until = bound_of(&b, offsets, p->rows);
    if (piece + 1 == p->pieces) {
        until->row = rows;
        until->at = row_start(offsets, p->rows, rows);
        until->whole = 1;
    }
}

/* Words of a piece's edges: the state of a row that began before it, that of one that ends behind
 * it, and the latter's number plus 1, or 0 if there is none. */
#define EDGE (2 * STATE_WORDS + 1)

__device__ u32 may_begin(const GLOBAL u64 *work, const parts_plan *p) {
    return p->ignore_errors || read_word(&work[PARTS_BAD]) == ~(u64)0;
}

__device__ void put_edge(GLOBAL u64 *edge, state s) {
    UNROLL
    for (u32 i = 0; i < STATE_WORDS; i++)
        edge[i] = state_word(&s, i);
}

__device__ state get_edge(const GLOBAL u64 *edge) {
    u64 words[STATE_WORDS];
    UNROLL
    for (u32 i = 0; i < STATE_WORDS; i++)
        words[i] = edge[i];
    return state_of_words(words);
}

/* Returns t such that a team of 2^t lanes suits `rows` rows of `mean` elements. */
PURE u32 team_for(u64 mean, u64 rows) {
    u32 t = 0;
    if (mean > (rows < TEAM_ROWS ? TEAM_MOST / 2 : TEAM_MOST)) return WARP_LOG;
    while (t < TEAM_LOG && mean > (u64)CHUNK << t)
        t++;
    return t;
}

#if HAS_SQUARES
/* The most elements on an edge whose sums may be approximate: a lane has 2^11 of these. So a second
 * double, the plain sum of errors, is off by at most 2^-84 sqrt(n Q), or 2^-83 Q. */
#define EDGE_APPROXIMATE_MOST (1u << 16)
/* Makes *all the state of n elements from s on, approximate or exact as its tag says. Returns 0 if
 * their squares may be too small, or too large. */
INLINED u32 add_edge(state *all, aligned_elements at, u64 s, u32 n) {
    state sum = none();
    u32 fits = 1;
    UNROLL_NOT
    for (u32 o = 0; o < n && fits; o += EDGE_APPROXIMATE_MOST) {
        const pack_range part = pack_range_of(
            at, s + o + at.skew, n - o < EDGE_APPROXIMATE_MOST ? n - o : EDGE_APPROXIMATE_MOST);
        state more = add_approximate_part(&part, WARP_LOG, 1);
        const u32 has_lost = warp_votes(more.tag != 0);
        more.tag = 0;
        if (has_lost) {
            more = merge_approximate(more, WARP_LOG);
            more.tag = TAG_ROUGH;
        } else
            more = merge_team(more, WARP_LOG);
        const double square = double_from(more.w[SQUARES]);
        fits = more.tag == 0 || (square > 0x1p-800 && square < 0x1p800);
        sum = merge(sum, more);
    }
    *all = sum;
    return fits;
}
#endif

/* Returns the distance of row `row` from the first row, in elements. This is a call, as result_apart() is. */
OUTLINED u64 row_apart(const parts_plan *p, u64 row) {
    return (u64)(row_spot(p, row).x - p->x);
}

/* Returns how far row `row` lies behind its place in an array without gaps. */
PURE u64 apart_of(const parts_plan *p, u64 row) {
    return IS_APART(p) ? row_apart(p, row) - row * p->rows.each : 0;
}

#endif
