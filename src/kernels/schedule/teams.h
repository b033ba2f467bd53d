/*
 * teams.h - teams of 2^t neighbouring lanes, which merge what they know by shuffles, in t steps; and which rows are whose.
 *
 * Before including this header, include a state, packs.h and levels.h.
 */
#ifndef TALLY_SCHEDULE_TEAMS_H
#define TALLY_SCHEDULE_TEAMS_H

/* Returns to each lane the state of the lane whose number differs in the bit `lanes`. */
INLINED state shuffle_xor_state(state s, u32 lanes) {
    u64 words[STATE_WORDS];
    UNROLL
    for (u32 i = 0; i < STATE_WORDS; i++) {
        const u64 own = state_word(&s, i);
        words[i] = i == SHORT_WORD ? (u64)__shfl_xor_sync(FULL_WARP, (u32)own, lanes)
                                   : __shfl_xor_sync(FULL_WARP, own, lanes);
    }
    return state_of_words(words);
}

/* The lanes of a team of 2^t, by pairs: each step doubles what a lane knows. */
#define EACH_STEP_OF_TEAM(t)                                                                       \
    UNROLL_NOT                                                                                     \
    for (u32 lanes = 1u << (t) >> 1; lanes > 0; lanes /= 2)

#if HAS_ONE_FLOAT_SUM
/* Merges plain sums, one of which is near, so that all are. */
INLINED state merge_near_team(state s, u32 t) {
    double sum = with_rest(double_from(s.w[0]), double_from(s.w[1]));
    s.tag |= TAG_APPROXIMATE;
    EACH_STEP_OF_TEAM(t) {
        const u32 tag = __shfl_xor_sync(FULL_WARP, s.tag, lanes);
        sum += double_from(__shfl_xor_sync(FULL_WARP, double_bits(sum), lanes));
        s.tag = (s.tag > tag ? s.tag : tag) | ((s.tag | tag) & TAG_FLAGS);
    }
    s.w[0] = double_bits(sum);
    s.w[1] = 0;
    return s;
}

/* Merges sums that are one double each; returns 0, with *s as it was, where their sum is not. */
INLINED u32 merge_doubles(state *s, u32 t) {
    double sum = double_from(s->w[0]), error;
    u32 fits = 1;
    EACH_STEP_OF_TEAM(t) {
        const u64 other = __shfl_xor_sync(FULL_WARP, double_bits(sum), lanes);
        sum = two_sum(sum, double_from(other), &error);
        fits &= error == 0;
    }
    if (warp_votes(!fits) != 0) return 0;
    s->w[0] = double_bits(sum);
    return 1;
}

/* Merges finite pairs, without making each sum of two the nearest double and the rest. */
INLINED state merge_finite_pairs(state s, u32 t) {
    double high = double_from(s.w[0]), low = double_from(s.w[1]);
    u32 lost = s.tag & TAG_LOST;
    EACH_STEP_OF_TEAM(t) {
        double e, f, g;
        const u64 other = __shfl_xor_sync(FULL_WARP, double_bits(high), lanes);
        const u64 rest = __shfl_xor_sync(FULL_WARP, double_bits(low), lanes);
        high = two_sum(high, double_from(other), &e);
        low = two_sum(two_sum(low, double_from(rest), &f), e, &g);
        lost |= !(f == 0) || !(g == 0);
    }
    const u32 first = threadIdx.x % WARP & ~((1u << t) - 1);
    const u32 team = t == WARP_LOG ? FULL_WARP : ((1u << (1u << t)) - 1) << first;
    s.tag = warp_votes(lost) & team ? TAG_LOST : 0;
    s.w[0] = double_bits(low == 0 ? high : two_sum(high, low, &low));
    s.w[1] = double_bits(low);
    return s;
}
#endif

/* Returns to every lane the merged states of all lanes of its team of 2^t. */
INLINED state merge_team(state s, u32 t) {
#if HAS_ONE_FLOAT_SUM
    if (HAS_COMPENSATED && warp_votes(s.tag & TAG_APPROXIMATE) != 0) return merge_near_team(s, t);
    if (warp_votes(s.w[1] != 0 || s.tag & TAG_FLAGS) == 0 && merge_doubles(&s, t)) return s;
    if (warp_votes(!(double_from(s.w[0]) - double_from(s.w[0]) == 0)) == 0)
        return merge_finite_pairs(s, t);
#endif
    EACH_STEP_OF_TEAM(t) s = merge(s, shuffle_xor_state(s, lanes));
    return s;
}

#if HAS_SQUARES
/* Returns to every lane the merged near sums of all lanes of its team of 2^t. */
INLINED state merge_approximate(state s, u32 t) {
    EACH_STEP_OF_TEAM(t) {
        UNROLL
        for (u32 k = 0; k < 2 * PAIRS; k += 2) {
            const u64 other = __shfl_xor_sync(FULL_WARP, s.w[k], lanes);
            const u64 low = LONG ? __shfl_xor_sync(FULL_WARP, s.w[k + 1], lanes) : 0;
            merge_near_pair(&s.w[k], &s.w[k + 1], double_from(other), double_from(low));
        }
    }
    return s;
}

/* Returns to every lane the merged states of its team, of that precision level. */
INLINED state merge_at_level(state s, u32 t, u32 precision) {
    return precision == APPROXIMATE ? merge_approximate(s, t) : merge_team(s, t);
}
#else
INLINED state merge_at_level(state s, u32 t, u32 precision) {
    return merge_team(s, t);
}
#endif

/* Returns the number of the lane's own row among WARP rows that teams of 2^t take: WARP >> t rows
 * at a time, a team each. Lane k of a team keeps the row of turn k. */
PURE u32 row_of_lane(u32 t) {
    const u32 lane = threadIdx.x % WARP;
    return ((lane & ((1u << t) - 1)) << (WARP_LOG - t)) + (lane >> t);
}

/* Returns the number of the lane's own row among WARP rows of different lengths: `length` is that of row row_of_lane(t). The
 * rows that teams of 2^t take at once are about as long then. It is a bitonic sort. */
INLINED u32 row_in_order(u32 length, u32 t) {
    const u32 lane = threadIdx.x % WARP, first = __shfl_sync(FULL_WARP, length, 0);
    u32 own = row_of_lane(t);
    if (warp_votes(length > first + first / 4 || first > length + length / 4) == 0) return own;
    own |= (length < 1u << 27 ? length : (1u << 27) - 1) << WARP_LOG;
    UNROLL_NOT
    for (u32 size = 2; size <= WARP; size *= 2)
        UNROLL_NOT
    for (u32 apart = size / 2; apart > 0; apart /= 2) {
        const u32 other = __shfl_xor_sync(FULL_WARP, own, apart);
        const u32 takes_less = ((lane & size) == 0) == ((lane & apart) == 0);
        own = (other < own) == takes_less ? other : own;
    }
    return __shfl_sync(FULL_WARP, own, row_of_lane(t)) % WARP;
}

/* Returns a word whose bit k says that some lane k of a team is among `lanes`. */
PURE u32 turns_of(u32 lanes, u32 t) {
    for (u32 i = t; i < WARP_LOG; i++)
        lanes |= lanes >> (1u << i);
    return t == WARP_LOG ? lanes : lanes & ((1u << (1u << t)) - 1);
}

#endif
