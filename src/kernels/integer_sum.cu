/*
 * integer_sum - the exact sum of integers, in 128 bits.
 *
 * The record is a number, w0 + 2^32 w1 + 2^64 w2, of signed words; w0 and w1 lie in [0, 2^32) once
 * records have met. A tile of elements narrower than 32 bits is added in 32 bits: 2^10 elements of 2^16
 * at most. An element of 32 bits is added to w0 as it is; of one of 64 bits the halves go to w0 and w1.
 *
 * Bounds: a thread is given fewer than 2^28 elements, and so adds less than 2^60 to a word.
 */
#include "tuning.h"

#include "operators.h"

#define WORDS 3
#include "result.h"

#define PAD 0

#if defined(SIGNED_TYPE)
typedef i32 narrow_sum;
#define HIGH_HALF(e) ((u64)((i64)(e) >> 32))
#else
typedef u32 narrow_sum;
#define HIGH_HALF(e) ((u64)(e) >> 32)
#endif

PURE void merge(u64 *a, const u64 *b) {
    a[0] += b[0];
    a[1] += b[1] + (u64)((i64)a[0] >> 32); /* carries: floor */
    a[2] += b[2] + (u64)((i64)a[1] >> 32);
    a[0] &= 0xffffffffu;
    a[1] &= 0xffffffffu;
}

PURE void add_tile(const tile *t, u64 *record) {
#if defined(TYPE_I64) || defined(TYPE_U64)
    UNROLL
    for (u32 i = 0; i < TILE; i++) {
        record[0] += (u64)t->e[i] & 0xffffffffu;
        record[1] += HIGH_HALF(t->e[i]);
    }
#elif defined(TYPE_I32) || defined(TYPE_U32)
    u64 sum = 0;
    UNROLL
    for (u32 i = 0; i < TILE; i++)
        sum += (u64)t->e[i];
    record[0] += sum;
#else
    narrow_sum sum = 0;
    UNROLL
    for (u32 i = 0; i < TILE; i++)
        sum += t->e[i];
    record[0] += (u64)(i64)sum;
#endif
}

PURE u64 value_of(const u64 *total, u64 n, u32 request, u32 *status) {
    const u64 low = total[1] << 32 | total[0], high = total[2];
#if defined(SIGNED_TYPE)
    const u32 fits = high == (u64)((i64)low >> 63);
#else
    const u32 fits = high == 0;
#endif
    *status = fits ? RESULT_OK : RESULT_RANGE;
    return fits ? low : 0;
}

#include "fold.h"
