/* test_statistics_gpu.c - statistics in chunks, with little memory and in the largest blocks give the CPU's bits: what
 * once went wrong. (Every statistic on every device: tests/devices.) */
#include "../c/testing.h"

#include "tally.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed = 1;

static uint64_t draw(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

static tally_device *open_device(const char *spec) {
    tally_device *device = NULL;
    const tally_status s = tally_open(spec, &device);
    if (s == TALLY_EDEVICE && strncmp(spec, "opencl", 6) == 0) return NULL;
    assert_int_equal(s, TALLY_OK);
    return device;
}

static void check(tally_device *device, const tally_problem *p, const void *x, const void *y,
                  size_t n) {
    tally_value want[TALLY_VALUES_MAX], got[TALLY_VALUES_MAX];
    size_t count = 0;
    if (tally_problem_values(p, &count) != TALLY_OK) return;
    if (p->op != TALLY_DOT) y = NULL;
    const tally_status s = tally_reduce(NULL, p, x, y, n, want);
    assert_int_equal(tally_reduce(device, p, x, y, n, got), s);
    for (size_t i = 0; i < count && s == TALLY_OK; i++) {
        assert_int_equal(got[i].type, want[i].type);
        if (got[i].type) assert_int_equal(tally_value_bits(&got[i]), tally_value_bits(&want[i]));
    }
}

/* The chunks of two queues: indices are those in the whole array. */
static void test_chunks(void **state) {
    const size_t n = 700001;
    tally_device *device = open_device("model:memory=1M");
    double *x = calloc(n, sizeof *x);
    (void)state;
    assert_non_null(x);
    for (size_t at = 5; at < n; at += 172031) {
        const tally_problem argmax = {.op = TALLY_ARGMAX, .type = TALLY_F64};
        const tally_problem describe = {.op = TALLY_DESCRIBE, .type = TALLY_F64};
        x[at] = 3;
        x[n - 1] = 3;
        check(device, &argmax, x, NULL, n);
        x[at] = NAN;
        check(device, &describe, x, NULL, n);
        x[at] = 0;
    }
    free(x);
    tally_close(device);
}

/* A subtree of 2^22 elements is more than a chunk. */
static void test_little_memory(void **state) {
    const size_t n = ((size_t)1 << 22) + 4097;
    const char *const specs[] = {"opencl:0,block=64,memory=1M", "opencl:0,memory=16M"};
    double *x = malloc((n + 1) * sizeof *x);
    (void)state;
    assert_non_null(x);
    for (size_t i = 0; i <= n; i++)
        x[i] = 1 + ((double)(draw() % 4096) - 2048) * 0x1p-20;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        const tally_problem p = {.op = TALLY_PROD, .type = TALLY_F64};
        tally_device *device = open_device(specs[i]);
        if (!device) skip();
        check(device, &p, (char *)x + 4, NULL, n); /* out of alignment: it is copied */
        tally_close(device);
    }
    free(x);
}

/* The largest block of elements of 16 bits, alone and nearly filled twice: totals have the most bits. */
static void test_large_block(void **state) {
    static const tally_type types[] = {TALLY_F16, TALLY_BF16};
    static const uint16_t largest[] = {0x7bff, 0x7f7f};
    const size_t n = 2 * 1024 * 4 * 8 - 1;
    tally_device *device = open_device("opencl:0,block=1024");
    uint16_t *x = malloc(n * sizeof *x);
    (void)state;
    if (!device) skip();
    assert_non_null(x);
    for (int t = 0; t < 2; t++)
        for (int op = TALLY_SUM; op < TALLY_USER; op++) {
            const tally_problem p = {.op = (tally_op)op, .type = types[t]};
            for (size_t i = 0; i < n; i++)
                x[i] = largest[t];
            x[n / 2] = 1;
            check(device, &p, x, x, n);
        }
    free(x);
    tally_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_little_memory),
        cmocka_unit_test(test_large_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
