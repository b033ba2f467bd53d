/*
 * picture_fold.c - wide strips as rows: 32 cells a row, so that a column is a bank of shared memory, and a row a line of
 * global memory if an element has 4 bytes. Rows that the step does not touch are left out.
 */
#include "teach/picture.h"

#include <stdlib.h>
#include <string.h>

enum { ROW = 32 };

static bool is_touched(const struct picture_cell *cells, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (cells[i].read || *cells[i].after) return true;
    return false;
}

/* Returns the element at which a link's thread is named: the one that it writes, or the first that it reads. */
static uint64_t anchor(const struct picture_link *l) {
    return l->returns ? l->to : l->from[0];
}

/* Moves the links of `wide` whose thread is named within the row to the row. */
static bool take_links(struct picture_strip *row, struct picture_strip *wide) {
    size_t kept = 0;
    row->links = malloc((wide->link_count + 1) * sizeof *row->links);
    if (!row->links) return false;
    for (size_t i = 0; i < wide->link_count; i++) {
        struct picture_link l = wide->links[i];
        const uint64_t at = anchor(&l), end = row->first + row->count;
        if (at < row->first || at >= end) {
            wide->links[kept++] = l;
            continue;
        }
        l.crosses = l.from[0] < row->first || l.from[l.count - 1] >= end;
        l.row = 0;
        row->links[row->link_count++] = l;
    }
    wide->link_count = kept;
    return true;
}

static bool fold_strip(struct picture *p, struct picture_strip *wide, struct picture_step *to) {
    const uint64_t end = wide->first + wide->count;
    for (uint64_t at = wide->first; at < end;) {
        const uint64_t next = at - at % ROW + ROW < end ? at - at % ROW + ROW : end;
        const size_t count = (size_t)(next - at);
        const struct picture_cell *cells = &wide->cells[at - wide->first];
        if (!is_touched(cells, count)) {
            to->left_out++;
            at = next;
            continue;
        }
        struct picture_strip *row = &to->strips[to->strip_count++];
        *row = *wide;
        row->first = at;
        row->count = count;
        row->links = NULL;
        row->link_count = row->rows = 0;
        row->cells = malloc(count * sizeof *cells);
        if (!row->cells || !take_links(row, wide)) return false;
        memcpy(row->cells, cells, count * sizeof *cells);
        picture_place_links(p, row);
        at = next;
    }
    return true;
}

static bool fold_step(struct picture *p, struct picture_step *s) {
    struct picture_step folded = {0};
    size_t rows = 0;
    bool done = true;
    for (size_t i = 0; i < s->strip_count; i++)
        rows += s->strips[i].count / ROW + 2;
    folded.strips = calloc(rows + 1, sizeof *folded.strips);
    if (!folded.strips) return false;
    for (size_t i = 0; i < s->strip_count; i++) {
        struct picture_strip *strip = &s->strips[i];
        if (strip->count <= ROW || !done) {
            folded.strips[folded.strip_count++] = *strip;
            continue;
        }
        done = fold_strip(p, strip, &folded);
        picture_free_strip(strip);
    }
    free(s->strips);
    s->strips = folded.strips;
    s->strip_count = folded.strip_count;
    s->left_out = folded.left_out;
    return done;
}

bool picture_fold(struct picture *p) {
    for (size_t i = 0; i < p->count && !p->lost; i++)
        if (!fold_step(p, &p->steps[i])) p->lost = true;
    return !p->lost;
}
