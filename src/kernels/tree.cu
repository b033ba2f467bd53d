/*
 * tree - the canonical tree (src/tree.h): products of floats, and operators of the user's.
 *
 * leaves: a warp a leaf, the warp's lanes being the tree's. nodes: a warp takes 32 neighbours of one
 * level to one of the fifth level above, or however many levels are asked for. What is absent is
 * skipped: a lane says whether it has a value by its number, since all that have one come first.
 *
 * A thread plays MINE lanes: one, or, where a block is a single thread, all 32, side by side.
 *
 * A user's operator is a function user_combine(a, b) of two elements that the host puts before this
 * text, with USER_OPERATOR defined. ORDERED is defined where it does not commute.
 */
#include "tuning.h"

#include "operators.h"

#include "grid.h"

#define LEAF 4096u
#define RUN  (LEAF / WARP)

#if BLOCK == 1
#define MINE  WARP
#define LANE0 0u
#else
#define MINE  1u
#define LANE0 (threadIdx.x % WARP)
#endif
#define BATCH 16u /* elements that a lane asks for at once */

#if defined(USER_OPERATOR)
#define JOIN(a, b) user_combine(a, b)
#define VALUE(e)   (e)
#else
#define JOIN(a, b) combine(a, b)
#define VALUE(e)   load(e)
#endif

/* v[j] takes the value of lane `stride` further on, for those lanes that `takes` says. */
#define LANES_MEET(takes, stride)                                                                  \
    do {                                                                                           \
        for (u32 j_ = 0; j_ < MINE; j_++) {                                                        \
            const u32 lane = LANE0 + j_;                                                           \
            const accumulator other = from_lane(v, j_, stride, exchange);                          \
            if (takes) v[j_] = JOIN(v[j_], other);                                                 \
        }                                                                                          \
    } while (0)

__device__ accumulator from_lane(const accumulator *v, u32 j, u32 stride, SHARED word *exchange) {
#if BLOCK == 1
    return v[j + stride < WARP ? j + stride : j];
#else
    return from_word(__shfl_down_sync(FULL_WARP, to_word(v[0]), stride));
#endif
}

/* Lanes 0 ... lanes - 1 have a value; lane 0 gets that of all: by halves, */
__device__ void meet_halves(accumulator *v, u32 lanes, SHARED word *exchange) {
    for (u32 h = WARP / 2; h > 0; h /= 2) {
        LANES_MEET(lane < h && lane + h < lanes, h);
        lanes = lanes < h ? lanes : h;
    }
}

/* or neighbour with neighbour, `levels` times; every 2^levels-th lane gets its part's. */
__device__ void meet_neighbours(accumulator *v, u32 lanes, u32 levels, SHARED word *exchange) {
    for (u32 s = 1; s < 1u << levels; s *= 2)
        LANES_MEET(lane % (2 * s) == 0 && lane + s < lanes, s);
}

/* v[j] = the elements of lane LANE0 + j, `stride` apart from x[start] on, in order; a lane without any
 * is left alone. */
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
            v = JOIN(v, VALUE(e[k]));
    }
    for (; i < end; i += stride)
        v = JOIN(v, VALUE(x[i]));
    return v;
}

/* The leaf x[0..n), n <= LEAF, to lane 0. For n = 0 nothing, but the lanes still meet. */
__device__ void leaf(const GLOBAL element *x, u32 n, accumulator *v, SHARED word *exchange) {
#if defined(ORDERED)
    for (u32 j = 0; j < MINE; j++) {
        const u32 start = (LANE0 + j) * RUN, end = start + RUN;
        if (start < n) v[j] = lane_value(x, start, 1, end < n ? end : n);
    }
    meet_neighbours(v, (n + RUN - 1) / RUN, 5, exchange);
#else
#if BLOCK == 1 /* row by row: what compilers make vectors of */
    for (u32 j = 0; j < MINE && j < n; j++)
        v[j] = VALUE(x[j]);
    u32 i = WARP;
    for (; i + WARP <= n; i += WARP)
        for (u32 j = 0; j < MINE; j++)
            v[j] = JOIN(v[j], VALUE(x[i + j]));
    for (u32 j = 0; i + j < n; j++)
        v[j] = JOIN(v[j], VALUE(x[i + j]));
#else
    if (LANE0 < n) v[0] = lane_value(x, LANE0, WARP, n);
#endif
    meet_halves(v, n < WARP ? n : WARP, exchange);
#endif
}

KERNEL leaves(const GLOBAL element *x, u64 n, GLOBAL accumulator *out) {
    __shared__ word exchange[EXCHANGE];
    const u64 count = (n + LEAF - 1) / LEAF;

    for (u64 first = (u64)blockIdx.x * WARPS; first < count; first += (u64)gridDim.x * WARPS) {
        const u64 i = first + threadIdx.x / WARP, at = i * LEAF;
        const u32 size = at >= n ? 0 : n - at < LEAF ? (u32)(n - at) : LEAF;
        accumulator v[MINE];
        for (u32 j = 0; j < MINE; j++)
            v[j] = (accumulator)0;
        leaf(x + at, size, v, exchange);
        if (LANE0 == 0 && size > 0) out[i] = v[0];
    }
}

/* out[i] = the subtree over in[i * 2^levels ...), of `count` nodes in all; levels <= 5. */
KERNEL nodes(const GLOBAL accumulator *in, u64 count, u32 levels, GLOBAL accumulator *out) {
    __shared__ word exchange[EXCHANGE];

    for (u64 first = (u64)blockIdx.x * WARPS * WARP; first < count;
         first += (u64)gridDim.x * WARPS * WARP) {
        const u64 at = first + threadIdx.x / WARP * WARP;
        const u32 lanes = at >= count ? 0 : count - at < WARP ? (u32)(count - at) : WARP;
        accumulator v[MINE];
        for (u32 j = 0; j < MINE; j++)
            v[j] = LANE0 + j < lanes ? in[at + LANE0 + j] : (accumulator)0;
        meet_neighbours(v, lanes, levels, exchange);
        for (u32 j = 0; j < MINE; j++)
            if ((LANE0 + j) % (1u << levels) == 0 && LANE0 + j < lanes)
                out[(at + LANE0 + j) >> levels] = v[j];
    }
}
