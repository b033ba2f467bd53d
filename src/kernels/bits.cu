/*
 * bits - bitwise and, or, xor of elements.
 *
 * All three combine whole words of 32 bits, whatever the element's size. The elements of a word are combined last.
 * The result of `and` is kept complemented, so that the record of no elements is 0.
 */
#include "tuning.h"

#include "operators.h"

#define WORDS 1
#include "grid.h"

#include "result.h"

#define PAD (element) neutral()

PURE void merge(u64 *a, const u64 *b) {
#if defined(OP_XOR)
    a[0] ^= b[0];
#else
    a[0] |= b[0];
#endif
}

PURE u32 combine_words(u32 a, u32 b) {
#if defined(OP_AND)
    return a & b;
#elif defined(OP_OR)
    return a | b;
#else
    return a ^ b;
#endif
}

PURE void add_tile(const tile *t, u64 *record) {
    u32 sum[2] = {0, 0}; /* of even words, of odd words: an element of 8 bytes is two */
#if defined(OP_AND)
    sum[0] = sum[1] = ~(u32)0;
#endif
    UNROLL
    for (u32 i = 0; i < TILE_WORDS; i += 2) {
        sum[0] = combine_words(sum[0], t->word[i]);
        sum[1] = combine_words(sum[1], t->word[i + 1]);
    }
#if defined(TYPE_U64)
    u64 bits = (u64)sum[1] << 32 | sum[0];
#else
    u32 bits = combine_words(sum[0], sum[1]);
#if defined(TYPE_U8) || defined(TYPE_U16)
    bits = combine_words(bits, bits >> 16);
#endif
#if defined(TYPE_U8)
    bits = combine_words(bits, bits >> 8);
#endif
#endif
#if defined(OP_AND)
    bits = ~bits;
#endif
    const u64 other[WORDS] = {(element)bits};
    merge(record, other);
}

PURE u64 value_of(const u64 *total, u64 n, u32 request, u32 *status) {
#if defined(OP_AND)
    return (element)~total[0];
#else
    return total[0];
#endif
}

#include "fold.h"
