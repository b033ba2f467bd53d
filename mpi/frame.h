/*
 * frame.h - the message that every call begins with: what is asked, whether this rank can go on, and, where
 * they fit, the words of the state.
 *
 * It is of one length (frame_layout.h), whatever is asked, and of 64-bit integers that MPI_SUM adds up. So ranks that ask for
 * different things still exchange matching messages, and all of them see from the sums that they do:
 *
 *   hash      A 32-bit hash h of the question goes in as h and as h^2 (in two words of 32 bits). Added up over
 *             p ranks, (sum of h)^2 = p (sum of h^2) if and only if all h are equal.
 *   rank      The sum of the numbers of the ranks that failed: if one failed, its number.
 *   counts    For each status the number of ranks that failed with it, and the number of those whose state does
 *             not fit the payload: as many counts a word as can be added up over all ranks.
 *   payload   Words of a state, or of each rank's values: what is left of the frame.
 *
 * The first frame is as long as the longest message that shared memory and most networks send at once with its header.
 * One of twice the length takes nearly twice as long (docs/cluster.md).
 * Each number of the hash and of the rank is below 2^32, so for up to 2^31 - 1 ranks no sum reaches 2^63.
 */
#ifndef TALLY_MPI_FRAME_H
#define TALLY_MPI_FRAME_H

#include "frame_layout.h"

enum {
    FRAME_HASH = 0, /* h, low and high half of h^2 */
    FRAME_RANK = 3,
    FRAME_COUNTS = 4,
    STATUSES = 10,         /* 1 to 10 */
    COUNTS = STATUSES + 1, /* and one of the ranks whose state does not fit */
    WIDE = COUNTS          /* its number; those of the statuses are their own */
};
_Static_assert(8 * FRAME_WORDS == TALLY_MPI_FRAME_BYTES, "as the header says");
_Static_assert(STATUSES == (int)TALLY_ESTOPPED, "a count for every status");

/* ---- Counts of ranks, several in a word ---- */

/* Returns how many counts of up to `ranks` fit in 63 bits. */
static inline int counts_a_word(int ranks) {
    return 63 / (32 - __builtin_clz((unsigned)ranks));
}
/* Returns how many words `count` of them take. */
static inline int words_of_counts(int count, int ranks) {
    return (count + counts_a_word(ranks) - 1) / counts_a_word(ranks);
}

/* Returns the word at which the payload begins; the payload is all that follows. */
static inline int frame_payload(int ranks) {
    return FRAME_COUNTS + words_of_counts(COUNTS, ranks);
}

/* ---- The hash of a question ---- */

#define QUESTION_START UINT64_C(0x9e3779b97f4a7c15)
/* Returns the hash of what was asked so far and one number more. */
static inline uint64_t question_add(uint64_t hash, uint64_t number) {
    hash = (hash ^ number) * UINT64_C(0xff51afd7ed558ccd);
    return hash ^ hash >> 32;
}

/* ---- One frame ---- */

/* Writes the header of a rank's frame. hash: the question's; status: the rank's; is_wide: its state does not fit the
 * payload. The payload, which begins at word `payload`, is left as it is. */
void frame_fill(int64_t *frame, int payload, uint64_t hash, tally_status status, int is_wide,
                int rank, int ranks);

/* The header of all ranks' frames, added up, as frame_read() understands it. */
struct verdict {
    tally_status
        status; /* the lowest that a rank has failed with; TALLY_EINVAL where the questions differ */
    int64_t failed; /* how many ranks have failed */
    int64_t rank;   /* the failed rank, where it is one */
    int64_t wide;   /* how many have a state that does not fit */
};
struct verdict frame_read(const int64_t *frame, int payload, int ranks);

#endif
