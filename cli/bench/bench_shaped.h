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

/* The options about parts; NULL or 0 for those that are not given. */
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
    uint64_t n; /* 0: not given */
    uint64_t rounds;
    enum bench_data data;
    tally_device *device;
    int threads;                   /* of the plain loops */
    bench_loop *read[BENCH_READS]; /* the plain reads */
    bool as_json;
};

bool bench_shape_is_asked(const struct bench_shape *shape);
/* Times the reduction and prints the times; returns an exit status. */
int bench_shaped(const struct bench_shaped *asked);

#endif
