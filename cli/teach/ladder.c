/*
 * ladder.c - `tally ladder`: the classic kernels of parallel reduction, run one after the other on a
 * device, checked and timed; on the model, counted.
 */
#include "common/command.h"

#include "common/arguments.h"
#include "common/guard.h"
#include "common/json.h"
#include "common/message.h"
#include "teach/ladder_counts.h"
#include "teach/ladder_options.h"
#include "teach/ladder_texts.h"
#include "teach/own_device.h"
#include "teach/own_explain.h"

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
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
    "  --list            list the rungs and run none\n" OWN_OPTIONS_HELP
    "  --json            the measurements as one JSON object\n"
    "  --help            this text\n"
    "\n"
    "Without -n: 2^16 elements on the model, 2^24 with OpenCL, 2^27 on the cpu, 2^30 with CUDA.\n"
    "improvement: MFLOPS gained over the row before, as the texts have it; one operation an\n"
    "element. --kernel: a row more, on the model, or on the device that is named (its time is\n"
    "one launch's); 'tally explain --kernel FILE' says what is wrong.\n"
    "of roof: of the fastest that the device has read the array.\n";

enum { RUNGS_MAX = 64 };

struct ladder {
    struct ladder_options options;
    const char *device;
    const char *only[RUNGS_MAX];
    tally_ladder_report report;
    bool list;              /* list the rungs, and run none */
    struct own_options own; /* a kernel of the student's, beside the rungs */
    char own_name[340], own_launch[OWN_LAUNCH_WORDS]; /* the name of its row, and its launch */
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
    if (option == 'W') return l->device = optarg, true;
    if (option == 'O') return add_rungs(l, optarg);
    if (option == 'L') return l->list = true;
    return ladder_option(&l->options, option);
}

static int read_options(struct ladder *l, int argc, char **argv) {
    static const struct option options[] = {LADDER_LONG_OPTIONS,
                                            {"device", required_argument, NULL, 'W'},
                                            {"only", required_argument, NULL, 'O'},
                                            {"list", no_argument, NULL, 'L'},
                                            OWN_LONG_OPTIONS,
                                            {NULL, 0, NULL, 0}};
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":hn:D:", options, NULL)) != -1;) {
        if (c == '?' || c == ':') return argument_unknown(c, argv, options);
        if (!own_option(&l->own, c) && !set_option(l, c)) return STATUS_USAGE;
        if (l->own.is_misused) return STATUS_USAGE;
    }
    if (!own_options_fit(&l->own) || !ladder_block_fits(&l->options)) return STATUS_USAGE;
    return read_rungs(l, argc, argv) ? STATUS_OK : STATUS_USAGE;
}

/* ---- Numbers ---- */

/* Returns a speed in the texts' unit: n numbers take n - 1 operations. */
static double mflops(const struct ladder *l, double seconds) {
    const double n = (double)l->options.n;
    return n > 0 ? (n - 1) * 1e-6 / seconds : 0;
}

static double gbps(const struct ladder *l, double seconds) {
    return (double)l->options.bytes * 1e-9 / seconds;
}

/* Returns the MFLOPS gained over the row before; NaN for the first. */
static double improvement(const struct ladder *l, size_t i) {
    const tally_ladder_row *rows = l->report.rows;
    return i > 0 ? mflops(l, rows[i].seconds) - mflops(l, rows[i - 1].seconds) : (double)NAN;
}

static double with_copy(const struct ladder *l, const tally_ladder_row *row) {
    const bool on_cpu = row->launches == 0;
    return row->seconds + (on_cpu ? 0 : l->report.copy_seconds);
}

/* Returns the part of the roof's rate that a row reaches. NaN for the CPU's loop where another device is measured: that
 * roof is not the CPU's. */
static double of_roof(const struct ladder *l, const tally_ladder_row *row) {
    const bool is_host = row->launches == 0 && !l->on_cpu;
    return is_host ? (double)NAN : l->report.roof_seconds / row->seconds;
}

static bool is_sum_of_f32(const struct ladder *l) {
    return l->options.run.op == TALLY_SUM && l->options.run.type == TALLY_F32;
}

/* ---- JSON ---- */

/* Adds a measured number, or null if it is not finite. */
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
    if (l->counts) json_member(object, "counts", json_ladder_counts(row));
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

/* Writes the texts' figures for a rung, such as "1978 MFLOPS, 2.752 ms", or "". Returns text. */
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

/* Returns the width of the rows' longest error, which the next column needs. */
static int error_width(const struct ladder *l) {
    size_t width = strlen("error");
    for (size_t i = 0; i < l->report.count; i++) {
        char text[32];
        const size_t length = strlen(error_text(&l->report.rows[i], text, sizeof text));
        if (length > width) width = length;
    }
    return (int)width;
}

static void print_timed_row(const struct ladder *l, size_t i, int width) {
    const tally_ladder_row *row = &l->report.rows[i];
    const double t = row->seconds, share = of_roof(l, row);
    char error[32], texts[40], gain[32] = "", of[16] = "";
    if (i > 0) snprintf(gain, sizeof gain, "%+.0f", improvement(l, i));
    if (isfinite(share)) snprintf(of, sizeof of, "%.1f%%", 100 * share);
    printf("%-19s %10.4g %10.4g %9.0f %8.2f %8s %11s %9.2fx %8u  ", row->name, t * 1e3,
           with_copy(l, row) * 1e3, mflops(l, t), gbps(l, t), of, gain,
           l->report.sequential_seconds / t, row->launches);
    published_text(l, row->name, texts);
    error_text(row, error, sizeof error);
    if (*texts)
        printf("%-*s  %s\n", width, error, texts);
    else
        puts(error);
}

static void print_timed(const struct ladder *l) {
    const tally_ladder_report *r = &l->report;
    const int width = error_width(l);
    printf("%-19s %10s %10s %9s %8s %8s %11s %10s %8s  ", "approach", "ms", "with copy", "MFLOPS",
           "GB/s", "of roof", "improvement", "sequential", "launches");
    if (is_sum_of_f32(l))
        printf("%-*s  the texts\n", width, "error");
    else
        puts("error");
    for (size_t i = 0; i < r->count; i++)
        print_timed_row(l, i, width);
    printf("\nThe roof: %.2f GB/s, by %s", gbps(l, r->roof_seconds),
           strcmp(r->roof, "read") == 0 ? "plain reads of the same memory" : r->roof);
    if (r->copy_seconds > 0) printf("; the copy to the device: %.4g ms", r->copy_seconds * 1e3);
    puts(".");
}

/* ---- Counts ---- */

/* The columns of the counted table. A count of_operator may not have been taken: see ladder_applies(). */
enum { EFFICIENCY = -1 };
static const struct count_column {
    const char *head;
    int width;
    bool of_operator;
    int offset; /* in tally_ladder_counts, or EFFICIENCY */
} count_columns[] = {
#define COLUMN(head, width, of_operator, field)                                                    \
    { head, width, of_operator, (int)offsetof(tally_ladder_counts, field) }
    COLUMN("steps", 5, true, steps),
    COLUMN("barriers", 8, false, barriers),
    COLUMN("of all", 8, false, all_barriers),
    COLUMN("useful", 10, true, useful),
    COLUMN("applied", 10, true, operations),
    COLUMN("issued", 10, true, issued),
    {"effic.", 6, true, EFFICIENCY},
    COLUMN("divergent", 9, false, divergent),
    COLUMN("transactions", 12, false, transactions),
    COLUMN("fewest", 10, false, fewest_transactions),
    COLUMN("conflicts", 9, false, bank_conflicts),
    COLUMN("bytes read", 12, false, bytes_read),
    COLUMN("written", 12, false, bytes_written),
#undef COLUMN
};
enum { COUNT_COLUMNS = sizeof count_columns / sizeof *count_columns };

static void print_count(const struct count_column *c, const tally_ladder_row *row) {
    const char *counts = (const char *)&row->counts;
    if (c->of_operator && !ladder_applies(row))
        printf(" %*s", c->width, "-");
    else if (c->offset == EFFICIENCY)
        printf(" %*.2f", c->width, ladder_efficiency(&row->counts));
    else
        printf(" %*" PRIu64, c->width, *(const uint64_t *)(const void *)(counts + c->offset));
}

static void print_counted_row(const tally_ladder_row *row) {
    char error[32];
    printf("%-19s", row->name);
    for (size_t i = 0; i < COUNT_COLUMNS; i++)
        print_count(&count_columns[i], row);
    printf(" %8u  %s\n", row->launches, error_text(row, error, sizeof error));
}

static void print_counted(const struct ladder *l) {
    printf("%-19s", "approach");
    for (size_t i = 0; i < COUNT_COLUMNS; i++)
        printf(" %*s", count_columns[i].width, count_columns[i].head);
    printf(" %8s  error\n", "launches");
    for (size_t i = 0; i < l->report.count; i++)
        print_counted_row(&l->report.rows[i]);
    puts(
        "\nsteps and barriers: of one block, added up over launches; of all: the barriers of all\n"
        "blocks. useful: the operations that are needed; applied: those that lanes do; issued: 32\n"
        "for each instruction of a warp in which one of its lanes, or several, applies the "
        "operator;\n"
        "efficiency: useful / issued. transactions: 128-byte lines of global memory touched by a\n"
        "warp's loads and stores, beside the fewest for the bytes. -: not counted. The model has "
        "no\n"
        "time. 'tally explain RUNG' shows where the counts come from.");
}

static int print_table(const struct ladder *l) {
    print_head(l);
    if (l->counts)
        print_counted(l);
    else
        print_timed(l);
    if (*l->own_launch)
        printf("\n%s: %s.\nWhether it is right for other n, blocks and data, 'tally explain "
               "--kernel' says.\n",
               l->own_name, l->own_launch);
    if (is_sum_of_f32(l)) {
        putchar('\n');
        fputs(ladder_published_notes, stdout);
    }
    return finish_output();
}

/* ---- The list ---- */

static int print_list_json(void) {
    struct json_object *object = json_new_object();
    struct json_object *rungs = json_new_list();
    const tally_rung *rung;
    for (size_t i = 0; (rung = tally_ladder_rung(i)); i++) {
        struct json_object *item = json_new_object();
        json_text(item, "name", rung->name);
        json_flag(item, "kernel", rung->is_kernel);
        json_text(item, "idea", rung->idea);
        json_text(item, "waste", rung->waste);
        json_text(item, "mended_by", rung->mends);
        json_item(rungs, item);
    }
    json_member(object, "rungs", rungs);
    return json_print(object);
}

static int print_list(void) {
    const tally_rung *rung;
    for (size_t i = 0; (rung = tally_ladder_rung(i)); i++)
        printf("%-19s %s\n", rung->name, rung->idea);
    puts("\n'tally explain RUNG' shows one of them step by step.");
    return finish_output();
}

/* ---- The command ---- */

/* Returns whether the device's text is of this kind, with or without a number. */
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

static int show(struct ladder *l) {
    int status = l->options.as_json ? print_json(l) : print_table(l);
    for (size_t i = 0; i < l->report.count; i++)
        if (!l->report.rows[i].correct) return failed("%s is wrong", l->report.rows[i].name);
    return status;
}

/* Adds the kernel's row as the last one, and prints all rows. Runs in the process that has loaded the kernel. */
static int add_own(void *context, struct own_kernel *kernel) {
    struct ladder *l = context;
    tally_ladder_row *row = &l->report.rows[l->report.count];
    if (l->report.count == TALLY_LADDER_ROWS) return failed("the ladder is full");
    if (!own_ladder_row(kernel, &l->own, &l->options, row, l->own_name, l->own_launch))
        return STATUS_FAILED;
    l->report.count++;
    return show(l);
}

static int ask_device(void *context, struct own_kernel *kernel) {
    struct ladder *l = context;
    return own_device_row(kernel, &l->own, &l->options);
}

/* Times a student's kernel on the device before the rungs run. show_with_own() prints its row after theirs. */
static int run_own(struct ladder *l) {
    const tally_ladder_options *o = &l->options.run;
    struct own_page *page = own_page_make();
    if (!page) return failed("no memory for a device");
    l->own.device = l->device;
    l->own.page = page;
    const int status = own_in_process(&l->own, o->op, o->type, ask_device, l);
    if (status != STATUS_OK) return status;
    if (!page->answer.times[0].done)
        return failed("%s, on %s: %s", l->own.spec, l->device,
                      *page->answer.why ? page->answer.why : page->answer.fault);
    return STATUS_OK;
}

static int show_with_own(struct ladder *l) {
    const struct own_time *t = &l->own.page->answer.times[0];
    const char *slash = strrchr(l->own.spec, '/');
    if (l->report.count == TALLY_LADDER_ROWS) return failed("the ladder is full");
    snprintf(l->own_name, sizeof l->own_name, "%s", slash ? slash + 1 : l->own.spec);
    l->report.rows[l->report.count++] = (tally_ladder_row){.name = l->own_name,
                                                           .correct = t->right,
                                                           .ulp_error = t->right ? 0 : (double)NAN,
                                                           .launches = 1,
                                                           .seconds = t->seconds,
                                                           .value.type = l->options.run.type};
    return show(l);
}

static int climb(struct ladder *l) {
    const tally_ladder_options *o = &l->options.run;
    l->own.block = o->block;
    if (tally_ladder_run(l->device, o, &l->report) != TALLY_OK) return failed("%s", tally_error());
    if (l->own.page) return show_with_own(l);
    return l->own.spec ? own_in_process(&l->own, o->op, o->type, add_own, l) : show(l);
}

static int run(void *argument) {
    struct ladder *l = argument;
    if (!l->device || strcmp(l->device, "auto") == 0) l->device = tally_ladder_device();
    if (!l->options.has_n) l->options.n = default_n(l->device);
    if (!l->options.has_n && l->own.spec && l->options.n > 1 << 28) l->options.n = 1 << 28;
    l->counts = is_kind(l->device, "model");
    l->on_cpu = is_kind(l->device, "cpu");
    /* Run the kernel before this process touches the driver: run_own() forks, and a driver does not survive a fork. */
    if (l->own.spec && !l->counts) {
        l->own.block = l->options.run.block;
        const int own = run_own(l);
        if (own != STATUS_OK) return own;
    }
    if (tally_ladder_check(l->device, &l->options.run) != TALLY_OK)
        return failed("%s", tally_error());
    if (!ladder_fill(&l->options)) return STATUS_FAILED;
    int status = climb(l);
    ladder_release(&l->options);
    return status;
}

int ladder_command(int argc, char **argv) {
    struct ladder l = {.options.run = {.op = TALLY_SUM, .type = TALLY_F32},
                       .own.seconds = OWN_SECONDS};
    int status = read_options(&l, argc, argv);
    if (status != STATUS_OK) return status;
    if (l.options.help) return fputs(ladder_help, stdout), finish_output();
    if (l.list) return l.options.as_json ? print_list_json() : print_list();
    if (l.own.spec && !l.device) l.device = "model";
    if (l.own.spec && strcmp(l.device, "auto") == 0)
        return failed("--kernel takes a device by its name: model, cuda or opencl");
    if (l.own.spec && is_kind(l.device, "cpu"))
        return failed("a kernel of your own runs on the model, cuda or opencl, not on %s",
                      l.device);
    const bool asks_all = !l.device || strcmp(l.device, "auto") == 0;
    return asks_all || argument_needs_driver(l.device) ? guarded(run, &l, true) : run(&l);
}
