/*
 * parts_values.h - from a row's record, or from its sums in two doubles, to its results.
 *
 * Before including this header, include state/cells.h and spots.h.
 */
#ifndef TALLY_SCHEDULE_PARTS_VALUES_H
#define TALLY_SCHEDULE_PARTS_VALUES_H

/* Returns a row's index in the results of each value. */
PURE i64 row_result(const parts_plan *p, u64 row) {
    u64 vector;
    if (p->cut == PARTS_AXES) return p->out_first + result_spot(p, row);
    const u64 part = part_of(p, row, &vector);
    return p->out_first + (i64)part * p->reduced[0].out + result_spot(p, vector);
}

/* Writes the v-th value of a row to its place. */
__device__ void put_value(GLOBAL u8 *out, const parts_plan *p, u32 v, i64 place, u64 bits,
                          u32 status) {
    const u32 to = p->lower.value[v] >> 8;
    out += p->out[v];
    if (p->as_results)
        put_result((GLOBAL u64 *)out, to, bits, status);
    else
        store_bits(out, width_of(to), place, bits);
}

/* Writes all values of a row whose record is rec and known[], by one thread. means[] has the bits of a given mean for
 * each result, by its number; of complex numbers those of the imaginary part follow each. NULL: the plan's mean is
 * for all. */
__device__ void lower_row(const GLOBAL u8 *offsets, const GLOBAL u64 *means, GLOBAL u64 *work,
                          GLOBAL u8 *out, const parts_plan *p, u64 row, const u64 *known,
                          SHARED u64 *rec, lower_scratch *r) {
    lower_plan own = p->lower;
    SHARED u64 *rest = rec + p->sums;
    const u32 type = own.type;
    own.n = known[W_N];
    rest[0] = known[W_NONZERO];
    rest[1] = p->xored ? known[W_XOR] : known[W_OR];
    rest[2] = type == F64 ? known[W_FAST] : (u64)float_bits((float)double_from(known[W_FAST]));
    rest[3] = known[W_MAGNITUDE];
    rest[4] = known[W_FLAGS];
    rest[5] = known[W_GREATEST];
    rest[6] = known[W_LEAST];
    rest[7] = known[W_AT_GREATEST];
    rest[8] = known[W_AT_LEAST];
    rest[9] = known[W_AT_NAN];
    for (u32 k = 0; k < SUMS; k++)
        if (HAS(p, k) && is_float(type))
            rec[own.at[k] + limb_layout_of(type, k).limbs + 3] = known[W_MIXED] >> k & 1;
    if (HAS(p, PLAN_TREE) && own.n > 0) {
        const u32 width = width_of(own.user || type == F64 ? type : F32);
        const GLOBAL u8 *starts = p->tree_starts ? (const GLOBAL u8 *)work : offsets;
        const u64 slot = PARTS_SLOT(row_start(starts, p->tree, row), row);
        rest[10] = load_bits((const GLOBAL u8 *)work + p->values, width, (i64)slot);
        own.at[PLAN_TREE] = (p->sums + 10) * (64 / width);
    }

    const i64 place = row_result(p, row);
    u64 nth = p->number_first, rest_of = row;
    if (p->cut != PARTS_AXES) nth += part_of(p, row, &rest_of) * p->reduced[0].number;
    for (u32 d = p->keeps; d-- > 0;) {
        nth += rest_of % p->kept[d].length * p->kept[d].number;
        rest_of /= p->kept[d].length;
    }
    for (u32 k = 0; k < 1 + own.is_complex && means; k++)
        own.mean[k] = means[(1 + own.is_complex) * nth + k];
    for (u32 v = 0; v < own.values; v++) {
        const u32 op = own.value[v] & 255, to = own.value[v] >> 8;
        u32 status = RESULT_OK;
        u64 bits = lower_value(rec, &own, op, to, &status, r);
        if (status == RESULT_NONE && p->several && !p->as_results)
            bits = ~(u64)0;
        else if (status != RESULT_OK && !p->ignore_errors)
            note_least(&work[PARTS_ABSENT],
                       nth * 64 + (p->first_value + v) * 2 + (status == RESULT_NONE));
        put_value(out, p, v, place, bits, status);
    }
}

/* Adds two doubles to a double-double; sets *lost if it cannot hold them. */
PURE void add_pair(sum *s, double high, double low, u32 *lost) {
    double e, f, g, h;
    s->high = two_sum(s->high, high, &e);
    s->low = two_sum(s->low, e, &f);
    s->high = two_sum(s->high, low, &g);
    s->low = two_sum(s->low, g, &h);
    *lost |= f != 0 || h != 0;
}

#if BLOCK > 1
/* Adds up the sums of `lanes` lanes of each warp into lane 0's. */
INLINED void reduce_lanes(sum *s, u32 lanes, u32 *lost, SHARED u64 *exchange) {
    UNROLL_NOT
    for (u32 delta = lanes / 2; delta > 0; delta /= 2) {
        const double high = double_from(__shfl_down_sync(FULL_WARP, double_bits(s->high), delta));
        const double low = double_from(__shfl_down_sync(FULL_WARP, double_bits(s->low), delta));
        const u32 theirs = (u32)__shfl_down_sync(FULL_WARP, (u64)*lost, delta);
        if (threadIdx.x % WARP >= delta) continue;
        *lost |= theirs;
        add_pair(s, high, low, lost);
    }
}
#endif

/* Adds up all threads' sums into thread 0's double-double, if *lost stays 0. `warps` has three
 * words a warp. */
INLINED void reduce_block_sum(sum *s, u32 *lost, SHARED u64 *warps, SHARED u64 *exchange) {
#if BLOCK > 1
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    reduce_lanes(s, BLOCK < WARP ? BLOCK : WARP, lost, exchange);
    __syncthreads();
    if (lane == 0) {
        warps[3 * warp] = double_bits(s->high);
        warps[3 * warp + 1] = double_bits(s->low);
        warps[3 * warp + 2] = *lost;
    }
    __syncthreads();
    if (UNIFORM(warp == 0)) {
        const u32 is_there = lane < WARPS;
        s->high = is_there ? double_from(warps[3 * lane]) : 0;
        s->low = is_there ? double_from(warps[3 * lane + 1]) : 0;
        *lost = is_there ? (u32)warps[3 * lane + 2] : 0;
        reduce_lanes(s, WARPS, lost, exchange);
    }
#endif
}

/* Writes all values of a row of floats from double-doubles; returns whether these determine them. */
__device__ u32 put_sums(GLOBAL u8 *out, const parts_plan *p, u64 row, const u64 *known,
                        const sum *sums, u32 lost) {
    const u64 n = known[W_N];
    u32 is_far = 0;
    const double ddof = ddof_of(p->lower.ddof, p->lower.exponent, &is_far);
    const i64 place = row_result(p, row);
    if (n == 0) return 0;
    for (u32 v = 0; v < p->lower.values && !lost; v++) {
        const u32 op = p->lower.value[v] & 255, to = p->lower.value[v] >> 8;
        const u32 monoid = op == SUM || op == MEAN ? PLAN_SUM
                           : op == NORM1           ? PLAN_MAGNITUDES
                           : op == DOT             ? PLAN_PRODUCTS
                                                   : PLAN_SQUARES;
        const sum s = sums[monoid], total = sums[PLAN_SUM];
        const u64 zero = known[W_MIXED] >> monoid & 1 ? 0 : float_sign(format_of(to));
        u64 bits = 0;
        if (op == VAR || op == STD) {
            lost |= is_far || p->lower.about || p->lower.is_complex;
            bits = variance_value(total.high, total.low, s.high, s.low, n, ddof, op == STD, to, 0,
                                  &lost);
        } else if (op == NORM2) {
            bits = norm_value(s.high, s.low, to, 0, &lost);
        } else if (op == SUM || op == MEAN || op == NORM1 || op == DOT || op == SUMSQ) {
            bits = doubles_value(s.high, s.low, n, op == MEAN, to, zero, &lost);
        } else {
            lost = 1;
        }
        if (!lost) put_value(out, p, v, place, bits, RESULT_OK);
    }
    return !lost;
}

#endif
