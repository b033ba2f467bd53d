/*
 * list.h - a list on the command line: items with commas between them, as in price,quantity.
 *
 * An item in double quotes, or a comma behind a backslash, may hold commas: "price, net",quantity or price\, net,quantity.
 */
#ifndef TALLY_CLI_LIST_H
#define TALLY_CLI_LIST_H

#include <stdbool.h>
#include <stddef.h>

enum { LIST_MOST = 64 };

struct list {
    const char *whole; /* the text, as typed; NULL: no list was given */
    size_t count;      /* 0 where an item is empty, or there are more than LIST_MOST */
    bool is_plain;     /* `whole` has no quote and no backslash */
    const char *item[LIST_MOST];
    char *own; /* the memory that the items point into; owned */
};

/* Splits the text into items. Returns false, with a message, if memory is short. */
bool list_parse(struct list *list, const char *text);
/* Makes the whole text the only item. */
void list_take_whole(struct list *list);
void list_free(struct list *list);

#endif
