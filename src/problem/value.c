/*
 * value.c - one number: its bits, its nearest double, its shortest decimal.
 */
#include "base/fpenv.h"
#include "base/types.h"
#include "exact/round.h"

#include <fenv.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tally_version(void) {
    return "0.1.0";
}

static const tally_value none; /* taken where the caller gives NULL */

uint64_t tally_value_bits(const tally_value *value) {
    if (!value) value = &none;
    switch (tally_type_size(value->type)) {
    case 1:
        return value->as.u8;
    case 2:
        return value->as.u16;
    case 4:
        return value->as.u32;
    case 8:
        return value->as.u64;
    default:
        return 0;
    }
}

static double bfloat_to_double(uint16_t h) {
    uint32_t word = (uint32_t)h << 16;
    float f;
    memcpy(&f, &word, sizeof f);
    return f;
}

static double nearest_double(const tally_value *value) {
    switch (value->type) {
    case TALLY_I8:
        return value->as.i8;
    case TALLY_I16:
        return value->as.i16;
    case TALLY_I32:
        return value->as.i32;
    case TALLY_I64:
        return (double)value->as.i64;
    case TALLY_U8:
        return value->as.u8;
    case TALLY_U16:
        return value->as.u16;
    case TALLY_U32:
        return value->as.u32;
    case TALLY_U64:
        return (double)value->as.u64;
    case TALLY_F16:
        return half_to_float(value->as.f16);
    case TALLY_BF16:
        return bfloat_to_double(value->as.bf16);
    case TALLY_F32:
        return value->as.f32;
    case TALLY_F64:
        return value->as.f64;
    }
    return (double)NAN;
}

double tally_value_double(const tally_value *value) {
    struct fp_env caller = fp_env_enter();
    double d = nearest_double(value ? value : &none);
    fp_env_leave(caller);
    return d;
}

/* A decimal: digits * 10^exponent. */
struct decimal {
    uint64_t digits;
    int exponent;
};

/* Returns whether the decimal reads back as the value, which is positive. A 16-bit float is read by
 * way of a double. */
static int reads_back(struct decimal d, const tally_value *value) {
    char text[40]; /* without a point, and so the same in every locale */
    snprintf(text, sizeof text, "%" PRIu64 "e%d", d.digits, d.exponent);
    tally_value read;
    if (value->type == TALLY_F32)
        read = (tally_value){.type = TALLY_F32, .as.f32 = strtof(text, NULL)};
    else
        read = round_double(value->type, strtod(text, NULL));
    return tally_value_bits(&read) == tally_value_bits(value);
}

/* Returns the decimal of `digits` digits that is nearest to d > 0. */
static struct decimal nearest_decimal(double d, int digits) {
    char text[48];
    snprintf(text, sizeof text, "%.*e", digits - 1, d);
    struct decimal out = {0, 0};
    const char *p = text;
    for (; *p != 'e'; p++) /* passes over the point, which depends on the locale */
        if (*p >= '0' && *p <= '9') out.digits = 10 * out.digits + (uint64_t)(*p - '0');
    out.exponent = (int)strtol(p + 1, NULL, 10) - (digits - 1);
    return out;
}

/* Returns the shortest decimal that reads back as the value, d > 0; among those the nearest. Next
 * to a power of two the shortest that reads back may not be the nearest of its length. So the
 * search tries its neighbours, too. */
static struct decimal shortest_decimal(const tally_value *value, double d) {
    struct decimal found = {0, 0};
    for (int digits = 1; digits <= 17; digits++) {
        found = nearest_decimal(d, digits);
        if (reads_back(found, value)) break;
        struct decimal above = {found.digits + 1, found.exponent};
        struct decimal below = {found.digits - 1, found.exponent};
        if (reads_back(above, value)) return above;
        if (reads_back(below, value)) return below;
    }
    return found;
}

/* Writes a decimal as Python does: the point in place where that is short, an exponent where not. */
static void write_decimal(struct decimal d, const char *sign, char *text, size_t size) {
    while (d.digits != 0 && d.digits % 10 == 0) {
        d.digits /= 10;
        d.exponent++;
    }
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, d.digits);
    int first = d.digits ? d.exponent + length - 1 : 0; /* the first digit's power of ten */
    if (first >= length - 1 && first < 16)
        snprintf(text, size, "%s%s%.*s", sign, digits, first - length + 1, "0000000000000000");
    else if (first >= 0 && first < 16)
        snprintf(text, size, "%s%.*s.%s", sign, first + 1, digits, digits + first + 1);
    else if (first < 0 && first >= -4)
        snprintf(text, size, "%s0.%.*s%s", sign, -first - 1, "0000", digits);
    else
        snprintf(text, size, "%s%c%s%se%+03d", sign, digits[0], length > 1 ? "." : "", digits + 1,
                 first);
}

static void print_float(const tally_value *value, char *text, size_t size) {
    double d = nearest_double(value);
    if (isnan(d) || isinf(d)) {
        snprintf(text, size, "%s", isnan(d) ? "nan" : d < 0 ? "-inf" : "inf");
        return;
    }
    tally_value positive = round_double(value->type, fabs(d));
    struct decimal decimal = {0, 0};
    if (d != 0) decimal = shortest_decimal(&positive, fabs(d));
    write_decimal(decimal, signbit(d) ? "-" : "", text, size);
}

size_t tally_value_print(const tally_value *value, char *text, size_t size) {
    char whole[64];
    if (!value) value = &none;
    /* All of it: the C library's decimals may follow the rounding of another unit than the vector unit. */
    fenv_t caller;
    fegetenv(&caller);
    fesetenv(FE_DFL_ENV);
    fp_env_enter();
    if (!tally_type_name(value->type))
        snprintf(whole, sizeof whole, "none");
    else if (type_is_float(value->type))
        print_float(value, whole, sizeof whole);
    else if (value->type == TALLY_I64)
        snprintf(whole, sizeof whole, "%" PRId64, value->as.i64);
    else if (value->type == TALLY_U64)
        snprintf(whole, sizeof whole, "%" PRIu64, value->as.u64);
    else
        snprintf(whole, sizeof whole, "%.0f", nearest_double(value));
    fesetenv(&caller);
    if (text && size > 0) snprintf(text, size, "%s", whole);
    return strlen(whole);
}
