/* begin.c - see begin.h. */
#include "begin.h"

#include "message.h"
#include "slots.h"

#include <stdlib.h>
#include <string.h>

static int is_of_groups(const struct task *t) {
    return t->ask.of == OF_SHAPE && t->ask.shape && t->ask.shape->cut == TALLY_GROUPS;
}

/* Returns a hash of what all ranks must ask for alike. */
static uint64_t question(const struct task *t) {
    const tally_problem *p = t->problem;
    const int by_groups =
        t->groups != NULL; /* a shape may be by groups or by states: their messages differ */
    uint64_t ddof, mean[2], hash = question_add(QUESTION_START, (uint64_t)t->ask.of);
    hash = question_add(hash, t->count);
    hash = question_add(hash, (uint64_t)t->ask.root);
    hash = question_add(hash, (uint64_t)by_groups | 2 * (uint64_t)is_of_groups(t));
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

/* Writes the header of this rank's frame. */
static void head(struct task *t) {
    const uint64_t hash = question(t);
    if (t->layout.is_merged)
        merged_fill(t->frame, t->is_in_frame ? t->problem : NULL, t->count, t->words, hash,
                    t->status, t->rank);
    else
        frame_fill(t->frame, t->payload, hash, t->status, t->is_wide, t->rank, t->ranks);
}

static void start(struct task *t, MPI_Comm comm, const struct frame_layout *layout) {
    task_clear(t, 0, offsetof(struct task, bit_ranges));
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
        task_give_up(t, error == MPI_ERR_NO_MEM ? TALLY_ENOMEM : TALLY_ELOST,
                     "nothing can be kept with the communicator");
    }
    t->layout = layout ? *layout : t->attribute ? t->attribute->layout : FIRST_LAYOUT;
    t->payload = t->layout.is_merged ? (int)MERGED_HEAD : frame_payload(t->ranks);
    task_clear(t->frame, 0, (size_t)t->layout.words * sizeof *t->frame);
}

/* Returns how many elements of result i this rank has. */
static uint64_t length_of(const struct task *t, size_t i) {
    return t->shaped ? shaped_length(t->shaped, i) : t->ask.n;
}

/* Begins a task over the tree. Its elements are reduced later, when it is known where they stand (take.c). */
static void begin_tree(struct task *t) {
    t->route = ROUTE_TREE;
    t->place = t->place_of_one;
    if (t->shaped) t->place = t->own_places = task_memory(t, t->count, 2 * sizeof *t->place);
    for (size_t i = 0; i < t->count && t->place; i++)
        t->place[i] = length_of(t, i);
    t->has_places = !t->layout.is_merged && t->count <= (size_t)(task_room(t) / t->ranks);
    if (t->has_places && t->place)
        memcpy(task_payload(t) + t->count * (size_t)t->rank, t->place, t->count * sizeof *t->place);
}

static void begin_array(struct task *t) {
    tally_status s = tally_problem_values(t->problem, &t->values);
    if (s == TALLY_OK && !t->ask.out && task_is_wanted(t)) {
        task_give_up(t, TALLY_EINVAL, "out is NULL");
        return;
    }
    const int tree = s == TALLY_OK && has_tree(t->problem);
    if (s == TALLY_OK) t->route = tree ? ROUTE_TREE : slots_route(t);
    if (s == TALLY_OK && !tree && t->route != ROUTE_MERGED) {
        slots_begin(t);
        return;
    }
    if (tree) memset(&t->given, 0, sizeof t->given);
    if (s == TALLY_OK) message_plan_states(t, 1, &t->own);
    t->state = &t->own;
    const int goes_on = s == TALLY_OK && t->status == TALLY_OK;
    if (goes_on && tree) {
        begin_tree(t);
        /* A failure when the elements are reduced would come too late: the others count on them then. */
        if (t->ask.n > 0 && !t->ask.x) task_give_up(t, TALLY_EINVAL, "x is NULL");
    } else if (goes_on) {
        message_pack_states(t);
    }
    if (s != TALLY_OK) task_give_up(t, s, NULL);
}

/* ---- Many states ---- */

/* Returns TALLY_OK if the state's saved form says the same of its problem as `none`, that of a state of the
 * problem. */
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
    unsigned char *bytes = task_memory(t, 2, size);
    tally_status s = bytes ? tally_state_save(t->none, bytes, size) : TALLY_ENOMEM;
    for (size_t i = 0; i < t->count && s == TALLY_OK; i++) {
        s = t->state[i] ? check_state(t, t->state[i], bytes, bytes + size) : TALLY_EINVAL;
        if (s == TALLY_EINVAL) task_give_up(t, s, "a state is NULL, or one of another problem");
    }
    if (s != TALLY_OK) task_give_up(t, s, NULL);
    free(bytes);
}

static void begin_states(struct task *t) {
    t->state = t->ask.state;
    if (!t->state && t->count > 0)
        task_give_up(t, TALLY_EINVAL, "the states are NULL");
    else
        message_plan_states(t, t->count, &t->none);
    if (t->status == TALLY_OK) check_states(t);
    if (t->status == TALLY_OK) message_pack_states(t);
}

/* ---- Groups ---- */

/* Plans a reduction of groups, which must be `count` groups of the problem. If they are, their saved form has the
 * length of that of as many new ones, and they can be merged into those. */
static void plan_groups(struct task *t) {
    tally_groups *none = NULL;
    tally_status s = tally_groups_create(t->problem, t->count, &none);
    if (s == TALLY_OK && has_tree(t->problem))
        task_give_up(t, TALLY_EUNSUPPORTED, "groups over the canonical tree cannot be merged");
    const size_t size = tally_groups_size(none), theirs = tally_groups_size(*t->groups);
    if (s == TALLY_OK && (size == 0 || theirs == 0))
        task_give_up(t, TALLY_ENOMEM, "no memory for the message");
    else if (s == TALLY_OK && size != theirs)
        task_give_up(t, TALLY_EINVAL, "these are groups of another problem, or not as many");
    if (s == TALLY_OK) s = tally_groups_merge(none, *t->groups);
    /* The indices of theirs may count within each group. */
    if (s == TALLY_EINVAL && none && tally_groups_index_within(none) == TALLY_OK)
        s = tally_groups_merge(none, *t->groups);
    if (s != TALLY_OK) task_give_up(t, s, NULL);
    t->words = tally_groups_words(none);
    t->kind = (struct block_kind){t->problem, 1, (size + 7) / 8 * 8};
    if (task_is_wanted(t) || t->shaped)
        tally_groups_destroy(none);
    else
        t->spare_groups = none;
}

static void pack_groups(struct task *t) {
    if (t->words > 0) {
        int64_t *word = message_make_words(t, 1);
        const tally_status s = word ? tally_groups_to_words(*t->groups, word) : TALLY_ENOMEM;
        if (s != TALLY_OK)
            task_give_up(t, s, NULL);
        else
            message_check_count(t, word[0]);
        message_pack_ranges(t);
        return;
    }
    t->route = ROUTE_BLOCKS;
    message_make_blocks(t, 1);
    if (t->block) block_save_groups(t->block, &t->kind, *t->groups);
}

static void begin_groups(struct task *t, tally_groups **groups) {
    t->groups = groups;
    if (!groups || !*groups)
        task_give_up(t, TALLY_EINVAL, "the groups are NULL");
    else
        plan_groups(t);
    if (t->status == TALLY_OK) pack_groups(t);
}

/* ---- Shapes ---- */

static void begin_shape(struct task *t) {
    const struct ask *a = &t->ask;
    t->shaped = &t->part;
    shaped_begin(t->shaped, a->device, a->is_resident, t->problem, a->shape, a->x, a->y, a->outs,
                 task_is_wanted(t));
    t->count = t->shaped->results;
    if (t->shaped->status != TALLY_OK) {
        task_give_up(t, t->shaped->status, t->shaped->line);
        return;
    }
    if (t->shaped->groups) {
        begin_groups(t, &t->shaped->groups);
        return;
    }
    message_plan_states(t, t->count, &t->own);
    if (t->status != TALLY_OK) return;
    if (has_tree(t->problem))
        begin_tree(t);
    else
        message_pack_states(t);
}

/* ---- All of them ---- */

void task_begin(struct task *t, MPI_Comm comm, const struct frame_layout *layout) {
    start(t, comm, layout);
    const int root = t->ask.root;
    if (root != ALL_RANKS && (root < 0 || root >= t->ranks))
        task_give_up(t, TALLY_EINVAL, "root is no rank of the communicator");
    else if (!t->problem)
        task_give_up(t, TALLY_EINVAL, "the problem is NULL");
    else if (t->problem->skip_nan)
        task_give_up(t, TALLY_EUNSUPPORTED, "NaNs are not skipped over ranks");
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
