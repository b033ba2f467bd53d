/*
 * run.c - climbing the ladder: every rung that a device has, checked and timed, into a report.
 */
#include "ladder/run.h"

#include "base/fpenv.h"
#include "base/status.h"
#include "gpu/roof.h"
#include "gpu/timing.h"
#include "ladder/check.h"
#include "ladder/climb.h"
#include "ladder/machines.h"
#include "ladder/names.h"
#include "ladder/production.h"
#include "ladder/sequential.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Which rungs ---- */

struct run {
    tally_ladder_options options;
    bool wanted[RUNG_TALLY + 1];
    struct reference reference;
    tally_ladder_report *report;
    const char *device;
    const struct gpu_api *api; /* NULL: the CPU */
    size_t number;             /* of the machine's devices */
    bool simulated;            /* it counts, and has no time */
};

/* Sets r->wanted from the options; has[] says which rungs the device can run. */
static tally_status choose(struct run *r, const char *device, const bool has[]) {
    const tally_ladder_options *o = &r->options;
    memcpy(r->wanted, has, sizeof r->wanted);
    if (o->only_count) memset(r->wanted, 0, sizeof r->wanted);
    for (size_t i = 0; i < o->only_count; i++) {
        size_t rung;
        tally_status status = rung_find(o->only[i], &rung);
        if (status != TALLY_OK) return status;
        if (!has[rung])
            return fail(TALLY_EUNSUPPORTED, "rung '%s' does not run on %s", o->only[i], device);
        r->wanted[rung] = true;
    }
    return TALLY_OK;
}

static tally_ladder_row *add_row(struct run *r, size_t rung) {
    tally_ladder_row *row = &r->report->rows[r->report->count++];
    memset(row, 0, sizeof *row);
    row->name = tally_ladder_rung(rung)->name;
    row->seconds = (double)NAN;
    return row;
}

/* Lowers the roof's time to that of the fastest rung where a rung has read the array faster than the plain
 * reads did. (On a machine that runs kernels the sequential loop does not count: it runs on the CPU.) */
static void raise_roof(struct run *r) {
    tally_ladder_report *report = r->report;
    for (size_t i = 0; i < report->count; i++) {
        const tally_ladder_row *row = &report->rows[i];
        const bool on_device = !r->api || row->launches > 0;
        if (on_device && row->correct && row->seconds < report->roof_seconds) {
            report->roof_seconds = row->seconds;
            report->roof = row->name;
        }
    }
}

/* ---- On the CPU ---- */

struct cpu_run {
    const tally_ladder_options *options;
    tally_device *device;
    tally_value value;
};

static tally_status run_sequential(void *context, double *seconds) {
    struct cpu_run *c = context;
    const double start = clock_now();
    sequential_reduce(c->options->op, c->options->type, c->options->x, c->options->n, &c->value);
    *seconds = clock_now() - start;
    return TALLY_OK;
}

static tally_status run_tally(void *context, double *seconds) {
    struct cpu_run *c = context;
    const tally_ladder_options *o = c->options;
    const double start = clock_now();
    const tally_problem problem = {.op = o->op, .type = o->type};
    tally_status status = tally_reduce(c->device, &problem, o->x, NULL, o->n, &c->value);
    *seconds = clock_now() - start;
    return status;
}

/* Measures the baseline, also where no row asks for it. */
static tally_status add_sequential(struct run *r) {
    struct cpu_run c = {.options = &r->options};
    tally_status status = time_median(run_sequential, &c, &r->report->sequential_seconds);
    if (status != TALLY_OK || !r->wanted[RUNG_SEQUENTIAL]) return status;
    tally_ladder_row *row = add_row(r, RUNG_SEQUENTIAL);
    row->seconds = r->report->sequential_seconds;
    reference_check(&r->reference, &c.value, r->options.n, row);
    return TALLY_OK;
}

static tally_status add_cpu_tally(struct run *r, tally_device *device) {
    struct cpu_run c = {.options = &r->options, .device = device};
    double seconds;
    if (!r->wanted[RUNG_TALLY]) return TALLY_OK;
    tally_status status = time_median(run_tally, &c, &seconds);
    if (status != TALLY_OK) return status;
    tally_ladder_row *row = add_row(r, RUNG_TALLY);
    row->seconds = seconds;
    reference_check(&r->reference, &c.value, 0, row);
    return TALLY_OK;
}

static tally_status read_on_cpu(struct run *r, tally_device *device) {
    const tally_ladder_options *o = &r->options;
    r->report->roof = "read";
    return tally_device_read(device, o->x, o->n * tally_type_size(o->type),
                             &r->report->roof_seconds);
}

static void describe_cpu(struct run *r, tally_device *device) {
    tally_device_info info;
    tally_device_describe(device, &info);
    snprintf(r->report->device, sizeof r->report->device, "%s", r->device);
    snprintf(r->report->name, sizeof r->report->name, "%s", info.name);
}

static tally_status climb_cpu(struct run *r) {
    tally_device *device;
    tally_status status = tally_open(r->device, &device);
    if (status != TALLY_OK) return status;
    describe_cpu(r, device);
    status = reference_make(&r->options, &r->reference);
    if (status == TALLY_OK) status = read_on_cpu(r, device);
    if (status == TALLY_OK) status = add_sequential(r);
    if (status == TALLY_OK) status = add_cpu_tally(r, device);
    tally_close(device);
    return status;
}

/* ---- On a machine that runs kernels ---- */

static tally_status run_climb(void *context, double *seconds) {
    struct climb *c = context;
    if (!climb_once(c)) return c->status;
    *seconds = c->seconds;
    return TALLY_OK;
}

void counts_take(tally_ladder_counts *out, const model_counts *c, uint64_t n, uint64_t left) {
    *out = (tally_ladder_counts){.blocks = c->blocks,
                                 .steps = c->steps,
                                 .barriers = c->barriers,
                                 .rounds = c->rounds,
                                 .all_rounds = c->all_rounds,
                                 .all_barriers = c->all_barriers,
                                 .useful = n > left ? n - left : 0,
                                 .operations = c->operations,
                                 .slots = c->slots,
                                 .issued = c->issued,
                                 .divergent = c->divergent,
                                 .transactions = c->transactions,
                                 .fewest_transactions = c->fewest_transactions,
                                 .bank_conflicts = c->bank_conflicts,
                                 .bytes_read = c->bytes_read,
                                 .bytes_written = c->bytes_written,
                                 .atomics = c->atomics};
}

/* Runs a rung that climb_begin() has prepared. On the model it runs once and is counted; elsewhere it is timed. */
static tally_status run_rung(struct climb *c, tally_ladder_row *row) {
    if (!c->api->facts(c->gpu)->is_simulated) return time_median(run_climb, c, &row->seconds);
    struct model_probe probe = {.launches = 0};
    c->probe = &probe;
    climb_once(c);
    c->probe = NULL;
    counts_take(&row->counts, &probe.counts, c->options->n, c->left);
    return c->status;
}

static tally_status add_rung(struct run *r, struct climb *c, ladder_rung rung) {
    tally_ladder_row *row = add_row(r, RUNG_KERNELS + (size_t)rung);
    tally_status status = climb_begin(c, rung) ? run_rung(c, row) : c->status;
    climb_end(c);
    row->launches = c->launches;
    if (status == TALLY_OK) reference_check(&r->reference, &c->value, c->depth, row);
    return status;
}

struct production_run {
    const struct climb *climb;
    tally_value value;
};

static tally_status run_production(void *context, double *seconds) {
    struct production_run *p = context;
    const struct climb *c = p->climb;
    return production_reduce(c->api, c->gpu, c->options->op, c->options->type, c->elements,
                             c->options->n, &p->value, seconds);
}

/* Runs the production reduction once and counts it: on the model, which has no time. */
static tally_status count_production(struct production_run *p, tally_ladder_row *row) {
    struct model_probe probe = {.launches = 0};
    double seconds;
    model_gpu_watch(p->climb->gpu, &probe);
    tally_status status = run_production(p, &seconds);
    model_gpu_watch(p->climb->gpu, NULL);
    counts_take(&row->counts, &probe.counts, p->climb->options->n, 1);
    row->launches = probe.launches;
    return status;
}

static tally_status add_production(struct run *r, struct climb *c) {
    struct production_run p = {.climb = c};
    tally_ladder_row *row = add_row(r, RUNG_TALLY);
    tally_status status;
    if (r->simulated) {
        status = count_production(&p, row);
    } else {
        status = time_median(run_production, &p, &row->seconds);
        row->launches = 1;
    }
    if (status == TALLY_OK) reference_check(&r->reference, &p.value, 0, row);
    return status;
}

/* Copies the array to the GPU's memory. Where that is timed, it is done twice: the first time, the device's
 * driver makes the pages. */
static tally_status upload(struct run *r, struct climb *c) {
    double first, second;
    if (!climb_upload(c, &first)) return c->status;
    if (r->simulated) return TALLY_OK;
    if (!climb_upload(c, &second)) return c->status;
    r->report->copy_seconds = first < second ? first : second;
    return TALLY_OK;
}

static tally_status measure_roof(struct run *r, struct climb *c) {
    if (r->simulated) return TALLY_OK;
    r->report->roof = "read";
    return roof_measure(c->api, c->gpu, c->elements,
                        r->options.n * tally_type_size(r->options.type), &r->report->roof_seconds);
}

static tally_status climb_rungs(struct run *r, struct climb *c) {
    tally_status status = upload(r, c);
    if (status == TALLY_OK) status = measure_roof(r, c);
    if (status == TALLY_OK && !r->simulated) status = add_sequential(r);
    for (int rung = 0; rung < LADDER_RUNG_COUNT && status == TALLY_OK; rung++)
        if (r->wanted[RUNG_KERNELS + rung]) status = add_rung(r, c, (ladder_rung)rung);
    if (status == TALLY_OK && r->wanted[RUNG_TALLY]) status = add_production(r, c);
    return status;
}

static tally_status climb_machine(struct run *r) {
    const struct gpu_api *api = r->api;
    struct climb c;
    struct gpu *gpu;
    tally_status status = api->open(r->number, NULL, &gpu);
    if (status != TALLY_OK) return status;
    snprintf(r->report->device, sizeof r->report->device, "%s", r->device);
    snprintf(r->report->name, sizeof r->report->name, "%s", api->facts(gpu)->name);
    if (!climb_open(&c, api, gpu, &r->options))
        status = c.status;
    else
        status = reference_make(&r->options, &r->reference);
    if (status == TALLY_OK) status = climb_rungs(r, &c);
    climb_close(&c);
    api->close(gpu);
    return status;
}

/* ---- The calls ---- */

/* Sets has[] to the rungs that the device can run. */
static void list_rungs(const struct run *r, bool has[RUNG_TALLY + 1]) {
    for (size_t i = 0; i <= RUNG_TALLY; i++)
        has[i] = r->api != NULL;
    has[RUNG_SEQUENTIAL] = !r->simulated; /* the model counts kernels only */
    has[RUNG_TALLY] = !r->api || production_has(r->api, r->options.op, r->options.type);
}

/* Finds out whether a device that runs no kernels is there, by opening it. */
static tally_status find_cpu(const char *device) {
    tally_device *found;
    tally_status status = tally_open(device, &found);
    if (status == TALLY_OK) tally_close(found);
    return status;
}

/* Finds the facts of a machine's device. */
static tally_status find_machine(struct run *r) {
    struct gpu_facts facts;
    const tally_status status = r->api->describe(r->number, &facts);
    r->simulated = status == TALLY_OK && facts.is_simulated;
    return status;
}

/* Finds the device and the rungs. */
static tally_status locate(struct run *r, const char *device, const tally_ladder_options *options) {
    bool has[RUNG_TALLY + 1];
    r->device = device ? device : tally_ladder_device();
    tally_status status = options_fill(options, &r->options);
    if (status == TALLY_OK) status = machine_parse(r->device, &r->api, &r->number);
    if (status == TALLY_OK && !r->api) status = find_cpu(r->device);
    if (status == TALLY_OK && r->api) status = find_machine(r);
    if (status != TALLY_OK) return status;
    list_rungs(r, has);
    return choose(r, r->device, has);
}

/* Drivers do floating arithmetic in this process, and so do the rungs on the model and on the CPU. These calls set
 * Tally's floating environment for it, and then put the caller's back. */

tally_status tally_ladder_check(const char *device, const tally_ladder_options *options) {
    struct run r = {.device = NULL};
    const struct fp_env caller = fp_env_enter();
    const tally_status status = locate(&r, device, options);
    fp_env_leave(caller);
    return status;
}

static tally_status climb(struct run *r, const char *device, const tally_ladder_options *options) {
    tally_ladder_report *report = r->report;
    tally_status status = locate(r, device, options);
    if (status != TALLY_OK) return status;
    if (!r->options.x && r->options.n) return fail(TALLY_EINVAL, "tally_ladder_run: x is NULL");
    memset(report, 0, sizeof *report);
    report->sequential_seconds = report->roof_seconds = (double)NAN;
    report->roof = "";
    report->block = r->options.block;
    report->coarsen = r->options.coarsen;
    status = r->api ? climb_machine(r) : climb_cpu(r);
    if (status == TALLY_OK) raise_roof(r);
    return status;
}

tally_status tally_ladder_run(const char *device, const tally_ladder_options *options,
                              tally_ladder_report *out) {
    tally_ladder_report report;
    struct run r = {.report = &report};
    if (!out) return fail(TALLY_EINVAL, "tally_ladder_run: an argument is NULL");
    const struct fp_env caller = fp_env_enter();
    const tally_status status = climb(&r, device, options);
    fp_env_leave(caller);
    if (status == TALLY_OK) *out = report;
    return status;
}
