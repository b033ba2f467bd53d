/*
 * decimal.c - from digits to elements, rounded once.
 *
 * For f32 and f64 the C library reads correctly rounded. For f16 and bf16, reading a double and
 * rounding that again would round twice: a decimal a hair above a midpoint would first fall onto the
 * midpoint, and then to the wrong side. So the decimal is read twice, rounded down and rounded up.
 * Where the two differ, it lies strictly between neighbouring doubles, and the one of the two whose
 * last bit is odd stands for it: an odd double is never a midpoint of a format so much smaller, and
 * it lies on the same side of every midpoint as the decimal does.
 */
#include "decimal.h"

#include "narrow.h"
#include "types.h"

#include <fenv.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Writes the low bits of `value` as an integer of so many bytes. */
static void store(uint64_t value, size_t bytes, void *element) {
    switch (bytes) {
    case 1:
        memcpy(element, &(uint8_t){(uint8_t)value}, 1);
        break;
    case 2:
        memcpy(element, &(uint16_t){(uint16_t)value}, 2);
        break;
    case 4:
        memcpy(element, &(uint32_t){(uint32_t)value}, 4);
        break;
    default:
        memcpy(element, &value, 8);
    }
}

static enum decimal_result read_integer(tally_type type, const char *text, void *element) {
    size_t bytes = tally_type_size(type);
    bool negative = *text == '-';
    bool too_large = false;
    uint64_t magnitude = 0;
    if (*text == '-' || *text == '+') text++;
    if (!*text) return DECIMAL_MALFORMED;
    for (; *text; text++) {
        if (*text < '0' || *text > '9') return DECIMAL_MALFORMED;
        too_large |= __builtin_mul_overflow(magnitude, 10, &magnitude);
        too_large |= __builtin_add_overflow(magnitude, (uint64_t)(*text - '0'), &magnitude);
    }
    uint64_t largest = UINT64_MAX >> (64 - 8 * bytes);
    if (type_is_signed(type))
        largest = (largest >> 1) + negative;
    else if (negative)
        largest = 0;
    if (too_large || magnitude > largest) return DECIMAL_RANGE;
    store(negative ? -magnitude : magnitude, bytes, element);
    return DECIMAL_OK;
}

static bool is_odd(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 1;
}

/* The double that stands for the decimal when it is rounded on to a smaller format: see above. */
static double read_odd(const char *text, char **end) {
    int mode = fegetround();
    fesetround(FE_DOWNWARD);
    double below = strtod(text, end);
    fesetround(FE_UPWARD);
    double above = strtod(text, end);
    fesetround(mode);
    return is_odd(below) ? below : above;
}

static enum decimal_result read_floating(tally_type type, const char *text, void *element) {
    union {
        float f32;
        double f64;
        uint16_t half;
    } value;
    char *end;
    switch (type) {
    case TALLY_F16:
        value.half = narrow_f16(read_odd(text, &end));
        break;
    case TALLY_BF16:
        value.half = narrow_bf16(read_odd(text, &end));
        break;
    case TALLY_F32:
        value.f32 = strtof(text, &end);
        break;
    default:
        value.f64 = strtod(text, &end);
    }
    if (end == text || *end) return DECIMAL_MALFORMED;
    memcpy(element, &value, tally_type_size(type));
    return DECIMAL_OK;
}

enum decimal_result decimal_read(tally_type type, const char *text, void *element) {
    return type_is_floating(type) ? read_floating(type, text, element)
                                  : read_integer(type, text, element);
}
