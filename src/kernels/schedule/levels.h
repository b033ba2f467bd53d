/*
 * levels.h - the precision level at which a lane adds its part of a row, and how rows are tried again at the next level
 * (state/float_sum.h). For states with one level only, the functions for other levels are empty.
 *
 * Before including this header, include a state and packs.h.
 */
#ifndef TALLY_SCHEDULE_LEVELS_H
#define TALLY_SCHEDULE_LEVELS_H

#define STRIKES 1u  /* after more failures than this, a piece does not try plain sums again */
#define ADDED   64u /* elements that a lane adds at a time, at most */
/* A batch, which a lane tests for exactness as a whole, has at most 2^BATCH_POWER elements: BATCH_TURNS times ADDED. To
 * close one takes doubles, so batches in floats are as long as their integers allow. */
#if LOOKS_FIRST
#define BATCH_POWER 13
#if TURNS_MOST < 1u << (BATCH_POWER - 6)
#error "a batch has more turns than TURNS_MOST"
#endif
#else
#define BATCH_POWER 6
#endif
#define BATCH_TURNS (1u << (BATCH_POWER - 6))

/* Precision levels, from cheap to exact, of which a state has those that its HAS_...s say, and PLAIN. APPROXIMATE: sums
 * have a bound, and Ziv's rounding test decides. PLAIN: additions without errors, as exponents show; of f64
 * double-doubles. COMPENSATED: errors are added up plainly. DOUBLE_DOUBLE: notes the bits that it loses. */
enum { APPROXIMATE, PLAIN = HAS_SQUARES, COMPENSATED, DOUBLE_DOUBLE = PLAIN + HAS_COMPENSATED + 1 };
/* Sums in floats have their errors on the plain level already. */
#define TRIES_COMPENSATED (HAS_COMPENSATED && !LOOKS_FIRST)

/* Returns the least p with n <= 2^p, but at least 6. */
PURE u32 power_for(u32 n) {
    return n <= ADDED ? 6 : 32 - leading_zeros(n - 1);
}

/* Adds the packs of CHUNKS chunks, from that at *c on, to the batch; *c is behind them afterwards. If `is_long`, and
 * all lie in the range, their loads are all under way at once. Sums, which take longer than extremes, prefetch the
 * next packs meanwhile. */
INLINED void add_chunks(batch *k, const pack_range *r, u32 *c, u32 step, u32 is_long) {
    if (is_long && LONG_LOADS > LOADS &&
        warp_votes(*c >= r->from && *c + ((LONG_LOADS - 1) * step + PACK) <= r->to) == FULL_WARP) {
        pack p[LONG_LOADS];
        load_packs(p, LONG_LOADS, step, r, *c);
        if (HAS_PLAIN && step == PACK * WARP) prefetch_packs(LONG_LOADS, r, *c);
        add_packs(k, p, LONG_LOADS, step, r, *c);
        *c += LONG_LOADS * step;
        return;
    }
    UNROLL_NOT
    for (u32 n = 0; n < CHUNKS && warp_votes(*c < r->to); n++, *c += LOADS * step) {
        pack p[LOADS];
        if (warp_votes(*c >= r->from && *c + ((LOADS - 1) * step + PACK) <= r->to) == FULL_WARP) {
            load_packs(p, LOADS, step, r, *c);
            add_packs(k, p, LOADS, step, r, *c);
        } else {
            load_packs_in_range(p, LOADS, step, r, *c);
            add_packs_in_range(k, p, LOADS, step, r, *c);
        }
    }
}

/* Returns the batch of the packs from that at *c on, up to BATCH_TURNS times as many; *c is behind them afterwards. */
INLINED batch add_batch(const pack_range *r, u32 *c, u32 step, u32 is_long) {
    batch k;
    begin_at(&k, r, *c);
    UNROLL_NOT
    for (u32 turn = 0; turn < BATCH_TURNS && (BATCH_TURNS == 1 || warp_votes(*c < r->to)); turn++) {
        add_chunks(&k, r, c, step, is_long);
#if LOOKS_FIRST
        turn_chains(&k);
#endif
    }
    return k;
}

#if HAS_PLAIN
/* Returns the least p with no more than 2^p elements in a batch. */
PURE u32 power_of_batch(const batch *k) {
#if LOOKS_FIRST
    return power_for(ADDED * k->turns);
#else
    return BATCH_POWER;
#endif
}

/* Returns the level at which the warp's batches are right: *precision if all plain sums are exact, else the next
 * level. Where states have a compensated level, `may_approximate` keeps it at *precision, and the tag of *got says if
 * the sum is approximate. *precision rises after more than STRIKES failures, or after the first where there is no
 * such level. */
INLINED u32 level_of(const batch *k, u32 may_approximate, state *got, u32 *precision,
                     u32 *strikes) {
    const u32 is_exact = plain_sum_is_exact(k, power_of_batch(k));
    if (HAS_COMPENSATED && may_approximate) {
        got->tag |= is_exact ? 0 : TAG_APPROXIMATE;
        return *precision;
    }
    if (warp_votes(!is_exact) == 0) return *precision;
    const u32 next = TRIES_COMPENSATED ? COMPENSATED : DOUBLE_DOUBLE;
    if (!HAS_COMPENSATED || (*strikes)++ >= STRIKES) *precision = next;
    return next;
}

/* Returns a batch of compensated sums, of the elements in the range among BATCH_TURNS * CHUNKS chunks from c on. */
INLINED batch add_compensated_chunks(const pack_range *r, u32 c, u32 step) {
    batch k;
    begin(&k, 0);
    UNROLL_NOT
    for (u32 n = 0; n < BATCH_TURNS * CHUNKS && warp_votes(c < r->to); n++, c += LOADS * step) {
        pack t[LOADS];
        load_packs_in_range(t, LOADS, step, r, c);
        UNROLL
        for (u32 i = 0; i < LOADS; i++)
            UNROLL
        for (u32 j = 0; j < PACK; j++) {
            const u32 o = c + i * step + j;
            add_compensated(&k, t[i].e[j], o < r->to && (i > 0 || o >= r->from));
        }
    }
    return k;
}

/* Returns the state, in double-doubles, of the elements in the range among BATCH_TURNS * CHUNKS chunks from c on. */
INLINED state add_double_double_chunks(const pack_range *r, u32 c, u32 step) {
    state mine = none();
    UNROLL_NOT
    for (u32 n = 0; n < BATCH_TURNS * CHUNKS && warp_votes(c < r->to); n++, c += LOADS * step) {
        pack t[LOADS];
        load_packs_in_range(t, LOADS, step, r, c);
        UNROLL
        for (u32 i = 0; i < LOADS; i++)
            UNROLL
        for (u32 j = 0; j < PACK; j++) {
            const u32 o = c + i * step + j;
            add_double_double((double)taken(t[i].e[j], o < r->to && (i > 0 || o >= r->from)),
                              &mine);
        }
    }
    return mine;
}

/* Makes *got the state of the chunks from c on, at `level` or, if that is not exact, a higher one. */
INLINED void add_at_level(state *got, u32 level, const pack_range *r, u32 c, u32 step,
                          u32 *precision) {
    if (TRIES_COMPENSATED && level == COMPENSATED) {
        const batch k = add_compensated_chunks(r, c, step);
        *got = finish_compensated(&k);
        if (warp_votes(!compensated_sum_is_exact(&k, BATCH_POWER)) != 0)
            *precision = level = DOUBLE_DOUBLE;
    }
    if (level == DOUBLE_DOUBLE) *got = add_double_double_chunks(r, c, step);
}
#else
INLINED u32 level_of(const batch *k, u32 may_approximate, state *got, u32 *precision,
                     u32 *strikes) {
    return PLAIN;
}
INLINED void add_at_level(state *got, u32 level, const pack_range *r, u32 c, u32 step,
                          u32 *precision) {}
#endif

/* Returns the state of the lane's part of a range; the lanes of a team of 2^t take its packs in
 * turn. All lanes of the warp call this, each team with a range of its own. `first` is the number of
 * the element at the range's x. *precision is the precision level, and only rises: a level that failed in
 * a piece more than STRIKES times is not tried again there. `is_long`: rows are long enough for more loads at once.
 * `may_approximate`: the sum may be approximate. */
INLINED state add_part(const pack_range *r, u64 first, u32 t, u32 is_long, u32 may_approximate,
                       u32 *precision, u32 *strikes) {
    const u32 step = (u32)PACK << t;
    state mine = none();
    u32 c = (threadIdx.x & ((1u << t) - 1)) * PACK;
    UNROLL_NOT
    while (warp_votes(c < r->to)) {
        const u32 base = c;
        state got = none();
        u32 level = *precision;
        if (*precision == PLAIN) {
            const batch k = add_batch(r, &c, step, is_long);
            got = finish(&k, first);
            level = level_of(&k, may_approximate, &got, precision, strikes);
        } else
            c += BATCH_TURNS * CHUNKS * LOADS * step;
        add_at_level(&got, level, r, base, step, precision);
        mine = merge(mine, got);
    }
    return mine;
}

#if HAS_SQUARES
#if SQUARES_IN_FLOATS
/* Adds `count` packs that lie in the range to near squares. */
INLINED void add_packs_near(near_squares *near, state *s, const pack *p, u32 count, u32 tells) {
    u32 most = 0;
    UNROLL
    for (u32 i = 0; i < count; i++)
        note_most(&most, &p[i]);
    const float base = base_of_squares(most_noted(most));
    near_squares above = {base, 0};
    UNROLL
    for (u32 i = 0; i < count; i++)
        UNROLL
    for (u32 j = 0; j < PACK; j++)
        add_above_base(&above, widen(p[i].e[j]));
    add_sum_above(near, &above, base);
}
#define ADD_NEAR(e, inside) add_near(&near, e, inside)
#else
INLINED void add_packs_near(near_squares *near, state *s, const pack *p, u32 count, u32 tells) {
    UNROLL
    for (u32 i = 0; i < count; i++)
        UNROLL
    for (u32 j = 0; j < PACK; j++)
        add_approximate(s, p[i].e[j], 1, tells);
}
#define ADD_NEAR(e, inside) add_approximate(&s, e, inside, tells)
#endif

/* Returns near sums of the lane's part of a range, as add_part() does. */
INLINED state add_approximate_part(const pack_range *r, u32 t, u32 tells) {
    const u32 step = (u32)PACK << t;
    state s = none();
    near_squares near = {0, 0};
    u32 c = (threadIdx.x & ((1u << t) - 1)) * PACK, turns = 0;
    UNROLL_NOT
    while (warp_votes(c < r->to)) {
        pack p[NEAR_LOADS];
        if (warp_votes(c >= r->from && c + ((NEAR_LOADS - 1) * step + PACK) <= r->to) ==
            FULL_WARP) {
            load_packs(p, NEAR_LOADS, step, r, c);
            add_packs_near(&near, &s, p, NEAR_LOADS, tells);
            c += NEAR_LOADS * step;
        } else if (warp_votes(c >= r->from && c + ((LOADS - 1) * step + PACK) <= r->to) ==
                   FULL_WARP) {
            load_packs(p, LOADS, step, r, c);
            add_packs_near(&near, &s, p, LOADS, tells);
            c += LOADS * step;
        } else {
            load_packs_in_range(p, LOADS, step, r, c);
            UNROLL
            for (u32 i = 0; i < LOADS; i++)
                UNROLL
            for (u32 j = 0; j < PACK; j++) {
                const u32 o = c + i * step + j;
                ADD_NEAR(p[i].e[j], o < r->to && (i > 0 || o >= r->from));
            }
            c += LOADS * step;
        }
        if (SQUARES_IN_FLOATS && ++turns % (NEAR_MOST / (NEAR_LOADS * PACK)) == 0)
            end_near(&near, &s);
    }
    if (SQUARES_IN_FLOATS) end_near(&near, &s);
    return s;
}
#endif

#if HAS_APPROXIMATE
PURE u32 popcount_of(u32 w) {
    u32 count = 0;
    for (; w != 0; w &= w - 1)
        count++;
    return count;
}

/* Returns the lanes whose results were not determined. */
INLINED u32 votes_of(u32 failed) {
    return warp_votes(failed);
}

/* Redoes the rows that `failed` at the next precision level. Later rows return to *back, the level
 * before, unless more than a quarter of the `rows` failed. *back is DOUBLE_DOUBLE while none is redone. */
INLINED void retry(u32 failed, u32 rows, u32 *precision, u32 *back) {
    if (failed != 0) {
        *back = 4 * popcount_of(failed) > rows ? DOUBLE_DOUBLE : *precision;
        *precision = *precision == PLAIN && !TRIES_COMPENSATED ? DOUBLE_DOUBLE : *precision + 1;
    } else if (*back != DOUBLE_DOUBLE) {
        *precision = *back;
        *back = DOUBLE_DOUBLE;
    }
}
#else
/* Where no state is near, the compiler knows that nothing fails. */
INLINED u32 votes_of(u32 failed) {
    return 0;
}
INLINED void retry(u32 failed, u32 rows, u32 *precision, u32 *back) {}
#endif

#endif
