/*
 * shaped.c - many results at once over ranks, against tally_reduce_shaped() of the whole in one process.
 *
 *   mpirun -n P mpi_shaped [SEED]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tally_mpi.h"

enum { ROWS = 6, COLUMNS = 9100, DEPTH = 3, N = ROWS * COLUMNS };

static double x[N], y[N];
static unsigned char mask[N];
static uint64_t seed;
static int rank, ranks, wrong;

static uint64_t next_random(void) {
    uint64_t z = (seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static const struct {
    tally_problem problem;
    int is_tree, is_index;
} cases[] = {
    {{.op = TALLY_SUM, .type = TALLY_F64}, 0, 0},
    {{.op = TALLY_DOT, .type = TALLY_F64}, 0, 0},
    {{.op = TALLY_VAR, .type = TALLY_F64, .ddof = 1}, 0, 0},
    {{.op = TALLY_MAX, .type = TALLY_F64}, 0, 0},
    {{.op = TALLY_MEAN, .type = TALLY_F64, .also = {TALLY_COUNT, TALLY_ALL, TALLY_MIN}}, 0, 0},
    {{.op = TALLY_ARGMIN, .type = TALLY_F64}, 0, 1},
    {{.op = TALLY_DESCRIBE, .type = TALLY_F64}, 0, 1},
    {{.op = TALLY_PROD, .type = TALLY_F64}, 1, 0},
    {{.op = TALLY_NORM1, .type = TALLY_I64}, 0, 0}, /* some of which do not fit */
};

/* ---- Results to compare ---------------------------------------------------------------------- */

struct results {
    size_t values, count;
    void *of[TALLY_VALUES_MAX];
};

static struct results make(const tally_problem *p, const tally_shape *whole) {
    struct results r = {0};
    tally_problem_values(p, &r.values);
    tally_shape_results(whole, &r.count);
    for (size_t v = 0; v < r.values; v++)
        r.of[v] = calloc(r.count + 1, 8);
    return r;
}

static void destroy(struct results *r) {
    for (size_t v = 0; v < r->values; v++)
        free(r->of[v]);
}

static int same(const tally_problem *p, const struct results *a, const struct results *b) {
    int is_same = 1;
    for (size_t v = 0; v < a->values; v++) {
        const size_t size = tally_type_size(tally_problem_value_type(p, v));
        is_same &= memcmp(a->of[v], b->of[v], a->count * size) == 0;
    }
    return is_same;
}

/* Runs it on the ranks' parts and on the whole, and compares: the results of all ranks and of one, with waiting and without. */
static void check(const char *what, size_t i, const tally_shape *part, const double *px,
                  const double *py, const tally_shape *whole, const double *wx, const double *wy) {
    enum { ALL, ONE, LATER, ONE_LATER, FORMS };
    const tally_problem *p = &cases[i].problem;
    const MPI_Comm comm = MPI_COMM_WORLD;
    const int two = p->op == TALLY_DOT, root = (int)(next_random() % (uint64_t)ranks);
    const double *first = px, *second = two ? py : NULL;
    struct results nothing = make(p, whole), alone = make(p, whole), found[FORMS];
    tally_status status[FORMS];
    tally_mpi_request *request[FORMS];
    for (int form = 0; form < FORMS; form++)
        found[form] = make(p, whole);
    /* Where nothing is wanted, nothing need be given. */
    void *const *of_one = rank == root || i % 2 ? found[ONE].of : NULL,
                *const *one_later = rank == root || i % 2 ? found[ONE_LATER].of : NULL;
    const tally_status expected =
        tally_reduce_shaped(NULL, p, whole, wx, two ? wy : NULL, alone.of);
    status[ALL] = tally_mpi_allreduce_shaped(NULL, p, part, first, second, found[ALL].of, comm);
    status[ONE] = tally_mpi_reduce_shaped(NULL, p, part, first, second, of_one, root, comm);
    /* A shape and a problem may be gone before the request is. */
    tally_shape shape = *part;
    tally_problem problem = *p;
    tally_mpi_iallreduce_shaped(NULL, &problem, &shape, first, second, found[LATER].of, comm,
                                &request[LATER]);
    tally_mpi_ireduce_shaped(NULL, &problem, &shape, first, second, one_later, root, comm,
                             &request[ONE_LATER]);
    memset(&shape, 0xff, sizeof shape);
    memset(&problem, 0xff, sizeof problem);
    for (int k = 0; k < 2; k++) {
        const int form = LATER + (k ^ (rank & 1));
        status[form] = tally_mpi_wait(&request[form]);
    }
    for (int form = 0; form < FORMS; form++) {
        const int is_wanted = form % 2 == 0 || rank == root;
        if (status[form] != expected || !same(p, &found[form], is_wanted ? &alone : &nothing)) {
            wrong = 1;
            fprintf(stderr, "rank %d of %d: %s, %s, form %d: status %d, not %d: %s\n", rank, ranks,
                    what, tally_op_name(p->op), form, status[form], expected, tally_mpi_error());
        }
        destroy(&found[form]);
    }
    destroy(&alone);
    destroy(&nothing);
}

/* ---- What is reduced ------------------------------------------------------------------------- */

/* Where rank r begins, of n things that the ranks share; the second rank has none. */
static size_t begin(size_t n, int r) {
    if (ranks == 1) return r ? n : 0;
    const int q = r < 2 ? r : r - 1;
    return n * (size_t)q / (size_t)(ranks - 1);
}

static void axes(size_t i) {
    const size_t c0 = begin(COLUMNS, rank), c1 = begin(COLUMNS, rank + 1);
    const size_t all[] = {ROWS, COLUMNS}, mine[] = {ROWS, c1 - c0};
    const ptrdiff_t stride[] = {COLUMNS, 1}, turned[] = {-COLUMNS, 1};
    const int with_mask = !cases[i].is_index;
    tally_shape whole = {.cut = TALLY_AXES, .dims = 2, .length = all, .axes = 1 << 1};
    tally_shape part = whole;
    part.length = mine;
    part.x_stride = part.y_stride = part.mask_stride = stride;
    if (with_mask) whole.mask = mask, part.mask = mask + c0;
    check("rows", i, &part, x + c0, y + c0, &whole, x, y);

    /* From the last row to the first. */
    const double *last = x + (ROWS - 1) * COLUMNS;
    part.x_stride = whole.x_stride = turned;
    part.y_stride = whole.y_stride = turned;
    part.mask = whole.mask = NULL;
    check("rows upwards", i, &part, last + c0, y + (ROWS - 1) * COLUMNS + c0, &whole, last,
          y + (ROWS - 1) * COLUMNS);

    /* Each rank has rows, and columns are reduced. */
    const size_t r0 = begin(ROWS, rank), r1 = begin(ROWS, rank + 1), few = 40;
    const size_t high[] = {ROWS, few}, low[] = {r1 - r0, few};
    whole = (tally_shape){.cut = TALLY_AXES,
                          .dims = 2,
                          .length = high,
                          .x_stride = stride,
                          .y_stride = stride,
                          .axes = 1 << 0};
    part = whole;
    part.length = low;
    check("columns", i, &part, x + r0 * COLUMNS, y + r0 * COLUMNS, &whole, x, y);
    const ptrdiff_t back[] = {0, 1};
    part.out_stride = whole.out_stride = back;
    check("columns, out_stride", i, &part, x + r0 * COLUMNS, y + r0 * COLUMNS, &whole, x, y);
    const size_t d0 = begin(COLUMNS / 5, rank), d1 = begin(COLUMNS / 5, rank + 1);
    const size_t deep[] = {5, COLUMNS / 5, DEPTH}, cut[] = {5, d1 - d0, DEPTH};
    const ptrdiff_t cube[] = {1, 5, COLUMNS}, place[] = {1, 0, 5};
    whole = (tally_shape){.cut = TALLY_AXES,
                          .dims = 3,
                          .length = deep,
                          .x_stride = cube,
                          .y_stride = cube,
                          .axes = 1 << 1,
                          .out_stride = place};
    part = whole;
    part.length = cut;
    check("a cube", i, &part, x + 5 * d0, y + 5 * d0, &whole, x, y);
}

static void segments(size_t i) {
    enum { COUNT = 23 };
    static double px[N], py[N];
    int64_t whole_at[COUNT + 1] = {0}, part_at[COUNT + 1] = {0};
    size_t n = 0;
    for (size_t k = 0; k < COUNT; k++) { /* some are empty, one is long */
        const size_t length = k == 7 ? 20000 : next_random() % 5 ? next_random() % 300 : 0;
        const size_t a = begin(length, rank), b = begin(length, rank + 1);
        memcpy(px + n, x + whole_at[k] + a, (b - a) * sizeof *x);
        memcpy(py + n, y + whole_at[k] + a, (b - a) * sizeof *y);
        whole_at[k + 1] = whole_at[k] + (int64_t)length;
        n += b - a;
        part_at[k + 1] = (int64_t)n;
    }
    const tally_shape whole = {
        .cut = TALLY_SEGMENTS, .n = (size_t)whole_at[COUNT], .count = COUNT, .offsets = whole_at};
    const tally_shape part = {.cut = TALLY_SEGMENTS, .n = n, .count = COUNT, .offsets = part_at};
    check("segments", i, &part, px, py, &whole, x, y);
}

static void groups(size_t i) {
    enum { COUNT = 11 };
    static int32_t ids[N];
    tally_status expected = TALLY_OK;
    if (cases[i].is_tree) expected = TALLY_EUNSUPPORTED;
    for (size_t k = 0; k < N; k++)
        ids[k] = (int32_t)(next_random() % (COUNT + 2)) - 1;
    const size_t a = begin(N, rank), b = begin(N, rank + 1);
    tally_shape whole = {.cut = TALLY_GROUPS,
                         .n = N,
                         .count = COUNT,
                         .ids = ids,
                         .ids_type = TALLY_I32,
                         .skip_outside = 1,
                         .mask = mask};
    tally_shape part = whole;
    part.n = b - a;
    part.ids = ids + a;
    part.mask = mask + a;
    if (expected == TALLY_OK) {
        check("groups", i, &part, x + a, y + a, &whole, x, y);
        return;
    }
    double out[COUNT];
    const tally_status s = tally_mpi_allreduce_shaped(NULL, &cases[i].problem, &part, x + a, NULL,
                                                      (void *[]){out}, MPI_COMM_WORLD);
    if (s != expected) wrong = 1, fprintf(stderr, "groups over the tree: %d\n", s);
}

/* Segments and groups along the middle axis of OUTER x LENGTH x DEPTH elements, of which each rank has some of each. */
enum { OUTER = 4, LENGTH = 1500, PARTS = 9 };

static void segments_along(size_t i) {
    static double px[OUTER * LENGTH * DEPTH], py[OUTER * LENGTH * DEPTH];
    int32_t whole_at[PARTS + 1] = {0}, part_at[PARTS + 1] = {0};
    for (size_t k = 0; k < PARTS; k++) {
        const int32_t room = LENGTH - whole_at[k];
        int32_t length = k == 4 ? 700 : next_random() % 4 ? (int32_t)(next_random() % 200) : 0;
        if (length > room) length = room;
        whole_at[k + 1] = whole_at[k] + length;
        part_at[k + 1] =
            part_at[k] + (int32_t)(begin((size_t)length, rank + 1) - begin((size_t)length, rank));
    }
    const size_t n = (size_t)part_at[PARTS];
    for (size_t o = 0; o < OUTER; o++)
        for (size_t k = 0; k < PARTS; k++) {
            const size_t length = (size_t)(whole_at[k + 1] - whole_at[k]);
            const size_t from = (size_t)whole_at[k] + begin(length, rank);
            const size_t count = (size_t)(part_at[k + 1] - part_at[k]);
            const size_t to = (o * n + (size_t)part_at[k]) * DEPTH;
            memcpy(px + to, x + (o * LENGTH + from) * DEPTH, count * DEPTH * sizeof *x);
            memcpy(py + to, y + (o * LENGTH + from) * DEPTH, count * DEPTH * sizeof *y);
        }
    const size_t all[] = {OUTER, LENGTH, DEPTH}, mine[] = {OUTER, n, DEPTH};
    tally_shape whole = {.cut = TALLY_SEGMENTS,
                         .dims = 3,
                         .length = all,
                         .axes = 1 << 1,
                         .count = PARTS,
                         .offsets = whole_at,
                         .offsets_type = TALLY_I32};
    tally_shape part = whole;
    part.length = mine;
    part.offsets = part_at;
    check("segments along an axis", i, &part, px, py, &whole, x, y);
    const ptrdiff_t place[] = {1, OUTER, OUTER * PARTS};
    whole.out_stride = part.out_stride = place;
    check("the same, out_stride", i, &part, px, py, &whole, x, y);
}

static void groups_along(size_t i) {
    static int16_t ids[LENGTH];
    for (size_t k = 0; k < LENGTH; k++)
        ids[k] = (int16_t)(next_random() % (PARTS + 2) - 1);
    const size_t a = begin(LENGTH, rank), b = begin(LENGTH, rank + 1);
    const size_t all[] = {OUTER, LENGTH, DEPTH}, mine[] = {OUTER, b - a, DEPTH};
    const ptrdiff_t stride[] = {LENGTH * DEPTH, DEPTH, 1};
    tally_shape whole = {.cut = TALLY_GROUPS,
                         .dims = 3,
                         .length = all,
                         .axes = 1 << 1,
                         .count = PARTS,
                         .ids = ids,
                         .ids_type = TALLY_I16,
                         .skip_outside = 1};
    tally_shape part = whole;
    part.length = mine;
    part.ids = ids + a;
    part.x_stride = part.y_stride = part.mask_stride = stride;
    const double *px = x + a * DEPTH, *py = y + a * DEPTH;
    if (cases[i].is_index) {
        static double out[TALLY_VALUES_MAX][OUTER * PARTS * DEPTH];
        void *at[TALLY_VALUES_MAX];
        for (size_t v = 0; v < TALLY_VALUES_MAX; v++)
            at[v] = out[v];
        const tally_status s = tally_mpi_allreduce_shaped(NULL, &cases[i].problem, &part, px, NULL,
                                                          at, MPI_COMM_WORLD);
        if (s != TALLY_EUNSUPPORTED) wrong = 1, fprintf(stderr, "indices by id along: %d\n", s);
        return;
    }
    check("groups along an axis", i, &part, px, py, &whole, x, y);
    whole.mask = mask;
    part.mask = mask + a * DEPTH;
    check("the same with a mask", i, &part, px, py, &whole, x, y);
}

/* One rank fails; all say so. */
static void faults(void) {
    double out[ROWS];
    void *at[] = {out};
    const size_t all[] = {ROWS, 4};
    tally_shape good = {.cut = TALLY_AXES, .dims = 2, .length = all, .axes = 1 << 1}, bad = good;
    bad.dims = 99;
    const int me = rank == ranks - 1;
    for (size_t i = 0; i < 8; i += 7) {
        const tally_problem *p = &cases[i].problem;
        tally_status s =
            tally_mpi_allreduce_shaped(NULL, p, me ? &bad : &good, x, NULL, at, MPI_COMM_WORLD);
        if (s != TALLY_EINVAL) wrong = 1, fprintf(stderr, "a bad shape: %d\n", s);
        s = tally_mpi_allreduce_shaped(NULL, p, &good, me ? NULL : x, NULL, at, MPI_COMM_WORLD);
        if (s != TALLY_EINVAL) wrong = 1, fprintf(stderr, "x is NULL: %d\n", s);
        s = tally_mpi_allreduce_shaped(NULL, me ? NULL : p, &good, x, NULL, at, MPI_COMM_WORLD);
        if (s != TALLY_EINVAL) wrong = 1, fprintf(stderr, "no problem: %d\n", s);
        const int8_t ids[] = {0, 1, 2, 0};
        tally_shape along = {.cut = TALLY_GROUPS,
                             .dims = 2,
                             .length = all,
                             .axes = 1 << 1,
                             .count = me ? 2 : 3,
                             .ids = ids,
                             .ids_type = TALLY_I8};
        s = tally_mpi_allreduce_shaped(NULL, p, &along, x, NULL, at, MPI_COMM_WORLD);
        if (s != TALLY_EINVAL) wrong = 1, fprintf(stderr, "an id outside: %d\n", s);
    }
}

/* A sum that does not fit is 0, and an error; all other values of its result are written. */
static void one_that_does_not_fit(void) {
    const uint64_t row[] = {rank == 0 ? UINT64_MAX : 5, 7};
    const size_t length[] = {1, 2};
    const tally_problem p = {
        .op = TALLY_SUM, .type = TALLY_U64, .also = {TALLY_MAX, TALLY_ARGMAX, TALLY_COUNT}};
    const tally_shape shape = {.cut = TALLY_AXES, .dims = 2, .length = length, .axes = 1};
    uint64_t out[4][2], n = (uint64_t)ranks;
    void *at[] = {out[0], out[1], out[2], out[3]};
    const tally_status s =
        tally_mpi_allreduce_shaped(NULL, &p, &shape, row, NULL, at, MPI_COMM_WORLD);
    const uint64_t want[4][2] = {
        {ranks > 1 ? 0 : UINT64_MAX, 7 * n}, {UINT64_MAX, 7}, {0, 0}, {n, n}};
    if (s == (ranks > 1 ? TALLY_ERANGE : TALLY_OK) && memcmp(out, want, sizeof want) == 0) return;
    wrong = 1;
    fprintf(stderr, "a sum that does not fit: %d\n", s);
}

/* The last rank has no elements, and no arrays. */
static void no_elements_of_two_arrays(void) {
    const int is_empty = rank == ranks - 1;
    const size_t length[] = {is_empty ? 0 : 1, 2};
    const tally_problem p = {.op = TALLY_DOT, .type = TALLY_F64};
    const tally_shape shape = {.cut = TALLY_AXES, .dims = 2, .length = length, .axes = 1};
    const double three[] = {3, 4};
    double out[2];
    void *at[] = {out};
    const tally_status s = tally_mpi_allreduce_shaped(NULL, &p, &shape, is_empty ? NULL : three,
                                                      is_empty ? NULL : three, at, MPI_COMM_WORLD);
    if (s == TALLY_OK && out[0] == 9 * (ranks - 1) && out[1] == 16 * (ranks - 1)) return;
    wrong = 1;
    fprintf(stderr, "dot of no elements: %d, %s\n", s, tally_mpi_error());
}

/* Sums of integers in so many groups that their words are as many as those of one sum of floats. All elements are negative
 * and in some of the groups only. A new communicator has a frame too short for all words. */
static void negative_sums_in_groups(void) {
    enum { LEAST = 7, MOST = 14 };
    const int64_t values[] = {-1, -5, INT64_MIN / 64, -7};
    for (size_t first = 0; first < LEAST; first++)
        for (size_t count = LEAST; count <= MOST; count++) {
            const uint8_t ids[] = {(uint8_t)first, (uint8_t)first, (uint8_t)(first + 1) % LEAST,
                                   (uint8_t)(first + 3) % LEAST};
            const tally_problem p = {
                .op = TALLY_SUM, .type = TALLY_I64, .also = {count == MOST ? TALLY_NONZERO : 0}};
            const tally_shape shape = {
                .cut = TALLY_GROUPS, .n = 4, .count = count, .ids = ids, .ids_type = TALLY_U8};
            int64_t sums[MOST], want[MOST] = {0};
            uint64_t nonzero[MOST];
            void *at[] = {sums, nonzero};
            for (size_t i = 0; i < 4; i++)
                want[ids[i]] += values[i] * ranks;
            MPI_Comm comm;
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            const tally_status s =
                tally_mpi_allreduce_shaped(NULL, &p, &shape, values, NULL, at, comm);
            MPI_Comm_free(&comm);
            if (s == TALLY_OK && memcmp(sums, want, count * sizeof *sums) == 0) continue;
            wrong = 1;
            fprintf(stderr, "negative sums in %zu groups from %zu on: %d, %s\n", count, first, s,
                    tally_mpi_error());
        }
}

/* Groups whose indices count within each group, and whether or not other values are asked. */
static void indices_within_groups(void) {
    for (int k = 0; k < 3; k++) {
        const tally_problem p = {.op = k == 2 ? TALLY_SUM : TALLY_ARGMIN,
                                 .type = TALLY_F64,
                                 .also = {k == 1 ? TALLY_COUNT : 0}};
        const double values[] = {3, 1, 2, rank == ranks - 1 ? -1 : 2};
        const uint64_t n = (uint64_t)ranks, want[] = {0, 3 * n - 1};
        const double sums[] = {(double)(3 * n), (double)(5 * n - 3)};
        const uint8_t ids[] = {0, 1, 1, 1};
        const tally_shape shape = {
            .cut = TALLY_GROUPS, .n = 4, .count = 2, .ids = ids, .ids_type = TALLY_U8};
        tally_groups *groups = NULL;
        uint64_t at[2], counts[2];
        int is_right = tally_groups_create(&p, 2, &groups) == TALLY_OK &&
                       tally_groups_index_within(groups) == TALLY_OK &&
                       tally_groups_feed(groups, NULL, &shape, values, NULL) == TALLY_OK &&
                       tally_mpi_allreduce_groups(&p, 2, &groups, MPI_COMM_WORLD) == TALLY_OK &&
                       tally_groups_values(groups, (void *[]){at, counts}) == TALLY_OK &&
                       memcmp(at, k == 2 ? (const void *)sums : want, sizeof at) == 0;
        tally_groups_destroy(groups);
        if (is_right) continue;
        wrong = 1;
        fprintf(stderr, "indices within groups, %d: %s\n", k, tally_mpi_error());
    }
}

/* Each rank has 2^62 elements, so that two ranks have more than a word tells. */
static void too_many_elements(void) {
    const tally_problem problems[] = {{.op = TALLY_ARGMIN, .type = TALLY_F64},
                                      {.op = TALLY_SUM, .type = TALLY_F64}};
    for (size_t k = 0; k < 12; k++) {
        const tally_problem *p = &problems[k % 4 == 3];
        const size_t count = 1 + k % 3;
        tally_state *state[3] = {NULL};
        tally_value value;
        int is_right = 1;
        for (size_t i = 0; i < count; i++) {
            is_right &= tally_state_create(p, &state[i]) == TALLY_OK;
            is_right &= tally_state_feed(state[i], NULL, x, NULL, 1) == TALLY_OK;
            for (int twice = 0; twice < 62 && i + 1 == count; twice++)
                is_right &= tally_state_merge(state[i], state[i]) == TALLY_OK;
        }
        const uint64_t n = tally_state_count(state[count - 1]);
        const tally_status s = tally_mpi_allreduce_states(p, state, count, MPI_COMM_WORLD);
        is_right &= ranks == 1 ? s == TALLY_OK : s == TALLY_ERANGE || s == TALLY_EFORMAT;
        is_right &= tally_state_count(state[count - 1]) == n;
        is_right &= tally_state_value(state[count - 1], &value) == TALLY_OK;
        for (size_t i = 0; i < count; i++)
            tally_state_destroy(state[i]);
        if (is_right) continue;
        wrong = 1;
        fprintf(stderr, "too many elements of %s in %zu states: %d, %s\n", tally_op_name(p->op),
                count, s, tally_mpi_error());
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    for (size_t i = 0; i < N; i++) {
        x[i] = ((double)(next_random() >> 11) * 0x1p-52 + 0.5) * (next_random() & 1 ? -1 : 1);
        y[i] = (double)(next_random() >> 11) * 0x1p-53;
        mask[i] = next_random() % 4 != 0;
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        axes(i);
        segments(i);
        groups(i);
        segments_along(i);
        groups_along(i);
    }
    faults();
    one_that_does_not_fit();
    no_elements_of_two_arrays();
    negative_sums_in_groups();
    indices_within_groups();
    too_many_elements();
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) puts(all ? "wrong" : "right");
    MPI_Finalize();
    return all;
}
