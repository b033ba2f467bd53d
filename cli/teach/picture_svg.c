/*
 * picture_svg.c - a picture of the steps as SVG: readable on light and dark, and by a screen reader.
 */
#include "teach/picture.h"

#include "common/message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { CELL = 40, HIGH = 26, LEFT = 84, ROW = 20, GAP = 18, CELLS_MAX = 2048, GLYPH = 8 };

static const char style[] =
    "  svg { color-scheme: light dark }\n"
    "  text { font: 13px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: "
    "#1b1f24 }\n"
    "  .paper { fill: #ffffff } .head { font-weight: 700 } .soft { fill: #57606a } .v { "
    "text-anchor: middle }\n"
    "  .i { text-anchor: middle; font-size: 11px; fill: #57606a }\n"
    "  .cell { fill: #f6f8fa; stroke: #8c959f } .read { fill: #ddf4ff } .new { fill: #dafbe1; "
    "stroke: #1a7f37 }\n"
    "  .link { fill: none; stroke: #0969da; stroke-width: 1.5 } .tip { fill: #0969da }\n"
    "  .t { text-anchor: middle; font-size: 11px; fill: #0969da; paint-order: stroke; stroke: "
    "#ffffff; stroke-width: 5px }\n"
    "  .barrier { stroke: #bc4c00; stroke-width: 2; stroke-dasharray: 6 4 } .wall { fill: #bc4c00; "
    "font-size: 11px }\n"
    "  @media (prefers-color-scheme: dark) {\n"
    "    text { fill: #e6edf3 } .paper { fill: #0d1117 } .soft, .i { fill: #9ba4ae }\n"
    "    .cell { fill: #161b22; stroke: #6e7681 } .read { fill: #0c2d6b } .new { fill: #0f3d1f; "
    "stroke: #3fb950 }\n"
    "    .link { stroke: #79c0ff } .tip { fill: #79c0ff } .t { fill: #79c0ff; stroke: #0d1117 }\n"
    "    .barrier { stroke: #ffa657 } .wall { fill: #ffa657 }\n"
    "  }\n";

static void write_escaped(FILE *f, const char *text) {
    for (; *text; text++)
        switch (*text) {
        case '<':
            fputs("&lt;", f);
            break;
        case '>':
            fputs("&gt;", f);
            break;
        case '&':
            fputs("&amp;", f);
            break;
        default:
            fputc(*text, f);
        }
}

__attribute__((format(printf, 5, 6))) static void
write_text(FILE *f, double x, double y, const char *kind, const char *format, ...) {
    char text[700];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(f, "<text x=\"%g\" y=\"%g\" class=\"%s\">", x, y, kind);
    write_escaped(f, text);
    fputs("</text>\n", f);
}

/* ---- Strips ---- */

static double middle(const struct picture_strip *s, uint64_t element) {
    return LEFT + ((double)(element - s->first) + 0.5) * CELL;
}

static bool has_before(const struct picture_strip *s) {
    for (size_t i = 0; i < s->count; i++)
        if (*s->cells[i].before) return true;
    return false;
}

static bool has_after(const struct picture_strip *s) {
    for (size_t i = 0; i < s->count; i++)
        if (*s->cells[i].after) return true;
    return false;
}

static bool has_crossing(const struct picture_strip *s) {
    for (size_t i = 0; i < s->link_count; i++)
        if (s->links[i].crosses) return true;
    return false;
}

/* Returns the room for links between the values before and after. */
static double link_height(const struct picture_strip *s) {
    const double rows = s->rows ? s->rows * ROW + 10 : 2, words = has_crossing(s) ? 2 * ROW - 4 : 0;
    return rows > words ? rows : words;
}

static double strip_height(const struct picture_strip *s) {
    return 16 + (has_before(s) ? HIGH : 0) + link_height(s) + (has_after(s) ? HIGH : 0) + GAP;
}

/* Writes a value in the middle of a cell; one that is longer than the cell is squeezed. */
static void write_value(FILE *f, double x, double y, const char *value) {
    if (strlen(value) * GLYPH <= CELL) {
        write_text(f, x, y, "v", "%s", value);
        return;
    }
    fprintf(f,
            "<text x=\"%g\" y=\"%g\" class=\"v\" textLength=\"%d\" "
            "lengthAdjust=\"spacingAndGlyphs\">%s</text>\n",
            x, y, CELL - 4, value);
}

static void write_cells(FILE *f, const struct picture_strip *s, double y, bool after) {
    for (size_t i = 0; i < s->count; i++) {
        const struct picture_cell *c = &s->cells[i];
        const char *value = after ? c->after : c->before;
        if (after && !*value) continue;
        fprintf(f, "<rect x=\"%g\" y=\"%g\" width=\"%d\" height=\"%d\" class=\"cell%s\"/>\n",
                middle(s, s->first + i) - CELL / 2.0, y, CELL, HIGH,
                after     ? " new"
                : c->read ? " read"
                          : "");
        if (*value) write_value(f, middle(s, s->first + i), y + 18, value);
    }
}

/* Draws a line from each element to the thread's line, and an arrow from there to where the result goes. */
static void write_link(FILE *f, const struct picture_strip *s, const struct picture_link *l,
                       double top, double bottom) {
    const double y = top + 8 + l->row * ROW;
    const double from = middle(s, l->from[0]), to = middle(s, l->from[l->count - 1]);
    fprintf(f, "<path class=\"link\" d=\"");
    for (size_t i = 0; i < l->count; i++)
        fprintf(f, "M%g %gV%g", middle(s, l->from[i]), top, y);
    fprintf(f, "M%g %gH%g", from, y, to);
    if (l->returns) fprintf(f, "M%g %gV%g", middle(s, l->to), y, bottom - 5);
    fputs("\"/>\n", f);
    if (l->returns)
        fprintf(f, "<path class=\"tip\" d=\"M%g %gl-4 -7h8z\"/>\n", middle(s, l->to), bottom);
    if (l->count > 1) /* where no other thread's line comes down */
        write_text(f, from + CELL / 2.0, y + 4, "t", "%u", l->thread);
    else
        write_text(f, from, y + 11, "t", "%u", l->thread);
}

/* Names the thread of a link that leaves the row, and below it the other element that it reads: "5", "+37". */
static void write_crossing(FILE *f, const struct picture_strip *s, const struct picture_link *l,
                           double top) {
    const uint64_t at = l->returns ? l->to : l->from[0];
    const uint64_t other = l->from[0] == at ? l->from[l->count - 1] : l->from[0];
    write_text(f, middle(s, at), top + 14, "t", "%u", l->thread);
    write_text(f, middle(s, at), top + 30, "i", "+%" PRIu64 "%s", other, l->count > 2 ? ".." : "");
}

static double write_strip(FILE *f, const struct picture_strip *s, double y) {
    write_text(f, 8, y + 11, "soft", "%s", s->registers ? "lane" : s->name);
    for (size_t i = 0; i < s->count; i++)
        write_text(f, middle(s, s->first + i), y + 11, "i", "%" PRIu64, s->first + i);
    double at = y + 16;
    if (has_before(s)) {
        write_text(f, 8, at + 18, "soft", "%s", s->registers ? "holds" : "before");
        write_cells(f, s, at, false);
        at += HIGH;
    }
    const double after = at + link_height(s);
    if (s->link_count) write_text(f, 8, at + 12, "soft", "thread");
    for (size_t i = 0; i < s->link_count; i++)
        if (s->links[i].crosses)
            write_crossing(f, s, &s->links[i], at);
        else
            write_link(f, s, &s->links[i], at, after);
    if (has_after(s)) {
        write_text(f, 8, after + 18, "soft", "%s", s->registers ? "gets" : "after");
        write_cells(f, s, after, true);
    }
    return y + strip_height(s);
}

/* ---- Steps ---- */

static double step_height(const struct picture_step *p) {
    double height = 26 + (p->line ? 20 : 0) + (p->left_out ? 20 : 0) + (*p->memory ? 20 : 0) + 26;
    for (size_t i = 0; i < p->strip_count; i++)
        height += strip_height(&p->strips[i]);
    return height;
}

static double write_step(FILE *f, const struct picture_step *p, double y, double width) {
    const tally_ladder_step *s = p->step;
    char stride[40] = "";
    if (s->stride) snprintf(stride, sizeof stride, ", stride %" PRIu64, s->stride);
    fprintf(f, "<g role=\"group\" aria-label=\"Step %u%s, %u threads at work\">\n", s->step + 1,
            stride, p->threads);
    if (p->threads)
        write_text(f, 8, y + 16, "head", "Step %u%s, %u thread%s at work", s->step + 1, stride,
                   p->threads, p->threads == 1 ? "" : "s");
    else
        write_text(f, 8, y + 16, "head", "Step %u, the operator is not applied", s->step + 1);
    y += 26;
    if (p->line) {
        write_text(f, 8, y + 12, "soft", "%s:%u: %s", p->file, p->line, p->source);
        y += 20;
    }
    for (size_t i = 0; i < p->strip_count; i++)
        y = write_strip(f, &p->strips[i], y);
    if (p->left_out) {
        write_text(f, 8, y + 4, "soft", "%zu row%s of elements not touched", p->left_out,
                   p->left_out == 1 ? "" : "s");
        y += 20;
    }
    if (*p->memory) {
        write_text(f, 8, y + 4, "soft", "%s", p->memory);
        y += 20;
    }
    if (s->barrier) {
        fprintf(f, "<path class=\"barrier\" d=\"M8 %gH%g\"/>\n", y + 6, width - 70);
        write_text(f, width - 62, y + 10, "wall", "barrier");
    }
    fputs("</g>\n", f);
    return y + 26;
}

/* ---- The file ---- */

/* The blocks that are drawn, one after the other. */
struct drawing {
    struct picture *pictures;
    char (*titles)[120];
    size_t count;
    double width, height;
};

static void measure(struct drawing *d) {
    d->width = 520;
    d->height = 60;
    for (size_t i = 0; i < d->count; i++) {
        const struct picture *p = &d->pictures[i];
        const double wide = LEFT + (double)picture_widest(p) * CELL + 16;
        if (wide > d->width) d->width = wide;
        d->height += 34;
        for (size_t s = 0; s < p->count; s++) {
            const struct picture_step *step = &p->steps[s];
            const size_t source = strlen(step->file) + strlen(step->source) + 8;
            const double text =
                8.0 * (double)(source > strlen(step->memory) ? source : strlen(step->memory)) + 16;
            d->height += step_height(step);
            if (text > d->width) d->width = text;
        }
    }
}

static void write_all(FILE *f, const struct explanation *e, const struct drawing *d) {
    char value[64];
    tally_value_print(&e->row.value, value, sizeof value);
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g "
            "%g\" "
            "role=\"img\" aria-labelledby=\"title desc\">\n<title id=\"title\">",
            d->width, d->height, d->width, d->height);
    write_escaped(f, e->title);
    fputs(", step by step</title>\n<desc id=\"desc\">", f);
    write_escaped(f, e->idea);
    fprintf(f, ". %s of %" PRIu64 " elements in blocks of %u threads: %s. ",
            tally_op_name(e->options.run.op), e->options.n, e->options.run.block, value);
    for (size_t i = 0; i < d->count; i++)
        for (size_t s = 0; s < d->pictures[i].count; s++) {
            const struct picture_step *p = &d->pictures[i].steps[s];
            fprintf(f, "Step %u: stride %" PRIu64 ", %u threads at work; %s. ", p->step->step + 1,
                    p->step->stride, p->threads, p->memory);
        }
    fprintf(
        f,
        "</desc>\n<style>\n%s</style>\n<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n",
        style);
    write_text(f, 8, 22, "head", "%s", e->title);
    write_text(f, 8, 42, "soft", "%s of %" PRIu64 " elements, blocks of %u threads: %s",
               tally_op_name(e->options.run.op), e->options.n, e->options.run.block, value);
    double y = 60;
    for (size_t i = 0; i < d->count; i++) {
        write_text(f, 8, y + 14, "head", "%s", d->titles[i]);
        y += 34;
        for (size_t s = 0; s < d->pictures[i].count; s++)
            y = write_step(f, &d->pictures[i].steps[s], y, d->width);
    }
    fputs("</svg>\n", f);
}

static bool add_block(struct drawing *d, const struct explanation *e, size_t launch, bool last) {
    const struct seen_launch *l = &e->launches[launch];
    struct picture *p = &d->pictures[d->count];
    if (!picture_make(e, last ? l->last : l->first, last ? l->last_count : l->first_count, p))
        return d->count++, false;
    snprintf(d->titles[d->count++], sizeof *d->titles, "Launch %zu, block %u of %" PRIu64,
             launch + 1, last ? l->last_block : 0, l->blocks);
    if (picture_widest(p) <= CELLS_MAX)
        return picture_fold(p) || (failed("no memory to draw the steps"), false);
    failed("a row of %zu elements is too wide to draw; up to %d are drawn: choose a smaller -n or "
           "--block",
           picture_widest(p), CELLS_MAX);
    return false;
}

static bool add_blocks(struct drawing *d, const struct explanation *e) {
    d->pictures = calloc(2 * e->launch_count + 1, sizeof *d->pictures);
    d->titles = calloc(2 * e->launch_count + 1, sizeof *d->titles);
    if (!d->pictures || !d->titles) return failed("no memory to draw the steps"), false;
    for (size_t i = 0; i < e->launch_count; i++) {
        const struct seen_launch *l = &e->launches[i];
        if (!add_block(d, e, i, false)) return false;
        if (l->last_count > l->first_count && !add_block(d, e, i, true)) return false;
    }
    return true;
}

static int write_file(const struct explanation *e, const struct drawing *d, const char *file) {
    const bool standard = strcmp(file, "-") == 0;
    FILE *f = standard ? stdout : e->svg_to ? e->svg_to : fopen(file, "w");
    if (!f) return failed("%s: %s", file, strerror(errno));
    write_all(f, e, d);
    if (standard) return finish_output();
    if (f == e->svg_to) return fflush(f) == 0 ? STATUS_OK : failed("%s: %s", file, strerror(errno));
    const bool bad = ferror(f);
    if (fclose(f) != 0 || bad) return failed("%s: %s", file, strerror(errno));
    return STATUS_OK;
}

int picture_write_svg(const struct explanation *e, const char *file) {
    struct drawing d = {0};
    int status = STATUS_FAILED;
    if (add_blocks(&d, e)) {
        measure(&d);
        status = write_file(e, &d, file);
    }
    for (size_t i = 0; i < d.count; i++)
        picture_free(&d.pictures[i]);
    free(d.pictures);
    free(d.titles);
    return status;
}
