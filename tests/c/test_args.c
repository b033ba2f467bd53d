/*
 * test_args.c - every public function, handed what its contract does not allow.
 *
 * The right status, one line of text, and outputs that were not touched. Where the header leaves a
 * choice (an operator that does not exist: EINVAL or ETYPE), either is taken.
 */
#include "testing.h"

#include <limits.h>

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
        VALUE_ERROR(TALLY_EINVAL, tally_reduce(dev, TALLY_SUM, TALLY_F64, NULL, 1, NULL, &value));
        assert_error(TALLY_EINVAL, tally_reduce(dev, TALLY_SUM, TALLY_F64, ones, 4, NULL, NULL));
        assert_error(TALLY_EINVAL, tally_reduce(dev, TALLY_SUM, TALLY_F64, NULL, 0, NULL, NULL));
        for (int i = 0; i < 4; i++)
            for (int op = TALLY_SUM; op <= TALLY_XOR; op++)
                VALUE_ERROR(TALLY_EINVAL, tally_reduce(dev, (tally_op)op, TALLY_F64, ones,
                                                       too_many[i], NULL, &value));
        VALUE_ERROR(TALLY_EINVAL,
                    tally_reduce(dev, TALLY_SUM, TALLY_I16, ones, SIZE_MAX / 2 + 1, NULL, &value));
        for (int i = 0; i < BAD_CODES; i++) {
            const tally_type type = (tally_type)bad_codes[i];
            const tally_options options = {0, type}, quickly = {1, type};
            VALUE_EITHER(
                TALLY_EINVAL, TALLY_ETYPE,
                tally_reduce(dev, (tally_op)bad_codes[i], TALLY_F64, ones, 4, NULL, &value));
            VALUE_EITHER(TALLY_EINVAL, TALLY_ETYPE,
                         tally_reduce(dev, TALLY_SUM, type, ones, 4, NULL, &value));
            VALUE_EITHER(TALLY_EINVAL, TALLY_ETYPE,
                         tally_reduce(dev, TALLY_XOR, type, ones, 0, NULL, &value));
            if (bad_codes[i] == 0) continue; /* the natural type */
            VALUE_EITHER(TALLY_EINVAL, TALLY_ETYPE,
                         tally_reduce(dev, TALLY_SUM, TALLY_F64, ones, 4, &options, &value));
            VALUE_EITHER(TALLY_EINVAL, TALLY_ETYPE,
                         tally_reduce(dev, TALLY_SUM, TALLY_F32, ones, 4, &quickly, &value));
            VALUE_EITHER(TALLY_EINVAL, TALLY_ETYPE,
                         tally_reduce(dev, TALLY_MAX, TALLY_I32, ones, 4, &options, &value));
        }
        const tally_options to_i64 = {0, TALLY_I64}, to_f32 = {0, TALLY_F32};
        VALUE_ERROR(TALLY_ETYPE, tally_reduce(dev, TALLY_SUM, TALLY_F64, ones, 4, &to_i64, &value));
        VALUE_ERROR(TALLY_ETYPE,
                    tally_reduce(dev, TALLY_PROD, TALLY_F64, ones, 4, &to_f32, &value));
        VALUE_ERROR(TALLY_ETYPE, tally_reduce(dev, TALLY_MIN, TALLY_F64, NULL, 0, &to_f32, &value));
        VALUE_ERROR(TALLY_ERANGE, tally_reduce(dev, TALLY_SUM, TALLY_I64,
                                               (const int64_t[]){INT64_MAX, 1}, 2, NULL, &value));
        VALUE_ERROR(TALLY_ERANGE, tally_reduce(dev, TALLY_PROD, TALLY_U64,
                                               (const uint64_t[]){UINT64_MAX, 2}, 2, NULL, &value));
        assert_ok(tally_reduce(dev, TALLY_SUM, TALLY_F64, NULL, 0, NULL, &value));
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
        VALUE_ERROR(TALLY_EINVAL, tally_reduce_user(dev, NULL, TALLY_F64, ones, 4, &value));
        VALUE_ERROR(TALLY_EINVAL, tally_reduce_user(dev, NULL, TALLY_F64, NULL, 0, &value));
        VALUE_ERROR(TALLY_EINVAL, tally_reduce_user(dev, &no_combine, TALLY_F64, ones, 4, &value));
        VALUE_ERROR(TALLY_EINVAL, tally_reduce_user(dev, &no_identity, TALLY_F64, ones, 4, &value));
        VALUE_ERROR(TALLY_EINVAL, tally_reduce_user(dev, &no_identity, TALLY_F64, NULL, 0, &value));
        VALUE_ERROR(TALLY_EINVAL, tally_reduce_user(dev, &good, TALLY_F64, NULL, 4, &value));
        assert_error(TALLY_EINVAL, tally_reduce_user(dev, &good, TALLY_F64, ones, 4, NULL));
        for (int i = 0; i < 4; i++)
            VALUE_ERROR(TALLY_EINVAL,
                        tally_reduce_user(dev, &good, TALLY_F64, ones, too_many[i], &value));
        for (int i = 0; i < BAD_CODES; i++)
            VALUE_EITHER(TALLY_EINVAL, TALLY_ETYPE,
                         tally_reduce_user(dev, &good, (tally_type)bad_codes[i], ones, 4, &value));
    }
}

static void test_stream(void **state) {
    (void)state;
    tally_stream *stream;
    const tally_operator good = {combine, NULL, ones, 0, NULL},
                         no_combine = {NULL, NULL, ones, 0, NULL},
                         no_identity = {combine, NULL, NULL, 0, NULL};
    const tally_options to_i64 = {0, TALLY_I64}, bad = {0, (tally_type)77};
    assert_error(TALLY_EINVAL, tally_stream_create(device, TALLY_SUM, TALLY_F64, NULL, NULL));
    assert_error(TALLY_EINVAL, tally_stream_create_user(device, &good, TALLY_F64, NULL));
    POINTER_ERROR(TALLY_ETYPE, tally_stream,
                  tally_stream_create(NULL, TALLY_SUM, TALLY_F64, &to_i64, &made));
    POINTER_ERROR(TALLY_ETYPE, tally_stream,
                  tally_stream_create(NULL, TALLY_PROD, TALLY_F64, &to_i64, &made));
    POINTER_EITHER(TALLY_EINVAL, TALLY_ETYPE, tally_stream,
                   tally_stream_create(NULL, TALLY_SUM, TALLY_F64, &bad, &made));
    for (int i = 0; i < BAD_CODES; i++) {
        POINTER_EITHER(TALLY_EINVAL, TALLY_ETYPE, tally_stream,
                       tally_stream_create(NULL, (tally_op)bad_codes[i], TALLY_F64, NULL, &made));
        POINTER_EITHER(TALLY_EINVAL, TALLY_ETYPE, tally_stream,
                       tally_stream_create(NULL, TALLY_SUM, (tally_type)bad_codes[i], NULL, &made));
        POINTER_EITHER(TALLY_EINVAL, TALLY_ETYPE, tally_stream,
                       tally_stream_create_user(NULL, &good, (tally_type)bad_codes[i], &made));
    }
    POINTER_ERROR(TALLY_EINVAL, tally_stream,
                  tally_stream_create_user(NULL, NULL, TALLY_F64, &made));
    POINTER_ERROR(TALLY_EINVAL, tally_stream,
                  tally_stream_create_user(NULL, &no_combine, TALLY_F64, &made));
    POINTER_ERROR(TALLY_EINVAL, tally_stream,
                  tally_stream_create_user(NULL, &no_identity, TALLY_F64, &made));

    assert_error(TALLY_EINVAL, tally_stream_feed(NULL, ones, 4));
    VALUE_ERROR(TALLY_EINVAL, tally_stream_result(NULL, &value));
    for (int user = 0; user < 2; user++) {
        assert_ok(user ? tally_stream_create_user(device, &good, TALLY_F64, &stream)
                       : tally_stream_create(device, TALLY_SUM, TALLY_F64, NULL, &stream));
        assert_ok(tally_stream_feed(stream, ones, 3));
        assert_error(TALLY_EINVAL, tally_stream_feed(stream, NULL, 1));
        for (int i = 0; i < 4; i++)
            assert_error(TALLY_EINVAL, tally_stream_feed(stream, ones, too_many[i]));
        assert_error(TALLY_EINVAL, tally_stream_result(stream, NULL));
        /* none of which did it any harm */
        assert_ok(tally_stream_feed(stream, NULL, 0));
        assert_ok(tally_stream_result(stream, &value));
        assert_true(value.type == TALLY_F64 && value.as.f64 == (user ? 1 : 3));
        tally_stream_destroy(stream);
    }
    tally_stream_destroy(NULL);
}

static void test_accumulator(void **state) {
    (void)state;
    tally_accumulator *acc, *other;
    unsigned char saved[TALLY_ACCUMULATOR_BYTES], again[TALLY_ACCUMULATOR_BYTES];
    assert_error(TALLY_EINVAL, tally_accumulator_create(NULL));
    assert_ok(tally_accumulator_create(&acc));
    assert_ok(tally_accumulator_add(acc, device, TALLY_F64, ones, 4));
    tally_accumulator_save(acc, saved);

    tally_device *const both[] = {NULL, device};
    for (int d = 0; d < 2; d++) {
        assert_error(TALLY_EINVAL, tally_accumulator_add(NULL, both[d], TALLY_F64, ones, 4));
        assert_error(TALLY_EINVAL, tally_accumulator_add(acc, both[d], TALLY_F64, NULL, 4));
        for (int i = 0; i < 4; i++)
            assert_error(TALLY_EINVAL,
                         tally_accumulator_add(acc, both[d], TALLY_F64, ones, too_many[i]));
        for (int type = TALLY_I8; type <= TALLY_U64; type++) {
            assert_error(TALLY_ETYPE,
                         tally_accumulator_add(acc, both[d], (tally_type)type, ones, 4));
            VALUE_ERROR(TALLY_ETYPE, tally_accumulator_round(acc, (tally_type)type, &value));
        }
        for (int i = 0; i < BAD_CODES; i++) {
            const tally_type type = (tally_type)bad_codes[i];
            const tally_status added = tally_accumulator_add(acc, both[d], type, ones, 4);
            check_error(added, added == TALLY_ETYPE ? added : TALLY_EINVAL, "accumulator_add");
            VALUE_EITHER(TALLY_EINVAL, TALLY_ETYPE, tally_accumulator_round(acc, type, &value));
        }
    }
    assert_error(TALLY_EINVAL, tally_accumulator_merge(NULL, acc));
    assert_error(TALLY_EINVAL, tally_accumulator_merge(acc, NULL));
    assert_error(TALLY_EINVAL, tally_accumulator_merge(NULL, NULL));
    VALUE_ERROR(TALLY_EINVAL, tally_accumulator_round(NULL, TALLY_F64, &value));
    assert_error(TALLY_EINVAL, tally_accumulator_round(acc, TALLY_F64, NULL));
    assert_error(TALLY_EINVAL, tally_accumulator_load(saved, sizeof saved, NULL));
    POINTER_ERROR(TALLY_EINVAL, tally_accumulator, tally_accumulator_load(NULL, 304, &made));
    static const size_t sizes[] = {0, 1, 303, 305, SIZE_MAX};
    for (int i = 0; i < 5; i++)
        POINTER_EITHER(TALLY_EFORMAT, TALLY_EINVAL, tally_accumulator,
                       tally_accumulator_load(saved, sizes[i], &made));
    saved[0] ^= 1;
    POINTER_ERROR(TALLY_EFORMAT, tally_accumulator,
                  tally_accumulator_load(saved, sizeof saved, &made));
    saved[0] ^= 1;
    tally_accumulator_save(acc, again);
    assert_memory_equal(saved, again, sizeof saved);
    assert_int_equal(tally_accumulator_count(acc), 4);
    assert_ok(tally_accumulator_load(saved, sizeof saved, &other));
    tally_accumulator_destroy(other);
    tally_accumulator_destroy(acc);
    tally_accumulator_destroy(NULL);
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
    VALUE_EITHER(TALLY_EINVAL, TALLY_ETYPE, tally_op_parse("mean", &op));
    assert_int_equal(type, 42);
    assert_int_equal(op, 42);
    for (int i = 0; i < BAD_CODES; i++) {
        assert_null(tally_type_name((tally_type)bad_codes[i]));
        assert_null(tally_op_name((tally_op)bad_codes[i]));
        assert_int_equal(tally_type_size((tally_type)bad_codes[i]), 0);
        assert_non_null(tally_status_text((tally_status)bad_codes[i]));
    }
}

static void test_error_before_any(void **state) {
    (void)state;
    assert_string_equal(tally_error(), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_before_any), cmocka_unit_test(test_names),
        cmocka_unit_test(test_reduce),           cmocka_unit_test(test_reduce_user),
        cmocka_unit_test(test_stream),           cmocka_unit_test(test_accumulator),
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
