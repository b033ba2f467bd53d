/* ranks.c - see ranks.h. */
#include "ranks.h"

#include <stdio.h>

tally_status ranks_of(tally_nccl_comm comm, struct ranks *out) {
    int count = 0, mine = 0;
    if (!comm) return explain(TALLY_EINVAL, "the communicator is NULL");
    tally_status s = library_ready();
    if (s == TALLY_OK) s = nccl_status(nccl.ncclCommCount(comm, &count), "ncclCommCount");
    if (s == TALLY_OK) s = nccl_status(nccl.ncclCommUserRank(comm, &mine), "ncclCommUserRank");
    if (s == TALLY_OK && (count < 1 || mine < 0 || mine >= count))
        s = explain(TALLY_EINVAL, "a communicator with rank %d of %d", mine, count);
    if (s == TALLY_OK) *out = (struct ranks){(size_t)count, (size_t)mine};
    return s;
}

uint64_t question_add(uint64_t hash, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The greatest of a hash and the greatest of its complement are each other's complements if and only if all hashes are
 * equal; the greatest of the statuses is one that a rank has failed with. */
tally_status ranks_agree(tally_nccl_comm comm, uint64_t hash, tally_status mine, void *memory,
                         tally_nccl_stream stream) {
    const uint64_t word[3] = {hash, ~hash, (uint64_t)mine}, at = (uint64_t)(uintptr_t)memory;
    uint64_t all[3] = {0};
    char why[400];
    snprintf(why, sizeof why, "%s", tally_nccl_error());
    tally_status s =
        driver_status(nccl.cuMemcpyHtoDAsync(at, word, sizeof word, stream), "cuMemcpyHtoDAsync");
    if (s == TALLY_OK)
        s = nccl_status(nccl.ncclAllReduce(memory, memory, 3, NCCL_UINT64, NCCL_MAX, comm, stream),
                        "ncclAllReduce");
    if (s == TALLY_OK)
        s = driver_status(nccl.cuMemcpyDtoHAsync(all, at, sizeof all, stream), "cuMemcpyDtoHAsync");
    if (s == TALLY_OK) s = driver_status(nccl.cuStreamSynchronize(stream), "cuStreamSynchronize");
    if (s != TALLY_OK) return s;
    if (mine != TALLY_OK && all[2] == (uint64_t)mine) return explain(mine, "%s", why);
    if (all[2] != 0)
        return explain((tally_status)all[2], "another rank has failed: %s",
                       tally_status_text((tally_status)all[2]));
    if (all[0] != ~all[1]) return explain(TALLY_EINVAL, "the ranks do not ask for the same");
    return TALLY_OK;
}

size_t layout_take(size_t *used, size_t bytes) {
    const size_t place = *used;
    *used += (bytes + 255) / 256 * 256;
    return place;
}
