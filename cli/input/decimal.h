/*
 * decimal.h - one written number as one element of a given type.
 */
#ifndef TALLY_CLI_DECIMAL_H
#define TALLY_CLI_DECIMAL_H

#include "tally.h"

#include <stdbool.h>
#include <stdint.h>

enum decimal_result {
    DECIMAL_OK,
    DECIMAL_MALFORMED, /* the text is no number of this kind */
    DECIMAL_RANGE      /* an integer that does not fit the type */
};

/* Reads text, which has no space at either end, into *element. Integers are exact; a floating
 * number is the nearest one of its type, ties to even (beyond the largest: infinity), and may also be
 * written "nan", "inf" or in hexadecimal, and Fortran's D may open its exponent. *element is written only with DECIMAL_OK. */
enum decimal_result decimal_read(tally_type type, const char *text, void *element);

/* Reads the most common numbers as decimal_read() does, but faster: up to 19 digits with a point
 * and a small exponent, as an f64 or f32; up to 18 digits as an integer. Returns the first byte
 * after the number, or NULL if decimal_read() is needed. A byte that belongs to no number must end
 * the text, and DECIMAL_SPARE bytes behind that byte must be readable. */
const char *decimal_quick(tally_type type, const char *text, void *element);
enum { DECIMAL_SPARE = 16 };

/* Reads a number of up to 18 digits, without an exponent, as digits * 10^-places. Else as decimal_quick(). */
const char *decimal_split(const char *text, int64_t *digits, int *places);

/* Reads numbers as decimal_quick() does from text up to `end`, each with one blank or line end behind it, into **element and
 * onward, and adds the line ends to *lines. Returns where something else stands, which is to be read another
 * way; *element is then behind the last one read. As decimal_quick() it may look at bytes behind the end. */
const char *decimal_many(tally_type type, const char *text, const char *end,
                         unsigned char **element, uint64_t *lines);

#endif
