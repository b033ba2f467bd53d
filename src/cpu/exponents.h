/*
 * exponents.h - a word for every sign and exponent: the bins that wild numbers are added to, one by one.
 *
 * A template with the parameters of extract.h, for bins.h and levels.h. A number's upper bits, its sign and exponent
 * field, say which word it goes to; so a step is a load, a shift, one or two operations, and one addition to memory.
 *   doubles   the mantissa is added, always with an implicit bit. A sum that overflows 64 bits sets the carry flag,
 *             and left[] counts these. Numbers of exponent field 0 have no implicit bit: callers take these bits off
 *             again.
 *   floats    the number's 32 bits and COUNT_ONE are added. As all numbers of a word have the same upper bits, their
 *             mantissas are what is left when these are taken off as often as the count says. A word takes at most
 *             EXPONENTS_MOST = 2^16 - 1 numbers: their bits add up to less than 2^48.
 * Words whose exponent field is all ones are those of infinities and NaNs: their sums mean nothing.
 */

#ifndef EXPONENTS_MOST
#define COUNT_ONE      ((uint64_t)1 << 48)
#define EXPONENTS_MOST 65535

/* Adds v to *sum in one instruction, where compilers load, add and store. */
ALWAYS_INLINE void add_to_word(uint64_t *sum, uint64_t v) {
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
    __asm__("addq %1, %0" : "+m"(*sum) : "r"(v) : "cc");
#else
    *sum += v;
#endif
}

/* Adds v to *sum, and returns whether the sum overflowed 64 bits. */
ALWAYS_INLINE int word_leaves(uint64_t *sum, uint64_t v) {
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
    __asm__ goto("addq %1, %0\n\tjc %l2" : : "m"(*sum), "r"(v) : "cc", "memory" : over);
    return 0;
over:
    return 1;
#else
    return __builtin_expect(__builtin_add_overflow(*sum, v, sum), 0);
#endif
}
#endif

#define FIELDS   ((WORD)2 * HIGHEST + 2) /* values of the exponent field */
#define IMPLICIT ((WORD)1 << MANTISSA)

struct INSTANCE(exponents) {
    uint64_t word[2 * (2 * HIGHEST + 2)]; /* by sign and exponent field */
#if MANTISSA > 32
    uint32_t left[2 * (2 * HIGHEST + 2)]; /* how often a word has overflowed 64 bits */
#endif
};

ALWAYS_INLINE WORD INSTANCE(bits_of)(const void *real) {
    WORD bits;
    memcpy(&bits, real, sizeof bits);
    return bits;
}

/* Returns the exponent of the unit of the numbers whose exponent field is `field`. */
static int INSTANCE(unit)(int field) {
    return LOWEST + (field > 0 ? field - 1 : 0);
}

/* Adds the number that has these bits to its word. */
ALWAYS_INLINE void INSTANCE(add_word)(struct INSTANCE(exponents) * t, WORD bits) {
    uint64_t *const word = &t->word[bits >> MANTISSA];
#if MANTISSA > 32
    if (word_leaves(word, (bits & (IMPLICIT - 1)) | IMPLICIT)) t->left[bits >> MANTISSA]++;
#else
    add_to_word(word, bits + COUNT_ONE);
#endif
}

/* Returns the sum of the numbers whose exponent field is `field`, in their unit; if they are
 * doubles, those of field 0 count as if they had implicit bits. */
static __int128 INSTANCE(word_total)(const struct INSTANCE(exponents) * t, int field) {
    const size_t minus = (size_t)field + FIELDS;
#if MANTISSA > 32
    const __int128 left = (int64_t)t->left[field] - (int64_t)t->left[minus];
    return left * ((__int128)1 << 64) + t->word[field] - t->word[minus];
#else
    int64_t total[2];
    for (int i = 0; i < 2; i++) {
        const uint64_t word = t->word[i ? minus : (size_t)field], count = word / COUNT_ONE;
        const uint64_t upper = (uint64_t)(i ? minus : (size_t)field) << MANTISSA;
        total[i] = (int64_t)(word % COUNT_ONE - count * upper + (field > 0 ? count * IMPLICIT : 0));
    }
    return total[0] - total[1];
#endif
}

/* Adds the sums of all words, and `more` units of the least exponent, to s. Bounds: a fold's 2^30 mantissas below 2^53
 * are less than 2^83 together, and |more| is less than 2^84; so what is collected is less than
 * 2^(83 + EXPONENTS_SPAN + 1). */
static void INSTANCE(hand_words_over)(const struct INSTANCE(exponents) * t, __int128 more,
                                      struct exact_sum *s) {
    struct superacc *limbs = exact_sum_limbs(s);
    __int128 sum = 0;
    _Static_assert(83 + EXPONENTS_SPAN + 1 <= 127, "what is collected fits");
    for (int collected = 0, e = (int)FIELDS - 2; e > 0; e--) {
        sum = 2 * sum + INSTANCE(word_total)(t, e);
        if (e == 1) sum += more + INSTANCE(word_total)(t, 0); /* fields 0 and 1 have one unit */
        if (++collected < EXPONENTS_SPAN && e > 1) continue;
        superacc_add(limbs, sum, INSTANCE(unit)(e));
        sum = 0;
        collected = 0;
    }
}

/* Counts the infinities and NaNs among n terms, in s. */
static void INSTANCE(count_specials)(const ELEMENT *x, const ELEMENT *y, size_t n,
                                     struct exact_sum *s) {
    const WORD infinity = (FIELDS - 1) << MANTISSA;
    for (size_t i = 0; i < n; i++) {
        const WORD bits = INSTANCE(word)(x + i, y + i);
        if ((bits & infinity) != infinity) continue;
        if ((bits & (IMPLICIT - 1)) != 0)
            s->nans++;
        else if (bits == infinity)
            s->plus++;
        else
            s->minus++;
    }
}
