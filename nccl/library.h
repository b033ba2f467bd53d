/*
 * library.h - the parts of NCCL's interface and of the CUDA driver's that are used here, declared by ourselves and
 * loaded at run time. The names and numbers are those of their documentation; tests/nccl compares them with the
 * headers.
 */
#ifndef TALLY_NCCL_LIBRARY_H
#define TALLY_NCCL_LIBRARY_H

#include "explain.h"
#include "tally_nccl.h"

typedef int nccl_result; /* ncclResult_t */

enum { NCCL_SUCCESS = 0, NCCL_INVALID_ARGUMENT = 4, NCCL_INVALID_USAGE = 5, NCCL_IN_PROGRESS = 7 };
enum { NCCL_SUM = 0, NCCL_MAX = 2 };                                     /* ncclRedOp_t */
enum { NCCL_INT8 = 0, NCCL_INT32 = 2, NCCL_INT64 = 4, NCCL_UINT64 = 5 }; /* ncclDataType_t */

/* The entry points as loaded. All of them are in NCCL 2.0, and in drivers for CUDA 11.0. */
struct nccl_calls {
    nccl_result (*ncclGetVersion)(int *version);
    const char *(*ncclGetErrorString)(nccl_result result);
    nccl_result (*ncclCommCount)(tally_nccl_comm comm, int *count);
    nccl_result (*ncclCommUserRank)(tally_nccl_comm comm, int *rank);
    nccl_result (*ncclGroupStart)(void);
    nccl_result (*ncclGroupEnd)(void);
    nccl_result (*ncclAllReduce)(const void *send, void *receive, size_t count, int type, int op,
                                 tally_nccl_comm comm, tally_nccl_stream stream);
    nccl_result (*ncclAllGather)(const void *send, void *receive, size_t send_count, int type,
                                 tally_nccl_comm comm, tally_nccl_stream stream);
    nccl_result (*ncclReduceScatter)(const void *send, void *receive, size_t receive_count,
                                     int type, int op, tally_nccl_comm comm,
                                     tally_nccl_stream stream);
    int (*cuMemsetD8Async)(uint64_t to, unsigned char byte, size_t bytes, void *stream);
    int (*cuMemcpyHtoDAsync)(uint64_t to, const void *from, size_t bytes, void *stream);
    int (*cuMemcpyDtoHAsync)(void *to, uint64_t from, size_t bytes, void *stream);
    int (*cuStreamSynchronize)(void *stream);
};
extern struct nccl_calls nccl;

/* Finds both libraries, once. TALLY_EDEVICE, with a line, where one of them is not there or lacks something. */
tally_status library_ready(void);

/* Return the status for a result of NCCL's, or of the driver's. A failure keeps a line that names the call,
 * `what`. */
tally_status nccl_status(nccl_result result, const char *what);
tally_status driver_status(int error, const char *what);

#endif
