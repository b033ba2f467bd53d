/*
 * programs.h - kernel files compiled for a queue's device, and the kernels of the programs, which a queue keeps.
 */
#ifndef TALLY_GPU_PROGRAMS_H
#define TALLY_GPU_PROGRAMS_H

#include "gpu/capability.h"
#include "gpu/queue.h"

#define PROGRAM_KERNELS 6 /* the most kernels of a program */

/* Compiles a kernel file that is for all types and operators. gpu.h says how long *out lives (build). */
tally_status program_build_plain(const struct queue *queue, const char *file,
                                 struct gpu_program **out);
/* Finds a program's kernels, those of `names` that are not NULL, in the same places of out[]. */
tally_status program_find(const struct queue *queue, struct gpu_program *program,
                          const char *const *names, unsigned count, struct gpu_kernel **out);
/* Compiles the program of a row of the table for the problem's type; `loose`: for arrays with filled-in elements or rows
 * apart (kernels/parts.h). Returns TALLY_EUNSUPPORTED if the device lacks a capability. */
tally_status program_build(const struct queue *queue, enum schedule schedule,
                           const struct capability *c, const struct problem *p, bool loose,
                           struct gpu_program **out);
/* Finds the kernels of that program, those of `names` that are not NULL, in the same places of *out. They are compiled once,
 * and only these. Not for a user's operator. */
tally_status program_kernels(struct queue *queue, enum schedule schedule,
                             const struct capability *c, const struct problem *p, bool loose,
                             const char *const *names, unsigned count,
                             struct gpu_kernel *const **out);

#endif
