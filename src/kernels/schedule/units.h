/*
 * units.h - results side by side: units of neighbouring columns that a thread loads and stores at once, and where their rows
 * lie.
 *
 * Before including this header, define TILE_ROWS, the rows of a thread's part of a tile, and include operators.h and
 * store.h. Where rows may come in an order, define GATHERS.
 */
#ifndef TALLY_SCHEDULE_UNITS_H
#define TALLY_SCHEDULE_UNITS_H

#if defined(TYPE_F64) || defined(TYPE_I64) || defined(TYPE_U64)
#define LONG   1
#define VECTOR 2u
#else
#define LONG   0
#define VECTOR 4u
#endif
/* Rows that are on their way before one is added: what it takes to begin a tile is spread over 16 elements or more. */
#define WIDE_ROWS (ELEMENT_WIDTH == 16 ? 8u : 4u)
#if defined(FOLD_MOMENTS) || defined(FOLD_SQUARES)
#define NARROW_ROWS 8u
#else
#define NARROW_ROWS (LONG ? 8u : 16u)
#endif
#define BATCH     32u /* tiles between two tests for lost bits */
#define ROWS_MOST 4u  /* rows that add_slowly() loads at once */
#define JOINED    4u  /* states of chunks that `join` loads at once */
#define ELEMENTS  (TILE_ROWS * VECTOR > NARROW_ROWS ? TILE_ROWS * VECTOR : NARROW_ROWS)

/* NO_ROWS_FROM() is 1 if row k is the first of a tile's second half, and none of that half is there: short parts end in the
 * first one, and half of the work is spared. A kind of state says by ENDS_EARLY whether it leaves such rows out; any other
 * adds the pads in their stead. */
#if defined(VARIES)
#define NO_ROWS_FROM(k, rows, there)                                                               \
    (ENDS_EARLY && (rows) >= 8 && (k) == (rows) / 2 && (there) <= (rows) / 2)
#else
#define NO_ROWS_FROM(k, rows, there) 0
#endif

/* Where rows lie that are read again: row k at at[k * step]; with an order, at at[order[k] * step]. */
typedef struct row_source {
    const GLOBAL element *at;
    i64 step;
#if defined(GATHERS)
    const GLOBAL u32 *order; /* or NULL */
#endif
} row_source;

/* Returns the rows from `at` on, without an order. */
PURE row_source row_source_of(const GLOBAL element *at, i64 step) {
#if defined(GATHERS)
    const row_source from = {at, step, 0};
#else
    const row_source from = {at, step};
#endif
    return from;
}

/* A tile's rows: where they lie, the number of the first, how far they are apart, and the `flip` of their keys. */
typedef struct tile_rows {
    row_source from;
    u32 first, strands;
    u64 flip;
} tile_rows;

/* Returns where row k lies. */
__device__ const GLOBAL element *row_at(row_source from, u32 k) {
#if defined(GATHERS)
    if (from.order) return from.at + (i64)from.order[k] * from.step;
#endif
    return from.at + (i64)k * from.step;
}

/* Returns the same rows of the column `v` further on. */
__device__ row_source column_of(row_source from, u32 v) {
    from.at += v;
    return from;
}

/* A thread's load: the elements of `vector` neighbouring columns. */
typedef union unit {
#if LONG || defined(TYPE_F32) || defined(TYPE_U32) || defined(TYPE_I32)
    uint4 bits;
#elif defined(TYPE_U8) || defined(TYPE_I8)
    u32 bits;
#else
    u64 bits;
#endif
    element e[VECTOR];
    u32 pair[(VECTOR * sizeof(element) + 3) / 4];
} unit;

/* A thread's part of a tile: element k * vector + v is that of row k and column v. Elements of 16 bits stay in pairs, as they
 * come, so that what is done to both at once needs no other instruction. */
typedef union tile_part {
    element e[ELEMENTS];
    u32 pair[(ELEMENTS * sizeof(element) + 3) / 4];
} tile_part;

INLINED void put_unit(tile_part *t, u32 row, unit u) {
    UNROLL
    for (u32 v = 0; v < VECTOR; v++)
        if (ELEMENT_WIDTH != 16)
            t->e[row * VECTOR + v] = u.e[v];
        else if (v % 2 == 0)
            t->pair[row * (VECTOR / 2) + v / 2] = u.pair[v / 2];
}

/* Loads a unit, as a row of the tile; `packed`: units lie at multiples of their size. */
__device__ void load_unit(const GLOBAL element *from, u32 vector, u32 packed, tile_part *t,
                          u32 row) {
    if (vector > 1 && packed) {
        unit u;
        u.bits = ((const GLOBAL unit *)from)->bits;
        put_unit(t, row, u);
    } else {
        UNROLL
        for (u32 v = 0; v < vector; v++)
            t->e[row * vector + v] = from[v];
    }
}

INLINED void read_unit(const SHARED u8 *from, u32 vector, tile_part *t, u32 row) {
    if (vector > 1) {
        unit u;
        u.bits = ((const SHARED unit *)from)->bits;
        put_unit(t, row, u);
    } else
        t->e[row] = *(const SHARED element *)from;
}

/* Writes a value's bits of neighbouring columns, by stores of 16 bytes where they lie side by side from a multiple of
 * that on. */
INLINED void store_unit(GLOBAL u8 *to, u32 width, i64 step, u32 vector, const u64 *bits) {
    const u32 bytes = width / 8;
    if (vector > 1 && step == 1 && bytes * vector % 16 == 0 && (size_t)to % 16 == 0) {
        UNROLL
        for (u32 part = 0; part < VECTOR / 2; part++) {
            union {
                uint4 all;
                u32 word[4];
            } u;
            if (part >= bytes * vector / 16) continue;
            UNROLL
            for (u32 k = 0; k < 4; k++)
                u.word[k] = width == 64 ? (u32)(bits[2 * part + k / 2] >> 32 * (k % 2))
                                        : (u32)bits[k % VECTOR];
            ((GLOBAL uint4 *)to)[part] = u.all;
        }
        return;
    }
    UNROLL
    for (u32 v = 0; v < vector; v++)
        store_bits(to + (i64)v * step * bytes, width, bits[v]);
}

#endif
