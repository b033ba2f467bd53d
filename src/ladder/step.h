/*
 * step.h - passes the model's steps to a caller's on_step(), as the structs of tally.h.
 */
#ifndef TALLY_LADDER_STEP_H
#define TALLY_LADDER_STEP_H

#include "base/fpenv.h"
#include "model/model.h"
#include "tally.h"

/* The contents of an array: elements, accumulators as words (to_word()), or counts. */
enum step_content { STEP_ELEMENTS, STEP_WORDS, STEP_COUNTS };

/* An array as the kernel's text calls it. */
struct step_array {
    const char *name;
    enum step_content content;
    tally_type type;
    uintptr_t base; /* where the array begins, if not at the access's `array`; else 0 */
};

/* The owner of the kernel that runs: a rung's climb, or a launch of a kernel that was loaded at run time. */
struct step_owner {
    /* Returns the array that an access is to. */
    struct step_array (*array_of)(const void *owner, const model_access *access);
    void (*from_word)(void *accumulator, const void *word); /* for STEP_WORDS */
    unsigned word_size;
    const void *owner;
    const uint64_t *n; /* elements that the launch reduces */
};

struct step_listener {
    void (*on_step)(void *context, const tally_ladder_step *step);
    void *context;
    struct fp_env caller; /* the caller's floating environment, in which on_step() is called */
    unsigned threads;     /* of a block */
    struct step_owner by;
    tally_ladder_access *accesses; /* of the step, in the public header's words */
    size_t capacity;
    bool out_of_memory;
};

/* Translates a step and calls on_step() of the listener, a struct step_listener. Without memory the step goes
 * without its accesses, and out_of_memory is set. */
void step_tell(void *listener, unsigned launch, const model_step *step);

#endif
