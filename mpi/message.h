/*
 * message.h - what a rank sends of its states or groups, by each route (task.h): words in the frame or behind it, or blocks.
 */
#ifndef TALLY_MPI_MESSAGE_H
#define TALLY_MPI_MESSAGE_H

#include "task.h"

/* Finds the route of `count` states of the problem, and the room that their message needs. *none becomes a state of no
 * elements. */
void message_plan_states(struct task *t, size_t count, tally_state **none);
/* Puts this rank's states into the message. */
void message_pack_states(struct task *t);
/* Feeds our own state with this rank's elements of result i of a shape, or of the array. */
tally_status message_feed_own(const struct task *t, size_t i);

/* Returns where `count` times t->words words are put: in the frame, or behind it; NULL where that failed. */
int64_t *message_make_words(struct task *t, size_t count);
/* Gives up if n elements, of this rank, on every rank would be more than a word can count: a sum that wraps around could not be
 * told from a right one. */
void message_check_count(struct task *t, int64_t n);
/* Packs the ranges of the words that the frame takes. If the frame takes all words, the ranks still
 * find out whether the ranges alone would have been enough, to choose the next frame's layout. */
void message_pack_ranges(struct task *t);

/* Makes room for `count` blocks of t->kind. */
void message_make_blocks(struct task *t, size_t count);
/* Returns block i of those. */
static inline struct block *message_block(const struct task *t, struct block *blocks, size_t i) {
    return (struct block *)((char *)blocks + i * block_bytes(&t->kind));
}

#endif
