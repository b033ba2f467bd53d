/*
 * ladder.cu - all rungs for one type and one operator, as one program.
 *
 * What a build compiles. A host that has no file system to include from pastes dialect.h, operators.h
 * and the files below in this order and drops their #include lines.
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
