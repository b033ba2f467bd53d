/*
 * rate.c - the rate at which the ranks of one machine reduce an array together, to be compared with one process there.
 *
 *   mpirun --bind-to none -n P bench_mpi_rate [LOG2 [THREADS]]      2^LOG2 elements (26) in all, THREADS a rank (1)
 *
 * Each rank fills its part, and the sum of all is found 21 times; the median is printed, in GB/s of all ranks' elements,
 * for f64 and f32. `-n 1` with as many threads as there are cores is the one process.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tally_mpi.h"

enum { RUNS = 21 };

static int order(const void *a, const void *b) {
    const double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

static void measure(tally_device *device, tally_type type, void *x, size_t n, int rank, int ranks) {
    const tally_problem sum = {.op = TALLY_SUM, .type = type};
    double seconds[RUNS];
    tally_value value = {0};
    for (size_t i = 0; i < n; i++) { /* each rank fills the part that it reads */
        const double each = (double)((i + (size_t)rank * n) * 2654435761u % 1000003) * 1e-3;
        if (type == TALLY_F64)
            ((double *)x)[i] = each;
        else
            ((float *)x)[i] = (float)each;
    }
    for (int run = -2; run < RUNS; run++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        if (tally_mpi_allreduce(device, &sum, x, NULL, n, &value, MPI_COMM_WORLD) != TALLY_OK)
            fprintf(stderr, "%s\n", tally_mpi_error());
        if (run >= 0) seconds[run] = MPI_Wtime() - start;
    }
    qsort(seconds, RUNS, sizeof seconds[0], order);
    if (rank == 0)
        printf("%2d ranks  %s  %6.2f GB/s  %016llx\n", ranks, tally_type_name(type),
               (double)n * ranks * (double)tally_type_size(type) / seconds[RUNS / 2] * 1e-9,
               (unsigned long long)tally_value_bits(&value));
}

int main(int argc, char **argv) {
    int rank, ranks;
    char spec[32];
    tally_device *device = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int log2 = argc > 1 ? atoi(argv[1]) : 26, threads = argc > 2 ? atoi(argv[2]) : 1;
    const size_t n = ((size_t)1 << (log2 & 63)) / (size_t)ranks;
    void *x = malloc(n * sizeof(double) + 8);
    snprintf(spec, sizeof spec, "cpu:threads=%d", threads);
    if (!x || tally_open(spec, &device) != TALLY_OK) {
        fprintf(stderr, "rank %d: no memory, or no %s\n", rank, spec);
        return MPI_Abort(MPI_COMM_WORLD, 1);
    }
    measure(device, TALLY_F64, x, n, rank, ranks);
    measure(device, TALLY_F32, x, n, rank, ranks);
    tally_close(device);
    free(x);
    MPI_Finalize();
    return 0;
}
