/*
 * json.h - what the command prints with --json: one object, on one line.
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
/* A measured number, to six digits. */
void json_measure(struct json_object *object, const char *key, double measured);
/* The keys "value" and "bits". The value keeps its shortest decimal; a NaN or an infinity, which
 * JSON does not have, is the text "nan", "inf" or "-inf". */
void json_result(struct json_object *object, const tally_value *value);
/* The same of several values, as two lists; a value that there is not is null. Where whole[i] is not NULL it is the
 * value as a text, which has no bits; `whole` may be NULL. */
void json_results(struct json_object *object, const tally_value *values, const char *const *whole,
                  size_t count);
/* The value and its bits, or null for one that there is not, at the end of two lists. */
void json_items(struct json_object *values, struct json_object *bits, const tally_value *value);
/* A list of the operators' names. */
void json_ops(struct json_object *object, const char *key, const tally_op *ops, size_t count);
/* Prints it and frees it; returns the command's exit status. */
int json_print(struct json_object *object);

#endif
