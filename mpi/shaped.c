/* shaped.c - see shaped.h. */
#include "shaped.h"

#include "along.h"
#include "blocks.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void give_up(struct shaped *part, tally_status status, const char *line) {
    if (part->status != TALLY_OK || status == TALLY_OK) return;
    part->status = status;
    snprintf(part->line, sizeof part->line, "%s", line ? line : tally_error());
}

/* ---- Elements in turn ----------------------------------------------------------------------- */

/* A walk that calls visit() for each element that no mask hides, in C order: with its result, and its
 * places in x and y. */
struct walk {
    void (*visit)(struct walk *w, size_t result, ptrdiff_t x, ptrdiff_t y);
    struct gathered *g;
    const char *x, *y;
    size_t element;
    size_t *next;       /* of each result, the place of its next element */
    const size_t *part; /* along an axis: the segment or group of each of its indices */
};

static void walk_segments(const tally_shape *s, struct walk *w) {
    for (size_t i = 0; i < s->count; i++)
        for (size_t k = (size_t)offset_along(s, i); k < offset_along(s, i + 1); k++)
            if (!s->mask || s->mask[k]) w->visit(w, i, (ptrdiff_t)k, (ptrdiff_t)k);
}

/* Returns how many results lie along dimension d: 1 where it is reduced. */
static size_t results_along(const tally_shape *s, unsigned d) {
    if (!(s->axes >> d & 1)) return s->length[d];
    return is_along(s) ? s->count : 1;
}

/* Sets the strides of C order, of the elements or of the results. A reduced dimension has 0 in the latter. */
static void c_order(const tally_shape *s, int of_results, ptrdiff_t *stride) {
    ptrdiff_t next = 1;
    for (unsigned d = s->dims; d-- > 0;) {
        const size_t length = of_results ? results_along(s, d) : s->length[d];
        stride[d] = of_results && s->axes >> d & 1 && !is_along(s) ? 0 : next;
        next *= (ptrdiff_t)length;
    }
}

static void walk_axes(const tally_shape *s, struct walk *w) {
    ptrdiff_t plain[TALLY_DIMS_MAX], number[TALLY_DIMS_MAX];
    size_t index[TALLY_DIMS_MAX] = {0};
    c_order(s, 0, plain);
    c_order(s, 1, number);
    for (unsigned d = 0; d < s->dims; d++)
        if (s->length[d] == 0) return;
    for (;;) {
        ptrdiff_t result = 0, x = 0, y = 0, mask = 0;
        int is_there = 1;
        for (unsigned d = 0; d < s->dims; d++) {
            const ptrdiff_t i = (ptrdiff_t)index[d];
            const size_t own = w->part && s->axes >> d & 1 ? w->part[i] : index[d];
            is_there &= own != SIZE_MAX;
            result += (ptrdiff_t)own * number[d];
            x += i * (s->x_stride ? s->x_stride : plain)[d];
            y += i * (s->y_stride ? s->y_stride : plain)[d];
            mask += i * (s->mask_stride ? s->mask_stride : plain)[d];
        }
        if (is_there && (!s->mask || s->mask[mask])) w->visit(w, (size_t)result, x, y);
        unsigned d = s->dims;
        while (d > 0 && ++index[d - 1] == s->length[d - 1])
            index[--d] = 0;
        if (d == 0) return;
    }
}

static void walk_all(const tally_shape *s, struct walk *w) {
    if (s->cut == TALLY_AXES || is_along(s))
        walk_axes(s, w);
    else
        walk_segments(s, w);
}

/* ---- Gathered ------------------------------------------------------------------------------- */

static void count_element(struct walk *w, size_t result, ptrdiff_t x, ptrdiff_t y) {
    (void)x, (void)y;
    w->g->start[result + 1]++;
}

static void copy_element(struct walk *w, size_t result, ptrdiff_t x, ptrdiff_t y) {
    const size_t at = w->next[result]++, size = w->element;
    memcpy(w->g->x + at * size, w->x + x * (ptrdiff_t)size, size);
    if (w->y) memcpy(w->g->y + at * size, w->y + y * (ptrdiff_t)size, size);
    w->g->id[at] = result;
}

/* Returns zeroed memory; NULL only where there is none, and this rank then gives up. */
static void *some(struct shaped *part, size_t count, size_t size) {
    void *room = calloc(count + 1, size);
    if (!room) give_up(part, TALLY_ENOMEM, "no memory for a copy of the elements");
    return room;
}

/* Finds where the results go: in C order or by strides. */
static void place_results(const tally_shape *s, size_t results, struct gathered *g) {
    ptrdiff_t number[TALLY_DIMS_MAX];
    for (size_t i = 0; i < results; i++)
        g->place[i] = (ptrdiff_t)i;
    if ((s->cut != TALLY_AXES && !is_along(s)) || !s->out_stride) return;
    c_order(s, 1, number);
    for (size_t i = 0; i < results; i++) {
        ptrdiff_t at = 0;
        for (unsigned d = 0; d < s->dims; d++)
            if (number[d] != 0)
                at += (ptrdiff_t)i / number[d] % (ptrdiff_t)results_along(s, d) * s->out_stride[d];
        g->place[i] = at;
    }
}

/* Counts the elements of each result that stay on the device. */
static void count_runs(struct shaped *part) {
    struct gathered *g = &part->g;
    for (size_t i = 0; i < part->results; i++)
        g->start[i + 1] = g->start[i] + part->staged.run[i].n;
}

static void gather(struct shaped *part) {
    struct gathered *g = &part->g;
    struct walk w = {.visit = count_element,
                     .g = g,
                     .x = part->x,
                     .y = part->y,
                     .element = tally_type_size(part->problem->type)};
    g->start = some(part, part->results + 1, sizeof *g->start);
    g->place = some(part, part->results, sizeof *g->place);
    if (part->status != TALLY_OK) return;
    place_results(part->shape, part->results, g);
    if (part->staged.run) {
        count_runs(part);
        return;
    }
    if (is_along(part->shape)) {
        size_t *own = some(part, length_along(part->shape), sizeof *own);
        if (!own) return;
        number_parts(part->shape, own);
        w.part = own;
    }
    walk_all(part->shape, &w);
    for (size_t i = 0; i < part->results; i++)
        g->start[i + 1] += g->start[i];
    const size_t n = g->start[part->results];
    w.next = some(part, part->results, sizeof *w.next);
    g->x = some(part, n, w.element);
    if (part->y) g->y = some(part, n, w.element);
    g->id = some(part, n, sizeof *g->id);
    if (part->status == TALLY_OK) {
        memcpy(w.next, g->start, part->results * sizeof *w.next);
        w.visit = copy_element;
        walk_all(part->shape, &w);
    }
    free(w.next);
    free((void *)(uintptr_t)w.part);
}

/* Returns whether a shape is that of groups which are fed as they are. */
static int are_fed_whole(const tally_shape *s) {
    return s->cut == TALLY_GROUPS && !is_along(s);
}

/* ---- What is wrong with the arguments ------------------------------------------------------- */

static int takes_two(const tally_problem *p, size_t values) {
    if (p->is_complex) return 1;
    for (size_t i = 0; i < values; i++)
        if (tally_problem_value_op(p, i) == TALLY_DOT) return 1;
    return 0;
}

static int asks_index(const tally_problem *p, size_t values) {
    for (size_t i = 0; i < values; i++) {
        const tally_op op = tally_problem_value_op(p, i);
        if (op == TALLY_ARGMIN || op == TALLY_ARGMAX) return 1;
    }
    return 0;
}

static int has_elements(const tally_shape *s) {
    for (unsigned d = 0; d < s->dims; d++)
        if (s->length[d] == 0) return 0;
    return s->dims > 0 || s->n > 0;
}

/* Brings a device's arrays to the host, but for elements that stay there; shape, x and y then are what was
 * brought. */
static void bring(struct shaped *part) {
    const size_t element = tally_type_size(part->problem->type);
    const tally_status s = staged_bring(&part->staged, part->device, element, part->shape, part->x,
                                        part->y, part->results);
    give_up(part, s, s == TALLY_ENOMEM ? "no memory for a copy of a device's arrays" : NULL);
    part->shape = &part->staged.shape;
    part->x = part->staged.x;
    part->y = part->staged.y;
}

/* Checks the arguments before anything is reduced. Groups are checked when they are fed. */
static void check(struct shaped *part, int is_resident, void *const out[], int is_wanted) {
    tally_status s =
        part->problem ? tally_problem_values(part->problem, &part->values) : TALLY_EINVAL;
    if (!part->problem) give_up(part, s, "the problem is NULL");
    if (s == TALLY_OK) s = tally_shape_results(part->shape, &part->results);
    give_up(part, s, NULL);
    if (part->status != TALLY_OK) return;
    if (is_wanted && !out) give_up(part, TALLY_EINVAL, "out is NULL");
    for (size_t v = 0; v < part->values && is_wanted && out; v++) {
        part->out[v] = out[v];
        if (!out[v] && part->results > 0) give_up(part, TALLY_EINVAL, "an array of out is NULL");
    }
    if (part->shape->means)
        give_up(part, TALLY_EUNSUPPORTED, "over ranks all results have the problem's mean");
    if (are_fed_whole(part->shape) && has_tree(part->problem))
        give_up(part, TALLY_EUNSUPPORTED, "groups over the canonical tree cannot be merged");
    if (part->shape->cut == TALLY_GROUPS && is_along(part->shape) &&
        asks_index(part->problem, part->values))
        give_up(part, TALLY_EUNSUPPORTED,
                "argmin and argmax of groups along an axis are not reduced over ranks");
    if (is_resident && part->status == TALLY_OK) bring(part);
    if (are_fed_whole(part->shape)) return;
    if (part->shape->mask && asks_index(part->problem, part->values))
        give_up(part, TALLY_EUNSUPPORTED, "argmin and argmax of axes and segments take no mask");
    const int two = takes_two(part->problem, part->values);
    if (!two != !part->y && (part->y || has_elements(part->shape)))
        give_up(part, TALLY_EINVAL,
                two ? "dot takes two arrays, and y is NULL" : "only dot takes a y");
    if (part->staged.run) return; /* there are no runs if anything is wrong with the shape */
    /* Counting the elements finds whatever is wrong with the shape. */
    const tally_problem nothing = {.op = TALLY_COUNT, .type = part->problem->type};
    void *counts = part->status == TALLY_OK ? some(part, part->results, 8) : NULL;
    tally_shape plain = *part->shape;
    plain.out_stride = NULL;
    if (counts) {
        s = tally_reduce_shaped(part->device, &nothing, &plain, part->x, NULL, &counts);
        give_up(part, s, NULL);
    }
    free(counts);
}

/* ---- Fed ------------------------------------------------------------------------------------ */

size_t shaped_length(const struct shaped *part, size_t i) {
    return part->g.start[i + 1] - part->g.start[i];
}

tally_status shaped_feed(const struct shaped *part, tally_state *state, size_t i) {
    const size_t size = tally_type_size(part->problem->type), at = part->g.start[i];
    if (!part->staged.run)
        return tally_state_feed(state, part->device, part->g.x + at * size,
                                part->g.y ? part->g.y + at * size : NULL, shaped_length(part, i));
    const struct run *run = &part->staged.run[i];
    char *x = (char *)(uintptr_t)part->x, *y = (char *)(uintptr_t)part->y;
    return tally_state_feed_resident(state, part->device, x + run->x * (ptrdiff_t)size,
                                     y ? y + run->y * (ptrdiff_t)size : NULL, run->n);
}

/* Feeds the groups with the elements that stay on the device. */
static tally_status feed_runs(const struct shaped *part) {
    tally_state *state = NULL;
    tally_status s = tally_state_create(part->problem, &state);
    for (size_t i = 0; i < part->results && s == TALLY_OK; i++) {
        tally_state_clear(state);
        s = shaped_feed(part, state, i);
        if (s == TALLY_OK) s = tally_groups_add_state(part->groups, i, state);
    }
    tally_state_destroy(state);
    return s;
}

static void feed_groups(struct shaped *part) {
    tally_shape shape = *part->shape;
    const int is_gathered = !are_fed_whole(part->shape);
    tally_status s = tally_groups_create(part->problem, part->results, &part->groups);
    if (is_gathered)
        shape = (tally_shape){.cut = TALLY_GROUPS,
                              .n = part->g.start[part->results],
                              .count = part->results,
                              .ids = part->g.id,
                              .ids_type = TALLY_U64,
                              .sorted = 1};
    if (s == TALLY_OK)
        s = part->staged.run ? feed_runs(part)
                             : tally_groups_feed(part->groups, part->device, &shape,
                                                 is_gathered ? part->g.x : part->x,
                                                 is_gathered ? part->g.y : part->y);
    give_up(part, s, NULL);
}

/* ---- Begun and ended ------------------------------------------------------------------------ */

/* Makes room for the values of all results, none of which is longer than 8 bytes. */
static void make_answer(struct shaped *part) {
    size_t bytes;
    if (__builtin_mul_overflow(part->results, 8 * part->values, &bytes) ||
        bytes > INT_MAX - sizeof *part->answer) {
        give_up(part, TALLY_EINVAL, "the message is longer than MPI can send");
        return;
    }
    part->answer_bytes = sizeof *part->answer + bytes;
    part->answer = calloc(1, part->answer_bytes);
    if (!part->answer) {
        give_up(part, TALLY_ENOMEM, "no memory for the results");
        return;
    }
    part->answer->which = -1;
}

void shaped_begin(struct shaped *part, tally_device *device, int is_resident,
                  const tally_problem *problem, const tally_shape *shape, const void *x,
                  const void *y, void *const out[], int is_wanted) {
    *part = (struct shaped){.device = device, .problem = problem, .shape = shape, .x = x, .y = y};
    check(part, is_resident && device, out, is_wanted);
    if (part->status != TALLY_OK) return;
    const int are_groups = are_fed_whole(part->shape);
    make_answer(part);
    if (!are_groups && part->status == TALLY_OK) gather(part);
    const int by_states = !are_groups && (has_tree(problem) || asks_index(problem, part->values));
    if (!by_states && part->status == TALLY_OK) feed_groups(part);
}

void shaped_end(struct shaped *part) {
    free(part->g.start);
    free(part->g.x);
    free(part->g.y);
    free(part->g.id);
    free(part->g.place);
    staged_free(&part->staged);
    tally_groups_destroy(part->groups);
    free(part->answer);
}

/* ---- The values ----------------------------------------------------------------------------- */

static size_t value_bytes(const struct shaped *part, size_t v) {
    return tally_type_size(tally_problem_value_type(part->problem, v));
}

/* Returns where the results' v-th values are in the answer. */
static unsigned char *values_at(const struct shaped *part, size_t v) {
    return part->answer->values + 8 * part->results * v;
}

void shaped_lower_groups(struct shaped *part) {
    void *out[TALLY_VALUES_MAX];
    for (size_t v = 0; v < part->values; v++)
        out[v] = values_at(part, v);
    part->answer->status = tally_groups_values(part->groups, out);
    part->answer->which = 0;
}

/* A value that does not exist is an error, but for the index of no elements beside other values. */
void shaped_lower_state(struct shaped *part, size_t i, const tally_state *state) {
    tally_value value[TALLY_VALUES_MAX] = {{0}};
    tally_status s = tally_state_value(state, value);
    const int has_values = s == TALLY_OK; /* all but those that do not exist */
    for (size_t v = 0; v < part->values; v++) {
        const tally_op op = tally_problem_value_op(part->problem, v);
        const size_t size = value_bytes(part, v);
        const int is_there = has_values && value[v].type;
        uint64_t bits = 0;
        if (!is_there && part->values > 1 && (op == TALLY_ARGMIN || op == TALLY_ARGMAX))
            bits = UINT64_MAX;
        else if (!is_there && s == TALLY_OK)
            s = TALLY_ERANGE;
        memcpy(values_at(part, v) + i * size, is_there ? (const void *)&value[v].as : &bits, size);
    }
    if (part->answer->which < 0 || (part->answer->status == TALLY_OK && s != TALLY_OK)) {
        part->answer->status = s;
        part->answer->which = (int64_t)i;
    }
}

tally_status shaped_write(const struct shaped *part, char *line, size_t size) {
    const tally_status s = (tally_status)part->answer->status;
    for (size_t v = 0; v < part->values && part->out[v]; v++) {
        const size_t each = value_bytes(part, v);
        const unsigned char *from = values_at(part, v);
        if (!part->g.place) memcpy(part->out[v], from, part->results * each);
        for (size_t i = 0; i < part->results && part->g.place; i++)
            memcpy((char *)part->out[v] + part->g.place[i] * (ptrdiff_t)each, from + i * each,
                   each);
    }
    if (s != TALLY_OK && part->groups)
        snprintf(line, size, "%s", tally_error());
    else if (s != TALLY_OK)
        snprintf(line, size, "result %lld %s", (long long)part->answer->which,
                 s == TALLY_EINVAL ? "has no elements, so there is no index"
                                   : "does not fit its type");
    return s;
}
