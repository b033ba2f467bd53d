/*
 * command.h - what the files of tally-mpi share: one run of it, on one rank.
 *
 * Every function that returns 0 has said what is wrong by wrong(); all_well() tells the other ranks.
 */
#ifndef TALLY_MPI_COMMAND_H
#define TALLY_MPI_COMMAND_H

#include "tally_mpi.h"

#include "../cli/common/message.h"
#include "../cli/input/npy.h"
#include "../cli/parts/results.h"

enum { CHUNK = 1 << 22 }; /* bytes that are read at a time */

struct file {
    const char *name;
    int handle;
    struct npy_header header; /* of raw elements, too: `needed` is where they begin */
};

/* The options that ask for many results (the first three), or for some of the elements. */
struct parts {
    const char *axis, *segments, *by;
    const char *mask;
    uint64_t groups; /* 0: as many as the ids say */
    int skip_outside;
};

struct run {
    int rank, ranks, files;
    tally_problem problem;
    tally_device *device;
    struct file file[2];
    tally_state *state;
    struct parts parts;
    const char *asked;  /* the operators as they were given */
    const char *output; /* -o */
    int as_json;
    double began; /* MPI_Wtime() */
};

/* Keeps the line, if it is this rank's first. Returns 0. */
int wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns whether all ranks can go on. If not, the lowest that cannot says why. */
int all_well(int rank, int ranks);

/* Opens a .npy file, or, where a type is said, one of raw elements. */
int open_file(struct file *f, const char *name, tally_type said);
int read_elements(const struct file *f, unsigned char *to, uint64_t first, size_t n);

/* Returns the first of n elements that is the rank's. */
static inline uint64_t part_start(uint64_t n, int rank, int ranks) {
    return (uint64_t)((unsigned __int128)n * (unsigned)rank / (unsigned)ranks);
}

int parts_are_asked(const struct parts *p);
/* Checks that the options go together. Returns an exit status, after a line. */
int parts_check(const struct run *r);
/* Does the whole of such a run, whose files are open if nothing is wrong. Returns an exit status. Collective. */
int parts_reduce(struct run *r);

/* All results, and their shape: that of the .npy file. */
struct answer {
    struct results results;
    unsigned dims, axes;
    uint64_t length[NPY_DIMS], axis[NPY_DIMS]; /* the axes that were reduced or cut */
    uint64_t parts;                            /* segments or groups */
    uint64_t each;   /* elements of each segment, where all have as many; or 0 */
    uint64_t *known; /* of groups how many elements each has; NULL otherwise */
};

/* Print the values of the whole array on rank 0, or results, which may also go to a file. Return an
 * exit status. */
int answer_values(const struct run *r, const tally_value *value);
int answer_results(const struct run *r, struct answer *a);

#endif
