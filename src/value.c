/*
 * value.c - one number: its bits, its nearest double, its shortest decimal.
 */
#include "exact/round.h"
#include "fpenv.h"
#include "partial.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tally_version(void) {
    return "0.1.0";
}

uint64_t tally_value_bits(const tally_value *value) {
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

static double half_to_double(uint16_t h) {
    int field = h >> 10 & 31, mantissa = h & 1023;
    double magnitude;
    if (field == 31)
        magnitude = mantissa ? (double)NAN : (double)INFINITY;
    else
        magnitude = field ? ldexp(1024 + mantissa, field - 25) : ldexp(mantissa, -24);
    return h >> 15 ? -magnitude : magnitude;
}

static double bfloat_to_double(uint16_t h) {
    uint32_t word = (uint32_t)h << 16;
    float f;
    memcpy(&f, &word, sizeof f);
    return f;
}

double tally_value_double(const tally_value *value) {
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
        return half_to_double(value->as.f16);
    case TALLY_BF16:
        return bfloat_to_double(value->as.bf16);
    case TALLY_F32:
        return value->as.f32;
    case TALLY_F64:
        return value->as.f64;
    }
    return (double)NAN;
}

/* Whether the decimal reads back as the value. A 16-bit float is read by way of a double. */
static int reads_back(const char *decimal, const tally_value *value) {
    tally_value read;
    if (value->type == TALLY_F32)
        read = (tally_value){.type = TALLY_F32, .as.f32 = strtof(decimal, NULL)};
    else
        read = round_double(value->type, strtod(decimal, NULL));
    return tally_value_bits(&read) == tally_value_bits(value);
}

/* Rewrites "d.ddde-xx", whatever the locale's point is, as digits with the point in place where that
 * is short, as Python does it, and with an exponent where not. */
static void tidy(const char *scientific, char *text, size_t size) {
    char digits[32];
    size_t count = 0;
    const char *p = scientific;
    for (; *p != 'e'; p++)
        if (*p >= '0' && *p <= '9' && count < sizeof digits - 1) digits[count++] = *p;
    while (count > 1 && digits[count - 1] == '0')
        count--;
    digits[count] = '\0';
    const char *sign = *scientific == '-' ? "-" : "";
    int exponent = atoi(p + 1), length = (int)count;
    if (exponent >= length - 1 && exponent < 16)
        snprintf(text, size, "%s%s%.*s", sign, digits, exponent - length + 1, "0000000000000000");
    else if (exponent >= 0 && exponent < 16)
        snprintf(text, size, "%s%.*s.%s", sign, exponent + 1, digits, digits + exponent + 1);
    else if (exponent < 0 && exponent >= -4)
        snprintf(text, size, "%s0.%.*s%s", sign, -exponent - 1, "0000", digits);
    else
        snprintf(text, size, "%s%c%s%se%+03d", sign, digits[0], length > 1 ? "." : "", digits + 1,
                 exponent);
}

static void print_float(const tally_value *value, char *text, size_t size) {
    double d = tally_value_double(value);
    if (isnan(d) || isinf(d)) {
        snprintf(text, size, "%s", isnan(d) ? "nan" : d < 0 ? "-inf" : "inf");
        return;
    }
    struct fp_env caller = fp_env_enter(); /* decimals are rounded, too */
    char scientific[48];
    for (int precision = 0; precision <= 16; precision++) {
        snprintf(scientific, sizeof scientific, "%.*e", precision, d);
        if (reads_back(scientific, value)) break;
    }
    fp_env_leave(caller);
    tidy(scientific, text, size);
}

size_t tally_value_print(const tally_value *value, char *text, size_t size) {
    char whole[64];
    if (type_is_float(value->type))
        print_float(value, whole, sizeof whole);
    else if (value->type == TALLY_I64)
        snprintf(whole, sizeof whole, "%" PRId64, value->as.i64);
    else if (value->type == TALLY_U64)
        snprintf(whole, sizeof whole, "%" PRIu64, value->as.u64);
    else
        snprintf(whole, sizeof whole, "%.0f", tally_value_double(value));
    if (size > 0) snprintf(text, size, "%s", whole);
    return strlen(whole);
}
