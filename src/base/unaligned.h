/*
 * unaligned.h - types for elements, offsets and ids where the caller put them, aligned or not.
 */
#ifndef TALLY_UNALIGNED_H
#define TALLY_UNALIGNED_H

#include <stdint.h>

#define UNALIGNED __attribute__((aligned(1), may_alias))
typedef float UNALIGNED unaligned_f32;
typedef double UNALIGNED unaligned_f64;
typedef int8_t UNALIGNED unaligned_i8;
typedef int16_t UNALIGNED unaligned_i16;
typedef int32_t UNALIGNED unaligned_i32;
typedef int64_t UNALIGNED unaligned_i64;
typedef uint8_t UNALIGNED unaligned_u8;
typedef uint16_t UNALIGNED unaligned_u16;
typedef uint32_t UNALIGNED unaligned_u32;
typedef uint64_t UNALIGNED unaligned_u64;

#endif
