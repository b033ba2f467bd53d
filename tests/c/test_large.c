/*
 * test_large.c - more than 2^32 elements: an index kept in 32 bits anywhere gives itself away.
 *
 * The array is address space that was never written: the kernel shows one and the same page of zeros
 * everywhere, so that 4 GiB of bytes cost almost no memory. A few bytes that are not zero stand where
 * an index would wrap. Where the machine does not lend that much address space, the test is skipped.
 */
#define _GNU_SOURCE
#include "testing.h"

#include <sys/mman.h>

#define N (((size_t)1 << 32) + 5)

static unsigned char *bytes;

static int lend(void **state) {
    (void)state;
    if (sizeof(size_t) < 8 || UNDER_TSAN) return 0;
    void *p =
        mmap(NULL, N, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return 0;
    bytes = p;
    bytes[0] = 1;
    bytes[((size_t)1 << 31)] = 2;
    bytes[((size_t)1 << 32) - 1] = 4;
    bytes[(size_t)1 << 32] = 8;
    bytes[N - 1] = 0x90;
    return mprotect(bytes, N, PROT_READ);
}

static int give_back(void **state) {
    (void)state;
    return bytes ? munmap(bytes, N) : 0;
}

static void test_more_than_32_bits(void **state) {
    (void)state;
    if (!bytes) skip();
    tally_device *device;
    tally_value value;
    assert_ok(tally_open("cpu", &device));
    assert_ok(tally_reduce(device, ASK(TALLY_SUM, TALLY_U8), bytes, NULL, N, &value));
    assert_int_equal(value.type, TALLY_U64);
    assert_int_equal(value.as.u64, 1 + 2 + 4 + 8 + 0x90);
    assert_ok(tally_reduce(device, ASK(TALLY_MAX, TALLY_U8), bytes, NULL, N, &value));
    assert_int_equal(value.as.u8, 0x90);

    tally_state *fed;
    assert_ok(tally_state_create(ASK(TALLY_XOR, TALLY_U8), &fed));
    assert_ok(tally_state_feed(fed, device, bytes, NULL, N));
    assert_ok(tally_state_value(fed, &value));
    assert_int_equal(value.as.u8, 1 ^ 2 ^ 4 ^ 8 ^ 0x90);
    assert_ok(tally_state_feed(fed, device, bytes + ((size_t)1 << 32), NULL, 5));
    assert_ok(tally_state_value(fed, &value));
    assert_int_equal(value.as.u8, 1 ^ 2 ^ 4);
    tally_state_destroy(fed);
    tally_close(device);
}

static void check(tally_device *device, const tally_problem *problem, double want) {
    tally_value value;
    assert_ok(
        tally_reduce(device, problem, bytes, problem->op == TALLY_DOT ? bytes : NULL, N, &value));
    if (tally_value_double(&value) != want)
        fail_msg("%s of %s: %a, not %a", tally_op_name(problem->op), tally_type_name(problem->type),
                 tally_value_double(&value), want);
}

/* The last byte is the greatest of u8, and the least of i8; the first byte that is 0 has index 1. */
static void test_statistics(void **state) {
    (void)state;
    if (!bytes) skip();
    const double n = (double)N;
    tally_device *device;
    assert_ok(tally_open("cpu", &device));
    check(device, ASK(TALLY_COUNT, TALLY_U8), n);
    check(device, ASK(TALLY_NONZERO, TALLY_U8), 5);
    check(device, ASK(TALLY_ANY, TALLY_U8), 1);
    check(device, ASK(TALLY_ALL, TALLY_U8), 0);
    check(device, ASK(TALLY_ARGMAX, TALLY_U8), n - 1);
    check(device, ASK(TALLY_ARGMIN, TALLY_U8), 1);
    check(device, ASK(TALLY_ARGMIN, TALLY_I8), n - 1);
    check(device, ASK(TALLY_ARGMAX, TALLY_I8), 0x1p32);
    check(device, ASK(TALLY_MEAN, TALLY_U8), 159 / n);
    check(device, ASK(TALLY_MEAN, TALLY_I8), -97 / n);
    check(device, ASK(TALLY_NORM1, TALLY_I8), 127);
    check(device, ASK(TALLY_DOT, TALLY_I8), 12629);
    tally_value value[2];
    assert_ok(tally_reduce(device, ASK(TALLY_VAR, TALLY_U8, .also = {TALLY_SUMSQ}), bytes, NULL, N,
                           value));
    assert_true(value[0].as.f64 == 0x1.4553fff81a580p-18 && value[1].as.u64 == 20821);
    assert_ok(tally_reduce(device, ASK(TALLY_VAR, TALLY_I8, .ddof = 1), bytes, NULL, N, value));
    assert_true(value[0].as.f64 == 0x1.8aa7fff8af580p-19);
    tally_close(device);
}

/* In two parts, of which the second begins beyond 2^32. */
static void test_parts(void **state) {
    (void)state;
    if (!bytes) skip();
    const size_t cut = ((size_t)1 << 32) + 1;
    const tally_problem problem = {.op = TALLY_ARGMAX,
                                   .type = TALLY_U8,
                                   .also = {TALLY_ARGMIN, TALLY_MEAN, TALLY_NONZERO, TALLY_COUNT}};
    tally_value value[5], whole[5];
    tally_state *left, *right;
    tally_device *device;
    assert_ok(tally_open("cpu", &device));
    assert_ok(tally_reduce(device, &problem, bytes, NULL, N, whole));
    assert_true(whole[0].as.u64 == N - 1 && whole[3].as.u64 == 5 && whole[4].as.u64 == N);
    assert_ok(tally_state_create(&problem, &left));
    assert_ok(tally_state_create(&problem, &right));
    assert_ok(tally_state_feed(left, device, bytes, NULL, cut));
    assert_ok(tally_state_feed(right, device, bytes + cut, NULL, N - cut));
    assert_ok(tally_state_value(left, value));
    assert_true(value[0].as.u64 == cut - 1); /* the 8 */
    assert_ok(tally_state_merge(left, right));
    assert_ok(tally_state_value(left, value));
    assert_true(same_values(whole, value, 5));
    tally_state_destroy(left);
    tally_state_destroy(right);
    tally_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_more_than_32_bits),
                                       cmocka_unit_test(test_statistics),
                                       cmocka_unit_test(test_parts)};
    return cmocka_run_group_tests_name("large", tests, lend, give_back);
}
