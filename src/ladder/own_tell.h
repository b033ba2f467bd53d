/*
 * own_tell.h - describes the model's faults by the names in the kernel's text: its parameters, arrays and lines.
 */
#ifndef TALLY_LADDER_OWN_TELL_H
#define TALLY_LADDER_OWN_TELL_H

#include "ladder/own_roles.h"

/* A launch, and the result that its faults are described in. */
struct own_teller {
    const tally_own *own;
    const struct own_kernel *kernel;
    struct own_roles roles;
    const tally_own_launch *how;
    uintptr_t input, output, second, partials;
    size_t size; /* of an element */
    tally_type type;
    tally_own_result *out;
    size_t length;
};

/* Describes in t->out the fault that ended the launch, or the first that it forgave. */
void own_tell(struct own_teller *t, const model_fault *f);
/* Says that a fence is missing beside the atomic by which one block tells another that a value is there. */
void own_tell_order(struct own_teller *t, const model_fault *f);
/* Says in t->out->stray that a shuffle took the value of a lane that does not take part. */
void own_tell_stray(struct own_teller *t, const model_fault *f);
/* Describes in t->out->stray a plain read that races with atomics (model_untried_read()). It is a fault only if the
 * result is wrong. */
void own_tell_untried(struct own_teller *t, const model_fault *f);

#endif
