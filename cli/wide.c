/*
 * wide.c - see wide.h.
 *
 * tally_state_divided() gives the sum rounded to an f64. A multiple of a large number a little below it is
 * taken away from the state; what is left fits 64 bits, and the two are added up in 128.
 */
#include "wide.h"

#include "types.h"

#include <math.h>
#include <string.h>

/* A state of `times` elements 2^shift, the largest power of two that the type has: by doubling. */
static tally_status multiple(const tally_problem *problem, int shift, uint64_t times,
                             tally_state **out) {
    const uint64_t element = (uint64_t)1 << shift, one = 1; /* little-endian, or 64 bits */
    const size_t offset = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
                              ? 0
                              : sizeof element - tally_type_size(problem->type);
    const void *x = (const char *)&element + offset;
    const void *y = problem->op == TALLY_DOT ? (const char *)&one + offset : NULL;
    tally_status s = tally_state_create(problem, out);
    for (int bit = 63; bit >= 0 && s == TALLY_OK; bit--) {
        if (tally_state_count(*out)) s = tally_state_merge(*out, *out);
        if (s == TALLY_OK && (times >> bit & 1)) s = tally_state_feed(*out, NULL, x, y, 1);
    }
    return s;
}

/* Takes a multiple of 2^shift away that is a little nearer to zero than `near`; *taken is what it was. */
static tally_status take_away(const tally_problem *problem, tally_state *state, double near,
                              __int128 *taken) {
    const int shift = 8 * (int)tally_type_size(problem->type) - 2;
    const double size = fabs(near);
    const uint64_t times = (uint64_t)((size - size * 0x1p-50) * ldexp(1, -shift));
    tally_state *part = NULL;
    tally_status s = multiple(problem, shift, times, &part);
    if (s == TALLY_OK && near > 0) s = tally_state_negate(part);
    if (s == TALLY_OK) s = tally_state_merge(state, part);
    tally_state_destroy(part);
    *taken = ((__int128)times << shift) * (near > 0 ? 1 : -1);
    return s;
}

static void print(__int128 value, char text[WIDE_TEXT]) {
    char digits[WIDE_TEXT], *at = digits + sizeof digits - 1;
    const bool negative = value < 0;
    unsigned __int128 rest = negative ? -(unsigned __int128)value : (unsigned __int128)value;
    *at = 0;
    do
        *--at = (char)('0' + (int)(rest % 10));
    while (rest /= 10);
    if (negative) *--at = '-';
    memcpy(text, at, strlen(at) + 1);
}

bool wide_print(const tally_problem *problem, const tally_state *state, char text[WIDE_TEXT]) {
    tally_state *rest;
    tally_value value;
    __int128 sum = 0, taken;
    if ((problem->op != TALLY_SUM && problem->op != TALLY_DOT) || problem->also[0] ||
        type_is_floating(problem->type) || tally_state_copy(state, &rest) != TALLY_OK)
        return false;
    bool done = false;
    for (int i = 0; i < 4 && !done; i++) {
        done = tally_state_value(rest, &value) == TALLY_OK;
        if (done) break;
        if (tally_state_divided(rest, 1, TALLY_F64, &value) != TALLY_OK ||
            !(fabs(value.as.f64) < 0x1p120) ||
            take_away(problem, rest, value.as.f64, &taken) != TALLY_OK)
            break;
        sum += taken;
    }
    tally_state_destroy(rest);
    if (!done) return false;
    sum += value.type == TALLY_U64 ? (__int128)value.as.u64 : (__int128)value.as.i64;
    print(sum, text);
    return true;
}
