/*
 * shaped.h - `tally OP` in parts: along axes, by segment, by group, and of what a mask leaves.
 */
#ifndef TALLY_CLI_SHAPED_H
#define TALLY_CLI_SHAPED_H

#include <stdbool.h>
#include <stdint.h>

struct reduction;

/* As told; NULL and 0 where it was not. */
struct shaping {
    const char *axis;     /* numbers with commas between them */
    const char *segments; /* a file of offsets, or a length */
    const char *ids;      /* a file of ids: --by without a table's column */
    const char *mask;     /* a file */
    const char *output;   /* a .npy file */
    uint64_t groups;
    bool skip_outside;
};

/* Returns whether a reduction in parts is asked for. */
bool shaped_is_asked(const struct shaping *shaping);
/* Returns whether its options go together, and with the others. Returns an exit status. */
int shaped_check(const struct reduction *r);
/* Reduces the inputs and writes or prints the results. Returns an exit status. */
int shaped_run(struct reduction *r, char **names, int count);

#endif
