/*
 * bins.h - exact sums of wild data: a bin for every sign and exponent.
 *
 * A template with the parameters of extract.h. Numbers of one exponent are integers on one scale, so
 * each is added to its exponent's word (exponents.h); the words are emptied into the superaccumulator when they are
 * full and at the end (after the "large superaccumulator" of Neal 2015). That takes about the same few steps a
 * number whatever the exponents are: slower than extraction where that works, but as fast for all data.
 *
 * Where a term is the element itself (PLAIN), its bits are read where they lie; else terms are made some hundred at a
 * time, by vectors.
 */

#include "cpu/exponents.h"

struct BINS {
    int used;
    size_t numbers; /* that have been added since the bins were last emptied */
    __int128 least; /* doubles only: the sum of those of exponent field 0, in units of 2^LOWEST */
    struct INSTANCE(exponents) words;
};

#if MANTISSA > 32
_Static_assert(CHUNK <= 2048, "in a chunk, 64 bits hold a sum of mantissas below 2^53");
#else
_Static_assert(CHUNK <= EXPONENTS_MOST, "a chunk can be added to words that are empty");
#endif

static void INSTANCE(empty)(struct BINS *b, struct exact_sum *s) {
    if (b->used) INSTANCE(hand_words_over)(&b->words, b->least, s);
    b->used = 0;
}

/* Moves the sum of the numbers of exponent field 0 from their two words to b->least, and takes off the implicit bit
 * that add_word() has added for each: such numbers have none. It is called for each chunk of n terms, so all of them
 * are among these terms. */
static __attribute__((noinline)) void INSTANCE(take_least)(struct BINS *b, const ELEMENT *x,
                                                           const ELEMENT *y, size_t n) {
    uint64_t *const word = b->words.word;
    const VWORD field = (VWORD){0} + ((FIELDS - 1) << MANTISSA);
    VINT lanes = {0};
    size_t i = 0;
    for (; i + LANES(REAL) <= n; i += LANES(REAL)) {
        const VWORD bits = (VWORD)INSTANCE(term)(x + i, y + i);
        lanes += (VINT)((bits & field) == 0) & (((VINT)bits >> (8 * sizeof(WORD) - 1)) | 1);
    }
    int64_t count = 0; /* positive ones minus negative ones */
    KERNEL_PATH("");
    for (size_t k = 0; k < LANES(REAL); k++)
        count += lanes[k];
    for (; i < n; i++) {
        const WORD bits = INSTANCE(word)(x + i, y + i);
        if (((bits >> MANTISSA) & (FIELDS - 1)) == 0)
            count += bits >> (8 * sizeof(WORD) - 1) ? -1 : 1;
    }
    b->least += (__int128)word[0] - (__int128)word[FIELDS] - (__int128)count * (__int128)IMPLICIT;
    word[0] = word[FIELDS] = 0;
}

/* Adds n <= CHUNK terms to the bins; empties them into s first where they are full, and counts specials in s. */
static __attribute__((noinline)) void
INSTANCE(bin)(struct BINS *b, const ELEMENT *x, const ELEMENT *y, size_t n, struct exact_sum *s) {
#if MANTISSA < 32
    if (b->used && b->numbers + n > EXPONENTS_MOST) {
        KERNEL_PATH("full bins");
        INSTANCE(empty)(b, s);
    }
#endif
    if (!b->used) {
        memset(&b->words, 0, sizeof b->words);
        b->least = 0;
        b->numbers = 0;
        b->used = 1;
    }
    for (size_t m, i = 0; i < n; i += m) {
        m = n - i < TERMS_AT_ONCE ? n - i : TERMS_AT_ONCE;
#ifdef PLAIN
        const ELEMENT *const terms = x + i;
#else
        REAL terms[TERMS_AT_ONCE];
        size_t made = 0;
        for (; made + LANES(REAL) <= m; made += LANES(REAL)) {
            PREFETCH(x + i + made, LANES(REAL) * sizeof(ELEMENT), 8192, 2);
            if (PAIRED) PREFETCH(y + i + made, LANES(REAL) * sizeof(ELEMENT), 8192, 2);
            const VREAL v = INSTANCE(term)(x + i + made, y + i + made);
            memcpy(terms + made, &v, sizeof v);
        }
        for (; made < m; made++)
            terms[made] = TERM_ONE(x + i + made, y + i + made);
#endif
        size_t k = 0;
        for (; k + 8 <= m; k += 8) {
#ifdef PLAIN
            PREFETCH(terms + k, 8 * sizeof(ELEMENT), 8192, 2);
            PREFETCH(terms + k, 8 * sizeof(ELEMENT), 512, 1);
#endif
            for (size_t j = 0; j < 8; j++)
                INSTANCE(add_word)(&b->words, INSTANCE(bits_of)(terms + k + j));
        }
        for (; k < m; k++)
            INSTANCE(add_word)(&b->words, INSTANCE(bits_of)(terms + k));
    }
    b->numbers += n;
    uint64_t *const word = b->words.word, *const special = word + FIELDS - 1;
    if (MANTISSA > 32 && (word[0] | word[FIELDS]) != 0) INSTANCE(take_least)(b, x, y, n);
    if ((special[0] | special[FIELDS]) != 0) {
        KERNEL_PATH("NaNs and infinities");
        INSTANCE(count_specials)(x, y, n, s);
        special[0] = special[FIELDS] = 0;
    }
}
