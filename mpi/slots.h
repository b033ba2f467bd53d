/*
 * slots.h - the values of one array by words of the frame that each rank has for its own (task.h, routes keys and triple).
 */
#ifndef TALLY_MPI_SLOTS_H
#define TALLY_MPI_SLOTS_H

#include "task.h"

/* Returns ROUTE_KEYS or ROUTE_TRIPLE if the problem's values go that way and the frame has the words for it; else
 * ROUTE_MERGED. Notes how long a frame would have to be. */
enum route slots_route(struct task *t);
/* Reduces this rank's elements, and puts the result into its words. */
void slots_begin(struct task *t);
/* Combines all ranks' words, and gives the values. */
void slots_take(struct task *t);

#endif
