/*
 * device.c - a CUDA device as a machine that runs kernels: cuda_api.
 *
 * Each struct gpu has a stream of its own in the device's primary context, the one that everything
 * else in the process uses, so that device pointers can be handed in; or in a context of the caller's.
 * A call makes that context current for its thread and afterwards puts back what was there.
 *
 * Copies run on that stream, launches and fills there or on a stream of the caller's, which may be one
 * that is being captured into a graph: nothing here waits for it, or has it wait.
 *
 * Some errors are the end of a context: a kernel that goes astray, a device that fails. The device is
 * then marked as lost, all calls of all struct gpu on it fail, and the next open resets the context
 * and begins a new generation. A struct gpu of an older generation holds nothing any more: it can
 * only be closed. A lock that calls hold for reading keeps the reset away from calls under way.
 * A caller's context is the caller's to give up. Where it is the primary one, generations count there
 * too; otherwise it is lost for good, and the driver says so to every call.
 */
#include "cuda/compiler.h"
#include "cuda/driver.h"
#include "cuda/images.h"
#include "cuda/ring.h"
#include "gpu/gpu.h"
#include "status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct gpu_memory {
    CUdeviceptr address;
    void *host; /* where the host sees it, if it does */
    size_t bytes;
    bool ours; /* to be freed */
    LIST_ENTRY(gpu_memory) link;
};

struct gpu_kernel {
    char *name;
    CUfunction function;
    LIST_ENTRY(gpu_kernel) link;
};

struct gpu_program {
    char *root; /* what it was made from: embed_root() */
    CUmodule module;
    LIST_HEAD(, gpu_kernel) kernels;
    LIST_ENTRY(gpu_program) link;
};

struct gpu {
    size_t index;
    CUdevice device;
    CUcontext context;
    bool given;          /* the context is the caller's */
    bool primary;        /* it is the device's primary one */
    unsigned generation; /* of that */
    CUstream stream;     /* ours */
    CUstream queue;      /* where launches and fills go: to ours, or to a caller's */
    struct ring ring;
    CUevent marks[2];
    bool marked[2];
    struct gpu_facts facts;
    LIST_HEAD(, gpu_memory) memory;
    LIST_HEAD(, gpu_program) programs;
};

/* ---- Errors --------------------------------------------------------------------------------- */

/* What is said of an error beyond the driver's own words, and what status it is. */
static const struct {
    CUresult error;
    tally_status status;
    const char *hint;
} meanings[] = {
    {CUDA_ERROR_INVALID_VALUE, TALLY_EINVAL, ""},
    {CUDA_ERROR_INVALID_HANDLE, TALLY_EINVAL, ""},
    {CUDA_ERROR_NOT_FOUND, TALLY_EINVAL, ""},
    {CUDA_ERROR_OUT_OF_MEMORY, TALLY_ENOMEM, ""},
    {CUDA_ERROR_NO_DEVICE, TALLY_EDEVICE, ""},
    {CUDA_ERROR_INVALID_DEVICE, TALLY_EDEVICE, ""},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, TALLY_EDEVICE, ""},
    {CUDA_ERROR_SYSTEM_NOT_READY, TALLY_EDEVICE, ""},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, TALLY_EDEVICE, ""},
    {CUDA_ERROR_INVALID_IMAGE, TALLY_ECOMPILE, ""},
    {CUDA_ERROR_INVALID_PTX, TALLY_ECOMPILE, ""},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, TALLY_ECOMPILE,
     "; the driver is older than the kernels, or the device is"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, TALLY_ECOMPILE,
     "; the driver is older than the kernels' PTX: a newer driver, or an older NVRTC, is needed"},
    {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, TALLY_ECOMPILE,
     "; the driver's own compiler, libnvidia-ptxjitcompiler, is not installed"},
    {CUDA_ERROR_JIT_COMPILATION_DISABLED, TALLY_ECOMPILE, ""},
};

/* Errors after which a context does nothing any more. */
static bool is_final(CUresult error) {
    switch (error) {
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_UNKNOWN:
        return true;
    default: /* what a kernel does wrong: stack, instruction, alignment, address space, counter */
        return error >= CUDA_ERROR_HARDWARE_STACK_ERROR && error <= CUDA_ERROR_LAUNCH_FAILED;
    }
}

/* TALLY_OK for CUDA_SUCCESS; otherwise the status of that error, with a line that says what failed. */
static tally_status outcome(size_t index, CUresult error, const char *what) {
    const char *hint = "";
    tally_status status = TALLY_ELOST;
    if (error == CUDA_SUCCESS) return TALLY_OK;
    if (error >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
        error <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
        status = TALLY_EINVAL; /* the caller's stream was not ready for this; nothing is lost */
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (meanings[i].error == error) {
            status = meanings[i].status;
            hint = meanings[i].hint;
        }
    return fail(status, "cuda:%zu: %s: %s (%s)%s", index, what, driver_error_name(error),
                driver_error_text(error), hint);
}

static tally_status no_memory(size_t index) {
    return fail(TALLY_ENOMEM, "cuda:%zu: no memory on the host", index);
}

/* ---- Devices and their contexts ------------------------------------------------------------- */

#define DEVICES_MAX 64

static struct device {
    pthread_rwlock_t lock; /* read: a call is under way. write: the context is reset */
    atomic_bool lost;
    atomic_uint generation;
} devices[DEVICES_MAX] = {[0 ... DEVICES_MAX - 1] = {.lock = PTHREAD_RWLOCK_INITIALIZER}};

/* Only the primary context is ours to begin anew. */
static void note_loss(const struct gpu *gpu, CUresult error) {
    if (gpu->primary && is_final(error)) devices[gpu->index].lost = true;
}

/* A call begins: the context is current and stays alive until end(), which every success needs. */
static CUresult begin(struct gpu *gpu) {
    struct device *d = &devices[gpu->index];
    pthread_rwlock_rdlock(&d->lock);
    CUresult error = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!gpu->primary || gpu->generation == d->generation) {
        error = cu.cuCtxPushCurrent(gpu->context);
        if (error == CUDA_SUCCESS) return CUDA_SUCCESS;
        note_loss(gpu, error);
    }
    pthread_rwlock_unlock(&d->lock);
    return error;
}

/* It ends, and came to `error`. */
static CUresult end(struct gpu *gpu, CUresult error) {
    struct device *d = &devices[gpu->index];
    CUcontext ours;
    const CUresult popped = cu.cuCtxPopCurrent(&ours);
    if (error == CUDA_SUCCESS) error = popped;
    note_loss(gpu, error);
    pthread_rwlock_unlock(&d->lock);
    return error;
}

/* The same two, with statuses. (Whoever frees uses those above and leaves tally_error() alone.) */
static tally_status enter(struct gpu *gpu) {
    return outcome(gpu->index, begin(gpu), "entering the device's context");
}

static tally_status leave(struct gpu *gpu, CUresult error, const char *what) {
    return outcome(gpu->index, end(gpu, error), what);
}

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
    return outcome(i, error, "looking for the device");
}

/* An attribute; after an error, further ones are not asked for. */
static unsigned attribute(CUdevice device, int which, CUresult *error) {
    int value = 0;
    if (*error == CUDA_SUCCESS) *error = cu.cuDeviceGetAttribute(&value, which, device);
    return (unsigned)value;
}

static tally_status get_facts(size_t i, CUdevice device, struct gpu_facts *out) {
    size_t memory = 0;
    struct gpu_facts facts = {.doubles = 1, .atomics64 = 1};
    CUresult error = cu.cuDeviceGetName(facts.name, sizeof facts.name, device);
    if (error == CUDA_SUCCESS) error = cu.cuDeviceTotalMem(&memory, device);
    facts.memory = facts.allocation_max = memory;
    facts.units = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &error);
    facts.block_max = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &error);
    facts.shared_max = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &error);
    facts.major = (int)attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &error);
    facts.minor = (int)attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &error);
    if (error == CUDA_SUCCESS) *out = facts;
    return outcome(i, error, "asking the device what it is");
}

static tally_status cuda_describe(size_t i, struct gpu_facts *out) {
    CUdevice device = 0;
    tally_status status = find_device(i, &device);
    return status ? status : get_facts(i, device, out);
}

/* Ends a context that is lost, once no call is in it. */
static CUresult begin_anew(struct gpu *gpu) {
    struct device *d = &devices[gpu->index];
    CUresult error = CUDA_SUCCESS;
    pthread_rwlock_wrlock(&d->lock);
    if (d->lost) {
        error = cu.cuDevicePrimaryCtxReset(gpu->device);
        if (error == CUDA_SUCCESS) {
            d->generation++;
            d->lost = false;
        }
    }
    pthread_rwlock_unlock(&d->lock);
    return error;
}

/* Takes hold of the primary context. */
static CUresult retain(struct gpu *gpu) {
    struct device *d = &devices[gpu->index];
    CUresult error = d->lost ? begin_anew(gpu) : CUDA_SUCCESS;
    if (error) return error;
    pthread_rwlock_rdlock(&d->lock);
    error = cu.cuDevicePrimaryCtxRetain(&gpu->context, gpu->device);
    gpu->primary = true;
    gpu->generation = d->generation;
    note_loss(gpu, error);
    pthread_rwlock_unlock(&d->lock);
    return error;
}

static void release_context(struct gpu *gpu) {
    struct device *d = &devices[gpu->index];
    if (gpu->given) return;
    pthread_rwlock_rdlock(&d->lock);
    cu.cuDevicePrimaryCtxRelease(gpu->device);
    pthread_rwlock_unlock(&d->lock);
}

/* Whether the context is the primary one. If that is not there, this does not make it. */
static CUresult is_primary(CUdevice device, CUcontext context, bool *out) {
    unsigned flags = 0;
    int active = 0;
    CUcontext primary = NULL;
    CUresult error = cu.cuDevicePrimaryCtxGetState(device, &flags, &active);
    *out = false;
    if (error || !active) return error;
    error = cu.cuDevicePrimaryCtxRetain(&primary, device);
    if (error) return error;
    *out = primary == context;
    return cu.cuDevicePrimaryCtxRelease(device);
}

/* Takes a context of the caller's as it is. */
static CUresult take(struct gpu *gpu, CUcontext context) {
    struct device *d = &devices[gpu->index];
    gpu->context = context;
    gpu->given = true;
    pthread_rwlock_rdlock(&d->lock);
    CUresult error = is_primary(gpu->device, context, &gpu->primary);
    gpu->generation = d->generation;
    note_loss(gpu, error);
    pthread_rwlock_unlock(&d->lock);
    return error;
}

static void cuda_close(struct gpu *gpu);

/* What every struct gpu has in its context. */
static tally_status prepare(struct gpu *gpu) {
    CUdevice device = gpu->device;
    tally_status status = enter(gpu);
    if (status) return status;
    CUresult error = gpu->given ? cu.cuCtxGetDevice(&device) : CUDA_SUCCESS;
    if (error == CUDA_SUCCESS && device != gpu->device) {
        end(gpu, error);
        return fail(TALLY_EINVAL, "cuda:%zu: the context given is another device's", gpu->index);
    }
    if (error == CUDA_SUCCESS) error = cu.cuStreamCreate(&gpu->stream, CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 2 && error == CUDA_SUCCESS; i++)
        error = cu.cuEventCreate(&gpu->marks[i], 0);
    gpu->queue = gpu->stream;
    return leave(gpu, error, "making a stream");
}

static tally_status cuda_open(size_t i, void *context, struct gpu **out) {
    CUdevice device = 0;
    tally_status status = find_device(i, &device);
    if (status) return status;
    struct gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu) return no_memory(i);
    gpu->index = i;
    gpu->device = device;
    status = get_facts(i, device, &gpu->facts);
    if (status == TALLY_OK)
        status = outcome(i, context ? take(gpu, context) : retain(gpu), "opening the device");
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

/* ---- Memory --------------------------------------------------------------------------------- */

static tally_status keep(struct gpu *gpu, struct gpu_memory made, struct gpu_memory **out) {
    struct gpu_memory *memory = malloc(sizeof *memory);
    if (!memory) return no_memory(gpu->index);
    *memory = made;
    LIST_INSERT_HEAD(&gpu->memory, memory, link);
    *out = memory;
    return TALLY_OK;
}

static CUresult free_memory(const struct gpu_memory *memory) {
    if (!memory->ours) return CUDA_SUCCESS;
    return memory->host ? cu.cuMemFreeHost(memory->host) : cu.cuMemFree(memory->address);
}

static void give_back(struct gpu *gpu, const struct gpu_memory *memory) {
    if (memory->ours && begin(gpu) == CUDA_SUCCESS) end(gpu, free_memory(memory));
}

static tally_status cuda_allocate(struct gpu *gpu, size_t bytes, struct gpu_memory **out) {
    char what[64];
    struct gpu_memory made = {.bytes = bytes, .ours = true};
    tally_status status = enter(gpu);
    if (status) return status;
    snprintf(what, sizeof what, "%zu bytes of memory", bytes);
    status = leave(gpu, cu.cuMemAlloc(&made.address, bytes ? bytes : 1), what);
    if (status) return status;
    status = keep(gpu, made, out);
    if (status) give_back(gpu, &made);
    return status;
}

/* Host memory that kernels see. */
static CUresult allocate_mapped(struct gpu_memory *made) {
    CUresult error = cu.cuMemHostAlloc(&made->host, made->bytes ? made->bytes : 1,
                                       CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (error) return error;
    error = cu.cuMemHostGetDevicePointer(&made->address, made->host, 0);
    if (error) cu.cuMemFreeHost(made->host);
    return error;
}

static tally_status cuda_allocate_visible(struct gpu *gpu, size_t bytes, struct gpu_memory **out,
                                          volatile void **host) {
    char what[64];
    struct gpu_memory made = {.bytes = bytes, .ours = true};
    tally_status status = enter(gpu);
    if (status) return status;
    snprintf(what, sizeof what, "%zu bytes of the host's memory for the device", bytes);
    status = leave(gpu, allocate_mapped(&made), what);
    if (status) return status;
    status = keep(gpu, made, out);
    if (status)
        give_back(gpu, &made);
    else
        *host = made.host;
    return status;
}

/* Whether kernels of this device can read `bytes` bytes at an address: memory that CUDA knows at both
 * ends, and not another device's. A kernel that tried elsewhere would take the context with it. */
static CUresult check_range(const struct gpu *gpu, CUdeviceptr address, size_t bytes, bool *ours) {
    struct pointer_facts first, last = {.type = 1};
    CUresult error = driver_pointer(address, &first);
    if (error == CUDA_SUCCESS && first.type != 0 && bytes > 1)
        error = driver_pointer(address + bytes - 1, &last);
    *ours = first.type != 0 && last.type != 0 &&
            (first.type != CU_MEMORYTYPE_DEVICE || first.ordinal == (int)gpu->index);
    return error;
}

static tally_status cuda_adopt(struct gpu *gpu, void *theirs, size_t bytes,
                               struct gpu_memory **out) {
    bool ours = false;
    const CUdeviceptr address = (CUdeviceptr)(uintptr_t)theirs;
    if (!theirs) return fail(TALLY_EINVAL, "cuda:%zu: no memory was given", gpu->index);
    tally_status status =
        outcome(gpu->index, check_range(gpu, address, bytes, &ours), "the memory given");
    if (status) return status;
    if (!ours)
        return fail(TALLY_EUNSUPPORTED, "cuda:%zu: the %zu bytes given are not this device's",
                    gpu->index, bytes);
    return keep(gpu, (struct gpu_memory){.address = address, .bytes = bytes}, out);
}

static void cuda_release(struct gpu *gpu, struct gpu_memory *memory) {
    if (!memory) return;
    give_back(gpu, memory);
    LIST_REMOVE(memory, link);
    free(memory);
}

/* Begins a call that is to touch a range of a piece of memory. */
static tally_status enter_range(struct gpu *gpu, const struct gpu_memory *memory, size_t offset,
                                size_t bytes) {
    if (offset > memory->bytes || bytes > memory->bytes - offset)
        return fail(TALLY_EINVAL, "cuda:%zu: %zu bytes at %zu of a piece of %zu", gpu->index, bytes,
                    offset, memory->bytes);
    return enter(gpu);
}

static tally_status cuda_write(struct gpu *gpu, struct gpu_memory *to, size_t offset,
                               const void *from, size_t bytes) {
    tally_status status = enter_range(gpu, to, offset, bytes);
    if (status) return status;
    return leave(gpu, cuda_ring_write(&gpu->ring, gpu->stream, to->address + offset, from, bytes),
                 "copying to the device");
}

static tally_status cuda_read(struct gpu *gpu, void *to, struct gpu_memory *from, size_t offset,
                              size_t bytes) {
    tally_status status = enter_range(gpu, from, offset, bytes);
    if (status) return status;
    CUresult error = CUDA_SUCCESS;
    if (bytes > 0) error = cu.cuMemcpyDtoHAsync(to, from->address + offset, bytes, gpu->stream);
    if (error == CUDA_SUCCESS) error = cu.cuStreamSynchronize(gpu->stream);
    return leave(gpu, error, "copying from the device");
}

static tally_status cuda_fill(struct gpu *gpu, struct gpu_memory *to, size_t offset,
                              unsigned char byte, size_t bytes) {
    tally_status status = enter_range(gpu, to, offset, bytes);
    if (status) return status;
    CUresult error = CUDA_SUCCESS;
    if (bytes > 0) error = cu.cuMemsetD8Async(to->address + offset, byte, bytes, gpu->queue);
    return leave(gpu, error, "filling memory");
}

static tally_status cuda_copy(struct gpu *gpu, struct gpu_memory *to, size_t to_offset,
                              struct gpu_memory *from, size_t from_offset, size_t bytes) {
    if (from_offset > from->bytes || bytes > from->bytes - from_offset)
        return fail(TALLY_EINVAL, "cuda:%zu: %zu bytes at %zu of a piece of %zu", gpu->index, bytes,
                    from_offset, from->bytes);
    tally_status status = enter_range(gpu, to, to_offset, bytes);
    if (status) return status;
    CUresult error = CUDA_SUCCESS;
    if (bytes > 0)
        error = cu.cuMemcpyDtoDAsync(to->address + to_offset, from->address + from_offset, bytes,
                                     gpu->stream);
    return leave(gpu, error, "copying on the device");
}

/* ---- Programs ------------------------------------------------------------------------------- */

/* Whether an image failed only because it does not suit this driver and device: another may. */
static bool image_unsuited(CUresult error) {
    return error == CUDA_ERROR_NO_BINARY_FOR_GPU || error == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
           error == CUDA_ERROR_INVALID_IMAGE || error == CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
}

static tally_status compile(struct gpu *gpu, const char *root, const char *file, CUmodule *out) {
    char *image = NULL, *text = embed_expand(root);
    if (!text) return no_memory(gpu->index);
    tally_status status =
        compiler_run(text, file, gpu->facts.major, gpu->facts.minor, driver_version(), &image);
    free(text);
    if (status == TALLY_OK) status = enter(gpu);
    if (status == TALLY_OK) status = leave(gpu, cu.cuModuleLoadData(out, image), file);
    free(image);
    return status;
}

/* An image of the library's if there is one that suits, else by the run-time compiler. Where there
 * is an image but neither works, it is the image's failure that is told. */
static tally_status load(struct gpu *gpu, const char *root, const char *file, const void *image,
                         CUmodule *out) {
    if (!image) return compile(gpu, root, file, out);
    tally_status status = enter(gpu);
    if (status) return status;
    const CUresult error = cu.cuModuleLoadData(out, image);
    status = leave(gpu, error, file);
    if (image_unsuited(error))
        status = compile(gpu, root, file, out) ? outcome(gpu->index, error, file) : TALLY_OK;
    return status;
}

static void drop_program(struct gpu_program *program) {
    while (!LIST_EMPTY(&program->kernels)) {
        struct gpu_kernel *kernel = LIST_FIRST(&program->kernels);
        LIST_REMOVE(kernel, link);
        free(kernel->name);
        free(kernel);
    }
    free(program->root);
    free(program);
}

static tally_status cuda_build(struct gpu *gpu, const char *file, const char *prelude,
                               const char *const *defines, size_t count, struct gpu_program **out) {
    struct gpu_program *program;
    char *root = embed_root(file, prelude, defines, count);
    if (!root) return no_memory(gpu->index);
    for (program = LIST_FIRST(&gpu->programs); program; program = LIST_NEXT(program, link))
        if (strcmp(program->root, root) == 0) {
            free(root);
            *out = program;
            return TALLY_OK;
        }
    program = calloc(1, sizeof *program);
    if (!program) {
        free(root);
        return no_memory(gpu->index);
    }
    program->root = root;
    const void *image = prelude && *prelude ? NULL : image_find(file, defines, count);
    tally_status status = load(gpu, root, file, image, &program->module);
    if (status) {
        drop_program(program);
        return status;
    }
    LIST_INSERT_HEAD(&gpu->programs, program, link);
    *out = program;
    return TALLY_OK;
}

static tally_status cuda_kernel(struct gpu *gpu, struct gpu_program *program, const char *name,
                                struct gpu_kernel **out) {
    char what[96];
    CUfunction function;
    struct gpu_kernel *kernel;
    for (kernel = LIST_FIRST(&program->kernels); kernel; kernel = LIST_NEXT(kernel, link))
        if (strcmp(kernel->name, name) == 0) {
            *out = kernel;
            return TALLY_OK;
        }
    tally_status status = enter(gpu);
    if (status) return status;
    snprintf(what, sizeof what, "kernel %s", name);
    status = leave(gpu, cu.cuModuleGetFunction(&function, program->module, name), what);
    if (status) return status;
    kernel = calloc(1, sizeof *kernel);
    if (!kernel || !(kernel->name = strdup(name))) {
        free(kernel);
        return no_memory(gpu->index);
    }
    kernel->function = function;
    LIST_INSERT_HEAD(&program->kernels, kernel, link);
    *out = kernel;
    return TALLY_OK;
}

/* ---- Work ----------------------------------------------------------------------------------- */

#define ARGUMENTS_MAX 32

static tally_status cuda_launch(struct gpu *gpu, struct gpu_kernel *kernel, unsigned grid,
                                unsigned block, const struct gpu_argument *arguments,
                                size_t count) {
    void *parameters[ARGUMENTS_MAX];
    if (count > ARGUMENTS_MAX)
        return fail(TALLY_EINVAL, "cuda:%zu: a kernel with %zu arguments", gpu->index, count);
    for (size_t i = 0; i < count; i++)
        parameters[i] = arguments[i].memory ? (void *)&arguments[i].memory->address
                                            : (void *)arguments[i].value;
    tally_status status = enter(gpu);
    if (status) return status;
    return leave(gpu,
                 cu.cuLaunchKernel(kernel->function, grid, 1, 1, block, 1, 1, 0, gpu->queue,
                                   parameters, NULL),
                 "launching a kernel");
}

static tally_status cuda_finish(struct gpu *gpu) {
    tally_status status = enter(gpu);
    return status ? status
                  : leave(gpu, cu.cuStreamSynchronize(gpu->stream), "waiting for the device");
}

static tally_status cuda_mark(struct gpu *gpu, int which) {
    tally_status status = enter(gpu);
    if (status) return status;
    status = leave(gpu, cu.cuEventRecord(gpu->marks[which != 0], gpu->stream), "marking a time");
    gpu->marked[which != 0] = status == TALLY_OK;
    return status;
}

static tally_status cuda_elapsed(struct gpu *gpu, double *seconds) {
    float milliseconds = 0;
    if (!gpu->marked[0] || !gpu->marked[1])
        return fail(TALLY_EINVAL, "cuda:%zu: no two times were marked", gpu->index);
    tally_status status = enter(gpu);
    if (status) return status;
    CUresult error = cu.cuEventSynchronize(gpu->marks[1]);
    if (error == CUDA_SUCCESS)
        error = cu.cuEventElapsedTime(&milliseconds, gpu->marks[0], gpu->marks[1]);
    status = leave(gpu, error, "measuring time");
    if (status == TALLY_OK) *seconds = (double)milliseconds * 1e-3;
    return status;
}

/* All is tried, whatever comes of it; what goes wrong first is what counts. */
static void keep_error(CUresult *first, CUresult more) {
    if (*first == CUDA_SUCCESS) *first = more;
}

/* Gives back what the driver holds for this gpu; in a context that is no more, there is nothing. A
 * caller's stream is left alone. */
static void clean_up(struct gpu *gpu) {
    struct gpu_program *program;
    struct gpu_memory *memory;
    CUresult error = begin(gpu);
    if (error) return;
    if (gpu->stream) keep_error(&error, cu.cuStreamSynchronize(gpu->stream));
    for (program = LIST_FIRST(&gpu->programs); program; program = LIST_NEXT(program, link))
        keep_error(&error, cu.cuModuleUnload(program->module));
    for (memory = LIST_FIRST(&gpu->memory); memory; memory = LIST_NEXT(memory, link))
        keep_error(&error, free_memory(memory));
    cuda_ring_close(&gpu->ring);
    for (int i = 0; i < 2; i++)
        if (gpu->marks[i]) keep_error(&error, cu.cuEventDestroy(gpu->marks[i]));
    if (gpu->stream) keep_error(&error, cu.cuStreamDestroy(gpu->stream));
    end(gpu, error);
}

static void cuda_close(struct gpu *gpu) {
    if (!gpu) return;
    clean_up(gpu);
    release_context(gpu);
    while (!LIST_EMPTY(&gpu->programs)) {
        struct gpu_program *program = LIST_FIRST(&gpu->programs);
        LIST_REMOVE(program, link);
        drop_program(program);
    }
    while (!LIST_EMPTY(&gpu->memory)) {
        struct gpu_memory *memory = LIST_FIRST(&gpu->memory);
        LIST_REMOVE(memory, link);
        free(memory);
    }
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
    .use = cuda_use,
    .launch = cuda_launch,
    .finish = cuda_finish,
    .mark = cuda_mark,
    .elapsed = cuda_elapsed,
};
