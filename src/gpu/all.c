/*
 * all.c - all devices of a machine as one: "cuda:all", "opencl:all".
 *
 * An array in host memory is cut into tasks. Each device has a thread, which takes the next free task, so a device that
 * is slower, or has a slower bus, does less. While a device folds one task, the elements of its next task are on their
 * way to it. Its state is read once, after its last task. An array that already lies on the devices, a stretch on each,
 * is folded there. In the merged state indices count from the start of the array, so the result depends neither on the
 * cut nor on which device took a task.
 *
 * Reductions in parts, and the order of groups, are left to the first device.
 */
#include "gpu/all.h"

#include "base/pool.h"
#include "base/status.h"
#include "base/stop.h"
#include "base/types.h"
#include "gpu/tuning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct all_device {
    tally_device base;
    const char *name; /* of the machine */
    struct pool *pool;
    size_t count;
    tally_device *member[];
};

static struct all_device *all_of(const tally_device *device) {
    return (struct all_device *)device;
}

/* ---- Work that the devices share ---------------------------------------------------------- */

/* A call, cut into tasks. */
struct job {
    struct all_device *d;
    size_t devices; /* that take part */
    const struct problem *p;
    struct slice in;
    size_t element, each; /* bytes of an element, elements of a task */
    unsigned level;       /* of the subtrees whose values go to out[] */
    char *out;
    const struct slice *stretch; /* where the array lies on the devices: one on each */
    struct gpu_rest rest;        /* of an array in host memory */
    struct state *states;        /* for each device; of stretches, for each stretch */
    char **values;               /* of each stretch's leaves */
    int failed;                  /* a task has failed: no other task is begun */
    tally_status status;
    char why[512]; /* the first failed task's error line: tally_error() of other threads lacks it */
};

/* Notes a task's status. */
static void note(struct job *w, tally_status s) {
    int none = 0;
    if (s == TALLY_OK) return;
    if (!__atomic_compare_exchange_n(&w->failed, &none, 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    w->status = s;
    snprintf(w->why, sizeof w->why, "%s", tally_error());
}

/* Runs body for every task, on the devices' threads or, where another call has these, on the calling thread as worker
 * 0. Returns the status of the first task that failed, with its line, or that of a call that was stopped. */
static tally_status run(struct job *w, size_t tasks,
                        void (*body)(void *context, size_t task, unsigned worker)) {
    struct pool *pool = w->d->pool;
    int stopped = 0;
    if (tasks > 1 && pool && pool_claim(pool)) {
        stopped = pool_loop(pool, tasks, body, w);
        pool_release(pool);
    } else {
        for (size_t task = 0; task < tasks && !stopped; task++) {
            body(w, task, 0);
            stopped = stop_asked();
        }
    }
    if (w->status != TALLY_OK) return fail(w->status, "%s", w->why);
    return stopped ? stop_status() : TALLY_OK;
}

static bool has_failed(struct job *w) {
    return __atomic_load_n(&w->failed, __ATOMIC_RELAXED) != 0;
}

/* Returns the elements of a task, in host memory. */
static struct slice task_slice(const struct job *w, size_t task) {
    const size_t first = task * w->each, rest = w->in.n - first, bytes = first * w->element;
    return (struct slice){.x = (const char *)w->in.x + bytes,
                          .y = w->in.y ? (const char *)w->in.y + bytes : NULL,
                          .n = rest < w->each ? rest : w->each};
}

/* Cuts the array into tasks of multiples of `grain` elements; returns how many there are. */
static size_t cut(struct job *w, size_t grain) {
    const size_t even = w->in.n / (w->devices * ALL_TASKS_EACH),
                 least = ALL_TASK_LEAST / w->element;
    const size_t most = ALL_TASK_MOST / w->element;
    w->each = even < least ? least : even > most ? most : even;
    w->each = w->each < grain ? grain : w->each / grain * grain;

    return w->in.n / w->each + (w->in.n % w->each != 0);
}

/* ---- Arrays in host memory ---------------------------------------------------------------- */

/* Folds a device's part: all chunks that it takes. */
static void fold_rest(void *context, size_t device, unsigned worker) {
    struct job *w = context;
    (void)worker;
    if (has_failed(w) || __atomic_load_n(&w->rest.taken, __ATOMIC_RELAXED) >= w->in.n) return;
    note(w, gpu_fold_rest(w->d->member[device], w->p, &w->in, &w->rest, &w->states[device]));
}

/* Returns how many devices take part in folding an array of so many bytes (ALL_DEVICE_LEAST). */
static size_t devices_for(const struct all_device *d, size_t bytes) {
    const size_t worth = bytes / ALL_DEVICE_LEAST;
    return worth < 1 ? 1 : worth < d->count ? worth : d->count;
}

static tally_status all_fold(tally_device *device, const struct problem *p, const struct slice *in,
                             struct state *into) {
    struct all_device *d = all_of(device);
    struct job w = {.d = d, .p = p, .in = *in, .element = type_size(p->type)};
    w.devices = devices_for(d, in->n * w.element);
    cut(&w, 1);
    w.rest = (struct gpu_rest){.each = w.each};
    w.states = malloc(d->count * sizeof *w.states);
    if (!w.states) return fail(TALLY_ENOMEM, "no memory for the states of %zu devices", d->count);
    for (size_t i = 0; i < d->count; i++)
        state_clear(p, &w.states[i]);
    const tally_status s = run(&w, w.devices, fold_rest);
    const uint64_t known = into->n;
    for (size_t i = 0; i < d->count && s == TALLY_OK; i++)
        state_merge(p, into, &w.states[i], known);
    free(w.states);
    return s;
}

static void leaves_task(void *context, size_t task, unsigned worker) {
    struct job *w = context;
    tally_device *member = w->d->member[worker];
    const struct slice in = task_slice(w, task);
    const size_t first = task * (w->each / ((size_t)TREE_LEAF << w->level));
    if (has_failed(w)) return;
    note(w, member->kind->leaves(member, w->p, in.x, in.n, w->level,
                                 w->out + first * tree_value_size(w->p)));
}

static tally_status all_leaves(tally_device *device, const struct problem *p, const void *x,
                               size_t n, unsigned level, void *out) {
    const size_t grain = (size_t)TREE_LEAF << level;
    struct job w = {.d = all_of(device),
                    .devices = all_of(device)->count,
                    .p = p,
                    .in = {x, NULL, n},
                    .element = type_size(p->type),
                    .level = level,
                    .out = out};
    return run(&w, cut(&w, grain), leaves_task);
}

/* ---- Arrays on the devices ---------------------------------------------------------------- */

static void stretch_task(void *context, size_t task, unsigned worker) {
    struct job *w = context;
    const struct slice *in = &w->stretch[task];
    (void)worker;
    state_clear(w->p, &w->states[task]);
    if (has_failed(w) || in->n == 0) return;
    note(w, gpu_fold_resident(w->d->member[task], w->p, in, &w->states[task], w->values[task]));
}

/* Makes room for the values of all leaves, which the caller frees. Returns TALLY_EINVAL unless
 * every stretch but the last has whole leaves only. */
static tally_status room_for_leaves(const struct job *w, size_t count) {
    size_t last = 0;
    for (size_t i = 0; i < count; i++)
        if (w->stretch[i].n > 0) last = i;
    for (size_t i = 0; i < count; i++) {
        const size_t n = w->stretch[i].n;
        if (i < last && n % TREE_LEAF != 0)
            return fail(TALLY_EINVAL,
                        "%s:all: stretch %zu has %zu elements; for an operator over the canonical "
                        "tree that is a multiple of %d, but for the last",
                        w->d->name, i, n, TREE_LEAF);
        if (n > 0) w->values[i] = malloc((n / TREE_LEAF + 1) * tree_value_size(w->p));
        if (n > 0 && !w->values[i])
            return fail(TALLY_ENOMEM, "no memory for %zu values of a tree", n / TREE_LEAF + 1);
    }
    return TALLY_OK;
}

static void take_stretch(const struct job *w, size_t i, struct state *into, struct tree *tree) {
    const size_t n = w->stretch[i].n, size = tree_value_size(w->p);
    w->states[i].n = n;
    state_merge(w->p, into, &w->states[i], into->n);
    if (!problem_has(w->p, MONOID_TREE)) return;
    for (size_t leaf = 0; leaf * TREE_LEAF < n; leaf++)
        tree_append(w->p, tree, w->values[i] + leaf * size, 0);
}

static tally_status all_distributed(tally_device *device, const struct problem *p,
                                    const struct slice *in, size_t count, struct state *into,
                                    struct tree *tree) {
    struct all_device *d = all_of(device);
    struct job w = {.d = d, .p = p, .stretch = in};
    if (count != d->count)
        return fail(TALLY_EINVAL, "%s:all is %zu devices, but the array comes in %zu stretches",
                    d->name, d->count, count);
    w.states = malloc(count * sizeof *w.states);
    w.values = calloc(count, sizeof *w.values);
    if (!w.states || !w.values) {
        free(w.values);
        free(w.states);
        return fail(TALLY_ENOMEM, "no memory for the states of %zu devices", count);
    }
    tally_status s = problem_has(p, MONOID_TREE) ? room_for_leaves(&w, count) : TALLY_OK;
    if (s == TALLY_OK) s = run(&w, count, stretch_task);
    for (size_t i = 0; i < count && s == TALLY_OK; i++)
        take_stretch(&w, i, into, tree);
    for (size_t i = 0; i < count; i++)
        free(w.values[i]);
    free(w.values);
    free(w.states);
    return s;
}

static tally_status all_resident(tally_device *device, const struct problem *p,
                                 const struct slice *in, tally_value *out) {
    const char *name = all_of(device)->name;
    (void)p, (void)in, (void)out;
    return fail(TALLY_EUNSUPPORTED,
                "%s:all: one array lies on one device, which \"%s:0\" and the like open; "
                "tally_reduce_distributed() takes an array of which each device has a stretch",
                name, name);
}

static tally_status all_fold_resident(tally_device *device, const struct problem *p,
                                      const struct slice *in, struct state *into) {
    (void)into;
    return all_resident(device, p, in, NULL);
}

/* ---- What the first device does ----------------------------------------------------------- */

static tally_status all_shaped(tally_device *device, const struct shaped *s) {
    tally_device *first = all_of(device)->member[0];
    return first->kind->shaped(first, s);
}

static tally_status all_sort(tally_device *device, const struct shaped *s, struct sorted *out) {
    tally_device *first = all_of(device)->member[0];
    return first->kind->sort(first, s, out);
}

/* ---- The read roof ------------------------------------------------------------------------ */

/* Times reads: each device reads its share of the bytes, one device after the other. *seconds is
 * the slowest one's time: all devices at once would take as long. */
static tally_status all_read(tally_device *device, const void *bytes, size_t size,
                             double *seconds) {
    const struct all_device *d = all_of(device);
    const size_t each = size / d->count / 16 * 16;
    double slowest = 0;
    for (size_t i = 0; i < d->count; i++) {
        const size_t part = i + 1 < d->count ? each : size - i * each;
        double took = 0;
        const tally_status s =
            d->member[i]->kind->read(d->member[i], (const char *)bytes + i * each, part, &took);
        if (s != TALLY_OK) return s;
        if (took > slowest) slowest = took;
    }
    *seconds = slowest;
    return TALLY_OK;
}

/* ---- Opening and describing --------------------------------------------------------------- */

static void all_close(tally_device *device) {
    struct all_device *d = all_of(device);
    for (size_t i = 0; i < d->count; i++)
        if (d->member[i]) d->member[i]->kind->close(d->member[i]);
    pool_destroy(d->pool);
    free(d);
}

static void all_describe(const tally_device *device, tally_device_info *out) {
    const struct all_device *d = all_of(device);
    tally_device_info one;
    for (size_t i = 0; i < d->count; i++) {
        memset(&one, 0, sizeof one);
        d->member[i]->kind->describe(d->member[i], &one);
        if (i == 0) *out = one;
        if (i > 0) {
            out->units += one.units;
            out->memory_bytes += one.memory_bytes;
            if (strcmp(out->name, one.name) != 0)
                snprintf(out->name, sizeof out->name, "different devices");
            if (strcmp(out->isa, one.isa) != 0) out->isa[0] = '\0';
        }
    }
    snprintf(out->spec, sizeof out->spec, "%s:all", d->name);
    snprintf(one.name, sizeof one.name, "%s", out->name);
    snprintf(out->name, sizeof out->name, "%zu of %.100s", d->count, one.name);
}

bool gpu_asks_all(const char *options, const char **rest) {
    if (strncmp(options, "all", 3) != 0 || (options[3] != '\0' && options[3] != ',')) return false;
    *rest = options + 3 + (options[3] == ',');
    return true;
}

static const struct device_kind all_device_kind = {
    .name = "all",
    .close = all_close,
    .describe = all_describe,
    .fold = all_fold,
    .leaves = all_leaves,
    .tree_level = GPU_TREE_LEVEL,
    .shaped = all_shaped,
    .sort = all_sort,
    .resident = all_resident,
    .fold_resident = all_fold_resident,
    .distributed = all_distributed,
    .read = all_read,
};

tally_status gpu_open_all(const struct device_kind *kind, const char *options, void *context,
                          tally_device **out) {
    const size_t count = kind->count();
    tally_status s = TALLY_OK;
    if (context)
        return fail(TALLY_EINVAL, "%s:all: a context is one device's, and this is all of them",
                    kind->name);
    if (count == 0) return kind->open(options, NULL, out); /* fails, with the reason */
    struct all_device *d = calloc(1, sizeof *d + count * sizeof *d->member);
    if (d) d->pool = pool_create((unsigned)count);
    if (!d || !d->pool) {
        free(d);
        return fail(TALLY_ENOMEM, "no memory for %zu devices", count);
    }
    d->base.kind = &all_device_kind;
    d->name = kind->name;
    for (; d->count < count && s == TALLY_OK; d->count += s == TALLY_OK) {
        char spec[128];
        const int length = snprintf(spec, sizeof spec, "%zu,%s", d->count, options);
        s = length < 0 || (size_t)length >= sizeof spec
                ? fail(TALLY_EDEVICE, "'%.40s': too many options", options)
                : kind->open(spec, NULL, &d->member[d->count]);
    }
    if (s != TALLY_OK) {
        all_close(&d->base);
        return s;
    }
    *out = &d->base;
    return TALLY_OK;
}
