/*
 * own_conditions.h - #if and its like: which lines of a student's text are compiled.
 *
 * What the compiler leaves out is no kernel: a version within `#if 0`, or the other of two. An expression that is not
 * understood here leaves its lines in.
 */
#ifndef TALLY_CLI_OWN_CONDITIONS_H
#define TALLY_CLI_OWN_CONDITIONS_H

#include "teach/own_tokens.h"

enum { MACROS_MAX = 128, CONDITIONS_MAX = 32 };

struct own_macro {
    char name[OWN_NAME];
    const char *value; /* not ended by a 0 */
    size_t length;
    bool has_value; /* false: it takes arguments */
};

struct own_conditions {
    struct own_macro macros[MACROS_MAX];
    size_t count;
    struct {
        bool is_in, was_in,
            around; /* these lines are; earlier ones of this #if were; the lines around the #if are */
    } levels[CONDITIONS_MAX];
    size_t depth;        /* of #if within #if; those beyond CONDITIONS_MAX leave their lines in */
    const char *prelude; /* what is compiled before the text */
};

/* Begins with the macros of `defines`, each NAME=VALUE or NAME, and with those that nvcc defines. */
void conditions_begin(struct own_conditions *c, const char *const *defines, size_t count,
                      const char *prelude);
/* Returns whether the lines here are compiled. */
bool conditions_hold(const struct own_conditions *c);
/* Reads a directive: its word is at `word`, and its line ends at `end`. */
void conditions_read(struct own_conditions *c, const struct own_source *r, struct own_token word,
                     size_t end);

#endif
