/*
 * explain.h - what `tally explain` has seen of a rung, for those who tell of it.
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

/* What the warps of a block did in one step, together. */
struct step_sums {
    unsigned active;                   /* warps in which a lane applied the operator */
    unsigned fewest_lanes, most_lanes; /* in one of these */
    unsigned rounds;                   /* the most that one of them applied it, one after another */
    uint64_t operations, issued, divergent, lines, fewest_lines, conflicts;
};
struct step_sums sum_step(const tally_ladder_step *step);

/* A lesson asks for this beside a right result. A bound on a count: a repair is right only if no block counts more than
 * `most`. Or neighbours: each value that a thread stores or passes on must be of elements that follow each other. */
struct explain_goal {
    unsigned lesson;
    const char *what; /* is counted; NULL: neighbours are asked for */
    size_t place;     /* of the count in tally_ladder_counts */
    uint64_t most;
    unsigned block; /* for which that is asked; 0: for any */
};

/* A launch: its first block, its last if that did something else, and all blocks together. */
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
    unsigned lesson;                 /* whose repair is judged; then the verdict alone is told */
    const struct explain_goal *goal; /* or NULL */
    bool out_of_memory, has_dtype;
    tally_ladder_row row;
};

/* Notes a step for the picture: for tally_ladder_explain() and tally_own_run(), whose context is an explanation.
 * explain_settle() follows once all are noted. */
void explain_note_step(void *explanation, const tally_ladder_step *step);
void explain_settle(struct explanation *e);
/* Frees the steps and the elements. */
void explain_forget(struct explanation *e);
void explain_print_launches(const struct explanation *e);
void explain_print_totals(const struct explanation *e);
struct json_object *explain_json_steps(const struct explanation *e);

/* Accesses are told of so many elements at most. */
enum { EXPLAIN_STEPS_MAX = 4096 };
int explain_too_many(const struct explanation *e); /* writes that line */

/* The accesses of a step for JSON (explain_steps.c). */
struct json_object *json_accesses(const tally_ladder_step *step);

/* ---- The texts' closed formulas (explain_formulas.c) ---- */

struct formula {
    const char *what;    /* "slots" */
    const char *formula; /* as the text writes it */
    double value;        /* what it comes to here */
    double counted;
    double value_efficiency,
        counted_efficiency; /* useful operations / slots; 0 where it is not about slots */
    char difference[640];   /* why they differ, or that they agree */
};
enum { FORMULAS_MAX = 4 };

/* The formulas that texts give for this rung and that hold for these n and block. Where there are some but
 * none holds, `why` says so; else it is "". -1 after a failure, whose line is written. */
int explain_formulas(const struct explanation *e, struct formula out[FORMULAS_MAX], char why[256]);

#endif
