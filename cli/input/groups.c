/*
 * groups.c - see groups.h.
 */
#include "input/groups.h"

#include "common/message.h"
#include "input/written.h"

#include <stdlib.h>
#include <string.h>

enum {
    LONG_RUN = 32 << 10,   /* bytes: a longer run is fed at once */
    POOL_LEAST = 16 << 10, /* elements: a pool's first room */
    POOL_FED = 64 << 10,   /* elements that are collected, at least, before they are fed */
    POOL_A_GROUP = 32,     /* elements for each group, at least: feeding copies all states */
    POOL_MOST = 16 << 20   /* elements that are collected, at most */
};

static bool no_memory(const struct groups *g) {
    return failed("no memory for more than %zu groups; reduce parts of the data", g->count), false;
}

/* Hashes eight bytes at a time as FNV-1a does a single byte (Fowler, Noll and Vo): an exclusive or,
 * then a multiplication. */
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
}

/* Returns the pool of a type. Its states are created with its first group. */
static struct pool *pool_of(struct groups *g, tally_type type) {
    struct pool *pool = &g->pool[type];
    if (pool->states) return pool;
    pool->problem = *g->problem;
    pool->problem.type = type;
    if (tally_groups_create(&pool->problem, 0, &pool->states) == TALLY_OK &&
        tally_groups_index_within(pool->states) == TALLY_OK)
        return pool;
    return failed("%s", tally_error()), NULL;
}

/* Gives the group a number in the pool of its type, or an exact decimal sum. */
static bool give_place(struct groups *g, struct group *group, tally_type type) {
    if (!type) {
        group->money = calloc(1, sizeof *group->money);
        return group->money || no_memory(g);
    }
    struct pool *pool = pool_of(g, type);
    if (!pool) return false;
    if (pool->count == UINT32_MAX) return no_memory(g);
    group->problem = &pool->problem;
    group->number = pool->count++;
    return true;
}

static bool make(struct groups *g, const char *key, size_t length, tally_type type) {
    struct group *group = &g->list[g->count];
    *group = (struct group){.key = malloc(length + 1), .key_bytes = length, .place = g->count};
    if (!group->key) return no_memory(g);
    memcpy(group->key, key, length);
    group->key[length] = 0;
    if (!give_place(g, group, type)) return release(group), false;
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

struct group *groups_find_behind(struct groups *g, const struct group *before, const char *key,
                                 size_t length, tally_type type) {
    struct group *next = before ? &g->list[before - g->list + 1] : NULL;
    if (!next || next == g->list + g->count || next->key_bytes != length ||
        memcmp(next->key, key, length) != 0)
        return groups_find(g, key, length, type);
    return has_type(next, type) ? next : NULL;
}

struct group *groups_append(struct groups *g, const char *key, tally_type type) {
    return grow(g) && make(g, key, strlen(key), type) ? &g->list[g->count - 1] : NULL;
}

/* ---- Feeding ---- */

/* Feeds what a pool has collected. */
static bool flush(const struct groups *g, struct pool *pool) {
    tally_shape shape = TALLY_DEFAULTS;
    shape.cut = TALLY_GROUPS;
    shape.n = pool->n;
    shape.count = pool->count;
    shape.ids = pool->id;
    shape.ids_type = TALLY_U32;
    if (pool->states && tally_groups_grow(pool->states, pool->count) != TALLY_OK)
        return failed("%s", tally_error()), false;
    if (pool->n && tally_groups_feed(pool->states, g->device, &shape, pool->x, pool->y) != TALLY_OK)
        return failed("%s", tally_error()), false;
    pool->n = 0;
    return true;
}

bool groups_flush(struct groups *g) {
    for (size_t type = 0; type < TYPES_MOST; type++)
        if (!flush(g, &g->pool[type])) return false;
    return true;
}

/* Takes the group's state out of its pool. */
static bool take_out(struct groups *g, struct group *group) {
    struct pool *pool = &g->pool[group->problem->type];
    if (group->state) return true;
    if (!flush(g, pool)) return false;
    if (tally_groups_state(pool->states, group->number, &group->state) == TALLY_OK) return true;
    return failed("%s", tally_error()), false;
}

bool group_feed(struct groups *g, struct group *group, const void *x, const void *y, size_t n) {
    if (!take_out(g, group)) return false;
    if (tally_state_feed(group->state, g->device, x, y, n) == TALLY_OK) return true;
    return failed("%s", tally_error()), false;
}

const tally_state *group_state(const struct groups *g, const struct group *group,
                               tally_state **copy) {
    *copy = NULL;
    if (group->state) return group->state;
    const struct pool *pool = &g->pool[group->problem->type];
    if (tally_groups_state(pool->states, group->number, copy) == TALLY_OK) return *copy;
    return failed("%s", tally_error()), NULL;
}

static bool widen(unsigned char **memory, size_t bytes) {
    unsigned char *grown = realloc(*memory, bytes);
    if (grown) *memory = grown;
    return grown;
}

/* Makes room in the pool for n more elements, with partners or without. */
static bool make_room(const struct groups *g, struct pool *pool, bool has_partners, size_t n) {
    const size_t element = tally_type_size(pool->problem.type), wanted = pool->count * POOL_A_GROUP;
    const size_t most = wanted < POOL_FED    ? (size_t)POOL_FED
                        : wanted < POOL_MOST ? wanted
                                             : (size_t)POOL_MOST;
    if (pool->n + n > most && !flush(g, pool)) return false;
    if (pool->n + n <= pool->room && (pool->y || !has_partners)) return true;
    size_t room = pool->room ? 2 * pool->room : (size_t)POOL_LEAST;
    while (room < pool->n + n)
        room *= 2;
    uint32_t *id = realloc(pool->id, room * sizeof *id);
    if (id) pool->id = id;
    if (!id || !widen(&pool->x, room * element) ||
        (has_partners && !widen(&pool->y, room * element)))
        return no_memory(g);
    pool->room = room;
    return true;
}

bool group_add(struct groups *g, struct group *group, const void *x, const void *y, size_t n) {
    struct pool *pool = &g->pool[group->problem->type];
    const size_t element = tally_type_size(group->problem->type);
    if (!n) return true;
    if (group->state || n * element > LONG_RUN) return group_feed(g, group, x, y, n);
    if (!make_room(g, pool, y, n)) return false;
    for (size_t i = 0; i < n; i++)
        pool->id[pool->n + i] = (uint32_t)group->number;
    memcpy(pool->x + pool->n * element, x, n * element);
    if (y) memcpy(pool->y + pool->n * element, y, n * element);
    pool->n += n;
    return true;
}

/* ---- Sorting ---- */

/* Returns whether a field with the usual marks is a number. */
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

/* Arguments of compare(): qsort() cannot hand them on. */
enum { FIELDS_MOST = 64 };
static size_t sorted_fields;
static bool is_numeric[FIELDS_MOST];
static const struct spelling *sorted_spelling;

/* Compares fields that are read as the same double. Decimals are compared by exact value. Others,
 * such as inf, lie behind all decimals, farther from 0. Equal ones are compared by their bytes. */
static int compare_equal(const char *a, const char *b, bool negative) {
    struct written x, y;
    const bool is_decimal = written_read(a, &x), is_other = written_read(b, &y);
    int order = is_other - is_decimal;
    if (negative) order = -order;
    if (is_decimal && is_other) order = written_compare(&x, &y);
    return order ? order : strcmp(a, b);
}

static int compare_field(const char *a, const char *b, bool as_numbers) {
    double x = 0, y = 0;
    char plain[SPELLING_PLAIN], other[SPELLING_PLAIN];
    if (!as_numbers) return strcmp(a, b);
    a = spelling_plain(sorted_spelling, a, plain);
    b = spelling_plain(sorted_spelling, b, other);
    if (!as_number(a, &x) || !as_number(b, &y)) return strcmp(a, b);
    return x != y ? (x < y ? -1 : 1) : compare_equal(a, b, x < 0);
}

static int compare(const void *a, const void *b) {
    const struct group *one = a, *other = b;
    int order = 0;
    for (size_t f = 0; f < sorted_fields && !order; f++)
        order = compare_field(find_field(one, f), find_field(other, f), is_numeric[f]);
    return order ? order : one->place < other->place ? -1 : 1;
}

void groups_sort(struct groups *g, size_t fields, const struct spelling *spelling) {
    char plain[SPELLING_PLAIN];
    double x;
    sorted_spelling = spelling;
    sorted_fields = fields < FIELDS_MOST ? fields : FIELDS_MOST;
    for (size_t f = 0; f < sorted_fields; f++) {
        is_numeric[f] = true;
        for (size_t i = 0; i < g->count && is_numeric[f]; i++)
            is_numeric[f] =
                as_number(spelling_plain(spelling, find_field(&g->list[i], f), plain), &x);
    }
    if (g->count) qsort(g->list, g->count, sizeof *g->list, compare);
}

void groups_free(struct groups *g) {
    for (size_t i = 0; i < g->count; i++)
        release(&g->list[i]);
    for (size_t type = 0; type < TYPES_MOST; type++) {
        struct pool *pool = &g->pool[type];
        tally_groups_destroy(pool->states);
        free(pool->id);
        free(pool->x);
        free(pool->y);
    }
    free(g->list);
    free(g->slots);
    *g = (struct groups){.problem = NULL};
}
