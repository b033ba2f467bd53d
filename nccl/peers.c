/*
 * peers.c - ranks whose GPUs can write into each other's memory, as those of one machine can: each has a post there, and
 * knows those of all others (tally.h, tally_enqueue_shared()).
 *
 * The ranks tell one another about their posts in one ncclAllGather. A post of the same process is reached by its
 * address, once this GPU may use that one's memory; a post of another process by a handle of the driver's. Then they
 * agree whether all have reached all.
 */
#include "ranks.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct handle { /* CUipcMemHandle */
    unsigned char bytes[64];
};

enum {
    ACCESS_ENABLED_BEFORE = 704,
    OPEN_WITH_ACCESS = 1,
    CONTEXT_OF_POINTER = 1,
    NON_BLOCKING = 1
};

/* What is needed of CUDA's driver beside struct nccl_calls; those of the second paragraph may be NULL. */
struct driver {
    int (*cuMemAlloc)(uint64_t *at, size_t bytes);
    int (*cuMemFree)(uint64_t at);
    int (*cuStreamCreate)(void **stream, unsigned flags);
    int (*cuStreamDestroy)(void *stream);

    int (*cuPointerGetAttribute)(void *value, int attribute, uint64_t at);
    int (*cuCtxEnablePeerAccess)(void *context, unsigned flags);
    int (*cuIpcGetMemHandle)(struct handle *out, uint64_t at);
    int (*cuIpcOpenMemHandle)(uint64_t *at, struct handle handle, unsigned flags);
    int (*cuIpcCloseMemHandle)(uint64_t at);
};

/* What a rank tells the others. */
struct card {
    unsigned char machine[40]; /* the text that the kernel made when it started */
    uint64_t process[2]; /* the space of process numbers that it is in, and its number there */
    uint64_t at;         /* its post, in its own process */
    int64_t has_handle;
    struct handle handle;
};

struct tally_nccl_peers {
    struct driver driver;
    struct ranks ranks;
    uint64_t post;                     /* 0: none */
    uint64_t opened[TALLY_POST_RANKS]; /* those of other processes */
    tally_nccl_stream aside;           /* for the word that stops a wait */
};

/* ---- The driver ------------------------------------------------------------------------------- */

/* Finds all, each time anew: it is done once for a communicator. */
static tally_status find_driver(struct driver *found) {
    const struct {
        const char *symbol;
        size_t offset;
    } entries[] = {{"cuMemAlloc_v2", offsetof(struct driver, cuMemAlloc)},
                   {"cuMemFree_v2", offsetof(struct driver, cuMemFree)},
                   {"cuStreamCreate", offsetof(struct driver, cuStreamCreate)},
                   {"cuStreamDestroy_v2", offsetof(struct driver, cuStreamDestroy)},
                   {"cuPointerGetAttribute", offsetof(struct driver, cuPointerGetAttribute)},
                   {"cuCtxEnablePeerAccess", offsetof(struct driver, cuCtxEnablePeerAccess)},
                   {"cuIpcGetMemHandle", offsetof(struct driver, cuIpcGetMemHandle)},
                   {"cuIpcOpenMemHandle_v2", offsetof(struct driver, cuIpcOpenMemHandle)},
                   {"cuIpcCloseMemHandle", offsetof(struct driver, cuIpcCloseMemHandle)}};
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return explain(TALLY_EDEVICE, "no CUDA: libcuda.so.1 was not found");
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *function = dlsym(library, entries[i].symbol);
        memcpy((char *)found + entries[i].offset, &function, sizeof function);
    }
    if (!found->cuMemAlloc || !found->cuMemFree || !found->cuStreamCreate ||
        !found->cuStreamDestroy)
        return explain(TALLY_EDEVICE, "no CUDA: libcuda.so.1 lacks a call");
    return TALLY_OK;
}

/* ---- Cards ------------------------------------------------------------------------------------ */

static void write_card(const struct tally_nccl_peers *p, struct card *c) {
    struct stat names;
    memset(c, 0, sizeof *c);
    FILE *id = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (id && fread(c->machine, 1, sizeof c->machine, id) == 0) c->machine[0] = 0;
    if (id) fclose(id);
    if (stat("/proc/self/ns/pid", &names) == 0) c->process[0] = (uint64_t)names.st_ino;
    c->process[1] = (uint64_t)getpid();
    c->at = p->post;
    c->has_handle =
        p->driver.cuIpcGetMemHandle && p->driver.cuIpcGetMemHandle(&c->handle, p->post) == 0;
}

/* Makes *at the address at which this GPU finds the post of another rank. */
static tally_status reach(struct tally_nccl_peers *p, const struct card *mine,
                          const struct card *card, size_t rank, uint64_t *at) {
    const struct driver *d = &p->driver;
    if (mine->machine[0] == 0 || memcmp(mine->machine, card->machine, sizeof mine->machine) != 0)
        return explain(TALLY_EUNSUPPORTED, "rank %zu is on another machine", rank);
    *at = card->at;
    if (memcmp(mine->process, card->process, sizeof mine->process) != 0) {
        const int error = d->cuIpcOpenMemHandle && card->has_handle
                              ? d->cuIpcOpenMemHandle(at, card->handle, OPEN_WITH_ACCESS)
                              : -1;
        if (error == 0) p->opened[rank] = *at;
        return error == 0 ? TALLY_OK
                          : explain(TALLY_EUNSUPPORTED,
                                    "rank %zu's memory cannot be opened: error %d of CUDA's driver",
                                    rank, error);
    }
    void *context = NULL;
    int error = d->cuPointerGetAttribute && d->cuCtxEnablePeerAccess
                    ? d->cuPointerGetAttribute(&context, CONTEXT_OF_POINTER, card->at)
                    : -1;
    if (error == 0) error = d->cuCtxEnablePeerAccess(context, 0);
    return error == 0 || error == ACCESS_ENABLED_BEFORE
               ? TALLY_OK
               : explain(TALLY_EUNSUPPORTED,
                         "rank %zu's memory cannot be written: error %d of CUDA's driver", rank,
                         error);
}

/* Exchanges cards, by way of the post; `cards` has room for all ranks'. Waits. */
static tally_status exchange(const struct tally_nccl_peers *p, struct card *cards,
                             tally_nccl_comm comm, tally_nccl_stream stream) {
    const size_t ranks = p->ranks.count, mine = p->ranks.mine;
    const uint64_t all = p->post + TALLY_POST_BYTES(ranks), own = all + mine * sizeof *cards;
    tally_status s = driver_status(
        nccl.cuMemsetD8Async(p->post, 0, TALLY_POST_BYTES(ranks), stream), "cuMemsetD8Async");
    if (s == TALLY_OK)
        s = driver_status(nccl.cuMemcpyHtoDAsync(own, &cards[mine], sizeof *cards, stream),
                          "cuMemcpyHtoDAsync");
    if (s == TALLY_OK)
        s = nccl_status(nccl.ncclAllGather((void *)(uintptr_t)own, (void *)(uintptr_t)all,
                                           sizeof *cards, NCCL_INT8, comm, stream),
                        "ncclAllGather");
    if (s == TALLY_OK)
        s = driver_status(nccl.cuMemcpyDtoHAsync(cards, all, ranks * sizeof *cards, stream),
                          "cuMemcpyDtoHAsync");
    if (s == TALLY_OK) s = driver_status(nccl.cuStreamSynchronize(stream), "cuStreamSynchronize");
    return s;
}

/* ---- The public calls ------------------------------------------------------------------------- */

/* All that needs the other ranks. */
static tally_status meet(struct tally_nccl_peers *p, tally_nccl_comm comm,
                         tally_nccl_stream stream) {
    struct card cards[TALLY_POST_RANKS];
    uint64_t address[TALLY_POST_RANKS] = {0};
    const size_t ranks = p->ranks.count, mine = p->ranks.mine;
    write_card(p, &cards[mine]);
    const struct card own = cards[mine];
    tally_status s = exchange(p, cards, comm, stream);
    if (s != TALLY_OK) return s;
    address[mine] = p->post;
    for (size_t rank = 0; rank < ranks && s == TALLY_OK; rank++)
        if (rank != mine) s = reach(p, &own, &cards[rank], rank, &address[rank]);
    if (s == TALLY_OK)
        s = driver_status(
            nccl.cuMemcpyHtoDAsync(p->post + 8 * TALLY_POST_ADDRESSES, address, 8 * ranks, stream),
            "cuMemcpyHtoDAsync");
    /* Waits, so that nobody writes into a post that is not ready. */
    return ranks_agree(comm, 0, s, (void *)(uintptr_t)(p->post + TALLY_POST_BYTES(ranks)), stream);
}

tally_status tally_nccl_peers_open(tally_nccl_comm comm, tally_nccl_stream stream,
                                   tally_nccl_peers **out) {
    struct ranks ranks;
    if (!out) return explain(TALLY_EINVAL, "tally_nccl_peers_open: out is NULL");
    *out = NULL;
    tally_status s = ranks_of(comm, &ranks);
    if (s != TALLY_OK) return s;
    if (ranks.count > TALLY_POST_RANKS)
        return explain(TALLY_EUNSUPPORTED, "%zu ranks, where there may be %d", ranks.count,
                       TALLY_POST_RANKS);
    tally_nccl_peers *p = calloc(1, sizeof *p);
    if (!p) return explain(TALLY_ENOMEM, "no memory");
    p->ranks = ranks;
    s = find_driver(&p->driver);
    const struct driver driver = p->driver;
    const size_t cards = sizeof(struct card) * ranks.count;
    const size_t bytes =
        TALLY_POST_BYTES(ranks.count) + (cards > AGREE_BYTES ? cards : AGREE_BYTES);
    if (s == TALLY_OK && driver.cuStreamCreate)
        s = driver_status(driver.cuStreamCreate(&p->aside, NON_BLOCKING), "cuStreamCreate");
    if (s == TALLY_OK && driver.cuMemAlloc)
        s = driver_status(driver.cuMemAlloc(&p->post, bytes), "cuMemAlloc");
    if (s == TALLY_OK) s = meet(p, comm, stream);
    if (s == TALLY_OK) {
        *out = p;
        return s;
    }
    char why[400];
    snprintf(why, sizeof why, "%s", tally_nccl_error());
    tally_nccl_peers_close(p);
    return explain(s, "%s", why);
}

tally_status tally_nccl_peers_abort(tally_nccl_peers *peers) {
    if (!peers) return explain(TALLY_EINVAL, "tally_nccl_peers_abort: peers is NULL");
    return driver_status(
        nccl.cuMemsetD8Async(peers->post + 8 * TALLY_POST_STOP, 1, 1, peers->aside),
        "cuMemsetD8Async");
}

void tally_nccl_peers_close(tally_nccl_peers *peers) {
    if (!peers) return;
    for (size_t rank = 0; rank < peers->ranks.count; rank++)
        if (peers->opened[rank]) peers->driver.cuIpcCloseMemHandle(peers->opened[rank]);
    if (peers->aside) peers->driver.cuStreamDestroy(peers->aside);
    if (peers->post) peers->driver.cuMemFree(peers->post);
    free(peers);
}

void *peers_post(const tally_nccl_peers *peers) {
    return (void *)(uintptr_t)peers->post;
}
