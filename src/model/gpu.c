/*
 * gpu.c - the model behind the interface that CUDA and OpenCL have too.
 *
 * Nothing is compiled at run time: the program holds the kernels of src/kernels for every type and operator
 * that they are for (programs/programs.h), and "building" finds those that the file and the defines name.
 * Time is the host's, and says nothing about any GPU.
 */
#include "model/gpu.h"

#include "base/invariant.h"
#include "base/status.h"
#include "gpu/cache.h"
#include "gpu/memory.h"
#include "model/programs/programs.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct gpu {
    model_device *device;
    struct model_probe *probe;
    struct gpu_memory_list memory;
    struct gpu_cache cache;
    double marks[2];
};

enum { ARGUMENTS_MAX = 9 };

static const struct gpu_facts model_facts = {
    .name = "a simulated GPU that counts",
    .units = MODEL_PROCESSORS,
    .block_max = MODEL_BLOCK_MAX,
    .shared_max = 48 << 10,
    .memory = UINT64_C(1) << 40, /* more than there is: the host's memory is the limit */
    .allocation_max = UINT64_C(1) << 40,
    .block_only = 256, /* GPU_BLOCK of kernels/tuning.h */
    .doubles = 1,
    .atomics64 = 1,
    .is_simulated = true,
    .is_precompiled = true,
    .has_uniform_branches = true,
};

/* ---- The device ---- */

static size_t count(void) {
    return 1;
}

static tally_status describe(size_t i, struct gpu_facts *out) {
    if (i > 0) return fail(TALLY_EDEVICE, "there is one model, model:0");
    *out = model_facts;
    return TALLY_OK;
}

static const struct gpu_cache_calls cache_calls;

static tally_status open_model(size_t i, void *context, struct gpu **out) {
    if (i > 0) return fail(TALLY_EDEVICE, "there is one model, model:0");
    if (context) return fail(TALLY_EUNSUPPORTED, "the model has no contexts");
    struct gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu || model_open(&gpu->device) != MODEL_OK) {
        free(gpu);
        return fail(TALLY_ENOMEM, "no memory for the model");
    }
    gpu_cache_open(&gpu->cache, &cache_calls);
    *out = gpu;
    return TALLY_OK;
}

static void close_model(struct gpu *gpu) {
    if (!gpu) return;
    gpu_cache_close(&gpu->cache, gpu, NULL); /* the kernels are part of this program */
    while (!LIST_EMPTY(&gpu->memory))
        gpu_memory_drop(LIST_FIRST(&gpu->memory));
    model_close(gpu->device);
    free(gpu);
}

static const struct gpu_facts *facts(const struct gpu *gpu) {
    (void)gpu;
    return &model_facts;
}

void model_gpu_watch(struct gpu *gpu, struct model_probe *probe) {
    gpu->probe = probe;
}

/* ---- Memory ---- */

/* Returns the tally_status for one of the model's; the model's line becomes that of tally_error(). */
static tally_status told(const struct gpu *gpu, model_status status) {
    switch (status) {
    case MODEL_OK:
        return TALLY_OK;
    case MODEL_EINVAL:
        return fail(TALLY_EINVAL, "model: %s", model_error(gpu->device));
    case MODEL_ENOMEM:
        return fail(TALLY_ENOMEM, "model: %s", model_error(gpu->device));
    case MODEL_EFAULT:
        break;
    }
    return fail(TALLY_ELOST, "model: %s", model_error(gpu->device));
}

static tally_status allocate(struct gpu *gpu, size_t bytes, struct gpu_memory **out) {
    struct gpu_memory made = {.bytes = bytes, .ours = true};
    tally_status status = told(gpu, model_allocate(gpu->device, bytes, &made.native));
    if (status != TALLY_OK) return status;
    status = gpu_memory_keep(&gpu->memory, "model", made, out);
    if (status != TALLY_OK) model_free(gpu->device, made.native);
    return status;
}

static void release(struct gpu *gpu, struct gpu_memory *memory) {
    if (!memory) return;
    model_free(gpu->device, memory->native);
    gpu_memory_drop(memory);
}

static tally_status allocate_visible(struct gpu *gpu, size_t bytes, struct gpu_memory **out,
                                     volatile void **host) {
    (void)gpu, (void)bytes, (void)out, (void)host;
    return fail(TALLY_EUNSUPPORTED, "the model's memory is not the host's");
}

static tally_status adopt(struct gpu *gpu, void *theirs, size_t bytes, struct gpu_memory **out) {
    (void)gpu, (void)theirs, (void)bytes, (void)out;
    return fail(TALLY_EUNSUPPORTED, "the model works in memory of its own only");
}

static void guard(struct gpu *gpu, struct gpu_memory *memory, const struct gpu_guard *guards,
                  size_t count) {
    model_guard own[MODEL_GUARDS];
    TALLY_ASSERT(count <= MODEL_GUARDS);
    for (size_t i = 0; i < count; i++)
        own[i] = (model_guard){guards[i].from, guards[i].to};
    model_set_guards(gpu->device, memory->native, own, count);
}

static char *place(const struct gpu_memory *memory, size_t offset) {
    return (char *)memory->native + offset;
}

static tally_status write_memory(struct gpu *gpu, struct gpu_memory *to, size_t offset,
                                 const void *from, size_t bytes) {
    return told(gpu, model_write(gpu->device, place(to, offset), from, bytes));
}

static tally_status read_memory(struct gpu *gpu, void *to, struct gpu_memory *from, size_t offset,
                                size_t bytes) {
    return told(gpu, model_read(gpu->device, to, place(from, offset), bytes));
}

static tally_status fill(struct gpu *gpu, struct gpu_memory *to, size_t offset, unsigned char byte,
                         size_t bytes) {
    return told(gpu, model_fill(gpu->device, place(to, offset), byte, bytes));
}

static tally_status copy(struct gpu *gpu, struct gpu_memory *to, size_t to_offset,
                         struct gpu_memory *from, size_t from_offset, size_t bytes) {
    const tally_status status = gpu_memory_check("model", from, from_offset, bytes);
    if (status != TALLY_OK) return status;
    return write_memory(gpu, to, to_offset, place(from, from_offset), bytes);
}

/* ---- Programs ---- */

static tally_status find_program(struct gpu *gpu, const struct gpu_text *text,
                                 struct gpu_program *program) {
    (void)gpu;
    if (text->prelude && *text->prelude)
        return fail(TALLY_EUNSUPPORTED, "the model runs the kernels it was built with only");
    const struct model_program *found = model_program_find(text->file, text->defines, text->count);
    if (!found)
        return fail(TALLY_EUNSUPPORTED, "the model was built without %s for this type and operator",
                    text->file);
    program->native[0] = (void *)(uintptr_t)found;
    return TALLY_OK;
}

static tally_status find_kernel(struct gpu *gpu, struct gpu_program *program, const char *name,
                                void **out) {
    (void)gpu;
    const model_kernel *found = model_program_kernel(program->native[0], name);
    if (!found) return fail(TALLY_ECOMPILE, "the program has no kernel '%s'", name);
    *out = (void *)(uintptr_t)found;
    return TALLY_OK;
}

static const struct gpu_cache_calls cache_calls = {.compile = find_program, .find = find_kernel};

static tally_status build(struct gpu *gpu, const char *file, const char *prelude,
                          const char *const *defines, size_t define_count,
                          struct gpu_program **out) {
    const struct gpu_text text = {
        .file = file, .prelude = prelude, .defines = defines, .count = define_count};
    return gpu_cache_build(&gpu->cache, gpu, "model", text, out);
}

static tally_status get_kernel(struct gpu *gpu, struct gpu_program *program, const char *name,
                               struct gpu_kernel **out) {
    return gpu_cache_kernel(&gpu->cache, gpu, "model", program, name, out);
}

/* ---- Launches ---- */

static void on_step(void *context, const model_step *step) {
    const struct model_probe *probe = context;
    probe->on_step(probe->context, probe->launches, step);
}

/* Uses a queue. The model has none: a launch is done when the call returns. */
static void use(struct gpu *gpu, bool theirs, void *queue) {
    (void)gpu, (void)theirs, (void)queue;
}

static tally_status launch(struct gpu *gpu, struct gpu_kernel *kernel, unsigned grid,
                           unsigned block, const struct gpu_argument *arguments,
                           size_t argument_count) {
    const model_kernel *of = kernel->native;
    void *values[ARGUMENTS_MAX];
    if (argument_count != of->arguments || argument_count > ARGUMENTS_MAX)
        return fail(TALLY_EINVAL, "kernel %s takes %u arguments, not %zu", of->name, of->arguments,
                    argument_count);
    for (size_t i = 0; i < argument_count; i++)
        values[i] =
            arguments[i].memory ? (void *)&arguments[i].memory->native : (void *)arguments[i].value;

    struct model_probe *probe = gpu->probe;
    const model_launch l = {.kernel = of,
                            .grid = grid,
                            .block = block,
                            .arguments = values,
                            .on_step = probe && probe->on_step ? on_step : NULL,
                            .context = probe,
                            .accesses = probe && probe->on_step && probe->accesses};
    tally_status status = told(gpu, model_run(gpu->device, &l, probe ? &probe->counts : NULL));
    if (probe) probe->launches++;
    return status;
}

static tally_status finish(struct gpu *gpu) {
    (void)gpu;
    return TALLY_OK;
}

static tally_status mark(struct gpu *gpu, int which) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    gpu->marks[which] = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    return TALLY_OK;
}

static tally_status elapsed(struct gpu *gpu, double *seconds) {
    *seconds = gpu->marks[1] - gpu->marks[0];
    return TALLY_OK;
}

const struct gpu_api model_api = {
    .name = "model",
    .count = count,
    .describe = describe,
    .open = open_model,
    .close = close_model,
    .facts = facts,
    .allocate = allocate,
    .release = release,
    .allocate_visible = allocate_visible,
    .adopt = adopt,
    .wrap = adopt,
    .guard = guard,
    .write = write_memory,
    .read = read_memory,
    .fill = fill,
    .copy = copy,
    .build = build,
    .kernel = get_kernel,
    .use = use,
    .launch = launch,
    .finish = finish,
    .mark = mark,
    .elapsed = elapsed,
};
