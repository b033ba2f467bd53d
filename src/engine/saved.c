/*
 * saved.c - states as bytes, to keep or to send; and as words that additions combine, their wire form.
 *
 * The bytes, all little-endian:
 *   0    8   "TALLYSTA"
 *   8    1   version, 1
 *   9    1   the element type
 *   10   1   the type asked for, or 0
 *   11   1   1 if the problem is fast
 *   12   1   op
 *   13   8   also[]
 *   21   1   with a user's operator: 2 if it commutes, else 1
 *   22   1   1 if the elements are complex: is_complex of tally_problem
 *   23   1   1 if variances are about a mean that is given, which is not saved: `about` of tally_problem
 *   24   8   ddof, an f64
 *   32   8   n, the elements that the state knows
 *   40   8   the index of the first
 *   48       the words of each of the problem's monoids, 8 bytes each, in the order of enum monoid_id
 *   ...      over the canonical tree: the values of the run's nodes, in the order of the array, 8 bytes each: the
 *            value and then zeros; then the elements of the head, and of the tail, as they are (state.h)
 *   ...  8   FNV-1a hash of all bytes before
 *
 * Sizes follow from what comes before them: which nodes cover a run of leaves, and how long head and tail are,
 * depends on n and the first index alone. Every monoid's words are the same for equal states, so equal states
 * have equal bytes. docs/states.md says it for users.
 */
#include "base/hash.h"
#include "engine/state.h"

#include "base/status.h"
#include "base/types.h"

#include <stdio.h>
#include <string.h>

enum {
    AT_VERSION = 8,
    AT_TYPE = 9,
    AT_OUT = 10,
    AT_FAST = 11,
    AT_OP = 12,
    AT_ALSO = 13,
    AT_USER = 21,
    AT_COMPLEX = 22,
    AT_ABOUT = 23,
    AT_DDOF = 24,
    AT_N = 32,
    AT_FIRST = 40,
    AT_WORDS = 48,
    HASH_BYTES = 8
};
#define ALSO (sizeof((tally_problem *)0)->also / sizeof(tally_op))
_Static_assert(AT_ALSO + ALSO == AT_USER, "a byte for each operator");
_Static_assert(TALLY_USER < 256, "an operator is a byte");

/* No saved state is longer: bytes of a greater size are refused unread. */
#define SAVED_MAX                                                                                  \
    (AT_WORDS + 8 * STATE_WORDS_MAX + 8 * TREE_NODES + 2 * TREE_LEAF * sizeof(union tree_value) +  \
     HASH_BYTES)

static const unsigned char magic[8] = {'T', 'A', 'L', 'L', 'Y', 'S', 'T', 'A'};
#define SAVED_VERSION 1

static void put(unsigned char *bytes, uint64_t word, int size) {
    for (int i = 0; i < size; i++)
        bytes[i] = (unsigned char)(word >> 8 * i);
}

static uint64_t get(const unsigned char *bytes, int size) {
    uint64_t word = 0;
    for (int i = 0; i < size; i++)
        word |= (uint64_t)bytes[i] << 8 * i;
    return word;
}

static uint64_t bits_of(double d) {
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

/* ---- Words of the monoids ------------------------------------------------------------------ */

static size_t count_words(const struct problem *p) {
    size_t words = 0;
    for_monoids(monoid, p) words += monoids[monoid].words(p);
    return words;
}

static void pack(const struct problem *p, const struct state *s, uint64_t *word) {
    for_monoids(monoid, p) {
        monoids[monoid].pack(p, monoid_state_of(s, monoid), word);
        word += monoids[monoid].words(p);
    }
}

/* Makes *s the state of n elements that has these words; returns whether there can be one. */
static int unpack(const struct problem *p, const uint64_t *word, uint64_t n, struct state *s) {
    s->n = n;
    for_monoids(monoid, p) {
        if (!monoids[monoid].unpack(p, word, n, monoid_state(s, monoid))) return 0;
        word += monoids[monoid].words(p);
    }
    return 1;
}

/* ---- The layout of a stretch ----------------------------------------------------------------- */

/* The parts of a stretch over the canonical tree, in the order of its elements. */
struct stretch_layout {
    size_t head, tail; /* elements */
    int nodes;
    unsigned level[TREE_NODES]; /* of each node */
};

/* Finds the layout of a stretch of n elements from `first` on. */
static void lay_out_stretch(uint64_t first, uint64_t n, struct stretch_layout *out) {
    const uint64_t room = stretch_head_room(first);
    out->head = (size_t)(room < n ? room : n);
    out->tail = (size_t)((n - out->head) % TREE_LEAF);
    out->nodes = 0;
    uint64_t at = stretch_first_leaf(first), left = (n - out->head) / TREE_LEAF;
    while (left > 0) { /* the largest node that begins here and ends within the run */
        unsigned level = at ? (unsigned)__builtin_ctzll(at) : 63;
        while (UINT64_C(1) << level > left)
            level--;
        out->level[out->nodes++] = level;
        at += UINT64_C(1) << level;
        left -= UINT64_C(1) << level;
    }
}

static size_t stretch_bytes(const struct problem *p, uint64_t first, uint64_t n) {
    struct stretch_layout layout;
    if (!problem_has(p, MONOID_TREE)) return 0;
    lay_out_stretch(first, n, &layout);
    return 8 * (size_t)layout.nodes + (layout.head + layout.tail) * type_size(p->type);
}

static size_t saved_bytes(const struct problem *p, uint64_t first, uint64_t n) {
    return AT_WORDS + 8 * count_words(p) + stretch_bytes(p, first, n) + HASH_BYTES;
}

static void save_stretch(const tally_state *s, unsigned char *bytes) {
    const struct stretch *t = s->stretch;
    const size_t element = type_size(s->plan.type);
    for (int i = 0; i < t->tree.count; i++, bytes += 8) {
        memset(bytes, 0, 8);
        memcpy(bytes, &t->tree.node[i].value, tree_value_size(&s->plan));
    }
    memcpy(bytes, t->head_at, t->head * element);
    memcpy(bytes + t->head * element, t->tail_at, t->tail * element);
}

/* Loads the stretch of s, whose first index and count are there. Returns whether the nodes' values are settled and
 * their unused bytes 0, as they are saved; the rest can be anything. */
static int load_stretch(tally_state *s, const unsigned char *bytes) {
    struct stretch *t = s->stretch;
    struct stretch_layout layout;
    const size_t element = type_size(s->plan.type), size = tree_value_size(&s->plan);
    lay_out_stretch(s->first, s->state.n, &layout);
    t->tree.count = layout.nodes;
    for (int i = 0; i < layout.nodes; i++, bytes += 8) {
        struct tree_node *node = &t->tree.node[i];
        node->level = layout.level[i];
        memcpy(&node->value, bytes, size);
        t->tree.next += UINT64_C(1) << node->level;
        tree_settle(&s->plan, &node->value);
        if (memcmp(&node->value, bytes, size) != 0) return 0;
        for (size_t k = size; k < 8; k++)
            if (bytes[k] != 0) return 0;
    }
    t->head = layout.head;
    t->tail = layout.tail;
    memcpy(t->head_at, bytes, t->head * element);
    memcpy(t->tail_at, bytes + t->head * element, t->tail * element);
    return 1;
}

/* ---- Saved --------------------------------------------------------------------------------- */

size_t tally_state_size(const tally_state *state) {
    return state ? saved_bytes(&state->plan, state->first, state->state.n) : 0;
}

static void save_problem(const tally_problem *p, unsigned char *bytes) {
    bytes[AT_TYPE] = (unsigned char)p->type;
    bytes[AT_OUT] = (unsigned char)p->out;
    bytes[AT_FAST] = p->fast != 0;
    bytes[AT_OP] = (unsigned char)p->op;
    for (size_t i = 0; i < ALSO && p->also[i]; i++)
        bytes[AT_ALSO + i] = (unsigned char)p->also[i];
    bytes[AT_USER] = p->user ? 1 + (p->user->commutative != 0) : 0;
    bytes[AT_COMPLEX] = p->is_complex != 0;
    bytes[AT_ABOUT] = p->about != 0;
    put(bytes + AT_DDOF, bits_of(p->ddof), 8);
}

tally_status tally_state_save(const tally_state *state, void *bytes, size_t size) {
    unsigned char *at = bytes;
    uint64_t word[STATE_WORDS_MAX];
    if (!state || !bytes) return fail(TALLY_EINVAL, "tally_state_save: an argument is NULL");
    const size_t needs = tally_state_size(state), words = count_words(&state->plan);
    if (size < needs)
        return fail(TALLY_EINVAL, "the saved state has %zu bytes, and there is room for %zu", needs,
                    size);
    memset(at, 0, AT_WORDS);
    memcpy(at, magic, sizeof magic);
    at[AT_VERSION] = SAVED_VERSION;
    save_problem(&state->asked, at);
    put(at + AT_N, state->state.n, 8);
    put(at + AT_FIRST, state->first, 8);
    TALLY_PATH_OF_VALUE(state_paths, &state->plan, STATE_SAVED);
    pack(&state->plan, &state->state, word);
    for (size_t i = 0; i < words; i++)
        put(at + AT_WORDS + 8 * i, word[i], 8);
    if (state->stretch) save_stretch(state, at + AT_WORDS + 8 * words);
    put(at + needs - HASH_BYTES, hash(at, needs - HASH_BYTES), 8);
    return TALLY_OK;
}

/* ---- Loaded -------------------------------------------------------------------------------- */

static tally_status impossible(void) {
    return fail(TALLY_EFORMAT, "the saved state holds impossible values");
}

static void load_problem(const unsigned char *bytes, tally_problem *out) {
    const uint64_t ddof = get(bytes + AT_DDOF, 8);
    *out = (tally_problem){.op = (tally_op)bytes[AT_OP],
                           .type = (tally_type)bytes[AT_TYPE],
                           .out = (tally_type)bytes[AT_OUT],
                           .fast = bytes[AT_FAST],
                           .is_complex = bytes[AT_COMPLEX],
                           .about = bytes[AT_ABOUT]};
    memcpy(&out->ddof, &ddof, sizeof ddof);
    for (size_t i = 0; i < ALSO; i++)
        out->also[i] = (tally_op)bytes[AT_ALSO + i];
}

static int same_question(const tally_problem *a, const tally_problem *b) {
    for (size_t i = 0; i < ALSO && (a->also[i] || b->also[i]); i++)
        if (a->also[i] != b->also[i]) return 0;
    return a->op == b->op && a->type == b->type && a->out == b->out && !a->fast == !b->fast &&
           !a->is_complex == !b->is_complex && !a->about == !b->about &&
           bits_of(a->ddof) == bits_of(b->ddof);
}

/* Returns a name; "something" for numbers that a damaged header may have. */
static const char *or_something(const char *name) {
    return name ? name : "something";
}

void state_question(const tally_problem *p, struct question *q) {
    const size_t size = sizeof q->text;
    int n = snprintf(q->text, size, "%s", or_something(tally_op_name(p->op)));
    for (size_t i = 0; i < ALSO && p->also[i]; i++)
        n +=
            snprintf(q->text + n, size - (size_t)n, ",%s", or_something(tally_op_name(p->also[i])));
    n += snprintf(q->text + n, size - (size_t)n, " of %s%s%s", p->is_complex ? "complex " : "",
                  or_something(tally_type_name(p->type)), p->fast ? ", fast" : "");
    if (p->out)
        n += snprintf(q->text + n, size - (size_t)n, ", rounded to %s",
                      or_something(tally_type_name(p->out)));
    if (p->about) n += snprintf(q->text + n, size - (size_t)n, ", about a mean");
    if (p->ddof != 0) snprintf(q->text + n, size - (size_t)n, ", ddof %g", p->ddof);
}

/* Makes *out the problem of a saved state, with the operator of the caller's problem, if one is given; fails where the
 * caller's is another problem. */
static tally_status find_problem(const unsigned char *bytes, const tally_problem *theirs,
                                 tally_problem *out) {
    struct problem plan;
    load_problem(bytes, out);
    if (theirs && !same_question(theirs, out)) {
        struct question saved, asked;
        state_question(out, &saved);
        state_question(theirs, &asked);
        return fail(TALLY_EFORMAT, "this is the state of another problem: %s, and not %s",
                    saved.text, asked.text);
    }
    const tally_operator *user = theirs ? theirs->user : NULL;
    if (bytes[AT_USER] && !user)
        return fail(TALLY_EFORMAT, "this is the state of a user's operator, which has to be given");
    if (bytes[AT_USER] != (user ? 1 + (user->commutative != 0) : 0))
        return fail(TALLY_EFORMAT, "this is the state of another operator");
    out->user = user;
    if (bytes[AT_ABOUT] && !theirs)
        return fail(TALLY_EFORMAT,
                    "this is the state of a variance about a mean, which has to be given");
    if (theirs) memcpy(out->mean, theirs->mean, sizeof out->mean);
    if (theirs) out->skip_nan = theirs->skip_nan;
    if (bytes[AT_FAST] > 1 || bytes[AT_COMPLEX] > 1 || bytes[AT_ABOUT] > 1) return impossible();
    for (size_t i = 1; i < ALSO; i++)
        if (out->also[i] && !out->also[i - 1]) return impossible();
    return problem_plan(out, &plan) == TALLY_OK ? TALLY_OK : impossible();
}

int state_is_settled(const struct problem *p, const struct state *s) {
    struct state settled = *s;
    state_settle(p, &settled);
    return !problem_has(p, MONOID_NONZERO) || settled.nonzero == s->nonzero;
}

static tally_status load_rest(tally_state *s, const unsigned char *bytes, size_t size) {
    uint64_t word[STATE_WORDS_MAX];
    const uint64_t n = get(bytes + AT_N, 8), first = get(bytes + AT_FIRST, 8);
    const size_t words = count_words(&s->plan);
    if (n > UINT64_MAX - first) return impossible();
    if (size != saved_bytes(&s->plan, first, n))
        return fail(TALLY_EFORMAT, "the saved state should have %zu bytes, but there are %zu",
                    saved_bytes(&s->plan, first, n), size);
    tally_status status = tally_state_begin_at(s, first);
    if (status != TALLY_OK) return status;
    for (size_t i = 0; i < words; i++)
        word[i] = get(bytes + AT_WORDS + 8 * i, 8);
    if (!unpack(&s->plan, word, n, &s->state) || !state_is_possible(&s->plan, &s->state) ||
        !state_is_settled(&s->plan, &s->state))
        return impossible();
    /* unpack() lets other words of the same state pass: only those that would be saved are right. */
    pack(&s->plan, &s->state, word);
    for (size_t i = 0; i < words; i++)
        if (word[i] != get(bytes + AT_WORDS + 8 * i, 8)) return impossible();
    if (s->stretch && !load_stretch(s, bytes + AT_WORDS + 8 * words)) return impossible();
    return TALLY_OK;
}

tally_status tally_state_load(const void *bytes, size_t size, const tally_problem *problem,
                              tally_state **out) {
    const unsigned char *at = bytes;
    tally_problem found;
    tally_state *s = NULL;
    if (!bytes || !out) return fail(TALLY_EINVAL, "tally_state_load: an argument is NULL");
    if (size < AT_WORDS + HASH_BYTES || memcmp(at, magic, sizeof magic) != 0)
        return fail(TALLY_EFORMAT, "these bytes do not begin as a saved state does: with TALLYSTA");
    if (size > SAVED_MAX) return fail(TALLY_EFORMAT, "no saved state has %zu bytes", size);
    if (at[AT_VERSION] != SAVED_VERSION)
        return fail(TALLY_EFORMAT,
                    "the state was saved in version %d of the format; this library reads %d",
                    at[AT_VERSION], SAVED_VERSION);
    if (get(at + size - HASH_BYTES, 8) != hash(at, size - HASH_BYTES))
        return fail(TALLY_EFORMAT, "the saved state is damaged: its hash does not match");
    tally_status status = find_problem(at, problem, &found);
    if (status == TALLY_OK) status = tally_state_create(&found, &s);
    if (status == TALLY_OK) status = load_rest(s, at, size);
    if (status != TALLY_OK) {
        tally_state_destroy(s);
        return status;
    }
    TALLY_PATH_OF_VALUE(state_paths, &s->plan, STATE_LOADED);
    *out = s;
    return TALLY_OK;
}

/* ---- Words that additions combine, and words that are merged ----------------------------------- */

int state_has_merge_words(const struct problem *p) {
    return !problem_has(p, MONOID_TREE) && !problem_has(p, MONOID_FAST);
}

size_t tally_state_words(const tally_state *state) {
    if (!state || !state_is_additive(&state->plan)) return 0;
    return 1 + count_words(&state->plan);
}

size_t tally_state_merge_words(const tally_state *state) {
    if (!state || !state_has_merge_words(&state->plan)) return 0;
    return 1 + count_words(&state->plan);
}

static tally_status check_words(const tally_state *state, const void *words,
                                int (*has_words)(const struct problem *p)) {
    if (!state || !words) return fail(TALLY_EINVAL, "a state, or its words, are NULL");
    if (has_words(&state->plan)) return TALLY_OK;
    return fail(TALLY_EUNSUPPORTED, "states of %s are not combined by %s",
                tally_op_name(state->asked.op),
                has_words == state_has_merge_words ? "words" : "additions");
}

static tally_status too_many(void) {
    return fail(TALLY_ERANGE, "more than 2^63 - 1 elements do not fit a word");
}

/* Returns whether two states of n elements together have indices for all that each of them has skipped. */
static int skipped_fits(const struct problem *p, uint64_t n, const struct state *a,
                        const struct state *b) {
    if (!problem_counts_skipped(p)) return 1;
    return a->extremes.skipped <= UINT64_MAX - n &&
           b->extremes.skipped <= UINT64_MAX - n - a->extremes.skipped;
}

static tally_status no_words(tally_op op) {
    return fail(TALLY_EFORMAT, "these words are of no state of %s", tally_op_name(op));
}

static tally_status to_words(const tally_state *state, int64_t *words) {
    if (state->state.n > INT64_MAX) return too_many();
    words[0] = (int64_t)state->state.n;
    pack(&state->plan, &state->state, (uint64_t *)(words + 1));
    return TALLY_OK;
}

static tally_status from_words(tally_state *state, const int64_t *words) {
    struct state loaded;
    if (words[0] < 0 ||
        !unpack(&state->plan, (const uint64_t *)words + 1, (uint64_t)words[0], &loaded) ||
        !monoid_states_agree(&state->plan, &loaded))
        return fail(TALLY_EFORMAT, "these words are no sum of states of %s",
                    tally_op_name(state->asked.op));
    state_settle(&state->plan, &loaded);
    state->first = 0;
    /* A merge into an empty state copies only the limbs that have been touched. An assignment would copy all. */
    state_clear(&state->plan, &state->state);
    state_merge(&state->plan, &state->state, &loaded, 0);
    return TALLY_OK;
}

tally_status tally_state_to_words(const tally_state *state, int64_t *words) {
    const tally_status s = check_words(state, words, state_is_additive);
    if (s != TALLY_OK) return s;
    TALLY_PATH_OF_VALUE(state_paths, &state->plan, STATE_TO_WORDS);
    return to_words(state, words);
}

tally_status tally_state_from_words(tally_state *state, const int64_t *words) {
    const tally_status s = check_words(state, words, state_is_additive);
    if (s != TALLY_OK) return s;
    TALLY_PATH_OF_VALUE(state_paths, &state->plan, STATE_FROM_WORDS);
    return from_words(state, words);
}

tally_status tally_state_to_merge_words(const tally_state *state, int64_t *words) {
    const tally_status s = check_words(state, words, state_has_merge_words);
    if (s != TALLY_OK) return s;
    TALLY_PATH_OF_VALUE(state_paths, &state->plan, STATE_TO_PARTS);
    return to_words(state, words);
}

tally_status tally_state_from_merge_words(tally_state *state, const int64_t *words) {
    const tally_status s = check_words(state, words, state_has_merge_words);
    if (s != TALLY_OK) return s;
    TALLY_PATH_OF_VALUE(state_paths, &state->plan, STATE_FROM_PARTS);
    return from_words(state, words);
}

tally_status tally_merge_words(const tally_problem *problem, const int64_t *left, int64_t *right) {
    struct problem p;
    struct state a, b;
    if (!left || !right) return fail(TALLY_EINVAL, "tally_merge_words: an argument is NULL");
    const tally_status s = problem_plan(problem, &p);
    if (s != TALLY_OK) return s;
    if (!state_has_merge_words(&p))
        return fail(TALLY_EUNSUPPORTED, "states of %s are not combined by words",
                    tally_op_name(problem->op));
    const uint64_t n = (uint64_t)left[0], more = (uint64_t)right[0];
    if (n > INT64_MAX || more > INT64_MAX) return no_words(problem->op);
    if (n + more > INT64_MAX) return too_many();
    /* All that can fail comes first, so that a failure leaves right[] as it is. */
    const uint64_t *from = (const uint64_t *)left + 1;
    uint64_t *into = (uint64_t *)right + 1;
    for_monoids(monoid, &p) {
        const struct monoid *m = &monoids[monoid];
        const unsigned words = m->words(&p);
        if (!m->additive) {
            if (!m->unpack(&p, from, n, monoid_state(&a, monoid)) ||
                !m->unpack(&p, into, more, monoid_state(&b, monoid)))
                return no_words(problem->op);
            if (monoid == MONOID_EXTREMES && !skipped_fits(&p, n + more, &a, &b)) return too_many();
            m->merge(&p, monoid_state(&a, monoid), monoid_state_of(&b, monoid), n);
        }
        from += words;
        into += words;
    }
    from = (const uint64_t *)left + 1;
    into = (uint64_t *)right + 1;
    for_monoids(monoid, &p) {
        const struct monoid *m = &monoids[monoid];
        const unsigned words = m->words(&p);
        for (unsigned i = 0; m->additive && i < words; i++)
            into[i] += from[i];
        if (!m->additive) m->pack(&p, monoid_state_of(&a, monoid), into);
        from += words;
        into += words;
    }
    TALLY_PATH_OF_VALUE(state_paths, &p, STATE_PARTS_MERGED);
    right[0] = (int64_t)(n + more);
    return TALLY_OK;
}
