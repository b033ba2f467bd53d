/*
 * shaped.c - see shaped.h and shaped_job.h: options, inputs, and the steps that the three cuts share.
 */
#include "parts/shaped.h"

#include "memory.h"
#include "message.h"
#include "parts/shaped_job.h"
#include "progress.h"
#include "types.h"

#include <inttypes.h>
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
    if (!!s->axis + !!s->segments + !!s->ids > 1)
        return misused("%s and %s exclude each other; leave one out",
                       s->axis ? "--axis" : "--segments", s->ids ? "--by" : "--segments");
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

/* The numbers of --axis, for an array of so many dimensions. */
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

/* The arrays of a dot product have one type. */
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
    if (is_ids && !source_is_stdin(name) && access(name, F_OK) != 0 && !strstr(name, ".npz:"))
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

/* A word that is left out of a text would move all elements behind it. */
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

/* Returns whether the elements of the other array lie in the order of x's. */
static bool is_in_order_of_x(const struct job *job, const struct operand *o) {
    char text[SHAPE_TEXT];
    if (!o->is_open || o->source.dims < 2 || !o->source.has_shape || !job->x.source.has_shape ||
        o->source.is_fortran == job->x.source.is_fortran)
        return true;
    return failed(
               "%s, of shape %s, and %s are in Fortran's order and in C's; for --skip-na save one "
               "of them in the other's",
               o->source.name, operand_shape(o, text), job->x.source.name),
           false;
}

static bool open_all(struct job *job, char **names, bool two) {
    static const struct reading plain = {.spelling = &spelling_usual};
    const struct shaping *s = &job->ask;
    if (!operand_open(&job->x, names[0], &job->r->how)) return false;
    if (two && !operand_open(&job->y, names[1], &job->r->how)) return false;
    if (!check_types(job) || !check_skips(job)) return false;
    if (two && !operand_matches(&job->y, &job->x)) return false;
    if (s->mask && (!operand_open(&job->mask, s->mask, &plain) || !check_mask(job))) return false;
    if (job->skips && (!is_in_order_of_x(job, &job->y) || !is_in_order_of_x(job, &job->mask)))
        return false;
    if (s->axis) return read_axes(job);
    if (s->ids)
        return open_key(job, s->ids, true) && operand_matches(&job->key, &job->x) &&
               (!s->mask || operand_matches(&job->key, &job->mask));
    if (!s->segments) return true;
    if (s->segments[strspn(s->segments, "0123456789")]) return open_key(job, s->segments, false);
    return true;
}

/* Standard input is one input; and none of them is the file that is written. */
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

/* ---- Steps ---- */

bool job_failed(const struct job *job, uint64_t first, tally_status status) {
    size_t number;
    const char *words = tally_error_result(&number);
    if (!words) return failed("%s: %s", job->x.source.name, tally_error()), false;
    return failed("%s: result %" PRIu64 "%s%s", job->x.source.name,
                  job->label ? job->label[first + number] : first + number, words,
                  status == TALLY_ERANGE && !job->r->problem.out
                      ? "; --out f64 rounds what is a sum"
                      : ""),
           false;
}

bool job_call(struct job *job, const tally_shape *shape, const void *x, const void *y,
              size_t count) {
    if (!results_room(&job->results, count)) return false;
    const tally_status status =
        tally_reduce_shaped(job->r->device, &job->r->problem, shape, x, y, job->results.out);
    if (status != TALLY_OK) return job_failed(job, job->results.count, status);
    return results_put(&job->results, count);
}

static bool tell_lengths(const struct job *job, const struct operand *other) {
    return failed("%s has %" PRIu64 " elements but %s has %s; each needs a partner",
                  job->x.source.name, job->x.at, other->source.name,
                  other->at < job->x.at ? "fewer" : "more"),
           false;
}

/* Leaves the elements that are missing out, too: there[0..n) is what `mask`, or NULL, leaves of the others. */
static bool mark_missing(struct job *job, const void *x, const void *y, const void *mask,
                         size_t n) {
    const tally_type type = job->r->problem.type;
    if (n > job->there_room) {
        free(job->there);
        job->there = malloc(n);
        job->there_room = job->there ? n : 0;
    }
    if (n && !job->there) return failed("no memory for a mask of %zu bytes", n), false;
    if (!n) return true;
    if (mask)
        memcpy(job->there, mask, n);
    else
        memset(job->there, 1, n);
    missing_mark(job->r->how.spelling, type, x, n, job->there);
    if (y) missing_mark(job->r->how.spelling, type, y, n, job->there);
    return true;
}

/* Makes the mask one of all elements, where the arrays are whole. */
static bool mark_all(struct job *job) {
    struct operand *mask = &job->mask;
    if (!job->skips || (mask->all && mask->all == job->there) || !job->x.n) return true;
    if (!mark_missing(job, job->x.all, job->y.all, mask->all, (size_t)job->x.n)) return false;
    if (!mask->is_open) {
        const struct source *s = &job->x.source;
        mask->source.name = s->name;
        mask->source.has_shape = s->has_shape;
        mask->source.is_fortran = s->is_fortran;
        mask->source.dims = s->dims;
        memcpy(mask->source.length, s->length, sizeof s->length);
        mask->n = job->x.n;
        mask->element = 1;
        mask->is_open = true;
    }
    mask->all = job->there;
    return true;
}

bool job_next(struct job *job, size_t wanted, struct piece *out) {
    size_t n;
    *out = (struct piece){.n = 0};
    if (!operand_next(&job->x, wanted, &out->x, &out->n)) return false;
    job->r->bytes += (uint64_t)out->n * job->x.element;
    if (job->y.is_open) {
        if (!operand_next(&job->y, wanted, &out->y, &n)) return false;
        if (n != out->n) return tell_lengths(job, &job->y);
        job->r->bytes += (uint64_t)out->n * job->x.element;
    }
    if (job->mask.is_open) {
        if (!operand_next(&job->mask, wanted, &out->mask, &n)) return false;
        if (n != out->n) return tell_lengths(job, &job->mask);
    }
    if (!job->skips || (job->there && job->mask.all == job->there)) return true;
    if (!mark_missing(job, out->x, out->y, out->mask, out->n)) return false;
    out->mask = job->there;
    return true;
}

bool job_skip(struct job *job, uint64_t count) {
    return operand_skip(&job->x, count) &&
           (!job->y.is_open || operand_skip(&job->y, job->x.at - job->y.at)) &&
           (!job->mask.is_open || operand_skip(&job->mask, job->x.at - job->mask.at));
}

static bool drain(const struct job *job, struct operand *o) {
    if (!o->is_open || o->all) return true;
    if (!operand_skip(o, UINT64_MAX - o->at)) return false;
    return o->at == job->x.at || tell_lengths(job, o);
}

bool job_drain(struct job *job) {
    return (job->x.all || operand_skip(&job->x, UINT64_MAX - job->x.at)) && drain(job, &job->y) &&
           drain(job, &job->mask);
}

size_t job_slab(const struct job *job) {
    return SLAB_BYTES / job->x.element;
}

static double saved_bytes(const tally_problem *problem, size_t count) {
    tally_groups *groups;
    if (tally_groups_create(problem, count, &groups) != TALLY_OK) return 0;
    const size_t size = tally_groups_size(groups);
    tally_groups_destroy(groups);
    return (double)size;
}

/* A state in memory is about as large as a saved one; over the canonical tree some kilobytes. */
double job_states_bytes(const struct job *job, uint64_t count) {
    const tally_problem *p = &job->r->problem;
    const bool is_tree = type_is_floating(p->type) && reduction_asks(job->r, TALLY_PROD);
    return (double)count * (1.25 * (saved_bytes(p, 2) - saved_bytes(p, 1)) + (is_tree ? 8192 : 64));
}

bool job_fits(double bytes) {
    return bytes < (double)memory_available() / 2;
}

bool job_states(const struct job *job, uint64_t count, tally_groups **out) {
    const double bytes = job_states_bytes(job, count);
    *out = NULL;
    if (!job_fits(bytes))
        return failed("%s is read in order, and the states of %" PRIu64 " results take %.3g GB, "
                      "more than there is room for; a plain .npy file of this machine's byte "
                      "order is read where it lies",
                      job->x.source.name, count, bytes * 1e-9),
               false;
    if (tally_groups_create(&job->r->problem, (size_t)count, out) == TALLY_OK) return true;
    return failed("%s", tally_error()), false;
}

bool job_feed(const struct job *job, tally_groups *states, uint64_t count, const struct piece *p,
              const void *ids, tally_type ids_type) {
    const tally_shape shape = {.cut = TALLY_GROUPS,
                               .n = p->n,
                               .count = (size_t)count,
                               .ids = ids ? ids : calloc(p->n + 1, 1),
                               .ids_type = ids ? ids_type : TALLY_U8,
                               .mask = p->mask,
                               .sorted = !ids,
                               .skip_outside = job->ask.skip_outside};
    if (!shape.ids) return failed("no memory for %zu ids", p->n), false;
    const tally_status status = tally_groups_feed(states, job->r->device, &shape, p->x, p->y);
    if (!ids) free((void *)(uintptr_t)shape.ids);
    return status == TALLY_OK || job_failed(job, job->results.count, status);
}

bool job_lower(struct job *job, const tally_groups *states, uint64_t count) {
    if (!results_room(&job->results, (size_t)count)) return false;
    const tally_status status = tally_groups_values(states, job->results.out);
    if (status != TALLY_OK) return job_failed(job, job->results.count, status);
    return results_put(&job->results, (size_t)count);
}

bool job_feed_run(struct job *job, uint64_t count) {
    tally_groups *state;
    struct piece piece;
    const size_t slab = job_slab(job);
    bool done = job_states(job, 1, &state);
    while (done && count) {
        const size_t wanted = count < slab ? (size_t)count : slab;
        done = job_next(job, wanted, &piece) && job_feed(job, state, 1, &piece, NULL, 0);
        if (done && piece.n < wanted) break;
        count -= wanted;
    }
    if (done) done = job_lower(job, state, 1);
    tally_groups_destroy(state);
    return done;
}

bool job_is_whole(const struct job *job) {
    return job->x.all && (job->y.all || !job->y.is_open) && (job->mask.all || !job->mask.is_open);
}

bool job_map(struct job *job) {
    operand_map(&job->x);
    if (job->y.is_open) operand_map(&job->y);
    if (job->mask.is_open) operand_map(&job->mask);
    return job_is_whole(job) && (!job->skips || job_fits((double)job->x.n)) && mark_all(job);
}

bool job_load(struct job *job) {
    if (!operand_load(&job->x) || (job->y.is_open && !operand_load(&job->y)) ||
        (job->mask.is_open && !operand_load(&job->mask)))
        return false;
    /* What came by pipes has a length only now. */
    return (!job->y.is_open || operand_matches(&job->y, &job->x)) &&
           (!job->mask.is_open || operand_matches(&job->mask, &job->x)) && mark_all(job);
}

/* Reduces the elements that the mask leaves to one result. */
bool job_masked(struct job *job) {
    job->dims = 0;
    if (!job_map(job)) return job_feed_run(job, UINT64_MAX) && job_drain(job);
    const size_t n = (size_t)job->x.n;
    const tally_shape all = {
        .cut = TALLY_AXES, .dims = 1, .length = &n, .axes = 1, .mask = job->mask.all};
    job->r->bytes += job->x.n * job->x.element * (job->y.is_open ? 2 : 1);
    return job_call(job, &all, job->x.all, job->y.all, 1);
}

/* ---- All of it ---- */

static bool reduce(struct job *job) {
    const struct shaping *s = &job->ask;
    return s->axis       ? job_axes(job)
           : s->segments ? job_segments(job)
           : s->ids      ? job_groups(job)
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
    if (!check_names(job, names, count) || !open_all(job, names, two)) return STATUS_FAILED;
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
