/*
 * ladder.h - the model's program of ladder/ladder.cu, with all rungs. It stands behind that text; the build defines
 * PROGRAM and PROGRAM_NAME.
 */
#include "kernels/ladder/rungs.h"
#include "model/programs/programs.h"

MODEL_KERNEL3(load_elements, const element *, u64, accumulator *);

#define INPUT_COPY                    accumulator *
#define INPUT_ELEMENTS                const element *
#define KERNEL_NOTHING(kernel, input) MODEL_KERNEL4(kernel, input, u64, accumulator *, word *)
#define KERNEL_FACTOR(kernel, input)  MODEL_KERNEL5(kernel, input, u64, accumulator *, word *, u32)
#define KERNEL_BOARD(kernel, input)   MODEL_KERNEL5(kernel, input, u64, accumulator *, word *, word *)
#define RUNG_KERNEL(ID, name, kernel, file, INPUT, EXTRA, ...)                                     \
    KERNEL_##EXTRA(kernel, INPUT_##INPUT);
LADDER_RUNGS(RUNG_KERNEL)

#define RUNG_ADDRESS(ID, name, kernel, ...) &kernel##_kernel,
static const model_kernel *const kernels[] = {&load_elements_kernel,
                                              LADDER_RUNGS(RUNG_ADDRESS) NULL};
extern const struct model_program PROGRAM;
const struct model_program PROGRAM = {PROGRAM_NAME, kernels};
