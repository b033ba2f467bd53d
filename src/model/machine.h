/*
 * machine.h - the parts of a device and how they lie together. For the files of this folder only.
 *
 *   schedule.c  who runs when: blocks, warps in lock step, barriers and shuffles
 *   hooks.c     what the compiled kernels call: accesses, blocks, atomics
 *   memory.c    buffers, and a shadow of every byte that knows who touched it last
 *   count.c     from the accesses of a warp to lines, passes and bytes
 *   trace.c     which lane accessed what, for launches that ask for it
 *   fault.c     from a fault to a sentence that tells of it
 *   fiber.c     the switch from one lane's stack to another
 *   device.c    opening, closing, copying, launching
 */
#ifndef TALLY_MODEL_MACHINE_H
#define TALLY_MODEL_MACHINE_H

#include "model/fiber.h"
#include "model/model.h"

#include <stdbool.h>

/* ---- Memory --------------------------------------------------------------------------------- */

typedef enum access_kind {
    ACCESS_READ = 1,
    ACCESS_WRITE = 2,
    ACCESS_ATOMIC = ACCESS_READ | ACCESS_WRITE,
    ACCESS_RELAXED = 4, /* added to an atomic or volatile access: two such are no race */
    ACCESS_SWAP = 8     /* added to a compare and swap by a kernel of one's own */
} access_kind;

/*
 * A cell of the shadow: the last accesses to a few neighbouring bytes. Time is counted in epochs: a device's count
 * of steps, over all blocks and launches. A new epoch also begins where the lanes of a warp meet within a step
 * (__syncwarp()). As blocks run one after another, an epoch belongs to one block, and epochs before a
 * launch's first say nothing about that launch.
 */
typedef struct cell {
    uint32_t write, read;          /* epoch of the last write and read; 0 never */
    int32_t write_site, read_site; /* where in the program, from the device's anchor */
    uint16_t writer, reader;       /* the lane, and the flags below */
    uint16_t known;                /* something has been written here, be it by the host */
} cell;

#define CELL_LANE    0x03ffu
#define CELL_RELAXED 0x8000u /* that access was atomic or volatile */
#define CELL_MANY    0x4000u /* reader: not the only lane that read since the barrier */
#define CELL_WARPS   0x2000u /* reader: nor the only warp */
#define CELL_ATOMIC  0x1000u /* that access was atomic */
#define CELL_CHANGES 0x0800u /* writer: it had read the place before, in this block */
#define CELL_PASSES                                                                                \
    0x0400u /* writer: a volatile or atomic access behind a fence, which passes on what came before */

/* A stretch of memory with its shadow. A cell covers 2^shift bytes: 16, or as few as the smallest access so far. */
typedef struct region {
    uintptr_t base;
    size_t size;
    unsigned shift;
    cell *cells;
    void *allocation; /* what to free; NULL for shared memory */
    unsigned guard_count;
    model_guard guards[MODEL_GUARDS];
} region;

/* Shared memory is shadowed where it is used, in pages of PAGE bytes. Up to PAGES_KEPT of them stay from
 * launch to launch. */
#define PAGE       ((size_t)1 << 13)
#define PAGES_KEPT 64

/* ---- Lanes ---------------------------------------------------------------------------------- */

#define STACK   ((size_t)1 << 16) /* bytes of a lane's stack */
#define STAGGER 512 /* bytes by which stacks are shifted, to use all sets of a cache */

/* LANE_BARRIER: waits at __syncthreads(). LANE_SHUFFLE: waits at a shuffle or at __syncwarp(). */
typedef enum lane_state { LANE_RUNNING, LANE_BARRIER, LANE_SHUFFLE, LANE_DONE } lane_state;

/*
 * A race that may yet turn out to be none. A plain read beside another lane's atomic is a race, unless what was read
 * is only a guess: the lane hands it to a compare and swap at that place, which sees whether it still holds. So a
 * launch that forgives keeps such a race until the lane does that, or the step ends. A lane may also have nothing to
 * swap, as in `while (v > old)`. So a read is no race either if other lanes have handed on what they read by the same
 * instruction.
 */
enum { TRIED_READS = 8 };
typedef struct model_guess {
    uintptr_t address; /* 0: none */
    unsigned size;
    uintptr_t read_site;
    unsigned lane, other_lane, other_block; /* who came second, and who first */
    uintptr_t site, other_site;
    bool writes, other_writes;
} model_guess;

/* Operations that the lanes of a warp do together once all lanes named by a mask have arrived. */
typedef enum model_exchange {
    EXCHANGE_SHUFFLE,
    EXCHANGE_MEET, /* __syncwarp(), which orders memory */
    EXCHANGE_BALLOT,
    EXCHANGE_MATCH, /* the lanes with the same value */
    EXCHANGE_ADD,   /* __reduce_add_sync() and its like, of 32-bit integers */
    EXCHANGE_MIN_SIGNED,
    EXCHANGE_MAX_SIGNED,
    EXCHANGE_MIN,
    EXCHANGE_MAX,
    EXCHANGE_AND,
    EXCHANGE_OR,
    EXCHANGE_XOR
} model_exchange;

typedef struct model_lane {
    fiber fiber;
    uintptr_t stack;  /* its lowest address */
    unsigned index;   /* in the block */
    unsigned x, y, z; /* the same as CUDA's threadIdx */
    lane_state state;
    uintptr_t site;      /* where it goes on: a basic block, a barrier, a shuffle; 0 at the start */
    uintptr_t other_way; /* where the lanes went from which it has just parted; 0: from none */
    enum {
        HALF_NONE,
        HALF_WAITS,
        HALF_CAME,
        HALF_READ
    } half; /* it waits where the others may come; or has come to where they wait; or has come there
               by a block that touches memory ... */
    uintptr_t half_site;      /* ... which is this one */
    unsigned accesses;        /* since it last went on */
    unsigned applied;         /* applications of the operator since it last went on */
    uintptr_t latest, before; /* the last two addresses read since the operator was applied */
    unsigned latest_size;
    bool fenced;         /* a fence since its last plain or volatile write to global memory */
    bool fenced_block;   /* the same of a fence of the block */
    uint32_t last_fence; /* the epoch of its last fence; 0: none */
    uintptr_t atomic,
        atomic_site; /* the location of its last atomic; 0 once a fence has followed */
    uintptr_t asked; /* the place of its last access by which it may wait for another lane ... */
    uint64_t asked_value; /* ... and what stood there */
    unsigned shuffle_mask, shuffle_source;
    model_exchange exchange; /* what it waits for */
    uint64_t shuffle_value;
    model_guess guess; /* what it has read and not yet tried by a compare and swap */
    uintptr_t read_address,
        read_sites[2]; /* its last plain read; the sites of the last two at that address */
} model_lane;

/* The k-th access since the warp's lanes went on together: one instruction, up to 32 addresses. */
typedef struct warp_access {
    uint32_t global, shared; /* bit l: lane l accesses such memory */
    uint32_t applied;        /* bit l: lane l applied the operator, and accessed nothing */
    unsigned size;
    unsigned kind;
    uintptr_t site;
    uintptr_t address[MODEL_WARP];
    uint64_t value[MODEL_WARP]; /* read; noted only where the launch asks for accesses */
} warp_access;

/* The source line of a site, or a shared array: what trace.c has looked up. */
typedef struct origin {
    uintptr_t site; /* or the start of the array */
    size_t size;    /* of the array, in bytes; 0 of a line */
    char name[64];  /* file or array; "" where it is not known */
    unsigned line;
    struct origin *next;
} origin;

#define ACCESSES_MAX 64u /* a lane yields after this many accesses: see hooks.c */

/* An atomic at `location` by a lane of a block, in `epoch`. Of the writer it is a release if a fence stands before
 * it; of the reader an acquire if one follows. */
typedef struct handshake {
    uintptr_t location, site;
    unsigned block;
    uint32_t epoch;
    unsigned lane;
    bool fenced, fenced_block;
} handshake;

/* ---- The device ----------------------------------------------------------------------------- */

struct model_device {
    region *buffers; /* sorted by base */
    size_t buffer_count, buffer_capacity;
    size_t last_buffer; /* the index at which the last look-up found a buffer */
    region *pages;
    size_t page_count, page_capacity, last_page;

    unsigned char *stacks;               /* MODEL_BLOCK_MAX of STACK bytes */
    unsigned stack_ids[MODEL_BLOCK_MAX]; /* Valgrind's */
    model_lane *lanes;                   /* [MODEL_BLOCK_MAX] */
    fiber scheduler;
    model_lane *lane;              /* who runs */
    model_lane *group[MODEL_WARP]; /* the lanes of a warp that go on together */
    unsigned group_size, turn;     /* turn: the next of them */
    warp_access accesses[ACCESSES_MAX];
    unsigned access_count; /* of them in use */

    const model_launch *launch;
    uintptr_t anchor;  /* sites are kept as distances from here: the kernel's code */
    unsigned block;    /* now running: its place in the order of the launch */
    uint32_t *numbers; /* [place]: its blockIdx */
    unsigned step;     /* of the block */
    uint32_t epoch;    /* the current one */
    uint32_t launch_epoch, block_epoch; /* the first of the launch and of the running block */
    uint32_t barrier_epoch;             /* the first since the block's last barrier */
    uint32_t warp_epoch;                /* and since the running warp's lanes last met */
    model_span shared[2];               /* where the launch's shared arrays lie */
    uint32_t *block_epochs;             /* [place]: the first of each block */
    uint32_t *
        seen; /* [place]: the first block whose values have reached that block by CELL_PASSES, directly or through
                          others. The blocks between the two count as seen, too */
    uintptr_t
        seen_at; /* the place by which values reached the block that runs; 0: none, 1: several */
    model_warp_step warps[MODEL_WARPS_MAX];
    model_warp_step *warp; /* the one that runs */
    uint64_t stride;       /* see model_step */
    bool strides_differ;
    uint64_t work, work_most; /* of the launch: basic blocks that lanes have run */
    uint64_t patience, spent; /* basic blocks that a warp may run, and has run, between barriers */
    uint64_t waited;          /* `spent` when a lane last asked for what had not changed */
    uint64_t barriers_most;   /* that a block may pass */
    handshake *releases;      /* atomics by all blocks of the launch, in their order */
    size_t release_count, release_capacity;
    handshake acquired[8]; /* atomics by the block that runs; `fenced` if a fence has followed */
    unsigned acquired_count;
    bool has_written; /* the block that runs has written to global memory, other than by atomics */

    model_access *trace; /* of the step, where the launch asks for it */
    size_t trace_count, trace_capacity;
    origin *origins;
    uintptr_t guesses[4]; /* starts of the launch's shared arrays, guessed without symbols */
    unsigned guess_count;

    model_counts counts; /* of the launch */
    uint64_t block_steps, block_barriers, block_rounds;

    struct model_device *next_suspended; /* while the step callback runs: device.c */
    bool put_aside;                      /* `saved` holds what the shared arrays held then */
    char *saved;                         /* PAGE bytes for each page, or NULL */
    size_t saved_size;

    model_array arrays[32]; /* shared arrays whose elements are known */
    unsigned array_count;
    struct {
        uintptr_t first, second;
        bool is_one_line;
    } lines[16]; /* pairs of blocks whose source lines have been compared */
    unsigned line_count;

    unsigned unsettled;           /* lanes whose model_guess has an address */
    uintptr_t tried[TRIED_READS]; /* instructions whose plain reads a compare and swap has tried */
    unsigned tried_count;

    model_fault
        overwrite; /* a race if the volatile store that is under way changes its place; else its kind is 0 */
    unsigned char before[16]; /* what that place held */

    bool out_of_memory;
    model_fault fault;
    model_fault noted;    /* the first that the launch forgave */
    model_fault unfenced; /* the first read that only a barrier orders behind the block's atomic */
    model_fault
        untried; /* the first guess that was not tried, by an instruction that has others which were */
    model_fault stray; /* the first shuffle that got a value from a lane that takes no part in it */
    char error[640];
};

/* The device whose launch this thread is running, or NULL. Only one thread runs a launch at a time, as all
 * launches use the same shared arrays, which are the program's. */
extern _Thread_local struct model_device *model_now
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* ---- memory.c ------------------------------------------------------------------------------- */

/* Sets d->shared to where the launch's shared arrays lie. */
void memory_find_shared(struct model_device *d);
bool memory_is_shared(const struct model_device *d, uintptr_t address);
/* Returns the buffer that holds all `size` bytes at an address; NULL where none does. */
region *memory_buffer_at(struct model_device *d, uintptr_t address, size_t size);
/* Allocates a buffer; none of it counts as written. */
model_status memory_add(struct model_device *d, size_t bytes, void **out);
/* Makes memory that is there already a buffer: all of it counts as written, and it stays its owner's. */
model_status memory_adopt(struct model_device *d, void *memory, size_t bytes);
model_status memory_remove(struct model_device *d, void *memory);
model_status memory_set_guards(struct model_device *d, void *memory, const model_guard *guards,
                               size_t count);
/* Returns whether a guard of a buffer has one of these bytes; `offset` is from its start. */
bool memory_is_guarded(const region *r, size_t offset, size_t size);
model_status memory_mark_known(struct model_device *d, region *r, size_t offset, size_t bytes);
void memory_forget_epochs(struct model_device *d);
/* Returns the place in their order of the block that an epoch of the launch, or of the last one, belongs to. */
unsigned memory_block_of(const struct model_device *d, uint32_t epoch);
void memory_trim_pages(struct model_device *d); /* between launches */
void memory_release(struct model_device *d);
/* Copies the shared arrays that the launch has touched to d->saved; returns false without memory.
 * The second function copies them back. */
bool memory_save_shared(struct model_device *d);
void memory_restore_shared(struct model_device *d);
/* Checks an access of the running lane and remembers it. Returns false if the lane has to stop: for
 * a fault, in d->fault, or for lack of memory, in d->out_of_memory. */
bool memory_check(struct model_device *d, uintptr_t address, unsigned size, unsigned kind,
                  uintptr_t site);
/* Notes that the running lane reads a place by which it may wait for another lane: by an atomic, by a volatile read, or
 * where an atomic or another block has written. It waits where it has asked there before, and the value is the same. */
void memory_note_asked(struct model_device *d, uintptr_t address, unsigned size);
/* Returns whether the running launch has written any of these bytes of a buffer. */
bool memory_is_written(struct model_device *d, uintptr_t address, size_t bytes);
/* Returns how many bytes of the buffer at `base` the last launch has read. */
size_t memory_bytes_read(const struct model_device *d, uintptr_t base);
/* Settles d->overwrite, once its store is done. A lane calls this before it does anything else. */
void memory_settle_overwrite(struct model_device *d);
/* Reports, as a step ends, the guesses that their lanes have not tried: they are races. */
void memory_settle_guesses(struct model_device *d);

/* ---- device.c, count.c, schedule.c, fault.c ------------------------------------------------- */

/* Tells the running launch's callback of a step. Meanwhile the launch is suspended: the callback, and
 * other threads, may run kernels on other devices. */
void device_tell(struct model_device *d, const model_step *step);

/* Adds the accesses that a group of lanes made to its warp's counts, and clears them. */
void count_accesses(struct model_device *d);
/* For a launch that asks for accesses. These note a group's access to shared or to global memory, with what it has
 * added to the warp's counts, which were `before`; an application of the operator; and a shuffle, in which the i-th
 * lane of the group got got[i]. trace_finish() is for the end of a step: it fills in what was written. */
void trace_access(struct model_device *d, const warp_access *a, bool shared,
                  const model_warp_step *before);
void trace_apply(struct model_device *d, const warp_access *a);
void trace_exchange(struct model_device *d, const uint64_t got[MODEL_WARP]);
void trace_finish(struct model_device *d);
void trace_release(struct model_device *d);

/* Closes a step of the running block: `barrier` says whether it ended with one. Adds the step's counts to the
 * launch's, and tells the callback. */
void count_step(struct model_device *d, bool barrier);

/* Runs block d->block to its end or to a fault. */
void schedule_block(struct model_device *d);
/* Yields the running lane: to the next of its group, or to the scheduler. */
void schedule_yield(struct model_device *d);
/* Ends the running lane. */
_Noreturn void schedule_leave(struct model_device *d);

/* Notes a fault unless there is one already; fault_other() then says who else is part of it. fault_describe() puts
 * the sentence together later, off the lane's small stack. */
void fault_at(struct model_device *d, model_fault_kind kind, uintptr_t address, unsigned size,
              uintptr_t site, unsigned lane);
void fault_other(struct model_device *d, uintptr_t site, unsigned block, unsigned lane);
/* Remembers the fault that has just been found as one that the launch forgives; false where it does not. */
bool fault_forgive(struct model_device *d);
/* Remembers that the running lane's shuffle takes a value from lane `source` of the warp, which takes no part. */
void fault_stray(struct model_device *d, const model_lane *lane, unsigned source);
void fault_describe(struct model_device *d, model_fault *f);

/* Finds the shared array around an address: its start, its bytes, and its name, cut to size - 1
 * bytes. Returns false without a symbol. */
bool place_array(uintptr_t address, uintptr_t *start, size_t *bytes, char *name, size_t size);

#endif
