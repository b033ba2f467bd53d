/* calls.c - the public calls that wait, and the line that explains a failure. */
#include "begin.h"
#include "communicator.h"
#include "explain.h"
#include "run.h"

const char *tally_mpi_error(void) {
    return explanation();
}

/* Does a call whose arguments are in t->ask. */
static tally_status call(struct task *t, MPI_Comm comm) {
    const tally_status s = check_communicator(comm);
    if (s != TALLY_OK) return s;
    task_begin(t, comm, NULL);
    return task_run(t);
}

/* ---- For all ranks ---- */

tally_status tally_mpi_allreduce(tally_device *device, const tally_problem *problem, const void *x,
                                 const void *y, size_t n, tally_value *out, MPI_Comm comm) {
    struct task t;
    t.ask = ask_array(device, 0, problem, x, y, n, out, ALL_RANKS);
    return call(&t, comm);
}

tally_status tally_mpi_allreduce_resident(tally_device *device, const tally_problem *problem,
                                          void *x, void *y, size_t n, tally_value *out,
                                          MPI_Comm comm) {
    struct task t;
    t.ask = ask_array(device, 1, problem, x, y, n, out, ALL_RANKS);
    return call(&t, comm);
}

tally_status tally_mpi_allreduce_states(const tally_problem *problem, tally_state *const states[],
                                        size_t count, MPI_Comm comm) {
    struct task t;
    t.ask = ask_states(problem, states, count, ALL_RANKS);
    return call(&t, comm);
}

tally_status tally_mpi_allreduce_groups(const tally_problem *problem, size_t count,
                                        tally_groups **groups, MPI_Comm comm) {
    struct task t;
    t.ask = ask_groups(problem, count, groups, ALL_RANKS);
    return call(&t, comm);
}

tally_status tally_mpi_allreduce_shaped(tally_device *device, const tally_problem *problem,
                                        const tally_shape *shape, const void *x, const void *y,
                                        void *const out[], MPI_Comm comm) {
    struct task t;
    t.ask = ask_shape(device, 0, problem, shape, x, y, out, ALL_RANKS);
    return call(&t, comm);
}

tally_status tally_mpi_allreduce_shaped_resident(tally_device *device, const tally_problem *problem,
                                                 const tally_shape *shape, void *x, void *y,
                                                 void *const out[], MPI_Comm comm) {
    struct task t;
    t.ask = ask_shape(device, 1, problem, shape, x, y, out, ALL_RANKS);
    return call(&t, comm);
}

/* ---- For one rank ---- */

tally_status tally_mpi_reduce(tally_device *device, const tally_problem *problem, const void *x,
                              const void *y, size_t n, tally_value *out, int root, MPI_Comm comm) {
    struct task t;
    t.ask = ask_array(device, 0, problem, x, y, n, out, one_root(root));
    return call(&t, comm);
}

tally_status tally_mpi_reduce_resident(tally_device *device, const tally_problem *problem, void *x,
                                       void *y, size_t n, tally_value *out, int root,
                                       MPI_Comm comm) {
    struct task t;
    t.ask = ask_array(device, 1, problem, x, y, n, out, one_root(root));
    return call(&t, comm);
}

tally_status tally_mpi_reduce_states(const tally_problem *problem, tally_state *const states[],
                                     size_t count, int root, MPI_Comm comm) {
    struct task t;
    t.ask = ask_states(problem, states, count, one_root(root));
    return call(&t, comm);
}

tally_status tally_mpi_reduce_groups(const tally_problem *problem, size_t count,
                                     tally_groups **groups, int root, MPI_Comm comm) {
    struct task t;
    t.ask = ask_groups(problem, count, groups, one_root(root));
    return call(&t, comm);
}

tally_status tally_mpi_reduce_shaped(tally_device *device, const tally_problem *problem,
                                     const tally_shape *shape, const void *x, const void *y,
                                     void *const out[], int root, MPI_Comm comm) {
    struct task t;
    t.ask = ask_shape(device, 0, problem, shape, x, y, out, one_root(root));
    return call(&t, comm);
}

tally_status tally_mpi_reduce_shaped_resident(tally_device *device, const tally_problem *problem,
                                              const tally_shape *shape, void *x, void *y,
                                              void *const out[], int root, MPI_Comm comm) {
    struct task t;
    t.ask = ask_shape(device, 1, problem, shape, x, y, out, one_root(root));
    return call(&t, comm);
}
