/*
 * step.h - telling a caller of the model's steps, in the public header's words.
 */
#ifndef TALLY_LADDER_STEP_H
#define TALLY_LADDER_STEP_H

#include "fpenv.h"
#include "model/model.h"
#include "tally.h"

struct climb;

struct step_listener {
    void (*on_step)(void *context, const tally_ladder_step *step);
    void *context;
    struct fp_env caller;      /* the floating environment in which it is called: its own */
    unsigned threads;          /* of a block */
    uint64_t n;                /* elements that the launch reduces; of a climb it is the climb's */
    const struct climb *climb; /* a rung's; or NULL: then no launch may ask for accesses */
    tally_ladder_access *accesses; /* of the step, in the public header's words */
    size_t capacity;
    bool out_of_memory;
};

/* Tells the listener, a struct step_listener, of a step. */
void step_tell(void *listener, unsigned launch, const model_step *step);

#endif
