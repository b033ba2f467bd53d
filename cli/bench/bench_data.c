/*
 * bench_data.c - random elements, each a function of its index.
 *
 * So the array is the same every time, and all threads can fill it at once: each first touches the
 * part that it will later read.
 */
#include "bench/bench_data.h"

#include "common/types.h"

#include <math.h>
#include <string.h>

static const char *const names[] = {"uniform", "normal", "loguniform", "wild"};

const char *bench_data_name(enum bench_data data) {
    return names[data];
}

bool bench_data_parse(const char *name, enum bench_data *out) {
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return *out = (enum bench_data)i, true;
    return false;
}

/* Steele, Lea and Flood's splitmix64: the i-th of its random words. */
uint64_t bench_random(uint64_t i) {
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double uniform(uint64_t r) {
    return (double)(r >> 11) * 0x1p-53;
}

/* The sum of twelve uniform numbers has deviation 1. Four come out of each word. */
static double normal(uint64_t i) {
    uint64_t sum = 0;
    for (uint64_t k = 0; k < 3; k++) {
        uint64_t r = bench_random(3 * i + k);
        sum += (r & 0xffff) + (r >> 16 & 0xffff) + (r >> 32 & 0xffff) + (r >> 48);
    }
    return (double)sum * 0x1p-16 - 6;
}

static uint64_t digit(uint64_t i) {
    return 1 + bench_random(i) % 9;
}

/* Returns a number for the i-th element; span: loguniform numbers lie in 2^-span..2^span. */
static double draw(enum bench_data data, tally_op op, uint64_t i, double span) {
    uint64_t r = bench_random(i);
    double sign = r & 1 ? -1 : 1;
    switch (data) {
    case BENCH_NORMAL:
        return normal(i);
    case BENCH_LOGUNIFORM:
        return sign * exp2(span * (2 * uniform(r) - 1));
    case BENCH_DIGITS:
        return op == TALLY_PROD ? sign : (double)digit(i);
    default:
        return op == TALLY_PROD ? sign : uniform(r);
    }
}

/* Returns the random bits of a finite float: of an exponent of all ones the lowest bit is cleared. */
static uint64_t wild(uint64_t i, int bits, int fraction) {
    uint64_t r = bench_random(i) >> (64 - bits);
    uint64_t exponent = (UINT64_MAX >> (65 - bits)) >> fraction << fraction;
    return (r & exponent) == exponent ? r ^ (uint64_t)1 << fraction : r;
}

enum { FRACTION_f16 = 10, FRACTION_bf16 = 7, FRACTION_f32 = 23, FRACTION_f64 = 52 };
#define SPAN_f16  10
#define SPAN_bf16 20
#define SPAN_f32  20
#define SPAN_f64  20

static uint64_t converted(double x, tally_type type) {
    tally_value value = {.type = TALLY_F64, .as.f64 = x};
    tally_value_convert(&value, type, &value);
    return tally_value_bits(&value);
}

static uint64_t bits_f16(double x) {
    return converted(x, TALLY_F16);
}

static uint64_t bits_bf16(double x) {
    return converted(x, TALLY_BF16);
}

static uint64_t bits_f32(double x) {
    uint32_t bits;
    memcpy(&bits, &(float){(float)x}, sizeof bits);
    return bits;
}

static uint64_t bits_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static bool cannot_overflow(tally_op op) {
    switch (op) {
    case TALLY_MIN:
    case TALLY_MAX:
    case TALLY_AND:
    case TALLY_OR:
    case TALLY_XOR:
    case TALLY_ARGMIN:
    case TALLY_ARGMAX:
    case TALLY_MINMAX:
    case TALLY_NONZERO:
        return true;
    default:
        return false;
    }
}

/* Returns an integer's bits. */
static uint64_t small(enum bench_data data, tally_op op, bool is_signed, uint64_t i) {
    uint64_t r = bench_random(i);
    if (op == TALLY_PROD) return is_signed && r & 1 ? UINT64_MAX : 1;
    if (data == BENCH_DIGITS) return digit(i);
    if (cannot_overflow(op) && data == BENCH_WILD) return r;
    return is_signed ? r % 201 - 100 : r % 101;
}

/* Returns 0 for the operator any, and an odd number for all, so that neither can stop early. */
static uint64_t settled(tally_op op, uint64_t bits) {
    if (op == TALLY_ANY) return 0;
    return op == TALLY_ALL ? bits | 1 : bits;
}

#define ELEMENT_SIGNED(name, bits)   small(data, op, true, i)
#define ELEMENT_UNSIGNED(name, bits) small(data, op, false, i)
#define ELEMENT_FLOATING(name, bits)                                                               \
    (data == BENCH_WILD ? wild(i, bits, FRACTION_##name)                                           \
                        : bits_##name(draw(data, op, i, SPAN_##name)))

#define FILL(NAME, name, kind, bits)                                                               \
    static void fill_##name(enum bench_data data, tally_op op, void *x, size_t n) {                \
        uint##bits##_t *element = x;                                                               \
        _Pragma("omp parallel for") for (size_t i = 0; i < n; i++) element[i] =                    \
            (uint##bits##_t)settled(op, ELEMENT_##kind(name, bits));                               \
    }
CLI_TYPES(FILL)

void bench_data_fill(enum bench_data data, tally_op op, tally_type type, void *x, size_t n) {
    switch (type) {
#define CASE(NAME, name, kind, bits)                                                               \
    case TALLY_##NAME:                                                                             \
        fill_##name(data, op, x, n);                                                               \
        break;
        CLI_TYPES(CASE)
    }
}
