/*
 * memory.h - the buffers that a struct gpu has: made by it, or given to it by a caller.
 *
 * close() frees the buffers that are still on the list, which no caller has released. A machine knows a
 * buffer by one pointer-sized value, which a kernel also takes as its argument.
 */
#ifndef TALLY_GPU_MEMORY_H
#define TALLY_GPU_MEMORY_H

#include "gpu/gpu.h"

#include <sys/queue.h>

struct gpu_memory {
    void *native; /* a CUdeviceptr, a cl_mem, an address in the model's memory */
    void *host;   /* where the host sees the same memory; NULL where it does not */
    size_t bytes;
    bool ours; /* the machine made it, and frees it with the buffer; else it is the caller's */
    LIST_ENTRY(gpu_memory) link;
};

LIST_HEAD(gpu_memory_list, gpu_memory);

/* Puts a copy of `made` on the list; *out points at the copy. On TALLY_ENOMEM the list is
 * unchanged, and the caller still owns the memory behind `made`. Messages name `device`, such as
 * "cuda:0". */
tally_status gpu_memory_keep(struct gpu_memory_list *list, const char *device,
                             struct gpu_memory made, struct gpu_memory **out);

/* Takes a buffer off its list and frees the struct, not the memory behind it. */
void gpu_memory_drop(struct gpu_memory *memory);

/* Returns TALLY_EINVAL unless [offset, offset + bytes) lies within the buffer. */
tally_status gpu_memory_check(const char *device, const struct gpu_memory *memory, size_t offset,
                              size_t bytes);

#endif
