/*
 * explain.h - the record of a kernel's run on the model, and what `tally explain` prints of it.
 */
#ifndef TALLY_CLI_EXPLAIN_H
#define TALLY_CLI_EXPLAIN_H

#include "teach/ladder_options.h"

#include <stdio.h>

/* A step of a block that is shown. */
struct seen_step {
    tally_ladder_step step; /* step.warp points to warps[], step.access to accesses */
    tally_ladder_warp warps[32];
    tally_ladder_access *accesses; /* if they were asked for */
};

/* The sums over a block's warps in one step. */
struct step_sums {
    unsigned active;                   /* warps in which a lane applied the operator */
    unsigned fewest_lanes, most_lanes; /* lanes at work in an active warp */
    unsigned rounds;                   /* most applications by one warp, one after another */
    uint64_t operations, issued, divergent, lines, fewest_lines, conflicts;
};
struct step_sums sum_step(const tally_ladder_step *step);

/* A lesson's goal beside a right result. Either a bound: the count, divided by the number of blocks, may be at most
 * `most`. Or neighbours: each value that a thread stores or passes on must be of elements that follow each other. */
struct explain_goal {
    unsigned lesson;
    const char *what; /* the count in words; NULL: the goal is neighbours */
    size_t place;     /* offset of the count in tally_ladder_counts */
    uint64_t most;
    unsigned block; /* threads of the block that the goal is for; 0: any */
};

/* A launch: the steps of its first and of its last block, and sums over all blocks. */
struct seen_launch {
    struct seen_step *first, *last;
    struct seen_step *all; /* of every block, if accesses were asked for */
    size_t first_count, last_count, all_count;
    unsigned last_block;
    uint64_t blocks, operations, slots;
};

struct explanation {
    struct ladder_options options;
    bool with_steps, draws; /* --steps, --draw */
    const char *svg;        /* the file of --svg, or NULL */
    const char *device; /* --device: where a kernel of one's own runs after the model, or NULL */
    const tally_rung *rung;
    const char *title, *idea; /* of what is drawn: the rung's, or a kernel's of one's own */
    const char *input;        /* the array that is reduced, as the kernel calls it */
    const char *text;         /* of a kernel of one's own; NULL: a rung's is in the library */
    FILE *svg_to;             /* open for --svg already; NULL: the file is to be opened */
    struct seen_launch *launches;
    size_t launch_count;
    unsigned lesson; /* the lesson whose repair is judged: only the verdict is printed; 0: none */
    const struct explain_goal *goal; /* or NULL */
    bool out_of_memory, has_dtype;
    tally_ladder_row row;
};

/* Stores a step. It is an on_step() for tally_ladder_explain() and tally_own_run(), with an explanation as context.
 * Call explain_settle() after the last step. */
void explain_note_step(void *explanation, const tally_ladder_step *step);
void explain_settle(struct explanation *e);
/* Frees the steps and the elements. */
void explain_forget(struct explanation *e);
void explain_print_launches(const struct explanation *e);
void explain_print_totals(const struct explanation *e);
struct json_object *explain_json_steps(const struct explanation *e);

/* The most elements for which accesses are recorded. */
enum { EXPLAIN_STEPS_MAX = 4096 };
int explain_too_many(const struct explanation *e); /* writes the error for a larger n */

/* Returns the accesses of a step as JSON (explain_steps.c). */
struct json_object *json_accesses(const tally_ladder_step *step);

/* ---- The texts' closed formulas (explain_formulas.c) ---- */

struct formula {
    const char *what;    /* "slots" */
    const char *formula; /* as the text writes it */
    double value;        /* the formula's value for this run */
    double counted;
    double value_efficiency,
        counted_efficiency; /* useful operations / slots; 0 where it is not about slots */
    char difference[640];   /* why they differ, or that they agree */
};
enum { FORMULAS_MAX = 4 };

/* Finds the formulas that texts give for this rung and that hold for this n and block, and returns how many. If texts
 * have formulas but none holds, `why` says so; else it is "". Returns -1 after a failure, whose line is written. */
int explain_formulas(const struct explanation *e, struct formula out[FORMULAS_MAX], char why[256]);

#endif
