/*
 * device.c - an OpenCL device as a machine that runs kernels: opencl_api.
 *
 * Each struct gpu has a context and an in-order queue of its own, so that threads with a gpu each
 * share nothing; or a context of the caller's, and a queue of its own there. Copies run in that queue,
 * launches and fills there or in a queue of the caller's: nothing here waits for the caller's, or has it wait.
 * A grid of G blocks of B threads is an NDRange of G * B work items in groups of B.
 * Floating arithmetic is done as written: nothing fast-math, no contraction.
 */
#include "base/invariant.h"
#include "base/status.h"
#include "gpu/cache.h"
#include "gpu/disk_cache.h"
#include "gpu/embed.h"
#include "gpu/memory.h"
#include "gpu/ring.h"
#include "opencl/binaries.h"
#include "opencl/opencl.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpu {
    size_t index;
    char name[24]; /* "opencl:0" */
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;  /* ours */
    cl_command_queue target; /* where launches and fills go: to ours, or to a caller's */
    struct gpu_ring ring;
    cl_mem ring_memory;
    cl_event read[RING_CHUNKS]; /* of each chunk of the ring: the device has read it; or NULL */
    cl_event marks[2];
    struct gpu_facts facts;
    char options[64]; /* for the compiler */
    struct gpu_memory_list memory;
    struct gpu_cache cache;
};

/* ---- Errors --------------------------------------------------------------------------------- */

static const struct {
    cl_int number;
    tally_status status;
    const char *name;
} errors[] = {
#define ERROR(name, number, status) {number, status, #name},
    OPENCL_ERRORS(ERROR)
#undef ERROR
};

/* Returns TALLY_OK for CL_SUCCESS, and otherwise the error's status; tally_error() then says that
 * `what` failed, and how. */
static tally_status outcome(const struct gpu *gpu, cl_int error, const char *what) {
    if (error == CL_SUCCESS) return TALLY_OK;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].number == error)
            return fail(errors[i].status, "opencl:%zu: %s: %s", gpu->index, what, errors[i].name);
    return fail(TALLY_ELOST, "opencl:%zu: %s: OpenCL error %d", gpu->index, what, error);
}

static tally_status no_memory(const struct gpu *gpu) {
    return fail(TALLY_ENOMEM, "opencl:%zu: no memory on the host", gpu->index);
}

/* ---- Devices -------------------------------------------------------------------------------- */

static cl_ulong number(cl_device_id device, cl_uint what) {
    cl_ulong value =
        0; /* narrower ones fill its lower bytes: devices and hosts are little-endian */
    return cl.clGetDeviceInfo(device, what, sizeof value, &value, NULL) == CL_SUCCESS ? value : 0;
}

static int has_extension(cl_device_id device, const char *name) {
    size_t size = 0;
    if (cl.clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 0, NULL, &size)) return 0;
    char *all = calloc(1, size + 1);
    const int found =
        all && cl.clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, size, all, NULL) == CL_SUCCESS &&
        strstr(all, name);
    free(all);
    return found;
}

/* Writes "the device (the platform)" to out. */
static void get_name(cl_device_id device, char *out, size_t room) {
    char name[128] = "unnamed", platform_name[128] = "OpenCL";
    cl_platform_id platform = NULL;
    cl.clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL);
    cl.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(cl_platform_id), &platform, NULL);
    if (platform)
        cl.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof platform_name, platform_name, NULL);
    snprintf(out, room, "%.80s (%.40s)", name, platform_name);
}

static void get_facts(cl_device_id device, struct gpu_facts *out) {
    *out = (struct gpu_facts){
        .units = (unsigned)number(device, CL_DEVICE_MAX_COMPUTE_UNITS),
        .block_max = (unsigned)number(device, CL_DEVICE_MAX_WORK_GROUP_SIZE),
        .shared_max = (size_t)number(device, CL_DEVICE_LOCAL_MEM_SIZE),
        .memory = number(device, CL_DEVICE_GLOBAL_MEM_SIZE),
        .allocation_max = number(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE),
        .doubles = number(device, CL_DEVICE_DOUBLE_FP_CONFIG) != 0,
        .atomics64 = has_extension(device, "cl_khr_int64_base_atomics") &&
                     has_extension(device, "cl_khr_int64_extended_atomics"),
    };
    out->is_cpu = out->reads_host_memory =
        (number(device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
    get_name(device, out->name, sizeof out->name);
}

static tally_status no_device(size_t i) {
    return fail(TALLY_EDEVICE, "there is no opencl:%zu: %s", i, opencl_absence());
}

static tally_status opencl_describe(size_t i, struct gpu_facts *out) {
    cl_device_id device = opencl_device(i);
    if (!device) return no_device(i);
    get_facts(device, out);
    return TALLY_OK;
}

static void opencl_close(struct gpu *gpu);
static const struct gpu_cache_calls cache_calls;

static cl_int make_context(struct gpu *gpu) {
    cl_platform_id platform = NULL;
    cl_int error = cl.clGetDeviceInfo(gpu->device, CL_DEVICE_PLATFORM, sizeof(cl_platform_id),
                                      &platform, NULL);
    if (error) return error;
    const intptr_t properties[] = {CL_CONTEXT_PLATFORM, (intptr_t)platform, 0};
    gpu->context = cl.clCreateContext(properties, 1, &gpu->device, NULL, NULL, &error);
    return error;
}

static cl_int take_context(struct gpu *gpu, cl_context theirs) {
    const cl_int error = cl.clRetainContext(theirs);
    if (error == CL_SUCCESS) gpu->context = theirs;
    return error;
}

/* Makes a context, or becomes an owner of the caller's, and makes a queue there. */
static cl_int connect(struct gpu *gpu, cl_context theirs) {
    cl_int error = theirs ? take_context(gpu, theirs) : make_context(gpu);
    if (error) return error;
    gpu->queue = gpu->target =
        cl.clCreateCommandQueue(gpu->context, gpu->device, CL_QUEUE_PROFILING_ENABLE, &error);
    return error;
}

static tally_status opencl_open(size_t i, void *context, struct gpu **out) {
    cl_device_id device = opencl_device(i);
    if (!device) return no_device(i);
    struct gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu) return fail(TALLY_ENOMEM, "opencl:%zu: no memory on the host", i);
    gpu->index = i;
    gpu->device = device;
    snprintf(gpu->name, sizeof gpu->name, "opencl:%zu", i);
    gpu_cache_open(&gpu->cache, &cache_calls);
    get_facts(device, &gpu->facts);
    const int exact_division =
        (number(device, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
    /* -w: some drivers write to the caller's terminal that a program has warnings. */
    snprintf(gpu->options, sizeof gpu->options, "-cl-std=CL1.2 -w%s",
             exact_division ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");

    const cl_int error = connect(gpu, context);
    if (error) {
        outcome(gpu, error, "opening the device");
        opencl_close(gpu);
        return error == CL_OUT_OF_HOST_MEMORY ? TALLY_ENOMEM : TALLY_EDEVICE;
    }
    *out = gpu;
    return TALLY_OK;
}

static const struct gpu_facts *opencl_facts(const struct gpu *gpu) {
    return &gpu->facts;
}

static void opencl_use(struct gpu *gpu, bool theirs, void *queue) {
    gpu->target = theirs ? queue : gpu->queue;
}

/* ---- Memory --------------------------------------------------------------------------------- */

/* Puts a cl_mem on the list of memory, with the caller's reference to it. release() drops that
 * reference, and so does a failure here. */
static tally_status keep(struct gpu *gpu, cl_mem object, size_t bytes, struct gpu_memory **out) {
    const struct gpu_memory made = {.native = object, .bytes = bytes};
    const tally_status status = gpu_memory_keep(&gpu->memory, gpu->name, made, out);
    if (status) cl.clReleaseMemObject(object);
    return status;
}

static tally_status create(struct gpu *gpu, cl_bits flags, void *host, size_t bytes,
                           struct gpu_memory **out) {
    char what[64];
    cl_int error = CL_SUCCESS;
    cl_mem object = cl.clCreateBuffer(gpu->context, flags, bytes ? bytes : 1, host, &error);
    if (error == CL_SUCCESS) return keep(gpu, object, bytes, out);
    if (error == CL_OUT_OF_RESOURCES) error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    snprintf(what, sizeof what, "a buffer of %zu bytes", bytes);
    return outcome(gpu, error, what);
}

static tally_status opencl_allocate(struct gpu *gpu, size_t bytes, struct gpu_memory **out) {
    return create(gpu, CL_MEM_READ_WRITE, NULL, bytes, out);
}

static tally_status opencl_allocate_visible(struct gpu *gpu, size_t bytes, struct gpu_memory **out,
                                            volatile void **host) {
    (void)bytes, (void)out, (void)host;
    return fail(TALLY_EUNSUPPORTED, "opencl:%zu: OpenCL 1.2 has no memory for both at a time",
                gpu->index);
}

static tally_status opencl_wrap(struct gpu *gpu, void *native, size_t bytes,
                                struct gpu_memory **out) {
    size_t size = 0;
    if (!native) return fail(TALLY_EINVAL, "opencl:%zu: no memory was given", gpu->index);
    cl_int error = cl.clGetMemObjectInfo(native, CL_MEM_SIZE, sizeof size, &size, NULL);
    if (error == CL_SUCCESS && size < bytes) error = CL_INVALID_VALUE;
    if (error == CL_SUCCESS) error = cl.clRetainMemObject(native);
    return error ? outcome(gpu, error, "the memory given") : keep(gpu, native, bytes, out);
}

/* Makes a buffer of the caller's memory. On a device that reads host memory `theirs` is an array
 * there, which may be read-only: kernels only read its buffer. On any other device it is a cl_mem
 * of this struct gpu's context. */
static tally_status opencl_adopt(struct gpu *gpu, void *theirs, size_t bytes,
                                 struct gpu_memory **out) {
    if (!gpu->facts.reads_host_memory) return opencl_wrap(gpu, theirs, bytes, out);
    if (!theirs) return fail(TALLY_EINVAL, "opencl:%zu: no memory was given", gpu->index);
    return bytes ? create(gpu, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, theirs, bytes, out)
                 : opencl_allocate(gpu, 0, out);
}

static void opencl_release(struct gpu *gpu, struct gpu_memory *memory) {
    (void)gpu;
    if (!memory) return;
    cl.clReleaseMemObject(memory->native);
    gpu_memory_drop(memory);
}

/* Allocates the ring's memory. A buffer that stays mapped is OpenCL's pinned memory: drivers read
 * it without a further copy. */
static char *ring_open(struct gpu *gpu) {
    const size_t bytes = (size_t)RING_CHUNKS * RING_CHUNK;
    cl_int error = CL_SUCCESS;
    cl_mem memory = cl.clCreateBuffer(gpu->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                      bytes, NULL, &error);
    if (error) return NULL;
    void *at =
        cl.clEnqueueMapBuffer(gpu->queue, memory, 1, CL_MAP_WRITE, 0, bytes, 0, NULL, NULL, &error);
    if (error == CL_SUCCESS && at) {
        gpu->ring_memory = memory;
        return at;
    }
    cl.clReleaseMemObject(memory);
    return NULL;
}

static int ring_wait(struct gpu *gpu, unsigned chunk) {
    if (!gpu->read[chunk]) return CL_SUCCESS;
    const cl_int error = cl.clWaitForEvents(1, &gpu->read[chunk]);
    if (error) return error;
    cl.clReleaseEvent(gpu->read[chunk]);
    gpu->read[chunk] = NULL;
    return CL_SUCCESS;
}

static int ring_send(struct gpu *gpu, unsigned chunk, const char *at, struct gpu_memory *to,
                     size_t offset, size_t bytes) {
    const cl_int error = cl.clEnqueueWriteBuffer(gpu->queue, to->native, 0, offset, bytes, at, 0,
                                                 NULL, &gpu->read[chunk]);
    return error ? error : cl.clFlush(gpu->queue); /* the driver may begin only at a flush */
}

/* Frees the ring. A command that reads it may still be under way: OpenCL keeps the memory until that ends. */
static void ring_close(struct gpu *gpu) {
    for (int i = 0; i < RING_CHUNKS; i++)
        if (gpu->read[i]) cl.clReleaseEvent(gpu->read[i]);
    gpu_ring_close(&gpu->ring);
    if (!gpu->ring.at) return;
    cl.clEnqueueUnmapMemObject(gpu->queue, gpu->ring_memory, gpu->ring.at, 0, NULL, NULL);
    cl.clReleaseMemObject(gpu->ring_memory);
}

static const struct gpu_ring_calls ring_calls = {ring_open, ring_wait, ring_send};

/* Copies bytes to the device. A device that reads host memory copies them itself, without a ring,
 * and the caller waits. To other devices large arrays go through the ring. */
static tally_status opencl_write(struct gpu *gpu, struct gpu_memory *to, size_t offset,
                                 const void *from, size_t bytes) {
    tally_status status = gpu_memory_check(gpu->name, to, offset, bytes);
    if (status || bytes == 0) return status;
    const bool by_ring = !gpu->facts.reads_host_memory && bytes > RING_LEAST &&
                         gpu_ring_ready(&gpu->ring, gpu, &ring_calls);
    const cl_int error = by_ring
                             ? gpu_ring_write(&gpu->ring, gpu, &ring_calls, to, offset, from, bytes)
                             : cl.clEnqueueWriteBuffer(gpu->queue, to->native, 1, offset, bytes,
                                                       from, 0, NULL, NULL);
    return outcome(gpu, error, "copying to the device");
}

static tally_status opencl_read(struct gpu *gpu, void *to, struct gpu_memory *from, size_t offset,
                                size_t bytes) {
    tally_status status = gpu_memory_check(gpu->name, from, offset, bytes);
    if (status) return status;
    const cl_int error = bytes ? cl.clEnqueueReadBuffer(gpu->queue, from->native, 1, offset, bytes,
                                                        to, 0, NULL, NULL)
                               : cl.clFinish(gpu->queue);
    return outcome(gpu, error, "copying from the device");
}

static tally_status opencl_fill(struct gpu *gpu, struct gpu_memory *to, size_t offset,
                                unsigned char byte, size_t bytes) {
    tally_status status = gpu_memory_check(gpu->name, to, offset, bytes);
    if (status || bytes == 0) return status;
    return outcome(
        gpu,
        cl.clEnqueueFillBuffer(gpu->target, to->native, &byte, 1, offset, bytes, 0, NULL, NULL),
        "filling memory");
}

static tally_status opencl_copy(struct gpu *gpu, struct gpu_memory *to, size_t to_offset,
                                struct gpu_memory *from, size_t from_offset, size_t bytes) {
    tally_status status = gpu_memory_check(gpu->name, to, to_offset, bytes);
    if (status == TALLY_OK) status = gpu_memory_check(gpu->name, from, from_offset, bytes);
    if (status || bytes == 0) return status;
    return outcome(gpu,
                   cl.clEnqueueCopyBuffer(gpu->queue, from->native, to->native, from_offset,
                                          to_offset, bytes, 0, NULL, NULL),
                   "copying on the device");
}

/* ---- Programs ------------------------------------------------------------------------------- */

/* Returns TALLY_ECOMPILE, with the compiler's own words on why `object` did not build for tally_error(). */
static tally_status complain(struct gpu *gpu, cl_program object, const char *file) {
    char line[400] = "the compiler said nothing";
    size_t size = 0;
    cl.clGetProgramBuildInfo(object, gpu->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    char *log = calloc(1, size + 1);
    if (log && cl.clGetProgramBuildInfo(object, gpu->device, CL_PROGRAM_BUILD_LOG, size, log,
                                        NULL) == CL_SUCCESS)
        embed_log_line(line, sizeof line, log);
    free(log);
    return fail(TALLY_ECOMPILE, "opencl:%zu: %s: %s", gpu->index, file, line);
}

/* Compiles a text: *out is its program. */
static tally_status compile_text(struct gpu *gpu, const char *text, const char *file,
                                 cl_program *out) {
    cl_int error = CL_SUCCESS;
    const char *texts[] = {"#pragma OPENCL FP_CONTRACT OFF\n", text};
    cl_program object = cl.clCreateProgramWithSource(gpu->context, 2, texts, NULL, &error);
    if (error) return outcome(gpu, error, "taking a kernel's source");
    error = cl.clBuildProgram(object, 1, &gpu->device, gpu->options, NULL, NULL);
    if (error == CL_SUCCESS) {
        *out = object;
        return TALLY_OK;
    }
    tally_status status =
        error == CL_OUT_OF_HOST_MEMORY ? no_memory(gpu) : complain(gpu, object, file);
    cl.clReleaseProgram(object);
    return status;
}

/* Takes the program from the disk cache, or compiles its text and then stores it there, if the cache keeps this
 * driver's programs. */
static tally_status compile(struct gpu *gpu, const struct gpu_text *of, struct gpu_program *made) {
    char compiler[BINARIES_NAME], *text = embed_expand(of->root);
    tally_status status = TALLY_OK;
    if (!text) return no_memory(gpu);
    binaries_name(gpu->device, gpu->options, compiler);
    char *key = binaries_are_kept(gpu->device) ? disk_cache_key(compiler, of->root, text) : NULL;
    cl_program program = key ? binaries_load(gpu->context, gpu->device, gpu->options, key) : NULL;
    if (!program) {
        status = compile_text(gpu, text, of->file, &program);
        if (status == TALLY_OK && key) binaries_store(program, gpu->device, key);
    }
    if (status == TALLY_OK) made->native[0] = program;
    free(key);
    free(text);
    return status;
}

static tally_status find_kernel(struct gpu *gpu, struct gpu_program *program, const char *name,
                                void **out) {
    char what[96];
    cl_int error = CL_SUCCESS;
    *out = cl.clCreateKernel(program->native[0], name, &error);
    snprintf(what, sizeof what, "kernel %s", name);
    return outcome(gpu, error, what);
}

static void drop_kernel(void *kernel) {
    cl.clReleaseKernel(kernel);
}

/* Releases a program at once. A launch that is under way holds its kernel, and a kernel its program, so
 * OpenCL frees it after the last of them. */
static bool unload(struct gpu *gpu, struct gpu_program *program) {
    (void)gpu;
    cl.clReleaseProgram(program->native[0]);
    return true;
}

static const struct gpu_cache_calls cache_calls = {
    .compile = compile, .find = find_kernel, .drop = drop_kernel, .unload = unload};

static tally_status opencl_build(struct gpu *gpu, const char *file, const char *prelude,
                                 const char *const *defines, size_t count,
                                 struct gpu_program **out) {
    const struct gpu_text text = {
        .file = file, .prelude = prelude, .defines = defines, .count = count};
    return gpu_cache_build(&gpu->cache, gpu, gpu->name, text, out);
}

static tally_status opencl_kernel(struct gpu *gpu, struct gpu_program *program, const char *name,
                                  struct gpu_kernel **out) {
    return gpu_cache_kernel(&gpu->cache, gpu, gpu->name, program, name, out);
}

/* ---- Work ----------------------------------------------------------------------------------- */

static tally_status opencl_launch(struct gpu *gpu, struct gpu_kernel *kernel, unsigned grid,
                                  unsigned block, const struct gpu_argument *arguments,
                                  size_t count) {
    const size_t local = block, global = (size_t)grid * block;
    cl_int error = CL_SUCCESS;
    TALLY_ASSERT(kernel->native);
    for (size_t i = 0; i < count && error == CL_SUCCESS; i++) {
        const struct gpu_argument *a = &arguments[i];
        error = cl.clSetKernelArg(kernel->native, (cl_uint)i, a->memory ? sizeof(cl_mem) : a->size,
                                  a->memory ? &a->memory->native : a->value);
    }
    if (error == CL_SUCCESS)
        error = cl.clEnqueueNDRangeKernel(gpu->target, kernel->native, 1, NULL, &global, &local, 0,
                                          NULL, NULL);
    return outcome(gpu, error, "launching a kernel");
}

static tally_status opencl_finish(struct gpu *gpu) {
    return outcome(gpu, cl.clFinish(gpu->queue), "waiting for the device");
}

static tally_status opencl_mark(struct gpu *gpu, int which) {
    cl_event *mark = &gpu->marks[which != 0];
    if (*mark) cl.clReleaseEvent(*mark);
    *mark = NULL;
    return outcome(gpu, cl.clEnqueueMarkerWithWaitList(gpu->queue, 0, NULL, mark),
                   "marking a time");
}

static tally_status opencl_elapsed(struct gpu *gpu, double *seconds) {
    cl_ulong times[2] = {0, 0}; /* nanoseconds */
    if (!gpu->marks[0] || !gpu->marks[1])
        return fail(TALLY_EINVAL, "opencl:%zu: no two times were marked", gpu->index);
    cl_int error = cl.clWaitForEvents(2, gpu->marks);
    for (int i = 0; i < 2 && error == CL_SUCCESS; i++)
        error = cl.clGetEventProfilingInfo(gpu->marks[i], CL_PROFILING_COMMAND_END, sizeof times[i],
                                           &times[i], NULL);
    if (error == CL_SUCCESS) *seconds = (double)(times[1] - times[0]) * 1e-9;
    return outcome(gpu, error, "measuring time");
}

static void opencl_close(struct gpu *gpu) {
    if (!gpu) return;
    if (gpu->queue) {
        ring_close(gpu);
        cl.clFinish(gpu->queue);
    }
    gpu_cache_close(&gpu->cache, gpu, unload);
    while (!LIST_EMPTY(&gpu->memory))
        opencl_release(gpu, LIST_FIRST(&gpu->memory));
    for (int i = 0; i < 2; i++)
        if (gpu->marks[i]) cl.clReleaseEvent(gpu->marks[i]);
    if (gpu->queue) cl.clReleaseCommandQueue(gpu->queue);
    if (gpu->context) cl.clReleaseContext(gpu->context);
    free(gpu);
}

const struct gpu_api opencl_api = {
    .name = "opencl",
    .count = opencl_count,
    .describe = opencl_describe,
    .open = opencl_open,
    .close = opencl_close,
    .facts = opencl_facts,
    .allocate = opencl_allocate,
    .release = opencl_release,
    .allocate_visible = opencl_allocate_visible,
    .adopt = opencl_adopt,
    .wrap = opencl_wrap,
    .write = opencl_write,
    .read = opencl_read,
    .fill = opencl_fill,
    .copy = opencl_copy,
    .build = opencl_build,
    .kernel = opencl_kernel,
    .use = opencl_use,
    .launch = opencl_launch,
    .finish = opencl_finish,
    .mark = opencl_mark,
    .elapsed = opencl_elapsed,
};
