/*
 * ladder_options.h - the options of `tally ladder` and `tally explain`, and the array that they reduce.
 *
 * Every function that returns false has already written the line that says why.
 */
#ifndef TALLY_CLI_LADDER_OPTIONS_H
#define TALLY_CLI_LADDER_OPTIONS_H

#include "tally.h"

#include <stdbool.h>

struct ladder_options {
    tally_ladder_options
        run; /* op, dtype, block, coarsen, finish; and the array, once it is made */
    uint64_t n;
    bool has_n, as_json, help;
    size_t bytes;           /* of the array */
    unsigned width, height; /* of a block of two or three dimensions; 0: it has one */
    bool digits;            /* the elements are whole numbers from 1 to 9 */
};

/* The long options that both have, for getopt_long(), and their values. */
#define LADDER_LONG_OPTIONS                                                                        \
    {"n", required_argument, NULL, 'n'}, {"op", required_argument, NULL, 'o'},                     \
        {"dtype", required_argument, NULL, 'd'}, {"block", required_argument, NULL, 'b'},          \
        {"coarsen", required_argument, NULL, 'c'}, {"finish", required_argument, NULL, 'f'},       \
        {"json", no_argument, NULL, 'j'}, {                                                        \
        "help", no_argument, NULL, 'h'                                                             \
    }

#define LADDER_OPTIONS_HELP                                                                        \
    "  -n, --n N         so many elements, from 0 up, such as 1000, 1e6 or 2^24\n"                 \
    "  --op OP           sum (the default), prod, min, max, and, or, xor\n"                        \
    "  --dtype TYPE      the elements' type; f32 is the default\n"                                 \
    "  --block B         threads of a block: a power of two from 1 to 1024; for a kernel of\n"     \
    "                    your own any number, or 16x16\n"                                          \
    "  --coarsen C       rung coarsened: a thread adds 2 * C elements by itself; 4 is the\n"       \
    "                    default\n"                                                                \
    "  --finish FINISH   how the blocks' results come together: relaunch (the default; the\n"      \
    "                    kernel runs again over them), atomic (each block combines its own\n"      \
    "                    into one place) or host (the CPU reads and combines them)\n"

/* Takes one option by its value above, with optarg. */
bool ladder_option(struct ladder_options *options, int option);

/* Returns whether the block is one that rungs take; false: the line is written. A kernel of one's own takes any. */
bool ladder_block_fits(const struct ladder_options *options);

/* Makes an array of n elements, the same for every run; ladder_release() it. */
bool ladder_fill(struct ladder_options *options);
void ladder_release(struct ladder_options *options);

#endif
