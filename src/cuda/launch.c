/* launch.c - see launch.h. */
#include "cuda/launch.h"

#include "base/invariant.h"

bool launch_is_captured(CUstream queue) {
    int captured = 1;
    return cu.cuStreamIsCapturing(queue, &captured) != CUDA_SUCCESS || captured;
}

/* Notes that a program is about to be launched on a caller's stream, where the end of the launch cannot be
 * seen. In a stream that is being captured the launch becomes part of a graph, which may run at any time:
 * then the program stays until the struct gpu is closed. Needs the context to be current. */
static void note_queue(struct gpu *gpu, struct gpu_program *program) {
    if (program->stays || gpu->queue == gpu->stream) return;
    program->elsewhere = true;
    if (launch_is_captured(gpu->queue)) gpu_cache_stays(&gpu->cache, program);
}

static CUresult launch_early(struct gpu *gpu, CUfunction function, unsigned grid, unsigned block,
                             void **parameters) {
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
    return cu.cuLaunchKernelEx(&config, function, parameters, NULL);
}

CUresult launch_kernel(struct gpu *gpu, const struct gpu_kernel *kernel, unsigned grid,
                       unsigned block, void **parameters) {
    TALLY_ASSERT(kernel->native);
    note_queue(gpu, kernel->program);
    if (kernel->program->begins_early)
        return launch_early(gpu, kernel->native, grid, block, parameters);
    return cu.cuLaunchKernel(kernel->native, grid, 1, 1, block, 1, 1, 0, gpu->queue, parameters,
                             NULL);
}
