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

/* Writes the message about an option that getopt_long() rejected. found: the value that it
 * returned, '?' or ':'. The short options must begin with ':'. Returns STATUS_USAGE. */
int argument_unknown(int found, char **argv, const struct option *options);

/* Reads a count of at least 1, written as 134217728, 2^27 or 1e6. option: its name in messages. */
bool argument_count(const char *option, const char *text, uint64_t *out);
bool argument_type(const char *option, const char *text, tally_type *out);

/* Returns true if opening the device that --device names needs another vendor's driver: all but
 * auto, cpu and model do. */
bool argument_needs_driver(const char *device);

/* Opens the device that --device and --threads name together; NULL and 0 where they were not given.
 * *status becomes the exit status where that cannot be done. */
bool argument_device(const char *device, uint64_t threads, tally_device **out, int *status);

#endif
