/*
 * test_threads.c - any number of threads may use Tally at once, also through one device.
 *
 * Threads hammer one shared device with different operators, types and lengths and compare every
 * answer; others open and close devices the while. Afterwards no thread and no file descriptor of the
 * library may be left.
 */
#define _GNU_SOURCE
#include "testing.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { N = 400000, CALLERS = 8, ROUNDS = UNDER_TSAN || UNDER_ASAN ? 6 : 60 };
static double numbers[N];
static float floats[N];
static int32_t wholes[N];

/* The number of entries of a folder of /proc/self, or -1. */
static int entries(const char *path) {
    DIR *folder = opendir(path);
    if (!folder) return -1;
    int count = 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* A joined thread may stay listed for a moment: wait, within reason, until few enough are. */
static int threads_settle(int wanted) {
    int now = 0;
    for (int i = 0; i < 2000 && (now = entries("/proc/self/task")) > wanted; i++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    return now;
}

static void last(void *context, const void *left, const void *right, void *out, size_t count) {
    (void)context, (void)left;
    memmove(out, right, count * sizeof(int32_t));
}
static const int32_t zero = 0;
static const tally_operator taking_the_last = {last, NULL, &zero, 0, NULL};

typedef struct caller {
    tally_device *device;
    unsigned number;
    const char *wrong; /* what was, or NULL */
} caller;

/* Statistics of both arrays at once, and states of them that are fed through the device, subtracted from,
 * saved and merged. */
static void statistics(caller *me, size_t n) {
    static const tally_problem asked = {
        .op = TALLY_DESCRIBE, .type = TALLY_F64, .also = {TALLY_NORM2, TALLY_NONZERO, TALLY_VAR}};
    tally_value whole[TALLY_VALUES_MAX], here[TALLY_VALUES_MAX], dot, same;
    tally_state *left = NULL, *right = NULL;
    const size_t half = n / 2;
    if (tally_reduce(me->device, &asked, numbers, NULL, n, whole) ||
        tally_state_create(&asked, &left) || tally_state_create(&asked, &right) ||
        tally_state_feed(left, me->device, numbers, NULL, half) ||
        tally_state_feed(right, NULL, numbers + half, NULL, n - half) ||
        tally_state_merge(left, right) || tally_state_value(left, here) ||
        !same_values(whole, here, 12))
        me->wrong = "describe";
    tally_state_destroy(left);
    tally_state_destroy(right);
    left = right = NULL;
    if (tally_reduce(me->device, ASK(TALLY_DOT, TALLY_F64), numbers, numbers, n, &dot) ||
        tally_state_create(ASK(TALLY_DOT, TALLY_F64), &left) ||
        tally_state_create(ASK(TALLY_DOT, TALLY_F64), &right) ||
        tally_state_feed(left, me->device, numbers, numbers, n) ||
        tally_state_feed(right, me->device, numbers + half, numbers + half, n - half) ||
        tally_state_subtract(left, right) || tally_state_count(left) != half ||
        tally_state_merge(left, right) || tally_state_value(left, &same) ||
        same.as.f64 != dot.as.f64)
        me->wrong = "dot";
    tally_state_destroy(left);
    tally_state_destroy(right);
}

static void *call(void *argument) {
    caller *me = argument;
    uint64_t seed = me->number;
    for (int round = 0; round < ROUNDS && !me->wrong; round++) {
        size_t n = (size_t)(next_random(&seed) % N) + 1;
        if (round % 4 == 0) n = n % 100 + 1;
        double sum = 0;
        int32_t most = INT32_MIN, bits = 0;
        for (size_t i = 0; i < n; i++) {
            sum += numbers[i];
            most = wholes[i] > most ? wholes[i] : most;
            bits ^= wholes[i];
        }
        tally_value value;
        if (tally_reduce(me->device, ASK(TALLY_SUM, TALLY_F64), numbers, NULL, n, &value) ||
            value.as.f64 != sum)
            me->wrong = "sum of f64";
        if (tally_reduce(me->device, ASK(TALLY_SUM, TALLY_F32), floats, NULL, n, &value) ||
            value.as.f32 != (float)sum)
            me->wrong = "sum of f32";
        if (tally_reduce(me->device, ASK(TALLY_SUM, TALLY_I32), wholes, NULL, n, &value) ||
            value.as.i64 != (int64_t)sum)
            me->wrong = "sum of i32";
        if (tally_reduce(me->device, ASK(TALLY_MAX, TALLY_I32), wholes, NULL, n, &value) ||
            value.as.i32 != most)
            me->wrong = "max of i32";
        if (tally_reduce(me->device, ASK(TALLY_XOR, TALLY_I32), wholes, NULL, n, &value) ||
            value.as.i32 != bits)
            me->wrong = "xor of i32";
        if (tally_reduce(me->device, ASK(TALLY_USER, TALLY_I32, .user = &taking_the_last), wholes,
                         NULL, n, &value) ||
            value.as.i32 != wholes[n - 1])
            me->wrong = "user operator";
        tally_state *fed;
        if (tally_state_create(ASK(TALLY_SUM, TALLY_F64), &fed) ||
            tally_state_feed(fed, me->device, numbers, NULL, n / 3) ||
            tally_state_feed(fed, me->device, numbers + n / 3, NULL, n - n / 3) ||
            tally_state_value(fed, &value) || value.as.f64 != sum)
            me->wrong = "state of a sum";
        tally_state_destroy(fed);
        if (tally_state_create(ASK(TALLY_SUM, TALLY_F64), &fed) ||
            tally_state_feed(fed, me->device, numbers, NULL, n) ||
            tally_state_divided(fed, 1, TALLY_F64, &value) || value.as.f64 != sum)
            me->wrong = "sum divided by 1";
        tally_state_destroy(fed);
        statistics(me, n);
        /* this thread's error text is its own, whatever the others fail at */
        char spec[32];
        tally_device *none;
        snprintf(spec, sizeof spec, "nothing-%u-%d", me->number, round);
        if (tally_open(spec, &none) != TALLY_EDEVICE || !strstr(tally_error(), spec))
            me->wrong = "error text";
    }
    return NULL;
}

static void test_one_device_for_many(void **state) {
    (void)state;
    static const char *const specs[] = {NULL, "cpu:threads=1", "cpu:threads=2", "cpu:threads=3",
                                        "cpu"};
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++) {
        tally_device *device = NULL;
        if (specs[s]) assert_ok(tally_open(specs[s], &device));
        caller callers[CALLERS];
        pthread_t threads[CALLERS];
        for (unsigned i = 0; i < CALLERS; i++) {
            callers[i] = (caller){device, i, NULL};
            assert_int_equal(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
        }
        for (unsigned i = 0; i < CALLERS; i++)
            pthread_join(threads[i], NULL);
        for (unsigned i = 0; i < CALLERS; i++)
            if (callers[i].wrong)
                fail_msg("thread %u, device %s: %s", i, specs[s] ? specs[s] : "none",
                         callers[i].wrong);
        tally_close(device);
    }
}

static atomic_int failures;
static void *open_and_close(void *argument) {
    unsigned number = *(unsigned *)argument;
    for (unsigned i = 0; i < (UNDER_TSAN || UNDER_ASAN ? 60 : 250); i++) {
        char spec[32];
        snprintf(spec, sizeof spec, "cpu:threads=%u", (i + number) % 4 + 1);
        tally_device *device;
        tally_value value;
        if (tally_open(spec, &device)) {
            atomic_fetch_add(&failures, 1);
            continue;
        }
        /* some are closed unused, some right after work */
        if (i % 3 && (tally_reduce(device, ASK(TALLY_SUM, TALLY_I32), wholes, NULL, i % 2 ? N : 10,
                                   &value) ||
                      value.type != TALLY_I64))
            atomic_fetch_add(&failures, 1);
        tally_close(device);
    }
    return NULL;
}

static void test_a_thousand_devices(void **state) {
    (void)state;
    int descriptors = entries("/proc/self/fd"), tasks = threads_settle(3);
    pthread_t threads[4];
    unsigned numbers_[4] = {0, 1, 2, 3};
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, &numbers_[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(failures, 0);
    assert_int_equal(entries("/proc/self/fd"), descriptors);
    assert_true(threads_settle(tasks) <= tasks);
}

static void test_many_devices_at_once(void **state) {
    (void)state;
    tally_device *devices[50];
    tally_value first, value;
    assert_ok(tally_reduce(NULL, ASK(TALLY_SUM, TALLY_F64), numbers, NULL, N, &first));
    for (int i = 0; i < 50; i++)
        assert_ok(tally_open("cpu:threads=3", &devices[i]));
    for (int i = 0; i < 50; i++) {
        assert_ok(tally_reduce(devices[i], ASK(TALLY_SUM, TALLY_F64), numbers, NULL, N, &value));
        assert_memory_equal(&value.as.f64, &first.as.f64, sizeof(double));
    }
    for (int i = 0; i < 50; i++)
        tally_close(devices[(i * 7) % 50]);
}

int main(void) {
    uint64_t seed = 11;
    for (size_t i = 0; i < N; i++) {
        wholes[i] = (int32_t)(next_random(&seed) % 20001) - 10000;
        numbers[i] = wholes[i];
        floats[i] = (float)wholes[i];
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_device_for_many),
        cmocka_unit_test(test_a_thousand_devices),
        cmocka_unit_test(test_many_devices_at_once),
    };
    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
