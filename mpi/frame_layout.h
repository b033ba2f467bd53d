/*
 * frame_layout.h - the layout of a communicator's next frame, learnt from its calls so far.
 *
 * The ranks do not know beforehand whether they ask for the same, so a frame's length must not depend
 * on the question. But they know the calls before: a call that succeeds had one question and one verdict
 * on all ranks, and all ranks issue collectives in one order. So each rank notes the layout with which
 * the last calls would have needed no further message. All ranks note the same, and the next frame has
 * that layout:
 *
 *   added    `words` words under MPI_SUM (frame.h): the first layout; it does for sums, and for
 *            bits and extremes of not too many ranks
 *   merged   `words` words under an operator of ours (merged.h), if calls repeatedly need more
 *
 * Only blocking calls learn, and use what has been learnt: when a nonblocking call begins, the calls
 * before it may be complete on one rank and not on another. Nonblocking calls have LATER_LAYOUT, in
 * which every single sum has room.
 */
#ifndef TALLY_MPI_FRAME_LAYOUT_H
#define TALLY_MPI_FRAME_LAYOUT_H

#include "tally_mpi.h"

enum {
    FRAME_WORDS = 32, /* the shortest frame */
    FRAME_MOST = 512, /* the longest */
    SLOTS_MOST = 128, /* the longest in which each rank has words of its own */
    NO_FRAME = 1 << 30
};

struct frame_layout {
    int words, is_merged;
};
#define FIRST_LAYOUT ((struct frame_layout){FRAME_WORDS, 0})
#define LATER_LAYOUT ((struct frame_layout){FRAME_WORDS + 208, 0})

#endif
