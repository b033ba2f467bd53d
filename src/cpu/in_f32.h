/*
 * in_f32.h - makes one exact sum kernel whose terms are floats, from the templates extract.h, bins.h (levels.h where
 * a vector has 64 bytes), few.h and exact_chunks.h. The includer defines what in_f64.h asks for.
 */
#define REAL     float
#define INT      int32_t
#define WORD     uint32_t
#define VREAL    vf32
#define VINT     vi32
#define VWORD    vu32
#define MANTISSA 23
#define LOWEST   (-149)
#define STATE    struct exact_sum
#define HIGHEST  127

#include "cpu/extract.h"

#if TALLY_VECTOR == 64
#include "cpu/levels.h"
#else
#include "cpu/bins.h"
#endif

#include "cpu/few.h"

#include "cpu/exact_chunks.h"

#include "cpu/undefine.h"
