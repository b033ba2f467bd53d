/*
 * words.h - the state of a reduction as words that ranks exchange: the argument of the kernels in words.cu.
 *
 * Added words are combined by plain addition, in the form of tally_state_to_words(): how many elements there are, then
 * for each sum four counts and its limbs, each below 2^32 but for the last; for bits, of each bit whether it is set;
 * and how many elements are not zero. Gathered words stand one rank behind another: how many elements there are, the
 * product of integers, the extremes with their indices. They are merged in the order of
 * ranks.
 *
 * Before including this header, include plan.h.
 */
#ifndef TALLY_WORDS_H
#define TALLY_WORDS_H

enum { WORDS_GATHERED_N, WORDS_GATHERED_FACTORS, WORDS_GATHERED_EXTREMES = 3, WORDS_GATHERED = 8 };

#define WORDS_COUNTS                                                                               \
    4 /* before the limbs of a sum: NaNs, +infinities, -infinities, and whether mixed */

/* Before the words that are added stand two: how many ranks have failed; and the sum of s + s^2 2^32 for each of their
 * statuses s. A status is at most 10, so the sum of the squares fits 32 bits for 2^25 ranks. */
#define FAILED_WORDS 2

/* A rank's mailbox: memory of the rank's device that the devices of all ranks can write. Its words:
 *
 *     [MAILBOX_TURN]            the number of exchanges so far
 *     [MAILBOX_STOP]            not 0: a wait for words ends
 *     [MAILBOX_ADDRESSES + r]   the address of rank r's mailbox, as this device knows it
 *     [MAILBOX_SLOTS, ...)      two sets of slots; in a set, MAILBOX_WORDS slots for each rank
 *
 * A slot is two words. They hold the two halves of a message's word, each with the turn's flag above
 * it. A word of 64 bits is written at once, so a reader that sees the flag has the half, and no fence
 * is needed. A slot is 0 unless a word is on its way; the reader empties it.
 *
 * Turns use the two sets of slots alternately. That is enough: a rank writes for turn t + 2 only
 * when it has all messages of turn t + 1, and a rank sends those only after it has read turn t's. */
#define MAILBOX_RANKS 16  /* at most */
#define MAILBOX_WORDS 512 /* the most words of a message */
enum { MAILBOX_TURN, MAILBOX_STOP, MAILBOX_ADDRESSES, MAILBOX_SLOTS = 32 };
#define MAILBOX_BYTES(ranks) (8 * (MAILBOX_SLOTS + 4 * (size_t)MAILBOX_WORDS * (ranks)))

/* The most elements that a rank adds up to a pair (pair.h), without records: one block adds up so many
 * in less time than a second launch takes. */
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
    u32 monoid; /* then, the monoid whose sum the pair is */
} words_plan;

/* words_limbs() returns the number of limbs that a sum has in words, and words_first() the one of
 * these at which its record's limbs begin. `two`: the sum is of squares or products. */
PURE u32 words_limbs(u32 of_floats, u32 two) {
    return of_floats ? (two ? WIDE_FLOAT_LIMBS : FLOAT_LIMBS) : two ? 6 : 4;
}

PURE u32 words_first(u32 of_floats, u32 two, u32 record_limbs) {
    return of_floats && two ? (WIDE_FLOAT_LIMBS - record_limbs) / 2 : 0;
}

#endif
