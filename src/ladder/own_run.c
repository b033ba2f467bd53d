/* own_run.c - runs a launch of a kernel that was compiled at run time: tally_own_run(). */
#include "base/fpenv.h"
#include "base/status.h"
#include "ladder/own_far.h"
#include "ladder/own_tell.h"
#include "ladder/run.h"
#include "ladder/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARED_MAX = 48 << 10 };
enum { FAR_BLOCKS_MAX = 16 }; /* most blocks that a far launch runs */

static tally_status check(const tally_own *own, const struct own_kernel *k,
                          const tally_own_launch *how) {
    const size_t shared = own->object.shared_used + how->shared_bytes;
    if (how->block < 1 || how->block > MODEL_BLOCK_MAX || how->grid < 1)
        return fail(TALLY_EINVAL, "a launch needs a grid, and a block of 1 to 1024 threads");
    if (how->far && (how->far->block_count > FAR_BLOCKS_MAX ||
                     (how->far->windows && how->far->block_count != how->outputs)))
        return fail(TALLY_EINVAL, "a far launch runs 16 blocks at most, each with an output");
    if (shared > SHARED_MAX)
        return fail(TALLY_EUNSUPPORTED,
                    "kernel %s asks for %zu bytes of shared memory; a block has %d", k->name,
                    shared, SHARED_MAX);
    struct own_roles roles;
    own_find_roles(k, &roles);
    if (how->far && roles.partials >= 0)
        return fail(TALLY_EUNSUPPORTED,
                    "an array for partial results has no place in a far launch");
    if (how->n && !how->x) return fail(TALLY_EINVAL, "tally_own_run: x is NULL");
    if (how->width && (!how->height || how->block % (how->width * (uint64_t)how->height) != 0))
        return fail(TALLY_EINVAL, "a block's threads are a multiple of its width and height");
    return TALLY_OK;
}

static tally_status note_touched(struct own_teller *t, model_device *d) {
    tally_own_result *r = t->out;
    const int writes = t->roles.output >= 0 && !t->how->far;
    const unsigned blocks = writes && t->how->grid > 2 ? t->how->grid : 2;
    model_reach *spans = calloc(blocks, sizeof *spans);
    if (!spans) return fail(TALLY_ENOMEM, "no memory for what %u blocks touch", blocks);
    model_touched(d, (const void *)t->input, false, spans, 2);
    for (unsigned b = 0; b < 2; b++)
        if (spans[b].to) {
            r->first[b] = spans[b].from / t->size;
            r->last[b] = (spans[b].to + t->size - 1) / t->size;
        }
    r->all_written = t->roles.output >= 0;
    if (writes) {
        model_touched(d, (const void *)t->output, true, spans, blocks);
        for (unsigned b = 0; b < blocks; b++) {
            const size_t end = (spans[b].to + t->size - 1) / t->size;
            if (end > r->written) r->written = end;
        }
        model_touched(d, (const void *)t->output, false, spans, blocks);
        for (unsigned b = 0; b < blocks && !r->combines; b++)
            r->combines = spans[b].to - spans[b].from > t->size;
        if (t->partials) model_touched(d, (const void *)t->partials, false, spans, blocks);
        for (unsigned b = 0; b < blocks && t->partials && !r->combines; b++)
            r->combines = spans[b].to - spans[b].from > t->size;
    }
    free(spans);
    return TALLY_OK;
}

/* Sets the counts. `left` is how many values the kernel leaves to be combined: those that it writes, or 1 if its blocks
 * combine the output themselves. A kernel with atomics leaves a value for each atomic, but at most one for each warp,
 * as further atomics may be counters. The useful operations are capped at the applied ones: a kernel that ends early
 * applies fewer. */
static void take_counts(struct own_teller *t, const model_counts *counts) {
    const uint64_t warps = (uint64_t)t->how->grid * ((t->how->block + MODEL_WARP - 1) / MODEL_WARP);
    tally_ladder_counts *out = &t->out->counts;
    uint64_t left = t->roles.output < 0 ? t->how->grid : t->out->written;
    if (counts->atomics) left = counts->atomics < warps ? counts->atomics : warps;
    if (t->out->combines) left = 1;
    counts_take(out, counts, t->how->n, left > 1 ? left : 1);
    if (out->useful > out->operations) out->useful = out->operations;
}

static void pass_on(void *context, const model_step *step) {
    step_tell(context, 0, step);
}

/* Gives an array the type that the text declares, if the access is to such elements. */
static void take_type(struct step_array *array, const char *type, size_t element,
                      const model_access *m) {
    tally_type found;
    if (*type && element && m->size % element == 0 && tally_type_parse(type, &found) == TALLY_OK)
        array->type = found;
}

/* Returns the array of an access. Values whose size is no multiple of an element's are shown as unsigned integers. */
static struct step_array array_of(const void *teller, const model_access *m) {
    const struct own_teller *t = teller;
    tally_type type = t->type;
    if (m->size && m->size % t->size)
        type = m->size == 1 ? TALLY_U8 : m->size == 2 ? TALLY_U16 : TALLY_U32;
    struct step_array array = {"", STEP_ELEMENTS, type, 0};
    struct own_span span;
    const unsigned l = (unsigned)__builtin_ctz(m->lanes);
    if (m->kind == MODEL_EXCHANGE || m->kind == MODEL_APPLY) return array;
    if (m->shared) {
        array.name = "shared";
        if (own_object_array(&t->own->object, (uintptr_t)m->array + m->place[l], &array.name,
                             &span)) {
            const model_array *a = model_array_at(t->own->device, span.base);
            array.base = span.base;
            if (a) take_type(&array, a->type, a->element, m);
        }
    } else if ((uintptr_t)m->array == t->input) {
        array.name = t->own->names[0];
    } else if (t->roles.second >= 0 && (uintptr_t)m->array == t->second) {
        array.name = t->own->names[3];
    } else if (t->roles.output >= 0 && (uintptr_t)m->array == t->output) {
        array.name = t->own->names[1];
    } else if (t->partials && (uintptr_t)m->array == t->partials) {
        array.name = t->own->names[4];
    } else {
        array.name = "a variable";
        if (own_object_variable(&t->own->object, (uintptr_t)m->array + m->place[l], &array.name,
                                &span)) {
            const struct own_variable *v = own_find_variable(t->own, span.base);
            array.base = span.base;
            if (v) take_type(&array, v->type, v->element, m);
        }
    }
    return array;
}

/* Allocates the arrays and fills them. */
static bool near_arrays(model_device *d, const struct own_teller *t, const void *identity,
                        void **in, void **second, void **out, void **partials) {
    const tally_own_launch *how = t->how;
    const size_t bytes = how->n * t->size, out_bytes = how->outputs * t->size;
    if (model_allocate(d, bytes, in) != MODEL_OK ||
        (how->y && model_allocate(d, bytes, second) != MODEL_OK) ||
        model_allocate(d, out_bytes, out) != MODEL_OK ||
        (t->roles.partials >= 0 && model_allocate(d, out_bytes, partials) != MODEL_OK))
        return false;
    model_write(d, *in, how->x, bytes);
    if (*second) model_write(d, *second, how->y, bytes);
    model_write(d, *out, identity, out_bytes);
    if (*partials) model_write(d, *partials, identity, out_bytes);
    return true;
}

/* The arrays of a far launch: x, y and the output, of which each block that runs has one element. */
struct far_arrays {
    struct own_windows x, y, output;
    uint64_t blocks[FAR_BLOCKS_MAX], ones[FAR_BLOCKS_MAX];
};

static void describe_far(const struct own_teller *t, struct far_arrays *a) {
    const tally_own_far *f = t->how->far;
    a->x = (struct own_windows){own_far_base(0), t->size, f->starts, f->counts, f->windows};
    a->y = a->x;
    a->y.base = own_far_base(1);
    a->output = (struct own_windows){own_far_base(2), t->size, a->blocks, a->ones, f->block_count};
    for (size_t i = 0; i < f->block_count; i++) {
        a->blocks[i] = f->blocks[i];
        a->ones[i] = 1;
    }
}

/* Does what near_arrays() does, for a far launch: maps only the windows of the arrays. */
static bool far_arrays(model_device *d, const struct own_teller *t, const void *identity, void **in,
                       void **second, void **out) {
    const tally_own_launch *how = t->how;
    struct far_arrays a;
    describe_far(t, &a);
    if (!own_far_map(d, &a.x, how->x)) return false;
    if (how->y && !own_far_map(d, &a.y, how->y)) {
        own_far_unmap(d, &a.x);
        return false;
    }
    if (!own_far_map(d, &a.output, identity)) {
        own_far_unmap(d, &a.x);
        if (how->y) own_far_unmap(d, &a.y);
        return false;
    }
    *in = (void *)a.x.base;
    if (how->y) *second = (void *)a.y.base;
    *out = (void *)a.output.base;
    return true;
}

/* Copies the contents of a far launch's arrays to the caller, and unmaps the arrays. */
static void far_back(model_device *d, const struct own_teller *t, void *input, void *output) {
    struct far_arrays a;
    describe_far(t, &a);
    if (input) own_far_read(&a.x, input);
    if (output) own_far_read(&a.output, output);
    own_far_unmap(d, &a.x);
    if (t->second) own_far_unmap(d, &a.y);
    own_far_unmap(d, &a.output);
}

/* Runs a far launch without windows. Its arrays hold zeros, so that only the elements that the threads read are of
 * interest, not the result. */
static tally_status launch_on_pages(tally_own *own, struct own_teller *t) {
    const tally_own_launch *how = t->how;
    const tally_own_far *far = how->far;
    const model_kernel kernel = {
        .name = t->kernel->name, .call = t->kernel->call, .arguments = t->kernel->count};
    const model_span shared[2] = {{own->object.shared.base, own->object.shared.bytes},
                                  {own->object.dynamic.base, how->shared_bytes}};
    uint64_t length = how->length;
    uintptr_t bases[OWN_FAR_ARRAYS];
    void *arguments[OWN_PARAMETERS_MAX] = {0};
    const int roles[OWN_FAR_ARRAYS] = {t->roles.input, t->roles.second, t->roles.output};
    struct own_pages *pages = calloc(1, sizeof *pages);
    if (!pages) return fail(TALLY_ENOMEM, "no memory for the kernel's arrays");
    pages->device = own->device;
    for (unsigned k = 0; k < OWN_FAR_ARRAYS; k++) {
        bases[k] = own_far_base(k);
        if (roles[k] < 0) continue;
        arguments[roles[k]] = &bases[k];
        pages->bytes[k] = (k == 2 ? how->outputs : far->n) * t->size;
    }
    if (t->roles.length >= 0) arguments[t->roles.length] = &length;
    t->input = bases[0];
    t->second = bases[1];
    t->output = bases[2];
    if (own->initial)
        memcpy((void *)own->object.global.base, own->initial, own->object.global.bytes);
    const model_launch l = {.kernel = &kernel,
                            .grid = how->grid,
                            .block = how->block,
                            .told = far->told,
                            .first = far->first,
                            .only = far->blocks,
                            .only_count = (unsigned)far->block_count,
                            .on_absent = own_pages_touch,
                            .owner = pages,
                            .arguments = arguments,
                            .shared = shared,
                            .forgives = 1};
    model_counts counts = {0};
    model_set_patience(own->device, how->patience, how->patience);
    const model_status ran = model_run(own->device, &l, &counts);
    t->out->is_complete = ran == MODEL_OK;
    t->out->work = model_work(own->device);
    if (ran == MODEL_EFAULT) own_tell(t, model_last_fault(own->device));
    const uintptr_t address = (uintptr_t)model_last_fault(own->device)->address;
    t->out->far_left = t->out->fault == TALLY_OWN_ENDLESS ||
                       (t->out->fault == TALLY_OWN_BOUNDS && own_pages_are_near(address));
    t->out->far_read = own_pages_read(pages, 0) / t->size;
    const bool is_full = pages->is_full;
    own_pages_forget(pages);
    free(pages);
    if (is_full) return fail(TALLY_EUNSUPPORTED, "a far launch touches more pages than there are");
    return ran == MODEL_OK || ran == MODEL_EFAULT
               ? TALLY_OK
               : fail(TALLY_ENOMEM, "no memory for the kernel's arrays");
}

static tally_status launch(tally_own *own, struct own_teller *t, tally_type type,
                           struct step_listener *listener, void *input, void *output) {
    const tally_own_launch *how = t->how;
    const size_t bytes = how->n * t->size, out_bytes = how->outputs * t->size;
    const model_kernel kernel = {
        .name = t->kernel->name, .call = t->kernel->call, .arguments = t->kernel->count};
    const model_span shared[2] = {{own->object.shared.base, own->object.shared.bytes},
                                  {own->object.dynamic.base, how->shared_bytes}};
    uint64_t length = how->length;
    void *in = NULL, *second = NULL, *out = NULL, *partials = NULL,
         *arguments[OWN_PARAMETERS_MAX] = {0};
    model_device *d = own->device;
    tally_status status = TALLY_ENOMEM;
    void *identity = malloc(out_bytes + 1);
    if (!identity) return fail(status, "no memory for the kernel's arrays");
    own_fill_identity(how->op, type, identity, how->outputs);
    const bool is_there = how->far ? far_arrays(d, t, identity, &in, &second, &out)
                                   : near_arrays(d, t, identity, &in, &second, &out, &partials);
    free(identity);
    if (!is_there) {
        if (how->far) return fail(TALLY_EUNSUPPORTED, "arrays of that length have no place here");
        goto end;
    }
    if (own->initial && !how->keeps)
        memcpy((void *)own->object.global.base, own->initial, own->object.global.bytes);

    t->input = (uintptr_t)in;
    t->output = (uintptr_t)out;
    t->second = (uintptr_t)second;
    t->partials = (uintptr_t)partials;
    if (partials) arguments[t->roles.partials] = &partials;
    arguments[t->roles.input] = &in;
    if (t->roles.second >= 0) arguments[t->roles.second] = &second;
    if (t->roles.output >= 0) arguments[t->roles.output] = &out;
    if (t->roles.length >= 0) arguments[t->roles.length] = &length;
    const model_launch l = {.kernel = &kernel,
                            .grid = how->grid,
                            .block = how->block,
                            .width = how->width,
                            .height = how->height,
                            .order = how->order,
                            .only = how->far ? how->far->blocks : NULL,
                            .only_count = how->far ? (unsigned)how->far->block_count : 0,
                            .arguments = arguments,
                            .on_step = listener->on_step ? pass_on : NULL,
                            .context = listener,
                            .shared = shared,
                            .forgives = how->forgives,
                            .work_most = how->work_most,
                            .accesses = listener->on_step && how->accesses};
    model_counts counts = {0};
    model_set_patience(d, how->patience ? how->patience : 16 * (uint64_t)how->n + 4096,
                       3 * (uint64_t)how->n + 4096);
    const model_status ran = model_run(d, &l, &counts);
    status = ran == MODEL_OK || ran == MODEL_EFAULT ? TALLY_OK : TALLY_ENOMEM;
    t->out->is_complete = ran == MODEL_OK;
    t->out->work = model_work(d);
    if (how->work_most && t->out->work > how->work_most) {
        status = fail(TALLY_EUNSUPPORTED,
                      "kernel %s takes more than %llu million steps on the model for %zu elements",
                      t->kernel->name, (unsigned long long)(how->work_most / 1000000), how->n);
        if (how->far) far_back(d, t, NULL, NULL);
        goto end;
    }
    if (ran == MODEL_EFAULT)
        own_tell(t, model_last_fault(d));
    else if (model_noted_fault(d)->kind != MODEL_FAULT_NONE)
        own_tell(t, model_noted_fault(d));
    if (t->out->fault == TALLY_OWN_RIGHT && model_unfenced_read(d)->kind != MODEL_FAULT_NONE) {
        own_tell_order(t, model_unfenced_read(d));
        snprintf(t->out->note, sizeof t->out->note, "%s", t->out->sentence);
        t->out->sentence[t->length = 0] = '\0';
    }
    if (model_stray_shuffle(d)->kind != MODEL_FAULT_NONE)
        own_tell_stray(t, model_stray_shuffle(d));
    else if (model_untried_read(d)->kind != MODEL_FAULT_NONE)
        own_tell_untried(t, model_untried_read(d));
    if (status == TALLY_OK) status = note_touched(t, d);
    take_counts(t, &counts);
    if (how->far) {
        far_back(d, t, input, output);
        return status == TALLY_ENOMEM ? fail(status, "no memory for the kernel's arrays") : status;
    }
    if (input) model_read(d, input, in, bytes);
    if (output) model_read(d, output, out, out_bytes);
end:
    if (how->far) return status;
    model_free(d, in);
    model_free(d, second);
    model_free(d, out);
    model_free(d, partials);
    return status == TALLY_ENOMEM ? fail(status, "no memory for the kernel's arrays") : status;
}

tally_status tally_own_run(tally_own *own, size_t i, const tally_own_launch *how,
                           void (*on_step)(void *context, const tally_ladder_step *step),
                           void *context, void *input, void *output, tally_own_result *out) {
    tally_own_kernel kernel = {0};
    if (!own || !how || !out) return fail(TALLY_EINVAL, "tally_own_run: an argument is NULL");
    tally_status status = tally_own_describe(own, i, &kernel);
    if (status == TALLY_OK) status = check(own, &own->kernels[i], how);
    if (status != TALLY_OK) return status;
    memset(out, 0, sizeof *out);
    struct own_teller t = {.own = own,
                           .kernel = &own->kernels[i],
                           .how = how,
                           .size = tally_type_size(kernel.type),
                           .type = kernel.type,
                           .out = out};
    own_find_roles(t.kernel, &t.roles);
    const uint64_t n = how->n;
    struct step_listener listener = {.on_step = on_step,
                                     .context = context,
                                     .threads = how->block,
                                     .by = {.array_of = array_of, .owner = &t, .n = &n}};
    listener.caller = fp_env_enter();
    status = how->far && !how->far->windows
                 ? launch_on_pages(own, &t)
                 : launch(own, &t, kernel.type, &listener, input, output);
    fp_env_leave(listener.caller);
    free(listener.accesses);
    if (status == TALLY_OK && listener.out_of_memory)
        return fail(TALLY_ENOMEM, "no memory for the accesses of a step");
    return status;
}
