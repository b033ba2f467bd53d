/*
 * drawn.h - tables that psql, mysql and others draw for people, with lines such as ---+---.
 */
#ifndef TALLY_CLI_DRAWN_H
#define TALLY_CLI_DRAWN_H

#include "input/spelling.h"

#include <stdbool.h>
#include <stdint.h>

/* Fails, with a message, if one of the first lines of [text, end) is a rule of a drawn table. A word
 * of --na may have dashes: then no line is. `line`: the number of the first one. */
bool drawn_check(const char *name, const struct spelling *spelling, const char *text,
                 const char *end, uint64_t line);

#endif
