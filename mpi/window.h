/*
 * window.h - the words of a state that a frame has room for.
 *
 * The words of an exact sum of floats are a fixed-point number with a digit of 32 bits for every exponent that there is;
 * but most data have few of them. So a frame takes the bits around 1 alone: a window. It has them as digits that are as
 * long as can be added up over all ranks in 63 bits. A rank whose number has bits outside says so in the frame, and all
 * ranks send all of their words in a second message. What lies above the window may be the sign of a negative number: the
 * window's highest digit is signed.
 */
#ifndef TALLY_MPI_WINDOW_H
#define TALLY_MPI_WINDOW_H

#include <stddef.h>
#include <stdint.h>

struct window {
    int pieces; /* 0: there is none, and only all words will do */
    int bits; /* of a digit, at least 32: `ranks` of them, each below 2^bits, add up to less than 2^63 */
    struct piece {
        int from, words; /* of the state's words, which go in as they are; or, of a number ... */
        int digits;      /* ... whose bits from word `from` on go in, how many digits: not 0 */
        int low, high;   /* the words of its own lowest and highest digit */
    } piece[4];
};

/* Finds the window for a state of `words` words, of which at most `room` are sent. It is the same
 * on all ranks. */
void window_of(size_t words, int room, int ranks, struct window *out);

/* Packs the words into the window; not 0 where they have bits outside. */
int window_pack(const struct window *w, int64_t *packed, const int64_t *words);
/* The reverse, of windows added up. */
void window_unpack(const struct window *w, int64_t *words, size_t count, const int64_t *packed);

#endif
