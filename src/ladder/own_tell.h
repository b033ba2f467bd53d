/*
 * own_tell.h - the model's faults in a kernel's own words: its parameters, its arrays, its lines.
 */
#ifndef TALLY_LADDER_OWN_TELL_H
#define TALLY_LADDER_OWN_TELL_H

#include "ladder/own_roles.h"

/* A launch, and the result that is told of it. */
struct own_teller {
    const tally_own *own;
    const struct own_kernel *kernel;
    struct own_roles roles;
    const tally_own_launch *how;
    uintptr_t input, output, second;
    size_t size; /* of an element */
    tally_type type;
    tally_own_result *out;
    size_t length;
};

/* Says in t->out what the fault is that ended the launch, or was noted. */
void own_tell(struct own_teller *t, const model_fault *f);
/* Says that a fence is missing beside the atomic by which one block tells another that a value is there. */
void own_tell_order(struct own_teller *t, const model_fault *f);
/* Says in t->out->stray that a shuffle took the value of a lane that does not take part. */
void own_tell_stray(struct own_teller *t, const model_fault *f);
/* Says there what a race is where the result is wrong. */
void own_tell_untried(struct own_teller *t, const model_fault *f);

#endif
