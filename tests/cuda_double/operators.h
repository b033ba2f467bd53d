/*
 * operators.h - the users' operators that the test doubles can "compile": those of CMakeLists.txt here,
 * compiled for the model when the tests are built.
 */
#ifndef TALLY_CUDA_DOUBLE_OPERATORS_H
#define TALLY_CUDA_DOUBLE_OPERATORS_H

struct double_operator {
    const char *name; /* "tree.cu OP_AND TYPE_U8 USER_OPERATOR: a > b ? a : b"; NULL: no more */
    const struct model_program *program; /* NULL in the compiler's double */
};
extern const struct double_operator double_operators[];

#endif
