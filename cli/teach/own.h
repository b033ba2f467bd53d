/*
 * own.h - a student's kernel: compiled, and run in a process that can do nothing else.
 */
#ifndef TALLY_CLI_OWN_H
#define TALLY_CLI_OWN_H

#include "teach/own_kernel.h"

/* Only the last resort: what a verdict costs is bounded by own_host.h, in steps of the model, so that it is the same on every
 * machine. */
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
/* Whether they go together; false: the line is written. */
bool own_options_fit(const struct own_options *o);

/* Compiles the kernel and has run() do the rest in a process of its own, which has the kernel, no files but
 * standard output and error, little memory and little time. op and type: what is asked for. Returns what run() does, or
 * OWN_NOT_JUDGED; every failure has its line. */
int own_in_process(const struct own_options *o, tally_op op, tally_type type,
                   int (*run)(void *context, struct own_kernel *kernel), void *context);

#endif
