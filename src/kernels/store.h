/*
 * store.h - how a value's bits are written where results are.
 *
 * Before including this header, include kernel.h.
 */
#ifndef TALLY_STORE_H
#define TALLY_STORE_H

/* Writes an element of `width` bits, 8, 16, 32 or 64, to `to`, which is a multiple of its size. */
__device__ void store_bits(GLOBAL u8 *to, u32 width, u64 bits) {
    if (width == 64)
        *(GLOBAL u64 *)to = bits;
    else if (width == 32)
        *(GLOBAL u32 *)to = (u32)bits;
    else if (width == 16)
        *(GLOBAL u16 *)to = (u16)bits;
    else
        *to = (u8)bits;
}

#endif
