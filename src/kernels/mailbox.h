/*
 * mailbox.h - ranks whose devices can write into each other's memory send words to one another. A
 * sender writes a word into its slot of the receiver's mailbox (words.h). The receiver polls the
 * slot until the word is there.
 *
 * Before including this header, include kernel.h and words.h.
 */
#ifndef TALLY_MAILBOX_H
#define TALLY_MAILBOX_H

/* Returns the slot for word i of the message that rank `from` sends in this turn. */
__device__ GLOBAL u64 *mailbox_slot(GLOBAL u64 *mailbox, u64 ranks, u64 turn, u64 from, u32 i) {
    return mailbox + MAILBOX_SLOTS + 2 * (((turn & 1) * ranks + from) * MAILBOX_WORDS + i);
}

/* Returns the flag of a turn's words. */
PURE u64 mailbox_flag(u64 turn) {
    return (turn & 0x7fffffffu) + 1;
}

/* Writes a word and the turn's flag to a slot. */
__device__ void send_word(GLOBAL u64 *slot, u64 flag, u64 word) {
    write_word(slot, flag << 32 | (word & 0xffffffffu));
    write_word(slot + 1, flag << 32 | word >> 32);
}

/* Waits for the word in a slot, empties the slot and returns the word. Sets *lost if the wait was
 * stopped. */
__device__ u64 receive_word(GLOBAL u64 *slot, GLOBAL u64 *mailbox, u64 flag, u32 *lost) {
    for (;;) {
        const u64 low = read_word(slot), high = read_word(slot + 1);
        if (low >> 32 == flag && high >> 32 == flag) {
            write_word(slot, (u64)0);
            write_word(slot + 1, (u64)0);
            return (low & 0xffffffffu) | high << 32;
        }
        if (*lost || read_word(mailbox + MAILBOX_STOP)) {
            *lost = 1;
            return 0;
        }
    }
}

#endif
