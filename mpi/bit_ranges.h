/*
 * bit_ranges.h - the words of a state that a frame has room for.
 *
 * The words of an exact sum of floats are a fixed-point number with 32-bit digits for all exponents of
 * the type. Most data use few of them. So a frame takes one range of its bits, around 1. It takes them
 * as digits of as many bits as MPI_SUM can add up over all ranks in 63 bits. The highest digit is
 * signed.
 *
 * A rank whose number has bits outside the range says so in the frame. Then all ranks send all of their
 * words in a second message.
 */
#ifndef TALLY_MPI_BIT_RANGES_H
#define TALLY_MPI_BIT_RANGES_H

#include <stddef.h>
#include <stdint.h>

struct bit_ranges {
    int count; /* of ranges; 0: the frame takes no part of such a state */
    int bits; /* of a digit, at least 32: `ranks` of them, each below 2^bits, add up to less than 2^63 */
    struct bit_range {
        int from, words; /* digits 0: the state's words [from, from + words), as they are */
        int digits; /* else so many digits of a number's bits, from the lowest of word `from` on */
        int low, high; /* the words of the number's lowest and highest digit */
    } range[4];
};

/* Finds the ranges for `words` words, of which a frame has room for `room`. They are the same on all ranks. If the words
 * are those of one state, their number tells which sums of floats it has. */
void bit_ranges_of(size_t words, int is_one_state, int room, int ranks, struct bit_ranges *out);

/* Packs the bits within the ranges. Returns not 0 if the state has bits outside. */
int bit_ranges_pack(const struct bit_ranges *w, int64_t *packed, const int64_t *words);
/* Makes the `count` words of a state from packed ranges that have been added up. */
void bit_ranges_unpack(const struct bit_ranges *w, int64_t *words, size_t count,
                       const int64_t *packed);

#endif
