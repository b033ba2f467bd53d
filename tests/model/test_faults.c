/*
 * test_faults.c - each of the model's checks fires on a kernel broken on purpose (broken.c), names
 * kernel, block, lanes and source line, and stays quiet on the right neighbour.
 */
#include "broken.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static model_device *device;

static int set_up(void **state) {
    (void)state;
    return model_open(&device);
}

static int tear_down(void **state) {
    (void)state;
    model_close(device);
    return 0;
}

static model_status run(unsigned kernel, unsigned grid, unsigned block, void *const *arguments) {
    const model_launch launch = {
        .kernel = broken_kernels[kernel], .grid = grid, .block = block, .arguments = arguments};
    return model_run(device, &launch, NULL);
}

static void *buffer(size_t bytes) {
    void *memory;
    assert_int_equal(model_allocate(device, bytes, &memory), MODEL_OK);
    return memory;
}

/* The number of broken.c's line that has "[mark]". */
static unsigned line_of(const char *mark) {
    FILE *file = fopen(BROKEN_SOURCE, "r");
    assert_non_null(file);
    char line[256];
    unsigned number = 0, found = 0;
    while (!found && fgets(line, sizeof line, file)) {
        number++;
        const char *open = strrchr(line, '[');
        if (open && strncmp(open + 1, mark, strlen(mark)) == 0 && open[1 + strlen(mark)] == ']')
            found = number;
    }
    fclose(file);
    assert_int_not_equal(found, 0);
    return found;
}

static const model_fault *expect(model_fault_kind kind, unsigned block, unsigned lane,
                                 const char *mark) {
    const model_fault *fault = model_last_fault(device);
    assert_int_equal(fault->kind, kind);
    assert_int_equal(fault->here.block, block);
    assert_int_equal(fault->here.lane, lane);
    assert_string_equal(model_error(device), fault->text);
    assert_non_null(strstr(fault->text, fault->kernel));
    if (fault->here.line) { /* a build without debugging information knows no lines */
        assert_string_equal(fault->here.file, "broken.c");
        assert_int_equal(fault->here.line, line_of(mark));
    }
    print_message("%s\n", fault->text);
    return fault;
}

static void expect_other(const model_fault *fault, unsigned block, unsigned lane,
                         const char *mark) {
    assert_int_equal(fault->other.block, block);
    assert_int_equal(fault->other.lane, lane);
    if (fault->other.line) assert_int_equal(fault->other.line, line_of(mark));
}

static void test_barriers(void **state) {
    (void)state;
    void *out = buffer(64 * 4);
    void *arguments[] = {&out};
    assert_int_equal(run(BROKEN_barrier_in_branch, 1, 64, arguments), MODEL_EFAULT);
    const model_fault *fault = expect(MODEL_FAULT_BARRIER, 0, 0, "barrier in branch");
    assert_int_equal(fault->other.lane, 20);
    assert_non_null(strstr(fault->text, "lanes 0-19: waiting at a barrier"));
    assert_non_null(strstr(fault->text, "lanes 20-63 left the kernel"));
    assert_int_equal(run(BROKEN_barrier_in_branch, 1, 20, arguments), MODEL_OK);
    assert_int_equal(model_last_fault(device)->kind, MODEL_FAULT_NONE);

    assert_int_equal(run(BROKEN_two_barriers, 1, 8, arguments), MODEL_EFAULT);
    fault = expect(MODEL_FAULT_BARRIER, 0, 0, "even barrier");
    expect_other(fault, 0, 1, "odd barrier");
    assert_non_null(strstr(fault->text, "lanes 1, 3, 5, 7 wait at a barrier"));
}

static void test_shuffles(void **state) {
    (void)state;
    void *out = buffer(64 * 4);
    void *arguments[] = {&out};
    assert_int_equal(run(BROKEN_shuffle_in_branch, 1, 64, arguments), MODEL_EFAULT);
    const model_fault *fault = expect(MODEL_FAULT_SHUFFLE, 0, 0, "shuffle in branch");
    assert_int_equal(fault->other.lane, 16);

    uint32_t got[32];
    assert_int_equal(run(BROKEN_shuffle_half_warp, 1, 32, arguments), MODEL_OK);
    assert_int_equal(model_read(device, got, out, sizeof got), MODEL_OK);
    assert_int_equal(got[3], 11);
    assert_int_equal(got[12], ~12u); /* lane 20 takes no part: no useful value */
    assert_int_equal(got[20], 21);
}

static void test_addresses(void **state) {
    (void)state;
    void *x = buffer(32 * 4), *out = buffer(64 * 4), *null = NULL;
    assert_int_equal(model_fill(device, x, 0, 32 * 4), MODEL_OK);
    void *arguments[] = {&x, &out};
    assert_int_equal(run(BROKEN_past_the_end, 1, 31, arguments), MODEL_OK);
    assert_int_equal(run(BROKEN_past_the_end, 1, 32, arguments), MODEL_EFAULT);
    const model_fault *fault = expect(MODEL_FAULT_BOUNDS, 0, 31, "past the end");
    assert_int_equal(fault->size, 4);
    assert_non_null(strstr(fault->text, "0 bytes past the end of one of 128"));

    assert_int_equal(run(BROKEN_past_shared, 1, 32, (void *[]){&out}), MODEL_OK);
    assert_int_equal(run(BROKEN_past_shared, 1, 33, (void *[]){&out}), MODEL_EFAULT);
    expect(MODEL_FAULT_BOUNDS, 0, 32, "past shared");

    assert_int_equal(run(BROKEN_null_pointer, 1, 1, (void *[]){&null}), MODEL_EFAULT);
    expect(MODEL_FAULT_BOUNDS, 0, 0, "null");

    assert_int_equal(run(BROKEN_misaligned, 1, 1, arguments), MODEL_EFAULT);
    expect(MODEL_FAULT_ALIGNMENT, 0, 0, "misaligned");

    assert_int_equal(model_free(device, x), MODEL_OK);
    assert_int_equal(run(BROKEN_past_the_end, 1, 1, arguments), MODEL_EFAULT);
    expect(MODEL_FAULT_BOUNDS, 0, 0, "past the end");
}

/* A guard within a buffer stops kernels, to the byte, and not the host; new guards replace the old ones. */
static void test_guards(void **state) {
    (void)state;
    const model_guard one = {32 * 4 + 1, 40 * 4}, first = {0, 4};
    const model_guard ends[] = {{0, 4}, {63 * 4, 64 * 4}};
    void *x = buffer(64 * 4), *out = buffer(64 * 4);
    void *arguments[] = {&x, &out};
    assert_int_equal(model_set_guards(device, x, &one, 1), MODEL_OK);
    assert_int_equal(model_fill(device, x, 0, 64 * 4), MODEL_OK);
    assert_int_equal(run(BROKEN_past_the_end, 1, 31, arguments), MODEL_OK);
    assert_int_equal(run(BROKEN_past_the_end, 1, 32, arguments), MODEL_EFAULT);
    const model_fault *fault = expect(MODEL_FAULT_BOUNDS, 0, 31, "past the end");
    assert_non_null(strstr(fault->text, "in a guard, from byte 128 on of a buffer of 256"));

    assert_int_equal(model_set_guards(device, x, &first, 1), MODEL_OK);
    assert_int_equal(run(BROKEN_past_the_end, 1, 63, arguments), MODEL_OK);
    assert_int_equal(model_set_guards(device, out, ends, 2), MODEL_OK);
    assert_int_equal(run(BROKEN_past_the_end, 1, 63, arguments), MODEL_EFAULT);
    expect(MODEL_FAULT_BOUNDS, 0, 0, "past the end");
    assert_int_equal(model_set_guards(device, out, NULL, 0), MODEL_OK);
    assert_int_equal(run(BROKEN_past_the_end, 1, 63, arguments), MODEL_OK);
    assert_int_equal(model_set_guards(device, out, ends, MODEL_GUARDS + 1), MODEL_EINVAL);
    assert_int_equal(model_set_guards(device, &device, NULL, 0), MODEL_EINVAL);
    assert_int_equal(model_free(device, x), MODEL_OK);
    assert_int_equal(model_free(device, out), MODEL_OK);
}

static void test_unwritten(void **state) {
    (void)state;
    void *out = buffer(128 * 4);
    void *arguments[] = {&out};
    assert_int_equal(run(BROKEN_unwritten_shared, 1, 64, arguments), MODEL_EFAULT);
    expect(MODEL_FAULT_UNWRITTEN, 0, 7, "unwritten shared");
    assert_int_equal(run(BROKEN_last_blocks_shared, 2, 64, arguments), MODEL_EFAULT);
    expect(MODEL_FAULT_UNWRITTEN, 1, 0, "last block's");

    void *sum = buffer(64 * 4);
    assert_int_equal(run(BROKEN_adds_to_output, 1, 64, (void *[]){&sum}), MODEL_EFAULT);
    expect(MODEL_FAULT_UNWRITTEN, 0, 0, "unwritten global");
    assert_int_equal(model_fill(device, sum, 0, 64 * 4), MODEL_OK);
    assert_int_equal(run(BROKEN_adds_to_output, 1, 64, (void *[]){&sum}), MODEL_OK);
    assert_int_equal(run(BROKEN_adds_to_output, 1, 64, (void *[]){&sum}), MODEL_OK);
}

static void test_races(void **state) {
    (void)state;
    void *out = buffer(64 * 4);
    void *arguments[] = {&out};
    assert_int_equal(run(BROKEN_race_shared, 1, 64, arguments), MODEL_EFAULT);
    /* The second warp's writes come after the first warp's reads of what is not yet written. */
    assert_true(model_last_fault(device)->kind == MODEL_FAULT_UNWRITTEN);
    assert_int_equal(run(BROKEN_race_in_warp, 1, 32, arguments), MODEL_EFAULT);
    const model_fault *fault = expect(MODEL_FAULT_RACE, 0, 0, "race in warp");
    expect_other(fault, 0, 8, "race in warp");

    assert_int_equal(run(BROKEN_write_after_read, 1, 64, arguments), MODEL_EFAULT);
    fault = expect(MODEL_FAULT_RACE, 0, 0, "one writes");
    expect_other(fault, 0, 31, "many read");

    assert_int_equal(run(BROKEN_race_between_blocks, 3, 64, arguments), MODEL_EFAULT);
    fault = expect(MODEL_FAULT_RACE, 1, 0, "blocks race");
    expect_other(fault, 0, 0, "blocks race");
    assert_int_equal(run(BROKEN_race_between_blocks, 1, 64, arguments), MODEL_OK);
    assert_int_equal(run(BROKEN_race_between_blocks, 1, 64, arguments), MODEL_OK);

    assert_int_equal(model_fill(device, out, 0, 4), MODEL_OK);
    assert_int_equal(run(BROKEN_lost_updates, 1, 2, arguments), MODEL_EFAULT);
    expect(MODEL_FAULT_RACE, 0, 1, "plain beside atomic");

    uint32_t got;
    assert_int_equal(model_fill(device, out, 0, 4), MODEL_OK);
    assert_int_equal(run(BROKEN_all_add, 5, 96, arguments), MODEL_OK);
    assert_int_equal(model_read(device, &got, out, 4), MODEL_OK);
    assert_int_equal(got, 5 * 96);
}

/* Blocks may pass values on through memory, with a fence on both sides of an atomic. */
static void test_fences(void **state) {
    (void)state;
    void *values = buffer(10 * 4), *ticket = buffer(4), *out = buffer(4);
    void *arguments[] = {&values, &ticket, &out};
    uint32_t got;
    assert_int_equal(model_fill(device, ticket, 0, 4), MODEL_OK);
    assert_int_equal(run(BROKEN_fenced, 10, 32, arguments), MODEL_OK);
    assert_int_equal(model_read(device, &got, out, 4), MODEL_OK);
    assert_int_equal(got, 55);

    const unsigned missing[] = {BROKEN_unfenced_writer, BROKEN_unfenced_reader};
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(model_fill(device, ticket, 0, 4), MODEL_OK);
        assert_int_equal(run(missing[i], 10, 32, arguments), MODEL_EFAULT);
        const model_fault *fault = model_last_fault(device);
        print_message("%s\n", fault->text);
        assert_int_equal(fault->kind, MODEL_FAULT_ORDER);
        assert_int_equal(fault->fence, i == 0 ? 0 : 2);
        assert_true(fault->here.line == 0 || fault->here.line == line_of("read others'"));
        assert_true(fault->other.line == 0 || fault->other.line == line_of("leave own"));
        assert_true(fault->between.line == 0 || fault->between.line == line_of("take a ticket"));
        assert_int_equal(fault->here.block, 9);
        assert_int_equal(fault->other.block, 0);
    }
}

static void test_endless(void **state) {
    (void)state;
    void *out = buffer(4);
    assert_int_equal(model_fill(device, out, 0, 4), MODEL_OK);
    model_set_patience(device, 1000, 1000);
    assert_int_equal(run(BROKEN_endless, 1, 40, (void *[]){&out}), MODEL_EFAULT);
    expect(MODEL_FAULT_ENDLESS, 0, 0, "endless");
    model_set_patience(device, UINT64_C(1) << 26, UINT64_C(1) << 26);
}

static void test_arguments(void **state) {
    (void)state;
    void *out = buffer(4);
    void *arguments[] = {&out};
    char byte = 0;
    assert_int_equal(run(BROKEN_all_add, 0, 1, arguments), MODEL_EINVAL);
    assert_int_equal(run(BROKEN_all_add, 1, 0, arguments), MODEL_EINVAL);
    assert_int_equal(run(BROKEN_all_add, 1, 1025, arguments), MODEL_EINVAL);
    assert_int_equal(run(BROKEN_all_add, 1, 1, NULL), MODEL_EINVAL);
    assert_int_equal(model_write(device, (char *)out + 4, &byte, 1), MODEL_EINVAL);
    assert_int_equal(model_read(device, &byte, (char *)out + 4, 1), MODEL_EINVAL);
    assert_int_equal(model_free(device, &byte), MODEL_EINVAL);
    assert_string_not_equal(model_error(device), "");
    assert_int_equal(model_allocate(device, SIZE_MAX / 2, &out), MODEL_ENOMEM);
    assert_int_equal(model_allocate(device, 0, &out), MODEL_OK);
    assert_int_equal(model_write(device, out, NULL, 0), MODEL_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_barriers),  cmocka_unit_test(test_shuffles),
        cmocka_unit_test(test_addresses), cmocka_unit_test(test_guards),
        cmocka_unit_test(test_unwritten), cmocka_unit_test(test_races),
        cmocka_unit_test(test_fences),    cmocka_unit_test(test_endless),
        cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
