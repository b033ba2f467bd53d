/*
 * halves.h - the greatest and the least of numbers of 16 bits, which lie two to a word. CUDA from sm_90 on compares
 * both halves by one instruction: NUMBER_BITS is 16. Elsewhere a word is compared as one number, which its upper half
 * decides: NUMBER_BITS is 32. The word is then compared again, shifted up by 16, for its lower half. So a loop over
 * all shifts of 0, 16 ... below NUMBER_BITS compares all halves.
 *
 * Before including this header, include tuning.h.
 */
#ifndef TALLY_HALVES_H
#define TALLY_HALVES_H

#include "kernel.h"

#if ABILITY >= 900
#define NUMBER_BITS 16u /* of the numbers compared */
#define TWO_NUMBERS(name, instruction)                                                             \
    PURE u32 name(u32 a, u32 b) {                                                                  \
        asm(instruction " %0, %0, %1;" : "+r"(a) : "r"(b));                                        \
        return a;                                                                                  \
    }
TWO_NUMBERS(greatest_signed, "max.s16x2")
TWO_NUMBERS(least_signed, "min.s16x2")
TWO_NUMBERS(greatest_unsigned, "max.u16x2")
TWO_NUMBERS(least_unsigned, "min.u16x2")
#else
#define NUMBER_BITS 32u
PURE u32 greatest_signed(u32 a, u32 b) {
    return (i32)a > (i32)b ? a : b;
}
PURE u32 least_signed(u32 a, u32 b) {
    return (i32)a < (i32)b ? a : b;
}
PURE u32 greatest_unsigned(u32 a, u32 b) {
    return a > b ? a : b;
}
PURE u32 least_unsigned(u32 a, u32 b) {
    return a < b ? a : b;
}
#endif

/* The bounds of no halves, for note_halves(). */
#define NO_HALVES 0x7fff7fffu

/* Widens the bounds of magnitudes so that they hold for both floats of 16 bits in a word, too. *most gets the
 * greatest magnitude + 0x7fff, and *least the smallest magnitude but 0 + 0x7fff, or 0x7fff if there is none. In the
 * end UPPER_HALF(greatest_unsigned, *most) and UPPER_HALF(least_signed, *least) give these numbers. A magnitude of 0
 * becomes 0x7fff, which changes neither: it is the greatest signed number and, of those noted, the least unsigned
 * one. */
PURE void note_halves(u32 word_of_two, u32 *most, u32 *least) {
    const u32 moved = (word_of_two | 0x80008000u) - 0x00010001u;
    UNROLL
    for (u32 up = 0; up < NUMBER_BITS; up += 16) {
        *most = greatest_unsigned(*most, moved << up);
        *least = least_signed(*least, moved << up);
    }
}

/* The upper half of a word that is compared as one number; where it is compared as two, the half that `end` picks. */
#define UPPER_HALF(end, w) ((NUMBER_BITS == 32 ? (w) : end((w), (w) << 16)) >> 16)

/* Return the greatest magnitude that note_halves() has seen, and the smallest but 0; 0 if there is none. */
PURE u32 greatest_half(u32 most) {
    return UPPER_HALF(greatest_unsigned, most) - 0x7fff;
}
PURE u32 smallest_half(u32 least) {
    return UPPER_HALF(least_signed, least) - 0x7fff;
}

#endif
