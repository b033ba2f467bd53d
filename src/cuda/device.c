/*
 * device.c - a CUDA device as a machine that runs kernels: cuda_api.
 *
 * Each struct gpu has a stream of its own in its context (context.h). Copies run on that stream, launches and fills there
 * or on a stream of the caller's, which may be one that is being captured into a graph: nothing here waits for it, or has
 * it wait.
 */
#include "base/invariant.h"
#include "base/status.h"
#include "cuda/context.h"
#include "cuda/errors.h"
#include "cuda/graphs.h"
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "cuda/modules.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Opened --------------------------------------------------------------------------------- */

static size_t cuda_count(void) {
    int count = 0;
    if (driver_ready(false) || cu.cuDeviceGetCount(&count) || count < 0) return 0;
    return count < DEVICES_MAX ? (size_t)count : DEVICES_MAX;
}

static tally_status find_device(size_t i, CUdevice *out) {
    int count = 0;
    tally_status status = driver_ready(true);
    if (status) return status;
    CUresult error = cu.cuDeviceGetCount(&count);
    if (error == CUDA_SUCCESS && (i >= DEVICES_MAX || (int)i >= count))
        return fail(TALLY_EDEVICE, "there is no cuda:%zu; devices here: %d", i, count);
    if (error == CUDA_SUCCESS) error = cu.cuDeviceGet(out, (int)i);
    return cuda_outcome(i, error, "looking for the device");
}

/* Returns an attribute of a device; 0, without asking, where *error says that an earlier call failed. */
static unsigned attribute(CUdevice device, int which, CUresult *error) {
    int value = 0;
    if (*error == CUDA_SUCCESS) *error = cu.cuDeviceGetAttribute(&value, which, device);
    return (unsigned)value;
}

static tally_status get_facts(size_t i, CUdevice device, struct gpu_facts *out) {
    size_t memory = 0;
    struct gpu_facts facts = {.doubles = 1,
                              .atomics64 = 1,
                              .has_addresses = true,
                              .is_precompiled = true,
                              .has_uniform_branches = true};
    CUresult error = cu.cuDeviceGetName(facts.name, sizeof facts.name, device);
    if (error == CUDA_SUCCESS) error = cu.cuDeviceTotalMem(&memory, device);
    facts.memory = facts.allocation_max = memory;
    facts.units = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &error);
    facts.block_max = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &error);
    facts.shared_max = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &error);
    facts.major = (int)attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &error);
    facts.minor = (int)attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &error);
    CUresult unknown =
        error; /* a driver that does not know the ratio opens the device nevertheless */
    facts.has_slow_doubles =
        attribute(device, CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, &unknown) >
        SLOW_DOUBLES;
    if (error == CUDA_SUCCESS) *out = facts;
    return cuda_outcome(i, error, "asking the device what it is");
}

static tally_status cuda_describe(size_t i, struct gpu_facts *out) {
    CUdevice device = 0;
    tally_status status = find_device(i, &device);
    return status ? status : get_facts(i, device, out);
}

static void cuda_close(struct gpu *gpu);

/* Makes the stream and the events that every struct gpu has. What was made before a failure is left for
 * cuda_close(). */
static tally_status prepare(struct gpu *gpu) {
    CUdevice device = gpu->device;
    tally_status status = cuda_enter(gpu);
    if (status) return status;
    CUresult error = gpu->given ? cu.cuCtxGetDevice(&device) : CUDA_SUCCESS;
    if (error == CUDA_SUCCESS && device != gpu->device) {
        cuda_end(gpu, error);
        return fail(TALLY_EINVAL, "cuda:%zu: the context given is another device's", gpu->index);
    }
    if (error == CUDA_SUCCESS) error = cu.cuStreamCreate(&gpu->stream, CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 2 && error == CUDA_SUCCESS; i++)
        error = cu.cuEventCreate(&gpu->marks[i], 0);
    gpu->queue = gpu->stream;
    return cuda_leave(gpu, error, "making a stream");
}

static tally_status cuda_open(size_t i, void *context, struct gpu **out) {
    CUdevice device = 0;
    tally_status status = find_device(i, &device);
    if (status) return status;
    struct gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu) return fail(TALLY_ENOMEM, "cuda:%zu: no memory on the host", i);
    gpu->index = i;
    gpu->device = device;
    snprintf(gpu->name, sizeof gpu->name, "cuda:%zu", i);
    gpu_cache_open(&gpu->cache, &module_calls);
    status = get_facts(i, device, &gpu->facts);
    if (status == TALLY_OK)
        status = cuda_outcome(i, context ? context_take(gpu, context) : context_retain(gpu),
                              "opening the device");
    if (status) {
        free(gpu);
        return status;
    }
    status = prepare(gpu);
    if (status) {
        cuda_close(gpu);
        return status;
    }
    *out = gpu;
    return TALLY_OK;
}

static const struct gpu_facts *cuda_facts(const struct gpu *gpu) {
    return &gpu->facts;
}

static void cuda_use(struct gpu *gpu, bool theirs, void *queue) {
    gpu->queue = theirs ? queue : gpu->stream;
}

/* ---- Work ----------------------------------------------------------------------------------- */

#define ARGUMENTS_MAX 32

static tally_status cuda_launch(struct gpu *gpu, struct gpu_kernel *kernel, unsigned grid,
                                unsigned block, const struct gpu_argument *arguments,
                                size_t count) {
    void *parameters[ARGUMENTS_MAX];
    if (count > ARGUMENTS_MAX)
        return fail(TALLY_EINVAL, "cuda:%zu: a kernel with %zu arguments", gpu->index, count);
    if (graphs_take(gpu, kernel, grid, block, arguments, count)) return TALLY_OK;
    for (size_t i = 0; i < count; i++)
        parameters[i] =
            arguments[i].memory ? (void *)&arguments[i].memory->native : (void *)arguments[i].value;
    tally_status status = graphs_flush(gpu);
    if (status == TALLY_OK) status = cuda_enter(gpu);
    if (status) return status;
    return cuda_leave(gpu, launch_kernel(gpu, kernel, grid, block, parameters),
                      "launching a kernel");
}

static bool cuda_is_captured(struct gpu *gpu, void *queue) {
    if (cuda_begin(gpu) != CUDA_SUCCESS) return true;
    const bool is = launch_is_captured(queue);
    return cuda_end(gpu, CUDA_SUCCESS) != CUDA_SUCCESS || is;
}

static tally_status cuda_finish(struct gpu *gpu) {
    tally_status status = graphs_flush(gpu);
    if (status == TALLY_OK) status = cuda_enter(gpu);
    return status ? status
                  : cuda_leave(gpu, cu.cuStreamSynchronize(gpu->stream), "waiting for the device");
}

static tally_status cuda_mark(struct gpu *gpu, int which) {
    tally_status status = graphs_flush(gpu);
    if (status == TALLY_OK) status = cuda_enter(gpu);
    if (status) return status;
    status =
        cuda_leave(gpu, cu.cuEventRecord(gpu->marks[which != 0], gpu->stream), "marking a time");
    gpu->marked[which != 0] = status == TALLY_OK;
    return status;
}

static tally_status cuda_elapsed(struct gpu *gpu, double *seconds) {
    float milliseconds = 0;
    if (!gpu->marked[0] || !gpu->marked[1])
        return fail(TALLY_EINVAL, "cuda:%zu: no two times were marked", gpu->index);
    tally_status status = cuda_enter(gpu);
    if (status) return status;
    CUresult error = cu.cuEventSynchronize(gpu->marks[1]);
    if (error == CUDA_SUCCESS)
        error = cu.cuEventElapsedTime(&milliseconds, gpu->marks[0], gpu->marks[1]);
    status = cuda_leave(gpu, error, "measuring time");
    if (status == TALLY_OK) *seconds = (double)milliseconds * 1e-3;
    return status;
}

/* ---- Closed --------------------------------------------------------------------------------- */

/* Keeps the first error of several calls, which are made whatever the others return. */
static void keep_error(CUresult *first, CUresult more) {
    if (*first == CUDA_SUCCESS) *first = more;
}

/* Frees all that this struct gpu has in its context, and the structs that stand for it. Of a context that
 * has been reset only the structs are left. Nothing waits for a caller's stream. */
static void clean_up(struct gpu *gpu) {
    struct gpu_memory *memory;
    gpu_ring_close(&gpu->ring);
    CUresult error = cuda_begin(gpu);
    const bool alive = error == CUDA_SUCCESS;
    graphs_close(gpu, alive);
    if (alive && gpu->stream) keep_error(&error, cu.cuStreamSynchronize(gpu->stream));
    gpu_cache_close(&gpu->cache, gpu, alive ? module_unload_last : NULL);
    while ((memory = LIST_FIRST(&gpu->memory))) {
        if (alive) keep_error(&error, memory_free(memory));
        gpu_memory_drop(memory);
    }
    if (!alive) return;
    if (gpu->ring.at) keep_error(&error, cu.cuMemFreeHost(gpu->ring.at));
    for (int i = 0; i < RING_CHUNKS; i++)
        if (gpu->read[i]) keep_error(&error, cu.cuEventDestroy(gpu->read[i]));
    for (int i = 0; i < 2; i++)
        if (gpu->marks[i]) keep_error(&error, cu.cuEventDestroy(gpu->marks[i]));
    if (gpu->stream) keep_error(&error, cu.cuStreamDestroy(gpu->stream));
    cuda_end(gpu, error);
}

static void cuda_close(struct gpu *gpu) {
    if (!gpu) return;
    clean_up(gpu);
    context_release(gpu);
    free(gpu);
}

const struct gpu_api cuda_api = {
    .name = "cuda",
    .count = cuda_count,
    .describe = cuda_describe,
    .open = cuda_open,
    .close = cuda_close,
    .facts = cuda_facts,
    .allocate = cuda_allocate,
    .release = cuda_release,
    .allocate_visible = cuda_allocate_visible,
    .adopt = cuda_adopt,
    .wrap = cuda_adopt,
    .write = cuda_write,
    .read = cuda_read,
    .fill = cuda_fill,
    .copy = cuda_copy,
    .build = cuda_build,
    .kernel = cuda_kernel,
    .make = cuda_make,
    .use = cuda_use,
    .is_captured = cuda_is_captured,
    .launch = cuda_launch,
    .hold = graphs_hold,
    .send = graphs_send,
    .finish = cuda_finish,
    .mark = cuda_mark,
    .elapsed = cuda_elapsed,
};
