/*
 * picture_text.c - a picture of the steps as text, in the terminal's width and its characters.
 */
#include "teach/picture.h"

#include "common/message.h"

#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { MARGIN = 11, CELL_MIN = 4, WIDTH_MAX = 1000 };

/* The characters that links are drawn with. */
struct pen {
    const char *across, *left, *right, *middle, *into_left, *into_right, *into_middle, *rule;
};
static const struct pen unicode = {"─", "╰", "╯", "┴", "◄", "►", "▲", "━"};
static const struct pen ascii = {"-", "+", "+", "+", "<", ">", "^", "="};

static const struct pen *choose_pen(void) {
    setlocale(LC_CTYPE, "");
    const struct pen *pen = strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? &unicode : &ascii;
    setlocale(LC_CTYPE, "C");
    return pen;
}

static size_t terminal_width(void) {
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    const long asked = columns ? strtol(columns, NULL, 10) : 0;
    if (asked > 0) return (size_t)asked;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    return 80;
}

/* ---- A row of characters, each of which may take several bytes ---- */

struct row {
    char at[WIDTH_MAX][8];
    size_t end; /* 1 + the last one that is set */
};

static void put(struct row *r, size_t column, const char *character) {
    if (column >= WIDTH_MAX) return;
    for (; r->end <= column; r->end++)
        memcpy(r->at[r->end], " ", 2);
    snprintf(r->at[column], sizeof r->at[column], "%s", character);
}

/* Puts a text of ASCII so that its last character comes to `column`. */
static void put_text(struct row *r, size_t column, const char *text) {
    const size_t length = strlen(text);
    for (size_t i = 0; i < length && length <= column + 1; i++)
        put(r, column + 1 - length + i, (char[]){text[i], '\0'});
}

static void print_row(const char *label, const struct row *r) {
    printf("  %-*s", MARGIN - 2, label);
    for (size_t i = MARGIN; i < r->end; i++)
        fputs(r->at[i], stdout);
    putchar('\n');
}

/* ---- Strips ---- */

static size_t cell_width(const struct picture *p) {
    size_t width = CELL_MIN;
    for (size_t i = 0; i < p->count; i++)
        for (size_t s = 0; s < p->steps[i].strip_count; s++) {
            const struct picture_strip *strip = &p->steps[i].strips[s];
            char number[24];
            const size_t index = (size_t)snprintf(number, sizeof number, "%" PRIu64,
                                                  strip->first + strip->count - 1);
            if (index + 1 > width) width = index + 1;
            for (size_t c = 0; c < strip->count; c++) {
                const size_t before = strlen(strip->cells[c].before);
                const size_t after = strlen(strip->cells[c].after);
                if (before + 1 > width) width = before + 1;
                if (after + 1 > width) width = after + 1;
            }
        }
    return width;
}

/* Returns the column at which an element's numbers end. */
static size_t column(const struct picture_strip *s, uint64_t element, size_t cell) {
    return MARGIN + (size_t)(element - s->first + 1) * cell - 1;
}

static void draw_link(struct row *r, const struct picture_strip *s, const struct picture_link *l,
                      size_t cell, const struct pen *pen) {
    const size_t first = column(s, l->from[0], cell);
    const size_t last = column(s, l->from[l->count - 1], cell);
    char thread[16];
    const int length = snprintf(thread, sizeof thread, "%u", l->thread);
    if (l->count == 1) { /* one element, and the thread's register */
        put_text(r, last, thread);
        return;
    }
    for (size_t c = first; c <= last; c++)
        put(r, c, pen->across);
    for (size_t i = 0; i < l->count; i++) {
        const bool into = l->returns && l->to == l->from[i];
        const char *mark = i == 0              ? (into ? pen->into_left : pen->left)
                           : i + 1 == l->count ? (into ? pen->into_right : pen->right)
                                               : (into ? pen->into_middle : pen->middle);
        put(r, column(s, l->from[i], cell), mark);
    }
    const size_t gap = column(s, l->from[1], cell) - first;
    put_text(r, first + (gap + (size_t)length) / 2, thread);
}

static void print_links(const struct picture_strip *s, size_t cell, const struct pen *pen) {
    for (unsigned row = 0; row < s->rows; row++) {
        struct row r = {.end = 0};
        for (size_t i = 0; i < s->link_count; i++)
            if (s->links[i].row == row) draw_link(&r, s, &s->links[i], cell, pen);
        print_row(row ? "" : "thread", &r);
    }
}

static void print_strip(const struct picture_strip *s, size_t cell, const struct pen *pen) {
    struct row index = {.end = 0}, before = {.end = 0}, after = {.end = 0}, by = {.end = 0};
    char number[24];
    bool has_before = false, has_after = false;
    for (size_t c = 0; c < s->count; c++) {
        const struct picture_cell *x = &s->cells[c];
        const size_t at = column(s, s->first + c, cell);
        snprintf(number, sizeof number, "%" PRIu64, s->first + c);
        put_text(&index, at, number);
        put_text(&before, at, x->before);
        put_text(&after, at, x->after);
        snprintf(number, sizeof number, "%u", x->thread);
        if (*x->after) put_text(&by, at, number);
        has_before |= *x->before != 0;
        has_after |= *x->after != 0;
    }
    print_row(s->registers ? "lane" : s->name, &index);
    if (has_before) print_row(s->registers ? "holds" : "before", &before);
    print_links(s, cell, pen);
    if (has_after) print_row(s->registers ? "gets" : "after", &after);
    if (has_after && !s->link_count) print_row("by thread", &by);
}

/* ---- Steps ---- */

/* Prints text in lines of at most `width`, broken at blanks, each after two blanks. */
static void print_wrapped(const char *text, size_t width) {
    size_t at = 0;
    while (*text) {
        const size_t word = strcspn(text, " ");
        if (at && at + 1 + word > width) at = 0, putchar('\n');
        at += (size_t)printf(at ? " %.*s" : "  %.*s", (int)word, text);
        text += word;
        text += *text == ' ';
    }
    putchar('\n');
}

static void print_step(const struct picture_step *p, size_t cell, size_t width,
                       const struct pen *pen) {
    const tally_ladder_step *s = p->step;
    printf("\nStep %u", s->step + 1);
    if (s->stride) printf(", stride %" PRIu64, s->stride);
    if (p->threads)
        printf(", %u thread%s appl%s the operator", p->threads, p->threads == 1 ? "" : "s",
               p->threads == 1 ? "ies" : "y");
    else
        printf(", the operator is not applied");
    printf(s->barrier ? "; a barrier ends it\n" : "; the kernel ends\n");
    if (p->line) {
        char source[256];
        snprintf(source, sizeof source, "%s:%u: %s", p->file, p->line, p->source);
        print_wrapped(source, width - 2);
    }
    for (size_t i = 0; i < p->strip_count; i++)
        print_strip(&p->strips[i], cell, pen);
    if (*p->memory) print_wrapped(p->memory, width - 2);
}

static bool shows(const struct picture *p, const char *value) {
    for (size_t i = 0; i < p->count; i++)
        for (size_t s = 0; s < p->steps[i].strip_count; s++)
            for (size_t c = 0; c < p->steps[i].strips[s].count; c++) {
                const struct picture_cell *x = &p->steps[i].strips[s].cells[c];
                if (strcmp(x->before, value) == 0 || strcmp(x->after, value) == 0) return true;
            }
    return false;
}

static bool fits(const struct explanation *e, const struct picture *p, size_t cell, size_t width) {
    const size_t needs = MARGIN + picture_widest(p) * cell;
    const size_t room = width > MARGIN + cell ? (width - MARGIN) / cell : 0;
    if (needs <= width && needs < WIDTH_MAX) return true;
    failed("a row of %zu elements needs %zu columns, and here are %zu, for %zu elements: choose a "
           "smaller -n or --block, or --svg FILE (%s, n = %" PRIu64 ")",
           picture_widest(p), needs, width, room, e->title, e->options.n);
    return false;
}

static bool print_block(const struct explanation *e, const struct seen_step *steps, size_t count,
                        size_t width, const struct pen *pen) {
    struct picture p;
    if (!picture_make(e, steps, count, &p)) return picture_free(&p), false;
    const size_t cell = cell_width(&p);
    const bool drawn = fits(e, &p, cell, width);
    for (size_t i = 0; drawn && i < p.count; i++)
        print_step(&p.steps[i], cell, width, pen);
    if (drawn && (shows(&p, "-0") || shows(&p, "?"))) putchar('\n');
    if (drawn && shows(&p, "-0"))
        print_wrapped("-0 changes nothing when it is added: a thread without an element holds it.",
                      width - 2);
    if (drawn && shows(&p, "?"))
        print_wrapped("? is of no use: its lane took from a lane that the block does not have.",
                      width - 2);
    picture_free(&p);
    return drawn;
}

static void print_rule(const struct pen *pen, size_t width) {
    for (size_t i = 0; i < width; i++)
        fputs(pen->rule, stdout);
    putchar('\n');
}

static bool print_launch(const struct explanation *e, size_t i, size_t width,
                         const struct pen *pen) {
    const struct seen_launch *l = &e->launches[i];
    printf("\nLaunch %zu: %" PRIu64 " element%s, %" PRIu64 " block%s of %u threads%s\n", i + 1,
           l->first_count ? l->first[0].step.n : 0,
           l->first_count && l->first[0].step.n == 1 ? "" : "s", l->blocks,
           l->blocks == 1 ? "" : "s", e->options.run.block,
           l->blocks == 1 ? "" : "; block 0 is drawn");
    print_rule(pen, width < 80 ? width : 80);
    if (!print_block(e, l->first, l->first_count, width, pen)) return false;
    if (l->last_count <= l->first_count) return true;
    printf("\nThe last block to finish, %u, does more:\n", l->last_block);
    return print_block(e, l->last, l->last_count, width, pen);
}

int picture_print(const struct explanation *e) {
    const struct pen *pen = choose_pen();
    const size_t width = terminal_width();
    char value[64];
    for (size_t i = 0; i < e->launch_count; i++) /* before anything is printed: does it fit? */
        for (int last = 0; last < 2; last++) {
            const struct seen_launch *l = &e->launches[i];
            struct picture p;
            if (!picture_make(e, last ? l->last : l->first, last ? l->last_count : l->first_count,
                              &p))
                return picture_free(&p), STATUS_FAILED;
            const bool room = fits(e, &p, cell_width(&p), width);
            picture_free(&p);
            if (!room) return STATUS_FAILED;
        }
    printf("%s: %s\n", e->title, e->idea);
    tally_value_print(&e->row.value, value, sizeof value);
    printf("%s of %" PRIu64 " %s: %s\n", tally_op_name(e->options.run.op), e->options.n,
           tally_type_name(e->options.run.type), value);
    for (size_t i = 0; i < e->launch_count; i++)
        if (!print_launch(e, i, width, pen)) return STATUS_FAILED;
    printf(
        "\n  %s  thread 0 combines the elements at its ends; the result goes where the arrow is.\n",
        pen == &unicode ? "◄──0──╯" : "<--0--+");
    return finish_output();
}
