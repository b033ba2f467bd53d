/*
 * explain.c - one rung on the model, told step by step.
 */
#include "fpenv.h"
#include "ladder/check.h"
#include "ladder/climb.h"
#include "ladder/names.h"
#include "ladder/run.h"
#include "status.h"

#include <math.h>

struct listener {
    void (*on_step)(void *context, const tally_ladder_step *step);
    void *context;
    struct fp_env caller; /* the floating environment in which it is called: its own */
};

/* Tells the listener of a step in the public header's words. */
static void pass_on(void *context, unsigned launch, const model_step *s) {
    struct listener *l = context;
    tally_ladder_warp warps[MODEL_WARPS_MAX];
    for (unsigned w = 0; w < s->warps; w++)
        warps[w] = (tally_ladder_warp){.lanes = s->warp[w].lanes,
                                       .operations = s->warp[w].operations,
                                       .issued = MODEL_WARP * s->warp[w].rounds,
                                       .divergent = s->warp[w].divergent,
                                       .transactions = s->warp[w].transactions,
                                       .fewest_transactions = s->warp[w].fewest_transactions,
                                       .bank_conflicts = s->warp[w].bank_conflicts};
    const tally_ladder_step step = {.launch = launch,
                                    .block = s->block,
                                    .step = s->step,
                                    .barrier = s->barrier,
                                    .stride = s->stride,
                                    .warps = s->warps,
                                    .warp = warps};
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
                            struct listener *listener, tally_ladder_row *out) {
    struct model_probe probe = {.on_step = listener->on_step ? pass_on : NULL, .context = listener};
    struct climb c;
    struct gpu *gpu;
    tally_status status = model_api.open(0, NULL, &gpu);
    if (status != TALLY_OK) return status;
    status = climb_open(&c, &model_api, gpu, options) ? run(&c, rung, &probe, out) : c.status;
    climb_close(&c);
    model_api.close(gpu);
    return status;
}

tally_status tally_ladder_explain(const char *rung, const tally_ladder_options *options,
                                  void (*on_step)(void *context, const tally_ladder_step *step),
                                  void *context, tally_ladder_row *out) {
    tally_ladder_options filled;
    struct listener listener = {.on_step = on_step, .context = context};
    size_t which;
    if (!rung || !out) return fail(TALLY_EINVAL, "tally_ladder_explain: an argument is NULL");
    tally_status status = rung_find(rung, &which);
    if (status == TALLY_OK) status = options_fill(options, &filled);
    if (status != TALLY_OK) return status;
    if (!filled.x && filled.n) return fail(TALLY_EINVAL, "tally_ladder_explain: x is NULL");
    if (!tally_ladder_rung(which)->is_kernel)
        return fail(TALLY_EUNSUPPORTED, "'%s' is no kernel: the model has nothing to count", rung);
    listener.caller = fp_env_enter();
    status = explain((ladder_rung)(which - RUNG_KERNELS), &filled, &listener, out);
    fp_env_leave(listener.caller);
    return status;
}
