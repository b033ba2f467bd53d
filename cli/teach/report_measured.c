/*
 * report_measured.c - times on a page: the H200's as committed, this machine's if asked for, the texts' own.
 */
#include "common/message.h"
#include "teach/ladder_options.h"
#include "teach/ladder_texts.h"
#include "teach/report.h"
#include "teach/report_files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- The H200: the first table of docs/results/h200-ladder.txt ---- */

static const char table[] = "$ tally ladder --device cuda --dtype f32 -n 2^30\n";
static const char roof[] = "The roof: ";

struct measured {
    double ms, gbps, mflops;
};

/* Returns the start of the table, after its command; NULL where the file has none. */
static const char *find_table(void) {
    const char *text = report_file("h200-ladder.txt");
    const char *found = text ? strstr(text, table) : NULL;
    return found ? found + sizeof table - 1 : NULL;
}

/* Reads the row of a rung: "NAME  ms  with-copy  MFLOPS  GB/s ...". Returns false where there is none. */
static bool find_row(const char *text, const char *rung, struct measured *out) {
    const size_t length = strlen(rung);
    const char *end = strstr(text, roof);
    for (const char *line = text; line && line < end; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, rung, length) != 0 || line[length] != ' ') continue;
        return sscanf(line + length, "%lf %*f %lf %lf", &out->ms, &out->mflops, &out->gbps) == 3;
    }
    return false;
}

static void add_row(struct json_object *rows, const char *name, const struct measured *m) {
    struct json_object *row = json_new_object();
    json_text(row, "name", name);
    if (m) {
        json_measure(row, "ms", m->ms);
        json_measure(row, "gbps", m->gbps);
        json_measure(row, "mflops", m->mflops);
    }
    json_item(rows, row);
}

static void add_h200(struct json_object *page) {
    const char *text = find_table(), *end = text ? strstr(text, roof) : NULL;
    struct json_object *object = json_new_object(), *rows = json_new_list();
    if (!end) {
        json_object_put(object);
        json_object_put(rows);
        return;
    }
    json_text(object, "where", "NVIDIA H200");
    json_text(object, "what",
              "the sum of 2^30 f32, blocks of 256 threads, coarsened by 4, finish: relaunch");
    json_text(object, "command", "tally ladder --device cuda --dtype f32 -n 2^30");
    json_text(object, "file", "docs/results/h200-ladder.txt");
    json_measure(object, "roof", strtod(end + sizeof roof - 1, NULL));
    for (size_t i = 0; tally_ladder_rung(i); i++) {
        struct measured m;
        const char *name = tally_ladder_rung(i)->name;
        add_row(rows, name, find_row(text, name, &m) ? &m : NULL);
    }
    json_member(object, "rows", rows);
    json_item(json_object_object_get(page, "measured"), object);
}

static void add_texts(struct json_object *page) {
    struct json_object *list = json_new_list();
    for (size_t i = 0; tally_ladder_rung(i); i++) {
        const struct ladder_published *p = ladder_published(tally_ladder_rung(i)->name);
        if (!p) continue;
        struct json_object *row = json_new_object();
        json_text(row, "name", p->rung);
        if (p->mflops > 0) json_measure(row, "mflops", p->mflops);
        if (p->ms > 0) json_measure(row, "ms", p->ms);
        json_item(list, row);
    }
    json_member(page, "texts", list);
    json_text(page, "texts_note", ladder_published_notes);
}

void report_add_measured(struct json_object *page) {
    json_member(page, "measured", json_new_list());
    add_h200(page);
    add_texts(page);
}

/* ---- Here ---- */

enum { CPU_N = 1 << 24, GPU_N = 1 << 28 };

static void add_here(struct json_object *page, const tally_ladder_report *r,
                     const struct ladder_options *o) {
    struct json_object *object = json_new_object(), *rows = json_new_list();
    const double bytes = (double)o->bytes, n = (double)o->n;
    char text[160];
    json_text(object, "where", r->name);
    snprintf(text, sizeof text,
             "the sum of %" PRIu64 " f32, blocks of %u threads, coarsened by %u, finish: relaunch",
             o->n, r->block, r->coarsen);
    json_text(object, "what", text);
    snprintf(text, sizeof text, "tally ladder --device %s -n %" PRIu64, r->device, o->n);
    json_text(object, "command", text);
    json_measure(object, "roof", bytes * 1e-9 / r->roof_seconds);
    for (size_t i = 0; i < r->count; i++) {
        const double s = r->rows[i].seconds;
        const struct measured m = {s * 1e3, bytes * 1e-9 / s, (n - 1) * 1e-6 / s};
        add_row(rows, r->rows[i].name, &m);
    }
    json_member(object, "rows", rows);
    json_item(json_object_object_get(page, "measured"), object);
}

bool report_measure(struct json_object *page, const char *device) {
    struct ladder_options o = {.n = CPU_N};
    static tally_ladder_report report;
    if (!device) device = tally_ladder_device();
    if (strncmp(device, "model", 5) == 0)
        return failed("--measure: no CUDA or OpenCL device is here, and the model has no time; "
                      "--device cpu "
                      "measures the CPU's loops"),
               false;
    if (strncmp(device, "cuda", 4) == 0) o.n = GPU_N;
    o.run.op = TALLY_SUM;
    o.run.type = TALLY_F32;
    if (!ladder_fill(&o)) return false;
    const bool done = tally_ladder_run(device, &o.run, &report) == TALLY_OK;
    if (done)
        add_here(page, &report, &o);
    else
        failed("%s", tally_error());
    ladder_release(&o);
    return done;
}
