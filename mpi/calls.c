/* calls.c - the public calls that wait, and the line that explains a failure. */
#include "explain.h"
#include "task.h"

const char *tally_mpi_error(void) {
    return explanation();
}

tally_status tally_mpi_allreduce(tally_device *device, const tally_problem *problem, const void *x,
                                 const void *y, size_t n, tally_value *out, MPI_Comm comm) {
    struct task t;
    task_begin_values(&t, device, 0, problem, x, y, n, out, ALL_RANKS, comm, NULL);
    return task_run(&t);
}

tally_status tally_mpi_reduce(tally_device *device, const tally_problem *problem, const void *x,
                              const void *y, size_t n, tally_value *out, int root, MPI_Comm comm) {
    struct task t;
    /* A root that is none would pass for ALL_RANKS. */
    task_begin_values(&t, device, 0, problem, x, y, n, out, root < 0 ? INT32_MAX : root, comm,
                      NULL);
    return task_run(&t);
}

tally_status tally_mpi_allreduce_resident(tally_device *device, const tally_problem *problem,
                                          void *x, void *y, size_t n, tally_value *out,
                                          MPI_Comm comm) {
    struct task t;
    task_begin_values(&t, device, 1, problem, x, y, n, out, ALL_RANKS, comm, NULL);
    return task_run(&t);
}

tally_status tally_mpi_allreduce_states(const tally_problem *problem, tally_state *const states[],
                                        size_t count, MPI_Comm comm) {
    struct task t;
    task_begin_states(&t, problem, states, count, TALLY_OK, NULL, comm, NULL);
    return task_run(&t);
}

tally_status tally_mpi_allreduce_groups(const tally_problem *problem, size_t count,
                                        tally_groups **groups, MPI_Comm comm) {
    struct task t;
    task_begin_groups(&t, problem, groups, count, TALLY_OK, NULL, comm);
    return task_run(&t);
}
