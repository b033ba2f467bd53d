/* own_elements.c - see own_elements.h. */
#include "teach/own_elements.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool own_is_float(tally_type type) {
    return type == TALLY_F32 || type == TALLY_F64;
}

static bool is_signed(tally_type type) {
    return type == TALLY_I8 || type == TALLY_I16 || type == TALLY_I32 || type == TALLY_I64;
}

void own_put(tally_type type, void *array, uint64_t i, struct own_number value) {
    const size_t size = tally_type_size(type);
    const float f = (float)value.real;
    memcpy((char *)array + i * size,
           type == TALLY_F32   ? (const void *)&f
           : type == TALLY_F64 ? (const void *)&value.real
                               : (const void *)&value.whole,
           size);
}

struct own_number own_get(tally_type type, const void *array, uint64_t i) {
    const size_t size = tally_type_size(type);
    const char *at = (const char *)array + i * size;
    struct own_number v = {0, 0};
    if (type == TALLY_F32) {
        float f;
        memcpy(&f, at, sizeof f);
        v.real = (double)f;
    } else if (type == TALLY_F64) {
        memcpy(&v.real, at, sizeof v.real);
    } else {
        memcpy(&v.whole, at, size);
        const unsigned unused = 64 - 8 * (unsigned)size;
        v.whole = (int64_t)((uint64_t)v.whole << unused);
        v.whole = is_signed(type) ? v.whole >> unused : (int64_t)((uint64_t)v.whole >> unused);
        v.real = is_signed(type) ? (double)v.whole : (double)(uint64_t)v.whole;
    }
    return v;
}

/* ---- Chosen ---- */

const char *own_data_words(enum own_data data) {
    static const char *const words[OWN_DATA_KINDS] = {
        [OWN_DATA] = "small whole numbers",
        [OWN_ONES] = "ones",
        [OWN_UNIT] = "one 1 among zeros",
        [OWN_SIGNS] = "numbers of both signs",
        [OWN_NEGATIVE] = "negative numbers",
        [OWN_POSITIVE] = "great positive numbers",
        [OWN_FRACTIONS] = "fractions",
        [OWN_WIDTH] = "numbers that need all bits of the type",
        [OWN_SPREAD] = "numbers of widely different size",
        [OWN_TIES] = "numbers of one magnitude and both signs"};
    return words[data];
}

bool own_data_suits(enum own_data data, tally_op op, tally_type type) {
    const bool bits = op == TALLY_AND || op == TALLY_OR || op == TALLY_XOR;
    switch (data) {
    case OWN_SIGNS:
    case OWN_NEGATIVE:
    case OWN_TIES:
        return !bits && (own_is_float(type) || is_signed(type));
    case OWN_POSITIVE:
        return op == TALLY_MIN || op == TALLY_MAX;
    case OWN_FRACTIONS:
        return own_is_float(type);
    case OWN_SPREAD:
        return own_is_float(type) && op == TALLY_SUM;
    default:
        return true;
    }
}

/* Returns a hash of 64 bits (the finalizer of SplitMix64). */
static uint64_t hash(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static int64_t small(tally_op op, tally_type type, uint64_t i) {
    const uint64_t mixed = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    switch (op) {
    case TALLY_SUM:
        return 1 + (int64_t)(mixed % 9);
    case TALLY_PROD: /* few 2s, so that floats are exact */
        return i % 37 == 3 && i < 700 ? 2 : 1;
    case TALLY_AND:
        return (int64_t) ~(UINT64_C(1) << mixed % 61);
    case TALLY_MIN:
    case TALLY_MAX:
        return (int64_t)(mixed % 100) - (own_is_float(type) || is_signed(type) ? 50 : 0);
    default:
        return (int64_t)mixed;
    }
}

/* Returns a factor. All but at most 24 of n are 1 or -1, and most of these are powers of two. Products in any order are
 * exact: six factors are 1.5, and 3^6 has 10 bits; or three are 1 + 2^-7, and 129^3 has 22 bits (1 + 2^-16 for doubles,
 * 49 bits). */
static double factor(enum own_data data, tally_type type, uint64_t i, uint64_t n, uint64_t h) {
    const uint64_t apart = n / 24 + 1;
    const double sign = data == OWN_NEGATIVE || (data != OWN_WIDTH && h & 1) ? -1 : 1;
    if (i % apart) return sign;
    const uint64_t k = i / apart;
    if (k % 4 == 0 && data == OWN_FRACTIONS) return sign * 1.5;
    if (k < 3 && data == OWN_WIDTH) return type == TALLY_F64 ? 1 + 0x1p-16 : 1 + 0x1p-7;
    return sign * (k % 2 ? 2 : 0.5 + (data != OWN_FRACTIONS) * 1.5);
}

/* Returns a term of a sum, a multiple of some unit. For n up to FEW (own_judge.c) the absolute values add up to less
 * than 2^24 units for floats and 2^53 for doubles. So sums are exact in every order, but for OWN_SPREAD. */
static double term(enum own_data data, tally_type type, uint64_t n, uint64_t h) {
    const double sign = h >> 63 ? -1 : 1;
    const int bits = type == TALLY_F64 ? 50 : 21;
    const double most = ldexp(1, bits) / (double)n;
    switch (data) {
    case OWN_NEGATIVE:
        return -1 - (double)(h % 9);
    case OWN_FRACTIONS: /* multiples of 2^-6, or of 2^-30 */
        return sign * (double)(h % (type == TALLY_F64 ? UINT64_C(1) << 32 : 512)) *
               (type == TALLY_F64 ? 0x1p-30 : 0x1p-6);
    case OWN_WIDTH:
        return sign * (most < 2 ? 1 : floor(most - (double)(h % 1024) * most * 0x1p-12));
    case OWN_SPREAD:
        return sign * ldexp(1 + (double)(h % 4096) * 0x1p-12, (int)(h >> 20 & 31) - 16);
    case OWN_TIES:
        return sign * 3;
    default:
        return sign * (double)(1 + h % 50);
    }
}

/* Returns an element for min or max. */
static double candidate(enum own_data data, tally_type type, uint64_t h) {
    const double sign = h >> 63 ? -1 : 1;
    const double far = type == TALLY_F64 ? 1e300 : 1e37;
    switch (data) {
    case OWN_NEGATIVE:
        return -far * (1 + (double)(h % 1024) * 0x1p-10);
    case OWN_POSITIVE:
        return far * (1 + (double)(h % 1024) * 0x1p-10);
    case OWN_FRACTIONS: /* between -1/2 and 1/2 */
        return (double)(h >> (type == TALLY_F64 ? 14 : 42)) *
                   (type == TALLY_F64 ? 0x1p-50 : 0x1p-22) -
               0.5;
    case OWN_WIDTH:
    case OWN_SPREAD:
        return sign * ldexp(1 + (double)(h % 4096) * 0x1p-12, (int)(h >> 20 & 127) - 64);
    case OWN_TIES:
        return sign * 7.5;
    default:
        return sign * (double)(1 + h % 50);
    }
}

static int64_t whole_number(enum own_data data, tally_op op, tally_type type, uint64_t i,
                            uint64_t n, uint64_t h) {
    const unsigned bits = 8 * (unsigned)tally_type_size(type) - is_signed(type);
    const int64_t sign = h >> 63 ? -1 : 1;
    const uint64_t all = bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1;
    const bool is_extreme = op == TALLY_MIN || op == TALLY_MAX;
    if (op == TALLY_OR || op == TALLY_AND) { /* one element alone decides each bit */
        uint64_t mine = 0;
        for (unsigned b = 0; b < 8 * tally_type_size(type); b++)
            if (i == hash(b * 7 + n) % n) mine |= UINT64_C(1) << b;
        return (int64_t)(op == TALLY_OR ? mine : ~mine);
    }
    if (op == TALLY_XOR) return (int64_t)h;
    if (op == TALLY_PROD)
        return data == OWN_WIDTH ? (int64_t)(h | 1)
                                 : (i % (n / 16 + 1) ? 1 : 3) * (data == OWN_NEGATIVE ? -1 : sign);
    switch (data) {
    case OWN_NEGATIVE:
        return is_extreme ? -(int64_t)(all - h % (all / 8)) : -1 - (int64_t)(h % 9);
    case OWN_POSITIVE:
        return (int64_t)(all - h % (all / 8));
    case OWN_WIDTH:
        if (is_extreme || bits < 31) return (int64_t)h;
        return (is_signed(type) ? sign : 1) * (int64_t)(all / n - h % (all / n / 4 + 1));
    case OWN_TIES:
        return sign * 7;
    default:
        return sign * (int64_t)(1 + h % 50);
    }
}

static struct own_number datum(const struct own_session *s, enum own_data data, uint64_t i,
                               uint64_t n, uint64_t unit) {
    const tally_type type = s->kernel->is.type;
    const uint64_t h = hash(hash(s->options->seed + 64 * (uint64_t)data) + i);
    struct own_number v = {0, 0};
    if (data <= OWN_UNIT) {
        v.whole = data == OWN_DATA ? small(s->op, type, i) : data == OWN_ONES || i == unit;
        v.real = (double)v.whole;
    } else if (data == OWN_POWERS) {
        v.whole = INT64_C(1) << i;
        v.real = (double)v.whole;
    } else if (!own_is_float(type)) {
        v.whole = whole_number(data, s->op, type, i, n, h);
    } else if (s->op == TALLY_PROD) {
        v.real = factor(data, type, i, n, h);
    } else {
        v.real = s->op == TALLY_SUM ? term(data, type, n, h) : candidate(data, type, h);
    }
    return v;
}

/* Returns element i of the second array. It is 1 for OWN_ONES and OWN_UNIT, and 1 to 3 for OWN_DATA. Else integers are
 * 1 to 3, with a sign if the type has one. Floats are powers of two, with a sign, so that a product has no more bits
 * than its other factor. */
static struct own_number second_datum(tally_type type, enum own_data data, uint64_t i) {
    static const double floats[] = {1, -1, 2, 0.5};
    struct own_number v = {1, 1};
    if (data == OWN_ONES || data == OWN_UNIT) return v;
    v.real = data == OWN_DATA ? 1 + (double)(i % 3) : floats[hash(i) % 4];
    v.whole = 1 + (int64_t)(i % 3);
    if (is_signed(type) && data != OWN_DATA && hash(i) & 1) v.whole = -v.whole;
    return v;
}

static struct own_number one(int64_t whole) {
    return (struct own_number){(double)whole, whole};
}

void own_fill(const struct own_session *s, void *x, uint64_t n, int data, uint64_t unit) {
    const tally_type type = s->kernel->is.type;
    /* In a long array about one element in `few` is not 0, so that the sum is an exact float. */
    const uint64_t few = n >> 20;
    const bool thin = s->op == TALLY_SUM && data == OWN_DATA && few > 1;
    for (uint64_t i = 0; i < n; i++)
        own_put(type, x, i,
                thin && i * 40503 / 7 % few ? one(0) : datum(s, (enum own_data)data, i, n, unit));
}

void own_fill_second(const struct own_session *s, void *y, uint64_t n, int data) {
    for (uint64_t i = 0; i < n; i++)
        own_put(s->kernel->is.type, y, i, second_datum(s->kernel->is.type, (enum own_data)data, i));
}

void own_elements_value(const struct own_session *s, double number, tally_value *out) {
    const tally_type type = s->kernel->is.type;
    *out = (tally_value){.type = type};
    if (type == TALLY_F32)
        out->as.f32 = (float)number;
    else if (type == TALLY_F64)
        out->as.f64 = number;
    else
        own_put(type, &out->as, 0, one(number < 0 ? (int64_t)number : (int64_t)(uint64_t)number));
}

void *own_elements_make(const struct own_session *s, uint64_t n) {
    void *x = malloc((size_t)n * tally_type_size(s->kernel->is.type));
    if (x) own_fill(s, x, n, OWN_DATA, 0);
    return x;
}

/* ---- Combined ---- */

static int64_t combined(tally_op op, bool has_sign, int64_t a, int64_t b) {
    const bool less = has_sign ? b < a : (uint64_t)b < (uint64_t)a;
    switch (op) {
    case TALLY_SUM:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case TALLY_PROD:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case TALLY_MIN:
        return less ? b : a;
    case TALLY_MAX:
        return less ? a : b;
    case TALLY_AND:
        return a & b;
    case TALLY_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

static double combined_real(tally_op op, double a, double b) {
    switch (op) {
    case TALLY_SUM:
        return a + b;
    case TALLY_PROD:
        return a * b;
    case TALLY_MIN:
        return fmin(a, b);
    default:
        return fmax(a, b);
    }
}

struct own_number own_fold(tally_op op, tally_type type, const void *x, const void *y,
                           uint64_t count, uint64_t step) {
    struct own_number all = {0, 0};
    long double sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        struct own_number v = own_get(type, x, i * step);
        if (y) {
            const struct own_number w = own_get(type, y, i * step);
            v.real *= w.real;
            v.whole = (int64_t)((uint64_t)v.whole * (uint64_t)w.whole);
        }
        sum += (long double)v.real;
        if (own_is_float(type)) {
            all.real = i ? combined_real(op, all.real, v.real) : v.real;
        } else {
            struct own_number next =
                one(i ? combined(op, is_signed(type), all.whole, v.whole) : v.whole);
            own_put(type, &next.whole, 0, next);
            all = own_get(type, &next.whole, 0);
        }
    }
    if (own_is_float(type) && op == TALLY_SUM) all.real = (double)sum;
    if (type == TALLY_F32) all.real = (double)(float)all.real;
    return all;
}

static const tally_op look_ops[] = {
    [OWN_LOOKS_SUM] = TALLY_SUM, [OWN_LOOKS_PROD] = TALLY_PROD, [OWN_LOOKS_MIN] = TALLY_MIN,
    [OWN_LOOKS_MAX] = TALLY_MAX, [OWN_LOOKS_AND] = TALLY_AND,   [OWN_LOOKS_OR] = TALLY_OR,
    [OWN_LOOKS_XOR] = TALLY_XOR};

/* Returns the value that an integer output holds before the launch, as a kernel may add to it. */
static int64_t identity_of(tally_op op, tally_type type) {
    const unsigned bits = 8 * (unsigned)tally_type_size(type) - is_signed(type);
    const uint64_t most = bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1;
    switch (op) {
    case TALLY_PROD:
        return 1;
    case TALLY_AND:
        return -1;
    case TALLY_MIN:
        return (int64_t)most;
    case TALLY_MAX:
        return is_signed(type) ? -(int64_t)most - 1 : 0;
    default:
        return 0;
    }
}

bool own_equals(tally_type type, struct own_number a, struct own_number b, double bound) {
    if (!own_is_float(type)) return a.whole == b.whole;
    return a.real == b.real || fabs(a.real - b.real) <= bound;
}

/* Reduces the elements by an operator that a wrong kernel may implement instead of the one asked for. */
static struct own_number looks_fold(enum own_looks look, tally_type type, const void *x,
                                    uint64_t n) {
    struct own_number all = {0, 0};
    if (look <= OWN_LOOKS_XOR) return own_fold(look_ops[look], type, x, NULL, n, 1);
    if (look == OWN_LOOKS_MEAN) {
        all = own_fold(TALLY_SUM, type, x, NULL, n, 1);
        return (struct own_number){all.real / (double)n, all.whole / (int64_t)n};
    }
    for (uint64_t i = 0; i < n; i++) {
        struct own_number v = own_get(type, x, i);
        const bool negative = own_is_float(type) ? v.real < 0 : is_signed(type) && v.whole < 0;
        const struct own_number size = {negative ? -v.real : v.real, negative ? -v.whole : v.whole};
        if (look == OWN_LOOKS_NORM1)
            all = (struct own_number){all.real + size.real, all.whole + size.whole};
        if (look == OWN_LOOKS_SUMSQ)
            all = (struct own_number){all.real + v.real * v.real, all.whole + v.whole * v.whole};
        if (look == OWN_LOOKS_NORMINF && size.real > all.real) all = size;
        if (look == OWN_LOOKS_COUNT) all = one((int64_t)n);
    }
    return all;
}

bool own_looks_like(const struct own_session *s, enum own_looks look, struct own_number got,
                    const void *x, uint64_t n) {
    const tally_type type = s->kernel->is.type;
    const bool of_bits = look >= OWN_LOOKS_AND && look <= OWN_LOOKS_XOR;
    if (of_bits && own_is_float(type)) return false;
    const struct own_number other = looks_fold(look, type, x, n);
    const double bound = look == OWN_LOOKS_MEAN ? 1e-5 * fabs(other.real) : 0;
    if (own_equals(type, got, other, bound)) return true;
    if (look > OWN_LOOKS_XOR || own_is_float(type)) return false;
    struct own_number all =
        one(combined(look_ops[look], is_signed(type), identity_of(s->op, type), other.whole));
    own_put(type, &all.whole, 0, all);
    return got.whole == own_get(type, &all.whole, 0).whole;
}
