/*
 * resident.c - sums of the rows of an array in a GPU's memory: over ranks, beside the same without them.
 *
 *   mpirun -n P bench_mpi_resident [COLUMNS]      of 8 rows of f32 a rank; the r-th rank has GPU r
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "tally_mpi.h"

enum { ROWS = 8, TIMES = 11 };

static void *driver;

static void call(const char *name, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    int (*function)(uint64_t, uint64_t, uint64_t, uint64_t);
    *(void **)&function = driver ? dlsym(driver, name) : NULL;
    if (function && function(a, b, c, d) == 0) return;
    fprintf(stderr, "%s fails\n", name);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    const size_t columns = argc > 1 ? strtoull(argv[1], NULL, 0) : (size_t)1 << 27;
    const size_t length[] = {ROWS, columns}, bytes = ROWS * columns * sizeof(float);
    const tally_problem sum = {.op = TALLY_SUM, .type = TALLY_F32};
    const tally_shape shape = {.cut = TALLY_AXES, .dims = 2, .length = length, .axes = 1 << 1};
    uint64_t context = 0, x = 0, there = 0;
    float alone[ROWS], together[ROWS];
    double took[2][TIMES];
    char spec[16];
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    call("cuInit", 0, 0, 0, 0);
    call("cuDevicePrimaryCtxRetain", (uint64_t)(uintptr_t)&context, (uint64_t)rank, 0, 0);
    call("cuCtxPushCurrent_v2", context, 0, 0, 0);
    call("cuMemAlloc_v2", (uint64_t)(uintptr_t)&x, bytes, 0, 0);
    call("cuMemAlloc_v2", (uint64_t)(uintptr_t)&there, sizeof alone, 0, 0);
    call("cuMemsetD32_v2", x, 0x3f8ccccd, bytes / 4, 0);
    tally_device *device = NULL;
    snprintf(spec, sizeof spec, "cuda:%d", rank);
    int wrong = tally_open(spec, &device) != TALLY_OK;
    for (int i = -2; i < TIMES && !wrong; i++)
        for (int way = 0; way < 2; way++) {
            MPI_Barrier(MPI_COMM_WORLD);
            const double start = MPI_Wtime();
            const tally_status s =
                way ? tally_mpi_allreduce_shaped_resident(device, &sum, &shape,
                                                          (void *)(uintptr_t)x, NULL,
                                                          (void *[]){together}, MPI_COMM_WORLD)
                    : tally_reduce_shaped_resident(device, &sum, &shape, (void *)(uintptr_t)x, NULL,
                                                   (void *[]){(void *)(uintptr_t)there});
            if (i >= 0) took[way][i] = MPI_Wtime() - start;
            wrong |= s != TALLY_OK;
        }
    if (!wrong && tally_resident_copy(device, alone, (void *)(uintptr_t)there, sizeof alone))
        wrong = 1;
    for (int i = 0; i < ROWS && ranks == 1 && !wrong; i++)
        wrong |= alone[i] != together[i];
    for (int way = 0; way < 2; way++)
        qsort(took[way], TIMES, sizeof **took, ascending);
    if (wrong)
        fprintf(stderr, "rank %d: wrong: %s%s\n", rank, tally_error(), tally_mpi_error());
    else if (rank == 0)
        printf("%d rows of %zu f32 a rank, %d ranks: alone %.1f us, %.0f GB/s; over ranks %.1f us, "
               "%.0f GB/s a GPU\n",
               ROWS, columns, ranks, 1e6 * took[0][TIMES / 2], 1e-9 * bytes / took[0][TIMES / 2],
               1e6 * took[1][TIMES / 2], 1e-9 * bytes / took[1][TIMES / 2]);
    tally_close(device);
    MPI_Finalize();
    return wrong;
}
