/*
 * wide.c - see wide.h.
 *
 * The wire form of an integer sum has its limbs, whatever it is a sum of (docs/states.md): n, four words that
 * only floats need, and then limb i, which weighs 2^(32 i).
 */
#include "wide.h"

#include "types.h"

#include <string.h>

enum { WORDS_BEFORE = 5, LIMBS_MAX = 8 };

/* Makes the limbs those of the magnitude, each in [0, 2^32); returns whether the number is negative. */
static bool settle(int64_t *limb, size_t count) {
    bool negative = limb[count - 1] < 0;
    int64_t carry = 0;
    for (size_t i = 0; i < count; i++) {
        const int64_t x = (negative ? -limb[i] : limb[i]) + carry;
        limb[i] = x & 0xffffffff;
        carry = (x - limb[i]) / ((int64_t)1 << 32);
    }
    return negative;
}

/* Divides the number by 10; returns the remainder. */
static int next_digit(int64_t *limb, size_t count) {
    int64_t rest = 0;
    for (size_t i = count; i-- > 0;) {
        const int64_t x = rest << 32 | limb[i];
        limb[i] = x / 10;
        rest = x % 10;
    }
    return (int)rest;
}

static bool is_zero(const int64_t *limb, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (limb[i]) return false;
    return true;
}

bool wide_print(const tally_problem *problem, const tally_state *state, char text[WIDE_TEXT]) {
    int64_t words[WORDS_BEFORE + LIMBS_MAX], *limb = words + WORDS_BEFORE;
    const bool is_sum = problem->op == TALLY_SUM || problem->op == TALLY_DOT ||
                        problem->op == TALLY_NORM1 || problem->op == TALLY_SUMSQ;
    const size_t size = tally_state_words(state);
    if (!is_sum || problem->also[0] || type_is_floating(problem->type) || size <= WORDS_BEFORE ||
        size > sizeof words / sizeof *words || tally_state_to_words(state, words) != TALLY_OK)
        return false;
    char digits[WIDE_TEXT], *at = digits + sizeof digits - 1;
    const bool negative = settle(limb, size - WORDS_BEFORE);
    *at = 0;
    do
        *--at = (char)('0' + next_digit(limb, size - WORDS_BEFORE));
    while (!is_zero(limb, size - WORDS_BEFORE));
    if (negative) *--at = '-';
    memcpy(text, at, strlen(at) + 1);
    return true;
}
