/*
 * results_print.h - results of a reduction in parts as lines of text, or as members of a JSON object.
 */
#ifndef TALLY_CLI_RESULTS_PRINT_H
#define TALLY_CLI_RESULTS_PRINT_H

#include "common/json.h"
#include "parts/results.h"

/* Prints the values of one result alone, as those of a whole array: several with their names, as a table where `is_table`. */
void results_print_single(const struct results *r, const tally_value *value, bool is_table);

/* Groups: the number of elements of each, or NULL without groups; and the id of each, or NULL if ids are 0, 1, 2 ... Groups
 * without elements are left out. */
struct results_groups {
    const uint64_t *count, *label;
};

/* Prints a line for each result, below a line of names if there are several values. Returns false
 * if results cannot be read again. finish_output() reports output that cannot be written. */
bool results_print_lines(struct results *r, const struct results_groups *groups);

/* Returns a list of lengths. */
struct json_object *results_lengths(const uint64_t *length, unsigned dims);

/* Puts the results' shape and types into the object. Then puts `output`, the file's name, if that
 * is not NULL; otherwise the results: as one if there are no dimensions, as groups if `groups` has
 * counts, else as lists. Returns false if results cannot be read again. */
bool results_to_json(struct results *r, unsigned dims, const uint64_t *length,
                     const struct results_groups *groups, const char *output,
                     struct json_object *object);

#endif
