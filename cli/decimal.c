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

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* The first eight bytes of a text, the first of them the lowest, as differences from '0'. */
static inline uint64_t load(const char *text) {
    uint64_t w;
    memcpy(&w, text, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    return w ^ 0x3030303030303030u;
}

/* How many of the bytes are digits, before the first that is none. A byte above 9 sets its own high bit; what it
 * carries over reaches bytes behind it only. */
static inline unsigned count_digits(uint64_t w) {
    const uint64_t others = (w | (w + 0x7676767676767676u)) & 0x8080808080808080u;
    return others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
}

/* The number that the first `count` digits are (after Lemire, "Quickly parsing eight digits"): they are moved
 * behind zeros, then brought together by pairs, fours and eights. */
static inline uint64_t join_digits(uint64_t w, unsigned count) {
    w = count ? w << (64 - 8 * count) : 0;
    w = w * 10 + (w >> 8); /* pairs, in every other byte */
    return ((w & 0x000000ff000000ffu) * 0x000f424000000064u +
            (w >> 16 & 0x000000ff000000ffu) * 0x0000271000000001u) >>
           32;
}

/* Reads digits on from `at`, where `w` was loaded, and appends them to *value, which wraps where there are more
 * than 19 in all. Returns the first byte that is none. */
ALWAYS_INLINE const char *read_digits(const char *at, uint64_t w, uint64_t *value) {
    static const uint64_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    for (;;) {
        const unsigned count = count_digits(w);
        const uint64_t read = join_digits(w, count);
        if (count < 8) {
            *value = *value * tens[count] + read;
            return at + count;
        }
        *value = *value * 100000000 + read;
        at += 8;
        w = load(at);
    }
}

/* Reads a sign and the digits behind it. Both texts that may follow are loaded before it is known which. */
static inline const char *read_signed(const char *text, bool *negative, const char **first,
                                      uint64_t *value) {
    const uint64_t without = load(text), with = load(text + 1);
    *negative = *text == '-';
    *first = text + (*negative | (*text == '+'));
    *value = 0;
    return read_digits(*first, *first == text ? without : with, value);
}

/* The double nearest to digits * 10^exponent, in *out; false where another way is needed.
 *
 * Both factors are exact in the format that is computed in, so that one rounding is made (Clinger 1990). In
 * the wider format, of 64 bits, a second one follows, to 53. It goes wrong only where the first has
 * landed on a midpoint of the doubles: the bits below the double's are then 100...0. */
ALWAYS_INLINE bool scale(uint64_t digits, int exponent, double *out) {
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (digits <= (uint64_t)1 << 53 && exponent >= -22 && exponent <= 22) {
        const double x = (double)(int64_t)digits;
        *out = exponent < 0 ? x / tens[-exponent] : x * tens[exponent];
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
