/*
 * row_stage.h - short rows, which come as whole packs to the warp's stage in shared memory, wherever they begin and end, as
 * many as fit there.
 *
 * Before including this header, include teams.h, row_results.h and copies.h.
 */
#ifndef TALLY_SCHEDULE_ROW_STAGE_H
#define TALLY_SCHEDULE_ROW_STAGE_H

/* Packs of the warp's stage: 9 KB, 216 KB for the 24 warps of a multiprocessor that has 227; else 6 KB. */
#if ABILITY >= 900
#define STAGE_PACKS (18 * WARP)
#else
#define STAGE_PACKS (STAGES * LOADS * WARP)
#endif
#define STAGE_BYTES (16 * STAGE_PACKS)
#define OFFSETS     12 /* bytes of the stage for a row's offset: as read and as used */

#define STAGE_STEPS 12u /* the most rows of a lane at a time */
/* The least mean elements of a lane for which rows are read by packs wherever they begin. The elements before and behind the
 * packs take long; on an H200 packs lose at 16 elements a lane, and gain at 50. */
#define PACKED_LEAST 24u

/* How short rows are staged: `rows` at a time, none of them longer than `most`, each taken by a team of 2^t lanes. If
 * `rows` is 0, none are. The offsets of those from row `ahead` on are under way, or there. `are_packs`: each of the
 * rows that are staged now has as many elements as a pack. `by_packs`: rows are read by packs wherever
 * they begin and end, not in the order of their elements. */
typedef struct staging {
    u32 rows, t, most, are_packs, by_packs;
    u64 ahead;
} staging;

PURE staging staging_for(u64 mean, u32 has_offsets) {
    staging how = {0, 0, 0, 0, 0, ~(u64)0};
    const u32 width = sizeof(element), row = (u32)mean * width;
    if (mean * width * 2 > STAGE_BYTES) return how;
    const u32 fit = (STAGE_BYTES - 64) / (has_offsets ? row + OFFSETS : row > 0 ? row : 1);
    while (how.t < WARP_LOG && (WARP >> how.t > fit + fit / 2 || mean > ADDED << how.t))
        how.t++;
    const u32 team = WARP >> how.t, most = (STAGE_STEPS - 1) * WARP;
    how.rows = fit < team ? fit : fit / team * team;
    if (how.rows > most) how.rows = most;
    how.by_packs = !FIRST_COUNTS && mean >= PACKED_LEAST << how.t;
    how.most = 4 * (u32)mean > ADDED << how.t ? 4 * (u32)mean : ADDED << how.t;
    return how;
}

/* Begins to copy the offsets of rows [row, row + count] to the stage, 8 bytes for each. */
INLINED void stage_offsets(SHARED u64 *raw, const GLOBAL u8 *offsets, const parts_plan *p, u64 row,
                           u32 count) {
    const u32 width = (u32)p->rows.kind;
    const GLOBAL u8 *from = offsets + p->rows.offsets + row * width;
    for (u32 i = threadIdx.x % WARP; i <= count; i += WARP) {
        if (width == 8)
            begin_copy((SHARED u8 *)(raw + i), from + i * 8, 8);
        else
            begin_copy((SHARED u8 *)(raw + i), from + i * 4, 4);
    }
    end_copies();
}

/* Begins to copy elements at positions [from, from + n) to the stage. The stage's first pack is the
 * one with the first element. All lanes of the warp call this. */
INLINED void stage_elements(SHARED uint4 *stage, aligned_elements at, u64 from, u32 n) {
    const u32 lane = threadIdx.x % WARP, skew = (u32)(from % PACK);
    const u64 first = from - skew;
    const u32 packs = (skew + n + PACK - 1) / PACK;
    const GLOBAL uint4 *x = (const GLOBAL uint4 *)(at.x + first);
    if (first >= at.skew && first + (u64)packs * PACK <= at.end) {
        for (u32 i = lane; i < packs; i += WARP)
            begin_copy((SHARED u8 *)(stage + i), x + i, 16);
    } else {
        UNROLL_NOT
        for (u32 i = lane; i < packs; i += WARP) {
            const u64 o = first + (u64)i * PACK;
            if (o >= at.skew && o + PACK <= at.end)
                begin_copy((SHARED u8 *)(stage + i), x + i, 16);
            else
                stage[i] = load_edge(at.x + o, o < at.skew ? at.skew : 0,
                                     at.end - o < PACK ? (u32)(at.end - o) : PACK, 0)
                               .all;
        }
    }
    end_copies();
}

/* Lanes of neighbouring rows begin with different packs, which lie in different banks of shared memory.
 * Where the first of equal elements counts, all begin with the first pack. */
#if FIRST_COUNTS
#define LANES_TURN(packs, lane) 0u
#define LANES_ROUND(packs)      (~0u)
#else
#define IS_ROUND(packs) ((packs) > 1 && ((packs) & ((packs)-1)) == 0)
#define LANES_TURN(packs, lane)                                                                    \
    (IS_ROUND(packs) ? PACK * ((packs) >= 8 ? (lane) : (packs) == 4 ? (lane) / 2 : (lane) / 4) : 0u)
#define LANES_ROUND(packs) (IS_ROUND(packs) ? PACK * (packs)-1 : ~0u)
#endif

/* How the rows that a warp takes at once are read: element by element; by packs, as all consist of these; or by packs but
 * for elements before and behind, wherever rows begin and end. */
enum { BY_ELEMENTS, IN_PACKS, BY_PACKS };

/* A row of n elements in the stage, from x on, as one lane of its team of 2^t sees it. Elements [before, behind) are taken by
 * packs, if any are. */
typedef struct staged_row {
    const SHARED element *x;
    u32 n, t, how, before, behind;
    u32 of_team, turn, round;
} staged_row;

/* Returns how the lane sees a row that begins at element `at` of the stage, `stage` being at a multiple of 16 bytes. */
PURE staged_row staged_row_of(const SHARED element *stage, u32 at, u32 n, u32 t, u32 how) {
    const u32 lane = threadIdx.x % WARP, of_team = lane & ((1u << t) - 1), packs = n / PACK;
    const u32 turn = t == 0 || packs >= 8 ? LANES_TURN(packs, lane - of_team) : 0;
    staged_row r = {stage + at, n, t, how, 0, n, of_team, turn, LANES_ROUND(packs)};
    if (how == BY_PACKS && (at | n) % PACK != 0) {
        r.before = n >= 2 * PACK << t ? (0u - at) % PACK : n;
        r.behind = n - (n - r.before) % PACK;
        r.turn = 0;
        r.round = ~0u;
    }
    return r;
}

/* Returns the number of the lane's first element, or NOWHERE, where the first of equal elements counts; and the most elements
 * that a lane of the team has. */
PURE u32 first_of_lane(const staged_row *r) {
    const u32 first = r->how == BY_ELEMENTS ? r->of_team : r->of_team * PACK;
    return first < r->n ? first : NOWHERE;
}
PURE u32 most_of_lane(const staged_row *r) {
    return r->t > 0 ? (r->n >> r->t) + 2 * PACK : r->n;
}

/* Runs OF_PACK for each pack of the lane, `w`, whose first element has the number `first`; and OF_ELEMENT for each other
 * element of the lane, `e`, whose number is `o`. */
#define STAGED_PACKS(r, OF_PACK, OF_ELEMENT)                                                       \
    do {                                                                                           \
        if ((r)->how == BY_ELEMENTS)                                                               \
            for (u32 o = (r)->of_team; o < (r)->n; o += 1u << (r)->t) {                            \
                const element e = (r)->x[o];                                                       \
                OF_ELEMENT;                                                                        \
            }                                                                                      \
        else {                                                                                     \
            UNROLL_NOT                                                                             \
            for (u32 i = (r)->before + (r)->of_team * PACK; i < (r)->behind;                       \
                 i += (u32)PACK << (r)->t) {                                                       \
                const u32 first = (i + (r)->turn) & (r)->round;                                    \
                pack w;                                                                            \
                w.all = *(const SHARED uint4 *)((r)->x + first);                                   \
                OF_PACK;                                                                           \
            }                                                                                      \
            const u32 packed = (r)->behind - (r)->before;                                          \
            if ((r)->how == BY_PACKS) UNROLL_NOT                                                   \
            for (u32 i = (r)->of_team; i < (r)->n - packed; i += 1u << (r)->t) {                   \
                const u32 o = i < (r)->before ? i : i + packed;                                    \
                const element e = (r)->x[o];                                                       \
                OF_ELEMENT;                                                                        \
            }                                                                                      \
        }                                                                                          \
    } while (0)

/* Runs SOMETHING for each element of the lane, `e`, whose number in the row is `o`. */
#define STAGED_ELEMENTS(r, SOMETHING)                                                              \
    STAGED_PACKS(                                                                                  \
        r,                                                                                         \
        UNROLL for (u32 j = 0; j < PACK; j++) {                                                    \
            const element e = w.e[j];                                                              \
            const u32 o = first + j;                                                               \
            SOMETHING;                                                                             \
        },                                                                                         \
        SOMETHING)

#if LOOKS_FIRST
/* Adds the lane's elements to a batch: to its chains, if these have room for so many, and all fit. */
INLINED void add_staged_row(const staged_row *r, batch *k) {
    const u32 are_few = most_of_lane(r) <= 1u << CHAIN_LOG;
    STAGED_PACKS(r, look(k, &w), look_at_one(k, e));
    if (open_for_noted(k) && are_few)
        STAGED_PACKS(r, UNROLL for (u32 j = 0; j < PACK; j++) add_fitting(k, w.e[j], j % ABREAST),
                     add_fitting(k, e, 0));
    else
        STAGED_ELEMENTS(r, ((void)o, add_compensated(k, e, 1)));
}
#else
INLINED void add_staged_row(const staged_row *r, batch *k) {
    STAGED_PACKS(r, add_pack(k, &w, first), add(k, e, o, 1));
}
#endif

#if HAS_PLAIN
/* If `is_plain`, judges the plain sum of a lane's part of a staged row, which *got is. Adds that part again at higher levels, as
 * *precision says. */
INLINED void add_staged_again(const staged_row *r, u32 is_plain, const batch *plain, state *got,
                              u32 *precision) {
    const u32 power = power_for(most_of_lane(r));
    if (is_plain && HAS_COMPENSATED && !plain_sum_is_exact(plain, power))
        got->tag |= TAG_APPROXIMATE;
    if (is_plain && !HAS_COMPENSATED && warp_votes(!plain_sum_is_exact(plain, power)) != 0)
        *precision = DOUBLE_DOUBLE;
    if (TRIES_COMPENSATED && *precision == COMPENSATED) {
        batch k;
        begin(&k, 0);
        STAGED_ELEMENTS(r, ((void)o, add_compensated(&k, e, 1)));
        *got = finish_compensated(&k);
        if (warp_votes(!compensated_sum_is_exact(&k, power)) != 0) *precision = DOUBLE_DOUBLE;
    }
    if (*precision == DOUBLE_DOUBLE) {
        *got = none();
        UNROLL_NOT
        for (u32 i = r->of_team; i < r->n; i += 1u << r->t)
            add_double_double((double)widen(r->x[i]), got);
    }
}
#else
INLINED void add_staged_again(const staged_row *r, u32 is_plain, const batch *plain, state *got,
                              u32 *precision) {}
#endif

/* Returns the state of the lane's part of a row in the stage. `start` is the number of the row's first element. All lanes of
 * the warp call this. *precision is that of add_part(). */
INLINED state add_staged(const staged_row *r, u64 start, u32 *precision) {
    state got = none();
#if HAS_SQUARES
    if (*precision == APPROXIMATE) {
        near_squares near = {0, 0};
        if (SQUARES_IN_FLOATS && most_of_lane(r) <= NEAR_MOST) {
            STAGED_ELEMENTS(r, ((void)o, add_near(&near, e, 1)));
            end_near(&near, &got);
        } else
            STAGED_ELEMENTS(r, ((void)o, add_approximate(&got, e, 1, 0)));
        return got;
    }
#endif
    batch k;
    const u32 is_plain = *precision == PLAIN;
    begin(&k, first_of_lane(r));
    if (is_plain) {
        add_staged_row(r, &k);
        got = finish(&k, start);
    }
    add_staged_again(r, is_plain, &k, &got, precision);
    return got;
}

/* HAS_ONE_WAY is 1 where a lane may take several short rows of one length at once: not for sums with squares. */
#if HAS_SQUARES
#define HAS_ONE_WAY 0
#else
#define HAS_ONE_WAY 1
#endif

#if HAS_ONE_WAY
#if HAS_COMPENSATED
/* Returns the state of n elements of the stage, a double-double. */
SELDOM state double_double_row(const SHARED element *x, u32 n) {
    state s = none();
    UNROLL_NOT
    for (u32 j = 0; j < n; j++)
        add_double_double((double)widen(x[j]), &s);
    return s;
}
#endif

/* Runs OF_PACK for each pack `w` of LOADS rows of n elements, of which row i begins at x + at[i]; or, where rows are not
 * made of packs, OF_ELEMENT for each element `e`. */
#define FEW_PACKS(OF_PACK, OF_ELEMENT)                                                             \
    do {                                                                                           \
        if (in_packs) {                                                                            \
            const u32 turn = LANES_TURN(n / PACK, threadIdx.x % WARP),                             \
                      round = LANES_ROUND(n / PACK);                                               \
            UNROLL_NOT                                                                             \
            for (u32 q = 0; q < n; q += PACK) {                                                    \
                const u32 o = (q + turn) & round;                                                  \
                UNROLL                                                                             \
                for (u32 i = 0; i < LOADS; i++) {                                                  \
                    pack w;                                                                        \
                    w.all = *(const SHARED uint4 *)(x + (at[i] + o));                              \
                    OF_PACK;                                                                       \
                }                                                                                  \
            }                                                                                      \
        } else {                                                                                   \
            UNROLL_NOT                                                                             \
            for (u32 o = 0; o < n; o++)                                                            \
                UNROLL                                                                             \
            for (u32 i = 0; i < LOADS; i++) {                                                      \
                const element e = x[at[i] + o];                                                    \
                OF_ELEMENT;                                                                        \
            }                                                                                      \
        }                                                                                          \
    } while (0)

/* Adds LOADS rows of n <= ADDED elements each to a batch each. */
#if LOOKS_FIRST
INLINED void add_few(batch *k, const SHARED element *x, const u32 *at, u32 n, u32 in_packs) {
    u32 fit[LOADS];
    FEW_PACKS(((void)o, look(&k[i], &w)), look_at_one(&k[i], e));
    UNROLL
    for (u32 i = 0; i < LOADS; i++)
        fit[i] = open_for_noted(&k[i]);
    FEW_PACKS((void)o; if (fit[i]) UNROLL for (u32 j = 0; j < PACK; j++)
                           add_fitting(&k[i], w.e[j], 0),
                       if (fit[i]) add_fitting(&k[i], e, 0));
    UNROLL
    for (u32 i = 0; i < LOADS; i++)
        if (!fit[i]) {
            UNROLL_NOT
            for (u32 o = 0; o < n; o++)
                add_compensated(&k[i], x[at[i] + o], 1);
        }
}
#else
INLINED void add_few(batch *k, const SHARED element *x, const u32 *at, u32 n, u32 in_packs) {
    FEW_PACKS(add_pack(&k[i], &w, o), add(&k[i], e, o, 1));
}
#endif

/* Reduces rows [row, row + count) of n <= ADDED elements each, which lie in the stage from x on: a lane takes LOADS of
 * them at once. `in_packs`: they are made of whole packs. */
INLINED void put_few(const SHARED element *x, aligned_elements all, GLOBAL u64 *work,
                     GLOBAL u8 *out, const parts_plan *p, u64 row, u32 count, u32 n, u32 in_packs,
                     u64 base) {
    const u32 lane = threadIdx.x % WARP;
    UNROLL_NOT
    for (u32 from = 0; from < count; from += LOADS * WARP) {
        batch k[LOADS];
        u32 at[LOADS], is_lost = 0; /* bit i: of row i */
        UNROLL
        for (u32 i = 0; i < LOADS; i++) {
            const u32 r = from + i * WARP + lane;
            at[i] = r < count ? r * n : 0;
            begin(&k[i], 0);
        }
        add_few(k, x, at, n, in_packs);
        UNROLL
        for (u32 i = 0; i < LOADS; i++) {
            const u32 r = from + i * WARP + lane;
            state now = finish(&k[i], base + at[i]);
            if (r >= count) continue;
#if HAS_COMPENSATED
            if (!plain_sum_is_exact(&k[i], 6)) {
                u64 bits;
                if (approximate_sum_rounds(double_from(now.w[0]), now.tag,
                                           (u32)elements_of(work, p, row + r, n), VALUE_OP(p, 0),
                                           VALUE_TYPE(p, 0), &bits)) {
                    put(out, p, 0, row + r, bits);
                    continue;
                }
                now = double_double_row(x + at[i], n);
            }
#endif
            is_lost |= put_state(work, out, p, row + r, base + at[i], n, now) << i;
        }
        if (warp_votes(is_lost) == 0) continue;
        UNROLL_NOT
        for (u32 i = 0; i < LOADS; i++) {
            const u32 r = from + i * WARP + lane;
            add_lost_rows(all, out, p, row + r, base + (u64)r * n, 0, n, is_lost >> i & 1);
        }
    }
}
#else
INLINED void put_few(const SHARED element *x, aligned_elements all, GLOBAL u64 *work,
                     GLOBAL u8 *out, const parts_plan *p, u64 row, u32 count, u32 n, u32 in_packs,
                     u64 base) {}
#endif

/* Rows in the stage: `count` of them from number `row` on, whose first element has the number `base`; a row's elements lie
 * from x[skew + start] on. starts[] are there where rows are of different lengths, else each is `each` long. */
typedef struct staged_rows {
    u64 row, base;
    u32 count, each, skew;
    const SHARED u32 *starts;
    const SHARED element *x;
} staged_rows;

/* Returns how many of the rows whose starts are staged may be read, and are no longer than the stage takes. */
INLINED u32 count_good_rows(staging *how, const SHARED u32 *starts, u32 all, u32 last) {
    const u32 lane = threadIdx.x % WARP;
    u32 is_wrong = 0, is_other = 0, count = all;
    for (u32 i = lane; i < all; i += WARP) {
        const u32 to = starts[i + 1], length = to - starts[i];
        is_wrong |= to > last || length > how->most;
        is_other |= length != PACK;
    }
    how->are_packs = warp_votes(is_other) == 0;
    if (warp_votes(is_wrong) == 0) return all;
    UNROLL_NOT
    for (u32 i = 0; i < all && count == all; i += WARP) {
        const u32 own = i + lane < all ? i + lane : all - 1;
        const u32 to = starts[own + 1];
        const u32 votes = warp_votes(to > last || to - starts[own] > how->most);
        if (votes != 0) count = i + lowest_bit(votes);
    }
    return count;
}

/* Brings rows [row, end) and their offsets to the stage, as many as fit there, and the offsets of the next ones on their
 * way. The stage has: numbers of elements from `base` on; the offsets as they come; the elements. */
INLINED staged_rows stage_by_offsets(SHARED uint4 *stage, staging *how, aligned_elements at,
                                     const GLOBAL u8 *offsets, const parts_plan *p, u64 row,
                                     u64 end) {
    const u32 all = end - row < how->rows ? (u32)(end - row) : how->rows;
    const u32 packs = (how->rows + 1 + 3) / 4, raws = (how->rows + 1 + 1) / 2;
    const u32 most = (STAGE_PACKS - packs - raws - 1) * PACK, width = (u32)p->rows.kind;
    SHARED u32 *starts = (SHARED u32 *)stage;
    SHARED u64 *raw = (SHARED u64 *)(stage + packs);
    staged_rows s = {row, 0, 0, 0, 0, starts, (const SHARED element *)(stage + packs + raws)};
    wait_for_copies(0);
    if (how->ahead != row) {
        stage_offsets(raw, offsets, p, row, all);
        wait_for_copies(0);
    }
    sync_warp();
    s.base = width == 8 ? raw[0] : (u64)(i64) * (const SHARED i32 *)raw;
    if (s.base <= p->n) {
        for (u32 i = threadIdx.x % WARP; i <= all; i += WARP) {
            const u64 into =
                (width == 8 ? raw[i] : (u64)(i64) * (const SHARED i32 *)(raw + i)) - s.base;
            starts[i] = into < PART_MOST ? (u32)into : PART_MOST;
        }
        sync_warp();
        s.count =
            count_good_rows(how, starts, all, p->n - s.base < most ? (u32)(p->n - s.base) : most);
    }
    if (s.count == 0) {
        sync_warp();
        return s;
    }
    stage_elements(stage + packs + raws, at, s.base + at.skew, starts[s.count]);
    const u64 next = row + s.count;
    if (next < end) {
        stage_offsets(raw, offsets, p, next,
                      end - next < how->rows ? (u32)(end - next) : how->rows);
        how->ahead = next;
        wait_for_copies(1);
    } else
        wait_for_copies(0);
    return s;
}

/* Brings rows [row, end) of one length to the stage, as many as fit there. */
INLINED staged_rows stage_equal(SHARED uint4 *stage, staging *how, aligned_elements at,
                                const parts_plan *p, u64 row, u64 end) {
    staged_rows s = {row, row * p->rows.each,           0, (u32)p->rows.each, 0,
                     0,   (const SHARED element *)stage};
    s.count = end - row < how->rows ? (u32)(end - row) : how->rows;
    how->are_packs = s.each == PACK;
    stage_elements(stage, at, s.base + at.skew, s.count * s.each);
    wait_for_copies(0);
    return s;
}

/* Reduces the rows of the stage by teams of 2^t lanes; `by_packs`: by packs, whether or not all rows consist of these. */
INLINED void put_by_teams(const staged_rows *s, u32 t, u32 by_packs, aligned_elements all,
                          GLOBAL u64 *work, GLOBAL u8 *out, const parts_plan *p, u32 *precision) {
    const u32 lane = threadIdx.x % WARP, team = WARP >> t, of_team = lane & ((1u << t) - 1);
    state kept = none();
    u32 kept_at = 0, kept_n = 0, failed = 0, back = DOUBLE_DOUBLE;
    UNROLL_NOT
    for (u32 g = 0; g * team < s->count; g++) {
        const u32 r = g * team + (lane >> t), is_there = r < s->count;
        u32 at = 0, length = 0, is_lost = 0, in_packs = s->each % PACK == 0 && s->skew == 0;
        if (is_there) {
            at = s->each > 0 ? r * s->each : s->starts[r];
            length = s->each > 0 ? s->each : s->starts[r + 1] - at;
        }
        if (s->each == 0) in_packs = warp_votes(((s->skew + at) | length) % PACK) == 0;
        const u32 how = in_packs ? IN_PACKS : by_packs ? BY_PACKS : BY_ELEMENTS;
        if (t == 0) { /* known to the compiler here */
            const staged_row own = staged_row_of(s->x, s->skew + at, length, 0, how);
            const state now = add_staged(&own, s->base + at, precision);
            failed = votes_of(is_there &&
                              !put_approximate(work, out, p, s->row + r, s->base + at, length,
                                               LANE_DEPTH(length, t), now, *precision, &is_lost));
            add_lost_rows(all, out, p, s->row + r, s->base + at, 0, length, is_lost);
            retry(failed, team / 2, precision, &back);
            if (failed != 0) g--; /* the same rows again */
            continue;
        }
        const staged_row own_part = staged_row_of(s->x, s->skew + at, length, t, how);
        const state now =
            merge_at_level(add_staged(&own_part, s->base + at, precision), t, *precision);
        if (of_team == (g & ((1u << t) - 1))) {
            kept = now;
            kept_at = at;
            kept_n = length;
        }
        if ((~g & ((1u << t) - 1)) != 0 && (g + 1) * team < s->count) continue;
        const u32 own = ((g & ~((1u << t) - 1)) + of_team) * team + (lane >> t);
        const u32 has_own = own < s->count && of_team <= (g & ((1u << t) - 1));
        failed = votes_of(has_own &&
                          !put_approximate(work, out, p, s->row + own, s->base + kept_at, kept_n,
                                           LANE_DEPTH(kept_n, t), kept, *precision, &is_lost));
        add_lost_rows(all, out, p, s->row + own, s->base + kept_at, 0, kept_n, is_lost);
        retry(failed, WARP / 2, precision, &back);
        if (failed != 0) g = (g & ~((1u << t) - 1)) - 1;
    }
}

/* Reduces rows [row, end) through the warp's stage, as many as fit there, and returns their number.
 * All lanes of the warp call this. *precision is that of add_part(). */
INLINED u32 put_staged_rows(SHARED uint4 *stage, staging *how, aligned_elements at,
                            const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
                            const parts_plan *p, u64 row, u64 end, u32 *precision) {
    staged_rows s;
    if (p->rows.kind == 0)
        s = stage_equal(stage, how, at, p, row, end);
    else
        s = stage_by_offsets(stage, how, at, offsets, p, row, end);
    if (s.count == 0) return 0;
    sync_warp();
    s.skew = (u32)((s.base + at.skew) % PACK);
    if (HAS_ONE_WAY && how->are_packs && s.skew == 0)
        put_few(s.x, at, work, out, p, row, s.count, PACK, 1, s.base);
    else
        put_by_teams(&s, how->t, how->by_packs, at, work, out, p, precision);
    sync_warp();
    return s.count;
}

#endif
