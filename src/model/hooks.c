/*
 * hooks.c - the functions that compiled kernels call.
 *
 * All of this runs on a lane's own small stack, millions of times: it notes what happens, stops where
 * lanes of a warp are to stay together, and leaves the rest to the scheduler. A hook's return address
 * is the site of what it reports. What is called without a launch - the sanitizer's start-up calls, the
 * arithmetic of a kernel on the host - does nothing.
 */
#include "model/lane.h"

#include "model/machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SITE ((uintptr_t)__builtin_return_address(0))

void model_nothing(void);
void model_on_block(void);

void model_nothing(void) {}

void model_on_entry(void);

/* Begins a function of the kernel: its variables, and the calls below it, must fit on the lane's
 * stack. */
void model_on_entry(void) {
    struct model_device *d = model_now;
    enum { KEPT = 4096 };
    if (!d) return;
    if ((uintptr_t)__builtin_frame_address(0) - d->lane->stack - KEPT < STACK - KEPT) return;
    fault_at(d, MODEL_FAULT_STACK, 0, 0, SITE, d->lane->index);
    schedule_leave(d);
}

void model_on_block(void) {
    struct model_device *d = model_now;
    if (!d) return;
    d->lane->site = SITE;
    schedule_yield(d);
}

/* ---- Memory --------------------------------------------------------------------------------- */

/* Makes room to note one more access. After ACCESSES_MAX of them in a basic block, the lane stops as if a new block
 * began. */
static void make_room(struct model_device *d, uintptr_t site) {
    if (d->lane->accesses < ACCESSES_MAX) return;
    d->lane->site = site;
    schedule_yield(d);
}

/* Returns where the lane's next access, or application of the operator, is to be noted. */
static warp_access *next_access(struct model_device *d) {
    model_lane *me = d->lane;
    if (me->accesses == d->access_count) d->access_count++;
    return &d->accesses[me->accesses++];
}

static void on_access(uintptr_t address, unsigned size, unsigned kind, uintptr_t site) {
    struct model_device *d = model_now;
    if (!d) return;
    model_lane *me = d->lane;
    if (address - me->stack < STACK) return; /* its own variables: registers, on a GPU */
    memory_settle_overwrite(d);

    make_room(d, site);
    const bool shared = memory_is_shared(d, address);
    const bool asks =
        kind == (ACCESS_READ | ACCESS_RELAXED) || (kind & ACCESS_ATOMIC) == ACCESS_ATOMIC;
    if (shared && (kind & ACCESS_ATOMIC) != ACCESS_ATOMIC)
        kind &= ~(unsigned)ACCESS_RELAXED; /* volatile orders nothing between lanes */
    if (!memory_check(d, address, size, kind, site)) schedule_leave(d);
    if (asks) memory_note_asked(d, address, size);
    kind &= ~(unsigned)ACCESS_SWAP;

    const unsigned l = me->index % MODEL_WARP;
    warp_access *a = next_access(d);
    *(shared ? &a->shared : &a->global) |= UINT32_C(1) << l;
    a->size = size;
    a->kind = kind;
    a->address[l] = address;
    a->site = site;
    if (d->launch->accesses) {
        a->value[l] = 0;
        if (kind & ACCESS_READ) memcpy(&a->value[l], (const void *)address, size < 8 ? size : 8);
    }

    if (kind & ACCESS_WRITE) {
        if (!shared && (kind & ACCESS_ATOMIC) != ACCESS_ATOMIC) {
            me->fenced = me->fenced_block = false;
            d->has_written = true;
        }
    } else {
        me->before = me->latest_size == size ? me->latest : 0;
        me->latest = address;
        me->latest_size = size;
    }
}

#define ACCESS(name, size, kind)                                                                   \
    void model_on_##name##size(uintptr_t address);                                                 \
    void model_on_##name##size(uintptr_t address) {                                                \
        on_access(address, size, kind, SITE);                                                      \
    }
#define ACCESSES(name, kind)                                                                       \
    ACCESS(name, 1, kind)                                                                          \
    ACCESS(name, 2, kind) ACCESS(name, 4, kind) ACCESS(name, 8, kind) ACCESS(name, 16, kind)
ACCESSES(read, ACCESS_READ)
ACCESSES(write, ACCESS_WRITE)
ACCESSES(volatile_read, ACCESS_READ | ACCESS_RELAXED)
ACCESSES(volatile_write, ACCESS_WRITE | ACCESS_RELAXED)

void model_on_read_range(uintptr_t address, size_t size);
void model_on_write_range(uintptr_t address, size_t size);

/* Notes a structure's copy as an access for each byte: the checks are right, but the counts are too high. */
void model_on_read_range(uintptr_t address, size_t size) {
    for (size_t i = 0; i < size; i++)
        on_access(address + i, 1, ACCESS_READ, SITE);
}

void model_on_write_range(uintptr_t address, size_t size) {
    for (size_t i = 0; i < size; i++)
        on_access(address + i, 1, ACCESS_WRITE, SITE);
}

void model_on_index(const void *array, uint64_t index);

/* Reports an index outside an array of known size. In the middle of shared memory no other check
 * would find it. */
void model_on_index(const void *array, uint64_t index) {
    struct model_device *d = model_now;
    (void)array; /* the compiler's description of its type */
    fault_at(d, MODEL_FAULT_BOUNDS, index, 0, SITE, d->lane->index);
    schedule_leave(d);
}

void model_on_index_at(int64_t index, uintptr_t site, const char *array);

/* Reports such an index for a kernel of one's own, whose text checks it (own_words.hpp) and names the array. */
void model_on_index_at(int64_t index, uintptr_t site, const char *array) {
    struct model_device *d = model_now;
    if (!d) return;
    fault_at(d, MODEL_FAULT_BOUNDS, (uint64_t)index, 0, site, d->lane->index);
    snprintf(d->fault.array, sizeof d->fault.array, "%s", array);
    schedule_leave(d);
}

void model_on_assert(void);
void model_on_constant(const void *p, size_t bytes);

/* Reports an assert() that does not hold. A GPU ends the launch there. */
void model_on_assert(void) {
    struct model_device *d = model_now;
    if (!d) return;
    fault_at(d, MODEL_FAULT_PROMISE, 0, 0, SITE, d->lane->index);
    schedule_leave(d);
}

/* Called before __ldg() reads: no thread of the launch may write there. */
void model_on_constant(const void *p, size_t bytes) {
    struct model_device *d = model_now;
    if (!d || !memory_is_written(d, (uintptr_t)p, bytes)) return;
    fault_at(d, MODEL_FAULT_PROMISE, (uintptr_t)p, (unsigned)bytes, SITE, d->lane->index);
    d->fault.promise = 1;
    if (!fault_forgive(d)) schedule_leave(d);
}

void model_note_array(const void *array, uint64_t element, const char *type);

/* Notes how large an element of a kernel's shared array is, in bytes, and its type. */
void model_note_array(const void *array, uint64_t element, const char *type) {
    struct model_device *d = model_now;
    if (!d) return;
    const unsigned kept = sizeof d->arrays / sizeof *d->arrays;
    if (model_array_at(d, (uintptr_t)array) || d->array_count == kept) return;
    model_array *a = &d->arrays[d->array_count++];
    *a = (model_array){.base = (uintptr_t)array, .element = (size_t)element};
    snprintf(a->type, sizeof a->type, "%s", type);
}

const model_array *model_array_at(const model_device *d, uintptr_t base) {
    for (unsigned i = 0; i < d->array_count; i++)
        if (d->arrays[i].base == base) return &d->arrays[i];
    return NULL;
}

/* ---- Where a lane is ------------------------------------------------------------------------ */

unsigned model_thread(void) {
    return model_now->lane->index;
}

unsigned model_block(void) {
    return model_now->numbers[model_now->block];
}

unsigned model_threads(void) {
    return model_now->launch->told ? model_now->launch->told : model_now->launch->block;
}

unsigned model_blocks(void) {
    return model_now->launch->grid;
}

/* For blocks of two or three dimensions. */
unsigned model_thread_x(void);
unsigned model_thread_y(void);
unsigned model_thread_z(void);
unsigned model_threads_x(void);
unsigned model_threads_y(void);
unsigned model_threads_z(void);

unsigned model_thread_x(void) {
    return model_now->launch->first + model_now->lane->x;
}

unsigned model_thread_y(void) {
    return model_now->lane->y;
}

unsigned model_thread_z(void) {
    return model_now->lane->z;
}

unsigned model_threads_x(void) {
    return model_now->launch->width ? model_now->launch->width : model_threads();
}

unsigned model_threads_y(void) {
    return model_now->launch->width ? model_now->launch->height : 1;
}

unsigned model_threads_z(void) {
    const model_launch *l = model_now->launch;
    return l->width ? l->block / (l->width * l->height) : 1;
}

/* ---- The operator --------------------------------------------------------------------------- */

/* Returns whether two addresses that the kernel has read lie in one memory: both shared, or in one buffer. */
static bool is_one_array(struct model_device *d, uintptr_t a, uintptr_t b) {
    const bool shared = memory_is_shared(d, a);
    if (shared || memory_is_shared(d, b)) return shared && memory_is_shared(d, b);
    const region *r = memory_buffer_at(d, a, 1);
    return r && b - r->base < r->size;
}

void model_operation(void) {
    struct model_device *d = model_now;
    if (!d) return; /* the host combines */
    model_lane *me = d->lane;
    if (d->launch->accesses) {
        make_room(d, SITE);
        warp_access *a = next_access(d);
        a->applied |= UINT32_C(1) << (me->index % MODEL_WARP);
        a->site = SITE;
    }
    me->applied++;
    d->warp->operations++;
    d->warp->lanes |= UINT32_C(1) << (me->index % MODEL_WARP);
    if (me->before && is_one_array(d, me->before, me->latest)) {
        uintptr_t far = me->latest > me->before ? me->latest - me->before : me->before - me->latest;
        far /= me->latest_size;
        if (d->stride == 0) d->stride = far;
        d->strides_differ |= d->stride != far;
    }
    me->before = me->latest = 0;
}

/* ---- Waiting for each other ----------------------------------------------------------------- */

void model_barrier(void) {
    struct model_device *d = model_now;
    d->lane->site = SITE;
    d->lane->state = LANE_BARRIER;
    schedule_yield(d);
}

/* Waits in the running lane for the others that the mask names; returns its value of the
 * exchange. */
static u64 exchange(model_exchange kind, unsigned mask, u64 value, unsigned source,
                    uintptr_t site) {
    struct model_device *d = model_now;
    model_lane *me = d->lane;
    me->site = site;
    me->state = LANE_SHUFFLE;
    me->exchange = kind;
    me->shuffle_mask = mask;
    me->shuffle_value = value;
    me->shuffle_source = source;
    schedule_yield(d);
    return me->shuffle_value;
}

u64 model_shuffle(unsigned mask, u64 value, unsigned source) {
    return exchange(EXCHANGE_SHUFFLE, mask, value, source, SITE);
}

void model_meet(unsigned mask);

/* Does __syncwarp(): the lanes' earlier accesses are ordered before their later ones. */
void model_meet(unsigned mask) {
    exchange(EXCHANGE_MEET, mask, 0, 0, SITE);
}

u64 model_vote(unsigned mask, u64 value, unsigned kind);
unsigned model_active(void);

/* Does __ballot_sync(), __match_any_sync(), __reduce_add_sync() and their like: `kind` is a model_exchange. */
u64 model_vote(unsigned mask, u64 value, unsigned kind) {
    return exchange((model_exchange)kind, mask, value, 0, SITE);
}

/* Returns the mask of the lanes that run together now: __activemask(). */
unsigned model_active(void) {
    const struct model_device *d = model_now;
    uint32_t lanes = 0;
    for (unsigned i = 0; i < d->group_size; i++)
        lanes |= UINT32_C(1) << (d->group[i]->index % MODEL_WARP);
    return lanes;
}

/* ---- Fences and atomics --------------------------------------------------------------------- */

/* Notes an atomic of the running block at `location`, or that a fence has followed it. Where there are too many
 * locations, all are forgotten: that can only make the model report a race that is none. */
static void acquire(struct model_device *d, uintptr_t location, uintptr_t site, bool fenced) {
    const unsigned kept = sizeof d->acquired / sizeof *d->acquired;
    for (unsigned i = 0; i < d->acquired_count; i++)
        if (d->acquired[i].location == location && d->acquired[i].fenced == fenced &&
            (d->acquired[i].lane == d->lane->index || !fenced))
            return;
    if (d->acquired_count == kept) d->acquired_count = 0;
    d->acquired[d->acquired_count++] = (handshake){.location = location,
                                                   .site = site,
                                                   .block = d->block,
                                                   .epoch = d->epoch,
                                                   .lane = d->lane->index,
                                                   .fenced = fenced};
}

static void release(struct model_device *d, uintptr_t location, uintptr_t site) {
    if (d->release_count == d->release_capacity) {
        size_t capacity = d->release_capacity ? 2 * d->release_capacity : 64;
        handshake *more = realloc(d->releases, capacity * sizeof *more);
        if (!more) {
            d->out_of_memory = true;
            schedule_leave(d);
        }
        d->releases = more;
        d->release_capacity = capacity;
    }
    d->releases[d->release_count++] = (handshake){.location = location,
                                                  .site = site,
                                                  .block = d->block,
                                                  .epoch = d->epoch,
                                                  .lane = d->lane->index,
                                                  .fenced = d->lane->fenced,
                                                  .fenced_block = d->lane->fenced_block};
}

void model_fence(void) {
    struct model_device *d = model_now;
    d->lane->fenced = true;
    d->lane->last_fence = d->epoch;
    if (d->lane->atomic) acquire(d, d->lane->atomic, d->lane->atomic_site, true);
    d->lane->atomic = 0;
}

void model_fence_block(void);

/* Does __threadfence_block(). It orders nothing between blocks. The lanes of one block are ordered by barriers. */
void model_fence_block(void) {
    model_now->lane->fenced_block = true;
}

static void on_atomic(void *p, unsigned size, unsigned swap, uintptr_t site) {
    struct model_device *d = model_now;
    on_access((uintptr_t)p, size, ACCESS_ATOMIC | ACCESS_RELAXED | swap, site);
    d->lane->atomic = (uintptr_t)p;
    d->lane->atomic_site = site;
    if (memory_is_shared(d, (uintptr_t)p)) return;
    acquire(d, (uintptr_t)p, site, false);
    if (d->lane->fenced || d->has_written) release(d, (uintptr_t)p, site);
}

void model_on_atomic(void *p, unsigned size, uintptr_t site);
void model_on_swap(void *p, unsigned size, uintptr_t site);

/* Notes an atomic whose code follows the call (own_words.hpp): no other lane runs in between. */
void model_on_atomic(void *p, unsigned size, uintptr_t site) {
    on_atomic(p, size, 0, site);
}

/* Notes a compare and swap, as model_on_atomic() does. The lane yields first, so that all lanes of the warp have read
 * before the first one swaps: as on a GPU, a swap may fail and must be tried again. */
void model_on_swap(void *p, unsigned size, uintptr_t site) {
    model_now->lane->site = site;
    schedule_yield(model_now);
    on_atomic(p, size, ACCESS_SWAP, site);
}

#define ATOMIC(T, ...)                                                                             \
    {                                                                                              \
        on_atomic(p, sizeof(T), 0, SITE);                                                          \
        T old = *p;                                                                                \
        *p = (__VA_ARGS__);                                                                        \
        return old;                                                                                \
    }
#define ATOMICS(name, T, ...) T name(T *p, T v) ATOMIC(T, __VA_ARGS__)

ATOMICS(model_add_u32, u32, old + v)
ATOMICS(model_add_u64, u64, old + v)
ATOMICS(model_add_float, float, old + v)
ATOMICS(model_add_double, double, old + v)
ATOMICS(model_and_u32, u32, old &v)
ATOMICS(model_and_u64, u64, old &v)
ATOMICS(model_or_u32, u32, old | v)
ATOMICS(model_or_u64, u64, old | v)
ATOMICS(model_xor_u32, u32, old ^ v)
ATOMICS(model_xor_u64, u64, old ^ v)
ATOMICS(model_exchange_u32, u32, v)
ATOMICS(model_exchange_u64, u64, v)
u32 model_cas_u32(u32 *p, u32 expected, u32 v) ATOMIC(u32, old == expected ? v : old) u64
    model_cas_u64(u64 *p, u64 expected, u64 v) ATOMIC(u64, old == expected ? v : old)

    /* ---- Arithmetic ----------------------------------------------------------------------------- */

    double model_fma(double a, double b, double c);
float model_fmaf(float a, float b, float c);

/* The C library's, which round once: a kernel that is loaded has no library of its own. */
double model_fma(double a, double b, double c) {
    return fma(a, b, c);
}

float model_fmaf(float a, float b, float c) {
    return fmaf(a, b, c);
}

/* ---- For kernels that are loaded at run time ------------------------------------------------ */

#define HOOK(name)                                                                                 \
    { #name, (uintptr_t)model_##name }
#define HOOKS(name) HOOK(name##1), HOOK(name##2), HOOK(name##4), HOOK(name##8), HOOK(name##16)

void *model_hook(const char *name) {
    static const struct {
        const char *name;
        uintptr_t address;
    } hooks[] = {HOOK(nothing),
                 HOOK(on_entry),
                 HOOK(on_block),
                 HOOK(on_index),
                 HOOK(on_index_at),
                 HOOK(note_array),
                 HOOK(on_assert),
                 HOOK(on_constant),
                 HOOK(on_read_range),
                 HOOK(on_write_range),
                 HOOK(on_atomic),
                 HOOK(on_swap),
                 HOOK(thread),
                 HOOK(block),
                 HOOK(threads),
                 HOOK(blocks),
                 HOOK(barrier),
                 HOOK(fence),
                 HOOK(fence_block),
                 HOOK(thread_x),
                 HOOK(thread_y),
                 HOOK(thread_z),
                 HOOK(threads_x),
                 HOOK(threads_y),
                 HOOK(threads_z),
                 HOOK(vote),
                 HOOK(active),
                 HOOK(operation),
                 HOOK(fma),
                 HOOK(fmaf),
                 HOOK(shuffle),
                 HOOK(meet),
                 HOOKS(on_read),
                 HOOKS(on_write),
                 HOOKS(on_volatile_read),
                 HOOKS(on_volatile_write)};
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++)
        if (strcmp(hooks[i].name, name) == 0) return (void *)hooks[i].address;
    return NULL;
}
