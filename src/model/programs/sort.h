/*
 * sort.h - the model's program of sort.cu. It stands behind that text; the build defines PROGRAM
 * and PROGRAM_NAME.
 */
#include "model/programs/programs.h"

MODEL_KERNEL6(keys, const u8 *, const u8 *, const u8 *, u64 *, parts_plan, sort_plan);
MODEL_KERNEL4(count, const u8 *, u64 *, parts_plan, sort_plan);
MODEL_KERNEL3(scan, u64 *, u64, sort_plan);
MODEL_KERNEL6(scatter, const u8 *, const u8 *, const u8 *, u64 *, parts_plan, sort_plan);

#if SORTS_TILES
MODEL_KERNEL6(scatter_32, const u8 *, const u8 *, const u8 *, u64 *, parts_plan, sort_plan);
MODEL_KERNEL6(scatter_64, const u8 *, const u8 *, const u8 *, u64 *, parts_plan, sort_plan);
#define TILE_KERNELS &scatter_32_kernel, &scatter_64_kernel,
#else
#define TILE_KERNELS
#endif

static const model_kernel *const kernels[] = {&keys_kernel, &count_kernel, &scan_kernel,
                                              &scatter_kernel, TILE_KERNELS NULL};
extern const struct model_program PROGRAM;
const struct model_program PROGRAM = {PROGRAM_NAME, kernels};
