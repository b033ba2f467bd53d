/*
 * absent.c - stand-ins for the model and the ladder in builds without them: a machine that has no
 * devices, and the ladder's public calls, which fail.
 */
#include "base/status.h"
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

const char *tally_own_prelude(void) {
    return NULL;
}

const char *tally_own_flags(void) {
    return NULL;
}

tally_status tally_own_open(const char *object, tally_own **out) {
    (void)object, (void)out;
    return fail(TALLY_EUNSUPPORTED, SENTENCE);
}

void tally_own_close(tally_own *own) {
    (void)own;
}

tally_status tally_own_describe(const tally_own *own, size_t i, tally_own_kernel *out) {
    (void)own, (void)i, (void)out;
    return fail(TALLY_EUNSUPPORTED, SENTENCE);
}

tally_status tally_own_run(tally_own *own, size_t i, const tally_own_launch *how,
                           void (*on_step)(void *context, const tally_ladder_step *step),
                           void *context, void *input, void *output, tally_own_result *out) {
    (void)own, (void)i, (void)how, (void)on_step, (void)context, (void)input, (void)output,
        (void)out;
    return fail(TALLY_EUNSUPPORTED, SENTENCE);
}

tally_status tally_own_compile(const char *device, const tally_own_text *text,
                               tally_own_program **out) {
    (void)device, (void)text, (void)out;
    return fail(TALLY_EUNSUPPORTED, SENTENCE);
}

void tally_own_drop(tally_own_program *program) {
    (void)program;
}

tally_status tally_own_time(tally_own_program *program, const tally_own_launch *how,
                            unsigned repeats, void *input, void *output, double *seconds,
                            tally_own_result *out) {
    (void)program, (void)how, (void)repeats, (void)input, (void)output, (void)seconds, (void)out;
    return fail(TALLY_EUNSUPPORTED, SENTENCE);
}
