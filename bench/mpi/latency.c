/*
 * latency.c - what an exact sum over ranks costs beside MPI's own, in the manner of the OSU benchmarks.
 *
 *   mpirun -n P bench_mpi_latency [ROUNDS]
 *
 * Each rank has one double; all are summed, ROUNDS times (20000). The columns are the median of eleven runs, in
 * microseconds a call, of kinds that take turns: MPI_Allreduce of one double; of the words that a sum has, and of the
 * frame that tally_mpi_allreduce() sends; and tally_mpi_allreduce() itself.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tally_mpi.h"

enum { RUNS = 11, KINDS = 5, SUM_WORDS = 76, FRAME_WORDS = TALLY_MPI_FRAME_BYTES / 8 };

static int64_t words[FRAME_WORDS];

static void one(int kind, const double *x) {
    static const tally_problem sum = {.op = TALLY_SUM, .type = TALLY_F64},
                               dot = {.op = TALLY_DOT, .type = TALLY_F64};
    tally_value value;
    double all;
    switch (kind) {
    case 0:
        MPI_Allreduce(x, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        break;
    case 1:
    case 2:
        MPI_Allreduce(MPI_IN_PLACE, words, kind == 1 ? SUM_WORDS : FRAME_WORDS, MPI_INT64_T,
                      MPI_SUM, MPI_COMM_WORLD);
        break;
    case 3:
        tally_mpi_allreduce(NULL, &sum, x, NULL, 1, &value, MPI_COMM_WORLD);
        break;
    default:
        tally_mpi_allreduce(NULL, &dot, x, x, 1, &value, MPI_COMM_WORLD);
    }
}

static int order(const void *a, const void *b) {
    const double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

int main(int argc, char **argv) {
    static const char *const names[KINDS] = {"MPI_Allreduce, 1 double", "MPI_Allreduce, 608 bytes",
                                             "MPI_Allreduce, 1800 bytes", "exact sum", "exact dot"};
    double seconds[KINDS][RUNS], x = 0.1;
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int rounds = argc > 1 && atoi(argv[1]) > 0 ? atoi(argv[1]) : 20000;
    for (int run = 0; run < RUNS; run++)
        for (int kind = 0; kind < KINDS; kind++) {
            for (int i = 0; i < rounds / 10 + 1; i++)
                one(kind, &x);
            for (int i = 0; i < FRAME_WORDS; i++)
                words[i] = 0;
            MPI_Barrier(MPI_COMM_WORLD);
            const double start = MPI_Wtime();
            for (int i = 0; i < rounds; i++)
                one(kind, &x);
            seconds[kind][run] = (MPI_Wtime() - start) / rounds;
        }
    for (int kind = 0; kind < KINDS; kind++)
        qsort(seconds[kind], RUNS, sizeof seconds[kind][0], order);
    for (int kind = 0; kind < KINDS && rank == 0; kind++)
        printf("%2d ranks  %-26s %8.2f us  %5.2f\n", ranks, names[kind],
               seconds[kind][RUNS / 2] * 1e6, seconds[kind][RUNS / 2] / seconds[0][RUNS / 2]);
    MPI_Finalize();
    return 0;
}
