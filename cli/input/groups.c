/*
 * groups.c - see groups.h.
 */
#include "input/groups.h"

#include "common/message.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 256, MOST_ROOM = 64 << 10 }; /* bytes of elements that a group collects */

static bool no_memory(const struct groups *g) {
    return failed("no memory for more than %zu groups; reduce parts of the data", g->count), false;
}

/* Eight bytes at a time, each stirred by a multiplication (after Fowler, Noll and Vo's of single bytes). */
uint64_t groups_hash(const char *key, size_t length) {
    uint64_t h = 0xcbf29ce484222325u ^ length, word;
    for (; length >= 8; key += 8, length -= 8) {
        memcpy(&word, key, 8);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    word = 0;
    for (size_t i = 0; i < length; i++)
        word = word << 8 | (unsigned char)key[i];
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

/* Returns the slot of the key: where it is, or where it may go. */
static size_t *find_slot(const struct groups *g, const char *key, size_t length) {
    size_t i = (size_t)groups_hash(key, length) & (g->slot_count - 1);
    for (;; i = (i + 1) & (g->slot_count - 1)) {
        if (!g->slots[i]) return &g->slots[i];
        const struct group *found = &g->list[g->slots[i] - 1];
        if (found->key_bytes == length && memcmp(found->key, key, length) == 0) return &g->slots[i];
    }
}

/* Makes room for one more; slots are at most half full. */
static bool grow(struct groups *g) {
    if (g->count < g->room) return true;
    size_t room = g->room ? 2 * g->room : 16;
    struct group *list = realloc(g->list, room * sizeof *list);
    if (!list) return no_memory(g);
    g->list = list;
    size_t *slots = calloc(2 * room, sizeof *slots);
    if (!slots) return no_memory(g);
    free(g->slots);
    g->slots = slots;
    g->slot_count = 2 * room;
    g->room = room;
    for (size_t i = 0; i < g->count; i++)
        *find_slot(g, list[i].key, list[i].key_bytes) = i + 1;
    return true;
}

static void release(struct group *group) {
    tally_state_destroy(group->state);
    free(group->money);
    free(group->key);
    free(group->element);
    free(group->partner);
}

/* Returns the problem for elements of this type. */
static const tally_problem *problem_of(struct groups *g, tally_type type) {
    tally_problem *problem = &g->typed[type];
    if (!problem->type) {
        *problem = *g->problem;
        problem->type = type;
    }
    return problem;
}

static bool make(struct groups *g, const char *key, size_t length, tally_type type) {
    struct group *group = &g->list[g->count];
    *group = (struct group){.key = malloc(length + 1), .key_bytes = length, .place = g->count};
    if (type)
        group->problem = problem_of(g, type);
    else
        group->money = calloc(1, sizeof *group->money);
    if (!group->key || (!type && !group->money)) return release(group), no_memory(g);
    memcpy(group->key, key, length);
    group->key[length] = 0;
    if (type && tally_state_create(group->problem, &group->state) != TALLY_OK)
        return failed("%s", tally_error()), release(group), false;
    g->count++;
    return true;
}

/* Returns whether a group takes elements of this type. */
static bool has_type(const struct group *group, tally_type type) {
    const tally_type own = group->problem ? group->problem->type : 0;
    if (own == type) return true;
    return failed("a column%s%s holds %s in one file and %s in another; convert one of them",
                  *group->key ? " " : "", group->key, own ? tally_type_name(own) : "decimals",
                  type ? tally_type_name(type) : "decimals"),
           false;
}

struct group *groups_find(struct groups *g, const char *key, size_t length, tally_type type) {
    if (!grow(g)) return NULL;
    size_t *slot = find_slot(g, key, length);
    if (!*slot) {
        if (!make(g, key, length, type)) return NULL;
        *slot = g->count;
    }
    struct group *group = &g->list[*slot - 1];
    return has_type(group, type) ? group : NULL;
}

struct group *groups_append(struct groups *g, const char *key, tally_type type) {
    return grow(g) && make(g, key, strlen(key), type) ? &g->list[g->count - 1] : NULL;
}

bool group_feed(struct groups *g, struct group *group, const void *x, const void *y, size_t n) {
    if (tally_state_feed(group->state, g->device, x, y, n) == TALLY_OK) return true;
    return failed("%s", tally_error()), false;
}

static bool flush(struct groups *g, struct group *group) {
    const size_t n = group->problem ? group->used / tally_type_size(group->problem->type) : 0;
    group->used = 0;
    return !n || group_feed(g, group, group->element, group->partner, n);
}

static bool widen(unsigned char **memory, size_t room) {
    unsigned char *grown = realloc(*memory, room);
    if (grown) *memory = grown;
    return grown;
}

bool group_add(struct groups *g, struct group *group, const void *x, const void *y, size_t n) {
    const size_t bytes = n * tally_type_size(group->problem->type);
    if (!bytes) return true;
    if (bytes > MOST_ROOM / 2) return flush(g, group) && group_feed(g, group, x, y, n);
    if (group->used + bytes > MOST_ROOM && !flush(g, group)) return false;
    if (group->used + bytes > group->room) {
        size_t room = group->room ? group->room : FIRST_ROOM;
        while (room < group->used + bytes)
            room *= 4;
        if (!widen(&group->element, room) || (y && !widen(&group->partner, room)))
            return no_memory(g);
        group->room = room;
    }
    memcpy(group->element + group->used, x, bytes);
    if (y) memcpy(group->partner + group->used, y, bytes);
    group->used += bytes;
    return true;
}

bool groups_flush(struct groups *g) {
    for (size_t i = 0; i < g->count; i++)
        if (!flush(g, &g->list[i])) return false;
    return true;
}

/* ---- Sorting ---- */

static bool as_number(const char *field, double *out) {
    char *end;
    *out = strtod(field, &end);
    return end != field && !*end && *out == *out;
}

static const char *find_field(const struct group *group, size_t field) {
    const char *at = group->key;
    for (; field; field--)
        at += strlen(at) + 1;
    return at;
}

/* How the keys are compared: qsort() hands nothing on. */
enum { FIELDS_MOST = 64 };
static size_t sorted_fields;
static bool is_numeric[FIELDS_MOST];

static int compare_field(const char *a, const char *b, bool as_numbers) {
    double x = 0, y = 0;
    if (as_numbers && as_number(a, &x) && as_number(b, &y) && x != y) return x < y ? -1 : 1;
    return strcmp(a, b);
}

static int compare(const void *a, const void *b) {
    const struct group *one = a, *other = b;
    int order = 0;
    for (size_t f = 0; f < sorted_fields && !order; f++)
        order = compare_field(find_field(one, f), find_field(other, f), is_numeric[f]);
    return order ? order : one->place < other->place ? -1 : 1;
}

void groups_sort(struct groups *g, size_t fields) {
    double x;
    sorted_fields = fields < FIELDS_MOST ? fields : FIELDS_MOST;
    for (size_t f = 0; f < sorted_fields; f++) {
        is_numeric[f] = true;
        for (size_t i = 0; i < g->count && is_numeric[f]; i++)
            is_numeric[f] = as_number(find_field(&g->list[i], f), &x);
    }
    if (g->count) qsort(g->list, g->count, sizeof *g->list, compare);
}

void groups_free(struct groups *g) {
    for (size_t i = 0; i < g->count; i++)
        release(&g->list[i]);
    free(g->list);
    free(g->slots);
    *g = (struct groups){.problem = NULL};
}
