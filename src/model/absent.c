/*
 * absent.c - what stands in for the model and the ladder where they are not built: the model as a
 * machine of which none is here, and the ladder's public calls, which say so.
 */
#include "status.h"
#include "tally.h"

#define SENTENCE "this build of Tally is without the model, and so without the ladder"

#ifdef TALLY_GPU
#include "gpu/gpu.h"

static size_t count(void) {
    return 0;
}

static tally_status describe(size_t i, struct gpu_facts *out) {
    (void)i, (void)out;
    return fail(TALLY_EDEVICE, SENTENCE);
}

const struct gpu_api model_api = {.name = "model", .count = count, .describe = describe};
#endif

const tally_rung *tally_ladder_rung(size_t i) {
    (void)i;
    return NULL;
}

const char *tally_finish_name(tally_finish finish) {
    (void)finish;
    return NULL;
}

tally_status tally_finish_parse(const char *name, tally_finish *out) {
    (void)name, (void)out;
    return fail(TALLY_EUNSUPPORTED, SENTENCE);
}

const char *tally_ladder_device(void) {
    return "model";
}

tally_status tally_ladder_run(const char *device, const tally_ladder_options *options,
                              tally_ladder_report *out) {
    (void)device, (void)options, (void)out;
    return fail(TALLY_EUNSUPPORTED, SENTENCE);
}

tally_status tally_ladder_check(const char *device, const tally_ladder_options *options) {
    (void)device, (void)options;
    return fail(TALLY_EUNSUPPORTED, SENTENCE);
}

const char *tally_ladder_source(const char *file) {
    (void)file;
    return NULL;
}

tally_status tally_ladder_explain(const char *rung, const tally_ladder_options *options,
                                  void (*on_step)(void *context, const tally_ladder_step *step),
                                  void *context, tally_ladder_row *out) {
    (void)rung, (void)options, (void)on_step, (void)context, (void)out;
    return fail(TALLY_EUNSUPPORTED, SENTENCE);
}
