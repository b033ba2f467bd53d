/*
 * requests.c - reductions that are begun and completed later, in an order that differs from rank to rank.
 *
 *   mpirun -n P mpi_requests
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tally_mpi.h"

enum { N = 9001, KINDS = 7, ROUNDS = 4, MOST = KINDS * ROUNDS };

static double x[N];
static int rank, ranks, wrong;
static const tally_problem problems[KINDS] = {
    {.op = TALLY_SUM, .type = TALLY_F64},
    {.op = TALLY_PROD, .type = TALLY_F64},
    {.op = TALLY_MAX, .type = TALLY_F64},
    {.op = TALLY_ARGMIN, .type = TALLY_F64},
    {.op = TALLY_XOR, .type = TALLY_F64},
    {.op = TALLY_DESCRIBE, .type = TALLY_F64},
    {.op = TALLY_VAR, .type = TALLY_F64, .also = {TALLY_NORM1}}};

static void expect(int holds, const char *what) {
    if (holds) return;
    wrong = 1;
    fprintf(stderr, "rank %d of %d: %s: %s\n", rank, ranks, what, tally_mpi_error());
}

/* Whether the values are those that tally_reduce() gives. */
static int is_right(const tally_problem *p, const tally_value *found) {
    tally_value alone[TALLY_VALUES_MAX];
    size_t values = 0;
    if (tally_problem_values(p, &values) != TALLY_OK || tally_reduce(NULL, p, x, NULL, N, alone))
        return 0;
    for (size_t i = 0; i < values; i++)
        if (alone[i].type != found[i].type ||
            tally_value_bits(&alone[i]) != tally_value_bits(&found[i]))
            return 0;
    return 1;
}

/* Begins them all, and completes them from both ends or at random, by waits or by tests. */
static void many(MPI_Comm comm, const double *mine, size_t n) {
    static tally_value out[MOST][TALLY_VALUES_MAX];
    tally_mpi_request *request[MOST];
    int left = MOST;
    for (int i = 0; i < MOST; i++) {
        const tally_problem p = problems[i % KINDS]; /* it may be gone before the request is */
        const int root = i % 3 == 2 ? i % ranks : -1;
        const tally_status s =
            root < 0 ? tally_mpi_iallreduce(NULL, &p, mine, NULL, n, out[i], comm, &request[i])
                     : tally_mpi_ireduce(NULL, &p, mine, NULL, n, rank == root ? out[i] : NULL,
                                         root, comm, &request[i]);
        expect(s == TALLY_OK && request[i], "begun");
    }
    srand((unsigned)rank);
    while (left > 0) {
        const int i = rank == 0 ? MOST - left : rank == 1 ? left - 1 : rand() % MOST;
        int done = 1;
        if (!request[i]) continue;
        const tally_status s = rank % 2 && rand() % 3 ? tally_mpi_test(&request[i], &done)
                                                      : tally_mpi_wait(&request[i]);
        expect(s == TALLY_OK, "completed");
        if (!done) continue;
        left--;
        expect(!request[i], "a complete request is NULL");
        if (i % 3 != 2 || i % ranks == rank)
            expect(is_right(&problems[i % KINDS], out[i]), tally_op_name(problems[i % KINDS].op));
    }
}

enum { COUNT = 12 }; /* more than a frame holds */

static void feed_all(tally_state *state[], tally_groups **groups, const double *mine, size_t n) {
    for (int i = 0; i < COUNT; i++) {
        expect(tally_state_create(&problems[0], &state[i]) == TALLY_OK, "created");
        expect(tally_state_feed(state[i], NULL, mine, NULL, n) == TALLY_OK, "fed");
    }
    expect(tally_groups_create(&problems[0], COUNT, groups) == TALLY_OK, "groups created");
    for (size_t i = 0; i < COUNT; i += 2)
        expect(tally_groups_add_state(*groups, i, state[i]) == TALLY_OK, "groups fed");
}

/* Whether all states have the whole array's value, or `other`, and every second group has its own. */
static void expect_all(tally_state *state[], tally_groups *groups, const tally_value *other,
                       const char *what) {
    double sums[COUNT], none = 0;
    tally_value value;
    void *out = sums;
    expect(tally_groups_values(groups, &out) == TALLY_OK, what);
    for (int i = 0; i < COUNT; i++) {
        expect(tally_state_value(state[i], &value) == TALLY_OK &&
                   (other ? value.as.u64 == other->as.u64 : is_right(&problems[0], &value)),
               what);
        expect(memcmp(&sums[i], i % 2 ? &none : &value.as.f64, sizeof none) == 0, what);
        tally_state_destroy(state[i]);
    }
    tally_groups_destroy(groups);
}

/* States and those of groups, for all ranks, and for the last: then the others keep theirs. */
static void states(MPI_Comm comm, const double *mine, size_t n) {
    const int root = ranks - 1;
    for (int form = 0; form < 3; form++) {
        tally_state *state[COUNT];
        tally_groups *groups;
        tally_mpi_request *request[2] = {NULL, NULL};
        tally_value alone;
        const tally_problem p = problems[0];
        tally_status s[2] = {TALLY_OK, TALLY_OK};
        feed_all(state, &groups, mine, n);
        expect(tally_state_value(state[0], &alone) == TALLY_OK, "this rank's");
        if (form == 0) {
            s[0] = tally_mpi_iallreduce_states(&p, state, COUNT, comm, &request[0]);
            s[1] = tally_mpi_iallreduce_groups(&p, COUNT, &groups, comm, &request[1]);
        } else if (form == 1) {
            s[0] = tally_mpi_ireduce_states(&p, state, COUNT, root, comm, &request[0]);
            s[1] = tally_mpi_ireduce_groups(&p, COUNT, &groups, root, comm, &request[1]);
        } else {
            s[0] = tally_mpi_reduce_states(&p, state, COUNT, root, comm);
            s[1] = tally_mpi_reduce_groups(&p, COUNT, &groups, root, comm);
        }
        for (int k = 0; k < 2; k++) {
            expect(s[k] == TALLY_OK, "states begun");
            expect(tally_mpi_wait(&request[k ^ (rank & 1)]) == TALLY_OK, "states combined");
        }
        expect_all(state, groups, form == 0 || rank == root ? NULL : &alone, "states");
    }
}

/* As requests of MPI's, of two communicators, beside a message: waited for one by one in an order that differs from rank to
 * rank, all at once, or tested. */
static void handed_over(MPI_Comm comm, MPI_Comm other, const double *mine, size_t n) {
    enum { BOTH = 2 * KINDS, WAYS = 3 };
    static tally_value out[BOTH][TALLY_VALUES_MAX];
    for (int way = 0; way < WAYS; way++) {
        MPI_Request request[BOTH + 2];
        MPI_Status status[BOTH + 2];
        int here = rank, there = -1, done = 0;
        for (int i = 0; i < BOTH; i++) {
            tally_mpi_request *ours;
            expect(tally_mpi_iallreduce(NULL, &problems[i % KINDS], mine, NULL, n, out[i],
                                        i < KINDS ? comm : other, &ours) == TALLY_OK,
                   "begun");
            expect(tally_mpi_hand_over(&ours, &request[i]) == TALLY_OK && !ours, "handed over");
        }
        MPI_Irecv(&there, 1, MPI_INT, (rank + 1) % ranks, way, comm, &request[BOTH]);
        MPI_Isend(&here, 1, MPI_INT, (rank + ranks - 1) % ranks, way, comm, &request[BOTH + 1]);
        if (way == 0) MPI_Waitall(BOTH + 2, request, status);
        for (int k = 0; k < BOTH + 2 && way > 0; k++) {
            const int i = rank % 2 ? BOTH + 1 - k : k;
            for (done = 0; !done && way == 2;)
                MPI_Test(&request[i], &done, &status[i]);
            if (way == 1) MPI_Wait(&request[i], &status[i]);
        }
        expect(there == (rank + 1) % ranks, "a message of MPI's");
        for (int i = 0; i < BOTH; i++) {
            expect(request[i] == MPI_REQUEST_NULL && status[i].MPI_TAG == TALLY_OK, "complete");
            expect(is_right(&problems[i % KINDS], out[i]), tally_op_name(problems[i % KINDS].op));
        }
    }
    /* What a rank fails with is in the status on all. */
    tally_mpi_request *ours;
    MPI_Request request;
    MPI_Status status;
    tally_value value;
    const double *at = rank == ranks - 1 ? NULL : x;
    expect(tally_mpi_iallreduce(NULL, &problems[0], at, NULL, 1, &value, comm, &ours) == TALLY_OK &&
               tally_mpi_hand_over(&ours, &request) == TALLY_OK,
           "begun to fail");
    MPI_Wait(&request, &status);
    expect(status.MPI_TAG == TALLY_EINVAL && tally_mpi_error()[0] != 0, "failed");
    expect(tally_mpi_hand_over(&ours, &request) == TALLY_EINVAL, "nothing to hand over");
}

int main(int argc, char **argv) {
    MPI_Comm other;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < N; i++)
        x[i] = (i % 37 - 18.5) * (i % 5 ? 0.0625 : 0x1p+60 / 3) / (i % 11 + 1);
    const size_t first = (size_t)(N * rank / ranks), last = (size_t)(N * (rank + 1) / ranks);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    many(MPI_COMM_WORLD, x + first, last - first);
    many(other, x + first, last - first);
    states(other, x + first, last - first);
    handed_over(MPI_COMM_WORLD, other, x + first, last - first);
    MPI_Comm_free(&other);
    tally_mpi_request *none = NULL;
    expect(tally_mpi_wait(&none) == TALLY_OK, "nothing to wait for");
    expect(tally_mpi_wait(NULL) == TALLY_EINVAL, "NULL");
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) puts(all ? "wrong" : "right");
    MPI_Finalize();
    return all;
}
