/*
 * list.c - see list.h.
 */
#include "input/list.h"

#include "common/message.h"

#include <stdlib.h>
#include <string.h>

/* Copies an item, without blanks around it; returns the comma or the end behind it. */
static const char *take_item(const char *at, char *to) {
    char *first = to;
    while (*at == ' ')
        at++;
    if (*at == '"' && strchr(at + 1, '"')) {
        for (at++; *at && *at != '"'; at++)
            *to++ = *at;
        at += *at == '"';
        at += strspn(at, " ");
        if (!*at || *at == ',') return *to = 0, at;
        *first = 0; /* something stands behind the quote */
        return at + strcspn(at, ",");
    }
    for (; *at && *at != ','; at++) {
        if (*at == '\\' && (at[1] == ',' || at[1] == '\\' || at[1] == '"')) at++;
        *to++ = *at;
    }
    while (to > first && to[-1] == ' ')
        to--;
    *to = 0;
    return at;
}

bool list_parse(struct list *list, const char *text) {
    const size_t length = strlen(text);
    *list = (struct list){
        .whole = text, .is_plain = !strpbrk(text, "\"\\"), .own = calloc(length + 2, 1)};
    if (!list->own) return failed("no memory for a list of %zu bytes", length), false;
    char *to = list->own;
    for (const char *at = text;; at++) {
        at = take_item(at, to);
        if (!*to || list->count == LIST_MOST) return list->count = 0, true;
        list->item[list->count++] = to;
        to += strlen(to) + 1;
        if (!*at) return true;
    }
}

void list_take_whole(struct list *list) {
    list->count = 1;
    list->item[0] = list->whole;
}

void list_free(struct list *list) {
    free(list->own);
    *list = (struct list){.whole = NULL};
}
