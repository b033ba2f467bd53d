/*
 * broken.h - the kernels of broken.c by name.
 */
#ifndef TALLY_TESTS_MODEL_BROKEN_H
#define TALLY_TESTS_MODEL_BROKEN_H

#include "model/model.h"

#define BROKEN_KERNELS(X)                                                                          \
    X(barrier_in_branch)                                                                           \
    X(two_barriers)                                                                                \
    X(shuffle_in_branch)                                                                           \
    X(shuffle_half_warp)                                                                           \
    X(past_the_end)                                                                                \
    X(past_shared)                                                                                 \
    X(null_pointer)                                                                                \
    X(misaligned)                                                                                  \
    X(unwritten_shared)                                                                            \
    X(last_blocks_shared)                                                                          \
    X(adds_to_output)                                                                              \
    X(race_shared)                                                                                 \
    X(race_in_warp)                                                                                \
    X(write_after_read)                                                                            \
    X(race_between_blocks)                                                                         \
    X(lost_updates)                                                                                \
    X(all_add)                                                                                     \
    X(fenced)                                                                                      \
    X(unfenced_writer)                                                                             \
    X(unfenced_reader)                                                                             \
    X(endless)                                                                                     \
    X(ragged_loop)                                                                                 \
    X(strided_banks)                                                                               \
    X(wide_banks)                                                                                  \
    X(copy_strided)

#define NAME(name) BROKEN_##name,
enum { BROKEN_KERNELS(NAME) BROKEN_COUNT };
#undef NAME
extern const model_kernel *const broken_kernels[];

#endif
