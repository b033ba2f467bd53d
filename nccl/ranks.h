/*
 * ranks.h - what the ranks of a communicator have in common: how many they are, whether they ask for the same, and how
 * a rank's memory is shared out.
 */
#ifndef TALLY_NCCL_RANKS_H
#define TALLY_NCCL_RANKS_H

#include "library.h"

struct ranks {
    size_t count, mine;
};

/* Finds the libraries, and asks the communicator. */
tally_status ranks_of(tally_nccl_comm comm, struct ranks *out);

/* Returns the hash of a question's bytes so far and of `size` more. */
#define QUESTION_START UINT64_C(0xcbf29ce484222325)
uint64_t question_add(uint64_t hash, const void *bytes, size_t size);

#define AGREE_BYTES 64

/* Returns TALLY_OK if all ranks have the same `hash` and none has failed so far (`mine` is this rank's
 * status); else a failure, the same on all ranks. Waits. `memory` is AGREE_BYTES of the GPU's. */
tally_status ranks_agree(tally_nccl_comm comm, uint64_t hash, tally_status mine, void *memory,
                         tally_nccl_stream stream);

/* Returns the mailbox of this rank, in its GPU's memory. */
void *peers_mailbox(const tally_nccl_peers *peers);

/* A pair of arrays of each rank, x and out, which have been agreed on; with the addresses at which this GPU finds
 * them. */
struct agreed_arrays {
    const void *x; /* this rank's own */
    void *out;
    uint32_t number;                         /* the same on all ranks; 0: none */
    uint64_t opened[2][TALLY_MAILBOX_RANKS]; /* memory of other processes, to be closed */
    uint64_t at[2][TALLY_MAILBOX_RANKS];     /* x and out of each rank */
};

/* Collective; waits. Makes this rank's x and out known to all others, and theirs known here. `mine`
 * is what this rank has come to so far; all ranks return the same. */
tally_status peers_agree_arrays(tally_nccl_peers *peers, tally_nccl_comm comm,
                                tally_nccl_stream stream, const void *x, void *out,
                                tally_status mine);
/* Returns the entry of this rank's x and out; NULL if these have not been agreed on. */
const struct agreed_arrays *peers_find_arrays(const tally_nccl_peers *peers, const void *x,
                                              const void *out);

/* Takes the next `bytes` bytes of a workspace of which *used are taken. Returns where they begin, a multiple of 256. */
size_t layout_take(size_t *used, size_t bytes);

#endif
