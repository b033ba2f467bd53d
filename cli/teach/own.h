/*
 * own.h - a student's kernel: compiled, and run in a process that can do nothing else.
 */
#ifndef TALLY_CLI_OWN_H
#define TALLY_CLI_OWN_H

#include "teach/own_kernel.h"

/* Processor time of the kernel's process, in seconds, as a last resort. own_session.h limits a verdict's work in steps
 * of the model, so that a verdict is the same on every machine. */
enum { OWN_SECONDS = 120 };

/* The options, for getopt_long(), and their values. */
#define OWN_LONG_OPTIONS                                                                           \
    {"kernel", required_argument, NULL, 'k'}, {"grid", required_argument, NULL, 'g'},              \
        {"length", required_argument, NULL, 'l'}, {"seed", required_argument, NULL, 'e'},          \
        {"define", required_argument, NULL, 'D'}, {                                                \
        "shared", required_argument, NULL, 's'                                                     \
    }

#define OWN_OPTIONS_HELP                                                                           \
    "  --kernel FILE     the kernel in this file; FILE:NAME where it has several\n"                \
    "  --grid G          the host launches so many blocks; otherwise as many as n needs\n"         \
    "  --length L        what the host passes for n: a number, or block (its threads)\n"           \
    "  --shared BYTES    shared memory of the launch, for extern __shared__ arrays\n"              \
    "  -D, --define D    the kernel's text is compiled with D, NAME or NAME=VALUE, defined\n"      \
    "  --seed S          of the data and of the orders of blocks that are tried; 1\n"

/* Takes one option by its value above, with optarg; false for one that is not among them. */
bool own_option(struct own_options *o, int option);
/* Returns whether the options go together; false: the line is written. */
bool own_options_fit(const struct own_options *o);

/* Compiles the kernel for an operator and a type, and calls run() in a child process. That process has the loaded
 * kernel, standard output and error, the file of --svg, and limits on memory and time. Returns run()'s status, or
 * OWN_NOT_JUDGED. Every failure has its line. */
int own_in_process(const struct own_options *o, tally_op op, tally_type type,
                   int (*run)(void *context, struct own_kernel *kernel), void *context);

#endif
