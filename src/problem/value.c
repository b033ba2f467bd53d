/*
 * value.c - one number: its bits, its nearest double, its shortest decimal, its conversion to another type.
 */
#include "base/fpenv.h"
#include "base/status.h"
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

/* Returns the most digits of a decimal that survive a round trip through the nearest normal number of the type: C's
 * DBL_DIG. */
static int digits_kept(tally_type type) {
    return type == TALLY_F64 ? 15 : type == TALLY_F32 ? 6 : type == TALLY_F16 ? 3 : 2;
}

/* Returns the shortest decimal that reads back as the value, d > 0; among those the nearest. It may end with zeros.
 *
 * If a decimal of at most digits_kept() digits reads back as a normal number, it survives the round trip. So it is the
 * number's nearest decimal of digits_kept() digits, but for zeros at its end, and the search can begin there. Next to a
 * power of two, a decimal may read back though it is not the nearest of its length. So the search tries the nearest
 * one's neighbours, too. */
static struct decimal shortest_decimal(const tally_value *value, double d) {
    struct decimal found = {0, 0};
    const int is_normal = d >= ldexp(1, 1 - (int)format_of(value->type).bias);
    for (int digits = is_normal ? digits_kept(value->type) : 1; digits <= 17; digits++) {
        found = nearest_decimal(d, digits);
        if (reads_back(found, value)) break;
        struct decimal above = {found.digits + 1, found.exponent};
        struct decimal below = {found.digits - 1, found.exponent};
        if (reads_back(above, value)) return above;
        if (reads_back(below, value)) return below;
    }
    return found;
}

/* Writes a decimal: as Python does, without an exponent if the first digit's power of ten is in [-4, 16). */
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
    /* Sets the whole environment. The C library's conversions may obey the rounding mode of another unit than the
     * vector unit, which fp_env_enter() does not set. */
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

/* ---- In another type ------------------------------------------------------------------------ */

/* A finite number: magnitude * 2^exponent, with a sign. */
struct scaled {
    int negative;
    uint64_t magnitude;
    int exponent;
};

/* Takes a value apart. Returns 0 for a NaN or an infinity. */
static int take_apart(const tally_value *value, struct scaled *out) {
    const uint64_t bits = tally_value_bits(value);
    if (!type_is_float(value->type)) {
        const unsigned unused = 64 - 8 * (unsigned)type_size(value->type);
        const int64_t wide = (int64_t)(bits << unused) >> unused; /* with copies of the sign */
        out->negative = type_is_signed(value->type) && wide < 0;
        out->magnitude = out->negative ? 0 - (uint64_t)wide : bits;
        out->exponent = 0;
        return 1;
    }
    const float_format f = format_of(value->type);
    const uint64_t magnitude = bits & (float_sign(f) - 1), field = magnitude >> f.mantissa;
    out->negative = (bits & float_sign(f)) != 0;
    out->magnitude = magnitude & ((UINT64_C(1) << f.mantissa) - 1);
    if (field != 0) out->magnitude |= UINT64_C(1) << f.mantissa;
    out->exponent = (field ? (int)field : 1) - f.bias - f.mantissa;
    return magnitude < float_infinity_bits(f, 0);
}

/* Rounds a magnitude to the nearest integer, ties to even. Returns 0 if that is 2^64 or more. */
static int round_to_integer(const struct scaled *x, uint64_t *out) {
    const uint64_t m = x->magnitude;
    if (x->exponent >= 0) {
        if (m != 0 && x->exponent > __builtin_clzll(m)) return 0;
        *out = m == 0 ? 0 : m << x->exponent;
        return 1;
    }
    const int drop = -x->exponent;
    *out = 0;
    if (drop > 63) return 1; /* m < 2^53, so it is below a half */
    const uint64_t rest = m & ((UINT64_C(1) << drop) - 1), half = UINT64_C(1) << (drop - 1);
    *out = m >> drop;
    *out += rest > half || (rest == half && *out % 2 == 1);
    return 1;
}

static int to_integer(const tally_value *value, tally_type type, tally_value *out) {
    struct scaled x;
    uint64_t magnitude;
    const unsigned width = 8 * (unsigned)type_size(type);
    if (!take_apart(value, &x) || !round_to_integer(&x, &magnitude)) return 0;
    uint64_t most = UINT64_MAX >> (64 - width);
    if (type_is_signed(type))
        most = (most >> 1) + (x.negative != 0);
    else if (x.negative)
        most = 0;
    if (magnitude > most) return 0;
    *out = value_of_bits(type, x.negative ? 0 - magnitude : magnitude);
    return 1;
}

static tally_value to_float(const tally_value *value, tally_type type) {
    struct scaled x;
    if (type_is_float(value->type))
        return float_from_bits(
            type, round_float(format_of(type), format_of(value->type), tally_value_bits(value)));
    take_apart(value, &x);
    return round_scaled(type, x.negative ? -(__int128)x.magnitude : (__int128)x.magnitude, 0);
}

tally_status tally_value_convert(const tally_value *value, tally_type type, tally_value *out) {
    if (!value || !out) return fail(TALLY_EINVAL, "tally_value_convert: an argument is NULL");
    if (!type_is_known(value->type) || !type_is_known(type))
        return fail(TALLY_ETYPE, "tally_value_convert: type %d is none",
                    (int)(type_is_known(value->type) ? type : value->type));
    if (type_is_float(type)) {
        *out = to_float(value, type);
        return TALLY_OK;
    }
    if (to_integer(value, type, out)) return TALLY_OK;
    char text[40];
    tally_value_print(value, text, sizeof text);
    return fail(TALLY_ERANGE, "%s does not fit %s", text, tally_type_name(type));
}
