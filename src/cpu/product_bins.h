/*
 * product_bins.h - exact sums of products of any two doubles: integers in one bin for every four exponents.
 *
 * A template with the parameters of extract.h, which takes the place of bins.h for products of doubles. Where SUMS is
 * 1 the elements themselves are summed too, in bins of their own. FACTOR(p) is a vector of factors, and FACTOR_ONE(p)
 * one factor, as doubles. A finite double is a signed integer mantissa below 2^53 times a power of two. The product
 * of two mantissas is an integer below 2^106, which nothing can round, overflow or lose; it goes to the bin of its
 * exponent, a signed 128-bit integer. A bin takes four exponents, which makes the product at most 2^3 times as large
 * and all bins together small enough for the first-level cache.
 *
 * Bounds: a bin holds at most PRODUCTS_MAX = 2^17 integers below 2^109 before it is emptied: below 2^126.
 */

#ifndef PRODUCTS_MAX
#define PRODUCTS_MAX ((size_t)1 << 17)
#define PRODUCT_BINS ((2 * 2046 >> 2) + 1)
#define SUM_BINS     ((2046 >> 2) + 1)
_Static_assert(53 + 53 + 3 + 17 < 127, "a bin does not overflow");
#endif

struct BINS {
    size_t used; /* products that have been added since the bins were last emptied */
    __int128
        product[PRODUCT_BINS]; /* by the sum of the exponent fields over 4; a subnormal's is 1 */
#if SUMS
    __int128 sum[SUM_BINS]; /* by the exponent field over 4 */
#endif
};

static void INSTANCE(empty)(struct BINS *b, STATE *s) {
    if (!b->used) return;
    struct superacc *limbs = exact_sum_limbs(SQUARES_OF(s));
    for (int e = 0; e < PRODUCT_BINS; e++)
        if (b->product[e] != 0) superacc_add(limbs, b->product[e], 4 * e - 2 * 1075);
#if SUMS
    limbs = exact_sum_limbs(SUM_OF(s));
    for (int e = 0; e < SUM_BINS; e++)
        if (b->sum[e] != 0) superacc_add(limbs, b->sum[e], 4 * e - 1075);
#endif
    b->used = 0;
}

/* Splits doubles into exponent fields, a subnormal's being 1, and signed mantissas; returns which are not finite. */
ALWAYS_INLINE vu64 INSTANCE(split)(vf64 v, vu64 *exponent, vi64 *mantissa) {
    const vu64 bits = (vu64)v, field = bits >> 52 & 2047, subnormal = (vu64)(field == 0);
    const vu64 minus = 0 - (bits >> 63);
    *exponent = field - subnormal;
    const vu64 magnitude = (bits & ((UINT64_C(1) << 52) - 1)) | (~subnormal & (UINT64_C(1) << 52));
    *mantissa = (vi64)((magnitude ^ minus) - minus);
    return (vu64)(field == 2047);
}

/* A block of products: each one's bin and two integers to add there. If elements are summed too,
 * each element's bin and integer. */
struct INSTANCE(block) {
    uint64_t bin[BIN_BLOCK];
    int64_t a[BIN_BLOCK], b[BIN_BLOCK];
#if SUMS
    uint64_t sum_bin[BIN_BLOCK];
    int64_t integer[BIN_BLOCK];
#endif
};

/* Splits a vector of products, the block's from number i on; returns which have a factor that is not finite. */
ALWAYS_INLINE vu64 INSTANCE(split_product)(const ELEMENT *p, const ELEMENT *q,
                                           struct INSTANCE(block) * to, size_t i) {
    vu64 e, f;
    vi64 a, b;
    vu64 special = INSTANCE(split)(FACTOR(p), &e, &a);
#if PAIRED
    special |= INSTANCE(split)(FACTOR(q), &f, &b);
#else
    (void)q;
    f = e;
    b = a;
#endif
#if SUMS
    const vu64 sum_bin = e >> 2;
    const vi64 integer = a << (vi64)(e & 3);
    memcpy(to->sum_bin + i, &sum_bin, sizeof sum_bin);
    memcpy(to->integer + i, &integer, sizeof integer);
#endif
    e += f;
    b <<= (vi64)(e & 3);
    e >>= 2;
    memcpy(to->bin + i, &e, sizeof e);
    memcpy(to->a + i, &a, sizeof a);
    memcpy(to->b + i, &b, sizeof b);
    return special;
}

/* Counts a number that is not finite. */
static inline void INSTANCE(count)(double special, struct exact_sum *s) {
    if (special != special)
        s->nans++;
    else if (special > 0)
        s->plus++;
    else
        s->minus++;
}

/* Counts in s the infinities and NaNs among a block's n products, and elements, and makes the block
 * add 0 for them. */
static void INSTANCE(take_out_specials)(const ELEMENT *x, const ELEMENT *y,
                                        struct INSTANCE(block) * block, size_t n, STATE *s) {
    for (size_t i = 0; i < n; i++) {
        const double v = FACTOR_ONE(x + i), w = PAIRED ? FACTOR_ONE(y + i) : v;
        if (v - v == 0 && w - w == 0) continue; /* both are finite */
        INSTANCE(count)(v * w, SQUARES_OF(s));
        block->a[i] = 0;
#if SUMS
        INSTANCE(count)(v, SUM_OF(s));
        block->integer[i] = 0;
#endif
    }
}

static __attribute__((noinline)) void INSTANCE(bin)(struct BINS *bins, const ELEMENT *x,
                                                    const ELEMENT *y, size_t n, STATE *s) {
    struct INSTANCE(block) block;
    for (size_t m; n > 0; x += m, y += m, n -= m) {
        m = n < BIN_BLOCK ? n : BIN_BLOCK;
        if (bins->used + m > PRODUCTS_MAX) {
            KERNEL_PATH("full bins");
            INSTANCE(empty)(bins, s);
        }
        if (!bins->used) {
            memset(bins->product, 0, sizeof bins->product);
#if SUMS
            memset(bins->sum, 0, sizeof bins->sum);
#endif
        }
        bins->used += m;
        PREFETCH(x, m * sizeof *x, STREAM_AHEAD, 2);
        if (PAIRED) PREFETCH(y, m * sizeof *y, STREAM_AHEAD, 2);
        vu64 special = {0};
        size_t i = 0;
        for (; i + LANES(double) <= m; i += LANES(double))
            special |= INSTANCE(split_product)(x + i, y + i, &block, i);
        if (i < m) {
            ELEMENT padded[2][LANES(double)] = {{0}};
            memcpy(padded[0], x + i, (m - i) * sizeof *x);
            if (PAIRED) memcpy(padded[1], y + i, (m - i) * sizeof *y);
            special |= INSTANCE(split_product)(padded[0], padded[PAIRED], &block, i);
        }
        if (any_set(special)) {
            KERNEL_PATH("NaNs and infinities");
            INSTANCE(take_out_specials)(x, y, &block, m, s);
        }
#pragma GCC unroll 4
        for (i = 0; i < m; i++) {
            bins->product[block.bin[i]] += (__int128)block.a[i] * block.b[i];
#if SUMS
            bins->sum[block.sum_bin[i]] += block.integer[i];
#endif
        }
    }
}
