/*
 * take.h - what a step's collective has brought is taken in: it decides the next step, or becomes the outcome.
 */
#ifndef TALLY_MPI_TAKE_H
#define TALLY_MPI_TAKE_H

#include "task.h"

/* Takes in what the step brought, and goes to the next. */
void task_take(struct task *t);

#endif
