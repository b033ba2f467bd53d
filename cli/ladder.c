/*
 * ladder.c - `tally ladder`: the classic kernels of parallel reduction, run one after the other on a
 * device, checked and timed; on the model, counted.
 */
#include "command.h"

#include "arguments.h"
#include "guard.h"
#include "json.h"
#include "ladder_counts.h"
#include "ladder_options.h"
#include "ladder_texts.h"
#include "message.h"

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char ladder_help[] =
    "Usage: tally ladder [OPTION...]\n"
    "Climbs the ladder of classic reduction kernels, from the first that comes to mind to the\n"
    "production one: each is run, checked against the exact answer, and timed; on the model, a\n"
    "simulated GPU, it is counted. 'tally explain RUNG' shows one of them step by step.\n"
    "\n"
    "  --device DEVICE   cuda or opencl (also opencl:1), model, or cpu; the first that is here\n"
    "                    is the default\n" LADDER_OPTIONS_HELP
    "  --only RUNG...    these rungs only, as the table calls them\n"
    "  --json            the measurements as one JSON object\n"
    "  --help            this text\n"
    "\n"
    "Without -n: 2^16 elements on the model, 2^24 with OpenCL, 2^27 on the cpu, 2^30 with CUDA.\n"
    "improvement: MFLOPS gained over the row before, as the texts have it; one operation an\n"
    "element. of roof: of the fastest that the device has read the array.\n";

enum { RUNGS_MAX = 64 };

struct ladder {
    struct ladder_options options;
    const char *device;
    const char *only[RUNGS_MAX];
    tally_ladder_report report;
    bool counts; /* on the model: there are counts and no times */
    bool on_cpu; /* and not on a machine that runs kernels */
};

/* ---- The command line ---- */

/* Adds the rungs of a word such as "shared" or "shared,shuffle". */
static bool add_rungs(struct ladder *l, char *word) {
    char *rest = NULL;
    for (char *name = strtok_r(word, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        if (l->options.run.only_count == RUNGS_MAX)
            return misused("--only takes at most %d rungs", RUNGS_MAX), false;
        l->only[l->options.run.only_count++] = name;
    }
    return true;
}

/* Words that belong to no option are more rungs for --only. */
static bool read_rungs(struct ladder *l, int argc, char **argv) {
    if (optind < argc && !l->options.run.only_count)
        return misused("ladder takes no argument such as '%s'; rungs follow --only", argv[optind]),
               false;
    for (int i = optind; i < argc; i++)
        if (!add_rungs(l, argv[i])) return false;
    l->options.run.only = l->only;
    return true;
}

static bool set_option(struct ladder *l, int option) {
    if (option == 'D') return l->device = optarg, true;
    if (option == 'O') return add_rungs(l, optarg);
    return ladder_option(&l->options, option);
}

static int read_options(struct ladder *l, int argc, char **argv) {
    static const struct option options[] = {LADDER_LONG_OPTIONS,
                                            {"device", required_argument, NULL, 'D'},
                                            {"only", required_argument, NULL, 'O'},
                                            {NULL, 0, NULL, 0}};
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":hn:", options, NULL)) != -1;) {
        if (c == '?' || c == ':') return argument_unknown(c, argv, options);
        if (!set_option(l, c)) return STATUS_USAGE;
    }
    return read_rungs(l, argc, argv) ? STATUS_OK : STATUS_USAGE;
}

/* ---- Numbers ---- */

/* The texts' unit: n numbers take n - 1 operations. */
static double mflops(const struct ladder *l, double seconds) {
    const double n = (double)l->options.n;
    return n > 0 ? (n - 1) * 1e-6 / seconds : 0;
}

static double gbps(const struct ladder *l, double seconds) {
    return (double)l->options.bytes * 1e-9 / seconds;
}

/* MFLOPS gained over the row before; NaN for the first. */
static double improvement(const struct ladder *l, size_t i) {
    const tally_ladder_row *rows = l->report.rows;
    return i > 0 ? mflops(l, rows[i].seconds) - mflops(l, rows[i - 1].seconds) : (double)NAN;
}

static double with_copy(const struct ladder *l, const tally_ladder_row *row) {
    const bool on_cpu = row->launches == 0;
    return row->seconds + (on_cpu ? 0 : l->report.copy_seconds);
}

/* NaN for the CPU's loop where another device is measured: that roof is not its own. */
static double of_roof(const struct ladder *l, const tally_ladder_row *row) {
    const bool is_host = row->launches == 0 && !l->on_cpu;
    return is_host ? (double)NAN : l->report.roof_seconds / row->seconds;
}

static bool is_sum_of_f32(const struct ladder *l) {
    return l->options.run.op == TALLY_SUM && l->options.run.type == TALLY_F32;
}

/* ---- JSON ---- */

/* A measured number, or null where there is none. */
static void measure(struct json_object *object, const char *key, double value) {
    if (isfinite(value))
        json_measure(object, key, value);
    else
        json_null(object, key);
}

static void json_published(const struct ladder *l, struct json_object *object, const char *rung) {
    const struct ladder_published *p = is_sum_of_f32(l) ? ladder_published(rung) : NULL;
    if (p && p->mflops > 0) json_measure(object, "texts_mflops", p->mflops);
    if (p && p->ms > 0) json_measure(object, "texts_ms", p->ms);
}

static struct json_object *json_row(const struct ladder *l, size_t i) {
    const tally_ladder_row *row = &l->report.rows[i];
    struct json_object *object = json_new_object();
    json_text(object, "name", row->name);
    json_flag(object, "correct", row->correct);
    measure(object, "ulp_error", row->ulp_error);
    json_flag(object, "exact", row->ulp_error == 0);
    measure(object, "median_ms", row->seconds * 1e3);
    measure(object, "with_copy_ms", with_copy(l, row) * 1e3);
    measure(object, "mflops", mflops(l, row->seconds));
    measure(object, "gbps", gbps(l, row->seconds));
    measure(object, "of_roof", of_roof(l, row));
    measure(object, "improvement_mflops", improvement(l, i));
    measure(object, "over_sequential", l->report.sequential_seconds / row->seconds);
    json_count(object, "launches", row->launches);
    json_result(object, &row->value);
    if (l->counts) json_member(object, "counts", json_ladder_counts(&row->counts));
    json_published(l, object, row->name);
    return object;
}

static int print_json(const struct ladder *l) {
    const tally_ladder_report *r = &l->report;
    struct json_object *object = json_new_object();
    struct json_object *kernels = json_new_list();
    json_text(object, "device", r->device);
    json_text(object, "name", r->name);
    json_count(object, "n", l->options.n);
    json_text(object, "op", tally_op_name(l->options.run.op));
    json_text(object, "dtype", tally_type_name(l->options.run.type));
    json_count(object, "block", r->block);
    json_count(object, "coarsen", r->coarsen);
    json_text(object, "finish", tally_finish_name(l->options.run.finish));
    measure(object, "roof_gbps", gbps(l, r->roof_seconds));
    json_text(object, "roof", r->roof);
    measure(object, "copy_ms", l->counts ? (double)NAN : r->copy_seconds * 1e3);
    measure(object, "sequential_ms", r->sequential_seconds * 1e3);
    for (size_t i = 0; i < r->count; i++)
        json_item(kernels, json_row(l, i));
    json_member(object, "kernels", kernels);
    return json_print(object);
}

/* ---- Tables ---- */

static const char *error_text(const tally_ladder_row *row, char *text, size_t size) {
    if (!row->correct)
        snprintf(text, size, "WRONG");
    else if (row->ulp_error == 0)
        snprintf(text, size, "exact");
    else
        snprintf(text, size, "%.6g ulp", row->ulp_error);
    return text;
}

static void print_head(const struct ladder *l) {
    const tally_ladder_report *r = &l->report;
    const struct ladder_options *o = &l->options;
    printf("%s of %" PRIu64 " %s on %s (%s)\n", tally_op_name(o->run.op), o->n,
           tally_type_name(o->run.type), r->device, r->name);
    if (!l->on_cpu)
        printf("blocks of %u threads, coarsened by %u, finish: %s\n", r->block, r->coarsen,
               tally_finish_name(o->run.finish));
    putchar('\n');
}

/* What the texts say of a rung: "1978 MFLOPS, 2.752 ms", or "". */
static const char *published_text(const struct ladder *l, const char *rung, char text[40]) {
    const struct ladder_published *p = is_sum_of_f32(l) ? ladder_published(rung) : NULL;
    *text = '\0';
    if (p && p->mflops > 0 && p->ms > 0)
        snprintf(text, 40, "%.0f MFLOPS, %g ms", p->mflops, p->ms);
    else if (p && p->mflops > 0)
        snprintf(text, 40, "%.0f MFLOPS", p->mflops);
    else if (p)
        snprintf(text, 40, "%g ms", p->ms);
    return text;
}

static void print_timed_row(const struct ladder *l, size_t i) {
    const tally_ladder_row *row = &l->report.rows[i];
    const double t = row->seconds, share = of_roof(l, row);
    char error[32], texts[40], gain[32] = "", of[16] = "";
    if (i > 0) snprintf(gain, sizeof gain, "%+.0f", improvement(l, i));
    if (isfinite(share)) snprintf(of, sizeof of, "%.1f%%", 100 * share);
    printf("%-19s %10.4g %10.4g %9.0f %8.2f %8s %11s %9.2fx %8u  ", row->name, t * 1e3,
           with_copy(l, row) * 1e3, mflops(l, t), gbps(l, t), of, gain,
           l->report.sequential_seconds / t, row->launches);
    published_text(l, row->name, texts);
    printf(*texts ? "%-14s%s\n" : "%s%s\n", error_text(row, error, sizeof error), texts);
}

static void print_timed(const struct ladder *l) {
    const tally_ladder_report *r = &l->report;
    printf("%-19s %10s %10s %9s %8s %8s %11s %10s %8s  %-14s%s\n", "approach", "ms", "with copy",
           "MFLOPS", "GB/s", "of roof", "improvement", "sequential", "launches", "error",
           is_sum_of_f32(l) ? "the texts" : "");
    for (size_t i = 0; i < r->count; i++)
        print_timed_row(l, i);
    printf("\nThe roof: %.2f GB/s, by %s", gbps(l, r->roof_seconds),
           strcmp(r->roof, "read") == 0 ? "plain reads of the same memory" : r->roof);
    if (r->copy_seconds > 0) printf("; the copy to the device: %.4g ms", r->copy_seconds * 1e3);
    puts(".");
}

static void print_counted(const struct ladder *l) {
    printf("%-19s %5s %8s %10s %10s %6s %9s %12s %10s %9s %12s %12s %8s  %s\n", "approach", "steps",
           "barriers", "operations", "slots", "effic.", "divergent", "transactions", "fewest",
           "conflicts", "bytes read", "written", "launches", "error");
    for (size_t i = 0; i < l->report.count; i++) {
        const tally_ladder_row *row = &l->report.rows[i];
        const tally_ladder_counts *c = &row->counts;
        char error[32];
        printf("%-19s %5" PRIu64 " %8" PRIu64 " %10" PRIu64 " %10" PRIu64 " %6.2f %9" PRIu64
               " %12" PRIu64 " %10" PRIu64 " %9" PRIu64 " %12" PRIu64 " %12" PRIu64 " %8u  %s\n",
               row->name, c->steps, c->barriers, c->operations, c->slots, ladder_efficiency(c),
               c->divergent, c->transactions, c->fewest_transactions, c->bank_conflicts,
               c->bytes_read, c->bytes_written, row->launches,
               error_text(row, error, sizeof error));
    }
    puts(
        "\nsteps and barriers: of one block, added up over launches. slots: 32 for each warp and\n"
        "step in which the operator is applied; efficiency: operations / slots, above 1 where a\n"
        "thread applies it several times in a step. transactions: 128-byte lines of global memory\n"
        "touched by a warp's loads and stores, beside the fewest for the bytes. The model has no\n"
        "time. 'tally explain RUNG' shows where the counts come from.");
}

static int print_table(const struct ladder *l) {
    print_head(l);
    if (l->counts)
        print_counted(l);
    else
        print_timed(l);
    if (is_sum_of_f32(l)) {
        putchar('\n');
        fputs(ladder_published_notes, stdout);
    }
    return finish_output();
}

/* ---- The command ---- */

/* Whether the device's text is of this kind, with or without a number. */
static bool is_kind(const char *device, const char *kind) {
    const size_t length = strlen(kind);
    return strncmp(device, kind, length) == 0 && (!device[length] || device[length] == ':');
}

static uint64_t default_n(const char *device) {
    if (is_kind(device, "model")) return 1 << 16;
    if (is_kind(device, "opencl")) return 1 << 24;
    if (is_kind(device, "cuda")) return 1 << 30;
    return 1 << 27;
}

static int climb(struct ladder *l) {
    if (tally_ladder_run(l->device, &l->options.run, &l->report) != TALLY_OK)
        return failed("%s", tally_error());
    int status = l->options.as_json ? print_json(l) : print_table(l);
    for (size_t i = 0; i < l->report.count; i++)
        if (!l->report.rows[i].correct) return failed("%s is wrong", l->report.rows[i].name);
    return status;
}

static int run(void *argument) {
    struct ladder *l = argument;
    if (!l->device || strcmp(l->device, "auto") == 0) l->device = tally_ladder_device();
    if (!l->options.has_n) l->options.n = default_n(l->device);
    l->counts = is_kind(l->device, "model");
    l->on_cpu = is_kind(l->device, "cpu");
    if (tally_ladder_check(l->device, &l->options.run) != TALLY_OK)
        return failed("%s", tally_error());
    if (!ladder_fill(&l->options)) return STATUS_FAILED;
    int status = climb(l);
    ladder_release(&l->options);
    return status;
}

int ladder_command(int argc, char **argv) {
    struct ladder l = {.options.run = {.op = TALLY_SUM, .type = TALLY_F32}};
    int status = read_options(&l, argc, argv);
    if (status != STATUS_OK) return status;
    if (l.options.help) return fputs(ladder_help, stdout), finish_output();
    const bool asks_all = !l.device || strcmp(l.device, "auto") == 0;
    return asks_all || argument_needs_driver(l.device) ? guarded(run, &l, true) : run(&l);
}
