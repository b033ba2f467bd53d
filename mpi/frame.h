/*
 * frame.h - the message that every call begins with: what is asked, whether this rank can go on, and, where
 * they fit, the words of the state.
 *
 * It is of one length, whatever is asked, and of 64-bit integers that MPI_SUM adds up. So ranks that ask for
 * different things still exchange matching messages, and all of them see from the sums that they do:
 *
 *   hash      Each half h of a 64-bit hash of the question goes in as h and as h^2 (in two words of 32 bits).
 *             Added up over p ranks, (sum of h)^2 = p (sum of h^2) if and only if all h are equal.
 *   status    For each status the number of ranks that failed with it, two numbers of 32 bits a word.
 *   rank      The sum of the ranks that failed: the rank, where it is one.
 *   payload   Words of a state, or of bits.
 *
 * No number reaches 2^31 times 2^32, for up to 2^31 - 1 ranks.
 */
#ifndef TALLY_MPI_FRAME_H
#define TALLY_MPI_FRAME_H

#include "tally_mpi.h"

enum {
    FRAME_HASH = 0,   /* h, low and high half of h^2, for the low and the high half of the hash */
    FRAME_STATUS = 6, /* five words for the statuses 1 to 10 */
    FRAME_RANK = 11,
    FRAME_PAYLOAD = 12,
    /* The longest state of one operator: n, and the words of a sum and a sum of squares of floats. */
    FRAME_PAYLOAD_WORDS = 1 + 72 + 140,
    FRAME_WORDS = FRAME_PAYLOAD + FRAME_PAYLOAD_WORDS
};
_Static_assert(8 * FRAME_WORDS == TALLY_MPI_FRAME_BYTES, "as the header says");

/* ---- The hash of a question ---- */

#define QUESTION_START UINT64_C(0xcbf29ce484222325)
uint64_t question_add(uint64_t hash, const void *bytes, size_t size);

/* ---- One frame ---- */

/* The header of a rank that asks for what `hash` says and came to `status`. The payload is left as it is. */
void frame_fill(int64_t *frame, uint64_t hash, tally_status status, int rank);

/* What the frames of all ranks, added up, say. */
struct verdict {
    tally_status
        status; /* the lowest that a rank has failed with; TALLY_EINVAL where the questions differ */
    int alike;  /* all ask for the same */
    int64_t failed; /* how many ranks have failed */
    int64_t rank;   /* which, where it is one */
};
struct verdict frame_read(const int64_t *frame, int ranks);

#endif
