/*
 * single.h - rows of one element each. Their sums, means and extremes are that element and their norms its magnitude, so that
 * all are reduced by the kernels that take least: those whose every state says what its value is (capability.h).
 */
#ifndef TALLY_GPU_SINGLE_H
#define TALLY_GPU_SINGLE_H

#include "problem/shape.h"

/* A shape and its problem, which the shape borrows. */
struct single {
    struct problem p;
    struct shaped s;
};

/* Returns a shape whose results are those of `s`, in room[0] or `s` itself. */
const struct shaped *single_for(const struct shaped *s, struct single *room);

#endif
