/*
 * shaped.c - see shaped.h: options and inputs.
 */
#include "parts/shaped.h"

#include "common/message.h"
#include "common/progress.h"
#include "common/types.h"
#include "input/feed.h"
#include "parts/shaped_cuts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Options ---- */

bool shaped_is_asked(const struct shaping *s) {
    return s->axis || s->segments || s->ids || s->mask;
}

static bool are_numbers(const char *text) {
    for (;; text++) {
        text += *text == '-';
        const size_t digits = strspn(text, "0123456789");
        text += digits;
        if (!digits || digits > 9 || (*text && *text != ',')) return false;
        if (!*text) return true;
    }
}

int shaped_check(const struct reduction *r) {
    const struct shaping *s = &r->shaping;
    const char *what = s->axis       ? "--axis"
                       : s->segments ? "--segments"
                       : s->ids      ? "--by with a file of ids"
                                     : "--mask";
    if (!shaped_is_asked(s)) {
        if (s->output)
            return misused("-o goes with --axis, --segments, --by or --mask; else redirect what is "
                           "printed");
        if (s->groups || s->skip_outside)
            return misused("%s goes with --by and a file of ids",
                           s->groups ? "--groups" : "--skip-outside");
        return STATUS_OK;
    }
    if (s->segments && s->ids)
        return misused("--segments and --by exclude each other; leave one out");
    if ((s->groups || s->skip_outside) && !s->ids)
        return misused("%s goes with --by and a file of ids",
                       s->groups ? "--groups" : "--skip-outside");
    if (s->axis && !are_numbers(s->axis))
        return misused("--axis takes whole numbers with commas between them, as in 0 or 0,-1; '%s' "
                       "is not such",
                       s->axis);
    const char *other = r->columns.value.whole  ? "-c"
                        : r->columns.has_header ? "--header"
                        : r->columns.delimiter  ? "-F"
                        : r->is_decimal         ? "--decimal"
                        : r->by_file            ? "--each"
                        : r->sorted             ? "--sort"
                                                : NULL;
    if (other) return misused("%s and %s exclude each other; leave one out", what, other);
    if (s->output && strcmp(s->output, "-") == 0 && r->as_json)
        return misused("--json and -o - both write to standard output; leave one out");
    return STATUS_OK;
}

/* ---- Inputs ---- */

/* Reads the numbers of --axis into job->axes, for the dimensions of x. */
static bool read_axes(struct job *job) {
    const struct source *s = &job->x.source;
    const char *text = job->ask.axis;
    char last[32] = "", shape[SHAPE_TEXT];
    if (!s->has_shape)
        return failed("%s is %s and has no axes: they are a .npy file's; --segments N takes rows "
                      "of N",
                      s->name, s->is_text ? "text" : "raw elements"),
               false;
    if (s->dims > NPY_DIMS)
        return failed("%s has %u dimensions, and %d is the most", s->name, s->dims, (int)NPY_DIMS),
               false;
    if (s->dims) snprintf(last, sizeof last, "0 to %u, or -%u to -1", s->dims - 1, s->dims);
    for (const char *at = text;; at++) {
        char *end;
        const long axis = strtol(at, &end, 10);
        if (axis < -(long)s->dims || axis >= (long)s->dims)
            return failed("%s has no axis %.*s: its shape is %s, its axes are %s", s->name,
                          (int)(end - at), at, operand_shape(&job->x, shape),
                          s->dims ? last : "none"),
                   false;
        const unsigned d = (unsigned)(axis < 0 ? axis + (long)s->dims : axis);
        if (job->axes >> d & 1) return failed("--axis %s names axis %u twice", text, d), false;
        job->axes |= 1u << d;
        at = end;
        if (!*at) return true;
    }
}

/* Sets the problem's type. Returns false, with a message, if the arrays of a dot product differ in
 * type. */
static bool check_types(struct job *job) {
    const struct source *x = &job->x.source, *y = &job->y.source;
    job->r->problem.type = x->type;
    if (!job->y.is_open || x->type == y->type) return true;
    return failed("%s holds %s but %s holds %s; one reduction has one type, so convert one of them",
                  x->name, tally_type_name(x->type), y->name, tally_type_name(y->type)),
           false;
}

static bool check_mask(const struct job *job) {
    const struct source *s = &job->mask.source;
    if (!s->has_shape || tally_type_size(s->type) != 1)
        return failed("%s holds %s%s; a mask is a .npy file of bytes or of bool", s->name,
                      s->has_shape ? "" : "no array: ", tally_type_name(s->type)),
               false;
    return operand_matches(&job->mask, &job->x);
}

static bool open_key(struct job *job, const char *name, bool is_ids) {
    static const struct reading plain = {.spelling = &spelling_usual};
    const char *what = is_ids ? "ids are a .npy file of integers"
                              : "offsets are a .npy file of i32 or i64, one more than segments";
    if (is_ids && !source_is_stdin(name) && access(name, F_OK) != 0 && !source_is_member(name))
        return failed("%s is not there; --by takes a file of ids, or with -c a table's column",
                      name),
               false;
    if (!operand_open(&job->key, name, &plain)) return false;
    const struct source *s = &job->key.source;
    const tally_type type = s->type;
    if (!s->has_shape)
        return failed("%s holds %s; %s", s->name, s->is_text ? "text" : "no array", what), false;
    if (is_ids ? type_is_floating(type) : type != TALLY_I32 && type != TALLY_I64)
        return failed("%s holds %s; %s", s->name, tally_type_name(type), what), false;
    return true;
}

/* Sets job->skips. Rejects --skip-na for a text and for columns of an Arrow file: a word that is
 * left out of a text would move all elements behind it. */
static bool check_skips(struct job *job) {
    const struct spelling *spelling = job->r->how.spelling;
    const struct operand *both[] = {&job->x, &job->y};
    for (int i = 0; i < 2 && spelling->skip_na; i++)
        if (both[i]->is_open && (both[i]->source.is_text || both[i]->source.helper))
            return failed("%s is no array: --skip-na in parts is for .npy files and raw elements, "
                          "whose places stay",
                          both[i]->source.name),
                   false;
    job->skips = missing_can_be(spelling, job->x.source.type);
    return true;
}

/* Returns whether elements at the same place of all arrays belong together. Along axes strides
 * allow for different orders, but missing elements are marked in the order of x. */
static bool lie_in_pairs(const struct job *job) {
    const struct operand *others[] = {&job->y, &job->mask, job->ask.ids ? &job->key : NULL};
    for (size_t i = 0; i < sizeof others / sizeof *others && (!job->ask.axis || job->skips); i++)
        if (others[i] && others[i]->is_open &&
            !source_lies_like(&others[i]->source, &job->x.source))
            return false;
    return true;
}

/* Opens the ids or offsets of one axis. */
static bool open_along(struct job *job) {
    const struct shaping *s = &job->ask;
    if (job->axes & (job->axes - 1))
        return failed("--axis %s names several axes; %s takes one", s->axis,
                      s->ids ? "--by" : "--segments"),
               false;
    if (s->ids) return open_key(job, s->ids, true);
    return !s->segments[strspn(s->segments, "0123456789")] || open_key(job, s->segments, false);
}

static bool open_all(struct job *job, char **names, bool two) {
    static const struct reading plain = {.spelling = &spelling_usual};
    const struct shaping *s = &job->ask;
    if (!operand_open(&job->x, names[0], &job->r->how)) return false;
    if (two && !operand_open(&job->y, names[1], &job->r->how)) return false;
    if (!check_types(job) || !check_skips(job)) return false;
    if (two && !operand_matches(&job->y, &job->x)) return false;
    if (s->mask && (!operand_open(&job->mask, s->mask, &plain) || !check_mask(job))) return false;
    if (s->axis && !read_axes(job)) return false;
    if (s->axis && (s->ids || s->segments)) return open_along(job);
    if (s->axis) return true;
    if (s->ids)
        return open_key(job, s->ids, true) && operand_matches(&job->key, &job->x) &&
               (!s->mask || operand_matches(&job->key, &job->mask));
    if (!s->segments) return true;
    if (s->segments[strspn(s->segments, "0123456789")]) return open_key(job, s->segments, false);
    return true;
}

/* Returns false, with a message, if standard input is named twice, or the output is one of the
 * inputs. */
static bool check_names(const struct job *job, char **names, int count) {
    const struct shaping *s = &job->ask;
    const char *all[] = {names[0], count > 1 ? names[1] : NULL, s->ids, s->segments, s->mask};
    struct stat input, output;
    const bool writes = s->output && strcmp(s->output, "-") != 0 && stat(s->output, &output) == 0 &&
                        S_ISREG(output.st_mode);
    int stdins = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char path[1024];
        if (!all[i]) continue;
        stdins += source_is_stdin(all[i]);
        source_field(all[i], path);
        if (writes && stat(path, &input) == 0 && input.st_dev == output.st_dev &&
            input.st_ino == output.st_ino)
            return failed("-o %s would write over an input; name another file", s->output), false;
    }
    if (stdins > 1)
        return failed("standard input is named twice, and can be read once only"), false;
    return true;
}

/* ---- All of it ---- */

static bool reduce(struct job *job) {
    const struct shaping *s = &job->ask;
    return s->axis && (s->segments || s->ids) ? job_along(job)
           : s->axis                          ? job_axes(job)
           : s->segments                      ? job_segments(job)
           : s->ids                           ? job_groups(job)
                                              : job_masked(job);
}

static bool are_still_whole(const struct job *job) {
    return source_is_whole(&job->x.source) &&
           (!job->y.is_open || source_is_whole(&job->y.source)) &&
           (!job->mask.is_open || source_is_whole(&job->mask.source)) &&
           (!job->key.is_open || source_is_whole(&job->key.source));
}

static int run(struct job *job, char **names, int count, bool two) {
    struct reduction *r = job->r;
    if (!check_names(job, names, count) || !open_all(job, names, two) || !lie_in_pairs(job))
        return STATUS_FAILED;
    if (!results_begin(&job->results, &r->problem, job->ask.output)) return STATUS_FAILED;
    const double start = clock_seconds();
    progress_begin(job->x.source.bytes == SOURCE_UNKNOWN ? 0 : job->x.source.bytes);
    if (!reduce(job) || !are_still_whole(job)) return STATUS_FAILED;
    progress_end();
    r->seconds = clock_seconds() - start;
    r->numbers = job->x.n;
    if (job->ask.output && !results_write(&job->results, job->dims, job->length))
        return STATUS_FAILED;
    return job_print(job);
}

int shaped_run(struct reduction *r, char **names, int count) {
    struct job job = {.r = r, .ask = r->shaping, .results = {.file = -1}};
    const bool two = reduction_asks(r, TALLY_DOT);
    if (count != (two ? 2 : 1))
        return two ? misused("dot takes two inputs, x and y, not %d; see 'tally help dot'", count)
                   : misused("parts are reduced of one input, not of %d; one at a time", count);
    const int status = run(&job, names, count, two);
    results_end(&job.results);
    operand_close(&job.x);
    operand_close(&job.y);
    operand_close(&job.mask);
    operand_close(&job.key);
    free(job.group_count);
    free(job.label);
    free(job.there);
    return status;
}
