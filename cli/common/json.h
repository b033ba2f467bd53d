/*
 * json.h - builds and prints the output of --json: one object or list, on one line.
 */
#ifndef TALLY_CLI_JSON_H
#define TALLY_CLI_JSON_H

#include "tally.h"

#include <json-c/json.h>
#include <stdbool.h>

/* None of these fails: where there is no memory, json_print() says so and prints nothing. */
struct json_object *json_new_object(void);
struct json_object *json_new_list(void);
struct json_object *json_new_text(const char *text);
/* Puts `value`, which is owned from then on, into an object or at the end of a list. */
void json_member(struct json_object *object, const char *key, struct json_object *value);
void json_item(struct json_object *list, struct json_object *value);
void json_flag(struct json_object *object, const char *key, bool value);
void json_null(struct json_object *object, const char *key);

void json_text(struct json_object *object, const char *key, const char *text);
void json_count(struct json_object *object, const char *key, uint64_t count);
/* Adds a measured number with six digits; null if it is NaN or infinite. */
void json_measure(struct json_object *object, const char *key, double measured);
/* Adds the keys "value" and "bits". The value keeps its shortest decimal; a NaN or an infinity,
 * which JSON does not have, is the text "nan", "inf" or "-inf". */
void json_result(struct json_object *object, const tally_value *value);
/* Adds the keys "value" and "bits": for several values two lists, with null for a value of type 0,
 * which does not exist. If whole[i] is not NULL, this text is the value, and its bits are null.
 * `whole` may be NULL. */
void json_results(struct json_object *object, const tally_value *values, const char *const *whole,
                  size_t count);
/* Appends a value to one list and its bits to another; null to both for a value of type 0. */
void json_items(struct json_object *values, struct json_object *bits, const tally_value *value);
/* Adds a list of the operators' names. */
void json_ops(struct json_object *object, const char *key, const tally_op *ops, size_t count);
/* Prints and frees the object; returns the command's exit status. */
int json_print(struct json_object *object);

#endif
