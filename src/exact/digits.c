/*
 * digits.c - see digits.h.
 *
 * The limbs before the point are divided by 10^9, and those behind the point are multiplied by 10^9. Each of these
 * steps yields nine digits. A sum of dyadic rationals has a last digit, so both loops end.
 */
#include "exact/digits.h"

#include "base/invariant.h"

#include <string.h>

#define POINT (-SUPERACC_LOWEST / 32) /* the limb of the units */
_Static_assert(32 * POINT == -SUPERACC_LOWEST, "the point lies between two limbs");

#define BASE  UINT64_C(1000000000)
#define NINES 9 /* digits of BASE - 1 */

/* Each division takes log2(10^9) = 29.9 bits. Each multiplication moves the lowest bit up by nine places, as 10^9 is a
 * multiple of 2^9. */
#define WHOLE_MOST    (32 * (SUPERACC_LIMBS - POINT) / 29 + 1)
#define FRACTION_MOST (32 * POINT / 9 + 1)
_Static_assert(1 + NINES * WHOLE_MOST + 1 + NINES * FRACTION_MOST + 1 <= EXACT_DIGITS_ROOM,
               "the digits fit the room");

static void write_nine(char digits[NINES], uint64_t nine) {
    for (int i = NINES - 1; i >= 0; i--, nine /= 10)
        digits[i] = (char)('0' + nine % 10);
}

/* Divides limbs [POINT, *high) by BASE and returns the remainder; *high falls with the highest limb that is not 0. */
static uint64_t divide(uint32_t *limb, int *high) {
    uint64_t rest = 0;
    for (int i = *high; i-- > POINT;) {
        rest = rest << 32 | limb[i];
        limb[i] = (uint32_t)(rest / BASE);
        rest %= BASE;
    }
    while (*high > POINT && limb[*high - 1] == 0)
        --*high;
    return rest;
}

/* Multiplies limbs [*low, POINT) by BASE and returns what passes the point; *low rises with the lowest limb that is not
 * 0. */
static uint64_t multiply(uint32_t *limb, int *low) {
    uint64_t carry = 0;
    for (int i = *low; i < POINT; i++) {
        carry += limb[i] * BASE;
        limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    while (*low < POINT && limb[*low] == 0)
        ++*low;
    return carry;
}

/* Copies the limbs of the magnitude; all outside [*low, *high) are 0. Returns whether the sum is negative. */
static int copy_magnitude(const struct exact_sum *s, uint32_t limb[SUPERACC_LIMBS], int *low,
                          int *high) {
    struct exact_sum copy = *s;
    struct superacc *a = exact_sum_limbs(&copy);
    superacc_normalise(a);
    const int negative = a->high > a->low && a->limb[a->high - 1] < 0;
    if (negative) {
        superacc_negate(a);
        superacc_normalise(a);
    }
    memset(limb, 0, SUPERACC_LIMBS * sizeof *limb);
    for (int i = a->low; i < a->high; i++) {
        TALLY_ASSERT(a->limb[i] >= 0 && a->limb[i] <= UINT32_MAX);
        limb[i] = (uint32_t)a->limb[i];
    }
    *low = a->low < POINT ? a->low : POINT;
    *high = a->high > POINT ? a->high : POINT;
    return negative;
}

/* Writes the digits before the point; returns the end. */
static char *write_whole(char *to, uint32_t *limb, int high) {
    char digits[NINES * WHOLE_MOST];
    size_t at = sizeof digits;
    do {
        at -= NINES;
        write_nine(digits + at, divide(limb, &high));
    } while (high > POINT);
    while (at + 1 < sizeof digits && digits[at] == '0')
        at++;
    memcpy(to, digits + at, sizeof digits - at);
    return to + (sizeof digits - at);
}

size_t exact_digits(const struct exact_sum *s, char text[EXACT_DIGITS_ROOM]) {
    uint32_t limb[SUPERACC_LIMBS];
    char *to = text;
    int low, high;
    if (s->nans || (s->plus && s->minus)) return strlen(strcpy(text, "nan"));
    if (s->plus || s->minus) return strlen(strcpy(text, s->plus ? "inf" : "-inf"));
    if (copy_magnitude(s, limb, &low, &high)) *to++ = '-';
    to = write_whole(to, limb, high);
    while (low < POINT && limb[low] == 0)
        low++;
    if (low < POINT) {
        for (*to++ = '.'; low < POINT; to += NINES)
            write_nine(to, multiply(limb, &low));
        while (to[-1] == '0')
            to--;
    }
    *to = 0;
    return (size_t)(to - text);
}
