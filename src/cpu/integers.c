/*
 * integers.c - the exact integer sum and product kernels of one instruction set, from integers.h.
 */
#include "cpu/vector.h"
#include "problem/monoid.h"

#define INSTANCE2(symbol, type) symbol##_##type
#define INSTANCE1(symbol, type) INSTANCE2(symbol, type)
#define INSTANCE(symbol)        INSTANCE1(symbol, NAME)

#define NAME    i8
#define ELEMENT unaligned_i8
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
#define ELEMENT unaligned_i16
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
#define ELEMENT unaligned_i32
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
#define ELEMENT unaligned_i64
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
#define ELEMENT unaligned_u8
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
#define ELEMENT unaligned_u16
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
#define ELEMENT unaligned_u32
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
#define ELEMENT unaligned_u64
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
