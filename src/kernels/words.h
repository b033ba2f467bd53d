/*
 * words.h - the state of a reduction in words that other ranks can have: the argument of the kernels in words.cu.
 *
 * Added words are combined by plain addition, in the form of tally_state_to_words(): how many elements there are, then
 * for each sum four counts and its limbs, each below 2^32 but for the last; for bits, of each bit whether it is set;
 * and how many elements are not zero. Gathered words stand one rank behind another: how many elements there are, the
 * product of integers, the extremes with their indices. Whoever has those of all ranks merges them in the order of
 * ranks.
 *
 * Whoever includes this has included plan.h.
 */
#ifndef TALLY_WORDS_H
#define TALLY_WORDS_H

enum { WORDS_GATHERED_N, WORDS_GATHERED_FACTORS, WORDS_GATHERED_EXTREMES = 3, WORDS_GATHERED = 8 };

#define WORDS_COUNTS                                                                               \
    4 /* before the limbs of a sum: NaNs, +infinities, -infinities, and whether mixed */

/* Before the words that are added stand two: how many ranks have failed, and the sum of their statuses. */
#define FAILED_WORDS 2

/* A rank's post: memory of the rank's device that the devices of all ranks can write. Its words are
 *     [POST_TURN]              how many exchanges there have been
 *     [POST_STOP]              not 0: whoever waits for words gives up
 *     [POST_ADDRESSES + r]     where this device finds the post of rank r
 *     [POST_SLOTS, ...)        for every second exchange, of each rank a message of POST_WORDS places of two words
 * A place holds one word of a message in two halves of 32 bits, each with a flag above it that says for which exchange it
 * is: a word of 64 bits is written at once, so that whoever finds the flag has the half, and no fence is needed. A place
 * is 0 unless a word is on its way; the reader empties it. Two sets of places do: a rank writes into the third
 * exchange's, which are the first one's again, when it has all messages of the second, which nobody sends before it
 * has read those of the first. */
#define POST_RANKS 16  /* at most */
#define POST_WORDS 512 /* the most words of a message */
enum { POST_TURN, POST_STOP, POST_ADDRESSES, POST_SLOTS = 32 };
#define POST_BYTES(ranks) (8 * (POST_SLOTS + 4 * (size_t)POST_WORDS * (ranks)))

/* How many elements a rank may have that makes no records of them, but a pair: as many as one block takes in no time. */
#define FEW_ELEMENTS 8192

/* Words of a state's records, at most: of four sums, two of them of squares or products, and of what else there is. */
#define WORDS_RECORDS (2 * (FLOAT_LIMBS + 4) + 2 * (WIDE_FLOAT_LIMBS + 4) + 32)

typedef struct words_plan {
    lower_plan lower; /* its n: of the elements here */
    u64 count;        /* how many states there are */
    u64 ranks;        /* how many ranks' gathered words there are */
    u32 added;        /* words; 0: none */
    u32 gathered;     /* words of a rank; 0: none */
    u32 bits;         /* bits of an element */
    u32 is_xor;       /* of bits, the count's lowest bit is wanted, and not whether it is 0 */
    u32 clears;       /* the records of sums become 0 */
    u32 packs;        /* the words are yet to be made of records */
    u32 mine;         /* which rank this is */
    u32 from;         /* where the records begin: lower.at[] count from there */
    u32 tries; /* the ranks first tell each other pairs (words.cu), and words only if these do not do */
    u32 part; /* then, the part whose sum the pair is */
} words_plan;

/* Returns how many limbs a sum has in words, and at which of these the limbs of its record
 * begin. */
PURE u32 words_limbs(u32 of_floats, u32 two) {
    return of_floats ? (two ? WIDE_FLOAT_LIMBS : FLOAT_LIMBS) : two ? 6 : 4;
}

PURE u32 words_first(u32 of_floats, u32 two, u32 record_limbs) {
    return of_floats && two ? (WIDE_FLOAT_LIMBS - record_limbs) / 2 : 0;
}

#endif
