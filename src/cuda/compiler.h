/*
 * compiler.h - CUDA's run-time compiler (NVRTC): from a text to an image that the driver loads.
 *
 * libnvrtc comes with the CUDA toolkit, not with the driver, so it may not be there. Only kernels of
 * which the library has no image need it.
 */
#ifndef TALLY_CUDA_COMPILER_H
#define TALLY_CUDA_COMPILER_H

#include "tally.h"

#include <stddef.h>

#define COMPILER_NAME 256 /* room for a compiler's name */

/* Writes the compiler's name to `out`, for the disk cache: its version, its file, its options and what it compiles for.
 * The programs of two compilers of one name are the same. Fails as compiler_run() does if there is none. */
tally_status compiler_name(int major, int minor, int driver, char out[COMPILER_NAME]);

/* Compiles `text` for devices of compute capability major.minor and drivers for CUDA `driver` (as in
 * driver_version()). *image is machine code where the compiler knows that device, else PTX, of *size bytes; the
 * caller frees it. `file` is what messages call the text. Returns TALLY_ECOMPILE where the text does not compile or
 * no compiler is found, TALLY_ENOMEM without memory. */
tally_status compiler_run(const char *text, const char *file, int major, int minor, int driver,
                          char **image, size_t *size);

#endif
