/*
 * integers.h - exact integer sums and products, without a wrap.
 *
 * A template, included by integers.c once per integer type with these defined: ELEMENT, INT and WORD (the
 * signed and the unsigned type of its size), BITS, SIGNED (0 or 1) and NAME, the type's name.
 *
 * Sum. A vector of elements is read as a vector of words twice as wide: the low half and the high half
 * of each word are two elements, and adding both halves to a wide lane keeps the carry that a narrow
 * lane would lose. Signed elements are first moved up by 2^(BITS-1) - one exclusive or - which makes them
 * unsigned, and what was added too much is taken off at the end. 64-bit elements have no wider word:
 * their halves go to two sums of their own. Memory answers faster when asked for several places in turn (read.c):
 * an array is taken as STREAMS streams. The kernel does not prefetch: so little arithmetic does not delay the cache
 * misses behind it (docs/performance.md).
 *
 * Magnitudes. They are summed as unsigned elements, which hold 2^(BITS-1), the magnitude of the least number, too.
 *
 * Product. |product| never falls while no element is 0, so it is exact in 64 bits until it overflows for
 * good; a zero anywhere then still makes it 0. Elements other than 0, 1 and -1 can occur 64 times before
 * that, so almost all work is a search, which vectors do.
 */

#define STREAMS   INTEGER_STREAMS
#define WIDE_BITS (BITS == 64 ? 32 : BITS)

/* Vectors that a wide lane can take before it could overflow: two halves below 2^BITS each. */
#if BITS == 8
#define ROUND 127 /* 127 * 2 * 255 < 2^16 */
#define WIDE  uint16_t
#define VWIDE vu16
#elif BITS == 16
#define ROUND 32767 /* 32767 * 2 * 65535 < 2^32 */
#define WIDE  uint32_t
#define VWIDE vu32
#else
#define ROUND ((size_t)1 << 30) /* a fold's worth: 2^31 * 2^32 < 2^64 */
#define WIDE  uint64_t
#define VWIDE vu64
#endif

/* Adds lanes two by two until they are 64 bits wide. */
ALWAYS_INLINE vu64 INSTANCE(widened)(VWIDE v) {
    vu32 words = (vu32)v;
    if (BITS == 8) words = (words & 0xffff) + (words >> 16);
    vu64 sums = (vu64)words;
    if (BITS <= 16) sums = (sums & 0xffffffff) + (sums >> 32);
    return sums;
}

ALWAYS_INLINE unsigned __int128 INSTANCE(total)(vu64 v) {
    unsigned __int128 sum = 0;
    for (size_t i = 0; i < LANES(uint64_t); i++)
        sum += v[i];
    return sum;
}

#if SIGNED
/* Returns |v| lane by lane, as unsigned numbers. */
ALWAYS_INLINE vu64 INSTANCE(absolute)(vu64 v) {
    typedef VECTOR_OF(INT) vint;
    typedef VECTOR_OF(WORD) vword;
    const vword minus = (vword)((vint)v < 0);
    return (vu64)(((vword)v ^ minus) - minus);
}
#endif

/* Adds a vector of elements, or of their magnitudes, to the lanes of a; of 64-bit elements the lower halves to a, the
 * upper ones to b. */
ALWAYS_INLINE void INSTANCE(add_vector)(const char *p, vu64 bias, int magnitudes, VWIDE *a,
                                        VWIDE *b) {
    vu64 v = VECTOR_LOAD(vu64, p) ^ bias;
    (void)magnitudes;
#if SIGNED
    if (magnitudes) v = INSTANCE(absolute)(v);
#endif
    const VWIDE word = (VWIDE)v, lower = word & (((WIDE)1 << WIDE_BITS) - 1);
    if (BITS < 64) {
        *a += lower + (word >> WIDE_BITS);
    } else {
        *a += lower;
        *b += word >> WIDE_BITS;
    }
}

/* Adds x[0..n), or their magnitudes, to a sum: `magnitudes` is a constant at each call. */
ALWAYS_INLINE void INSTANCE(add_up)(const ELEMENT *x, size_t n, int magnitudes,
                                    struct exact_sum *into) {
    const uint64_t every =
        ~UINT64_C(0) / ((UINT64_C(1) << (BITS - 1) << 1) - 1); /* 1 in each element */
    const int biased = SIGNED && !magnitudes;
    const vu64 bias = (vu64){0} + (biased ? every << (BITS - 1) : 0);
    const size_t vectors = n * sizeof *x / TALLY_VECTOR;
    const size_t rows = vectors / STREAMS, apart = rows * TALLY_VECTOR;
    const char *p = (const char *)x;
    vu64 low = {0}, high = {0}; /* a fold's 2^30 elements leave these below 2^63 */
    for (size_t round, done = 0; done < rows; done += round) {
        VWIDE a[STREAMS] = {{0}}, b[STREAMS] = {{0}};
        round = rows - done < ROUND ? rows - done : ROUND;
        for (size_t i = 0; i < round; i++, p += TALLY_VECTOR)
            for (size_t k = 0; k < STREAMS; k++)
                INSTANCE(add_vector)(p + k * apart, bias, magnitudes, &a[k], &b[k]);
        for (size_t k = 0; k < STREAMS; k++) {
            low += INSTANCE(widened)(a[k]);
            high += INSTANCE(widened)(b[k]);
        }
    }
    VWIDE a = {0}, b = {0}; /* fewer than STREAMS vectors more */
    p = (const char *)x + STREAMS * apart;
    for (size_t i = STREAMS * rows; i < vectors; i++, p += TALLY_VECTOR)
        INSTANCE(add_vector)(p, bias, magnitudes, &a, &b);
    low += INSTANCE(widened)(a);
    high += INSTANCE(widened)(b);
    size_t taken = vectors * (TALLY_VECTOR / sizeof *x);
    __int128 sum = (__int128)(INSTANCE(total)(low) + (INSTANCE(total)(high) << 32));
    if (biased) sum -= (__int128)taken << (BITS - 1);
    for (; taken < n; taken++) {
        const __int128 v = SIGNED ? (__int128)(int64_t)x[taken] : (__int128)(uint64_t)x[taken];
        sum += magnitudes && v < 0 ? -v : v;
    }
    exact_sum_add(into, sum, 0);
}

void CONCAT(INSTANCE(sum), TALLY_ISA)(const void *x, size_t n, void *state) {
    KERNEL_PATH("");
    INSTANCE(add_up)(x, n, 0, state);
}

void CONCAT(INSTANCE(magnitudes), TALLY_ISA)(const void *x, size_t n, void *state) {
    KERNEL_PATH("");
    INSTANCE(add_up)(x, n, 1, state);
}

/* Multiplies the n elements at x, none of them 0, into the product one by one. */
static void INSTANCE(multiply)(const ELEMENT *x, size_t n, struct factors *into) {
    for (size_t i = 0; i < n; i++) {
        unsigned char negative = SIGNED && (WORD)x[i] >> (BITS - 1);
        uint64_t magnitude = negative ? 0 - (uint64_t)x[i] : (uint64_t)x[i];
        into->negative ^= negative;
        if (__builtin_mul_overflow(into->magnitude, magnitude, &into->magnitude))
            into->overflow = 1;
    }
}

void CONCAT(INSTANCE(prod), TALLY_ISA)(const void *array, size_t n, void *state) {
    enum { BLOCK = 4096 / sizeof(ELEMENT) };
    struct factors *into = state;
    const ELEMENT *x = array;
    for (size_t m; n > 0 && !into->zero; x += m, n -= m) {
        m = n < BLOCK ? n : BLOCK;
        WORD zero = 0, large = 0, signs = 0;
        for (size_t i = 0; i < m; i++) {
            WORD v = (WORD)x[i];
            zero |= v == 0;
            large |= (WORD)(v + SIGNED) > 1 + SIGNED; /* not 0, 1 or, signed, -1 */
            signs ^= v;
        }
        if (zero) {
            KERNEL_PATH("a zero");
            into->zero = 1; /* nothing else matters any more */
        } else if (into->overflow) {
            KERNEL_PATH("after an overflow");
            continue; /* only a zero can still matter */
        } else if (large) {
            KERNEL_PATH("one by one");
            INSTANCE(multiply)(x, m, into);
        } else if (SIGNED) {
            KERNEL_PATH_IF(SIGNED, "signs alone", "unsigned integers have none");
            into->negative ^= ((uint64_t)signs >> (BITS - 1)) & 1;
        }
    }
}

#undef STREAMS
#undef WIDE_BITS
#undef ROUND
#undef WIDE
#undef VWIDE
