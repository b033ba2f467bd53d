/*
 * test_fork.c - a device opened before fork() works in the child, too.
 *
 * A child has only the thread that called fork(): the device's own threads are gone, and a lock that
 * one of them (or another caller) held stays locked for ever. Each child here has an alarm set, so
 * that waiting for such a thread or lock is a failure and not a hang.
 */
#define _GNU_SOURCE
#include "testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 400000, PATIENCE = 60 };
static double numbers[N];
static double total, largest;

/* 0 when the device reduces as it should. */
static int wrong(tally_device *device) {
    tally_value value;
    if (tally_reduce(device, ASK(TALLY_SUM, TALLY_F64), numbers, NULL, N, &value) != TALLY_OK ||
        value.as.f64 != total)
        return 1;
    if (tally_reduce(device, ASK(TALLY_MAX, TALLY_F64), numbers, NULL, N, &value) != TALLY_OK ||
        value.as.f64 != largest)
        return 2;
    if (tally_reduce(device, ASK(TALLY_SUM, TALLY_F64), numbers, NULL, 10, &value) != TALLY_OK)
        return 3;
    return 0;
}

/* Runs body() in a child; fails unless it comes to 0 within the alarm. */
static void in_child(int (*body)(void *), void *argument, const char *what) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(PATIENCE);
        _exit(body(argument));
    }
    assert_true(child > 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        fail_msg("%s: the child died of signal %d%s", what, WTERMSIG(status),
                 WTERMSIG(status) == SIGALRM ? " (it hung)" : "");
    if (WEXITSTATUS(status))
        fail_msg("%s: the child's step %d was wrong", what, WEXITSTATUS(status));
}

static int just_reduce(void *device) {
    return wrong(device);
}

static int reduce_and_close(void *device) {
    int bad = wrong(device);
    tally_close(device);
    return bad;
}

static int just_close(void *device) {
    tally_close(device);
    return 0;
}

static int open_another(void *device) {
    tally_device *mine;
    int bad = wrong(device);
    if (bad) return bad;
    if (tally_open("cpu:threads=3", &mine) != TALLY_OK) return 10;
    bad = wrong(mine);
    tally_close(mine);
    tally_close(device);
    return bad ? 10 + bad : 0;
}

static int fork_again(void *device) {
    int bad = wrong(device);
    pid_t child = fork();
    if (child == 0) {
        alarm(PATIENCE);
        _exit(wrong(device) | just_close(device));
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 20;
    return bad ? bad : wrong(device);
}

static void *reduce_some(void *device) {
    int bad = 0;
    for (int i = 0; i < 5 && !bad; i++)
        bad = wrong(device);
    return (void *)(intptr_t)bad;
}

/* The child makes threads of its own, which all come upon the inherited device at once. */
static int many_at_once(void *device) {
    pthread_t threads[4];
    int bad = 0;
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, reduce_some, device)) return 40;
    for (int i = 0; i < 4; i++) {
        void *came;
        pthread_join(threads[i], &came);
        bad |= (int)(intptr_t)came;
    }
    tally_close(device);
    return bad ? 40 + bad : 0;
}

static tally_state *fed;
static int finish_state(void *device) {
    tally_value value;
    if (tally_state_feed(fed, device, numbers + N / 2, NULL, N - N / 2) != TALLY_OK ||
        tally_state_value(fed, &value) != TALLY_OK || value.as.f64 != total)
        return 30;
    tally_state_destroy(fed);
    return reduce_and_close(device);
}

static void test_fork(void **state) {
    (void)state;
    if (UNDER_TSAN) skip();
    for (int used = 0; used < 2; used++) {
        tally_device *device;
        assert_ok(tally_open("cpu:threads=3", &device));
        if (used) assert_int_equal(wrong(device), 0);
        in_child(just_reduce, device, "reduce");
        in_child(reduce_and_close, device, "reduce and close");
        in_child(just_close, device, "close");
        in_child(open_another, device, "open another");
        in_child(fork_again, device, "fork again");
        for (int i = 0; i < 30; i++)
            in_child(many_at_once, device, "many threads at once");
        assert_ok(tally_state_create(ASK(TALLY_SUM, TALLY_F64), &fed));
        assert_ok(tally_state_feed(fed, device, numbers, NULL, N / 2));
        in_child(finish_state, device, "a state");
        assert_int_equal(finish_state(device), 0); /* the parent's state is its own; closes */
    }
}

/* ---- Forking while others are in the middle of something ------------------------------------ */

static atomic_int stop, failures;

static void *keep_reducing(void *device) {
    while (!atomic_load(&stop))
        if (wrong(device)) atomic_fetch_add(&failures, 1);
    return NULL;
}

static void *keep_opening(void *unused) {
    (void)unused;
    while (!atomic_load(&stop)) {
        tally_device *device;
        if (tally_open("cpu:threads=2", &device) != TALLY_OK)
            atomic_fetch_add(&failures, 1);
        else
            tally_close(device);
    }
    return NULL;
}

static void test_fork_among_threads(void **state) {
    (void)state;
    if (UNDER_TSAN) skip();
    tally_device *device;
    pthread_t threads[4];
    assert_ok(tally_open("cpu:threads=3", &device));
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_reducing, device), 0);
    assert_int_equal(pthread_create(&threads[3], NULL, keep_opening, NULL), 0);
    for (int i = 0; i < 60; i++)
        in_child(i % 3 == 0   ? just_reduce
                 : i % 3 == 1 ? open_another
                              : reduce_and_close,
                 device, "fork while others reduce");
    atomic_store(&stop, 1);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(failures, 0);
    assert_int_equal(reduce_and_close(device), 0);
}

int main(void) {
    uint64_t seed = 3;
    for (size_t i = 0; i < N; i++) {
        numbers[i] = (double)((int)(next_random(&seed) % 2001) - 1000);
        total += numbers[i];
        largest = numbers[i] > largest ? numbers[i] : largest;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_fork_among_threads),
    };
    return cmocka_run_group_tests_name("fork", tests, NULL, NULL);
}
