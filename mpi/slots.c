/* slots.c - see slots.h. */
#include "slots.h"

#include "keys.h"
#include "message.h"
#include "spare.h"

#include <stdio.h>
#include <string.h>

static int is_alone(const tally_problem *p) {
    return !p->also[0] && !p->fast;
}

/* Returns whether the frame has `words` words for each rank. If a longer frame could have them, its length is
 * noted. */
static int has_slots(struct task *t, size_t words) {
    const size_t all = (size_t)frame_payload(t->ranks) + words * (size_t)t->ranks;
    if (all <= SLOTS_MOST) t->need.added = (int)all;
    return !t->layout.is_merged && all <= (size_t)t->layout.words;
}

enum route slots_route(struct task *t) {
    const tally_problem *p = t->problem;
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

/* ---- Keys ---- */

static int is_of_bits(const struct task *t) {
    return t->problem->op == TALLY_AND || t->problem->op == TALLY_OR || t->problem->op == TALLY_XOR;
}

/* Returns whether the i-th value is a maximum. */
static int is_greatest(const struct task *t, size_t i) {
    return tally_problem_value_op(t->problem, i) != TALLY_MIN;
}

static tally_status reduce_here(const struct task *t, tally_value *out) {
    const struct ask *a = &t->ask;
    return a->is_resident ? tally_reduce_resident(a->device, t->problem, (void *)(uintptr_t)a->x,
                                                  (void *)(uintptr_t)a->y, a->n, out)
                          : tally_reduce(a->device, t->problem, a->x, a->y, a->n, out);
}

/* Puts the values' keys into this rank's words: the bits for and, or and xor; else the order keys. */
static void pack_keys(struct task *t) {
    int64_t *key = task_payload(t) + t->values * (size_t)t->rank;
    for (size_t i = 0; i < t->values; i++)
        key[i] = is_of_bits(t) ? (int64_t)tally_value_bits(&t->given.value[i])
                               : order_key(&t->given.value[i], is_greatest(t, i));
}

static void begin_keys(struct task *t) {
    const tally_status s = reduce_here(t, t->given.value);
    if (s != TALLY_OK)
        task_give_up(t, s, NULL);
    else
        pack_keys(t);
}

static int64_t combine_keys(tally_op op, int64_t a, int64_t b) {
    if (op == TALLY_AND) return a & b;
    if (op == TALLY_OR) return a | b;
    if (op == TALLY_XOR) return a ^ b;
    return a < b ? a : b;
}

static void unpack_keys(struct task *t) {
    const int64_t *key = task_payload(t);
    for (size_t i = 0; i < t->values * (size_t)t->ranks; i++)
        t->key[i % t->values] =
            i < t->values ? key[i] : combine_keys(t->problem->op, t->key[i % t->values], key[i]);
}

/* Makes values of all ranks' combined keys, and gives them. */
static void take_keys(struct task *t) {
    for (size_t i = 0; i < t->values; i++)
        if (is_of_bits(t))
            set_bits(&t->given.value[i], (uint64_t)t->key[i]);
        else
            from_order_key(&t->given.value[i], t->key[i], is_greatest(t, i));
    task_give_values(t);
}

/* ---- Triples ---- */

static void begin_triple(struct task *t) {
    size_t words, merge_words;
    tally_status s = spare_take(t->problem, &t->own, &words, &merge_words);
    if (s == TALLY_OK) s = message_feed_own(t, 0);
    if (s == TALLY_OK) s = triple_of(t->problem, t->own, &t->triple);
    if (s != TALLY_OK)
        task_give_up(t, s, NULL);
    else
        memcpy(task_payload(t) + TRIPLE_WORDS * t->rank, &t->triple, sizeof t->triple);
}

static void unpack_thirds(struct task *t) {
    const int64_t *word = task_payload(t);
    t->triple = (struct triple){word[0], word[1], word[2]};
    for (size_t i = TRIPLE_WORDS; i < TRIPLE_WORDS * (size_t)t->ranks; i += TRIPLE_WORDS)
        triple_merge(t->problem, &t->triple, &(struct triple){word[i], word[i + 1], word[i + 2]});
}

/* Gives the value of all ranks' merged triples. Every rank has it by itself, without a further message. */
static void take_thirds(struct task *t) {
    const tally_status s = triple_value(t->problem, &t->triple, t->given.value);
    task_outcome(t, s);
    if (s == TALLY_ERANGE) snprintf(t->line, sizeof t->line, "%s", tally_status_text(s));
    task_give_values(t);
}

void slots_begin(struct task *t) {
    memset(&t->given, 0, sizeof t->given);
    if (t->route == ROUTE_KEYS)
        begin_keys(t);
    else
        begin_triple(t);
}

void slots_take(struct task *t) {
    if (t->route == ROUTE_KEYS) {
        unpack_keys(t);
        take_keys(t);
    } else {
        unpack_thirds(t);
        take_thirds(t);
    }
}
