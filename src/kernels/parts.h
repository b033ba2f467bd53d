/*
 * parts.h - the arguments of the kernels that reduce in parts (parts.cu, rows.cu, tree.cu), and where a row begins.
 * Kernels and the host read it alike.
 *
 * Rows. Every shape is rows of elements, one for each result: the rows of an array, segments, groups. The elements
 * of all rows, one row after the other, are numbered; element number j is that of row i where start(i) <= j <
 * start(i + 1). Starts are multiples of the length of equal rows, or offsets, the caller's or our own.
 *
 * Vectors. Segments and groups along an axis cut many vectors at the same places. Row i is part i / vectors of vector
 * i % vectors. Offsets count elements along the axis, so start(i) is vectors * offset + (i % vectors) * length of the
 * part.
 *
 * Where an element lies. In segments and groups, an element's number along the axis is its place, or what the order
 * has at that place (spots.h). In rows of an array, element k of row i has the number i * each + k. Strides turn
 * numbers into indices.
 *
 * Work. Pieces take equal amounts of it: the elements and, for each row, PARTS_ROW_WEIGHT.
 *
 * Before including this header, define u32, i32, u64 and i64, and include plan.h; kernels also include tuning.h.
 */
#ifndef TALLY_PARTS_H
#define TALLY_PARTS_H

#define PARTS_DIMS       16
#define PARTS_ROW_WEIGHT 256 /* a row's cost besides its elements, in elements */
#define PARTS_ROW_END    32  /* a row's cost besides its elements in rows.cu, in elements */
#define PARTS_LEAF       4096
/* The most elements of a row, and of a column, whose sum is added again in place if it is lost
 * (schedule/lost_sums.h). For longer ones `fold` is faster if many are lost (H200: three times for 4096 columns of
 * 8192). */
#define SUMS_AGAIN_MOST    (1 << 16)
#define COLUMNS_AGAIN_MOST (1 << 12)

/* Words of a record without its sums. PARTS_WORDS: in registers and on edges (state/cells.h). PARTS_REST: room for them
 * behind the sums, in the record that is lowered (lower_row()). */
#define PARTS_WORDS 13
#define PARTS_REST  12
/* Words of sums in a record: four of floats, two of them wide. */
#define PARTS_SUMS (2 * (FLOAT_LIMBS + WIDE_FLOAT_LIMBS + 2 * FLOAT_COUNTS))

/* How rows begin: at equal distances, or at offsets. Offsets say where the parts of an axis begin, and each part is
 * `vectors` rows, one after another. */
typedef struct part_rows {
    u64 count;
    u64 each;    /* elements of a row, where `kind` is 0 */
    u64 offsets; /* the byte where the offsets begin, else */
    u64 kind;    /* 4: they are i32; 8: i64 */
    u64 vectors; /* 0: one; more only for kernel files that define HAS_VECTORS */
} part_rows;

/* An axis: its length, and the amounts that a step along it adds to an element's or a result's
 * number and to the indices in x, y, the mask and the results. */
typedef struct part_extent {
    u64 length, number;
    i64 x, y, mask, out;
} part_extent;

enum { PARTS_AXES = 1, PARTS_SEGMENTS, PARTS_GROUPS };

/* The error words, the first ones of the workspace; all ones: no error. */
enum {
    PARTS_ABSENT, /* the first result that does not exist: its number * 64 + its value * 2 + 1 if it has no elements */
    PARTS_BAD,    /* the first offset, or id, that is wrong */
    PARTS_TOTAL,  /* how many elements are in the order */
    PARTS_HEAD
};

typedef struct parts_plan {
    lower_plan lower;
    part_rows rows;
    part_rows tree; /* where the tree's leaves' elements begin */
    u64 piece;      /* weight of a piece */
    u64 pieces;     /* number of pieces */
    u64 edges;      /* word of the workspace where the records of rows that were cut begin */
    u64 left; /* where the workspace says which rows are for `fold` (PARTS_LEFT_AT()); 0: all are */
    u64 order; /* the word of the workspace where the order begins; 0: there is none */
    u64 shown; /* the word where the numbers of the elements that a mask shows begin, for the tree; 0: there are none */
    u64 values;       /* the byte of the workspace where the tree's values begin */
    i64 x, y, mask;   /* the index of the first element in each */
    i64 out_first;    /* the index of the first result */
    u64 number_first; /* its number among all that the caller asked for */
    u64 n;            /* segments, groups: elements of x */
    u64 counts; /* the word of the workspace where filled rows' counts begin; 0: there are none */
    u32 cut, monoids; /* PARTS_AXES ...; a bit for each PLAN_... that there is */
    u32 sums;         /* words of the sums in a record */
    u32 team;         /* of a row: threads in `quick`, 1 or WARP; warps in `block_rows` */
    u32 quick_most;   /* elements of the longest row for `quick` */
    u32 masked;       /* there is a mask that has not been applied yet */
    u32 absolute;     /* an index is the element's number */
    u32 leaves_none;  /* no `fold` follows: lost sums are added again */
    u32 several;      /* the caller's problem has several values; here may be one of them */
    u32 first_value;  /* which of these the first here is */
    u32 xored;        /* the bits are wanted for xor, not for and or or */
    u32 tree_starts;  /* the tree's rows begin where our own offsets say, in the workspace */
    u32 skip_outside; /* ids outside are no error */
    u32 ids;          /* type of the ids */
    u32 filled; /* x is a filled copy: a neutral element replaces each that a mask hid (filled.cu) */
    u32 wide_counts; /* filled rows' counts have 64 bits, not 32 */
    u32 apart;       /* each row's elements lie side by side, but there are gaps between rows */
    u32 ordered;     /* elements are brought into an order: PARTS_TOTAL says how many */
    u32 is_flat;     /* segments, groups: of one vector, side by side in all arrays */
    u32 row_starts;  /* `starts`: where rows begin is wanted, not where groups do */
    u32 wide_order, wide_shown; /* numbers in `order`, and in `shown`, have 64 bits, not 32 */
    u32 ignore_errors; /* the caller wants no outcome: the error words are neither read nor written */
    u32 as_results;    /* each value is written as a tally_result */
    u32 keeps, reduces;
    part_extent kept[PARTS_DIMS], reduced[PARTS_DIMS];
    u64 out[PLAN_VALUES]; /* the byte where each value's results begin */
} parts_plan;

/* The arguments of the tree's kernels. */
typedef struct part_leaves_plan {
    part_rows rows;
    u64 slots;  /* of leaves, at most */
    u64 first;  /* the index of element number 0 in x */
    u64 values; /* the index of the first slot's value in values */
    u64 stride; /* nodes: how many leaves a value is for */
} part_leaves_plan;

/* Slots for leaves of rows: row i has those from slot_of(i) on. They are at least as many as its
 * leaves: from a to b there are floor(b / 4096) - floor(a / 4096) + 1 >= ceil((b - a) / 4096). */
#define PARTS_SLOT(start, row) ((start) / PARTS_LEAF + (row))

/* Where the workspace says which rows a strategy leaves: from word PARTS_LEFT_AT(left) on. The
 * first word is `left` itself if there are any. Behind it there is a bit for each row, in words
 * that were 0 before; or, where there is a mark (1 to 255), a byte for each row, which is left if
 * its byte is the mark. Marked words may hold anything before: a row whose byte is the mark by
 * chance is done once more, with the same result. So nothing has to clear them. */
#define PARTS_MARK_AT       56
#define PARTS_LEFT_AT(left) ((left) & (((u64)1 << PARTS_MARK_AT) - 1))
#define PARTS_MARK(left)    ((left) >> PARTS_MARK_AT)

#if defined(GLOBAL)
#include "kernel.h"

/* Notes that a row is left to `fold`; `left` as in parts_plan. */
__device__ void leave_row(GLOBAL u64 *work, u64 left, u64 row) {
    GLOBAL u64 *first = work + PARTS_LEFT_AT(left);
    if (PARTS_MARK(left))
        ((GLOBAL u8 *)(first + 1))[row] = (u8)PARTS_MARK(left);
    else
        atomicOr(&first[1 + row / 64], (u64)1 << (row % 64));
    /* Where the swap fails another thread has written the same. */
    const u64 known = read_word(first);
    if (known != left) atomicCAS(first, known, left);
}

/* Returns how many elements of a filled row the mask shows. */
__device__ u64 count_of_row(const GLOBAL u64 *work, u64 counts, u32 are_wide, u64 row) {
    return are_wide ? work[counts + row] : ((const GLOBAL u32 *)(work + counts))[row];
}

/* IS_FILLED() is 1 if elements may have been filled in, and IS_APART() if there are gaps between rows. Where LOOSE is
 * not defined both are 0 for the compiler, unless the machine's kernels are compiled once for all problems. */
#if defined(LOOSE) || !COMPILES_BY_PROBLEM
#define IS_FILLED(p) ((p)->filled)
#define IS_APART(p)  ((p)->apart)
#else
#define IS_FILLED(p) 0
#define IS_APART(p)  0
#endif

/* *p = the least of itself and v. */
__device__ void note_least(GLOBAL u64 *p, u64 v) {
    u64 known = read_word(p);
    while (v < known) {
        const u64 found = atomicCAS(p, known, v);
        if (found == known)
            known = v;
        else
            known = found;
    }
}

/* Returns where a part begins. */
__device__ u64 part_start(const GLOBAL u8 *offsets, part_rows r, u64 i) {
    if (r.kind == 0) return i * r.each;
    offsets += r.offsets;
    return r.kind == 4 ? (u64)(i64)((const GLOBAL i32 *)offsets)[i]
                       : (u64)((const GLOBAL i64 *)offsets)[i];
}

#if defined(HAS_VECTORS)
/* Returns what row_start() does where there are several vectors. (A call keeps its divisions out of loops that need
 * none.) */
OUTLINED u64 vector_start(const GLOBAL u8 *offsets, u64 kind, u64 vectors, u64 i) {
    const part_rows parts = {0, 0, 0, kind, 0};
    const u64 part = i / vectors, nth = i % vectors, start = part_start(offsets, parts, part);
    return vectors * start + (nth ? nth * (part_start(offsets, parts, part + 1) - start) : 0);
}
#endif

/* Returns the number of a row's first element. */
__device__ u64 row_start(const GLOBAL u8 *offsets, part_rows r, u64 i) {
#if defined(HAS_VECTORS)
    if (r.vectors > 1) return vector_start(offsets + r.offsets, r.kind, r.vectors, i);
#endif
    return part_start(offsets, r, i);
}

#define ROW_PROBES 7u /* rows whose starts a step of row_between() loads at once */

/* Returns the last row from `low` to high - 1 for which (start - first) / scale + row * weight is at most `at`, as it
 * is for `low`. A step to an eighth takes as long as one to a half, as both wait for memory once. */
__device__ u64 row_between(const GLOBAL u8 *offsets, part_rows r, u64 first, u64 scale, u64 weight,
                           u64 at, u64 low, u64 high) {
    while (high - low > 1) {
        const u64 step = (high - low + ROW_PROBES) / (ROW_PROBES + 1);
        u64 below = 0, start[ROW_PROBES];
        UNROLL
        for (u32 k = 0; k < ROW_PROBES; k++)
            start[k] = row_start(offsets, r,
                                 low + (k + 1) * step < high ? low + (k + 1) * step : high - 1);
        UNROLL
        for (u32 k = 0; k < ROW_PROBES; k++) {
            const u64 row = low + (k + 1) * step < high ? low + (k + 1) * step : high - 1;
            below += (start[k] - first) / scale + row * weight <= at;
        }
        low = low + below * step < high ? low + below * step : high - 1;
        if (low + step < high) high = low + step;
    }
    return low;
}

/* Returns the last row for which start / scale + row * weight is at most `at`; the first row's is. `scale` is 1,
 * with starts counted from the first row's, or PARTS_LEAF, for slots. */
__device__ u64 row_of(const GLOBAL u8 *offsets, part_rows r, u64 scale, u64 weight, u64 at) {
    const u64 first = scale == 1 ? row_start(offsets, r, 0) : 0;
    return row_between(offsets, r, first, scale, weight, at, 0, r.count);
}
#endif

#endif
