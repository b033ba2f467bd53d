/*
 * decimal.c - from digits to elements, rounded once.
 *
 * For f32 and f64 the C library reads correctly rounded. For f16 and bf16, reading a double and
 * rounding that again would round twice: a decimal a hair above a midpoint would first fall onto
 * the midpoint, and then to the wrong side. So the decimal is rounded to odd first. It is read
 * twice, rounded down and rounded up. If the two differ, it lies strictly between neighbouring
 * doubles, and the one whose last bit is odd is taken. An odd double is never a midpoint of a
 * format so much smaller, and it lies on the same side of every midpoint as the decimal does.
 */
#include "input/decimal.h"

#include "common/types.h"
#include "input/decimal_powers.h"

#include <ctype.h>
#include <fenv.h>
#include <math.h>
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

/* Returns the decimal rounded to odd, a double that can be rounded on to f16 or bf16: see above. */
static double read_odd(const char *text, char **end) {
    int mode = fegetround();
    fesetround(FE_DOWNWARD);
    double below = strtod(text, end);
    fesetround(FE_UPWARD);
    double above = strtod(text, end);
    fesetround(mode);
    return is_odd(below) ? below : above;
}

/* Returns the bits of the nearest f16 or bf16. */
static uint16_t nearest_half(tally_type type, double x) {
    tally_value value = {.type = TALLY_F64, .as.f64 = x};
    tally_value_convert(&value, type, &value);
    return (uint16_t)tally_value_bits(&value);
}

/* Returns a copy of the text with e in the place of Fortran's d, as in 1.0D+05; NULL if there is
 * none, or no memory. The caller owns it. */
static char *with_exponent_letter(const char *text) {
    const size_t sign = *text == '-' || *text == '+';
    const size_t at = sign + strspn(text + sign, "0123456789.");
    if ((text[at] != 'd' && text[at] != 'D') || at == sign) return NULL;
    char *copy = strdup(text);
    if (copy) copy[at] = 'e';
    return copy;
}

static enum decimal_result read_floating(tally_type type, const char *text, void *element) {
    char *const copy = with_exponent_letter(text), *end;
    union {
        float f32;
        double f64;
        uint16_t half;
    } value;
    if (copy) text = copy;
    switch (type) {
    case TALLY_F16:
    case TALLY_BF16:
        value.half = nearest_half(type, read_odd(text, &end));
        break;
    case TALLY_F32:
        value.f32 = strtof(text, &end);
        break;
    default:
        value.f64 = strtod(text, &end);
    }
    const bool is_read = end != text && !*end && !isspace((unsigned char)*text);
    free(copy);
    if (!is_read) return DECIMAL_MALFORMED;
    memcpy(element, &value, tally_type_size(type));
    return DECIMAL_OK;
}

enum decimal_result decimal_read(tally_type type, const char *text, void *element) {
    return type_is_floating(type) ? read_floating(type, text, element)
                                  : read_integer(type, text, element);
}

/* ---- Quickly ---- */

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Returns the first eight bytes of a text, the first of them the lowest, as differences from
 * '0'. */
static inline uint64_t load(const char *text) {
    uint64_t w;
    memcpy(&w, text, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    return w ^ 0x3030303030303030u;
}

/* Returns a word with the high bit set in each byte that is no digit; `w` comes from load(). Only
 * the lowest set bit can be relied on: a byte above 9 sets its own high bit, and its carry may
 * change the bytes behind it. */
static inline uint64_t mark_others(uint64_t w) {
    return (w | (w + 0x7676767676767676u)) & 0x8080808080808080u;
}

/* Returns the number that eight digits write (after Lemire, "Quickly parsing eight digits"): digits
 * are joined to pairs, pairs to fours, fours to the number. */
static inline uint64_t join_digits(uint64_t w) {
    w = w * 10 + (w >> 8); /* pairs, in every other byte */
    return ((w & 0x000000ff000000ffu) * 0x000f424000000064u +
            (w >> 16 & 0x000000ff000000ffu) * 0x0000271000000001u) >>
           32;
}

/* Reads digits from `at` on, where `w` was loaded, and appends them to *value, which wraps if there
 * are more than 19 in all. Returns the first byte that is no digit. */
ALWAYS_INLINE const char *read_digits(const char *at, uint64_t w, uint64_t *value) {
    static const uint64_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    uint64_t others;
    while (!(others = mark_others(w))) {
        *value = *value * 100000000 + join_digits(w);
        at += 8;
        w = load(at);
    }
    const unsigned bit = (unsigned)__builtin_ctzll(others), count = bit / 8;
    *value = *value * tens[count] + join_digits(w << 8 << (63 - bit)); /* with leading zeros */
    return at + count;
}

/* Reads a sign and the digits behind it. The text is loaded with and without the first byte, so
 * that the loads need not wait for the test of the sign. */
static inline const char *read_signed(const char *text, bool *negative, const char **first,
                                      uint64_t *value) {
    const uint64_t without = load(text), with = load(text + 1);
    *negative = *text == '-';
    *first = text + (*negative | (*text == '+'));
    *value = 0;
    return read_digits(*first, *first == text ? without : with, value);
}

/* Writes to *out the double nearest to digits * 10^exponent (after Lemire, "Number parsing at a
 * gigabyte per second"). Returns false if it cannot decide how to round.
 *
 * `digits` is shifted up to d in [2^63, 2^64). The power is (p + e) * 2^k: p is the table's integer
 * of 128 bits, and 0 <= e < 1. `product` is d * p / 2^64 without its fraction, which is less than
 * 1, as d * e / 2^64 is, too. So d * (p + e) / 2^64 lies in [product, product + 2). The highest 53
 * bits of `product` are the double's. The bits below them, `rest` and `low`, decide how to round,
 * unless one half may lie in that interval.
 *
 * Nothing overflows or is subnormal: the result is 0, or in [10^-64, 2^64 * 10^64). */
ALWAYS_INLINE bool scale(uint64_t digits, int exponent, double *out) {
    *out = (double)(int64_t)digits;
    if (exponent == 0 && digits <= (uint64_t)1 << 53) return true;
    if (!digits) return true;
    if (exponent < -POWER_MOST || exponent > POWER_MOST) return false;
    const uint64_t *power = decimal_powers[exponent + POWER_MOST];
    const int shift = __builtin_clzll(digits);
    digits <<= shift;
    const unsigned __int128 product =
        (unsigned __int128)digits * power[0] + ((unsigned __int128)digits * power[1] >> 64);
    const uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    const unsigned is_long = high >> 63; /* `high` has 64 bits, else 63 */
    const uint64_t half = (uint64_t)0x200 << is_long, rest = high & (2 * half - 1);
    if (low + 2 <= 2 && (rest == half || rest == half - 1)) return false;
    const int binary = (217706 * exponent) >> 16; /* floor(log2(10^exponent)) */
    const int field =
        1085 + binary - shift + (int)is_long; /* biased exponent - 1: the leading bit adds 1 */
    const uint64_t bits = ((uint64_t)field << 52) + (high >> (10 + is_long)) + (rest >= half);
    memcpy(out, &bits, sizeof bits);
    return true;
}

/* Rounds x, the double nearest to a decimal, to the f32 nearest to the decimal. Returns false if
 * that may be wrong: x is a midpoint of two f32s, or the result is subnormal. */
static inline bool shorten(double x, float *out) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    *out = (float)x;
    return x == 0 || ((bits & 0x1fffffff) != 0x10000000 && (x >= 0x1p-126 || x <= -0x1p-126));
}

ALWAYS_INLINE const char *quick_floating(tally_type type, const char *text, void *element) {
    bool negative;
    const char *first;
    uint64_t digits;
    const char *at = read_signed(text, &negative, &first, &digits);
    size_t count = (size_t)(at - first);
    int exponent = 0;
    if (*at == '.') {
        const char *point = at + 1;
        at = read_digits(point, load(point), &digits);
        count += (size_t)(at - point);
        if (at - point > 40) return NULL;
        exponent = -(int)(at - point);
    }
    if (count - 1 > 18) return NULL; /* none, or too many */
    if (*at == 'e' || *at == 'E') {
        const bool down = at[1] == '-';
        const char *power = at + 1 + (at[1] == '-' || at[1] == '+');
        uint64_t value = 0;
        at = read_digits(power, load(power), &value);
        if (at == power || at - power > 4) return NULL;
        exponent += down ? -(int)value : (int)value;
    }
    double x;
    if (!scale(digits, exponent, &x)) return NULL;
    x = copysign(x, negative ? -1 : 1);
    if (type == TALLY_F64) return memcpy(element, &x, sizeof x), at;
    float y;
    if (!shorten(x, &y)) return NULL;
    return memcpy(element, &y, sizeof y), at;
}

ALWAYS_INLINE const char *quick_integer(tally_type type, size_t bytes, const char *text,
                                        void *element) {
    bool negative;
    const char *first;
    uint64_t value;
    const char *at = read_signed(text, &negative, &first, &value);
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
    return type_is_floating(type) ? NULL
                                  : quick_integer(type, tally_type_size(type), text, element);
}

const char *decimal_split(const char *text, int64_t *digits, int *places) {
    bool negative;
    const char *first;
    uint64_t value;
    const char *at = read_signed(text, &negative, &first, &value);
    size_t count = (size_t)(at - first);
    *places = 0;
    if (*at == '.') {
        const char *point = at + 1;
        at = read_digits(point, load(point), &value);
        *places = (int)(at - point);
        count += (size_t)(at - point);
    }
    if (count - 1 > 17 || *at == 'e' || *at == 'E') return NULL; /* none, too many, or a power */
    *digits = negative ? -(int64_t)value : (int64_t)value;
    return at;
}

/* decimal_many() for one type, which the compiler knows. */
static inline const char *many(tally_type type, const char *at, const char *end,
                               unsigned char **element, uint64_t *lines) {
    const size_t size = type == TALLY_F64 ? 8 : type == TALLY_F32 ? 4 : tally_type_size(type);
    while (at < end) {
        const char *next = type == TALLY_F64 || type == TALLY_F32
                               ? quick_floating(type, at, *element)
                               : quick_integer(type, size, at, *element);
        if (!next) break;
        next += *next == '\r' && next[1] == '\n';
        if (*next != '\n' && *next != ' ' && *next != '\t') break;
        *lines += *next == '\n';
        *element += size;
        at = next + 1;
    }
    return at;
}

const char *decimal_many(tally_type type, const char *text, const char *end,
                         unsigned char **element, uint64_t *lines) {
    if (type == TALLY_F64) return many(TALLY_F64, text, end, element, lines);
    if (type == TALLY_F32) return many(TALLY_F32, text, end, element, lines);
    return type_is_floating(type) ? text : many(type, text, end, element, lines);
}
