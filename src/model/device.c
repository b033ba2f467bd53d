/*
 * device.c - the calls of hosts: devices, their memory, launches.
 */
#include "base/invariant.h"
#include "model/machine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

_Thread_local struct model_device *model_now;

/* Held by the thread that runs a kernel: the program has one copy of the kernels' shared arrays. */
static pthread_mutex_t launching = PTHREAD_MUTEX_INITIALIZER;
/* Launches that are suspended while their step callbacks run; changed under the lock. */
static struct model_device *suspended;

static model_status fail(model_device *d, model_status status, const char *text) {
    snprintf(d->error, sizeof d->error, "%s", text);
    return status;
}

model_status model_open(model_device **out) {
    model_device *d = calloc(1, sizeof *d);
    if (!d) return MODEL_ENOMEM;
    d->patience = d->barriers_most = UINT64_C(1) << 26;
    d->epoch = 1;
    d->lanes = calloc(MODEL_BLOCK_MAX, sizeof *d->lanes);
    d->stacks = mmap(NULL, MODEL_BLOCK_MAX * STACK, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (d->stacks == MAP_FAILED) d->stacks = NULL;
    if (!d->lanes || !d->stacks) {
        model_close(d);
        return MODEL_ENOMEM;
    }
    fiber_announce(d->stacks, STACK, MODEL_BLOCK_MAX, d->stack_ids);
    *out = d;
    return MODEL_OK;
}

void model_close(model_device *d) {
    if (!d) return;
    memory_release(d);
    if (d->stacks && d->lanes) fiber_withdraw(MODEL_BLOCK_MAX, d->stack_ids);
    if (d->stacks) munmap(d->stacks, MODEL_BLOCK_MAX * STACK);
    free(d->lanes);
    free(d->block_epochs);
    free(d->numbers);
    free(d->seen);
    free(d->releases);
    free(d->saved);
    trace_release(d);
    free(d);
}

const char *model_error(const model_device *d) {
    return d->error;
}

const model_fault *model_last_fault(const model_device *d) {
    return &d->fault;
}

const model_fault *model_noted_fault(const model_device *d) {
    return &d->noted;
}

const model_fault *model_unfenced_read(const model_device *d) {
    return &d->unfenced;
}

uint64_t model_work(const model_device *d) {
    return d->work;
}

size_t model_bytes_read(const model_device *d, const void *memory) {
    return memory_bytes_read(d, (uintptr_t)memory);
}

const model_fault *model_untried_read(const model_device *d) {
    return &d->untried;
}

const model_fault *model_stray_shuffle(const model_device *d) {
    return &d->stray;
}

void model_set_patience(model_device *d, uint64_t blocks, uint64_t barriers) {
    d->patience = blocks;
    d->barriers_most = barriers;
}

/* ---- Memory --------------------------------------------------------------------------------- */

model_status model_allocate(model_device *d, size_t bytes, void **out) {
    model_status status = memory_add(d, bytes, out);
    return status ? fail(d, status, "no memory for a buffer") : status;
}

model_status model_free(model_device *d, void *memory) {
    if (!memory || memory_remove(d, memory) == MODEL_OK) return MODEL_OK;
    return fail(d, MODEL_EINVAL, "freed what was not allocated");
}

model_status model_set_guards(model_device *d, void *memory, const model_guard *guards,
                              size_t count) {
    const model_status status = memory_set_guards(d, memory, guards, count);
    return status ? fail(d, status, "guards of what was not allocated, or too many") : status;
}

static model_status written(model_device *d, void *to, size_t bytes) {
    region *r = memory_buffer_at(d, (uintptr_t)to, bytes);
    if (!r) return fail(d, MODEL_EINVAL, "a copy to the device leaves its buffer");
    if (memory_mark_known(d, r, (uintptr_t)to - r->base, bytes))
        return fail(d, MODEL_ENOMEM, "no memory for the shadow of a buffer");
    return MODEL_OK;
}

model_status model_write(model_device *d, void *to, const void *from, size_t bytes) {
    model_status status = written(d, to, bytes);
    if (status == MODEL_OK && bytes) memcpy(to, from, bytes);
    return status;
}

model_status model_fill(model_device *d, void *to, unsigned char byte, size_t bytes) {
    model_status status = written(d, to, bytes);
    if (status == MODEL_OK && bytes) memset(to, byte, bytes);
    return status;
}

model_status model_adopt(model_device *d, void *memory, size_t bytes) {
    model_status status = memory_adopt(d, memory, bytes);
    return status ? fail(d, status, "no memory for the shadow of a buffer") : status;
}

model_status model_read(model_device *d, void *to, const void *from, size_t bytes) {
    if (!memory_buffer_at(d, (uintptr_t)from, bytes))
        return fail(d, MODEL_EINVAL, "a copy from the device leaves its buffer");
    if (bytes) memcpy(to, from, bytes);
    return MODEL_OK;
}

void model_touched(const model_device *d, const void *memory, bool written, model_reach *spans,
                   unsigned count) {
    const region *r = d->buffers;
    memset(spans, 0, count * sizeof *spans);
    while (r < d->buffers + d->buffer_count && r->base != (uintptr_t)memory)
        r++;
    if (r == d->buffers + d->buffer_count || d->counts.blocks == 0) return;
    for (size_t i = 0; i < (r->size + ((size_t)1 << r->shift) - 1) >> r->shift; i++) {
        const uint32_t when[] = {r->cells[i].write, written ? 0 : r->cells[i].read};
        for (unsigned k = 0; k < 2; k++) {
            if (when[k] < d->launch_epoch) continue; /* before this launch; 0: never */
            const unsigned block = d->numbers[memory_block_of(d, when[k])];
            if (block >= count) continue;
            model_reach *span = &spans[block];
            const size_t to = (i + 1) << r->shift;
            if (span->to == 0) span->from = i << r->shift;
            span->to = to < r->size ? to : r->size;
        }
    }
}

/* ---- Launch --------------------------------------------------------------------------------- */

/* Saves the shared arrays of the launches that are suspended, as the next kernel may overwrite them. Returns false if
 * there is no memory. The caller holds the lock. */
static bool put_aside_shared(void) {
    for (struct model_device *s = suspended; s; s = s->next_suspended)
        if (!s->put_aside) {
            s->put_aside = memory_save_shared(s);
            if (!s->put_aside) return false;
        }
    return true;
}

void device_tell(struct model_device *d, const model_step *step) {
    struct model_device **link = &suspended;
    TALLY_ASSERT(model_now == d);
    d->put_aside = false;
    d->next_suspended = suspended;
    suspended = d;
    model_now = NULL;
    pthread_mutex_unlock(&launching);

    d->launch->on_step(d->launch->context, step);

    pthread_mutex_lock(&launching);
    model_now = d;
    while (*link != d)
        link = &(*link)->next_suspended;
    *link = d->next_suspended;
    if (!put_aside_shared()) d->out_of_memory = true;
    if (d->put_aside) memory_restore_shared(d);
}

/* Returns how many blocks of a launch run. */
static unsigned blocks_of(const model_launch *l) {
    return l->only ? l->only_count : l->grid;
}

/* Sets the order in which blocks run: d->numbers[i] is the number of the i-th. */
static void number_blocks(model_device *d) {
    const unsigned grid = blocks_of(d->launch), order = d->launch->order;
    uint64_t state = order;
    if (d->launch->only) {
        memcpy(d->numbers, d->launch->only, grid * sizeof *d->numbers);
        return;
    }
    for (unsigned i = 0; i < grid; i++)
        d->numbers[i] = order ? grid - 1 - i : i;
    for (unsigned i = grid; order > 1 && i > 1; i--) { /* Fisher and Yates's shuffle */
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const unsigned other = (unsigned)((state >> 33) % i);
        const uint32_t kept = d->numbers[i - 1];
        d->numbers[i - 1] = d->numbers[other];
        d->numbers[other] = kept;
    }
}

static void run_grid(model_device *d) {
    model_counts *c = &d->counts;
    c->launches = 1;
    for (d->block = 0; d->block < blocks_of(d->launch); d->block++) {
        schedule_block(d);
        c->blocks++;
        c->all_steps += d->block_steps;
        c->all_barriers += d->block_barriers;
        c->all_rounds += d->block_rounds;
        if (d->block_steps > c->steps) c->steps = d->block_steps;
        if (d->block_barriers > c->barriers) c->barriers = d->block_barriers;
        if (d->block_rounds > c->rounds) c->rounds = d->block_rounds;
        if (d->fault.kind || d->out_of_memory) return;
    }
}

model_status model_run(model_device *d, const model_launch *launch, model_counts *counts) {
    if (d->launch)
        return fail(d, MODEL_EINVAL,
                    "a launch of this device is under way: its callback needs another");
    memset(&d->fault, 0, sizeof d->fault);
    memset(&d->noted, 0, sizeof d->noted);
    memset(&d->stray, 0, sizeof d->stray);
    memset(&d->untried, 0, sizeof d->untried);
    memset(&d->unfenced, 0, sizeof d->unfenced);
    if (!launch->kernel || launch->grid == 0 || launch->block == 0 ||
        launch->block > MODEL_BLOCK_MAX || (!launch->arguments && launch->kernel->arguments))
        return fail(d, MODEL_EINVAL, "a launch needs a kernel, a grid, and a block of 1 to 1024");
    uint32_t *epochs = realloc(d->block_epochs, blocks_of(launch) * sizeof *epochs);
    if (!epochs) return fail(d, MODEL_ENOMEM, "no memory for so large a grid");
    d->block_epochs = epochs;
    uint32_t *numbers = realloc(d->numbers, blocks_of(launch) * sizeof *numbers);
    if (!numbers) return fail(d, MODEL_ENOMEM, "no memory for so large a grid");
    d->numbers = numbers;
    uint32_t *seen = realloc(d->seen, blocks_of(launch) * sizeof *seen);
    if (!seen) return fail(d, MODEL_ENOMEM, "no memory for so large a grid");
    d->seen = seen;

    pthread_mutex_lock(&launching);
    if (!put_aside_shared()) {
        pthread_mutex_unlock(&launching);
        return fail(d, MODEL_ENOMEM, "no memory for the shared arrays of another launch");
    }
    if (d->epoch > UINT32_MAX / 2) {
        memory_forget_epochs(d);
        d->epoch = 1;
    }
    memory_trim_pages(d);
    memset(&d->counts, 0, sizeof d->counts);
    memset(d->warps, 0, sizeof d->warps);
    memset(d->accesses, 0, sizeof d->accesses);
    d->access_count = 0;
    d->stride = 0;
    d->strides_differ = false;
    d->release_count = 0;
    d->trace_count = 0;
    d->guess_count = 0;
    d->tried_count = 0;
    d->work = 0;
    d->work_most = launch->work_most ? launch->work_most : UINT64_MAX;
    d->out_of_memory = false;
    d->launch = launch;
    d->anchor = (uintptr_t)launch->kernel->call;
    d->launch_epoch = d->epoch;
    memory_find_shared(d);

    TALLY_ASSERT(!model_now); /* where a callback launches, its own launch is suspended */
    number_blocks(d);
    model_now = d;
    run_grid(d);
    model_now = NULL;

    if (d->fault.kind) fault_describe(d, &d->fault);
    if (d->noted.kind) fault_describe(d, &d->noted);
    if (d->stray.kind) fault_describe(d, &d->stray);
    if (d->untried.kind) fault_describe(d, &d->untried);
    if (d->unfenced.kind) fault_describe(d, &d->unfenced);
    d->launch = NULL;
    pthread_mutex_unlock(&launching);

    if (counts) model_counts_add(counts, &d->counts);
    if (d->fault.kind) return fail(d, MODEL_EFAULT, d->fault.text);
    if (d->out_of_memory) return fail(d, MODEL_ENOMEM, "no memory for the shadow of a buffer");
    return MODEL_OK;
}
