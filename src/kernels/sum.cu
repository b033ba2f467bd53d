/*
 * sum - the exact sum of f16, bf16, f32 or f64.
 *
 * Each thread extracts its tiles into integer totals (window.h). All threads of a block begin with one
 * window, chosen from a few elements of the block's share, so that at the end their totals are simply
 * added up. A tile that does not fit gives its thread a window of its own; one that fits none, because
 * its exponents span too much, goes element by element to the block's superaccumulator (limbs.h): slow,
 * and as exact. There everything meets in the end, and from there limb by limb in global memory.
 *
 * work[0] is the counter, work[1 + i] limb i of the total, work[1 + LIMBS] what was seen.
 */
#include "window.h"

#include "limbs.h"

#include "records.h"

#if defined(TYPE_F64) || defined(TYPE_F32)
#define MINUS_ZERO (-(real)0)
#else
#define MINUS_ZERO ((element)SIGN)
#endif

PURE void merge(u64 *a, const u64 *b) {
    UNROLL
    for (u32 k = 0; k < TOTALS; k++)
        a[k] += b[k];
    a[SEEN] |= b[SEEN];
}

/* The totals go to the superaccumulator. */
__device__ void flush(u64 *record, i32 exponent, SHARED u64 *limbs) {
    for (u32 k = 0; k < TOTALS; k++) {
        add_limbs(limbs, (i64)record[k], total_exponent(exponent, k));
        record[k] = 0;
    }
}

/* One element, as mantissa and exponent, to the superaccumulator; an infinity or NaN is only noted. */
__device__ void add_element(real x, u64 *record, SHARED u64 *limbs) {
    const raw bits = REAL_BITS(x);
    const i32 field = (i32)(bits >> MANTISSA) & FIELD_MAX;
    const raw fraction = bits & (((raw)1 << MANTISSA) - 1);
    const i64 mantissa = (i64)(fraction | (raw)(field != 0) << MANTISSA);
    if (field == FIELD_MAX)
        record[SEEN] |= fraction != 0      ? SEEN_NAN
                        : bits & REAL_SIGN ? SEEN_MINUS_INF
                                           : SEEN_PLUS_INF;
    else
        add_limbs(limbs, bits & REAL_SIGN ? -mantissa : mantissa,
                  UNIT_LEAST + (field > 0 ? field - 1 : 0));
}

/* A tile that the window does not fit: in another window if it has one, else one by one. */
__device__ void add_unfitting(const tile *t, window *w, u64 *record, SHARED u64 *limbs) {
    const window own = choose_window(largest(t));
    if (own.sigma != 0 && own.sigma != w->sigma) {
        flush(record, w->exponent, limbs);
        *w = own;
        if (extract(t, own, record)) return;
    }
    UNROLL /* registers have no index */
        for (u32 i = 0; i < TILE; i++) add_element(widen(t->e[i]), record, limbs);
}

__device__ void add_tile(const tile *t, window *w, u64 *record, SHARED u64 *limbs) {
    if (!(record[SEEN] & SEEN_MIXED) && any_not_minus_zero(t)) record[SEEN] |= SEEN_MIXED;
    if (w->sigma == 0 || !extract(t, *w, record)) add_unfitting(t, w, record, limbs);
}

/* The largest magnitude among the elements that this thread looks at beforehand: some of the block's
 * tiles, or of the loose elements. Infinities and NaNs are for the slow path, and count as nothing. */
__device__ raw sample(const GLOBAL element *x, share s) {
#if defined(TYPE_F16)
    return 0; /* there is but one window */
#else
    const GLOBAL element *from = (const GLOBAL element *)s.packs;
    u64 count = (u64)s.tiles * (BLOCK * TILE);
    raw most = 0;
    if (count == 0) {
        from = x + (s.head < s.loose ? s.end : 0);
        count = s.head < s.loose ? s.loose - s.head : s.loose;
    }
    const u64 step = count / (BLOCK * SAMPLES);
    for (u32 k = 0; k < SAMPLES; k++) {
        const u64 i = (u64)(k * BLOCK + threadIdx.x) * (step ? step : 1);
        const raw m = i < count ? magnitude_bits(widen(from[i])) : 0;
        most = m > most && m >> MANTISSA != FIELD_MAX ? m : most;
    }
    return most;
#endif
}

/* The block's window: for the largest of what its threads have looked at. `warps`: a word a warp. */
__device__ window block_window(raw most, SHARED u64 *warps, SHARED u64 *exchange) {
    u64 seen = most;
#if BLOCK > 1
    for (u32 delta = (BLOCK < WARP ? BLOCK : WARP) / 2; delta > 0; delta /= 2) {
        const u64 other = __shfl_down_sync(FULL_WARP, seen, delta);
        seen = other > seen ? other : seen;
    }
    if (threadIdx.x % WARP == 0) warps[threadIdx.x / WARP] = seen;
    __syncthreads();
    for (u32 k = 0; k < WARPS; k++)
        seen = k == 0 || warps[k] > seen ? warps[k] : seen;
#endif
    return choose_window((raw)seen);
}

KERNEL reduce(const GLOBAL element *x, u64 n, GLOBAL u64 *work) {
    __shared__ u64 limbs[LIMBS];
    __shared__ u64 warps[WARPS * WORDS];
    __shared__ u64 exchange[EXCHANGE];

    const share s = find_share(x, n);
    clear_limbs(limbs);
    const window first = block_window(sample(x, s), warps, exchange);
    window w = first;
    u64 record[WORDS];
    UNROLL
    for (u32 k = 0; k < WORDS; k++)
        record[k] = 0;

    for (u32 i = 0; i < s.tiles; i++) {
        tile t;
        load_tile(&t, s.packs + (u64)i * (BLOCK * IN_FLIGHT));
        add_tile(&t, &w, record, limbs);
    }
    for (u32 i = 0; i < s.loose; i += BLOCK * TILE) {
        tile t;
        load_loose(&t, x, s, i, MINUS_ZERO);
        add_tile(&t, &w, record, limbs);
    }

    if (w.exponent != first.exponent) flush(record, w.exponent, limbs);
    merge_block(record, warps, exchange);
    if (threadIdx.x == 0) {
        flush(record, first.exponent, limbs);
        if (record[SEEN] != 0) atomicOr(&work[1 + LIMBS], record[SEEN]);
    }
    __syncthreads();
    deliver_limbs(limbs, work + 1);
}
