/*
 * posts.h - how ranks whose devices can write into each other's memory send words to one another (words.h says what a
 * post is): each word goes into its place in the receiver's post, and the receiver looks at its own until it is there.
 *
 * Whoever includes this has included kernel.h and words.h.
 */
#ifndef TALLY_POSTS_H
#define TALLY_POSTS_H

/* Returns where rank `from` writes word i of a turn's message in another rank's post. */
__device__ GLOBAL u64 *post_slot(GLOBAL u64 *post, u64 ranks, u64 turn, u64 from, u32 i) {
    return post + POST_SLOTS + 2 * (((turn & 1) * ranks + from) * POST_WORDS + i);
}

/* Returns the flag of a turn's words. */
PURE u64 post_flag(u64 turn) {
    return (turn & 0x7fffffffu) + 1;
}

__device__ void put_word(GLOBAL u64 *slot, u64 flag, u64 word) {
    write_word(slot, flag << 32 | (word & 0xffffffffu));
    write_word(slot + 1, flag << 32 | word >> 32);
}

/* Returns a word of another rank's once it is there, and makes its place empty again; *lost is set where the wait was
 * stopped. */
__device__ u64 take_word(GLOBAL u64 *slot, GLOBAL u64 *post, u64 flag, u32 *lost) {
    for (;;) {
        const u64 low = read_word(slot), high = read_word(slot + 1);
        if (low >> 32 == flag && high >> 32 == flag) {
            write_word(slot, (u64)0);
            write_word(slot + 1, (u64)0);
            return (low & 0xffffffffu) | high << 32;
        }
        if (*lost || read_word(post + POST_STOP)) {
            *lost = 1;
            return 0;
        }
    }
}

#endif
