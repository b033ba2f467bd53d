/*
 * device.c - the CPU as a device: chooses the kernels, and shares elements among threads.
 *
 * A large array is cut into tasks that threads take as they come free; each thread folds its tasks into a state of
 * its own, and these are merged at the end. Because merging is exact, the result depends neither on the cut nor on
 * which thread takes which task. A problem of several monoids takes its elements in blocks that stay in a core's
 * cache, so that they come from memory once.
 */
#include "device/device.h"
#include "cpu/tuning.h"

#include "base/fpenv.h"
#include "base/paths.h"
#include "base/pool.h"
#include "base/status.h"
#include "base/stop.h"
#include "base/types.h"
#include "cpu/cpu.h"
#include "cpu/kernels.h"
#include "problem/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 4096
_Static_assert(ARRAY_ALONE_TASK_BYTES <= FOLD_MAX,
               "kernels are promised no more elements than that");

struct slot { /* a thread's own state, on cache lines of its own */
    _Alignas(64) struct state state;
};

/* ---- Signs of zeros ----------------------------------------------------------------------- */

/* Returns the bits of the element of `size` bytes at p, shifted up so that the sign is the top
 * bit. */
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

#define SIGN (UINT64_C(1) << 63)

/* Returns whether some of x[0..n) is not -0: a sum is -0 only if every term is. All are -0 if the
 * first is, and each has the bits of the one before it. */
static int is_mixed(size_t size, const char *x, size_t n) {
    return n > 0 && (top_bits(x, size) != SIGN || memcmp(x, x + size, (n - 1) * size) != 0);
}

/* Returns whether some term x[i] y[i] is not -0. A product is -0 if a factor is 0 and the signs differ.
 * (0 times infinity is NaN, which decides the sum anyway.) */
static int are_products_mixed(size_t size, const char *x, const char *y, size_t n) {
    for (; n > 0; n--, x += size, y += size) {
        const uint64_t a = top_bits(x, size), b = top_bits(y, size);
        if (!((a ^ b) & SIGN) || (a << 1 != 0 && b << 1 != 0)) return 1;
    }
    return 0;
}

/* Sets s->mixed if some term is not -0, and returns s->mixed. Terms that are all -0 need not be added, and have been
 * read for this test already. Integers have no -0. */
static int note_sum(const struct problem *p, const char *x, size_t n, struct exact_sum *s) {
    if (!s->mixed) s->mixed = !type_is_float(p->type) || is_mixed(type_size(p->type), x, n);
    return s->mixed;
}

static void note_products(const struct problem *p, const char *x, const char *y, size_t n,
                          struct exact_sum *s) {
    if (!s->mixed)
        s->mixed = !type_is_float(p->type) || are_products_mixed(type_size(p->type), x, y, n);
}

/* ---- One thread's work -------------------------------------------------------------------- */

static fold_kernel *extremes_kernel(const struct cpu_kernels *k, const struct problem *p) {
    switch (p->extremes & (WANT_LEAST | WANT_GREATEST)) {
    case WANT_LEAST:
        return k->least[p->type];
    case WANT_GREATEST:
        return k->greatest[p->type];
    default:
        return k->extremes[p->type];
    }
}

/* Returns the index of the first element of x[0..n) with these bits, the block's extreme, if that
 * replaces the index `known`: it is better, or equal, and the block, which begins at index `first`,
 * comes before. Otherwise returns `known`. */
static uint64_t better_index(const struct cpu_kernels *k, tally_type type, const char *x, size_t n,
                             uint64_t first, uint64_t bits, int better, int same, uint64_t known) {
    if (!better && !(same && first < known)) {
        TALLY_PATH("a block without a better element");
        return known;
    }
    const size_t at = k->find[type](x, n, bits);
    return at < n ? first + at : known;
}

/* Folds a block x[0..n) into e, indices included; x[0] has the index `first`. */
static void search_block(const struct cpu_kernels *k, const struct problem *p, const char *x,
                         size_t n, uint64_t first, struct extremes *e) {
    struct extremes block = *e;
    block.nan = 0;
    extremes_kernel(k, p)(x, n, &block);
    if (block.nan) {
        TALLY_PATH("a NaN");
        const uint64_t at = first + k->find_nan[p->type](x, n, 0);
        if (at < e->at_nan) e->at_nan = at;
        e->nan = 1;
    }
    if (e->nan) return; /* no other index matters any more */
    if (p->extremes & WANT_LEAST) {
        const uint64_t had = order_key(p->type, e->least), has = order_key(p->type, block.least);
        e->at_least =
            better_index(k, p->type, x, n, first, block.least, has < had, has == had, e->at_least);
        e->least = block.least;
    }
    if (p->extremes & WANT_GREATEST) {
        const uint64_t had = order_key(p->type, e->greatest),
                       has = order_key(p->type, block.greatest);
        e->at_greatest = better_index(k, p->type, x, n, first, block.greatest, has > had,
                                      has == had, e->at_greatest);
        e->greatest = block.greatest;
    }
}

static void fold_extremes(const struct cpu_kernels *k, const struct problem *p, const char *x,
                          size_t n, uint64_t first, struct extremes *e) {
    if (!(p->extremes & WANT_INDEX)) {
        extremes_kernel(k, p)(x, n, e);
        return;
    }
    const size_t element = type_size(p->type), most = SEARCH_BYTES / element;
    for (size_t m; n > 0; n -= m, x += m * element, first += m) {
        m = n < most ? n : most;
        search_block(k, p, x, m, first, e);
    }
}

/* Folds a slice into the state of one monoid, in which its first element has the index `first`. */
static void fold_part(const struct cpu_kernels *k, const struct problem *p, enum monoid_id monoid,
                      const char *x, const char *y, size_t n, uint64_t first, struct state *s) {
    switch (monoid) {
    case MONOID_SUM:
        if (note_sum(p, x, n, &s->sum)) k->sum[p->type](x, n, &s->sum);
        break;
    case MONOID_SQUARES:
        s->squares.mixed = 1;
        k->squares[p->type](x, n, &s->squares);
        break;
    case MONOID_PRODUCTS:
        if (p->is_complex) x = y;
        note_products(p, x, y, n, &s->products);
        k->products[p->type](x, y, n, &s->products);
        break;
    case MONOID_MAGNITUDES:
        if (p->is_complex && y) { /* complex elements have y, which analyzers do not know */
            if (note_sum(p, y, n, &s->magnitudes)) k->sum[p->type](y, n, &s->magnitudes);
            break;
        }
        s->magnitudes.mixed = 1;
        k->magnitudes[p->type](x, n, &s->magnitudes);
        break;
    case MONOID_FAST:
        k->fast[p->type](x, n, &s->fast);
        break;
    case MONOID_FACTORS:
        k->factors[p->type](x, n, &s->factors);
        break;
    case MONOID_EXTREMES:
        fold_extremes(k, p, x, n, first, &s->extremes);
        break;
    case MONOID_BITS:
        k->bits[p->bits_op - TALLY_AND][p->type](x, n, &s->bits);
        break;
    case MONOID_NONZERO:
        k->nonzero[p->type](x, n, &s->nonzero);
        break;
    case MONOID_TREE:
    case MONOIDS:
        break;
    }
}

#define MOMENTS (MONOID_BIT(MONOID_SUM) | MONOID_BIT(MONOID_SQUARES))

/* Returns whether the problem wants both the sum of elements and that of squares, and there is a
 * kernel that makes them at once. */
static int has_moments(const struct cpu_kernels *k, const struct problem *p) {
    return (p->monoids & MOMENTS) == MOMENTS && k->moments[p->type] != NULL;
}

/* Returns whether the fold reads its elements more than once. */
static int has_several_passes(const struct cpu_kernels *k, const struct problem *p) {
    unsigned set = p->monoids & (MONOID_BIT(MONOID_TREE) - 1);
    if ((set & (set - 1)) == 0) return 0;
    if (has_moments(k, p)) set &= ~MONOID_BIT(MONOID_SQUARES);
    return (set & (set - 1)) != 0;
}

/* Folds a slice into the states of all monoids but the tree. Sums of elements and of squares are
 * one pass where there is a kernel for it. */
static void fold_parts(const struct cpu_kernels *k, const struct problem *p, const char *x,
                       const char *y, size_t n, uint64_t first, struct state *s) {
    unsigned left = p->monoids & (MONOID_BIT(MONOID_TREE) - 1);
    if (has_moments(k, p)) {
        struct moments moments = {&s->sum, &s->squares};
        TALLY_PATH("sums and squares in one pass");
        s->squares.mixed = 1;
        if (note_sum(p, x, n, &s->sum)) k->moments[p->type](x, n, &moments);
        left &= ~MOMENTS;
    }
    for (; left; left &= left - 1)
        fold_part(k, p, (enum monoid_id)__builtin_ctz(left), x, y, n, first, s);
}

/* Returns whether a few elements may decide all values: the problem wants only any and all. */
static int can_be_decided(const struct problem *p) {
    for (unsigned i = 0; i < p->values; i++)
        if (p->value[i].op != TALLY_ANY && p->value[i].op != TALLY_ALL) return 0;
    return 1;
}

/* Returns whether further elements cannot change the values: any and all are known. `seen` elements
 * have been folded. */
static int is_decided(const struct problem *p, const struct state *s, uint64_t seen) {
    for (unsigned i = 0; i < p->values; i++) {
        const tally_op op = p->value[i].op;
        if (op == TALLY_ANY ? s->nonzero == 0 : op != TALLY_ALL || s->nonzero == seen) return 0;
    }
    return 1;
}

/* ---- Sharing the work --------------------------------------------------------------------- */

struct job {
    struct cpu_device *device;
    const struct problem *p;
    const char *x, *y;
    char *values;            /* where the leaves of a tree go */
    size_t n, element, task; /* elements; bytes an element; elements a task */
    uint64_t first;          /* the index of x[0] in the state */
    int may_decide;          /* any and all: a few elements may decide the values */
    int decided;             /* the values are decided; any thread may set this */
};

static size_t at_most(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Folds n elements of the job, from number `from` on, into s; or fewer, where the values are decided. */
static void fold_range(struct job *job, size_t from, size_t n, struct state *s) {
    const struct problem *p = job->p;
    const struct cpu_kernels *k = job->device->kernels;
    const int in_blocks = job->may_decide || has_several_passes(k, p);
    const size_t most = in_blocks ? SHARED_BYTES / job->element : n;
    if (n > most) TALLY_PATH("in blocks");
    for (size_t m; n > 0; n -= m, from += m) {
        const char *x = job->x + from * job->element;
        const char *y = job->y ? job->y + from * job->element : NULL;
        m = at_most(n, most);
        if (job->may_decide && __atomic_load_n(&job->decided, __ATOMIC_RELAXED)) {
            TALLY_PATH("what is left does not matter");
            return;
        }
        fold_parts(k, p, x, y, m, job->first + from, s);
        s->n += m;
        if (job->may_decide && is_decided(p, s, s->n))
            __atomic_store_n(&job->decided, 1, __ATOMIC_RELAXED);
    }
}

static void fold_task(void *context, size_t task, unsigned worker) {
    struct job *job = context;
    const size_t first = task * job->task;
    fold_range(job, first, at_most(job->n - first, job->task), &job->device->slots[worker].state);
}

/* Returns the elements of a task: a multiple of a leaf, so few that each thread gets several tasks.
 * So a slow thread does not delay the others for long. */
static size_t task_elements(const struct cpu_device *d, size_t n, size_t element) {
    size_t bytes = n * element / d->threads / 8;
    if (bytes < ARRAY_TASK_BYTES_MIN) bytes = ARRAY_TASK_BYTES_MIN;
    if (bytes > ARRAY_TASK_BYTES_MAX) bytes = ARRAY_TASK_BYTES_MAX;
    return (bytes / element + TREE_LEAF - 1) / TREE_LEAF * TREE_LEAF;
}

static size_t task_count(size_t n, size_t task) {
    return n / task + (n % task != 0);
}

/* Returns whether n elements are worth waking threads for, and the threads are free; then claims
 * the pool. */
static int claim_threads(struct cpu_device *d, size_t n, size_t element) {
    return d->threads > 1 && n * element >= ARRAY_ALONE_BYTES && pool_claim(d->pool);
}

static tally_status cpu_fold(tally_device *device, const struct problem *p, const struct slice *in,
                             struct state *into) {
    struct cpu_device *d = (struct cpu_device *)device;
    const uint64_t before = into->n;
    int stopped = 0;
    struct job job = {.device = d, .p = p, .x = in->x, .y = in->y, .n = in->n, .first = before};
    job.element = type_size(p->type);
    job.may_decide = can_be_decided(p);
    if (job.may_decide && is_decided(p, into, into->n)) job.decided = 1;
    if (claim_threads(d, in->n, job.element)) {
        TALLY_PATH("all threads");
        for (unsigned i = 0; i < d->threads; i++)
            state_clear(p, &d->slots[i].state);
        job.task = task_elements(d, in->n, job.element);
        stopped = pool_loop(d->pool, task_count(in->n, job.task), fold_task, &job);
        for (unsigned i = 0; i < d->threads && !stopped; i++)
            state_merge(p, into, &d->slots[i].state, 0); /* indices count in `into` already */
        pool_release(d->pool);
    } else {
        /* Folds a piece at a time: kernels read several streams of it in turn, which should lie near each other. */
        const size_t most = ARRAY_ALONE_TASK_BYTES / job.element;
        const int on_copy = in->n > most && stop_possible(); /* a stop leaves `into` as it was */
        struct state copy;
        if (on_copy) {
            TALLY_PATH("a copy of the state");
            copy = *into;
        } else
            TALLY_PATH("the calling thread");
        for (size_t m, from = 0; from < in->n && !stopped; from += m) {
            m = at_most(in->n - from, most);
            fold_range(&job, from, m, on_copy ? &copy : into);
            stopped = from + m < in->n && stop_asked();
        }
        if (on_copy && !stopped) *into = copy;
    }
    if (stopped) return stop_status();
    into->n = before + in->n;
    return TALLY_OK;
}

static void evaluate_leaves(const struct job *job, const char *x, size_t n, char *values) {
    if (job->p->user)
        tree_user_leaves(job->p, x, n, values);
    else
        job->device->kernels->product_leaves[job->p->type](x, n, values);
}

static void leaves_task(void *context, size_t task, unsigned worker) {
    struct job *job = context;
    (void)worker;
    const size_t first = task * job->task;
    evaluate_leaves(job, job->x + first * job->element, at_most(job->n - first, job->task),
                    job->values + first / TREE_LEAF * tree_value_size(job->p));
}

/* Evaluates leaves, leaf by leaf: `level` is 0, as tree_level is. */
static tally_status cpu_leaves(tally_device *device, const struct problem *p, const void *x,
                               size_t n, unsigned level, void *out) {
    (void)level;
    struct cpu_device *d = (struct cpu_device *)device;
    struct job job = {.device = d, .p = p, .values = out, .x = x, .n = n};
    job.element = type_size(p->type);
    if (!claim_threads(d, n, job.element)) {
        TALLY_PATH("the calling thread");
        evaluate_leaves(&job, x, n, out);
        return TALLY_OK;
    }
    TALLY_PATH("all threads");
    job.task = task_elements(d, n, job.element);
    const int stopped = pool_loop(d->pool, task_count(n, job.task), leaves_task, &job);
    pool_release(d->pool);
    return stopped ? stop_status() : TALLY_OK;
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
        struct read_job job = {d->kernels->read[k], bytes, size, ARRAY_TASK_BYTES_MAX};
        double before = now();
        if (claim_threads(d, size, 1)) {
            TALLY_PATH("all threads");
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
    parsed.threads = pool_cores();
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
    out->units = pool_cores();
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
    .shaped = cpu_shaped,
    .sort = cpu_sort,
};

tally_device *cpu_calling_thread(void) {
    static struct cpu_device calling_thread = {.base.kind = &cpu_device_kind, .threads = 1};
    /* Every thread stores the same pointer. */
    if (!__atomic_load_n(&calling_thread.kernels, __ATOMIC_RELAXED))
        __atomic_store_n(&calling_thread.kernels, cpu_kernels_best(), __ATOMIC_RELAXED);
    return &calling_thread.base;
}
