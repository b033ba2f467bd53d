/*
 * lane_sums.h - exact sums of terms with any exponents, in a block's shared memory.
 *
 * Terms that fit no window (window.h) go here, at a cost that does not depend on the data. Each of a warp's lanes has a
 * sum of LANE_WORDS words of 32 bits, to which the threads that are this lane in all of the block's warps add by atomic
 * additions. Words of the same weight lie side by side, one a lane: so a warp's lanes never meet in a word or in a bank
 * of the memory.
 *
 * Word j counts multiples of 2^(8 j + UNIT_LEAST - 1). A term x with the exponent field f begins at word j = f / 8:
 * x = v 2^(8 j + UNIT_LEAST - 1), where the integer v has the mantissa's bits and 7 more at most, so that |v| < 2^31
 * for floats and 2^60 for doubles; a subnormal number has the exponent of field 1. A multiplication by a power of two
 * makes it y = v 2^(LANE_SIGMA - MANTISSA), which is 0 or a normal number: nothing is lost. Then y is cut as the levels
 * of a window cut:
 *
 *   t = y + 1.5 * 2^(LANE_SIGMA + HIGH_FIELD) is the constant plus y rounded to a multiple of 2^HIGH_FIELD units. The
 *   bits of t less those of the constant are this multiple as an integer. It goes to the word of its weight,
 *   HIGH_FIELD / 8 further on. What is left of y is exact and at most 2^(HIGH_FIELD - 1) units. It becomes an integer
 *   in the same way, with the constant 1.5 * 2^LANE_SIGMA. For doubles this integer has 48 bits, which go to three
 *   words in fields of 16.
 *
 * Terms with fewer bits than the mantissa has need fewer words: bf16's 8 bits need one, as v is a multiple of 2^16.
 *
 * Squares of FLOAT_SQUARES (lift.h) are integers of 48 bits, or of bf16 16 bits. Word j counts multiples of
 * 2^(8 j + SQUARE_LEAST). A square begins at the word of its position, has less than 8 bits more there, and goes to
 * SQUARE_FIELDS words in fields of 16 bits.
 *
 * Bounds. A field is at most 2^16 - 1 in magnitude, and the fields of a term go to different words: after 2^15 terms
 * a word is still below 2^31 in magnitude. A thread empties its lane's sum into the superaccumulator whenever it has
 * added LANE_TERMS terms since it did so last. WARPS threads share a sum, so at most 2^15 terms have come to a word
 * since one of them last emptied it. In the end the block's threads add up all the lanes' sums.
 */
#ifndef TALLY_LANE_SUMS_H
#define TALLY_LANE_SUMS_H

#include "window.h"

#include "limbs.h"

/* A block of one thread adds what fits no window to its superaccumulator; and finite f16 always fit their window. */
#define HAS_LANE_SUMS (BLOCK > 1 && !ONE_WINDOW)

#if HAS_LANE_SUMS

#define LANE_SIGMA (-5)
#define HIGH_FIELD (TERM_F64 ? 48 : 16)
#define WORD_BITS  8                                  /* bits between two words' weights */
#define FIELD_TOP  (FIELD_MAX / WORD_BITS)            /* where the largest terms begin */
#define TOP_MASK   ((raw)(FIELD_MAX - 7) << MANTISSA) /* the exponent field but for 3 bits */

#if FLOAT_SQUARES
#define FIRST_WORD    0
#define SQUARE_FIELDS ((2 * ELEMENT_BITS + WORD_BITS - 1 + 15) / 16)
#define LANE_WORDS    (2 * (FIELD_MAX - 2) / WORD_BITS + 7)
#define LANE_LEAST    SQUARE_LEAST
#else
#define LANE_LEAST (UNIT_LEAST - 1)
/* Products of two f32 or bf16, and such elements as doubles, lie between 2^-298 and 2^256. Only these words are
 * needed. */
#if TERM_F64 && !defined(TYPE_F64)
#define FIRST_WORD ((HIGHEST - 298) / WORD_BITS)
#define LAST_WORD  ((HIGHEST + 256) / WORD_BITS)
#else
#define FIRST_WORD 0
#define LAST_WORD  (FIELD_TOP)
#endif

#define LANE_WORDS (LAST_WORD - FIRST_WORD + HIGH_FIELD / WORD_BITS + 1)
#endif
#define USED      (LANE_WORDS * WARP) /* the word behind them all: not 0 after any use */
#define LANE_SUMS (USED + 1)

#define LANE_TERMS ((1u << 15) / WARPS)
#define LANE_TILES (LANE_TERMS / TERMS)

PURE i32 lane_word_exponent(u32 j) {
    return WORD_BITS * (i32)(FIRST_WORD + j) + LANE_LEAST;
}

__device__ void clear_lane_sums(SHARED u32 *lane_sums) {
    for (u32 i = threadIdx.x; i < LANE_SUMS; i += BLOCK)
        lane_sums[i] = 0;
}

#if FLOAT_SQUARES
/* Adds the square of a finite element to the lane's sum that begins at `own`. */
__device__ void add_square_to_lane(real x, SHARED u32 *own) {
    u32 position;
    const u64 square = square_of(x, &position), all = square << position % WORD_BITS;
    own += position / WORD_BITS * WARP;
    UNROLL
    for (u32 k = 0; k < SQUARE_FIELDS; k++)
        atomicAdd(&own[2 * k * WARP], (u32)(all >> 16 * k) & 0xffffu);
}
#define ADD_TO_LANE(t, i, own) add_square_to_lane(FIRST(t, i), own)
#else
/* Adds a finite term of `bits` bits to the lane's sum that begins at `own`. The term's integer v ends in ZERO_BITS
 * zeros at least, and fields that lie within these are left out. */
#define ZERO_BITS (MANTISSA + 1 - bits)
__device__ void add_to_lane(term x, i32 bits, SHARED u32 *own) {
    const raw known = REAL_BITS(x);
    const term y = x * REAL_FROM((~known & TOP_MASK) | (raw)1 << MANTISSA);
    const term high = REAL_FROM(sigma_bits(LANE_SIGMA + HIGH_FIELD));
    const term t = y + high;
    u32 at = (u32)(known >> (MANTISSA + 3)) % (FIELD_TOP + 1); /* without the sign */
#if FIRST_WORD > 0
    at = (at > FIRST_WORD ? at : FIRST_WORD) - FIRST_WORD;     /* 0 has a smaller field */
#endif
    own += at * WARP;
    if (ZERO_BITS < HIGH_FIELD) {
        const raw low = sigma_bits(LANE_SIGMA);
        const raw rest = REAL_BITS((y - (t - high)) + REAL_FROM(low)) - low;
#if TERM_F64
        if (ZERO_BITS < 16) atomicAdd(&own[0], (u32)rest & 0xffffu);
        if (ZERO_BITS < 32) atomicAdd(&own[2 * WARP], (u32)rest >> 16);
        atomicAdd(&own[4 * WARP], (u32)(rest >> 32));
#else
        atomicAdd(&own[0], rest);
#endif
    }
    atomicAdd(&own[HIGH_FIELD / WORD_BITS * WARP], (u32)(REAL_BITS(t) - REAL_BITS(high)));
}
#define ADD_TO_LANE(t, i, own) add_to_lane(TERM(t, i), BITS_OF(t), own)
#endif

/* Moves this lane's sum to the superaccumulator, while other warps may be adding to that sum. Each lane begins with
 * another word, so that lanes seldom meet in a limb. */
__device__ void empty_lane(SHARED u32 *lane_sums, SHARED u64 *limbs) {
    const u32 lane = threadIdx.x % WARP;
    u32 j = lane * LANE_WORDS / WARP;
    UNROLL_NOT
    for (u32 i = 0; i < LANE_WORDS; i++) {
        const i32 sum = (i32)atomicExch(&lane_sums[j * WARP + lane], 0u);
        if (sum != 0) add_limbs(limbs, sum, lane_word_exponent(j));
        j = j + 1 < LANE_WORDS ? j + 1 : 0;
    }
}

/* Adds all lanes' sums to the superaccumulator; all threads of the block call this, after a barrier. 32
 * words of less than 2^31 make less than 2^36. Each thread begins at another lane, and so in another bank. */
__device__ void collect_lane_sums(const SHARED u32 *lane_sums, SHARED u64 *limbs) {
    if (lane_sums[USED] == 0) return;
    for (u32 j = threadIdx.x; j < LANE_WORDS; j += BLOCK) {
        i64 sum = 0;
        for (u32 i = 0; i < WARP; i++)
            sum += (i32)lane_sums[j * WARP + (i + threadIdx.x) % WARP];
        if (sum != 0) add_limbs(limbs, sum, lane_word_exponent(j));
    }
}

#else

#define LANE_SUMS 1

__device__ void clear_lane_sums(SHARED u32 *lane_sums) {}

__device__ void collect_lane_sums(const SHARED u32 *lane_sums, SHARED u64 *limbs) {}

#endif
#endif
