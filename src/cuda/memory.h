/*
 * memory.h - a CUDA device's memory, and copies to and from it: gpu_api's calls (gpu/gpu.h).
 *
 * Copies run on the stream of the struct gpu, fills there or on a stream of the caller's.
 */
#ifndef TALLY_CUDA_MEMORY_H
#define TALLY_CUDA_MEMORY_H

#include "cuda/context.h"

tally_status cuda_allocate(struct gpu *gpu, size_t bytes, struct gpu_memory **out);
tally_status cuda_allocate_visible(struct gpu *gpu, size_t bytes, struct gpu_memory **out,
                                   volatile void **host);
tally_status cuda_adopt(struct gpu *gpu, void *theirs, size_t bytes, struct gpu_memory **out);
void cuda_release(struct gpu *gpu, struct gpu_memory *memory);
tally_status cuda_write(struct gpu *gpu, struct gpu_memory *to, size_t offset, const void *from,
                        size_t bytes);
tally_status cuda_read(struct gpu *gpu, void *to, struct gpu_memory *from, size_t offset,
                       size_t bytes);
tally_status cuda_fill(struct gpu *gpu, struct gpu_memory *to, size_t offset, unsigned char byte,
                       size_t bytes);
tally_status cuda_copy(struct gpu *gpu, struct gpu_memory *to, size_t to_offset,
                       struct gpu_memory *from, size_t from_offset, size_t bytes);

/* Frees a buffer's memory, if we allocated it. The context must be current. */
CUresult memory_free(const struct gpu_memory *memory);

#endif
