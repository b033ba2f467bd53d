/*
 * wide.c - see wide.h.
 *
 * A saved state has the limbs of its exact sums (docs/states.md): behind a header the words of one monoid after the
 * other, of integers first those below. Each has four words that only floats need, and then limb i, which weighs
 * 2^(32 i).
 */
#include "reduce/wide.h"

#include "common/types.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER_BYTES = 48, WORDS_BEFORE = 4, LIMBS_MAX = 6 };

static const struct {
    size_t limbs;
    tally_op result; /* its value, as an integer */
    tally_op of[3];  /* others that need it */
} sums[] = {
    {4, TALLY_SUM, {TALLY_MEAN, TALLY_VAR, TALLY_STD}},
    {6, TALLY_SUMSQ, {TALLY_VAR, TALLY_STD, TALLY_NORM2}},
    {6, TALLY_DOT, {0}},
    {4, TALLY_NORM1, {0}},
};

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

static bool is_needed(const tally_problem *problem, size_t sum) {
    size_t count = 0;
    tally_problem_values(problem, &count);
    for (size_t i = 0; i < count; i++) {
        const tally_op op = tally_problem_value_op(problem, i);
        if (op == sums[sum].result) return true;
        for (size_t k = 0; k < sizeof sums->of / sizeof *sums->of; k++)
            if (op == sums[sum].of[k]) return true;
    }
    return false;
}

/* Copies the limbs of the sum whose value is `op` from the state; returns how many, or 0. */
static size_t find_limbs(const tally_problem *problem, const tally_state *state, tally_op op,
                         int64_t limb[LIMBS_MAX]) {
    size_t sum = 0, at = HEADER_BYTES;
    for (; sum < sizeof sums / sizeof *sums && sums[sum].result != op; sum++)
        if (is_needed(problem, sum)) at += 8 * (WORDS_BEFORE + sums[sum].limbs);
    if (sum == sizeof sums / sizeof *sums) return 0;
    at += 8 * (size_t)WORDS_BEFORE;
    const size_t count = sums[sum].limbs, size = tally_state_size(state);
    unsigned char *saved = malloc(size);
    const bool is_there =
        saved && at + 8 * count <= size && tally_state_save(state, saved, size) == TALLY_OK;
    for (size_t i = 0; is_there && i < count; i++) {
        uint64_t word = 0;
        for (size_t k = 8; k-- > 0;)
            word = word << 8 | saved[at + 8 * i + k];
        limb[i] = (int64_t)word;
    }
    free(saved);
    return is_there ? count : 0;
}

bool wide_print(const tally_problem *problem, const tally_state *state, size_t value,
                char text[WIDE_TEXT]) {
    int64_t limb[LIMBS_MAX];
    if (type_is_floating(problem->type)) return false;
    const size_t count = find_limbs(problem, state, tally_problem_value_op(problem, value), limb);
    if (!count) return false;
    char digits[WIDE_TEXT], *at = digits + sizeof digits - 1;
    const bool negative = settle(limb, count);
    *at = 0;
    do
        *--at = (char)('0' + next_digit(limb, count));
    while (!is_zero(limb, count));
    if (negative) *--at = '-';
    memcpy(text, at, strlen(at) + 1);
    return true;
}
