/*
 * test_model.c - the model behind the interface that CUDA and OpenCL have too.
 */
#include "checks.h"

static void absent(void **state) {
    (void)state;
    check_absence(&model_api, 1);
}

static void ladder(void **state) {
    (void)state;
    check_ladder(&model_api);
}

/* What only a driver has, the model says that it has not. */
static void has_no_driver(void **state) {
    struct gpu *gpu = NULL;
    struct gpu_memory *memory;
    volatile void *host;
    int somewhere;
    (void)state;
    assert_error(TALLY_EUNSUPPORTED, model_api.open(0, &somewhere, &gpu));
    assert_null(gpu);
    assert_ok(model_api.open(0, NULL, &gpu));
    assert_error(TALLY_EUNSUPPORTED, model_api.allocate_visible(gpu, 8, &memory, &host));
    check_writes(&model_api, gpu);
    model_api.close(gpu);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent),
        cmocka_unit_test(ladder),
        cmocka_unit_test(has_no_driver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
