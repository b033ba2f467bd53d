/*
 * in_two_f64.h - makes one exact sum kernel whose terms are products of two doubles: each is two doubles, the
 * rounded product h and its error, the tail (Dekker 1971).
 *
 * A template: the includer defines NAME. TAIL is multiply_error().
 *
 * When the tail is exact. The product of x and y is a multiple of the product of their last bits, and so is
 * its error, which is at most half of h's last bit. So the error is a double where the product of the last bits is
 * at least 2^-1074: where |x y| >= 2^-968, as both have at most 53 bits. And h must not overflow.
 *   - Overflow. h is infinite, and check (a) of extract.h fails.
 *   - Underflow to h other than 0. No unit of a window lies below 2^LOWEST = 2^-968; so an h that leaves nothing
 *     after the last level is a multiple of 2^-968: it is 0, or its error is exact.
 *   - Underflow to h = 0. TAIL_LOST notes it: h is 0 though neither x nor y is.
 * What extraction cannot take goes to the bins of product_bins.h, which are made of integers and take all.
 */
#define REAL       double
#define INT        int64_t
#define WORD       uint64_t
#define VREAL      vf64
#define VINT       vi64
#define VWORD      vu64
#define MANTISSA   52
#define LOWEST     (-968)
#define HIGHEST    1023
#define LEVELS     3
#define MAX_LEVELS 4

#define PAIRED        1
#define SUMS          0
#define STATE         struct exact_sum
#define SQUARES_OF(s) (s)

#define ELEMENT                        unaligned_f64
#define FACTOR(p)                      LOAD_F64(p)
#define FACTOR_ONE(p)                  (*(p))
#define TERM(p, q)                     (LOAD_F64(p) * LOAD_F64(q))
#define TERM_ONE(p, q)                 (*(p) * *(q))
#define TAIL(p, q, h)                  multiply_error(LOAD_F64(p), LOAD_F64(q), h)
#define TAIL_LOST(lost, p, q, h, tail) note_lost(lost, LOAD_F64(p), LOAD_F64(q), h, tail)

#include "cpu/extract.h"

#include "cpu/product_bins.h"

#include "cpu/exact_chunks.h"

#undef TAIL
#undef TAIL_LOST
#include "cpu/undefine.h"
