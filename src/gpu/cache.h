/*
 * cache.h - the programs that a struct gpu has compiled, with the kernels that were asked for.
 *
 * A program is known by its root (embed.h): building the same root again returns the same program.
 *
 * How long they live. A program without a prelude is one of a fixed number that src/kernels can make; it
 * and its kernels live until the struct gpu is closed. A program with a prelude holds a user's operator,
 * and of those a long-running process may make any number: the cache keeps at most GPU_CACHE_USERS of
 * them, and build() drops the least recently built one to make room for a new one. So such a program and
 * its kernels are to be used before the next build() on the same struct gpu, and asked for again after it.
 * (Debug builds stop at a launch of a kernel that has been dropped.)
 *
 * A machine drops a program only once no launch can use it any more (struct gpu_cache_calls, unload). A
 * program that a machine has marked as `stays` is never dropped, and does not count.
 */
#ifndef TALLY_GPU_CACHE_H
#define TALLY_GPU_CACHE_H

#include "gpu/gpu.h"
#include "gpu/tuning.h"

#include <sys/queue.h>

#define GPU_PROGRAM_PARTS 16 /* the most modules of a program: CUDA may have one for each kernel */

struct gpu_kernel {
    void *native; /* a CUfunction, a cl_kernel, a model_kernel */
    struct gpu_program *program;
    char *name;
    LIST_ENTRY(gpu_kernel) link;
};

struct gpu_program {
    /* OpenCL: a cl_program. The model: a struct model_program. CUDA: a CUmodule of all kernels, or one of each kernel
     * compiled so far. The rest is NULL. */
    void *native[GPU_PROGRAM_PARTS];
    uint64_t made[GPU_PROGRAM_PARTS]; /* by_kernel: the hash of the name of each module's kernel */
    char *root, *file;                /* what it was made from, and the file's name */
    bool by_kernel;                   /* its kernels are compiled when they are asked for */
    bool stays;                       /* until the cache is closed */
    bool elsewhere;    /* a launch of it has gone to a queue that is not the struct gpu's */
    bool begins_early; /* its launches may begin before what was enqueued earlier has ended */
    LIST_HEAD(, gpu_kernel) kernels;
    TAILQ_ENTRY(gpu_program) link;
};

/* The text of a program: the arguments of struct gpu_api's build(), and their root. */
struct gpu_text {
    const char *file, *prelude, *root;
    const char *const *defines;
    size_t count;
};

/* The machine's own calls. */
struct gpu_cache_calls {
    /* Compiles a text to program->native[0]; or makes it a program whose kernels find() compiles. */
    tally_status (*compile)(struct gpu *gpu, const struct gpu_text *text,
                            struct gpu_program *program);
    /* Finds a kernel of a program by its name. */
    tally_status (*find)(struct gpu *gpu, struct gpu_program *program, const char *name,
                         void **native);
    /* Gives a kernel back; NULL where nothing is to be done. */
    void (*drop)(void *kernel);
    /* Gives a program back once no launch can use it, waiting for those that are under way. Returns false,
     * having changed nothing, where that cannot be now. */
    bool (*unload)(struct gpu *gpu, struct gpu_program *program);
};

TAILQ_HEAD(gpu_program_list, gpu_program);

struct gpu_cache {
    const struct gpu_cache_calls *calls;
    struct gpu_program_list programs; /* the most recently built first */
    struct gpu_program_list dropped;  /* debug builds: kernels may still point at these */
    unsigned users;                   /* programs that may be dropped */
};

/* Begins an empty cache. */
void gpu_cache_open(struct gpu_cache *cache, const struct gpu_cache_calls *calls);

/* Do the work of struct gpu_api's build() and kernel(). Messages name `device`, such as
 * "cuda:0". */
tally_status gpu_cache_build(struct gpu_cache *cache, struct gpu *gpu, const char *device,
                             struct gpu_text text, struct gpu_program **out);
tally_status gpu_cache_kernel(struct gpu_cache *cache, struct gpu *gpu, const char *device,
                              struct gpu_program *program, const char *name,
                              struct gpu_kernel **out);

/* Marks a program as one that stays. */
void gpu_cache_stays(struct gpu_cache *cache, struct gpu_program *program);

/* Closes the cache: calls unload() for every program, whatever that returns, and frees the cache's
 * memory. With unload NULL it calls nothing, as the driver is gone. */
void gpu_cache_close(struct gpu_cache *cache, struct gpu *gpu,
                     bool (*unload)(struct gpu *gpu, struct gpu_program *program));

#endif
