/*
 * programs.h - the kernels of src/kernels, compiled for the model.
 *
 * The model compiles nothing at run time. The build makes one translation unit for each kernel file with
 * each set of defines (CMakeLists.txt here): a program. Here one is found by the file and the defines.
 */
#ifndef TALLY_MODEL_PROGRAMS_H
#define TALLY_MODEL_PROGRAMS_H

#include "model/model.h"

struct model_program {
    const char *name;                   /* "sum.cu OP_SUM TYPE_F32": the file and the defines */
    const model_kernel *const *kernels; /* NULL after the last */
};

/* The program of a file and its defines, in any order; NULL where the build made none. */
const struct model_program *model_program_find(const char *file, const char *const *defines,
                                               size_t count);

/* A program's kernel; NULL where it has none of that name. */
const model_kernel *model_program_kernel(const struct model_program *program, const char *name);

#endif
