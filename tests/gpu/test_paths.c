/*
 * test_paths.c - takes every path (src/base/paths.h) by which the host has a reduction done on a GPU, on machines that only
 * note what they are asked.
 *
 * Nothing is computed, so that arrays of any size cost nothing; what comes of kernels is tests/devices' to check. Here
 * each launch is looked at: its kernel has been found, its block and grid are ones that the machine has, its memory is
 * there. Fills stay within the workspace. What parts_prepare() finds is all that is asked for later.
 */
#include "base/paths.h"
#include "base/types.h"
#include "device/device.h"
#include "gpu/shown.h"
#include "gpu/source.h"
#include "gpu/whole.h"
#include "problem/problem.h"
#include "problem/shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int condition, const char *what) {
    if (condition) return;
    printf("gpu_paths: %s: %s\n", what, tally_error());
    exit(1);
}

/* shape.c has public calls, too, which nobody makes here. */
tally_device *cpu_calling_thread(void) {
    return NULL;
}
tally_status device_refuses(const tally_device *device, const char *why) {
    (void)device, (void)why;
    return TALLY_EUNSUPPORTED;
}

/* ---- A machine that notes ---------------------------------------------------------------------- */

struct gpu {
    struct gpu_facts facts;
    int prepared; /* nothing may be built any more */
    struct gpu_memory *buffers;
};
struct gpu_memory {
    size_t bytes; /* SIZE_MAX: any */
    struct gpu_memory *next;
};
struct gpu_kernel {
    char name[32];
};

static struct gpu_facts facts; /* of the next gpu that is opened */
static size_t launches;

static tally_status note_open(size_t i, void *context, struct gpu **out) {
    (void)i, (void)context;
    *out = calloc(1, sizeof **out);
    must(*out != NULL, "no memory");
    (*out)->facts = facts;
    return TALLY_OK;
}
static void note_close(struct gpu *gpu) {
    for (struct gpu_memory *next; gpu->buffers; gpu->buffers = next) {
        next = gpu->buffers->next;
        free(gpu->buffers);
    }
    free(gpu);
}
static const struct gpu_facts *note_facts(const struct gpu *gpu) {
    return &gpu->facts;
}
static tally_status note_allocate(struct gpu *gpu, size_t bytes, struct gpu_memory **out) {
    *out = malloc(sizeof **out);
    must(*out != NULL, "no memory");
    **out = (struct gpu_memory){bytes, gpu->buffers};
    gpu->buffers = *out;
    return TALLY_OK;
}
/* Frees nothing before the end. */
static void note_release(struct gpu *gpu, struct gpu_memory *memory) {
    (void)gpu, (void)memory;
}
static tally_status note_fill(struct gpu *gpu, struct gpu_memory *to, size_t offset,
                              unsigned char byte, size_t bytes) {
    (void)gpu, (void)byte;
    must(to && offset <= to->bytes && bytes <= to->bytes - offset, "a fill outside of its memory");
    return TALLY_OK;
}
static tally_status note_finish(struct gpu *gpu) {
    (void)gpu;
    return TALLY_OK;
}
static tally_status note_build(struct gpu *gpu, const char *file, const char *prelude,
                               const char *const *defines, size_t count, struct gpu_program **out) {
    (void)prelude, (void)defines, (void)count;
    must(!gpu->prepared || prelude, file);
    *out = (struct gpu_program *)(void *)gpu;
    return TALLY_OK;
}
static tally_status note_kernel(struct gpu *gpu, struct gpu_program *program, const char *name,
                                struct gpu_kernel **out) {
    static struct gpu_kernel kernels[64];
    (void)gpu, (void)program;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        if (!kernels[i].name[0]) snprintf(kernels[i].name, sizeof kernels[i].name, "%s", name);
        *out = &kernels[i];
        if (strcmp(kernels[i].name, name) == 0) return TALLY_OK;
    }
    must(0, "too many kernels");
    return TALLY_EINVAL;
}
static tally_status note_launch(struct gpu *gpu, struct gpu_kernel *kernel, unsigned grid,
                                unsigned block, const struct gpu_argument *arguments,
                                size_t count) {
    must(kernel != NULL, "a kernel that has not been found");
    must(block >= 1 && block <= gpu->facts.block_max, kernel->name);
    must(grid >= 1 && grid < 1u << 31, kernel->name);
    for (size_t i = 0; i < count; i++)
        must(arguments[i].memory || (arguments[i].value && arguments[i].size), kernel->name);
    launches++;
    return TALLY_OK;
}

static const struct gpu_api noting = {.name = "noting",
                                      .open = note_open,
                                      .close = note_close,
                                      .facts = note_facts,
                                      .allocate = note_allocate,
                                      .release = note_release,
                                      .fill = note_fill,
                                      .finish = note_finish,
                                      .build = note_build,
                                      .kernel = note_kernel,
                                      .launch = note_launch};

/* ---- Machines ----------------------------------------------------------------------------------- */

enum { LARGE, WITHOUT_BRANCHES, LIKE_A_CPU, SMALL, MACHINES };
static struct queue queues[MACHINES];

static void open_machines(void) {
    for (int m = 0; m < MACHINES; m++) {
        facts = (struct gpu_facts){.name = "a machine that notes",
                                   .units = m == SMALL ? 1 : 132,
                                   .block_max = 1024,
                                   .memory = m == WITHOUT_BRANCHES ? 1 << 20 : (uint64_t)80 << 30,
                                   .doubles = 1,
                                   .atomics64 = 1,
                                   .is_cpu = m == LIKE_A_CPU,
                                   .has_addresses = 1,
                                   .has_uniform_branches = m != WITHOUT_BRANCHES};
        must(queue_open_bare(&queues[m], &noting, 0, NULL, m == LIKE_A_CPU ? 1 : 256) == TALLY_OK,
             "opened");
    }
}

/* ---- Calls --------------------------------------------------------------------------------------- */

static struct gpu_memory any = {SIZE_MAX, NULL};
static char elsewhere; /* arrays are not read */

/* Reduces in parts on a machine, with and without somebody who asks for the outcome. */
static void reduce(int machine, const struct problem *p, const tally_shape *shape) {
    struct queue *queue = &queues[machine];
    struct shaped s;
    void *out[TALLY_VALUES_MAX];
    for (unsigned v = 0; v < p->values; v++)
        out[v] = &elsewhere;
    must(shape_plan(p, shape, &elsewhere, problem_has(p, MONOID_PRODUCTS) ? &elsewhere : NULL, out,
                    &s) == TALLY_OK,
         "a shape");
    queue->gpu->prepared = 0;
    must(shown_prepare(queue, &s) == TALLY_OK, "prepared");
    queue->gpu->prepared = 1;
    struct gpu_memory work = {shown_workspace(queue, &s), NULL};
    for (int ignore_errors = 0; ignore_errors < 2; ignore_errors++) {
        const struct parts_call call = {.s = &s,
                                        .x = &any,
                                        .y = s.y ? &any : NULL,
                                        .mask = s.mask ? &any : NULL,
                                        .offsets = s.offsets ? &any : NULL,
                                        .ids = s.ids ? &any : NULL,
                                        .work = &work,
                                        .out = &any,
                                        .values = p->values,
                                        .ignore_errors = ignore_errors != 0};
        launches = 0;
        must(shown_enqueue(queue, &call) == TALLY_OK && launches > 0, "under way");
    }
    queue->gpu->prepared = 0;
}

static void along(int machine, const struct problem *p, size_t results, size_t each, ptrdiff_t kept,
                  ptrdiff_t reduced, int masked) {
    static const unsigned char mask;
    const size_t length[2] = {results, each};
    const ptrdiff_t stride[2] = {kept, reduced};
    reduce(machine, p,
           &(tally_shape){.cut = TALLY_AXES,
                          .dims = 2,
                          .length = length,
                          .x_stride = stride,
                          .y_stride = stride,
                          .mask = masked ? &mask : NULL,
                          .mask_stride = stride,
                          .axes = 2});
}

static void by_segment(int machine, const struct problem *p, size_t count, size_t n, int masked) {
    static const unsigned char mask;
    reduce(machine, p,
           &(tally_shape){.cut = TALLY_SEGMENTS,
                          .n = n,
                          .count = count,
                          .offsets = &elsewhere,
                          .mask = masked ? &mask : NULL});
}

static void by_group(int machine, const struct problem *p, size_t count, size_t n, int sorted,
                     tally_type ids) {
    reduce(machine, p,
           &(tally_shape){.cut = TALLY_GROUPS,
                          .n = n,
                          .count = count,
                          .ids = &elsewhere,
                          .ids_type = ids,
                          .sorted = sorted});
}

/* Segments or groups of rows of an array, whose columns lie `step` elements apart. */
static void of_vectors(int machine, const struct problem *p, size_t rows, size_t columns,
                       ptrdiff_t step, size_t count, int by_id, int masked) {
    static const unsigned char mask;
    const size_t length[2] = {rows, columns};
    const ptrdiff_t stride[2] = {(ptrdiff_t)columns * step, step};
    reduce(machine, p,
           &(tally_shape){.cut = by_id ? TALLY_GROUPS : TALLY_SEGMENTS,
                          .dims = 2,
                          .length = length,
                          .x_stride = stride,
                          .y_stride = stride,
                          .mask = masked ? &mask : NULL,
                          .axes = 1,
                          .count = count,
                          .offsets = &elsewhere,
                          .ids = &elsewhere,
                          .ids_type = TALLY_I32});
}

/* A whole array of n elements. */
static void whole(int machine, const struct problem *p, uint64_t n) {
    struct queue *queue = &queues[machine];
    const struct inputs in = {
        .x = &any, .y = problem_has(p, MONOID_PRODUCTS) ? &any : NULL, .n = n};
    size_t bytes;
    must(whole_prepare(queue, p, n, &bytes) == TALLY_OK, "prepared");
    struct gpu_memory work = {bytes, NULL};
    must(whole_enqueue(queue, p, &in, &work, &elsewhere, &any) == TALLY_OK, "under way");
}

/* The same, without its NaNs. */
static void whole_shown(int machine, const struct problem *p, uint64_t n) {
    struct queue *queue = &queues[machine];
    const struct inputs in = {
        .x = &any, .y = problem_has(p, MONOID_PRODUCTS) ? &any : NULL, .n = n};
    must(shown_prepare_whole(queue, p, n) == TALLY_OK, "prepared");
    queue->gpu->prepared = 1;
    struct gpu_memory work = {shown_workspace_whole(queue, p, n), NULL};
    must(shown_enqueue_whole(queue, p, &in, &work, &any) == TALLY_OK, "under way");
    queue->gpu->prepared = 0;
}

/* What is reduced without its NaNs. */
static void take_shown(const struct problem *p) {
    const size_t million = 1000000;
    for (int m = 0; m < MACHINES; m++) {
        along(m, p, 1000, 1000, 1000, 1, 0);
        along(m, p, 1000, 1000, 1, 1000, 1);
        along(m, p, 1, 10 * million, 10 * million, 1, 0);
        along(m, p, 10, 0, 1, 1, 0);
        by_segment(m, p, 1000, million, 1);
        by_group(m, p, 4000, million, 0, TALLY_I64);
        by_group(m, p, 100, million, 1, TALLY_I32);
        of_vectors(m, p, 1000, 64, 1, 10, 0, 0);
        of_vectors(m, p, 1000, 64, 2, 10, 1, 1);
        whole_shown(m, p, 0);
        whole_shown(m, p, 100);
        whole_shown(m, p, 10 * million);
    }
}

static void take_all(const struct problem *p) {
    const size_t million = 1000000;
    /* columns */
    along(LARGE, p, 4096, 1000, 1, 4096, 0);
    along(LARGE, p, 64, million, 1, 64, 0);
    along(LARGE, p, 4096, 4, 1, 4096, 0);
    along(LARGE, p, 33, 1000, 1, 33, 0);
    /* rows */
    along(LARGE, p, 1000, 10000, 10000, 1, 0);
    along(LARGE, p, 100000, 20, 20, 1, 0);
    along(LARGE, p, 5000, 3, 3, 1, 0);
    along(LARGE, p, 1000, 1000, 1100, 1, 0);
    along(LARGE, p, 40, 4000, 4000, 1, 0);
    along(LARGE, p, 100000, 1, 1, 1, 0);
    by_segment(LARGE, p, 1000, million, 0);
    by_segment(LARGE, p, 10, million, 0);
    /* what has no way of its own is copied, or left to threads and warps */
    along(LARGE, p, 1000, 1000, 1, 1000, 1);
    along(LARGE, p, 1000, 1000, 1000, 1, 1);
    along(LARGE, p, 1000, 1000, 3000, 3, 0);
    by_segment(LARGE, p, 1000, million, 1);
    for (int m = WITHOUT_BRANCHES; m <= LIKE_A_CPU; m++) {
        along(m, p, 100000, 10, 10, 1, 1);
        along(m, p, 100, 1000, 1000, 1, 1);
        along(m, p, 8192, 100, 1, 8192, 1);
        along(m, p, 10, 100000, 100000, 1, 1);
        along(m, p, 1, 10 * million, 10 * million, 1, 1);
        by_segment(m, p, 1000, million, 0);
        by_group(m, p, 100, million, 0, TALLY_I64);
        by_group(m, p, 3 * million, 10 * million, 0, TALLY_I32);
    }
    along(SMALL, p, 10, 10, 20, 2, 0);
    /* groups */
    by_group(LARGE, p, 100, million, 0, TALLY_I32);
    by_group(LARGE, p, 4000, million, 0, TALLY_I64);
    by_group(LARGE, p, 12000, million, 0, TALLY_I64);
    by_group(LARGE, p, 60000, million, 0, TALLY_I64);
    by_group(LARGE, p, 10 * million, 20 * million, 0, TALLY_I32);
    by_group(LARGE, p, 100, million, 1, TALLY_I64);
    /* vectors */
    of_vectors(LARGE, p, million, 64, 1, 10000, 0, 0);
    of_vectors(LARGE, p, million, 3, 1, 10000, 1, 0);
    of_vectors(LARGE, p, 1000, 4000, 2, 10, 1, 0);
    of_vectors(LARGE, p, 1000, 64, 1, 10, 0, 1);
    of_vectors(LIKE_A_CPU, p, 1000, 64, 1, 10, 1, 1);
    of_vectors(WITHOUT_BRANCHES, p, 1000, 64, 1, 10, 1, 0);
    of_vectors(LARGE, p, 1, million, 1, 1, 0, 0);
    /* whole arrays */
    whole(LARGE, p, 100);
    whole(LARGE, p, 100 * million);
    whole(WITHOUT_BRANCHES, p, 100);
    whole(LIKE_A_CPU, p, million);
}

/* So many workspaces that some have no head. */
static void take_heads(void) {
    static char workspaces[HEADS + 1];
    const tally_problem asked = {.op = TALLY_SUM, .type = TALLY_F32};
    const struct inputs in = {.x = &any, .n = 100000000};
    struct problem p;
    size_t bytes;
    must(problem_plan(&asked, &p) == TALLY_OK, "a problem");
    must(whole_prepare(&queues[LARGE], &p, in.n, &bytes) == TALLY_OK, "prepared");
    struct gpu_memory work = {bytes, NULL};
    for (size_t i = 0; i <= HEADS; i++)
        must(whole_enqueue(&queues[LARGE], &p, &in, &work, &workspaces[i], &any) == TALLY_OK,
             "under way");
}

static void combine(void *context, const void *left, const void *right, void *out, size_t count) {
    (void)context, (void)left, (void)right, (void)out, (void)count;
}

int main(void) {
    static const uint64_t identity;
    static const tally_operator user = {combine, NULL, &identity, 1, "a ^ b"};
    open_machines();
    for (int op = TALLY_SUM; op <= TALLY_USER; op++)
        for (int type = TALLY_I8; type <= TALLY_F64; type++) {
            const tally_problem asked = {.op = (tally_op)op,
                                         .type = (tally_type)type,
                                         .user = op == TALLY_USER ? &user : NULL};
            struct problem p;
            if (problem_plan(&asked, &p) != TALLY_OK || source_check(&p) != TALLY_OK) continue;
            take_all(&p);
            tally_problem two = asked;
            two.skip_nan = 1;
            must(problem_plan(&two, &p) == TALLY_OK, "without its NaNs");
            if (p.skip_nan) take_shown(&p);
            two.skip_nan = 0;
            two.also[0] = TALLY_COUNT;
            must(problem_plan(&two, &p) == TALLY_OK, "two values");
            whole(LARGE, &p, 1000000);
        }
    take_heads();
    for (int m = 0; m < MACHINES; m++)
        queue_close(&queues[m]);
    printf("gpu_paths: every launch is possible\n");
    return 0;
}
