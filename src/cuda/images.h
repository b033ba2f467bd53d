/*
 * images.h - the kernels that the build has compiled already (see CMakeLists.txt).
 *
 * An image is what CUDA calls a fatbin: one program's machine code for several architectures, and PTX for the
 * others. There is none where the build found no nvcc.
 */
#ifndef TALLY_CUDA_IMAGES_H
#define TALLY_CUDA_IMAGES_H

#include "gpu/embed.h"

/* All images. An image's name is its kernel file and the defines in alphabetical order, as in
 * "ladder/ladder.cu OP_SUM TYPE_F32". */
extern const struct embedded embedded_images[];

/* Returns the image of a file with these defines, in any order; NULL where there is none. */
const void *image_find(const char *file, const char *const *defines, size_t count);

#endif
