/*
 * bench_shaped.h - `tally bench` of reductions in parts: along axes, by segment, by group.
 */
#ifndef TALLY_CLI_BENCH_SHAPED_H
#define TALLY_CLI_BENCH_SHAPED_H

#include "bench/bench_data.h"
#include "bench/bench_loops.h"
#include "tally.h"

#include <stdbool.h>
#include <stdint.h>

/* As told; NULL and 0 where it was not. */
struct bench_shape {
    const char *shape;    /* 16777216x4 */
    const char *axis;     /* 1, or 0,1 */
    const char *segments; /* a length, or zipf, giant, empty */
    const char *ids;      /* random, sorted or zipf */
    uint64_t groups;
};

struct bench_shaped {
    struct bench_shape ask;
    tally_problem problem;
    uint64_t n; /* 0: not told */
    uint64_t rounds;
    enum bench_data data;
    tally_device *device;
    int threads;                   /* of the plain loops */
    bench_loop *read[BENCH_READS]; /* the plain reads */
    bool as_json;
};

bool bench_shape_is_asked(const struct bench_shape *shape);
/* Runs it, and prints; returns an exit status. */
int bench_shaped(const struct bench_shaped *asked);

#endif
