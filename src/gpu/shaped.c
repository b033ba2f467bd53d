/*
 * gpu/shaped.c - reductions in parts as calls of a GPU device: arrays in host memory, on the device, on queues of
 * the caller's.
 *
 * Host arrays are brought to the device whole, as the bytes from their first element to their last. Where they do
 * not fit they are halved: along the outermost kept dimension, or between segments. One row that does not fit is
 * folded in chunks, as a whole array is, if it lies side by side; anything else that does not fit - rows with strides
 * or a mask, groups - is reduced by the calling thread, to the same bits. The calling thread also sorts elements into
 * the order of their groups where the host wants that.
 */
#include "base/paths.h"
#include "base/status.h"
#include "base/types.h"
#include "device/fold.h"
#include "device/vectors.h"
#include "gpu/opened.h"
#include "gpu/shown.h"
#include "gpu/sort.h"
#include "gpu/source.h"
#include "problem/tree.h"

#include <stdlib.h>
#include <string.h>

/* ---- What a shape reads ------------------------------------------------------------------------ */

/* The elements of an array that a reduction reads or writes: [low, low + count), counted from the
 * shape's pointer. */
struct element_range {
    ptrdiff_t low;
    size_t count;
};

enum { OF_X, OF_Y, OF_MASK, OF_OUT };

static void widen(struct element_range *range, ptrdiff_t *high, const struct extent *e, int of) {
    const ptrdiff_t stride = of == OF_X      ? e->x
                             : of == OF_Y    ? e->y
                             : of == OF_MASK ? e->mask
                                             : e->out;
    const ptrdiff_t reach = stride * ((ptrdiff_t)e->length - 1);
    if (reach < 0)
        range->low += reach;
    else
        *high += reach;
}

static struct element_range element_range_of(const struct shaped *s, int of) {
    struct element_range range = {0, 0};
    ptrdiff_t high = 0;
    if (s->results == 0) return range;
    if (of != OF_OUT && (s->cut == TALLY_AXES ? s->each : s->n) == 0) return range;
    for (unsigned d = 0; d < s->keeps; d++)
        widen(&range, &high, &s->kept[d], of);
    const unsigned axes = s->cut == TALLY_AXES ? s->reduces : 1;
    for (unsigned d = 0; d < axes; d++) {
        struct extent e = s->reduced[d];
        if (of == OF_OUT) e.length = s->cut == TALLY_AXES ? 1 : s->count;
        widen(&range, &high, &e, of);
    }
    range.count = (size_t)(high - range.low) + 1;
    return range;
}

static size_t offsets_bytes(const struct shaped *s) {
    return s->cut == TALLY_SEGMENTS && s->offsets ? (s->count + 1) * type_size(s->offsets_type) : 0;
}

static size_t ids_bytes(const struct shaped *s) {
    return s->cut == TALLY_GROUPS ? s->n * type_size(s->ids_type) : 0;
}

static size_t means_bytes(const struct shaped *s) {
    return s->means ? s->means_count * sizeof(double) : 0;
}

/* ---- From host memory ---------------------------------------------------------------------------- */

/* Lays out a buffer for the results of all values; at[v] becomes the byte at which value v's begin. */
static void lay_out_results(const struct gpu_device *d, const struct shaped *s, struct area *area,
                            uint64_t at[]) {
    area_begin(area, d->api);
    for (unsigned v = 0; v < s->p->values; v++)
        at[v] = 8 * area_take_bytes(area, s->results * type_size(s->p->value[v].type));
}

/* Returns the same shape with its results side by side, in the order of rows. */
static struct shaped with_plain_results(const struct shaped *s) {
    struct shaped t = *s;
    ptrdiff_t next = 1;
    t.out_first = 0;
    for (unsigned k = t.keeps; k-- > 0;) {
        t.kept[k].out = next;
        next *= (ptrdiff_t)t.kept[k].length;
    }
    if (t.cut != TALLY_AXES) t.reduced[0].out = next;
    return t;
}

/* Returns whether the shape's results lie as with_plain_results() says. */
static bool are_plain(const struct shaped *s) {
    const struct shaped plain = with_plain_results(s);
    bool are = s->cut == TALLY_AXES || s->reduced[0].out == plain.reduced[0].out;
    for (unsigned k = 0; k < s->keeps; k++)
        are = are && s->kept[k].out == plain.kept[k].out;
    return are;
}

/* Returns whether the device can do the reduction, and has room for all of it at once. */
static int fits(const struct gpu_device *d, const struct shaped *s) {
    const struct shaped plain = with_plain_results(s); /* what run_whole() reduces */
    uint64_t at[TALLY_VALUES_MAX];
    struct area results;
    const size_t element = type_size(s->p->type);
    lay_out_results(d, s, &results, at);
    const size_t array[] = {element_range_of(s, OF_X).count * element,
                            s->y ? element_range_of(s, OF_Y).count * element : 0,
                            s->mask ? element_range_of(s, OF_MASK).count : 0,
                            offsets_bytes(s),
                            ids_bytes(s),
                            means_bytes(s),
                            8 * (size_t)results.end,
                            shown_workspace(&d->queue, &plain)};
    size_t all = 0;
    if (!sort_is_possible(s)) return 0;
    for (unsigned i = 0; i < sizeof array / sizeof *array; i++) {
        if (i < 6 && d->facts.reads_host_memory) continue;
        if (array[i] > d->facts.allocation_max) return 0;
        all += array[i];
    }
    return all <= d->memory;
}

/* Brings to the device the range of an array that the reduction reads; *first becomes the index in the buffer of the
 * element at `base`. */
static tally_status bring_range(struct gpu_device *d, const char *base, struct element_range range,
                                size_t element, struct gpu_memory **buffer, int64_t *first) {
    *first = -(int64_t)range.low;
    if (!base || range.count == 0) return TALLY_OK;
    return gpu_bring(d, base + range.low * (ptrdiff_t)element, range.count * element, element,
                     buffer);
}

/* Returns the place of the i-th result, in results from out[v] on. */
static ptrdiff_t place_of(const struct shaped *s, size_t i) {
    ptrdiff_t place = s->out_first;
    for (unsigned k = s->keeps; k-- > 0;) {
        place += (ptrdiff_t)(i % s->kept[k].length) * s->kept[k].out;
        i /= s->kept[k].length;
    }
    return s->cut == TALLY_AXES ? place : place + (ptrdiff_t)i * s->reduced[0].out;
}

/* Copies the results, which lie in the order of rows, to where the caller wants them. */
static void deliver(const struct shaped *s, const char *results, const uint64_t at[]) {
    for (unsigned v = 0; v < s->p->values; v++) {
        const size_t size = type_size(s->p->value[v].type);
        const char *from = results + at[v];
        char *to = s->out[v];
        const bool plain = are_plain(s);
        if (plain)
            TALLY_PATH("side by side");
        else
            TALLY_PATH("apart");
        if (plain)
            memcpy(to + s->out_first * (ptrdiff_t)size, from, s->results * size);
        else
            for (size_t i = 0; i < s->results; i++)
                memcpy(to + place_of(s, i) * (ptrdiff_t)size, from + i * size, size);
    }
}

static tally_status bad_input(const struct shaped *s, uint64_t at) {
    return s->cut == TALLY_GROUPS ? shape_bad_id(s, (size_t)at) : shape_bad_offset(s, (size_t)at);
}

/* Waits for the reduction in queue->parts_work, and reads its outcome. */
static tally_status read_outcome(struct queue *queue, struct parts_outcome *out) {
    uint64_t word[PARTS_OUTCOME_BYTES / 8];
    tally_status s = queue->api->read(queue->gpu, word, queue->parts_work, 0, PARTS_OUTCOME_BYTES);
    if (s == TALLY_OK) *out = parts_outcome(word);
    return s;
}

static tally_status reserve_work(struct queue *queue, const struct shaped *s) {
    return queue_reserve_parts(queue, (shown_workspace(queue, s) + 4095) / 4096 * 4096);
}

static void absorb(struct absence *known, const struct absence *more) {
    if (more->number != UINT64_MAX) shaped_absent(known, more->number, more->status, more->value);
}

static tally_status run_brought(struct gpu_device *d, const struct shaped *s,
                                struct parts_call *call, const struct area *area,
                                struct absence *absence) {
    struct queue *queue = &d->queue;
    const size_t bytes = 8 * (size_t)area->end;
    struct parts_outcome outcome;
    tally_status status = reserve_work(queue, call->s);
    call->work = queue->parts_work;
    if (status == TALLY_OK && bytes > 0) status = d->api->allocate(queue->gpu, bytes, &call->out);
    if (status == TALLY_OK && bytes > 0) area_guard(area, queue->gpu, call->out);
    if (status == TALLY_OK) status = shown_enqueue(queue, call);
    if (status == TALLY_OK) status = read_outcome(queue, &outcome);
    if (status != TALLY_OK) return status;
    if (outcome.bad != UINT64_MAX) return bad_input(s, outcome.bad);
    if (bytes == 0) return TALLY_OK;
    char *results = malloc(bytes);
    if (!results) return fail(TALLY_ENOMEM, "no memory for %zu results", s->results);
    status = d->api->read(queue->gpu, results, call->out, 0, bytes);
    if (status == TALLY_OK) {
        deliver(s, results, call->at);
        absorb(absence, &outcome.absence);
    }
    free(results);
    return status;
}

/* Reduces a shape that fits the device. */
static tally_status run_whole(struct gpu_device *d, const struct shaped *s,
                              struct absence *absence) {
    const size_t element = type_size(s->p->type);
    const struct shaped plain = with_plain_results(s);
    struct parts_call call = {.s = &plain, .values = s->p->values};
    struct gpu *gpu = d->queue.gpu;
    struct area results;
    lay_out_results(d, s, &results, call.at);
    tally_status status =
        bring_range(d, s->x, element_range_of(s, OF_X), element, &call.x, &call.first_x);
    if (status == TALLY_OK)
        status = bring_range(d, s->y, element_range_of(s, OF_Y), element, &call.y, &call.first_y);
    if (status == TALLY_OK)
        status = bring_range(d, (const char *)s->mask, element_range_of(s, OF_MASK), 1, &call.mask,
                             &call.first_mask);
    if (status == TALLY_OK && offsets_bytes(s) > 0)
        status =
            gpu_bring(d, s->offsets, offsets_bytes(s), type_size(s->offsets_type), &call.offsets);
    if (status == TALLY_OK && ids_bytes(s) > 0)
        status = gpu_bring(d, s->ids, ids_bytes(s), type_size(s->ids_type), &call.ids);
    if (status == TALLY_OK && means_bytes(s) > 0)
        status = gpu_bring(d, s->means, means_bytes(s), sizeof(double), &call.means);
    if (status == TALLY_OK) status = run_brought(d, s, &call, &results, absence);
    struct gpu_memory *all[] = {call.x,   call.y,     call.mask, call.offsets,
                                call.ids, call.means, call.out};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        d->api->release(gpu, all[i]);
    return status;
}

/* ---- What does not fit ------------------------------------------------------------------------------ */

/* Reduces one row that lies side by side, in chunks. */
static tally_status run_row(tally_device *device, const struct shaped *s, struct absence *absence) {
    const struct problem *p = s->p;
    const struct slice in = {s->x, s->y, s->cut == TALLY_AXES ? s->each : s->n};
    struct state state;
    struct tree tree;
    tally_value root = {.type = 0};
    if (problem_has(p, MONOID_TREE))
        TALLY_PATH("a tree");
    else
        TALLY_PATH("no tree");
    state_clear(p, &state);
    tree_clear(&tree, 0);
    tally_status status = fold_slice(device, p, &in, &state);
    if (status == TALLY_OK && problem_has(p, MONOID_TREE)) {
        status = fold_leaves(device, p, in.x, in.n, &tree);
        root = tree_value(p, &tree);
    }
    if (status == TALLY_OK)
        shaped_lower(s, &state, &root, place_of(s, 0), s->number_first, absence);
    return status;
}

static int is_plain_row(const struct shaped *s) {
    if (s->results != 1 || s->mask || s->cut == TALLY_GROUPS) return 0;
    if (s->cut == TALLY_SEGMENTS)
        return offset_at(s->offsets, s->offsets_type, 0) == 0 &&
               offset_at(s->offsets, s->offsets_type, 1) == (int64_t)s->n;
    return s->reduces == 1 && s->reduced[0].x == 1 && (!s->y || s->reduced[0].y == 1);
}

/* Makes segments [first, last) a shape of their own; *owned are its offsets, which the caller frees. */
static tally_status some_segments(const struct shaped *s, size_t first, size_t last,
                                  struct shaped *out, int64_t **owned) {
    const int64_t from = offset_at(s->offsets, s->offsets_type, first);
    int64_t *offsets = malloc((last - first + 1) * sizeof *offsets);
    if (!offsets) return fail(TALLY_ENOMEM, "no memory for %zu offsets", last - first + 1);
    for (size_t i = first; i <= last; i++)
        offsets[i - first] = offset_at(s->offsets, s->offsets_type, i) - from;
    *out = *s;
    out->x += from * (int64_t)type_size(s->p->type);
    if (out->y) out->y += from * (int64_t)type_size(s->p->type);
    if (out->mask) out->mask += from;
    out->n = (size_t)offsets[last - first];
    out->offsets = *owned = offsets;
    out->offsets_type = TALLY_I64;
    out->results = out->count = last - first;
    out->out_first += (ptrdiff_t)first;
    out->number_first += first;
    return TALLY_OK;
}

/* Returns the shape of the rows with indices [first, last) along kept dimension k. */
static struct shaped some_rows(const struct shaped *s, unsigned k, size_t first, size_t last) {
    struct shaped t = *s;
    const ptrdiff_t i = (ptrdiff_t)first, size = (ptrdiff_t)type_size(s->p->type);
    const struct extent *e = &s->kept[k];
    t.x += i * e->x * size;
    if (t.y) t.y += i * e->y * size;
    if (t.mask) t.mask += i * e->mask;
    t.out_first += i * e->out;
    t.number_first += first * e->number;
    t.kept[k].length = last - first;
    t.results = s->results / e->length * (last - first);
    return t;
}

static tally_status run(tally_device *device, const struct shaped *s, struct absence *absence);

static tally_status run_halves(tally_device *device, const struct shaped *s,
                               struct absence *absence) {
    tally_status status = TALLY_OK;
    unsigned k = 0;
    if (s->cut == TALLY_SEGMENTS) {
        TALLY_PATH("segments");
        for (int half = 0; half < 2 && status == TALLY_OK; half++) {
            struct shaped t;
            int64_t *owned = NULL;
            status = some_segments(s, half ? s->results / 2 : 0, half ? s->results : s->results / 2,
                                   &t, &owned);
            if (status == TALLY_OK) status = run(device, &t, absence);
            free(owned);
        }
        return status;
    }
    while (s->kept[k].length == 1)
        k++;
    TALLY_PATH("a kept dimension");
    const size_t half = s->kept[k].length / 2;
    struct shaped t = some_rows(s, k, 0, half);
    status = run(device, &t, absence);
    t = some_rows(s, k, half, s->kept[k].length);
    return status == TALLY_OK ? run(device, &t, absence) : status;
}

static tally_status run(tally_device *device, const struct shaped *s, struct absence *absence) {
    struct gpu_device *d = own(device);
    tally_status status = gpu_enter(d);
    if (status != TALLY_OK) return status;
    const int at_once = fits(d, s);
    if (at_once) TALLY_PATH("a part that fits");
    status = gpu_leave(d, at_once ? run_whole(d, s, absence) : TALLY_OK);
    if (at_once || status != TALLY_OK) return status;
    if (s->results > 1) return run_halves(device, s, absence);
    if (is_plain_row(s)) return run_row(device, s, absence);
    TALLY_PATH("a row for the host");
    /* `s` is one row: a status that says that a result does not exist is about that row. */
    tally_status left = cpu_device_kind.shaped(cpu_calling_thread(), s);
    if (left != TALLY_EINVAL && left != TALLY_ERANGE) return left;
    TALLY_PATH("a result of the host's that does not exist");
    absorb(absence, &(struct absence){s->number_first, left, 0});
    return TALLY_OK;
}

/* Returns TALLY_EINVAL for the first wrong offset: before the segments are halved, all of them must be right. */
static tally_status check_offsets(const struct shaped *s) {
    int64_t before = 0;
    for (size_t i = 0; i <= s->results; i++) {
        const int64_t at = offset_at(s->offsets, s->offsets_type, i);
        if (at < before || at > (int64_t)s->n) return shape_bad_offset(s, i);
        before = at;
    }
    return TALLY_OK;
}

/* Returns whether a shape has no results, and no ids to be looked at. */
static bool is_nothing(const struct shaped *s) {
    return s->results == 0 && (s->cut != TALLY_GROUPS || s->vectors == 0);
}

tally_status gpu_shaped(tally_device *device, const struct shaped *s) {
    struct gpu_device *d = own(device);
    struct absence absence = {.number = UINT64_MAX};
    if (is_nothing(s)) return TALLY_OK;
    tally_status status = problem_has(s->p, MONOID_TREE) ? source_check(s->p) : TALLY_OK;
    if (status == TALLY_OK) status = gpu_enter(d);
    if (status != TALLY_OK) return status;
    const int at_once = fits(d, s);
    status = gpu_leave(d, at_once ? run_whole(d, s, &absence) : TALLY_OK);
    if (status == TALLY_OK && !at_once) {
        if (s->cut != TALLY_AXES && !shape_is_flat(s)) {
            TALLY_PATH("some vectors at a time");
            return shaped_by_vectors(device, s);
        }
        if (s->cut == TALLY_GROUPS) {
            TALLY_PATH("groups for the host");
            return cpu_device_kind.shaped(cpu_calling_thread(), s);
        }
        if (s->cut == TALLY_SEGMENTS) status = check_offsets(s);
        if (status == TALLY_OK) status = run(device, s, &absence);
    }
    return status == TALLY_OK ? shaped_outcome(s->p, &absence) : status;
}

tally_status gpu_sort(tally_device *device, const struct shaped *s, struct sorted *out) {
    (void)device;
    return cpu_device_kind.sort(cpu_calling_thread(), s, out);
}

/* ---- On the device ------------------------------------------------------------------------------------ */

/* Makes *buffer stand for the caller's array. `theirs` is the caller's memory, `first` the shape's
 * first element, and *index becomes its index in the buffer. If the memory has addresses the buffer
 * begins at the lowest element read, else at `theirs`. */
static tally_status take_range(struct gpu_device *d, struct gpu *gpu, gpu_taker *how,
                               const char *theirs, const char *first, struct element_range range,
                               size_t element, bool addresses, struct gpu_memory **buffer,
                               int64_t *index) {
    const ptrdiff_t size = (ptrdiff_t)element;
    if (!theirs || range.count == 0) return TALLY_OK;
    if (addresses) {
        *index = -(int64_t)range.low;
        return gpu_take(d, gpu, how, first + range.low * size, range.count * element, element,
                        buffer);
    }
    const ptrdiff_t from = (first - theirs) / size;
    *index = from;
    if (from + range.low < 0)
        return fail(TALLY_EINVAL, "a stride leads to before the start of the memory");
    return gpu_take(d, gpu, how, theirs,
                    (size_t)(from + range.low) * element + range.count * element, element, buffer);
}

/* The caller's arrays. */
struct given {
    const void *x, *y, *mask;
};

static tally_status take_inputs(struct gpu_device *d, struct gpu *gpu, gpu_taker *how,
                                const struct shaped *s, const struct given *g, bool addresses,
                                struct parts_call *c) {
    const size_t element = type_size(s->p->type);
    tally_status status = take_range(d, gpu, how, g->x, s->x, element_range_of(s, OF_X), element,
                                     addresses, &c->x, &c->first_x);
    if (status == TALLY_OK)
        status = take_range(d, gpu, how, g->y, s->y, element_range_of(s, OF_Y), element, addresses,
                            &c->y, &c->first_y);
    if (status == TALLY_OK)
        status = take_range(d, gpu, how, g->mask, (const char *)s->mask,
                            element_range_of(s, OF_MASK), 1, addresses, &c->mask, &c->first_mask);
    if (status == TALLY_OK)
        status = gpu_take(d, gpu, how, s->cut == TALLY_SEGMENTS ? s->offsets : NULL,
                          offsets_bytes(s), type_size(s->offsets_type), &c->offsets);
    if (status == TALLY_OK)
        status = gpu_take(d, gpu, how, s->cut == TALLY_GROUPS ? s->ids : NULL, ids_bytes(s),
                          type_size(s->ids_type), &c->ids);
    if (status == TALLY_OK)
        status = gpu_take(d, gpu, how, s->means, means_bytes(s), sizeof(double), &c->means);
    return status;
}

static void give_back(struct gpu_device *d, struct gpu *gpu, struct parts_call *c) {
    struct gpu_memory *all[] = {c->x, c->y, c->mask, c->offsets, c->ids, c->means};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        d->api->release(gpu, all[i]);
}

/* Puts the caller's addresses for results into c->at, and asks the driver whether the device can write there. */
static tally_status take_results(struct gpu_device *d, struct gpu *gpu, const struct shaped *s,
                                 struct parts_call *c) {
    const struct element_range range = element_range_of(s, OF_OUT);
    tally_status status = TALLY_OK;
    for (unsigned v = 0; v < s->p->values && status == TALLY_OK; v++) {
        const size_t size = type_size(s->p->value[v].type);
        const ptrdiff_t low = s->out_first + range.low;
        struct gpu_memory *buffer = NULL;
        c->at[v] = (uint64_t)(uintptr_t)s->out[v];
        if (!d->facts.has_addresses || s->results == 0) continue;
        status = gpu_take(d, gpu, d->api->wrap, (const char *)s->out[v] + low * (ptrdiff_t)size,
                          range.count * size, size, &buffer);
        d->api->release(gpu, buffer);
    }
    return status;
}

static tally_status bad_resident(const struct shaped *s, uint64_t at) {
    if (s->cut == TALLY_GROUPS)
        return fail(TALLY_EINVAL, "id %llu falls, or lies outside of the %zu groups",
                    (unsigned long long)at, s->count);
    return fail(TALLY_EINVAL, "offset %llu falls, or lies outside of the array's %zu elements",
                (unsigned long long)at, s->n);
}

static tally_status run_resident(struct gpu_device *d, const struct shaped *s) {
    struct queue *queue = &d->queue;
    const struct given given = {s->x, s->y, s->mask};
    struct parts_call call = {.s = s, .values = s->p->values};
    struct parts_outcome outcome = {.bad = UINT64_MAX, .absence.number = UINT64_MAX};
    if (!d->facts.has_addresses && !d->facts.reads_host_memory)
        return fail(TALLY_EUNSUPPORTED, "%s:%zu takes no memory by its address", d->api->name,
                    d->index);
    tally_status status = take_inputs(d, queue->gpu, d->api->adopt, s, &given, true, &call);
    if (status == TALLY_OK) status = take_results(d, queue->gpu, s, &call);
    if (status == TALLY_OK) status = reserve_work(queue, s);
    call.work = queue->parts_work;
    if (status == TALLY_OK) status = shown_enqueue(queue, &call);
    if (status == TALLY_OK) status = read_outcome(queue, &outcome);
    give_back(d, queue->gpu, &call);
    if (status != TALLY_OK) return status;
    if (outcome.bad != UINT64_MAX) return bad_resident(s, outcome.bad);
    return shaped_outcome(s->p, &outcome.absence);
}

tally_status gpu_shaped_resident(tally_device *device, const struct shaped *s) {
    struct gpu_device *d = own(device);
    if (is_nothing(s)) return TALLY_OK;
    tally_status status = problem_has(s->p, MONOID_TREE) ? source_check(s->p) : TALLY_OK;
    if (status == TALLY_OK) status = gpu_enter(d);
    return status == TALLY_OK ? gpu_leave(d, run_resident(d, s)) : status;
}

/* ---- On queues of the caller's --------------------------------------------------------------------- */

bool gpu_is_captured(tally_device *device, void *queue) {
    struct gpu_device *d = own(device);
    if (!d->api->is_captured) return false;
    tally_status s = gpu_enter_theirs(d, false);
    const bool is = s != TALLY_OK || d->api->is_captured(d->theirs.gpu, queue);
    return gpu_leave_theirs(d, s) != TALLY_OK || is;
}

tally_status gpu_shaped_workspace(tally_device *device, const struct shaped *s, size_t *bytes) {
    struct gpu_device *d = own(device);
    tally_status status = problem_has(s->p, MONOID_TREE) ? source_check(s->p) : TALLY_OK;
    if (status != TALLY_OK) return status;
    status = gpu_enter_theirs(d, true);
    if (status == TALLY_OK) status = shown_prepare(&d->theirs, s);
    if (status == TALLY_OK) *bytes = shown_workspace(&d->theirs, s);
    return gpu_leave_theirs(d, status);
}

/* Enqueues a reduction for each value, on a device without addresses: there a kernel gets one buffer for results, and
 * each value's results lie in a buffer of their own. */
static tally_status enqueue_values(struct gpu_device *d, const struct shaped *s,
                                   struct parts_call *c) {
    const struct element_range range = element_range_of(s, OF_OUT);
    const ptrdiff_t low = s->out_first + range.low;
    tally_status status = TALLY_OK;
    if (low < 0) return fail(TALLY_EINVAL, "a stride leads to before the start of the memory");
    for (unsigned v = 0; v < s->p->values && status == TALLY_OK; v++) {
        const size_t size = type_size(s->p->value[v].type);
        c->only = v;
        c->values = 1;
        status =
            d->api->wrap(d->theirs.gpu, s->out[v], ((size_t)low + range.count) * size, &c->out);
        c->keep_outcome = v > 0;
        if (status == TALLY_OK) status = shown_enqueue(&d->theirs, c);
        d->api->release(d->theirs.gpu, c->out);
        c->out = NULL;
    }
    return status;
}

static tally_status enqueue(struct gpu_device *d, const struct shaped *s,
                            const tally_shaped_call *call) {
    struct gpu *gpu = d->theirs.gpu;
    const struct given given = {call->x, call->y, call->shape->mask};
    struct parts_call c = {.s = s, .values = s->p->values, .ignore_errors = !call->outcome};
    struct gpu_memory *outcome = NULL;
    const bool addresses = d->facts.has_addresses;
    const size_t needs = shown_workspace(&d->theirs, s);
    if (call->workspace_bytes < needs)
        return fail(TALLY_EINVAL, "%s:%zu: a workspace of %zu bytes, where %zu are needed",
                    d->api->name, d->index, call->workspace_bytes, needs);
    tally_status status = take_inputs(d, gpu, d->api->wrap, s, &given, addresses, &c);
    if (status == TALLY_OK && addresses) status = take_results(d, gpu, s, &c);
    if (status == TALLY_OK)
        status = gpu_take(d, gpu, d->api->wrap, call->workspace, call->workspace_bytes, 8, &c.work);
    if (status == TALLY_OK && call->outcome)
        status = gpu_take(d, gpu, d->api->wrap, call->outcome, sizeof(tally_outcome), 8, &outcome);
    d->api->use(gpu, true, call->queue);
    if (status == TALLY_OK)
        status =
            addresses || s->results == 0 ? shown_enqueue(&d->theirs, &c) : enqueue_values(d, s, &c);
    if (status == TALLY_OK && call->outcome) status = parts_report(&d->theirs, c.work, outcome);
    d->api->use(gpu, false, NULL);
    give_back(d, gpu, &c);
    d->api->release(gpu, c.work);
    if (outcome) d->api->release(gpu, outcome);
    return status;
}

tally_status gpu_shaped_enqueue(tally_device *device, const struct shaped *s,
                                const tally_shaped_call *call) {
    struct gpu_device *d = own(device);
    tally_status status = problem_has(s->p, MONOID_TREE) ? source_check(s->p) : TALLY_OK;
    if (status != TALLY_OK) return status;
    status = gpu_enter_theirs(d, false);
    if (status == TALLY_OK) status = enqueue(d, s, call);
    return gpu_leave_theirs(d, status);
}
