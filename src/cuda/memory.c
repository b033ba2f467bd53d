/* memory.c - see memory.h. */
#include "cuda/memory.h"

#include "base/invariant.h"
#include "base/status.h"
#include "cuda/errors.h"
#include "cuda/graphs.h"

#include <stdio.h>

static CUdeviceptr address_of(const struct gpu_memory *memory) {
    return (CUdeviceptr)(uintptr_t)memory->native;
}

CUresult memory_free(const struct gpu_memory *memory) {
    if (!memory->ours) return CUDA_SUCCESS;
    return memory->host ? cu.cuMemFreeHost(memory->host) : cu.cuMemFree(address_of(memory));
}

/* Makes the context current and frees a buffer's memory, if we allocated it. Memory that cannot be
 * freed ends with the context. */
static void give_back(struct gpu *gpu, const struct gpu_memory *memory) {
    if (memory->ours && cuda_begin(gpu) == CUDA_SUCCESS) cuda_end(gpu, memory_free(memory));
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

tally_status cuda_allocate(struct gpu *gpu, size_t bytes, struct gpu_memory **out) {
    char what[64];
    CUdeviceptr address = 0;
    tally_status status = cuda_enter(gpu);
    if (status) return status;
    snprintf(what, sizeof what, "%zu bytes of memory", bytes);
    status = cuda_leave(gpu, cu.cuMemAlloc(&address, bytes ? bytes : 1), what);
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

tally_status cuda_allocate_visible(struct gpu *gpu, size_t bytes, struct gpu_memory **out,
                                   volatile void **host) {
    char what[64];
    struct gpu_memory made = {.bytes = bytes, .ours = true};
    tally_status status = cuda_enter(gpu);
    if (status) return status;
    snprintf(what, sizeof what, "%zu bytes of the host's memory for the device", bytes);
    status = keep(gpu, cuda_leave(gpu, allocate_mapped(&made), what), &made, out);
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

tally_status cuda_adopt(struct gpu *gpu, void *theirs, size_t bytes, struct gpu_memory **out) {
    bool ours = false;
    const CUdeviceptr address = (CUdeviceptr)(uintptr_t)theirs;
    if (!theirs) return fail(TALLY_EINVAL, "cuda:%zu: no memory was given", gpu->index);
    tally_status status =
        cuda_outcome(gpu->index, check_range(gpu, address, bytes, &ours), "the memory given");
    if (status) return status;
    if (!ours)
        return fail(TALLY_EUNSUPPORTED, "cuda:%zu: the %zu bytes given are not this device's",
                    gpu->index, bytes);
    return gpu_memory_keep(&gpu->memory, gpu->name,
                           (struct gpu_memory){.native = theirs, .bytes = bytes}, out);
}

void cuda_release(struct gpu *gpu, struct gpu_memory *memory) {
    if (!memory) return;
    TALLY_ASSERT(!memory->ours || !graphs_has_held(gpu));
    give_back(gpu, memory);
    gpu_memory_drop(memory);
}

/* ---- Copies ---- */

/* Begins a call that reads or writes a range of a buffer, as cuda_enter() does. Returns TALLY_EINVAL if
 * the range leaves the buffer. */
static tally_status enter_range(struct gpu *gpu, const struct gpu_memory *memory, size_t offset,
                                size_t bytes) {
    tally_status status = gpu_memory_check(gpu->name, memory, offset, bytes);
    if (status == TALLY_OK) status = graphs_flush(gpu);
    return status ? status : cuda_enter(gpu);
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

tally_status cuda_write(struct gpu *gpu, struct gpu_memory *to, size_t offset, const void *from,
                        size_t bytes) {
    tally_status status = enter_range(gpu, to, offset, bytes);
    if (status) return status;
    return cuda_leave(gpu, write_bytes(gpu, to, offset, from, bytes), "copying to the device");
}

tally_status cuda_read(struct gpu *gpu, void *to, struct gpu_memory *from, size_t offset,
                       size_t bytes) {
    tally_status status = enter_range(gpu, from, offset, bytes);
    if (status) return status;
    CUresult error = CUDA_SUCCESS;
    if (bytes > 0) error = cu.cuMemcpyDtoHAsync(to, address_of(from) + offset, bytes, gpu->stream);
    if (error == CUDA_SUCCESS) error = cu.cuStreamSynchronize(gpu->stream);
    return cuda_leave(gpu, error, "copying from the device");
}

tally_status cuda_fill(struct gpu *gpu, struct gpu_memory *to, size_t offset, unsigned char byte,
                       size_t bytes) {
    tally_status status = enter_range(gpu, to, offset, bytes);
    if (status) return status;
    CUresult error = CUDA_SUCCESS;
    if (bytes > 0) error = cu.cuMemsetD8Async(address_of(to) + offset, byte, bytes, gpu->queue);
    return cuda_leave(gpu, error, "filling memory");
}

tally_status cuda_copy(struct gpu *gpu, struct gpu_memory *to, size_t to_offset,
                       struct gpu_memory *from, size_t from_offset, size_t bytes) {
    tally_status status = gpu_memory_check(gpu->name, from, from_offset, bytes);
    if (status) return status;
    status = enter_range(gpu, to, to_offset, bytes);
    if (status) return status;
    CUresult error = CUDA_SUCCESS;
    if (bytes > 0)
        error = cu.cuMemcpyDtoDAsync(address_of(to) + to_offset, address_of(from) + from_offset,
                                     bytes, gpu->stream);
    return cuda_leave(gpu, error, "copying on the device");
}
