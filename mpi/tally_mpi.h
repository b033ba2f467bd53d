/*
 * tally_mpi.h - reductions over the ranks of an MPI communicator: the same bits, whatever their number.
 *
 * Each rank has a part of an array; rank 0's elements come first, then rank 1's, and so on. A call reduces the
 * whole of it, and gives the bits that tally_reduce() gives for the whole array in one process:
 *
 *     tally_problem sum = TALLY_DEFAULTS;
 *     sum.op = TALLY_SUM;
 *     sum.type = TALLY_F64;
 *     tally_value energy;
 *     tally_mpi_allreduce(NULL, &sum, x, NULL, n, &energy, MPI_COMM_WORLD);
 *
 * Sums and all that is built on them, counts and bits travel as 64-bit words under MPI_SUM on MPI_INT64_T, so
 * any network combines them, in any order. One value takes one MPI_Allreduce: on a new communicator one of TALLY_MPI_FRAME_BYTES,
 * and later one as long as the communicator's last calls needed. The first call that needs more takes a second message.
 * docs/cluster.md says what needs how much, and which few operators always take more.
 *
 * Every function but tally_mpi_error() and tally_mpi_test() is collective: all ranks of the communicator, which is an
 * intracommunicator, call it,
 * in the same order as its other collectives, and ask for the same: operators, types, ddof, number of results, root.
 * The device, the elements and how many there are may differ, and there may be none.
 *
 * Errors. The ranks agree: every rank returns the same status. What one rank fails with - a NULL array, no
 * memory, a device that is lost - all return, and where the ranks do not ask for the same, all return TALLY_EINVAL.
 * Nobody waits for a rank that has failed in here. Outputs are untouched then, but for results in parts of which one does not
 * fit its type, or is an index of no elements: that is 0, and all others are written (tally_reduce_shaped()). Problems with
 * skip_nan are TALLY_EUNSUPPORTED; MPI_COMM_NULL, and communicators of two groups (MPI_Intercomm_create()), TALLY_EINVAL.
 * Where MPI itself fails and the communicator returns errors: TALLY_ELOST, on the ranks that MPI tells.
 *
 * MPI must be initialized. With MPI_THREAD_MULTIPLE several threads may call at once, each with a communicator of
 * its own.
 */
#ifndef TALLY_MPI_H
#define TALLY_MPI_H

#include "tally.h"

#include <mpi.h>

/* A library speaks one MPI. CMake and pkg-config define which one it was built for, and mpi.h says whose it is. */
#if defined(TALLY_MPI_FOR_MPICH) && !defined(MPICH_NAME)
#error "this libtally_mpi was built for MPICH, and mpi.h is not its: use mpicc of MPICH"
#elif defined(TALLY_MPI_FOR_OPEN_MPI) && !defined(OPEN_MPI)
#error "this libtally_mpi was built for Open MPI, and mpi.h is not its: use mpicc of Open MPI"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of the message that the first call on a communicator begins with, and most calls end with. */
#define TALLY_MPI_FRAME_BYTES 256

/* The line that explains the calling thread's last failed call in here, with the rank that failed, if it is one.
 * Valid until that thread's next call; "" if none has failed. */
TALLY_API const char *tally_mpi_error(void);

/* ---- One array, its values ---------------------------------------------------------------- */

/* Reduces the array of which this rank has x[0..n), and for dot y[0..n). Arguments as for tally_reduce(). *out is
 * as many values as tally_problem_values() says, on every rank.
 * A user's operator is the same function on all ranks. */
TALLY_API tally_status tally_mpi_allreduce(tally_device *device, const tally_problem *problem,
                                           const void *x, const void *y, size_t n, tally_value *out,
                                           MPI_Comm comm);

/* As tally_mpi_allreduce(), of elements that already lie on the device (tally_reduce_resident()). They are reduced
 * there. The ranks exchange a state in host memory, which is so short that a network of GPUs would not be quicker.
 * The ranks' devices may differ, and some may have none: device NULL and memory of the host. */
TALLY_API tally_status tally_mpi_allreduce_resident(tally_device *device,
                                                    const tally_problem *problem, void *x, void *y,
                                                    size_t n, tally_value *out, MPI_Comm comm);

/* ---- Many results in one message ------------------------------------------------------------ */

/* Combines `count` states of each rank: states[i] becomes, on every rank, the state of all that the ranks' states[i]
 * know, rank 0's elements first. All of them were created with `problem`, the same on all ranks. Over the canonical
 * tree (floating products, user operators) each state must stand where its elements do: tally_state_begin_at(). On
 * an error all states are as they were. */
TALLY_API tally_status tally_mpi_allreduce_states(const tally_problem *problem,
                                                  tally_state *const states[], size_t count,
                                                  MPI_Comm comm);

/* The same for the states of all groups; `problem` and `count` are what they were created with. *groups may be
 * replaced by another: the old one is destroyed. Over the canonical tree TALLY_EUNSUPPORTED, as for
 * tally_groups_merge(). */
TALLY_API tally_status tally_mpi_allreduce_groups(const tally_problem *problem, size_t count,
                                                  tally_groups **groups, MPI_Comm comm);

/* Reduces many arrays at once, of each of which every rank has a part: result i is that of rank 0's elements of
 * result i, then rank 1's, and so on. Arguments as for tally_reduce_shaped(), and out[] is written on every rank. The
 * ranks' shapes may be of different lengths and strides, but have as many results, and are of groups on all ranks
 * or on none. argmin and argmax count from rank 0's first element on: of the result, and for groups of x. They take no mask
 * but with groups (TALLY_EUNSUPPORTED on axes and segments). Segments and groups may cut an axis: a rank has some of it. Groups
 * of whole arrays are not reduced over the canonical tree, and of those along an axis there are no argmin and argmax
 * (TALLY_EUNSUPPORTED). All but groups of whole arrays are copied: memory for x and y once more, and 8 bytes an element. */
TALLY_API tally_status tally_mpi_allreduce_shaped(tally_device *device,
                                                  const tally_problem *problem,
                                                  const tally_shape *shape, const void *x,
                                                  const void *y, void *const out[], MPI_Comm comm);

/* As tally_mpi_allreduce_shaped(), of arrays that already lie on the device: x, y, offsets, ids and mask are memory as
 * tally_reduce_shaped_resident() has it; lengths, strides and the results out[] are the host's. Rows and segments without a mask,
 * whose elements lie side by side, are reduced where they are if they are long (16 KiB on average); all else is copied to
 * the host and reduced from there. Ranks may call this one or that. */
TALLY_API tally_status tally_mpi_allreduce_shaped_resident(tally_device *device,
                                                           const tally_problem *problem,
                                                           const tally_shape *shape, void *x,
                                                           void *y, void *const out[],
                                                           MPI_Comm comm);

/* ---- On one rank alone ----------------------------------------------------------------------- */

/* As the functions above, but only rank `root` gets the results: out, and the arrays of out, may be NULL on the
 * others, whose states and groups stay as they are. These take as long as the functions above, as all ranks return
 * the same status. */
TALLY_API tally_status tally_mpi_reduce(tally_device *device, const tally_problem *problem,
                                        const void *x, const void *y, size_t n, tally_value *out,
                                        int root, MPI_Comm comm);
TALLY_API tally_status tally_mpi_reduce_resident(tally_device *device, const tally_problem *problem,
                                                 void *x, void *y, size_t n, tally_value *out,
                                                 int root, MPI_Comm comm);
TALLY_API tally_status tally_mpi_reduce_states(const tally_problem *problem,
                                               tally_state *const states[], size_t count, int root,
                                               MPI_Comm comm);
TALLY_API tally_status tally_mpi_reduce_groups(const tally_problem *problem, size_t count,
                                               tally_groups **groups, int root, MPI_Comm comm);
TALLY_API tally_status tally_mpi_reduce_shaped(tally_device *device, const tally_problem *problem,
                                               const tally_shape *shape, const void *x,
                                               const void *y, void *const out[], int root,
                                               MPI_Comm comm);
TALLY_API tally_status tally_mpi_reduce_shaped_resident(tally_device *device,
                                                        const tally_problem *problem,
                                                        const tally_shape *shape, void *x, void *y,
                                                        void *const out[], int root, MPI_Comm comm);

/* ---- Without waiting ------------------------------------------------------------------------ */

/* A reduction under way. It is no MPI_Request, since its last step is not MPI's: a sum has to be rounded, and
 * some operators take a second message. Some kilobytes. */
typedef struct tally_mpi_request tally_mpi_request;

/* Begin what the functions above do, and return. This rank's elements are reduced before they return, except over
 * the canonical tree. x, y, states, groups, what results go to and a user's operator stay as they are until the request is
 * complete; the problem, a shape with all that it points to and the array out[] need not. *request must then be completed
 * by tally_mpi_wait() or tally_mpi_test(), on every rank, by the same thread. Requests of one communicator move on in the
 * order in which they were begun.
 * The first of these calls for a communicator duplicates it twice, and so waits for the other ranks; the
 * duplicates are freed with it. Free the communicator when no request is under way.
 * What goes wrong is told when the request is completed, and by the beginning call only where there is no
 * request: TALLY_EINVAL for a NULL one, TALLY_ENOMEM. */
TALLY_API tally_status tally_mpi_iallreduce(tally_device *device, const tally_problem *problem,
                                            const void *x, const void *y, size_t n,
                                            tally_value *out, MPI_Comm comm,
                                            tally_mpi_request **request);
TALLY_API tally_status tally_mpi_iallreduce_resident(tally_device *device,
                                                     const tally_problem *problem, void *x, void *y,
                                                     size_t n, tally_value *out, MPI_Comm comm,
                                                     tally_mpi_request **request);
TALLY_API tally_status tally_mpi_iallreduce_states(const tally_problem *problem,
                                                   tally_state *const states[], size_t count,
                                                   MPI_Comm comm, tally_mpi_request **request);
TALLY_API tally_status tally_mpi_iallreduce_groups(const tally_problem *problem, size_t count,
                                                   tally_groups **groups, MPI_Comm comm,
                                                   tally_mpi_request **request);
TALLY_API tally_status tally_mpi_iallreduce_shaped(tally_device *device,
                                                   const tally_problem *problem,
                                                   const tally_shape *shape, const void *x,
                                                   const void *y, void *const out[], MPI_Comm comm,
                                                   tally_mpi_request **request);
TALLY_API tally_status tally_mpi_iallreduce_shaped_resident(
    tally_device *device, const tally_problem *problem, const tally_shape *shape, void *x, void *y,
    void *const out[], MPI_Comm comm, tally_mpi_request **request);
TALLY_API tally_status tally_mpi_ireduce(tally_device *device, const tally_problem *problem,
                                         const void *x, const void *y, size_t n, tally_value *out,
                                         int root, MPI_Comm comm, tally_mpi_request **request);
TALLY_API tally_status tally_mpi_ireduce_resident(tally_device *device,
                                                  const tally_problem *problem, void *x, void *y,
                                                  size_t n, tally_value *out, int root,
                                                  MPI_Comm comm, tally_mpi_request **request);
TALLY_API tally_status tally_mpi_ireduce_states(const tally_problem *problem,
                                                tally_state *const states[], size_t count, int root,
                                                MPI_Comm comm, tally_mpi_request **request);
TALLY_API tally_status tally_mpi_ireduce_groups(const tally_problem *problem, size_t count,
                                                tally_groups **groups, int root, MPI_Comm comm,
                                                tally_mpi_request **request);
TALLY_API tally_status tally_mpi_ireduce_shaped(tally_device *device, const tally_problem *problem,
                                                const tally_shape *shape, const void *x,
                                                const void *y, void *const out[], int root,
                                                MPI_Comm comm, tally_mpi_request **request);
TALLY_API tally_status tally_mpi_ireduce_shaped_resident(tally_device *device,
                                                         const tally_problem *problem,
                                                         const tally_shape *shape, void *x, void *y,
                                                         void *const out[], int root, MPI_Comm comm,
                                                         tally_mpi_request **request);

/* Waits until the request is complete, frees it, sets *request to NULL, and returns its status. NULL in *request
 * counts as complete: TALLY_OK. */
TALLY_API tally_status tally_mpi_wait(tally_mpi_request **request);

/* Moves the request on, without waiting. Where that completes it, *done is 1 and all else as for tally_mpi_wait();
 * else *done is 0 and TALLY_OK is returned. */
TALLY_API tally_status tally_mpi_test(tally_mpi_request **request, int *done);

/* Makes the request one of MPI's, and *request NULL: for MPI_Wait(), MPI_Waitall() and the others, beside requests
 * of other kinds. The MPI_TAG of its MPI_Status is its tally_status. Under MPICH MPI_Test() and the like move it
 * on without waiting; under other MPIs, whose generalized requests cannot be polled, they wait until it is
 * complete, as MPI_Wait() does. Frees nothing where it fails: TALLY_EINVAL, TALLY_ELOST. */
TALLY_API tally_status tally_mpi_hand_over(tally_mpi_request **request, MPI_Request *out);

#ifdef __cplusplus
}
#endif

#endif
