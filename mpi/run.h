/*
 * run.h - the collectives of a task's steps.
 */
#ifndef TALLY_MPI_RUN_H
#define TALLY_MPI_RUN_H

#include "task.h"

/* Issues the step's collective on `comm`: waits for it where request is NULL. An MPI error code. */
int task_issue(struct task *t, MPI_Comm comm, MPI_Request *request);
/* Runs all steps of a task that has begun, waiting for each, and ends it. */
tally_status task_run(struct task *t);

#endif
