/*
 * arguments.h - the arguments that several subcommands share, read and checked.
 *
 * Every function that returns false has already written the line that says why.
 */
#ifndef TALLY_CLI_ARGUMENTS_H
#define TALLY_CLI_ARGUMENTS_H

#include "tally.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

/* The line for what getopt_long() did not understand of these options: `found` is what it returned, '?'
 * or ':'. The short options must open with ':'. Returns STATUS_USAGE. */
int argument_unknown(int found, char **argv, const struct option *options);

/* A count of at least 1 written 134217728, 2^27 or 1e6. option: how messages call it. */
bool argument_count(const char *option, const char *text, uint64_t *out);
bool argument_type(const char *option, const char *text, tally_type *out);

/* Returns whether a driver of others takes part in what --device names: all but auto, the cpu and
 * the model. */
bool argument_needs_driver(const char *device);

/* Opens the device that --device and --threads name together; NULL and 0 where they were not given.
 * *status becomes the exit status where that cannot be done. */
bool argument_device(const char *device, uint64_t threads, tally_device **out, int *status);

#endif
