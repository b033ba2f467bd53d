/*
 * narrow.h - a double as the nearest f16 or bf16 number.
 */
#ifndef TALLY_CLI_NARROW_H
#define TALLY_CLI_NARROW_H

#include <stdint.h>

uint16_t narrow_f16(double x);  /* the bits of the nearest binary16, ties to even */
uint16_t narrow_bf16(double x); /* the bits of the nearest bfloat16, ties to even */

#endif
