/*
 * integer_moments - the exact sums of integers and of their squares, in one reading of memory.
 *
 * The record has three words for the sum, and behind them four for the squares (for integers of 64 bits: six), each
 * as integer_sum.cu leaves them. The bounds are those of integer_sum.cu. No value is ever asked for: values that need
 * both sums are computed from records.
 */
#if defined(TYPE_I8) || defined(TYPE_U8)
#define BLOCKS_A_UNIT GPU_SUM_BLOCKS_A_UNIT
#endif

#include "tuning.h"

#include "operators.h"

#define SUM_WORDS 3
#if defined(TYPE_I64) || defined(TYPE_U64)
#define WORDS (SUM_WORDS + 6)
#else
#define WORDS (SUM_WORDS + 4)
#endif

#include "grid.h"

#include "result.h"

#define PAD 0

#define CARRY_ALL(record)                                                                          \
    do {                                                                                           \
        carry(record, SUM_WORDS);                                                                  \
        carry((record) + SUM_WORDS, WORDS - SUM_WORDS);                                            \
    } while (0)
#include "carries.h"

/* HIGH_HALF: the bits above an element's low 32, with its sign. MAGNITUDE: its absolute value. */
#if defined(SIGNED_TYPE)
#define HIGH_HALF(e) ((u64)((i64)(e) >> 32))
#define MAGNITUDE(e) ((e) < 0 ? 0 - (u64)(e) : (u64)(e))
#else
#define HIGH_HALF(e) ((u64)(e) >> 32)
#define MAGNITUDE(e) ((u64)(e))
#endif

PURE void add_tile(const tile *t, u64 *record) {
    u64 *squares = record + SUM_WORDS;
#if defined(TYPE_I8) || defined(TYPE_U8)
    u32 sum = 0, square = 0; /* modulo 2^32: below 2^16 and 2^24 in magnitude */
    UNROLL
    for (u32 i = 0; i < TILE; i++) {
        sum += (u32)t->e[i];
        square += (u32)t->e[i] * (u32)t->e[i];
    }
    record[0] += (u64)(i64)(i32)sum;
    squares[0] += square;
#elif defined(TYPE_I16) || defined(TYPE_U16)
    u32 sum = 0;
    u64 square = 0;
    UNROLL
    for (u32 i = 0; i < TILE; i++) {
        sum += (u32)t->e[i];
        square += (u32)t->e[i] * (u32)t->e[i]; /* exact: a square is below 2^32 */
    }
    record[0] += (u64)(i64)(i32)sum;
    squares[0] += square;
#elif defined(TYPE_I32) || defined(TYPE_U32)
    u64 sum = 0;
    UNROLL
    for (u32 i = 0; i < TILE; i++) {
        const u64 square = MAGNITUDE(t->e[i]) * MAGNITUDE(t->e[i]);
        sum += (u64)t->e[i];
        squares[0] += square & 0xffffffffu;
        squares[1] += square >> 32;
    }
    record[0] += sum;
#else
    UNROLL
    for (u32 i = 0; i < TILE; i++) {
        const u64 m = MAGNITUDE(t->e[i]), low = m * m, high = high_product(m, m);
        record[0] += (u64)t->e[i] & 0xffffffffu;
        record[1] += HIGH_HALF(t->e[i]);
        squares[0] += low & 0xffffffffu;
        squares[1] += low >> 32;
        squares[2] += high & 0xffffffffu;
        squares[3] += high >> 32;
    }
#endif
}

PURE u64 value_of(const u64 *total, u64 n, u32 request, u32 *status) {
    *status = RESULT_RANGE;
    return 0;
}

#include "fold.h"
