/*
 * own_roles.h - the roles of a kernel's parameters (input, output, length), which tally_own_describe() reports.
 */
#ifndef TALLY_LADDER_OWN_ROLES_H
#define TALLY_LADDER_OWN_ROLES_H

#include "ladder/own.h"

/* The numbers of the parameters that are the input, the output, the length, the second input, and an array for what the
 * blocks leave to the last of them; -1: there is none. */
struct own_roles {
    int input, output, length, second, partials;
};

/* Finds the roles of a kernel's parameters. Returns TALLY_EUNSUPPORTED if some parameter has none, so that nobody knows
 * what to pass: tally_error() says why. */
tally_status own_find_roles(const struct own_kernel *k, struct own_roles *r);
/* Writes the i-th parameter's name to out; "" where it has none. */
void own_parameter_name(const struct own_kernel *k, unsigned i, char out[OWN_NAME_BYTES]);

#endif
