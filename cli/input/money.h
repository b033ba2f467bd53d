/*
 * money.h - the exact decimal sum of decimals as they are written: 0.10 + 0.20 is 0.30.
 */
#ifndef TALLY_CLI_MONEY_H
#define TALLY_CLI_MONEY_H

#include "input/decimal.h"

#include <stddef.h>
#include <stdint.h>

enum {
    MONEY_LIMBS = 96,                         /* of nine digits each */
    MONEY_POINT = MONEY_LIMBS / 2,            /* the limb of the units */
    MONEY_DIGITS = 9 * (MONEY_LIMBS / 2 - 4), /* digits of a number on each side of the point */
    MONEY_TEXT = 9 * MONEY_LIMBS + 4,         /* bytes of a printed sum */
    MONEY_SHORT = 18                          /* digits of a short number */
};

/* The sum is that of limb[i] * 10^(9 (i - MONEY_POINT)) and of short_sum[p] * 10^-p. */
struct money {
    int64_t limb[MONEY_LIMBS];
    __int128 short_sum[MONEY_SHORT + 1]; /* short numbers with p digits behind the point */
    uint32_t since;                      /* numbers that have been added since carries were made */
    int places; /* the most digits behind the point that a number has had */
};

/* Adds digits * 10^-places, a short number. */
void money_add_short(struct money *money, int64_t digits, int places);
/* Adds the number that the text is, such as -12.50 or 1e-7; DECIMAL_SPARE bytes behind it can be read. */
enum decimal_result money_add(struct money *money, const char *text);
/* Returns what money_add() would return, without adding. */
enum decimal_result money_check(const char *text);
/* Adds another sum. */
void money_merge(struct money *money, const struct money *other);
/* Prints all digits, as many behind the point as a number has had; returns text. */
const char *money_print(const struct money *money, char text[MONEY_TEXT]);

#endif
