/*
 * bins.h - exact sums of wild data: one bin for every exponent.
 *
 * A template with the parameters of extract.h. Numbers of one exponent are integers on one scale, so
 * each is added to its exponent's bin, a signed 64-bit integer; the bins are emptied into the
 * superaccumulator at the end (after the "large superaccumulator" of Neal 2015). That takes about the
 * same few steps a number whatever the exponents are: slower than extraction where that works, never
 * slower than this.
 *
 * A vector loop first splits a block of numbers into bin and signed mantissa; the scalar loop is left
 * with one load, add and store. A bin of doubles that leaves 64 bits says so by the overflow flag, and the 2^64 it
 * is then short of (or over) goes to the superaccumulator at once.
 */

#define EXPONENTS ((WORD)2 * HIGHEST + 2) /* values of the exponent field */
#ifndef BIN_BLOCK
#define BIN_BLOCK 256
#endif

struct BINS {
    int used;
    int64_t sum[2 * HIGHEST + 2]; /* by exponent field */
};

/* The exponent of the unit of the numbers whose exponent field is `field`. */
static int PART(unit)(int field) {
    return LOWEST + (field > 0 ? field - 1 : 0);
}

static void PART(empty)(struct BINS *b, struct exact_sum *s) {
    if (!b->used) return;
    struct superacc *limbs = exact_sum_limbs(s);
    for (int e = 0; e < (int)EXPONENTS - 1; e++)
        if (b->sum[e] != 0) superacc_add(limbs, b->sum[e], PART(unit)(e));
    b->used = 0;
}

/* Counts the infinities and NaNs among n split numbers and makes them add nothing. */
static void PART(take_out_specials)(const WORD *bin, INT *part, size_t n, struct exact_sum *s) {
    const INT infinity = (INT)1 << MANTISSA;
    for (size_t i = 0; i < n; i++) {
        if (bin[i] != EXPONENTS - 1) continue;
        if (part[i] == infinity)
            s->plus++;
        else if (part[i] == -infinity)
            s->minus++;
        else
            s->nans++;
        part[i] = 0;
    }
}

/* Splits a vector of terms into bins and signed mantissas; says in which lanes is no finite number. */
ALWAYS_INLINE VWORD PART(split)(const ELEMENT *p, const ELEMENT *q, WORD *bin, INT *part) {
    VWORD bits = (VWORD)PART(term)(p, q);
    VWORD field = (bits >> MANTISSA) & (EXPONENTS - 1);
    VWORD implicit = (VWORD)(field != 0) & ((WORD)1 << MANTISSA);
    VWORD mantissa = (bits & (((WORD)1 << MANTISSA) - 1)) | implicit;
    VWORD minus = 0 - (bits >> (8 * sizeof(WORD) - 1)); /* all ones where negative */
    mantissa = (mantissa ^ minus) - minus;
    memcpy(bin, &field, sizeof field);
    memcpy(part, &mantissa, sizeof mantissa);
    return (VWORD)(field == EXPONENTS - 1);
}

static __attribute__((noinline)) void PART(bin)(struct BINS *b, const ELEMENT *x, const ELEMENT *y,
                                                size_t n, struct exact_sum *s) {
    if (!b->used) {
        memset(b->sum, 0, sizeof b->sum);
        b->used = 1;
    }
    WORD bin[BIN_BLOCK];
    INT part[BIN_BLOCK];
    for (size_t m; n > 0; x += m, y += m, n -= m) {
        m = n < BIN_BLOCK ? n : BIN_BLOCK;
        PREFETCH_AHEAD(x, m * sizeof *x);
        if (PAIRED) PREFETCH_AHEAD(y, m * sizeof *y);
        VWORD special = {0};
        size_t i = 0;
        for (; i + LANES(REAL) <= m; i += LANES(REAL))
            special |= PART(split)(x + i, y + i, bin + i, part + i);
        if (i < m) {
            ELEMENT padded[2][LANES(REAL)] = {{0}};
            memcpy(padded[0], x + i, (m - i) * sizeof *x);
            if (PAIRED) memcpy(padded[1], y + i, (m - i) * sizeof *y);
            special |= PART(split)(padded[0], padded[PAIRED], bin + i, part + i);
        }
        if (any_set((vu64)special)) PART(take_out_specials)(bin, part, m, s);
#pragma GCC unroll 8
        for (i = 0; i < m; i++) {
            int64_t *sum = &b->sum[bin[i]];
            if (MANTISSA < 32) /* 2^39 of them fit, and a fold has FOLD_MAX at most */
                *sum += part[i];
            else if (__builtin_expect(__builtin_add_overflow(*sum, (int64_t)part[i], sum), 0))
                superacc_add(exact_sum_limbs(s),
                             part[i] < 0 ? -((__int128)1 << 64) : (__int128)1 << 64,
                             PART(unit)((int)bin[i]));
        }
    }
}
