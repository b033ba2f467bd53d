/*
 * climb.h - a rung of the ladder on a GPU, from an array in its memory to the result.
 *
 * A climb holds what all rungs share: the opened device, the array, the compiled kernels. For each
 * rung in turn: climb_begin(), then climb_once() as often as wanted, then climb_end().
 *
 * Functions that return false have set `status`, and the line that tally_error() gives.
 */
#ifndef TALLY_LADDER_CLIMB_H
#define TALLY_LADDER_CLIMB_H

#include "gpu/gpu.h"
#include "ladder/arithmetic.h"
#include "ladder/rungs.h"
#include "model/gpu.h"

#include <stdbool.h>

struct climb {
    const struct gpu_api *api;
    struct gpu *gpu;
    const tally_ladder_options *options;   /* with every default filled in */
    const ladder_arithmetic *first, *next; /* the arithmetic of elements, and of partial results */
    struct gpu_program *first_program, *next_program;
    struct gpu_memory *elements;
    tally_status status;

    /* The current rung's, between climb_begin() and climb_end(). */
    ladder_rung rung;
    const ladder_rung_info *info;
    struct gpu_memory *copy;        /* for a rung that works in place */
    struct gpu_memory *partials[2]; /* written by odd and by even launches */
    struct gpu_memory *total;       /* one word, to finish by atomics */
    struct gpu_memory *board;       /* the scratch of single-pass */
    char *host;                     /* partial results, read back */

    /* The current launch's, or the last one's. */
    struct gpu_memory *input, *output;
    uint64_t input_n;
    tally_type input_type; /* of the input's elements */

    /* The outcome of the last climb_once(). */
    tally_value value;
    unsigned launches;
    double seconds; /* from the first launch to the last; with the CPU's part, if it has one */
    uint64_t left;  /* partial results left for atomics or the CPU to combine; 1: none to combine */
    uint64_t depth; /* no element went through more roundings than this */
    struct model_probe *probe; /* watches the launches on the model; NULL: nothing does */
};

/* Compiles the kernels and allocates the array. Call climb_close() also after a failure. */
bool climb_open(struct climb *c, const struct gpu_api *api, struct gpu *gpu,
                const tally_ladder_options *options);
/* Copies the array to the device; *seconds is what that took. */
bool climb_upload(struct climb *c, double *seconds);
void climb_close(struct climb *c);

bool climb_begin(struct climb *c, ladder_rung rung);
bool climb_once(struct climb *c);
void climb_end(struct climb *c);

#endif
