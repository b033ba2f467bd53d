/*
 * model.h - a small simulated GPU that counts.
 *
 * The model runs the text of the CUDA kernels, compiled as C (lane.h). Each lane - CUDA's thread - is
 * a fiber with a stack of its own. The 32 lanes of a warp go through the text in lock step, one basic
 * block at a time; the warps of a block take turns between barriers; the blocks of a grid run one
 * after another. Every access to memory, branch, barrier and application of the operator is seen as
 * it happens, and what the model reports is what it saw: nothing is computed from a formula.
 *
 * It also stops at what a real GPU would silently get wrong: see model_fault_kind.
 *
 * What it is not: it knows nothing of time or caches, and as its blocks run one after another, a
 * kernel that waits for a later block never ends here (MODEL_FAULT_ENDLESS).
 *
 * Errors are status codes; model_error() says more. Any number of threads may call the model, each with a
 * device of its own. Launches take turns, also those of different devices; one that is telling its
 * callback of a step lets others go first.
 */
#ifndef TALLY_MODEL_H
#define TALLY_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_WARP       32u   /* lanes of a warp */
#define MODEL_BLOCK_MAX  1024u /* lanes of a block, at most */
#define MODEL_WARPS_MAX  (MODEL_BLOCK_MAX / MODEL_WARP)
#define MODEL_PROCESSORS 8u   /* multiprocessors, for hosts that size a grid to the device */
#define MODEL_LINE       128u /* bytes of a line of global memory */
#define MODEL_BANKS      32u  /* of shared memory, 4 bytes wide */

typedef enum model_status {
    MODEL_OK = 0,
    MODEL_EINVAL, /* an argument is out of its range */
    MODEL_ENOMEM, /* no memory on the host */
    MODEL_EFAULT  /* the kernel did something wrong: model_last_fault() */
} model_status;

/* A kernel as the model takes it. MODEL_KERNELn() in lane.h defines one from a text. */
typedef struct model_kernel {
    const char *name;
    void (*call)(void *const *arguments); /* arguments[i] points at the i-th argument */
    unsigned arguments;                   /* how many there are, ... */
    const size_t *bytes;                  /* ... and the size of each */
} model_kernel;

typedef struct model_device model_device;
typedef struct model_place model_place;

model_status model_open(model_device **out);
void model_close(model_device *device); /* NULL is allowed; frees all its memory */

/* Returns one line about the device's last call that failed; "" if none has. */
const char *model_error(const model_device *device);

/* ---- Memory --------------------------------------------------------------------------------- */

/* Allocates `bytes` of the device's global memory, 256-byte aligned. The pointer is for kernels; the host
 * uses model_write(), model_read() and model_fill(), which keep track of what has been written. A range must
 * lie within one allocation. */
model_status model_allocate(model_device *device, size_t bytes, void **out);
model_status model_free(model_device *device, void *memory); /* NULL is allowed */
model_status model_write(model_device *device, void *to, const void *from, size_t bytes);
model_status model_read(model_device *device, void *to, const void *from, size_t bytes);
model_status model_fill(model_device *device, void *to, unsigned char byte, size_t bytes);

/* Bytes [from, to) of an allocation. */
typedef struct model_guard {
    size_t from, to;
} model_guard;
#define MODEL_GUARDS 32 /* of an allocation, at most */

/* Makes these the guards of an allocation, in place of any others: a kernel that reads or writes there is at fault, as
 * outside of an allocation. The host is not. */
model_status model_set_guards(model_device *device, void *memory, const model_guard *guards,
                              size_t count);

/* Makes memory of the caller's, which lies aligned to 16, global memory of the device until the device is
 * closed. All of it counts as written. */
model_status model_adopt(model_device *device, void *memory, size_t bytes);

/* Bytes [from, to) of an allocation; 0 and 0: none. */
typedef struct model_reach {
    size_t from, to;
} model_reach;

/* Finds what each block of the device's last launch wrote or, unless `written`, read or wrote of an allocation:
 * spans[b] of block b, for each b < count. Of several blocks that wrote one place the last counts. Of several that read
 * one place the first counts, unless a later one's read is ordered behind it. Takes time in proportion to count and to
 * the allocation's size. */
void model_touched(const model_device *device, const void *memory, bool written, model_reach *spans,
                   unsigned count);

/* ---- What is counted ------------------------------------------------------------------------ */

/*
 * A step is a stretch between two barriers (or the start, or the end) of a block.
 *
 * A warp-level access is one instruction that some lanes of a warp execute together. In global memory
 * it takes a transaction for each 128-byte line that it touches, and would take the fewest if the
 * distinct bytes it asks for lay side by side. In shared memory it takes as many passes as there are
 * different 4-byte words in the bank with the most; words of 8 bytes are served a half warp at a
 * time and 16 bytes a quarter, as on real devices. A bank conflict is a pass more than one (in each
 * half or quarter). Atomics count as accesses; their bytes are both read and written.
 *
 * A divergent branch is one after which the lanes of a warp that came to it together go different ways.
 */
typedef struct model_counts {
    uint64_t launches;
    uint64_t blocks;
    uint64_t steps;     /* in which some lane applied the operator: the most of any block, added
                           up over launches */
    uint64_t barriers;  /* executed: the most of any block, added up over launches */
    uint64_t rounds;    /* applications one after another: within a step the most of any lane's
                           warp, added up as steps are. What a coarsened block's formula counts. */
    uint64_t all_steps; /* steps, barriers and rounds, added up over all blocks */
    uint64_t all_barriers;
    uint64_t all_rounds;
    uint64_t operations; /* applications of the operator, by lane; atomics are counted apart */
    uint64_t slots;      /* 32 for each warp and step in which one of its lanes applied it */
    uint64_t issued; /* 32 for each warp-level application: one instruction of a warp in which one
                            of its lanes, or several, applied it */
    uint64_t divergent; /* branches */
    uint64_t transactions;
    uint64_t fewest_transactions;
    uint64_t bank_conflicts;
    uint64_t bytes_read; /* of global memory, by lane: what is asked for */
    uint64_t bytes_written;
    uint64_t atomics; /* by lane; in shared memory, too */
} model_counts;

/* Adds `more` to `counts`, as if its launches had come after. */
void model_counts_add(model_counts *counts, const model_counts *more);

/* The counts of one warp in one step. */
typedef struct model_warp_step {
    uint32_t lanes; /* bit l: lane l applied the operator */
    uint32_t operations, rounds, divergent;
    uint32_t transactions, fewest_transactions;
    uint32_t bank_conflicts;
    uint32_t atomics;
    uint64_t bytes_read, bytes_written;
} model_warp_step;

/* One instruction of a warp, which some of its lanes executed together: an access to memory, an exchange of
 * registers by a shuffle, or an application of the operator. */
typedef enum model_access_kind {
    MODEL_READ,
    MODEL_WRITE,
    MODEL_ATOMIC, /* reads and writes */
    MODEL_EXCHANGE,
    MODEL_APPLY
} model_access_kind;

typedef struct model_access {
    unsigned warp;  /* of the block */
    uint32_t lanes; /* bit l: lane l took part; below, [l] is lane l's */
    model_access_kind kind;
    int shared;    /* the memory is shared memory */
    unsigned size; /* bytes that each lane accesses; 0: no memory */
    const void
        *array; /* global: the start of the buffer; shared: of the array, as far as it is known */
    const char *name; /* of the shared array; "" if there are no symbols. Freed with the device. */
    uint64_t place
        [MODEL_WARP]; /* bytes from the start of `array`; MODEL_EXCHANGE: the lane that gives */
    uint64_t given
        [MODEL_WARP]; /* MODEL_EXCHANGE: what the lane itself gave; MODEL_ATOMIC: what it found */
    uint64_t value
        [MODEL_WARP]; /* the bits that were read, or got by an exchange; of a write those in memory at
                                   the end of the step. Of more than 8 bytes the first 8 */
    uint32_t transactions, fewest_transactions, bank_conflicts;
    const char *
        file; /* the source line that does it; "" and 0 if that is not known. Freed with the device. */
    unsigned line;
} model_access;

typedef struct model_step {
    unsigned block;
    unsigned step;   /* of this block, from 0 */
    int barrier;     /* it ended with a barrier, not with the kernel */
    uint64_t stride; /* how many elements lay between the two values that were last read before the
                         operator was applied; 0 where there are no two or lanes differ */
    unsigned warps;  /* of the block */
    const model_warp_step *warp; /* [warps] */
    size_t accesses;             /* 0 unless the launch asks for them */
    const model_access *access;  /* [accesses]; each warp's in their order, warp after warp */
} model_step;

/* ---- Running -------------------------------------------------------------------------------- */

typedef struct model_span {
    uintptr_t base;
    size_t bytes;
} model_span;

typedef struct model_launch {
    const model_kernel *kernel;
    unsigned grid, block;   /* blocks of the grid, 1 up; lanes of a block, 1 to MODEL_BLOCK_MAX */
    unsigned width, height; /* of a block of two or three dimensions; 0: it has one */
    unsigned
        order; /* of the blocks: 0 ascending, 1 descending, else a random order that this number draws.
                  The warps of a block: 0 ascending, else descending */
    const uint32_t
        *only; /* NULL: all blocks; else these run, `only_count` of them, in this order */
    unsigned only_count;
    uint64_t
        work_most; /* basic blocks that its lanes may run, added up; then it is taken for endless. 0: any number */
    unsigned told;  /* threads of a block, as the kernel is told; 0: those that run */
    unsigned first; /* threadIdx.x of the first thread that runs, as the kernel is told */
    /* Called where an access reaches no buffer; returns whether there is one now. NULL: there never is. */
    bool (*on_absent)(void *owner, uintptr_t address);
    void *owner;
    void *const *arguments; /* arguments[i] points at the i-th; read during the call */
    /* Told of every step, or NULL. It may launch kernels itself, on other devices than this one. */
    void (*on_step)(void *context, const model_step *step);
    void *context;
    const model_span *shared; /* [2]: where the kernel's shared arrays lie; NULL: in this program */
    bool
        forgives; /* races and unwritten memory do not end it: model_noted_fault() tells the first */
    int accesses; /* not 0: on_step() is told of all accesses, which takes time and memory */
} model_launch;

/* Runs a grid to its end, or to the first fault: then MODEL_EFAULT, and memory holds whatever had been
 * written. What was counted is added to *counts if that is not NULL, also after a fault. */
model_status model_run(model_device *device, const model_launch *launch, model_counts *counts);

/* Returns the function that a kernel which is loaded at run time calls by this name (own_lane.hpp); NULL if there is
 * none. */
void *model_hook(const char *name);

/* Finds the source line of an address in the program, or in an object that was loaded before the first line
 * was asked for; place->line is 0 where it is not known. */
void model_find_line(model_place *place);

/* Limits how many basic blocks a warp may execute between two barriers, and how many barriers a block may pass. Both
 * are 2^26 unless set. */
void model_set_patience(model_device *device, uint64_t blocks, uint64_t barriers);

/* ---- What is wrong with a kernel -------------------------------------------------------------- */

typedef enum model_fault_kind {
    MODEL_FAULT_NONE = 0,
    MODEL_FAULT_BARRIER,   /* some lanes of a block wait where others do not come */
    MODEL_FAULT_SHUFFLE,   /* the same, for the lanes that a shuffle names */
    MODEL_FAULT_BOUNDS,    /* an access outside every buffer or array */
    MODEL_FAULT_ALIGNMENT, /* an address that is no multiple of the size of the access */
    MODEL_FAULT_UNWRITTEN, /* a read of memory that nothing has written */
    MODEL_FAULT_RACE,      /* two lanes at one place, one of them writing, and nothing between */
    MODEL_FAULT_ORDER, /* a race of two blocks that an atomic was to order, and a fence is missing */
    MODEL_FAULT_STRAY,   /* a shuffle takes a value from a lane that takes no part in it */
    MODEL_FAULT_PROMISE, /* a kernel of one's own breaks what its text promises: see `promise` */
    MODEL_FAULT_STACK,   /* a kernel of one's own has more variables than a lane's stack holds */
    MODEL_FAULT_ENDLESS  /* a warp or block goes on for longer than model_set_patience() allows */
} model_fault_kind;

/* Where something happened. The line is the source's if the program has debugging information. */
struct model_place {
    uintptr_t site;       /* an address in the program */
    unsigned block, lane; /* lane of the block */
    bool writes;          /* race: this one writes */
    char file[128];       /* base name; "" if not known */
    unsigned line;
    bool is_copied; /* the line is that of a class whose object is copied: the caller's is better */
};

typedef struct model_fault {
    model_fault_kind kind;
    const char *kernel;
    model_place here;    /* who ran into it: the second of the two in a race */
    model_place other;   /* race: the first; barrier, shuffle: a lane that is elsewhere */
    model_place between; /* order: the atomic beside which the fence is missing */
    int fence; /* order: the missing fence. 0: before the writer's atomic. 1: there, but there is a fence of the block.
                    2: behind the reader's atomic */
    int promise; /* 0: an assert() does not hold; 1: __ldg() reads what the launch has written */
    bool warps;  /* race: lanes of several warps race there, though `other` is of the same warp */
    bool waits;  /* endless: the lane asks again and again for what no lane changes */
    bool overwrites;  /* race: of a volatile store with another store, or with an atomic */
    uint64_t address; /* of the access; or the index that is outside an array; stray: the mask */
    unsigned size;    /* of the access, in bytes; 0 for an index */
    char array[64];   /* whose index it is, as a kernel of one's own says it; "": not known */
    char text[512];   /* all of it in one line */
} model_fault;

/* Returns the first fault that the device's last launch forgave; its kind is MODEL_FAULT_NONE if there was none. */
const model_fault *model_noted_fault(const model_device *device);

/* Returns the first read of the device's last launch whose block has no fence behind the atomic that announced the
 * value, but a barrier, and has not read the place before. The standard asks for the fence; no cache has an old value.
 * A launch that forgives takes it for ordered. */
const model_fault *model_unfenced_read(const model_device *device);

/* Returns the first shuffle of the device's last launch that took a value from a lane that takes no part. It is no
 * fault where that value is not used. */
const model_fault *model_stray_shuffle(const model_device *device);

/* Returns the first plain read beside atomics of the device's last launch that its lane did not hand to a compare and
 * swap, by an instruction whose values other lanes did hand to one. It is no fault where the result is right. */
const model_fault *model_untried_read(const model_device *device);

/* A shared array of a kernel of one's own, as its text declares it. */
typedef struct model_array {
    uintptr_t base;
    size_t element; /* bytes of its elements */
    char type[8];   /* of these, as "f32"; "" for a structure */
} model_array;

/* Returns the kernel's shared array that begins at an address; NULL: the kernel has not told of it. */
const model_array *model_array_at(const model_device *device, uintptr_t base);

/* Returns how many basic blocks the lanes of the device's last launch have run. */
uint64_t model_work(const model_device *device);

/* Returns how many bytes of a buffer the device's last launch has read, to the granularity of its accesses. */
size_t model_bytes_read(const model_device *device, const void *memory);

/* Returns the fault of the device's last launch; its kind is MODEL_FAULT_NONE if that went well. */
const model_fault *model_last_fault(const model_device *device);

#endif
