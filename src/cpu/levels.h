/*
 * levels.h - exact sums of wild floats: extraction, as in extract.h, in doubles and with as many levels as all
 * exponents of a float take.
 *
 * A template with the parameters of extract.h, of which REAL is float. It takes the place of bins.h where a vector
 * has eight doubles: then some 40 vector operations for sixteen numbers are less than sixteen additions to bins.
 *
 * Level k is a running sum a in every lane, at first sigma = 1.5 * 2^E with E = TOP - k DROP. Taking x, it becomes
 * t = a + x rounded; q = t - a is what it took, and r = x - q, what is left, goes to the next level. As long as a and
 * t lie in [2^E, 2^(E+1)) both are multiples of u = 2^(E-52), both subtractions are exact, and |r| <= u / 2. What
 * a has gained is read off its bits, as an integer in units of u.
 *
 * Bounds. |x| < 2^128, and |r| <= 2^(TOP - 53 - k DROP) after level k. A lane takes LEVEL_LOAD = 2^4 numbers, which
 * together are at most 2^(E-2) at level 0 and 2^(E-2) further down, so a stays within 2^(E-1) of sigma. The last
 * level's unit is 2^(TOP - 5 DROP - 52) = 2^-153; every float is a multiple of 2^-149: there nothing is left.
 * What is not finite makes the first level infinite or NaN.
 */
#ifndef LEVELS_ALL
#define LEVELS_ALL 6
#define TOP        134
#define DROP       47
#define LEVEL_LOAD 16 /* numbers that a lane takes before it is read off */
#define AT_ONCE    8  /* vectors of doubles */
#define BLOCK      (4 * AT_ONCE * LANES(double)) /* two lanes' loads of AT_ONCE / 2 vectors each */
#define BLOCKS_MAX 1024
_Static_assert(128 + 4 <= TOP - 1 && TOP - 53 + 4 <= TOP - DROP - 1, "a level stays near sigma");
_Static_assert(TOP - (LEVELS_ALL - 1) * DROP - 52 <= -149, "nothing is left");
_Static_assert(4 * AT_ONCE / 2 == LEVEL_LOAD, "a block is what lanes take");
/* A lane gains less than 2^51 units, and two of them BLOCKS_MAX times: less than 2^62. */

/* sigma of level k, in all lanes. */
ALWAYS_INLINE vf64 level_start(int k) {
    const int64_t bits = (int64_t)(TOP - k * DROP + 1023) << 52 | INT64_C(1) << 51;
    return (vf64)((vi64){0} + bits);
}

/* a - b by the multipliers, which have nothing else to do here: some of the subtractions. */
ALWAYS_INLINE vf64 level_minus(vf64 a, vf64 b) {
    return (vf64)_mm512_fnmadd_pd((__m512d)b, _mm512_set1_pd(1), (__m512d)a);
}
#endif

struct BINS {
    int used;
    unsigned blocks; /* since the sums were emptied */
    vi64 sum[LEVELS_ALL];
};

static void PART(empty)(struct BINS *b, struct exact_sum *s) {
    if (!b->used) return;
    struct superacc *limbs = exact_sum_limbs(s);
    for (int k = 0; k < LEVELS_ALL; k++) {
        __int128 total = 0;
        for (size_t j = 0; j < LANES(int64_t); j++)
            total += b->sum[k][j];
        if (total != 0) superacc_add(limbs, total, TOP - k * DROP - 52);
    }
    b->used = 0;
}

/* Adds a block of terms, or of the floats in `ready` if that is not NULL, a constant at each call; or does nothing and
 * returns 0, as not all are finite. */
ALWAYS_INLINE int PART(add_block)(struct BINS *b, const ELEMENT *x, const ELEMENT *y,
                                  const float *ready) {
    vf64 level[LEVELS_ALL][2];
    for (int k = 0; k < LEVELS_ALL; k++)
        level[k][0] = level[k][1] = level_start(k);
    for (size_t i = 0; i < BLOCK; i += AT_ONCE * LANES(double)) {
        vf64 rest[AT_ONCE];
        if (!ready) PREFETCH(x + i, AT_ONCE * LANES(double) * sizeof(ELEMENT), 8192, 2);
        if (!ready && PAIRED) PREFETCH(y + i, AT_ONCE * LANES(double) * sizeof(ELEMENT), 8192, 2);
        for (size_t j = 0; j < AT_ONCE; j += 2) {
            const size_t at = i + j * LANES(double);
            const __m512 v =
                (__m512)(ready ? VECTOR_LOAD(vf32, ready + at) : PART(term)(x + at, y + at));
            rest[j] = (vf64)_mm512_cvtps_pd(_mm512_castps512_ps256(v));
            rest[j + 1] = (vf64)_mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
        }
        for (int k = 0; k < LEVELS_ALL - 1; k++)
            for (size_t j = 0; j < AT_ONCE; j++) {
                const vf64 t = level[k][j % 2] + rest[j];
                vf64 taken = t;
                if (j % 2)
                    taken = level_minus(t, level[k][j % 2]);
                else
                    taken -= level[k][j % 2];
                level[k][j % 2] = t;
                rest[j] = level_minus(rest[j], taken);
            }
        for (size_t j = 0; j < AT_ONCE; j++)
            level[LEVELS_ALL - 1][j % 2] += rest[j];
    }
    const vi64 start = (vi64)level_start(0);
    const vi64 other = ((vi64)level[0][0] ^ start) | ((vi64)level[0][1] ^ start);
    if (any_set((vu64)other >> 52)) return 0;
    for (int k = 0; k < LEVELS_ALL; k++)
        b->sum[k] +=
            ((vi64)level[k][0] - (vi64)level_start(k)) + ((vi64)level[k][1] - (vi64)level_start(k));
    b->blocks++;
    return 1;
}

/* Adds n <= BLOCK terms, of which some need not be finite: those are counted. */
static __attribute__((noinline)) void
PART(add_mixed)(struct BINS *b, const ELEMENT *x, const ELEMENT *y, size_t n, struct exact_sum *s) {
    float ready[BLOCK] = {0};
    for (size_t i = 0; i < n; i++) {
        const float v = TERM_ONE(x + i, y + i);
        if (v - v == 0)
            ready[i] = v;
        else if (v != v)
            s->nans++;
        else if (v > 0)
            s->plus++;
        else
            s->minus++;
    }
    (void)PART(add_block)(b, x, y, ready);
}

static __attribute__((noinline)) void PART(bin)(struct BINS *b, const ELEMENT *x, const ELEMENT *y,
                                                size_t n, struct exact_sum *s) {
    for (size_t m; n > 0; n -= m, x += m, y += m) {
        if (b->used && b->blocks == BLOCKS_MAX) PART(empty)(b, s);
        if (!b->used) {
            memset(b->sum, 0, sizeof b->sum);
            b->blocks = 0;
            b->used = 1;
        }
        m = n < BLOCK ? n : BLOCK;
        if (m < BLOCK || !PART(add_block)(b, x, y, NULL)) PART(add_mixed)(b, x, y, m, s);
    }
}
