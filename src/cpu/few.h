/*
 * few.h - the exact sum of a handful of numbers.
 *
 * A template with the parameters of extract.h. For a few numbers whose exponents lie close together there
 * is no need to choose a window: each mantissa is shifted to the least exponent's scale and added to one
 * 128-bit integer.
 *
 * Bounds: a mantissa has at most 53 bits, shifted by at most FEW_SPAN = 66, and FEW_MAX = 2^3 of them are
 * added: below 2^(53 + 66 + 3) = 2^122.
 */

#define FEW_MAX  8
#define FEW_SPAN 66

/* Adds n <= FEW_MAX terms to s and returns 1; or does nothing and returns 0, where their exponents span more than
 * FEW_SPAN or one of them is not finite. */
static int INSTANCE(few)(const ELEMENT *x, const ELEMENT *y, size_t n, struct exact_sum *s) {
    int least = 2 * HIGHEST + 2,
        most = 0; /* exponent fields; a subnormal's counts as 1, zero as none */
    for (size_t i = 0; i < n; i++) {
        WORD bits = INSTANCE(word)(x + i, y + i);
        int field = (int)(bits >> MANTISSA) & (2 * HIGHEST + 1);
        field += field == 0;
        most = field > most ? field : most;
        least = (WORD)(bits << 1) != 0 && field < least ? field : least;
    }
    if (most - least > FEW_SPAN || most == 2 * HIGHEST + 1) return 0;
    if (least > most) return 1; /* all zeros */

    __int128 sum = 0;
    for (size_t i = 0; i < n; i++) {
        WORD bits = INSTANCE(word)(x + i, y + i);
        int field = (int)(bits >> MANTISSA) & (2 * HIGHEST + 1);
        uint64_t mantissa = bits & (((WORD)1 << MANTISSA) - 1);
        mantissa |= (uint64_t)(field != 0) << MANTISSA;
        int up = field + (field == 0) - least;
        __int128 shifted = (__int128)mantissa << (up > 0 ? up : 0); /* below 0 for a zero only */
        sum += bits >> (8 * sizeof(WORD) - 1) ? -shifted : shifted;
    }
    exact_sum_add(s, sum, LOWEST + least - 1);
    return 1;
}
