/*
 * state.c - the public states: fed, merged, taken apart, lowered. (saved.c makes bytes of them.)
 */
#include "engine/state.h"

#include "base/fpenv.h"
#include "base/invariant.h"
#include "base/status.h"
#include "base/types.h"
#include "device/shown.h"
#include "exact/digits.h"
#include "exact/lower.h"
#include "problem/lower.h"

#include <stdlib.h>
#include <string.h>

/* ---- Made and gone ------------------------------------------------------------------------- */

/* Takes a copy of the caller's operator, which may be gone before the state is. */
static tally_status own_operator(tally_state *s) {
    const tally_operator *theirs = s->asked.user;
    if (!theirs) return TALLY_OK;
    s->user = *theirs;
    if (theirs->source) {
        s->user.source = strdup(theirs->source);
        if (!s->user.source) return fail(TALLY_ENOMEM, "no memory for an operator's text");
    }
    memcpy(&s->identity, theirs->identity, type_size(s->plan.type));
    s->user.identity = &s->identity;
    s->asked.user = s->plan.user = &s->user;
    return TALLY_OK;
}

void tally_state_destroy(tally_state *state) {
    if (!state) return;
    if (state->asked.user == &state->user) free((void *)(uintptr_t)state->user.source);
    free(state->stretch);
    free(state);
}

static tally_status new_stretch(tally_state *s) {
    const size_t size = (sizeof *s->stretch + 63) / 64 * 64;
    if (!problem_has(&s->plan, MONOID_TREE)) return TALLY_OK;
    s->stretch = aligned_alloc(64, size);
    return s->stretch ? TALLY_OK : fail(TALLY_ENOMEM, "no memory for a state (%zu bytes)", size);
}

tally_status tally_state_create(const tally_problem *problem, tally_state **out) {
    struct problem plan;
    if (!out) return fail(TALLY_EINVAL, "tally_state_create: out is NULL");
    tally_status status = problem_plan(problem, &plan);
    if (status != TALLY_OK) return status;
    const size_t size = (sizeof(tally_state) + 63) / 64 * 64;
    tally_state *s = aligned_alloc(64, size);
    if (!s) return fail(TALLY_ENOMEM, "no memory for a state (%zu bytes)", size);
    s->asked = *problem;
    s->plan = plan;
    s->user.source = NULL;
    s->stretch = NULL;
    status = own_operator(s);
    if (status == TALLY_OK) status = new_stretch(s);
    if (status != TALLY_OK) {
        tally_state_destroy(s);
        return status;
    }
    tally_state_clear(s);
    *out = s;
    return TALLY_OK;
}

/* Makes the stretch, if there is one, that of no elements, to begin at element s->first. */
static void clear_stretch(tally_state *s) {
    if (!s->stretch) return;
    s->stretch->head = s->stretch->tail = 0;
    tree_clear(&s->stretch->tree, stretch_first_leaf(s->first));
}

void tally_state_clear(tally_state *state) {
    if (!state) return;
    state->first = 0;
    state_clear(&state->plan, &state->state);
    clear_stretch(state);
}

tally_status tally_state_copy(const tally_state *state, tally_state **out) {
    tally_state *s = NULL;
    if (!state || !out) return fail(TALLY_EINVAL, "tally_state_copy: an argument is NULL");
    tally_status status = tally_state_create(&state->asked, &s);
    if (status != TALLY_OK || !s) return status;
    s->first = state->first;
    s->state = state->state;
    if (s->stretch && state->stretch) *s->stretch = *state->stretch;
    *out = s;
    return TALLY_OK;
}

tally_status tally_state_begin_at(tally_state *state, uint64_t first) {
    if (!state) return fail(TALLY_EINVAL, "tally_state_begin_at: the state is NULL");
    if (state->state.n > 0)
        return fail(TALLY_EINVAL, "the state has elements already, and stands where they do");
    state->first = first;
    clear_stretch(state);
    return TALLY_OK;
}

/* Returns whether the stretch has as many elements as the state counts: head, whole leaves,
 * tail. */
static int stretch_is_valid(const tally_state *s) {
    const struct stretch *t = s->stretch;
    const uint64_t leaves = t->tree.next - stretch_first_leaf(s->first);
    uint64_t known = 0;
    if (!tree_is_valid(&t->tree)) return 0;
    for (int i = 0; i < t->tree.count; i++)
        known += UINT64_C(1) << t->tree.node[i].level;
    if (known != leaves || t->tail >= TREE_LEAF || t->head > stretch_head_room(s->first)) return 0;
    if (t->head < stretch_head_room(s->first) && (leaves > 0 || t->tail > 0)) return 0;
    return t->head + leaves * TREE_LEAF + t->tail == s->state.n;
}

static int is_valid(const tally_state *s) {
    return state_is_possible(&s->plan, &s->state) && (!s->stretch || stretch_is_valid(s));
}

/* ---- Fed ----------------------------------------------------------------------------------- */

static tally_status too_many(void) {
    return fail(TALLY_ERANGE, "a state of more than 2^64 - 1 elements");
}

/* Returns whether a state can get n elements more, and has indices for `extent` elements more. */
static int has_place(const tally_state *s, uint64_t n, uint64_t extent) {
    const uint64_t most = UINT64_MAX - s->first;
    return n <= most && s->state.n <= most - n &&
           extent <= UINT64_MAX - state_extent(&s->plan, &s->state);
}

/* Appends x[0..n) to the stretch: to its head, then to the begun leaf, then whole leaves where they
 * lie. The rest becomes the tail. After a failure in the middle the caller restores counts and
 * tree. */
static tally_status stretch_feed(tally_state *s, tally_device *device, const unsigned char *x,
                                 size_t n) {
    struct stretch *t = s->stretch;
    const size_t element = type_size(s->plan.type), room = stretch_head_room(s->first);
    tally_status status = TALLY_OK;
    if (t->head < room) {
        const size_t m = room - t->head < n ? room - t->head : n;
        memcpy(t->head_at + t->head * element, x, m * element);
        t->head += m;
        x += m * element;
        n -= m;
    }
    if (t->tail > 0) {
        const size_t m = TREE_LEAF - t->tail < n ? TREE_LEAF - t->tail : n;
        memcpy(t->tail_at + t->tail * element, x, m * element);
        t->tail += m;
        x += m * element;
        n -= m;
        if (t->tail < TREE_LEAF) return TALLY_OK;
        status = fold_leaves(device, &s->plan, t->tail_at, TREE_LEAF, &t->tree);
        if (status != TALLY_OK) return status;
        t->tail = 0;
    }
    const size_t whole = n / TREE_LEAF * TREE_LEAF;
    if (whole > 0) status = fold_leaves(device, &s->plan, x, whole, &t->tree);
    if (status == TALLY_OK && n > whole) {
        memcpy(t->tail_at, x + whole * element, (n - whole) * element);
        t->tail = n - whole;
    }
    return status;
}

/* Undo log: restores a stretch if a feed fails half way. Head and tail keep their elements: a feed
 * writes behind them, and over them only in its last step, which cannot fail. */
struct before {
    struct tree tree;
    size_t head, tail;
};

static struct before remember(const struct stretch *t) {
    return (struct before){t->tree, t->head, t->tail};
}

static void put_back(struct stretch *t, const struct before *b) {
    t->tree = b->tree;
    t->head = b->head;
    t->tail = b->tail;
}

/* Feeds a state that has a stretch, and perhaps other monoids. */
static tally_status feed_all(tally_state *s, tally_device *device, const struct slice *in) {
    const struct before before = remember(s->stretch);
    struct state after = s->state;
    tally_status status = fold_slice(device, &s->plan, in, &after);
    if (status == TALLY_OK) status = stretch_feed(s, device, in->x, in->n);
    if (status == TALLY_OK)
        s->state = after;
    else
        put_back(s->stretch, &before);
    return status;
}

/* Copies to a state what its copy has been fed. */
static void keep_fed(tally_state *state, const tally_state *fed) {
    state->state = fed->state;
    if (state->stretch && fed->stretch) *state->stretch = *fed->stretch;
}

/* Feeds a state that has a stretch, and skips NaNs. The stretch gets the other elements in pieces. On an error nothing
 * has been fed. */
static tally_status feed_shown(tally_state *state, tally_device *device, const struct slice *in) {
    tally_state *all = NULL;
    struct shown_pieces pieces;
    tally_status s = tally_state_copy(state, &all);
    if (s == TALLY_OK && all) s = fold_slice(device, &state->plan, in, &all->state);
    shown_begin(&pieces, device, &state->plan, in);
    if (s == TALLY_OK) s = shown_next(&pieces);
    while (s == TALLY_OK && all && pieces.piece.n > 0) {
        s = stretch_feed(all, device, pieces.piece.x, pieces.piece.n);
        if (s == TALLY_OK) s = shown_next(&pieces);
    }
    if (s == TALLY_OK && all) keep_fed(state, all);
    shown_end(&pieces);
    tally_state_destroy(all);
    return s;
}

tally_status tally_state_feed(tally_state *state, tally_device *device, const void *x,
                              const void *y, size_t n) {
    if (!state) return fail(TALLY_EINVAL, "tally_state_feed: the state is NULL");
    tally_status s = fold_check(&state->plan, x, y, n);
    if (s != TALLY_OK || n == 0) return s;
    if (!has_place(state, n, n)) return too_many();
    const struct slice in = {x, y, n};
    struct fp_env caller = fp_env_enter();
    if (state->stretch && state->plan.skip_nan)
        s = feed_shown(state, device, &in);
    else if (state->stretch)
        s = feed_all(state, device, &in);
    else
        s = fold_slice(device, &state->plan, &in, &state->state);
    fp_env_leave(caller);
    TALLY_ASSERT(is_valid(state));
    return s;
}

/* Feeds a state with resident elements that are copied to the host: where a leaf may begin in one feed and end in
 * another, and where NaNs are skipped. On an error nothing has been fed. */
static tally_status feed_copied(tally_state *state, tally_device *device, const char *x,
                                const char *y, size_t n) {
    enum { CHUNK = 1 << 20 };
    const size_t element = type_size(state->plan.type), most = CHUNK / element;
    tally_state *all = NULL;
    char *chunk = malloc((size_t)(y ? 2 : 1) * CHUNK);
    tally_status s =
        chunk ? tally_state_copy(state, &all) : fail(TALLY_ENOMEM, "no memory to copy elements to");
    for (size_t m, done = 0; s == TALLY_OK && done < n; done += m) {
        m = n - done < most ? n - done : most;
        s = tally_resident_copy(device, chunk, x + done * element, m * element);
        if (s == TALLY_OK && y)
            s = tally_resident_copy(device, chunk + CHUNK, y + done * element, m * element);
        if (s == TALLY_OK) s = tally_state_feed(all, NULL, chunk, y ? chunk + CHUNK : NULL, m);
    }
    if (s == TALLY_OK && all) keep_fed(state, all);
    free(chunk);
    tally_state_destroy(all);
    return s;
}

tally_status tally_state_feed_resident(tally_state *state, tally_device *device, void *x, void *y,
                                       size_t n) {
    if (!device || !device->kind->fold_resident || n == 0)
        return tally_state_feed(state, device, x, y, n);
    if (!state) return fail(TALLY_EINVAL, "tally_state_feed_resident: the state is NULL");
    tally_status s = fold_check(&state->plan, x, y, n);
    if (s != TALLY_OK) return s;
    if (!has_place(state, n, n)) return too_many();
    const int is_copied = state->stretch || state->plan.skip_nan;
    if (is_copied && device->kind->copy_out) return feed_copied(state, device, x, y, n);
    s = device_skips_nothing(device, &state->plan);
    if (s != TALLY_OK) return s;
    const struct slice in = {x, y, n};
    struct state more;
    struct fp_env caller = fp_env_enter();
    state_clear(&state->plan, &more);
    s = device->kind->fold_resident(device, &state->plan, &in, &more);
    if (s == TALLY_OK) {
        more.n = n;
        state_merge(&state->plan, &state->state, &more, state->state.n);
        state_settle(&state->plan, &state->state);
    }
    fp_env_leave(caller);
    TALLY_ASSERT(is_valid(state));
    return s;
}

/* ---- Merged -------------------------------------------------------------------------------- */

/* The monoids whose states are the same for all floating types. */
#define EXACT_MONOIDS                                                                              \
    (MONOID_BIT(MONOID_SUM) | MONOID_BIT(MONOID_SQUARES) | MONOID_BIT(MONOID_PRODUCTS) |           \
     MONOID_BIT(MONOID_MAGNITUDES) | MONOID_BIT(MONOID_NONZERO))

static int same_operator(const tally_operator *a, const tally_operator *b, size_t element) {
    if (!a || !b) return a == b;
    return a->combine == b->combine && a->context == b->context &&
           !a->commutative == !b->commutative && memcmp(a->identity, b->identity, element) == 0;
}

/* Returns whether the states are of the same problem, so that one can merge the other. */
static int same_problem(const tally_state *a, const tally_state *b) {
    const struct problem *p = &a->plan, *q = &b->plan;
    const int alike =
        type_is_float(p->type) && type_is_float(q->type) && !(p->monoids & ~EXACT_MONOIDS);
    if (p->type != q->type && !alike) return 0;
    if (p->monoids != q->monoids || p->extremes != q->extremes || p->values != q->values) return 0;
    if (problem_counts_skipped(p) != problem_counts_skipped(q)) return 0;
    for (unsigned i = 0; i < p->values; i++)
        if (p->value[i].op != q->value[i].op) return 0;
    return same_operator(p->user, q->user, type_size(p->type));
}

static tally_status check_pair(const tally_state *a, const tally_state *b) {
    if (!a || !b) return fail(TALLY_EINVAL, "a state to be combined is NULL");
    if (same_problem(a, b)) return TALLY_OK;
    struct question of_a, of_b;
    state_question(&a->asked, &of_a);
    state_question(&b->asked, &of_b);
    return fail(TALLY_EINVAL, "these are states of different problems: %s; and %s", of_a.text,
                of_b.text);
}

/* Appends the stretch of `right`, which begins where that of `left` ends. Puts together and
 * evaluates a leaf with elements in both; takes over the other leaves' values. */
static tally_status stretch_merge(tally_state *left, const tally_state *right) {
    const struct stretch *from = right->stretch;
    tally_status s = stretch_feed(left, NULL, from->head_at, from->head);
    for (int i = 0; i < from->tree.count && s == TALLY_OK; i++)
        tree_append(&left->plan, &left->stretch->tree, &from->tree.node[i].value,
                    from->tree.node[i].level);
    if (s == TALLY_OK) s = stretch_feed(left, NULL, from->tail_at, from->tail);
    return s;
}

static tally_status merge_stretches(tally_state *left, const tally_state *right) {
    const uint64_t end = left->first + left->state.n;
    if (end != right->first)
        return fail(TALLY_EINVAL,
                    "over the canonical tree only neighbours can be merged: the left state ends at "
                    "element %llu, and the right one begins at %llu",
                    (unsigned long long)end, (unsigned long long)right->first);
    const struct before before = remember(left->stretch);
    tally_status s = stretch_merge(left, right);
    if (s != TALLY_OK) put_back(left->stretch, &before);
    return s;
}

tally_status tally_state_merge(tally_state *left, const tally_state *right) {
    tally_status s = check_pair(left, right);
    if (s != TALLY_OK || (right->state.n == 0 && !problem_counts_skipped(&right->plan))) return s;
    if (!has_place(left, right->state.n, state_extent(&right->plan, &right->state)))
        return too_many();
    struct fp_env caller = fp_env_enter();
    TALLY_PATH_OF_VALUE(state_paths, &left->plan, STATE_MERGED);
    if (left->stretch) s = merge_stretches(left, right);
    if (s == TALLY_OK) {
        state_merge(&left->plan, &left->state, &right->state, left->state.n);
        state_settle(&left->plan, &left->state);
    }
    fp_env_leave(caller);
    TALLY_ASSERT(is_valid(left));
    return s;
}

/* Clears `mixed` in sums that have no terms left: `mixed` says that some term is not -0. */
static void forget_zeros(const struct problem *p, struct state *s) {
    const unsigned sums = EXACT_MONOIDS & ~MONOID_BIT(MONOID_NONZERO);
    for_monoids(monoid, p) {
        struct exact_sum *sum = monoid_state(s, monoid);
        if (MONOID_BIT(monoid) & sums) sum->mixed = 0;
    }
}

/* Returns whether states of the problem can be taken apart. */
static int can_subtract(const struct problem *p) {
    const int settled = problem_has(p, MONOID_NONZERO) && !problem_asks(p, TALLY_NONZERO);
    int possible = !problem_has(p, MONOID_TREE) && !settled;
    for_monoids(each, p) possible = possible && monoids[each].subtract != NULL;
    return possible && !(problem_has(p, MONOID_BITS) && p->bits_op != TALLY_XOR);
}

tally_status tally_state_subtract(tally_state *state, const tally_state *part) {
    tally_status s = check_pair(state, part);
    if (s != TALLY_OK) return s;
    const struct problem *p = &state->plan;
    if (!can_subtract(p))
        return fail(TALLY_EUNSUPPORTED, "nothing can be taken away from a state of %s",
                    tally_op_name(state->asked.op));
    if (part->state.n > state->state.n)
        return fail(TALLY_EINVAL, "%llu elements cannot be taken away from %llu",
                    (unsigned long long)part->state.n, (unsigned long long)state->state.n);
    struct state left = state->state;
    int possible = 1;
    for_monoids(each, p) possible =
        possible &&
        monoids[each].subtract(p, monoid_state(&left, each), monoid_state_of(&part->state, each));
    left.n -= part->state.n;
    if (left.n == 0) forget_zeros(p, &left);
    if (!possible || !state_is_possible(p, &left))
        return fail(TALLY_EINVAL,
                    "these elements cannot be taken away: they are not all in the state");
    TALLY_PATH_OF_VALUE(state_paths, p, STATE_SUBTRACTED);
    state->state = left;
    if (left.n == 0) state_clear(p, &state->state);
    TALLY_ASSERT(is_valid(state));
    return TALLY_OK;
}

/* Returns whether states of the problem can be negated. */
static int can_negate(const struct problem *p) {
    int possible = !problem_has(p, MONOID_TREE) && !problem_has(p, MONOID_FAST);
    for (unsigned i = 0; i < p->values; i++) {
        const tally_op op = p->value[i].op;
        possible = possible && (op == TALLY_SUM || op == TALLY_MEAN || op == TALLY_DOT);
    }
    return possible;
}

tally_status tally_state_negate(tally_state *state) {
    if (!state) return fail(TALLY_EINVAL, "tally_state_negate: the state is NULL");
    if (!can_negate(&state->plan))
        return fail(TALLY_EUNSUPPORTED, "a state of %s cannot be negated",
                    tally_op_name(state->asked.op));
    if (state->state.n == 0) return TALLY_OK;
    TALLY_PATH_OF_VALUE(state_paths, &state->plan, STATE_NEGATED);
    for_monoids(monoid, &state->plan) monoids[monoid].negate(monoid_state(&state->state, monoid));
    TALLY_ASSERT(is_valid(state));
    return TALLY_OK;
}

/* ---- Lowered ------------------------------------------------------------------------------- */

uint64_t tally_state_count(const tally_state *state) {
    return state ? state->state.n : 0;
}

/* Evaluates the tree, whose last leaf is the begun one; *out is its value. */
static tally_status root_of(const tally_state *state, tally_value *out) {
    const struct stretch *t = state->stretch;
    if (state->first != 0 && state->state.n > 0)
        return fail(TALLY_EINVAL,
                    "this state knows a part that begins at element %llu: merge it behind what "
                    "comes before, to have a value",
                    (unsigned long long)state->first);
    struct tree whole = t->tree;
    tally_status s = fold_leaves(NULL, &state->plan, t->tail_at, t->tail, &whole);
    if (s == TALLY_OK) *out = tree_value(&state->plan, &whole);
    return s;
}

tally_status tally_state_value(const tally_state *state, tally_value *out) {
    tally_value root = {.type = 0};
    tally_status s = TALLY_OK;
    if (!state || !out) return fail(TALLY_EINVAL, "tally_state_value: an argument is NULL");
    TALLY_ASSERT(is_valid(state));
    struct fp_env caller = fp_env_enter();
    TALLY_PATH_OF_VALUE(state_paths, &state->plan, STATE_LOWERED);
    if (state->stretch) s = root_of(state, &root);
    if (s == TALLY_OK) s = lower_values(&state->plan, &state->state, &root, out);
    fp_env_leave(caller);
    return s;
}

/* Returns the exact sum that is the operator's value; NULL if its value is no exact sum. */
static const struct exact_sum *sum_of(const tally_state *state, tally_op op) {
    if (problem_has(&state->plan, MONOID_FAST)) return NULL;
    switch (op) {
    case TALLY_SUM:
        return &state->state.sum;
    case TALLY_NORM1:
        return &state->state.magnitudes;
    case TALLY_SUMSQ:
        return &state->state.squares;
    case TALLY_DOT:
        return &state->state.products;
    default:
        return NULL;
    }
}

tally_status tally_state_print(const tally_state *state, size_t i, char *text, size_t size,
                               size_t *length) {
    char whole[EXACT_DIGITS_ROOM];
    if (!state || !length) return fail(TALLY_EINVAL, "tally_state_print: an argument is NULL");
    if (i >= state->plan.values)
        return fail(TALLY_EINVAL, "there is no value %zu: the problem has %u", i,
                    state->plan.values);
    TALLY_ASSERT(is_valid(state));
    const struct exact_sum *sum = sum_of(state, state->plan.value[i].op);
    if (!sum)
        return fail(TALLY_EUNSUPPORTED, "%s is no exact sum, whose digits could be printed",
                    problem_has(&state->plan, MONOID_FAST)
                        ? "a fast sum"
                        : tally_op_name(state->plan.value[i].op));
    TALLY_PATH_OF(state_paths, STATE_PRINTED, (unsigned)state->plan.value[i].op,
                  (unsigned)state->plan.type);
    *length = exact_digits(sum, whole);
    if (text && size <= *length)
        return fail(TALLY_EINVAL, "the digits take %zu bytes, and there is room for %zu",
                    *length + 1, size);
    if (text) memcpy(text, whole, *length + 1);
    return TALLY_OK;
}

/* Returns the operator whose exact sum is to be divided: for a mean, the sum. */
static tally_op dividend(tally_op op) {
    return op == TALLY_MEAN ? TALLY_SUM : op;
}

tally_status tally_state_divided(const tally_state *state, int64_t divisor, tally_type type,
                                 tally_value *out) {
    if (!state || !out) return fail(TALLY_EINVAL, "tally_state_divided: an argument is NULL");
    const struct exact_sum *sum = sum_of(state, dividend(state->asked.op));
    if (!sum)
        return fail(TALLY_EUNSUPPORTED, "a state of %s has no exact sum to divide",
                    tally_op_name(state->asked.op));
    if (divisor == 0) return fail(TALLY_EINVAL, "a sum divided by 0");
    if (type == 0) type = state->asked.out;
    if (type == 0) type = type_is_float(state->plan.type) ? state->plan.type : TALLY_F64;
    if (!type_is_known(type) || !type_is_float(type))
        return fail(TALLY_ETYPE, "a quotient comes back as f16, bf16, f32 or f64, not as %s",
                    tally_type_name(type) ? tally_type_name(type) : "an unknown type");
    const uint64_t magnitude = divisor < 0 ? 0 - (uint64_t)divisor : (uint64_t)divisor;
    TALLY_PATH_OF_VALUE(state_paths, &state->plan, STATE_DIVIDED);
    *out = exact_quotient(sum, state->state.n, divisor < 0, magnitude, type);
    return TALLY_OK;
}

/* ---- Paths --------------------------------------------------------------------------------- */

#if defined(TALLY_DEBUG)
static const char *const way_names[] = {[STATE_MERGED] = "merged",
                                        [STATE_SUBTRACTED] = "taken apart",
                                        [STATE_NEGATED] = "negated",
                                        [STATE_LOWERED] = "lowered",
                                        [STATE_DIVIDED] = "divided",
                                        [STATE_PRINTED] = "printed",
                                        [STATE_SAVED] = "saved",
                                        [STATE_LOADED] = "loaded",
                                        [STATE_TO_WORDS] = "to words",
                                        [STATE_FROM_WORDS] = "from words",
                                        [STATE_TO_PARTS] = "to parts",
                                        [STATE_FROM_PARTS] = "from parts",
                                        [STATE_PARTS_MERGED] = "merged as parts"};
static const struct path_axis way_axis = PATH_AXIS(way_names);

static const char *never_state(const struct path_table *t, const unsigned at[PATH_AXES]) {
    tally_state s = {.asked = {.op = (tally_op)at[1]}};
    const char *why = problem_path(at[1], at[2], &s.plan);
    (void)t;
    if (why) return why;
    switch (at[0]) {
    case STATE_SUBTRACTED:
        return can_subtract(&s.plan) ? NULL : "such states cannot be taken apart";
    case STATE_NEGATED:
        return can_negate(&s.plan) ? NULL : "such states cannot be negated";
    case STATE_DIVIDED:
        return sum_of(&s, dividend(s.asked.op)) ? NULL : "such states have no exact sum";
    case STATE_PRINTED:
        return sum_of(&s, s.asked.op) ? NULL : "such values are no exact sums";
    case STATE_TO_WORDS:
    case STATE_FROM_WORDS:
        return state_is_additive(&s.plan) ? NULL : "additions do not combine such states";
    case STATE_TO_PARTS:
    case STATE_FROM_PARTS:
    case STATE_PARTS_MERGED:
        return state_has_merge_words(&s.plan) ? NULL : "such states are more than words";
    default:
        return NULL;
    }
}

struct path_table state_paths = {.place = "states",
                                 .what = "",
                                 .axis = {&way_axis, &path_ops, &path_types},
                                 .never = never_state};
PATH_KNOWN(state_paths);
#endif
