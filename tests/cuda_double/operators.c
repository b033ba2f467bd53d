/* operators.c - see operators.h. */
#include "operators.h"

/* The build lists all of them here: OPERATOR(symbol, name). */
#if defined(WITH_PROGRAMS)
#define OPERATOR(symbol, name) extern const struct model_program symbol;
#include "operators_list.h"
#undef OPERATOR
#define OPERATOR(symbol, name) {name, &symbol},
#else
#define OPERATOR(symbol, name) {name, 0},
#endif

const struct double_operator double_operators[] = {
#include "operators_list.h"
    {0, 0}};
