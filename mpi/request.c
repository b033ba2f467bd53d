/*
 * request.c - calls that do not wait: a task, and its place in the queue of its communicator.
 *
 * All ranks have to issue a communicator's collectives in one order, but tasks move on when somebody waits or
 * tests, which differs from rank to rank. So each communicator has two duplicates, made at the first use: frames go
 * over one, in the order in which the calls are made; all further steps over the other, a task's after those of the
 * task before it. Both orders are the same on all ranks, whoever waits for what.
 */
#include "explain.h"
#include "task.h"

#include <pthread.h>
#include <stdlib.h>

struct tally_mpi_request {
    struct task task;
    tally_problem problem; /* a copy; a user's operator stays the caller's */
    struct lanes *lanes;
    MPI_Request pending;
    tally_mpi_request *next; /* in the queue */
};

struct lanes {
    MPI_Comm frames, rest;
    tally_mpi_request *first; /* whose steps are not all complete, in the order of the calls */
};

/* ---- A communicator's duplicates ------------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_error, lanes_key;

static int free_lanes(MPI_Comm comm, int key, void *value, void *extra) {
    struct lanes *lanes = value;
    (void)comm, (void)key, (void)extra;
    MPI_Comm_free(&lanes->frames);
    MPI_Comm_free(&lanes->rest);
    free(lanes);
    return MPI_SUCCESS;
}

static void make_key(void) {
    once_error = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_lanes, &lanes_key, NULL);
}

/* Gives the communicator's lanes. All ranks have them or make them now. A rank without memory for them has no way
 * to say so to the others, which would wait for it: it ends the program. */
static int get_lanes(MPI_Comm comm, struct lanes **out) {
    int found = 0;
    *out = NULL;
    pthread_once(&once, make_key);
    int error = once_error;
    if (error == MPI_SUCCESS) error = MPI_Comm_get_attr(comm, lanes_key, (void *)out, &found);
    if (error != MPI_SUCCESS || found) return error;
    struct lanes *lanes = calloc(1, sizeof *lanes);
    if (!lanes) return MPI_Abort(comm, TALLY_ENOMEM);
    error = MPI_Comm_dup(comm, &lanes->frames);
    if (error == MPI_SUCCESS) error = MPI_Comm_dup(comm, &lanes->rest);
    if (error == MPI_SUCCESS) error = MPI_Comm_set_attr(comm, lanes_key, lanes);
    *out = lanes;
    return error;
}

/* ---- Moved on ------------------------------------------------------------------------------- */

/* Issues the task's step; what MPI says of it ends the task. */
static void issue(tally_mpi_request *r) {
    const int frame = r->task.step == STEP_FRAME;
    const int error = task_issue(&r->task, frame ? r->lanes->frames : r->lanes->rest, &r->pending);
    if (error != MPI_SUCCESS) task_lost(&r->task, error);
}

/* Takes in the step that is complete, or could not be completed. */
static void take(tally_mpi_request *r, int error) {
    if (error == MPI_SUCCESS)
        task_take(&r->task);
    else
        task_lost(&r->task, error);
}

/* Moves on the tasks of a queue: the first through all of its steps, as far as they are complete, then the next
 * one. With `wait` it waits for what is pending, until the task `until` is done. */
static void move_on(struct lanes *lanes, const tally_mpi_request *until, int wait) {
    while (lanes->first && until->task.step != STEP_DONE) {
        tally_mpi_request *r = lanes->first;
        int done = 1;
        if (r->task.step != STEP_DONE) {
            const int error = wait ? MPI_Wait(&r->pending, MPI_STATUS_IGNORE)
                                   : MPI_Test(&r->pending, &done, MPI_STATUS_IGNORE);
            if (!done && error == MPI_SUCCESS) return;
            take(r, error);
            if (r->task.step != STEP_DONE) issue(r);
        }
        if (r->task.step == STEP_DONE) lanes->first = r->next;
    }
}

/* ---- The public calls ------------------------------------------------------------------------ */

/* A request for a task yet to begin, whose problem is copied; NULL where there is no memory. */
static tally_mpi_request *make(tally_mpi_request **out, const tally_problem **problem) {
    if (!out) return NULL;
    tally_mpi_request *r = malloc(sizeof *r);
    *out = NULL;
    if (r && *problem) {
        r->problem = **problem;
        *problem = &r->problem;
    }
    return r;
}

/* The task has begun: sends its frame off. */
static tally_status send_off(tally_mpi_request *r, MPI_Comm comm, tally_mpi_request **out) {
    tally_mpi_request **last;
    r->next = NULL;
    r->pending = MPI_REQUEST_NULL;
    const int error = get_lanes(comm, &r->lanes);
    if (error != MPI_SUCCESS) {
        task_lost(&r->task, error);
        const tally_status s = task_end(&r->task);
        free(r);
        return s;
    }
    issue(r);
    for (last = &r->lanes->first; *last; last = &(*last)->next) {
    }
    *last = r;
    *out = r;
    return TALLY_OK;
}

/* No request can be made, and the other ranks wait for this one's frame: sends one that says so, and waits. */
static tally_status refuse(tally_mpi_request **out, struct task *t) {
    struct lanes *lanes = NULL;
    const tally_status status = out ? TALLY_ENOMEM : TALLY_EINVAL;
    const char *why = out ? "no memory for a request" : "request is NULL";
    frame_fill(t->frame, t->payload, 0, status, 0, t->rank, t->ranks);
    int error = get_lanes(t->comm, &lanes);
    /* A call that waits would not meet the others' that do not: MPI matches them by kind. */
    MPI_Request pending = MPI_REQUEST_NULL;
    if (error == MPI_SUCCESS && lanes) error = task_issue(t, lanes->frames, &pending);
    if (error == MPI_SUCCESS)
        error =
            MPI_Wait(&pending, MPI_STATUS_IGNORE); // NOLINT(clang-analyzer-optin.mpi.MPI-Checker)
    if (error != MPI_SUCCESS) task_lost(t, error);
    task_end(t);
    return explain(status, "rank %d: %s", t->rank, why);
}

static tally_status begin_values(tally_device *device, int is_resident,
                                 const tally_problem *problem, const void *x, const void *y,
                                 size_t n, tally_value *out, int root, MPI_Comm comm,
                                 tally_mpi_request **request) {
    struct task none;
    tally_mpi_request *r = make(request, &problem);
    struct task *t = r ? &r->task : &none;
    task_begin_values(t, device, is_resident, problem, x, y, n, out, root, comm);
    return r ? send_off(r, comm, request) : refuse(request, t);
}

tally_status tally_mpi_iallreduce(tally_device *device, const tally_problem *problem, const void *x,
                                  const void *y, size_t n, tally_value *out, MPI_Comm comm,
                                  tally_mpi_request **request) {
    return begin_values(device, 0, problem, x, y, n, out, ALL_RANKS, comm, request);
}

tally_status tally_mpi_ireduce(tally_device *device, const tally_problem *problem, const void *x,
                               const void *y, size_t n, tally_value *out, int root, MPI_Comm comm,
                               tally_mpi_request **request) {
    return begin_values(device, 0, problem, x, y, n, out, root < 0 ? INT32_MAX : root, comm,
                        request);
}

tally_status tally_mpi_iallreduce_resident(tally_device *device, const tally_problem *problem,
                                           void *x, void *y, size_t n, tally_value *out,
                                           MPI_Comm comm, tally_mpi_request **request) {
    return begin_values(device, 1, problem, x, y, n, out, ALL_RANKS, comm, request);
}

tally_status tally_mpi_iallreduce_states(const tally_problem *problem, tally_state *const states[],
                                         size_t count, MPI_Comm comm, tally_mpi_request **request) {
    struct task none;
    tally_mpi_request *r = make(request, &problem);
    struct task *t = r ? &r->task : &none;
    task_begin_states(t, problem, states, count, TALLY_OK, NULL, comm);
    return r ? send_off(r, comm, request) : refuse(request, t);
}

static tally_status finish(tally_mpi_request **request) {
    tally_mpi_request *r = *request;
    /* It may stand behind others that are done. */
    for (tally_mpi_request **at = &r->lanes->first; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            break;
        }
    const tally_status s = task_end(&r->task);
    free(r);
    *request = NULL;
    return s;
}

tally_status tally_mpi_wait(tally_mpi_request **request) {
    if (!request) return explain(TALLY_EINVAL, "tally_mpi_wait: request is NULL");
    if (!*request) return TALLY_OK;
    move_on((*request)->lanes, *request, 1);
    return finish(request);
}

tally_status tally_mpi_test(tally_mpi_request **request, int *done) {
    if (!request || !done) return explain(TALLY_EINVAL, "tally_mpi_test: an argument is NULL");
    *done = 1;
    if (!*request) return TALLY_OK;
    move_on((*request)->lanes, *request, 0);
    *done = (*request)->task.step == STEP_DONE;
    return *done ? finish(request) : TALLY_OK;
}
