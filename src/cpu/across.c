/*
 * across.c - see across.h.
 *
 * Results are taken in blocks, whose states are planes of columns (columns.h). How a block's elements become
 * rows of columns:
 *   DIRECT   results lie side by side in memory: rows are read where they are.
 *   FOLDED   the elements of one result, or of few results together, lie side by side: they are read as an
 *            array of some dozens of columns, which are merged at the end.
 *   TRANSPOSED   as FOLDED, but rows are short: blocks of them are transposed in the cache.
 *   COPIED   any strides: the same, element by element.
 * Sums of rows that lie one behind another are taken from running totals first, as those of segments are (segments.c).
 * A block with many elements is cut into parts for several threads. Results of a few elements each are mostly done
 * without states (few_rows.c), block by block; a block where that is not certain is done again with them.
 */
#include "cpu/across.h"

#include "base/paths.h"
#include "base/scratch.h"
#include "base/status.h"
#include "base/stop.h"
#include "base/types.h"
#include "base/unaligned.h"
#include "cpu/columns.h"
#include "cpu/kernels.h"
#include "cpu/rows.h"
#include "cpu/tuning.h"
#include "exact/lower.h"
#include "exact/round.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(ACROSS_STOP_ELEMENTS / ACROSS_WIDTH >= ACROSS_STOP_ROWS, "a piece has rows");

/* Elements from one transposed row of FEW_COLUMNS to the next: no power of two. */
#define FEW_PITCH (FEW_COLUMNS + COLUMN_STEP)

#define FORM_BIT(form) (1u << (form))

enum way { DIRECT, FOLDED, TRANSPOSED, COPIED };

struct across {
    const struct shaped *s;
    const struct problem *p;
    const struct column_kernels *k;
    enum way way;
    size_t element;
    unsigned forms;           /* FORM_BIT()s */
    unsigned plane_of[FORMS]; /* where a form's planes begin in a block */
    unsigned planes;
    struct extent inner_kept, inner; /* the innermost of both kinds; length 1 where there is none */
    unsigned outer_kept, outer;      /* how many are outside of them */
    size_t width;                    /* columns of a block */
    size_t fold;        /* FOLDED: rows side by side, of `unit` columns: a power of two */
    size_t unit;        /* results that lie side by side and are folded together */
    size_t blocks;      /* of the innermost kept dimension */
    size_t total;       /* blocks in all */
    size_t parts, each; /* of the outermost reduced dimension; its elements a part */
    size_t group;       /* blocks of a task, where they have one part; of segments, these */
    few_kernel *few; /* for results of a few elements; NULL: none does these, or they have more */
    int divides;     /* values are divided by the number of elements */
    int runs;        /* rows are summed by running totals where these are exact */
    uint64_t *kept;  /* the planes of all parts, where there are several */
    unsigned char *todo; /* results that are left, if any */
    struct worker *workers;
    int failed; /* there was no memory to mark a result */
    /* The fallback, by exact sums, for blocks with uncertain results; NULL: this is the fallback. */
    struct across *exact;
    int again; /* some result of several parts is uncertain */
    int *halt; /* stop_shared()'s */
};

/* A worker's arrays and progress. */
struct worker {
    struct absence absence;
    size_t since;                /* elements since it last looked whether to stop */
    struct scratch scratch;      /* has all that follows */
    uint64_t *planes;            /* of a block */
    uint64_t *fold, *transposed; /* planes of what is being folded, and these transposed */
    struct room tile, tile2;     /* elements of x and of y as rows of columns */
    double *value[4];            /* s, e, b; n */
    uint64_t bits[ACROSS_WIDTH + COLUMN_STEP];
    unsigned char ok[ACROSS_WIDTH + COLUMN_STEP];
    uint64_t *running; /* room for running totals of segments and rows */
    unsigned failed,
        wait;    /* consecutive failures of the fast path; blocks to skip it for (see WAIT_MOST) */
    int certain; /* all results of the block are; else ok[] says which */
    const unsigned char
        *order; /* segments: which one a column is, where they are sorted; else NULL */
};

/* Returns whether the fast path should be tried on the next block (see WAIT_MOST). */
static int may_try(struct worker *h) {
    if (h->wait == 0) return 1;
    h->wait--;
    return 0;
}

static void note_try(struct worker *h, int succeeded) {
    h->wait = succeeded ? 0 : h->failed;
    h->failed = succeeded ? 0 : h->failed < WAIT_MOST ? h->failed + 1 : WAIT_MOST;
}

/* ---- What is needed ------------------------------------------------------------------------- */

/* Returns the forms that a value needs, as FORM_BIT()s; 0 if there are none, and the value is done
 * row by row. */
static unsigned forms_of(const struct problem *p, tally_op op, tally_type out) {
    const tally_type type = p->type;
    const int wide = type == TALLY_I64 || type == TALLY_U64;
    const int narrow =
        type_is_float(type) ? type != TALLY_F64 && out != TALLY_F64 : type_size(type) < 4;
    const unsigned sum = wide ? FORM_WIDE : narrow ? FORM_SUM1 : FORM_SUM2;
    switch (op) {
    case TALLY_SUM:
    case TALLY_MEAN:
        return FORM_BIT(sum);
    case TALLY_VAR:
    case TALLY_STD:
        if (wide || p->ddof > 0x1p20 || p->ddof != (double)(uint64_t)p->ddof) return 0;
        return FORM_BIT(FORM_SUM2) | FORM_BIT(FORM_SQUARES);
    case TALLY_NORM1:
        return wide ? 0 : FORM_BIT(FORM_MAGNITUDES);
    case TALLY_NORM2:
    case TALLY_SUMSQ:
        return wide ? 0 : FORM_BIT(FORM_SQUARES);
    case TALLY_DOT:
        return wide ? 0 : FORM_BIT(FORM_PRODUCTS);
    case TALLY_MIN:
    case TALLY_MAX:
    case TALLY_NORMINF:
        return FORM_BIT(FORM_ORDER);
    case TALLY_ARGMIN:
        return FORM_BIT(FORM_LEAST);
    case TALLY_ARGMAX:
        return FORM_BIT(FORM_GREATEST);
    case TALLY_AND:
        return FORM_BIT(FORM_AND);
    case TALLY_OR:
        return FORM_BIT(FORM_OR);
    case TALLY_XOR:
        return FORM_BIT(FORM_XOR);
    case TALLY_NONZERO:
    case TALLY_ANY:
    case TALLY_ALL:
        return FORM_BIT(FORM_NONZERO);
    case TALLY_NANS:
    case TALLY_COUNT:
        return FORM_BIT(FORM_NANS);
    default:
        return 0;
    }
}

#if defined(TALLY_DEBUG)
static const char *const no_form = "the value has no form: it is done row by row";

/* Returns why columns cannot have this value of these elements, or NULL; and the plan. */
static const char *never_in_forms(unsigned op, unsigned type, struct problem *p) {
    const char *why = problem_path(op, type, p);
    return why                                                                 ? why
           : problem_has(p, MONOID_TREE) || !forms_of(p, op, p->value[0].type) ? no_form
                                                                               : NULL;
}

static const char *const way_names[] = {[DIRECT] = "side by side",
                                        [FOLDED] = "folded",
                                        [TRANSPOSED] = "transposed",
                                        [COPIED] = "copied"};
static const struct path_axis way_axis = PATH_AXIS(way_names);
static const char *never_across(const struct path_table *t, const unsigned at[PATH_AXES]) {
    struct problem p;
    (void)t;
    if (at[0] == TRANSPOSED && at[1] == TALLY_DOT) return "two arrays are copied";
    return never_in_forms(at[1], at[2], &p);
}
PATH_TABLE(across_paths, "across", never_across, &way_axis, &path_ops, &path_types);

enum { CERTAIN, LEFT_TO_ROWS, LEFT_TO_EXACT_SUMS };
static const char *const outcome_names[] = {[CERTAIN] = "certain",
                                            [LEFT_TO_ROWS] = "left to rows",
                                            [LEFT_TO_EXACT_SUMS] = "left to exact sums"};
static const struct path_axis outcome_axis = PATH_AXIS(outcome_names);
static const char *never_rounded(const struct path_table *t, const unsigned at[PATH_AXES]) {
    struct problem p;
    const char *why = never_in_forms(at[1], at[2], &p);
    const int is_variance = at[1] == TALLY_VAR || at[1] == TALLY_STD;
    (void)t;
    if (why) return why;
    if (p.monoids >= MONOID_BIT(MONOID_FAST) || p.monoids == 0 || at[1] == TALLY_NANS)
        return "the value is not rounded";
    if (at[0] != CERTAIN && !type_is_float(p.value[0].type))
        return "sums of integers that are asked for as floats are exact before";
    if (forms_of(&p, p.value[0].op, p.value[0].type) & FORM_BIT(FORM_WIDE))
        return "sums of 64-bit integers are exact";
    if (at[0] == LEFT_TO_EXACT_SUMS)
        return is_variance && type_is_float(p.type) ? NULL : "it is of exact sums";
    if (at[0] == LEFT_TO_ROWS && at[1] == TALLY_NORM2 && !type_is_float(p.type) &&
        type_size(p.type) < 4)
        return "no known sum of a few squares of such integers has a root so near a tie";
    return NULL;
}
PATH_TABLE(rounded_paths, "results of columns, rounded", never_rounded, &outcome_axis, &path_ops,
           &path_types);
#endif

/* Sets the forms and their planes; returns 0 where rows are better. */
static int plan_forms(struct across *a) {
    const struct problem *p = a->p;
    for (unsigned v = 0; v < p->values; v++) {
        const unsigned forms = forms_of(p, p->value[v].op, p->value[v].type);
        if (forms == 0) return 0;
        a->forms |= forms;
        const tally_op op = p->value[v].op;
        a->divides |= op == TALLY_MEAN || op == TALLY_VAR || op == TALLY_STD;
    }
    if (a->forms & FORM_BIT(FORM_SUM2)) a->forms &= ~FORM_BIT(FORM_SUM1);
    for (unsigned f = 0; f < FORMS; f++) {
        if (!(a->forms & FORM_BIT(f))) continue;
        a->plane_of[f] = a->planes;
        a->planes += a->k->form[f][p->type].planes;
    }
    return 1;
}

/* for_forms(f, a) ...: each form of a problem. */
#define for_forms(f, a)                                                                            \
    for (unsigned f##_left = (a)->forms, f;                                                        \
         f##_left && (f = (unsigned)__builtin_ctz(f##_left), 1); f##_left &= f##_left - 1)

static const struct column_form *form_of(const struct across *a, unsigned f) {
    return &a->k->form[f][a->p->type];
}

/* Chooses the way; returns 0 where rows are better. */
static int plan_way(struct across *a) {
    const struct shaped *s = a->s;
    const struct extent *k = &a->inner_kept, *r = &a->inner;
    const int indexed = (a->p->extremes & WANT_INDEX) != 0;
    const unsigned simple =
        MONOID_BIT(MONOID_SUM) | MONOID_BIT(MONOID_BITS) | MONOID_BIT(MONOID_EXTREMES);
    if (s->each >= (size_t)1 << 31) return 0;
    a->unit = 1;
    a->fold = 1;
    if (r->x == 1 && r->length * a->element >= LONG_BYTES && !(a->p->monoids & ~simple) && !indexed)
        return 0;
    if (r->x == 1 && r->length >= FOLD_LEAST) {
        a->way = FOLDED;
        a->fold = COLUMN_STEP;
        a->width = 128;
    } else if (k->x == 1 && k->length < FOLD_COLS && r->x == (ptrdiff_t)k->length &&
               r->length > 8) {
        a->way = FOLDED;
        a->unit = k->length;
        while (a->fold * a->unit < FOLD_COLS)
            a->fold *= 2;
        a->width = a->unit;
    } else if (k->x == 1 && k->length > 1) {
        a->way = DIRECT;
        a->width = 4096 / a->element < ACROSS_WIDTH ? 4096 / a->element : ACROSS_WIDTH;
    } else {
        a->way = r->x == 1 && !s->y ? TRANSPOSED : COPIED;
        a->width = a->element == 8 ? 128 : 256;
        if (k->length < COLUMN_STEP / 2 && s->each > 4096) return 0; /* few long rows */
    }
    if (s->y) /* both arrays have to lie alike */
        for (unsigned i = 0; i < s->keeps + s->reduces; i++) {
            const struct extent *e = i < s->keeps ? &s->kept[i] : &s->reduced[i - s->keeps];
            if (e->x != e->y) return 0;
        }
    return 1;
}

#if defined(TALLY_DEBUG)
enum { FEW_DIRECT, FEW_TRANSPOSED, FEW_SEGMENTS };
static const char *const few_names[] = {
    [FEW_DIRECT] = "side by side", [FEW_TRANSPOSED] = "transposed", [FEW_SEGMENTS] = "segments"};
static const struct path_axis few_axis = PATH_AXIS(few_names);
static const char *const success_names[] = {"uncertain", "certain"};
static const struct path_axis success_axis = PATH_AXIS(success_names);
static const char *never_few(const struct path_table *t, const unsigned at[PATH_AXES]) {
    struct problem p;
    const char *why = problem_path(at[2], at[3], &p);
    (void)t;
    if (why) return why;
    if (at[2] > TALLY_ARGMAX || !cpu_columns_named(cpu_kernels_best()->isa)->few[at[2]][at[3]])
        return "no kernel does a few elements";
    return !at[1] && p.monoids == MONOID_BIT(MONOID_EXTREMES) ? "comparisons are certain" : NULL;
}
PATH_TABLE(few_paths, "results of a few elements", never_few, &few_axis, &success_axis, &path_ops,
           &path_types);
#endif

/* Returns the kernel for results of `each` elements that gives all values at once, or NULL. */
static few_kernel *plan_few(const struct across *a, size_t each) {
    const struct problem *p = a->p;
    const tally_op op = p->value[0].op;
    const int index = op == TALLY_ARGMIN || op == TALLY_ARGMAX;
    const int divides = op == TALLY_VAR || op == TALLY_STD;
    if (p->values != 1 || op > TALLY_ARGMAX || each < 2 || each > FEW_ROWS) return NULL;
    if (index ? type_size(p->value[0].type) != 8 : p->value[0].type != p->type) return NULL;
    if (divides && p->ddof >= (double)each) return NULL;
    return a->k->few[op][p->type];
}

/* ---- Adding --------------------------------------------------------------------------------- */

/* Column `at` of a form's planes. */
static uint64_t *column_at(const struct across *a, unsigned f, uint64_t *planes, size_t stride,
                           size_t at) {
    return (uint64_t *)(void *)((char *)(planes + a->plane_of[f] * stride) +
                                at * form_of(a, f)->lane);
}

static void clear_planes(const struct across *a, uint64_t *planes, size_t stride, size_t at,
                         size_t width, uint64_t first) {
    for_forms(f, a) form_of(a, f)->clear(column_at(a, f, planes, stride, at), stride, width, first);
}

/* Adds rows to columns [at, at + width). */
static void add_rows(const struct across *a, uint64_t *planes, size_t stride, size_t at,
                     const struct column_rows *in, size_t width) {
    for_forms(f, a) {
        const struct column_form *form = form_of(a, f);
        uint64_t *into = column_at(a, f, planes, stride, at);
        if (in->starts && !form->starts) form->clear(into, stride, width, in->first);
        form->add(into, stride, in, width);
    }
}

/* Columns [at, at + width) of one block become those from `to` on of another. */
static void copy_columns(const struct across *a, uint64_t *into, size_t into_stride, size_t to,
                         const uint64_t *from, size_t stride, size_t at, size_t width) {
    for_forms(f, a) {
        const struct column_form *form = form_of(a, f);
        const size_t lane = form->lane;
        for (unsigned k = a->plane_of[f]; k < a->plane_of[f] + form->planes; k++) {
            char *x = (char *)(into + k * into_stride) + to * lane;
            const char *y = (const char *)(from + k * stride) + at * lane;
            if (width > 1)
                memcpy(x, y, width * lane);
            else if (lane == 4)
                memcpy(x, y, 4);
            else
                memcpy(x, y, 8);
        }
    }
}

/* Returns the bytes of a tile of `rows` rows, `pitch` elements apart. */
static size_t tile_bytes(const struct across *a, size_t rows, size_t pitch) {
    return rows * pitch * a->element;
}

/* Adds n elements of the innermost reduced dimension from x on, of each of `width` results; they are the first
 * of all where `starts`. */
static void add_run(const struct across *a, struct worker *h, uint64_t *planes, size_t stride,
                    const char *x, const char *y, size_t n, size_t width, uint64_t first,
                    int starts) {
    const ptrdiff_t element = (ptrdiff_t)a->element;
    const ptrdiff_t row = a->inner.x * element, column = a->inner_kept.x * element;
    if (a->way == DIRECT) {
        const struct column_rows in = {x, y, row, row, n, first, 1, starts};
        add_rows(a, planes, stride, 0, &in, width);
        return;
    }
    for (size_t m, at = 0; at < n; at += m) {
        m = n - at < ACROSS_TILE_ROWS ? n - at : ACROSS_TILE_ROWS;
        char *tile = room_for(h->tile, tile_bytes(a, m, a->width)),
             *tile2 = y ? room_for(h->tile2, tile_bytes(a, m, a->width)) : NULL;
        if (a->way == TRANSPOSED)
            a->k->transpose[a->element](x + (ptrdiff_t)at * row, column, width, m, a->width, tile);
        else
            for (size_t r = 0; r < m; r++)
                for (size_t c = 0; c < width; c++) {
                    const ptrdiff_t from = (ptrdiff_t)(at + r) * row + (ptrdiff_t)c * column;
                    const size_t to = (r * a->width + c) * a->element;
                    switch (a->element) {
                    case 1:
                        tile[to] = x[from];
                        break;
                    case 2:
                        memcpy(tile + to, x + from, 2);
                        break;
                    case 4:
                        memcpy(tile + to, x + from, 4);
                        break;
                    default:
                        memcpy(tile + to, x + from, 8);
                    }
                    if (y) memcpy(tile2 + to, y + from, a->element);
                }
        const ptrdiff_t pitch = (ptrdiff_t)(a->width * a->element);
        const struct column_rows in = {tile, tile2,      pitch, pitch,
                                       m,    first + at, 1,     starts && at == 0};
        add_rows(a, planes, stride, 0, &in, width);
    }
}

/* Room for COLUMN_STEP results of as many columns, or for one unit. */
#define FOLD_STRIDE (COLUMN_STEP * COLUMN_STEP + COLUMN_STEP)
_Static_assert(FOLD_STRIDE >= 2 * FOLD_COLS + COLUMN_STEP,
               "a unit has fewer than FOLD_COLS results");

/* Adds n elements that lie side by side, of each of `unit` results, to the columns that are folded, which are
 * those from `at` on. */
static void add_folded(const struct across *a, uint64_t *planes, size_t at, const char *x,
                       const char *y, size_t n, uint64_t first, int starts) {
    const size_t width = a->fold * a->unit, rows = n / a->fold, rest = n % a->fold;
    const ptrdiff_t pitch = (ptrdiff_t)(width * a->element), done = pitch * (ptrdiff_t)rows;
    struct column_rows in = {x, y, pitch, pitch, rows, first, a->fold, starts};
    if (rows > 0)
        add_rows(a, planes, FOLD_STRIDE, at, &in, width);
    else if (starts)
        clear_planes(a, planes, FOLD_STRIDE, at, width, first);
    if (rest == 0) return;
    in = (struct column_rows){x + done, y ? y + done : NULL,    pitch, pitch,
                              1,        first + rows * a->fold, 1,     0};
    add_rows(a, planes, FOLD_STRIDE, at, &in, rest * a->unit);
}

/* Merges the folded columns into the first `unit`. */
static void merge_folded(const struct across *a, uint64_t *planes) {
    for (unsigned f = FORM_LEAST; f <= FORM_GREATEST;
         f++) { /* the index within a row of the fold */
        if (!(a->forms & FORM_BIT(f))) continue;
        uint64_t *index = planes + (a->plane_of[f] + 1) * FOLD_STRIDE;
        for (size_t c = 0; c < a->fold * a->unit; c++) {
            if (form_of(a, f)->lane == 4)
                ((int32_t *)index)[c] += (int32_t)(c / a->unit);
            else
                index[c] += c / a->unit;
        }
    }
    for (size_t half = a->fold / 2; half > 0; half /= 2)
        for_forms(f, a) {
            uint64_t *at = planes + a->plane_of[f] * FOLD_STRIDE;
            form_of(a, f)->merge(at, 0, at, half * a->unit, FOLD_STRIDE, half * a->unit);
        }
}

/* Returns whether results are folded one by one to COLUMN_STEP columns each, and then merged as
 * many at once. */
static int has_batches(const struct across *a) {
    return a->unit == 1 && a->fold == COLUMN_STEP;
}

/* Merges the columns of each of `count` results in h->fold into one column of h->transposed. There
 * equal columns of all results lie side by side, as one merge takes them. */
static void merge_batch(const struct across *a, struct worker *h, size_t count) {
    for_forms(f, a) {
        const struct column_form *form = form_of(a, f);
        const size_t lane = form->lane, first = a->plane_of[f];
        uint64_t *at = h->transposed + first * FOLD_STRIDE;
        for (size_t k = 0; k < form->planes; k++)
            a->k->transpose[lane]((const char *)(h->fold + (first + k) * FOLD_STRIDE),
                                  (ptrdiff_t)(COLUMN_STEP * lane), count, COLUMN_STEP, COLUMN_STEP,
                                  (char *)(at + k * FOLD_STRIDE));
        if (f == FORM_LEAST || f == FORM_GREATEST) /* the index within a row of the fold */
            for (size_t c = 0; c < COLUMN_STEP * COLUMN_STEP; c++) {
                if (lane == 4)
                    ((int32_t *)(at + FOLD_STRIDE))[c] += (int32_t)(c / COLUMN_STEP);
                else
                    at[FOLD_STRIDE + c] += c / COLUMN_STEP;
            }
        for (size_t half = COLUMN_STEP * COLUMN_STEP / 2; half >= COLUMN_STEP; half /= 2)
            form->merge(at, 0, at, half, FOLD_STRIDE, half);
    }
}

/* ---- Running totals --------------------------------------------------------------------------- */

/* Returns whether all forms are sums, of a type that has running totals (segments.c). */
static int sums_only(const struct across *a) {
    return a->k->segments[a->p->type] != NULL &&
           (a->forms == FORM_BIT(FORM_SUM1) || a->forms == FORM_BIT(FORM_SUM2));
}

#if defined(TALLY_DEBUG)
enum { ROWS_RUN, SEGMENTS_RUN };
static const char *const run_names[] = {[ROWS_RUN] = "rows", [SEGMENTS_RUN] = "segments"};
static const struct path_axis run_axis = PATH_AXIS(run_names);
static const char *const exact_names[] = {"not exact", "exact"};
static const struct path_axis exact_axis = PATH_AXIS(exact_names);
static const char *never_run(const struct path_table *t, const unsigned at[PATH_AXES]) {
    struct problem p;
    const char *why = problem_path(at[2], at[3], &p);
    (void)t;
    if (why) return why;
    if (!cpu_columns_named(cpu_kernels_best()->isa)->segments[at[3]])
        return "such elements have no running totals";
    if (at[2] != TALLY_SUM && at[2] != TALLY_MEAN) return "running totals are of sums";
    return !at[1] && !type_is_float(p.type) ? "those of integers are exact" : NULL;
}
PATH_TABLE(run_paths, "running totals", never_run, &run_axis, &exact_axis, &path_ops, &path_types);
#endif

/* Folds segments that are too long for running totals: numbers which[0..count) of a block, up to COLUMN_STEP of them,
 * whose columns they become. */
static void add_long(const struct across *a, struct worker *h, const char *x, const size_t *start,
                     const unsigned char *which, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const size_t at = start[which[i]], n = start[which[i] + 1] - at;
        add_folded(a, h->fold, i * a->fold, x + at * a->element, NULL, n, 0, 1);
    }
    merge_batch(a, h, count);
    for (size_t i = 0; i < count; i++)
        copy_columns(a, h->planes, a->width + COLUMN_STEP, which[i], h->transposed, FOLD_STRIDE, i,
                     1);
}

/* Sums `count` segments of x by running totals, as many at a time as SEGMENTS_PIECE elements have room
 * for, and longer ones one by one. Segments that are too long for a column get an infinite bound.
 * Returns 0 if some sum is not exact, or the forms are other than sums. */
static int add_running(const struct across *a, struct worker *h, const char *x, const size_t *start,
                       size_t count) {
    const size_t stride = a->width + COLUMN_STEP;
    double *s = (double *)h->planes, *e = s + stride, *b = e + stride;
    unsigned char which[COLUMN_STEP] = {0};
    size_t longer = 0;
    if (!sums_only(a)) return 0;
    for (size_t m, i = 0; i < count; i += m) {
        for (m = 0; i + m + 16 <= count && start[i + m + 16] - start[i] <= SEGMENTS_PIECE;)
            m += 16;
        while (i + m < count && start[i + m + 1] - start[i] <= SEGMENTS_PIECE)
            m++;
        if (m > 0 && !a->k->segments[a->p->type](x, start + i, m, h->running, s + i, e + i)) {
            TALLY_PATH_OF_VALUE(run_paths, a->p, a->runs ? ROWS_RUN : SEGMENTS_RUN, 0u);
            return 0;
        }
        memset(b + i, 0, m * sizeof *b);
        if (m > 0) continue;
        m = 1;
        if ((start[i + 1] - start[i]) * a->element >= LONG_BYTES) {
            TALLY_PATH("a segment that is left");
            s[i] = e[i] = 0;
            b[i] = (double)INFINITY;
            continue;
        }
        which[longer++] = (unsigned char)i;
        if (longer < COLUMN_STEP) continue;
        TALLY_PATH("many segments that are longer than a piece");
        add_long(a, h, x, start, which, longer);
        longer = 0;
    }
    if (longer > 0) {
        TALLY_PATH("segments that are longer than a piece");
        add_long(a, h, x, start, which, longer);
    }
    TALLY_PATH_OF_VALUE(run_paths, a->p, a->runs ? ROWS_RUN : SEGMENTS_RUN, 1u);
    return 1;
}

/* Returns whether the results are of rows that lie one behind another, of a length for which
 * running totals are best. */
static int rows_run(const struct across *a) {
    const size_t n = a->s->each, transposed = a->element == 8 ? 12 : TRANSPOSED_BEST;
    return (a->way == TRANSPOSED || a->way == FOLDED) && a->outer == 0 && a->inner.x == 1 &&
           !a->s->y && a->inner_kept.x == (ptrdiff_t)n && n > transposed && n <= SEGMENTS_PIECE &&
           n * a->element <= RUN_BYTES && a->width <= SEGMENTS_BLOCK;
}

/* Sums the rows of a block, which lie one behind another, as segments. Returns as add_running(). */
static int add_rows_running(const struct across *a, struct worker *h, const char *x, size_t count) {
    size_t start[SEGMENTS_BLOCK + COLUMN_STEP + 1] = {0};
    for (size_t i = 0; i <= count; i++)
        start[i] = i * a->s->each;
    return add_running(a, h, x, start, count);
}

/* A block: where its elements and its results begin, and which results they are. */
struct block {
    const char *x, *y;
    ptrdiff_t out;
    size_t number, row; /* of the first result: among the caller's, and in the order of rows.h */
    size_t first,
        width; /* the block's results, [first, first + width) of the innermost dimension */
};

static struct block block_of(const struct across *a, size_t block) {
    const struct shaped *s = a->s;
    const ptrdiff_t element = (ptrdiff_t)a->element;
    size_t outer = block / a->blocks;
    struct block at = {s->x, s->y, s->out_first, s->number_first, 0, block % a->blocks * a->width,
                       0};
    at.row = outer * a->inner_kept.length + at.first;
    at.width =
        a->inner_kept.length - at.first < a->width ? a->inner_kept.length - at.first : a->width;
    for (unsigned k = a->outer_kept; k-- > 0;) {
        const struct extent *e = &s->kept[k];
        const size_t i = outer % e->length;
        outer /= e->length;
        at.x += (ptrdiff_t)i * e->x * element;
        at.out += (ptrdiff_t)i * e->out;
        at.number += i * e->number;
    }
    at.x += (ptrdiff_t)at.first * a->inner_kept.x * element;
    if (s->y) at.y = s->y + (at.x - s->x);
    at.out += (ptrdiff_t)at.first * a->inner_kept.out;
    at.number += at.first * a->inner_kept.number;
    return at;
}

static int is_halted(const struct across *a) {
    return __atomic_load_n(a->halt, __ATOMIC_RELAXED);
}

/* Returns whether a task has to stop before the next `elements` elements. */
static int halts(const struct across *a, struct worker *h, size_t elements) {
    h->since += elements;
    if (h->since < ACROSS_STOP_ELEMENTS) return is_halted(a);
    h->since = 0;
    return stop_shared(a->halt);
}

/* Elements [from, to) of the outermost reduced dimension, of a block's results or of one unit of them, become columns
 * from `column` on. */
static void add_part(const struct across *a, struct worker *h, uint64_t *planes, size_t stride,
                     size_t column, const char *x, const char *y, size_t width, size_t from,
                     size_t to) {
    const struct shaped *s = a->s;
    const ptrdiff_t element = (ptrdiff_t)a->element;
    const size_t most = ACROSS_STOP_ELEMENTS / width / ACROSS_STOP_ROWS * ACROSS_STOP_ROWS;
    size_t begin = 0, end = a->inner.length, runs = 1, first_run = 0;
    for (unsigned k = 0; k < a->outer; k++)
        runs *= s->reduced[k].length;
    if (a->outer == 0) {
        begin = from;
        end = to;
    } else { /* the outermost dimension is cut */
        const size_t inside = runs / s->reduced[0].length;
        first_run = from * inside;
        runs = to * inside;
    }
    for (size_t run = first_run; run < runs; run++) {
        ptrdiff_t move = (ptrdiff_t)begin * a->inner.x;
        size_t outer = run;
        for (unsigned k = a->outer; k-- > 0;) {
            move += (ptrdiff_t)(outer % s->reduced[k].length) * s->reduced[k].x;
            outer /= s->reduced[k].length;
        }
        const char *x2 = x + move * element, *y2 = y ? y + move * element : NULL;
        const uint64_t first = run * a->inner.length + begin;
        for (size_t m, at = 0; at < end - begin; at += m) {
            const ptrdiff_t on = (ptrdiff_t)at * a->inner.x * element;
            const int starts = run == first_run && at == 0;
            m = end - begin - at < most ? end - begin - at : most;
            if (halts(a, h, m * width)) return;
            if (a->way == FOLDED)
                add_folded(a, planes, column, x2 + on, y2 ? y2 + on : NULL, m, first + at, starts);
            else
                add_run(a, h, planes, stride, x2 + on, y2 ? y2 + on : NULL, m, width, first + at,
                        starts);
        }
    }
}

/* ---- Lowering ------------------------------------------------------------------------------- */

/* Returns the number of column i's result in the block. */
static size_t result_of(const struct worker *h, size_t i) {
    return h->order ? h->order[i] : i;
}

static uint64_t lane_of(const uint64_t *plane, unsigned lane, size_t i) {
    return lane == 4 ? (uint64_t)(int64_t)((const int32_t *)plane)[i] : plane[i];
}

static void lower_order(const struct across *a, struct worker *h, const uint64_t *planes,
                        size_t stride, size_t width, int greatest) {
    const tally_type type = a->p->type;
    const uint64_t all = low_bits(type_bits(type)), top = UINT64_C(1) << (type_bits(type) - 1);
    const uint64_t *low = planes + a->plane_of[FORM_ORDER] * stride;
    struct key_bits how = {.greatest = greatest, .infinity = INT64_MAX, .all = all};
    if (type == TALLY_U32 || type == TALLY_U64) how.turn = (int64_t)top;
    if (type_is_float(type)) {
        const tally_value inf = float_infinity(type, 0), quiet = float_nan(type);
        how.flip = (int64_t)(top - 1);
        how.infinity = (int64_t)tally_value_bits(&inf);
        how.nan = tally_value_bits(&quiet);
    }
    a->k->unkey(low, low + stride, form_of(a, FORM_ORDER)->lane, width, &how, h->bits);
}

/* Lowers a greatest magnitude: that of the least element, or of the greatest. */
static void lower_magnitude(const struct across *a, struct worker *h, const uint64_t *planes,
                            size_t stride, size_t width, tally_type out, const struct block *at,
                            unsigned v) {
    const tally_type type = a->p->type;
    uint64_t least[ACROSS_WIDTH + COLUMN_STEP];
    lower_order(a, h, planes, stride, width, 0);
    memcpy(least, h->bits, width * sizeof *least);
    lower_order(a, h, planes, stride, width, 1);
    for (size_t i = 0; i < width; i++) {
        const uint64_t x = type_magnitude(type, least[i]), y = type_magnitude(type, h->bits[i]);
        h->bits[i] = x > y ? x : y; /* a NaN's bits are greater than any other magnitude's */
        if (out == TALLY_I64 && h->bits[i] > INT64_MAX) {
            TALLY_PATH("beyond i64");
            h->bits[i] = 0;
            shaped_absent(&h->absence, at->number + result_of(h, i) * a->inner_kept.number,
                          TALLY_ERANGE, v);
        }
    }
}

/* Sums of 64-bit integers. */
static void lower_wide(const struct across *a, struct worker *h, const uint64_t *planes,
                       size_t stride, size_t width, tally_type out, int mean,
                       const struct block *at, unsigned v) {
    const uint64_t *low = planes + a->plane_of[FORM_WIDE] * stride, *high = low + stride;
    const int is_signed = a->p->type == TALLY_I64;
    for (size_t i = 0; i < width; i++) {
        const __int128 upper = is_signed ? (__int128)(int64_t)high[i] : (__int128)high[i];
        struct exact_sum sum;
        exact_sum_clear(&sum);
        sum.mixed = 1;
        exact_sum_add(&sum, upper * ((__int128)1 << 32) + (__int128)low[i], 0);
        tally_value value;
        if (mean)
            value = exact_quotient(&sum, a->s->each, 0, a->s->each, out);
        else if (type_is_float(out)) {
            TALLY_PATH("to a float");
            value = exact_round(&sum, a->s->each, out);
        } else if (!exact_integer(&sum, out, &value)) {
            TALLY_PATH("an integer that does not fit");
            value = value_of_bits(out, 0);
            shaped_absent(&h->absence, at->number + result_of(h, i) * a->inner_kept.number,
                          TALLY_ERANGE, v);
        }
        h->bits[i] = tally_value_bits(&value);
    }
}

/* Sums of integers, kept as doubles. Those that are too large, or not exact, are not certain. */
static void lower_integers(struct worker *h, const double *s, const double *e, const double *b,
                           size_t width, int is_signed) {
    h->certain = 0; /* to be looked at one by one */
    for (size_t i = 0; i < width; i++) {
        h->ok[i] = b[i] == 0 && s[i] < 0x1p62 && s[i] > -0x1p62 && (is_signed || s[i] >= 0);
        h->bits[i] = h->ok[i] ? (uint64_t)((int64_t)s[i] + (int64_t)e[i]) : 0;
        if (!h->ok[i]) TALLY_PATH("an integer that is left");
    }
}

static void lower_real(const struct across *a, struct worker *h, const uint64_t *planes,
                       size_t stride, size_t width, tally_op op, tally_type out) {
    const enum form form = op == TALLY_NORM1                ? FORM_MAGNITUDES
                           : op == TALLY_SUMSQ              ? FORM_SQUARES
                           : op == TALLY_NORM2              ? FORM_SQUARES
                           : op == TALLY_DOT                ? FORM_PRODUCTS
                           : a->forms & FORM_BIT(FORM_SUM2) ? FORM_SUM2
                                                            : FORM_SUM1;
    const int near = (a->forms & FORM_BIT(FORM_MOMENTS)) != 0;
    const double *s = (const double *)planes + a->plane_of[near ? FORM_MOMENTS : form] * stride,
                 *e = s + stride, *b = e + stride;
    if (!type_is_float(out)) {
        lower_integers(h, s, e, b, width, out == TALLY_I64);
        return;
    }
    if (op == TALLY_MEAN || op == TALLY_VAR || op == TALLY_STD || op == TALLY_NORM2) {
        const double *q =
            near ? s + 3 * stride : (const double *)planes + a->plane_of[FORM_SQUARES] * stride;
        const size_t bytes = width * sizeof(double);
        memcpy(h->value[0], s, bytes);
        memcpy(h->value[1], e, bytes);
        memcpy(h->value[2], b, bytes);
        if (op == TALLY_MEAN)
            a->k->mean(h->value[0], h->value[1], h->value[2], width, h->value[3]);
        else if (op == TALLY_NORM2)
            a->k->root(h->value[0], h->value[1], h->value[2], width);
        else
            a->k->variance(h->value[0], h->value[1], h->value[2], q, q + stride, q + 2 * stride,
                           width, h->value[3], a->p->ddof, op == TALLY_STD,
                           near ? a->k->near[a->p->type] : 0);
        s = h->value[0];
        e = h->value[1];
        b = h->value[2];
    }
    h->certain = a->k->round(s, e, b, width, out, h->bits, h->ok);
    TALLY_PATH_OF(rounded_paths,
                  h->certain ? CERTAIN
                  : a->exact ? LEFT_TO_EXACT_SUMS
                             : LEFT_TO_ROWS,
                  (unsigned)op, (unsigned)a->p->type);
    if (!type_is_float(a->p->type)) /* sums of integers have no negative zeros */
        for (size_t i = 0; i < width; i++)
            if (h->bits[i] == UINT64_C(1) << (type_bits(out) - 1)) h->bits[i] = 0;
}

/* Sets h->bits to one value of all columns; h->certain and h->ok say which are certain. */
static void lower_value(const struct across *a, struct worker *h, const uint64_t *planes,
                        size_t stride, const struct block *at, unsigned v) {
    const tally_op op = a->p->value[v].op;
    const tally_type out = a->p->value[v].type;
    const size_t width = at->width;
    h->certain = 1;
    switch (op) {
    case TALLY_MIN:
    case TALLY_MAX:
        lower_order(a, h, planes, stride, width, op == TALLY_MAX);
        return;
    case TALLY_NORMINF:
        lower_magnitude(a, h, planes, stride, width, out, at, v);
        return;
    case TALLY_ARGMIN:
    case TALLY_ARGMAX:
    case TALLY_NONZERO:
    case TALLY_ANY:
    case TALLY_ALL:
    case TALLY_NANS:
    case TALLY_AND:
    case TALLY_OR:
    case TALLY_XOR: {
        const unsigned f = (unsigned)__builtin_ctz(forms_of(a->p, op, out)),
                       lane = form_of(a, f)->lane;
        const int index = op == TALLY_ARGMIN || op == TALLY_ARGMAX;
        const uint64_t *plane = planes + (a->plane_of[f] + (unsigned)index) * stride;
        for (size_t i = 0; i < width; i++) {
            h->bits[i] = lane_of(plane, lane, i);
            if (op == TALLY_ANY) h->bits[i] = h->bits[i] != 0;
            if (op == TALLY_ALL) h->bits[i] = h->bits[i] == a->s->each;
        }
        return;
    }
    case TALLY_COUNT:
        for (size_t i = 0; i < width; i++)
            h->bits[i] = a->s->each;
        return;
    default:
        if (a->forms & FORM_BIT(FORM_WIDE))
            lower_wide(a, h, planes, stride, width, out, op == TALLY_MEAN, at, v);
        else
            lower_real(a, h, planes, stride, width, op, out);
    }
}

#define PUT(type)                                                                                  \
    do {                                                                                           \
        typedef type __attribute__((aligned(1), may_alias)) unaligned;                             \
        unaligned *to = (unaligned *)a->s->out[v] + at->out;                                       \
        for (size_t i = 0; i < at->width; i++)                                                     \
            to[(ptrdiff_t)result_of(h, i) * a->inner_kept.out] = (type)h->bits[i];                 \
    } while (0)

/* Writes the bits of one value. */
static void put(const struct across *a, const struct worker *h, const struct block *at,
                unsigned v) {
    const size_t size = type_size(a->p->value[v].type);
    if (!h->order && a->inner_kept.out == 1) {
        TALLY_PATH("side by side");
        a->k->put[size]((char *)a->s->out[v] + at->out * (ptrdiff_t)size, h->bits, at->width,
                        a->s->results * size >= STREAM_BYTES);
        return;
    }
    TALLY_PATH("one by one");
    switch (size) {
    case 1:
        PUT(uint8_t);
        break;
    case 2:
        PUT(uint16_t);
        break;
    case 4:
        PUT(uint32_t);
        break;
    default:
        PUT(uint64_t);
    }
}

/* Makes non-temporal stores visible to other threads before the task ends: an ordinary store tells
 * them of its end, and may overtake these. */
static void finish_writing(void) {
#if defined(__x86_64__)
    __builtin_ia32_sfence(); /* elsewhere nothing is written past the caches */
#endif
}

/* Marks a result that is left to cpu_rows(). */
static void mark(struct across *a, size_t row) {
    unsigned char *todo = __atomic_load_n(&a->todo, __ATOMIC_ACQUIRE);
    if (!todo) { /* the first of all */
        unsigned char *mine = calloc(a->s->results, 1);
        if (!mine)
            __atomic_store_n(&a->failed, 1, __ATOMIC_RELAXED);
        else if (__atomic_compare_exchange_n(&a->todo, &todo, mine, 0, __ATOMIC_ACQ_REL,
                                             __ATOMIC_ACQUIRE))
            todo = mine;
        else
            free(mine);
    }
    if (todo) todo[row] = 1;
}

/* Writes the results of a block, and returns 1. Those that are uncertain are marked; or, where there is an exact way
 * in which the block is then to be done again, returns 0. */
static int lower_block(struct across *a, struct worker *h, const uint64_t *planes, size_t stride,
                       const struct block *at) {
    for (unsigned v = 0; v < a->p->values; v++) {
        lower_value(a, h, planes, stride, at, v);
        put(a, h, at, v);
        if (h->certain || memchr(h->ok, 0, at->width) == NULL) continue;
        if (a->exact) return 0;
        for (size_t i = 0; i < at->width; i++)
            if (!h->ok[i]) mark(a, at->row + result_of(h, i));
    }
    return 1;
}

/* ---- Results of a few elements -------------------------------------------------------------- */

/* Writes `width` results of `each` elements to `out`, and returns 1; or returns 0, and they are to
 * be done with states: `few` may be NULL. They are `column` bytes apart, and their elements `row`;
 * if results do not lie side by side, elements do. */
static int reduce_few(const struct across *a, struct worker *h, few_kernel *few, const char *x,
                      ptrdiff_t row, ptrdiff_t column, size_t each, size_t width, char *out) {
    const size_t size = type_size(a->p->value[0].type);
    char *bits = (char *)h->bits;
    struct few_rows in = {.x = x, .row = row, .rows = each, .ahead = 4096, .ddof = a->p->ddof};
    if (!few || width < COLUMN_STEP) return 0;
    if (!may_try(h)) {
        TALLY_PATH("not tried");
        return 0;
    }
    int certain = 1;
    if (a->way == DIRECT)
        certain = few(&in, width, bits);
    else {
        char *tile = room_for(h->tile, tile_bytes(a, each, FEW_PITCH));
        in = (struct few_rows){tile, FEW_PITCH * (ptrdiff_t)a->element, each, 0, a->p->ddof};
        const size_t most = width < FEW_COLUMNS ? width : FEW_COLUMNS;
        for (size_t c = 0, done = 0; certain && done < width; done = c + most, c = done) {
            if (c > width - most) c = width - most;
            a->k->transpose[a->element](x + (ptrdiff_t)c * column, column, most, each, FEW_PITCH,
                                        tile);
            certain = few(&in, most, bits + c * size);
        }
    }
    if (certain) a->k->copy(out, bits, width * size, a->s->results * size >= STREAM_BYTES);
    note_try(h, certain);
    TALLY_PATH_OF_VALUE(few_paths, a->p,
                        a->s->cut == TALLY_SEGMENTS ? FEW_SEGMENTS
                        : a->way == DIRECT          ? FEW_DIRECT
                                                    : FEW_TRANSPOSED,
                        (unsigned)certain);
    return certain;
}

/* ---- Tasks ---------------------------------------------------------------------------------- */

static void add_block(const struct across *a, struct worker *h, uint64_t *planes,
                      const struct block *at, size_t from, size_t to) {
    const size_t stride = a->width + COLUMN_STEP;
    const ptrdiff_t step = a->inner_kept.x * (ptrdiff_t)a->element;
    if (a->runs) {
        if (halts(a, h, at->width * a->s->each)) return;
        if (may_try(h)) {
            const int is_done = add_rows_running(a, h, at->x, at->width);
            note_try(h, is_done);
            if (is_done) return;
        }
    }
    if (a->way != FOLDED) {
        add_part(a, h, planes, stride, 0, at->x, at->y, at->width, from, to);
        return;
    }
    const size_t most = has_batches(a) ? COLUMN_STEP : a->unit;
    for (size_t m, i = 0; i < at->width; i += m) {
        m = at->width - i < most ? at->width - i : most;
        for (size_t j = 0; j < m; j += a->unit) {
            const ptrdiff_t move = (ptrdiff_t)(i + j) * step;
            add_part(a, h, h->fold, FOLD_STRIDE, j * a->fold, at->x + move,
                     at->y ? at->y + move : NULL, a->unit, from, to);
        }
        if (has_batches(a))
            merge_batch(a, h, m);
        else
            merge_folded(a, h->fold);
        copy_columns(a, planes, stride, i, has_batches(a) ? h->transposed : h->fold, FOLD_STRIDE, 0,
                     m);
    }
}

static size_t block_words(const struct across *a) {
    return (a->width + COLUMN_STEP) * a->planes;
}

static void across_task(void *context, size_t task, unsigned worker) {
    struct across *a = context;
    struct worker *h = &a->workers[worker];
    const size_t length = a->outer ? a->s->reduced[0].length : a->inner.length;
    if (a->parts > 1) {
        TALLY_PATH("a part of a block");
        const struct block at = block_of(a, task / a->parts);
        const size_t from = task % a->parts * a->each;
        add_block(a, h, a->kept + task * block_words(a), &at, from,
                  from + a->each < length ? from + a->each : length);
        return;
    }
    const size_t end = (task + 1) * a->group < a->total ? (task + 1) * a->group : a->total;
    for (size_t block = task * a->group; block < end; block++) {
        const struct block at = block_of(a, block);
        const ptrdiff_t element = (ptrdiff_t)a->element;
        if (reduce_few(a, h, a->few, at.x, a->inner.x * element, a->inner_kept.x * element, length,
                       at.width,
                       (char *)a->s->out[0] + at.out * (ptrdiff_t)type_size(a->p->value[0].type)))
            continue;
        for (struct across *way = a; way; way = way->exact) {
            add_block(way, h, h->planes, &at, 0, length);
            if (is_halted(a)) return;
            if (lower_block(way, h, h->planes, a->width + COLUMN_STEP, &at)) break;
        }
    }
    finish_writing();
}

static void merge_task(void *context, size_t block, unsigned worker) {
    struct across *a = context;
    const struct block at = block_of(a, block);
    const size_t stride = a->width + COLUMN_STEP;
    uint64_t *first = a->kept + block * a->parts * block_words(a);
    for (size_t part = 1; part < a->parts; part++)
        for_forms(f, a) {
            uint64_t *into = first + a->plane_of[f] * stride;
            form_of(a, f)->merge(into, 0, into + part * block_words(a), 0, stride, at.width);
        }
    if (!lower_block(a, &a->workers[worker], first, stride, &at)) {
        TALLY_PATH("again");
        __atomic_store_n(&a->again, 1, __ATOMIC_RELAXED);
    }
    finish_writing();
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* Elements of a tile: each of the functions that write one needs rows times pitch of them. */
static size_t tile_elements(const struct across *a) {
    const int segments = a->s->cut == TALLY_SEGMENTS;
    size_t most = 0;
    if (a->way == TRANSPOSED || a->way == COPIED || segments) most = ACROSS_TILE_ROWS * a->width;
    if (segments || a->few) most = larger(most, (size_t)FEW_ROWS * FEW_PITCH);
    if (segments) most = larger(most, (size_t)(SEGMENTS_SHORT + GATHER_MORE) * COLUMN_STEP);
    return most;
}

/* Lays out a worker's arrays. Kernels read and write whole steps of columns, also behind a block's
 * last column. */
static void lay_out(const struct across *a, struct worker *h) {
    struct scratch *s = &h->scratch;
    const size_t fold = FOLD_STRIDE * a->planes, tile = tile_elements(a);
    const size_t columns = (a->s->cut == TALLY_AXES ? a->width : ACROSS_WIDTH) + COLUMN_STEP;
    const int runs = a->s->cut == TALLY_SEGMENTS || a->runs;
    h->planes = scratch_array(s, block_words(a), sizeof(uint64_t));
    h->fold = scratch_array(s, fold, sizeof(uint64_t));
    h->transposed = scratch_array(s, fold, sizeof(uint64_t));
    h->tile = scratch_take(s, tile, a->element);
    h->tile2 = scratch_take(s, a->s->y ? tile : 0, a->element);
    for (int k = 0; k < 4; k++)
        h->value[k] = scratch_array(s, columns, sizeof(double));
    h->running = scratch_array(s, runs ? SEGMENTS_ROOM : 0, sizeof(uint64_t));
    for (size_t i = 0; i < columns && s->memory; i++)
        h->value[3][i] = (double)a->s->each;
}

static int make_workers(struct across *a, unsigned threads) {
    a->workers = calloc(threads, sizeof *a->workers);
    if (!a->workers) return 0;
    for (unsigned i = 0; i < threads; i++) {
        struct worker *h = &a->workers[i];
        h->absence.number = UINT64_MAX;
        lay_out(a, h);
        if (!scratch_create(&h->scratch, 1)) return 0;
        lay_out(a, h);
    }
    return 1;
}

static void finish_hands(struct across *a, unsigned threads, struct absence *absence,
                         tally_status *status) {
    for (unsigned i = 0; i < threads && a->workers; i++) {
        const struct absence *found = &a->workers[i].absence;
        if (a->workers[i].scratch.memory && found->number != UINT64_MAX)
            shaped_absent(absence, found->number, found->status, found->value);
        scratch_destroy(&a->workers[i].scratch);
    }
    free(a->workers);
    if (a->failed) *status = fail(TALLY_ENOMEM, "no memory for a reduction in parts");
}

/* Returns how many of `total` pieces of `bytes` bytes make a task, so that each thread gets several
 * tasks if there are enough pieces. */
static size_t group_of(size_t total, size_t bytes, unsigned threads) {
    const size_t group = ACROSS_GROUP_BYTES / (bytes + 1) + 1,
                 most = total / ((size_t)threads * 8) + 1;
    return group < most ? group : most;
}

static void plan_parts(struct across *a, unsigned threads) {
    const size_t length = a->outer ? a->s->reduced[0].length : a->inner.length;
    const size_t bytes = a->width * a->s->each * a->element, wanted = (size_t)threads * 8;
    size_t parts = 1;
    if (threads > 1 && a->total < wanted) parts = (wanted + a->total - 1) / a->total;
    if (parts > bytes / PART_BYTES) parts = bytes / PART_BYTES;
    if (parts < bytes / ACROSS_TASK_BYTES) parts = bytes / ACROSS_TASK_BYTES;
    if (parts > length) parts = length;
    if (parts < 1) parts = 1;
    a->each = length > 0 ? (length + parts - 1) / parts : 1;
    a->parts = (length + a->each - 1) / a->each;
    a->group = group_of(a->total, bytes, threads);
}

/* Returns whether all values are variances, of a type for which approximate sums suffice. */
static int wants_moments(const struct across *a) {
    for (unsigned v = 0; v < a->p->values; v++)
        if (a->p->value[v].op != TALLY_VAR && a->p->value[v].op != TALLY_STD) return 0;
    return a->k->form[FORM_MOMENTS][a->p->type].planes == a->planes;
}

/* Does all blocks; where they are cut, first their parts, which are then merged. */
static tally_status run_blocks(struct cpu_device *d, struct across *a) {
    const struct shaped *s = a->s;
    const tally_status status = cpu_share(
        d, s->results * s->each * a->element,
        a->parts > 1 ? a->total * a->parts : (a->total + a->group - 1) / a->group, across_task, a);
    if (status == TALLY_OK && *a->halt) return stop_status();
    if (status != TALLY_OK || a->parts == 1) return status;
    return cpu_share(d, a->total * block_words(a) * 8, a->total, merge_task, a);
}

int cpu_across(struct cpu_device *d, const struct shaped *s, unsigned char **todo,
               struct absence *absence, tally_status *status) {
    const struct extent one = {.length = 1};
    int halt = 0;
    struct across a = {.s = s, .p = s->p, .k = cpu_columns_named(d->kernels->isa), .halt = &halt},
                  exact;
    *todo = NULL;
    a.element = type_size(s->p->type);
    if (s->each == 0 || s->results == 0 || s->mask || problem_has(s->p, MONOID_TREE)) return 0;
    a.outer_kept = s->keeps > 0 ? s->keeps - 1 : 0;
    a.outer = s->reduces > 0 ? s->reduces - 1 : 0;
    a.inner_kept = s->keeps ? s->kept[a.outer_kept] : one;
    a.inner = s->reduces ? s->reduced[a.outer] : one;
    if (!plan_way(&a) || !plan_forms(&a)) return 0;
    if ((a.way == DIRECT || a.way == TRANSPOSED) && a.outer == 0 && a.inner_kept.out == 1 && !s->y)
        a.few = plan_few(&a, s->each);
    if (a.few && a.way == TRANSPOSED) a.width = FEW_WIDTH;
    if (a.width > a.inner_kept.length) /* a multiple of what is added at once */
        a.width = (a.inner_kept.length + COLUMN_STEP - 1) / COLUMN_STEP * COLUMN_STEP;
    a.blocks = (a.inner_kept.length + a.width - 1) / a.width;
    a.total = a.blocks;
    for (unsigned k = 0; k < a.outer_kept; k++)
        a.total *= s->kept[k].length;
    plan_parts(&a, d->threads);
    a.runs = a.parts == 1 && rows_run(&a) && sums_only(&a);
    if (a.parts > 1)
        a.kept = aligned_alloc(64, (a.total * a.parts * block_words(&a) * 8 + 63) / 64 * 64);
    if ((a.parts > 1 && !a.kept) || !make_workers(&a, d->threads))
        *status = fail(TALLY_ENOMEM, "no memory for a reduction in parts");
    else {
        TALLY_PATH_OF_VALUE(across_paths, a.p, (unsigned)a.way);
        exact = a;
        if (wants_moments(&a)) {
            a.forms = FORM_BIT(FORM_MOMENTS);
            a.plane_of[FORM_MOMENTS] = 0;
            a.exact = &exact;
        }
        *status = run_blocks(d, &a);
        if (*status == TALLY_OK && a.again) *status = run_blocks(d, &exact);
        if (a.exact) {
            a.todo = exact.todo;
            a.failed = exact.failed;
        }
    }
    free(a.kept);
    finish_hands(&a, d->threads, absence, status);
    *todo = a.todo;
    return 1;
}

/* ---- Segments ------------------------------------------------------------------------------- */

/* Segments are columns of a block, too. Sums of all segments of a block are taken from running
 * totals where these are exact (segments.c), unless all have one length up to TRANSPOSED_BEST. Else
 * short ones are copied, sixteen at a time, and filled up to the longest of them with what adds
 * nothing, and longer ones are folded one by one; the segments of a block are sorted by length
 * first. If all have one short length, they are transposed instead. */
#define SUM_FORMS                                                                                  \
    (FORM_BIT(FORM_SUM1) | FORM_BIT(FORM_SUM2) | FORM_BIT(FORM_MAGNITUDES) |                       \
     FORM_BIT(FORM_SQUARES) | FORM_BIT(FORM_WIDE))
#define KEY_FORMS (FORM_BIT(FORM_ORDER) | FORM_BIT(FORM_LEAST) | FORM_BIT(FORM_GREATEST))

/* Returns whether segments can be filled up: sums by zeros, keys by keys that are there. (Means of
 * 64-bit integers need the same number of elements in all results.) */
static int can_fill(const struct across *a) {
    for (unsigned v = 0; v < a->p->values; v++)
        if (a->p->value[v].op == TALLY_MEAN && a->forms & FORM_BIT(FORM_WIDE)) return 0;
    return (a->forms & ~SUM_FORMS) == 0 || (a->forms & ~KEY_FORMS) == 0;
}

#if defined(TALLY_DEBUG)
enum { EVEN, SHORT_ONES, LONGER_ONES, TOO_LONG, EMPTY_ONES };
static const char *const segments_names[] = {[EVEN] = "of one length",
                                             [SHORT_ONES] = "short",
                                             [LONGER_ONES] = "longer",
                                             [TOO_LONG] = "left as they are too long",
                                             [EMPTY_ONES] = "all empty"};
static const struct path_axis segments_axis = PATH_AXIS(segments_names);
static const char *never_segments(const struct path_table *t, const unsigned at[PATH_AXES]) {
    struct across a = {0};
    struct problem p;
    const char *why = never_in_forms(at[1], at[2], &p);
    (void)t;
    if (why) return why;
    if (problem_has(&p, MONOID_PRODUCTS)) return "two arrays are folded row by row";
    a.p = &p;
    a.forms = forms_of(&p, p.value[0].op, p.value[0].type);
    a.k = cpu_columns_named(cpu_kernels_best()->isa);
    if (at[0] != EVEN && at[0] != EMPTY_ONES && sums_only(&a) && !type_is_float(p.type))
        return "running totals of integers are exact";
    return can_fill(&a) ? NULL : "such states cannot be filled up";
}
PATH_TABLE(segments_paths, "segments", never_segments, &segments_axis, &path_ops, &path_types);
#endif

/* Adds up to COLUMN_STEP segments, none of them empty, as columns from `at` on. */
static void add_step(const struct across *a, struct worker *h, size_t at, const size_t *start,
                     const size_t *length, size_t count, size_t longest) {
    const int keys = (a->forms & KEY_FORMS) != 0, floating = type_is_float(a->p->type);
    const ptrdiff_t pitch = (ptrdiff_t)(COLUMN_STEP * a->element);
    const uint64_t zero = floating ? UINT64_C(1) << (8 * a->element - 1) : 0; /* adds nothing */
    char *tile = room_for(h->tile, tile_bytes(a, longest + GATHER_MORE, COLUMN_STEP));
    a->k->gather[a->element](a->s->x, start, length, count, longest, keys, zero, tile);
    const struct column_rows in = {tile, NULL, pitch, pitch, longest, 0, 1, 1};
    add_rows(a, h->planes, a->width + COLUMN_STEP, at, &in, COLUMN_STEP);
}

/* Adds segments of one length that lie one behind another: rows that are transposed. */
static void add_equal(const struct across *a, struct worker *h, const char *x, size_t n,
                      size_t count) {
    const ptrdiff_t pitch = (ptrdiff_t)(a->width * a->element);
    TALLY_PATH_OF_VALUE(segments_paths, a->p, EVEN);
    for (size_t m, at = 0; at < n; at += m) {
        m = n - at < ACROSS_TILE_ROWS ? n - at : ACROSS_TILE_ROWS;
        char *tile = room_for(h->tile, tile_bytes(a, m, a->width));
        a->k->transpose[a->element](x + at * a->element, (ptrdiff_t)(n * a->element), count, m,
                                    a->width, tile);
        const struct column_rows in = {tile, NULL, pitch, pitch, m, at, 1, at == 0};
        add_rows(a, h->planes, a->width + COLUMN_STEP, 0, &in, count);
    }
}

/* What is to be done with a segment: 1 ... SEGMENTS_SHORT: it is that long; then longer ones; then those that are no
 * column, as they have no elements, or so many that they are left. */
#define KEYS (SEGMENTS_SHORT + 3)
static unsigned char key_of(const struct across *a, size_t length) {
    if (length == 0 || length * a->element >= LONG_BYTES) return KEYS - 1;
    return (unsigned char)(length <= SEGMENTS_SHORT ? length : SEGMENTS_SHORT + 1);
}

/* Sorts segments by their keys, to order[], and returns how many become columns: these come first, and of them the
 * *shorts that are short. */
static size_t sort_segments(const struct across *a, const size_t *length, size_t count,
                            unsigned char *order, size_t *shorts) {
    unsigned char key[SEGMENTS_BLOCK];
    size_t at[KEYS + 1] = {0};
    for (size_t i = 0; i < count; i++)
        at[1 + (key[i] = key_of(a, length[i]))]++;
    for (size_t k = 1; k < KEYS; k++)
        at[k + 1] += at[k];
    *shorts = at[SEGMENTS_SHORT + 1];
    const size_t all = at[SEGMENTS_SHORT + 2];
    for (size_t i = 0; i < count; i++)
        order[at[key[i]]++] = (unsigned char)i;
    return all;
}

/* Adds `count` segments, in this order, as columns; the first `shorts` are short. */
static void add_sorted(const struct across *a, struct worker *h, const size_t *start,
                       const size_t *length, const unsigned char *order, size_t count,
                       size_t shorts) {
    for (size_t m, c = 0; c < count; c += m) {
        const int is_short = c < shorts;
        const size_t end = is_short ? shorts : count;
        size_t from[COLUMN_STEP], n[COLUMN_STEP];
        m = end - c < COLUMN_STEP ? end - c : COLUMN_STEP;
        for (size_t i = 0; i < m; i++) {
            from[i] = start[order[c + i]];
            n[i] = length[order[c + i]];
        }
        TALLY_PATH_OF_VALUE(segments_paths, a->p, is_short ? SHORT_ONES : LONGER_ONES);
        if (is_short) {
            add_step(a, h, c, from, n, m, n[m - 1]);
            continue;
        }
        for (size_t i = 0; i < m; i++)
            add_folded(a, h->fold, i * a->fold, a->s->x + from[i] * a->element, NULL, n[i], 0, 1);
        merge_batch(a, h, m);
        copy_columns(a, h->planes, a->width + COLUMN_STEP, c, h->transposed, FOLD_STRIDE, 0, m);
    }
}

/* Writes the results of segments without elements. */
static void lower_empty(const struct across *a, struct worker *h, size_t first, const size_t *start,
                        size_t count) {
    struct state nothing;
    const tally_value root = {.type = 0};
    size_t known = SIZE_MAX; /* one that has been written */
    for (size_t i = 0; i < count; i++) {
        if (start[i + 1] != start[i]) continue;
        if (known == SIZE_MAX) {
            TALLY_PATH("");
            known = first + i;
            state_clear(a->p, &nothing);
            shaped_lower(a->s, &nothing, &root, (ptrdiff_t)known, known, &h->absence);
            continue;
        }
        for (unsigned v = 0; v < a->p->values; v++) {
            const size_t size = type_size(a->p->value[v].type);
            char *out = a->s->out[v];
            memcpy(out + (first + i) * size, out + known * size, size);
        }
    }
}

/* Writes the results of segments that are all empty. */
static void lower_none(const struct across *a, struct worker *h, const struct block *block) {
    struct state nothing;
    const tally_value root = {.type = 0};
    TALLY_PATH_OF_VALUE(segments_paths, a->p, EMPTY_ONES);
    state_clear(a->p, &nothing);
    shaped_lower(a->s, &nothing, &root, (ptrdiff_t)block->row, block->row, &h->absence);
    for (unsigned v = 0; v < a->p->values; v++) {
        const size_t size = type_size(a->p->value[v].type), all = block->width * size;
        char *out = (char *)a->s->out[v] + block->row * size;
        for (size_t done = size; done < all; done *= 2)
            memcpy(out + done, out, done < all - done ? done : all - done);
    }
}

/* Copies offsets [first, first + count) to out[]. */
static void read_offsets(const struct shaped *s, size_t first, size_t count, size_t *out) {
    const unaligned_i32 *narrow = s->offsets;
    const unaligned_i64 *wide = s->offsets;
    if (s->offsets_type == TALLY_I32)
        for (size_t i = 0; i < count; i++)
            out[i] = (size_t)narrow[first + i];
    else
        for (size_t i = 0; i < count; i++)
            out[i] = (size_t)wide[first + i];
}

/* Folds and lowers segments of any length; marks those that are too long for a column. */
static void fold_sorted(struct across *a, struct worker *h, const size_t *start, size_t count,
                        struct block *block) {
    const struct shaped *s = a->s;
    size_t length[SEGMENTS_BLOCK] = {0}, least = SIZE_MAX, most = 0;
    unsigned char order[SEGMENTS_BLOCK];
    for (size_t i = 0; i < count; i++) {
        const size_t n = length[i] = start[i + 1] - start[i];
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    if (least == most && most > 0 && most <= SEGMENTS_SHORT)
        add_equal(a, h, s->x + start[0] * a->element, most, count);
    else {
        /* Prefetch the next block's elements, as this block's are read in another order. */
        const char *next = s->x + start[count] * a->element;
        const size_t bytes = (start[count] - start[0]) * a->element;
        size_t shorts;
        for (size_t b = 0; b < bytes && b < 32768; b += 64)
            __builtin_prefetch(next + b, 0, 2);
        block->width = sort_segments(a, length, count, order, &shorts);
        add_sorted(a, h, start, length, order, block->width, shorts);
        h->order = order;
    }
    for (size_t i = 0; i < block->width && a->divides; i++)
        h->value[3][i] = (double)(int64_t)length[result_of(h, i)];
    if (block->width > 0) lower_block(a, h, h->planes, a->width + COLUMN_STEP, block);
    h->order = NULL;
    if (least == 0) lower_empty(a, h, block->row, start, count);
    for (size_t i = 0; i < count && most * a->element >= LONG_BYTES; i++)
        if (length[i] * a->element >= LONG_BYTES) {
            TALLY_PATH_OF_VALUE(segments_paths, a->p, TOO_LONG);
            mark(a, block->row + i);
        }
}

/* Folds and lowers segments of one length up to TRANSPOSED_BEST and returns 1; or does nothing and returns 0. */
static int fold_even(struct across *a, struct worker *h, const struct block *block) {
    const struct shaped *s = a->s;
    const size_t count = block->width, size = type_size(s->offsets_type);
    const size_t first = (size_t)offset_at(s->offsets, s->offsets_type, block->row);
    const size_t n = (size_t)offset_at(s->offsets, s->offsets_type, block->row + count) - first;
    const size_t each = n / count;
    if (each == 0 || each > TRANSPOSED_BEST || n != each * count ||
        !a->k->even[size]((const char *)s->offsets + block->row * size, count, each))
        return 0;
    if (reduce_few(a, h, plan_few(a, each), s->x + first * a->element, (ptrdiff_t)a->element,
                   (ptrdiff_t)(each * a->element), each, count,
                   (char *)s->out[0] + block->row * type_size(a->p->value[0].type)))
        return 1;
    add_equal(a, h, s->x + first * a->element, each, count);
    for (size_t i = 0; i < count && a->divides; i++)
        h->value[3][i] = (double)each;
    lower_block(a, h, h->planes, a->width + COLUMN_STEP, block);
    return 1;
}

/* Folds and lowers segments [block->row, block->row + block->width). */
static void fold_segments(struct across *a, struct worker *h, struct block *block) {
    size_t start[SEGMENTS_BLOCK + COLUMN_STEP + 1];
    const size_t count = block->width;
    if (offset_at(a->s->offsets, a->s->offsets_type, block->row) ==
        offset_at(a->s->offsets, a->s->offsets_type, block->row + count)) {
        lower_none(a, h, block);
        return;
    }
    if (fold_even(a, h, block)) return;
    memset(start + count + 1, 0, COLUMN_STEP * sizeof *start);
    read_offsets(a->s, block->row, count + 1, start);
    if (!add_running(a, h, a->s->x, start, count)) {
        fold_sorted(a, h, start, count, block);
        return;
    }
    for (size_t i = 0; i < count && a->divides; i++)
        h->value[3][i] = (double)(int64_t)(start[i + 1] - start[i]);
    lower_block(a, h, h->planes, a->width + COLUMN_STEP, block);
    if (a->divides) lower_empty(a, h, block->row, start, count);
}

static void segments_task(void *context, size_t task, unsigned worker) {
    struct across *a = context;
    const size_t each = a->group * SEGMENTS_BLOCK, begin = task * each, all = a->s->results;
    const size_t end = all - begin < each ? all : begin + each;
    for (size_t at = begin; at < end; at += SEGMENTS_BLOCK) {
        struct block block = {.x = a->s->x, .out = (ptrdiff_t)at, .number = at, .row = at};
        block.width = end - at < SEGMENTS_BLOCK ? end - at : SEGMENTS_BLOCK;
        fold_segments(a, &a->workers[worker], &block);
    }
    finish_writing();
}

int cpu_segments(struct cpu_device *d, const struct shaped *s, unsigned char **todo,
                 struct absence *absence, tally_status *status) {
    struct across a = {.s = s,
                       .p = s->p,
                       .k = cpu_columns_named(d->kernels->isa),
                       .way = FOLDED,
                       .element = type_size(s->p->type),
                       .width = SEGMENTS_BLOCK,
                       .fold = COLUMN_STEP,
                       .unit = 1,
                       .parts = 1};
    *todo = NULL;
    if (s->mask || s->y || problem_has(s->p, MONOID_TREE)) return 0;
    if (s->n / s->results * a.element >= LONG_BYTES) return 0;
    if (!plan_forms(&a) || !can_fill(&a)) return 0;
    a.inner_kept = (struct extent){.length = s->results, .out = 1, .number = 1};
    a.total = (s->results + SEGMENTS_BLOCK - 1) / SEGMENTS_BLOCK;
    a.group = group_of(a.total, s->n * a.element / a.total, d->threads);
    if (!make_workers(&a, d->threads))
        *status = fail(TALLY_ENOMEM, "no memory for a reduction in parts");
    else
        *status = cpu_share(d, s->n * a.element + s->results * 8, (a.total + a.group - 1) / a.group,
                            segments_task, &a);
    finish_hands(&a, d->threads, absence, status);
    *todo = a.todo;
    return 1;
}

/* ---- Instruction sets ----------------------------------------------------------------------- */

#if defined(__x86_64__)
extern const struct column_kernels column_kernels_baseline, column_kernels_avx2,
    column_kernels_avx512;
#elif defined(__aarch64__)
extern const struct column_kernels column_kernels_neon;
#else
extern const struct column_kernels column_kernels_baseline;
#endif

const struct column_kernels *cpu_columns_named(const char *isa) {
#if defined(__x86_64__)
    if (strcmp(isa, "avx512") == 0) return &column_kernels_avx512;
    if (strcmp(isa, "avx2") == 0) return &column_kernels_avx2;
    return &column_kernels_baseline;
#elif defined(__aarch64__)
    (void)isa;
    return &column_kernels_neon;
#else
    (void)isa;
    return &column_kernels_baseline;
#endif
}
