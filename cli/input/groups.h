/*
 * groups.h - groups of elements, each with a state: one for each key of --by, or for each file of
 * --each.
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
    size_t key_bytes;             /* without the last field's zero byte */
    size_t place;                 /* in order of first appearance, from 0 */
    const tally_problem *problem; /* its pool's; NULL: decimals */
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
    const tally_problem *problem; /* the pools have copies of it, each with a type */
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
/* Returns the group of this key; a new one is made for elements of `type`, or with 0 for decimals.
 * Another call may move it. */
struct group *groups_find(struct groups *groups, const char *key, size_t length, tally_type type);
/* Does what groups_find() does, but first tries the group behind `before`, if that is not NULL:
 * groups that were made one behind the other are often looked for in that order, too. */
struct group *groups_find_behind(struct groups *groups, const struct group *before, const char *key,
                                 size_t length, tally_type type);
/* Appends a group and returns it, also if there is one of this key. */
struct group *groups_append(struct groups *groups, const char *key, tally_type type);
/* Add elements; y: the partners of dot, or NULL. group_add() collects a few of them, to be fed with
 * those of other groups. group_feed() feeds them at once; from then on the group has a state of its
 * own. */
bool group_add(struct groups *groups, struct group *group, const void *x, const void *y, size_t n);
bool group_feed(struct groups *groups, struct group *group, const void *x, const void *y, size_t n);
/* Feeds all elements that are still collected. To be called at the end. */
bool groups_flush(struct groups *groups);
/* Returns the group's state: its own, or a copy in *copy, which is the caller's to destroy, else NULL. */
const tally_state *group_state(const struct groups *groups, const struct group *group,
                               tally_state **copy);
/* Sorts the groups by the first `fields` fields of their keys: by the first, then the second, and
 * so on. A field is compared as a number if it is one, so spelled, in every key, else by its
 * bytes. */
void groups_sort(struct groups *groups, size_t fields, const struct spelling *spelling);
void groups_free(struct groups *groups);

#endif
