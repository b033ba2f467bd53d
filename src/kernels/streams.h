/*
 * streams.h - the least and the greatest of elements of 8 or 16 bits, compared several at a time as they lie in a word.
 *
 * A word is compared as a whole, as one number of 32 bits or, on CUDA from sm_90 on, as two of 16: the highest element
 * in such a number decides, and what lies below it matters only between equal ones. The others get their turn when the
 * word has been shifted up by an element, and by two, and so on: as many streams as elements in a number.
 *
 * Integers are compared as such. Floats are signs and magnitudes, so their extremes follow from three comparisons of
 * their bits as integers:
 *   - The greatest signed integer is the greatest float, unless its sign bit is set.
 *   - The greatest unsigned integer is the least float, if its sign bit is set.
 *   - The least unsigned integer is the greatest float if all sign bits are set, and the least float if none is.
 *
 * Before including this header, include grid.h, and define KEY_BITS, the bits of a key.
 */
#ifndef TALLY_STREAMS_H
#define TALLY_STREAMS_H

#include "halves.h"

/* The extremes of all numbers in all streams. The compiler drops unused ones. */
typedef struct stream_ends {
    u32 most_signed, least_signed, most_unsigned, least_unsigned;
} stream_ends;

PURE stream_ends ends_of(const tile *t) {
    stream_ends e = {t->word[0], t->word[0], t->word[0], t->word[0]};
    UNROLL
    for (u32 i = 0; i < TILE_WORDS; i++) {
        UNROLL
        for (u32 up = 0; up < NUMBER_BITS; up += KEY_BITS) {
            const u32 w = t->word[i] << up;
            e.most_signed = greatest_signed(e.most_signed, w);
            e.least_signed = least_signed(e.least_signed, w);
            e.most_unsigned = greatest_unsigned(e.most_unsigned, w);
            e.least_unsigned = least_unsigned(e.least_unsigned, w);
        }
    }
    return e;
}

/* The bits of the highest element in a word that is one number; of two numbers, in the one that `end` picks. */
#define END_OF(end, w)    (UPPER_HALF(end, w) >> (16 - KEY_BITS))
#define IS_NEGATIVE(bits) ((bits) >> (KEY_BITS - 1))

PURE u32 greatest_bits(stream_ends e) {
#if defined(FLOATING)
    const u32 most = END_OF(greatest_signed, e.most_signed);
    return IS_NEGATIVE(most) ? END_OF(least_unsigned, e.least_unsigned) : most;
#elif defined(SIGNED_TYPE)
    return END_OF(greatest_signed, e.most_signed);
#else
    return END_OF(greatest_unsigned, e.most_unsigned);
#endif
}

PURE u32 least_bits(stream_ends e) {
#if defined(FLOATING)
    const u32 most = END_OF(greatest_unsigned, e.most_unsigned);
    return IS_NEGATIVE(most) ? most : END_OF(least_unsigned, e.least_unsigned);
#elif defined(SIGNED_TYPE)
    return END_OF(least_signed, e.least_signed);
#else
    return END_OF(least_unsigned, e.least_unsigned);
#endif
}

#endif
