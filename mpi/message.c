/* message.c - see message.h. */
#include "message.h"

#include "spare.h"

#include <limits.h>

void message_make_blocks(struct task *t, size_t count) {
    t->blocks = count;
    int error = block_op(&t->op);
    if (error == MPI_SUCCESS) error = block_type(&t->kind, &t->type);
    if (error != MPI_SUCCESS || count > INT_MAX) {
        task_give_up(t, TALLY_EINVAL, "the message is longer than MPI can send");
        return;
    }
    t->block = task_memory(t, count, block_bytes(&t->kind));
    t->merged = task_memory(t, count, block_bytes(&t->kind));
    t->loaded = task_memory(t, count, sizeof *t->loaded);
    for (size_t i = 0; i < count && t->loaded; i++)
        t->loaded[i] = NULL;
}

/* Returns the size of an added frame with room for all of `words` words. */
static int added_need(const struct task *t, size_t words) {
    const size_t all = (size_t)frame_payload(t->ranks) + words;
    return all <= FRAME_MOST ? (int)all : NO_FRAME;
}

/* Returns how many words a merged frame has with room for `count` states of so many words. */
static int merged_need(size_t count, size_t merge_words) {
    size_t all;
    if (merge_words == 0 || __builtin_mul_overflow(count, merge_words, &all)) return NO_FRAME;
    return all <= FRAME_MOST - MERGED_HEAD ? (int)all + MERGED_HEAD : NO_FRAME;
}

/* Returns room for `count` words. */
static int64_t *room_for_words(struct task *t, size_t count) {
    t->all_words = count;
    if (count <= FEW_WORDS) return t->word = t->few_words;
    return t->word = t->own_words = task_memory(t, count, sizeof *t->word);
}

int64_t *message_make_words(struct task *t, size_t count) {
    const int payload_at = frame_payload(t->ranks);
    size_t all;
    if (__builtin_mul_overflow(t->words, count, &all) || all > INT_MAX) {
        task_give_up(t, TALLY_EINVAL, "the message is longer than MPI can send");
        return NULL;
    }
    t->need.added = added_need(t, all);
    if (!t->layout.is_merged)
        bit_ranges_of(all, count == 1 && !t->groups, FRAME_WORDS - payload_at, t->ranks,
                      &t->bit_ranges);
    t->is_in_frame = !t->layout.is_merged && all <= (size_t)task_room(t);
    if (!t->is_in_frame) return room_for_words(t, all);
    t->all_words = all;
    return t->word = task_payload(t);
}

void message_pack_ranges(struct task *t) {
    int64_t unused[FRAME_WORDS];
    if (t->status != TALLY_OK || !t->bit_ranges.count) return;
    if (!t->is_in_frame)
        t->is_wide = bit_ranges_pack(&t->bit_ranges, task_payload(t), t->word);
    else if (t->all_words > (size_t)(FRAME_WORDS - t->payload))
        t->is_wide = bit_ranges_pack(&t->bit_ranges, unused, t->word);
}

tally_status message_feed_own(const struct task *t, size_t i) {
    const struct ask *a = &t->ask;
    if (t->shaped) return shaped_feed(t->shaped, t->own, i);
    return a->is_resident ? tally_state_feed_resident(t->own, a->device, (void *)(uintptr_t)a->x,
                                                      (void *)(uintptr_t)a->y, a->n)
                          : tally_state_feed(t->own, a->device, a->x, a->y, a->n);
}

/* Gets the state of result i. For an array or a shape it is our own one, which the next call uses again. */
static tally_status state_of(const struct task *t, size_t i, const tally_state **out) {
    *out = t->own ? t->own : t->state[i];
    if (!t->own) return TALLY_OK;
    if (i > 0) tally_state_clear(t->own);
    return message_feed_own(t, i);
}

/* Packs states for merging: in the frame, or each behind a head of its own in the message that follows. */
static void pack_merged(struct task *t) {
    const size_t each = t->is_in_frame ? t->words : MERGED_HEAD + t->words;
    int64_t *word = t->is_in_frame ? t->frame + MERGED_HEAD : NULL;
    size_t all;
    int error = MPI_SUCCESS;
    if (__builtin_mul_overflow(each, t->count, &all) || t->count > INT_MAX)
        task_give_up(t, TALLY_EINVAL, "the message is longer than MPI can send");
    else if (!word)
        word = room_for_words(t, all);
    if (t->status == TALLY_OK && !t->is_in_frame) error = merged_mpi(each, &t->type, &t->op);
    if (error != MPI_SUCCESS) task_give_up(t, TALLY_ELOST, "MPI takes no operator of ours");
    t->word = word;
    for (size_t i = 0; i < t->count && t->status == TALLY_OK; i++, word += each) {
        if (!t->is_in_frame) merged_fill(word, t->problem, 1, t->words, 0, TALLY_OK, t->rank);
        const tally_state *state;
        tally_status s = state_of(t, i, &state);
        if (s == TALLY_OK)
            s = tally_state_to_merge_words(state, t->is_in_frame ? word : word + MERGED_HEAD);
        if (s != TALLY_OK) task_give_up(t, s, NULL);
    }
}

void message_check_count(struct task *t, int64_t n) {
    if (n > INT64_MAX / t->ranks)
        task_give_up(t, TALLY_ERANGE,
                     "all ranks may have more than 2^63 - 1 elements, which a word cannot count");
}

void message_pack_states(struct task *t) {
    if (t->route == ROUTE_WORDS) {
        int64_t *word = message_make_words(t, t->count);
        for (size_t i = 0; i < t->count && t->status == TALLY_OK; i++) {
            const tally_state *state;
            tally_status s = state_of(t, i, &state);
            if (s == TALLY_OK) s = tally_state_to_words(state, word + i * t->words);
            if (s != TALLY_OK)
                task_give_up(t, s, NULL);
            else
                message_check_count(t, word[i * t->words]);
        }
        message_pack_ranges(t);
        return;
    }
    if (t->route == ROUTE_MERGED) {
        pack_merged(t);
        return;
    }
    for (size_t i = 0; i < t->count && t->block && t->status == TALLY_OK; i++) {
        const tally_state *state;
        const tally_status s = state_of(t, i, &state);
        if (s != TALLY_OK) task_give_up(t, s, NULL);
        block_save(message_block(t, t->block, i), &t->kind, state);
    }
}

void message_plan_states(struct task *t, size_t count, tally_state **none) {
    size_t words = 0, merge_words = 0;
    const tally_status s = spare_take(t->problem, none, &words, &merge_words);
    if (s != TALLY_OK) {
        task_give_up(t, s, NULL);
        return;
    }
    t->need.merged = merged_need(count, merge_words);
    t->is_in_frame = t->layout.is_merged && t->need.merged <= t->layout.words;
    t->words = merge_words;
    t->route = words > 0 && !t->is_in_frame ? ROUTE_WORDS : ROUTE_MERGED;
    if (merge_words > 0) return;
    t->route = ROUTE_BLOCKS;
    t->kind = (struct block_kind){t->problem, 0, block_room(t->problem, *none)};
    message_make_blocks(t, count);
}
