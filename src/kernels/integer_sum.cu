/*
 * integer_sum - the exact sum of integers; or, with LIFT_MAGNITUDE, of their magnitudes, with LIFT_SQUARE, of their
 * squares, with LIFT_PRODUCT, of the products of elements of two arrays.
 *
 * The record is a number, w0 + 2^32 w1 + 2^64 w2 ..., of signed words; all but the last lie in [0, 2^32) after a
 * merge (carries.h). Three words hold 2^64 terms below 2^64, four hold as many below 2^64 in magnitude with all words
 * of 32 bits, six hold as many below 2^128. Where a tile's terms have 32 bits or fewer they are added up first, in 32
 * bits where their sum is below 2^31, and their sum goes to w0. Any other term below 2^64 goes to w0 and w1 by its
 * halves, one below 2^128 to w0 ... w3 by its quarters, of which the highest has the sign.
 *
 * Bounds: a tile has at most 2^8 elements, a thread is given fewer than 2^28, and each adds less than 2^32 to a word (a
 * tile whose terms are added up first less than 2^40): less than 2^60 in all.
 */
#include "tuning.h"

#include "operators.h"

#if defined(TYPE_I64) || defined(TYPE_U64)
#define BITS 64
#elif defined(TYPE_I32) || defined(TYPE_U32)
#define BITS 32
#elif defined(TYPE_I16) || defined(TYPE_U16)
#define BITS 16
#else
#define BITS 8
#endif

#if !defined(LIFT_SQUARE) && !defined(LIFT_PRODUCT)
#define WORDS 3
#elif BITS == 64
#define WORDS 6
#else
#define WORDS 4
#endif

#include "grid.h"

#include "result.h"

#define PAD 0
#if defined(LIFT_PRODUCT)
#define PAIRS
#define PAD_BESIDE 0
#endif

#define CARRY_ALL(record) carry(record, WORDS)
#include "carries.h"

#if BITS >= 32 && (defined(LIFT_MAGNITUDE) || defined(LIFT_SQUARE))
PURE u64 magnitude(element e) {
#if defined(SIGNED_TYPE)
    return e < 0 ? 0 - (u64)e : (u64)e;
#else
    return e;
#endif
}
#endif

#if BITS >= 32

/* Returns a term that fits 64 bits, in two's complement if it has a sign. */
#if WORDS != 6
PURE u64 lift(element x, element y) {
#if defined(LIFT_MAGNITUDE)
    return magnitude(x);
#elif defined(LIFT_SQUARE)
    return magnitude(x) * magnitude(x);
#elif defined(LIFT_PRODUCT)
    return (u64)x * (u64)y; /* modulo 2^64: two's complement */
#else
    return (u64)x;
#endif
}
#endif

/* The bits above a term's low 32, with the sign of a signed term. */
#if defined(SIGNED_TYPE) && !defined(LIFT_MAGNITUDE) && !defined(LIFT_SQUARE)
#define HIGH_HALF(w) ((u64)((i64)(w) >> 32))
#else
#define HIGH_HALF(w) ((w) >> 32)
#endif

#if BITS == 64 || WORDS > 3
/* Adds one of a tile's elements. */
PURE void add_term(element x, element y, u64 *record) {
#if WORDS == 6
    u64 low, high;
#if defined(LIFT_SQUARE)
    low = magnitude(x) * magnitude(x);
    high = high_product(magnitude(x), magnitude(x));
#else
    low = (u64)x * (u64)y;
    high = high_product((u64)x, (u64)y);
#if defined(SIGNED_TYPE)
    high -= (x < 0 ? (u64)y : 0) + (y < 0 ? (u64)x : 0);
#endif
#endif
    record[0] += low & 0xffffffffu;
    record[1] += low >> 32;
    record[2] += high & 0xffffffffu;
    record[3] += HIGH_HALF(high);
#else
    const u64 w = lift(x, y);
    record[0] += w & 0xffffffffu;
    record[1] += HIGH_HALF(w);
#endif
}
#endif

#endif

/* A tile's terms of 8 or 16 bits, and its squares and products of bytes, add up to less than 2^(8 + 16). */
#if BITS < 32 && (BITS == 8 || WORDS == 3)
#if defined(SIGNED_TYPE)
typedef i32 tile_sum;
#else
typedef u32 tile_sum;
#endif
#define NARROW 1
#elif BITS < 32
typedef i64 tile_sum;
#define NARROW 1
#else
#define NARROW 0
#endif

#if defined(LIFT_PRODUCT)
PURE void add_tile(const tile *t, const tile *beside, u64 *record) {
#define Y(i) beside->e[i]
#else
PURE void add_tile(const tile *t, u64 *record) {
#define Y(i) t->e[i]
#endif
#if NARROW
    tile_sum sum = 0;
    UNROLL
    for (u32 i = 0; i < TILE; i++)
#if defined(LIFT_MAGNITUDE)
        sum += t->e[i] < 0 ? -(tile_sum)t->e[i] : (tile_sum)t->e[i];
#elif defined(LIFT_SQUARE)
        sum += (tile_sum)t->e[i] * (tile_sum)t->e[i];
#elif defined(LIFT_PRODUCT)
        sum += (tile_sum)t->e[i] * (tile_sum)Y(i);
#else
        sum += t->e[i];
#endif
    record[0] += (u64)(i64)sum;
#elif BITS == 32 && WORDS == 3
    u64 sum = 0;
    UNROLL
    for (u32 i = 0; i < TILE; i++)
        sum += lift(t->e[i], t->e[i]);
    record[0] += sum;
#else
UNROLL
for (u32 i = 0; i < TILE; i++)
    add_term(t->e[i], Y(i), record);
#endif
}

PURE u64 value_of(const u64 *total, u64 n, u32 request, u32 *status) {
    const u64 low = total[1] << 32 | total[0];
#if defined(SIGNED_TYPE)
    const u64 sign = (u64)((i64)low >> 63);
#else
    const u64 sign = 0;
#endif
    u32 fits = total[WORDS - 1] == sign;
    for (u32 k = 2; k + 1 < WORDS; k++)
        fits = fits && total[k] == (sign & 0xffffffffu);
    *status = fits ? RESULT_OK : RESULT_RANGE;
    return fits ? low : 0;
}

#include "fold.h"
