/*
 * own_device.c - compiles and times a kernel of one's own on a real device: CUDA or OpenCL.
 *
 * The device's compiler gets kernels/own.h and then the text, with the text's own line numbers. Guard bytes follow each
 * array; the result says so if the kernel has changed them. Other wrong addresses are found only by the device: an
 * access to memory that nobody owns ends the launch.
 */
#include "base/fpenv.h"
#include "base/status.h"
#include "gpu/gpu.h"
#include "ladder/machines.h"
#include "ladder/own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 4096, GUARD_BYTE = 0xa5, ARGUMENTS_MAX = 8, REPEATS_MAX = 64 };

struct tally_own_program {
    const struct gpu_api *api;
    struct gpu *gpu;
    struct gpu_kernel *kernel;
    tally_type type;
    char name[64], roles[9];
};

/* ---- Compiling ---- */

static tally_status build(tally_own_program *p, const tally_own_text *t) {
    static const char frame[] = "#define OWN_DYNAMIC %zu\n#include \"kernels/own.h\"\n"
                                "#line 1 \"%s\"\n%s\n";
    const size_t room = sizeof frame + strlen(t->text) + strlen(t->file) + 32;
    char *prelude = malloc(room);
    struct gpu_program *program;
    if (!prelude) return fail(TALLY_ENOMEM, "no memory for a kernel's text");
    snprintf(prelude, room, frame, t->dynamic_bytes, t->file, t->text);
    tally_status status = p->api->build(p->gpu, "own.h", prelude, NULL, 0, &program);
    free(prelude);
    if (status != TALLY_OK) return status;
    return p->api->kernel(p->gpu, program, t->kernel, &p->kernel);
}

static tally_status compile(const char *device, const tally_own_text *t, tally_own_program *p) {
    size_t number;
    tally_status status = machine_parse(device, &p->api, &number);
    if (status == TALLY_OK && (!p->api || strcmp(p->api->name, "model") == 0))
        return fail(TALLY_EUNSUPPORTED, "device '%.60s' does not compile kernels", device);
    if (status == TALLY_OK && strpbrk(t->roles, "jdp"))
        return fail(TALLY_EUNSUPPORTED, "a kernel that takes two arrays to reduce, one for partial "
                                        "results, or a functor, runs on the model only");
    if (status == TALLY_OK) status = p->api->open(number, NULL, &p->gpu);
    if (status == TALLY_OK && t->type == TALLY_F64 && !p->api->facts(p->gpu)->doubles)
        return fail(TALLY_EUNSUPPORTED, "%s has no f64 arithmetic", p->api->facts(p->gpu)->name);
    return status == TALLY_OK ? build(p, t) : status;
}

tally_status tally_own_compile(const char *device, const tally_own_text *text,
                               tally_own_program **out) {
    if (!device || !text || !out || !text->text || !text->file || !text->kernel ||
        strlen(text->roles) > ARGUMENTS_MAX)
        return fail(TALLY_EINVAL, "tally_own_compile: an argument is NULL");
    tally_own_program *p = calloc(1, sizeof *p);
    if (!p) return fail(TALLY_ENOMEM, "no memory for a kernel");
    p->type = text->type;
    snprintf(p->name, sizeof p->name, "%s", text->kernel);
    memcpy(p->roles, text->roles, sizeof p->roles);
    const struct fp_env caller = fp_env_enter();
    const tally_status status = compile(device, text, p);
    fp_env_leave(caller);
    if (status == TALLY_OK)
        *out = p;
    else
        tally_own_drop(p);
    return status;
}

void tally_own_drop(tally_own_program *p) {
    if (!p) return;
    const struct fp_env caller = fp_env_enter();
    if (p->gpu) p->api->close(p->gpu);
    fp_env_leave(caller);
    free(p);
}

/* ---- Running ---- */

/* An array of the kernel's: `before` is what each launch starts with, `now` what the kernel works on, with a guard
 * behind it. */
struct array {
    struct gpu_memory *before, *now;
    size_t bytes;
};

static tally_status make_array(tally_own_program *p, const void *from, size_t bytes,
                               struct array *out) {
    out->bytes = bytes;
    tally_status status = p->api->allocate(p->gpu, bytes + 16, &out->before);
    if (status == TALLY_OK) status = p->api->allocate(p->gpu, bytes + GUARD, &out->now);
    if (status == TALLY_OK && bytes) status = p->api->write(p->gpu, out->before, 0, from, bytes);
    if (status == TALLY_OK) status = p->api->fill(p->gpu, out->now, bytes, GUARD_BYTE, GUARD);
    return status;
}

static tally_status run_once(tally_own_program *p, const tally_own_launch *how,
                             const struct array *input, const struct array *output,
                             double *seconds) {
    const struct gpu_api *api = p->api;
    const uint64_t wide = how->length;
    const uint32_t narrow = (uint32_t)how->length;
    struct gpu_argument arguments[ARGUMENTS_MAX];
    size_t count = 0;
    for (const char *role = p->roles; *role; role++)
        arguments[count++] = *role == 'i'   ? (struct gpu_argument){.memory = input->now}
                             : *role == 'o' ? (struct gpu_argument){.memory = output->now}
                             : *role == '4' ? (struct gpu_argument){.size = 4, .value = &narrow}
                                            : (struct gpu_argument){.size = 8, .value = &wide};
    tally_status status = api->copy(p->gpu, input->now, 0, input->before, 0, input->bytes);
    if (status == TALLY_OK)
        status = api->copy(p->gpu, output->now, 0, output->before, 0, output->bytes);
    if (status == TALLY_OK) status = api->finish(p->gpu);
    if (status == TALLY_OK) status = api->mark(p->gpu, 0);
    if (status == TALLY_OK)
        status = api->launch(p->gpu, p->kernel, how->grid, how->block, arguments, count);
    if (status == TALLY_OK) status = api->mark(p->gpu, 1);
    if (status == TALLY_OK) status = api->elapsed(p->gpu, seconds);
    return status == TALLY_OK ? api->finish(p->gpu) : status;
}

static tally_status check_guard(tally_own_program *p, const struct array *array, const char *which,
                                tally_own_result *out) {
    unsigned char guard[GUARD];
    const tally_status status = p->api->read(p->gpu, guard, array->now, array->bytes, GUARD);
    const size_t size = tally_type_size(p->type);
    for (size_t i = 0; status == TALLY_OK && i < GUARD; i++) {
        if (guard[i] == GUARD_BYTE || out->fault != TALLY_OWN_RIGHT) continue;
        out->fault = TALLY_OWN_BOUNDS;
        snprintf(out->sentence, sizeof out->sentence,
                 "it writes behind its %s: element %zu, of %zu", which, (array->bytes + i) / size,
                 array->bytes / size);
    }
    return status;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static tally_status run(tally_own_program *p, const tally_own_launch *how, unsigned repeats,
                        struct array *in, struct array *out_array, double *seconds,
                        tally_own_result *out) {
    const size_t size = tally_type_size(p->type), outputs = how->outputs * size;
    const struct gpu_facts *facts = p->api->facts(p->gpu);
    double times[REPEATS_MAX];
    if (how->block < 1 || how->block > facts->block_max || how->grid < 1)
        return fail(TALLY_EINVAL, "%s allows blocks of up to %u threads, not %u", facts->name,
                    facts->block_max, how->block);
    void *identity = malloc(outputs + 1);
    if (!identity) return fail(TALLY_ENOMEM, "no memory for the kernel's arrays");
    own_fill_identity(how->op, p->type, identity, how->outputs);
    tally_status status = make_array(p, how->x, how->n * size, in);
    if (status == TALLY_OK) status = make_array(p, identity, outputs, out_array);
    free(identity);
    for (unsigned i = 0; i < repeats && status == TALLY_OK; i++)
        status = run_once(p, how, in, out_array, &times[i]);
    if (status != TALLY_OK) return status;
    qsort(times, repeats, sizeof *times, ascending);
    *seconds = times[repeats / 2];
    status = check_guard(p, in, "input", out);
    return status == TALLY_OK ? check_guard(p, out_array, "output", out) : status;
}

tally_status tally_own_time(tally_own_program *p, const tally_own_launch *how, unsigned repeats,
                            void *input, void *output, double *seconds, tally_own_result *out) {
    struct array in = {0}, out_array = {0};
    if (!p || !how || !seconds || !out || (how->n && !how->x) || repeats < 1)
        return fail(TALLY_EINVAL, "tally_own_time: an argument is NULL");
    if (repeats > REPEATS_MAX) repeats = REPEATS_MAX;
    memset(out, 0, sizeof *out);
    const struct fp_env caller = fp_env_enter();
    tally_status status = run(p, how, repeats, &in, &out_array, seconds, out);
    if (status == TALLY_OK && input && in.bytes)
        status = p->api->read(p->gpu, input, in.now, 0, in.bytes);
    if (status == TALLY_OK && output && out_array.bytes)
        status = p->api->read(p->gpu, output, out_array.now, 0, out_array.bytes);
    struct gpu_memory *const all[] = {in.before, in.now, out_array.before, out_array.now};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        p->api->release(p->gpu, all[i]);
    fp_env_leave(caller);
    out->is_complete = status == TALLY_OK;
    return status;
}
