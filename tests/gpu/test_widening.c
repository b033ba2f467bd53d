/* test_widening.c - texts that hosts and kernels share, and their faster forms, over all values. */
#include "../c/testing.h"

#include "exact/kernel_words.h"
#include "problem/monoid.h"
#include "tally.h"

#include <math.h>
#include <string.h>

static u32 bits_of_float(float f) {
    u32 word;
    memcpy(&word, &f, sizeof word);
    return word;
}

static float float_of_bits(u32 word) {
    float f;
    memcpy(&f, &word, sizeof f);
    return f;
}

#define float_bits(x) bits_of_float(x)
#define float_from(w) float_of_bits(w)
#include "kernels/half.h"
#include "kernels/keys.h"

ORDER_KEYS(u32)

/* By the definition of binary16. */
static double by_definition(u32 half) {
    const int field = half >> 10 & 31, fraction = half & 1023;
    const double magnitude =
        field == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                    : ldexp(field ? 1024 + fraction : fraction, field ? field - 25 : -24);
    return half >> 15 ? -magnitude : magnitude;
}

static void test_halves(void **state) {
    (void)state;
    for (u32 half = 0; half < 0x10000; half++) {
        const u32 word = half_bits_widened(half);
        const float wide = float_of_bits(word), fast = half_widened(half);
        const double want = by_definition(half);
        const tally_value v = {.type = TALLY_F16, .as.f16 = (uint16_t)half};
        if (isnan(want)) {
            assert_true(isnan(wide) && isnan(fast) && isnan(tally_value_double(&v)));
            assert_int_equal(word >> 31, half >> 15);
            continue;
        }
        assert_int_equal(word, bits_of_float((float)want));
        assert_int_equal(bits_of_float(fast), word);
        assert_true(tally_value_double(&v) == want);
    }
}

/* The keys of 8 and 16 bits: in 32 bits, as kernels have them, the same as in 64; and back again. */
static void test_keys(void **state) {
    static const tally_type types[] = {TALLY_I8,  TALLY_U8,  TALLY_I16,
                                       TALLY_U16, TALLY_F16, TALLY_BF16};
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const u32 width = 8 * (u32)tally_type_size(types[i]);
        const u32 kind = types[i] >= TALLY_F16   ? ORDER_FLOAT
                         : types[i] <= TALLY_I64 ? ORDER_SIGNED
                                                 : ORDER_UNSIGNED;
        for (u32 bits = 0; bits >> width == 0; bits++) {
            const u32 k = key_of_bits(bits, width, kind);
            assert_int_equal(k, order_key(types[i], bits));
            assert_int_equal(bits_of_key(k, width, kind), bits);
            assert_int_equal(order_bits(types[i], k), bits);
        }
    }
}

/* Keys sort as numbers do, with -0 below +0. */
static void test_order(void **state) {
    (void)state;
    for (u32 a = 0; a < 0x10000; a += 7)
        for (u32 b = 3; b < 0x10000; b += 211) {
            const double x = by_definition(a), y = by_definition(b);
            if (isnan(x) || isnan(y)) continue;
            const int below = order_key(TALLY_F16, a) < order_key(TALLY_F16, b);
            if (x != y) assert_int_equal(below, x < y);
            if (x == y) assert_int_equal(below, signbit(x) && !signbit(y));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
