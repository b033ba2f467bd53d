/*
 * request.c - calls that do not wait: a task, and its place in the queue of its communicator.
 *
 * All ranks have to issue a communicator's collectives in one order, but tasks move on when somebody waits or
 * tests, which differs from rank to rank. So each communicator has two duplicates, made at the first use: frames go
 * over one, in the order in which the calls are made; all further steps over the other, a task's after those of the
 * task before it. Both orders are the same on all ranks, no matter which thread waits for what. A thread that waits
 * moves on the tasks of all communicators that it has begun some on, as another rank may wait for another of them
 * first.
 */
#include "begin.h"
#include "communicator.h"
#include "duplicates.h"
#include "explain.h"
#include "run.h"
#include "take.h"

#include <stdio.h>
#include <stdlib.h>

struct tally_mpi_request {
    struct task task;
    tally_problem problem; /* a copy; a user's operator stays the caller's */
    struct duplicates *duplicates;
    MPI_Request pending;
    tally_mpi_request *next; /* in the queue */
    MPI_Request handed_over; /* the request of MPI's that it has become */
    int is_complete;         /* MPI has been told that handed_over is complete */
};

struct duplicates {
    MPI_Comm frames, rest;
    tally_mpi_request *first; /* the queue: requests with steps to do, in the order of the calls */
    struct duplicates *next;  /* in the thread's list `busy` */
};

/* The duplicates whose queues are not empty, of the requests that this thread has begun. */
static _Thread_local struct duplicates *busy;

/* ---- A communicator's duplicates ------------------------------------------------------------- */

void duplicates_free(struct duplicates *duplicates) {
    if (!duplicates) return;
    MPI_Comm_free(&duplicates->frames);
    MPI_Comm_free(&duplicates->rest);
    free(duplicates);
}

/* Gets the communicator's duplicates. All ranks have them or make them now. A rank without memory for
 * them cannot tell the others, which would wait for it: it ends the program. */
static int get_duplicates(MPI_Comm comm, struct duplicates **out) {
    struct attribute *attribute = NULL;
    int error = attribute_of(comm, &attribute);
    *out = attribute ? attribute->duplicates : NULL;
    if (*out) return MPI_SUCCESS;
    struct duplicates *duplicates = attribute ? calloc(1, sizeof *duplicates) : NULL;
    if (!attribute && error != MPI_ERR_NO_MEM) return error;
    if (!duplicates) {
        MPI_Abort(comm, TALLY_ENOMEM);
        return MPI_ERR_NO_MEM;
    }
    error = MPI_Comm_dup(comm, &duplicates->frames);
    if (error == MPI_SUCCESS) error = MPI_Comm_dup(comm, &duplicates->rest);
    *out = attribute->duplicates = duplicates;
    return error;
}

/* ---- Moved on ------------------------------------------------------------------------------- */

/* Issues the task's step. An error of MPI's ends the task. */
static void issue(tally_mpi_request *r) {
    const int frame = r->task.step == STEP_FRAME;
    const int error =
        task_issue(&r->task, frame ? r->duplicates->frames : r->duplicates->rest, &r->pending);
    if (error != MPI_SUCCESS) task_lost(&r->task, error);
}

/* Takes in the step that is complete, or could not be completed. */
static void take(tally_mpi_request *r, int error) {
    if (error == MPI_SUCCESS)
        task_take(&r->task);
    else
        task_lost(&r->task, error);
}

/* Takes duplicates, whose queue has become empty, out of the list `busy`. */
static void leave_busy(struct duplicates *duplicates) {
    for (struct duplicates **at = &busy; *at; at = &(*at)->next)
        if (*at == duplicates) {
            *at = duplicates->next;
            return;
        }
}

/* Moves on the tasks of a queue: the first through all of its steps, as far as they are complete, then the next
 * one, until the task `until` is done. With `wait` it waits for what is pending. */
static void move_on(struct duplicates *duplicates, const tally_mpi_request *until, int wait) {
    while (duplicates->first && until->task.step != STEP_DONE) {
        tally_mpi_request *r = duplicates->first;
        int done = 1;
        if (r->task.step != STEP_DONE) {
            const int error =
                wait ? MPI_Wait(&r->pending, // NOLINT(clang-analyzer-optin.mpi.MPI-Checker)
                                MPI_STATUS_IGNORE)
                     : MPI_Test(&r->pending, &done, MPI_STATUS_IGNORE);
            if (!done && error == MPI_SUCCESS) return;
            take(r, error);
            if (r->task.step != STEP_DONE) issue(r);
        }
        if (r->task.step == STEP_DONE) duplicates->first = r->next;
        if (!duplicates->first) leave_busy(duplicates);
    }
}

/* Moves on all of the thread's tasks, as far as they are complete. */
static void test_all(const tally_mpi_request *until) {
    for (struct duplicates *at = busy, *next; at && until->task.step != STEP_DONE; at = next) {
        next = at->next;
        move_on(at, until, 0);
    }
}

static void wait_until(const tally_mpi_request *r) {
    while (r->task.step != STEP_DONE) {
        if (busy == r->duplicates && !busy->next)
            move_on(busy, r, 1);
        else
            test_all(r);
    }
}

/* ---- The public calls ------------------------------------------------------------------------ */

/* Sends the frame of a task that has begun, and queues the task; or ends it where MPI cannot. */
static void send_off(tally_mpi_request *r, MPI_Comm comm) {
    tally_mpi_request **last;
    r->next = NULL;
    r->pending = MPI_REQUEST_NULL;
    r->is_complete = 0;
    r->task.step = STEP_FRAME;
    const int error = get_duplicates(comm, &r->duplicates);
    if (error != MPI_SUCCESS || !r->duplicates) {
        task_lost(&r->task, error);
        return;
    }
    issue(r);
    if (!r->duplicates->first) {
        r->duplicates->next = busy;
        busy = r->duplicates;
    }
    for (last = &r->duplicates->first; *last; last = &(*last)->next) {
    }
    *last = r;
}

/* Takes part in a call for which this rank cannot make a request, as the other ranks wait for its frame:
 * sends a frame that says so, and waits until all have learnt it. */
static tally_status refuse(tally_mpi_request *r, tally_mpi_request **out, MPI_Comm comm) {
    struct task *t = &r->task;
    t->status = out ? TALLY_ENOMEM : TALLY_EINVAL;
    snprintf(t->line, sizeof t->line, "rank %d: %s", t->rank,
             out ? "no memory for a request" : "request is NULL");
    frame_fill(t->frame, t->payload, 0, t->status, 0, t->rank, t->ranks);
    send_off(r, comm);
    wait_until(r);
    return task_end(t);
}

/* Begins a request, whose problem is a copy. */
static tally_status begin(struct ask ask, MPI_Comm comm, tally_mpi_request **out) {
    if (out) *out = NULL;
    tally_status s = check_communicator(comm);
    if (s != TALLY_OK) return s;
    tally_mpi_request none, *made = out ? malloc(sizeof *made) : NULL, *r = made ? made : &none;
    if (ask.problem) {
        r->problem = *ask.problem;
        ask.problem = &r->problem;
    }
    r->task.ask = ask;
    task_begin(&r->task, comm, &LATER_LAYOUT);
    if (!made) return refuse(r, out, comm);
    send_off(r, comm);
    if (r->duplicates) { /* its status is for the call that waits */
        *out = r;
        return TALLY_OK;
    }
    s = task_end(&r->task);
    free(r);
    return s;
}

tally_status tally_mpi_iallreduce(tally_device *device, const tally_problem *problem, const void *x,
                                  const void *y, size_t n, tally_value *out, MPI_Comm comm,
                                  tally_mpi_request **request) {
    return begin(ask_array(device, 0, problem, x, y, n, out, ALL_RANKS), comm, request);
}

tally_status tally_mpi_iallreduce_resident(tally_device *device, const tally_problem *problem,
                                           void *x, void *y, size_t n, tally_value *out,
                                           MPI_Comm comm, tally_mpi_request **request) {
    return begin(ask_array(device, 1, problem, x, y, n, out, ALL_RANKS), comm, request);
}

tally_status tally_mpi_iallreduce_states(const tally_problem *problem, tally_state *const states[],
                                         size_t count, MPI_Comm comm, tally_mpi_request **request) {
    return begin(ask_states(problem, states, count, ALL_RANKS), comm, request);
}

tally_status tally_mpi_iallreduce_groups(const tally_problem *problem, size_t count,
                                         tally_groups **groups, MPI_Comm comm,
                                         tally_mpi_request **request) {
    return begin(ask_groups(problem, count, groups, ALL_RANKS), comm, request);
}

tally_status tally_mpi_iallreduce_shaped(tally_device *device, const tally_problem *problem,
                                         const tally_shape *shape, const void *x, const void *y,
                                         void *const out[], MPI_Comm comm,
                                         tally_mpi_request **request) {
    return begin(ask_shape(device, 0, problem, shape, x, y, out, ALL_RANKS), comm, request);
}

tally_status tally_mpi_iallreduce_shaped_resident(tally_device *device,
                                                  const tally_problem *problem,
                                                  const tally_shape *shape, void *x, void *y,
                                                  void *const out[], MPI_Comm comm,
                                                  tally_mpi_request **request) {
    return begin(ask_shape(device, 1, problem, shape, x, y, out, ALL_RANKS), comm, request);
}

tally_status tally_mpi_ireduce(tally_device *device, const tally_problem *problem, const void *x,
                               const void *y, size_t n, tally_value *out, int root, MPI_Comm comm,
                               tally_mpi_request **request) {
    return begin(ask_array(device, 0, problem, x, y, n, out, one_root(root)), comm, request);
}

tally_status tally_mpi_ireduce_resident(tally_device *device, const tally_problem *problem, void *x,
                                        void *y, size_t n, tally_value *out, int root,
                                        MPI_Comm comm, tally_mpi_request **request) {
    return begin(ask_array(device, 1, problem, x, y, n, out, one_root(root)), comm, request);
}

tally_status tally_mpi_ireduce_states(const tally_problem *problem, tally_state *const states[],
                                      size_t count, int root, MPI_Comm comm,
                                      tally_mpi_request **request) {
    return begin(ask_states(problem, states, count, one_root(root)), comm, request);
}

tally_status tally_mpi_ireduce_groups(const tally_problem *problem, size_t count,
                                      tally_groups **groups, int root, MPI_Comm comm,
                                      tally_mpi_request **request) {
    return begin(ask_groups(problem, count, groups, one_root(root)), comm, request);
}

tally_status tally_mpi_ireduce_shaped(tally_device *device, const tally_problem *problem,
                                      const tally_shape *shape, const void *x, const void *y,
                                      void *const out[], int root, MPI_Comm comm,
                                      tally_mpi_request **request) {
    return begin(ask_shape(device, 0, problem, shape, x, y, out, one_root(root)), comm, request);
}

tally_status tally_mpi_ireduce_shaped_resident(tally_device *device, const tally_problem *problem,
                                               const tally_shape *shape, void *x, void *y,
                                               void *const out[], int root, MPI_Comm comm,
                                               tally_mpi_request **request) {
    return begin(ask_shape(device, 1, problem, shape, x, y, out, one_root(root)), comm, request);
}

static tally_status finish(tally_mpi_request **request) {
    tally_mpi_request *r = *request;
    /* The request may stand in the queue behind others that are done. */
    for (tally_mpi_request **at = &r->duplicates->first; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            if (!r->duplicates->first) leave_busy(r->duplicates);
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
    wait_until(*request);
    return finish(request);
}

tally_status tally_mpi_test(tally_mpi_request **request, int *done) {
    if (!request || !done) return explain(TALLY_EINVAL, "tally_mpi_test: an argument is NULL");
    *done = 1;
    if (!*request) return TALLY_OK;
    test_all(*request);
    *done = (*request)->task.step == STEP_DONE;
    return *done ? finish(request) : TALLY_OK;
}

/* ---- As a request of MPI's --------------------------------------------------------------------- */

/* The functions that MPI calls for a generalized request. MPICH can poll one. Any other MPI is told at once
 * that the request is complete. MPI_Wait() and the like then call query() before they return, and that
 * waits until the request is complete indeed. */

static int query(void *extra, MPI_Status *status) {
    tally_mpi_request *r = extra;
    wait_until(r);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = (int)r->task.status;
    MPI_Status_set_cancelled(status, 0);
    return MPI_Status_set_elements(status, MPI_BYTE, 0);
}

static int give_up_handle(void *extra) {
    tally_mpi_request *r = extra;
    wait_until(r); /* where it is freed before it is complete: the other ranks count on this one */
    finish(&r);
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete) {
    (void)extra, (void)complete;
    return MPI_SUCCESS; /* there is no cancelling of collectives */
}

static int complete(tally_mpi_request *r) {
    if (r->is_complete) return MPI_SUCCESS;
    r->is_complete = 1;
    return MPI_Grequest_complete(r->handed_over);
}

#ifdef MPICH_NUMVERSION

static int poll_once(void *extra, MPI_Status *status) {
    tally_mpi_request *r = extra;
    (void)status;
    test_all(r);
    return r->task.step == STEP_DONE ? complete(r) : MPI_SUCCESS;
}

static int wait_for_all(int count, void **extra, double timeout, MPI_Status *status) {
    int error = MPI_SUCCESS;
    (void)timeout, (void)status;
    for (int i = 0; i < count && error == MPI_SUCCESS; i++) {
        wait_until(extra[i]);
        error = complete(extra[i]);
    }
    return error;
}

static int hand_over(tally_mpi_request *r) {
    return MPIX_Grequest_start(query, give_up_handle, cancel, poll_once, wait_for_all, r,
                               &r->handed_over);
}

#else

static int hand_over(tally_mpi_request *r) {
    const int error = MPI_Grequest_start(query, give_up_handle, cancel, r, &r->handed_over);
    return error == MPI_SUCCESS ? complete(r) : error;
}

#endif

tally_status tally_mpi_hand_over(tally_mpi_request **request, MPI_Request *out) {
    if (!request || !*request || !out)
        return explain(TALLY_EINVAL, "tally_mpi_hand_over: an argument is NULL");
    if (hand_over(*request) != MPI_SUCCESS)
        return explain(TALLY_ELOST, "MPI makes no generalized request");
    *out = (*request)->handed_over;
    *request = NULL;
    return TALLY_OK;
}
