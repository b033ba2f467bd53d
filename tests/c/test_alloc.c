/*
 * test_alloc.c - no memory is an answer, never a crash or a leak.
 *
 * The linker sends the library's calls of the allocators and of pthread_create here
 * (-Wl,--wrap=...). Each scenario runs again and again: first with the very first request refused,
 * then the second, and so on until a run needs no refusal. On the way every call must either succeed
 * with the right answer or come to TALLY_ENOMEM, and at the end of every run nothing the library
 * allocated may be left.
 */
#define _GNU_SOURCE
#include "testing.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

/* ---- The allocators ----------------------------------------------------------------------- */

void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
void *__real_aligned_alloc(size_t, size_t);
int __real_posix_memalign(void **, size_t, size_t);
char *__real_strdup(const char *);
void __real_free(void *);
int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);
void *__wrap_aligned_alloc(size_t, size_t);
int __wrap_posix_memalign(void **, size_t, size_t);
char *__wrap_strdup(const char *);
void __wrap_free(void *);
int __wrap_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static atomic_long requests;       /* since the run began */
static atomic_long refuse_at = -1; /* the request to refuse; < 0: none */
static atomic_int refuse_on;       /* refuse that one and all later ones */
static atomic_int refused;

static int refuse(void) {
    long mine = atomic_fetch_add(&requests, 1), at = atomic_load(&refuse_at);
    if (at < 0 || mine < at || (mine > at && !atomic_load(&refuse_on))) return 0;
    atomic_store(&refused, 1);
    errno = ENOMEM;
    return 1;
}

/* What the library holds right now. */
static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static void *live[10000];
static size_t live_count;

static void *born(void *p) {
    if (p) {
        pthread_mutex_lock(&live_lock);
        if (live_count < sizeof live / sizeof *live) live[live_count++] = p;
        pthread_mutex_unlock(&live_lock);
    }
    return p;
}

static void dead(void *p) {
    pthread_mutex_lock(&live_lock);
    for (size_t i = 0; p && i < live_count; i++)
        if (live[i] == p) {
            live[i] = live[--live_count];
            break;
        }
    pthread_mutex_unlock(&live_lock);
}

void *__wrap_malloc(size_t size) {
    return refuse() ? NULL : born(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size) {
    return refuse() ? NULL : born(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t size) {
    if (refuse()) return NULL;
    dead(p);
    void *moved = __real_realloc(p, size);
    born(moved ? moved : p);
    return moved;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    return refuse() ? NULL : born(__real_aligned_alloc(alignment, size));
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t size) {
    if (refuse()) return ENOMEM;
    int failed = __real_posix_memalign(out, alignment, size);
    if (!failed) born(*out);
    return failed;
}

char *__wrap_strdup(const char *text) {
    return refuse() ? NULL : born(__real_strdup(text));
}

void __wrap_free(void *p) {
    dead(p);
    __real_free(p);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument) {
    return refuse() ? EAGAIN : __real_pthread_create(thread, attributes, body, argument);
}

/* ---- The scenarios ------------------------------------------------------------------------ */

enum { N = 300000 };
static double numbers[N];
static float floats[N];
static int64_t wholes[N];
static double total;    /* of each of the three arrays: whole numbers, so plain sums are exact */
static double signs[N]; /* 1 and -1 */
static double sign;     /* their product */
static double dotted;   /* numbers[i] * signs[i], added up */

/* 1 when the call succeeded, 0 when there was no memory; anything else is a failure. */
static int went(tally_status status, const char *call) {
    if (status == TALLY_OK) return 1;
    if (!atomic_load(&refused))
        fail_msg("%s failed although nothing was refused: %s", call, tally_error());
    check_error(status, TALLY_ENOMEM, call);
    return 0;
}
#define WENT(call) went((call), #call)

static void right(const tally_value *value, tally_type type, double wanted) {
    assert_int_equal(value->type, type);
    if (tally_value_double(value) != wanted)
        fail_msg("%g instead of %g", tally_value_double(value), wanted);
}

static void add(void *context, const void *left, const void *right_, void *out, size_t count) {
    (void)context;
    for (size_t i = 0; i < count; i++)
        ((double *)out)[i] = ((const double *)left)[i] + ((const double *)right_)[i];
}
static const double zero = 0;
static const tally_operator adding = {add, NULL, &zero, 1, NULL};
static const tally_operator adding_in_order = {add, NULL, &zero, 0, NULL};

static void reduce_on(tally_device *device) {
    tally_value value;
    for (size_t n = 1; n <= N; n *= 67) {
        double some = 0;
        for (size_t i = 0; i < n; i++)
            some += numbers[i];
        if (WENT(tally_reduce(device, ASK(TALLY_SUM, TALLY_F64), numbers, NULL, n, &value)))
            right(&value, TALLY_F64, some);
    }
    if (WENT(tally_reduce(device, ASK(TALLY_SUM, TALLY_F64), numbers, NULL, N, &value)))
        right(&value, TALLY_F64, total);
    if (WENT(tally_reduce(device, ASK(TALLY_SUM, TALLY_F32), floats, NULL, N, &value)))
        right(&value, TALLY_F32, (float)total);
    if (WENT(tally_reduce(device, ASK(TALLY_SUM, TALLY_F64, .out = TALLY_F32), numbers, NULL, N,
                          &value)))
        right(&value, TALLY_F32, (float)total);
    if (WENT(tally_reduce(device, ASK(TALLY_SUM, TALLY_F64, .fast = 1), numbers, NULL, N, &value)))
        right(&value, TALLY_F64, total);
    if (WENT(tally_reduce(device, ASK(TALLY_SUM, TALLY_I64), wholes, NULL, N, &value)))
        right(&value, TALLY_I64, total);
    if (WENT(tally_reduce(device, ASK(TALLY_MAX, TALLY_F64), numbers, NULL, N, &value)))
        right(&value, TALLY_F64, 1000);
    if (WENT(tally_reduce(device, ASK(TALLY_PROD, TALLY_F64), signs, NULL, N, &value)))
        right(&value, TALLY_F64, sign);
    if (WENT(tally_reduce(device, ASK(TALLY_PROD, TALLY_I64), wholes, NULL, N, &value)))
        right(&value, TALLY_I64, 0);
    if (WENT(tally_reduce(device, ASK(TALLY_USER, TALLY_F64, .user = &adding), numbers, NULL, N,
                          &value)))
        right(&value, TALLY_F64, total);
    if (WENT(tally_reduce(device, ASK(TALLY_USER, TALLY_F64, .user = &adding_in_order), numbers,
                          NULL, N, &value)))
        right(&value, TALLY_F64, total);
    const char *odd = (const char *)numbers + 8; /* misaligned for the user's operator */
    static char shifted[N * 8 + 1];
    memcpy(shifted + 1, odd, (N - 1) * 8);
    if (WENT(tally_reduce(device, ASK(TALLY_USER, TALLY_F64, .user = &adding), shifted + 1, NULL,
                          N - 1, &value)))
        right(&value, TALLY_F64, total - numbers[0]);
}

/* States that are fed, copied, saved, loaded and merged. */
static void states_on(tally_device *device) {
    static const tally_operator with_source = {add, NULL, &zero, 1, "a + b"};
    for (int kind = 0; kind < 8; kind++) {
        static const tally_problem problems[] = {
            {.op = TALLY_SUM, .type = TALLY_F64},
            {.op = TALLY_PROD, .type = TALLY_F64},
            {.op = TALLY_MIN, .type = TALLY_F64},
            {.op = TALLY_USER, .type = TALLY_F64, .user = &adding},
            {.op = TALLY_USER, .type = TALLY_F64, .user = &adding_in_order},
            {.op = TALLY_USER, .type = TALLY_F64, .user = &with_source},
            {.op = TALLY_USER, .type = TALLY_F64, .user = &adding, .also = {TALLY_SUM}},
            {.op = TALLY_DOT, .type = TALLY_F64},
        };
        const tally_problem *problem = &problems[kind];
        const double *x = kind == 1 ? signs : numbers, *y = kind == 7 ? signs : NULL;
        const double want = kind == 1 ? sign : kind == 2 ? -1000 : kind == 7 ? dotted : total;
        tally_state *fed = NULL, *copy = NULL;
        tally_value value[2];
        if (!WENT(tally_state_create(problem, &fed))) {
            assert_null(fed);
            continue;
        }
        int went_well = 1;
        for (size_t at = 0; went_well && at < N; at += 177777) {
            const uint64_t before = tally_state_count(fed);
            went_well = WENT(tally_state_feed(fed, device, x + at, y ? y + at : NULL,
                                              N - at < 177777 ? N - at : 177777));
            if (!went_well) assert_true(tally_state_count(fed) == before);
        }
        if (went_well && WENT(tally_state_value(fed, value))) right(value, TALLY_F64, want);
        if (!WENT(tally_state_copy(fed, &copy))) {
            assert_null(copy);
        } else {
            if (went_well && WENT(tally_state_value(copy, value))) right(value, TALLY_F64, want);
            tally_state_destroy(copy);
        }
        tally_state_destroy(fed);
    }
}

static void save_on(tally_device *device, const tally_problem *problem, double want) {
    static unsigned char before[100000], after[100000];
    tally_state *fed = NULL, *other = NULL;
    tally_value value;
    if (!WENT(tally_state_create(problem, &fed))) {
        assert_null(fed);
        return;
    }
    assert_ok(tally_state_save(fed, before, sizeof before));
    if (!WENT(tally_state_feed(fed, device, numbers, NULL, N))) {
        /* "on an error nothing has been fed" */
        assert_ok(tally_state_save(fed, after, sizeof after));
        assert_memory_equal(before, after, tally_state_size(fed));
    } else {
        assert_ok(tally_state_save(fed, before, sizeof before));
        const size_t size = tally_state_size(fed);
        if (WENT(tally_state_load(before, size, problem, &other))) {
            if (problem->user) {
                if (WENT(tally_state_value(other, &value))) right(&value, TALLY_F64, want);
            } else if (WENT(tally_state_merge(fed, other)) &&
                       WENT(tally_state_value(fed, &value))) {
                right(&value, TALLY_F64, 2 * want);
            }
            tally_state_destroy(other);
        } else {
            assert_null(other);
        }
    }
    tally_state_destroy(fed);
}

static void saved_on(tally_device *device) {
    save_on(device, ASK(TALLY_SUM, TALLY_F64), total);
    save_on(device, ASK(TALLY_USER, TALLY_F64, .user = &adding_in_order), total);
}

/* Saves groups without any request that counts, and returns how many bytes they have. */
static size_t save_unrefused(const tally_groups *g, unsigned char *bytes, size_t room) {
    const long at = atomic_exchange(&refuse_at, -1), made = atomic_load(&requests);
    const size_t size = tally_groups_size(g);
    assert_true(size > 0 && size <= room);
    assert_ok(tally_groups_save(g, bytes, size));
    atomic_store(&requests, made);
    atomic_store(&refuse_at, at);
    return size;
}

/* Groups, one of which stays empty: fed twice or as they were, and saved or not for want of memory alone. */
static void groups_on(tally_device *device, const tally_problem *problem) {
    enum { COUNT = 4, MANY = 30000 };
    static int32_t ids[MANY];
    static unsigned char before[2000000], after[2000000];
    const tally_shape shape = {
        .cut = TALLY_GROUPS, .n = MANY, .count = COUNT, .ids = ids, .ids_type = TALLY_I32};
    tally_groups *g = NULL, *again = NULL;
    for (int i = 0; i < MANY; i++)
        ids[i] = i % (COUNT - 1);
    if (!WENT(tally_groups_create(problem, COUNT, &g))) {
        assert_null(g);
        return;
    }
    for (int turn = 0; turn < 2; turn++) {
        size_t size = save_unrefused(g, before, sizeof before);
        if (!WENT(tally_groups_feed(g, device, &shape, numbers, NULL))) {
            assert_true(save_unrefused(g, after, sizeof after) == size);
            assert_memory_equal(before, after, size);
        }
        size = save_unrefused(g, after, sizeof after);
        WENT(tally_groups_save(g, after, size));
        again = NULL;
        if (WENT(tally_groups_load(after, size, problem, &again)))
            tally_groups_destroy(again);
        else
            assert_null(again);
    }
    tally_state *one = NULL;
    if (WENT(tally_groups_state(g, 1, &one)))
        tally_state_destroy(one);
    else
        assert_null(one);
    const size_t size = save_unrefused(g, before, sizeof before);
    if (!WENT(tally_groups_grow(g, 5 * COUNT))) {
        assert_true(save_unrefused(g, after, sizeof after) == size);
        assert_memory_equal(before, after, size);
    }
    tally_groups_destroy(g);
}

/* Groups of vectors, whose rows are added as they come; or gathered, for want of memory for the states of all. */
static void vectors_on(tally_device *device) {
    enum { ROWS = 1500, COLUMNS = 16, COUNT = 4 };
    static int32_t ids[ROWS];
    static double one[ROWS], out[COUNT][COLUMNS];
    const size_t length[] = {ROWS, COLUMNS};
    const tally_problem *problem = ASK(TALLY_SUM, TALLY_F64);
    const tally_shape shape = {.cut = TALLY_GROUPS,
                               .dims = 2,
                               .length = length,
                               .axes = 1,
                               .count = COUNT,
                               .ids = ids,
                               .ids_type = TALLY_I32};
    for (int i = 0; i < ROWS; i++)
        ids[i] = i % 7 % COUNT;
    if (!WENT(tally_reduce_shaped(device, problem, &shape, numbers, NULL, (void *[]){out}))) return;
    for (int g = 0; g < COUNT; g++)
        for (int c = 0; c < COLUMNS; c++) {
            size_t n = 0;
            tally_value sum;
            for (int i = 0; i < ROWS; i++)
                if (ids[i] == g) one[n++] = numbers[i * COLUMNS + c];
            assert_ok(tally_reduce(NULL, problem, one, NULL, n, &sum));
            right(&sum, TALLY_F64, out[g][c]);
        }
}

static void all_groups(tally_device *device) {
    groups_on(device, ASK(TALLY_SUM, TALLY_F64));
    groups_on(device, ASK(TALLY_USER, TALLY_F64, .user = &adding_in_order, .also = {TALLY_MAX}));
}

/* Every statistic: a device may need memory of its own for any of them. */
static void statistics_on(tally_device *device) {
    for (int op = TALLY_MEAN; op <= TALLY_DESCRIBE; op++)
        for (int type = TALLY_I64; type <= TALLY_F64; type++) {
            if (type != TALLY_I64 && type < TALLY_F32) continue;
            const void *x = type == TALLY_F64   ? (const void *)numbers
                            : type == TALLY_F32 ? (const void *)floats
                                                : (const void *)wholes;
            tally_value here[TALLY_VALUES_MAX], want[TALLY_VALUES_MAX];
            const tally_problem *problem = ASK((tally_op)op, (tally_type)type);
            const void *y = op == TALLY_DOT ? x : NULL;
            size_t count = 0;
            assert_ok(tally_problem_values(problem, &count));
            assert_ok(tally_reduce(NULL, problem, x, y, N, want));
            if (!WENT(tally_reduce(device, problem, x, y, N, here))) continue;
            assert_true(same_values(here, want, count));
        }
}

static void with_device(const char *spec, void (*what)(tally_device *)) {
    tally_device *device = NULL;
    if (!WENT(tally_open(spec, &device))) {
        assert_null(device);
        return;
    }
    tally_device_info info;
    if (WENT(tally_device_describe(device, &info))) assert_true(info.threads >= 1);
    what(device);
    tally_close(device);
}

static void reduce_with_threads(void) {
    with_device("cpu:threads=3", reduce_on);
}
static void reduce_with_one(void) {
    with_device("cpu:threads=1", reduce_on);
}
static void reduce_by_default(void) {
    with_device("auto", reduce_on);
}
static void states_with_threads(void) {
    with_device("cpu:threads=3", states_on);
}
static void states_alone(void) {
    states_on(NULL);
}
static void saved_with_threads(void) {
    with_device("cpu:threads=3", saved_on);
}
static void saved_alone(void) {
    saved_on(NULL);
}
static void groups_with_threads(void) {
    with_device("cpu:threads=3", all_groups);
}
static void vectors_with_threads(void) {
    with_device("cpu:threads=3", vectors_on);
}
static void groups_alone(void) {
    all_groups(NULL);
}
static void statistics_with_threads(void) {
    with_device("cpu:threads=3", statistics_on);
}
static void list(void) {
    tally_device_info infos[8];
    size_t count;
    if (WENT(tally_device_list(infos, 8, &count))) assert_true(count >= 1);
}
static void read_on(tally_device *device) {
    double seconds;
    if (WENT(tally_device_read(device, numbers, sizeof numbers, &seconds)))
        assert_true(seconds >= 0);
}
static void read_roof(void) {
    with_device("cpu:threads=2", read_on);
}
static void bad_arguments(void) /* the text of an error may need memory as well */
{
    tally_device *device = NULL;
    tally_status status = tally_open("no such device", &device);
    assert_true(status == TALLY_EDEVICE || (status == TALLY_ENOMEM && atomic_load(&refused)));
    assert_null(device);
}

static void run(void (*scenario)(void), const char *name) {
    for (int on = 0; on < 2; on++)
        for (long k = 0;; k++) {
            assert_true(k < 100000);
            live_count = 0;
            atomic_store(&requests, 0);
            atomic_store(&refused, 0);
            atomic_store(&refuse_on, on);
            atomic_store(&refuse_at, k);
            scenario();
            atomic_store(&refuse_at, -1);
            if (live_count)
                fail_msg("%s: %zu blocks are left after request %ld was refused", name, live_count,
                         k);
            if (!atomic_load(&refused)) {
                if (on == 0) print_message("    %s: %ld requests\n", name, k);
                break;
            }
        }
}

#define SCENARIO(name)                                                                             \
    static void test_##name(void **state) {                                                        \
        (void)state;                                                                               \
        run(name, #name);                                                                          \
    }
SCENARIO(reduce_with_threads)
SCENARIO(reduce_with_one)
SCENARIO(reduce_by_default)
SCENARIO(states_with_threads)
SCENARIO(states_alone)
SCENARIO(saved_with_threads)
SCENARIO(saved_alone)
SCENARIO(groups_with_threads)
SCENARIO(groups_alone)
SCENARIO(vectors_with_threads)
SCENARIO(statistics_with_threads)
SCENARIO(list)
SCENARIO(read_roof)
SCENARIO(bad_arguments)

/* Without a device nothing is allocated at all: the header says so. */
static void test_no_device_allocates_nothing(void **state) {
    (void)state;
    tally_state *fed[3], *other;
    static unsigned char bytes[100000];
    tally_value values[TALLY_VALUES_MAX];
    assert_ok(tally_state_create(ASK(TALLY_SUM, TALLY_F64), &fed[0]));
    assert_ok(tally_state_create(ASK(TALLY_DESCRIBE, TALLY_F64), &fed[1]));
    assert_ok(tally_state_create(ASK(TALLY_PROD, TALLY_F64), &fed[2]));
    atomic_store(&requests, 0);
    reduce_on(NULL);
    assert_int_equal(atomic_load(&requests), 0);
    statistics_on(NULL);
    assert_int_equal(atomic_load(&requests), 0);
    for (int i = 0; i < 3; i++) { /* nor by a state, once it is there */
        assert_ok(tally_state_feed(fed[i], NULL, numbers, NULL, N));
        assert_ok(tally_state_value(fed[i], values));
        assert_ok(tally_state_save(fed[i], bytes, sizeof bytes));
        assert_int_equal(atomic_load(&requests), 0);
        assert_ok(tally_state_load(bytes, tally_state_size(fed[i]), NULL, &other));
        atomic_store(&requests, 0);
        if (i < 2) assert_ok(tally_state_merge(fed[i], other));
        tally_state_clear(fed[i]);
        assert_int_equal(atomic_load(&requests), 0);
        tally_state_destroy(other);
        tally_state_destroy(fed[i]);
        atomic_store(&requests, 0);
    }
}

int main(void) {
    uint64_t seed = 7;
    sign = 1;
    for (size_t i = 0; i < N; i++) {
        wholes[i] = (int64_t)(next_random(&seed) % 1999) - 999;
        if (i == 50 || i == N - 1) wholes[i] = 1000;
        if (i == 70) wholes[i] = -1000;
        if (i == 90) wholes[i] = 0;
        numbers[i] = (double)wholes[i];
        floats[i] = (float)wholes[i];
        total += numbers[i];
        signs[i] = next_random(&seed) & 1 ? 1 : -1;
        sign *= signs[i];
        dotted += numbers[i] * signs[i];
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_device_allocates_nothing),
        cmocka_unit_test(test_reduce_with_threads),
        cmocka_unit_test(test_reduce_with_one),
        cmocka_unit_test(test_reduce_by_default),
        cmocka_unit_test(test_states_with_threads),
        cmocka_unit_test(test_states_alone),
        cmocka_unit_test(test_saved_with_threads),
        cmocka_unit_test(test_saved_alone),
        cmocka_unit_test(test_groups_with_threads),
        cmocka_unit_test(test_groups_alone),
        cmocka_unit_test(test_vectors_with_threads),
        cmocka_unit_test(test_statistics_with_threads),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_read_roof),
        cmocka_unit_test(test_bad_arguments),
    };
    return cmocka_run_group_tests_name("allocation failures", tests, NULL, NULL);
}
