/*
 * programs.h - the kernels of src/kernels, compiled for the model.
 *
 * The model compiles nothing at run time. The build makes one translation unit for each kernel file with
 * each set of defines (CMakeLists.txt here): a program. A program is found by its file and its defines.
 */
#ifndef TALLY_MODEL_PROGRAMS_H
#define TALLY_MODEL_PROGRAMS_H

#include "model/model.h"

struct model_program {
    const char *name;                   /* "sum.cu OP_SUM TYPE_F32": the file and the defines */
    const model_kernel *const *kernels; /* NULL after the last */
};

/* Returns the program of a file and its defines, in any order; NULL if the build made none. */
const struct model_program *model_program_find(const char *file, const char *const *defines,
                                               size_t count);

/* Returns the program's kernel of that name; NULL if it has none. */
const model_kernel *model_program_kernel(const struct model_program *program, const char *name);

#endif
