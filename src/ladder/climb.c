/*
 * climb.c - launches, level after level, and the three ways to finish.
 *
 *   relaunch  the partial results of one launch are the input of the next; two buffers take turns
 *   atomic    every block combines its result into one word
 *   host      the partial results are read back, and the CPU combines them
 */
#include "ladder/climb.h"

#include "base/status.h"
#include "gpu/timing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool ok(struct climb *c, tally_status status) {
    c->status = status;
    return status == TALLY_OK;
}

static bool allocate(struct climb *c, uint64_t count, unsigned size, struct gpu_memory **out) {
    return ok(c, c->api->allocate(c->gpu, (size_t)count * size + 16, out));
}

/* ---- What all rungs share ---- */

static bool build(struct climb *c, const ladder_arithmetic *instance, struct gpu_program **out) {
    char type[16] = "TYPE_", op[16] = "OP_", block[24];
    const char *const defines[] = {type, op, block};
    /* A program that is compiled now gets this block as BLOCK_MAX, so that it reserves only the shared memory that the
     * block needs: some devices have little. Precompiled kernels take any block. */
    const size_t count = c->api->facts(c->gpu)->is_precompiled ? 2 : 3;
    snprintf(block, sizeof block, "BLOCK_MAX=%uu", c->options->block);
    strcat(type, tally_type_name(instance->type));
    strcat(op, tally_op_name(instance->op));
    for (char *p = type; *p; p++)
        if (*p >= 'a' && *p <= 'z') *p = (char)(*p - 'a' + 'A');
    for (char *p = op; *p; p++)
        if (*p >= 'a' && *p <= 'z') *p = (char)(*p - 'a' + 'A');
    return ok(c, c->api->build(c->gpu, "ladder/ladder.cu", NULL, defines, count, out));
}

/* Fails if the device lacks a capability that these elements or this block need. */
static bool check_device(struct climb *c) {
    const struct gpu_facts *facts = c->api->facts(c->gpu);
    const tally_ladder_options *o = c->options;
    const bool doubles = o->type == TALLY_F64 && (o->op == TALLY_SUM || o->op == TALLY_PROD);
    if (o->block > facts->block_max)
        return ok(c, fail(TALLY_EINVAL, "%s allows blocks of up to %u threads, not %u",
                          c->api->name, facts->block_max, o->block));
    if (doubles && !facts->doubles)
        return ok(c, fail(TALLY_EUNSUPPORTED, "%s has no f64 arithmetic", facts->name));
    if (c->first->word_size == 8 && !facts->atomics64)
        return ok(c, fail(TALLY_EUNSUPPORTED, "%s has no 64-bit atomics, which %s of %s needs",
                          facts->name, tally_op_name(o->op), tally_type_name(o->type)));
    return true;
}

bool climb_open(struct climb *c, const struct gpu_api *api, struct gpu *gpu,
                const tally_ladder_options *options) {
    memset(c, 0, sizeof *c);
    c->api = api;
    c->gpu = gpu;
    c->options = options;
    c->first = ladder_arithmetic_of(options->type, options->op);
    c->next = ladder_arithmetic_of(c->first->accumulator_type, options->op);
    return check_device(c) && build(c, c->first, &c->first_program) &&
           build(c, c->next, &c->next_program) &&
           allocate(c, options->n, c->first->element_size, &c->elements);
}

bool climb_upload(struct climb *c, double *seconds) {
    const double start = clock_now();
    if (!ok(c, c->api->write(c->gpu, c->elements, 0, c->options->x,
                             c->options->n * c->first->element_size)) ||
        !ok(c, c->api->finish(c->gpu)))
        return false;
    *seconds = clock_now() - start;
    return true;
}

void climb_close(struct climb *c) {
    c->api->release(c->gpu, c->elements);
    c->elements = NULL;
}

/* ---- A rung ---- */

static bool grid_for(struct climb *c, uint64_t n, unsigned *grid) {
    *grid = ladder_grid(c->rung, n, c->options->block, c->options->coarsen,
                        c->api->facts(c->gpu)->units);
    if (*grid) return true;
    return ok(c, fail(TALLY_EINVAL, "%s: %" PRIu64 " elements are more blocks than a grid has",
                      c->info->name, n));
}

bool climb_begin(struct climb *c, ladder_rung rung) {
    unsigned grid;
    c->rung = rung;
    c->info = ladder_rung_of(rung);
    if (!grid_for(c, c->options->n, &grid)) return false;
    const unsigned size = c->first->accumulator_size;
    c->host = malloc((size_t)grid * size);
    if (!c->host) return ok(c, fail(TALLY_ENOMEM, "no memory for %u partial results", grid));
    return allocate(c, grid, size, &c->partials[0]) && allocate(c, grid, size, &c->partials[1]) &&
           allocate(c, 1, c->first->word_size, &c->total) &&
           (c->info->extra != LADDER_BOARD ||
            allocate(c, (uint64_t)grid + 1, c->first->word_size, &c->board)) &&
           (c->info->input != LADDER_COPY || allocate(c, c->options->n, size, &c->copy));
}

void climb_end(struct climb *c) {
    struct gpu_memory **all[] = {&c->copy, &c->partials[0], &c->partials[1], &c->total, &c->board};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        c->api->release(c->gpu, *all[i]);
        *all[i] = NULL;
    }
    free(c->host);
    c->host = NULL;
}

static struct gpu_argument memory(struct gpu_memory *m) {
    static void *const nowhere = NULL;
    return (struct gpu_argument){.memory = m, .size = sizeof nowhere, .value = &nowhere};
}

static struct gpu_argument value(const void *bytes, size_t size) {
    return (struct gpu_argument){.size = size, .value = bytes};
}

static bool launch(struct climb *c, struct gpu_program *program, const char *name, unsigned grid,
                   unsigned block, const struct gpu_argument *arguments, size_t count) {
    struct gpu_kernel *kernel;
    return ok(c, c->api->kernel(c->gpu, program, name, &kernel)) &&
           ok(c, c->api->launch(c->gpu, kernel, grid, block, arguments, count));
}

/* Makes a fresh working copy of the array, as accumulators. */
static bool fill_copy(struct climb *c) {
    enum { BLOCK = 64 };
    const uint64_t n = c->options->n, blocks = n / BLOCK + (n % BLOCK != 0);
    const struct gpu_argument arguments[] = {memory(c->elements), value(&n, sizeof n),
                                             memory(c->copy)};
    if (blocks > INT32_MAX)
        return ok(c, fail(TALLY_EINVAL, "%" PRIu64 " elements are too many to copy", n));
    return launch(c, c->first_program, "load_elements", blocks ? (unsigned)blocks : 1, BLOCK,
                  arguments, 3);
}

/* Sets the memory that must be set before the first launch. This is no part of the reduction, and is not timed. */
static bool prepare(struct climb *c) {
    double accumulator = 0; /* room for any, aligned */
    uint64_t word = 0;
    c->first->neutral(&accumulator);
    c->first->to_word(&word, &accumulator);
    return ok(c, c->api->write(c->gpu, c->total, 0, &word, c->first->word_size)) &&
           (!c->board || ok(c, c->api->fill(c->gpu, c->board, 0, 0, c->first->word_size))) &&
           (!c->copy || fill_copy(c)) && ok(c, c->api->finish(c->gpu));
}

struct level {
    struct gpu_program *program;
    struct gpu_memory *input, *output;
    uint64_t n;
    unsigned grid;
};

static bool launch_level(struct climb *c, const struct level *l) {
    struct gpu_argument arguments[5] = {
        memory(l->input), value(&l->n, sizeof l->n), memory(l->output),
        memory(c->options->finish == TALLY_FINISH_ATOMIC ? c->total : NULL)};
    size_t count = 4;
    const uint32_t coarsen = c->options->coarsen;
    if (c->info->extra == LADDER_FACTOR) arguments[count++] = value(&coarsen, sizeof coarsen);
    if (c->info->extra == LADDER_BOARD) arguments[count++] = memory(c->board);
    c->launches++;
    c->input = l->input;
    c->output = l->output;
    c->input_n = l->n;
    c->input_type = l->input == c->elements ? c->first->type : c->first->accumulator_type;
    /* The roundings of an element: about n / threads in its thread's share, at most 10 in the block's tree. The last block
     * of single-pass adds a share of the partial results, and 10 more. The rest of 32 is for longer shares: a vectorized
     * load takes up to 8 floats. */
    const uint64_t block = c->options->block, threads = l->grid * block; /* at least 1 */
    c->depth += (threads ? l->n / threads : 0) + 32;
    if (c->info->extra == LADDER_BOARD) c->depth += l->grid / block;
    return launch(c, l->program, c->info->kernel, l->grid, c->options->block, arguments, count);
}

/* Turns *l into the level above, whose input is the `left` partial results. Each level must have fewer blocks than the
 * one before, or relaunching would not end. */
static bool next_level(struct climb *c, struct level *l, uint64_t left) {
    *l = (struct level){.program = c->next_program,
                        .input = l->output,
                        .output = c->partials[c->launches % 2],
                        .n = left};
    if (!grid_for(c, left, &l->grid)) return false;
    if (l->grid == left) l->grid = (unsigned)((left + 1) / 2);
    return true;
}

/* Does all launches; then *left partial results are in *output. */
static bool launch_all(struct climb *c, struct gpu_memory **output, uint64_t *left) {
    struct level l = {.program = c->first_program,
                      .input = c->copy ? c->copy : c->elements,
                      .output = c->partials[0],
                      .n = c->options->n};
    if (!grid_for(c, l.n, &l.grid)) return false;
    for (;;) {
        if (!launch_level(c, &l)) return false;
        *output = l.output;
        *left = c->info->extra == LADDER_BOARD ? 1 : l.grid;
        if (c->options->finish != TALLY_FINISH_RELAUNCH || *left == 1) return true;
        if (!next_level(c, &l, *left)) return false;
    }
}

static bool read_total(struct climb *c, void *accumulator) {
    uint64_t word = 0;
    if (!ok(c, c->api->read(c->gpu, &word, c->total, 0, c->first->word_size))) return false;
    c->first->from_word(accumulator, &word);
    return true;
}

static bool read_partials(struct climb *c, struct gpu_memory *from, uint64_t count,
                          void *accumulator) {
    const unsigned size = c->first->accumulator_size;
    double more;
    if (!ok(c, c->api->read(c->gpu, c->host, from, 0, (size_t)count * size))) return false;
    memcpy(accumulator, c->host, size);
    for (uint64_t i = 1; i < count; i++) {
        memcpy(&more, c->host + i * size, size);
        c->first->combine(accumulator, &more);
    }
    return true;
}

static bool mark(struct climb *c, int which) {
    return ok(c, c->api->mark(c->gpu, which));
}

/* Does a whole reduction between two marks. The second is set after the last launch or, where the CPU
 * combines the partial results, after that. */
static bool climb_timed(struct climb *c, void *accumulator) {
    struct gpu_memory *output;
    uint64_t left;
    const bool atomic = c->options->finish == TALLY_FINISH_ATOMIC;
    if (!mark(c, 0) || !launch_all(c, &output, &left)) return false;
    c->left = left;
    if (left > 1) c->depth += left; /* atomics, or the CPU, combine them one after another */
    if (left > 1 && !atomic) return read_partials(c, output, left, accumulator) && mark(c, 1);
    return mark(c, 1) &&
           (atomic ? read_total(c, accumulator) : read_partials(c, output, 1, accumulator));
}

bool climb_once(struct climb *c) {
    double accumulator = 0; /* room for any, aligned */
    c->launches = 0;
    c->depth = 0;
    if (!prepare(c)) return false;
    if (c->probe) model_gpu_watch(c->gpu, c->probe);
    bool done = climb_timed(c, &accumulator);
    if (c->probe) model_gpu_watch(c->gpu, NULL);
    if (!done || !ok(c, c->api->elapsed(c->gpu, &c->seconds))) return false;
    ladder_result(c->first, &accumulator, c->options->n, &c->value);
    return true;
}
