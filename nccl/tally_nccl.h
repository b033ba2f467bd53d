/*
 * tally_nccl.h - reductions over the ranks of an NCCL communicator, in the memory of their GPUs: the same bits, whatever
 * the number of ranks.
 *
 * Each rank has a part of an array in its GPU's memory; rank 0's elements come first, then rank 1's, and so on. A call
 * puts the reduction of the whole on a stream of the caller's and returns: nothing is waited for, and on CUDA it may be
 * captured into a graph. The results are those of tally_enqueue() for the whole array on one GPU, on every rank:
 *
 *     tally_nccl_measure(gpu, &sum, n, 1, comm, &bytes); // once, and cudaMalloc(&workspace, bytes)
 *     tally_nccl_agree(gpu, &sum, n, comm, &call);       // once: all ranks ask for the same
 *     tally_nccl_allreduce(gpu, &sum, comm, &call);      // any number of times
 *
 * And arrays, such as gradients, are added up element by element over the ranks: tally_nccl_allreduce_array().
 *
 * The device was opened by tally_open("cuda:...") for the GPU that the communicator uses on this rank, and a thread that
 * calls has that GPU's context current, as for NCCL itself. NCCL is looked for at run time: libnccl.so.2, the one that
 * the program has loaded already if it has. The communicator blocks (NCCL's default).
 *
 * Every function with a communicator but the ones that measure is collective, and stands among the rank's other
 * collectives on it as NCCL asks. Where ranks ask for different things their messages do not match, and NCCL may hang:
 * tally_nccl_agree() finds out before that. Where a rank then fails in its own part - a NULL array, memory of another
 * device - it still takes part in the messages: it returns its status, and the results of all ranks have it. A failure
 * of NCCL itself, or of the driver, is TALLY_ELOST; or TALLY_EINVAL where NCCL calls an argument invalid. The rank may
 * then not have sent its message, and ncclCommAbort() keeps the others from waiting for it.
 */
#ifndef TALLY_NCCL_H
#define TALLY_NCCL_H

#include "tally.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An ncclComm_t, and a cudaStream_t or CUstream, of which NULL is the default stream. */
typedef void *tally_nccl_comm;
typedef void *tally_nccl_stream;

/* The line that explains the calling thread's last failed call in here. Valid until that thread's next call; "" if none
 * has failed. */
TALLY_API const char *tally_nccl_error(void);

/* Looks for NCCL and the CUDA driver: TALLY_OK, and NCCL's version as ncclGetVersion() says it; or
 * TALLY_EDEVICE. */
TALLY_API tally_status tally_nccl_version(int *version);

/* ---- GPUs of one machine -------------------------------------------------------------------- */

/* Ranks whose GPUs can write into each other's memory, as those of one machine mostly can. With it
 * a reduction to one result takes two launches and no message of NCCL's: the GPUs exchange their
 * words by themselves, in two thirds of the time (docs/cluster.md). And arrays are added up where
 * they lie, in a third of the time. The bits are the same. */
typedef struct tally_nccl_peers tally_nccl_peers;

/* Collective; waits. All ranks return the same: TALLY_OK; TALLY_EUNSUPPORTED where a rank is on
 * another machine, cannot have another's memory, or there are more than TALLY_MAILBOX_RANKS; or
 * what one of them has failed with. A rank that has no memory returns at once, and leaves the
 * others waiting, as in ncclCommInitRank(). */
TALLY_API tally_status tally_nccl_peers_open(tally_nccl_comm comm, tally_nccl_stream stream,
                                             tally_nccl_peers **out);
/* Ends this rank's wait for others, whose calls never come. Its results are TALLY_ELOST then, and
 * *peers can only be closed. Another thread than the one that waits calls it. */
TALLY_API tally_status tally_nccl_peers_abort(tally_nccl_peers *peers);
/* Closes the peers; NULL is allowed. This rank's calls with them must be complete, and no rank may
 * make another: a call writes into the memory of all ranks. */
TALLY_API void tally_nccl_peers_close(tally_nccl_peers *peers);

/* ---- Values ------------------------------------------------------------------------------- */

typedef struct tally_nccl_call {
    const tally_stretch
        *parts; /* [count]: this rank's elements of each result, in the GPU's memory; may be none */
    size_t count;    /* results, all in the same messages */
    void *workspace; /* tally_nccl_measure() says how much, of any content, aligned to 8 */
    size_t workspace_bytes;
    tally_nccl_stream stream;
    void *
        results; /* of each result a tally_result for each of the problem's values, in the GPU's memory */
    tally_nccl_peers *
        peers; /* on all ranks or on none; where count is 1 the exchange goes by them. NULL: by NCCL */
} tally_nccl_call;

/* Finds how many bytes of the GPU's memory a reduction to `count` results works in, if this rank has n
 * elements or fewer of each result. Compiles and loads the kernels, so that the reduction need not.
 * TALLY_EUNSUPPORTED for what goes over the canonical tree (floating products, users' operators). */
TALLY_API tally_status tally_nccl_measure(tally_device *device, const tally_problem *problem,
                                          size_t n, size_t count, tally_nccl_comm comm,
                                          size_t *bytes);

/* Finds whether all ranks ask for the same - operators, types, ddof, number of results - and have a workspace that
 * suffices for n elements, which may differ. Waits. All ranks return the same: TALLY_OK, or what one of them has failed
 * with, or TALLY_EINVAL. Of the call only the workspace, the stream and count matter. A rank that has no 64 bytes of
 * workspace returns at once, and leaves the others waiting. */
TALLY_API tally_status tally_nccl_agree(tally_device *device, const tally_problem *problem,
                                        size_t n, tally_nccl_comm comm,
                                        const tally_nccl_call *call);

/* Puts the reduction on the stream. Two launches for each result and one more, and one message,
 * unless there are peers: an ncclAllReduce of integers - of 600 bytes for a sum - or an
 * ncclAllGather, or both at once; docs/cluster.md has their lengths. */
TALLY_API tally_status tally_nccl_allreduce(tally_device *device, const tally_problem *problem,
                                            tally_nccl_comm comm, const tally_nccl_call *call);

/* ---- Arrays ------------------------------------------------------------------------------- */

/* The sums of the ranks' arrays, element by element, exact and rounded once (tally.h, "Arrays that are added up over
 * ranks"). */
typedef struct tally_nccl_array {
    tally_type type;  /* TALLY_F32, TALLY_F16, TALLY_BF16 */
    size_t n;         /* elements of each rank's array */
    uint32_t divisor; /* what sums are divided by before they are rounded; 0: by nothing */
    int scatter; /* not 0: each rank gets n / ranks of the sums, which is whole; rank 0 the first */
    size_t
        spare; /* rows of 512 words for elements whose exponents lie far apart; 0: n / 8192 + 8 rows */
} tally_nccl_array;

typedef struct tally_nccl_array_call {
    const void *x; /* n elements */
    void *out;     /* n sums, or this rank's part of them; may be x */
    void *
        outcome; /* a tally_outcome: TALLY_OK; TALLY_ENOMEM, where `at` rows would be needed; what a rank has failed
                      with. All ranks have the same, and where it is not TALLY_OK `out` means nothing */
    void *workspace;
    size_t workspace_bytes;
    tally_nccl_stream stream;
    tally_nccl_peers *
        peers; /* on all ranks or on none: the sums go from GPU to GPU, of arrays that all have agreed on. NULL: by NCCL */
} tally_nccl_array_call;

TALLY_API tally_status tally_nccl_measure_array(tally_device *device, const tally_nccl_array *array,
                                                tally_nccl_comm comm, size_t *bytes);
/* With peers, the ranks tell each other where x and out lie: later calls are for these two, which
 * stay until the peers are closed. They lie in memory of cudaMalloc()'s or cuMemAlloc()'s, or all
 * ranks get TALLY_EUNSUPPORTED, and may agree without peers. Several pairs of arrays may be agreed
 * on, up to TALLY_NCCL_ARRAYS; a pair may be agreed on anew. */
#define TALLY_NCCL_ARRAYS 256
TALLY_API tally_status tally_nccl_agree_array(tally_device *device, const tally_nccl_array *array,
                                              tally_nccl_comm comm,
                                              const tally_nccl_array_call *call);
/* Puts the sums on the stream: bounds under ncclMax, words under ncclSum - in parts, of which each
 * rank rounds one - and an ncclAllGather of the sums. Or, with peers, three launches: no spare rows
 * are needed then, nor the workspace read. */
TALLY_API tally_status tally_nccl_allreduce_array(tally_device *device,
                                                  const tally_nccl_array *array,
                                                  tally_nccl_comm comm,
                                                  const tally_nccl_array_call *call);

#ifdef __cplusplus
}
#endif

#endif
