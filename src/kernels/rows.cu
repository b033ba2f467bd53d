/*
 * rows - reductions of rows, and segments, whose elements lie side by side (parts.h).
 *
 * The file is compiled for one type and one kind of state: sums and means; with LIFT_MAGNITUDE, LIFT_SQUARE or
 * LIFT_MOMENTS sums of magnitudes, of squares, or of elements and of squares, for norms and variances; the least and
 * the greatest element, or with INDEXED the index of one of them.
 *
 * Pieces. A warp has a piece of the work: so many elements and ends of rows. Warps meet at no barrier, except in
 * `block_rows`, where teams of a block's warps take rows of one length that are long or not many. Of a row that is
 * cut, each piece leaves the state of its part on an edge, and `join_rows` merges these. Offsets of short segments
 * are checked by the warp that uses them. It uses an offset only if that lies inside the array and does not fall.
 * Every offset is checked by some warp, even if others are wrong.
 *
 * Rows in a piece. A team of 1, 2, 4, 8 or 32 neighbouring lanes takes a row; the longer the piece's mean row is, the
 * more lanes has a team. Its lanes take the row's packs of 16 bytes in turn, LOADS of them on their way at once.
 * Lanes merge their states by shuffles, in t steps for a team of 2^t. The warp takes WARP rows at a time, one after
 * the other in each team, so that each lane has one row's state in the end. Of rows of different lengths, those that teams
 * take at the same time are about as long. The results of WARP rows are then computed, and written, at once. A row that is
 * far longer than others is taken by the whole warp.
 *
 * Short rows. As many rows as fit are copied to the warp's stage in shared memory (copies.h), all on their way at
 * once. They are copied as whole packs, so that a row that does not begin at a multiple of 16 bytes costs no more.
 * Offsets are copied there, too: those of the next rows while the elements of the current ones are on their way. Each
 * row then has a lane to itself or, if it is longer, a team of lanes. A lane takes several rows of one pack at a
 * time. Short rows of one length have a kernel of their own, without pieces (`few_rows`).
 *
 * Sums of floats take precision levels, from cheap to exact (state/float_sum.h). A row whose sum a double-double does not
 * hold is left to `fold` (parts.cu). But if rows of short floats are not cut, the warp adds such a row again
 * (schedule/lost_sums.h), and no `fold` follows. Cut rows of f64 that a double-double does not hold are merged as
 * quad-doubles.
 *
 * Indices. An element has an order-preserving key, or its complement for argmin; all NaNs have the
 * highest key. The result is the first element with the highest key.
 */
#ifndef BLOCK
#define BLOCK GPU_ROWS_BLOCK
#endif

#include "widen.h"

#include "result.h"

#include "plan.h"

#include "parts.h"

#define RECORD_SPACE SHARED
#include "lower.h"

#include "doubles.h"

#include "certain/batch.h"

#include "copies.h"

#include "spots.h"

#include "pack.h"

#include "halves.h"

BEGINS_EARLY

/* The state, and the parameters of its header. */
#define VALUES lower_plan
#if defined(OP_SUM) && defined(FAST)
#define FAST_REAL  real
#define FAST_MEANS 0
#include "state/fast.h"
#elif defined(OP_SUM) && defined(FLOATING)
#include "state/float_sum.h"

#include "state/near_sums.h"

#define HAS_ONE_FLOAT_SUM (!HAS_SQUARES)
#elif defined(OP_SUM)
#if defined(TYPE_I64) || defined(TYPE_U64)
#define LONG 1
#else
#define LONG 0
#endif
#include "state/integer_sum.h"
#elif defined(INDEXED)
#define PLACE u64
#if defined(OP_MIN)
#define FLIP(p) TURN_ALL
#else
#define FLIP(p) TURN_NONE
#endif
#include "state/first_extreme.h"

INLINED void add(batch *k, element e, u32 at, u32 inside) {
    add_key(k, key_of(e, FLIP(p)), at, inside);
}
#else
#define HAS_LEAST 1
#define FLIP(p)   TURN_NONE
#include "state/extremes.h"

#include "state/end_batches.h"
#endif
#if !defined(HAS_ONE_FLOAT_SUM) /* states with a single precision level */
#define HAS_ONE_FLOAT_SUM 0
#define HAS_PLAIN         0
#define HAS_COMPENSATED   0
#define HAS_APPROXIMATE   0
#define HAS_SQUARES       0
/* Returns whether near sums of n elements can give a problem's values. */
PURE u32 can_approximate(const VALUES *p, u64 n) {
    return 0;
}
#endif
/* Cut rows of f64 that a double-double cannot hold are merged as quad-doubles. */
#if HAS_ONE_FLOAT_SUM && defined(TYPE_F64)
#define JOINS_QUAD_DOUBLES 1
#else
#define JOINS_QUAD_DOUBLES 0
#endif

#include "schedule/packs.h"

#include "schedule/levels.h"

#include "schedule/teams.h"

#include "schedule/row_results.h"

#include "schedule/row_stage.h"

#include "schedule/pieces.h"

#include "schedule/joins.h"

#define LATE_CHUNKS 8 /* rows of more chunks a lane go to the whole warp */
/* A warp's next work: the row that began before its piece; the one that ends behind it; the next
 * short or WARP rows; one row for each team; one far longer row for all lanes; none. */
enum { HEAD, TAIL, SHORT, GROUP, LATE, NOTHING };

/* Returns whether the offsets between a piece's bounds may be used; if not, notes the wrong one. */
INLINED u32 has_good_bounds(const GLOBAL u8 *offsets, GLOBAL u64 *work, const parts_plan *p,
                            const bound *from, const bound *until) {
    const u32 lane = threadIdx.x % WARP;
    const u64 last = until->row < p->rows.count ? until->row : until->row - 1;
    const u64 own = lane == 0 ? from->row : last;
    const u64 s = row_start(offsets, p->rows, own), e = row_start(offsets, p->rows, own + 1);
    if (warp_votes(!(s <= e && e <= p->n)) != 0) {
        for (u64 r = from->row + lane; r <= last; r += WARP)
            is_inside(work, p, r, row_start(offsets, p->rows, r),
                      row_start(offsets, p->rows, r + 1));
        is_inside(work, p, own, s, e);
        return 0;
    }
    return from->row <= last;
}

/* Returns the state of the n elements from s on, which lie `off` further on in memory; a team of 2^t lanes takes
 * them. `shorts`: the piece's rows are mostly short. *precision and *strikes are those of add_part(). The state of a
 * part for an edge (`is_edge`) is not approximate; sums of f64 with squares may be rough there (add_edge()). */
#if HAS_SQUARES
INLINED state reduce_range(aligned_elements at, u64 s, u64 off, u32 n, u32 t, u32 is_edge,
                           u32 shorts, u32 *precision, u32 *strikes) {
    const pack_range part = pack_range_of(at, s + off + at.skew, n);
    u32 level = is_edge && *precision == APPROXIMATE ? PLAIN : *precision, is_done = 0;
    state all;
    if (LONG && is_edge && *precision == APPROXIMATE) is_done = add_edge(&all, at, s + off, n);
    if (is_done)
        ;
    else if (level == APPROXIMATE)
        all = merge_approximate(add_approximate_part(&part, t, 0), t);
    else
        all = merge_team(add_part(&part, s - part.from, t, !shorts, 0, &level, strikes), t);
    if (!is_edge) *precision = level;
    return all;
}
#else
INLINED state reduce_range(aligned_elements at, u64 s, u64 off, u32 n, u32 t, u32 is_edge,
                           u32 shorts, u32 *precision, u32 *strikes) {
    const pack_range part = pack_range_of(at, s + off + at.skew, n);
    u32 level = *precision;
    const state all = merge_team(
        add_part(&part, s - part.from, t, !shorts, shorts && !is_edge, &level, strikes), t);
    if (!shorts || !is_edge) *precision = level;
    return all;
}
#endif

/* The rows that lie in a warp's piece: the next ones, and those that its lanes have at the moment, one each. */
typedef struct piece_rows {
    u64 row, end;    /* the next row, and the one behind the last */
    u64 stop;        /* the row that comes after those of the lanes */
    u64 mine, apart; /* where the lane's own row begins, and what that is off in memory */
    u32 own, length; /* its number behind `row`, and its elements */
    u32 owners;      /* the lanes whose own rows have no result yet */
    u32 team;        /* log2 of the lanes of a team, which reduces a row */
    u32 turn;        /* which of its lanes' rows each team is at */
    u32 late;        /* the lanes whose rows are for the whole warp, less the turn */
    u32 trials;      /* turns until results are written: few at first, to try near sums */
    u32 precision, back, strikes; /* as in levels.h */
    state kept;                   /* of the lane's own row */
} piece_rows;

PURE piece_rows begin_rows(u64 row, u64 end) {
    piece_rows r;
    r.row = row;
    r.end = end;
    r.stop = r.mine = r.apart = 0;
    r.own = r.length = r.team = r.turn = r.late = r.strikes = 0;
    r.owners = FULL_WARP;
    r.trials = 1;
    r.precision = PLAIN;
    r.back = DOUBLE_DOUBLE;
    r.kept = none();
    return r;
}

/* Elements that a team of 2^team lanes reduces: n from number s on, which lie `off` further on in memory. */
typedef struct team_range {
    u64 s, off;
    u32 n, team;
} team_range;

/* Gives each lane the next row of its own. Returns 0 if their offsets are wrong. */
INLINED u32 take_rows(piece_rows *r, const GLOBAL u8 *offsets, GLOBAL u64 *work,
                      const parts_plan *p, u32 checks) {
    u64 own = r->row + row_of_lane(r->team);
    if (HAS_SQUARES) {
        const u32 most = r->trials >> r->team ? WARP : r->trials << (WARP_LOG - r->team);
        r->stop = r->end - r->row < most ? r->end : r->row + most;
        if (r->trials >> r->team == 0) r->trials *= 8;
    }
    const u64 start = row_start(offsets, p->rows, own < r->end ? own : r->end);
    const u64 behind = row_start(offsets, p->rows, own < r->end ? own + 1 : r->end);
    if (checks && warp_votes(own < r->end && !is_inside(work, p, own, start, behind)) != 0)
        return 0;
    if (p->rows.kind != 0 && r->team < WARP_LOG)
        own = r->row + row_in_order(own < r->stop ? (u32)(behind - start) : ~0u, r->team);
    r->own = (u32)(own - r->row);
    /* (Read again, from the cache, so that the sort has no offsets to keep.) */
    r->mine = row_start(offsets, p->rows, own < r->end ? own : r->end);
    r->length = (u32)(row_start(offsets, p->rows, own < r->end ? own + 1 : r->end) - r->mine);
    if (own < r->end) r->apart = apart_of(p, own);
    r->kept = none();
    r->turn = 0;
    r->owners = FULL_WARP;
    return 1;
}

/* Returns the lane whose late row comes next. */
PURE u32 late_lane(const piece_rows *r) {
    return lowest_bit(r->late) + r->turn;
}

/* For GROUP, returns the row of each team's next turn, or no elements if that row is late: far longer than others.
 * For LATE, returns the next late row to all lanes. */
INLINED team_range next_range(piece_rows *r, const parts_plan *p, u32 job) {
    const u32 lane = threadIdx.x % WARP;
    team_range a = {0, 0, 0, WARP_LOG};
    u32 source;
    if (job == GROUP) {
        a.team = r->team;
        source = (lane & ~((1u << a.team) - 1)) + r->turn;
    } else {
        source = late_lane(r);
    }
    a.s = __shfl_sync(FULL_WARP, r->mine, source);
    a.n = __shfl_sync(FULL_WARP, r->length, source);
    a.off = IS_APART(p) ? __shfl_sync(FULL_WARP, r->apart, source) : 0;
    if (job == GROUP && a.team < WARP_LOG) {
        const u32 is_late = a.n > LATE_CHUNKS * CHUNK << a.team;
        r->late = warp_votes(is_late && (lane & ((1u << a.team) - 1)) == 0);
        if (is_late) a.n = 0;
    }
    return a;
}

/* Returns the range of a cut row that lies in the piece: of the row that began before the piece (HEAD), or of the row
 * that ends behind it (TAIL). `next` is where the piece's first whole row begins. */
INLINED team_range edge_range(const GLOBAL u8 *offsets, const parts_plan *p, u32 job,
                              const bound *from, const bound *until, u64 next, u32 checks) {
    team_range a = {0, 0, 0, WARP_LOG};
    if (job == HEAD) {
        a.s = from->at;
        a.n = (u32)((next < until->at ? next : until->at) - a.s);
        if (checks && until->at < a.s) a.n = 0;
        a.off = apart_of(p, from->row);
    } else {
        a.s = row_start(offsets, p->rows, until->row);
        a.n = (u32)(until->at - a.s);
        a.off = apart_of(p, until->row);
    }
    return a;
}

/* Goes on to the teams' next turn or, after the last one, writes the results of the lanes' rows. Rows whose sums do
 * not determine the result are reduced again. Returns the next job. */
INLINED u32 put_rows(piece_rows *r, aligned_elements at, GLOBAL u64 *work, GLOBAL u8 *out,
                     const parts_plan *p, u32 shorts) {
    r->turn++;
    while (r->turn >> r->team == 0 && !(turns_of(r->owners, r->team) >> r->turn & 1))
        r->turn++;
    if (r->turn >> r->team == 0 && r->row + (r->turn << (WARP_LOG - r->team)) < r->stop)
        return GROUP;
    const u64 own = r->row + r->own;
    /* Sums without squares of long rows are never approximate: that code would slow down all others. */
    u32 failed = 0, is_lost = 0;
    if (HAS_SQUARES || shorts)
        failed = votes_of(own < r->stop && r->owners >> (threadIdx.x % WARP) & 1 &&
                          !put_approximate(work, out, p, own, r->mine, r->length,
                                           LANE_DEPTH(r->length, r->team), r->kept, r->precision,
                                           &is_lost));
    else if (own < r->stop)
        is_lost = put_row(work, out, p, own, r->mine, r->length, r->kept);
    add_lost_rows(at, out, p, own, r->mine, r->apart, r->length, is_lost);
    retry(failed, HAS_SQUARES ? (u32)(r->stop - r->row) : WARP / 2, &r->precision, &r->back);
    if (failed != 0) { /* the same rows again */
        r->owners = failed;
        r->kept = none();
        r->turn = lowest_bit(turns_of(r->owners, r->team));
        return GROUP;
    }
    r->row = HAS_SQUARES ? r->stop : r->row + WARP;
    return r->row < r->end ? SHORT : NOTHING;
}

/* Reduces a warp's piece; `shorts`: its rows are mostly short. */
INLINED void reduce_piece(const GLOBAL u8 *x, const GLOBAL u8 *offsets, GLOBAL u64 *work,
                          GLOBAL u8 *out, const parts_plan *p, SHARED uint4 *stage, u32 shorts) {
    const u32 lane = threadIdx.x % WARP;
    const u64 piece = (u64)blockIdx.x * WARPS + threadIdx.x / WARP;
    const u32 checks = shorts && p->cut == PARTS_SEGMENTS;
    if ((!checks && !may_begin(work, p)) || piece >= p->pieces) return;
    bound from, until;
    find_bounds(offsets, p, piece, checks, &from, &until);
    if (checks && !has_good_bounds(offsets, work, p, &from, &until)) return;

    const aligned_elements at = aligned_elements_of(x, p);
#define OWN_EDGE (work + p->edges + piece * EDGE)
    /* Rows [row, end) lie in the piece. A row before them may end in it, and one behind them begin. */
    piece_rows r = begin_rows(from.row + !from.whole, until.row);
    const u64 next = row_start(offsets, p->rows, r.row);
    u32 is_cut = 0;
    if (!until.whole && until.row >= r.row) {
        is_cut = until.at < row_start(offsets, p->rows, until.row + 1);
        r.end += !is_cut;
    }
    if (lane == 0) OWN_EDGE[2 * STATE_WORDS] = is_cut ? until.row + 1 : 0;
    staging how = {0, 0, 0, 0, 0, 0};
    if (r.row < r.end) {
        const u64 rows = r.end - r.row;
        const u64 mean = (row_start(offsets, p->rows, r.end) - next + rows - 1) / rows;
        r.team = team_for(mean, rows);
        if (shorts) how = staging_for(mean, p->rows.kind != 0);
    }

    u32 job = !from.whole && from.at < next ? HEAD
              : is_cut                      ? TAIL
              : r.row < r.end               ? SHORT
                                            : NOTHING;
    r.stop = r.end;
    if (HAS_SQUARES && can_approximate(&p->lower, 0)) r.precision = APPROXIMATE;
    UNROLL_NOT
    while (job != NOTHING) {
        if (job == SHORT) {
            u32 count = 0;
            if (shorts && how.rows > 0)
                count = put_staged_rows(stage, &how, at, offsets, work, out, p, r.row, r.end,
                                        &r.precision);
            if (count > 0) {
                r.row += count;
                job = r.row < r.end ? SHORT : NOTHING;
                continue;
            }
            if (!take_rows(&r, offsets, work, p, checks)) return;
            job = GROUP;
        }
        const u32 is_edge = job == HEAD || job == TAIL;
        const team_range a = is_edge ? edge_range(offsets, p, job, &from, &until, next, checks)
                                     : next_range(&r, p, job);
        const state all =
            reduce_range(at, a.s, a.off, a.n, a.team, is_edge, shorts, &r.precision, &r.strikes);
        if (is_edge) {
            if (lane == 0) put_edge(OWN_EDGE + (job == HEAD ? 0 : STATE_WORDS), all);
            job = job == HEAD && is_cut ? TAIL : r.row < r.end ? SHORT : NOTHING;
            continue;
        }
        if (job == GROUP ? (lane & ((1u << a.team) - 1)) == r.turn : lane == late_lane(&r))
            r.kept = all;
        if (job == LATE) r.late &= r.late - 1;
        job = r.late ? LATE : put_rows(&r, at, work, out, p, shorts);
    }
}

#undef BLOCKS_A_UNIT
#if HAS_SQUARES
#define BLOCKS_A_UNIT GPU_ROWS_PRODUCT_BLOCKS_A_UNIT
#else
#define BLOCKS_A_UNIT GPU_ROWS_BLOCKS_A_UNIT
#endif
KERNEL rows(const GLOBAL u8 *x, const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
            const GRID_CONSTANT parts_plan plan) {
    wait_for_earlier();
    reduce_piece(x, offsets, work, out, &plan, 0, 0);
}

/* Returns to all lanes the state of a warp's part of a row: of n elements from s on, which lie `off` further on in
 * memory. The state is a near sum if `is_near`; else *precision and *strikes are those of add_part(). */
INLINED state reduce_part(aligned_elements at, u64 s, u64 off, u32 n, u32 is_near, u32 *precision,
                          u32 *strikes) {
#if HAS_SQUARES
    if (is_near) {
        const pack_range part = pack_range_of(at, s + off + at.skew, n);
        return merge_approximate(add_approximate_part(&part, WARP_LOG, 0), WARP_LOG);
    }
#endif
    return reduce_range(at, s, off, n, WARP_LOG, 1, 0, precision, strikes);
}

/* Returns the merged state of a and b; `are_near`: both are near sums. */
INLINED state merge_parts(state a, state b, u32 are_near) {
#if HAS_SQUARES
    if (are_near) return merge_near(a, b);
#endif
    return merge(a, b);
}

#define NEAR_TRIALS                                                                                \
    3u /* turns in which near sums may fail to decide a row before a block tries them no more */

/* The rows of one length that a block reduces at a time: a team of warps has one, and each warp a part of it. */
typedef struct block_teams {
    u32 warps, at_once;  /* of a team; the teams of the block */
    u32 each;            /* elements of a row */
    u32 own_from, own_n; /* where the calling warp's part begins, and how many elements it has */
} block_teams;

INLINED block_teams block_teams_of(const parts_plan *p) {
    block_teams t = {p->team, WARPS / p->team, (u32)p->rows.each, 0, 0};
    const u32 packs = t.warps * PACK, part = (t.each + packs - 1) / packs * PACK;
    t.own_from = threadIdx.x / WARP % t.warps * part;
    if (t.own_from > t.each) t.own_from = t.each;
    t.own_n = t.each - t.own_from < part ? t.each - t.own_from : part;
    return t;
}

/* Writes the results of the block's rows, from `first` on. One warp does it, a lane for each row, from the states of all
 * warps. Returns whether near sums did not decide one of them. */
INLINED u32 put_block(aligned_elements at, GLOBAL u64 *work, GLOBAL u8 *out, const parts_plan *p,
                      const block_teams *t, u64 first, const SHARED state *of_warp, u32 is_near) {
    const u32 lane = threadIdx.x % WARP;
    const u64 row = first + lane;
    u32 failed = 0, is_lost = 0;
    if (lane < t->at_once && row < p->rows.count) {
        state all = of_warp[lane * t->warps];
        UNROLL_NOT
        for (u32 w = 1; w < t->warps; w++)
            all = merge_parts(all, of_warp[lane * t->warps + w], is_near);
        if (HAS_SQUARES)
            failed = !put_approximate(work, out, p, row, row * t->each, t->each,
                                      LANE_DEPTH(t->each, WARP_LOG) + WARPS, all,
                                      is_near ? APPROXIMATE : PLAIN, &is_lost);
        else
            is_lost = put_row(work, out, p, row, row * t->each, t->each, all);
    }
    add_lost_rows(at, out, p, row, row * t->each, is_lost ? apart_of(p, row) : 0, t->each, is_lost);
    return HAS_SQUARES ? warp_votes(failed) != 0 : 0;
}

/* Reduces rows of one length; a team of a block's warps takes each row. While one warp writes results from one half
 * of of_warp[], the others go on, and write their next states to the other half. */
KERNEL block_rows(const GLOBAL u8 *x, const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
                  const GRID_CONSTANT parts_plan plan) {
    __shared__ state of_warp[2][WARPS];
    __shared__ u32 have_failed;
    wait_for_earlier();
    const aligned_elements at = aligned_elements_of(x, &plan);
    const block_teams t = block_teams_of(&plan);
    const u32 warp = threadIdx.x / WARP;
    u32 trials = HAS_SQUARES && can_approximate(&plan.lower, t.each) ? NEAR_TRIALS : 0;
    u32 is_near = trials > 0, precision = PLAIN, strikes = 0, turn = 0;
    u64 first = (u64)blockIdx.x * t.at_once;
    UNROLL_NOT
    while (first < plan.rows.count) {
        const u64 row = first + warp / t.warps;
        const u32 is_there = warp / t.warps < t.at_once && row < plan.rows.count;
        const state all = reduce_part(at, is_there ? row * t.each + t.own_from : 0,
                                      is_there ? apart_of(&plan, row) : 0, is_there ? t.own_n : 0,
                                      is_near, &precision, &strikes);
        if (threadIdx.x % WARP == 0) of_warp[turn % 2][warp] = all;
        __syncthreads();
        u32 failed = 0;
        if (warp == turn % WARPS)
            failed = put_block(at, work, out, &plan, &t, first, of_warp[turn % 2], is_near);
        if (HAS_SQUARES && is_near) {
            if (threadIdx.x == turn % WARPS * WARP) have_failed = failed;
            __syncthreads();
            failed = have_failed;
        } else
            failed = 0;
        turn++;
        trials -= failed;
        is_near = !failed && trials > 0; /* a failure: the same rows again, by exact sums */
        if (!failed) first += (u64)gridDim.x * t.at_once;
    }
}

/* Does what rows() does, for rows that are mostly short. The registers that these need would slow down other rows. */
#if defined(LIFT_SQUARE)
#undef BLOCKS_A_UNIT
#define BLOCKS_A_UNIT GPU_ROWS_BLOCKS_A_UNIT
#endif
KERNEL short_rows(const GLOBAL u8 *x, const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
                  const GRID_CONSTANT parts_plan plan) {
    __shared__ uint4 stage[WARPS * STAGE_PACKS];
    wait_for_earlier();
    reduce_piece(x, offsets, work, out, &plan, stage + threadIdx.x / WARP * STAGE_PACKS, 1);
}

#if HAS_ONE_WAY
/* Reduces rows of one length, of two packs or less. Each warp reduces a tile of rows at a time, while the next tile
 * is copied to the other half of its stage. */
#undef BLOCKS_A_UNIT
#define BLOCKS_A_UNIT GPU_ROWS_BLOCKS_A_UNIT
KERNEL few_rows(const GLOBAL u8 *x, const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
                const GRID_CONSTANT parts_plan plan) {
    __shared__ uint4 stages[WARPS * STAGE_PACKS];
    wait_for_earlier();
    SHARED uint4 *stage = stages + threadIdx.x / WARP * STAGE_PACKS,
                 *other = stage + STAGE_PACKS / 2;
    const aligned_elements at = aligned_elements_of(x, &plan);
    const u32 n = (u32)plan.rows.each, fit = (STAGE_PACKS / 2 - 1) * PACK / n;
    const u32 tile = fit < LOADS * WARP ? fit : LOADS * WARP;
    const u64 rows = plan.rows.count, step = (u64)gridDim.x * WARPS * tile;
    u64 row = ((u64)blockIdx.x * WARPS + threadIdx.x / WARP) * tile;
    if (row >= rows) return;
    u32 count = rows - row < tile ? (u32)(rows - row) : tile;
    stage_elements(stage, at, row * n + at.skew, count * n);
    UNROLL_NOT
    while (count > 0) {
        const u64 next = row + step, base = row * n;
        const u32 coming = next >= rows ? 0 : rows - next < tile ? (u32)(rows - next) : tile;
        if (coming > 0) {
            stage_elements(other, at, next * n + at.skew, coming * n);
            wait_for_copies(1);
        } else
            wait_for_copies(0);
        sync_warp();
        const u32 skew = (u32)((base + at.skew) % PACK);
        put_few((const SHARED element *)stage + skew, at, work, out, &plan, row, count, n,
                skew == 0 && n % PACK == 0, base);
        sync_warp();
        SHARED uint4 *const last = stage;
        stage = other;
        other = last;
        row = next;
        count = coming;
    }
}
#endif

/* A thread looks at a piece, and merges the states of a row that begins in it and ends in a later one. A row of more
 * than ALONE pieces is left to a warp, and one of more than OF_A_WARP pieces to all threads of the block. */
#define ALONE     (2 * JOINED)
#define OF_A_WARP (2 * JOINED * WARP)
#if JOINS_QUAD_DOUBLES
#define JOINED_STATE(r, s)                                                                         \
    do {                                                                                           \
        const state joined = s;                                                                    \
        if (joined.tag & TAG_LOST)                                                                 \
            lossy[atomicAdd(&lossy_count, 1u)] = (r).piece;                                        \
        else                                                                                       \
            put_state(work, out, &plan, (r).row, (r).start, (r).n, joined);                        \
    } while (0)
#else
#define JOINED_STATE(r, s) put_state(work, out, &plan, (r).row, (r).start, (r).n, s)
#endif
KERNEL join_rows(const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
                 const GRID_CONSTANT parts_plan plan) {
    __shared__ state of_warp[WARPS];
    __shared__ u64 left[BLOCK];
    __shared__ u32 count;
#if JOINS_QUAD_DOUBLES
    __shared__ u64 lossy[BLOCK];
    __shared__ u32 lossy_count;
#endif
    wait_for_earlier();
    if (!may_begin(work, &plan)) return;
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    if (threadIdx.x == 0) count = 0;
#if JOINS_QUAD_DOUBLES
    if (threadIdx.x == 0) lossy_count = 0;
#endif
    __syncthreads();
    const cut_row own = get_cut_row(offsets, work, &plan, (u64)blockIdx.x * BLOCK + threadIdx.x);
    if (own.n > 0) {
        if (own.last - own.piece < ALONE)
            JOINED_STATE(own, join_part(work, &plan, own.piece, own.last, own.piece, 1));
        else
            left[atomicAdd(&count, 1u)] = own.piece;
    }
    __syncthreads();
    for (u32 i = warp; i < count; i += WARPS) {
        const cut_row r = get_cut_row(offsets, work, &plan, left[i]);
        if (r.last - r.piece >= OF_A_WARP) continue;
        const state s =
            merge_team(join_part(work, &plan, r.piece, r.last, r.piece + lane, WARP), WARP_LOG);
        if (lane == 0) JOINED_STATE(r, s);
    }
    for (u32 i = 0; i < count; i++) {
        const cut_row r = get_cut_row(offsets, work, &plan, left[i]);
        if (r.last - r.piece < OF_A_WARP) continue;
        state s = merge_team(join_part(work, &plan, r.piece, r.last, r.piece + threadIdx.x, BLOCK),
                             WARP_LOG);
        if (lane == 0) of_warp[warp] = s;
        __syncthreads();
        for (u32 w = 1; w < WARPS && threadIdx.x == 0; w++)
            s = merge(s, of_warp[w]);
        if (threadIdx.x == 0) JOINED_STATE(r, s);
        __syncthreads();
    }
#if JOINS_QUAD_DOUBLES
    __syncthreads();
    for (u32 i = warp; i < lossy_count; i += WARPS) {
        const cut_row r = get_cut_row(offsets, work, &plan, lossy[i]);
        const quad_double a = join_quad_double(work, &plan, r.piece, r.last);
        if (lane == 0) put_quad_double(work, out, &plan, r.row, r.n, a);
    }
#endif
}
