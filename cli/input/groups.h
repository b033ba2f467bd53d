/*
 * groups.h - states that elements are shared out to: one for each key of --by, or each file of --each.
 *
 * Every function that returns false or NULL has already written the line that says why.
 */
#ifndef TALLY_CLI_GROUPS_H
#define TALLY_CLI_GROUPS_H

#include "input/missing.h"
#include "input/money.h"
#include "tally.h"

#include <stdbool.h>

enum { TYPES_MOST = 16 }; /* a tally_type is less */

struct group {
    char *key;                    /* its fields, each ended by a zero byte; owned */
    size_t key_bytes;             /* without that of the last */
    size_t place;                 /* in order of first appearance, from 0 */
    const tally_problem *problem; /* of its elements' type; one of the groups'. NULL: decimals */
    size_t number;                /* its number in the pool of its type */
    tally_state *state;           /* owned; NULL while the pool has it */
    struct money *money;          /* owned; the exact decimal sum, or NULL */
    struct index_map index_map;   /* of an array's elements */
};

/* The states of the groups of one type, and elements that have not been fed yet. */
struct pool {
    tally_problem problem;
    tally_groups *states; /* owned */
    size_t count;         /* groups that have a number here */
    uint32_t *id;         /* owned: of each element the number of its group */
    unsigned char *x, *y; /* owned: the elements; y: their partners, of dot, or NULL */
    size_t n, room;       /* elements */
};

struct groups {
    const tally_problem *problem; /* but for the type */
    tally_device *device;
    bool is_decimal;
    struct pool pool[TYPES_MOST]; /* by type */
    struct group *list;           /* in order of first appearance; owned */
    size_t count, room;
    size_t *slots; /* a hash table of indices into the list, plus 1; owned */
    size_t slot_count;
};

/* Returns a hash of the key. */
uint64_t groups_hash(const char *key, size_t length);
/* The group of this key, made if it is new, for elements of a type; 0: decimals. It may move with the next call. */
struct group *groups_find(struct groups *groups, const char *key, size_t length, tally_type type);
/* Does the same, and looks at once at the group behind `before`, if that is not NULL: groups that are made one behind the other
 * are often looked for so, too. */
struct group *groups_find_behind(struct groups *groups, const struct group *before, const char *key,
                                 size_t length, tally_type type);
/* Returns a new one at the end, which groups_find() does not find. */
struct group *groups_append(struct groups *groups, const char *key, tally_type type);
/* Adds elements; y: the partners of dot, or NULL. Few are collected and fed with those of other groups. group_feed()
 * feeds them at once, to a state that the group has by itself from then on. */
bool group_add(struct groups *groups, struct group *group, const void *x, const void *y, size_t n);
bool group_feed(struct groups *groups, struct group *group, const void *x, const void *y, size_t n);
/* Feeds what has been added to all of them; to be called at the end. */
bool groups_flush(struct groups *groups);
/* Returns the group's state: its own, or a copy in *copy, which is the caller's to destroy, else NULL. */
const tally_state *group_state(const struct groups *groups, const struct group *group,
                               tally_state **copy);
/* By the first `fields` of their keys, one after the other: as numbers where all are, else by their bytes. */
void groups_sort(struct groups *groups, size_t fields);
void groups_free(struct groups *groups);

#endif
