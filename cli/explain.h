/*
 * explain.h - what `tally explain` has seen of a rung, for those who tell of it.
 */
#ifndef TALLY_CLI_EXPLAIN_H
#define TALLY_CLI_EXPLAIN_H

#include "ladder_options.h"

/* A step of a block that is shown. */
struct seen_step {
    tally_ladder_step step; /* step.warp points to warps[] */
    tally_ladder_warp warps[32];
};

/* What the warps of a block did in one step, together. */
struct step_sums {
    unsigned active;                   /* warps in which a lane applied the operator */
    unsigned fewest_lanes, most_lanes; /* in one of these */
    uint64_t operations, divergent, lines, fewest_lines, conflicts;
};
struct step_sums sum_step(const tally_ladder_step *step);

/* A launch: its first block, its last if that did something else, and all blocks together. */
struct seen_launch {
    struct seen_step *first, *last;
    size_t first_count, last_count;
    unsigned last_block;
    uint64_t blocks, operations, slots;
};

struct explanation {
    struct ladder_options options;
    const tally_rung *rung;
    struct seen_launch *launches;
    size_t launch_count;
    bool out_of_memory, has_dtype;
    tally_ladder_row row;
};

/* Notes a step for the picture: for tally_ladder_explain() and tally_own_run(), whose context is an explanation.
 * explain_settle() follows once all are noted. */
void explain_note_step(void *explanation, const tally_ladder_step *step);
void explain_settle(struct explanation *e);
void explain_print_launches(const struct explanation *e);
void explain_print_totals(const struct explanation *e);
struct json_object *explain_json_steps(const struct explanation *e);

/* ---- The texts' closed formulas (explain_formulas.c) ---- */

struct formula {
    const char *what;    /* "slots" */
    const char *formula; /* as the text writes it */
    double value;        /* what it comes to here */
    double counted;
    double value_efficiency,
        counted_efficiency; /* operations / slots; 0 where it is not about slots */
    char difference[640];   /* why they differ, or that they agree */
};
enum { FORMULAS_MAX = 4 };

/* The formulas that texts give for this rung and that hold for these n and block. -1 after a failure,
 * whose line is written. */
int explain_formulas(const struct explanation *e, struct formula out[FORMULAS_MAX]);

#endif
