/*
 * integers.c - the exact integer sum and product kernels of one instruction set, from integers.h.
 */
#include "cpu/vector.h"
#include "problem/monoid.h"

#define PART2(part, name) part##_##name
#define PART1(part, name) PART2(part, name)
#define PART(part)        PART1(part, NAME)

#define NAME    i8
#define ELEMENT loose_i8
#define INT     int8_t
#define WORD    uint8_t
#define BITS    8
#define SIGNED  1
#include "cpu/integers.h"
#undef NAME
#undef ELEMENT
#undef INT
#undef WORD
#undef BITS
#undef SIGNED

#define NAME    i16
#define ELEMENT loose_i16
#define INT     int16_t
#define WORD    uint16_t
#define BITS    16
#define SIGNED  1
#include "cpu/integers.h"
#undef NAME
#undef ELEMENT
#undef INT
#undef WORD
#undef BITS
#undef SIGNED

#define NAME    i32
#define ELEMENT loose_i32
#define INT     int32_t
#define WORD    uint32_t
#define BITS    32
#define SIGNED  1
#include "cpu/integers.h"
#undef NAME
#undef ELEMENT
#undef INT
#undef WORD
#undef BITS
#undef SIGNED

#define NAME    i64
#define ELEMENT loose_i64
#define INT     int64_t
#define WORD    uint64_t
#define BITS    64
#define SIGNED  1
#include "cpu/integers.h"
#undef NAME
#undef ELEMENT
#undef INT
#undef WORD
#undef BITS
#undef SIGNED

#define NAME    u8
#define ELEMENT loose_u8
#define INT     int8_t
#define WORD    uint8_t
#define BITS    8
#define SIGNED  0
#include "cpu/integers.h"
#undef NAME
#undef ELEMENT
#undef INT
#undef WORD
#undef BITS
#undef SIGNED

#define NAME    u16
#define ELEMENT loose_u16
#define INT     int16_t
#define WORD    uint16_t
#define BITS    16
#define SIGNED  0
#include "cpu/integers.h"
#undef NAME
#undef ELEMENT
#undef INT
#undef WORD
#undef BITS
#undef SIGNED

#define NAME    u32
#define ELEMENT loose_u32
#define INT     int32_t
#define WORD    uint32_t
#define BITS    32
#define SIGNED  0
#include "cpu/integers.h"
#undef NAME
#undef ELEMENT
#undef INT
#undef WORD
#undef BITS
#undef SIGNED

#define NAME    u64
#define ELEMENT loose_u64
#define INT     int64_t
#define WORD    uint64_t
#define BITS    64
#define SIGNED  0
#include "cpu/integers.h"
#undef NAME
#undef ELEMENT
#undef INT
#undef WORD
#undef BITS
#undef SIGNED
