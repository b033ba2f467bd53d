/*
 * gpu.c - the model behind the interface that CUDA and OpenCL have too.
 *
 * Nothing is compiled at run time: the program holds the kernels of src/kernels for every type and operator
 * that they are for (programs/programs.h), and "building" finds those that the file and the defines name.
 * Time is the host's, and says nothing about any GPU.
 */
#include "model/gpu.h"

#include "model/programs/programs.h"
#include "status.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct gpu_memory {
    void *at; /* as the kernels see it */
    size_t bytes;
};

struct gpu_kernel {
    const model_kernel *kernel;
    struct gpu_kernel *next;
};

struct gpu_program {
    const struct model_program *program;
    struct gpu_kernel *kernels; /* those that were asked for */
    struct gpu_program *next;
};

struct gpu {
    model_device *device;
    struct gpu_program *programs;
    struct model_probe *probe;
    struct gpu_memory **memories; /* not yet released */
    size_t memory_count;
    double marks[2];
};

enum { ARGUMENTS_MAX = 8 };

static const struct gpu_facts model_facts = {
    .name = "a simulated GPU that counts",
    .units = MODEL_PROCESSORS,
    .block_max = MODEL_BLOCK_MAX,
    .shared_max = 48 << 10,
    .memory = UINT64_C(1) << 40, /* as far as the host's goes */
    .allocation_max = UINT64_C(1) << 40,
    .doubles = 1,
    .atomics64 = 1,
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

static tally_status open_model(size_t i, void *context, struct gpu **out) {
    if (i > 0) return fail(TALLY_EDEVICE, "there is one model, model:0");
    if (context) return fail(TALLY_EUNSUPPORTED, "the model has no contexts");
    struct gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu || model_open(&gpu->device) != MODEL_OK) {
        free(gpu);
        return fail(TALLY_ENOMEM, "no memory for the model");
    }
    *out = gpu;
    return TALLY_OK;
}

static void free_program(struct gpu_program *program) {
    for (struct gpu_kernel *kernel = program->kernels, *next; kernel; kernel = next) {
        next = kernel->next;
        free(kernel);
    }
    free(program);
}

static void close_model(struct gpu *gpu) {
    if (!gpu) return;
    for (struct gpu_program *program = gpu->programs, *next; program; program = next) {
        next = program->next;
        free_program(program);
    }
    for (size_t i = 0; i < gpu->memory_count; i++)
        free(gpu->memories[i]);
    free(gpu->memories);
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

/* The model's status as ours, with its line. */
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
    struct gpu_memory **memories =
        realloc(gpu->memories, (gpu->memory_count + 1) * sizeof *memories);
    if (memories) gpu->memories = memories;
    struct gpu_memory *memory = malloc(sizeof *memory);
    if (!memories || !memory) {
        free(memory);
        return fail(TALLY_ENOMEM, "no memory for a buffer of the model");
    }
    memory->bytes = bytes;
    tally_status status = told(gpu, model_allocate(gpu->device, bytes, &memory->at));
    if (status != TALLY_OK) {
        free(memory);
        return status;
    }
    gpu->memories[gpu->memory_count++] = memory;
    *out = memory;
    return TALLY_OK;
}

static void release(struct gpu *gpu, struct gpu_memory *memory) {
    if (!memory) return;
    for (size_t i = 0; i < gpu->memory_count; i++)
        if (gpu->memories[i] == memory) {
            gpu->memories[i] = gpu->memories[--gpu->memory_count];
            model_free(gpu->device, memory->at);
            free(memory);
            return;
        }
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

static char *place(const struct gpu_memory *memory, size_t offset) {
    return (char *)memory->at + offset;
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
    if (from_offset > from->bytes || bytes > from->bytes - from_offset)
        return fail(TALLY_EINVAL, "model: a copy leaves its buffer");
    return write_memory(gpu, to, to_offset, place(from, from_offset), bytes);
}

/* ---- Programs ---- */

static tally_status build(struct gpu *gpu, const char *file, const char *prelude,
                          const char *const *defines, size_t define_count,
                          struct gpu_program **out) {
    if (prelude && *prelude)
        return fail(TALLY_EUNSUPPORTED, "the model runs the kernels it was built with only");
    const struct model_program *found = model_program_find(file, defines, define_count);
    if (!found)
        return fail(TALLY_EUNSUPPORTED, "the model was built without %s for this type and operator",
                    file);
    struct gpu_program *program = gpu->programs;
    while (program && program->program != found)
        program = program->next;
    if (!program) {
        program = calloc(1, sizeof *program);
        if (!program) return fail(TALLY_ENOMEM, "no memory for a program of the model");
        *program = (struct gpu_program){.program = found, .next = gpu->programs};
        gpu->programs = program;
    }
    *out = program;
    return TALLY_OK;
}

static tally_status get_kernel(struct gpu *gpu, struct gpu_program *program, const char *name,
                               struct gpu_kernel **out) {
    (void)gpu;
    const model_kernel *found = model_program_kernel(program->program, name);
    if (!found) return fail(TALLY_ECOMPILE, "the program has no kernel '%s'", name);
    struct gpu_kernel *kernel = program->kernels;
    while (kernel && kernel->kernel != found)
        kernel = kernel->next;
    if (!kernel) {
        kernel = malloc(sizeof *kernel);
        if (!kernel) return fail(TALLY_ENOMEM, "no memory for a kernel of the model");
        *kernel = (struct gpu_kernel){.kernel = found, .next = program->kernels};
        program->kernels = kernel;
    }
    *out = kernel;
    return TALLY_OK;
}

/* ---- Launches ---- */

static void on_step(void *context, const model_step *step) {
    const struct model_probe *probe = context;
    probe->on_step(probe->context, probe->launches, step);
}

/* There is one queue, and what is put there is done at once. */
static void use(struct gpu *gpu, bool theirs, void *queue) {
    (void)gpu, (void)theirs, (void)queue;
}

static tally_status launch(struct gpu *gpu, struct gpu_kernel *kernel, unsigned grid,
                           unsigned block, const struct gpu_argument *arguments,
                           size_t argument_count) {
    void *values[ARGUMENTS_MAX];
    if (argument_count != kernel->kernel->arguments || argument_count > ARGUMENTS_MAX)
        return fail(TALLY_EINVAL, "kernel %s takes %u arguments, not %zu", kernel->kernel->name,
                    kernel->kernel->arguments, argument_count);
    for (size_t i = 0; i < argument_count; i++)
        values[i] =
            arguments[i].memory ? (void *)&arguments[i].memory->at : (void *)arguments[i].value;

    struct model_probe *probe = gpu->probe;
    const model_launch l = {.kernel = kernel->kernel,
                            .grid = grid,
                            .block = block,
                            .arguments = values,
                            .on_step = probe && probe->on_step ? on_step : NULL,
                            .context = probe};
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
