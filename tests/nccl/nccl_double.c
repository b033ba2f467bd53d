/*
 * nccl_double.c - a test double of NCCL: a libnccl.so.2 without GPUs, whose ranks are threads of one process.
 *
 * It has the entry points that libtally_nccl uses, declared by NCCL's own header where that is here, and moves bytes
 * through the double of CUDA's driver. A collective begins when all ranks have come to it. It adds ranks up in an order
 * that changes from call to call. Where the real one would hang or do anything, it says so: ranks whose messages do not
 * match get ncclInvalidUsage, and where a rank's call has failed, the others get ncclRemoteError.
 *
 * TALLY_NCCL_DOUBLE_FAIL=ncclAllReduce:2:3 - the second call of ncclAllReduce from now on, by whatever rank, comes to
 * error 3; a changed text starts counting anew.
 */
#include <nccl.h>

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORTED  __attribute__((visibility("default")))
#define RANKS_MAX 64
#define PATIENCE  60 /* seconds; then a rank is taken for lost */

enum kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER };

struct operation {
    enum kind kind;
    const void *send;
    void *receive;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    ncclComm_t comm;
    cudaStream_t stream;
};

/* All ranks of a communicator. */
struct world {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int ranks, arrived, failed;
    unsigned long turn; /* how often all have met */
    struct operation asked[RANKS_MAX];
    unsigned char *bytes[RANKS_MAX];
    double sent;    /* bytes that a rank sends in a ring, all collectives together */
    int overflowed; /* an integer sum has */
    unsigned calls;
};

struct ncclComm {
    struct world *world;
    int rank;
};

/* For tests: the communicators of a new world of so many ranks; its end; what its ranks have sent; and whether a sum has
 * overflowed. */
EXPORTED int tally_nccl_double_open(int ranks, ncclComm_t *comms);
EXPORTED void tally_nccl_double_close(ncclComm_t comm);
EXPORTED double tally_nccl_double_sent(ncclComm_t comm);
EXPORTED int tally_nccl_double_overflowed(ncclComm_t comm);
/* As ncclCommAbort(): nobody waits for this rank any more. */
EXPORTED void tally_nccl_double_abort(ncclComm_t comm);

/* The double of the driver lets bytes be looked at and put where a stream is being captured, too. */
static int (*peek)(void *to, uint64_t from, size_t bytes, void *stream);
static int (*poke)(uint64_t to, const void *from, size_t bytes, void *stream);

static _Thread_local struct operation grouped[16];
static _Thread_local int depth, queued;

int tally_nccl_double_open(int ranks, ncclComm_t *comms) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    struct world *w = calloc(1, sizeof *w);
    if (!driver || !w || ranks > RANKS_MAX) return 1;
    *(void **)&peek = dlsym(driver, "tally_cuda_double_peek");
    *(void **)&poke = dlsym(driver, "tally_cuda_double_poke");
    if (!peek || !poke) return 2;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->moved, NULL);
    w->ranks = ranks;
    for (int i = 0; i < ranks; i++) {
        comms[i] = calloc(1, sizeof **comms);
        *comms[i] = (struct ncclComm){w, i};
    }
    return 0;
}

void tally_nccl_double_close(ncclComm_t comm) {
    if (comm->rank == 0) free(comm->world);
    free(comm);
}

double tally_nccl_double_sent(ncclComm_t comm) {
    return comm->world->sent;
}

int tally_nccl_double_overflowed(ncclComm_t comm) {
    return comm->world->overflowed;
}

void tally_nccl_double_abort(ncclComm_t comm) {
    pthread_mutex_lock(&comm->world->lock);
    comm->world->failed = 1;
    pthread_cond_broadcast(&comm->world->moved);
    pthread_mutex_unlock(&comm->world->lock);
}

/* ---- Failures --------------------------------------------------------------------------------- */

static ncclResult_t injected(const char *name) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char current[128];
    static unsigned count;
    const char *rule = getenv("TALLY_NCCL_DOUBLE_FAIL");
    const size_t length = strlen(name);
    unsigned which = 0;
    int error = 0, result = 0;
    pthread_mutex_lock(&lock);
    if (!rule) rule = "";
    if (strcmp(current, rule) != 0) {
        snprintf(current, sizeof current, "%s", rule);
        count = 0;
    }
    if (strncmp(rule, name, length) == 0 && rule[length] == ':' &&
        sscanf(rule + length, ":%u:%d", &which, &error) == 2 && ++count == which)
        result = error;
    pthread_mutex_unlock(&lock);
    return (ncclResult_t)result;
}

/* ---- Collectives ------------------------------------------------------------------------------ */

static size_t size_of(ncclDataType_t type) {
    return type == ncclInt8 || type == ncclUint8                            ? 1
           : type == ncclInt32 || type == ncclUint32 || type == ncclFloat32 ? 4
                                                                            : 8;
}

static size_t sent_bytes(const struct operation *o, int ranks) {
    const size_t parts = o->kind == REDUCE_SCATTER ? (size_t)ranks : 1;
    return parts * o->count * size_of(o->type);
}

static size_t received_bytes(const struct operation *o, int ranks) {
    const size_t parts = o->kind == ALL_GATHER ? (size_t)ranks : 1;
    return parts * o->count * size_of(o->type);
}

/* What a rank sends in a ring. */
static double ring_bytes(const struct operation *o, int ranks) {
    const double bytes = (double)o->count * (double)size_of(o->type), others = ranks - 1;
    return o->kind == ALL_REDUCE ? 2 * bytes * others / ranks : bytes * others;
}

static int is_alike(const struct operation *a, const struct operation *b) {
    return a->kind == b->kind && a->count == b->count && a->type == b->type && a->op == b->op;
}

/* All ranks meet. Returns 0 where one of them has failed, or never comes. */
static int meet(struct world *w) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE;
    const unsigned long turn = w->turn;
    if (++w->arrived == w->ranks) {
        w->arrived = 0;
        w->turn++;
        pthread_cond_broadcast(&w->moved);
    }
    while (w->turn == turn && !w->failed)
        if (pthread_cond_timedwait(&w->moved, &w->lock, &end)) w->failed = 1;
    return !w->failed;
}

static int64_t value_at(const struct operation *o, const unsigned char *bytes, size_t i) {
    int64_t wide = 0;
    int32_t narrow = 0;
    if (size_of(o->type) == 8) {
        memcpy(&wide, bytes + 8 * i, 8);
        return wide;
    }
    memcpy(&narrow, bytes + 4 * i, 4);
    return o->type == ncclInt32 ? narrow : (int64_t)(uint32_t)narrow;
}

static int64_t combine(struct world *w, const struct operation *o, int64_t a, int64_t b) {
    int64_t sum;
    if (o->op == ncclMax)
        return o->type == ncclUint64 ? ((uint64_t)a > (uint64_t)b ? a : b) : a > b ? a : b;
    if (__builtin_add_overflow(a, b, &sum)) w->overflowed = 1;
    if (o->type == ncclInt32 && (sum > INT32_MAX || sum < INT32_MIN)) w->overflowed = 1;
    return sum;
}

/* What rank `mine` receives. */
static void work_out(struct world *w, const struct operation *o, int mine, unsigned char *out) {
    const size_t size = size_of(o->type),
                 first = o->kind == REDUCE_SCATTER ? (size_t)mine * o->count : 0;
    if (o->kind == ALL_GATHER) {
        for (int rank = 0; rank < w->ranks; rank++)
            memcpy(out + (size_t)rank * o->count * size, w->bytes[rank], o->count * size);
        return;
    }
    const int turned = (int)(w->calls * 7 % (unsigned)w->ranks), back = w->calls & 1;
    for (size_t i = 0; i < o->count; i++) {
        int64_t total = value_at(o, w->bytes[turned], first + i);
        for (int k = 1; k < w->ranks; k++) {
            const int rank = (turned + (back ? w->ranks - k : k)) % w->ranks;
            total = combine(w, o, total, value_at(o, w->bytes[rank], first + i));
        }
        memcpy(out + i * size, &total, size);
    }
}

static ncclResult_t run(const struct operation *o) {
    struct world *w = o->comm->world;
    const int mine = o->comm->rank;
    const size_t sends = sent_bytes(o, w->ranks), receives = received_bytes(o, w->ranks);
    unsigned char *bytes = malloc(sends + 1), *out = malloc(receives + 1);
    ncclResult_t result = ncclSuccess;
    if (sends > 0 && peek(bytes, (uint64_t)(uintptr_t)o->send, sends, (void *)o->stream))
        result = ncclUnhandledCudaError;
    pthread_mutex_lock(&w->lock);
    w->asked[mine] = *o;
    w->bytes[mine] = bytes;
    if (result) {
        w->failed = 1;
        pthread_cond_broadcast(&w->moved);
    }
    if (!meet(w)) result = result ? result : ncclRemoteError;
    for (int rank = 0; rank < w->ranks && !result; rank++)
        if (!is_alike(o, &w->asked[rank])) result = ncclInvalidUsage;
    if (!result) {
        work_out(w, o, mine, out);
        if (mine == 0) w->sent += ring_bytes(o, w->ranks);
    }
    if (result != ncclRemoteError && !meet(w)) result = result ? result : ncclRemoteError;
    if (mine == 0) w->calls++;
    pthread_mutex_unlock(&w->lock);
    if (!result && receives > 0 &&
        poke((uint64_t)(uintptr_t)o->receive, out, receives, (void *)o->stream))
        result = ncclUnhandledCudaError;
    free(bytes);
    free(out);
    return result;
}

static ncclResult_t called(const char *name, struct operation o) {
    const ncclResult_t result = injected(name);
    if (result) {
        tally_nccl_double_abort(o.comm);
        return result;
    }
    if (depth == 0) return run(&o);
    grouped[queued++] = o;
    return ncclSuccess;
}

EXPORTED ncclResult_t ncclGroupStart(void) {
    depth++;
    return ncclSuccess;
}

EXPORTED ncclResult_t ncclGroupEnd(void) {
    ncclResult_t result = ncclSuccess;
    if (--depth > 0) return result;
    for (int i = 0; i < queued; i++) {
        const ncclResult_t one = run(&grouped[i]);
        if (!result) result = one;
    }
    queued = 0;
    return result;
}

EXPORTED ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count,
                                    ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                    cudaStream_t stream) {
    return called("ncclAllReduce",
                  (struct operation){ALL_REDUCE, send, receive, count, type, op, comm, stream});
}

EXPORTED ncclResult_t ncclAllGather(const void *send, void *receive, size_t count,
                                    ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
    return called("ncclAllGather", (struct operation){ALL_GATHER, send, receive, count, type,
                                                      ncclSum, comm, stream});
}

EXPORTED ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count,
                                        ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                        cudaStream_t stream) {
    return called("ncclReduceScatter",
                  (struct operation){REDUCE_SCATTER, send, receive, count, type, op, comm, stream});
}

EXPORTED ncclResult_t ncclGetVersion(int *version) {
    const ncclResult_t result = injected("ncclGetVersion");
    *version = 22703;
    return result;
}

EXPORTED ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
    const ncclResult_t result = injected("ncclCommCount");
    *count = comm->world->ranks;
    return result;
}

EXPORTED ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
    *rank = comm->rank;
    return injected("ncclCommUserRank");
}

EXPORTED const char *ncclGetErrorString(ncclResult_t result) {
    return result == ncclRemoteError    ? "remote process exited or there was a network error"
           : result == ncclInvalidUsage ? "invalid usage"
                                        : "another error";
}
