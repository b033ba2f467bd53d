/*
 * npy.h - reads the header of a NumPy .npy file.
 *
 * A .npy file is a magic text, a version, the length of a header, the header - the text of a Python
 * dictionary that names the element type, the order and the shape - and then the array's bytes. The
 * reader is a pure function over bytes: it opens nothing, allocates nothing, and can be fuzzed.
 */
#ifndef TALLY_CLI_NPY_H
#define TALLY_CLI_NPY_H

#include "tally.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum npy_result {
    NPY_OK,   /* the header is read */
    NPY_MORE, /* the header is longer than what was given: give at least `needed` bytes */
    NPY_BAD   /* no header this reader understands: `problem` says why */
};

/* Dimensions whose lengths are kept; an array may have more. */
enum { NPY_DIMS = 16 };

struct npy_header {
    size_t needed;   /* bytes before the array: known with NPY_OK, a lower bound with NPY_MORE */
    tally_type type; /* the elements' type; 0 where they are two bytes without a meaning */
    size_t element;  /* bytes an element */
    size_t
        record; /* of a structured array: bytes from one element's field to the next one's; else 0 */
    size_t offset;   /* of the field in that element */
    bool big_endian; /* the elements' byte order */
    uint64_t count;  /* elements in all; count * element, or count * record, fits 63 bits */
    unsigned dims;   /* how many dimensions; the first NPY_DIMS of them have these lengths */
    uint64_t length[NPY_DIMS];
    bool is_fortran;   /* the first index runs fastest, not the last */
    char problem[400]; /* one line, with NPY_BAD */
};

/* Returns whether bytes[0..size) opens with the magic text of a .npy file. */
bool npy_recognise(const unsigned char *bytes, size_t size);
/* Reads the header at bytes[0..size), which may be followed by anything; field: that of a structured array, or NULL. */
enum npy_result npy_read(const unsigned char *bytes, size_t size, const char *field,
                         struct npy_header *out);

#endif
