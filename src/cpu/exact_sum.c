/*
 * exact_sum.c - the exact sum kernels of one instruction set, from the templates extract.h, bins.h, few.h
 * and exact_sum.h. f16 and bf16 are widened to f32, exactly, as they are loaded.
 */
#include "cpu/vector.h"
#include "exact/sum.h"

#define PART2(name, part) name##_##part
#define PART1(name, part) PART2(name, part)
#define PART(part)        PART1(NAME, part)
#define WINDOW            PART(window)
#define BINS              PART(bins)
#define PROGRESS          PART(progress)

#define REAL     double
#define INT      int64_t
#define WORD     uint64_t
#define VREAL    vf64
#define VINT     vi64
#define VWORD    vu64
#define MANTISSA 52
#define LOWEST   (-1074)
#define HIGHEST  1023

#define NAME         sum_f64
#define ELEMENT      loose_f64
#define WIDEN(p)     LOAD_F64(p)
#define WIDEN_ONE(p) *(p)
#include "cpu/extract.h"

#include "cpu/bins.h"

#include "cpu/few.h"

#include "cpu/exact_sum.h"
#undef NAME
#undef ELEMENT
#undef WIDEN
#undef WIDEN_ONE

#undef REAL
#undef INT
#undef WORD
#undef VREAL
#undef VINT
#undef VWORD
#undef MANTISSA
#undef LOWEST
#undef HIGHEST
#define REAL     float
#define INT      int32_t
#define WORD     uint32_t
#define VREAL    vf32
#define VINT     vi32
#define VWORD    vu32
#define MANTISSA 23
#define LOWEST   (-149)
#define HIGHEST  127

#define NAME         sum_f32
#define ELEMENT      loose_f32
#define WIDEN(p)     LOAD_F32(p)
#define WIDEN_ONE(p) *(p)
#include "cpu/extract.h"

#include "cpu/bins.h"

#include "cpu/few.h"

#include "cpu/exact_sum.h"
#undef NAME
#undef ELEMENT
#undef WIDEN
#undef WIDEN_ONE

#define NAME         sum_f16
#define ELEMENT      loose_u16
#define WIDEN(p)     LOAD_F16(p)
#define WIDEN_ONE(p) widen_f16((vu16half){0} + *(p))[0]
#include "cpu/extract.h"

#include "cpu/bins.h"

#include "cpu/few.h"

#include "cpu/exact_sum.h"
#undef NAME
#undef ELEMENT
#undef WIDEN
#undef WIDEN_ONE

#define NAME         sum_bf16
#define ELEMENT      loose_u16
#define WIDEN(p)     LOAD_BF16(p)
#define WIDEN_ONE(p) widen_bf16((vu16half){0} + *(p))[0]
#include "cpu/extract.h"

#include "cpu/bins.h"

#include "cpu/few.h"

#include "cpu/exact_sum.h"
