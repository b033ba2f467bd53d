/*
 * groups.h - the argument of the kernels that reduce groups whose ids come in any order (groups.cu, group_ends.cu).
 * Kernels and the host read it alike.
 *
 * Before including this header, define u32, u64 and i64, and include plan.h.
 */
#ifndef TALLY_GROUPS_H
#define TALLY_GROUPS_H

#define GROUPS_VALUES 4     /* the most values of a plan */
#define GROUPS_CELLS  12032 /* words of 32 bits that a block keeps in shared memory */

/* For exact sums (groups.cu). GROUPS_RECORD: words of a group's record, without the two for special
 * elements and the count. A copy of a group's cells has GROUPS_DIGITS digits of 16 bits for integers
 * and at most GROUPS_DIGITS_MOST for floats. Where shared memory has no room for these, it has
 * GROUPS_WIDE digits of 32 bits. For means a copy has a cell more. */
#define GROUPS_RECORD(is_float, bits)                                                              \
    ((is_float) ? ((bits) == 64 ? 68u : 36u) : (bits) == 64 ? 3u : 1u)
#define GROUPS_DIGITS(bits)      ((bits) == 64 ? 4u : 2u)
#define GROUPS_DIGITS_MOST(bits) ((bits) == 64 ? 132u : 18u)
#define GROUPS_WIDE(bits)        ((bits) == 64 ? 3u : 2u)

typedef struct groups_plan {
    u64 n, count;           /* elements, and groups: fewer than 2^31 */
    i64 x, mask, out_first; /* indices of the first element, of its mask, and of the first result */
    u64 number_first; /* the number of the first result here among all that the caller asked for */
    u64 out[GROUPS_VALUES];   /* the byte where each value's results begin */
    u32 value[GROUPS_VALUES]; /* each value's operator, and from bit 8 on its type */
    u64 left; /* the word of the workspace where a bit for each group says whether it is for `zeros` */
    u64 records;             /* the word of the workspace where the groups' records begin */
    u32 values, first_value; /* number of values; the first one's number in the problem */
    u32 several;             /* the caller's problem has several values; here may be one of them */
    u32 ids;                 /* type of the ids */
    u32 masked, skip_outside;
    u32 counted; /* elements are counted, too, for means */
    u32 copies; /* of a group's cells in shared memory, a power of two; each lane adds to one of them */
    u32 digits; /* digits of a copy of a group's cells */
    u32 slices; /* how many blocks share the groups out */
    u32 each;   /* groups of each of these blocks */
    u64 flip;   /* extremes: the `flip` of key_of() (certain/order.h) */
} groups_plan;

#endif
