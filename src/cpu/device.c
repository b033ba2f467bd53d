/*
 * device.c - the CPU as a device: which kernel, how many threads, who takes which part.
 *
 * A large array is cut into tasks that threads take as they come free; each thread folds its tasks into
 * a partial of its own, and these are merged at the end. Because merging is exact, neither the cut nor
 * the takers show in the result.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "device.h"

#include "cpu/kernels.h"
#include "cpu/pool.h"
#include "fpenv.h"
#include "status.h"
#include "tree.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 4096
/* Below this many bytes one core is done before another has woken up (docs/performance.md). */
#define ALONE_BYTES      ((size_t)1 << 20)
#define TASK_BYTES_MIN   ((size_t)128 << 10)
#define TASK_BYTES_MAX   ((size_t)4 << 20)
#define ALONE_TASK_BYTES ((size_t)16 << 20)
_Static_assert(ALONE_TASK_BYTES <= FOLD_MAX, "kernels are promised no more elements than that");

struct slot { /* a thread's own partial, on cache lines of its own */
    _Alignas(64) struct partial partial;
};

struct cpu_device {
    tally_device base;
    const struct cpu_kernels *kernels;
    unsigned threads;
    struct pool *pool;  /* NULL where threads is 1 */
    struct slot *slots; /* one a thread; belongs to whoever runs in the pool */
};

static fold_kernel *kernel_for(const struct cpu_kernels *k, const struct reduction *r) {
    switch (r->method) {
    case METHOD_FLOAT_SUM:
        return k->exact_sum[r->type];
    case METHOD_FAST_SUM:
        return k->fast_sum[r->type];
    case METHOD_INTEGER_SUM:
        return k->integer_sum[r->type];
    case METHOD_INTEGER_PROD:
        return k->integer_prod[r->type];
    case METHOD_ORDER:
        return k->order[r->op - TALLY_MIN][r->type];
    case METHOD_BITS:
        return k->bits[r->op - TALLY_AND][r->type];
    case METHOD_TREE:
        break;
    }
    return NULL;
}

/* The bits of the element of `size` bytes at p, shifted up so that the sign is the top bit. */
static inline uint64_t top_bits(const char *p, size_t size) {
    uint64_t bits = 0;
    switch (size) {
    case 8:
        memcpy(&bits, p, 8);
        return bits;
    case 4:
        memcpy(&bits, p, 4);
        return bits << 32;
    default:
        memcpy(&bits, p, 2);
        return bits << 48;
    }
}

/* A sum is -0 only if every term is, which is found out here: usually from the first element. */
static void note_zeros(size_t size, const char *x, size_t n, struct float_sum *s) {
    const uint64_t negative_zero = UINT64_C(1) << 63;
    for (; n > 0 && !s->mixed; n--, x += size)
        s->mixed = top_bits(x, size) != negative_zero;
}

/* ---- Sharing the work --------------------------------------------------------------------- */

struct job {
    struct cpu_device *device;
    fold_kernel *kernel;       /* a fold, */
    const struct reduction *r; /* or the leaves of a tree, */
    char *values;              /* and where these go */
    const char *x;
    size_t n, element, task; /* elements; bytes an element; elements a task */
};

static void fold_task(void *context, size_t task, unsigned worker) {
    struct job *job = context;
    size_t first = task * job->task;
    size_t n = job->n - first < job->task ? job->n - first : job->task;
    job->kernel(job->x + first * job->element, n, &job->device->slots[worker].partial);
}

/* Elements a task: a multiple of a leaf, several tasks a thread so that a slow one holds nobody up. */
static size_t task_elements(const struct cpu_device *d, size_t n, size_t element) {
    size_t bytes = n * element / d->threads / 8;
    if (bytes < TASK_BYTES_MIN) bytes = TASK_BYTES_MIN;
    if (bytes > TASK_BYTES_MAX) bytes = TASK_BYTES_MAX;
    return (bytes / element + TREE_LEAF - 1) / TREE_LEAF * TREE_LEAF;
}

static size_t task_count(size_t n, size_t task) {
    return n / task + (n % task != 0);
}

/* Whether n elements are worth waking threads for, and these are free; if so they are the caller's. */
static int claim_threads(struct cpu_device *d, size_t n, size_t element) {
    return d->threads > 1 && n * element >= ALONE_BYTES && pool_claim(d->pool);
}

static tally_status cpu_fold(tally_device *device, const struct reduction *r, const void *x,
                             size_t n, struct partial *into) {
    struct cpu_device *d = (struct cpu_device *)device;
    struct job job = {.device = d, .kernel = kernel_for(d->kernels, r), .x = x, .n = n};
    job.element = tally_type_size(r->type);
    if (!job.kernel)
        return fail(TALLY_EUNSUPPORTED, "the cpu device has no kernel for this reduction");
    if (r->method == METHOD_FLOAT_SUM) note_zeros(job.element, x, n, &into->u.sum);
    if (claim_threads(d, n, job.element)) {
        for (unsigned i = 0; i < d->threads; i++)
            partial_clear(r, &d->slots[i].partial);
        job.task = task_elements(d, n, job.element);
        pool_loop(d->pool, task_count(n, job.task), fold_task, &job);
        for (unsigned i = 0; i < d->threads; i++)
            partial_merge(r, into, &d->slots[i].partial);
        pool_release(d->pool);
        return TALLY_OK;
    }
    const size_t most =
        ALONE_TASK_BYTES / job.element; /* not all at once: kernels read several places
                                                           in turn, and these should lie near */
    for (size_t m; n > 0; n -= m, job.x += m * job.element) {
        m = n < most ? n : most;
        job.kernel(job.x, m, into);
    }
    return TALLY_OK;
}

static void evaluate_leaves(const struct job *job, const char *x, size_t n, char *values) {
    if (job->r->user)
        tree_user_leaves(job->r, x, n, values);
    else
        job->device->kernels->product_leaves[job->r->type](x, n, values);
}

static void leaves_task(void *context, size_t task, unsigned worker) {
    struct job *job = context;
    (void)worker;
    size_t first = task * job->task;
    size_t n = job->n - first < job->task ? job->n - first : job->task;
    evaluate_leaves(job, job->x + first * job->element, n,
                    job->values + first / TREE_LEAF * tree_value_size(job->r));
}

/* Leaf by leaf: level is 0. */
static tally_status cpu_leaves(tally_device *device, const struct reduction *r, const void *x,
                               size_t n, unsigned level, void *out) {
    (void)level;
    struct cpu_device *d = (struct cpu_device *)device;
    struct job job = {.device = d, .r = r, .values = out, .x = x, .n = n};
    job.element = tally_type_size(r->type);
    if (!claim_threads(d, n, job.element)) {
        evaluate_leaves(&job, x, n, out);
        return TALLY_OK;
    }
    job.task = task_elements(d, n, job.element);
    pool_loop(d->pool, task_count(n, job.task), leaves_task, &job);
    pool_release(d->pool);
    return TALLY_OK;
}

/* ---- The read roof ------------------------------------------------------------------------ */

struct read_job {
    uint64_t (*kernel)(const void *, size_t);
    const char *bytes;
    size_t size, task;
};

static void read_task(void *context, size_t task, unsigned worker) {
    struct read_job *job = context;
    (void)worker;
    size_t first = task * job->task;
    size_t size = job->size - first < job->task ? job->size - first : job->task;
    volatile uint64_t sink = job->kernel(job->bytes + first, size);
    (void)sink;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static tally_status cpu_read(tally_device *device, const void *bytes, size_t size,
                             double *seconds) {
    struct cpu_device *d = (struct cpu_device *)device;
    double best = -1;
    for (int k = 0; k < 3; k++) {
        struct read_job job = {d->kernels->read[k], bytes, size, TASK_BYTES_MAX};
        double before = now();
        if (claim_threads(d, size, 1)) {
            pool_loop(d->pool, task_count(size, job.task), read_task, &job);
            pool_release(d->pool);
        } else {
            for (size_t t = 0; t < task_count(size, job.task); t++)
                read_task(&job, t, 0);
        }
        double took = now() - before;
        if (best < 0 || took < best) best = took;
    }
    *seconds = best;
    return TALLY_OK;
}

/* ---- Opening and describing --------------------------------------------------------------- */

static unsigned cores_allowed(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (unsigned)CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* more CPUs than a cpu_set_t has room for */
    return online > 0 ? (unsigned)online : 1;
}

static tally_status parse_threads(const char *text, size_t length, unsigned *out) {
    unsigned long value = 0;
    for (size_t i = 0; i < length && value <= MAX_THREADS; i++)
        value = text[i] >= '0' && text[i] <= '9' ? 10 * value + (unsigned long)(text[i] - '0')
                                                 : MAX_THREADS + 1;
    if (length == 0 || value == 0 || value > MAX_THREADS)
        return fail(TALLY_EDEVICE, "threads=%.*s: give a number from 1 to %d",
                    (int)(length < 20 ? length : 20), text, MAX_THREADS);
    *out = (unsigned)value;
    return TALLY_OK;
}

static tally_status parse_isa(const char *text, size_t length, const struct cpu_kernels **out) {
    char name[16] = "";
    if (length < sizeof name) memcpy(name, text, length);
    const struct cpu_kernels *kernels = cpu_kernels_named(name);
    if (!kernels)
        return fail(TALLY_EDEVICE,
                    "isa=%.*s: not an instruction set of this machine; its best is %s",
                    (int)(length < 20 ? length : 20), text, cpu_kernels_best()->isa);
    *out = kernels;
    return TALLY_OK;
}

/* Reads "threads=3,isa=avx2"; an option left out keeps its value. */
static tally_status parse_options(const char *options, struct cpu_device *d) {
    while (*options) {
        size_t length = strcspn(options, ",");
        tally_status s;
        if (strncmp(options, "threads=", 8) == 0 && length >= 8)
            s = parse_threads(options + 8, length - 8, &d->threads);
        else if (strncmp(options, "isa=", 4) == 0 && length >= 4)
            s = parse_isa(options + 4, length - 4, &d->kernels);
        else
            s = fail(TALLY_EDEVICE,
                     "'%.*s' is no option of the cpu device; it has threads=N and isa=NAME",
                     (int)(length < 40 ? length : 40), options);
        if (s != TALLY_OK) return s;
        options += length + (options[length] == ',');
    }
    return TALLY_OK;
}

static void cpu_close(tally_device *device) {
    struct cpu_device *d = (struct cpu_device *)device;
    pool_destroy(d->pool);
    free(d->slots);
    free(d);
}

static tally_status cpu_open(const char *options, void *context, tally_device **out) {
    if (context) return fail(TALLY_EINVAL, "a cpu device has no contexts");
    struct cpu_device parsed = {.base.kind = &cpu_device_kind, .kernels = cpu_kernels_best()};
    parsed.threads = cores_allowed();
    tally_status s = parse_options(options, &parsed);
    if (s != TALLY_OK) return s;
    struct cpu_device *d = malloc(sizeof *d);
    if (!d) return fail(TALLY_ENOMEM, "no memory for the cpu device");
    *d = parsed;
    if (d->threads > 1) {
        d->slots = aligned_alloc(64, d->threads * sizeof *d->slots);
        d->pool = pool_create(d->threads);
        if (!d->slots || !d->pool) {
            cpu_close(&d->base);
            return fail(TALLY_ENOMEM, "no memory for %u threads", parsed.threads);
        }
    }
    *out = &d->base;
    return TALLY_OK;
}

static void describe_machine(tally_device_info *out) {
    snprintf(out->spec, sizeof out->spec, "cpu");
    snprintf(out->name, sizeof out->name, "CPU");
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256];
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(out->name, sizeof out->name, "%.100s", colon + 2);
        break;
    }
    if (f) fclose(f);
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0) out->memory_bytes = (uint64_t)pages * (uint64_t)page;
    out->units = cores_allowed();
}

static void cpu_describe(const tally_device *device, tally_device_info *out) {
    const struct cpu_device *d = (const struct cpu_device *)device;
    describe_machine(out);
    snprintf(out->spec, sizeof out->spec, "cpu:threads=%u,isa=%s", d->threads, d->kernels->isa);
    snprintf(out->isa, sizeof out->isa, "%s", d->kernels->isa);
    out->threads = d->threads;
}

static size_t cpu_count(void) {
    return 1;
}

static void cpu_list(size_t i, tally_device_info *out) {
    (void)i;
    describe_machine(out);
    snprintf(out->isa, sizeof out->isa, "%s", cpu_kernels_best()->isa);
    out->threads = out->units;
}

const struct device_kind cpu_device_kind = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .count = cpu_count,
    .list = cpu_list,
    .fold = cpu_fold,
    .leaves = cpu_leaves,
    .tree_level = 0,
    .read = cpu_read,
};

tally_device *cpu_calling_thread(void) {
    static struct cpu_device calling_thread = {.base.kind = &cpu_device_kind, .threads = 1};
    /* Every thread stores the same pointer. */
    if (!__atomic_load_n(&calling_thread.kernels, __ATOMIC_RELAXED))
        __atomic_store_n(&calling_thread.kernels, cpu_kernels_best(), __ATOMIC_RELAXED);
    return &calling_thread.base;
}
