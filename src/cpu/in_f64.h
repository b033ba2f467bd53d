/*
 * in_f64.h - makes one exact sum kernel whose terms are doubles, from the templates extract.h, bins.h, few.h
 * and exact_chunks.h.
 *
 * A template: the includer defines NAME, ELEMENT, PAIRED, TERM, TERM_ONE, LEVELS and MAX_LEVELS, and PLAIN
 * where it holds (extract.h), which are undefined again here.
 */
#define REAL     double
#define INT      int64_t
#define WORD     uint64_t
#define VREAL    vf64
#define VINT     vi64
#define VWORD    vu64
#define MANTISSA 52
#define LOWEST   (-1074)
#define STATE    struct exact_sum
#define HIGHEST  1023

#include "cpu/extract.h"

#include "cpu/bins.h"

#include "cpu/few.h"

#include "cpu/exact_chunks.h"

#include "cpu/undefine.h"
