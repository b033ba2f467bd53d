/*
 * gpu.h - the interface of the machines that run kernels: memory, programs, launches.
 *
 * Three machines stand behind this interface: CUDA (src/cuda), OpenCL (src/opencl) and the model
 * (src/model). The ladder and the production reductions are written once, against it. Each machine is one
 * struct gpu_api; each opened device one struct gpu.
 *
 * Work is in order: launches, copies and fills of one struct gpu run one after another, as in one stream,
 * and may still be under way when a call returns; read, finish and elapsed wait. One thread uses a struct
 * gpu at a time; any number may be open. Failures are status codes with a line for tally_error():
 * TALLY_EDEVICE no driver or no such device, TALLY_ENOMEM no memory on the host or the device,
 * TALLY_ECOMPILE the compiler's own words, TALLY_ELOST a launch failed or the device is lost. After a
 * failure other calls on other devices, and newly opened ones, work.
 */
#ifndef TALLY_GPU_H
#define TALLY_GPU_H

#include "gpu/machines.h"
#include "tally.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpu;         /* an opened device */
struct gpu_memory;  /* a buffer of its memory */
struct gpu_program; /* a compiled source */
struct gpu_kernel;  /* one kernel of a program; lives as long as that: cache.h says how long */

/* A device's capabilities, which the code above may rely on. Code asks for a fact, never for the
 * machine's name. */
struct gpu_facts {
    char name[128];      /* the maker's name for it, with the platform where that matters */
    unsigned units;      /* multiprocessors, compute units; 0 where the driver does not say */
    unsigned block_max;  /* threads a block may have */
    unsigned block_only; /* blocks of production kernels must have so many threads; 0: any number */
    size_t shared_max;   /* bytes of shared memory a block may have */
    uint64_t memory;     /* bytes of global memory */
    uint64_t allocation_max; /* bytes of the largest single buffer */
    int doubles;             /* f64 arithmetic */
    bool has_slow_doubles;   /* its f32 arithmetic is many times as fast */
    int atomics64;           /* 64-bit atomics */
    int major, minor;        /* compute capability; 0 but for CUDA */
    bool is_simulated;       /* it counts what a kernel does, and has no time */
    bool is_cpu; /* its units are a CPU's cores: production kernels want blocks of one thread */
    bool reads_host_memory; /* as fast as its own: adopt() takes an array where it lies */
    /* A kernel's memory is an address, with an alignment: wrap() takes that, and so does adopt(). */
    bool has_addresses;
    /* Kernels were compiled with the library: the ladder's take blocks of any size up to block_max. */
    bool is_precompiled;
    /* A branch that all threads of a block take, or none of them, may hold a barrier. */
    bool has_uniform_branches;
};

/* One argument of a kernel: a buffer, or `size` bytes at `value`. Memory of the caller's that has
 * no struct goes by value, as the sizeof(void *) bytes of its device pointer or cl_mem; so does NULL. */
struct gpu_argument {
    struct gpu_memory *memory; /* or NULL, and then: */
    size_t size;
    const void *value;
};

/* Bytes [from, to) of a buffer that no kernel may touch. */
struct gpu_guard {
    size_t from, to;
};

struct gpu_api {
    const char *name; /* "cuda", "opencl", "model" */

    /* Returns the number of devices; 0 without a driver. Never fails, and is quick after the first call. */
    size_t (*count)(void);
    /* Describes device i, without opening it for work. */
    tally_status (*describe)(size_t i, struct gpu_facts *out);
    /* Opens device i in the caller's context: a CUcontext, or a cl_context that has the device. The context
     * must outlive the struct gpu. NULL: opens it in CUDA's primary context, or in a new OpenCL context. */
    tally_status (*open)(size_t i, void *context, struct gpu **out);
    void (*close)(struct gpu *gpu); /* frees all that is left of its memory and programs */
    const struct gpu_facts *(*facts)(const struct gpu *gpu);

    tally_status (*allocate)(struct gpu *gpu, size_t bytes, struct gpu_memory **out);
    void (*release)(struct gpu *gpu, struct gpu_memory *memory); /* NULL is allowed */
    /* Allocates host memory, at *host, that the host can read while a running kernel writes it, so that
     * results need no copy. TALLY_EUNSUPPORTED where there is none. */
    tally_status (*allocate_visible)(struct gpu *gpu, size_t bytes, struct gpu_memory **out,
                                     volatile void **host);
    /* Makes a buffer that stands for an array of the caller's, which kernels read and nobody writes: host
     * memory, which may be read-only, on a device that reads_host_memory; a device pointer or cl_mem
     * elsewhere. TALLY_EUNSUPPORTED where that cannot be. The buffer is released like any other; the array
     * stays the caller's. */
    tally_status (*adopt)(struct gpu *gpu, void *theirs, size_t bytes, struct gpu_memory **out);
    /* Makes a buffer that stands for memory of the caller's which kernels may write: a device pointer, or a
     * cl_mem on any OpenCL device. */
    tally_status (*wrap)(struct gpu *gpu, void *native, size_t bytes, struct gpu_memory **out);
    /* Makes these the guards of a buffer of its own, in place of any others: a kernel that touches
     * one ends with TALLY_ELOST. The host's copies and fills may pass over them. NULL: the machine
     * does not check accesses. */
    void (*guard)(struct gpu *gpu, struct gpu_memory *memory, const struct gpu_guard *guards,
                  size_t count);
    /* `from` may be changed as soon as the call returns; large copies go through memory that the device
     * reads by itself, and the last part of them may then still be under way. */
    tally_status (*write)(struct gpu *gpu, struct gpu_memory *to, size_t offset, const void *from,
                          size_t bytes);
    tally_status (*read)(struct gpu *gpu, void *to, struct gpu_memory *from, size_t offset,
                         size_t bytes);
    tally_status (*fill)(struct gpu *gpu, struct gpu_memory *to, size_t offset, unsigned char byte,
                         size_t bytes);
    /* Copies from one buffer of this device to another. */
    tally_status (*copy)(struct gpu *gpu, struct gpu_memory *to, size_t to_offset,
                         struct gpu_memory *from, size_t from_offset, size_t bytes);

    /* Compiles a kernel file of src/kernels (named as under that folder, "ladder/ladder.cu"), preceded by
     * the text `prelude` (or NULL) and with defines such as "TYPE_F32" or "COARSE_FACTOR=4". A machine
     * keeps what it has compiled and returns it again. A program without a prelude, and its kernels, live
     * until the struct gpu is closed; one with a prelude is sure to live until the next build() only. */
    tally_status (*build)(struct gpu *gpu, const char *file, const char *prelude,
                          const char *const *defines, size_t count, struct gpu_program **out);
    tally_status (*kernel)(struct gpu *gpu, struct gpu_program *program, const char *name,
                           struct gpu_kernel **out);
    /* Compiles the named kernels together, before kernel() is asked for them and would compile each alone. Skips
     * names that are NULL. NULL: build() has compiled all kernels. */
    tally_status (*make)(struct gpu *gpu, struct gpu_program *program, const char *const *names,
                         size_t count);
    /* Launches and fills go to a queue of the caller's from here on (a CUstream, of which NULL is one, too;
     * a cl_command_queue of the struct gpu's context), and after use(gpu, false, NULL) to its own again.
     * The two queues are not ordered against each other, and nothing else touches the caller's. */
    void (*use)(struct gpu *gpu, bool theirs, void *queue);
    /* Returns whether a queue of the caller's is captured into a graph; true if the driver does not say. NULL: there
     * are no such graphs. */
    bool (*is_captured)(struct gpu *gpu, void *queue);
    /* Launches a grid of `grid` blocks of `block` threads. */
    tally_status (*launch)(struct gpu *gpu, struct gpu_kernel *kernel, unsigned grid,
                           unsigned block, const struct gpu_argument *arguments, size_t count);
    /* Lets the machine put off launches until send(), or until another call whose work follows them on the queue: it
     * can start several in the time of one. Their errors may show up only then. NULL: launches are never put off. */
    void (*hold)(struct gpu *gpu);
    tally_status (*send)(struct gpu *gpu);
    tally_status (*finish)(struct gpu *gpu); /* waits for all that is under way */
    /* elapsed() gives the device's time, in seconds, for the work enqueued between mark(0) and mark(1), and
     * waits for that work. */
    tally_status (*mark)(struct gpu *gpu, int which);
    tally_status (*elapsed)(struct gpu *gpu, double *seconds);
};

#define GPU_API(machine) extern const struct gpu_api machine##_api;
GPU_MACHINES(GPU_API)
#undef GPU_API

#endif
