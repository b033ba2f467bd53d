/*
 * test_ladder.c - the ladder's public calls with wrong arguments, the steps that a caller is told of, and
 * the check that tells a wrong result from a rounded one.
 *
 * That check is internal and its names are not exported, so its source is included here.
 */
#include "../c/testing.h"

#include <fenv.h>
#include <math.h>
#include <unistd.h>

#include "ladder/check.c"

const struct type_row type_rows[TYPE_ROWS] = {
#define TYPE(NAME, name, kind, bits) [TALLY_##NAME] = {#name, KIND_##kind, bits},
    TALLY_TYPES(TYPE)
#undef TYPE
};

double sequential_magnitude(tally_type type, const void *x, uint64_t n) {
    (void)type, (void)x;
    return (double)n; /* the tests' elements are ones */
}

/* ---- The public calls ---- */

static const float ones[300] = {1, 1, 1, 1, 1, 1, 1, 1};

static tally_ladder_options options(size_t n) {
    return (tally_ladder_options){
        .op = TALLY_SUM, .type = TALLY_F32, .x = ones, .n = n, .block = 32};
}

static void test_arguments(void **state) {
    (void)state;
    tally_ladder_report report = {.count = 77};
    tally_ladder_row row;
    tally_ladder_options o = options(8);
    assert_error(TALLY_EINVAL, tally_ladder_run("model", NULL, &report));
    assert_error(TALLY_EINVAL, tally_ladder_run("model", &o, NULL));
    assert_error(TALLY_EDEVICE, tally_ladder_run("model:9", &o, &report));
    assert_error(TALLY_EDEVICE, tally_ladder_run("abacus", &o, &report));
    o.block = 33;
    assert_error(TALLY_EINVAL, tally_ladder_run("model", &o, &report));
    o.block = 2048;
    assert_error(TALLY_EINVAL, tally_ladder_check("model", &o));
    o = options(8), o.finish = (tally_finish)9;
    assert_error(TALLY_EINVAL, tally_ladder_check("model", &o));
    o = options(8), o.op = (tally_op)99;
    assert_error(TALLY_EINVAL, tally_ladder_check("model", &o));
    o = options(8), o.op = TALLY_MEAN; /* no rung is for it */
    assert_error(TALLY_EUNSUPPORTED, tally_ladder_check("model", &o));
    o = options(8), o.x = NULL;
    assert_error(TALLY_EINVAL, tally_ladder_run("model", &o, &report));
    assert_error(TALLY_EINVAL, tally_ladder_explain("shared", &o, NULL, NULL, &row));
    o = options(8);
    assert_error(TALLY_EINVAL, tally_ladder_explain("frob", &o, NULL, NULL, &row));
    assert_error(TALLY_EINVAL, tally_ladder_explain(NULL, &o, NULL, NULL, &row));
    o = options(8);
    o.only = (const char *const[]){"shared", NULL};
    o.only_count = 2;
    assert_error(TALLY_EINVAL, tally_ladder_run("model", &o, &report));
    assert_error(TALLY_EINVAL, tally_ladder_check("model", &o));
    assert_error(TALLY_EUNSUPPORTED, tally_ladder_explain("tally", &o, NULL, NULL, &row));
    const char *const only[] = {"sequential"};
    o.only = only, o.only_count = 1;
    assert_error(TALLY_EUNSUPPORTED, tally_ladder_run("model", &o, &report));
    assert_int_equal(report.count, 77); /* untouched by failures */
}

static void test_names(void **state) {
    (void)state;
    size_t count = 0;
    tally_finish finish;
    for (; tally_ladder_rung(count); count++)
        assert_true(strlen(tally_ladder_rung(count)->idea) > 0);
    assert_string_equal(tally_ladder_rung(0)->name, "sequential");
    assert_string_equal(tally_ladder_rung(count - 1)->name, "tally");
    assert_true(count <= TALLY_LADDER_ROWS);
    for (int i = 0; i < 3; i++) {
        assert_ok(tally_finish_parse(tally_finish_name((tally_finish)i), &finish));
        assert_int_equal(finish, i);
    }
    assert_null(tally_finish_name((tally_finish)3));
    assert_error(TALLY_EINVAL, tally_finish_parse("later", &finish));
}

struct sums {
    uint64_t operations, issued;
};

static void add_operations(void *context, const tally_ladder_step *step) {
    struct sums *sums = context;
    for (unsigned w = 0; w < step->warps; w++) {
        sums->operations += step->warp[w].operations;
        sums->issued += step->warp[w].issued;
    }
}

/* What the steps say adds up to what the row says. */
static void test_steps(void **state) {
    (void)state;
    const tally_ladder_options o = options(300);
    for (size_t i = 0; tally_ladder_rung(i); i++) {
        struct sums sums = {0, 0};
        tally_ladder_row row;
        if (!tally_ladder_rung(i)->is_kernel) continue;
        assert_ok(
            tally_ladder_explain(tally_ladder_rung(i)->name, &o, add_operations, &sums, &row));
        assert_true(row.correct && row.ulp_error == 0 && row.value.as.f32 == 8);
        assert_int_equal(sums.operations, row.counts.operations);
        assert_int_equal(sums.issued, row.counts.issued);
    }
}

/* ---- Efficiency ---- */

/* No rung does fewer operations than are useful, nor more than it has slots for; so useful / issued, the
 * efficiency, is at most 1. */
static void check_efficiency(const tally_rung *rung, const tally_ladder_options *o) {
    tally_ladder_row row;
    assert_ok(tally_ladder_explain(rung->name, o, NULL, NULL, &row));
    const tally_ladder_counts *c = &row.counts;
    assert_true(row.correct);
    if (o->finish == TALLY_FINISH_RELAUNCH)
        assert_int_equal(c->useful, o->n > 0 ? o->n - 1 : 0);
    else
        assert_true(c->useful <= o->n && c->useful + c->blocks >= o->n);
    assert_true(c->useful <= c->operations && c->operations <= c->issued);
    assert_true(c->slots <= c->issued && c->issued % 32 == 0);
    assert_true(c->atomics >= (o->finish == TALLY_FINISH_ATOMIC));
}

static void test_efficiency(void **state) {
    static const size_t lengths[] = {0, 1, 2, 3, 31, 33, 64, 65, 255, 300};
    static const unsigned blocks[] = {1, 2, 8, 32, 64, 1024}, factors[] = {1, 3, 8};
    (void)state;
    for (size_t i = 0; tally_ladder_rung(i); i++) {
        const tally_rung *rung = tally_ladder_rung(i);
        const unsigned variants = strcmp(rung->name, "coarsened") == 0 ? 3 : 1;
        if (!rung->is_kernel) continue;
        for (unsigned k = 0; k < 10 * 6 * 3 * variants; k++) {
            tally_ladder_options o = options(lengths[k % 10]);
            o.block = blocks[k / 10 % 6];
            o.finish = (tally_finish)(k / 60 % 3);
            o.coarsen = factors[k / 180];
            check_efficiency(rung, &o);
        }
    }
}

/* A step callback may use any device, the model too. (An alarm ends the test if it waits forever.) */
static void reduce_on_model(void *context, const tally_ladder_step *step) {
    tally_device *model;
    tally_value sum = {0};
    (void)step;
    if (tally_open("model", &model) != TALLY_OK) return;
    const tally_problem problem = {.op = TALLY_SUM, .type = TALLY_F32};
    if (tally_reduce(model, &problem, ones, NULL, 300, &sum) == TALLY_OK && sum.as.f32 == 8)
        ++*(unsigned *)context;
    tally_close(model);
}

static void test_step_reduces(void **state) {
    (void)state;
    const tally_ladder_options o = options(300);
    unsigned reduced = 0;
    tally_ladder_row row;
    alarm(60);
    assert_ok(tally_ladder_explain("shared", &o, reduce_on_model, &reduced, &row));
    alarm(0);
    assert_true(row.correct && row.value.as.f32 == 8);
    assert_true(reduced > 0);
}

/* ---- The floating environment ---- */

static void note_rounding(void *context, const tally_ladder_step *step) {
    (void)step;
    *(int *)context = fegetround();
}

/* A rung's bits are the same whatever way the caller rounds, and his flags stay as they are. */
static void test_floating_environment(void **state) {
    static float thirds[300];
    static const char *const only[] = {"interleaved-modulo", "shuffle", "tally"};
    tally_ladder_options o = options(300);
    tally_ladder_report report[2];
    tally_ladder_row row[2];
    int rounding = -1;
    (void)state;
    for (int i = 0; i < 300; i++)
        thirds[i] = 1.0f / (float)(3 + i);
    o.x = thirds;
    o.only = only;
    o.only_count = 3;
    for (int i = 0; i < 2; i++) {
        fesetround(i ? FE_UPWARD : FE_TONEAREST);
        feclearexcept(FE_ALL_EXCEPT);
        const tally_status ran = tally_ladder_run("model", &o, &report[i]);
        const tally_status explained =
            tally_ladder_explain("shared", &o, note_rounding, &rounding, &row[i]);
        const int flags = fetestexcept(FE_ALL_EXCEPT), kept = fegetround();
        fesetround(FE_TONEAREST);
        assert_ok(ran);
        assert_ok(explained);
        assert_int_equal(flags, 0);
        assert_int_equal(kept, i ? FE_UPWARD : FE_TONEAREST);
        assert_int_equal(rounding, kept); /* a callback is the caller's own code */
    }
    for (size_t i = 0; i < 3; i++)
        assert_true(report[0].rows[i].value.as.f32 == report[1].rows[i].value.as.f32);
    assert_true(row[0].value.as.f32 == row[1].value.as.f32);
}

/* ---- The check ---- */

static tally_ladder_row checked(tally_op op, tally_value right, tally_value got, uint64_t depth) {
    const struct reference r = {
        .op = op, .type = right.type, .value = right, .magnitude = 1000, .n = 1000};
    tally_ladder_row row = {.name = "test"};
    reference_check(&r, &got, depth, &row);
    return row;
}

static tally_value f32(float x) {
    return (tally_value){.type = TALLY_F32, .as.f32 = x};
}

static tally_value i64(int64_t x) {
    return (tally_value){.type = TALLY_I64, .as.i64 = x};
}

static void test_floating_sums(void **state) {
    (void)state;
    const tally_value right = f32(1000);
    tally_ladder_row row = checked(TALLY_SUM, right, right, 10);
    assert_true(row.correct && row.ulp_error == 0);
    row = checked(TALLY_SUM, right, f32(nextafterf(1000, 2000)), 10);
    assert_true(row.correct && row.ulp_error == 1);
    assert_true(checked(TALLY_SUM, right, f32(1000.0006f), 10).correct);
    assert_false(checked(TALLY_SUM, right, f32(1000.0009f), 10).correct); /* 10 * 2^-24 * 1000 */
    assert_false(checked(TALLY_SUM, right, f32(999), 10).correct); /* an element is missing */
    assert_false(checked(TALLY_SUM, right, f32(nextafterf(1000, 0)), 0).correct);
    row = checked(TALLY_SUM, right, f32(NAN), 10);
    assert_true(!row.correct && isnan(row.ulp_error));
    assert_false(checked(TALLY_SUM, right, f32(INFINITY), 1u << 30).correct);
    assert_true(checked(TALLY_SUM, f32(INFINITY), f32(INFINITY), 10).correct);
    assert_true(checked(TALLY_SUM, f32(0), f32(-0.0f), 10).ulp_error == 1);
}

static void test_one_right_answer(void **state) {
    (void)state;
    assert_true(checked(TALLY_SUM, i64(5), i64(5), 10).correct);
    assert_false(checked(TALLY_SUM, i64(5), i64(6), 10).correct);
    assert_false(checked(TALLY_MIN, f32(1), f32(nextafterf(1, 2)), 10).correct);
    assert_false(checked(TALLY_MIN, f32(0), f32(-0.0f), 10).correct);
    assert_true(checked(TALLY_PROD, f32(1), f32(nextafterf(1, 2)), 10).correct);
    assert_false(checked(TALLY_PROD, f32(1), f32(-1), 10).correct);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments),     cmocka_unit_test(test_names),
        cmocka_unit_test(test_steps),         cmocka_unit_test(test_efficiency),
        cmocka_unit_test(test_step_reduces),  cmocka_unit_test(test_floating_environment),
        cmocka_unit_test(test_floating_sums), cmocka_unit_test(test_one_right_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
