/*
 * missing.c - see missing.h.
 */
#include "input/missing.h"

#include "common/message.h"
#include "common/types.h"

#include <stdlib.h>
#include <string.h>

bool missing_can_be(const struct spelling *s, tally_type type) {
    return s->skip_na && (type_is_floating(type) || s->has_na_number);
}

/* Clears mask[i] if x[i] is NaN: all bits of its exponent are set, and one more below them. */
#define MARK_NAN(bits, exponent)                                                                   \
    for (size_t i = 0; i < n; i++) {                                                               \
        uint##bits##_t v;                                                                          \
        memcpy(&v, x + i * sizeof v, sizeof v);                                                    \
        mask[i] &= (unsigned char)-((v & (UINT##bits##_MAX >> 1)) <= (exponent));                  \
    }

static void mark_nan(tally_type type, const unsigned char *x, size_t n, unsigned char *mask) {
    switch (type) {
    case TALLY_F16:
        MARK_NAN(16, 0x7c00)
        break;
    case TALLY_BF16:
        MARK_NAN(16, 0x7f80)
        break;
    case TALLY_F32:
        MARK_NAN(32, 0x7f800000u)
        break;
    case TALLY_F64:
        MARK_NAN(64, 0x7ff0000000000000u)
        break;
    default:
        break;
    }
}

size_t missing_mark(const struct spelling *s, tally_type type, const void *x, size_t n,
                    unsigned char *mask) {
    const unsigned char *at = x;
    const size_t size = tally_type_size(type);
    size_t left = 0;
    mark_nan(type, at, n, mask);
    struct na_numbers numbers;
    if (s->has_na_number) spelling_na_numbers(s, type, &numbers);
    for (size_t i = 0; s->has_na_number && i < n; i++)
        if (mask[i] && spelling_is_na_number(&numbers, at + i * size)) mask[i] = 0;
    for (size_t i = 0; i < n; i++)
        left += mask[i] != 0;
    return left;
}

/* ---- Runs ---- */

static void compact(unsigned char *to, const unsigned char *from, const unsigned char *mask,
                    size_t n, size_t size) {
    for (size_t i = 0; i < n; i++) {
        memcpy(to, from + i * size, size);
        to += mask[i] ? size : 0;
    }
}

bool kept_choose(struct kept *k, const struct spelling *s, tally_type type, const void **x,
                 const void **y, size_t n) {
    const size_t size = tally_type_size(type);
    if (!k->mask) k->mask = malloc(KEPT_MOST);
    if (!k->x) k->x = malloc((KEPT_MOST + 1) * size);
    if (!k->y && *y) k->y = malloc((KEPT_MOST + 1) * size);
    if (!k->mask || !k->x || (*y && !k->y))
        return failed("no memory for a buffer of %zu bytes", KEPT_MOST * size), false;
    memset(k->mask, 1, n);
    k->n = missing_mark(s, type, *x, n, k->mask);
    if (*y) k->n = missing_mark(s, type, *y, n, k->mask);
    if (k->n == n) return true;
    compact(k->x, *x, k->mask, n, size);
    *x = k->x;
    if (!*y) return true;
    compact(k->y, *y, k->mask, n, size);
    *y = k->y;
    return true;
}

void kept_free(struct kept *k) {
    free(k->mask);
    free(k->x);
    free(k->y);
    *k = (struct kept){.mask = NULL};
}

/* ---- Indexes ---- */

/* Returns which entry of index_map.index belongs to the problem's value i; INDEXES_MOST if that value is no index. */
static size_t place_of(const tally_problem *problem, size_t i) {
    const tally_op op = tally_problem_value_op(problem, i);
    return op == TALLY_ARGMIN ? 0 : op == TALLY_ARGMAX ? 1 : INDEXES_MOST;
}

/* Returns the place in the run of the kept element that has number `rank`, from 0, among the kept
 * ones. */
static uint64_t place_in_run(const struct kept *k, size_t n, uint64_t rank) {
    for (size_t i = 0; i < n; i++)
        if (k->mask[i] && !rank--) return i;
    return 0;
}

void index_map_note(struct index_map *p, const tally_problem *problem, const tally_state *state,
                    const struct kept *k, size_t n) {
    tally_value value[TALLY_VALUES_MAX];
    size_t count = 0;
    const bool has_gaps = p->seen != p->kept || k->n != n;
    bool asks = false;
    tally_problem_values(problem, &count);
    for (size_t i = 0; i < count; i++)
        asks |= place_of(problem, i) < INDEXES_MOST;
    if (asks && has_gaps && k->n && tally_state_value(state, value) == TALLY_OK)
        for (size_t i = 0; i < count; i++) {
            const size_t place = place_of(problem, i);
            if (place == INDEXES_MOST || !value[i].type) continue;
            const uint64_t index = value[i].as.u64;
            if (index >= p->kept)
                p->index[place] = p->seen + place_in_run(k, n, index - p->kept);
            else if (!p->is_known[place])
                p->index[place] = index; /* from before the first gap: the same in both */
            p->is_known[place] = true;
        }
    p->seen += n;
    p->kept += k->n;
}

void index_map_apply(const struct index_map *p, const tally_problem *problem, tally_value *values,
                     size_t count) {
    for (size_t i = 0; i < count; i++) {
        const size_t place = place_of(problem, i);
        if (place < INDEXES_MOST && p->is_known[place] && values[i].type)
            values[i].as.u64 = p->index[place];
    }
}
