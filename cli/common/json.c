/*
 * json.c - numbers into JSON without losing any of their digits.
 */
#include "common/json.h"

#include "common/message.h"
#include "common/types.h"

#include <inttypes.h>
#include <json-c/printbuf.h>
#include <limits.h>
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

/* Returns an upper bound of the bytes of a text with its quotes. \u001f has 5 bytes more than the
 * character. */
static size_t bound_text(const char *text, size_t length) {
    size_t bytes = length + 2;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == '"' || text[i] == '\\') bytes += 5;
    return bytes;
}

static size_t bound(struct json_object *object);

static size_t bound_members(struct json_object *object) {
    size_t bytes = 4; /* brackets with a blank each */
    json_object_object_foreach(object, key, value) {
        bytes += bound_text(key, strlen(key)) + bound(value) + 4; /* ": " and ", " */
    }
    return bytes;
}

static size_t bound_items(struct json_object *list) {
    size_t bytes = 4;
    for (size_t i = 0; i < json_object_array_length(list); i++)
        bytes += bound(json_object_array_get_idx(list, i)) + 2;
    return bytes;
}

/* Returns an upper bound of the bytes of the object's text. */
static size_t bound(struct json_object *object) {
    switch (json_object_get_type(object)) {
    case json_type_object:
        return bound_members(object);
    case json_type_array:
        return bound_items(object);
    case json_type_string:
        return bound_text(json_object_get_string(object),
                          (size_t)json_object_get_string_len(object));
    default:
        return 64; /* a number; floating() has the longest */
    }
}

/* A serializer that writes no text of the object, but makes the buffer large enough for it. */
static int make_room(struct json_object *object, struct printbuf *text, int level, int flags) {
    const size_t bytes = bound(object) + 64;
    (void)level, (void)flags;
    return bytes > INT_MAX ? -1 : printbuf_memset(text, 0, 0, (int)bytes);
}

/* Returns the object's text, or NULL if memory is short. json-c does not notice when its buffer
 * cannot grow: it would leave out a part of the text. So make_room() grows the buffer first, and
 * the second call needs no memory. */
static const char *write_text(struct json_object *object) {
    json_object_set_serializer(object, make_room, NULL, NULL);
    if (!json_object_to_json_string_ext(object, STYLE)) return NULL;
    json_object_set_serializer(object, NULL, NULL, NULL);
    return json_object_to_json_string_ext(object, STYLE);
}

int json_print(struct json_object *object) {
    const char *text = lost ? NULL : write_text(object);
    const bool printed = text != NULL;
    if (printed) puts(text);
    json_object_put(object);
    return printed ? finish_output() : failed("no memory for the JSON text");
}
