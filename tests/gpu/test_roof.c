/* test_roof.c - measuring the roof of a device that does not say how many units it has, and of one on which a
 * kernel is far behind. */
#include "../c/testing.h"

#include "gpu/roof.h"

#include <math.h>
#include <string.h>

static struct gpu_kernel {
    double seconds; /* of a run */
    unsigned launches;
} all = {.seconds = 1}, pieces = {.seconds = 1}; /* the kernels read_all and read_pieces */
static const struct gpu_kernel *last;            /* the one that ran last */
static unsigned launches, smallest = ~0u;
static size_t room, most; /* bytes that were asked for, and that the largest grid writes */

static const struct gpu_facts facts = {.name = "no units", .block_max = 64};

static const struct gpu_facts *get_facts(const struct gpu *gpu) {
    (void)gpu;
    return &facts;
}

static tally_status allocate(struct gpu *gpu, size_t bytes, struct gpu_memory **out) {
    (void)gpu;
    room = bytes;
    *out = NULL;
    return TALLY_OK;
}

static void release(struct gpu *gpu, struct gpu_memory *memory) {
    (void)gpu, (void)memory;
}

static tally_status build(struct gpu *gpu, const char *file, const char *prelude,
                          const char *const *defines, size_t count, struct gpu_program **out) {
    (void)gpu, (void)file, (void)prelude, (void)defines, (void)count;
    *out = NULL;
    return TALLY_OK;
}

static tally_status kernel(struct gpu *gpu, struct gpu_program *program, const char *name,
                           struct gpu_kernel **out) {
    (void)gpu, (void)program;
    *out = strcmp(name, "read_all") == 0 ? &all : &pieces;
    return TALLY_OK;
}

static tally_status launch(struct gpu *gpu, struct gpu_kernel *which, unsigned grid, unsigned block,
                           const struct gpu_argument *arguments, size_t count) {
    (void)gpu, (void)arguments, (void)count;
    launches++;
    which->launches++;
    last = which;
    if (grid < smallest) smallest = grid;
    if (most < sizeof(uint32_t) * grid * block) most = sizeof(uint32_t) * grid * block;
    return TALLY_OK;
}

static tally_status mark(struct gpu *gpu, int which) {
    (void)gpu, (void)which;
    return TALLY_OK;
}

static tally_status elapsed(struct gpu *gpu, double *seconds) {
    (void)gpu;
    *seconds = last->seconds;
    return TALLY_OK;
}

static const struct gpu_api api = {.name = "double",
                                   .facts = get_facts,
                                   .allocate = allocate,
                                   .release = release,
                                   .build = build,
                                   .kernel = kernel,
                                   .launch = launch,
                                   .mark = mark,
                                   .elapsed = elapsed};

/* Every grid has a block, and every thread a word to write. */
static void no_units(void **state) {
    double seconds = 0;
    (void)state;
    assert_ok(roof_measure(&api, NULL, NULL, 1600, &seconds));
    assert_true(isfinite(seconds) && launches > 0);
    assert_true(smallest >= 1);
    assert_true(most <= room);
}

/* A kernel that takes ten times as long as the other is left after one run, beside one to warm up; where it
 * is the first there is nothing to hold it against yet, and each grid has its look. */
static void far_behind(void **state) {
    double seconds = 0;
    (void)state;
    pieces = (struct gpu_kernel){.seconds = 1}, all = (struct gpu_kernel){.seconds = 0.1};
    assert_ok(roof_measure(&api, NULL, NULL, 1600, &seconds));
    assert_true(seconds == 0.1);
    assert_int_equal(pieces.launches, 2);
    assert_true(all.launches > 8);
    pieces = (struct gpu_kernel){.seconds = 0.1}, all = (struct gpu_kernel){.seconds = 1};
    assert_ok(roof_measure(&api, NULL, NULL, 1600, &seconds));
    assert_true(seconds == 0.1);
    assert_int_equal(all.launches, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_units),
        cmocka_unit_test(far_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
