/*
 * json.c - numbers into JSON without losing any of their digits.
 */
#include "json.h"

#include "message.h"

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

void json_result(struct json_object *object, const tally_value *value) {
    struct json_object *number;
    switch (value->type) {
    case TALLY_F16:
    case TALLY_BF16:
    case TALLY_F32:
    case TALLY_F64:
        number = floating(value);
        break;
    case TALLY_U64:
        number = json_object_new_uint64(value->as.u64);
        break;
    case TALLY_I64:
        number = json_object_new_int64(value->as.i64);
        break;
    default:
        number = json_object_new_int64((int64_t)tally_value_double(value));
    }
    json_object_object_add(object, "value", number);
    char bits[24];
    snprintf(bits, sizeof bits, "0x%0*" PRIx64, (int)(2 * tally_type_size(value->type)),
             tally_value_bits(value));
    json_text(object, "bits", bits);
}

int json_print(struct json_object *object) {
    puts(json_object_to_json_string_ext(object,
                                        JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(object);
    return finish_output();
}
