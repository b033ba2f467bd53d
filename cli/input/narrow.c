/*
 * narrow.c - rounding to a small floating format: count in units of the result's last place, round
 * the count to an integer, and read the bits off it.
 *
 * The exponent field and the fraction of a positive number, taken together as one integer, count the
 * format's numbers upward from 0. So a count that rounds up to the next power of two carries into the
 * exponent by itself, and subnormals need no case of their own.
 */
#include "input/narrow.h"

#include <math.h>

/* fraction: bits after the point; lowest: the exponent of the smallest normal number. */
static uint16_t narrow(double x, int fraction, int lowest) {
    uint32_t infinity = (uint32_t)(0x7fff >> fraction) << fraction;
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x)) return (uint16_t)(infinity | 1u << (fraction - 1));
    if (isinf(x)) return (uint16_t)(sign | infinity);
    int exponent = ilogb(x); /* very low for 0 */
    if (exponent < lowest) exponent = lowest;
    if (exponent > 1 - lowest) return (uint16_t)(sign | infinity);
    uint32_t count = (uint32_t)rint(scalbn(fabs(x), fraction - exponent));
    uint32_t bits = ((uint32_t)(exponent - lowest) << fraction) + count;
    return (uint16_t)(sign | (bits < infinity ? bits : infinity));
}

uint16_t narrow_f16(double x) {
    return narrow(x, 10, -14);
}

uint16_t narrow_bf16(double x) {
    return narrow(x, 7, -126);
}
