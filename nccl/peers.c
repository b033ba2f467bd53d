/*
 * peers.c - ranks whose GPUs can write into each other's memory, as those of one machine can: each has a mailbox there, and
 * knows those of all others (tally.h, tally_enqueue_shared()); and arrays that are added up where they lie.
 *
 * Each rank has a card that says where its memory lies; one ncclAllGather brings all cards to all ranks. Memory of the
 * same process is reached by its address, once this GPU has access to that one's memory. Memory of another process is
 * opened by a handle of the driver's, which is that of the whole allocation. Then the ranks agree whether all have
 * reached all.
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

/* Calls of CUDA's driver beside those of struct nccl_calls. Those of the second paragraph may be NULL; without
 * them ranks do not reach each other. */
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
    int (*cuMemGetAddressRange)(uint64_t *base, size_t *bytes, uint64_t at);
};

enum { BUFFERS_MOST = 2 }; /* of a card */

/* A rank's card: where up to BUFFERS_MOST of its buffers lie. */
struct card {
    unsigned char machine[40]; /* the kernel's boot_id */
    uint64_t process[2];       /* its PID namespace, and its PID there */
    struct buffer {
        uint64_t at, offset; /* address in its own process; bytes from the allocation's start */
        int64_t has_handle;
        struct handle handle;
    } buffer[BUFFERS_MOST];
};

struct tally_nccl_peers {
    struct driver driver;
    struct ranks ranks;
    uint64_t mailbox;                     /* 0: none */
    uint64_t opened[TALLY_MAILBOX_RANKS]; /* those of other processes */
    tally_nccl_stream aside; /* a stream for the word that stops a wait on the caller's */
    uint32_t agreements;     /* how often arrays have been agreed on */
    struct agreed_arrays arrays[TALLY_NCCL_ARRAYS];
};

/* ---- The driver ------------------------------------------------------------------------------- */

/* Finds all calls. They are looked up anew each time, which is once for a communicator. */
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
                   {"cuIpcCloseMemHandle", offsetof(struct driver, cuIpcCloseMemHandle)},
                   {"cuMemGetAddressRange_v2", offsetof(struct driver, cuMemGetAddressRange)}};
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

static void write_place(const struct driver *d, uint64_t at, struct buffer *out) {
    uint64_t base = at;
    size_t bytes = 0;
    out->at = at;
    if (at == 0 || !d->cuIpcGetMemHandle || !d->cuMemGetAddressRange) return;
    if (d->cuMemGetAddressRange(&base, &bytes, at) != 0) return;
    out->offset = at - base;
    out->has_handle = d->cuIpcGetMemHandle(&out->handle, base) == 0;
}

static void write_card(const struct tally_nccl_peers *p, const uint64_t *workspace_layout,
                       unsigned count, struct card *c) {
    struct stat names;
    memset(c, 0, sizeof *c);
    FILE *id = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (id && fread(c->machine, 1, sizeof c->machine, id) == 0) c->machine[0] = 0;
    if (id) fclose(id);
    if (stat("/proc/self/ns/pid", &names) == 0) c->process[0] = (uint64_t)names.st_ino;
    c->process[1] = (uint64_t)getpid();
    for (unsigned i = 0; i < count; i++)
        write_place(&p->driver, workspace_layout[i], &c->buffer[i]);
}

/* Sets *at to the address at which this GPU finds a buffer of another rank. *opened becomes the memory that must
 * be closed again, or 0. */
static tally_status reach(const struct driver *d, const struct card *mine, const struct card *card,
                          unsigned i, size_t rank, uint64_t *at, uint64_t *opened) {
    const struct buffer *buffer = &card->buffer[i];
    *opened = 0;
    if (mine->machine[0] == 0 || memcmp(mine->machine, card->machine, sizeof mine->machine) != 0)
        return explain(TALLY_EUNSUPPORTED, "rank %zu is on another machine", rank);
    *at = buffer->at;
    if (buffer->at == 0) return TALLY_OK; /* the rank has no such buffer */
    if (memcmp(mine->process, card->process, sizeof mine->process) != 0) {
        const int error = d->cuIpcOpenMemHandle && buffer->has_handle
                              ? d->cuIpcOpenMemHandle(opened, buffer->handle, OPEN_WITH_ACCESS)
                              : -1;
        if (error == 0) *at = *opened + buffer->offset;
        return error == 0 ? TALLY_OK
                          : explain(TALLY_EUNSUPPORTED,
                                    "rank %zu's memory cannot be opened: error %d of CUDA's driver",
                                    rank, error);
    }
    void *context = NULL;
    int error = d->cuPointerGetAttribute && d->cuCtxEnablePeerAccess
                    ? d->cuPointerGetAttribute(&context, CONTEXT_OF_POINTER, buffer->at)
                    : -1;
    if (error == 0) error = d->cuCtxEnablePeerAccess(context, 0);
    return error == 0 || error == ACCESS_ENABLED_BEFORE
               ? TALLY_OK
               : explain(TALLY_EUNSUPPORTED,
                         "rank %zu's memory cannot be written: error %d of CUDA's driver", rank,
                         error);
}

/* Exchanges cards, by way of memory behind the mailbox; `cards` has room for all ranks'. Waits. */
static tally_status exchange(const struct tally_nccl_peers *p, struct card *cards,
                             tally_nccl_comm comm, tally_nccl_stream stream) {
    const size_t ranks = p->ranks.count, mine = p->ranks.mine;
    const uint64_t all = p->mailbox + TALLY_MAILBOX_BYTES(ranks), own = all + mine * sizeof *cards;
    tally_status s = driver_status(nccl.cuMemcpyHtoDAsync(own, &cards[mine], sizeof *cards, stream),
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

/* Does the part of tally_nccl_peers_open() that needs the other ranks: reaches their mailboxes, and writes their
 * addresses into this rank's. */
static tally_status meet(struct tally_nccl_peers *p, tally_nccl_comm comm,
                         tally_nccl_stream stream) {
    struct card cards[TALLY_MAILBOX_RANKS];
    uint64_t address[TALLY_MAILBOX_RANKS] = {0};
    const size_t ranks = p->ranks.count, mine = p->ranks.mine;
    write_card(p, &p->mailbox, 1, &cards[mine]);
    const struct card own = cards[mine];
    tally_status s = driver_status(
        nccl.cuMemsetD8Async(p->mailbox, 0, TALLY_MAILBOX_BYTES(ranks), stream), "cuMemsetD8Async");
    if (s == TALLY_OK) s = exchange(p, cards, comm, stream);
    if (s != TALLY_OK) return s;
    address[mine] = p->mailbox;
    for (size_t rank = 0; rank < ranks && s == TALLY_OK; rank++)
        if (rank != mine)
            s = reach(&p->driver, &own, &cards[rank], 0, rank, &address[rank], &p->opened[rank]);
    if (s == TALLY_OK)
        s = driver_status(nccl.cuMemcpyHtoDAsync(p->mailbox + 8 * TALLY_MAILBOX_ADDRESSES, address,
                                                 8 * ranks, stream),
                          "cuMemcpyHtoDAsync");
    /* Waits, so that nobody writes into a mailbox that is not ready. */
    return ranks_agree(comm, 0, s, (void *)(uintptr_t)(p->mailbox + TALLY_MAILBOX_BYTES(ranks)),
                       stream);
}

tally_status tally_nccl_peers_open(tally_nccl_comm comm, tally_nccl_stream stream,
                                   tally_nccl_peers **out) {
    struct ranks ranks;
    if (!out) return explain(TALLY_EINVAL, "tally_nccl_peers_open: out is NULL");
    *out = NULL;
    tally_status s = ranks_of(comm, &ranks);
    if (s != TALLY_OK) return s;
    if (ranks.count > TALLY_MAILBOX_RANKS)
        return explain(TALLY_EUNSUPPORTED, "%zu ranks, where there may be %d", ranks.count,
                       TALLY_MAILBOX_RANKS);
    tally_nccl_peers *p = calloc(1, sizeof *p);
    if (!p) return explain(TALLY_ENOMEM, "no memory");
    p->ranks = ranks;
    s = find_driver(&p->driver);
    const struct driver driver = p->driver;
    const size_t cards = sizeof(struct card) * ranks.count;
    const size_t bytes =
        TALLY_MAILBOX_BYTES(ranks.count) + (cards > AGREE_BYTES ? cards : AGREE_BYTES);
    if (s == TALLY_OK && driver.cuStreamCreate)
        s = driver_status(driver.cuStreamCreate(&p->aside, NON_BLOCKING), "cuStreamCreate");
    if (s == TALLY_OK && driver.cuMemAlloc)
        s = driver_status(driver.cuMemAlloc(&p->mailbox, bytes), "cuMemAlloc");
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
        nccl.cuMemsetD8Async(peers->mailbox + 8 * TALLY_MAILBOX_STOP, 1, 1, peers->aside),
        "cuMemsetD8Async");
}

static void close_opened(const tally_nccl_peers *p, uint64_t *opened) {
    for (size_t rank = 0; rank < p->ranks.count; rank++) {
        if (opened[rank]) p->driver.cuIpcCloseMemHandle(opened[rank]);
        opened[rank] = 0;
    }
}

static void forget(const tally_nccl_peers *p, struct agreed_arrays *arrays) {
    close_opened(p, arrays->opened[0]);
    close_opened(p, arrays->opened[1]);
    arrays->number = 0;
}

void tally_nccl_peers_close(tally_nccl_peers *peers) {
    if (!peers) return;
    for (size_t i = 0; i < TALLY_NCCL_ARRAYS; i++)
        forget(peers, &peers->arrays[i]);
    close_opened(peers, peers->opened);
    if (peers->aside) peers->driver.cuStreamDestroy(peers->aside);
    if (peers->mailbox) peers->driver.cuMemFree(peers->mailbox);
    free(peers);
}

void *peers_mailbox(const tally_nccl_peers *peers) {
    return (void *)(uintptr_t)peers->mailbox;
}

/* ---- Arrays ----------------------------------------------------------------------------------- */

/* Returns the entry of these arrays, or else a free one; NULL if none is free. */
static struct agreed_arrays *entry_for(tally_nccl_peers *p, const void *x, const void *out) {
    struct agreed_arrays *unused = NULL;
    for (size_t i = 0; i < TALLY_NCCL_ARRAYS; i++) {
        struct agreed_arrays *a = &p->arrays[i];
        if (a->number && a->x == x && a->out == out) return a;
        if (!a->number && !unused) unused = a;
    }
    return unused;
}

tally_status peers_agree_arrays(tally_nccl_peers *p, tally_nccl_comm comm, tally_nccl_stream stream,
                                const void *x, void *out, tally_status mine) {
    struct card cards[TALLY_MAILBOX_RANKS];
    struct agreed_arrays *a = entry_for(p, x, out), made = {.x = x, .out = out};
    const uint64_t workspace_layout[BUFFERS_MOST] = {(uint64_t)(uintptr_t)x,
                                                     (uint64_t)(uintptr_t)out};
    const size_t own = p->ranks.mine;
    char why[400];
    if (mine == TALLY_OK && !a)
        mine = explain(TALLY_ENOMEM, "%d pairs of arrays have been agreed on", TALLY_NCCL_ARRAYS);
    snprintf(why, sizeof why, "%s", tally_nccl_error());
    write_card(p, workspace_layout, BUFFERS_MOST, &cards[own]);
    const struct card card = cards[own];
    tally_status s = exchange(p, cards, comm, stream);
    if (s != TALLY_OK) return s;
    made.number = ++p->agreements;
    if (mine != TALLY_OK) s = explain(mine, "%s", why);
    for (size_t rank = 0; rank < p->ranks.count && s == TALLY_OK; rank++)
        for (unsigned i = 0; i < BUFFERS_MOST && s == TALLY_OK; i++) {
            made.at[i][rank] = workspace_layout[i];
            if (rank != own)
                s = reach(&p->driver, &card, &cards[rank], i, rank, &made.at[i][rank],
                          &made.opened[i][rank]);
        }
    s = ranks_agree(comm, 0, s,
                    (void *)(uintptr_t)(p->mailbox + TALLY_MAILBOX_BYTES(p->ranks.count)), stream);
    if (s != TALLY_OK) {
        forget(p, &made);
        return s;
    }
    forget(p, a);
    *a = made;
    return s;
}

const struct agreed_arrays *peers_find_arrays(const tally_nccl_peers *p, const void *x,
                                              const void *out) {
    for (size_t i = 0; i < TALLY_NCCL_ARRAYS; i++)
        if (p->arrays[i].number && p->arrays[i].x == x && p->arrays[i].out == out)
            return &p->arrays[i];
    return NULL;
}
