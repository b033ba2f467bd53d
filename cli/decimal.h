/*
 * decimal.h - one written number as one element of a given type.
 */
#ifndef TALLY_CLI_DECIMAL_H
#define TALLY_CLI_DECIMAL_H

#include "tally.h"

enum decimal_result {
    DECIMAL_OK,
    DECIMAL_MALFORMED, /* the text is no number of this kind */
    DECIMAL_RANGE      /* an integer that does not fit the type */
};

/* Reads text, which has no space at either end, into *element. Integers are exact; a floating
 * number is the nearest one of its type, ties to even (beyond the largest: infinity), and may also be
 * written "nan", "inf" or in hexadecimal. *element is written only with DECIMAL_OK. */
enum decimal_result decimal_read(tally_type type, const char *text, void *element);

#endif
