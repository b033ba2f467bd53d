/*
 * tree - the canonical tree (src/problem/tree.h): products of floats, and users' operators.
 *
 * leaves: a warp evaluates a leaf; the warp's lanes are those of the tree. nodes: a warp takes 32 neighbours of one
 * level, and combines them to one node five levels above, or to more nodes fewer levels above. part_leaves and
 * part_nodes do the same for each row of a reduction in parts. Values that are absent are skipped. Lanes with a value
 * come first, so a lane knows by its number whether it has one.
 *
 * A thread does the work of MINE lanes: of one, or, where a block is a single thread, of all 32, side by side.
 *
 * A user's operator is a function user_combine(a, b) of two elements that the host puts before this
 * text, with USER_OPERATOR defined. ORDERED is defined where it does not commute.
 */
#include "tuning.h"

#include "operators.h"

#include "grid.h"

#include "result.h"

#include "plan.h"

#include "parts.h"

#define LEAF 4096u
#define RUN  (LEAF / WARP)

#if BLOCK == 1
#define MINE  WARP
#define LANE0 0u
#else
#define MINE  1u
#define LANE0 (threadIdx.x % WARP)
#endif
#define BATCH 16u /* a lane's loads of elements under way at once */

#if defined(USER_OPERATOR)
#define COMBINE(a, b) user_combine(a, b)
#define VALUE(e)      (e)
#else
#define COMBINE(a, b) combine(a, b)
#define VALUE(e)      load(e)
#endif

/* Combines v[j] with the value of the lane `stride` further on, in those lanes for which `takes` holds. */
#define COMBINE_LANES(takes, stride)                                                               \
    do {                                                                                           \
        for (u32 j_ = 0; j_ < MINE; j_++) {                                                        \
            const u32 lane = LANE0 + j_;                                                           \
            const accumulator other = from_lane(v, j_, stride, exchange);                          \
            if (takes) v[j_] = COMBINE(v[j_], other);                                              \
        }                                                                                          \
    } while (0)

__device__ accumulator from_lane(const accumulator *v, u32 j, u32 stride, SHARED word *exchange) {
#if BLOCK == 1
    return v[j + stride < WARP ? j + stride : j];
#else
    return from_word(__shfl_down_sync(FULL_WARP, to_word(v[0]), stride));
#endif
}

/* Gives lane 0 the value of lanes 0 ... lanes - 1, by halves: lane j takes lane j + 16, then j + 8, and so on. Lanes
 * from `lanes` on have no value. */
__device__ void combine_halves(accumulator *v, u32 lanes, SHARED word *exchange) {
    for (u32 h = WARP / 2; h > 0; h /= 2) {
        COMBINE_LANES(lane < h && lane + h < lanes, h);
        lanes = lanes < h ? lanes : h;
    }
}

/* Gives every 2^levels-th lane the value of itself and the 2^levels - 1 lanes behind it, neighbour taking
 * neighbour. Lanes from `lanes` on have no value. */
__device__ void combine_neighbours(accumulator *v, u32 lanes, u32 levels, SHARED word *exchange) {
    for (u32 s = 1; s < 1u << levels; s *= 2)
        COMBINE_LANES(lane % (2 * s) == 0 && lane + s < lanes, s);
}

/* Returns the value of elements x[start], x[start + stride], ... below `end`, combined in order; start < end. */
__device__ accumulator lane_value(const GLOBAL element *x, u32 start, u32 stride, u32 end) {
    accumulator v = VALUE(x[start]);
    u32 i = start + stride;
    for (; i + (BATCH - 1) * stride < end; i += BATCH * stride) {
        element e[BATCH];
        UNROLL
        for (u32 k = 0; k < BATCH; k++)
            e[k] = x[i + k * stride];
        UNROLL
        for (u32 k = 0; k < BATCH; k++)
            v = COMBINE(v, VALUE(e[k]));
    }
    for (; i < end; i += stride)
        v = COMBINE(v, VALUE(x[i]));
    return v;
}

/* Evaluates the leaf x[0..n), n <= LEAF; lane 0 gets the value. If n is 0 there is none, but all
 * lanes still take part in the exchange. */
__device__ void leaf(const GLOBAL element *x, u32 n, accumulator *v, SHARED word *exchange) {
#if defined(ORDERED)
    for (u32 j = 0; j < MINE; j++) {
        const u32 start = (LANE0 + j) * RUN, end = start + RUN;
        if (start < n) v[j] = lane_value(x, start, 1, end < n ? end : n);
    }
    combine_neighbours(v, (n + RUN - 1) / RUN, 5, exchange);
#else
#if BLOCK == 1 /* row by row, so that compilers use vectors */
    for (u32 j = 0; j < MINE && j < n; j++)
        v[j] = VALUE(x[j]);
    u32 i = WARP;
    for (; i + WARP <= n; i += WARP)
        for (u32 j = 0; j < MINE; j++)
            v[j] = COMBINE(v[j], VALUE(x[i + j]));
    for (u32 j = 0; i + j < n; j++)
        v[j] = COMBINE(v[j], VALUE(x[i + j]));
#else
    if (LANE0 < n) v[0] = lane_value(x, LANE0, WARP, n);
#endif
    combine_halves(v, n < WARP ? n : WARP, exchange);
#endif
}

/* Returns the value's bits, from the tree's root. NaNs become canonical. */
PURE u64 value_of(word node, u32 request) {
    const float_format f = requested_format(request);
#if defined(USER_OPERATOR)
    const u32 is_nan = f.mantissa != 0 && (node & (float_sign(f) - 1)) > float_infinity_bits(f, 0);
    return is_nan ? float_nan_bits(f) : (u64)node;
#else
    const float_format mine = {sizeof(accumulator) == 8 ? 52 : 23,
                               sizeof(accumulator) == 8 ? 1023 : 127};
    return round_float(f, mine, node);
#endif
}

/* Makes values[to + i] the value of leaf i. The caller asks for a value only if there is one leaf, or none: then
 * it is `identity`. */
KERNEL leaves(const GLOBAL element *x, u64 n, GLOBAL accumulator *values, u64 to, u64 identity,
              u32 request, GLOBAL u64 *result) {
    __shared__ word exchange[EXCHANGE];
    const u64 count = (n + LEAF - 1) / LEAF;

    if (n == 0 && request && blockIdx.x == 0 && threadIdx.x == 0)
        put_result(result, request, identity, RESULT_OK);
    for (u64 first = (u64)blockIdx.x * WARPS; first < count; first += (u64)gridDim.x * WARPS) {
        const u64 i = first + threadIdx.x / WARP, at = i * LEAF;
        const u32 size = at >= n ? 0 : n - at < LEAF ? (u32)(n - at) : LEAF;
        accumulator v[MINE];
        for (u32 j = 0; j < MINE; j++)
            v[j] = (accumulator)0;
        leaf(x + at, size, v, exchange);
        if (LANE0 == 0 && size > 0) {
            values[to + i] = v[0];
            if (request) put_result(result, request, value_of(to_word(v[0]), request), RESULT_OK);
        }
    }
}

/* Makes values[to + i] the value of the subtree over values[from + i * 2^levels ...), of `count` nodes in all; levels
 * <= 5. The caller asks for a value only if there is one such subtree: all. */
KERNEL nodes(GLOBAL accumulator *values, u64 from, u64 count, u32 levels, u64 to, u32 request,
             GLOBAL u64 *result) {
    __shared__ word exchange[EXCHANGE];

    for (u64 first = (u64)blockIdx.x * WARPS * WARP; first < count;
         first += (u64)gridDim.x * WARPS * WARP) {
        const u64 at = first + threadIdx.x / WARP * WARP;
        const u32 lanes = at >= count ? 0 : count - at < WARP ? (u32)(count - at) : WARP;
        accumulator v[MINE];
        for (u32 j = 0; j < MINE; j++)
            v[j] = LANE0 + j < lanes ? values[from + at + LANE0 + j] : (accumulator)0;
        combine_neighbours(v, lanes, levels, exchange);
        for (u32 j = 0; j < MINE; j++)
            if ((LANE0 + j) % (1u << levels) == 0 && LANE0 + j < lanes)
                values[to + ((at + LANE0 + j) >> levels)] = v[j];
        if (LANE0 == 0 && lanes > 0 && request)
            put_result(result, request, value_of(to_word(v[0]), request), RESULT_OK);
    }
}

/* ---- Of rows (parts.h) ------------------------------------------------------------------------------ */

/* One leaf of a row. */
typedef struct row_leaf {
    u64 start, length; /* its row's elements */
    u64 leaf;          /* which of the row's leaves; may be behind the last */
} row_leaf;

__device__ row_leaf row_leaf_of(const GLOBAL u8 *offsets, part_rows rows, u64 slot) {
    const u64 row = row_of(offsets, rows, LEAF, 1, slot);
    row_leaf p;
    p.start = row_start(offsets, rows, row);
    p.length = row_start(offsets, rows, row + 1) - p.start;
    p.leaf = slot - PARTS_SLOT(p.start, row);
    return p;
}

/* Writes the value of each leaf of each row to the leaf's slot. */
KERNEL part_leaves(const GLOBAL element *x, const GLOBAL u8 *offsets, GLOBAL accumulator *values,
                   const GLOBAL u64 *work, const part_leaves_plan plan) {
    __shared__ word exchange[EXCHANGE];
    const u32 is_bad = work[PARTS_BAD] != ~(u64)0;
    for (u64 first = (u64)blockIdx.x * WARPS; first < plan.slots; first += (u64)gridDim.x * WARPS) {
        const u64 slot = first + threadIdx.x / WARP;
        row_leaf p = {0, 0, 0};
        if (slot < plan.slots && !is_bad) p = row_leaf_of(offsets, plan.rows, slot);
        const u64 at = p.leaf * LEAF;
        const u32 size = at >= p.length ? 0 : p.length - at < LEAF ? (u32)(p.length - at) : LEAF;
        accumulator v[MINE];
        for (u32 j = 0; j < MINE; j++)
            v[j] = (accumulator)0;
        leaf(x + plan.first + p.start + at, size, v, exchange);
        if (LANE0 == 0 && size > 0) values[plan.values + slot] = v[0];
    }
}

/* Combines the values of 32 neighbours, each of `stride` leaves of one row, into the first one's
 * slot. */
KERNEL part_nodes(const GLOBAL u8 *offsets, GLOBAL accumulator *values, const GLOBAL u64 *work,
                  const part_leaves_plan plan) {
    __shared__ word exchange[EXCHANGE];
    const u32 is_bad = work[PARTS_BAD] != ~(u64)0;
    for (u64 first = (u64)blockIdx.x * WARPS; first < plan.slots; first += (u64)gridDim.x * WARPS) {
        const u64 slot = first + threadIdx.x / WARP;
        row_leaf p = {0, 0, 0};
        if (slot < plan.slots && !is_bad) p = row_leaf_of(offsets, plan.rows, slot);
        const u64 leaves_there = (p.length + LEAF - 1) / LEAF;
        u32 lanes = 0;
        if (p.leaf % (WARP * plan.stride) == 0 && p.leaf + plan.stride < leaves_there) {
            const u64 left = (leaves_there - p.leaf + plan.stride - 1) / plan.stride;
            lanes = left < WARP ? (u32)left : WARP;
        }
        accumulator v[MINE];
        for (u32 j = 0; j < MINE; j++)
            v[j] = LANE0 + j < lanes ? values[plan.values + slot + (LANE0 + j) * plan.stride]
                                     : (accumulator)0;
        combine_neighbours(v, lanes, 5, exchange);
        if (LANE0 == 0 && lanes > 0) values[plan.values + slot] = v[0];
    }
}
