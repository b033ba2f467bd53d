/*
 * images.h - kernels that the build has compiled already (see CMakeLists.txt), for all architectures
 * together: what CUDA calls a fatbin. None where the build found no nvcc.
 */
#ifndef TALLY_CUDA_IMAGES_H
#define TALLY_CUDA_IMAGES_H

#include "gpu/embed.h"

/* Named by what they were made from: "ladder/ladder.cu OP_SUM TYPE_F32", defines in order. */
extern const struct embedded embedded_images[];

/* Returns the image of a file with these defines, in any order; NULL where there is none. */
const void *image_find(const char *file, const char *const *defines, size_t count);

#endif
