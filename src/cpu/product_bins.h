/*
 * product_bins.h - exact sums of products of any two doubles: integers in one bin for every four exponents.
 *
 * A template with the parameters of extract.h; the place of bins.h where terms have tails. A finite double is a
 * signed integer mantissa below 2^53 times a power of two. The product of two mantissas is an integer below
 * 2^106, which nothing can round, overflow or lose; it goes to the bin of its exponent, a signed 128-bit
 * integer. A bin takes four exponents, which makes the product at most 2^3 times as large and all bins
 * together small enough for the first-level cache.
 *
 * Bounds: a bin holds at most PRODUCTS_MAX = 2^17 integers below 2^109 before it is emptied: below 2^126.
 */

#ifndef PRODUCTS_MAX
#define BIN_BLOCK    256
#define PRODUCTS_MAX ((size_t)1 << 17)
#define PRODUCT_BINS ((2 * 2046 >> 2) + 1)
_Static_assert(53 + 53 + 3 + 17 < 127, "a bin does not overflow");
#endif

struct BINS {
    size_t used; /* products since they were emptied */
    __int128
        sum[PRODUCT_BINS]; /* by the sum of the exponent fields over 4; a subnormal's field is 1 */
};

static void PART(empty)(struct BINS *b, struct exact_sum *s) {
    if (!b->used) return;
    struct superacc *limbs = exact_sum_limbs(s);
    for (int e = 0; e < PRODUCT_BINS; e++)
        if (b->sum[e] != 0) superacc_add(limbs, b->sum[e], 4 * e - 2 * 1075);
    b->used = 0;
}

/* Splits doubles into exponent fields and signed mantissas; says which are not finite. */
ALWAYS_INLINE vu64 PART(split)(vf64 v, vu64 *exponent, vi64 *mantissa) {
    const vu64 bits = (vu64)v, field = bits >> 52 & 2047, subnormal = (vu64)(field == 0);
    const vu64 minus = 0 - (bits >> 63);
    *exponent = field - subnormal;
    const vu64 magnitude = (bits & ((UINT64_C(1) << 52) - 1)) | (~subnormal & (UINT64_C(1) << 52));
    *mantissa = (vi64)((magnitude ^ minus) - minus);
    return (vu64)(field == 2047);
}

/* Splits a vector of products: bin, and two integers whose product goes there. */
ALWAYS_INLINE vu64 PART(split_product)(vf64 x, vf64 y, uint64_t *bin, int64_t *a, int64_t *b) {
    vu64 e, f;
    vi64 m, n;
    vu64 special = PART(split)(x, &e, &m);
    if (PAIRED)
        special |= PART(split)(y, &f, &n);
    else {
        f = e;
        n = m;
    }
    e += f;
    n <<= (vi64)(e & 3);
    e >>= 2;
    memcpy(bin, &e, sizeof e);
    memcpy(a, &m, sizeof m);
    memcpy(b, &n, sizeof n);
    return special;
}

/* Counts the infinite and NaN products among n and makes them add nothing. */
static void PART(take_out_specials)(const ELEMENT *x, const ELEMENT *y, int64_t *a, size_t n,
                                    struct exact_sum *s) {
    for (size_t i = 0; i < n; i++) {
        const double v = x[i], w = y[i], product = v * w;
        if (v - v == 0 && w - w == 0) continue; /* both are finite */
        a[i] = 0;
        if (product != product)
            s->nans++;
        else if (product > 0)
            s->plus++;
        else
            s->minus++;
    }
}

static __attribute__((noinline)) void PART(bin)(struct BINS *bins, const ELEMENT *x,
                                                const ELEMENT *y, size_t n, struct exact_sum *s) {
    uint64_t bin[BIN_BLOCK];
    int64_t a[BIN_BLOCK], b[BIN_BLOCK];
    for (size_t m; n > 0; x += m, y += m, n -= m) {
        m = n < BIN_BLOCK ? n : BIN_BLOCK;
        if (bins->used + m > PRODUCTS_MAX) PART(empty)(bins, s);
        if (!bins->used) memset(bins->sum, 0, sizeof bins->sum);
        bins->used += m;
        PREFETCH_AHEAD(x, m * sizeof *x);
        if (PAIRED) PREFETCH_AHEAD(y, m * sizeof *y);
        vu64 special = {0};
        size_t i = 0;
        for (; i + LANES(double) <= m; i += LANES(double))
            special |=
                PART(split_product)(LOAD_F64(x + i), OTHER(x + i, y + i), bin + i, a + i, b + i);
        if (i < m) {
            ELEMENT padded[2][LANES(double)] = {{0}};
            memcpy(padded[0], x + i, (m - i) * sizeof *x);
            if (PAIRED) memcpy(padded[1], y + i, (m - i) * sizeof *y);
            special |= PART(split_product)(LOAD_F64(padded[0]), LOAD_F64(padded[PAIRED]), bin + i,
                                           a + i, b + i);
        }
        if (any_set(special)) PART(take_out_specials)(x, y, a, m, s);
#pragma GCC unroll 4
        for (i = 0; i < m; i++)
            bins->sum[bin[i]] += (__int128)a[i] * b[i];
    }
}
