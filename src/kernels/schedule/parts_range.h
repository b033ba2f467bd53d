/*
 * parts_range.h - how a block's threads share out the elements of a row and add them to their cells, and how a warp's
 * lanes or a thread reduce short rows; also the search for the rows that a strategy has left.
 *
 * Before including this header, include schedule/parts_values.h.
 */
#ifndef TALLY_SCHEDULE_PARTS_RANGE_H
#define TALLY_SCHEDULE_PARTS_RANGE_H

/* Elements that a thread adds before it flushes its sums. */
#define FLUSH ((u64)1 << 20)

/* Adds elements [from, to) of a row to the threads' cells, no more than FLUSH a thread. */
INLINED void add_range(const GLOBAL u8 *x, const GLOBAL u8 *y, const GLOBAL u8 *mask,
                       const GLOBAL u64 *work, const parts_plan *p, row_origin o, u64 from, u64 to,
                       cell *c, SHARED u64 *rec) {
    const u32 width = width_of(p->lower.type);
    for (u64 k = from + threadIdx.x; k < to; k += BLOCK) {
        const u64 nth = number_along(work, p, &o, k);
        const spot at = spot_along(p, &o, nth);
        if (p->masked && !mask[at.mask]) continue;
        const u64 bits = load_bits(x, width, at.x);
        const u64 beside = HAS(p, PLAN_PRODUCTS) ? load_bits(y, width, at.y) : 0;
        add_bits(bits, p->absolute ? nth : k, p, c);
        if (is_float(p->lower.type))
            add_float(bits, beside, p, c, rec);
        else
            add_whole(bits, beside, p, c);
    }
}

/* Adds elements [from, to) of a row; all sums then are in the block's, and all else in the threads' cells. */
__device__ void fold_range(const GLOBAL u8 *x, const GLOBAL u8 *y, const GLOBAL u8 *mask,
                           const GLOBAL u8 *offsets, const GLOBAL u64 *work, const parts_plan *p,
                           u64 row, u64 from, u64 to, cell *c, SHARED u64 *rec) {
    const row_origin o = origin_of_row(offsets, p, row);
    for (u64 begin = from; begin < to; begin += FLUSH * BLOCK) {
        const u64 end = to - begin < FLUSH * BLOCK ? to : begin + FLUSH * BLOCK;
        add_range(x, y, mask, work, p, o, begin, end, c, rec);
        flush_sums(p, c, rec);
    }
}

/* A thread's state of a row in `quick`. */
typedef struct row_sum {
    double high, low; /* the sum of floats, a double-double */
    u64 whole;        /* the sum of integers */
    u32 lost;         /* this is not all of the sum */
    u32 mixed;        /* some term is not -0 */
} row_sum;

/* Adds a double; sets `lost` if the double-double cannot hold the sum. An infinity or a NaN makes the
 * error a NaN, which is not 0. */
INLINED void add_to_row_sum(double x, row_sum *b) {
    double e, f;
    b->high = two_sum(b->high, x, &e);
    b->low = two_sum(b->low, e, &f);
    b->lost |= !(f == 0);
    b->mixed |= double_bits(x) != (u64)1 << 63;
}

/* Adds every team-th of n floats that lie `step` apart, from number `lane` on. VALUE_OF is float v_ as a double. */
#define ADD_ALL(type, VALUE_OF)                                                                    \
    do {                                                                                           \
        const GLOBAL type *from_ = (const GLOBAL type *)x + at;                                    \
        for (u64 k_ = lane; k_ < n; k_ += team) {                                                  \
            const type v_ = from_[(i64)k_ * step];                                                 \
            add_to_row_sum(VALUE_OF, b);                                                           \
        }                                                                                          \
    } while (0)

__device__ void add_floats(const GLOBAL u8 *x, u32 type, i64 at, i64 step, u64 n, u32 lane,
                           u32 team, row_sum *b) {
    if (type == F64)
        ADD_ALL(double, v_);
    else if (type == F32)
        ADD_ALL(float, (double)v_);
    else if (type == BF16)
        ADD_ALL(u16, (double)float_from((u32)v_ << 16));
    else
        ADD_ALL(u16, (double)float_from(half_bits_widened((u32)v_)));
}

/* Adds one element to all that `quick` keeps of a row. */
INLINED void add_any(u64 bits, u64 index, const parts_plan *p, row_sum *b, cell *c) {
    const u32 type = p->lower.type;
    if (HAS(p, PLAN_SUM) && is_float(type)) {
        add_to_row_sum(double_of(type, bits), b);
    } else if (HAS(p, PLAN_SUM)) {
        const u64 v = extended(bits, width_of(type), is_signed(type)), before = b->whole;
        b->whole += v;
        if (is_signed(type))
            b->lost |= (u32)(((before ^ b->whole) & (v ^ b->whole)) >> 63);
        else
            b->lost |= b->whole < v;
    }
    add_bits(bits, index, p, c);
}

/* Returns the sum's bits, or the mean's; *lost is set where two doubles do not give them. */
PURE u64 row_sum_value(const row_sum *b, u64 n, u32 mean, u32 to, u32 *lost) {
    if (n == 0) *lost |= mean;
    if (n == 0) return 0;
    return doubles_value(b->high, b->low, n, mean, to, b->mixed ? 0 : float_sign(format_of(to)),
                         lost);
}

/* Returns a value's bits; sets *lost if they cannot be determined, or the value does not exist. */
PURE u64 row_value(const parts_plan *p, const row_sum *b, const u64 *known, u32 op, u32 to,
                   u32 *lost) {
    const u32 type = p->lower.type, width = width_of(type), kind = kind_of(type);
    const u64 n = known[W_N], all = all_bits(width);
    switch (op) {
    case SUM:
        if (!is_float(type)) return b->whole;
        return row_sum_value(b, n, 0, to, lost);
    case MEAN:
        return row_sum_value(b, n, 1, to, lost);
    case MIN:
    case MAX:
        *lost |= n == 0;
        if (known[W_AT_NAN]) return float_nan_bits(format_of(type));
        return bits_of_key(op == MAX ? known[W_GREATEST] : all ^ known[W_LEAST], width, kind);
    case ARGMIN:
    case ARGMAX:
        *lost |= n == 0;
        if (known[W_AT_NAN]) return ~known[W_AT_NAN];
        return op == ARGMIN ? ~known[W_AT_LEAST] : ~known[W_AT_GREATEST];
    case AND:
        return ~known[W_OR] & all;
    case OR:
        return known[W_OR];
    case XOR:
        return known[W_XOR];
    case NONZERO:
        return known[W_NONZERO];
    case ANY:
        return known[W_NONZERO] != 0;
    case ALL:
        return known[W_NONZERO] == n;
    default:
        return n; /* count */
    }
}

/* Returns whether the plan has only sums of floats, of elements at even distances, without a mask
 * or an order. */
PURE u32 is_plain(const parts_plan *p) {
    return p->monoids == 1u << PLAN_SUM && is_float(p->lower.type) && !p->masked && !p->order &&
           (p->cut != PARTS_AXES || p->reduces <= 1);
}

#if BLOCK > 1
/* Merges the row states of a warp's lanes into lane 0's, if the warp is a team. Every thread of the
 * block calls this. */
__device__ void reduce_row_sums(const parts_plan *p, row_sum *b, u64 *known, SHARED u64 *exchange) {
    for (u32 delta = WARP / 2; delta > 0; delta /= 2) {
        const double high = double_from(__shfl_down_sync(FULL_WARP, double_bits(b->high), delta));
        const double low = double_from(__shfl_down_sync(FULL_WARP, double_bits(b->low), delta));
        const u64 whole = __shfl_down_sync(FULL_WARP, b->whole, delta);
        const u64 flags = __shfl_down_sync(FULL_WARP, (u64)b->lost << 32 | b->mixed, delta);
        const u32 takes = p->team > 1 && threadIdx.x % WARP + delta < WARP;
        u64 other[WORDS];
        if (takes) {
            const u64 before = b->whole, total = before + whole;
            const u32 mixed = b->mixed | (u32)flags;
            add_to_row_sum(high, b);
            add_to_row_sum(low, b);
            b->mixed = mixed;
            b->whole = total;
            b->lost |= (u32)(flags >> 32);
            b->lost |= is_signed(p->lower.type) ? (u32)(((before ^ total) & (whole ^ total)) >> 63)
                                                : (u32)(total < whole);
        }
        if (!UNIFORM(!is_plain(p))) continue;
        for (u32 k = 0; k < WORDS; k++)
            other[k] = __shfl_down_sync(FULL_WARP, known[k], delta);
        if (takes) merge(known, other);
    }
}
#endif

/* Adds every team-th of a row's n elements, from number `lane` on. */
__device__ void add_row(const GLOBAL u8 *x, const GLOBAL u8 *mask, const GLOBAL u64 *work,
                        const parts_plan *p, row_origin o, u64 n, u32 lane, u32 team, row_sum *b,
                        cell *c) {
    const u32 type = p->lower.type, width = width_of(type);
    if (is_plain(p)) {
        const i64 step = p->reduces ? p->reduced[0].x : 0;
        add_floats(x, type, o.first.x + (i64)o.start * step, step, n, lane, team, b);
        if (lane == 0) c->word[W_N] = n;
        return;
    }
    for (u64 k = lane; k < n; k += team) {
        const u64 nth = number_along(work, p, &o, k);
        const spot at = spot_along(p, &o, nth);
        if (p->masked && !mask[at.mask]) continue;
        add_any(load_bits(x, width, at.x), p->absolute ? nth : k, p, b, c);
    }
}

/* Writes a row's values; returns whether its sums determine all of them. */
__device__ u32 put_row(GLOBAL u8 *out, const parts_plan *p, u64 row, const row_sum *b,
                       const u64 *known) {
    u32 lost = b->lost;
    const i64 place = row_result(p, row);
    for (u32 v = 0; v < p->lower.values; v++) {
        const u32 to = p->lower.value[v] >> 8;
        const u64 bits = row_value(p, b, known, p->lower.value[v] & 255, to, &lost);
        if (!lost) store_bits(out + p->out[v], width_of(to), place, bits);
    }
    return !lost;
}

/* Returns whether a row is left for `fold` and `join`. */
__device__ u32 has_work(GLOBAL u64 *work, const parts_plan *p) {
    if (!p->ignore_errors && read_word(&work[PARTS_BAD]) != ~(u64)0) return 0;
    return p->left == 0 || read_word(&work[PARTS_LEFT_AT(p->left)]) == p->left;
}

/* Returns the highest bit of each byte that is `mark`, of eight. */
PURE u64 bytes_like(u64 eight, u64 mark) {
    const u64 low = ~(u64)0 / 255 * 127, other = eight ^ (~(u64)0 / 255 * mark);
    return ~(((other & low) + low) | other | low);
}

/* Returns the part of a word behind the first that marks its rows; 0 if no row of the word is
 * left. */
PURE u64 left_of(u64 rows, u64 mark) {
    return mark ? bytes_like(rows, mark) : rows;
}

#define LEFT_WORDS 8u /* next_left()'s loads under way at once */

/* Returns the first row from `row` on that is left for `fold`, or a number >= `end` if none before
 * `end` is. */
__device__ u64 next_left(const GLOBAL u64 *work, const parts_plan *p, u64 row, u64 end) {
    const GLOBAL u64 *left = work + PARTS_LEFT_AT(p->left) + 1;
    const u64 mark = PARTS_MARK(p->left);
    const u32 bits = mark ? 8 : 1, rows = 64 / bits; /* of a row; of a word */
    while (p->left != 0 && row < end) {
        const u64 rest = left_of(left[row / rows], mark) >> (row % rows * bits);
        if (rest & (mark ? 0x80 : 1)) break;
        row = rest ? row + 1 : (row / rows + 1) * rows;
        for (u64 any = rest; any == 0 && row + rows * LEFT_WORDS <= end;) {
            for (u32 k = 0; k < LEFT_WORDS; k++)
                any |= left_of(left[row / rows + k], mark);
            if (any == 0) row += rows * LEFT_WORDS;
        }
    }
    return row;
}

#endif
