/*
 * levels.h - exact sums of wild floats: of every eight numbers, five by extraction, as in extract.h, in doubles and
 * with as many levels as all exponents of a float take, and three by words (exponents.h).
 *
 * A template with the parameters of extract.h, of which REAL is float. It takes the place of bins.h where a vector
 * has eight doubles. Levels keep a core's vector units busy, and words its integer units: side by side they
 * take little more time than the levels alone.
 *
 * Level k is a running sum a in every lane, at first sigma = 1.5 * 2^E with E = TOP - k DROP. Taking x, a becomes
 * t = a + x rounded; q = t - a is what it took, and r = x - q, what is left, goes to the next level. As long as a and
 * t lie in [2^E, 2^(E+1)) both are multiples of u = 2^(E-52), both subtractions are exact, and |r| <= u / 2. What
 * a has gained is read off its bits, as an integer in units of u.
 *
 * Bounds. |x| < 2^128, and |r| <= 2^(TOP - 53 - k DROP) after level k. A lane takes at most LEVEL_LOAD = 2^4
 * numbers, which together are at most 2^(E-2) at every level, so a stays within 2^(E-1) of sigma. The last level's unit
 * is 2^(TOP - 5 DROP - 52) = 2^-153; every float is a multiple of 2^-149: there nothing is left.
 * What is not finite makes the first level infinite or NaN.
 */
#ifndef LEVELS_ALL
#define LEVELS_ALL 6
#define TOP        134
#define DROP       47
#define LEVEL_LOAD 16             /* the most numbers that a lane takes before it is read off */
#define AT_ONCE    LEVELS_AT_ONCE /* vectors of doubles */
#define LEVELLED   (AT_ONCE * LANES(double)) /* numbers of a turn that go to levels, */
#define WORDED     LEVELS_WORDED             /* and numbers behind them that go to words */
#define TURN       (LEVELLED + WORDED)
#define TURNS      LEVELS_TURNS
#define BLOCK      (TURNS * TURN)
#define BLOCKS_MAX ((size_t)512)
_Static_assert(128 + 4 <= TOP - 1 && TOP - 53 + 4 <= TOP - DROP - 1, "a level stays near sigma");
_Static_assert(TOP - (LEVELS_ALL - 1) * DROP - 52 <= -149, "nothing is left");
_Static_assert(TURNS *AT_ONCE / 2 <= LEVEL_LOAD, "two lanes take a block's vectors in turn");
_Static_assert(BLOCKS_MAX *TURNS *WORDED <= 65535, "words take what blocks bring");
/* A lane gains less than 2^51 units, and two of them BLOCKS_MAX times: less than 2^61. */

/* Returns sigma of level k, in all lanes. */
ALWAYS_INLINE vf64 level_start(int k) {
    const int64_t bits = (int64_t)(TOP - k * DROP + 1023) << 52 | INT64_C(1) << 51;
    return (vf64)((vi64){0} + bits);
}

/* Returns a - b, as a fused multiply-add. The multipliers have nothing else to do here, so some of the subtractions
 * go this way. */
ALWAYS_INLINE vf64 level_minus(vf64 a, vf64 b) {
    return (vf64)_mm512_fnmadd_pd((__m512d)b, _mm512_set1_pd(1), (__m512d)a);
}
#endif

#include "cpu/exponents.h"

struct BINS {
    int used;
    size_t blocks; /* since the sums were emptied */
    vi64 sum[LEVELS_ALL];
    struct INSTANCE(exponents) words;
};

static void INSTANCE(empty)(struct BINS *b, struct exact_sum *s) {
    if (!b->used) return;
    struct superacc *limbs = exact_sum_limbs(s);
    for (int k = 0; k < LEVELS_ALL; k++) {
        __int128 total = 0;
        for (size_t j = 0; j < LANES(int64_t); j++)
            total += b->sum[k][j];
        if (total != 0) superacc_add(limbs, total, TOP - k * DROP - 52);
    }
    INSTANCE(hand_words_over)(&b->words, 0, s);
    b->used = 0;
}

/* Makes room for one more block: empties the bins into s if they are full, and clears them if they are empty. */
ALWAYS_INLINE void INSTANCE(open)(struct BINS *b, struct exact_sum *s) {
    if (b->used && b->blocks == BLOCKS_MAX) {
        KERNEL_PATH("full words");
        INSTANCE(empty)(b, s);
    }
    if (!b->used) {
        memset(b->sum, 0, sizeof b->sum);
        memset(&b->words, 0, sizeof b->words);
        b->blocks = 0;
        b->used = 1;
    }
    b->blocks++;
}

/* The findings about a block. */
enum INSTANCE(found) {
    INSTANCE(finite) = 0,
    /* Some numbers that went to words are not finite. They are yet to be counted. */
    INSTANCE(special) = 1,
    /* Some numbers that went to levels are not finite. None of the numbers that went there has been added. */
    INSTANCE(unlevelled) = 2
};

/* Adds a block of terms, or of the floats in `ready` if that is not NULL, a constant at each call.
 * Returns the findings, or'ed. */
ALWAYS_INLINE unsigned INSTANCE(add_block)(struct BINS *b, const ELEMENT *x, const ELEMENT *y,
                                           const float *ready) {
    vf64 level[LEVELS_ALL][2];
    VWORD special = {0};
#ifdef PLAIN /* the bits of elements that go to words are read from memory */
    const ELEMENT *const waiting = ready ? (const ELEMENT *)ready : x;
#else
    float waiting[BLOCK];
#endif
    for (size_t turn = 0; turn < TURNS; turn++)
        for (size_t i = 0; i < WORDED; i += LANES(float)) {
            const size_t at = turn * TURN + LEVELLED + i;
            const VWORD bits =
                (VWORD)(ready ? VECTOR_LOAD(vf32, ready + at) : INSTANCE(term)(x + at, y + at));
#ifndef PLAIN
            memcpy(waiting + at, &bits, sizeof bits);
#endif
            special |= (bits & (WORD)~HALF_RANGE) + IMPLICIT; /* negative where it is not finite */
        }
    for (int k = 0; k < LEVELS_ALL; k++)
        level[k][0] = level[k][1] = level_start(k);
    for (size_t turn = 0; turn < TURNS; turn++) {
        const size_t i = turn * TURN;
        size_t worded = 0;
        vf64 rest[AT_ONCE];
        if (!ready) {
            PREFETCH(x + i, TURN * sizeof(ELEMENT), 8192, 2);
            PREFETCH(x + i, TURN * sizeof(ELEMENT), 1024, 1);
            if (PAIRED) PREFETCH(y + i, TURN * sizeof(ELEMENT), 8192, 2);
        }
        for (size_t j = 0; j < AT_ONCE; j += 2) {
            const size_t at = i + j * LANES(double);
            const __m512 v =
                (__m512)(ready ? VECTOR_LOAD(vf32, ready + at) : INSTANCE(term)(x + at, y + at));
            rest[j] = (vf64)_mm512_cvtps_pd(_mm512_castps512_ps256(v));
            rest[j + 1] = (vf64)_mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
        }
        UNROLL(8)
        for (int k = 0; k < LEVELS_ALL; k++) {
            UNROLL(16)
            for (size_t j = 0; j < AT_ONCE; j++) {
                vf64 *const a = &level[k][j % 2];
                const vf64 t = *a + rest[j];
                vf64 taken = t;
                if (j % 2)
                    taken = level_minus(t, *a);
                else
                    taken -= *a;
                if (k < LEVELS_ALL - 1) rest[j] = level_minus(rest[j], taken);
                *a = t;
            }
            UNROLL(16) /* between two levels, an equal part of the words */
            for (; worded < WORDED / LEVELS_ALL * ((size_t)k + 1); worded++)
                INSTANCE(add_word)(&b->words, INSTANCE(bits_of)(waiting + i + LEVELLED + worded));
        }
    }
    const vi64 start = (vi64)level_start(0);
    const vi64 other = ((vi64)level[0][0] ^ start) | ((vi64)level[0][1] ^ start);
    const unsigned found =
        any_set((vu64)(special & HALF_RANGE)) ? INSTANCE(special) : INSTANCE(finite);
    if (any_set((vu64)other >> 52)) return found | INSTANCE(unlevelled);
    for (int k = 0; k < LEVELS_ALL; k++)
        b->sum[k] +=
            ((vi64)level[k][0] - (vi64)level_start(k)) + ((vi64)level[k][1] - (vi64)level_start(k));
    return found;
}
_Static_assert(WORDED % LEVELS_ALL == 0, "equal parts");

/* Adds the finite ones among n <= BLOCK terms that go to levels; if `all`, also those that go to words. */
static __attribute__((noinline)) void INSTANCE(add_mixed)(struct BINS *b, const ELEMENT *x,
                                                          const ELEMENT *y, size_t n, int all,
                                                          struct exact_sum *s) {
    float ready[BLOCK] = {0};
    for (size_t i = 0; i < n; i++) {
        const float v = TERM_ONE(x + i, y + i);
        if (v - v == 0 && (all || i % TURN < LEVELLED)) ready[i] = v;
    }
    INSTANCE(open)(b, s);
    (void)INSTANCE(add_block)(b, x, y, ready);
}

static __attribute__((noinline)) void
INSTANCE(bin)(struct BINS *b, const ELEMENT *x, const ELEMENT *y, size_t n, struct exact_sum *s) {
    unsigned found = 0;
    size_t m = 0;
    for (; n - m >= BLOCK; m += BLOCK) {
        INSTANCE(open)(b, s);
        const unsigned here = INSTANCE(add_block)(b, x + m, y + m, NULL);
        if (here & INSTANCE(unlevelled)) {
            KERNEL_PATH("NaNs and infinities among levels");
            INSTANCE(add_mixed)(b, x + m, y + m, BLOCK, 0, s);
        }
        if (here & INSTANCE(special)) KERNEL_PATH("NaNs and infinities among words");
        found |= here;
    }
    if (n > m) {
        KERNEL_PATH("a block that is not whole");
        INSTANCE(add_mixed)(b, x + m, y + m, n - m, 1, s);
    }
    if (found) INSTANCE(count_specials)(x, y, m, s);
    INSTANCE(count_specials)(x + m, y + m, n - m, s);
}
