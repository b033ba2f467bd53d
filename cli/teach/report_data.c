/*
 * report_data.c - the model's records of every rung, for the lengths and blocks that a page offers.
 *
 * All numbers of a page's steps are the model's own records, the same that `tally explain --json --steps` prints.
 * The page computes only the value that an element has before a step, from the values that were written. A run is
 *
 *   [rung, block, coarsen, [launch...], correct, launches, value, {counts}]
 *   launch: [n, [step...]]
 *   step:   [block, step, stride, barrier, [warp...], [access...]]
 *   warp:   [mask, operations, issued, divergent, transactions, fewest, conflicts]
 *   access: [act, warp, mask, array, shared, elements each, bytes, places, values, given, transactions, fewest,
 *            conflicts, file, line]
 *
 * Arrays and files are indices into the lists of names of the same length. `places` is [first, stride] where the
 * lanes' elements are evenly spread, else the list of them and a 0. `values` is the list of the values that are
 * written or got by an exchange, and `given` of those that are given in an exchange; else each is 0.
 */
#include "common/message.h"
#include "teach/ladder_counts.h"
#include "teach/ladder_options.h"
#include "teach/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const unsigned lengths[] = {8, 16, 32, 64, 100, 256, 1000, 1024, 2048, 4096};
static const unsigned factors[] = {1, 2, 4, 8};
enum { BLOCK_MIN = 4, BLOCK_MAX = 1024, BLOCKS_MAX = 32, NAMES = 32 };
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Returns whether a page offers this block for n: if it shows up to BLOCKS_MAX blocks, and no block that is idle in all
 * but its first threads. */
static bool offers(unsigned n, unsigned block) {
    return n <= 2 * block * BLOCKS_MAX && (block == BLOCK_MIN || block <= n);
}

/* ---- Names ---- */

static struct json_object *json_rung(const tally_rung *rung) {
    struct json_object *object = json_new_object();
    json_text(object, "name", rung->name);
    json_text(object, "idea", rung->idea);
    json_text(object, "waste", rung->waste);
    json_text(object, "mends", rung->mends);
    json_flag(object, "kernel", rung->is_kernel);
    json_flag(object, "grid", rung->grid_sized);
    json_flag(object, "coarsens", strcmp(rung->name, "coarsened") == 0);
    return object;
}

static void add_lengths(struct json_object *page) {
    struct json_object *list = json_new_list();
    for (size_t i = 0; i < COUNT(lengths); i++) {
        struct json_object *object = json_new_object(), *blocks = json_new_list();
        json_count(object, "n", lengths[i]);
        for (unsigned b = BLOCK_MIN; b <= BLOCK_MAX; b *= 2)
            if (offers(lengths[i], b)) json_item(blocks, json_object_new_int((int)b));
        json_member(object, "blocks", blocks);
        json_item(list, object);
    }
    json_member(page, "lengths", list);
    list = json_new_list();
    for (size_t i = 0; i < COUNT(factors); i++)
        json_item(list, json_object_new_int((int)factors[i]));
    json_member(page, "factors", list);
}

/* Adds the text of each rung's kernel. Its file has the rung's name, with _ for -. */
static void add_sources(struct json_object *page) {
    struct json_object *sources = json_new_object();
    for (size_t i = 0; tally_ladder_rung(i); i++) {
        char file[80];
        snprintf(file, sizeof file, "%s.cu", tally_ladder_rung(i)->name);
        for (char *c = file; *c; c++)
            if (*c == '-') *c = '_';
        if (tally_ladder_source(file)) json_text(sources, file, tally_ladder_source(file));
    }
    json_member(page, "sources", sources);
}

void report_add_rungs(struct json_object *page) {
    struct json_object *list = json_new_list();
    for (size_t i = 0; tally_ladder_rung(i); i++)
        json_item(list, json_rung(tally_ladder_rung(i)));
    json_member(page, "rungs", list);
    add_sources(page);
    add_lengths(page);
}

/* ---- Steps as text ---- */

struct names {
    char at[NAMES][40];
    unsigned count;
};

struct writer {
    FILE *f;
    struct names arrays, files;
    unsigned launch, block;
    bool in_launch, first_step, lost;
};

static unsigned name_index(struct writer *w, struct names *names, const char *name) {
    for (unsigned i = 0; i < names->count; i++)
        if (strcmp(names->at[i], name) == 0) return i;
    if (names->count == NAMES) return w->lost = true, 0;
    snprintf(names->at[names->count], sizeof names->at[0], "%s", name);
    return names->count++;
}

static void write_value(FILE *f, const tally_value *v) {
    char text[64];
    tally_value_print(v, text, sizeof text);
    fprintf(f, strpbrk(text, "ni") ? "\"%s\"" : "%s",
            text); /* nan, inf: JSON has no number for them */
}

static void write_places(FILE *f, const tally_ladder_access *x) {
    const unsigned first = (unsigned)__builtin_ctz(x->lanes);
    const uint32_t others = x->lanes & (x->lanes - 1);
    int64_t stride = 0;
    bool even = true;
    if (others) {
        const unsigned second = (unsigned)__builtin_ctz(others);
        const int64_t far = (int64_t)(x->element[second] - x->element[first]);
        stride = far / (int)(second - first);
    }
    for (uint32_t lanes = x->lanes; lanes; lanes &= lanes - 1) {
        const unsigned l = (unsigned)__builtin_ctz(lanes);
        even &= (int64_t)(x->element[l] - x->element[first]) == stride * (int)(l - first);
    }
    if (even) {
        fprintf(f, "[%" PRIu64 ",%" PRId64 "]", x->element[first], stride);
        return;
    }
    fputc('[', f);
    for (uint32_t lanes = x->lanes; lanes; lanes &= lanes - 1)
        fprintf(f, "%" PRIu64 ",", x->element[__builtin_ctz(lanes)]);
    fputs("0]", f);
}

static void write_values(FILE *f, const tally_ladder_access *x, const tally_value *values) {
    const char *between = "[";
    for (uint32_t lanes = x->lanes; lanes; lanes &= lanes - 1, between = ",") {
        fputs(between, f);
        write_value(f, &values[__builtin_ctz(lanes)]);
    }
    fputc(']', f);
}

static void write_access(struct writer *w, const tally_ladder_access *x) {
    FILE *f = w->f;
    const bool exchange = x->act == TALLY_LADDER_EXCHANGE;
    fprintf(f, "[%d,%u,%" PRIu32, (int)x->act, x->warp, x->lanes);
    if (x->act != TALLY_LADDER_APPLY) {
        fprintf(f, ",%u,%d,%u,%u,", name_index(w, &w->arrays, x->array), x->shared, x->elements,
                x->size);
        write_places(f, x);
        fputc(',', f);
        if (x->act == TALLY_LADDER_READ)
            fputc('0', f);
        else
            write_values(f, x, x->value);
        fputc(',', f);
        if (exchange)
            write_values(f, x, x->given);
        else
            fputc('0', f);
        fprintf(f, ",%u,%u,%u,%u,%u", x->transactions, x->fewest_transactions, x->bank_conflicts,
                name_index(w, &w->files, x->file), x->line);
    }
    fputc(']', f);
}

/* Ends the launch before, if there is one, and begins the launch of this step. */
static void open_launch(struct writer *w, const tally_ladder_step *s) {
    fprintf(w->f, "%s[%" PRIu64 ",[", w->in_launch ? "]]," : "", s->n);
    w->in_launch = w->first_step = true;
    w->launch = s->launch;
}

static void on_step(void *context, const tally_ladder_step *s) {
    struct writer *w = context;
    FILE *f = w->f;
    if (!w->in_launch || s->launch != w->launch) open_launch(w, s);
    fprintf(f, "%s[%u,%u,%" PRIu64 ",%d,[", w->first_step ? "" : ",", s->block, s->step, s->stride,
            s->barrier);
    w->first_step = false;
    for (unsigned i = 0; i < s->warps; i++) {
        const tally_ladder_warp *p = &s->warp[i];
        fprintf(f, "%s[%" PRIu32 ",%u,%u,%u,%u,%u,%u]", i ? "," : "", p->lanes, p->operations,
                p->issued, p->divergent, p->transactions, p->fewest_transactions,
                p->bank_conflicts);
    }
    fputs("],[", f);
    for (size_t i = 0; i < s->accesses; i++) {
        if (i) fputc(',', f);
        write_access(w, &s->access[i]);
    }
    fputs("]]", f);
}

/* ---- Runs ---- */

/* Writes a run: its steps come first, as its counts are known only then. */
static bool write_run(struct writer *w, unsigned rung, struct ladder_options *o) {
    tally_ladder_row row;
    fprintf(w->f, "[%u,%u,%u,[", rung, o->run.block, o->run.coarsen);
    w->in_launch = false;
    if (tally_ladder_explain(tally_ladder_rung(rung)->name, &o->run, on_step, w, &row) != TALLY_OK)
        return failed("%s", tally_error()), false;
    struct json_object *counts = json_ladder_counts(&row);
    fprintf(w->f, "%s],%d,%u,", w->in_launch ? "]]" : "", row.correct, row.launches);
    write_value(w->f, &row.value);
    fprintf(w->f, ",%s]", json_object_to_json_string_ext(counts, JSON_C_TO_STRING_PLAIN));
    json_object_put(counts);
    return true;
}

static bool write_runs(struct writer *w, struct ladder_options *o) {
    bool first = true;
    for (unsigned block = BLOCK_MIN; block <= BLOCK_MAX; block *= 2)
        for (unsigned rung = 0; tally_ladder_rung(rung) && offers((unsigned)o->n, block); rung++) {
            const tally_rung *r = tally_ladder_rung(rung);
            const size_t turns = strcmp(r->name, "coarsened") == 0 ? COUNT(factors) : 1;
            for (size_t i = 0; r->is_kernel && i < turns; i++) {
                if (!first) fputc(',', w->f);
                first = false;
                o->run.block = block;
                o->run.coarsen = turns > 1 ? factors[i] : 4;
                if (!write_run(w, rung, o)) return false;
            }
        }
    return true;
}

static void write_names(FILE *f, const char *key, const struct names *names) {
    fprintf(f, ",\"%s\":[", key);
    for (unsigned i = 0; i < names->count; i++)
        fprintf(f, "%s\"%s\"", i ? "," : "", names->at[i]);
    fputc(']', f);
}

static void write_elements(FILE *f, const struct ladder_options *o) {
    const float *x = o->run.x;
    fputs(",\"x\":[", f);
    for (size_t i = 0; i < o->run.n; i++)
        fprintf(f, "%s%.0f", i ? "," : "", (double)x[i]);
    fputc(']', f);
}

/* Returns the text of all runs of one length, to be freed; NULL after a failure, whose line is
 * written. */
static char *make_length(unsigned n, size_t *size) {
    struct ladder_options o = {.n = n, .digits = true};
    struct writer w = {.lost = false};
    char *text = NULL;
    o.run.op = TALLY_SUM;
    o.run.type = TALLY_F32;
    o.run.accesses = 1;
    if (!ladder_fill(&o)) return NULL;
    w.f = open_memstream(&text, size);
    if (!w.f) return failed("no memory for the page"), ladder_release(&o), NULL;
    fputs("{\"runs\":[", w.f);
    bool done = write_runs(&w, &o);
    fputc(']', w.f);
    write_names(w.f, "arrays", &w.arrays);
    write_names(w.f, "files", &w.files);
    write_elements(w.f, &o);
    fputc('}', w.f);
    ladder_release(&o);
    const bool bad = ferror(w.f) || w.lost;
    if (fclose(w.f) != 0 || bad) {
        done = false;
        failed("no memory for the page");
    }
    if (done) return text;
    free(text);
    return NULL;
}

/* ---- Packed ---- */

static void write_base64(FILE *f, const unsigned char *bytes, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        const uint32_t three = (uint32_t)bytes[i] << 16 |
                               (uint32_t)(i + 1 < size ? bytes[i + 1] : 0) << 8 |
                               (i + 2 < size ? bytes[i + 2] : 0);
        fputc(digits[three >> 18], f);
        fputc(digits[three >> 12 & 63], f);
        fputc(i + 1 < size ? digits[three >> 6 & 63] : '=', f);
        fputc(i + 2 < size ? digits[three & 63] : '=', f);
        if (i % 90 == 87) fputc('\n', f);
    }
}

static bool write_packed(FILE *f, const char *text, size_t size) {
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)text, .avail_in = (uInt)size};
    const int gzip = 16 + MAX_WBITS;
    if (deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, gzip, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        return failed("no memory to pack the page"), false;
    const size_t room = deflateBound(&z, size);
    unsigned char *packed = malloc(room);
    z.next_out = packed;
    z.avail_out = (uInt)room;
    const bool done = packed && deflate(&z, Z_FINISH) == Z_STREAM_END;
    if (done) write_base64(f, packed, room - z.avail_out);
    deflateEnd(&z);
    free(packed);
    return done || (failed("no memory to pack the page"), false);
}

bool report_write_steps(FILE *f) {
    for (size_t i = 0; i < COUNT(lengths); i++) {
        size_t size;
        char *text = make_length(lengths[i], &size);
        if (!text) return false;
        fprintf(f, "<script type=\"text/plain\" id=\"steps-%u\">\n", lengths[i]);
        const bool done = write_packed(f, text, size);
        free(text);
        fputs("\n</script>\n", f);
        if (!done) return false;
    }
    return true;
}
