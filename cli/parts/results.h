/*
 * results.h - the many results of a reduction in parts: collected in order, block by block, and
 * then written to a .npy file, or printed one a line or as JSON.
 *
 * A file gets its name when all of it is written; nothing is printed before all results are there.
 * Results are kept in memory. If they are many, a scratch file takes them; with a .npy file as the
 * output this is the output itself.
 *
 * Every function that returns false has already written the line that says why.
 */
#ifndef TALLY_CLI_RESULTS_H
#define TALLY_CLI_RESULTS_H

#include "common/json.h"
#include "input/npy.h"
#include "tally.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct results {
    tally_problem problem;
    const char *path; /* of the .npy file, "-" for standard output, or NULL */
    size_t values;    /* values of one result */
    tally_op op[TALLY_VALUES_MAX];
    tally_type type[TALLY_VALUES_MAX];
    size_t record;  /* bytes of a result: its values side by side */
    uint64_t count; /* results that have been appended */

    void *out[TALLY_VALUES_MAX]; /* a block: a place for each of `room` results; owned */
    size_t room;

    unsigned char *memory; /* owned */
    size_t used, size;     /* bytes of it */
    int file;              /* has the results that memory does not take; or -1 */
    bool is_scratch;       /* the file is the output, and will be renamed to `path` */
    bool spilled;          /* the results are in the file */
};

/* Prepares for the results of a problem. path: see struct results; if it cannot be written, this
 * fails at once. */
bool results_begin(struct results *r, const tally_problem *problem, const char *path);
void results_end(struct results *r); /* also of one that is all zero but for file = -1 */

/* Makes the block large enough for so many results. */
bool results_room(struct results *r, size_t count);
/* Appends the block's first `count` results. */
bool results_put(struct results *r, size_t count);

/* Writes the .npy file, of this shape. */
bool results_write(struct results *r, unsigned dims, const uint64_t *length);

/* Calls each(context, number, values) for all results in order, until it returns false. */
bool results_each(struct results *r,
                  bool (*each)(void *context, uint64_t number, const tally_value *values),
                  void *context);
/* Returns the text of a value that results_each() gives. Beside other values the argmin or argmax
 * of no elements is "none". */
const char *results_text(const tally_value *value, char text[32]);

#endif
