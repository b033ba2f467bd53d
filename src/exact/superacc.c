/* superacc.c - see superacc.h. */
#include "exact/superacc.h"

#include <string.h>

void superacc_clear(struct superacc *a) {
    memset(a, 0, sizeof *a);
}

void superacc_normalise(struct superacc *a) {
    int64_t carry = 0;
    for (int i = 0; i < SUPERACC_LIMBS - 1; i++) {
        int64_t sum = a->limb[i] + carry; /* |limb| <= 2^61, |carry| <= 2^30 */
        a->limb[i] = sum & 0xffffffff;
        carry = sum >> 32; /* floor: arithmetic shift */
    }
    a->limb[SUPERACC_LIMBS - 1] += carry;
    a->used = 1;
}

/* Makes room for `more` further additions. */
static void make_room(struct superacc *a, uint32_t more) {
    if (a->used > SUPERACC_USED_MAX - more) superacc_normalise(a);
    a->used += more;
}

void superacc_add(struct superacc *a, __int128 value, int exponent) {
    make_room(a, 1);
    unsigned offset = (unsigned)(exponent - SUPERACC_LOWEST);
    unsigned i = offset / 32, shift = offset % 32;
    int64_t sign = value < 0 ? -1 : 1;
    unsigned __int128 rest = value < 0 ? -(unsigned __int128)value : (unsigned __int128)value;

    /* The lowest digit holds what the shift leaves of 32 bits; the others follow whole. */
    uint64_t low = (uint64_t)((uint32_t)rest) << shift;
    a->limb[i] += sign * (int64_t)(low & 0xffffffff);
    rest >>= 32 - shift;
    while (rest != 0) {
        a->limb[++i] += sign * (int64_t)(uint32_t)rest;
        rest >>= 32;
    }
}

void superacc_merge(struct superacc *a, const struct superacc *b) {
    uint32_t more = b->used;
    if (a->used > SUPERACC_USED_MAX - more) superacc_normalise(a);
    if (a->used > SUPERACC_USED_MAX - more) { /* b is nearly full itself: settle a copy of it */
        struct superacc settled = *b;
        superacc_normalise(&settled);
        superacc_merge(a, &settled);
        return;
    }
    for (int i = 0; i < SUPERACC_LIMBS; i++)
        a->limb[i] += b->limb[i];
    a->used += more;
}
