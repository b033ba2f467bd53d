/*
 * single.h - rows of one element each. Its sum, its mean and its maximum are the element itself, and its norms are its
 * magnitude. So the kernels that take least time can reduce them all.
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
