/* test_roof.c - measuring the roof of a device that does not say how many units it has. */
#include "../c/testing.h"

#include "gpu/roof.h"

#include <math.h>

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
    (void)gpu, (void)program, (void)name;
    *out = NULL;
    return TALLY_OK;
}

static tally_status launch(struct gpu *gpu, struct gpu_kernel *which, unsigned grid, unsigned block,
                           const struct gpu_argument *arguments, size_t count) {
    (void)gpu, (void)which, (void)arguments, (void)count;
    launches++;
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
    *seconds = 1;
    return TALLY_OK;
}

/* Every grid has a block, and every thread a word to write. */
static void no_units(void **state) {
    const struct gpu_api api = {.name = "double",
                                .facts = get_facts,
                                .allocate = allocate,
                                .release = release,
                                .build = build,
                                .kernel = kernel,
                                .launch = launch,
                                .mark = mark,
                                .elapsed = elapsed};
    double seconds = 0;
    (void)state;
    assert_ok(roof_measure(&api, NULL, NULL, 1600, &seconds));
    assert_true(isfinite(seconds) && launches > 0);
    assert_true(smallest >= 1);
    assert_true(most <= room);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
