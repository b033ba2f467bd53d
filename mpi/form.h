/*
 * form.h - what the next frame of a communicator is like: learnt from its calls so far.
 *
 * A frame has the same length whatever is asked, since the ranks do not know before whether they ask for the same. But they
 * know what they all have asked for in the calls before: every call that succeeds had one question and one verdict on all
 * ranks, and collectives are issued in one order. So each rank notes what a frame would have had to be for the last calls to need
 * no further message, and all ranks note the same. The next frame is of that form:
 *
 *   added    `words` words under MPI_SUM (frame.h): at first, and as long as sums, bits, and extremes of not too many ranks do
 *   merged   `words` words under an operator of ours (merged.h), where something else is asked for again and again
 *
 * Only calls that wait learn, and use what has been learnt: when a call that does not wait begins, the calls before it may be
 * complete on one rank and not on another. Those have a form of their own, in which every single sum has room.
 */
#ifndef TALLY_MPI_FORM_H
#define TALLY_MPI_FORM_H

#include "tally_mpi.h"

enum {
    FRAME_WORDS = 32, /* the shortest frame */
    FRAME_MOST = 512, /* the longest */
    SLOTS_MOST = 128, /* the longest in which each rank has words of its own */
    NO_FRAME = 1 << 30
};

struct form {
    int words, is_merged;
};
#define FIRST_FORM ((struct form){FRAME_WORDS, 0})
#define LATER_FORM ((struct form){FRAME_WORDS + 208, 0})

#endif
