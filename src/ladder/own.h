/*
 * own.h - a kernel that was compiled at run time, on the model.
 *
 * The object was compiled behind own_lane.hpp. own_object_read() examines its file before it is loaded. Code that would
 * run during loading is removed (constructors) or makes the file be refused (resolvers, other libraries). The names and
 * addresses of the shared arrays are noted, so that a fault can say input_s[3]. Launches are then those of model.h.
 */
#ifndef TALLY_LADDER_OWN_H
#define TALLY_LADDER_OWN_H

#include "ladder/own_object.h"
#include "model/model.h"
#include "model/own_kernel.h"
#include "tally.h"

enum { OWN_NAME_BYTES = 64 };

struct tally_own {
    void *handle;
    struct own_object object;
    const struct own_kernel *kernels;
    size_t count;
    const struct own_variable
        *variables; /* in global memory, as the text declares them; ended by a NULL */
    model_device *device;
    char *initial; /* what the variables in global memory held at first */
    char names
        [5]
        [OWN_NAME_BYTES]; /* input, output, length, second input, partial results of the kernel described last */
};

/* Fills an array of `count` elements with the operator's identity, or with zeros where the type has none: what the
 * host puts into an output before a launch. */
void own_fill_identity(tally_op op, tally_type type, void *out, size_t count);

/* Returns the variable in global memory that begins at an address; NULL: the text has not told of it. */
const struct own_variable *own_find_variable(const tally_own *own, uintptr_t address);

#endif
