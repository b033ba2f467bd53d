/*
 * test_args.c - every public function, handed what its contract does not allow.
 *
 * The right status, one line of text, and outputs that were not touched. Where the header leaves a
 * choice (an operator that does not exist: EINVAL or ETYPE), either is taken.
 */
#include "testing.h"

#include <limits.h>
#include <math.h>

static const double ones[4] = {1, 1, 1, 1};
static tally_device *device;

/* Outputs that must stay as they are. */
static tally_value value;
static void set_value(void) {
    memset(&value, 0xa5, sizeof value);
}
static void value_untouched(const char *call) {
    tally_value same;
    memset(&same, 0xa5, sizeof same);
    if (memcmp(&same, &value, sizeof same)) fail_msg("%s wrote to its output", call);
}
#define VALUE_ERROR(wanted, call)                                                                  \
    do {                                                                                           \
        set_value();                                                                               \
        check_error((call), (wanted), #call);                                                      \
        value_untouched(#call);                                                                    \
    } while (0)
#define VALUE_EITHER(one, other, call)                                                             \
    do {                                                                                           \
        set_value();                                                                               \
        tally_status came = (call);                                                                \
        check_error(came, came == (other) ? (other) : (one), #call);                               \
        value_untouched(#call);                                                                    \
    } while (0)

static void *const untouched = (void *)&value;
#define POINTER_ERROR(wanted, type, call)                                                          \
    do {                                                                                           \
        type *made = (type *)untouched;                                                            \
        check_error((call), (wanted), #call);                                                      \
        if ((void *)made != untouched) fail_msg("%s wrote to its output", #call);                  \
    } while (0)
#define POINTER_EITHER(one, other, type, call)                                                     \
    do {                                                                                           \
        type *made = (type *)untouched;                                                            \
        tally_status came = (call);                                                                \
        check_error(came, came == (other) ? (other) : (one), #call);                               \
        if ((void *)made != untouched) fail_msg("%s wrote to its output", #call);                  \
    } while (0)

static void combine(void *context, const void *left, const void *right, void *out, size_t count) {
    (void)context, (void)right;
    memmove(out, left, count * sizeof(double));
}

static const int bad_codes[] = {0, -1, 99, INT_MAX, INT_MIN};
enum { BAD_CODES = 5 };

/* Lengths whose size in bytes does not fit: the smallest, and the largest. */
static const size_t too_many[] = {SIZE_MAX / sizeof(double) + 1, SIZE_MAX / 2, SIZE_MAX - 1,
                                  SIZE_MAX};

static void test_reduce(void **state) {
    (void)state;
    tally_device *const both[] = {NULL, device};
    for (int d = 0; d < 2; d++) {
        tally_device *dev = both[d];
        VALUE_ERROR(TALLY_EINVAL,
                    tally_reduce(dev, ASK(TALLY_SUM, TALLY_F64), NULL, NULL, 1, &value));
        assert_error(TALLY_EINVAL,
                     tally_reduce(dev, ASK(TALLY_SUM, TALLY_F64), ones, NULL, 4, NULL));
        assert_error(TALLY_EINVAL,
                     tally_reduce(dev, ASK(TALLY_SUM, TALLY_F64), NULL, NULL, 0, NULL));
        for (int i = 0; i < 4; i++)
            for (int op = TALLY_SUM; op <= TALLY_DESCRIBE; op++)
                VALUE_ERROR(TALLY_EINVAL,
                            tally_reduce(dev, ASK((tally_op)op, TALLY_F64), ones,
                                         op == TALLY_DOT ? ones : NULL, too_many[i], &value));
        for (int op = TALLY_SUM; op <= TALLY_DESCRIBE; op++) { /* y for dot, and for nothing else */
            VALUE_ERROR(TALLY_EINVAL, tally_reduce(dev, ASK((tally_op)op, TALLY_F64), ones,
                                                   op == TALLY_DOT ? NULL : ones, 4, &value));
            VALUE_ERROR(TALLY_EINVAL, tally_reduce(dev, ASK((tally_op)op, TALLY_F64), NULL,
                                                   op == TALLY_DOT ? ones : NULL, 4, &value));
        }
        VALUE_ERROR(TALLY_EINVAL, tally_reduce(dev, ASK(TALLY_SUM, TALLY_I16), ones, NULL,
                                               SIZE_MAX / 2 + 1, &value));
        for (int i = 0; i < BAD_CODES; i++) {
            const tally_type type = (tally_type)bad_codes[i];
            VALUE_EITHER(
                TALLY_EINVAL, TALLY_ETYPE,
                tally_reduce(dev, ASK((tally_op)bad_codes[i], TALLY_F64), ones, NULL, 4, &value));
            VALUE_EITHER(TALLY_EINVAL, TALLY_ETYPE,
                         tally_reduce(dev, ASK(TALLY_SUM, type), ones, NULL, 4, &value));
            VALUE_EITHER(TALLY_EINVAL, TALLY_ETYPE,
                         tally_reduce(dev, ASK(TALLY_XOR, type), ones, NULL, 0, &value));
            if (bad_codes[i] == 0) continue; /* the natural type */
            VALUE_EITHER(
                TALLY_EINVAL, TALLY_ETYPE,
                tally_reduce(dev, ASK(TALLY_SUM, TALLY_F64, .out = type), ones, NULL, 4, &value));
            VALUE_EITHER(TALLY_EINVAL, TALLY_ETYPE,
                         tally_reduce(dev, ASK(TALLY_SUM, TALLY_F32, .fast = 1, .out = type), ones,
                                      NULL, 4, &value));
            VALUE_EITHER(
                TALLY_EINVAL, TALLY_ETYPE,
                tally_reduce(dev, ASK(TALLY_MAX, TALLY_I32, .out = type), ones, NULL, 4, &value));
        }
        VALUE_ERROR(TALLY_ETYPE, tally_reduce(dev, ASK(TALLY_SUM, TALLY_F64, .out = TALLY_I64),
                                              ones, NULL, 4, &value));
        VALUE_ERROR(TALLY_ETYPE, tally_reduce(dev, ASK(TALLY_PROD, TALLY_F64, .out = TALLY_F32),
                                              ones, NULL, 4, &value));
        VALUE_ERROR(TALLY_ETYPE, tally_reduce(dev, ASK(TALLY_MIN, TALLY_F64, .out = TALLY_F32),
                                              NULL, NULL, 0, &value));
        VALUE_ERROR(TALLY_ERANGE, tally_reduce(dev, ASK(TALLY_SUM, TALLY_I64),
                                               (const int64_t[]){INT64_MAX, 1}, NULL, 2, &value));
        VALUE_ERROR(TALLY_ERANGE, tally_reduce(dev, ASK(TALLY_PROD, TALLY_U64),
                                               (const uint64_t[]){UINT64_MAX, 2}, NULL, 2, &value));
        assert_ok(tally_reduce(dev, ASK(TALLY_SUM, TALLY_F64), NULL, NULL, 0, &value));
    }
}

static void test_reduce_user(void **state) {
    (void)state;
    tally_device *const both[] = {NULL, device};
    const tally_operator good = {combine, NULL, ones, 0, NULL},
                         no_combine = {NULL, NULL, ones, 0, NULL},
                         no_identity = {combine, NULL, NULL, 0, NULL};
    for (int d = 0; d < 2; d++) {
        tally_device *dev = both[d];
        VALUE_ERROR(TALLY_EINVAL, tally_reduce(dev, ASK(TALLY_USER, TALLY_F64, .user = NULL), ones,
                                               NULL, 4, &value));
        VALUE_ERROR(TALLY_EINVAL, tally_reduce(dev, ASK(TALLY_USER, TALLY_F64, .user = NULL), NULL,
                                               NULL, 0, &value));
        VALUE_ERROR(TALLY_EINVAL, tally_reduce(dev, ASK(TALLY_USER, TALLY_F64, .user = &no_combine),
                                               ones, NULL, 4, &value));
        VALUE_ERROR(TALLY_EINVAL,
                    tally_reduce(dev, ASK(TALLY_USER, TALLY_F64, .user = &no_identity), ones, NULL,
                                 4, &value));
        VALUE_ERROR(TALLY_EINVAL,
                    tally_reduce(dev, ASK(TALLY_USER, TALLY_F64, .user = &no_identity), NULL, NULL,
                                 0, &value));
        VALUE_ERROR(TALLY_EINVAL, tally_reduce(dev, ASK(TALLY_USER, TALLY_F64, .user = &good), NULL,
                                               NULL, 4, &value));
        assert_error(TALLY_EINVAL, tally_reduce(dev, ASK(TALLY_USER, TALLY_F64, .user = &good),
                                                ones, NULL, 4, NULL));
        for (int i = 0; i < 4; i++)
            VALUE_ERROR(TALLY_EINVAL, tally_reduce(dev, ASK(TALLY_USER, TALLY_F64, .user = &good),
                                                   ones, NULL, too_many[i], &value));
        for (int i = 0; i < BAD_CODES; i++)
            VALUE_EITHER(TALLY_EINVAL, TALLY_ETYPE,
                         tally_reduce(dev, ASK(TALLY_USER, (tally_type)bad_codes[i], .user = &good),
                                      ones, NULL, 4, &value));
    }
}

static void test_state(void **unused) {
    (void)unused;
    tally_state *state;
    const tally_operator good = {combine, NULL, ones, 0, NULL},
                         no_combine = {NULL, NULL, ones, 0, NULL},
                         no_identity = {combine, NULL, NULL, 0, NULL};
    assert_error(TALLY_EINVAL, tally_state_create(ASK(TALLY_SUM, TALLY_F64), NULL));
    assert_error(TALLY_EINVAL, tally_state_create(ASK(TALLY_USER, TALLY_F64, .user = &good), NULL));
    POINTER_ERROR(TALLY_EINVAL, tally_state, tally_state_create(NULL, &made));
    POINTER_ERROR(TALLY_ETYPE, tally_state,
                  tally_state_create(ASK(TALLY_SUM, TALLY_F64, .out = TALLY_I64), &made));
    POINTER_ERROR(TALLY_ETYPE, tally_state,
                  tally_state_create(ASK(TALLY_PROD, TALLY_F64, .out = TALLY_I64), &made));
    POINTER_EITHER(TALLY_EINVAL, TALLY_ETYPE, tally_state,
                   tally_state_create(ASK(TALLY_SUM, TALLY_F64, .out = (tally_type)77), &made));
    for (int i = 0; i < BAD_CODES; i++) {
        POINTER_EITHER(TALLY_EINVAL, TALLY_ETYPE, tally_state,
                       tally_state_create(ASK((tally_op)bad_codes[i], TALLY_F64), &made));
        POINTER_EITHER(TALLY_EINVAL, TALLY_ETYPE, tally_state,
                       tally_state_create(ASK(TALLY_SUM, (tally_type)bad_codes[i]), &made));
        POINTER_EITHER(
            TALLY_EINVAL, TALLY_ETYPE, tally_state,
            tally_state_create(ASK(TALLY_USER, (tally_type)bad_codes[i], .user = &good), &made));
    }
    POINTER_ERROR(TALLY_EINVAL, tally_state,
                  tally_state_create(ASK(TALLY_USER, TALLY_F64, .user = NULL), &made));
    POINTER_ERROR(TALLY_EINVAL, tally_state,
                  tally_state_create(ASK(TALLY_USER, TALLY_F64, .user = &no_combine), &made));
    POINTER_ERROR(TALLY_EINVAL, tally_state,
                  tally_state_create(ASK(TALLY_USER, TALLY_F64, .user = &no_identity), &made));

    tally_device *const both[] = {NULL, device};
    VALUE_ERROR(TALLY_EINVAL, tally_state_value(NULL, &value));
    for (int d = 0; d < 2; d++)
        for (int kind = 0; kind < 3; kind++) {
            assert_error(TALLY_EINVAL, tally_state_feed(NULL, both[d], ones, NULL, 4));
            assert_ok(tally_state_create(kind == 0   ? ASK(TALLY_SUM, TALLY_F64)
                                         : kind == 1 ? ASK(TALLY_USER, TALLY_F64, .user = &good)
                                                     : ASK(TALLY_DOT, TALLY_F64),
                                         &state));
            const double *y = kind == 2 ? ones : NULL;
            assert_ok(tally_state_feed(state, both[d], ones, y, 3));
            assert_error(TALLY_EINVAL, tally_state_feed(state, both[d], NULL, y, 1));
            assert_error(TALLY_EINVAL, /* y for dot, and for nothing else */
                         tally_state_feed(state, both[d], ones, kind == 2 ? NULL : ones, 1));
            for (int i = 0; i < 4; i++)
                assert_error(TALLY_EINVAL, tally_state_feed(state, both[d], ones, y, too_many[i]));
            assert_error(TALLY_EINVAL, tally_state_value(state, NULL));
            assert_error(TALLY_EINVAL, tally_state_begin_at(state, 3));
            /* none of which did it any harm */
            assert_ok(tally_state_feed(state, both[d], NULL, NULL, 0));
            assert_ok(tally_state_value(state, &value));
            assert_true(value.type == TALLY_F64 && value.as.f64 == (kind == 1 ? 1 : 3));
            assert_int_equal(tally_state_count(state), 3);
            tally_state_destroy(state);
        }
    assert_error(TALLY_EINVAL, tally_state_begin_at(NULL, 0));
    assert_int_equal(tally_state_count(NULL), 0);
    tally_state_clear(NULL);
    tally_state_destroy(NULL);
}

static void test_exact_state(void **unused) {
    (void)unused;
    tally_state *sum, *other;
    unsigned char saved[4000], again[4000];
    int64_t words[200];
    assert_ok(tally_state_create(ASK(TALLY_SUM, TALLY_F64), &sum));
    assert_ok(tally_state_feed(sum, device, ones, NULL, 4));
    const size_t size = tally_state_size(sum);
    assert_in_range(size, 1, sizeof saved - 1);
    assert_int_equal(tally_state_size(NULL), 0);
    assert_ok(tally_state_save(sum, saved, size));

    for (int type = TALLY_I8; type <= TALLY_U64; type++)
        VALUE_ERROR(TALLY_ETYPE, tally_state_divided(sum, 1, (tally_type)type, &value));
    for (int i = 0; i < BAD_CODES; i++) {
        const tally_type type = (tally_type)bad_codes[i];
        if (type == 0) continue; /* the mean's */
        VALUE_EITHER(TALLY_EINVAL, TALLY_ETYPE, tally_state_divided(sum, 1, type, &value));
    }
    VALUE_ERROR(TALLY_EINVAL, tally_state_divided(sum, 0, TALLY_F64, &value));
    VALUE_ERROR(TALLY_EINVAL, tally_state_divided(NULL, 1, TALLY_F64, &value));
    assert_error(TALLY_EINVAL, tally_state_divided(sum, 1, TALLY_F64, NULL));
    assert_error(TALLY_EINVAL, tally_state_merge(NULL, sum));
    assert_error(TALLY_EINVAL, tally_state_merge(sum, NULL));
    assert_error(TALLY_EINVAL, tally_state_merge(NULL, NULL));
    assert_error(TALLY_EINVAL, tally_state_subtract(NULL, sum));
    assert_error(TALLY_EINVAL, tally_state_subtract(sum, NULL));
    assert_error(TALLY_EINVAL, tally_state_negate(NULL));
    assert_error(TALLY_EINVAL, tally_state_copy(sum, NULL));
    POINTER_ERROR(TALLY_EINVAL, tally_state, tally_state_copy(NULL, &made));
    assert_error(TALLY_EINVAL, tally_state_to_words(NULL, words));
    assert_error(TALLY_EINVAL, tally_state_to_words(sum, NULL));
    assert_error(TALLY_EINVAL, tally_state_from_words(NULL, words));
    assert_error(TALLY_EINVAL, tally_state_from_words(sum, NULL));
    assert_int_equal(tally_state_words(NULL), 0);

    memset(again, 0x5a, sizeof again);
    assert_error(TALLY_EINVAL, tally_state_save(NULL, again, sizeof again));
    assert_error(TALLY_EINVAL, tally_state_save(sum, NULL, sizeof again));
    assert_error(TALLY_EINVAL, tally_state_save(sum, again, size - 1));
    assert_error(TALLY_EINVAL, tally_state_save(sum, again, 0));
    for (size_t i = 0; i < sizeof again; i++)
        assert_int_equal(again[i], 0x5a);
    assert_error(TALLY_EINVAL, tally_state_load(saved, size, NULL, NULL));
    POINTER_ERROR(TALLY_EINVAL, tally_state, tally_state_load(NULL, size, NULL, &made));
    const size_t sizes[] = {0, 1, 8, 55, size - 8, size - 1, size + 1, SIZE_MAX / 2, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        POINTER_ERROR(TALLY_EFORMAT, tally_state, tally_state_load(saved, sizes[i], NULL, &made));
    saved[0] ^= 1;
    POINTER_ERROR(TALLY_EFORMAT, tally_state, tally_state_load(saved, size, NULL, &made));
    saved[0] ^= 1;
    static const struct {
        tally_op op;
        tally_type type, out;
        int fast;
        double ddof;
        tally_op also;
    } others[] = {{TALLY_MEAN, TALLY_F64, 0, 0, 0, 0}, {TALLY_SUM, TALLY_F32, 0, 0, 0, 0},
                  {TALLY_SUM, TALLY_F64, 9, 0, 0, 0},  {TALLY_SUM, TALLY_F64, 0, 1, 0, 0},
                  {TALLY_SUM, TALLY_F64, 0, 0, 1, 0},  {TALLY_SUM, TALLY_F64, 0, 0, 0, TALLY_MAX}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        POINTER_ERROR(TALLY_EFORMAT, tally_state,
                      tally_state_load(saved, size,
                                       ASK(others[i].op, others[i].type, .out = others[i].out,
                                           .fast = others[i].fast, .ddof = others[i].ddof,
                                           .also = {others[i].also}),
                                       &made));
    assert_ok(tally_state_save(sum, again, sizeof again)); /* nothing of all that did it any harm */
    assert_memory_equal(saved, again, size);
    assert_int_equal(tally_state_count(sum), 4);
    assert_ok(tally_state_load(saved, size, ASK(TALLY_SUM, TALLY_F64), &other));
    tally_state_destroy(other);
    tally_state_destroy(sum);
}

/* Problems that make no sense, for every call that takes one. */
static void bad_problem(tally_status wanted, const tally_problem *problem) {
    static const double two[8] = {1, 2};
    size_t count = 4711;
    tally_value values[TALLY_VALUES_MAX];
    const double *y = problem && problem->op == TALLY_DOT ? two : NULL;
    (void)values;
    check_error(tally_problem_values(problem, &count), wanted, "tally_problem_values");
    assert_int_equal(count, 4711);
    assert_int_equal(tally_problem_value_op(problem, 0), 0);
    VALUE_ERROR(wanted, tally_reduce(NULL, problem, two, y, 2, &value));
    VALUE_ERROR(wanted, tally_reduce(device, problem, NULL, NULL, 0, &value));
    VALUE_ERROR(wanted, tally_reduce_resident(device, problem, (void *)(uintptr_t)two,
                                              (void *)(uintptr_t)y, 2, &value));
    POINTER_ERROR(wanted, tally_state, tally_state_create(problem, &made));
    double seconds = -7;
    VALUE_ERROR(wanted, tally_device_time(device, problem, two, y, 2, &value, &seconds));
    assert_true(seconds == -7);
    check_error(tally_workspace(device, problem, 2, &count), wanted, "tally_workspace");
    assert_int_equal(count, 4711);
    const tally_call call = {.n = 0, .workspace = values, .results = values};
    check_error(tally_enqueue(device, problem, &call), wanted, "tally_enqueue");
}

static void test_bad_problems(void **unused) {
    (void)unused;
    const tally_operator good = {combine, NULL, ones, 0, NULL};
    bad_problem(TALLY_EINVAL, NULL);
    for (int i = 0; i < BAD_CODES; i++) {
        bad_problem(TALLY_EINVAL, ASK((tally_op)bad_codes[i], TALLY_F64));
        bad_problem(TALLY_ETYPE, ASK(TALLY_VAR, (tally_type)bad_codes[i]));
        if (bad_codes[i] == 0) continue;
        bad_problem(TALLY_ETYPE, ASK(TALLY_VAR, TALLY_F32, .out = (tally_type)bad_codes[i]));
        bad_problem(TALLY_EINVAL, ASK(TALLY_VAR, TALLY_F32, .also = {(tally_op)bad_codes[i]}));
        bad_problem(TALLY_EINVAL,
                    ASK(TALLY_VAR, TALLY_F32, .also = {TALLY_MAX, (tally_op)bad_codes[i]}));
    }
    static const double ddofs[] = {-1, -0x1p-1074, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < sizeof ddofs / sizeof *ddofs; i++)
        for (int op = TALLY_SUM; op <= TALLY_DESCRIBE; op++)
            bad_problem(TALLY_EINVAL, ASK((tally_op)op, TALLY_F32, .ddof = ddofs[i]));
    /* A user's operator where there is none, and the other way about. */
    bad_problem(TALLY_EINVAL, ASK(TALLY_USER, TALLY_F64));
    bad_problem(TALLY_EINVAL, ASK(TALLY_SUM, TALLY_F64, .also = {TALLY_USER}));
    bad_problem(TALLY_EINVAL, ASK(TALLY_SUM, TALLY_F64, .user = &good));
    bad_problem(TALLY_ETYPE, ASK(TALLY_USER, TALLY_F64, .user = &good, .also = {TALLY_PROD}));
    bad_problem(TALLY_ETYPE, ASK(TALLY_PROD, TALLY_F16, .user = &good, .also = {TALLY_USER}));
    /* Different bits of the same word. */
    bad_problem(TALLY_ETYPE, ASK(TALLY_AND, TALLY_U8, .also = {TALLY_OR}));
    bad_problem(TALLY_ETYPE, ASK(TALLY_SUM, TALLY_U8, .also = {TALLY_XOR, TALLY_MAX, TALLY_AND}));
    /* More values than any problem has: 9 * 4 = 36; 9 * 3 + 2 * 2 + 1 = 32 are allowed. */
    bad_problem(TALLY_EINVAL, ASK(TALLY_DESCRIBE, TALLY_F32,
                                  .also = {TALLY_DESCRIBE, TALLY_DESCRIBE, TALLY_DESCRIBE}));
    bad_problem(TALLY_EINVAL, ASK(TALLY_DESCRIBE, TALLY_F32,
                                  .also = {TALLY_DESCRIBE, TALLY_DESCRIBE, TALLY_MINMAX,
                                           TALLY_MINMAX, TALLY_MINMAX}));
    size_t count;
    assert_ok(tally_problem_values(
        ASK(TALLY_DESCRIBE, TALLY_F32,
            .also = {TALLY_DESCRIBE, TALLY_DESCRIBE, TALLY_MINMAX, TALLY_MINMAX, TALLY_VAR}),
        &count));
    assert_int_equal(count, TALLY_VALUES_MAX);
    assert_error(TALLY_EINVAL, tally_problem_values(ASK(TALLY_SUM, TALLY_F32), NULL));
    assert_int_equal(tally_problem_value_op(ASK(TALLY_MINMAX, TALLY_F32), 0), TALLY_MIN);
    assert_int_equal(tally_problem_value_op(ASK(TALLY_MINMAX, TALLY_F32), 1), TALLY_MAX);
    assert_int_equal(tally_problem_value_op(ASK(TALLY_MINMAX, TALLY_F32), 2), 0);
    assert_int_equal(tally_problem_value_op(ASK(TALLY_MINMAX, TALLY_F32), SIZE_MAX), 0);
}

/* Which results may be asked for in which type. */
static void test_result_types(void **unused) {
    (void)unused;
    for (int o = TALLY_SUM; o <= TALLY_DESCRIBE; o++)
        for (int t = TALLY_I8; t <= TALLY_F64; t++)
            for (int r = TALLY_I8; r <= TALLY_F64; r++)
                for (int fast = 0; fast < 2; fast++) {
                    const tally_op op = (tally_op)o;
                    const int of_floats = t >= TALLY_F16, to_float = r >= TALLY_F16;
                    const int wide = t <= TALLY_I64 ? TALLY_I64 : TALLY_U64;
                    int may;
                    switch (op) {
                    case TALLY_SUM:
                        may = of_floats ? fast ? r == t || r == TALLY_F64 : to_float
                                        : to_float || r == wide;
                        break;
                    case TALLY_MEAN:
                        may = of_floats && fast ? r == t || r == TALLY_F64 : to_float;
                        break;
                    case TALLY_VAR:
                    case TALLY_STD:
                    case TALLY_NORM2:
                        may = to_float;
                        break;
                    case TALLY_NORM1:
                    case TALLY_SUMSQ:
                    case TALLY_DOT:
                        may = to_float || (!of_floats && r == wide);
                        break;
                    case TALLY_PROD:
                    case TALLY_NORMINF:
                        may = r == (of_floats ? t : wide);
                        break;
                    case TALLY_MIN:
                    case TALLY_MAX:
                    case TALLY_AND:
                    case TALLY_OR:
                    case TALLY_XOR:
                    case TALLY_MINMAX:
                        may = r == t;
                        break;
                    case TALLY_ANY:
                    case TALLY_ALL:
                        may = r == TALLY_U8;
                        break;
                    case TALLY_DESCRIBE: /* for those of the nine that may */
                        may = to_float || r == t || r == TALLY_U64 || r == wide;
                        break;
                    default:
                        may = r == TALLY_U64;
                    }
                    size_t count = 0;
                    const tally_status s = tally_problem_values(
                        ASK(op, (tally_type)t, .out = (tally_type)r, .fast = fast), &count);
                    if ((s == TALLY_OK) != may || (s != TALLY_OK && s != TALLY_ETYPE))
                        fail_msg("%s of %s as %s%s: %s", tally_op_name(op),
                                 tally_type_name((tally_type)t), tally_type_name((tally_type)r),
                                 fast ? ", fast" : "", tally_status_text(s));
                    if (s == TALLY_OK)
                        assert_int_equal(count, op == TALLY_DESCRIBE ? 9
                                                : op == TALLY_MINMAX ? 2
                                                                     : 1);
                }
}

static void test_device(void **state) {
    (void)state;
    tally_device_info info, same;
    assert_error(TALLY_EINVAL, tally_open("cpu", NULL));
    POINTER_ERROR(TALLY_EINVAL, tally_device, tally_open(NULL, &made));
    POINTER_ERROR(TALLY_EDEVICE, tally_device, tally_open("", &made));
    POINTER_ERROR(TALLY_EDEVICE, tally_device, tally_open("abacus", &made));
    POINTER_ERROR(TALLY_EDEVICE, tally_device, tally_open("cpu:beads=7", &made));
    memset(&info, 0x5a, sizeof info);
    memset(&same, 0x5a, sizeof same);
    assert_error(TALLY_EINVAL, tally_device_describe(NULL, &info));
    assert_memory_equal(&info, &same, sizeof info);
    assert_error(TALLY_EINVAL, tally_device_describe(device, NULL));
    assert_error(TALLY_EINVAL, tally_device_list(NULL, 0, NULL));
    size_t count = 4711;
    assert_error(TALLY_EINVAL, tally_device_list(NULL, 3, &count));
    assert_int_equal(count, 4711);
    double seconds = -7;
    assert_error(TALLY_EINVAL, tally_device_read(NULL, ones, sizeof ones, &seconds));
    assert_error(TALLY_EINVAL, tally_device_read(device, NULL, 8, &seconds));
    assert_error(TALLY_EINVAL, tally_device_read(device, ones, sizeof ones, NULL));
    assert_true(seconds == -7);
    tally_close(NULL);
}

static void test_names(void **state) {
    (void)state;
    tally_type type = (tally_type)42;
    tally_op op = (tally_op)42;
    assert_error(TALLY_EINVAL, tally_type_parse(NULL, &type));
    assert_error(TALLY_EINVAL, tally_type_parse("f64", NULL));
    assert_error(TALLY_EINVAL, tally_op_parse(NULL, &op));
    assert_error(TALLY_EINVAL, tally_op_parse("sum", NULL));
    VALUE_EITHER(TALLY_EINVAL, TALLY_ETYPE, tally_type_parse("f128", &type));
    VALUE_EITHER(TALLY_EINVAL, TALLY_ETYPE, tally_op_parse("average", &op));
    VALUE_EITHER(TALLY_EINVAL, TALLY_ETYPE, tally_op_parse("user", &op));
    assert_int_equal(type, 42);
    assert_int_equal(op, 42);
    for (int i = 0; i < BAD_CODES; i++) {
        assert_null(tally_type_name((tally_type)bad_codes[i]));
        assert_null(tally_op_name((tally_op)bad_codes[i]));
        assert_int_equal(tally_type_size((tally_type)bad_codes[i]), 0);
        assert_non_null(tally_status_text((tally_status)bad_codes[i]));
    }
}

static void test_no_value(void **state) {
    (void)state;
    char text[8];
    assert_int_equal(tally_value_bits(NULL), 0);
    assert_true(isnan(tally_value_double(NULL)));
    assert_int_equal(tally_value_print(NULL, text, sizeof text), 4);
    assert_string_equal(text, "none");
    assert_int_equal(tally_value_print(&(tally_value){.type = TALLY_U8, .as.u8 = 42}, NULL, 9), 2);
}

static void test_convert(void **state) {
    (void)state;
    const tally_value some = {.type = TALLY_U8, .as.u8 = 42}, no_type = {.type = 0};
    tally_value out = {.type = TALLY_F64, .as.f64 = 7};
    assert_int_equal(tally_value_convert(NULL, TALLY_F32, &out), TALLY_EINVAL);
    assert_int_equal(tally_value_convert(&some, TALLY_F32, NULL), TALLY_EINVAL);
    assert_int_equal(tally_value_convert(&no_type, TALLY_F32, &out), TALLY_ETYPE);
    for (size_t i = 0; i < sizeof bad_codes / sizeof *bad_codes; i++)
        assert_int_equal(tally_value_convert(&some, (tally_type)bad_codes[i], &out), TALLY_ETYPE);
    assert_true(out.type == TALLY_F64 && out.as.f64 == 7);
    assert_int_equal(tally_value_convert(&some, TALLY_I16, &out), TALLY_OK);
    assert_true(out.type == TALLY_I16 && out.as.i16 == 42);
}

static void test_print_state(void **state) {
    (void)state;
    tally_problem sum = TALLY_DEFAULTS;
    sum.op = TALLY_SUM;
    sum.type = TALLY_F64;
    tally_state *s;
    const double tenths[3] = {0.1, 0.1, 0.1};
    char text[80];
    size_t length;
    assert_int_equal(tally_state_create(&sum, &s), TALLY_OK);
    assert_int_equal(tally_state_feed(s, NULL, tenths, NULL, 3), TALLY_OK);
    assert_int_equal(tally_state_print(NULL, 0, text, sizeof text, &length), TALLY_EINVAL);
    assert_int_equal(tally_state_print(s, 0, text, sizeof text, NULL), TALLY_EINVAL);
    assert_int_equal(tally_state_print(s, 1, text, sizeof text, &length), TALLY_EINVAL);
    assert_int_equal(tally_state_print(s, 0, text, sizeof text, &length), TALLY_OK);
    assert_string_equal(text, "0.3000000000000000166533453693773481063544750213623046875");
    tally_state_destroy(s);
}

static void test_error_before_any(void **state) {
    (void)state;
    assert_string_equal(tally_error(), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_before_any),
        cmocka_unit_test(test_no_value),
        cmocka_unit_test(test_convert),
        cmocka_unit_test(test_print_state),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_reduce_user),
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_exact_state),
        cmocka_unit_test(test_bad_problems),
        cmocka_unit_test(test_result_types),
        cmocka_unit_test(test_device),
    };
    if (tally_open("cpu:threads=2", &device) != TALLY_OK) {
        fprintf(stderr, "cpu:threads=2: %s\n", tally_error());
        return 1;
    }
    int failed = cmocka_run_group_tests_name("arguments", tests, NULL, NULL);
    tally_close(device);
    return failed;
}
