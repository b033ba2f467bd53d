/*
 * rounding.h - from an exact integer, times a power of two, to the nearest float: on the host (src/exact/round.c) and
 * on every device. Integer arithmetic only; results are bits. (Kernels round what two doubles hold in pair.h and
 * doubles.h, and sums of one word over ranks in terms.h.)
 *
 * Before including this header, define u32, i32, u64 and PURE.
 */
#ifndef TALLY_ROUNDING_H
#define TALLY_ROUNDING_H

/* A format: bits of mantissa without the implicit one, and the exponent bias, which is also the
 * largest exponent of a finite number. */
typedef struct float_format {
    i32 mantissa;
    i32 bias;
} float_format;

PURE u64 float_sign(float_format f) {
    return (u64)(2 * f.bias + 2) << f.mantissa;
}

PURE u64 float_infinity_bits(float_format f, u32 negative) {
    return (u64)(2 * f.bias + 1) << f.mantissa | (negative ? float_sign(f) : 0);
}

/* Returns the canonical quiet NaN. */
PURE u64 float_nan_bits(float_format f) {
    return float_infinity_bits(f, 0) | (u64)1 << (f.mantissa - 1);
}

/* Returns the bits of (negative ? -1 : 1) * top * 2^exponent, rounded to nearest, ties to even. If
 * `sticky`, the magnitude has a little more, less than 2^exponent. top is 0 (then sticky must be 0
 * and the result is +0) or has its highest bit set. Too large a value becomes infinity, too small a
 * one a subnormal or zero. */
PURE u64 round_bits(float_format f, u32 negative, u64 top, i32 exponent, u32 sticky) {
    const u64 sign = negative ? float_sign(f) : 0;
    if (top == 0) return 0;

    /* The number lies in [2^e, 2^(e+1)). Its last kept bit weighs 2^last = 2^(e - mantissa), but never less than the
     * format's smallest subnormal. Below half of that it is 0. */
    const i32 e = exponent + 63, smallest = 1 - f.bias - f.mantissa;
    const i32 last = e - f.mantissa < smallest ? smallest : e - f.mantissa;
    if (e > f.bias) return float_infinity_bits(f, negative);
    if (e < smallest - 1) return sign;

    /* top loses its lowest `drop` bits, 11 to 64. The highest of them weighs half of the last kept bit. That half is
     * added, less one unit where the kept part is even; the bits above the dropped ones are the result. `sticky` sets
     * top's last bit, a dropped one: of what lies below the half it only matters whether it is 0. */
    const i32 drop = last - exponent;
    const u64 whole = top | sticky, kept = whole >> (drop - 1) >> 1;
    const u64 more = whole + (((u64)1 << (drop - 1)) - 1) + (kept & 1);
    u64 bits = (more >> (drop - 1) >> 1) + ((u64)(more < whole) << (64 - drop));

    /* A subnormal's kept bits are its encoding; a normal's implicit bit counts one into the exponent
     * field. A carry out of the mantissa rightly raises the exponent in both, up to that of infinity. */
    if (e >= 1 - f.bias) bits += (u64)(e + f.bias - 1) << f.mantissa;
    return sign | bits;
}

/* Returns the bits of the float of format `to` nearest to the one of format `from` with these bits.
 * An infinity stays one; a NaN becomes the canonical one. */
PURE u64 round_float(float_format to, float_format from, u64 bits) {
    const u32 negative = (bits & float_sign(from)) != 0;
    const u64 magnitude = bits & (float_sign(from) - 1), infinity = float_infinity_bits(from, 0);
    if (magnitude > infinity) return float_nan_bits(to);
    if (magnitude == infinity) return float_infinity_bits(to, negative);
    if (magnitude == 0) return negative ? float_sign(to) : 0;
    const i32 field = (i32)(magnitude >> from.mantissa);
    u64 top = magnitude & (((u64)1 << from.mantissa) - 1);
    if (field != 0) top |= (u64)1 << from.mantissa;
    i32 exponent = (field ? field : 1) - from.bias - 63;
    top <<= 63 - from.mantissa;
    for (; top >> 63 == 0; top <<= 1) /* a subnormal */
        exponent--;
    return round_bits(to, negative, top, exponent, 0);
}

#endif
