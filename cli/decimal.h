/*
 * decimal.h - one written number as one element of a given type.
 */
#ifndef TALLY_CLI_DECIMAL_H
#define TALLY_CLI_DECIMAL_H

#include "tally.h"

#include <stdbool.h>

enum decimal_result {
    DECIMAL_OK,
    DECIMAL_MALFORMED, /* the text is no number of this kind */
    DECIMAL_RANGE      /* an integer that does not fit the type */
};

/* Reads text, which has no space at either end, into *element. Integers are exact; a floating
 * number is the nearest one of its type, ties to even (beyond the largest: infinity), and may also be
 * written "nan", "inf" or in hexadecimal. *element is written only with DECIMAL_OK. */
enum decimal_result decimal_read(tally_type type, const char *text, void *element);

/* The same, fast, of the most common numbers: up to 19 digits with a point and a small exponent, as an f64 or
 * f32; up to 18 digits as an integer. Returns the first byte after the number, or NULL where
 * decimal_read() is needed. Eight bytes behind the text must be readable, and a byte that belongs to no
 * number must end it. */
const char *decimal_quick(tally_type type, const char *text, void *element);

#endif
