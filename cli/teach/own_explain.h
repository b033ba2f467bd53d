/*
 * own_explain.h - `tally explain --kernel` and the row of `tally ladder --kernel`.
 */
#ifndef TALLY_CLI_OWN_EXPLAIN_H
#define TALLY_CLI_OWN_EXPLAIN_H

#include "teach/explain.h"
#include "teach/own.h"
#include "teach/own_session.h"

/* Explains the kernel as `tally explain` does a rung; returns the exit status. */
int own_explain(struct explanation *e, const struct own_options *own);

/* Has the kernel run for o->n elements on a device, after the model has seen it: its time is in own->page. */
int own_device_row(struct own_kernel *kernel, const struct own_options *own,
                   const struct ladder_options *o);

/* Runs the kernel for o->n elements and fills its row of the ladder, named in `name`; `launch` says how the host launches it.
 * false: its line is written. */
bool own_ladder_row(struct own_kernel *kernel, const struct own_options *own,
                    const struct ladder_options *o, tally_ladder_row *row, char name[340],
                    char launch[OWN_LAUNCH_WORDS]);

#endif
