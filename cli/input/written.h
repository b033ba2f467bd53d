/*
 * written.h - the exact value of a decimal as it is written: its sign, its digits and the power of
 * ten of the first digit.
 */
#ifndef TALLY_CLI_WRITTEN_H
#define TALLY_CLI_WRITTEN_H

#include <stdbool.h>
#include <stddef.h>

/* The digits have no zeros at either end; a point may stand among them. Zero has none. */
struct written {
    bool negative;
    const char *digits;
    size_t length; /* bytes of the digits and the point */
    long first;    /* the power of ten of the first digit; 0 for zero */
    long places;   /* places behind the point as written: 2 for 1.50, 3 for 1.50e-1 */
};

/* Reads a decimal such as -12.50 or 1e-7; D may open its exponent. Returns false if the text is not
 * a decimal. The digits point into the text. */
bool written_read(const char *text, struct written *w);
/* Compares exact values: less than 0, 0 or more than 0, as strcmp() does. */
int written_compare(const struct written *a, const struct written *b);
/* Writes the digits of a whole number, with its sign: -9999 for -9.999e3. Returns false if the
 * number is not whole or its text exceeds `size` bytes. */
bool written_print_whole(const struct written *w, char *out, size_t size);

#endif
