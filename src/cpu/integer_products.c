/*
 * integer_products.c - the exact sums of squares and of products of integers of one instruction set, from
 * integer_products.h.
 */
#include "cpu/multiply.h"
#include "exact/sum.h"

#define INSTANCE2(symbol, type) symbol##_##type
#define INSTANCE1(symbol, type) INSTANCE2(symbol, type)
#define INSTANCE(symbol)        INSTANCE1(symbol, NAME)

#define NAME   i8
#define BITS   8
#define SIGNED 1
#define INT    int8_t
#define WORD   uint8_t
#include "cpu/integer_products.h"

#define NAME   u8
#define BITS   8
#define SIGNED 0
#define INT    int8_t
#define WORD   uint8_t
#include "cpu/integer_products.h"

#define NAME   i16
#define BITS   16
#define SIGNED 1
#define INT    int16_t
#define WORD   uint16_t
#include "cpu/integer_products.h"

#define NAME   u16
#define BITS   16
#define SIGNED 0
#define INT    int16_t
#define WORD   uint16_t
#include "cpu/integer_products.h"

#define NAME   i32
#define BITS   32
#define SIGNED 1
#define INT    int32_t
#define WORD   uint32_t
#include "cpu/integer_products.h"

#define NAME   u32
#define BITS   32
#define SIGNED 0
#define INT    int32_t
#define WORD   uint32_t
#include "cpu/integer_products.h"

#define NAME   i64
#define BITS   64
#define SIGNED 1
#define INT    int64_t
#define WORD   uint64_t
#include "cpu/integer_products.h"

#define NAME   u64
#define BITS   64
#define SIGNED 0
#define INT    int64_t
#define WORD   uint64_t
#include "cpu/integer_products.h"
