/*
 * report.c - `tally report -o FILE`: one page with the whole ladder, step by step, for a browser.
 *
 * The page is page.html with the style, the scripts and the data put in where it says so. It holds all that it
 * shows, and asks nothing of a network.
 */
#include "teach/report.h"

#include "common/arguments.h"
#include "common/command.h"
#include "common/guard.h"
#include "common/message.h"
#include "teach/report_files.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char report_help[] =
    "Usage: tally report -o FILE [OPTION...]\n"
    "Writes a page that shows every kernel of the ladder in a browser, one or two side by side.\n"
    "Pictures show its threads, elements, lines, banks and registers, step by step, beside the "
    "line\n"
    "of plain CUDA that does it and the course's text. It has a guided tour, exercises, measured\n"
    "times beside the roof, and the texts' claims. Its address names the step, for a link. The "
    "page\n"
    "is one file and needs no network.\n"
    "\n"
    "  -o, --output FILE  the page, such as reduction.html; - is standard output\n"
    "  --measure          climb the ladder here, too, and show its times\n"
    "  --device DEVICE    for --measure: cuda or opencl; the first that is here is the default\n"
    "  --help             this text\n";

struct report {
    const char *output, *device;
    bool measures, help;
};

/* ---- The page ---- */

/* Writes JSON so that it may stand within <script>: no "<" is left in it. */
static void write_json(FILE *f, struct json_object *object) {
    const char *text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_NOSLASHESCAPE);
    for (; text && *text; text++)
        if (*text == '<')
            fputs("\\u003c", f);
        else
            fputc(*text, f);
}

static struct json_object *make_data(const struct report *r) {
    struct json_object *page = json_new_object();
    json_text(page, "version", tally_version());
    report_add_rungs(page);
    report_add_measured(page);
    json_text(page, "course", report_file("ladder.md"));
    const char *claims = report_file("claims.md");
    if (claims) json_text(page, "claims", claims);
    if (!r->measures || report_measure(page, r->device)) return page;
    json_object_put(page);
    return NULL;
}

static void write_embedded(FILE *f, const char *name) {
    const char *text = report_file(name);
    if (text) fputs(text, f);
}

/* Writes the page's script, in one piece; page.js, the last file, starts it. */
static void write_script(FILE *f) {
    static const char *const files[] = {"steps.js",    "markdown.js", "kernels.js",   "draw.js",
                                        "measured.js", "tour.js",     "exercises.js", "page.js"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        write_embedded(f, files[i]);
}

/* Writes the rungs as a list, for a browser without scripts. */
static void write_rungs(FILE *f) {
    for (size_t i = 0; tally_ladder_rung(i); i++)
        fprintf(f, "<li><b>%s</b>: %s</li>\n", tally_ladder_rung(i)->name,
                tally_ladder_rung(i)->idea);
}

static bool write_part(FILE *f, const char *part, struct json_object *data) {
    if (strcmp(part, "style") == 0) return write_embedded(f, "page.css"), true;
    if (strcmp(part, "script") == 0) return write_script(f), true;
    if (strcmp(part, "rungs") == 0) return write_rungs(f), true;
    if (strcmp(part, "steps") == 0) return report_write_steps(f);
    write_json(f, data);
    return true;
}

/* Writes page.html, with its parts in place of {{style}}, {{script}}, {{rungs}}, {{data}} and {{steps}}. */
static bool write_page(FILE *f, struct json_object *data) {
    const char *at = report_file("page.html");
    for (const char *mark; at && (mark = strstr(at, "{{"));) {
        const size_t length = strcspn(mark + 2, "}");
        char part[16];
        fwrite(at, 1, (size_t)(mark - at), f);
        snprintf(part, sizeof part, "%.*s", (int)length, mark + 2);
        if (!write_part(f, part, data)) return false;
        at = mark + length + 4;
    }
    if (at) fputs(at, f);
    return true;
}

/* Writes to a file beside the one asked for, which takes its place when it is whole. */
static int write_file(const struct report *r, struct json_object *data) {
    char name[4096];
    if (!r->output || strcmp(r->output, "-") == 0)
        return write_page(stdout, data) ? finish_output() : STATUS_FAILED;
    if (snprintf(name, sizeof name, "%s.part", r->output) >= (int)sizeof name)
        return failed("%.60s...: the name is too long", r->output);
    FILE *f = fopen(name, "w");
    if (!f) return failed("%s: %s", r->output, strerror(errno));
    const bool written = write_page(f, data), bad = ferror(f);
    if (!written || fclose(f) != 0 || bad || rename(name, r->output) != 0) {
        const int why = errno;
        remove(name);
        return written ? failed("%s: %s", r->output, strerror(why)) : STATUS_FAILED;
    }
    return STATUS_OK;
}

/* ---- The command ---- */

static int run(void *argument) {
    const struct report *r = argument;
    struct json_object *data = make_data(r);
    if (!data) return STATUS_FAILED;
    const int status = write_file(r, data);
    json_object_put(data);
    return status;
}

static int read_options(struct report *r, int argc, char **argv) {
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"measure", no_argument, NULL, 'm'},
                                            {"device", required_argument, NULL, 'D'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":ho:", options, NULL)) != -1;) {
        if (c == '?' || c == ':') return argument_unknown(c, argv, options);
        if (c == 'o') r->output = optarg;
        if (c == 'D') r->device = optarg;
        r->measures |= c == 'm';
        r->help |= c == 'h';
    }
    if (r->help) return STATUS_OK;
    if (optind < argc) return misused("report takes no argument such as '%s'", argv[optind]);
    if (!r->output) return misused("report needs -o FILE, such as -o reduction.html");
    if (r->device && !r->measures) return misused("--device goes with --measure");
    return STATUS_OK;
}

int report_command(int argc, char **argv) {
    struct report r = {0};
    const int status = read_options(&r, argc, argv);
    if (status != STATUS_OK) return status;
    if (r.help) return fputs(report_help, stdout), finish_output();
    return r.measures ? guarded(run, &r, !r.device || strcmp(r.device, "auto") == 0) : run(&r);
}
