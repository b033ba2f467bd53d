/*
 * gpu.h - what a machine that runs kernels can do: memory, programs, launches.
 *
 * Three machines stand behind this interface: CUDA (src/cuda), OpenCL (src/opencl) and the model
 * (src/model). The ladder and the production reductions are written once, against it. Each machine is one
 * struct gpu_api; each opened device one struct gpu.
 *
 * Work is in order: launches, copies and fills of one struct gpu run one after another, as in one stream,
 * and may still be under way when a call returns, but for `read`, which waits. One thread uses a struct
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
struct gpu_memory;  /* a piece of its memory */
struct gpu_program; /* a compiled source */
struct gpu_kernel;  /* one kernel of a program; lives as long as that */

struct gpu_facts {
    char name[128];          /* the maker's name for it, with the platform where that matters */
    unsigned units;          /* multiprocessors, compute units */
    unsigned block_max;      /* threads a block may have */
    size_t shared_max;       /* bytes of shared memory a block may have */
    uint64_t memory;         /* bytes of global memory */
    uint64_t allocation_max; /* bytes of the largest single piece */
    int doubles;             /* f64 arithmetic */
    int atomics64;           /* 64-bit atomics */
    int unified;      /* the device reads host memory as fast as its own: a CPU behind OpenCL */
    int major, minor; /* compute capability; 0 but for CUDA */
};

/* One argument of a kernel: a piece of memory, or `size` bytes at `value`. Memory of the caller's that has
 * no struct goes by value, as the sizeof(void *) bytes of its device pointer or cl_mem; so does NULL. */
struct gpu_argument {
    struct gpu_memory *memory; /* or NULL, and then: */
    size_t size;
    const void *value;
};

struct gpu_api {
    const char *name; /* "cuda", "opencl", "model" */

    /* Devices that are here; 0 where there is no driver. Never fails, quick after the first call. */
    size_t (*count)(void);
    /* What device i is, without opening it for work. */
    tally_status (*describe)(size_t i, struct gpu_facts *out);
    /* In a context of the caller's: a CUcontext, a cl_context that has the device; or, for NULL, in the
     * device's primary context, one of its own. The caller's outlives the struct gpu. */
    tally_status (*open)(size_t i, void *context, struct gpu **out);
    void (*close)(struct gpu *gpu); /* frees all that is left of its memory and programs */
    const struct gpu_facts *(*facts)(const struct gpu *gpu);

    tally_status (*allocate)(struct gpu *gpu, size_t bytes, struct gpu_memory **out);
    void (*release)(struct gpu *gpu, struct gpu_memory *memory); /* NULL is allowed */
    /* Host memory that a running kernel can write and the host look at the while, at *host; for results,
     * which need no copy then. TALLY_EUNSUPPORTED where there is none. */
    tally_status (*allocate_visible)(struct gpu *gpu, size_t bytes, struct gpu_memory **out,
                                     volatile void **host);
    /* A piece that stands for memory the caller owns: host memory on a unified device, a device pointer
     * or cl_mem elsewhere. TALLY_EUNSUPPORTED where that cannot be. Released like any other. */
    tally_status (*adopt)(struct gpu *gpu, void *theirs, size_t bytes, struct gpu_memory **out);
    /* The same of what the machine itself calls memory: a device pointer, a cl_mem on any OpenCL device. */
    tally_status (*wrap)(struct gpu *gpu, void *native, size_t bytes, struct gpu_memory **out);
    /* `from` may be changed as soon as the call returns; large copies go through memory that the device
     * reads by itself, and the last part of them may then still be under way. */
    tally_status (*write)(struct gpu *gpu, struct gpu_memory *to, size_t offset, const void *from,
                          size_t bytes);
    tally_status (*read)(struct gpu *gpu, void *to, struct gpu_memory *from, size_t offset,
                         size_t bytes);
    tally_status (*fill)(struct gpu *gpu, struct gpu_memory *to, size_t offset, unsigned char byte,
                         size_t bytes);
    /* From one piece of this device to another. */
    tally_status (*copy)(struct gpu *gpu, struct gpu_memory *to, size_t to_offset,
                         struct gpu_memory *from, size_t from_offset, size_t bytes);

    /* Compiles a kernel file of src/kernels (named as under that folder, "ladder/ladder.cu"), preceded by
     * the text `prelude` (or NULL) and with defines such as "TYPE_F32" or "COARSE_FACTOR=4". Machines
     * keep what they have compiled and return it again. */
    tally_status (*build)(struct gpu *gpu, const char *file, const char *prelude,
                          const char *const *defines, size_t count, struct gpu_program **out);
    tally_status (*kernel)(struct gpu *gpu, struct gpu_program *program, const char *name,
                           struct gpu_kernel **out);
    /* Launches and fills go to a queue of the caller's from here on (a CUstream, of which NULL is one, too;
     * a cl_command_queue of the struct gpu's context), and after use(gpu, false, NULL) to its own again.
     * Nothing puts the two in an order, and nothing else touches the caller's. */
    void (*use)(struct gpu *gpu, bool theirs, void *queue);
    /* A grid of `grid` blocks of `block` threads. */
    tally_status (*launch)(struct gpu *gpu, struct gpu_kernel *kernel, unsigned grid,
                           unsigned block, const struct gpu_argument *arguments, size_t count);
    tally_status (*finish)(struct gpu *gpu); /* waits for all that is under way */
    /* Device time, in seconds, of what is put under way between mark(0) and mark(1); waits for it. */
    tally_status (*mark)(struct gpu *gpu, int which);
    tally_status (*elapsed)(struct gpu *gpu, double *seconds);
};

#define GPU_API(machine) extern const struct gpu_api machine##_api;
GPU_MACHINES(GPU_API)
#undef GPU_API

#endif
