/*
 * json.c - numbers into JSON without losing any of their digits.
 */
#include "json.h"

#include "message.h"
#include "types.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void json_text(struct json_object *object, const char *key, const char *text) {
    json_object_object_add(object, key, json_object_new_string(text));
}

void json_count(struct json_object *object, const char *key, uint64_t count) {
    json_object_object_add(object, key, json_object_new_uint64(count));
}

void json_measure(struct json_object *object, const char *key, double measured) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", measured);
    json_object_object_add(object, key,
                           isfinite(measured) ? json_object_new_double_s(measured, text) : NULL);
}

static struct json_object *floating(const tally_value *value) {
    char text[64];
    double number = tally_value_double(value);
    tally_value_print(value, text, sizeof text - 2);
    if (!isfinite(number)) return json_object_new_string(text);
    if (!strpbrk(text, ".e")) strcat(text, ".0"); /* stays a float, and -0 stays -0, when read */
    return json_object_new_double_s(number, text);
}

static struct json_object *number(const tally_value *value) {
    if (!value->type) return NULL;
    if (type_is_floating(value->type)) return floating(value);
    if (value->type == TALLY_U64) return json_object_new_uint64(value->as.u64);
    if (value->type == TALLY_I64) return json_object_new_int64(value->as.i64);
    return json_object_new_int64((int64_t)tally_value_double(value));
}

static struct json_object *bits(const tally_value *value) {
    char text[24];
    if (!value->type) return NULL;
    snprintf(text, sizeof text, "0x%0*" PRIx64, (int)(2 * tally_type_size(value->type)),
             tally_value_bits(value));
    return json_object_new_string(text);
}

void json_result(struct json_object *object, const tally_value *value) {
    json_object_object_add(object, "value", number(value));
    json_object_object_add(object, "bits", bits(value));
}

void json_results(struct json_object *object, const tally_value *values, size_t count) {
    if (count == 1) {
        json_result(object, values);
        return;
    }
    struct json_object *value_list = json_object_new_array(), *bits_list = json_object_new_array();
    for (size_t i = 0; i < count; i++) {
        json_object_array_add(value_list, number(&values[i]));
        json_object_array_add(bits_list, bits(&values[i]));
    }
    json_object_object_add(object, "value", value_list);
    json_object_object_add(object, "bits", bits_list);
}

void json_ops(struct json_object *object, const char *key, const tally_op *ops, size_t count) {
    struct json_object *list = json_object_new_array();
    for (size_t i = 0; i < count; i++)
        json_object_array_add(list, json_object_new_string(tally_op_name(ops[i])));
    json_object_object_add(object, key, list);
}

int json_print(struct json_object *object) {
    puts(json_object_to_json_string_ext(object,
                                        JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(object);
    return finish_output();
}
