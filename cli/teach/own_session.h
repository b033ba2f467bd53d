/*
 * own_session.h - a student's kernel under trial, and how it is tried.
 */
#ifndef TALLY_CLI_OWN_SESSION_H
#define TALLY_CLI_OWN_SESSION_H

#include "teach/own_kernel.h"

enum { OWN_LAUNCH_WORDS = 600 }; /* the most bytes of the words that say how a kernel is launched */

struct own_session {
    const struct own_kernel *kernel;
    const struct own_options *options;
    tally_op op;
    unsigned block;             /* that was asked for; 0: none */
    bool accesses;              /* on_step() is told of them */
    unsigned order;             /* of the blocks; see tally_own_launch */
    bool keeps;                 /* variables keep what the launch before left */
    tally_own_program *program; /* on a device that has a time; NULL: on the model */
    unsigned repeats;           /* launches for one time on that device */
    uint64_t *work;             /* the sum to which each run adds its work, or NULL */
};

/* Limits of a verdict's work, in basic blocks that lanes run, so that no verdict depends on the speed of the machine: one
 * core runs some 35 million a second. After OWN_WORK fewer lengths are tried. A launch of more than OWN_WORK, or more than
 * OWN_WORK_MOST in all, is not judged. */
#define OWN_WORK      (UINT64_C(1) << 27)
#define OWN_WORK_MOST (UINT64_C(1) << 29)

#endif
