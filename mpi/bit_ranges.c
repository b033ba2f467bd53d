/* bit_ranges.c - see bit_ranges.h. */
#include "bit_ranges.h"

#include "frame.h"

#include <string.h>

/* The words of states (docs/states.md): n; then of each sum of floats four counts and its digits of 32 bits. */
enum {
    HEAD = 4,
    SUM = 68,      /* digits of a sum, of which the 35th begins at 2^0 */
    PRODUCTS = 136 /* of a sum of squares or products: the 69th */
};
enum { ONE_SUM = 1 + HEAD + SUM, ONE_OF_PRODUCTS = 1 + HEAD + PRODUCTS };
_Static_assert((FRAME_WORDS - 1 - HEAD) * 62 / 32 + 8 <= SUM, "a range ends within the number");

/* Returns the range of `digits` digits of a number, whose own digits are the `own` words from `low` on.
 * It has at least as many bits below 2^0 as above, and 64 more: a float's bits lie below its leading
 * one. */
static struct bit_range digits_of(const struct bit_ranges *w, int low, int own, int digits) {
    const int words = digits * w->bits / 32;
    return (struct bit_range){low + own / 2 - (words + 2) / 2, 0, digits, low, low + own - 1};
}

void bit_ranges_of(size_t words, int is_one_state, int room, int ranks, struct bit_ranges *w) {
    const int number = 1 + HEAD; /* where the first number's digits begin */
    w->bits = 63 - (32 - __builtin_clz((unsigned)ranks));
    w->count = 0;
    if (words <= (size_t)room) {
        w->count = 1;
        w->range[0] = (struct bit_range){.words = (int)words};
    } else if (!is_one_state) {
        return;
    } else if (words == ONE_SUM || words == ONE_OF_PRODUCTS) {
        w->count = 2;
        w->range[0] = (struct bit_range){.words = number};
        w->range[1] = digits_of(w, number, (int)words - number, room - number);
    } else if (words == ONE_SUM + HEAD + PRODUCTS) {
        const int digits = room - number - HEAD;
        w->count = 4;
        w->range[0] = (struct bit_range){.words = number};
        w->range[1] = digits_of(w, number, SUM, digits / 3); /* as squares have twice the bits */
        w->range[2] = (struct bit_range){.from = ONE_SUM, .words = HEAD};
        w->range[3] = digits_of(w, ONE_SUM + HEAD, PRODUCTS, digits - digits / 3);
    }
}

/* ---- Packed ---------------------------------------------------------------------------------- */

/* The first word of [from, end) that is not `digit`; `end` where there is none. */
static int first_unlike(const int64_t *words, int from, int end, int64_t digit) {
    for (; from + 8 <= end; from += 8) {
        int64_t differ = 0;
        for (int k = 0; k < 8; k++)
            differ |= words[from + k] ^ digit;
        if (differ) break;
    }
    while (from < end && words[from] == digit)
        from++;
    return from;
}

/* The word behind the last one of [from, end) that is not `digit`; `from` where there is none. */
static int past_unlike(const int64_t *words, int from, int end, int64_t digit) {
    for (; end - 8 >= from; end -= 8) {
        int64_t differ = 0;
        for (int k = 1; k <= 8; k++)
            differ |= words[end - k] ^ digit;
        if (differ) break;
    }
    while (end > from && words[end - 1] == digit)
        end--;
    return end;
}

/* Packs a number. Returns not 0 if it has bits outside its range: bits below it, or bits other than
 * the sign above it. Words are digits of 32 bits, the highest one signed. */
static int pack_number(const struct bit_range *p, int bits, int64_t *packed, const int64_t *words) {
    const uint64_t mask = UINT64_MAX >> (64 - bits);
    const int64_t top = words[p->high], sign = top < 0 ? -1 : 0;
    const int past_range = p->digits * bits, edge = p->from + past_range / 32;
    /* Words below `first` are 0, and words from `past` on are all sign bits. */
    const int first = first_unlike(words, p->low, p->high, 0);
    const int past = past_unlike(words, first, p->high, sign & UINT32_MAX);
    const uint32_t fill = (uint32_t)sign >> past_range % 32;
    memset(packed, 0, (size_t)p->digits * sizeof *packed);
    if (top != sign || first < p->from || past > edge + 1 ||
        (uint32_t)words[edge] >> past_range % 32 != fill)
        return first < p->high || top != 0;
    const int end = sign ? edge + 1 : past;
    int at = 32 * (first - p->from), i = at / bits;
    at -= i * bits; /* the word's lowest bit is bit `at` of digit i */
    for (int k = first; k < end && i < p->digits; k++) {
        const uint64_t w = (uint32_t)words[k];
        packed[i] |= (int64_t)(w << at & mask);
        if (at + 32 > bits && i + 1 < p->digits) packed[i + 1] |= (int64_t)(w >> (bits - at));
        at += 32;
        if (at >= bits) {
            at -= bits;
            i++;
        }
    }
    if (sign) packed[p->digits - 1] -= (int64_t)mask + 1;
    return 0;
}

int bit_ranges_pack(const struct bit_ranges *w, int64_t *packed, const int64_t *words) {
    int is_wide = 0;
    for (const struct bit_range *p = w->range; p < w->range + w->count; p++) {
        if (p->digits) {
            is_wide |= pack_number(p, w->bits, packed, words);
        } else {
            memcpy(packed, words + p->from, (size_t)p->words * sizeof *packed);
        }
        packed += p->digits + p->words;
    }
    return is_wide;
}

/* ---- Unpacked -------------------------------------------------------------------------------- */

/* Adds each digit to three words. A range ends at least two words below the number's end. */
static void unpack_number(const struct bit_range *p, int bits, int64_t *words,
                          const int64_t *packed) {
    for (int i = 0; i < p->digits; i++) {
        if (packed[i] == 0) continue; /* as most are */
        int64_t *word = words + p->from + i * bits / 32;
        const __int128 share = (__int128)packed[i] * (INT64_C(1) << (i * bits % 32));
        word[0] += (int64_t)(share & UINT32_MAX);
        word[1] += (int64_t)(share >> 32 & UINT32_MAX);
        word[2] += (int64_t)(share >> 64);
    }
}

void bit_ranges_unpack(const struct bit_ranges *w, int64_t *words, size_t count,
                       const int64_t *packed) {
    memset(words, 0, count * sizeof *words);
    for (const struct bit_range *p = w->range; p < w->range + w->count; p++) {
        if (p->digits)
            unpack_number(p, w->bits, words, packed);
        else
            memcpy(words + p->from, packed, (size_t)p->words * sizeof *words);
        packed += p->digits + p->words;
    }
}
