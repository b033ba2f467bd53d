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
#include "base/invariant.h"
#include "base/status.h"
#include "cuda/driver.h"
#include "cuda/images.h"
#include "cuda/program.h"
#include "gpu/cache.h"
#include "gpu/memory.h"
#include "gpu/ring.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpu {
    size_t index;
    char name[24]; /* "cuda:0" */
    CUdevice device;
    CUcontext context;
    bool given;          /* the context is the caller's */
    bool primary;        /* it is the device's primary one */
    unsigned generation; /* of the primary context, as of open() */
    bool entered;        /* a call is between begin() and end() */
    bool pushed;         /* and it has made the context current */
    CUstream stream;     /* ours */
    CUstream queue;      /* where launches and fills go: to ours, or to a caller's */
    struct gpu_ring ring;
    CUevent read[RING_CHUNKS]; /* of each chunk of the ring: the device has read it */
    CUevent marks[2];
    bool marked[2];
    struct gpu_facts facts;
    struct gpu_memory_list memory;
    struct gpu_cache cache;
};

/* ---- Errors --------------------------------------------------------------------------------- */

/* The status for each of the driver's errors, and a hint behind the driver's own words. Errors that
 * are not listed become TALLY_ELOST. */
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

/* Returns whether a context does nothing any more after this error. */
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

/* Returns TALLY_OK for CUDA_SUCCESS, and otherwise the error's status; tally_error() then says that
 * `what` failed, and why. */
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

/* Marks the device as lost if this error is the end of the primary context. (A caller's own context is not
 * ours to begin anew.) */
static void note_loss(const struct gpu *gpu, CUresult error) {
    if (gpu->primary && is_final(error)) devices[gpu->index].lost = true;
}

/* Begins a call: on success the context is current for this thread, and stays alive until end(), which
 * every success needs. A context that is current already is not pushed. */
static CUresult begin(struct gpu *gpu) {
    struct device *d = &devices[gpu->index];
    CUcontext current = NULL;
    TALLY_ASSERT(!gpu->entered);
    pthread_rwlock_rdlock(&d->lock);
    CUresult error = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!gpu->primary || gpu->generation == d->generation) {
        gpu->pushed = cu.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != gpu->context;
        error = gpu->pushed ? cu.cuCtxPushCurrent(gpu->context) : CUDA_SUCCESS;
        gpu->entered = error == CUDA_SUCCESS;
        if (gpu->entered) return CUDA_SUCCESS;
        note_loss(gpu, error);
    }
    pthread_rwlock_unlock(&d->lock);
    return error;
}

/* Ends a call with the result `error`, and restores the caller's context. Returns `error`, or the
 * error of the restore. */
static CUresult end(struct gpu *gpu, CUresult error) {
    struct device *d = &devices[gpu->index];
    CUcontext ours;
    TALLY_ASSERT(gpu->entered);
    const CUresult popped = gpu->pushed ? cu.cuCtxPopCurrent(&ours) : CUDA_SUCCESS;
    gpu->entered = false;
    if (error == CUDA_SUCCESS) error = popped;
    note_loss(gpu, error);
    pthread_rwlock_unlock(&d->lock);
    return error;
}

/* Do begin() and end() with a status and a line for tally_error(). Functions that free memory or
 * programs call begin() and end() themselves, to keep the line of an earlier failure. */
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
    if (error == CUDA_SUCCESS) *out = facts;
    return outcome(i, error, "asking the device what it is");
}

static tally_status cuda_describe(size_t i, struct gpu_facts *out) {
    CUdevice device = 0;
    tally_status status = find_device(i, &device);
    return status ? status : get_facts(i, device, out);
}

/* Resets the device's primary context and begins a new generation, unless another thread has done
 * so. First waits until no call is under way. */
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

/* Becomes a holder of the primary context, which is reset first where the device was lost. */
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

/* Finds whether `context` is the device's primary one, without making that where it is not there. */
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

/* Uses a context of the caller's; it stays the caller's. */
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
static const struct gpu_cache_calls cache_calls;

/* Makes the stream and the events that every struct gpu has. What was made before a failure is left for
 * cuda_close(). */
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
    snprintf(gpu->name, sizeof gpu->name, "cuda:%zu", i);
    gpu_cache_open(&gpu->cache, &cache_calls);
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

static CUdeviceptr address_of(const struct gpu_memory *memory) {
    return (CUdeviceptr)(uintptr_t)memory->native;
}

/* Frees a buffer's memory, if we allocated it. The context must be current. */
static CUresult free_memory(const struct gpu_memory *memory) {
    if (!memory->ours) return CUDA_SUCCESS;
    return memory->host ? cu.cuMemFreeHost(memory->host) : cu.cuMemFree(address_of(memory));
}

/* Makes the context current and frees a buffer's memory, if we allocated it. Memory that cannot be
 * freed ends with the context. */
static void give_back(struct gpu *gpu, const struct gpu_memory *memory) {
    if (memory->ours && begin(gpu) == CUDA_SUCCESS) end(gpu, free_memory(memory));
}

/* Puts memory that a call has allocated on the list: *out is its struct. `status` is that call's.
 * If it, or the list, fails, frees the memory: leaving the context may fail after a successful
 * allocation. */
static tally_status keep(struct gpu *gpu, tally_status status, const struct gpu_memory *made,
                         struct gpu_memory **out) {
    if (status == TALLY_OK) status = gpu_memory_keep(&gpu->memory, gpu->name, *made, out);
    if (status != TALLY_OK && made->native) give_back(gpu, made);
    return status;
}

static tally_status cuda_allocate(struct gpu *gpu, size_t bytes, struct gpu_memory **out) {
    char what[64];
    CUdeviceptr address = 0;
    tally_status status = enter(gpu);
    if (status) return status;
    snprintf(what, sizeof what, "%zu bytes of memory", bytes);
    status = leave(gpu, cu.cuMemAlloc(&address, bytes ? bytes : 1), what);
    const struct gpu_memory made = {
        .native = (void *)(uintptr_t)address, .bytes = bytes, .ours = true};
    return keep(gpu, status, &made, out);
}

/* Allocates made->bytes of host memory that kernels see: made->host, which is made->native for kernels. After
 * an error nothing is allocated, and made->native is NULL. */
static CUresult allocate_mapped(struct gpu_memory *made) {
    CUdeviceptr address = 0;
    CUresult error = cu.cuMemHostAlloc(&made->host, made->bytes ? made->bytes : 1,
                                       CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (error) return error;
    error = cu.cuMemHostGetDevicePointer(&address, made->host, 0);
    if (error) cu.cuMemFreeHost(made->host);
    made->native = (void *)(uintptr_t)address;
    return error;
}

static tally_status cuda_allocate_visible(struct gpu *gpu, size_t bytes, struct gpu_memory **out,
                                          volatile void **host) {
    char what[64];
    struct gpu_memory made = {.bytes = bytes, .ours = true};
    tally_status status = enter(gpu);
    if (status) return status;
    snprintf(what, sizeof what, "%zu bytes of the host's memory for the device", bytes);
    status = keep(gpu, leave(gpu, allocate_mapped(&made), what), &made, out);
    if (status == TALLY_OK) *host = made.host;
    return status;
}

/* Returns whether a kernel of this device can read an address with these facts: CUDA knows it, and
 * it is not in another device's memory. */
static bool is_readable(const struct gpu *gpu, struct pointer_facts facts) {
    return facts.type != 0 &&
           (facts.type != CU_MEMORYTYPE_DEVICE || facts.ordinal == (int)gpu->index);
}

/* Finds whether kernels of this device can read `bytes` bytes at an address: the first and the last of them. A kernel
 * that read elsewhere would be the end of the context. CUDA is asked for the last byte only where that is not in the
 * first one's buffer. */
static CUresult check_range(const struct gpu *gpu, CUdeviceptr address, size_t bytes, bool *ours) {
    struct pointer_facts first = {0}, last;
    CUresult error = driver_pointer(address, &first);
    last = first;
    if (error == CUDA_SUCCESS && first.type != 0 && bytes > 1 &&
        (address - first.start >= first.bytes || bytes > first.bytes - (address - first.start)))
        error = driver_pointer(address + bytes - 1, &last);
    *ours = is_readable(gpu, first) && is_readable(gpu, last);
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
    return gpu_memory_keep(&gpu->memory, gpu->name,
                           (struct gpu_memory){.native = theirs, .bytes = bytes}, out);
}

static void cuda_release(struct gpu *gpu, struct gpu_memory *memory) {
    if (!memory) return;
    give_back(gpu, memory);
    gpu_memory_drop(memory);
}

/* Begins a call that reads or writes a range of a buffer, as enter() does. Returns TALLY_EINVAL if
 * the range leaves the buffer. */
static tally_status enter_range(struct gpu *gpu, const struct gpu_memory *memory, size_t offset,
                                size_t bytes) {
    const tally_status status = gpu_memory_check(gpu->name, memory, offset, bytes);
    if (status) return status;
    return enter(gpu);
}

/* Makes the ring's memory and events. If one of them fails, frees the others and returns NULL. */
static char *ring_open(struct gpu *gpu) {
    void *memory = NULL;
    CUresult error =
        cu.cuMemHostAlloc(&memory, (size_t)RING_CHUNKS * RING_CHUNK, CU_MEMHOSTALLOC_PORTABLE);
    for (int i = 0; i < RING_CHUNKS && error == CUDA_SUCCESS; i++)
        error = cu.cuEventCreate(&gpu->read[i], CU_EVENT_DISABLE_TIMING);
    if (error == CUDA_SUCCESS) return memory;
    for (int i = 0; i < RING_CHUNKS; i++) {
        if (gpu->read[i]) cu.cuEventDestroy(gpu->read[i]);
        gpu->read[i] = NULL;
    }
    if (memory) cu.cuMemFreeHost(memory);
    return NULL;
}

static int ring_wait(struct gpu *gpu, unsigned chunk) {
    return cu.cuEventSynchronize(gpu->read[chunk]);
}

static int ring_send(struct gpu *gpu, unsigned chunk, const char *at, struct gpu_memory *to,
                     size_t offset, size_t bytes) {
    const CUresult error = cu.cuMemcpyHtoDAsync(address_of(to) + offset, at, bytes, gpu->stream);
    return error ? error : cu.cuEventRecord(gpu->read[chunk], gpu->stream);
}

static const struct gpu_ring_calls ring_calls = {ring_open, ring_wait, ring_send};

/* Returns whether CUDA knows a byte of the host's memory: whether that is pinned, registered or managed. */
static bool is_known(const void *at) {
    struct pointer_facts facts;
    return driver_pointer((CUdeviceptr)(uintptr_t)at, &facts) == CUDA_SUCCESS && facts.type != 0;
}

/* Copies to the device; needs the context to be current. Large arrays go through the ring. Small ones, and
 * memory that the device can read by itself, go without: then the call waits until they have been read. */
static CUresult write_bytes(struct gpu *gpu, struct gpu_memory *to, size_t offset, const char *from,
                            size_t bytes) {
    CUresult error;
    if (bytes == 0) return CUDA_SUCCESS;
    if (bytes > RING_LEAST && !(is_known(from) && is_known(from + bytes - 1)) &&
        gpu_ring_ready(&gpu->ring, gpu, &ring_calls)) {
        error = gpu_ring_write(&gpu->ring, gpu, &ring_calls, to, offset, from, bytes);
        /* The device may still be reading a chunk whose event was not recorded. */
        if (error) cu.cuStreamSynchronize(gpu->stream);
        return error;
    }
    error = cu.cuMemcpyHtoDAsync(address_of(to) + offset, from, bytes, gpu->stream);
    return error ? error : cu.cuStreamSynchronize(gpu->stream);
}

static tally_status cuda_write(struct gpu *gpu, struct gpu_memory *to, size_t offset,
                               const void *from, size_t bytes) {
    tally_status status = enter_range(gpu, to, offset, bytes);
    if (status) return status;
    return leave(gpu, write_bytes(gpu, to, offset, from, bytes), "copying to the device");
}

static tally_status cuda_read(struct gpu *gpu, void *to, struct gpu_memory *from, size_t offset,
                              size_t bytes) {
    tally_status status = enter_range(gpu, from, offset, bytes);
    if (status) return status;
    CUresult error = CUDA_SUCCESS;
    if (bytes > 0) error = cu.cuMemcpyDtoHAsync(to, address_of(from) + offset, bytes, gpu->stream);
    if (error == CUDA_SUCCESS) error = cu.cuStreamSynchronize(gpu->stream);
    return leave(gpu, error, "copying from the device");
}

static tally_status cuda_fill(struct gpu *gpu, struct gpu_memory *to, size_t offset,
                              unsigned char byte, size_t bytes) {
    tally_status status = enter_range(gpu, to, offset, bytes);
    if (status) return status;
    CUresult error = CUDA_SUCCESS;
    if (bytes > 0) error = cu.cuMemsetD8Async(address_of(to) + offset, byte, bytes, gpu->queue);
    return leave(gpu, error, "filling memory");
}

static tally_status cuda_copy(struct gpu *gpu, struct gpu_memory *to, size_t to_offset,
                              struct gpu_memory *from, size_t from_offset, size_t bytes) {
    tally_status status = gpu_memory_check(gpu->name, from, from_offset, bytes);
    if (status) return status;
    status = enter_range(gpu, to, to_offset, bytes);
    if (status) return status;
    CUresult error = CUDA_SUCCESS;
    if (bytes > 0)
        error = cu.cuMemcpyDtoDAsync(address_of(to) + to_offset, address_of(from) + from_offset,
                                     bytes, gpu->stream);
    return leave(gpu, error, "copying on the device");
}

/* ---- Programs ------------------------------------------------------------------------------- */

/* Returns whether an image failed because it does not suit this driver or device, as another may. */
static bool image_unsuited(CUresult error) {
    return error == CUDA_ERROR_NO_BINARY_FOR_GPU || error == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
           error == CUDA_ERROR_INVALID_IMAGE || error == CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
}

/* Loads an image into the context: *out is its module. *error is the driver's error for the image,
 * and stays if the context cannot be entered. If leaving the context fails, unloads the image
 * again. */
static tally_status load_image(struct gpu *gpu, const void *image, const char *file,
                               CUresult *error, void **out) {
    CUmodule module = NULL;
    tally_status status = enter(gpu);
    if (status) return status;
    *error = cu.cuModuleLoadData(&module, image);
    status = leave(gpu, *error, file);
    if (status == TALLY_OK)
        *out = module;
    else if (*error == CUDA_SUCCESS && begin(gpu) == CUDA_SUCCESS)
        end(gpu, cu.cuModuleUnload(module));
    return status;
}

/* Unloads a program's modules. The context is current. Returns the last error. */
static CUresult unload_modules(void **modules) {
    CUresult error = CUDA_SUCCESS;
    for (unsigned i = 0; i < GPU_PROGRAM_PARTS && modules[i]; i++) {
        const CUresult unloaded = cu.cuModuleUnload(modules[i]);
        if (unloaded == CUDA_SUCCESS)
            modules[i] = NULL;
        else
            error = unloaded;
    }
    return error;
}

/* Loads the images of a program: out[] are their modules; after a failure there is none. *error is as load_image() says. */
static tally_status load_program(struct gpu *gpu, const struct program *p, const char *file,
                                 CUresult *error, void **out) {
    tally_status status = TALLY_OK;
    for (unsigned i = 0; i < p->count && status == TALLY_OK; i++)
        status = load_image(gpu, p->image[i].bytes, file, error, &out[i]);
    if (status != TALLY_OK && out[0] && begin(gpu) == CUDA_SUCCESS) end(gpu, unload_modules(out));
    return status;
}

/* Makes and loads the images of a text, which the disk cache then keeps: out[] are their modules. If the driver does not take
 * those from the disk cache, they are compiled anew. */
static tally_status compile_text(struct gpu *gpu, const struct gpu_text *of, void **out) {
    const struct program_target target = {gpu->facts.major, gpu->facts.minor, driver_version()};
    for (bool anew = false;; anew = true) {
        CUresult error = CUDA_SUCCESS;
        struct program p;
        tally_status status = program_make(of, &target, anew, &p);
        if (status == TALLY_OK) status = load_program(gpu, &p, of->file, &error, out);
        if (status == TALLY_OK) program_keep(&p);
        const bool again = image_unsuited(error) && program_was_found(&p);
        program_free(&p);
        if (!again) return status;
    }
}

/* Loads the image that the build made of a text. If there is none, or it does not suit, compiles
 * the text. If both fail, tally_error() tells the image's failure. */
static tally_status compile(struct gpu *gpu, const struct gpu_text *of, void **out) {
    const bool plain = !of->prelude || !*of->prelude;
    const void *image = plain ? image_find(of->file, of->defines, of->count) : NULL;
    CUresult error = CUDA_SUCCESS;
    if (!image) return compile_text(gpu, of, out);
    tally_status status = load_image(gpu, image, of->file, &error, out);
    if (image_unsuited(error))
        status = compile_text(gpu, of, out) ? outcome(gpu->index, error, of->file) : TALLY_OK;
    return status;
}

/* Finds a kernel in the modules of a program, each of which may have it. */
static tally_status find_function(struct gpu *gpu, void *const *modules, const char *name,
                                  void **out) {
    char what[96];
    CUfunction function = NULL;
    CUresult error = CUDA_ERROR_NOT_FOUND;
    tally_status status = enter(gpu);
    if (status) return status;
    snprintf(what, sizeof what, "kernel %s", name);
    for (unsigned i = 0; i < GPU_PROGRAM_PARTS && modules[i] && error == CUDA_ERROR_NOT_FOUND; i++)
        error = cu.cuModuleGetFunction(&function, modules[i], name);
    status = leave(gpu, error, what);
    *out = function;
    return status;
}

/* Waits for the launches of a program, then unloads it. A launch on a caller's stream is waited for together
 * with everything in the context, as the stream itself may be gone. (Loading the next program may wait for
 * the whole context anyway.) Returns false where waiting or unloading fails. */
static bool unload(struct gpu *gpu, struct gpu_program *program) {
    CUresult error = begin(gpu);
    if (error) return false;
    error = program->elsewhere ? cu.cuCtxSynchronize() : cu.cuStreamSynchronize(gpu->stream);
    if (error == CUDA_SUCCESS)
        error = unload_modules(program->native); /* of a user's operator: one */
    end(gpu, error);
    return !program->native[0];
}

/* Unloads a program when the struct gpu is closed. The context is current, and no work is under way
 * on our stream. tally_close() asks its caller to see to the caller's streams. */
static bool unload_last(struct gpu *gpu, struct gpu_program *program) {
    (void)gpu;
    return unload_modules(program->native) == CUDA_SUCCESS;
}

static const struct gpu_cache_calls cache_calls = {
    .compile = compile, .find = find_function, .unload = unload};

/* The oldest driver that puts launches which begin early into graphs. */
#define EARLY_IN_GRAPHS 12030

/* Notes whether a program's launches may begin early, as its kernels wait by themselves for earlier
 * work. Such a program has a constant begins_early (kernels/kernel.h). */
static void note_early(struct gpu *gpu, struct gpu_program *program) {
    CUdeviceptr address;
    size_t bytes;
    if (!cu.cuLaunchKernelEx || driver_version() < EARLY_IN_GRAPHS || begin(gpu) != CUDA_SUCCESS)
        return;
    program->begins_early =
        cu.cuModuleGetGlobal(&address, &bytes, program->native[0], "begins_early") == CUDA_SUCCESS;
    end(gpu, CUDA_SUCCESS);
}

static tally_status cuda_build(struct gpu *gpu, const char *file, const char *prelude,
                               const char *const *defines, size_t count, struct gpu_program **out) {
    const struct gpu_text text = {
        .file = file, .prelude = prelude, .defines = defines, .count = count};
    tally_status status = gpu_cache_build(&gpu->cache, gpu, gpu->name, text, out);
    if (status == TALLY_OK) note_early(gpu, *out);
    return status;
}

static tally_status cuda_kernel(struct gpu *gpu, struct gpu_program *program, const char *name,
                                struct gpu_kernel **out) {
    return gpu_cache_kernel(&gpu->cache, gpu, gpu->name, program, name, out);
}

/* ---- Work ----------------------------------------------------------------------------------- */

#define ARGUMENTS_MAX 32

/* Notes that a program is about to be launched on a caller's stream, where the end of the launch cannot be
 * seen. In a stream that is being captured the launch becomes part of a graph, which may run at any time:
 * then the program stays until the struct gpu is closed. Needs the context to be current. */
static void note_queue(struct gpu *gpu, struct gpu_program *program) {
    int capturing = 1;
    if (program->stays || gpu->queue == gpu->stream) return;
    program->elsewhere = true;
    if (cu.cuStreamIsCapturing(gpu->queue, &capturing) != CUDA_SUCCESS || capturing)
        gpu_cache_stays(&gpu->cache, program);
}

static CUresult launch_early(struct gpu *gpu, struct gpu_kernel *kernel, unsigned grid,
                             unsigned block, void **parameters) {
    CUlaunchAttribute early = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                               .value.programmaticStreamSerializationAllowed = 1};
    const CUlaunchConfig config = {.gridDimX = grid,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = block,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .hStream = gpu->queue,
                                   .attrs = &early,
                                   .numAttrs = 1};
    return cu.cuLaunchKernelEx(&config, kernel->native, parameters, NULL);
}

static tally_status cuda_launch(struct gpu *gpu, struct gpu_kernel *kernel, unsigned grid,
                                unsigned block, const struct gpu_argument *arguments,
                                size_t count) {
    void *parameters[ARGUMENTS_MAX];
    if (count > ARGUMENTS_MAX)
        return fail(TALLY_EINVAL, "cuda:%zu: a kernel with %zu arguments", gpu->index, count);
    for (size_t i = 0; i < count; i++)
        parameters[i] =
            arguments[i].memory ? (void *)&arguments[i].memory->native : (void *)arguments[i].value;
    TALLY_ASSERT(kernel->native);
    tally_status status = enter(gpu);
    if (status) return status;
    note_queue(gpu, kernel->program);
    const CUresult error = kernel->program->begins_early
                               ? launch_early(gpu, kernel, grid, block, parameters)
                               : cu.cuLaunchKernel(kernel->native, grid, 1, 1, block, 1, 1, 0,
                                                   gpu->queue, parameters, NULL);
    return leave(gpu, error, "launching a kernel");
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

/* Keeps the first error of several calls, which are made whatever the others return. */
static void keep_error(CUresult *first, CUresult more) {
    if (*first == CUDA_SUCCESS) *first = more;
}

/* Frees all that this struct gpu has in its context, and the structs that stand for it. Of a context that
 * has been reset only the structs are left. Nothing waits for a caller's stream. */
static void clean_up(struct gpu *gpu) {
    struct gpu_memory *memory;
    gpu_ring_close(&gpu->ring);
    CUresult error = begin(gpu);
    const bool alive = error == CUDA_SUCCESS;
    if (alive && gpu->stream) keep_error(&error, cu.cuStreamSynchronize(gpu->stream));
    gpu_cache_close(&gpu->cache, gpu, alive ? unload_last : NULL);
    while ((memory = LIST_FIRST(&gpu->memory))) {
        if (alive) keep_error(&error, free_memory(memory));
        gpu_memory_drop(memory);
    }
    if (!alive) return;
    if (gpu->ring.at) keep_error(&error, cu.cuMemFreeHost(gpu->ring.at));
    for (int i = 0; i < RING_CHUNKS; i++)
        if (gpu->read[i]) keep_error(&error, cu.cuEventDestroy(gpu->read[i]));
    for (int i = 0; i < 2; i++)
        if (gpu->marks[i]) keep_error(&error, cu.cuEventDestroy(gpu->marks[i]));
    if (gpu->stream) keep_error(&error, cu.cuStreamDestroy(gpu->stream));
    end(gpu, error);
}

static void cuda_close(struct gpu *gpu) {
    if (!gpu) return;
    clean_up(gpu);
    release_context(gpu);
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
