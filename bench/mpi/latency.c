/*
 * latency.c - the latency of exact sums over ranks beside MPI's own, in the manner of the OSU benchmarks.
 *
 *   mpirun -n P bench_mpi_latency [ROUNDS]
 *
 * Each rank has one double; all are summed, ROUNDS times (500) in each of 201 turns. The columns are the median turn
 * in microseconds a call, of kinds that take turns: MPI_Allreduce of one double, of the frame that
 * tally_mpi_allreduce() sends, of the words of a sum, and of those of a variance; tally_mpi_allreduce() itself, for a
 * sum, for one that does not fit the first frame, for a dot, a variance, a description, an xor and extremes; and the
 * part of the sum that a rank does by itself, which is a call on a communicator of one rank.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tally_mpi.h"

enum { RUNS = 201, DOUBLE = 0, MOST_WORDS = 225 };

static int64_t words[MOST_WORDS];

static const struct kind {
    const char *name;
    int words; /* MPI_Allreduce of so many; 0: of a double, or a call of ours */
    tally_op op;
    double x;
    int alone; /* on a communicator of one rank */
} kinds[] = {{"MPI_Allreduce, 1 double", 0, 0, 0.1, 0},
             {"MPI_Allreduce, 256 bytes", TALLY_MPI_FRAME_BYTES / 8, 0, 0, 0},
             {"MPI_Allreduce, 608 bytes", 76, 0, 0, 0},
             {"MPI_Allreduce, 1800 bytes", MOST_WORDS, 0, 0, 0},
             {"exact sum", 0, TALLY_SUM, 0.1, 0},
             {"exact sum of 1e-300", 0, TALLY_SUM, 1e-300, 0},
             {"exact dot", 0, TALLY_DOT, 0.1, 0},
             {"exact var", 0, TALLY_VAR, 0.1, 0},
             {"describe", 0, TALLY_DESCRIBE, 0.1, 0},
             {"xor", 0, TALLY_XOR, 0.1, 0},
             {"min", 0, TALLY_MIN, 0.1, 0},
             {"minmax", 0, TALLY_MINMAX, 0.1, 0},
             {"argmin", 0, TALLY_ARGMIN, 0.1, 0},
             {"exact sum, one rank", 0, TALLY_SUM, 0.1, 1}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static MPI_Comm comms[KINDS]; /* one each: a communicator's frame depends on its last calls */

static void one(const struct kind *k) {
    const MPI_Comm comm = comms[k - kinds];
    const tally_problem problem = {.op = k->op, .type = TALLY_F64};
    tally_value value[TALLY_VALUES_MAX];
    double all;
    if (k->words)
        MPI_Allreduce(MPI_IN_PLACE, words, k->words, MPI_INT64_T, MPI_SUM, comm);
    else if (!k->op)
        MPI_Allreduce(&k->x, &all, 1, MPI_DOUBLE, MPI_SUM, comm);
    else
        tally_mpi_allreduce(NULL, &problem, &k->x, k->op == TALLY_DOT ? &k->x : NULL, 1, value,
                            comm);
}

static int order(const void *a, const void *b) {
    const double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

int main(int argc, char **argv) {
    static double seconds[KINDS][RUNS];
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int rounds = argc > 1 && atoi(argv[1]) > 0 ? atoi(argv[1]) : 500;
    for (int kind = 0; kind < KINDS; kind++)
        MPI_Comm_dup(kinds[kind].alone ? MPI_COMM_SELF : MPI_COMM_WORLD, &comms[kind]);
    for (int run = 0; run < RUNS; run++)
        for (int kind = 0; kind < KINDS; kind++) {
            for (int i = 0; i < rounds / 10 + 1; i++)
                one(&kinds[kind]);
            for (int i = 0; i < MOST_WORDS; i++)
                words[i] = 0;
            MPI_Barrier(MPI_COMM_WORLD);
            const double start = MPI_Wtime();
            for (int i = 0; i < rounds; i++)
                one(&kinds[kind]);
            seconds[kind][run] = (MPI_Wtime() - start) / rounds;
        }
    for (int kind = 0; kind < KINDS; kind++)
        qsort(seconds[kind], RUNS, sizeof seconds[kind][0], order);
    for (int kind = 0; kind < KINDS && rank == 0; kind++)
        printf("%2d ranks  %-26s %8.2f us  %5.2f\n", ranks, kinds[kind].name,
               seconds[kind][RUNS / 2] * 1e6, seconds[kind][RUNS / 2] / seconds[DOUBLE][RUNS / 2]);
    for (int kind = 0; kind < KINDS; kind++)
        MPI_Comm_free(&comms[kind]);
    MPI_Finalize();
    return 0;
}
