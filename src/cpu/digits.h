/*
 * digits.h - exact sums of x and of x^2 in one pass, by digits of 26 bits.
 *
 * A template with the parameters of extract.h (REAL is double, PAIRED 0, and TERM is x itself), and
 *   SUMS      1: the sum of x is wanted too; 0: that of x^2 alone.
 * It takes the place of extract.h under exact_chunks.h.
 *
 * The idea. As in extract.h, x is cut into multiples of ever smaller units, here DIGIT bits apart:
 * x = d0 + d1 + ..., with dk = mk * 2^(E - DIGIT (k + 1)) and |mk| <= 2^(DIGIT - 1). Then
 *     x^2 = d0 d0 + 2 d0 d1 + (2 d0 d2 + d1 d1) + ...,
 * and each product is a multiple mi mj of a unit that is known beforehand, with |mi mj| <= 2^50. So it is added
 * to a tau = 1.5 * 2^52 of these units without rounding, and the bits of the result are tau's plus mi mj: one
 * multiplication, one addition and one of integers for each pair of digits, and nothing is left over. The
 * digits themselves, added up in the same way, give the sum of x. So one pass over memory gives both sums.
 *
 * Checks, as in extract.h: (a) m0 lies in [-2^25, 2^25); (b) after the last digit nothing is left of x.
 * For (a) sigma0 is 2^25 units more than 1.5 * 2^52 of them, so that t's bits above the lowest 26 are always
 * the same. The later digits are what rounding leaves, at most half a unit, and need no check.
 *
 * Bounds. All units are doubles: the least, of the last digit's square, is 2^(2 E - 2 DIGIT MAX_DIGITS), and
 * the greatest tau lies below 2^(2 E + 1): so E is kept in [LEAST_E, MOST_E]. |mi mj| <= 2^50, and a chunk has
 * at most 2^8 + 1 vectors: a lane stays below 2^59.
 */

#ifndef DIGIT
#define DIGIT  26
#define MOST_E 510
_Static_assert(2 * DIGIT <= 52, "the product of two digits keeps tau's exponent");
#endif

#define STREAMS       DIGITS_STREAMS
#define CHUNK_VECTORS DIGITS_CHUNK_VECTORS
#define CHUNK         (CHUNK_VECTORS * LANES(double))
#define MAX_DIGITS    MAX_LEVELS /* at most 5: see close() */
#define LEAST_E       ((2 * DIGIT * MAX_DIGITS - 1074) / 2)
_Static_assert(CHUNK_VECTORS <= 1 << 8, "a lane stays below 2^59");

/* Sums of integers: of mi mj for i <= j in [i][j], of mk in [MAX_DIGITS][k]. The lower and the upper halves are summed
 * in lanes; each chunk adds 2^63 to each lane's sum besides, so that none is negative. */
struct WINDOW {
    int exponent; /* E */
    int open;
    uint64_t chunks[MAX_DIGITS + 1][MAX_DIGITS];
    vu64 low[MAX_DIGITS + 1][MAX_DIGITS], high[MAX_DIGITS + 1][MAX_DIGITS];
};

/* Returns 1.5 * 2^52 units of 2^unit. */
ALWAYS_INLINE double INSTANCE(sigma)(int unit) {
    const uint64_t bits = (uint64_t)(unit + 52 + 1023) << 52 | UINT64_C(1) << 51;
    double sigma;
    memcpy(&sigma, &bits, sizeof sigma);
    return sigma;
}

ALWAYS_INLINE vf64 INSTANCE(term)(const ELEMENT *p, const ELEMENT *q) {
    (void)q;
    return TERM(p, q);
}

/* Adds the sum of a chunk's `vectors` vectors to the window's sum [i][j], without the bits of
 * `base` that each of them has. */
ALWAYS_INLINE void INSTANCE(keep)(struct WINDOW *w, int i, int j, vu64 sum, size_t vectors,
                                  vf64 base) {
    const uint64_t bits = ((vu64)base)[0];
    const vu64 all = sum + ((UINT64_C(1) << 63) - bits * vectors); /* modulo 2^64, and exact */
    w->low[i][j] += all & 0xffffffff;
    w->high[i][j] += all >> 32;
    w->chunks[i][j]++;
}

/* Extracts as extract.h does; `digits` is a constant at each call. y is not read. */
ALWAYS_INLINE int INSTANCE(extract)(struct WINDOW *w, int digits, const ELEMENT *x,
                                    const ELEMENT *y, size_t n, size_t apart) {
    vf64 sigma[MAX_DIGITS], tau[2 * MAX_DIGITS];
    vu64 pairs[MAX_DIGITS][MAX_DIGITS], sums[MAX_DIGITS], outside = {0}, left = {0};
    const int unit = w->exponent - DIGIT; /* of the first digit */
    (void)y;
    for (int i = 0; i < digits; i++) {
        sigma[i] = (vf64){0} + INSTANCE(sigma)(unit - i * DIGIT);
        sums[i] = (vu64){0};
        for (int j = i; j < digits; j++) {
            tau[i + j] = (vf64){0} + INSTANCE(sigma)(2 * unit - (i + j) * DIGIT);
            pairs[i][j] = (vu64){0};
        }
    }
    const vu64 same = (vu64)sigma[0];
    sigma[0] = (vf64)(same + (1 << (DIGIT - 1)));
#define DIGITS_STEP(p)                                                                             \
    do {                                                                                           \
        vf64 rest = INSTANCE(term)(p, p), d[MAX_DIGITS];                                           \
        for (int k = 0; k < digits; k++) {                                                         \
            const vf64 t = rest + sigma[k];                                                        \
            d[k] = t - sigma[k];                                                                   \
            if (SUMS) sums[k] += (vu64)t;                                                          \
            if (k == 0) outside = (vu64)note_difference((vi64)outside, (vi64)t, (vi64)same);       \
            if (k == digits - 1)                                                                   \
                left = (vu64)note_difference((vi64)left, (vi64)d[k], (vi64)rest);                  \
            else                                                                                   \
                rest -= d[k];                                                                      \
        }                                                                                          \
        for (int g = 0; g < digits; g++)                                                           \
            for (int h = g; h < digits; h++)                                                       \
                pairs[g][h] += (vu64)multiply_add(d[g], d[h], tau[g + h]);                         \
    } while (0)

    size_t vectors = n / LANES(double), ragged = n % LANES(double);
    size_t across = apart ? apart : LANES(double),
           along = apart ? LANES(double) : STREAMS * LANES(double);
    const ELEMENT *p = x;
    for (size_t i = 0; i < vectors / STREAMS; i++, p += along)
        for (size_t j = 0; j < STREAMS; j++) {
            PREFETCH(p + j * across, LANES(double) * sizeof(ELEMENT), 2048, 1);
            DIGITS_STEP(p + j * across);
        }
    for (size_t i = 0; i < vectors % STREAMS; i++, p += LANES(double))
        DIGITS_STEP(p);
    if (ragged) {
        ELEMENT padded[LANES(double)] = {0};
        memcpy(padded, p, ragged * sizeof *p);
        DIGITS_STEP(padded);
        vectors++;
    }
#undef DIGITS_STEP

    /* -0 and +0 differ in their sign bit only, and are the same amount left. */
    const vu64 wrong = (outside >> DIGIT) | (left << 1);
    if (any_set(wrong)) return 0;
    for (int i = 0; i < digits; i++) {
        for (int j = i; j < digits; j++)
            INSTANCE(keep)(w, i, j, pairs[i][j], vectors, tau[i + j]);
        if (SUMS) INSTANCE(keep)(w, MAX_DIGITS, i, sums[i], vectors, sigma[i]);
    }
    return 1;
}

static inline int64_t INSTANCE(magnitude)(const ELEMENT *p, const ELEMENT *q) {
    const double value = TERM_ONE(p, q);
    int64_t bits;
    (void)q;
    memcpy(&bits, &value, sizeof bits);
    return bits & INT64_MAX;
}

/* Returns the bits of the largest magnitude in x[0..n), as a number: infinities and NaNs come out
 * on top. */
static int64_t INSTANCE(largest)(const ELEMENT *x, const ELEMENT *y, size_t n) {
    vi64 most = {0};
    (void)y;
    for (size_t v = n / LANES(double); v > 0; v--, x += LANES(double)) {
        const vi64 bits = (vi64)INSTANCE(term)(x, x) & INT64_MAX, more = bits > most;
        most = (bits & more) | (most & ~more);
    }
    int64_t top = 0;
    for (size_t j = 0; j < LANES(double); j++)
        if (most[j] > top) top = most[j];
    for (size_t i = 0; i < n % LANES(double); i++)
        if (INSTANCE(magnitude)(x + i, x + i) > top) top = INSTANCE(magnitude)(x + i, x + i);
    return top;
}

/* Returns the sum [i][j] of the window, over all lanes and chunks. */
static __int128 INSTANCE(total)(const struct WINDOW *w, int i, int j) {
    if (w->chunks[i][j] == 0) return 0;
    uint64_t low = 0, high = 0; /* below 2^32 a chunk and lane, at most 2^22 chunks, 2^3 lanes */
    for (size_t k = 0; k < LANES(uint64_t); k++) {
        low += w->low[i][j][k];
        high += w->high[i][j][k];
    }
    const unsigned __int128 surplus = (unsigned __int128)w->chunks[i][j] * LANES(double) << 63;
    return (__int128)(low + ((unsigned __int128)high << 32) - surplus);
}

/* Adds total[k] * 2^(unit - k DIGIT) to s for k < count: as one integer where they fit one, so that the sum of a
 * short array is rounded without a superaccumulator. |total[k]| < 2^83: see close(). */
static void INSTANCE(hand_over)(const __int128 *total, int count, int unit, struct exact_sum *s) {
    const __int128 small = (__int128)1 << 98; /* so that small * 2^DIGIT + 2^83 < 2^125 */
    __int128 sum = total[0];
    for (int k = 1; k < count; k++) {
        if (sum >= small || sum <= -small) {
            exact_sum_add(s, sum, unit - (k - 1) * DIGIT);
            sum = 0;
        }
        sum = sum * (1 << DIGIT) + total[k];
    }
    exact_sum_add(s, sum, unit - (count - 1) * DIGIT);
}

/* Adds a window's totals to the sums of s and closes it. Bounds: a fold's 2^30 elements make |total| <= 2^(50 + 30)
 * of a pair, at most three pairs have one weight, and each counts twice: less than 2^83. */
static void INSTANCE(close)(struct WINDOW *w, STATE *s) {
    const int unit = w->exponent - DIGIT;
    __int128 total[2 * MAX_DIGITS - 1] = {0};
    for (int i = 0; i < MAX_DIGITS; i++)
        for (int j = i; j < MAX_DIGITS; j++)
            total[i + j] += INSTANCE(total)(w, i, j) * (i == j ? 1 : 2);
    INSTANCE(hand_over)(total, 2 * MAX_DIGITS - 1, 2 * unit, SQUARES_OF(s));
#if SUMS
    for (int k = 0; k < MAX_DIGITS; k++)
        total[k] = INSTANCE(total)(w, MAX_DIGITS, k);
    INSTANCE(hand_over)(total, MAX_DIGITS, unit, SUM_OF(s));
#endif
    w->open = 0;
}

/* Chooses a window as extract.h does. */
static int INSTANCE(choose)(struct WINDOW *w, int64_t most, int room) {
    int exponent = (int)(most >> 52) - 1023 + 2;
    if (exponent > MOST_E) return 0;
    exponent = exponent + room < MOST_E ? exponent + room : MOST_E;
    w->exponent = exponent < LEAST_E ? LEAST_E : exponent;
    memset(w->chunks, 0, sizeof w->chunks);
    memset(w->low, 0, sizeof w->low);
    memset(w->high, 0, sizeof w->high);
    w->open = 1;
    return 1;
}
