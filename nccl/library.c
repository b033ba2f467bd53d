/* library.c - see library.h. */
#include "library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

struct nccl_calls nccl;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ready; /* all of `nccl` is set */

/* ---- Lines ---------------------------------------------------------------------------------- */

const char *tally_nccl_error(void) {
    return explanation();
}

tally_status nccl_status(nccl_result result, const char *what) {
    if (result == NCCL_SUCCESS) return TALLY_OK;
    if (result == NCCL_IN_PROGRESS)
        return explain(TALLY_EUNSUPPORTED, "%s: a communicator that does not block", what);
    return explain(result == NCCL_INVALID_ARGUMENT || result == NCCL_INVALID_USAGE ? TALLY_EINVAL
                                                                                   : TALLY_ELOST,
                   "%s: %s", what, nccl.ncclGetErrorString(result));
}

tally_status driver_status(int error, const char *what) {
    return error == 0 ? TALLY_OK
                      : explain(TALLY_ELOST, "%s: error %d of CUDA's driver", what, error);
}

/* ---- Libraries ------------------------------------------------------------------------------ */

static const struct entry {
    int of_driver;
    const char *symbol;
    size_t offset;
} entries[] = {
#define NCCL(name)                                                                                 \
    { 0, #name, offsetof(struct nccl_calls, name) }
#define DRIVER(name, suffix)                                                                       \
    { 1, #name #suffix, offsetof(struct nccl_calls, name) }
    NCCL(ncclGetVersion),
    NCCL(ncclGetErrorString),
    NCCL(ncclCommCount),
    NCCL(ncclCommUserRank),
    NCCL(ncclGroupStart),
    NCCL(ncclGroupEnd),
    NCCL(ncclAllReduce),
    NCCL(ncclAllGather),
    NCCL(ncclReduceScatter),
    DRIVER(cuMemsetD8Async, ),
    DRIVER(cuMemcpyHtoDAsync, _v2),
    DRIVER(cuMemcpyDtoHAsync, _v2),
    DRIVER(cuStreamSynchronize, )};

static tally_status load(void) {
    static const char *const file[] = {"libnccl.so.2", "libcuda.so.1"};
    static const char *const name[] = {"no NCCL", "no CUDA"};
    struct nccl_calls found;
    void *library[2];
    for (int i = 0; i < 2; i++) {
        library[i] = dlopen(file[i], RTLD_NOW | RTLD_LOCAL);
        if (!library[i]) return explain(TALLY_EDEVICE, "%s: %s was not found", name[i], file[i]);
    }
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        const struct entry *e = &entries[i];
        void *symbol = dlsym(library[e->of_driver], e->symbol);
        if (!symbol)
            return explain(TALLY_EDEVICE, "%s: %s lacks %s", name[e->of_driver], file[e->of_driver],
                           e->symbol);
        memcpy((char *)&found + e->offset, &symbol, sizeof symbol);
    }
    nccl = found;
    ready = 1;
    return TALLY_OK;
}

tally_status library_ready(void) {
    pthread_mutex_lock(&lock);
    tally_status s = ready ? TALLY_OK : load();
    pthread_mutex_unlock(&lock);
    return s;
}

tally_status tally_nccl_version(int *version) {
    if (!version) return explain(TALLY_EINVAL, "tally_nccl_version: version is NULL");
    tally_status s = library_ready();
    return s == TALLY_OK ? nccl_status(nccl.ncclGetVersion(version), "ncclGetVersion") : s;
}
