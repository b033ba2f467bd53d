/*
 * test_opencl_device.c - "opencl:0" through the public calls, with an array that may only be read. Skips
 * where there is no device.
 */
#include "../c/testing.h"

#include <sys/mman.h>

/* Data that lie in a file, mapped to be read: a reduction reads them where they are, and only reads. */
static void reads_a_read_only_mapping(void **state) {
    enum { N = 1 << 20 };
    const tally_problem sums = {.op = TALLY_SUM, .type = TALLY_F64};
    const tally_problem products = {.op = TALLY_PROD, .type = TALLY_F64};
    tally_device *device;
    tally_value sum, wanted;
    FILE *file = tmpfile();
    (void)state;
    if (tally_open("opencl:0", &device) != TALLY_OK) {
        print_message("skipped: %s\n", tally_error());
        skip();
    }
    assert_non_null(file);
    for (int i = 0; i < N; i++) {
        const double x = 1.0 / (3 + i);
        assert_int_equal(fwrite(&x, sizeof x, 1, file), 1);
    }
    assert_int_equal(fflush(file), 0);
    const double *x = mmap(NULL, N * sizeof *x, PROT_READ, MAP_SHARED, fileno(file), 0);
    assert_ptr_not_equal(x, MAP_FAILED);
    assert_ok(tally_reduce(NULL, &sums, x, NULL, N, &wanted));
    assert_ok(tally_reduce(device, &sums, x, NULL, N, &sum));
    assert_true(tally_value_bits(&sum) == tally_value_bits(&wanted));
    assert_ok(tally_reduce(NULL, &products, x + 1, NULL, 1000, &wanted));
    assert_ok(tally_reduce(device, &products, x + 1, NULL, 1000, &sum));
    assert_true(tally_value_bits(&sum) == tally_value_bits(&wanted));
    munmap((void *)(uintptr_t)x, N * sizeof *x);
    fclose(file);
    tally_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_read_only_mapping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
