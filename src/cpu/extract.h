/*
 * extract.h - exact sums at the speed of memory: error-free extraction, vector by vector.
 *
 * The kernels sum terms: the elements themselves, their magnitudes, their squares, or products of two. A
 * template, included by in_f32.h, in_f64.h and in_two_f64.h once per kernel with these defined:
 *   NAME            name of the function made, e.g. sum_f64
 *   ELEMENT         type of an element in memory
 *   PAIRED          1: a term is made of an element at x and one at y; 0: y is x
 *   TERM(p, q)      a vector of REAL: the terms of LANES(REAL) elements at p and those at q
 *   TERM_ONE(p, q)  one REAL: the term of the element at p and that at q
 *   PLAIN           defined where a term is the element itself
 *   TAIL(p, q, h)   where terms are wider than a REAL: what is left of them beside TERM(p, q), which is h;
 *                   not defined where terms are REALs. |tail| is at most half of h's last bit.
 *   REAL, INT, WORD the float type computed in (float or double), the integers of its size
 *   VREAL, VINT, VWORD  vectors of those
 *   MANTISSA        bits of REAL's mantissa without the implicit one: 23 or 52
 *   LOWEST          no unit of a window is below 2^LOWEST: the smallest subnormal's exponent, -149 or -1074,
 *                   or more where a term's tail needs that
 *   HIGHEST         largest exponent of a finite REAL: 127 or 1023
 *   LEVELS          how many levels the usual data need
 *   MAX_LEVELS      the most levels
 *   STATE           what the kernel adds to: struct exact_sum; struct moments in some kernels of digits.h
 *
 * The idea (Rump, Ogita, Oishi 2008, "Accurate floating-point summation"). Choose E so that every
 * |x| <= 2^(E-1), and sigma = 1.5 * 2^E. Then t = x + sigma stays in [2^E, 2^(E+1)), where floats
 * are 2^(E-MANTISSA) apart: t - sigma is x rounded to a multiple of that, both subtractions
 *     q = t - sigma,   r = x - q
 * are exact, and |r| <= 2^(E-MANTISSA-1). Seen as integers, the bits of t are the bits of sigma plus
 * q / 2^(E-MANTISSA): so q is added exactly by adding t's bits with one integer addition. r meets the
 * next sigma, 2^MANTISSA smaller, and so on for some levels. A tail is at most 2^(E-MANTISSA-2), so it joins at
 * the second level, as a number of its own.
 *
 * Two checks make it exact rather than hopeful, both or'ed up lane by lane and read once a chunk:
 * (a) t's exponent field never differed from sigma's (no x was too large, infinite or NaN), and (b) after the
 * last level nothing was left (q == r there). A chunk that fails leaves no trace, and is done again with
 * all levels, with an E of its own, or, when its exponents span too much for that, in bins (bins.h, levels.h,
 * product_bins.h): exact_chunks.h says when.
 *
 * Bounds: |q| / 2^(E-MANTISSA) <= 2^(MANTISSA-1), and a chunk is CHUNK_VECTORS = 2^8 vectors and a
 * ragged one, so a lane's integer stays below 2^(MANTISSA+7) + 2^(MANTISSA-1): 2^60 in 64 bits, 2^31 in
 * 32. With tails, which are REALs of 64 bits, it is twice that: 2^61. A good chunk's integers, made unsigned by
 * adding half their range, go to the window's lanes in halves of 32 bits: less than 2^33 a chunk, and a fold has
 * less than 2^22 chunks.
 */

#define STREAMS       EXTRACT_STREAMS
#define CHUNK_VECTORS EXTRACT_CHUNK_VECTORS
#define CHUNK         (CHUNK_VECTORS * LANES(REAL))
#define AHEAD         (PAIRED ? EXTRACT_PAIRED_AHEAD : EXTRACT_AHEAD) /* bytes, from a stream's element */
_Static_assert(CHUNK_VECTORS <= 1 << 8, "a lane's integers are bounded by such chunks");

/* A window: the sums extracted with one E. Level k counts multiples of 2^(E - (k+1)*MANTISSA), in
 * lanes, by the lower and upper halves of their integers. Each half is HALF_RANGE too large for
 * every chunk. */
struct WINDOW {
    int exponent; /* E */
    int open;     /* E has been chosen */
    uint64_t chunks[MAX_LEVELS];
    vu64 low[MAX_LEVELS], high[MAX_LEVELS];
};

#define HALF_RANGE ((WORD)1 << (8 * sizeof(WORD) - 1))

/* Returns 1.5 * 2^exponent. */
ALWAYS_INLINE REAL INSTANCE(sigma)(int exponent) {
    WORD bits = (WORD)(exponent + HIGHEST) << MANTISSA | (WORD)1 << (MANTISSA - 1);
    REAL sigma;
    memcpy(&sigma, &bits, sizeof sigma);
    return sigma;
}

ALWAYS_INLINE VREAL INSTANCE(term)(const ELEMENT *p, const ELEMENT *q) {
    (void)q;
    return TERM(p, q);
}

/* Adds the terms of up to CHUNK elements to the window with `levels` levels, a constant at each call, and
 * says whether that was exact; if not, the window is unchanged. The elements are n in a row at x; or, where
 * `apart` is not 0, n / STREAMS in a row at each of x, x + apart, x + 2 * apart ...; and so at y. */
ALWAYS_INLINE int INSTANCE(extract)(struct WINDOW *w, int levels, const ELEMENT *x,
                                    const ELEMENT *y, size_t n, size_t apart) {
    VREAL sigma[MAX_LEVELS];
    VWORD sum[MAX_LEVELS], outside = {0}, left = {0};
    for (int k = 0; k < levels; k++) {
        sigma[k] = (VREAL){0} + INSTANCE(sigma)(w->exponent - k * MANTISSA);
        sum[k] = (VWORD){0};
    }
    /* One number at level k; `rest` is what it leaves. The last level leaves nothing, or it is not exact. */
#define EXTRACT_LEVEL(k, rest)                                                                     \
    do {                                                                                           \
        VREAL t = (rest) + sigma[k], taken = t - sigma[k];                                         \
        sum[k] += (VWORD)t;                                                                        \
        if ((k) == 0) outside = (VWORD)note_difference((vi64)outside, (vi64)t, (vi64)sigma[0]);    \
        if ((k) == levels - 1)                                                                     \
            left = (VWORD)note_difference((vi64)left, (vi64)taken, (vi64)(rest));                  \
        else                                                                                       \
            (rest) -= taken;                                                                       \
    } while (0)
#ifdef TAIL
#define EXTRACT_TAIL(p, q, h)                                                                      \
    do {                                                                                           \
        VREAL tail = TAIL(p, q, h);                                                                \
        lost = TAIL_LOST(lost, p, q, h, tail);                                                     \
        for (int k = 1; k < levels; k++)                                                           \
            EXTRACT_LEVEL(k, tail);                                                                \
    } while (0)
    VWORD lost = {0};
    enum { TERMS = 2 };
#else
#define EXTRACT_TAIL(p, q, h) (void)0
    enum { TERMS = 1 };
#endif
#define EXTRACT_STEP(p, q)                                                                         \
    do {                                                                                           \
        const VREAL term = INSTANCE(term)(p, q);                                                   \
        VREAL rest = term;                                                                         \
        for (int k = 0; k < levels; k++)                                                           \
            EXTRACT_LEVEL(k, rest);                                                                \
        EXTRACT_TAIL(p, q, term);                                                                  \
    } while (0)

    size_t vectors = n / LANES(REAL), ragged = n % LANES(REAL);
    size_t across = apart ? apart : LANES(REAL),
           along = apart ? LANES(REAL) : STREAMS * LANES(REAL);
    const ELEMENT *p = x, *q = y;
    for (size_t i = 0; i < vectors / STREAMS; i++, p += along, q += along)
        for (size_t j = 0; j < STREAMS; j++) {
            if (PAIRED) {
                PREFETCH(p + j * across, LANES(REAL) * sizeof(ELEMENT), AHEAD, 1);
                PREFETCH(q + j * across, LANES(REAL) * sizeof(ELEMENT), AHEAD, 1);
            } else
                PREFETCH_PLAIN(p + j * across, LANES(REAL) * sizeof(ELEMENT), AHEAD, 1);
            EXTRACT_STEP(p + j * across, q + j * across);
        }
    for (size_t i = 0; i < vectors % STREAMS; i++, p += LANES(REAL), q += LANES(REAL))
        EXTRACT_STEP(p, q);
    if (ragged) {
        ELEMENT padded[2][LANES(REAL)] = {{0}};
        memcpy(padded[0], p, ragged * sizeof *p);
        if (PAIRED) memcpy(padded[1], q, ragged * sizeof *q);
        EXTRACT_STEP(padded[0], padded[PAIRED]);
        vectors++;
    }
#undef EXTRACT_LEVEL
#undef EXTRACT_TAIL
#undef EXTRACT_STEP

    /* -0 and +0 differ in their sign bit only, and are the same amount left. */
    const WORD sign = (WORD)1 << (8 * sizeof(WORD) - 1), exponent_field = (WORD)-1 << MANTISSA;
    VWORD wrong = (outside & exponent_field) | (left & ~sign);
#ifdef TAIL
    wrong |= lost;
#endif
    if (any_set((vu64)wrong)) return 0;
    for (int k = 0; k < levels; k++) {
        WORD bits;
        REAL first = sigma[k][0];
        memcpy(&bits, &first, sizeof bits);
        /* Modulo 2^32 or 2^64, and exact: see above. */
        const WORD added = (WORD)vectors * (WORD)(k > 0 ? TERMS : 1);
        vu64 all = (vu64)(sum[k] + (HALF_RANGE - bits * added));
        w->low[k] += all & 0xffffffff;
        if (sizeof(WORD) == 8)
            w->high[k] += all >> 32;
        else
            w->low[k] += all >> 32; /* the next 32-bit lane */
        w->chunks[k]++;
    }
    return 1;
}

/* Return the bits of the REAL of a term; and those of its magnitude, which sort like it. */
static inline WORD INSTANCE(word)(const ELEMENT *p, const ELEMENT *q) {
    REAL value = TERM_ONE(p, q);
    WORD bits;
    (void)q;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline INT INSTANCE(magnitude)(const ELEMENT *p, const ELEMENT *q) {
    return (INT)(INSTANCE(word)(p, q) & ~((WORD)1 << (8 * sizeof(WORD) - 1)));
}

/* Returns the bits of the largest magnitude of n terms, as a number: infinities and NaNs come out
 * on top. */
static INT INSTANCE(largest)(const ELEMENT *x, const ELEMENT *y, size_t n) {
    VINT most = {0};
    const INT magnitude = (INT)((WORD)-1 >> 1);
    for (size_t v = n / LANES(REAL); v > 0; v--, x += LANES(REAL), y += LANES(REAL)) {
        VINT bits = (VINT)INSTANCE(term)(x, y) & magnitude;
        VINT more = bits > most;
        most = (bits & more) | (most & ~more);
    }
    INT top = 0;
    for (size_t j = 0; j < LANES(REAL); j++)
        if (most[j] > top) top = most[j];
    for (size_t i = 0; i < n % LANES(REAL); i++)
        if (INSTANCE(magnitude)(x + i, y + i) > top) top = INSTANCE(magnitude)(x + i, y + i);
    return top;
}

/* Returns the sum of level k, over all lanes and chunks. */
static __int128 INSTANCE(total)(const struct WINDOW *w, int k) {
    if (w->chunks[k] == 0) return 0;
    uint64_t low = 0, high = 0; /* below 2^33 a chunk and lane, less than 2^22 chunks, 2^3 lanes */
    for (size_t j = 0; j < LANES(uint64_t); j++) {
        low += w->low[k][j];
        high += w->high[k][j];
    }
    unsigned __int128 surplus = (unsigned __int128)w->chunks[k] * LANES(REAL) * HALF_RANGE;
    return (__int128)(low + ((unsigned __int128)high << 32) - surplus);
}

/* Adds a window's totals to s and closes it. The first two levels go as one integer where they fit one: for a short
 * array that is all, and it is rounded without a superaccumulator. */
static void INSTANCE(close)(struct WINDOW *w, struct exact_sum *s) {
    const __int128 small = (__int128)1 << (125 - MANTISSA);
    __int128 total[MAX_LEVELS];
    for (int k = 0; k < MAX_LEVELS; k++)
        total[k] = INSTANCE(total)(w, k);
    if (total[0] < small && total[0] > -small) {
        total[1] += total[0] * ((__int128)1 << MANTISSA);
        total[0] = 0;
    }
    for (int k = 0; k < MAX_LEVELS; k++)
        exact_sum_add(s, total[k], w->exponent - (k + 1) * MANTISSA);
    w->open = 0;
}

/* Opens a closed window for numbers whose largest has the bits `most`, with `room` bits above it,
 * so that a slightly larger number still fits. Returns whether there is such an E. */
static int INSTANCE(choose)(struct WINDOW *w, INT most, int room) {
    const int lowest = LOWEST + MAX_LEVELS * MANTISSA; /* the last unit is 2^LOWEST */
    int exponent = (int)(most >> MANTISSA) - HIGHEST + 2;
    if (exponent > HIGHEST) return 0;
    exponent = exponent + room < HIGHEST ? exponent + room : HIGHEST;
    w->exponent = exponent < lowest ? lowest : exponent;
    for (int k = 0; k < MAX_LEVELS; k++) {
        w->low[k] = w->high[k] = (vu64){0};
        w->chunks[k] = 0;
    }
    w->open = 1;
    return 1;
}
