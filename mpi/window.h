/*
 * window.h - the words of a state that a frame has room for.
 *
 * The words of an exact sum of floats are a fixed-point number with a digit for every exponent that there is; but
 * most data have few of them. So a frame takes the digits around 1 alone: a window. A rank whose number has digits
 * outside says so in the frame, and all ranks send all of their words in a second message. What lies above
 * the window may be the sign of a negative number: the window's highest digit takes it in, and gives it back
 * when the words are read, since words need not be carried (tally_state_from_words()).
 */
#ifndef TALLY_MPI_WINDOW_H
#define TALLY_MPI_WINDOW_H

#include <stddef.h>
#include <stdint.h>

struct window {
    int pieces; /* 0: there is none, and only all words will do */
    struct piece {
        int from, count; /* of the state's words */
        int is_number; /* digits of a number, whose lowest is word `low` and highest word `high` */
        int low, high;
    } piece[4];
};

/* The window for a state of so many words, of which at most `room` are to be sent. The same on all ranks. */
struct window window_of(size_t words, int room);

/* Packs the words into the window; not 0 where they have digits outside. */
int window_pack(const struct window *w, int64_t *packed, const int64_t *words);
/* The reverse, of windows added up. */
void window_unpack(const struct window *w, int64_t *words, size_t count, const int64_t *packed);

#endif
