/* task.c - see task.h. */
#include "task.h"

#include "explain.h"
#include "keys.h"
#include "spare.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Failures ------------------------------------------------------------------------------- */

/* This rank cannot go on. The line that says why is `why`, or libtally's. */
static void give_up(struct task *t, tally_status status, const char *why) {
    if (t->status != TALLY_OK) return;
    t->status = status;
    snprintf(t->line, sizeof t->line, "rank %d: %s", t->rank, why ? why : tally_error());
}

static void *get_memory(struct task *t, size_t count, size_t size) {
    void *room = size && count > (SIZE_MAX - 8) / size ? NULL : malloc(count * size + 8);
    if (!room) give_up(t, TALLY_ENOMEM, "no memory for the message");
    return room;
}

void task_lost(struct task *t, int error) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(error, text, &length);
    t->status = TALLY_ELOST;
    snprintf(t->line, sizeof t->line, "MPI failed: %.200s", text);
    t->step = STEP_DONE;
}

/* Where the same went wrong on every rank, all of them are told by libtally. */
static void outcome(struct task *t, tally_status status) {
    t->status = status;
    if (status != TALLY_OK) snprintf(t->line, sizeof t->line, "%s", tally_error());
    t->step = STEP_DONE;
}

/* ---- Begun ---------------------------------------------------------------------------------- */

/* memset(), called: where the compiler knows the length it writes instructions that are slow to start. */
static void *(*const volatile clear)(void *, int, size_t) = memset;

/* What all ranks must ask for alike. */
static uint64_t question(const struct task *t) {
    const tally_problem *p = t->problem;
    const int by_groups = t->groups != NULL; /* which a shape decides: the messages differ */
    uint64_t ddof, mean[2], hash = question_add(QUESTION_START, (uint64_t)t->ask.of);
    hash = question_add(hash, t->count);
    hash = question_add(hash, (uint64_t)t->ask.root);
    hash = question_add(hash, (uint64_t)by_groups);
    if (!p) return hash;
    memcpy(&ddof, &p->ddof, sizeof ddof);
    hash = question_add(hash, (uint64_t)p->op | (uint64_t)p->type << 16 | (uint64_t)p->out << 32);
    hash = question_add(hash, ddof);
    memcpy(mean, p->mean, sizeof mean);
    for (int i = 0; i < 2 && p->about; i++)
        hash = question_add(hash, mean[i]);
    hash = question_add(hash, (uint64_t)(p->fast != 0) | 8 * (uint64_t)(p->about != 0) |
                                  16 * (uint64_t)(p->is_complex != 0) |
                                  (p->user ? 2 + 4 * (uint64_t)(p->user->commutative != 0) : 0));
    for (size_t i = 0; i < sizeof p->also / sizeof p->also[0] && p->also[i]; i++)
        hash = question_add(hash, (uint64_t)p->also[i]);
    return hash;
}

/* The header of this rank's frame. */
static void head(struct task *t) {
    const uint64_t hash = question(t);
    if (t->layout.is_merged)
        merged_fill(t->frame, t->is_in_frame ? t->problem : NULL, t->count, t->words, hash,
                    t->status, t->rank);
    else
        frame_fill(t->frame, t->payload, hash, t->status, t->is_wide, t->rank, t->ranks);
}

static void start(struct task *t, MPI_Comm comm, const struct frame_layout *layout) {
    clear(t, 0, offsetof(struct task, bit_ranges));
    t->bit_ranges.count = 0;
    t->problem = t->ask.problem;
    t->count = t->ask.of == OF_ARRAY ? 1 : t->ask.count;
    t->comm = comm;
    t->type = MPI_DATATYPE_NULL;
    t->learns = !layout;
    t->need = (struct need){NO_FRAME, NO_FRAME};
    const int error = attribute_of(comm, &t->attribute);
    if (t->attribute) {
        t->rank = t->attribute->rank;
        t->ranks = t->attribute->ranks;
    } else {
        MPI_Comm_rank(comm, &t->rank);
        MPI_Comm_size(comm, &t->ranks);
        give_up(t, error == MPI_ERR_NO_MEM ? TALLY_ENOMEM : TALLY_ELOST,
                "nothing can be kept with the communicator");
    }
    t->layout = layout ? *layout : t->attribute ? t->attribute->layout : FIRST_LAYOUT;
    t->payload = t->layout.is_merged ? (int)MERGED_HEAD : frame_payload(t->ranks);
    clear(t->frame, 0, (size_t)t->layout.words * sizeof *t->frame);
}

/* Returns whether this rank gets what comes of it. */
static int is_wanted(const struct task *t) {
    return t->ask.root == ALL_RANKS || t->ask.root == t->rank;
}

static int64_t *payload(struct task *t) {
    return t->frame + t->payload;
}

/* Room for the blocks of all results. */
static void make_blocks(struct task *t, size_t count) {
    t->blocks = count;
    int error = block_op(&t->op);
    if (error == MPI_SUCCESS) error = block_type(&t->kind, &t->type);
    if (error != MPI_SUCCESS || count > INT_MAX) {
        give_up(t, TALLY_EINVAL, "the message is longer than MPI can send");
        return;
    }
    t->block = get_memory(t, count, block_bytes(&t->kind));
    t->merged = get_memory(t, count, block_bytes(&t->kind));
    t->loaded = get_memory(t, count, sizeof *t->loaded);
    for (size_t i = 0; i < count && t->loaded; i++)
        t->loaded[i] = NULL;
}

static struct block *block_at(const struct task *t, struct block *blocks, size_t i) {
    return (struct block *)((char *)blocks + i * block_bytes(&t->kind));
}

/* Words of the frame behind its header. */
static int room(const struct task *t) {
    return t->layout.words - t->payload;
}

/* Returns the size of an added frame with room for all of `words` words. */
static int added_need(const struct task *t, size_t words) {
    const size_t all = (size_t)frame_payload(t->ranks) + words;
    return all <= FRAME_MOST ? (int)all : NO_FRAME;
}

/* What a merged frame takes for `count` states of so many words. */
static int merged_need(size_t count, size_t merge_words) {
    size_t all;
    if (merge_words == 0 || __builtin_mul_overflow(count, merge_words, &all)) return NO_FRAME;
    return all <= FRAME_MOST - MERGED_HEAD ? (int)all + MERGED_HEAD : NO_FRAME;
}

/* Returns room for `count` words. */
static int64_t *room_for_words(struct task *t, size_t count) {
    t->all_words = count;
    if (count <= FEW_WORDS) return t->word = t->few_words;
    return t->word = t->own_words = get_memory(t, count, sizeof *t->word);
}

/* Returns how many words there are in all; where they are put, and which of them the frame
 * takes. */
static int64_t *make_words(struct task *t, size_t count) {
    const int payload_at = frame_payload(t->ranks);
    size_t all;
    if (__builtin_mul_overflow(t->words, count, &all) || all > INT_MAX) {
        give_up(t, TALLY_EINVAL, "the message is longer than MPI can send");
        return NULL;
    }
    t->need.added = added_need(t, all);
    if (!t->layout.is_merged)
        bit_ranges_of(all, FRAME_WORDS - payload_at, t->ranks, &t->bit_ranges);
    t->is_in_frame = !t->layout.is_merged && all <= (size_t)room(t);
    if (!t->is_in_frame) return room_for_words(t, all);
    t->all_words = all;
    return t->word = payload(t);
}

/* Packs the ranges of the words that the frame takes. If the frame takes all words, the ranks still
 * find out whether ranges would have done, to choose the next frame's layout. */
static void pack_ranges(struct task *t) {
    int64_t unused[FRAME_WORDS];
    if (t->status != TALLY_OK || !t->bit_ranges.count) return;
    if (!t->is_in_frame)
        t->is_wide = bit_ranges_pack(&t->bit_ranges, payload(t), t->word);
    else if (t->all_words > (size_t)(FRAME_WORDS - t->payload))
        t->is_wide = bit_ranges_pack(&t->bit_ranges, unused, t->word);
}

/* Feeds our own state with this rank's elements of result i of a shape, or of the array. */
static tally_status feed_own(const struct task *t, size_t i) {
    const struct ask *a = &t->ask;
    if (t->shaped) return shaped_feed(t->shaped, t->own, i);
    return a->is_resident ? tally_state_feed_resident(t->own, a->device, (void *)(uintptr_t)a->x,
                                                      (void *)(uintptr_t)a->y, a->n)
                          : tally_state_feed(t->own, a->device, a->x, a->y, a->n);
}

/* The state of result i. That of a shape's is our own one, until the next is asked for. */
static tally_status state_of(const struct task *t, size_t i, const tally_state **out) {
    *out = t->own ? t->own : t->state[i];
    if (!t->own) return TALLY_OK;
    if (i > 0) tally_state_clear(t->own);
    return feed_own(t, i);
}

/* The states, to be merged: in the frame, or each of them behind a head of its own in the message that follows. */
static void pack_merged(struct task *t) {
    const size_t each = t->is_in_frame ? t->words : MERGED_HEAD + t->words;
    int64_t *word = t->is_in_frame ? t->frame + MERGED_HEAD : NULL;
    size_t all;
    int error = MPI_SUCCESS;
    if (__builtin_mul_overflow(each, t->count, &all) || t->count > INT_MAX)
        give_up(t, TALLY_EINVAL, "the message is longer than MPI can send");
    else if (!word)
        word = room_for_words(t, all);
    if (t->status == TALLY_OK && !t->is_in_frame) error = merged_mpi(each, &t->type, &t->op);
    if (error != MPI_SUCCESS) give_up(t, TALLY_ELOST, "MPI takes no operator of ours");
    t->word = word;
    for (size_t i = 0; i < t->count && t->status == TALLY_OK; i++, word += each) {
        if (!t->is_in_frame) merged_fill(word, t->problem, 1, t->words, 0, TALLY_OK, t->rank);
        const tally_state *state;
        tally_status s = state_of(t, i, &state);
        if (s == TALLY_OK)
            s = tally_state_to_merge_words(state, t->is_in_frame ? word : word + MERGED_HEAD);
        if (s != TALLY_OK) give_up(t, s, NULL);
    }
}

/* Puts this rank's states into the message. */
static void pack_states(struct task *t) {
    if (t->route == ROUTE_WORDS) {
        int64_t *word = make_words(t, t->count);
        for (size_t i = 0; i < t->count && t->status == TALLY_OK; i++) {
            const tally_state *state;
            tally_status s = state_of(t, i, &state);
            if (s == TALLY_OK) s = tally_state_to_words(state, word + i * t->words);
            if (s != TALLY_OK) give_up(t, s, NULL);
        }
        pack_ranges(t);
        return;
    }
    if (t->route == ROUTE_MERGED) {
        pack_merged(t);
        return;
    }
    for (size_t i = 0; i < t->count && t->block && t->status == TALLY_OK; i++) {
        const tally_state *state;
        const tally_status s = state_of(t, i, &state);
        if (s != TALLY_OK) give_up(t, s, NULL);
        block_save(block_at(t, t->block, i), &t->kind, state);
    }
}

/* Finds the route of states of the problem, and the room that their message needs. *none becomes one of no
 * elements. */
static void plan_states(struct task *t, size_t count, tally_state **none) {
    size_t words = 0, merge_words = 0;
    const tally_status s = spare_take(t->problem, none, &words, &merge_words);
    if (s != TALLY_OK) {
        give_up(t, s, NULL);
        return;
    }
    t->need.merged = merged_need(count, merge_words);
    t->is_in_frame = t->layout.is_merged && t->need.merged <= t->layout.words;
    t->words = merge_words;
    t->route = words > 0 && !t->is_in_frame ? ROUTE_WORDS : ROUTE_MERGED;
    if (merge_words > 0) return;
    t->route = ROUTE_BLOCKS;
    t->kind = (struct block_kind){t->problem, 0, block_room(t->problem, *none)};
    make_blocks(t, count);
}

/* ---- One array ---- */

static int is_alone(const tally_problem *p) {
    return !p->also[0] && !p->fast;
}

/* Words of the frame for each rank's own: whether it has them now. If they could be had it is noted. */
static int has_slots(struct task *t, size_t words) {
    const size_t all = (size_t)frame_payload(t->ranks) + words * (size_t)t->ranks;
    if (all <= SLOTS_MOST) t->need.added = (int)all;
    return !t->layout.is_merged && all <= (size_t)t->layout.words;
}

/* Returns the values' route without a frame's room in mind; ROUTE_MERGED stands for all routes by a
 * state's words. */
static enum route route_of_values(struct task *t) {
    const tally_problem *p = t->problem;
    if (has_tree(p)) return ROUTE_TREE;
    if (is_alone(p)) switch (p->op) {
        case TALLY_AND:
        case TALLY_OR:
        case TALLY_XOR:
        case TALLY_MIN:
        case TALLY_MAX:
        case TALLY_MINMAX:
        case TALLY_NORMINF:
            return has_slots(t, t->values) ? ROUTE_KEYS : ROUTE_MERGED;
        default:
            break;
        }
    return has_triple(p) && has_slots(t, TRIPLE_WORDS) ? ROUTE_TRIPLE : ROUTE_MERGED;
}

static int is_of_bits(const struct task *t) {
    return t->problem->op == TALLY_AND || t->problem->op == TALLY_OR || t->problem->op == TALLY_XOR;
}

/* The i-th of the values is a greatest one. */
static int is_greatest(const struct task *t, size_t i) {
    return tally_problem_value_op(t->problem, i) != TALLY_MIN;
}

/* A value's key: its bits where these are combined one by one, and they are all there is. */
static void pack_keys(struct task *t) {
    int64_t *key = payload(t) + t->values * (size_t)t->rank;
    for (size_t i = 0; i < t->values; i++)
        key[i] = is_of_bits(t) ? (int64_t)tally_value_bits(&t->given.value[i])
                               : order_key(&t->given.value[i], is_greatest(t, i));
}

static int64_t combine_keys(tally_op op, int64_t a, int64_t b) {
    if (op == TALLY_AND) return a & b;
    if (op == TALLY_OR) return a | b;
    if (op == TALLY_XOR) return a ^ b;
    return a < b ? a : b;
}

static void unpack_keys(struct task *t) {
    const int64_t *key = payload(t);
    for (size_t i = 0; i < t->values * (size_t)t->ranks; i++)
        t->key[i % t->values] =
            i < t->values ? key[i] : combine_keys(t->problem->op, t->key[i % t->values], key[i]);
}

static void unpack_thirds(struct task *t) {
    const int64_t *word = payload(t);
    t->triple = (struct triple){word[0], word[1], word[2]};
    for (size_t i = TRIPLE_WORDS; i < TRIPLE_WORDS * (size_t)t->ranks; i += TRIPLE_WORDS)
        triple_merge(t->problem, &t->triple, &(struct triple){word[i], word[i + 1], word[i + 2]});
}

static tally_status reduce_here(const struct task *t, tally_value *out) {
    const struct ask *a = &t->ask;
    return a->is_resident ? tally_reduce_resident(a->device, t->problem, (void *)(uintptr_t)a->x,
                                                  (void *)(uintptr_t)a->y, a->n, out)
                          : tally_reduce(a->device, t->problem, a->x, a->y, a->n, out);
}

static void begin_triple(struct task *t) {
    size_t words, merge_words;
    tally_status s = spare_take(t->problem, &t->own, &words, &merge_words);
    if (s == TALLY_OK) s = feed_own(t, 0);
    if (s == TALLY_OK) s = triple_of(t->problem, t->own, &t->triple);
    if (s != TALLY_OK)
        give_up(t, s, NULL);
    else
        memcpy(payload(t) + TRIPLE_WORDS * t->rank, &t->triple, sizeof t->triple);
}

/* This rank's elements of result i. */
static uint64_t length_of(const struct task *t, size_t i) {
    return t->shaped ? shaped_length(t->shaped, i) : t->ask.n;
}

/* Over the tree elements are reduced when it is known where they stand. */
static void begin_tree(struct task *t) {
    t->route = ROUTE_TREE;
    t->place = t->place_of_one;
    if (t->shaped) t->place = t->own_places = get_memory(t, t->count, 2 * sizeof *t->place);
    for (size_t i = 0; i < t->count && t->place; i++)
        t->place[i] = length_of(t, i);
    t->has_places = !t->layout.is_merged && t->count <= (size_t)(room(t) / t->ranks);
    if (t->has_places && t->place)
        memcpy(payload(t) + t->count * (size_t)t->rank, t->place, t->count * sizeof *t->place);
}

static void begin_array(struct task *t) {
    tally_status s = tally_problem_values(t->problem, &t->values);
    if (s == TALLY_OK && !t->ask.out && is_wanted(t)) {
        give_up(t, TALLY_EINVAL, "out is NULL");
        return;
    }
    if (s == TALLY_OK) t->route = route_of_values(t);
    if (t->route != ROUTE_MERGED) memset(&t->given, 0, sizeof t->given);
    if (s == TALLY_OK && t->route == ROUTE_KEYS) {
        s = reduce_here(t, t->given.value);
        if (s != TALLY_OK)
            give_up(t, s, NULL);
        else
            pack_keys(t);
        return;
    }
    if (s == TALLY_OK && t->route == ROUTE_TRIPLE) {
        begin_triple(t);
        return;
    }
    const int tree = t->route == ROUTE_TREE;
    if (s == TALLY_OK) plan_states(t, 1, &t->own);
    t->state = &t->own;
    const int goes_on = s == TALLY_OK && t->status == TALLY_OK;
    if (goes_on && tree) {
        begin_tree(t);
        /* It is too late to say so when the elements are reduced: the others count on them then. */
        if (t->ask.n > 0 && !t->ask.x) give_up(t, TALLY_EINVAL, "x is NULL");
    } else if (goes_on) {
        pack_states(t);
    }
    if (s != TALLY_OK) give_up(t, s, NULL);
}

/* ---- Many states ---- */

/* Returns whether the state is one of the problem: its saved form says of which it is. */
static tally_status check_state(const struct task *t, const tally_state *state,
                                const unsigned char *none, unsigned char *bytes) {
    const size_t size = tally_state_size(t->none);
    if (has_tree(t->problem)) return TALLY_OK; /* blocks are checked when they are merged */
    if (tally_state_size(state) != size) return TALLY_EINVAL;
    const tally_status s = tally_state_save(state, bytes, size);
    if (s != TALLY_OK) return s;
    return memcmp(none + SAVED_PROBLEM, bytes + SAVED_PROBLEM, SAVED_N - SAVED_PROBLEM) == 0
               ? TALLY_OK
               : TALLY_EINVAL;
}

static void check_states(struct task *t) {
    const size_t size = tally_state_size(t->none);
    unsigned char *bytes = get_memory(t, 2, size);
    tally_status s = bytes ? tally_state_save(t->none, bytes, size) : TALLY_ENOMEM;
    for (size_t i = 0; i < t->count && s == TALLY_OK; i++) {
        s = t->state[i] ? check_state(t, t->state[i], bytes, bytes + size) : TALLY_EINVAL;
        if (s == TALLY_EINVAL) give_up(t, s, "a state is NULL, or one of another problem");
    }
    if (s != TALLY_OK) give_up(t, s, NULL);
    free(bytes);
}

static void begin_states(struct task *t) {
    t->state = t->ask.state;
    if (!t->state && t->count > 0)
        give_up(t, TALLY_EINVAL, "the states are NULL");
    else
        plan_states(t, t->count, &t->none);
    if (t->status == TALLY_OK) check_states(t);
    if (t->status == TALLY_OK) pack_states(t);
}

/* ---- Groups ---- */

/* Whether they are the groups of the problem, as many as `count`: by their saved form, which is of the same length
 * for all that are, and says of what they are. */
static void plan_groups(struct task *t) {
    tally_groups *none = NULL;
    tally_status s = tally_groups_create(t->problem, t->count, &none);
    if (s == TALLY_OK && has_tree(t->problem))
        give_up(t, TALLY_EUNSUPPORTED, "groups over the canonical tree cannot be merged");
    const size_t size = tally_groups_size(none), theirs = tally_groups_size(*t->groups);
    if (s == TALLY_OK && (size == 0 || theirs == 0))
        give_up(t, TALLY_ENOMEM, "no memory for the message");
    else if (s == TALLY_OK && size != theirs)
        give_up(t, TALLY_EINVAL, "these are groups of another problem, or not as many");
    if (s == TALLY_OK) s = tally_groups_merge(none, *t->groups);
    if (s != TALLY_OK) give_up(t, s, NULL);
    t->words = tally_groups_words(none);
    t->kind = (struct block_kind){t->problem, 1, (size + 7) / 8 * 8};
    if (is_wanted(t) || t->shaped)
        tally_groups_destroy(none);
    else
        t->spare_groups = none;
}

static void pack_groups(struct task *t) {
    if (t->words > 0) {
        int64_t *word = make_words(t, 1);
        const tally_status s = word ? tally_groups_to_words(*t->groups, word) : TALLY_ENOMEM;
        if (s != TALLY_OK) give_up(t, s, NULL);
        pack_ranges(t);
        return;
    }
    t->route = ROUTE_BLOCKS;
    make_blocks(t, 1);
    if (t->block) block_save_groups(t->block, &t->kind, *t->groups);
}

static void begin_groups(struct task *t, tally_groups **groups) {
    t->groups = groups;
    if (!groups || !*groups)
        give_up(t, TALLY_EINVAL, "the groups are NULL");
    else
        plan_groups(t);
    if (t->status == TALLY_OK) pack_groups(t);
}

/* ---- Shapes ---- */

static void begin_shape(struct task *t) {
    const struct ask *a = &t->ask;
    t->shaped = &t->part;
    shaped_begin(t->shaped, a->device, a->is_resident, t->problem, a->shape, a->x, a->y, a->outs,
                 is_wanted(t));
    t->count = t->shaped->results;
    if (t->shaped->status != TALLY_OK) {
        give_up(t, t->shaped->status, t->shaped->line);
        return;
    }
    if (t->shaped->groups) {
        begin_groups(t, &t->shaped->groups);
        return;
    }
    plan_states(t, t->count, &t->own);
    if (t->status != TALLY_OK) return;
    if (has_tree(t->problem))
        begin_tree(t);
    else
        pack_states(t);
}

/* ---- All of them ---- */

void task_begin(struct task *t, MPI_Comm comm, const struct frame_layout *layout) {
    start(t, comm, layout);
    const int root = t->ask.root;
    if (root != ALL_RANKS && (root < 0 || root >= t->ranks))
        give_up(t, TALLY_EINVAL, "root is no rank of the communicator");
    else if (!t->problem)
        give_up(t, TALLY_EINVAL, "the problem is NULL");
    if (t->status == TALLY_OK) switch (t->ask.of) {
        case OF_ARRAY:
            begin_array(t);
            break;
        case OF_STATES:
            begin_states(t);
            break;
        case OF_GROUPS:
            begin_groups(t, t->ask.groups);
            break;
        case OF_SHAPE:
            begin_shape(t);
            break;
        }
    head(t);
}

/* ---- Taken in ------------------------------------------------------------------------------- */

/* The values of one array are known. */
static void give_values(struct task *t) {
    t->step = STEP_DONE;
    if (t->status != TALLY_OK || !t->ask.out || !is_wanted(t)) return;
    memcpy(t->ask.out, t->given.value, t->values * sizeof *t->ask.out);
}

/* All ranks' keys are known, and so the least. */
static void take_keys(struct task *t) {
    for (size_t i = 0; i < t->values; i++)
        if (is_of_bits(t))
            set_bits(&t->given.value[i], (uint64_t)t->key[i]);
        else
            from_order_key(&t->given.value[i], t->key[i], is_greatest(t, i));
    give_values(t);
}

/* What all ranks know is known. */
static void take_thirds(struct task *t) {
    const tally_status s = triple_value(t->problem, &t->triple, t->given.value);
    outcome(t, s);
    if (s == TALLY_ERANGE) snprintf(t->line, sizeof t->line, "%s", tally_status_text(s));
    give_values(t);
}

/* The answer for a shape is known. */
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

/* Our own state becomes that of one result after the other. */
static tally_status take_own(struct task *t, from_words *from, size_t step, const int64_t *word) {
    tally_status s = TALLY_OK;
    for (size_t i = 0; i < t->count && s == TALLY_OK; i++) {
        s = from(t->own, word + i * step);
        if (s == TALLY_OK && t->shaped) shaped_lower_state(t->shaped, i, t->own);
    }
    return s == TALLY_OK && !t->shaped ? tally_state_value(t->own, t->given.value) : s;
}

/* The caller's states. Where words cannot become a state, on all ranks alike, none does: all are tried first. */
static tally_status take_caller(const struct task *t, from_words *from, size_t step,
                                const int64_t *word) {
    tally_status s = TALLY_OK;
    const int changes = is_wanted(t);
    for (size_t i = 0; i < t->count && (t->count > 1 || !changes) && s == TALLY_OK; i++)
        s = from(t->none, word + i * step);
    for (size_t i = 0; i < t->count && changes && s == TALLY_OK; i++)
        s = from(t->state[i], word + i * step);
    return s;
}

/* The words of all ranks become states. */
static void take_words(struct task *t) {
    const int merged = t->route == ROUTE_MERGED;
    from_words *const from = merged ? tally_state_from_merge_words : tally_state_from_words;
    const size_t head = merged && !t->is_in_frame ? MERGED_HEAD : 0;
    const int64_t *word = t->word + head;
    tally_status s = TALLY_OK;
    if (t->groups) {
        s = tally_groups_from_words(t->spare_groups ? t->spare_groups : *t->groups, word);
        outcome(t, s);
        if (s == TALLY_OK && t->shaped) write_groups(t);
        return;
    }
    s = t->own ? take_own(t, from, head + t->words, word)
               : take_caller(t, from, head + t->words, word);
    outcome(t, s);
    if (!t->shaped)
        give_values(t);
    else if (s == TALLY_OK)
        write_shaped(t);
}

static const char *merge_text(tally_status s) {
    return s == TALLY_EINVAL
               ? "the states of a rank and the next do not follow on one another, or are of other "
                 "problems: over the canonical tree each stands where tally_state_begin_at() says"
           : s == TALLY_EUNSUPPORTED ? "groups over the canonical tree cannot be merged"
                                     : tally_status_text(s);
}

/* Makes the line of rank `from` every rank's. */
static void take_reason_of(struct task *t, int from) {
    t->reason_from = from;
    t->step = STEP_REASON;
}

/* The ranks do not agree, or not all can go on. */
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
    else
        snprintf(t->line, sizeof t->line,
                 "the ranks do not all ask for the same; this one for %s of %s, %zu result%s",
                 t->problem && tally_op_name(t->problem->op) ? tally_op_name(t->problem->op) : "?",
                 t->problem && tally_type_name(t->problem->type) ? tally_type_name(t->problem->type)
                                                                 : "?",
                 t->count, t->count == 1 ? "" : "s");
}

/* One of the merged blocks says that two could not be merged; so it does on every rank that has them. */
static tally_status merged_status(const struct task *t) {
    for (size_t i = 0; i < t->blocks; i++) {
        const tally_status s = (tally_status)block_at(t, t->merged, i)->status;
        if (s != TALLY_OK) return s;
    }
    return TALLY_OK;
}

static tally_status load_block(const struct task *t, size_t i, tally_state **out) {
    const struct block *block = block_at(t, t->merged, i);
    return tally_state_load(block->bytes, (size_t)block->size, t->problem, out);
}

/* Arrays: rank 0 has the merged blocks, and lowers them for all. */
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

/* Rank 0 has the values, or its line says why there are none. */
static void take_values(struct task *t) {
    const struct answer *answer = t->shaped ? t->shaped->answer : NULL;
    if (answer && (answer->status == TALLY_OK || answer->which >= 0)) {
        write_shaped(t);
        return;
    }
    t->status = (tally_status)(answer ? answer->status : t->given.status);
    give_values(t);
    if (t->status != TALLY_OK) take_reason_of(t, 0);
}

/* Many states: all ranks have the merged blocks. */
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
        if (s != TALLY_OK) give_up(t, s, NULL);
    }
    t->layout = FIRST_LAYOUT;
    t->payload = frame_payload(t->ranks);
    clear(t->frame, 0, FRAME_WORDS * sizeof *t->frame);
    frame_fill(t->frame, t->payload, 0, t->status, 0, t->rank, t->ranks);
    t->step = STEP_AGREE;
}

/* All have loaded them. What is loaded becomes the caller's states: it is merged into nothing, where it stands. */
static void take_blocks(struct task *t) {
    const struct verdict v = frame_read(t->frame, t->payload, t->ranks);
    if (v.status != TALLY_OK) {
        refuse(t, &v);
        return;
    }
    tally_status s = TALLY_OK;
    t->step = STEP_DONE;
    if (!is_wanted(t) && !t->shaped) return;
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
                                 saved_word(block_at(t, t->merged, i)->bytes, SAVED_FIRST));
        if (s == TALLY_OK) s = tally_state_merge(t->state[i], t->loaded[i]);
    }
    outcome(t, s);
}

/* It is known where this rank's elements stand: they are reduced now. */
static void take_place(struct task *t) {
    const uint64_t *before = t->place + t->count;
    for (size_t i = 0; i < t->count; i++) {
        struct block *block = block_at(t, t->block, i);
        if (i > 0) tally_state_clear(t->own);
        tally_status s = tally_state_begin_at(t->own, t->rank > 0 ? before[i] : 0);
        if (s == TALLY_OK) s = feed_own(t, i);
        block_save(block, &t->kind, t->own);
        if (s != TALLY_OK) block->status = s;
    }
    t->step = STEP_MERGE;
}

/* Takes the words of each rank from the frame. */
static void take_places(struct task *t) {
    uint64_t *before = t->place + t->count;
    for (size_t i = 0; i < t->count; i++)
        before[i] = 0;
    for (size_t i = 0; i < t->count * (size_t)t->rank; i++)
        before[i % t->count] += (uint64_t)payload(t)[i];
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
        if (!t->is_in_frame) bit_ranges_unpack(&t->bit_ranges, t->word, t->all_words, payload(t));
        take_words(t);
        break;
    case ROUTE_KEYS:
        unpack_keys(t);
        take_keys(t);
        break;
    case ROUTE_TRIPLE:
        unpack_thirds(t);
        take_thirds(t);
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

/* ---- Issued --------------------------------------------------------------------------------- */

/* Combines all ranks' words in place: added, or merged. */
static int all_words(int64_t *word, size_t count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                     MPI_Request *r) {
    return r ? MPI_Iallreduce(MPI_IN_PLACE, word, (int)count, type, op, comm, r)
             : MPI_Allreduce(MPI_IN_PLACE, word, (int)count, type, op, comm);
}

static int issue_frame(struct task *t, MPI_Comm comm, MPI_Request *r) {
    MPI_Datatype type;
    MPI_Op op;
    if (!t->layout.is_merged)
        return all_words(t->frame, (size_t)t->layout.words, MPI_INT64_T, MPI_SUM, comm, r);
    const int error = frame_datatype(t->attribute, &type, &op);
    return error == MPI_SUCCESS ? all_words(t->frame, 1, type, op, comm, r) : error;
}

/* Rank 0's values and status to all. (They are plain bytes.) */
static int share_values(struct task *t, MPI_Comm comm, MPI_Request *r) {
    void *at = t->shaped ? (void *)t->shaped->answer : &t->given;
    const int size = t->shaped ? (int)t->shaped->answer_bytes : (int)(sizeof t->given);
    return r ? MPI_Ibcast(at, size, MPI_BYTE, 0, comm, r) : MPI_Bcast(at, size, MPI_BYTE, 0, comm);
}

int task_issue(struct task *t, MPI_Comm comm, MPI_Request *r) {
    const int count = (int)t->blocks;
    switch (t->step) {
    case STEP_FRAME:
    case STEP_AGREE:
        return issue_frame(t, comm, r);
    case STEP_WORDS:
        return all_words(t->word, t->all_words, MPI_INT64_T, MPI_SUM, comm, r);
    case STEP_MERGED:
        return all_words(t->word, t->count, t->type, t->op, comm, r);
    case STEP_PLACE:
        return r ? MPI_Iexscan(t->place, t->place + t->count, count, MPI_UINT64_T, MPI_SUM, comm, r)
                 : MPI_Exscan(t->place, t->place + t->count, count, MPI_UINT64_T, MPI_SUM, comm);
    case STEP_MERGE:
        return r ? MPI_Ireduce(t->block, t->merged, count, t->type, t->op, 0, comm, r)
                 : MPI_Reduce(t->block, t->merged, count, t->type, t->op, 0, comm);
    case STEP_VALUES:
        return share_values(t, comm, r);
    case STEP_SHARE:
        return r ? MPI_Ibcast(t->merged, count, t->type, 0, comm, r)
                 : MPI_Bcast(t->merged, count, t->type, 0, comm);
    case STEP_REASON:
        return r ? MPI_Ibcast(t->line, sizeof t->line, MPI_CHAR, t->reason_from, comm, r)
                 : MPI_Bcast(t->line, sizeof t->line, MPI_CHAR, t->reason_from, comm);
    case STEP_DONE:
        break;
    }
    return MPI_SUCCESS;
}

tally_status task_end(struct task *t) {
    const tally_status s = t->status;
    if (s != TALLY_OK) explain(s, "%s", t->line);
    if (t->type != MPI_DATATYPE_NULL) MPI_Type_free(&t->type);
    spare_give(t->problem, t->own);
    spare_give(t->problem, t->none);
    free(t->own_words);
    free(t->block);
    free(t->merged);
    for (size_t i = 0; i < t->blocks && t->loaded; i++)
        tally_state_destroy(t->loaded[i]);
    tally_groups_destroy(t->loaded_groups);
    tally_groups_destroy(t->spare_groups);
    free(t->loaded);
    free(t->own_places);
    if (t->shaped) shaped_end(t->shaped);
    return s;
}

tally_status task_run(struct task *t) {
    while (t->step != STEP_DONE) {
        const int error = task_issue(t, t->comm, NULL);
        if (error == MPI_SUCCESS)
            task_take(t);
        else
            task_lost(t, error);
    }
    return task_end(t);
}
