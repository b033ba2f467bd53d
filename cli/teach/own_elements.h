/*
 * own_elements.h - the elements that a student's kernel is given, and their right results.
 */
#ifndef TALLY_CLI_OWN_ELEMENTS_H
#define TALLY_CLI_OWN_ELEMENTS_H

#include "teach/own_session.h"

/* Kinds of elements. All but OWN_SPREAD have a result that is exact in every order of combining. */
enum own_data {
    OWN_DATA, /* small whole numbers */
    OWN_ONES,
    OWN_UNIT, /* one 1 among zeros */
    OWN_SIGNS,
    OWN_NEGATIVE,
    OWN_POSITIVE,
    OWN_FRACTIONS,
    OWN_WIDTH,  /* the elements, or their sum, need all bits of the type */
    OWN_SPREAD, /* floats of very different size: a sum is right within own_run.bound */
    OWN_TIES,   /* one magnitude, both signs */
    OWN_DATA_KINDS,
    /* Element i is 2^i: for at most 24 elements a sum shows which ones it has. For lessons' goals only. */
    OWN_POWERS
};
/* Returns the data in words: "numbers of both signs". */
const char *own_data_words(enum own_data data);
/* Returns whether such elements exist for a type and operator, and test more than OWN_DATA does. */
bool own_data_suits(enum own_data data, tally_op op, tally_type type);

/* The other operators whose result a wrong result is compared with. */
enum own_looks {
    OWN_LOOKS_SUM,
    OWN_LOOKS_PROD,
    OWN_LOOKS_MIN,
    OWN_LOOKS_MAX,
    OWN_LOOKS_AND, /* of integers */
    OWN_LOOKS_OR,
    OWN_LOOKS_XOR, /* the last that --op takes */
    OWN_LOOKS_NORM1,
    OWN_LOOKS_SUMSQ,
    OWN_LOOKS_NORMINF,
    OWN_LOOKS_COUNT,
    OWN_LOOKS_MEAN,
    OWN_LOOKS_KINDS
};
enum { OWN_LOOKS_MOST = 32 }; /* elements, at most, for which that is compared */

/* A number: `real` is its value as a double, `whole` an integer's in 64 bits. */
struct own_number {
    double real;
    int64_t whole;
};

bool own_is_float(tally_type type);
/* Write and read element i of an array. */
void own_put(tally_type type, void *array, uint64_t i, struct own_number value);
struct own_number own_get(tally_type type, const void *array, uint64_t i);
/* Converts a number to a value of the kernel's type. */
void own_elements_value(const struct own_session *s, double number, tally_value *out);

/* Fill n elements of the first array, and of the second. `unit`: for OWN_UNIT, which element is the 1. */
void own_fill(const struct own_session *s, void *x, uint64_t n, int data, uint64_t unit);
void own_fill_second(const struct own_session *s, void *y, uint64_t n, int data);
/* Returns n elements of OWN_DATA, which the caller frees; NULL without memory. */
void *own_elements_make(const struct own_session *s, uint64_t n);

/* Combines `count` elements, `step` apart, in order; with y, the products x[i] * y[i]. This is exact but for sums of
 * OWN_SPREAD, whose error is less than own_run.bound. */
struct own_number own_fold(tally_op op, tally_type type, const void *x, const void *y,
                           uint64_t count, uint64_t step);
/* Returns whether two numbers are the same, or floats within `bound`. */
bool own_equals(tally_type type, struct own_number a, struct own_number b, double bound);
/* Returns whether `got` is the result that the operator `look` has for n elements, alone or combined with what the
 * output holds at first. */
bool own_looks_like(const struct own_session *s, enum own_looks look, struct own_number got,
                    const void *x, uint64_t n);

#endif
