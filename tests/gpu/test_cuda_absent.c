/*
 * test_cuda_absent.c - the CUDA host where there is no driver, or (run with the husk of a libcuda.so.1
 * on the search path) one that is too old. Skips on a machine that has one.
 */
#include "checks.h"

#include <dlfcn.h>

static void says_what_is_missing(void **state) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    (void)state;
    if (library && dlsym(library, "cuLaunchKernel")) {
        print_message("skipped: a driver is here\n");
        skip();
    }
    assert_int_equal(cuda_api.count(), 0);
    assert_int_equal(cuda_api.count(), 0);
    check_absence(&cuda_api, 0);
    print_message("%s\n", tally_error());
    assert_non_null(strstr(tally_error(), library ? "too old" : "libcuda.so.1"));
    cuda_api.close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(says_what_is_missing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
