/*
 * test_nested.c - a step callback that launches kernels itself.
 *
 * The kernels' shared arrays are the program's, so what the callback launches overwrites what the launch
 * around it has there. An alarm ends a test that hangs.
 */
#include "climb.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 300 };

static float x[N], y[N];
static model_device *device, *second;

static int set_up(void **state) {
    (void)state;
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = -(float)(3 * i);
    }
    alarm(60);
    return model_open(&device) || model_open(&second);
}

static int tear_down(void **state) {
    (void)state;
    model_close(device);
    model_close(second);
    return 0;
}

static climb sum_of(const float *array, ladder_rung rung) {
    return (climb){.rung = rung,
                   .type = TALLY_F32,
                   .op = TALLY_SUM,
                   .how = FINISH_RELAUNCH,
                   .block = 64,
                   .factor = 1,
                   .x = array,
                   .n = N};
}

/* What a callback is to launch, and how often it did. */
struct inner {
    climb climb;
    unsigned calls;
    float sum;
    bool failed;
};

static void run_inner(struct inner *inner) {
    tally_value sum = {0};
    inner->failed |= climb_rung(second, &inner->climb, &sum, NULL) != 0;
    inner->sum = sum.as.f32;
    inner->calls++;
}

static void launch_here(void *context, const model_step *step) {
    (void)step;
    run_inner(context);
}

static void *in_thread(void *context) {
    run_inner(context);
    return NULL;
}

static void launch_elsewhere(void *context, const model_step *step) {
    pthread_t thread;
    (void)step;
    if (pthread_create(&thread, NULL, in_thread, context) == 0) pthread_join(thread, NULL);
}

/* Every rung with every step interrupted comes to the sum and the counts that it has alone. */
static void check(void (*on_step)(void *context, const model_step *step)) {
    for (unsigned rung = 0; rung < LADDER_RUNG_COUNT; rung++) {
        struct inner inner = {.climb = sum_of(y, (ladder_rung)rung)};
        climb outer = sum_of(x, (ladder_rung)rung);
        model_counts alone = {0}, nested = {0};
        tally_value sum;
        assert_int_equal(climb_rung(device, &outer, &sum, &alone), 0);
        outer.on_step = on_step;
        outer.context = &inner;
        assert_int_equal(climb_rung(device, &outer, &sum, &nested), 0);
        assert_true(sum.as.f32 == N * (N - 1) / 2);
        assert_memory_equal(&alone, &nested, sizeof alone);
        assert_true(inner.calls > 0 && !inner.failed);
        assert_true(inner.sum == -3.0f * (N * (N - 1) / 2));
    }
}

static void test_same_thread(void **state) {
    (void)state;
    check(launch_here);
}

static void test_other_thread(void **state) {
    (void)state;
    check(launch_elsewhere);
}

/* A callback within a callback. */
static model_device *third;

static void launch_third(void *context, const model_step *step) {
    (void)step;
    tally_value sum = {0};
    const climb c = sum_of(x, LADDER_SHARED);
    if (climb_rung(third, &c, &sum, NULL) == 0) *(float *)context = sum.as.f32;
}

static void test_twice(void **state) {
    float deepest = 0;
    tally_value sum;
    (void)state;
    assert_int_equal(model_open(&third), MODEL_OK);
    struct inner inner = {.climb = sum_of(y, LADDER_SHARED)};
    inner.climb.on_step = launch_third;
    inner.climb.context = &deepest;
    climb outer = sum_of(x, LADDER_SHARED);
    outer.on_step = launch_here;
    outer.context = &inner;
    assert_int_equal(climb_rung(device, &outer, &sum, NULL), 0);
    assert_true(sum.as.f32 == N * (N - 1) / 2 && deepest == sum.as.f32 && !inner.failed);
    assert_true(inner.sum == -3.0f * (N * (N - 1) / 2));
    model_close(third);
}

/* The device whose launch it is cannot take another: that is an error, and the launch goes on. */
static void launch_again(void *context, const model_step *step) {
    const model_launch launch = {.grid = 1, .block = 1};
    (void)step;
    *(model_status *)context = model_run(device, &launch, NULL);
}

static void test_same_device(void **state) {
    model_status status = MODEL_OK;
    tally_value sum;
    (void)state;
    climb c = sum_of(x, LADDER_SHARED);
    c.on_step = launch_again;
    c.context = &status;
    assert_int_equal(climb_rung(device, &c, &sum, NULL), 0);
    assert_true(sum.as.f32 == N * (N - 1) / 2);
    assert_int_equal(status, MODEL_EINVAL);
    assert_non_null(strstr(model_error(device), "under way"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_thread),
        cmocka_unit_test(test_other_thread),
        cmocka_unit_test(test_twice),
        cmocka_unit_test(test_same_device),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
