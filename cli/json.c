/*
 * json.c - numbers into JSON without losing any of their digits.
 */
#include "json.h"

#include "message.h"
#include "types.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool lost; /* something could not be made for want of memory */

static struct json_object *made(struct json_object *value) {
    if (!value) lost = true;
    return value;
}

struct json_object *json_new_object(void) {
    return made(json_object_new_object());
}

struct json_object *json_new_list(void) {
    return made(json_object_new_array());
}

struct json_object *json_new_text(const char *text) {
    return made(json_object_new_string(text));
}

static void put_member(struct json_object *object, const char *key, struct json_object *value) {
    if (object && json_object_object_add(object, key, value) == 0) return;
    lost = true;
    json_object_put(value);
}

void json_member(struct json_object *object, const char *key, struct json_object *value) {
    put_member(object, key, made(value));
}

void json_null(struct json_object *object, const char *key) {
    put_member(object, key, NULL);
}

static void put_item(struct json_object *list, struct json_object *value) {
    if (list && json_object_array_add(list, value) == 0) return;
    lost = true;
    json_object_put(value);
}

void json_item(struct json_object *list, struct json_object *value) {
    put_item(list, made(value));
}

void json_text(struct json_object *object, const char *key, const char *text) {
    json_member(object, key, json_object_new_string(text));
}

void json_count(struct json_object *object, const char *key, uint64_t count) {
    json_member(object, key, json_object_new_uint64(count));
}

void json_flag(struct json_object *object, const char *key, bool value) {
    json_member(object, key, json_object_new_boolean(value));
}

void json_measure(struct json_object *object, const char *key, double measured) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", measured);
    if (isfinite(measured))
        json_member(object, key, json_object_new_double_s(strtod(text, NULL), text));
    else
        json_null(object, key);
}

static struct json_object *floating(const tally_value *value) {
    char text[64];
    double number = tally_value_double(value);
    tally_value_print(value, text, sizeof text - 2);
    if (!isfinite(number)) return json_object_new_string(text);
    if (!strpbrk(text, ".e")) strcat(text, ".0"); /* stays a float, and -0 stays -0, when read */
    return json_object_new_double_s(strtod(text, NULL), text);
}

static struct json_object *number(const tally_value *value) {
    if (type_is_floating(value->type)) return floating(value);
    if (value->type == TALLY_U64) return json_object_new_uint64(value->as.u64);
    if (value->type == TALLY_I64) return json_object_new_int64(value->as.i64);
    return json_object_new_int64((int64_t)tally_value_double(value));
}

static struct json_object *bits(const tally_value *value) {
    char text[24];
    snprintf(text, sizeof text, "0x%0*" PRIx64, (int)(2 * tally_type_size(value->type)),
             tally_value_bits(value));
    return json_object_new_string(text);
}

void json_result(struct json_object *object, const tally_value *value) {
    json_member(object, "value", number(value));
    json_member(object, "bits", bits(value));
}

void json_items(struct json_object *values, struct json_object *bits_list,
                const tally_value *value) {
    if (value->type) {
        json_item(values, number(value));
        json_item(bits_list, bits(value));
    } else {
        put_item(values, NULL);
        put_item(bits_list, NULL);
    }
}

void json_results(struct json_object *object, const tally_value *values, const char *const *whole,
                  size_t count) {
    if (count == 1 && whole && whole[0]) {
        json_text(object, "value", whole[0]);
        json_null(object, "bits");
        return;
    }
    if (count == 1) {
        json_result(object, values);
        return;
    }
    struct json_object *value_list = json_new_list(), *bits_list = json_new_list();
    for (size_t i = 0; i < count; i++)
        if (whole && whole[i]) {
            json_item(value_list, json_new_text(whole[i]));
            put_item(bits_list, NULL);
        } else {
            json_items(value_list, bits_list, &values[i]);
        }
    json_member(object, "value", value_list);
    json_member(object, "bits", bits_list);
}

void json_ops(struct json_object *object, const char *key, const tally_op *ops, size_t count) {
    struct json_object *list = json_new_list();
    for (size_t i = 0; i < count; i++)
        json_item(list, json_object_new_string(tally_op_name(ops[i])));
    json_member(object, key, list);
}

enum { STYLE = JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE };

/* json-c goes on where it finds no memory for a part of the text; so the text is read again. */
static bool reads_back(const char *text) {
    struct json_object *again = json_tokener_parse(text);
    const char *second = again ? json_object_to_json_string_ext(again, STYLE) : NULL;
    bool same = second && strcmp(second, text) == 0;
    json_object_put(again);
    return same;
}

int json_print(struct json_object *object) {
    const char *text = NULL;
    if (!lost) text = json_object_to_json_string_ext(object, STYLE);
    if (text && !reads_back(text)) text = NULL;
    const bool printed = text != NULL;
    if (printed) puts(text);
    json_object_put(object);
    return printed ? finish_output() : failed("no memory for the JSON text");
}
