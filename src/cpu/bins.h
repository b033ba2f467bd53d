/*
 * bins.h - exact sums of wild data: one bin for every exponent.
 *
 * A template with the parameters of extract.h. Numbers of one exponent are integers on one scale, so
 * each is added to its exponent's bin, a signed 64-bit integer; the bins are emptied into the
 * superaccumulator at the end (after the "large superaccumulator" of Neal 2015). That takes about the
 * same few steps a number whatever the exponents are: slower than extraction where that works, never
 * slower than this.
 *
 * A vector of numbers is split into bins and signed mantissas while the one before it is added, number by number:
 * one load, add and store. A bin of doubles that leaves 64 bits says so by the overflow flag, and the 2^64 it
 * is then short of (or over) goes to the superaccumulator at once. What is no finite number goes to a last bin
 * that nobody reads, and is counted.
 */

#ifndef BINS_WAITING
#define BINS_WAITING 8

/* Adds v to *sum and says whether that left 64 bits. */
ALWAYS_INLINE int adds_over(int64_t *sum, int64_t v) {
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
    /* One instruction where compilers load, add and store. */
    __asm__ goto("addq %1, %0\n\tjo %l2" : : "m"(*sum), "r"(v) : "cc", "memory" : over);
    return 0;
over:
    return 1;
#else
    return __builtin_expect(__builtin_add_overflow(*sum, v, sum), 0);
#endif
}
#endif

#define EXPONENTS ((WORD)2 * HIGHEST + 2) /* values of the exponent field */

/* A vector of terms, split: into bins and signed mantissas. */
struct PART(split) {
    WORD bin[LANES(REAL)];
    INT part[LANES(REAL)];
};

struct BINS {
    int used;
    unsigned next;                /* the place in `waiting` that is written next */
    int64_t sum[2 * HIGHEST + 2]; /* by exponent field */
    /* Vectors that have been split and are yet to be added: far enough back for what has been stored lane by
     * lane to be read so. */
    struct PART(split) waiting[BINS_WAITING];
};

/* The exponent of the unit of the numbers whose exponent field is `field`. */
static int PART(unit)(int field) {
    return LOWEST + (field > 0 ? field - 1 : 0);
}

/* Counts the infinities and NaNs among n terms. */
static void PART(count_specials)(const ELEMENT *x, const ELEMENT *y, size_t n,
                                 struct exact_sum *s) {
    const WORD infinity = (EXPONENTS - 1) << MANTISSA;
    for (size_t i = 0; i < n; i++) {
        const WORD bits = PART(word)(x + i, y + i);
        if ((bits & infinity) != infinity) continue;
        if ((bits & (((WORD)1 << MANTISSA) - 1)) != 0)
            s->nans++;
        else if (bits == infinity)
            s->plus++;
        else
            s->minus++;
    }
}

/* Splits a vector of terms; the sign bits of the result say in which lanes is no finite number. */
ALWAYS_INLINE VWORD PART(split)(const ELEMENT *p, const ELEMENT *q, struct PART(split) * to) {
    VWORD bits = (VWORD)PART(term)(p, q);
    VWORD field = (bits >> MANTISSA) & (EXPONENTS - 1);
    VWORD implicit = (VWORD)(field != 0) & ((WORD)1 << MANTISSA);
    VWORD mantissa = (bits & (((WORD)1 << MANTISSA) - 1)) | implicit;
    VWORD minus = 0 - (bits >> (8 * sizeof(WORD) - 1)); /* all ones where negative */
    mantissa = (mantissa ^ minus) - minus;
    memcpy(to->bin, &field, sizeof field);
    memcpy(to->part, &mantissa, sizeof mantissa);
    return (bits & (WORD)~HALF_RANGE) + ((WORD)1 << MANTISSA);
}

/* Mends a bin that has left 64 bits when v was added. */
static __attribute__((noinline, cold)) void PART(carry)(WORD bin, INT v, struct exact_sum *s) {
    if (bin == EXPONENTS - 1) return;
    superacc_add(exact_sum_limbs(s), v < 0 ? -((__int128)1 << 64) : (__int128)1 << 64,
                 PART(unit)((int)bin));
}

ALWAYS_INLINE void PART(add_split)(struct BINS *b, const struct PART(split) * v,
                                   struct exact_sum *s) {
#ifndef __clang__ /* which says that it cannot, at -O1 */
#pragma GCC unroll 16
#endif
    for (size_t i = 0; i < LANES(REAL); i++) {
        int64_t *sum = &b->sum[v->bin[i]];
        if (MANTISSA < 32) /* 2^39 of them fit, and a fold has FOLD_MAX at most */
            *sum += v->part[i];
        else if (adds_over(sum, (int64_t)v->part[i]))
            PART(carry)(v->bin[i], v->part[i], s);
    }
}

static void PART(empty)(struct BINS *b, struct exact_sum *s) {
    if (!b->used) return;
    for (size_t i = 0; i < BINS_WAITING; i++)
        PART(add_split)(b, &b->waiting[i], s);
    struct superacc *limbs = exact_sum_limbs(s);
    for (int e = 0; e < (int)EXPONENTS - 1; e++)
        if (b->sum[e] != 0) superacc_add(limbs, b->sum[e], PART(unit)(e));
    b->used = 0;
}

static __attribute__((noinline)) void PART(bin)(struct BINS *b, const ELEMENT *x, const ELEMENT *y,
                                                size_t n, struct exact_sum *s) {
    const size_t vectors = n / LANES(REAL), rest = n % LANES(REAL);
    VWORD special = {0};
    if (!b->used) {
        memset(b->sum, 0, sizeof b->sum);
        memset(b->waiting, 0, sizeof b->waiting); /* zeros */
        b->used = 1;
        b->next = 0;
    }
    const ELEMENT *p = x, *q = y;
    for (size_t i = 0; i < vectors; i++, p += LANES(REAL), q += LANES(REAL)) {
        struct PART(split) *v = &b->waiting[b->next++ % BINS_WAITING];
        PREFETCH(p, LANES(REAL) * sizeof(ELEMENT), 8192, 2);
        if (PAIRED) PREFETCH(q, LANES(REAL) * sizeof(ELEMENT), 8192, 2);
        PART(add_split)(b, v, s);
        special |= PART(split)(p, q, v);
    }
    if (rest > 0) {
        struct PART(split) *v = &b->waiting[b->next++ % BINS_WAITING];
        ELEMENT padded[2][LANES(REAL)] = {{0}};
        memcpy(padded[0], p, rest * sizeof *p);
        if (PAIRED) memcpy(padded[1], q, rest * sizeof *q);
        PART(add_split)(b, v, s);
        special |= PART(split)(padded[0], padded[PAIRED], v);
    }
    if (any_set((vu64)(special & HALF_RANGE))) PART(count_specials)(x, y, n, s);
}
