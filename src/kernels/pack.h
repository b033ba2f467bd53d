/*
 * pack.h - a pack: 16 bytes of elements, as a lane loads them.
 *
 * Before including this header, include operators.h.
 */
#ifndef TALLY_PACK_H
#define TALLY_PACK_H

#define PACK (16 / (u32)sizeof(element)) /* elements of a pack */

typedef union pack {
    uint4 all;
    u64 half[2];
    u32 pair[4]; /* elements of 16 bits lie two to a word */
    element e[16 / sizeof(element)];
} pack;

#endif
