/*
 * half.h - f16 as f32, which holds it exactly: for hosts (src/exact/round.c) and kernels alike.
 *
 * Before including this header, define u32 and PURE.
 */
#ifndef TALLY_HALF_H
#define TALLY_HALF_H

/* Returns the bits of the f32 equal to the f16 of these bits. An infinity or a NaN stays one, with
 * its fraction. */
PURE u32 half_bits_widened(u32 h) {
    const u32 sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;
    if (rest >= 0x7c00u) return sign | 0x7f800000u | (rest & 0x3ffu) << 13;
    if (rest >= 0x400u) return sign | ((rest << 13) + ((127u - 15u) << 23)); /* the other bias */
    if (rest == 0) return sign;
    u32 up = 1; /* subnormal: so far up to the implicit bit, 2^10 */
    while (!(rest << up & 0x400u))
        up++;
    return sign | ((113u - up) << 23) | ((rest << up & 0x3ffu) << 13);
}

#if defined(float_bits)
/* Returns the float equal to the f16 of these bits, without a branch, for loops that compilers
 * vectorize. The bits at their new place are a float 2^112 times too small, and a multiplication
 * scales it. A NaN may become another NaN. */
PURE float half_widened(u32 h) {
    const u32 magnitude = h & 0x7fffu;
    const u32 bits = float_bits(float_from(magnitude << 13) * 0x1p112f);
    return float_from(bits | (magnitude >= 0x7c00u ? 0x7f800000u : 0) | (h & 0x8000u) << 16);
}
#endif

#endif
