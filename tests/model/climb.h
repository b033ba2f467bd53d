/*
 * climb.h - runs a rung of the ladder on the model from elements to result: for the tests.
 */
#ifndef TALLY_TESTS_MODEL_CLIMB_H
#define TALLY_TESTS_MODEL_CLIMB_H

#include "ladder/arithmetic.h"
#include "ladder/rungs.h"
#include "model/programs/programs.h"

typedef enum finish { FINISH_RELAUNCH, FINISH_ATOMIC, FINISH_HOST, FINISHES } finish;

typedef struct climb {
    ladder_rung rung;
    tally_type type;
    tally_op op;
    finish how;
    unsigned block, factor;
    const void *x;
    size_t n;
    void (*on_step)(void *context, const model_step *step); /* of the kernels that reduce */
    void *context;
} climb;

/* The ladder's kernels for a type and operator; NULL where there are none. */
const struct model_program *ladder_program(tally_type type, tally_op op);

/* 0, or -1 after printing what went wrong. `counts` may be NULL. Also fails if the elements have
 * changed in the end. */
int climb_rung(model_device *device, const climb *c, tally_value *out, model_counts *counts);

#endif
