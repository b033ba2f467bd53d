/* own_hints.c - see own_hints.h. */
#include "teach/own_hints.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Notes a number that may be the threads of a block: a power of two up to 1024. */
static void hint_number(struct own_source *r, unsigned long n) {
    if (n < 2 || n > 1024 || (n & (n - 1)) || r->out->block_count == OWN_BLOCKS_MAX) return;
    for (size_t i = 0; i < r->out->block_count; i++)
        if (r->out->blocks[i] == n) return;
    r->out->blocks[r->out->block_count++] = (unsigned)n;
}

void hint_block(struct own_source *r, struct own_token t, size_t end) {
    if (t.from < end) hint_number(r, strtoul(r->clean + t.from, NULL, 10));
}

void hint_lengths(struct own_source *r, size_t from, size_t end) {
    unsigned long product = 1, lengths[2] = {0, 0};
    size_t count = 0;
    for (struct own_token open = token_find(r, from, end, "["); open.from < end;
         open = token_find(r, open.to, end, "[")) {
        const struct own_token length = token_next(r, open.to, end);
        const unsigned long n = strtoul(r->clean + length.from, NULL, 10);
        product = n && product <= 1024 ? product * n : 0;
        if (count < 2) lengths[count] = n;
        count++;
        if (n >= 32) hint_block(r, length, end);
    }
    if (product >= 32) hint_number(r, product);
    if (count == 2 && product && product <= 1024 && !r->out->width) {
        r->out->height = (unsigned)lengths[0];
        r->out->width = (unsigned)lengths[1];
    }
}

bool hint_follows_block(const struct own_source *r, size_t from, struct own_token t) {
    static const char word[] = "blockIdx.x*";
    size_t left = sizeof word - 1, i = t.from;
    while (i > from && left > 0) {
        const char c = r->clean[--i];
        if (isspace((unsigned char)c) || c == '(') continue;
        if (c != word[--left]) return false;
    }
    return left == 0;
}

void hint_strides(struct own_source *r, size_t from, size_t end) {
    struct own_token before = {from, from}, earlier = before;
    for (struct own_token t = token_next(r, from, end); t.from < end;
         t = token_next(r, t.to, end)) {
        const bool adds = token_is(r, before, "=") && token_is(r, earlier, "+");
        if (isdigit((unsigned char)r->clean[t.from]) && (adds || hint_follows_block(r, from, t)) &&
            strtoul(r->clean + t.from, NULL, 10) >= 32)
            hint_block(r, t, end);
        earlier = before;
        before = t;
    }
}

/* Returns whether two characters, or the second of them, are an operator that compares. */
static bool compares(const char *two) {
    return (two[1] == '=' && strchr("=!<>", two[0])) || two[1] == '<' ||
           (two[1] == '>' && two[0] != '-');
}

bool hint_counts_blocks(const struct own_source *r, size_t from, size_t end) {
    struct own_token before = {from, from};
    for (struct own_token t = token_next(r, from, end); t.from < end;
         before = t, t = token_next(r, t.to, end)) {
        if (!token_is(r, t, "gridDim") || before.from < from + 1) continue;
        const size_t at = before.to - 1;
        if (compares(r->clean + at - 1)) return true;
        const struct own_token part = token_next(r, token_next(r, t.to, end).to, end);
        const struct own_token after = token_next(r, part.to, end);
        if (after.to < end && r->clean[after.from] == '=' && r->clean[after.from + 1] == '=')
            return true;
    }
    return false;
}
