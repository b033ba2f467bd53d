/*
 * own_text.h - a student's CUDA C after reading: as C++ for the model, as texts for devices, and facts about its
 * kernels.
 */
#ifndef TALLY_CLI_OWN_TEXT_H
#define TALLY_CLI_OWN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

enum {
    OWN_KERNELS_MAX = 64,
    OWN_BLOCKS_MAX = 6,
    OWN_NAME = 64,
    OWN_DYNAMIC_MAX = 4,
    OWN_FUNCTORS_MAX = 8,
    OWN_HOSTS_MAX = 64,
    OWN_VARIABLES_MAX = 32
};

struct own_function {
    char name[OWN_NAME];
    char parameters[256]; /* their names, with commas between them */
    unsigned line;
    char arguments[200]; /* the arguments of its template; "" where it is none */
    bool takes_block;    /* one of them is the threads of a block */
    bool counts_blocks;  /* it compares with gridDim.x: it is made for several blocks */
    bool is_serial;      /* it does not ask which thread it is: it may be one thread's */
};

/* The constant for the threads of a block, as a template's argument; it is defined before the text. */
#define OWN_THREADS "OWN_THREADS"
/* The macro for a functor, as a template's argument; own.c chooses the functor. */
#define OWN_FUNCTOR "OWN_FUNCTOR"

/* A class with an operator(). */
struct own_functor {
    char name[OWN_NAME];
    bool is_template;
};

/* A function of the host, which is left out. */
struct own_host_function {
    char name[OWN_NAME];
    unsigned line;
};

/* The readers of a text: the model's compiler, and those of CUDA and OpenCL. */
enum own_reader { OWN_MODEL, OWN_CUDA, OWN_OPENCL, OWN_READERS };

struct own_text {
    char *texts[OWN_READERS]; /* each with the file's lines */
    char types[512]; /* names of the types that its templates take, with blanks between them */
    char warp_word
        [OWN_NAME];       /* a word that is for the lanes of a warp, "" where there is none ... */
    unsigned warp_line;   /* ... and its line */
    unsigned number_line; /* where a template takes a number; 0: nowhere */
    struct own_function kernels[OWN_KERNELS_MAX];
    size_t kernel_count;
    char dynamic[OWN_DYNAMIC_MAX][OWN_NAME]; /* arrays whose size a launch gives; "": no more */
    bool is_cut;                             /* it has a __global__ that opens no whole function */
    bool needs_t;                            /* it uses a type T that it does not define */
    unsigned blocks[OWN_BLOCKS_MAX]; /* what it defines that may be the threads of a block */
    size_t block_count;
    bool is_flat;           /* it uses no threadIdx.y and no threadIdx.z */
    unsigned width, height; /* of the first shared array of two dimensions, in numbers; 0: none */
    struct own_functor functors[OWN_FUNCTORS_MAX];
    size_t functor_count;
    struct own_host_function hosts[OWN_HOSTS_MAX];
    size_t host_count;
    char variables[OWN_VARIABLES_MAX][OWN_NAME]; /* in global memory */
    size_t variable_count;
};

#endif
