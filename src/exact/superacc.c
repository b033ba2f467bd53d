/* superacc.c - see superacc.h. */
#include "exact/superacc.h"

#include "base/invariant.h"

#include <string.h>

void superacc_clear(struct superacc *a) {
    a->low = a->high = 0;
    a->used = 0;
}

/* Extends the range of touched limbs so that it covers [low, high), too. Clears the new limbs. */
static void touch(struct superacc *a, int low, int high) {
    if (a->low == a->high) {
        a->low = a->high = low;
    }
    if (low < a->low) {
        memset(&a->limb[low], 0, (size_t)(a->low - low) * sizeof a->limb[0]);
        a->low = low;
    }
    if (high > a->high) {
        memset(&a->limb[a->high], 0, (size_t)(high - a->high) * sizeof a->limb[0]);
        a->high = high;
    }
}

void superacc_normalise(struct superacc *a) {
    int64_t carry = 0;
    for (int i = a->low; i < a->high; i++) {
        int64_t sum = a->limb[i] + carry; /* |limb| <= 2^61, |carry| <= 2^30 */
        if (i == a->high - 1 && i < SUPERACC_LIMBS - 1 && sum >> 32 != 0 && sum >> 32 != -1)
            touch(a, i, i + 2); /* the last limb keeps 32 bits and the sign */
        if (i == a->high - 1) {
            a->limb[i] = sum;
            break;
        }
        a->limb[i] = sum & 0xffffffff;
        carry = sum >> 32; /* floor: arithmetic shift */
    }
    a->used = 1;
    TALLY_ASSERT(superacc_is_valid(a));
}

/* Makes room for `more` further additions. */
static void make_room(struct superacc *a, uint32_t more) {
    if (a->used > SUPERACC_USED_MAX - more) superacc_normalise(a);
    a->used += more;
}

void superacc_add(struct superacc *a, __int128 value, int exponent) {
    if (value == 0) return;
    TALLY_ASSERT(exponent >= SUPERACC_LOWEST);
    make_room(a, 1);
    const unsigned offset = (unsigned)(exponent - SUPERACC_LOWEST);
    const int first = (int)(offset / 32);
    const unsigned shift = offset % 32;
    const int64_t sign = value < 0 ? -1 : 1;
    unsigned __int128 rest = value < 0 ? -(unsigned __int128)value : (unsigned __int128)value;

    /* The lowest digit holds the lowest 32 - shift bits of the value, and each further digit 32 bits. */
    const uint32_t lowest = (uint32_t)rest << shift;
    int64_t digit[5] = {lowest};
    int digits = 1;
    for (rest >>= 32 - shift; rest != 0; rest >>= 32)
        digit[digits++] = (int64_t)(uint32_t)rest;
    TALLY_ASSERT(first + digits <= SUPERACC_LIMBS);
    touch(a, first, first + digits);
    for (int i = 0; i < digits; i++)
        a->limb[first + i] += sign * digit[i];
    TALLY_ASSERT(superacc_is_valid(a));
}

void superacc_merge(struct superacc *a, const struct superacc *b) {
    const uint32_t more = b->used;
    TALLY_ASSERT(superacc_is_valid(a) && superacc_is_valid(b));
    if (b->low == b->high) return;
    if (a == b || a->used > SUPERACC_USED_MAX - more) {
        /* a is b, or the bounds of both add up to too much. A normalised copy of b is another object, with used = 1. */
        struct superacc settled = *b;
        superacc_normalise(&settled);
        superacc_normalise(a);
        superacc_merge(a, &settled);
        return;
    }
    touch(a, b->low, b->high);
    for (int i = b->low; i < b->high; i++)
        a->limb[i] += b->limb[i];
    a->used += more;
    TALLY_ASSERT(superacc_is_valid(a));
}

void superacc_negate(struct superacc *a) {
    for (int i = a->low; i < a->high; i++)
        a->limb[i] = -a->limb[i];
}

int superacc_is_valid(const struct superacc *a) {
    if (a->low < 0 || a->low > a->high || a->high > SUPERACC_LIMBS) return 0;
    if (a->used > SUPERACC_USED_MAX) return 0;
    const int64_t bound = (int64_t)a->used << 32;
    for (int i = a->low; i < a->high; i++)
        if (a->limb[i] > bound || a->limb[i] < -bound) return 0;
    return 1;
}
