/*
 * test_header.c - libtally_nccl declares as much of NCCL as it uses by itself; here the compiler compares that with NCCL's
 * own header: numbers, the sizes of what is passed, and each function's parameters.
 */
#include "nccl/library.h"

#include <nccl.h>

_Static_assert((int)NCCL_SUCCESS == (int)ncclSuccess &&
                   (int)NCCL_INVALID_ARGUMENT == (int)ncclInvalidArgument &&
                   (int)NCCL_INVALID_USAGE == (int)ncclInvalidUsage &&
                   (int)NCCL_IN_PROGRESS == (int)ncclInProgress,
               "results");
_Static_assert((int)NCCL_SUM == (int)ncclSum && (int)NCCL_MAX == (int)ncclMax, "operators");
_Static_assert((int)NCCL_INT8 == (int)ncclInt8 && (int)NCCL_INT32 == (int)ncclInt32 &&
                   (int)NCCL_INT64 == (int)ncclInt64 && (int)NCCL_UINT64 == (int)ncclUint64,
               "types");
_Static_assert(sizeof(ncclResult_t) == sizeof(nccl_result) &&
                   sizeof(ncclDataType_t) == sizeof(int) && sizeof(ncclRedOp_t) == sizeof(int),
               "enumerations are passed as int");
_Static_assert(sizeof(ncclComm_t) == sizeof(tally_nccl_comm) &&
                   sizeof(cudaStream_t) == sizeof(tally_nccl_stream),
               "handles are pointers");

/* Each of NCCL's functions, called with our parameters. */
int main(void) {
    ncclResult_t (*all_reduce)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,
                               ncclComm_t, cudaStream_t) = ncclAllReduce;
    ncclResult_t (*all_gather)(const void *, void *, size_t, ncclDataType_t, ncclComm_t,
                               cudaStream_t) = ncclAllGather;
    ncclResult_t (*reduce_scatter)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,
                                   ncclComm_t, cudaStream_t) = ncclReduceScatter;
    ncclResult_t (*count)(const ncclComm_t, int *) = ncclCommCount;
    ncclResult_t (*rank)(const ncclComm_t, int *) = ncclCommUserRank;
    ncclResult_t (*version)(int *) = ncclGetVersion;
    ncclResult_t (*start)(void) = ncclGroupStart, (*end)(void) = ncclGroupEnd;
    const char *(*text)(ncclResult_t) = ncclGetErrorString;
    return !(all_reduce && all_gather && reduce_scatter && count && rank && version && start &&
             end && text);
}
