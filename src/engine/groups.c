/*
 * groups.c - the public states of grouped reductions. Each group has the states of the problem's monoids, and no
 * others.
 */
#include "base/fpenv.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/stop.h"
#include "base/types.h"
#include "device/device.h"
#include "device/fold.h"
#include "device/shown.h"
#include "engine/state.h"
#include "problem/lower.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct tally_groups {
    tally_problem asked; /* a copy, which owns what it points to */
    tally_operator user; /* copies of the caller's operator and its identity, as in tally_state */
    union tree_value identity;
    struct problem plan;
    size_t count;
    uint64_t fed;         /* elements that have been fed, those outside and masked ones included */
    bool is_index_within; /* an index counts the elements of its group, and not all that are fed */
    size_t places;        /* groups that there is memory for */
    size_t room;          /* bytes of a group's states */
    uint64_t *n;          /* [places]: the elements of each group */
    char *states;         /* [places][room] */
    /* [places], or NULL where the problem has no MONOID_TREE; tree[i] is NULL while group i has no elements */
    tally_state **tree;
};

/* Returns the bytes of a monoid's state. */
static size_t monoid_size(unsigned monoid) {
    static const struct state *s;
    switch (monoid) {
    case MONOID_SUM:
    case MONOID_SQUARES:
    case MONOID_PRODUCTS:
    case MONOID_MAGNITUDES:
        return sizeof s->sum;
    case MONOID_FACTORS:
        return sizeof s->factors;
    case MONOID_EXTREMES:
        return sizeof s->extremes;
    default:
        return sizeof(uint64_t);
    }
}

/* Copies group i's state to *out; put_state() copies it back. */
static void get_state(const tally_groups *g, size_t i, struct state *out) {
    const char *at = g->states + i * g->room;
    out->n = g->n[i];
    for_monoids(monoid, &g->plan) {
        memcpy(monoid_state(out, monoid), at, monoid_size(monoid));
        at += (monoid_size(monoid) + 15) / 16 * 16;
    }
}

static void put_state(tally_groups *g, size_t i, const struct state *from) {
    char *at = g->states + i * g->room;
    g->n[i] = from->n;
    for_monoids(monoid, &g->plan) {
        memcpy(at, monoid_state_of(from, monoid), monoid_size(monoid));
        at += (monoid_size(monoid) + 15) / 16 * 16;
    }
}

static tally_status no_memory(size_t count) {
    return fail(TALLY_ENOMEM, "no memory for the states of %zu groups", count);
}

/* Allocates g->n, g->states and, if the problem has it, g->tree for g->places groups. leave_room()
 * frees them. */
static tally_status make_room(tally_groups *g) {
    const bool has_tree = problem_has(&g->plan, MONOID_TREE);
    g->room = 0;
    for_monoids(monoid, &g->plan) g->room += (monoid_size(monoid) + 15) / 16 * 16;
    g->n = calloc(g->places + 1, sizeof *g->n);
    if (has_tree) g->tree = calloc(g->places + 1, sizeof(tally_state *));
    if (g->room > 0 && g->places > (SIZE_MAX - 64) / g->room) return no_memory(g->places);
    g->states = aligned_alloc(64, (g->places * g->room + 127) / 64 * 64);
    return g->n && g->states && (g->tree || !has_tree) ? TALLY_OK : no_memory(g->places);
}

static void leave_room(tally_groups *g) {
    for (size_t i = 0; g->tree && i < g->count; i++)
        tally_state_destroy(g->tree[i]);
    free(g->tree);
    free(g->states);
    free(g->n);
}

void tally_groups_destroy(tally_groups *groups) {
    if (!groups) return;
    leave_room(groups);
    if (groups->asked.user == &groups->user) free((void *)(uintptr_t)groups->user.source);
    free(groups);
}

tally_status tally_groups_counts(const tally_groups *groups, uint64_t count[]) {
    if (!groups || (!count && groups->count > 0))
        return fail(TALLY_EINVAL, "tally_groups_counts: an argument is NULL");
    if (groups->count > 0) memcpy(count, groups->n, groups->count * sizeof *count);
    return TALLY_OK;
}

/* Makes groups `first` to `end` - 1 groups of no elements. */
static void clear_groups(tally_groups *g, size_t first, size_t end) {
    struct state nothing;
    state_clear(&g->plan, &nothing);
    for (size_t i = first; i < end; i++)
        put_state(g, i, &nothing);
}

static tally_status make(tally_groups *g) {
    const tally_operator *theirs = g->asked.user;
    if (theirs) {
        g->user = *theirs;
        if (theirs->source && !(g->user.source = strdup(theirs->source))) {
            g->asked.user = NULL;
            return no_memory(g->count);
        }
        memcpy(&g->identity, theirs->identity, type_size(g->plan.type));
        g->user.identity = &g->identity;
        g->asked.user = g->plan.user = &g->user;
    }
    const tally_status s = make_room(g);
    if (s == TALLY_OK) clear_groups(g, 0, g->count);
    return s;
}

tally_status tally_groups_create(const tally_problem *problem, size_t count, tally_groups **out) {
    struct problem plan;
    if (!problem || !out) return fail(TALLY_EINVAL, "tally_groups_create: an argument is NULL");
    tally_status status = problem_plan(problem, &plan);
    if (status != TALLY_OK) return status;
    if (count > SIZE_MAX / 64) return no_memory(count);
    tally_groups *g = calloc(1, (sizeof *g + 63) / 64 * 64);
    if (!g) return no_memory(count);
    g->asked = *problem;
    g->plan = plan;
    g->count = g->places = count;
    status = make(g);
    if (status != TALLY_OK) {
        tally_groups_destroy(g);
        return status;
    }
    *out = g;
    return TALLY_OK;
}

/* Moves the groups to memory for `places` of them. */
static tally_status move_groups(tally_groups *g, size_t places) {
    tally_groups next = *g;
    if (places > SIZE_MAX / 64) return no_memory(places);
    next.places = places;
    next.n = NULL;
    next.states = NULL;
    next.tree = NULL;
    const tally_status s = make_room(&next);
    if (s == TALLY_OK && next.n && next.states) {
        memcpy(next.n, g->n, g->count * sizeof *g->n);
        memcpy(next.states, g->states, g->count * g->room);
        if (next.tree && g->tree) memcpy(next.tree, g->tree, g->count * sizeof(tally_state *));
    }
    tally_groups *gone = s == TALLY_OK ? g : &next;
    free(gone->tree);
    free(gone->states);
    free(gone->n);
    if (s == TALLY_OK) *g = next;
    return s;
}

tally_status tally_groups_grow(tally_groups *groups, size_t count) {
    if (!groups) return fail(TALLY_EINVAL, "tally_groups_grow: groups is NULL");
    if (count < groups->count)
        return fail(TALLY_EINVAL, "%zu groups cannot become %zu: groups are only added",
                    groups->count, count);
    if (count > groups->places) {
        const size_t twice = groups->places > SIZE_MAX / 2 ? count : 2 * groups->places;
        const tally_status s = move_groups(groups, count > twice ? count : twice);
        if (s != TALLY_OK) return s;
    }
    clear_groups(groups, groups->count, count);
    groups->count = count;
    return TALLY_OK;
}

tally_status tally_groups_index_within(tally_groups *groups) {
    if (!groups) return fail(TALLY_EINVAL, "tally_groups_index_within: groups is NULL");
    if (groups->fed > 0)
        return fail(TALLY_EINVAL, "the groups have elements already, whose indices count all");
    groups->is_index_within = true;
    return TALLY_OK;
}

/* ---- Fed ----------------------------------------------------------------------------------- */

/* Returns the index in the caller's array of the element at index `at` of the group that begins at
 * `start`. */
static uint64_t moved(const struct sorted *s, size_t start, uint64_t at) {
    if (at == NO_INDEX) return at;
    return s->position ? s->position[start + at] : start + at;
}

/* Copies the states of all groups that get elements to `next`, one behind another, and no
 * others. */
static tally_status copy_states(const tally_groups *g, const struct sorted *sorted,
                                tally_groups *next) {
    *next = (tally_groups){
        .asked = g->asked, .plan = g->plan, .fed = g->fed, .is_index_within = g->is_index_within};
    for (size_t i = 0; i < g->count; i++)
        next->count += sorted->start[i] < sorted->start[i + 1];
    next->places = next->count;
    tally_status s = make_room(next);
    for (size_t i = 0, k = 0; i < g->count && s == TALLY_OK; i++) {
        if (sorted->start[i] == sorted->start[i + 1]) continue;
        next->n[k] = g->n[i];
        memcpy(next->states + k * g->room, g->states + i * g->room, g->room);
        if (g->tree)
            s = g->tree[i] ? tally_state_copy(g->tree[i], &next->tree[k])
                           : tally_state_create(&g->asked, &next->tree[k]);
        k++;
    }
    return s;
}

/* Copies the states in `next`, which have been fed, back to their groups. */
static void keep_states(tally_groups *g, const struct sorted *sorted, tally_groups *next) {
    for (size_t i = 0, k = 0; i < g->count; i++) {
        if (sorted->start[i] == sorted->start[i + 1]) continue;
        g->n[i] = next->n[k];
        memcpy(g->states + i * g->room, next->states + k * g->room, g->room);
        if (g->tree && next->tree) {
            tally_state *before = g->tree[i];
            g->tree[i] = next->tree[k];
            next->tree[k] = before;
        }
        k++;
    }
}

/* Returns the offset to add to the indices of elements that come behind those of group i. */
static uint64_t elements_before(const tally_groups *g, size_t i) {
    return g->is_index_within ? g->n[i] : g->fed;
}

/* Feeds state k of `g` with the sorted elements of group i, which has some. NaNs that are skipped are not among them. */
static tally_status feed_group(tally_groups *g, size_t k, tally_device *device, size_t i,
                               const struct sorted *sorted) {
    const struct problem plain = shown_problem(&g->plan), *p = &plain;
    const size_t start = (size_t)sorted->start[i], n = (size_t)sorted->start[i + 1] - start,
                 element = type_size(p->type);
    const struct slice in = {sorted->x + start * element,
                             sorted->y ? sorted->y + start * element : NULL, n};
    struct state before, more;
    state_clear(p, &more);
    tally_status s = fold_slice(device, p, &in, &more);
    if (s == TALLY_OK && g->tree) {
        tally_state *tree = g->tree[k];
        tree->plan.skip_nan = 0;
        s = tally_state_feed(tree, device, in.x, in.y, n);
        tree->plan.skip_nan = g->plan.skip_nan;
    }
    if (s != TALLY_OK) return s;
    if (p->extremes & WANT_INDEX && !g->is_index_within) {
        struct extremes *e = &more.extremes;
        e->at_least = moved(sorted, start, e->at_least);
        e->at_greatest = moved(sorted, start, e->at_greatest);
        e->at_nan = moved(sorted, start, e->at_nan);
    }
    get_state(g, k, &before);
    state_merge(&g->plan, &before, &more, elements_before(g, k));
    state_settle(p, &before);
    put_state(g, k, &before);
    return TALLY_OK;
}

/* Feeds copies of the states of groups that get elements, and keeps these where all could be fed: when memory runs out
 * half way, or the caller stops the call, nothing has been fed. */
static tally_status feed_sorted(tally_groups *g, tally_device *device,
                                const struct sorted *sorted) {
    tally_groups next;
    tally_status s = copy_states(g, sorted, &next);
    for (size_t i = 0, k = 0; i < g->count && s == TALLY_OK; i++)
        if (sorted->start[i] < sorted->start[i + 1])
            s = stop_asked() ? stop_status() : feed_group(&next, k++, device, i, sorted);
    if (s == TALLY_OK) keep_states(g, sorted, &next);
    leave_room(&next);
    return s;
}

tally_status tally_groups_feed(tally_groups *groups, tally_device *device, const tally_shape *shape,
                               const void *x, const void *y) {
    struct shaped s;
    struct sorted sorted;
    unsigned char *mask = NULL;
    if (!groups) return fail(TALLY_EINVAL, "tally_groups_feed: groups is NULL");
    tally_status status = shape_plan(&groups->plan, shape, x, y, NULL, &s);
    if (status != TALLY_OK) return status;
    if (s.cut != TALLY_GROUPS || s.results != groups->count)
        return fail(TALLY_EINVAL, "the shape is not one of %zu groups", groups->count);
    if (!shape_is_flat(&s))
        return fail(TALLY_EUNSUPPORTED, "states of groups are of elements side by side");
    if (shape->means)
        return fail(TALLY_EINVAL, "groups that are fed have the problem's mean, not one each");
    if (s.n > UINT64_MAX - groups->fed) return fail(TALLY_ERANGE, "more than 2^64 - 1 elements");
    if (!device) device = cpu_calling_thread();
    struct fp_env caller = fp_env_enter();
    status = shown_mask(&s, &mask);
    if (status == TALLY_OK) status = device->kind->sort(device, &s, &sorted);
    if (status == TALLY_OK) {
        status = feed_sorted(groups, device, &sorted);
        sorted_free(&sorted);
    }
    if (status == TALLY_OK) groups->fed += s.n;
    free(mask);
    fp_env_leave(caller);
    return status;
}

/* ---- Merged, lowered ------------------------------------------------------------------------- */

static int same_question(const struct problem *p, const struct problem *q) {
    if (p->type != q->type || p->monoids != q->monoids || p->extremes != q->extremes ||
        p->values != q->values || problem_counts_skipped(p) != problem_counts_skipped(q))
        return 0;
    for (unsigned i = 0; i < p->values; i++)
        if (p->value[i].op != q->value[i].op) return 0;
    return 1;
}

size_t tally_groups_count(const tally_groups *groups) {
    return groups ? groups->count : 0;
}

tally_status tally_groups_merge(tally_groups *left, const tally_groups *right) {
    if (!left || !right) return fail(TALLY_EINVAL, "groups to be merged are NULL");
    if (!same_question(&left->plan, &right->plan) || left->count != right->count)
        return fail(TALLY_EINVAL, "these are groups of different problems, or not as many");
    if (left->is_index_within != right->is_index_within)
        return fail(TALLY_EINVAL, "the indices of one of these groups count within each group");
    if (left->tree)
        return fail(TALLY_EUNSUPPORTED, "groups over the canonical tree are fed, not merged");
    if (right->fed > UINT64_MAX - left->fed)
        return fail(TALLY_ERANGE, "more than 2^64 - 1 elements");
    struct fp_env caller = fp_env_enter();
    for (size_t i = 0; i < left->count; i++) {
        struct state a, b;
        if (right->n[i] == 0 && !problem_counts_skipped(&right->plan)) continue;
        get_state(left, i, &a);
        get_state(right, i, &b);
        state_merge(&left->plan, &a, &b, elements_before(left, i));
        state_settle(&left->plan, &a);
        put_state(left, i, &a);
    }
    left->fed += right->fed;
    fp_env_leave(caller);
    return TALLY_OK;
}

tally_status tally_groups_add_state(tally_groups *groups, size_t group, const tally_state *state) {
    struct state known;
    if (!groups || !state) return fail(TALLY_EINVAL, "groups, or a state for one, are NULL");
    if (!same_question(&groups->plan, &state->plan))
        return fail(TALLY_EINVAL, "the state is of another problem than the groups");
    if (group >= groups->count)
        return fail(TALLY_EINVAL, "group %zu is none of %zu", group, groups->count);
    if (groups->tree)
        return fail(TALLY_EUNSUPPORTED, "groups over the canonical tree are fed, not merged");
    const int counts_skipped = problem_counts_skipped(&groups->plan);
    const uint64_t more = state_extent(&groups->plan, &state->state);
    if (more > UINT64_MAX - groups->fed) return fail(TALLY_ERANGE, "more than 2^64 - 1 elements");
    struct fp_env caller = fp_env_enter();
    get_state(groups, group, &known);
    state_merge(&groups->plan, &known, &state->state, elements_before(groups, group));
    state_settle(&groups->plan, &known);
    if (counts_skipped && !groups->is_index_within) known.extremes.skipped = 0; /* in `fed` */
    put_state(groups, group, &known);
    groups->fed += more;
    fp_env_leave(caller);
    return TALLY_OK;
}

tally_status tally_groups_state(const tally_groups *groups, size_t group, tally_state **out) {
    tally_state *s = NULL;
    if (!groups || !out) return fail(TALLY_EINVAL, "tally_groups_state: an argument is NULL");
    if (group >= groups->count)
        return fail(TALLY_EINVAL, "group %zu is none of %zu", group, groups->count);
    if (groups->plan.extremes & WANT_INDEX && !groups->is_index_within)
        return fail(TALLY_EINVAL, "a group's state has indices within the group: call "
                                  "tally_groups_index_within() before the groups are fed");
    if (groups->tree && groups->tree[group]) return tally_state_copy(groups->tree[group], out);
    const tally_status status = tally_state_create(&groups->asked, &s);
    if (status != TALLY_OK || !s) return status;
    get_state(groups, group, &s->state);
    *out = s;
    return TALLY_OK;
}

tally_status tally_groups_values(const tally_groups *groups, void *const out[]) {
    struct absence absence = {.number = UINT64_MAX};
    tally_status status = TALLY_OK;
    if (!groups || !out) return fail(TALLY_EINVAL, "tally_groups_values: an argument is NULL");
    const struct problem *p = &groups->plan;
    const struct shaped s = {.p = p, .out = out, .results = groups->count};
    for (unsigned v = 0; v < p->values && groups->count > 0; v++)
        if (!out[v]) return fail(TALLY_EINVAL, "out[%u] is NULL", v);
    struct fp_env caller = fp_env_enter();
    for (size_t i = 0; i < groups->count && status == TALLY_OK; i++) {
        struct state state;
        tally_value root = {.type = 0};
        get_state(groups, i, &state);
        if (groups->tree && groups->tree[i]) {
            tally_value values[TALLY_VALUES_MAX];
            status = tally_state_value(groups->tree[i], values);
            for (unsigned v = 0; v < p->values && status == TALLY_OK; v++)
                if (p->value[v].op == TALLY_USER || p->value[v].op == TALLY_PROD) root = values[v];
        } else if (groups->tree) {
            struct tree nothing;
            tree_clear(&nothing, 0);
            root = tree_value(p, &nothing);
        }
        shaped_lower(&s, &state, &root, (ptrdiff_t)i, i, &absence);
    }
    fp_env_leave(caller);
    return status == TALLY_OK ? shaped_outcome(p, &absence) : status;
}

/* ---- Saved --------------------------------------------------------------------------------- */

/* docs/shapes.md has the format. */
enum {
    AT_VERSION = 8,
    AT_COUNT = 16,
    AT_FED = 24,
    AT_WITHIN = 32,
    AT_PROBLEM = 40,
    WORDS_MAX = 160
};
#define SAVED_VERSION 1
static const char magic[8] = "TALLYGRP";

static void put(unsigned char *at, uint64_t word) {
    for (int i = 0; i < 8; i++)
        at[i] = (unsigned char)(word >> 8 * i);
}

static uint64_t get(const unsigned char *at) {
    uint64_t word = 0;
    for (int i = 7; i >= 0; i--)
        word = word << 8 | at[i];
    return word;
}

/* Returns the saved bytes of a group but for its tree. */
static size_t group_bytes(const struct problem *p) {
    size_t words = 1;
    for_monoids(monoid, p) words += monoids[monoid].words(p);
    return 8 * words;
}

/* Returns the saved bytes of the groups; `none` is a state of the problem without elements. */
static size_t saved_bytes(const tally_groups *g, const tally_state *none) {
    size_t size = AT_PROBLEM + 8 + tally_state_size(none) + 8;
    size += g->count * group_bytes(&g->plan);
    for (size_t i = 0; g->tree && i < g->count; i++)
        if (g->tree[i]) size += 8 + tally_state_size(g->tree[i]);
    return size;
}

size_t tally_groups_size(const tally_groups *groups) {
    tally_state *none = NULL;
    if (!groups || tally_state_create(&groups->asked, &none) != TALLY_OK) return 0;
    const size_t size = saved_bytes(groups, none);
    tally_state_destroy(none);
    return size;
}

/* Writes at *at the size of a saved state and the saved state, and moves *at behind them. */
static tally_status put_saved(const tally_state *s, unsigned char **at) {
    const size_t n = tally_state_size(s);
    put(*at, n);
    const tally_status status = tally_state_save(s, *at + 8, n);
    *at += 8 + n;
    return status;
}

tally_status tally_groups_save(const tally_groups *groups, void *bytes, size_t size) {
    unsigned char *at = bytes;
    tally_state *none = NULL;
    if (!groups || !bytes) return fail(TALLY_EINVAL, "tally_groups_save: an argument is NULL");
    tally_status status = tally_state_create(&groups->asked, &none);
    if (status != TALLY_OK) return status;
    const size_t needs = saved_bytes(groups, none);
    if (size < needs) {
        tally_state_destroy(none);
        return fail(TALLY_EINVAL, "the saved groups have %zu bytes, and there is room for %zu",
                    needs, size);
    }
    memcpy(at, magic, sizeof magic);
    put(at + AT_VERSION, SAVED_VERSION);
    put(at + AT_COUNT, groups->count);
    put(at + AT_FED, groups->fed);
    put(at + AT_WITHIN, groups->is_index_within);
    at += AT_PROBLEM;
    status = put_saved(none, &at);
    tally_state_destroy(none);
    for (size_t i = 0; i < groups->count && status == TALLY_OK; i++) {
        struct state s;
        uint64_t word[WORDS_MAX];
        get_state(groups, i, &s);
        put(at, s.n);
        at += 8;
        for_monoids(monoid, &groups->plan) {
            const unsigned words = monoids[monoid].words(&groups->plan);
            monoids[monoid].pack(&groups->plan, monoid_state_of(&s, monoid), word);
            for (unsigned k = 0; k < words; k++, at += 8)
                put(at, word[k]);
        }
        if (groups->tree && groups->tree[i]) status = put_saved(groups->tree[i], &at);
    }
    put(at, hash(bytes, (size_t)(at - (unsigned char *)bytes)));
    return status;
}

static tally_status impossible(void) {
    return fail(TALLY_EFORMAT, "these bytes are no saved groups, or damaged ones");
}

/* Loads the saved state whose size is at *at, and moves *at behind it. */
static tally_status next_saved(const unsigned char **at, const unsigned char *end,
                               const tally_problem *problem, tally_state **out) {
    if (end - *at < 8) return impossible();
    const uint64_t n = get(*at);
    if (n > (uint64_t)(end - *at) - 8) return impossible();
    const tally_status s = tally_state_load(*at + 8, (size_t)n, problem, out);
    *at += 8 + n;
    return s;
}

/* Loads group i from *at, which moves behind it. *known counts the elements of all groups so far. */
static tally_status load_group(tally_groups *g, size_t i, const unsigned char **at,
                               const unsigned char *end, uint64_t *known) {
    const struct problem *p = &g->plan;
    struct state s = {0};
    if ((size_t)(end - *at) < group_bytes(p)) return impossible();
    s.n = get(*at);
    *at += 8;
    if (s.n > g->fed - *known) return impossible();
    for_monoids(monoid, p) {
        uint64_t word[WORDS_MAX], again[WORDS_MAX];
        const unsigned words = monoids[monoid].words(p);
        for (unsigned k = 0; k < words; k++, *at += 8)
            word[k] = get(*at);
        const bool counts_all = monoid == MONOID_EXTREMES && s.n > 0 && !g->is_index_within;
        const uint64_t n = counts_all ? g->fed : s.n;
        if (!monoids[monoid].unpack(p, word, n, monoid_state(&s, monoid))) return impossible();
        monoids[monoid].pack(p, monoid_state(&s, monoid), again);
        if (memcmp(word, again, words * sizeof *word) != 0) return impossible();
    }
    if (!monoid_states_agree(p, &s) || !state_is_settled(p, &s)) return impossible();
    if (state_extent(p, &s) > g->fed - *known) return impossible();
    *known += state_extent(p, &s);
    put_state(g, i, &s);
    if (!g->tree || s.n == 0) return TALLY_OK;
    const tally_status status = next_saved(at, end, &g->asked, &g->tree[i]);
    if (status != TALLY_OK) return status;
    const tally_state *tree = g->tree[i];
    return tree->first == 0 && tree->state.n == s.n ? TALLY_OK : impossible();
}

tally_status tally_groups_load(const void *bytes, size_t size, const tally_problem *problem,
                               tally_groups **out) {
    const unsigned char *at = bytes;
    tally_groups *g = NULL;
    tally_state *none = NULL;
    if (!bytes || !out) return fail(TALLY_EINVAL, "tally_groups_load: an argument is NULL");
    if (size < AT_PROBLEM + 16 || memcmp(at, magic, sizeof magic) != 0) return impossible();
    if (get(at + AT_VERSION) != SAVED_VERSION)
        return fail(TALLY_EFORMAT,
                    "the groups were saved in version %llu of the format; this library reads %d",
                    (unsigned long long)get(at + AT_VERSION), SAVED_VERSION);
    const unsigned char *end = at + size - 8;
    if (get(end) != hash(bytes, size - 8)) return impossible();
    const uint64_t count = get(at + AT_COUNT), fed = get(at + AT_FED);
    if (count > size / 8 || get(at + AT_WITHIN) > 1) return impossible();
    const bool is_index_within = get(at + AT_WITHIN) == 1;
    at += AT_PROBLEM;
    tally_status status = next_saved(&at, end, problem, &none);
    if (none && (none->first != 0 || state_extent(&none->plan, &none->state) != 0))
        status = impossible();
    if (status == TALLY_OK) status = tally_groups_create(&none->asked, (size_t)count, &g);
    uint64_t known = 0;
    if (status != TALLY_OK || !g) {
        tally_state_destroy(none);
        return status;
    }
    g->fed = fed;
    g->is_index_within = is_index_within;
    for (size_t i = 0; i < count && status == TALLY_OK; i++)
        status = load_group(g, i, &at, end, &known);
    if (status == TALLY_OK && at != end) status = impossible();
    tally_state_destroy(none);
    if (status != TALLY_OK) {
        tally_groups_destroy(g);
        return status;
    }
    *out = g;
    return TALLY_OK;
}

/* ---- Words that additions combine ------------------------------------------------------------ */

size_t tally_groups_words(const tally_groups *groups) {
    if (!groups || !state_is_additive(&groups->plan)) return 0;
    return 1 + groups->count * (group_bytes(&groups->plan) / 8);
}

static tally_status check_words(const tally_groups *groups, const void *words) {
    if (!groups || !words) return fail(TALLY_EINVAL, "groups, or their words, are NULL");
    if (state_is_additive(&groups->plan)) return TALLY_OK;
    return fail(TALLY_EUNSUPPORTED, "states of %s are not combined by additions",
                tally_op_name(groups->asked.op));
}

tally_status tally_groups_to_words(const tally_groups *groups, int64_t *words) {
    tally_status status = check_words(groups, words);
    if (status != TALLY_OK) return status;
    if (groups->fed > INT64_MAX)
        return fail(TALLY_ERANGE, "more than 2^63 - 1 elements do not fit a word");
    *words++ = (int64_t)groups->fed;
    for (size_t i = 0; i < groups->count; i++) {
        struct state s;
        get_state(groups, i, &s);
        *words++ = (int64_t)s.n;
        for_monoids(monoid, &groups->plan) {
            monoids[monoid].pack(&groups->plan, monoid_state_of(&s, monoid), (uint64_t *)words);
            words += monoids[monoid].words(&groups->plan);
        }
    }
    return TALLY_OK;
}

/* Makes a group's state of its words; returns whether there can be one. *known counts the elements of all groups so
 * far. */
static int unpack_group(const struct problem *p, const int64_t *words, uint64_t fed,
                        uint64_t *known, struct state *out) {
    uint64_t word[WORDS_MAX];
    out->n = (uint64_t)*words++;
    if (out->n > fed - *known) return 0;
    *known += out->n;
    for_monoids(monoid, p) {
        const unsigned count = monoids[monoid].words(p);
        memcpy(word, words, count * sizeof *word);
        if (!monoids[monoid].unpack(p, word, out->n, monoid_state(out, monoid))) return 0;
        words += count;
    }
    if (!monoid_states_agree(p, out)) return 0;
    state_settle(p, out);
    return 1;
}

tally_status tally_groups_from_words(tally_groups *groups, const int64_t *words) {
    tally_status status = check_words(groups, words);
    if (status != TALLY_OK) return status;
    const struct problem *p = &groups->plan;
    const size_t each = group_bytes(p) / 8;
    const uint64_t fed = (uint64_t)words[0];
    int possible = words[0] >= 0;
    struct state s;
    for (int put = 0; put <= 1 && possible; put++) { /* all are checked before the first is kept */
        uint64_t known = 0;
        for (size_t i = 0; i < groups->count && possible; i++) {
            possible = unpack_group(p, words + 1 + i * each, fed, &known, &s);
            if (put && possible) put_state(groups, i, &s);
        }
    }
    if (!possible)
        return fail(TALLY_EFORMAT, "these words are no sum of groups of %s",
                    tally_op_name(groups->asked.op));
    groups->fed = fed;
    return TALLY_OK;
}
