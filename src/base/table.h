/*
 * table.h - the lists of element types and of operators.
 *
 * Code that must know all types or all operators expands these lists. The build reads them from this text, to compile
 * the ladder for types and operators (CMakeLists.txt in cuda/, ladder/ and model/programs/). An operator's row in
 * problem.c says which monoids it needs; a monoid's row in monoid.c says what its state is.
 *
 *   TALLY_TYPES(X)   X(NAME, name, kind, bits)
 *       kind   SIGNED, UNSIGNED or FLOATING
 *       bits   the size of an element in bits
 *   TALLY_FLOATS(X)  X(NAME, mantissa, bias): the formats of the floating types
 *       mantissa   bits behind the implicit one
 *       bias       of the exponent
 *   TALLY_OPS(X)     X(NAME, name, family): the classic operators, which combine elements with elements. The
 *                    ladder runs these.
 *       family EXACT   the exact sum
 *              TREE    exact on integers; over the canonical tree on floats
 *              ORDER   min and max: by value, with -0 below +0, NaN if any element is
 *              BITS    by the bits of an element
 *   TALLY_STATISTICS(X)   X(NAME, name): the other operators but TALLY_USER
 */
#ifndef TALLY_TABLE_H
#define TALLY_TABLE_H

#define TALLY_TYPES(X)                                                                             \
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

#define TALLY_FLOATS(X)                                                                            \
    X(F16, 10, 15)                                                                                 \
    X(BF16, 7, 127)                                                                                \
    X(F32, 23, 127)                                                                                \
    X(F64, 52, 1023)

#define TALLY_OPS(X)                                                                               \
    X(SUM, sum, EXACT)                                                                             \
    X(PROD, prod, TREE)                                                                            \
    X(MIN, min, ORDER)                                                                             \
    X(MAX, max, ORDER)                                                                             \
    X(AND, and, BITS)                                                                              \
    X(OR, or, BITS)                                                                                \
    X(XOR, xor, BITS)

/* The operators that do not just combine elements with elements. */
#define TALLY_STATISTICS(X)                                                                        \
    X(MEAN, mean)                                                                                  \
    X(VAR, var)                                                                                    \
    X(STD, std)                                                                                    \
    X(NORM1, norm1)                                                                                \
    X(NORM2, norm2)                                                                                \
    X(NORMINF, norminf)                                                                            \
    X(SUMSQ, sumsq)                                                                                \
    X(DOT, dot)                                                                                    \
    X(ARGMIN, argmin)                                                                              \
    X(ARGMAX, argmax)                                                                              \
    X(MINMAX, minmax)                                                                              \
    X(COUNT, count)                                                                                \
    X(NANS, nans)                                                                                  \
    X(NONZERO, nonzero)                                                                            \
    X(ANY, any)                                                                                    \
    X(ALL, all)                                                                                    \
    X(DESCRIBE, describe)

#endif
