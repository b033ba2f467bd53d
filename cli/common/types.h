/*
 * types.h - the element types as a list that code is generated from.
 *
 *   CLI_TYPES(X)   X(NAME, name, kind, bits): kind is SIGNED, UNSIGNED or FLOATING
 */
#ifndef TALLY_CLI_TYPES_H
#define TALLY_CLI_TYPES_H

#include "tally.h"

#include <stdbool.h>

#define CLI_TYPES(X)                                                                               \
    X(I8, i8, SIGNED, 8)                                                                           \
    X(I16, i16, SIGNED, 16)                                                                        \
    X(I32, i32, SIGNED, 32)                                                                        \
    X(I64, i64, SIGNED, 64)                                                                        \
    X(U8, u8, UNSIGNED, 8)                                                                         \
    X(U16, u16, UNSIGNED, 16)                                                                      \
    X(U32, u32, UNSIGNED, 32)                                                                      \
    X(U64, u64, UNSIGNED, 64)                                                                      \
    X(F16, f16, FLOATING, 16)                                                                      \
    X(BF16, bf16, FLOATING, 16)                                                                    \
    X(F32, f32, FLOATING, 32)                                                                      \
    X(F64, f64, FLOATING, 64)

static inline bool type_is_floating(tally_type type) {
    return type == TALLY_F16 || type == TALLY_BF16 || type == TALLY_F32 || type == TALLY_F64;
}

static inline bool type_is_signed(tally_type type) { /* of integers */
    return type == TALLY_I8 || type == TALLY_I16 || type == TALLY_I32 || type == TALLY_I64;
}

#endif
