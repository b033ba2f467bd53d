/*
 * ladder.cu - all rungs for one type and one operator, as one program.
 *
 * Builds compile this file. Where there is no file system to include from, gpu/embed.h puts each
 * file's text in the place of the lines that include it.
 */
#include "../operators.h"

#ifdef __cplusplus
extern "C" { /* kernels are found by their plain names */
#endif

#include "load.cu"

#include "interleaved_modulo.cu"

#include "interleaved_mask.cu"

#include "interleaved_index.cu"

#include "contiguous.cu"

#include "shared_modulo.cu"

#include "shared_contiguous.cu"

#include "shared.cu"

#include "coarsened.cu"

#include "grid_stride.cu"

#include "vectorized.cu"

#include "shuffle.cu"

#include "single_pass.cu"

#ifdef __cplusplus
}
#endif
