/*
 * begin.h - the beginning of a task: this rank's part is reduced, and its message made.
 */
#ifndef TALLY_MPI_BEGIN_H
#define TALLY_MPI_BEGIN_H

#include "task.h"

/* Begins the task that t->ask is. Whatever fails is in t->status, and the task goes on to tell the others. What t->ask
 * points to must live until task_end(), but for the shape itself. `layout` is that of the frame; NULL: what the
 * communicator has learnt. */
void task_begin(struct task *t, MPI_Comm comm, const struct frame_layout *layout);

#endif
