/*
 * integer_product - the exact product of integers, or the fact that it does not fit 64 bits.
 *
 * |product| never falls while no element is 0: it is exact in 64 bits until it overflows for good, and
 * a zero anywhere still makes it 0. An element other than 0, 1 and -1 at least doubles it, so it
 * overflows after 64 of them at the latest. So almost all work is a search for such elements.
 *
 * The record is the product of the magnitudes, with its lowest bit flipped, so that the record of no
 * elements is 0; and three flags. The product has no meaning once ZERO or OVERFLOW is set.
 */
#include "tuning.h"

#include "operators.h"

#define WORDS 2
#include "grid.h"

#include "result.h"

#define PAD 1

enum { NEGATIVE = 1, ZERO = 2, OVERFLOW = 4 };

/* record *= magnitude, which is not 0. */
PURE void multiply(u64 *record, u64 magnitude) {
    const u64 mine = record[0] ^ 1;
    if (mine > ~(u64)0 / magnitude)
        record[1] |= OVERFLOW;
    else
        record[0] = (mine * magnitude) ^ 1;
}

PURE void merge(u64 *a, const u64 *b) {
    a[1] = (a[1] ^ (b[1] & NEGATIVE)) | (b[1] & (ZERO | OVERFLOW));
    multiply(a, b[0] ^ 1);
}

PURE void add_one(element e, u64 *record) {
#if defined(SIGNED_TYPE)
    record[1] ^= e < 0 ? NEGATIVE : 0;
    multiply(record, e < 0 ? 0 - (u64)e : (u64)e);
#else
    multiply(record, (u64)e);
#endif
}

PURE void add_tile(const tile *t, u64 *record) {
    u32 zero = 0, large = 0, negative = 0;
    UNROLL
    for (u32 i = 0; i < TILE; i++) {
        const element e = t->e[i];
        zero |= e == 0;
#if defined(SIGNED_TYPE)
        large |= e < -1 || e > 1;
        negative ^= e < 0;
#else
        large |= e > 1;
#endif
    }
    if (zero)
        record[1] |= ZERO;
    else if (!large)
        record[1] ^= negative ? NEGATIVE : 0;
    else if (!(record[1] & (ZERO | OVERFLOW))) {
        const tile apart = *t; /* in memory, for the loop's index: *t stays in registers */
        for (u32 i = 0; i < TILE; i++)
            add_one(apart.e[i], record);
    }
}

PURE u64 value_of(const u64 *total, u64 n, u32 request, u32 *status) {
    const u64 magnitude = total[1] & ZERO ? 0 : total[0] ^ 1;
    const u32 negative = (total[1] & NEGATIVE) && magnitude != 0;
    u32 fits = !(total[1] & OVERFLOW) || (total[1] & ZERO);
#if defined(SIGNED_TYPE)
    fits = fits && magnitude <= (~(u64)0 >> 1) + negative;
#endif
    *status = fits ? RESULT_OK : RESULT_RANGE;
    return !fits ? 0 : negative ? 0 - magnitude : magnitude;
}

#include "fold.h"
