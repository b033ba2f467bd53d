/*
 * shaped.c - many results at once: each rank's part of each of them, along axes, by segment or by group.
 *
 * Groups are fed as they are. The elements of axes and segments are first brought side by side, result by result;
 * then they are groups, too, whose numbers rise. Where an index is asked for, which counts within the result, or the
 * tree, whose leaves count within the result, each result has a state of its own instead.
 *
 * Arrays of a device come to the host first, but for long results, each of which the device reduces (staged.h).
 */
#include "explain.h"
#include "staged.h"
#include "task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements of all results, side by side: those of result i are [start[i], start[i + 1]). */
struct gathered {
    size_t results;
    size_t *start;
    char *x, *y;
    uint64_t *id;     /* of each element its result */
    ptrdiff_t *place; /* of each result its place in out[] */
};

static void gathered_free(struct gathered *g) {
    free(g->start);
    free(g->x);
    free(g->y);
    free(g->id);
    free(g->place);
}

/* What one rank works with. */
struct job {
    tally_device *device;
    const tally_problem *problem;
    const tally_shape *shape;
    const void *x, *y;
    void *const *out;
    int is_resident; /* the arrays are the device's */
    struct staged staged;
    size_t results, values;
    struct gathered g;
    tally_status status;
    char line[200];
};

static void give_up(struct job *j, tally_status status, const char *line) {
    if (j->status != TALLY_OK || status == TALLY_OK) return;
    j->status = status;
    snprintf(j->line, sizeof j->line, "%s", line ? line : tally_error());
}

/* ---- Elements in turn ----------------------------------------------------------------------- */

/* Calls visit() for each element that is there: its result, and where it stands in x and y. C order. */
struct walk {
    void (*visit)(struct walk *w, size_t result, ptrdiff_t x, ptrdiff_t y);
    struct gathered *g;
    const char *x, *y;
    size_t element;
    size_t *next; /* of each result, the place of its next element */
};

static uint64_t offset_of(const tally_shape *s, size_t i) {
    if (!s->offsets) return s->n / s->count * i;
    return s->offsets_type == TALLY_I32 ? (uint64_t)((const int32_t *)s->offsets)[i]
                                        : (uint64_t)((const int64_t *)s->offsets)[i];
}

static void walk_segments(const tally_shape *s, struct walk *w) {
    for (size_t i = 0; i < s->count; i++)
        for (size_t k = (size_t)offset_of(s, i); k < offset_of(s, i + 1); k++)
            if (!s->mask || s->mask[k]) w->visit(w, i, (ptrdiff_t)k, (ptrdiff_t)k);
}

/* Strides of C order, of all dimensions or of the kept ones. */
static void c_order(const tally_shape *s, int kept_only, ptrdiff_t *stride) {
    ptrdiff_t next = 1;
    for (unsigned d = s->dims; d-- > 0;) {
        const int is_there = !kept_only || !(s->axes >> d & 1);
        stride[d] = is_there ? next : 0;
        if (is_there) next *= (ptrdiff_t)s->length[d];
    }
}

static void walk_axes(const tally_shape *s, struct walk *w, ptrdiff_t *place) {
    ptrdiff_t plain[TALLY_DIMS_MAX], number[TALLY_DIMS_MAX];
    size_t index[TALLY_DIMS_MAX] = {0};
    c_order(s, 0, plain);
    c_order(s, 1, number);
    for (unsigned d = 0; d < s->dims; d++)
        if (s->length[d] == 0) return;
    for (;;) {
        ptrdiff_t result = 0, at = 0, x = 0, y = 0, mask = 0;
        for (unsigned d = 0; d < s->dims; d++) {
            const ptrdiff_t i = (ptrdiff_t)index[d];
            result += i * number[d];
            x += i * (s->x_stride ? s->x_stride : plain)[d];
            y += i * (s->y_stride ? s->y_stride : plain)[d];
            mask += i * (s->mask_stride ? s->mask_stride : plain)[d];
            if (s->out_stride && !(s->axes >> d & 1)) at += i * s->out_stride[d];
        }
        place[result] = s->out_stride ? at : result;
        if (!s->mask || s->mask[mask]) w->visit(w, (size_t)result, x, y);
        unsigned d = s->dims;
        while (d > 0 && ++index[d - 1] == s->length[d - 1])
            index[--d] = 0;
        if (d == 0) return;
    }
}

static void walk_all(const tally_shape *s, struct walk *w) {
    if (s->cut == TALLY_AXES)
        walk_axes(s, w, w->g->place);
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

/* calloc(), and never NULL where there is memory. */
static void *some(struct job *j, size_t count, size_t size) {
    void *room = calloc(count + 1, size);
    if (!room) give_up(j, TALLY_ENOMEM, "no memory for a copy of the elements");
    return room;
}

/* Where the results of a shape without elements go: as many as there are, in C order or by strides. */
static void place_results(const tally_shape *s, struct gathered *g) {
    ptrdiff_t number[TALLY_DIMS_MAX];
    for (size_t i = 0; i < g->results; i++)
        g->place[i] = (ptrdiff_t)i;
    if (s->cut != TALLY_AXES || !s->out_stride) return;
    c_order(s, 1, number);
    for (size_t i = 0; i < g->results; i++) {
        ptrdiff_t at = 0;
        for (unsigned d = 0; d < s->dims; d++)
            if (!(s->axes >> d & 1))
                at += (ptrdiff_t)i / number[d] % (ptrdiff_t)s->length[d] * s->out_stride[d];
        g->place[i] = at;
    }
}

/* The same of elements that stay on the device. */
static void count_runs(struct job *j) {
    struct gathered *g = &j->g;
    for (size_t i = 0; i < j->results; i++)
        g->start[i + 1] = g->start[i] + j->staged.run[i].n;
}

static void gather(struct job *j) {
    struct gathered *g = &j->g;
    struct walk w = {.visit = count_element,
                     .g = g,
                     .x = j->x,
                     .y = j->y,
                     .element = tally_type_size(j->problem->type)};
    g->results = j->results;
    g->start = some(j, j->results + 1, sizeof *g->start);
    g->place = some(j, j->results, sizeof *g->place);
    if (j->status != TALLY_OK) return;
    place_results(j->shape, g);
    if (j->staged.run) {
        count_runs(j);
        return;
    }
    walk_all(j->shape, &w);
    for (size_t i = 0; i < j->results; i++)
        g->start[i + 1] += g->start[i];
    const size_t n = g->start[j->results];
    w.next = some(j, j->results, sizeof *w.next);
    g->x = some(j, n, w.element);
    if (j->y) g->y = some(j, n, w.element);
    g->id = some(j, n, sizeof *g->id);
    if (j->status == TALLY_OK) {
        memcpy(w.next, g->start, j->results * sizeof *w.next);
        w.visit = copy_element;
        walk_all(j->shape, &w);
    }
    free(w.next);
}

/* ---- What is wrong with the arguments ------------------------------------------------------- */

static int takes_two(const tally_problem *p, size_t values) {
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

/* From here on shape, x and y are the host's, but for elements that stay on the device. */
static void bring(struct job *j) {
    const size_t element = tally_type_size(j->problem->type);
    const tally_status s =
        staged_bring(&j->staged, j->device, element, j->shape, j->x, j->y, j->results);
    give_up(j, s, s == TALLY_ENOMEM ? "no memory for a copy of a device's arrays" : NULL);
    j->shape = &j->staged.shape;
    j->x = j->staged.x;
    j->y = j->staged.y;
}

/* What can be wrong before anything is reduced. Groups are checked when they are fed. */
static void check(struct job *j) {
    tally_status s = j->problem ? tally_problem_values(j->problem, &j->values) : TALLY_EINVAL;
    if (!j->problem) give_up(j, s, "the problem is NULL");
    if (s == TALLY_OK) s = tally_shape_results(j->shape, &j->results);
    give_up(j, s, NULL);
    if (j->status != TALLY_OK) return;
    if (!j->out) give_up(j, TALLY_EINVAL, "out is NULL");
    for (size_t v = 0; v < j->values && j->out && j->results > 0; v++)
        if (!j->out[v]) give_up(j, TALLY_EINVAL, "an array of out is NULL");
    if (j->shape->cut == TALLY_GROUPS && has_tree(j->problem))
        give_up(j, TALLY_EUNSUPPORTED, "groups over the canonical tree cannot be merged");
    if (j->is_resident && j->status == TALLY_OK) bring(j);
    if (j->shape->cut == TALLY_GROUPS) return;
    if (j->shape->mask && asks_index(j->problem, j->values))
        give_up(j, TALLY_EUNSUPPORTED, "argmin and argmax of axes and segments take no mask");
    const int two = takes_two(j->problem, j->values);
    if (!two != !j->y)
        give_up(j, TALLY_EINVAL,
                two ? "dot takes two arrays, and y is NULL" : "only dot takes a y");
    if (j->staged.run) return; /* there are none if anything is wrong with the shape */
    /* What is wrong with the shape is told by counting its elements. */
    const tally_problem nothing = {.op = TALLY_COUNT, .type = j->problem->type};
    void *out = j->status == TALLY_OK ? some(j, j->results, 8) : NULL;
    tally_shape plain = *j->shape;
    plain.out_stride = NULL;
    if (out) {
        s = tally_reduce_shaped(j->device, &nothing, &plain, j->x, NULL, &out);
        give_up(j, s, NULL);
    }
    free(out);
}

/* ---- By groups ------------------------------------------------------------------------------ */

/* Feeds a state with the elements of result i. */
static tally_status feed_run(const struct job *j, tally_state *state, size_t i) {
    const struct run *run = &j->staged.run[i];
    const ptrdiff_t size = (ptrdiff_t)tally_type_size(j->problem->type);
    char *x = (char *)(uintptr_t)j->x, *y = (char *)(uintptr_t)j->y;
    return tally_state_feed_resident(state, j->device, x + run->x * size,
                                     y ? y + run->y * size : NULL, run->n);
}

/* Feeds the groups with the elements that stay on the device. */
static tally_status feed_groups(const struct job *j, tally_groups *groups) {
    tally_state *state = NULL;
    tally_status s = tally_state_create(j->problem, &state);
    for (size_t i = 0; i < j->results && s == TALLY_OK; i++) {
        tally_state_clear(state);
        s = feed_run(j, state, i);
        if (s == TALLY_OK) s = tally_groups_add_state(groups, i, state);
    }
    tally_state_destroy(state);
    return s;
}

static tally_status run_groups(struct job *j, MPI_Comm comm) {
    tally_groups *groups = NULL;
    struct task t;
    tally_shape shape = *j->shape;
    const void *x = j->x, *y = j->y;
    void *packed[TALLY_VALUES_MAX] = {NULL};
    const int gathered = shape.cut != TALLY_GROUPS;
    if (gathered && j->status == TALLY_OK) {
        shape = (tally_shape){.cut = TALLY_GROUPS,
                              .n = j->g.start[j->results],
                              .count = j->results,
                              .ids = j->g.id,
                              .ids_type = TALLY_U64,
                              .sorted = 1};
        x = j->g.x;
        y = j->g.y;
        for (size_t v = 0; v < j->values; v++)
            packed[v] = some(j, j->results, 8);
    }
    if (j->status == TALLY_OK)
        give_up(j, tally_groups_create(j->problem, j->results, &groups), NULL);
    if (j->status == TALLY_OK)
        give_up(j,
                j->staged.run ? feed_groups(j, groups)
                              : tally_groups_feed(groups, j->device, &shape, x, y),
                NULL);
    task_begin_groups(&t, j->problem, &groups, j->results, j->status, j->line, comm);
    tally_status s = task_run(&t);
    if (s == TALLY_OK) {
        s = tally_groups_values(groups, gathered ? packed : j->out);
        if (s != TALLY_OK) explain(s, "%s", tally_error());
        for (size_t v = 0; v < j->values && gathered; v++) {
            const ptrdiff_t size =
                (ptrdiff_t)tally_type_size(tally_problem_value_type(j->problem, v));
            for (size_t i = 0; i < j->results; i++)
                memcpy((char *)j->out[v] + j->g.place[i] * size,
                       (char *)packed[v] + (ptrdiff_t)i * size, (size_t)size);
        }
    }
    for (size_t v = 0; v < TALLY_VALUES_MAX; v++)
        free(packed[v]);
    tally_groups_destroy(groups);
    return s;
}

/* ---- By states ------------------------------------------------------------------------------ */

/* Writes the values of result i; says whether one that there is not is an error. */
static tally_status put_values(const struct job *j, size_t i, const tally_state *state) {
    tally_value value[TALLY_VALUES_MAX] = {{0}};
    tally_status s = tally_state_value(state, value);
    for (size_t v = 0; v < j->values; v++) {
        const tally_op op = tally_problem_value_op(j->problem, v);
        const size_t size = tally_type_size(tally_problem_value_type(j->problem, v));
        uint64_t bits = 0;
        const int is_there = s == TALLY_OK && value[v].type;
        char *to = (char *)j->out[v] + j->g.place[i] * (ptrdiff_t)size;
        if (!is_there && j->values > 1 && (op == TALLY_ARGMIN || op == TALLY_ARGMAX))
            bits = UINT64_MAX;
        else if (!is_there && s == TALLY_OK)
            s = TALLY_ERANGE;
        memcpy(to, is_there ? (const void *)&value[v].as : &bits, size);
    }
    return s;
}

static tally_status put_all(const struct job *j, tally_state *const *state) {
    tally_status first = TALLY_OK;
    for (size_t i = 0; i < j->results; i++) {
        const tally_status s = put_values(j, i, state[i]);
        if (s == TALLY_OK || first != TALLY_OK) continue;
        first = s;
        explain(s, "result %zu %s", i,
                s == TALLY_EINVAL ? "has no elements, so there is no index"
                                  : "does not fit its type");
    }
    return first;
}

/* Over the tree a result's elements stand behind those that the ranks before this one have of it. */
static tally_status place_elements(const struct job *j, uint64_t *before, MPI_Comm comm) {
    int rank, error = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    for (size_t i = 0; i < j->results; i++)
        before[i] = j->g.start[i + 1] - j->g.start[i];
    error = MPI_Exscan(MPI_IN_PLACE, before, (int)j->results, MPI_UINT64_T, MPI_SUM, comm);
    if (error != MPI_SUCCESS) return explain(TALLY_ELOST, "MPI failed in MPI_Exscan");
    if (rank == 0) memset(before, 0, j->results * sizeof *before);
    return TALLY_OK;
}

static void feed_states(struct job *j, tally_state **state, const uint64_t *before) {
    const size_t size = tally_type_size(j->problem->type);
    for (size_t i = 0; i < j->results && j->status == TALLY_OK; i++) {
        const size_t at = j->g.start[i], n = j->g.start[i + 1] - at;
        tally_status s = tally_state_create(j->problem, &state[i]);
        if (s == TALLY_OK) s = tally_state_begin_at(state[i], before[i]);
        if (s == TALLY_OK)
            s = j->staged.run ? feed_run(j, state[i], i)
                              : tally_state_feed(state[i], j->device, j->g.x + at * size,
                                                 j->g.y ? j->g.y + at * size : NULL, n);
        give_up(j, s, NULL);
    }
}

static tally_status run_states(struct job *j, MPI_Comm comm) {
    struct task t;
    tally_state **state = j->status == TALLY_OK ? some(j, j->results, sizeof *state) : NULL;
    uint64_t *before = j->status == TALLY_OK ? some(j, j->results, sizeof *before) : NULL;
    if (j->results > INT32_MAX) give_up(j, TALLY_EINVAL, "the message is longer than MPI can send");
    task_begin_nothing(&t, j->problem, j->results, j->status, j->line, comm);
    tally_status s = task_run(&t);
    const int goes_on = s == TALLY_OK && state && before; /* which follows from the first */
    if (goes_on && has_tree(j->problem)) s = place_elements(j, before, comm);
    if (goes_on && s == TALLY_OK) {
        feed_states(j, state, before);
        task_begin_states(&t, j->problem, state, j->results, j->status, j->line, comm, NULL);
        s = task_run(&t);
        if (s == TALLY_OK) s = put_all(j, state);
    }
    for (size_t i = 0; state && i < j->results; i++)
        tally_state_destroy(state[i]);
    free(state);
    free(before);
    return s;
}

static tally_status run(struct job *j, MPI_Comm comm) {
    const tally_problem *problem = j->problem;
    check(j);
    if (j->status == TALLY_OK && j->shape->cut != TALLY_GROUPS) gather(j);
    /* Which way follows from the problem, and for groups from the shape: a rank whose shape is of another kind, or
     * that has none, goes with the others' first message, which is the same for both. */
    const int by_states = problem && j->values > 0 && j->shape && j->shape->cut != TALLY_GROUPS &&
                          (has_tree(problem) || asks_index(problem, j->values));
    const tally_status s = by_states ? run_states(j, comm) : run_groups(j, comm);
    gathered_free(&j->g);
    staged_free(&j->staged);
    return s;
}

tally_status tally_mpi_allreduce_shaped(tally_device *device, const tally_problem *problem,
                                        const tally_shape *shape, const void *x, const void *y,
                                        void *const out[], MPI_Comm comm) {
    struct job j = {
        .device = device, .problem = problem, .shape = shape, .x = x, .y = y, .out = out};
    return run(&j, comm);
}

tally_status tally_mpi_allreduce_shaped_resident(tally_device *device, const tally_problem *problem,
                                                 const tally_shape *shape, void *x, void *y,
                                                 void *const out[], MPI_Comm comm) {
    struct job j = {.device = device,
                    .problem = problem,
                    .shape = shape,
                    .x = x,
                    .y = y,
                    .out = out,
                    .is_resident = device != NULL};
    return run(&j, comm);
}
