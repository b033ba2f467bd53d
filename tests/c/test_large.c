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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_more_than_32_bits)};
    return cmocka_run_group_tests_name("large", tests, lend, give_back);
}
