/* programs.c - see programs.h. */
#include "gpu/programs.h"

#include "base/status.h"
#include "base/types.h"
#include "gpu/source.h"
#include "kernels/tuning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Defines ------------------------------------------------------------------------------ */

#define DEFINES_MAX 7

/* A program's defines, in alphabetical order, as the table of compiled-in kernels has them. */
struct defines {
    char text[DEFINES_MAX][24];
    const char *define[DEFINES_MAX];
    size_t count;
};

static void define(struct defines *d, const char *format, const char *name) {
    char *text = d->text[d->count], *at = text;
    snprintf(text, sizeof d->text[0], format, name);
    for (; *at && *at != '='; at++)
        if (*at >= 'a' && *at <= 'z') *at = (char)(*at - 'a' + 'A');
    d->define[d->count++] = text;
}

static void define_block(struct defines *d, unsigned block) {
    char text[12];
    if (block == GPU_BLOCK) return;
    snprintf(text, sizeof text, "%u", block);
    define(d, "BLOCK=%s", text);
}

/* Defines the tree's operator; for a user's, any one whose partial results are elements. */
static void define_operator(struct defines *d, const struct problem *p) {
    define(d, "OP_%s", !p->user ? "prod" : type_is_float(p->type) ? "sum" : "and");
    if (p->user && !p->user->commutative) define(d, "%s", "ORDERED");
}

static void find_defines(const struct queue *queue, const struct capability *c,
                         const struct problem *p, bool loose, struct defines *d) {
    const bool is_tree = capability_is_tree(c);
    bool in_floats = c->in_floats[queue->has_slow_doubles] >> p->type & 1;
    const bool is_near = c->is_near && !in_floats;
    d->count = 0;
    define_block(d, queue->block);
    for (size_t i = 0; i < c->count; i++) {
        if (in_floats && strcmp(c->define[i], "IN_FLOATS") > 0) {
            define(d, "%s", "IN_FLOATS");
            in_floats = false;
        }
        if (i + 1 == c->count) { /* the last define is OP_..., which LOOSE and NEAR come before */
            if (loose) define(d, "%s", "LOOSE");
            if (is_near) define(d, "%s", "NEAR");
        }
        define(d, "%s", c->define[i]);
    }
    if (is_tree) define_operator(d, p);
    define(d, "TYPE_%s", tally_type_name(capability_type(c, p)));
    if (is_tree && p->user) define(d, "%s", "USER_OPERATOR");
}

/* ---- Compiling ---------------------------------------------------------------------------- */

tally_status program_build_plain(const struct queue *queue, const char *file,
                                 struct gpu_program **out) {
    struct defines d = {.count = 0};
    define_block(&d, queue->block);
    return queue->api->build(queue->gpu, file, NULL, d.define, d.count, out);
}

tally_status program_find(const struct queue *queue, struct gpu_program *program,
                          const char *const *names, unsigned count, struct gpu_kernel **out) {
    tally_status s = TALLY_OK;
    if (queue->api->make) s = queue->api->make(queue->gpu, program, names, count);
    for (unsigned i = 0; i < count && s == TALLY_OK; i++)
        if (names[i]) s = queue->api->kernel(queue->gpu, program, names[i], &out[i]);
    return s;
}

tally_status program_build(const struct queue *queue, enum schedule schedule,
                           const struct capability *c, const struct problem *p, bool loose,
                           struct gpu_program **out) {
    const struct gpu_facts *facts = queue->facts;
    const bool is_user = capability_is_tree(c) && p->user;
    struct defines d;
    char *prelude = NULL;
    tally_status s = TALLY_OK;
    if (capability_needs_doubles(c, p) && !facts->doubles)
        return fail(TALLY_EUNSUPPORTED, "%s has no f64 arithmetic", facts->name);
    if (!facts->atomics64) return fail(TALLY_EUNSUPPORTED, "%s has no 64-bit atomics", facts->name);
    if (is_user) s = source_check(p);
    if (s == TALLY_OK && is_user) s = source_prelude(p, &prelude);
    find_defines(queue, c, p, loose, &d);
    if (s == TALLY_OK)
        s = queue->api->build(queue->gpu, capability_file(schedule, c), prelude, d.define, d.count,
                              out);
    free(prelude);
    return s;
}

/* ---- A queue's kernels -------------------------------------------------------------------- */

/* The kernels that were found, by schedule, row of the table, whether they are loose, and type. */
struct known_kernels {
    struct gpu_kernel *kernel[SCHEDULES][CAPABILITIES][2][TYPE_ROWS][PROGRAM_KERNELS];
};

tally_status program_kernels(struct queue *queue, enum schedule schedule,
                             const struct capability *c, const struct problem *p, bool loose,
                             const char *const *names, unsigned count,
                             struct gpu_kernel *const **out) {
    struct gpu_program *program = NULL;
    void **const cache = &queue->caches[CACHE_KERNELS];
    if (!*cache) *cache = calloc(1, sizeof(struct known_kernels));
    if (!*cache) return fail(TALLY_ENOMEM, "no memory for a table of kernels");
    struct known_kernels *const table = *cache;
    struct gpu_kernel **known =
        table->kernel[schedule][capability_number(schedule, c)][loose][capability_type(c, p)];
    bool are_known = true;
    *out = known;
    for (unsigned i = 0; i < count; i++)
        are_known = are_known && (known[i] || !names[i]);
    if (are_known) return TALLY_OK;
    tally_status s = program_build(queue, schedule, c, p, loose, &program);
    return s == TALLY_OK ? program_find(queue, program, names, count, known) : s;
}
