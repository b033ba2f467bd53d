/*
 * picture.c - turns the accesses of a step into what is drawn of it (picture.h).
 *
 * A thread is taken to combine the elements that it has read since it last wrote, if it has applied the operator since.
 */
#include "teach/picture.h"

#include "common/message.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 1024, WARP = 32 };

/* ---- Lists ---- */

/* Returns the array with room for one more than `count` elements; NULL, with picture->lost set, without memory. Its
 * capacity is a power of two. */
static void *room(struct picture *p, void *array, size_t count, size_t size) {
    if (count & (count - 1)) return array;
    void *more = realloc(array, (count ? 2 * count : 1) * size);
    if (!more) p->lost = true;
    return more;
}

/* ---- Arrays, from the first step to the last ---- */

/* An array, or its part that the block touches, and what is known of its elements. */
struct known {
    char name[24];
    uint64_t first, last;
    char (*value)[PICTURE_VALUE];
};
enum { ARRAYS = 8 };

struct arrays {
    struct known known[ARRAYS];
    size_t count;
};

static struct known *find_array(struct arrays *a, const char *name) {
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->known[i].name, name) == 0) return &a->known[i];
    return NULL;
}

static bool has_memory(const tally_ladder_access *x) {
    return x->act != TALLY_LADDER_APPLY && x->act != TALLY_LADDER_EXCHANGE && *x->array;
}

static unsigned first_lane(uint32_t lanes) {
    return (unsigned)__builtin_ctz(lanes);
}

/* Widens the known range of the access's array to the elements that the access touches. */
static void note_range(struct arrays *a, const tally_ladder_access *x) {
    struct known *k = find_array(a, x->array);
    if (!k) {
        if (a->count == ARRAYS) return;
        k = &a->known[a->count++];
        *k = (struct known){.first = UINT64_MAX};
        memcpy(k->name, x->array, sizeof k->name);
    }
    for (uint32_t lanes = x->lanes; lanes; lanes &= lanes - 1) {
        const uint64_t at = x->element[first_lane(lanes)];
        if (at < k->first) k->first = at;
        if (at + x->elements - 1 > k->last) k->last = at + x->elements - 1;
    }
}

static void find_arrays(struct picture *p, struct arrays *a, const struct seen_step *steps,
                        size_t count) {
    for (size_t s = 0; s < count; s++)
        for (size_t i = 0; i < steps[s].step.accesses; i++)
            if (has_memory(&steps[s].step.access[i])) note_range(a, &steps[s].step.access[i]);
    for (size_t i = 0; i < a->count; i++) {
        struct known *k = &a->known[i];
        k->value = calloc(k->last - k->first + 1, sizeof *k->value);
        if (!k->value) p->lost = true;
    }
}

/* ---- A step ---- */

/* The reads of a thread since it last wrote. */
struct pending {
    struct {
        char array[24];
        uint64_t element;
    } * reads;
    size_t count;
    bool applied;
};

struct maker {
    struct picture *picture;
    struct picture_step *step;
    struct arrays *arrays;
    struct pending threads[THREADS];
    unsigned exchanges[WARP]; /* exchanges of each warp so far */
    uint32_t unknown[WARP];   /* lanes whose value comes from a lane that takes no part */
};

static struct picture_strip *add_strip(struct maker *m, const char *name, uint64_t first,
                                       size_t count) {
    struct picture_step *s = m->step;
    struct picture_strip *more = room(m->picture, s->strips, s->strip_count, sizeof *more);
    if (!more) return NULL;
    s->strips = more;
    struct picture_strip *strip = &more[s->strip_count];
    *strip = (struct picture_strip){.first = first, .count = count};
    snprintf(strip->name, sizeof strip->name, "%s", name);
    strip->cells = calloc(count, sizeof *strip->cells);
    if (!strip->cells) return m->picture->lost = true, NULL;
    s->strip_count++;
    return strip;
}

static struct picture_strip *strip_of(struct maker *m, const char *array) {
    struct picture_step *s = m->step;
    for (size_t i = 0; i < s->strip_count; i++)
        if (!s->strips[i].registers && strcmp(s->strips[i].name, array) == 0) return &s->strips[i];
    const struct known *k = find_array(m->arrays, array);
    if (!k) return NULL;
    struct picture_strip *strip = add_strip(m, array, k->first, k->last - k->first + 1);
    for (size_t i = 0; strip && i < strip->count; i++)
        memcpy(strip->cells[i].before, k->value[i], PICTURE_VALUE);
    return strip;
}

static int ascending(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static struct picture_link *add_link(struct maker *m, struct picture_strip *strip, unsigned thread,
                                     size_t sources) {
    struct picture_link *more =
        room(m->picture, strip->links, strip->link_count, sizeof *strip->links);
    if (!more) return NULL;
    strip->links = more;
    struct picture_link *link = &more[strip->link_count];
    *link = (struct picture_link){.thread = thread};
    link->from = calloc(sources ? sources : 1, sizeof *link->from);
    if (!link->from) return m->picture->lost = true, NULL;
    strip->link_count++;
    return link;
}

/* Makes a link of the thread's reads in each array that it has read. The thread writes the result to element `to` of
 * `array`; array is NULL where the result stays in a register. */
static void close_reads(struct maker *m, unsigned thread, const char *array, uint64_t to) {
    struct pending *t = &m->threads[thread];
    for (size_t i = 0; t->applied && i < m->step->strip_count; i++) {
        struct picture_strip *strip = &m->step->strips[i];
        if (strip->registers) continue;
        struct picture_link *link = NULL;
        for (size_t r = 0; r < t->count; r++) {
            if (strcmp(t->reads[r].array, strip->name) != 0) continue;
            if (!link) link = add_link(m, strip, thread, t->count);
            if (!link) return;
            link->from[link->count++] = t->reads[r].element;
        }
        if (!link) continue;
        qsort(link->from, link->count, sizeof *link->from, ascending);
        link->returns = array && strcmp(array, strip->name) == 0;
        link->to = to;
    }
    t->count = 0;
    t->applied = false;
}

static void print_value(const tally_value *v, char text[PICTURE_VALUE]) {
    char whole[64];
    tally_value_print(v, whole, sizeof whole);
    if (strlen(whole) >= PICTURE_VALUE)
        snprintf(whole, sizeof whole, "%.6g", tally_value_double(v));
    snprintf(text, PICTURE_VALUE, "%.*s", PICTURE_VALUE - 1, whole);
}

static void note_read(struct maker *m, const tally_ladder_access *x, unsigned l,
                      struct picture_strip *strip) {
    const unsigned thread = x->warp * WARP + l;
    struct pending *t = &m->threads[thread];
    for (unsigned k = 0; k < x->elements; k++) {
        struct picture_cell *cell = &strip->cells[x->element[l] + k - strip->first];
        const tally_value *found = x->act == TALLY_LADDER_ATOMIC ? &x->given[l] : &x->value[l];
        if (k == 0 && !*cell->after) print_value(found, cell->before);
        cell->read = true;
        void *more = room(m->picture, t->reads, t->count, sizeof *t->reads);
        if (!more) return;
        t->reads = more;
        memcpy(t->reads[t->count].array, x->array, sizeof x->array);
        t->reads[t->count++].element = x->element[l] + k;
    }
}

static void note_write(struct maker *m, const tally_ladder_access *x, unsigned l,
                       struct picture_strip *strip) {
    const unsigned thread = x->warp * WARP + l;
    struct picture_cell *cell = &strip->cells[x->element[l] - strip->first];
    print_value(&x->value[l], cell->after);
    cell->thread = thread;
    close_reads(m, thread, x->array, x->element[l]);
}

static void note_access(struct maker *m, const tally_ladder_access *x) {
    struct picture_strip *strip = strip_of(m, x->array);
    for (uint32_t lanes = x->lanes; strip && lanes; lanes &= lanes - 1) {
        if (x->act != TALLY_LADDER_WRITE) note_read(m, x, first_lane(lanes), strip);
        if (x->act != TALLY_LADDER_READ) note_write(m, x, first_lane(lanes), strip);
    }
}

/* Notes an exchange: the k-th of each warp is drawn in the k-th strip of registers. */
static void note_exchange(struct maker *m, const tally_ladder_access *x, unsigned threads) {
    struct picture_strip *strip = NULL;
    unsigned wanted = m->exchanges[x->warp]++;
    for (size_t i = 0; i < m->step->strip_count && !strip; i++)
        if (m->step->strips[i].registers && wanted-- == 0) strip = &m->step->strips[i];
    if (!strip) strip = add_strip(m, "registers", 0, threads);
    if (!strip) return;
    strip->registers = true;
    const uint32_t before = m->unknown[x->warp];
    for (uint32_t lanes = x->lanes; lanes; lanes &= lanes - 1) {
        const unsigned l = first_lane(lanes), thread = x->warp * WARP + l;
        close_reads(m, thread, NULL, 0);
        const unsigned giver = (unsigned)x->element[l];
        const uint32_t lost = before | ~x->lanes;
        if (before >> l & 1)
            strcpy(strip->cells[thread].before, "?");
        else
            print_value(&x->given[l], strip->cells[thread].before);
        if (lost >> giver & 1) m->unknown[x->warp] |= UINT32_C(1) << l;
        if (giver == l || (lost >> giver & 1) || (before >> l & 1)) continue;
        print_value(&x->value[l], strip->cells[thread].after);
        strip->cells[thread].thread = x->warp * WARP + giver;
        struct picture_link *link = add_link(m, strip, thread, 2);
        if (!link) return;
        link->from[link->count++] =
            thread < strip->cells[thread].thread ? thread : strip->cells[thread].thread;
        link->from[link->count++] =
            thread < strip->cells[thread].thread ? strip->cells[thread].thread : thread;
        link->returns = true;
        link->to = thread;
    }
}

/* ---- Rows, so that links do not overlap ---- */

static int by_start(const void *a, const void *b) {
    const struct picture_link *x = a, *y = b;
    return x->from[0] != y->from[0] ? ascending(&x->from[0], &y->from[0])
                                    : (int)x->thread - (int)y->thread;
}

void picture_place_links(struct picture *p, struct picture_strip *strip) {
    if (!strip->link_count) return;
    uint64_t *ends =
        calloc(strip->link_count + 1, sizeof *ends); /* 1 + the last element of a row */
    if (!ends) {
        p->lost = true;
        return;
    }
    qsort(strip->links, strip->link_count, sizeof *strip->links, by_start);
    for (size_t i = 0; i < strip->link_count; i++) {
        struct picture_link *l = &strip->links[i];
        if (l->crosses) continue;
        while (ends[l->row] > l->from[0])
            l->row++;
        ends[l->row] = l->from[l->count - 1] + 1;
        if (l->row + 1 > strip->rows) strip->rows = l->row + 1;
    }
    free(ends);
}

/* ---- In words ---- */

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t size,
                                                         const char *format, ...) {
    const size_t length = strlen(text);
    va_list list;
    va_start(list, format);
    vsnprintf(text + length, size - length, format, list);
    va_end(list);
}

/* Appends the numbers i for which set[i] is true: "0-3, 8". */
static void append_set(char *text, size_t size, const bool *set, size_t count) {
    const char *between = "";
    for (size_t i = 0; i < count; i++) {
        if (!set[i]) continue;
        size_t end = i;
        while (end + 1 < count && set[end + 1])
            end++;
        append(text, size, end > i ? "%s%zu-%zu" : "%s%zu", between, i, end);
        between = ", ";
        i = end;
    }
}

static size_t count_set(const bool *set, size_t count) {
    size_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += set[i];
    return sum;
}

/* Appends the cost of reading, or of writing, an array to p->memory. */
static void describe(struct picture_step *p, const char *array, bool shared, bool writes) {
    enum { LINES = 4096, LINE = 128, BANKS = 32 };
    static bool set[LINES];
    const tally_ladder_step *s = p->step;
    uint64_t lines = 0, fewest = 0, conflicts = 0;
    bool any = false;
    memset(set, 0, sizeof set);
    for (size_t i = 0; i < s->accesses; i++) {
        const tally_ladder_access *x = &s->access[i];
        if (!has_memory(x) || strcmp(x->array, array) != 0) continue;
        if (writes ? x->act == TALLY_LADDER_READ : x->act == TALLY_LADDER_WRITE) continue;
        any = true;
        lines += x->transactions;
        fewest += x->fewest_transactions;
        conflicts += x->bank_conflicts;
        for (uint32_t lanes = x->lanes; lanes; lanes &= lanes - 1) {
            const uint64_t from = x->element[first_lane(lanes)] * (x->size / x->elements);
            if (!shared && from / LINE < LINES) set[from / LINE] = true;
            for (unsigned b = 0; shared && b < x->size; b += 4)
                set[(from + b) / 4 % BANKS] = true;
        }
    }
    if (!any) return;
    const char *done = writes ? "written" : "read";
    append(p->memory, sizeof p->memory, "%s%s %s: ", *p->memory ? "; " : "", array, done);
    if (!shared)
        append(p->memory, sizeof p->memory,
               "%" PRIu64 " transaction%s (fewest %" PRIu64 "), line%s ", lines,
               lines == 1 ? "" : "s", fewest, count_set(set, LINES) == 1 ? "" : "s");
    else
        append(p->memory, sizeof p->memory, "bank%s ", count_set(set, BANKS) == 1 ? "" : "s");
    append_set(p->memory, sizeof p->memory, set, shared ? BANKS : LINES);
    if (shared && conflicts)
        append(p->memory, sizeof p->memory, ", %" PRIu64 " conflict%s", conflicts,
               conflicts == 1 ? "" : "s");
}

static void describe_all(struct picture_step *p) {
    for (size_t i = 0; i < p->strip_count; i++) {
        const char *array = p->strips[i].name;
        for (size_t k = 0; k < p->step->accesses; k++) {
            const tally_ladder_access *x = &p->step->access[k];
            if (p->strips[i].registers || !has_memory(x) || strcmp(x->array, array) != 0) continue;
            describe(p, array, x->shared, false);
            describe(p, array, x->shared, true);
            break;
        }
    }
}

/* Copies line `number` of a text, without the blanks before it. */
static void copy_line(const char *text, unsigned number, char *out, size_t size) {
    for (; text && number > 1; number--) {
        text = strchr(text, '\n');
        if (text) text++;
    }
    *out = '\0';
    if (!text || !number) return;
    text += strspn(text, " \t");
    snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
}

/* Finds the step's line: that of the last access before the operator is applied or, if it is not, of the last
 * access. */
static void find_line(struct picture_step *p, const char *text) {
    const tally_ladder_access *best = NULL, *before = NULL;
    for (size_t i = 0; i < p->step->accesses && !(best && p->applies); i++) {
        const tally_ladder_access *x = &p->step->access[i];
        if (x->act == TALLY_LADDER_APPLY) {
            p->applies = true;
            if (before) best = before;
        } else if (x->line) {
            before = x;
        }
    }
    if (!best) best = before;
    if (!best) return;
    memcpy(p->file, best->file, sizeof p->file);
    p->line = best->line;
    copy_line(text ? text : tally_ladder_source(p->file), p->line, p->source, sizeof p->source);
}

/* ---- All of it ---- */

static void make_step(struct maker *m, const tally_ladder_step *s) {
    for (size_t i = 0; i < s->accesses && !m->picture->lost; i++) {
        const tally_ladder_access *x = &s->access[i];
        if (x->act == TALLY_LADDER_EXCHANGE)
            note_exchange(m, x, s->threads);
        else if (x->act == TALLY_LADDER_APPLY)
            for (uint32_t lanes = x->lanes; lanes; lanes &= lanes - 1)
                m->threads[x->warp * WARP + first_lane(lanes)].applied = true;
        else if (*x->array)
            note_access(m, x);
    }
    for (unsigned t = 0; t < THREADS && !m->picture->lost; t++)
        close_reads(m, t, NULL, 0);
    for (unsigned w = 0; w < s->warps; w++)
        m->step->threads += (unsigned)__builtin_popcount(s->warp[w].lanes);
}

/* Keeps for the next step the values that this one has read and written. Places its links in rows. */
static void remember(struct maker *m) {
    for (size_t i = 0; i < m->step->strip_count; i++) {
        struct picture_strip *strip = &m->step->strips[i];
        picture_place_links(m->picture, strip);
        struct known *k = strip->registers ? NULL : find_array(m->arrays, strip->name);
        for (size_t c = 0; k && c < strip->count; c++) {
            const struct picture_cell *cell = &strip->cells[c];
            memcpy(k->value[c], *cell->after ? cell->after : cell->before, PICTURE_VALUE);
        }
    }
}

static void free_pending(struct maker *m) {
    for (unsigned t = 0; t < THREADS; t++)
        free(m->threads[t].reads);
    memset(m->threads, 0, sizeof m->threads);
    memset(m->exchanges, 0, sizeof m->exchanges);
    memset(m->unknown, 0, sizeof m->unknown);
}

static void make_all(struct maker *m, const struct seen_step *steps, size_t count,
                     const char *text) {
    for (size_t i = 0; i < count && !m->picture->lost; i++) {
        m->step = &m->picture->steps[i];
        m->step->step = &steps[i].step;
        m->picture->count = i + 1;
        make_step(m, m->step->step);
        if (!m->picture->lost) remember(m);
        find_line(m->step, text);
        describe_all(m->step);
        free_pending(m);
    }
}

/* Sets the values of the kernel's input, which are known from the start. */
static void fill_elements(struct arrays *a, const struct explanation *e) {
    struct known *k = find_array(a, e->input);
    const tally_ladder_options *o = &e->options.run;
    const size_t size = tally_type_size(o->type);
    for (uint64_t i = k ? k->first : 1; k && i <= k->last && i < o->n; i++) {
        tally_value v = {.type = o->type};
        memcpy(&v.as, (const char *)o->x + i * size, size);
        print_value(&v, k->value[i - k->first]);
    }
}

bool picture_make(const struct explanation *e, const struct seen_step *steps, size_t count,
                  struct picture *out) {
    struct arrays arrays = {0};
    *out = (struct picture){.steps = calloc(count ? count : 1, sizeof *out->steps)};
    struct maker *m = calloc(1, sizeof *m);
    if (!out->steps || !m) {
        out->lost = true;
    } else {
        m->picture = out;
        m->arrays = &arrays;
        find_arrays(out, &arrays, steps, count);
        if (!out->lost && count && steps[0].step.launch == 0) fill_elements(&arrays, e);
        if (!out->lost) make_all(m, steps, count, e->text);
    }
    for (size_t i = 0; i < arrays.count; i++)
        free(arrays.known[i].value);
    free(m);
    if (out->lost) failed("no memory to draw the steps");
    return !out->lost;
}

void picture_free_strip(struct picture_strip *strip) {
    for (size_t l = 0; l < strip->link_count; l++)
        free(strip->links[l].from);
    free(strip->links);
    free(strip->cells);
}

void picture_free(struct picture *p) {
    for (size_t i = 0; i < p->count; i++) {
        for (size_t s = 0; s < p->steps[i].strip_count; s++)
            picture_free_strip(&p->steps[i].strips[s]);
        free(p->steps[i].strips);
    }
    free(p->steps);
}

size_t picture_widest(const struct picture *p) {
    size_t widest = 0;
    for (size_t i = 0; i < p->count; i++)
        for (size_t s = 0; s < p->steps[i].strip_count; s++)
            if (p->steps[i].strips[s].count > widest) widest = p->steps[i].strips[s].count;
    return widest;
}
