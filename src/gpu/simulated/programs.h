/*
 * programs.h - the production kernels, compiled for the model.
 *
 * The model compiles nothing at run time. The build makes one translation unit for each kernel file with
 * each set of defines (CMakeLists.txt here), and this is how one is found.
 */
#ifndef TALLY_SIMULATED_PROGRAMS_H
#define TALLY_SIMULATED_PROGRAMS_H

#include "model/model.h"

struct simulated_program {
    const char *name;               /* "sum.cu OP_SUM TYPE_F32": the file and the defines */
    const model_kernel *kernels[2]; /* NULL after the last */
};

/* The program of a file and defines, as struct gpu_api's build() takes them; NULL where there is none. */
const struct simulated_program *simulated_find(const char *file, const char *const *defines,
                                               size_t count);

#endif
