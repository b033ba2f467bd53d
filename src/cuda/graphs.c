/* graphs.c - see graphs.h. */
#include "cuda/graphs.h"

#include "base/hash.h"
#include "base/invariant.h"
#include "cuda/launch.h"

#include <stdlib.h>
#include <string.h>

enum {
    HELD = 4,            /* the most launches that are held back */
    HELD_ARGUMENTS = 40, /* the most arguments of all of these launches */
    HELD_BYTES = 12288,  /* the most bytes of all of these arguments */
    GRAPHS = 256,        /* entries of the cache: sets of launches that are known */
    WAYS = 4,            /* the cache's associativity: entries in which a set may be */
    CALLS = 8            /* calls of a set before a graph is made of it */
};

/* A call's launches without their arguments. Two calls share a graph if these are the same to the last byte:
 * what is unused is 0. */
struct launches {
    CUstream queue;
    size_t count;
    struct {
        struct gpu_kernel *kernel;
        unsigned grid, block;
    } launch[HELD];
};

/* A set of launches that has been seen, and its graph if it has one. */
struct known_graph {
    struct launches launches;
    uint64_t last;  /* the number of its last call; 0: the place is free */
    unsigned calls; /* how many there were before it had a graph */
    bool has_failed;
    CUgraph graph; /* NULL if `exec` is NULL */
    CUgraphExec exec;
    CUgraphNode node[HELD];
};

struct graphs {
    bool holds;
    struct launches held;
    void *argument[HELD_ARGUMENTS]; /* pointers into `bytes`, for all launches one after another */
    size_t first[HELD + 1];         /* each launch's first argument */
    size_t used;                    /* bytes */
    _Alignas(16) unsigned char bytes[HELD_BYTES];
    uint64_t call; /* how many calls there have been */
    struct known_graph known[GRAPHS];
};

/* ---- Held back --------------------------------------------------------------------------------- */

void graphs_hold(struct gpu *gpu) {
    if (!gpu->graphs) gpu->graphs = calloc(1, sizeof *gpu->graphs);
    if (gpu->graphs) gpu->graphs->holds = true;
}

static size_t aligned(size_t bytes) {
    return (bytes + 15) / 16 * 16;
}

bool graphs_take(struct gpu *gpu, struct gpu_kernel *kernel, unsigned grid, unsigned block,
                 const struct gpu_argument *arguments, size_t count) {
    struct graphs *g = gpu->graphs;
    if (!g || !g->holds || !kernel->program->stays) return false;
    struct launches *held = &g->held;
    const size_t n = held->count;
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += aligned(arguments[i].memory ? sizeof(void *) : arguments[i].size);
    if (n == HELD || g->first[n] + count > HELD_ARGUMENTS || bytes > HELD_BYTES - g->used)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct gpu_argument *a = &arguments[i];
        const size_t size = a->memory ? sizeof(void *) : a->size;
        unsigned char *to = g->bytes + g->used;
        memcpy(to, a->memory ? (const void *)&a->memory->native : a->value, size);
        g->argument[g->first[n] + i] = to;
        g->used += aligned(size);
    }
    held->queue = gpu->queue;
    held->launch[n].kernel = kernel;
    held->launch[n].grid = grid;
    held->launch[n].block = block;
    g->first[n + 1] = g->first[n] + count;
    held->count++;
    return true;
}

bool graphs_has_held(const struct gpu *gpu) {
    return gpu->graphs && gpu->graphs->held.count > 0;
}

static void clear_held(struct graphs *g) {
    memset(&g->held, 0, sizeof g->held);
    g->used = 0;
}

/* ---- Graphs ------------------------------------------------------------------------------------ */

static bool has_graphs(void) {
    return cu.cuThreadExchangeStreamCaptureMode && cu.cuGraphCreate && cu.cuGraphDestroy &&
           cu.cuGraphAddNode && cu.cuGraphInstantiateWithFlags &&
           cu.cuGraphExecKernelNodeSetParams && cu.cuGraphLaunch && cu.cuGraphExecDestroy;
}

/* Destroys a set's graph. If it is running, the driver frees it when it has ended. */
static void destroy(struct known_graph *k) {
    if (k->exec) cu.cuGraphExecDestroy(k->exec);
    if (k->graph) cu.cuGraphDestroy(k->graph);
    k->exec = NULL;
    k->graph = NULL;
}

static CUkernelNodeParams node_of(const struct graphs *g, size_t i) {
    return (CUkernelNodeParams){.func = g->held.launch[i].kernel->native,
                                .gridDimX = g->held.launch[i].grid,
                                .gridDimY = 1,
                                .gridDimZ = 1,
                                .blockDimX = g->held.launch[i].block,
                                .blockDimY = 1,
                                .blockDimZ = 1,
                                .kernelParams = (void **)&g->argument[g->first[i]]};
}

/* Makes a graph of the held launches: one kernel after another. After an error there is none. */
static CUresult make(const struct graphs *g, struct known_graph *k) {
    CUresult error = cu.cuGraphCreate(&k->graph, 0);
    if (error) k->graph = NULL;
    for (size_t i = 0; i < g->held.count && error == CUDA_SUCCESS; i++) {
        CUgraphNodeParams what = {.of.kernel = node_of(g, i)};
        CUgraphEdgeData how = {0};
        if (g->held.launch[i].kernel->program->begins_early) {
            how.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
            how.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
        }
        const bool is_first = i == 0;
        error = cu.cuGraphAddNode(&k->node[i], k->graph, is_first ? NULL : &k->node[i - 1],
                                  is_first ? NULL : &how, !is_first, &what);
    }
    if (error == CUDA_SUCCESS) error = cu.cuGraphInstantiateWithFlags(&k->exec, k->graph, 0);
    if (error) {
        k->exec = NULL;
        destroy(k);
    }
    return error;
}

/* Returns the cache's entry for the held launches. If there is none, the least recently used of the WAYS
 * entries in which they may be becomes theirs. */
static struct known_graph *find(struct graphs *g) {
    const uint64_t hash = hash_words(&g->held, sizeof g->held);
    struct known_graph *set = &g->known[hash % (GRAPHS / WAYS) * WAYS], *oldest = set;
    for (size_t i = 0; i < WAYS; i++) {
        if (set[i].last > 0 && memcmp(&set[i].launches, &g->held, sizeof g->held) == 0)
            return &set[i];
        if (set[i].last < oldest->last) oldest = &set[i];
    }
    destroy(oldest);
    *oldest = (struct known_graph){.launches = g->held};
    return oldest;
}

/* Launches the held launches as a graph. Returns false, having launched nothing, where they have none. The driver may
 * allocate memory for a graph until it has been launched once, which captures of other streams would forbid. So a new
 * graph is made, and first launched, in the relaxed mode. */
static bool launch_graph(struct gpu *gpu, CUresult *error) {
    struct graphs *g = gpu->graphs;
    if (g->held.count < 2 || !has_graphs() || launch_is_captured(gpu->queue)) return false;
    struct known_graph *k = find(g);
    k->last = ++g->call;
    if (!k->exec && (k->has_failed || k->calls++ < CALLS)) return false;
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool is_new = !k->exec;
    if (is_new) k->has_failed = cu.cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS;
    const bool is_relaxed = is_new && !k->has_failed;
    if (is_relaxed) k->has_failed = make(g, k) != CUDA_SUCCESS;
    for (size_t i = 0; i < g->held.count && !is_new && !k->has_failed; i++) {
        const CUkernelNodeParams what = node_of(g, i);
        k->has_failed = cu.cuGraphExecKernelNodeSetParams(k->exec, k->node[i], &what);
    }
    if (!k->has_failed) *error = cu.cuGraphLaunch(k->exec, gpu->queue);
    if (*error == CUDA_ERROR_OUT_OF_MEMORY) { /* separate launches need less memory */
        k->has_failed = true;
        *error = CUDA_SUCCESS;
    }
    if (is_relaxed) cu.cuThreadExchangeStreamCaptureMode(&mode);
    if (k->has_failed) destroy(k);
    return !k->has_failed;
}

/* Puts the held launches on the queue; the context is current. */
static CUresult launch_held(struct gpu *gpu) {
    struct graphs *g = gpu->graphs;
    CUresult error = CUDA_SUCCESS;
    const bool is_launched = launch_graph(gpu, &error);
    for (size_t i = 0; i < g->held.count && !is_launched && error == CUDA_SUCCESS; i++)
        error = launch_kernel(gpu, g->held.launch[i].kernel, g->held.launch[i].grid,
                              g->held.launch[i].block, &g->argument[g->first[i]]);
    return error;
}

tally_status graphs_flush(struct gpu *gpu) {
    struct graphs *g = gpu->graphs;
    if (!graphs_has_held(gpu)) return TALLY_OK;
    TALLY_ASSERT(g->held.queue == gpu->queue);
    tally_status status = cuda_enter(gpu);
    if (status == TALLY_OK) status = cuda_leave(gpu, launch_held(gpu), "launching a kernel");
    clear_held(g);
    return status;
}

tally_status graphs_send(struct gpu *gpu) {
    const tally_status status = graphs_flush(gpu);
    if (gpu->graphs) gpu->graphs->holds = false;
    return status;
}

void graphs_close(struct gpu *gpu, bool alive) {
    for (size_t i = 0; i < GRAPHS && gpu->graphs && alive; i++)
        destroy(&gpu->graphs->known[i]);
    free(gpu->graphs);
    gpu->graphs = NULL;
}
