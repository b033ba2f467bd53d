/*
 * reduction.h - the options and the state of one run of `tally OP`.
 */
#ifndef TALLY_CLI_REDUCTION_H
#define TALLY_CLI_REDUCTION_H

#include "input/columns.h"
#include "input/groups.h"
#include "input/source.h"
#include "tally.h"

#include <stdbool.h>
#include <stdint.h>

enum { LABEL_BYTES = 512 }; /* an input's name in messages; a longer one is cut */

/* The options of a reduction in parts. One that was not given is NULL or 0. */
struct shaping {
    const char *axis;     /* numbers with commas between them */
    const char *segments; /* a file of offsets, or a length */
    const char *ids;      /* a file of ids: --by without a table's column */
    const char *mask;     /* a file */
    const char *output;   /* a .npy file */
    uint64_t groups;
    bool skip_outside;
};

struct reduction {
    /* From the command line. */
    const char *asked;     /* the operators as typed: "sum", "count,mean" */
    tally_problem problem; /* its type is 0 until the first input has been opened */
    size_t op_count;       /* how many operators were typed */
    struct reading how;
    struct spelling spelling;
    struct list na;         /* the words of --na */
    struct columns columns; /* columns.value.whole is NULL if the input is no table */
    struct shaping shaping; /* for a reduction in parts */
    bool by_file, sorted, is_decimal;
    bool as_json, help, has_ddof;
    const char *device_text; /* the argument of --device, or NULL */
    uint64_t threads;        /* the argument of --threads, or 0 */

    /* Found while reading. */
    tally_device *device;
    tally_state *state;         /* of all elements; created when their type is known */
    struct groups groups;       /* of --by, of --each, and of tables and exact decimals */
    struct index_map index_map; /* of `state`, if missing elements are left out */
    struct kept kept;
    uint64_t left_out;            /* missing elements of arrays */
    struct money money;           /* of all numbers, for exact decimals without a table */
    char type_owner[LABEL_BYTES]; /* the input that set the problem's type */
    uint64_t total;               /* bytes in all inputs together, 0 where that is not known */
    uint64_t bytes;               /* of the elements that have been fed */
    uint64_t numbers;             /* elements read; at the end without missing ones */
    double seconds;
};

/* Reads the operators: one, or several with commas between them. Returns an exit status. */
int reduction_ops(struct reduction *r, const char *text);

/* Returns whether one of the problem's values is of this operator. */
bool reduction_asks(const struct reduction *r, tally_op op);

/* Reduces the inputs, and prints the answer. Returns an exit status. */
int reduction_run(struct reduction *r, char **names, int count);

/* Prints the answer (answer.c). */
int answer_print(struct reduction *r);

#endif
