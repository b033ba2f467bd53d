/*
 * faults.c - one rank fails, or asks for something else: all ranks come to one status, nobody waits for ever, no
 * output is touched, and the next call is right.
 *
 *   mpirun -n P mpi_faults [few]      P of 2 or more
 *
 * Linked with malloc(), calloc() and aligned_alloc() of its own, which refuse the memory that they are told to.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tally_mpi.h"

/* ---- Memory that is refused ------------------------------------------------------------------ */

static long refuse_at = -1, asked; /* the refuse_at-th request from now on */

static int refused(void) {
    return refuse_at >= 0 && asked++ == refuse_at;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size) {
    return refused() ? NULL : __real_malloc(size);
}
void *__wrap_calloc(size_t count, size_t size) {
    return refused() ? NULL : __real_calloc(count, size);
}
void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    return refused() ? NULL : __real_aligned_alloc(alignment, size);
}

/* ---- What is tried --------------------------------------------------------------------------- */

enum { N = 5000 };
static double x[N];
static int64_t large[2] = {INT64_MAX, 1};
static int rank, ranks, wrong;

static const tally_problem sum = {.op = TALLY_SUM, .type = TALLY_F64},
                           mean = {.op = TALLY_MEAN, .type = TALLY_F64},
                           var = {.op = TALLY_VAR, .type = TALLY_F64},
                           largest = {.op = TALLY_MAX, .type = TALLY_F64},
                           argmin = {.op = TALLY_ARGMIN, .type = TALLY_F64},
                           prod = {.op = TALLY_PROD, .type = TALLY_F64},
                           bits = {.op = TALLY_XOR, .type = TALLY_F64},
                           sum_i64 = {.op = TALLY_SUM, .type = TALLY_I64};

/* One way to call: with waiting or without, values to all or to a root, of an array, of a shape or of states. */
enum way { ALL, ROOT, LATER, SHAPED, STATES, WAYS };

static tally_status states_of(const tally_problem *p, const void *at, size_t n, tally_value *out) {
    tally_state *state[2] = {NULL, NULL};
    const long stop = refuse_at;
    refuse_at = -1; /* it is the call's memory that is refused, and not the states' own */
    for (int i = 0; i < 2 && p; i++)
        if (tally_state_create(p, &state[i]) != TALLY_OK ||
            tally_state_begin_at(state[i], (uint64_t)rank * N) != TALLY_OK ||
            tally_state_feed(state[i], NULL, at, NULL, at ? n : 0) != TALLY_OK)
            abort();
    refuse_at = stop;
    tally_status s = tally_mpi_allreduce_states(p, at ? state : NULL, 2, MPI_COMM_WORLD);
    refuse_at = -1;
    if (s == TALLY_OK) s = tally_state_value(state[1], out);
    tally_state_destroy(state[0]);
    tally_state_destroy(state[1]);
    return s;
}

/* Two segments, of which the second's value is *out's. */
static tally_status segments_of(const tally_problem *p, const void *at, size_t n,
                                tally_value *out) {
    const int64_t offsets[] = {0, (int64_t)n / 2, (int64_t)n};
    const tally_shape shape = {.cut = TALLY_SEGMENTS, .n = n, .count = 2, .offsets = offsets};
    uint64_t value[2];
    void *outs = value;
    const tally_status s =
        tally_mpi_allreduce_shaped(NULL, p, &shape, at, NULL, out ? &outs : NULL, MPI_COMM_WORLD);
    if (s == TALLY_OK) *out = (tally_value){.type = TALLY_U64, .as.u64 = value[1]};
    return s;
}

/* The next frame will be a merged one: a communicator's frames are as its last calls needed them. */
static int is_merged;
static void make_merged(void) {
    static const tally_problem describe = {.op = TALLY_DESCRIBE, .type = TALLY_F64};
    const long stop = refuse_at;
    tally_value out[TALLY_VALUES_MAX];
    refuse_at = -1;
    if (tally_mpi_allreduce(NULL, &describe, x, NULL, N, out, MPI_COMM_WORLD) != TALLY_OK)
        wrong = 1;
    refuse_at = stop;
}

static tally_status call(enum way way, const tally_problem *p, const void *at, size_t n,
                         tally_value *out) {
    tally_mpi_request *request;
    tally_status s;
    if (is_merged) make_merged();
    switch (way) {
    case ALL:
        return tally_mpi_allreduce(NULL, p, at, NULL, n, out, MPI_COMM_WORLD);
    case ROOT:
        return tally_mpi_reduce(NULL, p, at, NULL, n, out, ranks - 1, MPI_COMM_WORLD);
    case LATER:
        s = tally_mpi_iallreduce(NULL, p, at, NULL, n, out, MPI_COMM_WORLD, &request);
        return s == TALLY_OK ? tally_mpi_wait(&request) : s;
    case SHAPED:
        return segments_of(p, at, n, out);
    default:
        return states_of(p, at, n, out);
    }
}

/* All ranks have the status; where it is a failure, nothing is in *out. */
static tally_status agreed(const char *what, tally_status s, const tally_value *out) {
    const int mine = (int)s;
    int least, greatest;
    refuse_at = -1;
    MPI_Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &greatest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (least != greatest || (s != TALLY_OK && out->type != 99) ||
        (s != TALLY_OK && tally_mpi_error()[0] == 0)) {
        wrong = 1;
        fprintf(stderr, "%s: rank %d of %d has status %d, others %d to %d: %s\n", what, rank, ranks,
                mine, least, greatest, tally_mpi_error());
    }
    return s;
}

static void expect(const char *what, tally_status s, tally_status expected,
                   const tally_value *out) {
    agreed(what, s, out);
    if (s == expected) return;
    wrong = 1;
    fprintf(stderr, "%s: rank %d of %d has status %d, not %d: %s\n", what, rank, ranks, s, expected,
            tally_mpi_error());
}

#define UNTOUCHED                                                                                  \
    {                                                                                              \
        { .type = (tally_type)99 }                                                                 \
    }

/* A plain call, as proof that the ranks are still in step. */
static void in_step(void) {
    tally_value out[TALLY_VALUES_MAX] = UNTOUCHED;
    expect("in step", call(ALL, &sum, x, N, out), TALLY_OK, out);
    if (out[0].as.f64 != (double)ranks * N) wrong = 1;
}

/* Only rank `bad` has failed: every rank's line is its line. */
static void knows_why(int bad, const char *word) {
    char line[300], start[20];
    snprintf(line, sizeof line, "%s", tally_mpi_error());
    MPI_Bcast(line, sizeof line, MPI_CHAR, bad, MPI_COMM_WORLD);
    snprintf(start, sizeof start, "rank %d: ", bad);
    if (strcmp(line, tally_mpi_error()) == 0 && strncmp(line, start, strlen(start)) == 0 &&
        strstr(line, word))
        return;
    wrong = 1;
    fprintf(stderr, "rank %d of %d: rank %d failed by '%s', here the line is '%s'\n", rank, ranks,
            bad, line, tally_mpi_error());
}

static void bad_rank(enum way way, int bad) {
    const int me = rank == bad;
    tally_value out[TALLY_VALUES_MAX] = UNTOUCHED;
    tally_problem nonsense = sum;
    nonsense.type = (tally_type)77;
    expect("x is NULL", call(way, &sum, me ? NULL : x, N, out), TALLY_EINVAL, out);
    if (way < STATES) knows_why(bad, "NULL");
    if (way != STATES) {
        expect("the problem is NULL", call(way, me ? NULL : &sum, x, N, out), TALLY_EINVAL, out);
        expect("no type", call(way, me ? &nonsense : &sum, x, N, out), TALLY_ETYPE, out);
        expect("out is NULL", call(way, &sum, x, N, me || way == ROOT ? NULL : out), TALLY_EINVAL,
               out);
        expect("x is NULL, tree", call(way, &prod, me ? NULL : x, N, out), TALLY_EINVAL, out);
    }
    in_step();
    const tally_problem *others[] = {&mean, &var, &largest, &argmin, &prod, &bits, &sum_i64};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        expect("another problem", call(way, me ? others[i] : &sum, x, N, out), TALLY_EINVAL, out);
        expect("another problem", call(way, me ? &sum : others[i], x, N, out), TALLY_EINVAL, out);
    }
    const tally_problem *each[] = {&sum, &argmin, &largest, &prod, &bits};
    expect("all different", call(way, each[rank % 5], x, N, out), TALLY_EINVAL, out);
    in_step();
}

static void refuse_memory(enum way way, const tally_problem *p, int bad, long most) {
    for (long at = 0;; at++) {
        tally_value out[TALLY_VALUES_MAX] = UNTOUCHED;
        asked = 0;
        refuse_at = rank == bad ? at : -1;
        const tally_status s = agreed("no memory", call(way, p, x, N, out), out);
        in_step();
        if (s == TALLY_OK || at > most) return;
        if (s != TALLY_ENOMEM)
            wrong = 1, fprintf(stderr, "refused, but status %d: way %d, %s, at %ld: %s\n", s, way,
                               tally_op_name(p->op), at, tally_mpi_error());
    }
}

/* Communicators over which nothing can be reduced: none, and one of two groups. */
static void no_communicators(tally_value *out) {
    MPI_Comm group, both, none[2] = {MPI_COMM_NULL, MPI_COMM_NULL};
    tally_mpi_request *request;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &group);
    MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &both);
    none[1] = both;
    for (int i = 0; i < 2; i++) {
        expect("no communicator", tally_mpi_allreduce(NULL, &sum, x, NULL, N, out, none[i]),
               TALLY_EINVAL, out);
        if (!strstr(tally_mpi_error(), "the communicator is")) wrong = 1;
        expect("begun on none",
               tally_mpi_iallreduce(NULL, &sum, x, NULL, N, out, none[i], &request), TALLY_EINVAL,
               out);
        if (request) wrong = 1;
    }
    MPI_Comm_free(&both);
    MPI_Comm_free(&group);
    in_step();
}

int main(int argc, char **argv) {
    tally_value out[TALLY_VALUES_MAX] = UNTOUCHED;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int few = argc > 1 && strcmp(argv[1], "few") == 0;
    for (int i = 0; i < N; i++)
        x[i] = 1;
    in_step();
    expect("begun once", call(LATER, &sum, x, N, out), TALLY_OK, out);
    out[0].type = (tally_type)99;
    for (is_merged = 0; is_merged < 2; is_merged++)
        for (int way = ALL; way < WAYS; way++)
            for (int bad = 0; bad < (few ? 1 : 2); bad++)
                bad_rank((enum way)way, bad ? ranks - 1 : 0);
    is_merged = 0;
    /* A communicator's first call, for which there is no memory. */
    MPI_Comm fresh;
    MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
    asked = 0;
    refuse_at = rank == ranks - 1 ? 0 : -1;
    tally_status s = tally_mpi_allreduce(NULL, &sum, x, NULL, N, out, fresh);
    expect("a first call without memory", s, TALLY_ENOMEM, out);
    s = tally_mpi_allreduce(NULL, &sum, x, NULL, N, out, fresh);
    expect("and then with it", s, TALLY_OK, out);
    out[0].type = (tally_type)99;
    MPI_Comm_free(&fresh);

    /* What all fail with alike. */
    for (int way = ALL; way < STATES; way++) {
        expect("overflow", call((enum way)way, &sum_i64, large, 2, out), TALLY_ERANGE, out);
        expect("argmin of nothing", call((enum way)way, &argmin, NULL, 0, out), TALLY_EINVAL, out);
    }
    /* Roots that differ, a root that is none, calls of two kinds. */
    expect("roots", tally_mpi_reduce(NULL, &sum, x, NULL, N, out, rank % 2, MPI_COMM_WORLD),
           TALLY_EINVAL, out);
    expect("no root", tally_mpi_reduce(NULL, &sum, x, NULL, N, out, ranks, MPI_COMM_WORLD),
           TALLY_EINVAL, out);
    expect("no root", tally_mpi_reduce(NULL, &sum, x, NULL, N, out, -1, MPI_COMM_WORLD),
           TALLY_EINVAL, out);
    expect("two kinds", call(rank ? ALL : STATES, &sum, x, N, out), TALLY_EINVAL, out);
    /* Over the tree, states that do not stand where the one before them ends. */
    expect("not neighbours", call(STATES, &prod, x, N - 1, out), TALLY_EINVAL, out);
    in_step();

    const tally_problem *those[] = {&argmin, &sum, &prod, &var, &bits};
    for (int way = ALL; way < 2 * WAYS; way++)
        for (size_t i = 0; i < (few ? 1 : sizeof those / sizeof those[0]); i++)
            for (int bad = 0; bad < (few ? 1 : 2); bad++) {
                is_merged = way >= WAYS;
                refuse_memory((enum way)(way % WAYS), those[i], bad ? ranks - 1 : 0, 40);
            }

    no_communicators(out);
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) puts(all ? "wrong" : "right");
    MPI_Finalize();
    return all;
}
