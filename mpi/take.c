/* take.c - see take.h. */
#include "take.h"

#include "message.h"
#include "slots.h"

#include <stdio.h>
#include <string.h>

/* Writes the answer for a shape, and ends the task. */
static void write_shaped(struct task *t) {
    t->status = shaped_write(t->shaped, t->line, sizeof t->line);
    t->step = STEP_DONE;
}

static void write_groups(struct task *t) {
    shaped_lower_groups(t->shaped);
    write_shaped(t);
}

/* Makes a state of words, which additions or merges have combined. */
typedef tally_status from_words(tally_state *, const int64_t *);

/* Makes our own state of the words of one result after the other, `step` words apart, and lowers each. */
static tally_status take_own(struct task *t, from_words *from, size_t step, const int64_t *word) {
    tally_status s = TALLY_OK;
    for (size_t i = 0; i < t->count && s == TALLY_OK; i++) {
        s = from(t->own, word + i * step);
        if (s == TALLY_OK && t->shaped) shaped_lower_state(t->shaped, i, t->own);
    }
    return s == TALLY_OK && !t->shaped ? tally_state_value(t->own, t->given.value) : s;
}

/* Makes the caller's states of their words, `step` words apart. If some words are of no state, which all ranks
 * find alike, no state changes: all words are tried first. */
static tally_status take_caller(const struct task *t, from_words *from, size_t step,
                                const int64_t *word) {
    tally_status s = TALLY_OK;
    const int changes = task_is_wanted(t);
    for (size_t i = 0; i < t->count && (t->count > 1 || !changes) && s == TALLY_OK; i++)
        s = from(t->none, word + i * step);
    for (size_t i = 0; i < t->count && changes && s == TALLY_OK; i++)
        s = from(t->state[i], word + i * step);
    return s;
}

static const char *merge_text(tally_status s) {
    return s == TALLY_EINVAL
               ? "the states of a rank and the next do not follow on one another, or are of other "
                 "problems: over the canonical tree each stands where tally_state_begin_at() says"
           : s == TALLY_EUNSUPPORTED ? "groups over the canonical tree cannot be merged"
           : s == TALLY_ERANGE       ? "all ranks' states have more than 2^63 - 1 elements"
                                     : tally_status_text(s);
}

/* Returns the status with which the words of some result could not be merged, and says so in the task's line; else
 * TALLY_OK. All ranks have the same words. */
static tally_status check_merged(struct task *t) {
    tally_status s = TALLY_OK;
    if (t->route != ROUTE_MERGED || t->is_in_frame) return s;
    for (size_t i = 0; i < t->count && s == TALLY_OK; i++)
        s = merged_read(t->word + i * (MERGED_HEAD + t->words)).status;
    if (s != TALLY_OK) snprintf(t->line, sizeof t->line, "%s", merge_text(s));
    return s;
}

/* Makes states, or groups, of all ranks' combined words. */
static void take_words(struct task *t) {
    const int merged = t->route == ROUTE_MERGED;
    from_words *const from = merged ? tally_state_from_merge_words : tally_state_from_words;
    const size_t head = merged && !t->is_in_frame ? MERGED_HEAD : 0;
    const int64_t *word = t->word + head;
    tally_status s = check_merged(t);
    if (s != TALLY_OK) {
        t->status = s;
        t->step = STEP_DONE;
        return;
    }
    if (t->groups) {
        s = tally_groups_from_words(t->spare_groups ? t->spare_groups : *t->groups, word);
        task_outcome(t, s);
        if (s == TALLY_OK && t->shaped) write_groups(t);
        return;
    }
    s = t->own ? take_own(t, from, head + t->words, word)
               : take_caller(t, from, head + t->words, word);
    task_outcome(t, s);
    if (!t->shaped)
        task_give_values(t);
    else if (s == TALLY_OK)
        write_shaped(t);
}

/* Makes the line of rank `from` every rank's. */
static void take_reason_of(struct task *t, int from) {
    t->reason_from = from;
    t->step = STEP_REASON;
}

/* Ends a task for which the ranks do not agree, or some cannot go on. */
static void refuse(struct task *t, const struct verdict *v) {
    const tally_status mine = t->status;
    t->status = v->status;
    t->step = STEP_DONE;
    if (v->failed == 1) {
        take_reason_of(t, (int)v->rank);
        return;
    }
    char reason[160] = "";
    if (mine != TALLY_OK) snprintf(reason, sizeof reason, "; %.150s", t->line);
    if (v->failed > 1)
        snprintf(t->line, sizeof t->line, "%lld of %d ranks failed: %s%s", (long long)v->failed,
                 t->ranks, tally_status_text(v->status), reason);
    else if (v->status != TALLY_EINVAL)
        snprintf(t->line, sizeof t->line, "%s", merge_text(v->status));
    else
        snprintf(t->line, sizeof t->line,
                 "the ranks do not all ask for the same; this one for %s of %s, %zu result%s",
                 t->problem && tally_op_name(t->problem->op) ? tally_op_name(t->problem->op) : "?",
                 t->problem && tally_type_name(t->problem->type) ? tally_type_name(t->problem->type)
                                                                 : "?",
                 t->count, t->count == 1 ? "" : "s");
}

/* Returns the status of the first merged block that says that two could not be merged; else TALLY_OK. It is the
 * same on every rank that has the blocks. */
static tally_status merged_status(const struct task *t) {
    for (size_t i = 0; i < t->blocks; i++) {
        const tally_status s = (tally_status)message_block(t, t->merged, i)->status;
        if (s != TALLY_OK) return s;
    }
    return TALLY_OK;
}

static tally_status load_block(const struct task *t, size_t i, tally_state **out) {
    const struct block *block = message_block(t, t->merged, i);
    return tally_state_load(block->bytes, (size_t)block->size, t->problem, out);
}

/* Lowers the merged blocks of arrays, which rank 0 does for all. */
static tally_status lower_blocks(const struct task *t, tally_value *value) {
    tally_status s = TALLY_OK;
    for (size_t i = 0; i < t->blocks && s == TALLY_OK; i++) {
        tally_state *loaded = NULL;
        s = load_block(t, i, &loaded);
        if (s == TALLY_OK && t->shaped)
            shaped_lower_state(t->shaped, i, loaded);
        else if (s == TALLY_OK)
            s = tally_state_value(loaded, value);
        tally_state_destroy(loaded);
    }
    return s;
}

static void take_merged(struct task *t) {
    t->step = STEP_VALUES;
    if (t->rank != 0) return;
    tally_status s = merged_status(t);
    const int is_merged = s == TALLY_OK;
    if (is_merged) s = lower_blocks(t, t->given.value);
    snprintf(t->line, sizeof t->line, "%s", is_merged ? tally_error() : merge_text(s));
    t->given.status = s;
    if (t->shaped && s != TALLY_OK) {
        t->shaped->answer->status = s;
        t->shaped->answer->which = -1;
    }
}

/* Takes rank 0's values; if it has none, its line says why. */
static void take_values(struct task *t) {
    const struct answer *answer = t->shaped ? t->shaped->answer : NULL;
    if (answer && (answer->status == TALLY_OK || answer->which >= 0)) {
        write_shaped(t);
        return;
    }
    t->status = (tally_status)(answer ? answer->status : t->given.status);
    task_give_values(t);
    if (t->status != TALLY_OK) take_reason_of(t, 0);
}

/* Loads the merged blocks of the caller's states or groups, and asks whether all ranks could do so. */
static void load_blocks(struct task *t) {
    const tally_status merged = merged_status(t);
    if (merged != TALLY_OK) {
        t->status = merged;
        snprintf(t->line, sizeof t->line, "%s", merge_text(merged));
        t->step = STEP_DONE;
        return;
    }
    for (size_t i = 0; i < t->blocks && t->status == TALLY_OK; i++) {
        const tally_status s = t->groups
                                   ? tally_groups_load(t->merged->bytes, (size_t)t->merged->size,
                                                       t->problem, &t->loaded_groups)
                                   : load_block(t, i, &t->loaded[i]);
        if (s != TALLY_OK) task_give_up(t, s, NULL);
    }
    t->layout = FIRST_LAYOUT;
    t->payload = frame_payload(t->ranks);
    task_clear(t->frame, 0, FRAME_WORDS * sizeof *t->frame);
    frame_fill(t->frame, t->payload, 0, t->status, 0, t->rank, t->ranks);
    t->step = STEP_AGREE;
}

/* Replaces the caller's states by the loaded ones, if all ranks have loaded them: each is cleared, made to begin
 * where the loaded one does, and merged with it. */
static void take_blocks(struct task *t) {
    const struct verdict v = frame_read(t->frame, t->payload, t->ranks);
    if (v.status != TALLY_OK) {
        refuse(t, &v);
        return;
    }
    tally_status s = TALLY_OK;
    t->step = STEP_DONE;
    if (!task_is_wanted(t) && !t->shaped) return;
    if (t->groups) {
        tally_groups_destroy(*t->groups);
        *t->groups = t->loaded_groups;
        t->loaded_groups = NULL;
        if (t->shaped) write_groups(t);
        return;
    }
    for (size_t i = 0; i < t->count && s == TALLY_OK; i++) {
        tally_state_clear(t->state[i]);
        s = tally_state_begin_at(t->state[i],
                                 saved_word(message_block(t, t->merged, i)->bytes, SAVED_FIRST));
        if (s == TALLY_OK) s = tally_state_merge(t->state[i], t->loaded[i]);
    }
    task_outcome(t, s);
}

/* Reduces this rank's elements over the tree, now that it is known where they stand. */
static void take_place(struct task *t) {
    const uint64_t *before = t->place + t->count;
    for (size_t i = 0; i < t->count; i++) {
        struct block *block = message_block(t, t->block, i);
        if (i > 0) tally_state_clear(t->own);
        tally_status s = tally_state_begin_at(t->own, t->rank > 0 ? before[i] : 0);
        if (s == TALLY_OK) s = message_feed_own(t, i);
        block_save(block, &t->kind, t->own);
        if (s != TALLY_OK) block->status = s;
    }
    t->step = STEP_MERGE;
}

/* Finds where this rank's elements stand: adds up the lower ranks' counts in the frame. */
static void take_places(struct task *t) {
    uint64_t *before = t->place + t->count;
    for (size_t i = 0; i < t->count; i++)
        before[i] = 0;
    for (size_t i = 0; i < t->count * (size_t)t->rank; i++)
        before[i % t->count] += (uint64_t)task_payload(t)[i];
    take_place(t);
}

/* Learns what this call needed, now that it is known whether all ranks' words fit the ranges. */
static void learn(struct task *t, const struct verdict *v) {
    if (t->bit_ranges.count && v->wide == 0) t->need.added = FRAME_WORDS;
    if (t->learns && t->attribute) learn_layout(t->attribute, t->need);
}

static void take_frame(struct task *t) {
    const struct verdict v =
        t->layout.is_merged ? merged_read(t->frame) : frame_read(t->frame, t->payload, t->ranks);
    if (v.status != TALLY_OK) {
        refuse(t, &v);
        return;
    }
    learn(t, &v);
    switch (t->route) {
    case ROUTE_WORDS:
        if (!t->is_in_frame && (!t->bit_ranges.count || v.wide > 0)) {
            t->step = STEP_WORDS;
            break;
        }
        if (!t->is_in_frame)
            bit_ranges_unpack(&t->bit_ranges, t->word, t->all_words, task_payload(t));
        take_words(t);
        break;
    case ROUTE_KEYS:
    case ROUTE_TRIPLE:
        slots_take(t);
        break;
    case ROUTE_MERGED:
        t->step = STEP_MERGED;
        if (t->is_in_frame) take_words(t);
        break;
    case ROUTE_BLOCKS:
        t->step = STEP_MERGE;
        break;
    case ROUTE_TREE:
        t->step = STEP_PLACE;
        if (t->has_places) take_places(t);
        break;
    }
}

void task_take(struct task *t) {
    switch (t->step) {
    case STEP_FRAME:
        take_frame(t);
        break;
    case STEP_WORDS:
        take_words(t);
        break;
    case STEP_MERGED:
        take_words(t);
        break;
    case STEP_PLACE:
        take_place(t);
        break;
    case STEP_MERGE:
        if (t->own)
            take_merged(t);
        else
            t->step = STEP_SHARE;
        break;
    case STEP_VALUES:
        take_values(t);
        break;
    case STEP_SHARE:
        load_blocks(t);
        break;
    case STEP_AGREE:
        take_blocks(t);
        break;
    case STEP_REASON:
        t->step = STEP_DONE;
        break;
    case STEP_DONE:
        break;
    }
}
