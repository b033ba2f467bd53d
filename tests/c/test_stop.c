/*
 * test_stop.c - calls that are told to stop do so, soon, and leave states as they were.
 *
 * Long arrays cost no memory here: they are a few elements over and over, by a stride of 0, or pages that nobody
 * has written to. A function that stops at the k-th question must end the call as TALLY_ESTOPPED; one that
 * never stops must not change the value; a thread without one is not asked.
 */
#define _GNU_SOURCE
#include "testing.h"

#include <sys/mman.h>
#include <time.h>

/* So long that whoever asks has asked long before the end, also where the machine has other work. */
#define LONG_N  ((size_t)1 << 31)
#define SHORT_N ((size_t)1 << 24)

struct asker {
    unsigned stop_at, asked; /* at which question to stop, from 1; how many there were */
};

static int ask(void *context) {
    struct asker *a = context;
    return ++a->asked == a->stop_at;
}

static tally_device *device, *alone;
static float *zeros;

static int begin(void **state) {
    (void)state;
    zeros = mmap(NULL, LONG_N * sizeof *zeros, PROT_READ,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED) return -1;
    return tally_open("cpu:threads=2", &device) || tally_open("cpu:threads=1", &alone);
}

static int end(void **state) {
    (void)state;
    tally_close(device);
    tally_close(alone);
    munmap(zeros, LONG_N * sizeof *zeros);
    return 0;
}

static tally_status stopped(unsigned at, tally_device *d, const tally_problem *p, size_t n,
                            tally_value *out) {
    struct asker asker = {at, 0};
    tally_stop_when(ask, &asker);
    const tally_status s = tally_reduce(d, p, zeros, NULL, n, out);
    tally_stop_when(NULL, NULL);
    if (at && s == TALLY_ESTOPPED) assert_int_equal(asker.asked, at);
    return s;
}

static void whole_arrays(void **state) {
    (void)state;
    const tally_op ops[] = {TALLY_SUM, TALLY_VAR, TALLY_PROD, TALLY_ARGMAX};
    tally_device *devices[] = {NULL, alone, device};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (size_t k = 0; k < 3; k++) {
            tally_value v = {.type = 77};
            assert_error(TALLY_ESTOPPED,
                         stopped(1, devices[k], ASK(ops[i], TALLY_F32), LONG_N, &v));
            assert_int_equal(v.type, 77);
        }
    tally_value a, b;
    assert_ok(stopped(0, device, ASK(TALLY_VAR, TALLY_F32), SHORT_N, &a));
    assert_ok(tally_reduce(device, ASK(TALLY_VAR, TALLY_F32), zeros, NULL, SHORT_N, &b));
    assert_true(same_values(&a, &b, 1));
}

static void states(void **state) {
    (void)state;
    static const float x[] = {1, 2, 4};
    const tally_op ops[] = {TALLY_SUM, TALLY_PROD, TALLY_DESCRIBE};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (int k = 0; k < 2; k++) {
            tally_state *s, *t;
            unsigned char *a, *b;
            assert_ok(tally_state_create(ASK(ops[i], TALLY_F32), &s));
            assert_ok(tally_state_feed(s, NULL, x, NULL, 3));
            assert_ok(tally_state_copy(s, &t));
            struct asker asker = {1, 0};
            tally_stop_when(ask, &asker);
            assert_error(TALLY_ESTOPPED,
                         tally_state_feed(s, k ? device : NULL, zeros, NULL, LONG_N));
            tally_stop_when(NULL, NULL);
            const size_t size = tally_state_size(t);
            assert_int_equal(tally_state_size(s), size);
            a = malloc(size);
            b = malloc(size);
            assert_ok(tally_state_save(s, a, size));
            assert_ok(tally_state_save(t, b, size));
            assert_memory_equal(a, b, size);
            free(a);
            free(b);
            tally_state_destroy(s);
            tally_state_destroy(t);
        }
}

static void parts(void **state) {
    (void)state;
    static const ptrdiff_t stride[] = {0, 0};
    static const size_t wide[] = {(size_t)1 << 16, (size_t)1 << 18}, tall[] = {(size_t)1 << 30, 4};
    static float x = 1;
    static double out[1 << 16];
    const tally_shape shapes[] = {
        {.cut = TALLY_AXES, .dims = 2, .length = wide, .x_stride = stride, .axes = 2},
        {.cut = TALLY_AXES, .dims = 2, .length = tall, .x_stride = stride, .axes = 1},
        {.cut = TALLY_SEGMENTS, .n = LONG_N, .count = 4},
        {.cut = TALLY_SEGMENTS, .n = LONG_N, .count = 1 << 16},
        {.cut = TALLY_GROUPS, .n = LONG_N, .count = 4, .ids = zeros, .ids_type = TALLY_I32},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int op = 0; op < 2; op++) {
            const tally_shape *shape = &shapes[i];
            const tally_problem *p = ASK(op ? TALLY_PROD : TALLY_SUM, TALLY_F32);
            struct asker asker = {1, 0};
            tally_stop_when(ask, &asker);
            const tally_status s = tally_reduce_shaped(
                device, p, shape, shape->cut == TALLY_AXES ? &x : zeros, NULL, (void *[]){out});
            tally_stop_when(NULL, NULL);
            assert_error(TALLY_ESTOPPED, s);
        }
    /* Groups are fed whole or not at all. */
    tally_groups *g;
    double value[4];
    assert_ok(tally_groups_create(ASK(TALLY_COUNT, TALLY_F32), 4, &g));
    struct asker asker = {1, 0};
    tally_stop_when(ask, &asker);
    assert_error(TALLY_ESTOPPED, tally_groups_feed(g, device, &shapes[4], zeros, NULL));
    tally_stop_when(NULL, NULL);
    assert_ok(tally_groups_values(g, (void *[]){value}));
    for (int i = 0; i < 4; i++)
        assert_memory_equal(&value[i], &(uint64_t){0}, 8);
    tally_groups_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_arrays),
        cmocka_unit_test(states),
        cmocka_unit_test(parts),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
