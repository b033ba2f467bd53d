/*
 * explain.c - runs one rung on the model and reports each step: tally_ladder_explain().
 */
#include "base/fpenv.h"
#include "base/status.h"
#include "gpu/embed.h"
#include "gpu/memory.h"
#include "ladder/check.h"
#include "ladder/climb.h"
#include "ladder/names.h"
#include "ladder/run.h"
#include "ladder/step.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Accesses in the public header's words ---- */

static struct step_array array_of(const void *climb, const model_access *m) {
    const struct climb *c = climb;
    const struct step_array none = {"", STEP_WORDS, c->first->accumulator_type, 0};
    if (m->kind == MODEL_EXCHANGE || m->kind == MODEL_APPLY) return none;
    if (m->shared) { /* `last` is a flag; the other shared arrays hold accumulators */
        const char *name = *m->name ? m->name : "shared";
        if (strcmp(name, "last") == 0) return (struct step_array){name, STEP_COUNTS, TALLY_U32, 0};
        return (struct step_array){name, STEP_ELEMENTS, c->first->accumulator_type, 0};
    }
    if (c->input && m->array == c->input->native)
        return (struct step_array){"x", STEP_ELEMENTS, c->input_type, 0};
    if (c->output && m->array == c->output->native)
        return (struct step_array){"partials", STEP_ELEMENTS, c->first->accumulator_type, 0};
    if (c->total && m->array == c->total->native)
        return (struct step_array){"total", STEP_WORDS, c->first->accumulator_type, 0};
    if (c->board && m->array == c->board->native) {
        const bool count = m->place[__builtin_ctz(m->lanes)] == 0;
        const tally_type word = m->size == 4 ? TALLY_U32 : TALLY_U64;
        return (struct step_array){"board", count ? STEP_COUNTS : STEP_WORDS,
                                   count ? word : c->first->accumulator_type, 0};
    }
    return none;
}

static tally_value value_of(const struct step_owner *by, const struct step_array *array,
                            uint64_t bits) {
    tally_value v = {.type = array->type};
    if (array->content == STEP_WORDS)
        by->from_word(&v.as, &bits);
    else
        memcpy(&v.as, &bits, sizeof v.as);
    return v;
}

static tally_ladder_act act_of(model_access_kind kind) {
    switch (kind) {
    case MODEL_READ:
        return TALLY_LADDER_READ;
    case MODEL_WRITE:
        return TALLY_LADDER_WRITE;
    case MODEL_ATOMIC:
        return TALLY_LADDER_ATOMIC;
    case MODEL_EXCHANGE:
        return TALLY_LADDER_EXCHANGE;
    case MODEL_APPLY:
        break;
    }
    return TALLY_LADDER_APPLY;
}

static void copy_text(char *to, size_t size, const char *text) {
    snprintf(to, size, "%.*s", (int)size - 1, text);
}

static void translate(const struct step_owner *by, const model_access *m,
                      tally_ladder_access *out) {
    const struct step_array array = by->array_of(by->owner, m);
    const size_t size = array.content == STEP_WORDS ? by->word_size : tally_type_size(array.type);
    const uintptr_t before = array.base ? (uintptr_t)m->array - array.base : 0;
    const bool exchange = m->kind == MODEL_EXCHANGE;
    *out = (tally_ladder_access){.warp = m->warp,
                                 .lanes = m->lanes,
                                 .act = act_of(m->kind),
                                 .shared = m->shared,
                                 .type = array.type,
                                 .elements = m->size > size ? (unsigned)(m->size / size) : 1,
                                 .size = m->size,
                                 .transactions = m->transactions,
                                 .fewest_transactions = m->fewest_transactions,
                                 .bank_conflicts = m->bank_conflicts,
                                 .line = m->line};
    copy_text(out->array, sizeof out->array, array.name);
    copy_text(out->file, sizeof out->file, m->file);
    if (m->kind == MODEL_APPLY) return;
    for (uint32_t lanes = m->lanes; lanes; lanes &= lanes - 1) {
        const unsigned l = (unsigned)__builtin_ctz(lanes);
        out->element[l] = exchange ? m->place[l] : (before + m->place[l]) / size;
        out->value[l] = value_of(by, &array, m->value[l]);
        if (exchange || m->kind == MODEL_ATOMIC) out->given[l] = value_of(by, &array, m->given[l]);
    }
}

/* Clears the file and line of an access in a header: callers show lines of the kernel's own file only. */
static void drop_header(tally_ladder_access *access) {
    const char *end = strrchr(access->file, '.');
    if (!end || end[1] != 'h') return;
    *access->file = '\0';
    access->line = 0;
}

/* Translates the step's accesses into the public header's type, and returns them. The listener owns the array. Returns
 * NULL if there are none, or without memory. */
static const tally_ladder_access *translate_all(struct step_listener *l, const model_step *s) {
    if (s->accesses > l->capacity) {
        tally_ladder_access *more = realloc(l->accesses, s->accesses * sizeof *more);
        if (!more) {
            l->out_of_memory = true;
            return NULL;
        }
        l->accesses = more;
        l->capacity = s->accesses;
    }
    for (size_t i = 0; i < s->accesses; i++) {
        translate(&l->by, &s->access[i], &l->accesses[i]);
        drop_header(&l->accesses[i]);
    }
    return s->accesses ? l->accesses : NULL;
}

/* ---- Steps ---- */

void step_tell(void *listener, unsigned launch, const model_step *s) {
    struct step_listener *l = listener;
    tally_ladder_warp warps[MODEL_WARPS_MAX];
    for (unsigned w = 0; w < s->warps; w++)
        warps[w] = (tally_ladder_warp){.lanes = s->warp[w].lanes,
                                       .operations = s->warp[w].operations,
                                       .issued = MODEL_WARP * s->warp[w].rounds,
                                       .divergent = s->warp[w].divergent,
                                       .transactions = s->warp[w].transactions,
                                       .fewest_transactions = s->warp[w].fewest_transactions,
                                       .bank_conflicts = s->warp[w].bank_conflicts};
    const tally_ladder_access *accesses = translate_all(l, s);
    const tally_ladder_step step = {.launch = launch,
                                    .block = s->block,
                                    .step = s->step,
                                    .barrier = s->barrier,
                                    .stride = s->stride,
                                    .warps = s->warps,
                                    .threads = l->threads,
                                    .warp = warps,
                                    .n = *l->by.n,
                                    .accesses = accesses ? s->accesses : 0,
                                    .access = accesses};
    fp_env_leave(l->caller);
    l->on_step(l->context, &step);
    l->caller = fp_env_enter();
}

static tally_status run(struct climb *c, ladder_rung rung, struct model_probe *probe,
                        tally_ladder_row *row) {
    double seconds;
    struct reference reference;
    tally_status status = reference_make(c->options, &reference);
    if (status != TALLY_OK) return status;
    if (!climb_upload(c, &seconds)) return c->status;
    c->probe = probe;
    bool done = climb_begin(c, rung) && climb_once(c);
    climb_end(c);
    if (!done) return c->status;
    *row =
        (tally_ladder_row){.name = c->info->name, .launches = c->launches, .seconds = (double)NAN};
    counts_take(&row->counts, &probe->counts, c->options->n, c->left);
    reference_check(&reference, &c->value, c->depth, row);
    return TALLY_OK;
}

static tally_status explain(ladder_rung rung, const tally_ladder_options *options,
                            struct step_listener *listener, tally_ladder_row *out) {
    struct model_probe probe = {.on_step = listener->on_step ? step_tell : NULL,
                                .context = listener,
                                .accesses = options->accesses};
    struct climb c;
    struct gpu *gpu;
    tally_status status = model_api.open(0, NULL, &gpu);
    if (status != TALLY_OK) return status;
    if (climb_open(&c, &model_api, gpu, options)) {
        listener->by = (struct step_owner){.array_of = array_of,
                                           .from_word = c.first->from_word,
                                           .word_size = c.first->word_size,
                                           .owner = &c,
                                           .n = &c.input_n};
        status = run(&c, rung, &probe, out);
    } else {
        status = c.status;
    }
    climb_close(&c);
    model_api.close(gpu);
    free(listener->accesses);
    if (status == TALLY_OK && listener->out_of_memory)
        return fail(TALLY_ENOMEM, "no memory for the accesses of a step");
    return status;
}

const char *tally_ladder_source(const char *file) {
    char name[80];
    if (!file || strlen(file) > 40) return NULL;
    snprintf(name, sizeof name, "kernels/ladder/%s", file);
    const struct embedded *found = embed_find(embedded_sources, name);
    return found ? (const char *)found->bytes : NULL;
}

tally_status tally_ladder_explain(const char *rung, const tally_ladder_options *options,
                                  void (*on_step)(void *context, const tally_ladder_step *step),
                                  void *context, tally_ladder_row *out) {
    tally_ladder_options filled;
    struct step_listener listener = {.on_step = on_step, .context = context};
    size_t which;
    if (!rung || !out) return fail(TALLY_EINVAL, "tally_ladder_explain: an argument is NULL");
    tally_status status = rung_find(rung, &which);
    if (status == TALLY_OK) status = options_fill(options, &filled);
    if (status != TALLY_OK) return status;
    if (!filled.x && filled.n) return fail(TALLY_EINVAL, "tally_ladder_explain: x is NULL");
    if (!tally_ladder_rung(which)->is_kernel)
        return fail(TALLY_EUNSUPPORTED, "'%s' is no kernel: the model has nothing to count", rung);
    listener.threads = filled.block;
    listener.caller = fp_env_enter();
    status = explain((ladder_rung)(which - RUNG_KERNELS), &filled, &listener, out);
    fp_env_leave(listener.caller);
    return status;
}
