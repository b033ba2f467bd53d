/*
 * modules.h - programs in a CUDA context: modules of images that the build made (images.h), or that are made now (program.h).
 */
#ifndef TALLY_CUDA_MODULES_H
#define TALLY_CUDA_MODULES_H

#include "cuda/context.h"

/* The functions that gpu/cache.h asks of a machine: they load a program, find a kernel in it and unload it. */
extern const struct gpu_cache_calls module_calls;

/* gpu_api's calls (gpu/gpu.h). */
tally_status cuda_build(struct gpu *gpu, const char *file, const char *prelude,
                        const char *const *defines, size_t count, struct gpu_program **out);
tally_status cuda_make(struct gpu *gpu, struct gpu_program *program, const char *const *names,
                       size_t count);
tally_status cuda_kernel(struct gpu *gpu, struct gpu_program *program, const char *name,
                         struct gpu_kernel **out);

/* Unloads a program when the struct gpu is closed. The context is current, and no work is under way
 * on our stream. tally_close() asks its caller to see to the caller's streams. */
bool module_unload_last(struct gpu *gpu, struct gpu_program *program);

#endif
