/*
 * program.h - the machine code of a program that the library has not compiled in: from the disk cache, or compiled now.
 *
 * Of a file of several kernels only those that are asked for are compiled, as the compiler takes longest for a few
 * large ones, which most calls do not need. So an image holds one kernel, and a program is several images. Each image
 * has a thread, unless there are fewer cores.
 */
#ifndef TALLY_CUDA_PROGRAM_H
#define TALLY_CUDA_PROGRAM_H

#include "gpu/cache.h"

#include <stdbool.h>
#include <stddef.h>

/* The device and the driver that a program is for, as compiler_run() wants them. */
struct program_target {
    int major, minor, driver;
};

struct program_image {
    char *key; /* in the disk cache; NULL where there was no memory for it */
    char *bytes;
    size_t size;
    bool found; /* it comes from the disk cache */
};

struct program {
    unsigned count;
    struct program_image image[GPU_PROGRAM_PARTS];
};

/* Returns how many kernels the text of a root (gpu/embed.h) has; 0 without memory. */
unsigned program_kernels_in(const char *root);
/* Makes an image for each of `count` kernels of a root, 1 to GPU_PROGRAM_PARTS, or with `names` NULL one image of
 * all. Takes images from the disk cache, unless `anew`. A text that lacks a kernel of that name gives TALLY_EINVAL.
 * The caller calls program_free() whatever the outcome. */
tally_status program_make(const char *root, const char *file, const char *const *names,
                          unsigned count, const struct program_target *target, bool anew,
                          struct program *out);
/* Returns whether an image comes from the disk cache. */
bool program_was_found(const struct program *p);
/* Has the disk cache keep the images that it did not have. */
void program_keep(const struct program *p);
void program_free(struct program *p);

#endif
