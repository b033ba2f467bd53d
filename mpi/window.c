/* window.c - see window.h. */
#include "window.h"

#include <string.h>

/* The words of states (docs/states.md): n; then of each sum of floats four counts and its digits of 32 bits. */
enum {
    HEAD = 4,
    SUM = 68,      /* digits of a sum, of which the 35th begins at 2^0 */
    PRODUCTS = 136 /* of a sum of squares or products: the 69th */
};
enum { ONE_SUM = 1 + HEAD + SUM, ONE_OF_PRODUCTS = 1 + HEAD + PRODUCTS };

/* Some digits of the number whose digits begin at word `low`: more below 2^0 than above, for what a float holds
 * below its leading bit. */
static struct piece digits(int low, int digits, int some) {
    return (struct piece){low + digits / 2 - (some + 2) / 2, some, 1, low, low + digits - 1};
}

struct window window_of(size_t words, int room) {
    const int number = 1 + HEAD; /* where the first one's digits are */
    if (words <= (size_t)room) return (struct window){1, {{0, (int)words, 0, 0, 0}}};
    if (words == ONE_SUM || words == ONE_OF_PRODUCTS) {
        const struct piece some = digits(number, (int)words - number, room - number);
        return (struct window){2, {{0, number, 0, 0, 0}, some}};
    }
    if (words ==
        ONE_SUM + HEAD + PRODUCTS) { /* a third of the digits for the sum, as squares have two */
        const int some = room - number - HEAD;
        return (struct window){4,
                               {{0, number, 0, 0, 0},
                                digits(number, SUM, some / 3),
                                {ONE_SUM, HEAD, 0, 0, 0},
                                digits(ONE_SUM + HEAD, PRODUCTS, some - some / 3)}};
    }
    return (struct window){0, {{0}}};
}

/* Whether all words of [from, end) are `digit`. */
static int all_are(const int64_t *words, int from, int end, int64_t digit) {
    int64_t differ = 0;
    for (int i = from; i < end; i++)
        differ |= words[i] ^ digit;
    return differ == 0;
}

/* The number's highest digit is 0 or, of a negative one, -1 (a window is of numbers below 2^32 times it). */
static int pack_number(const struct piece *p, int64_t *packed, const int64_t *words) {
    const int end = p->from + p->count;
    memcpy(packed, words + p->from, (size_t)p->count * sizeof *packed);
    if (!all_are(words, p->low, p->from, 0)) return 1;
    if (words[p->high] == 0) return !all_are(words, end, p->high, 0);
    packed[p->count - 1] -= INT64_C(1) << 32;
    return words[p->high] != -1 || !all_are(words, end, p->high, 0xffffffff);
}

int window_pack(const struct window *w, int64_t *packed, const int64_t *words) {
    int is_wide = 0;
    for (const struct piece *p = w->piece; p < w->piece + w->pieces; p++) {
        if (p->is_number)
            is_wide |= pack_number(p, packed, words);
        else
            memcpy(packed, words + p->from, (size_t)p->count * sizeof *packed);
        packed += p->count;
    }
    return is_wide;
}

void window_unpack(const struct window *w, int64_t *words, size_t count, const int64_t *packed) {
    memset(words, 0, count * sizeof *words);
    for (const struct piece *p = w->piece; p < w->piece + w->pieces; p++) {
        memcpy(words + p->from, packed, (size_t)p->count * sizeof *words);
        packed += p->count;
    }
}
