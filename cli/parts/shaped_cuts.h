/*
 * shaped_cuts.h - the cuts of a reduction in parts, one file each, and the function that prints
 * their results.
 *
 * Every function that returns false has already written the line that says why.
 */
#ifndef TALLY_CLI_SHAPED_CUTS_H
#define TALLY_CLI_SHAPED_CUTS_H

#include "parts/shaped_job.h"

bool job_axes(struct job *job);     /* shaped_axes.c */
bool job_segments(struct job *job); /* shaped_segments.c */
bool job_groups(struct job *job);   /* shaped_groups.c */
bool job_along(struct job *job);    /* shaped_along.c: segments and groups along one axis */

/* Prints the results; returns an exit status (shaped_answer.c). */
int job_print(struct job *job);

#endif
