/*
 * loose.h - types for elements, offsets and ids where the caller put them, aligned or not.
 */
#ifndef TALLY_LOOSE_H
#define TALLY_LOOSE_H

#include <stdint.h>

#define LOOSE __attribute__((aligned(1), may_alias))
typedef float LOOSE loose_f32;
typedef double LOOSE loose_f64;
typedef int8_t LOOSE loose_i8;
typedef int16_t LOOSE loose_i16;
typedef int32_t LOOSE loose_i32;
typedef int64_t LOOSE loose_i64;
typedef uint8_t LOOSE loose_u8;
typedef uint16_t LOOSE loose_u16;
typedef uint32_t LOOSE loose_u32;
typedef uint64_t LOOSE loose_u64;

#endif
