/*
 * integer_products.h - exact sums of squares and of products of integers.
 *
 * A template, included by integer_products.c once per integer type with these defined: NAME, BITS, SIGNED
 * (0 or 1), INT and WORD, the signed and the unsigned type of BITS bits.
 *
 * 8 and 16 bits. A vector is read as lanes twice as wide, whose two halves are two elements; products of
 * these fit such a lane, and their sums lanes of twice that again. Products that may be negative are first moved up by
 * half the lane's range, which makes them unsigned; that is taken off at the end.
 *
 * 32 and 64 bits. The kernel multiplies unsigned halves of 64-bit lanes. A signed element is moved up by
 * B = 2^(BITS-1) first, x' = x + B, and x y = x' y' - B (x' + y') + B^2: so the sum of all x' and y' is kept
 * too. For squares x is replaced by |x| instead. The product of two halves has 64 bits; its own halves go to two
 * sums. For 64 bits the four products of halves weigh 1, 2^32 (two of them) and 2^64.
 */

#if BITS == 8
#define LANE_BITS   16
#define ROUND       ((size_t)1 << 13) /* vectors: each adds at most 4 * 2^16 to a lane of 32 bits */
#define LANE        uint16_t
#define VLANE       vu16
#define VLANE_INT   vi16
#define VSUM        vu32
#define ALL_OF_LANE UINT32_C(0xffff)
_Static_assert((UINT64_C(1) << 13) * 4 * 65535 < UINT64_C(1) << 32, "a lane does not overflow");
#elif BITS == 16
#define LANE_BITS   32
#define ROUND       ((size_t)1 << 27) /* a fold's worth: each adds at most 4 * 2^32 to 64 bits */
#define LANE        uint32_t
#define VLANE       vu32
#define VLANE_INT   vi32
#define VSUM        vu64
#define ALL_OF_LANE UINT64_C(0xffffffff)
#endif

/* A sum: low + high * 2^64. Neither leaves 128 bits: a fold's 2^30 products add less than 2^100 to
 * either. */
struct INSTANCE(wide) {
    __int128 low, high;
};

static void INSTANCE(finish)(const struct INSTANCE(wide) * w, struct exact_sum *s) {
    const __int128 high = w->high + (w->low >> 64); /* the shift rounds down */
    const __int128 low = (__int128)(uint64_t)w->low;
    const __int128 limit = (__int128)1 << 62;
    if (high < limit && high >= -limit) {
        exact_sum_add(s, high * ((__int128)1 << 64) + low, 0);
    } else {
        exact_sum_add(s, low, 0);
        exact_sum_add(s, high, 64);
    }
}

/* Adds one product, or a square where x is y. */
static inline void INSTANCE(add_one)(struct INSTANCE(wide) * w, WORD x, WORD y) {
#if SIGNED
    const __int128 product = (__int128)(INT)x * (INT)y;
#else
    const unsigned __int128 product = (unsigned __int128)x * y;
#endif
    w->low += (uint64_t)product;
    w->high += (__int128)(product >> 64);
}

static __int128 INSTANCE(lanes)(vu64 v) {
    __int128 sum = 0;
    for (size_t i = 0; i < LANES(uint64_t); i++)
        sum += v[i];
    return sum;
}

#if BITS <= 16
/* Adds the products of `vectors` vectors at x and at y to w, and returns how many elements these have. `paired`, a
 * constant at each call, is 0 where x is y. */
ALWAYS_INLINE size_t INSTANCE(vectors)(const char *x, const char *y, size_t vectors, int paired,
                                       struct INSTANCE(wide) * w) {
    const int biased = SIGNED && paired; /* squares are not negative */
    const VLANE bias = (VLANE){0} + (LANE)(biased ? (LANE)1 << (LANE_BITS - 1) : 0);
    vu64 all = {0};
    for (size_t done = 0; done < vectors;) {
        size_t round = vectors - done < ROUND ? vectors - done : ROUND;
        VSUM sum = {0};
        done += round;
        for (; round > 0; round--, x += TALLY_VECTOR, y += TALLY_VECTOR) {
            PREFETCH_AHEAD(x, TALLY_VECTOR);
            if (paired) PREFETCH_AHEAD(y, TALLY_VECTOR);
#if SIGNED
            const VLANE_INT a = VECTOR_LOAD(VLANE_INT, x), b = VECTOR_LOAD(VLANE_INT, y);
#define EVEN(v) ((VLANE)((VLANE_INT)((VLANE)(v) << BITS) >> BITS))
#else
            const VLANE a = VECTOR_LOAD(VLANE, x), b = VECTOR_LOAD(VLANE, y);
#define EVEN(v) ((v) & (LANE)(WORD)-1)
#endif
            const VLANE even = (EVEN(a) * EVEN(b)) ^ bias;
            const VLANE odd = ((VLANE)(a >> BITS) * (VLANE)(b >> BITS)) ^ bias;
#undef EVEN
            const VSUM p = (VSUM)even, q = (VSUM)odd;
            sum += ((p & ALL_OF_LANE) + (p >> LANE_BITS)) + ((q & ALL_OF_LANE) + (q >> LANE_BITS));
        }
#if BITS == 8
        all += ((vu64)sum & 0xffffffff) + ((vu64)sum >> 32);
#else
        all += sum;
#endif
    }
    const size_t elements = vectors * LANES(WORD);
    w->low += INSTANCE(lanes)(all);
    if (biased) w->low -= (__int128)elements << (LANE_BITS - 1);
    return elements;
}
#else
/* The same function for 32 and 64 bits. Bounds: a vector adds at most 3 * 2^32 to each of a lane's sums, and a fold
 * has at most 2^29 vectors. */
ALWAYS_INLINE size_t INSTANCE(vectors)(const char *x, const char *y, size_t vectors, int paired,
                                       struct INSTANCE(wide) * w) {
    const uint64_t half = 0xffffffff;
    const int biased = SIGNED && paired;
    const vu64 bias = (vu64){0} + (!biased ? 0
                                   : BITS == 64 ? UINT64_C(1) << 63
                                                : UINT64_C(0x8000000080000000));
    vu64 sum[4] = {{0}};        /* by weight: 2^(32 k) */
    vu64 low = {0}, high = {0}; /* of elements, by halves; 64-bit squares: of r */
    for (size_t i = 0; i < vectors; i++, x += TALLY_VECTOR, y += TALLY_VECTOR) {
        PREFETCH_AHEAD(x, TALLY_VECTOR);
        if (paired) PREFETCH_AHEAD(y, TALLY_VECTOR);
        vu64 a = VECTOR_LOAD(vu64, x) ^ bias, b = VECTOR_LOAD(vu64, y) ^ bias;
#if SIGNED
        if (!paired) {
            typedef VECTOR_OF(INT) vint;
            typedef VECTOR_OF(WORD) vword;
            const vword minus = (vword)((vint)a < 0);
            a = b = (vu64)(((vword)a ^ minus) - minus);
        }
#endif
        const vu64 c = a >> 32, d = b >> 32;
        if (biased) {
            low += (a & half) + (b & half);
            high += c + d;
        }
        const vu64 p = multiply_low(a, b), q = multiply_low(c, d);
        sum[0] += p & half;
        sum[1] += p >> 32;
        if (BITS == 32) {
            sum[0] += q & half;
            sum[1] += q >> 32;
        } else {
            const vu64 r = multiply_low(a, d);
            if (paired) {
                const vu64 t = multiply_low(c, b);
                sum[1] += (r & half) + (t & half);
                sum[2] += (r >> 32) + (t >> 32);
            } else { /* both products of unlike halves are equal */
                low += r & half;
                high += r >> 32;
            }
            sum[2] += q & half;
            sum[3] += q >> 32;
        }
    }
    const __int128 total[4] = {INSTANCE(lanes)(sum[0]), INSTANCE(lanes)(sum[1]),
                               INSTANCE(lanes)(sum[2]), INSTANCE(lanes)(sum[3])};
    __int128 l = 0, h = 0;
    if (biased || (BITS == 64 && !paired)) {
        l = INSTANCE(lanes)(low);
        h = INSTANCE(lanes)(high);
    }
    const size_t elements = vectors * LANES(WORD);
    w->low += total[0] + (total[1] << 32);
    w->high += total[2] + (total[3] << 32);
    if (BITS == 64 && !paired) {
        w->low += l << 33;
        w->high += h << 1;
    }
    if (biased && BITS == 32) { /* both halves are elements */
        w->low -= (l + h) << 31;
        w->low += (__int128)elements << 62;
    }
    if (biased && BITS == 64) {
        const __int128 all = l + (h << 32); /* times 2^63: half of it at 2^64 */
        w->high -= all >> 1;
        w->low -= (all & 1) << 63;
        w->high += (__int128)elements << 62;
    }
    return elements;
}
#endif

ALWAYS_INLINE void INSTANCE(add_products)(const void *first, const void *second, size_t n,
                                          int paired, struct exact_sum *into) {
    typedef WORD UNALIGNED unaligned;
    const unaligned *x = first, *y = second;
    struct INSTANCE(wide) w = {0, 0};
    size_t i = INSTANCE(vectors)(first, second, n / LANES(WORD), paired, &w);
    for (; i < n; i++)
        INSTANCE(add_one)(&w, x[i], y[i]);
    INSTANCE(finish)(&w, into);
}

void CONCAT(INSTANCE(squares), TALLY_ISA)(const void *x, size_t n, void *state) {
    KERNEL_PATH("");
    INSTANCE(add_products)(x, x, n, 0, state);
}

void CONCAT(INSTANCE(products), TALLY_ISA)(const void *x, const void *y, size_t n, void *state) {
    KERNEL_PATH("");
    INSTANCE(add_products)(x, y, n, 1, state);
}

#undef LANE_BITS
#undef ROUND
#undef LANE
#undef VLANE
#undef VLANE_INT
#undef VSUM
#undef ALL_OF_LANE
#undef NAME
#undef BITS
#undef SIGNED
#undef INT
#undef WORD
