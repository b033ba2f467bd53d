/*
 * messages.c - how many collectives a call takes, counted by MPI's profiling interface: one, once a communicator has seen a
 * call that needs as much.
 *
 *   mpirun -n P mpi_messages      P of 256 at most
 *
 * The functions below are called instead of MPI's own, and call those.
 */
#include <stdio.h>
#include <string.h>

#include "tally_mpi.h"

static int collectives;

int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
    collectives++;
    return PMPI_Allreduce(send, receive, count, type, op, comm);
}
int MPI_Reduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm) {
    collectives++;
    return PMPI_Reduce(send, receive, count, type, op, root, comm);
}
int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    collectives++;
    return PMPI_Bcast(buffer, count, type, root, comm);
}
int MPI_Exscan(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm) {
    collectives++;
    return PMPI_Exscan(send, receive, count, type, op, comm);
}

static const double tame[3] = {0.1, 2, -3}, far[3] = {1e-300, 1e200, -3};
static int rank, ranks, wrong;

/* One call, of an array of three elements on each rank, of complex ones whose parts are equal: at most so many collectives,
 * and the right value, or status. */
static void call(MPI_Comm comm, const tally_problem *p, const double *x, int most) {
    static double all[3 * 256];
    tally_value value[TALLY_VALUES_MAX], expected[TALLY_VALUES_MAX];
    size_t values = 0;
    for (int i = 0; i < ranks; i++)
        memcpy(all + 3 * i, x, 3 * sizeof *x);
    collectives = 0;
    const int two = p->is_complex;
    const tally_status s = tally_mpi_allreduce(NULL, p, x, two ? x : NULL, 3, value, comm);
    int is_right = tally_problem_values(p, &values) == TALLY_OK &&
                   tally_reduce(NULL, p, all, two ? all : NULL, 3 * (size_t)ranks, expected) == s;
    if (s != TALLY_OK) values = 0; /* a product that overflows */
    for (size_t i = 0; i < values && is_right; i++)
        is_right = tally_value_bits(&value[i]) == tally_value_bits(&expected[i]);
    if (is_right && collectives <= most) return;
    wrong = 1;
    fprintf(stderr, "rank %d of %d: %s takes %d collectives, at most %d expected; %s: %s\n", rank,
            ranks, tally_op_name(p->op), collectives, most, is_right ? "right" : "wrong",
            tally_mpi_error());
}

int main(int argc, char **argv) {
    static const tally_problem problems[] = {
        {.op = TALLY_SUM, .type = TALLY_F64},
        {.op = TALLY_VAR, .type = TALLY_F64},
        {.op = TALLY_NORM1, .type = TALLY_F64, .also = {TALLY_SUMSQ, TALLY_NONZERO}},
        {.op = TALLY_MINMAX, .type = TALLY_F64},
        {.op = TALLY_XOR, .type = TALLY_F64},
        {.op = TALLY_ARGMAX, .type = TALLY_F64},
        {.op = TALLY_PROD, .type = TALLY_I64},
        {.op = TALLY_DESCRIBE, .type = TALLY_F64},
        {.op = TALLY_SUM, .type = TALLY_F64, .also = {TALLY_ARGMIN, TALLY_NORM1, TALLY_AND}}};
    static const tally_problem product = {.op = TALLY_PROD, .type = TALLY_F64};
    static const tally_problem of_complex = {.op = TALLY_STD, .type = TALLY_F64, .is_complex = 1};
    enum { PROBLEMS = sizeof problems / sizeof problems[0] };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    /* The same again and again: on a new communicator two messages at most, and then one. */
    for (int i = 0; i < PROBLEMS; i++)
        for (int is_far = 0; is_far < 2; is_far++) {
            MPI_Comm comm;
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            for (int k = 0; k < 20; k++)
                call(comm, &problems[i], is_far ? far : tame, k == 0 ? 2 : 1);
            MPI_Comm_free(&comm);
        }
    /* All in turn: one each, once all have been seen. */
    for (int k = 0; k < 6; k++)
        for (int i = 0; i < PROBLEMS; i++)
            call(MPI_COMM_WORLD, &problems[i], k % 2 ? far : tame, k == 0 ? 2 : 1);
    /* What is asked for no more is forgotten, and learnt again. */
    for (int k = 0; k < 20; k++)
        call(MPI_COMM_WORLD, &problems[0], tame, 1);
    for (int k = 0; k < 3; k++)
        call(MPI_COMM_WORLD, &problems[7], far, k == 0 ? 2 : 1);
    /* Words that additions combine, in a frame that is merged. */
    for (int k = 0; k < 6; k++) {
        call(MPI_COMM_WORLD, &problems[7], tame, k == 0 ? 2 : 1);
        call(MPI_COMM_WORLD, &of_complex, tame, k == 0 ? 2 : 1);
    }
    /* NaNs are not skipped over ranks. */
    for (int k = 0; k < 2; k++) {
        const tally_problem skips = {
            .op = TALLY_DESCRIBE, .type = TALLY_F64, .skip_nan = k == 1 || rank == 0};
        tally_value value[TALLY_VALUES_MAX];
        wrong |= tally_mpi_allreduce(NULL, &skips, tame, NULL, 3, value, MPI_COMM_WORLD) !=
                 TALLY_EUNSUPPORTED;
    }
    /* Over the canonical tree: the frame tells where elements stand, if it has a word for each rank. */
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int k = 0; k < 3; k++)
        call(comm, &product, tame, ranks <= 27 ? 3 : 4);
    MPI_Comm_free(&comm);
    int all = 0;
    PMPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) puts(all ? "wrong" : "right");
    MPI_Finalize();
    return all;
}
