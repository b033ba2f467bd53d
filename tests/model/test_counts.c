/*
 * test_counts.c - what the model counts is what one counts by hand.
 *
 * Each case is worked out in its comment. Elements are f32, an array starts at a multiple of 256
 * bytes, and a line of memory is 128 bytes, 32 elements.
 */
#include "broken.h"
#include "climb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static model_device *device;
static float ones[4096];

static int set_up(void **state) {
    (void)state;
    for (unsigned i = 0; i < 4096; i++)
        ones[i] = 1;
    return model_open(&device);
}

static int tear_down(void **state) {
    (void)state;
    model_close(device);
    return 0;
}

static model_counts count(ladder_rung rung, size_t n, unsigned block, unsigned factor) {
    const climb c = {.rung = rung,
                     .type = TALLY_F32,
                     .op = TALLY_SUM,
                     .how = FINISH_RELAUNCH,
                     .block = block,
                     .factor = factor,
                     .x = ones,
                     .n = n};
    model_counts counts = {0};
    tally_value sum;
    assert_int_equal(climb_rung(device, &c, &sum, &counts), 0);
    assert_true(sum.as.f32 == (float)n);
    return counts;
}

static void expect(model_counts got, model_counts want) {
    assert_int_equal(got.steps, want.steps);
    assert_int_equal(got.barriers, want.barriers);
    assert_int_equal(got.operations, want.operations);
    assert_int_equal(got.slots, want.slots);
    assert_int_equal(got.divergent, want.divergent);
    assert_int_equal(got.transactions, want.transactions);
    assert_int_equal(got.fewest_transactions, want.fewest_transactions);
    assert_int_equal(got.bank_conflicts, want.bank_conflicts);
    assert_int_equal(got.bytes_read, want.bytes_read);
    assert_int_equal(got.bytes_written, want.bytes_written);
}

/*
 * 8 elements, one block of 4 threads: all 32 bytes lie in one line, and a warp is never full.
 *
 * In place: strides 1, 2, 4 (or 4, 2, 1), of 4, 2, 1 additions: 3 steps, 3 barriers, 7 operations,
 * 3 * 32 slots. The additions of 2 and of 1 thread, and thread 0 delivering, divide the warp: 3
 * divergent branches. An addition reads two values and writes one: 3 transactions a step, and 2 more
 * for the result: 11, none to spare. Read 2 * 7 + 1 values of 4 bytes, written 7 + 1.
 *
 * In shared memory: one more barrier, after copying; 2 loads of 4 values and the result: 3
 * transactions. `shared` adds while loading, so it is back to 3 barriers. 8 words are in 8 banks.
 */
static void test_eight(void **state) {
    (void)state;
    const model_counts in_place = {.steps = 3,
                                   .barriers = 3,
                                   .operations = 7,
                                   .slots = 96,
                                   .divergent = 3,
                                   .transactions = 11,
                                   .fewest_transactions = 11,
                                   .bytes_read = 60,
                                   .bytes_written = 32};
    expect(count(LADDER_INTERLEAVED_MODULO, 8, 4, 1), in_place);
    expect(count(LADDER_INTERLEAVED_MASK, 8, 4, 1), in_place);
    expect(count(LADDER_INTERLEAVED_INDEX, 8, 4, 1), in_place);
    expect(count(LADDER_CONTIGUOUS, 8, 4, 1), in_place);

    model_counts shared = {.steps = 3,
                           .barriers = 4,
                           .operations = 7,
                           .slots = 96,
                           .divergent = 3,
                           .transactions = 3,
                           .fewest_transactions = 3,
                           .bytes_read = 32,
                           .bytes_written = 4};
    expect(count(LADDER_SHARED_MODULO, 8, 4, 1), shared);
    expect(count(LADDER_SHARED_CONTIGUOUS, 8, 4, 1), shared);
    shared.barriers = 3;
    expect(count(LADDER_SHARED, 8, 4, 1), shared);
}

/*
 * 64 elements, one block of 32 threads: two lines, one full warp.
 *
 * interleaved-modulo (and -mask, and -index): strides 1 ... 32: 6 steps and barriers, 63 operations, 6 * 32 slots. All but the
 * first step divide the warp, and the delivery: 6. In the steps of stride 1 to 16 the left values
 * spread over both lines, and so do the right ones: 6 transactions each, where 3 would do; the last
 * takes 3, the delivery 2: 35, and 20 at the least. Read 2 * 63 + 1 values, written 63 + 1.
 *
 * contiguous: the same additions; but all left values of a step lie in one line, and all right ones:
 * 20 transactions.
 *
 * shared-modulo: two loads of a line, one barrier more. The left values of a step lie 2 * stride words
 * apart and span all 64 words: at each stride up to 16, two of them are 32 words apart, in the same
 * bank, and so are the right ones. Two reads and a write wait one pass each: 5 * 3 conflicts.
 */
static void test_sixty_four(void **state) {
    (void)state;
    model_counts want = {.steps = 6,
                         .barriers = 6,
                         .operations = 63,
                         .slots = 192,
                         .divergent = 6,
                         .transactions = 35,
                         .fewest_transactions = 20,
                         .bytes_read = 508,
                         .bytes_written = 256};
    expect(count(LADDER_INTERLEAVED_MODULO, 64, 32, 1), want);
    expect(count(LADDER_INTERLEAVED_MASK, 64, 32, 1), want);
    expect(count(LADDER_INTERLEAVED_INDEX, 64, 32, 1), want);
    want.transactions = 20;
    expect(count(LADDER_CONTIGUOUS, 64, 32, 1), want);

    want = (model_counts){.steps = 6,
                          .barriers = 7,
                          .operations = 63,
                          .slots = 192,
                          .divergent = 6,
                          .transactions = 3,
                          .fewest_transactions = 3,
                          .bank_conflicts = 15,
                          .bytes_read = 256,
                          .bytes_written = 4};
    expect(count(LADDER_SHARED_MODULO, 64, 32, 1), want);
    want.bank_conflicts = 0;
    expect(count(LADDER_SHARED_CONTIGUOUS, 64, 32, 1), want);
    want.barriers = 6;
    expect(count(LADDER_SHARED, 64, 32, 1), want);

    /* In blocks of 4: 8 blocks of 8 elements, then one for their 8 partials. Steps and barriers are
     * those of one block a launch; everything else is 9 times the case of 8 above. */
    want = (model_counts){.steps = 6,
                          .barriers = 6,
                          .operations = 63,
                          .slots = 864,
                          .divergent = 27,
                          .transactions = 99,
                          .fewest_transactions = 99,
                          .bytes_read = 540,
                          .bytes_written = 288};
    model_counts got = count(LADDER_CONTIGUOUS, 64, 4, 1);
    expect(got, want);
    assert_int_equal(got.launches, 2);
    assert_int_equal(got.blocks, 9);
    assert_int_equal(got.all_steps, 27);
    assert_int_equal(got.all_barriers, 27);
}

/*
 * shuffle, 64 elements, one block of 32 threads. 16 packs of 4: half of the threads load one (2 lines
 * of 16 * 16 bytes) and add 4; then all 32 combine 5 times. All in one step before the only barrier:
 * 16 * 4 + 5 * 32 operations, one warp, 32 slots. Divided: who loads a pack, who leaves the warp's
 * value, who takes one in the first warp (1 of 32), who delivers.
 */
static void test_shuffle(void **state) {
    (void)state;
    const model_counts got = count(LADDER_SHUFFLE, 64, 32, 1);
    expect(got, (model_counts){.steps = 1,
                               .barriers = 1,
                               .operations = 224,
                               .slots = 32,
                               .divergent = 4,
                               .transactions = 3,
                               .fewest_transactions = 3,
                               .bytes_read = 256,
                               .bytes_written = 4});
    assert_int_equal(got.rounds, 9);
    assert_int_equal(got.issued, 9 * 32);
}

/*
 * What the texts' formulas say, and what is counted. n = 1024 in one block of 512, 16 warps.
 *
 * contiguous: 16 + 8 + 4 + 2 + 1 + 5 * 1 warps = 36: 1023 / (36 * 32) = 0.89, as the text has it.
 * interleaved-modulo: the text lets all 16 warps work in 5 steps and then halves them: 16 * 5 + 8 + 4
 * + 2 + 1 = 95, 0.34. But in the sixth step, of stride 32, each warp still has one thread at work (its
 * first): the halving starts a step later. 16 * 6 + 8 + 4 + 2 + 1 = 111 warps: 0.288.
 */
static void test_texts(void **state) {
    (void)state;
    model_counts got = count(LADDER_INTERLEAVED_MODULO, 1024, 512, 1);
    assert_int_equal(got.operations, 1023);
    assert_int_equal(got.slots, 111 * 32);
    assert_int_equal(got.issued, 111 * 32);
    model_counts mask = count(LADDER_INTERLEAVED_MASK, 1024, 512, 1);
    expect(mask, got); /* only the instructions that find the threads are others */
    got = count(LADDER_CONTIGUOUS, 1024, 512, 1);
    assert_int_equal(got.operations, 1023);
    assert_int_equal(got.slots, 36 * 32);
    assert_int_equal(got.issued, 36 * 32);

    /* C = 8 blocks for N = 64 elements each, one after another: C log N steps and barriers. One block
     * coarsened by C: 2 (C - 1) + log N additions one after another, log N barriers. */
    got = count(LADDER_SHARED, 8 * 64, 32, 1);
    assert_int_equal(got.all_rounds - 6, 8 * 6); /* - 6: the relaunch over 8 partials */
    assert_int_equal(got.all_barriers - 6, 8 * 6);
    got = count(LADDER_COARSENED, 8 * 64, 32, 8);
    assert_int_equal(got.launches, 1);
    assert_int_equal(got.rounds, 2 * (8 - 1) + 6);
    assert_int_equal(got.barriers, 6);
}

/* ---- Single instructions ---------------------------------------------------------------------- */

static model_counts run(unsigned kernel, unsigned block, void *const *arguments) {
    model_counts counts = {0};
    const model_launch launch = {
        .kernel = broken_kernels[kernel], .grid = 1, .block = block, .arguments = arguments};
    assert_int_equal(model_run(device, &launch, &counts), MODEL_OK);
    return counts;
}

/* A warp that accesses words `stride` apart. Shared: 32 lanes meet in 32 / gcd(32, stride) banks;
 * 8-byte words go half a warp at a time, 16 lanes in 32 banks. Global: 4 * stride bytes apart. */
static void test_strides(void **state) {
    (void)state;
    void *x, *out, *wide;
    assert_int_equal(model_allocate(device, 32 * 32 * 4, &x), MODEL_OK);
    assert_int_equal(model_allocate(device, 32 * 4, &out), MODEL_OK);
    assert_int_equal(model_allocate(device, 32 * 8, &wide), MODEL_OK);
    assert_int_equal(model_fill(device, x, 0, 32 * 32 * 4), MODEL_OK);
    const struct {
        uint32_t stride;
        unsigned conflicts, wide_conflicts, lines;
    } cases[] = {{1, 0, 0, 1}, {2, 1, 2, 2},   {3, 0, 0, 3},
                 {4, 3, 6, 4}, {31, 0, 0, 31}, {32, 31, 30, 32}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t stride = cases[i].stride;
        model_counts got = run(BROKEN_strided_banks, 32, (void *[]){&out, &stride});
        assert_int_equal(got.bank_conflicts, cases[i].conflicts);
        got = run(BROKEN_wide_banks, 32, (void *[]){&wide, &stride});
        assert_int_equal(got.bank_conflicts, cases[i].wide_conflicts);
        got = run(BROKEN_copy_strided, 32, (void *[]){&x, &out, &stride});
        assert_int_equal(got.transactions, cases[i].lines + 1);
        assert_int_equal(got.fewest_transactions, 2);
    }
    uint32_t stride = 0; /* all read the same word */
    model_counts got = run(BROKEN_copy_strided, 32, (void *[]){&x, &out, &stride});
    assert_int_equal(got.transactions, 2);
    assert_int_equal(got.fewest_transactions, 2);
    assert_int_equal(got.bytes_read, 128);
}

/* Lanes leave a loop after 1, 2, 3, 4 rounds: three times some leave and some stay; the fourth time
 * all that are left leave. Inside, the branch on the round is the same for all. A write a round, and
 * one after the loop, which all lanes do together again. */
static void test_reconvergence(void **state) {
    (void)state;
    void *out;
    assert_int_equal(model_allocate(device, 32 * 4, &out), MODEL_OK);
    const model_counts got = run(BROKEN_ragged_loop, 32, (void *[]){&out});
    assert_int_equal(got.divergent, 3);
    assert_int_equal(got.transactions, 5);
    assert_int_equal(got.bytes_written, 8 * (1 + 2 + 3 + 4) * 4 + 128);
}

/* ---- Step by step ----------------------------------------------------------------------------- */

typedef struct journal {
    unsigned steps;
    model_step step[16];
    model_warp_step warp[16][2];
} journal;

static void note(void *context, const model_step *step) {
    journal *j = context;
    assert_in_range(j->steps, 0, 15);
    assert_int_equal(step->warps, 2);
    j->step[j->steps] = *step;
    memcpy(j->warp[j->steps++], step->warp, sizeof j->warp[0]);
}

/* contiguous, 128 elements, a block of 64, two warps: strides 64 ... 1, then the delivery. */
static void test_steps(void **state) {
    (void)state;
    journal j = {0};
    tally_value sum;
    const climb c = {.rung = LADDER_CONTIGUOUS,
                     .type = TALLY_F32,
                     .op = TALLY_SUM,
                     .block = 64,
                     .factor = 1,
                     .x = ones,
                     .n = 128,
                     .on_step = note,
                     .context = &j};
    assert_int_equal(climb_rung(device, &c, &sum, NULL), 0);
    assert_int_equal(j.steps, 8);
    for (unsigned i = 0; i < 7; i++) {
        const unsigned stride = 64 >> i;
        assert_int_equal(j.step[i].step, i);
        assert_int_equal(j.step[i].stride, stride);
        assert_true(j.step[i].barrier);
        const uint32_t first = stride >= 32 ? UINT32_MAX : (UINT32_C(1) << stride) - 1;
        assert_int_equal(j.warp[i][0].lanes, first);
        assert_int_equal(j.warp[i][1].lanes, stride == 64 ? UINT32_MAX : 0);
        assert_int_equal(j.warp[i][0].transactions, 3);
        assert_int_equal(j.warp[i][1].transactions, stride == 64 ? 3 : 0);
        assert_int_equal(j.warp[i][0].divergent, stride < 32);
        assert_int_equal(j.warp[i][1].divergent, 0);
    }
    assert_false(j.step[7].barrier);
    assert_int_equal(j.step[7].stride, 0);
    assert_int_equal(j.warp[7][0].operations, 0);
    assert_int_equal(j.warp[7][0].transactions, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eight),   cmocka_unit_test(test_sixty_four),
        cmocka_unit_test(test_shuffle), cmocka_unit_test(test_texts),
        cmocka_unit_test(test_strides), cmocka_unit_test(test_reconvergence),
        cmocka_unit_test(test_steps),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
