/*
 * take.h - takes in the data that a step's collective has brought: they decide the next step, or are the outcome.
 */
#ifndef TALLY_MPI_TAKE_H
#define TALLY_MPI_TAKE_H

#include "task.h"

/* Takes in the data that the step has brought, and goes to the next step. */
void task_take(struct task *t);

#endif
