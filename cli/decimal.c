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
#include <float.h>
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

/* ---- Quickly ---- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* Eight digits at once, in the bytes of a word (after Lemire, "Quickly parsing eight digits"). */
static bool are_digits(uint64_t w) {
    const uint64_t high = 0xf0f0f0f0f0f0f0f0u;
    return ((w & high) | (((w + 0x0606060606060606u) & high) >> 4)) == 0x3333333333333333u;
}

static uint64_t eight_digits(uint64_t w) {
    w -= 0x3030303030303030u;
    w = w * 10 + (w >> 8); /* pairs, in every other byte */
    return ((w & 0x000000ff000000ffu) * 0x000f424000000064u +
            (w >> 16 & 0x000000ff000000ffu) * 0x0000271000000001u) >>
           32;
}
#endif

/* Digits on from *at, appended to `value`, which wraps where there are more than 19 in all. */
static uint64_t read_digits(const char **at, uint64_t value) {
    const char *c = *at;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (uint64_t w; memcpy(&w, c, 8), are_digits(w); c += 8)
        value = value * 100000000 + eight_digits(w);
#endif
    for (; is_digit(*c); c++)
        value = value * 10 + (uint64_t)(*c - '0');
    *at = c;
    return value;
}

/* The double nearest to digits * 10^exponent, in *out; false where another way is needed.
 *
 * Both factors are exact in the format that is computed in, so that one rounding is made (Clinger 1990). In
 * the wider format, of 64 bits, a second one follows, to 53. It goes wrong only where the first has
 * landed on a midpoint of the doubles: the bits below the double's are then 100...0. */
static bool scale(uint64_t digits, int exponent, double *out) {
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (digits <= (uint64_t)1 << 53 && exponent >= -22 && exponent <= 22) {
        *out = exponent < 0 ? (double)digits / tens[-exponent] : (double)digits * tens[exponent];
        return true;
    }
#if LDBL_MANT_DIG == 64 && defined(__x86_64__)
    static const long double wide[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,
                                       1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
                                       1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L,
                                       1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
    if (exponent >= -27 && exponent <= 27) {
        long double x = (long double)digits;
        uint64_t mantissa;
        x = exponent < 0 ? x / wide[-exponent] : x * wide[exponent];
        memcpy(&mantissa, &x, sizeof mantissa);
        *out = (double)x;
        return (mantissa & 0x7ff) != 0x400;
    }
#endif
    return false;
}

/* The f32 nearest to what *x was rounded from: wrong only where *x is a midpoint of two f32s. */
static bool shorten(double x, float *out) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    *out = (float)x;
    return x == 0 || ((bits & 0x1fffffff) != 0x10000000 && (x >= 0x1p-126 || x <= -0x1p-126));
}

static const char *quick_floating(tally_type type, const char *text, void *element) {
    const bool negative = *text == '-';
    const char *at = text + (*text == '-' || *text == '+'), *first = at;
    uint64_t digits = read_digits(&at, 0);
    size_t count = (size_t)(at - first);
    int exponent = 0;
    if (*at == '.') {
        const char *point = ++at;
        digits = read_digits(&at, digits);
        count += (size_t)(at - point);
        if (at - point > 40) return NULL;
        exponent = -(int)(at - point);
    }
    if (count == 0 || count > 19) return NULL;
    if (*at == 'e' || *at == 'E') {
        const bool down = at[1] == '-';
        const char *power = at + 1 + (at[1] == '-' || at[1] == '+');
        at = power;
        const int value = (int)read_digits(&at, 0);
        if (at == power || at - power > 4) return NULL;
        exponent += down ? -value : value;
    }
    double x;
    if (!scale(digits, exponent, &x)) return NULL;
    if (negative) x = -x;
    if (type == TALLY_F64) return memcpy(element, &x, sizeof x), at;
    float y;
    if (!shorten(x, &y)) return NULL;
    return memcpy(element, &y, sizeof y), at;
}

static const char *quick_integer(tally_type type, const char *text, void *element) {
    const bool negative = *text == '-';
    const char *at = text + (*text == '-' || *text == '+'), *first = at;
    const uint64_t value = read_digits(&at, 0);
    const size_t bytes = tally_type_size(type);
    if (at == first || at - first > 18) return NULL;
    uint64_t largest = UINT64_MAX >> (64 - 8 * bytes);
    if (type_is_signed(type))
        largest = (largest >> 1) + negative;
    else if (negative)
        return NULL;
    if (value > largest) return NULL;
    store(negative ? -value : value, bytes, element);
    return at;
}

const char *decimal_quick(tally_type type, const char *text, void *element) {
    if (type == TALLY_F64 || type == TALLY_F32) return quick_floating(type, text, element);
    return type_is_floating(type) ? NULL : quick_integer(type, text, element);
}
