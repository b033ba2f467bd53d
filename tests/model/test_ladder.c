/*
 * test_ladder.c - every rung, finish, operator and type gives the right result on the model, for
 * lengths around all edges, and leaves its elements as they were. The model's checks run along: any
 * race, stray access or unwritten read in a kernel fails here too.
 *
 * What is right is computed here from the meaning of the operators, apart from the kernels' own
 * arithmetic: in 64-bit integers, in long double, by comparing values. Elements are chosen so that
 * floating sums and products are exact in any order.
 */
#include "../share.h"
#include "base/table.h"
#include "climb.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_MAX 9000

static model_device *device;

static uint64_t random_bits(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t x = *state >> 33 ^ *state;
    return x * UINT64_C(0x9e3779b97f4a7c15) ^ x >> 29;
}

typedef struct kind {
    tally_type type;
    unsigned bits;
    enum { SIGNED, UNSIGNED, FLOATING } family;
} kind;

#define KIND(NAME, name, kind, bits) {TALLY_##NAME, bits, kind},
static const kind kinds[] = {TALLY_TYPES(KIND)};

/* The format of a floating type: digits of its fraction, bias of its exponent. */
static void format_of(tally_type type, unsigned *fraction, int *bias) {
    *fraction = type == TALLY_F16 ? 10 : type == TALLY_BF16 ? 7 : type == TALLY_F32 ? 23 : 52;
    *bias = type == TALLY_F16 ? 15 : type == TALLY_F64 ? 1023 : 127;
}

static long double value_of(const kind *k, uint64_t bits) {
    unsigned fraction;
    int bias;
    format_of(k->type, &fraction, &bias);
    const uint64_t sign = bits >> (k->bits - 1) & 1;
    const uint64_t digits = bits & ((UINT64_C(1) << fraction) - 1);
    const int exponent = (int)(bits << (64 - k->bits) << 1 >> (65 - k->bits) >> fraction);
    const int most = 2 * bias + 1;
    long double v = exponent == most
                        ? (digits ? NAN : INFINITY)
                        : ldexpl((long double)(digits + (exponent ? UINT64_C(1) << fraction : 0)),
                                 (exponent ? exponent : 1) - bias - (int)fraction);
    return sign ? -v : v;
}

/* The bits of a value that the type has exactly. */
static uint64_t bits_of(const kind *k, long double v) {
    unsigned fraction;
    int bias, exponent;
    format_of(k->type, &fraction, &bias);
    const uint64_t sign = (uint64_t)(signbit(v) != 0) << (k->bits - 1);
    const uint64_t infinite = (uint64_t)(2 * bias + 1) << fraction;
    v = fabsl(v);
    if (isnan(v)) return infinite | UINT64_C(1) << (fraction - 1);
    if (isinf(v)) return sign | infinite;
    if (v == 0) return sign;
    v = frexpl(v, &exponent);    /* v in [1/2, 1) */
    if (exponent - 1 + bias < 1) /* subnormal */
        return sign | (uint64_t)ldexpl(v, exponent + bias - 1 + (int)fraction);
    const uint64_t digits = (uint64_t)ldexpl(v, (int)fraction + 1) - (UINT64_C(1) << fraction);
    return sign | (uint64_t)(exponent - 1 + bias) << fraction | digits;
}

static uint64_t get(const kind *k, const void *x, size_t i) {
    uint64_t bits = 0;
    memcpy(&bits, (const char *)x + i * (k->bits / 8), k->bits / 8);
    return bits;
}

static void put(const kind *k, void *x, size_t i, uint64_t bits) {
    memcpy((char *)x + i * (k->bits / 8), &bits, k->bits / 8);
}

/* Elements of all kinds; for floating sums and products such that nothing is ever rounded. */
static void make(const kind *k, tally_op op, void *x, size_t n, int special, uint64_t seed) {
    for (size_t i = 0; i < n; i++) {
        uint64_t r = random_bits(&seed);
        if (k->family == FLOATING && op == TALLY_SUM)
            r = bits_of(k, special && i % 97 == 5
                               ? (i % 2 ? INFINITY : -0.0L)
                               : (k->bits > 16 ? (int)(r % 401) - 200 : (int)(r % 3) - 1));
        else if (k->family == FLOATING && op == TALLY_PROD)
            r = bits_of(k, r % 16 == 0 ? (i % 2 ? 2 : 0.5L) : r % 2 ? 1 : -1);
        else if (op == TALLY_PROD)
            r |= 1;
        else if (k->family == FLOATING && op <= TALLY_MAX && !special && isnan(value_of(k, r)))
            r = 0;
        put(k, x, i, r);
    }
}

static int64_t as_signed(const kind *k, uint64_t bits) {
    return (int64_t)(bits << (64 - k->bits)) >> (64 - k->bits);
}

static uint64_t expected(const kind *k, tally_op op, const void *x, size_t n) {
    const uint64_t all = ~UINT64_C(0) >> (64 - k->bits);
    if (k->family == FLOATING && op <= TALLY_MAX) {
        long double v = op == TALLY_SUM    ? (n ? -0.0L : 0)
                        : op == TALLY_PROD ? 1
                        : op == TALLY_MIN  ? INFINITY
                                           : -INFINITY;
        for (size_t i = 0; i < n; i++) {
            long double e = value_of(k, get(k, x, i));
            if (op == TALLY_SUM)
                v += e;
            else if (op == TALLY_PROD)
                v *= e;
            else if (isnan(e) || isnan(v))
                v = NAN;
            else if (op == TALLY_MIN ? e < v || (e == v && signbit(e))
                                     : e > v || (e == v && !signbit(e)))
                v = e;
        }
        return bits_of(k, v);
    }
    const int wide = op == TALLY_SUM || op == TALLY_PROD;
    uint64_t v = op == TALLY_PROD  ? 1
                 : op == TALLY_MIN ? (k->family == SIGNED ? all >> 1 : all)
                 : op == TALLY_MAX ? (k->family == SIGNED ? (all >> 1) + 1 : 0)
                 : op == TALLY_AND ? all
                                   : 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t e = get(k, x, i);
        if (wide && k->family == SIGNED) e = (uint64_t)as_signed(k, e);
        int less = k->family == SIGNED ? as_signed(k, e) < as_signed(k, v) : e < v;
        switch (op) {
        case TALLY_SUM:
            v += e;
            break;
        case TALLY_PROD:
            v *= e;
            break;
        case TALLY_MIN:
            v = less ? e : v;
            break;
        case TALLY_MAX:
            v = less ? v : e;
            break;
        case TALLY_AND:
            v &= e;
            break;
        case TALLY_OR:
            v |= e;
            break;
        case TALLY_XOR:
            v ^= e;
            break;
        default: /* the ladder has no others */
            abort();
        }
    }
    return v;
}

static void check(const kind *k, tally_op op, ladder_rung rung, finish how, unsigned block,
                  const void *x, size_t n) {
    const climb c = {.rung = rung,
                     .type = k->type,
                     .op = op,
                     .how = how,
                     .block = block,
                     .factor = 3,
                     .x = x,
                     .n = n};
    tally_value got;
    uint64_t want = expected(k, op, x, n), bits = 0;
    assert_int_equal(climb_rung(device, &c, &got, NULL), 0);
    const int wide = k->family != FLOATING && op <= TALLY_PROD;
    assert_int_equal(got.type, !wide ? k->type : k->family == SIGNED ? TALLY_I64 : TALLY_U64);
    memcpy(&bits, &got.as, wide ? 8 : k->bits / 8);
    if (bits != want)
        fail_msg("%s, type %d, op %d, finish %d, block %u, n %zu: %llx for %llx",
                 ladder_rung_of(rung)->name, k->type, op, how, block, n, (unsigned long long)bits,
                 (unsigned long long)want);
}

/* One rung for all types and operators, of which `make check` has a share, finishes and lengths. */
static void climb_all(ladder_rung rung) {
    const unsigned blocks[] = {32, 64, 256};
    double *x = malloc(N_MAX * 8);
    for (unsigned t = 0; t < sizeof kinds / sizeof *kinds; t++)
        for (unsigned op = TALLY_SUM; op <= TALLY_XOR; op++) {
            if (!is_in_share(t * 7 + op + rung, 6)) continue;
            make(&kinds[t], (tally_op)op, x, N_MAX, 0, t * 16 + op);
            for (unsigned b = 0; b < 3; b++) {
                const unsigned B = blocks[b];
                const size_t lengths[] = {0,     1,         2,         31,        32,
                                          33,    B - 1,     B,         B + 1,     2 * B - 1,
                                          2 * B, 2 * B + 1, 3 * B + 1, 6 * B - 1, 2000 + 7};
                for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++)
                    for (unsigned how = 0; how < FINISHES; how++)
                        /* Where there is one partial, the finishes hardly differ: take turns. */
                        if (lengths[i] > 2 * B || how == (i + op) % FINISHES)
                            check(&kinds[t], (tally_op)op, rung, (finish)how, B, x, lengths[i]);
            }
        }
    free(x);
}

#define TEST(ID, ...)                                                                              \
    static void test_##ID(void **state) {                                                          \
        (void)state;                                                                               \
        climb_all(LADDER_##ID);                                                                    \
    }
LADDER_RUNGS(TEST)

/* Small and large blocks, and enough of them that partials make several levels. */
static void test_blocks(void **state) {
    (void)state;
    double *x = malloc(N_MAX * 8);
    const kind *f32 = &kinds[TALLY_F32 - 1], *i8 = &kinds[TALLY_I8 - 1];
    for (unsigned rung = 0; rung < LADDER_RUNG_COUNT; rung++)
        for (unsigned B = 1; B <= 1024; B *= 2)
            for (unsigned how = 0; how < FINISHES; how++) {
                size_t n = B < 8 ? 1007 : N_MAX - 7;
                make(f32, TALLY_SUM, x, n, 0, B);
                check(f32, TALLY_SUM, (ladder_rung)rung, (finish)how, B, x, n);
                make(i8, TALLY_MIN, x, n, 0, B);
                check(i8, TALLY_MIN, (ladder_rung)rung, (finish)how, B, x, n);
            }
    free(x);
}

/* Infinities, NaN, -0: sums, least and greatest. */
static void test_special(void **state) {
    (void)state;
    double *x = malloc(N_MAX * 8);
    for (unsigned t = TALLY_F16 - 1; t < TALLY_F64; t++)
        for (unsigned rung = 0; rung < LADDER_RUNG_COUNT; rung++)
            for (unsigned how = 0; how < FINISHES; how++) {
                const kind *k = &kinds[t];
                make(k, TALLY_SUM, x, 300, 1, t);
                check(k, TALLY_SUM, (ladder_rung)rung, (finish)how, 64, x, 300);
                put(k, x, 200, bits_of(k, -INFINITY)); /* both infinities: NaN */
                check(k, TALLY_SUM, (ladder_rung)rung, (finish)how, 64, x, 300);
                for (unsigned i = 0; i < 300; i++)
                    put(k, x, i, bits_of(k, -0.0L));
                for (unsigned op = TALLY_SUM; op <= TALLY_MAX; op++)
                    check(k, (tally_op)op, (ladder_rung)rung, (finish)how, 64, x, 300);
                put(k, x, 137, 0);
                for (unsigned op = TALLY_SUM; op <= TALLY_MAX; op++)
                    check(k, (tally_op)op, (ladder_rung)rung, (finish)how, 64, x, 300);
                put(k, x, 299, bits_of(k, NAN) | 1 | UINT64_C(1) << (k->bits - 1));
                for (unsigned op = TALLY_SUM; op <= TALLY_MAX; op++)
                    check(k, (tally_op)op, (ladder_rung)rung, (finish)how, 64, x, 300);
            }
    free(x);
}

/* All 16-bit numbers come through a sum of one. */
static void test_halves(void **state) {
    (void)state;
    const kind *halves[] = {&kinds[TALLY_F16 - 1], &kinds[TALLY_BF16 - 1]};
    for (unsigned h = 0; h < 2; h++) {
        const ladder_arithmetic *instance = ladder_arithmetic_of(halves[h]->type, TALLY_SUM);
        for (uint32_t bits = 0; bits < 65536; bits++) {
            uint16_t e = (uint16_t)bits;
            float a;
            tally_value v;
            instance->fetch(&a, &e);
            long double want = value_of(halves[h], bits);
            assert_true(isnan(want) ? a != a : a == want && !signbit(a) == !signbit(want));
            ladder_result(instance, &a, 1, &v);
            assert_int_equal(v.as.f16, isnan(want) ? bits_of(halves[h], NAN) : bits);
        }
    }
    /* Rounding: to nearest, ties to even, over into infinity, down into the subnormal. */
    const ladder_arithmetic *f16 = ladder_arithmetic_of(TALLY_F16, TALLY_SUM);
    const struct {
        float from;
        uint16_t to;
    } cases[] = {{2049, 0x6800},        {2051, 0x6802},       {65519, 0x7bff},
                 {65520, 0x7c00},       {-1e30f, 0xfc00},     {0x1p-25f, 0},
                 {0x1.8p-25f, 1},       {0x1p-24f, 1},        {0x1.8p-24f, 2},
                 {1e-30f, 0},           {-1e-45f, 0x8000},    {0x1.ffep-15f, 0x400},
                 {0x1.002p+0f, 0x3c00}, {0x1.006p+0f, 0x3c02}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        tally_value v;
        ladder_result(f16, &cases[i].from, 1, &v);
        assert_int_equal(v.as.f16, cases[i].to);
    }
}

static void test_table(void **state) {
    (void)state;
    ladder_rung rung;
    assert_string_equal(ladder_rung_named("shared-modulo", &rung)->kernel, "shared_modulo");
    assert_int_equal(rung, LADDER_SHARED_MODULO);
    assert_null(ladder_rung_named("tally", NULL));
    assert_null(ladder_rung_of(LADDER_RUNG_COUNT));
    for (unsigned i = 0; i + 1 < LADDER_RUNG_COUNT; i++)
        assert_non_null(ladder_rung_named(ladder_rung_of((ladder_rung)i)->mends, NULL));
    assert_int_equal(ladder_shared(LADDER_SHARED_MODULO, 64), 128);
    assert_int_equal(ladder_shared(LADDER_SHUFFLE, 64), 2);
    assert_int_equal(ladder_grid(LADDER_SHARED, 0, 256, 1, 8), 1);
    assert_int_equal(ladder_grid(LADDER_SHARED, 513, 256, 1, 8), 2);
    assert_int_equal(ladder_grid(LADDER_COARSENED, 513, 256, 2, 8), 1);
    assert_int_equal(ladder_grid(LADDER_GRID_STRIDE, 1 << 20, 256, 1, 8), 32);
    assert_int_equal(ladder_grid(LADDER_SHARED, UINT64_MAX, 1, 1, 8), 0);
    assert_null(ladder_arithmetic_of((tally_type)99, TALLY_SUM));
    assert_null(ladder_program(TALLY_F32, (tally_op)0));
    const struct model_program *program = ladder_program(TALLY_F32, TALLY_SUM);
    assert_string_equal(model_program_kernel(program, "shared")->name, "shared");
    assert_null(model_program_kernel(program, "tally"));
}

static int set_up(void **state) {
    (void)state;
    return model_open(&device);
}

static int tear_down(void **state) {
    (void)state;
    model_close(device);
    return 0;
}

int main(void) {
#define ENTRY(ID, ...) cmocka_unit_test(test_##ID),
    const struct CMUnitTest tests[] = {LADDER_RUNGS(ENTRY) cmocka_unit_test(test_blocks),
                                       cmocka_unit_test(test_special),
                                       cmocka_unit_test(test_halves), cmocka_unit_test(test_table)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
