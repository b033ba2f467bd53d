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
#include "base/status.h"
#include "base/stop.h"
#include "base/types.h"
#include "base/unaligned.h"
#include "cpu/blocks.h"
#include "cpu/kernels.h"
#include "cpu/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(ACROSS_STOP_ELEMENTS / ACROSS_WIDTH >= ACROSS_STOP_ROWS, "a piece has rows");

/* Elements from one transposed row of FEW_COLUMNS to the next: no power of two. */
#define FEW_PITCH (FEW_COLUMNS + COLUMN_STEP)

/* Returns whether the fast path should be tried on the next block (see WAIT_MOST). */
static int may_try(struct block_worker *h) {
    if (h->wait == 0) return 1;
    h->wait--;
    return 0;
}

static void note_try(struct block_worker *h, int succeeded) {
    h->wait = succeeded ? 0 : h->failed;
    h->failed = succeeded ? 0 : h->failed < WAIT_MOST ? h->failed + 1 : WAIT_MOST;
}

/* ---- Ways ------------------------------------------------------------------------------------ */

#if defined(TALLY_DEBUG)
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
#endif

/* Chooses the way; returns 0 where rows are better. */
static int plan_way(struct blocks *a) {
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
static few_kernel *plan_few(const struct blocks *a, size_t each) {
    const struct problem *p = a->p;
    const tally_op op = p->value[0].op;
    const int index = op == TALLY_ARGMIN || op == TALLY_ARGMAX;
    const int divides = op == TALLY_VAR || op == TALLY_STD;
    if (p->values != 1 || op > TALLY_ARGMAX || each < 2 || each > FEW_ROWS) return NULL;
    if (index ? type_size(p->value[0].type) != 8 : p->value[0].type != p->type) return NULL;
    if (divides && (p->about || p->is_complex || p->ddof >= (double)each)) return NULL;
    return a->k->few[op][p->type];
}

/* ---- Adding --------------------------------------------------------------------------------- */

/* Adds n elements of the innermost reduced dimension from x on, of each of `width` results; they are the first
 * of all where `starts`. */
static void add_run(const struct blocks *a, struct block_worker *h, uint64_t *planes, size_t stride,
                    const char *x, const char *y, size_t n, size_t width, uint64_t first,
                    int starts) {
    const ptrdiff_t element = (ptrdiff_t)a->element;
    const ptrdiff_t row = a->inner.x * element, column = a->inner_kept.x * element;
    if (a->way == DIRECT) {
        const struct column_rows in = {x, y, row, row, n, first, 1, starts};
        block_add_rows(a, planes, stride, 0, &in, width);
        return;
    }
    for (size_t m, at = 0; at < n; at += m) {
        m = n - at < ACROSS_TILE_ROWS ? n - at : ACROSS_TILE_ROWS;
        char *tile = room_for(h->tile, block_tile_bytes(a, m, a->width)),
             *tile2 = y ? room_for(h->tile2, block_tile_bytes(a, m, a->width)) : NULL;
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
        block_add_rows(a, planes, stride, 0, &in, width);
    }
}

/* Returns whether results are folded one by one to COLUMN_STEP columns each, and then merged as
 * many at once. */
static int has_batches(const struct blocks *a) {
    return a->unit == 1 && a->fold == COLUMN_STEP;
}

/* Merges the columns of each of `count` results in h->fold into one column of h->transposed. There
 * equal columns of all results lie side by side, as one merge takes them. */
static void merge_batch(const struct blocks *a, struct block_worker *h, size_t count) {
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
static int sums_only(const struct blocks *a) {
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
static void add_long(const struct blocks *a, struct block_worker *h, const char *x,
                     const size_t *start, const unsigned char *which, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const size_t at = start[which[i]], n = start[which[i] + 1] - at;
        block_add_folded(a, h->fold, i * a->fold, x + at * a->element, NULL, n, 0, 1);
    }
    merge_batch(a, h, count);
    for (size_t i = 0; i < count; i++)
        block_copy_columns(a, h->planes, a->width + COLUMN_STEP, which[i], h->transposed,
                           FOLD_STRIDE, i, 1);
}

/* Sums `count` segments of x by running totals, as many at a time as SEGMENTS_PIECE elements have room
 * for, and longer ones one by one. Segments that are too long for a column get an infinite bound.
 * Returns 0 if some sum is not exact, or the forms are other than sums. */
static int add_running(const struct blocks *a, struct block_worker *h, const char *x,
                       const size_t *start, size_t count) {
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
static int rows_run(const struct blocks *a) {
    const size_t n = a->s->each, transposed = a->element == 8 ? 12 : TRANSPOSED_BEST;
    return (a->way == TRANSPOSED || a->way == FOLDED) && a->outer == 0 && a->inner.x == 1 &&
           !a->s->y && a->inner_kept.x == (ptrdiff_t)n && n > transposed && n <= SEGMENTS_PIECE &&
           n * a->element <= RUN_BYTES && a->width <= SEGMENTS_BLOCK;
}

/* Sums the rows of a block, which lie one behind another, as segments. Returns as add_running(). */
static int add_rows_running(const struct blocks *a, struct block_worker *h, const char *x,
                            size_t count) {
    size_t start[SEGMENTS_BLOCK + COLUMN_STEP + 1] = {0};
    for (size_t i = 0; i <= count; i++)
        start[i] = i * a->s->each;
    return add_running(a, h, x, start, count);
}

static struct block block_of(const struct blocks *a, size_t block) {
    const struct shaped *s = a->s;
    const ptrdiff_t element = (ptrdiff_t)a->element;
    size_t outer = block / a->blocks;
    struct block at = {.x = s->x,
                       .y = s->y,
                       .out = s->out_first,
                       .number = s->number_first,
                       .first = block % a->blocks * a->width};
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

/* Elements [from, to) of the outermost reduced dimension, of a block's results or of one unit of them, become columns
 * from `column` on. */
static void add_part(const struct blocks *a, struct block_worker *h, uint64_t *planes,
                     size_t stride, size_t column, const char *x, const char *y, size_t width,
                     size_t from, size_t to) {
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
            if (block_halts(a, h, m * width)) return;
            if (a->way == FOLDED)
                block_add_folded(a, planes, column, x2 + on, y2 ? y2 + on : NULL, m, first + at,
                                 starts);
            else
                add_run(a, h, planes, stride, x2 + on, y2 ? y2 + on : NULL, m, width, first + at,
                        starts);
        }
    }
}

/* ---- Results of a few elements -------------------------------------------------------------- */

/* Writes `width` results of `each` elements to `out`, and returns 1; or returns 0, and they are to
 * be done with states: `few` may be NULL. They are `column` bytes apart, and their elements `row`;
 * if results do not lie side by side, elements do. */
static int reduce_few(const struct blocks *a, struct block_worker *h, few_kernel *few,
                      const char *x, ptrdiff_t row, ptrdiff_t column, size_t each, size_t width,
                      char *out) {
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
        char *tile = room_for(h->tile, block_tile_bytes(a, each, FEW_PITCH));
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

static void add_block(const struct blocks *a, struct block_worker *h, uint64_t *planes,
                      const struct block *at, size_t from, size_t to) {
    const size_t stride = a->width + COLUMN_STEP;
    const ptrdiff_t step = a->inner_kept.x * (ptrdiff_t)a->element;
    if (a->runs) {
        if (block_halts(a, h, at->width * a->s->each)) return;
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
            block_merge_folded(a, h->fold);
        block_copy_columns(a, planes, stride, i, has_batches(a) ? h->transposed : h->fold,
                           FOLD_STRIDE, 0, m);
    }
}

static void across_task(void *context, size_t task, unsigned worker) {
    struct blocks *a = context;
    struct block_worker *h = &a->workers[worker];
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
        for (struct blocks *way = a; way; way = way->exact) {
            add_block(way, h, h->planes, &at, 0, length);
            if (blocks_are_halted(a)) return;
            if (block_lower(way, h, h->planes, a->width + COLUMN_STEP, &at)) break;
        }
    }
    block_finish_writing();
}

static void merge_task(void *context, size_t block, unsigned worker) {
    struct blocks *a = context;
    const struct block at = block_of(a, block);
    const size_t stride = a->width + COLUMN_STEP;
    uint64_t *first = a->kept + block * a->parts * block_words(a);
    for (size_t part = 1; part < a->parts; part++)
        block_merge(a, first, first + part * block_words(a), stride, at.width);
    if (!block_lower(a, &a->workers[worker], first, stride, &at)) {
        TALLY_PATH("again");
        __atomic_store_n(&a->again, 1, __ATOMIC_RELAXED);
    }
    block_finish_writing();
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* Elements of a tile: each of the functions that write one needs rows times pitch of them. */
static size_t tile_elements(const struct blocks *a) {
    const int segments = a->s->cut == TALLY_SEGMENTS;
    size_t most = 0;
    if (a->way == TRANSPOSED || a->way == COPIED || segments) most = ACROSS_TILE_ROWS * a->width;
    if (segments || a->few) most = larger(most, (size_t)FEW_ROWS * FEW_PITCH);
    if (segments) most = larger(most, (size_t)(SEGMENTS_SHORT + GATHER_MORE) * COLUMN_STEP);
    return most;
}

static void plan_parts(struct blocks *a, unsigned threads) {
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
    a->group = blocks_of_task(a->total, bytes, threads);
}

/* Does all blocks; where they are cut, first their parts, which are then merged. */
static tally_status run_blocks(struct cpu_device *d, struct blocks *a) {
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
    struct blocks a = {.s = s, .p = s->p, .k = cpu_columns_named(d->kernels->isa), .halt = &halt},
                  exact;
    *todo = NULL;
    a.element = type_size(s->p->type);
    if (s->each == 0 || s->results == 0 || s->mask || problem_has(s->p, MONOID_TREE)) return 0;
    a.outer_kept = s->keeps > 0 ? s->keeps - 1 : 0;
    a.outer = s->reduces > 0 ? s->reduces - 1 : 0;
    a.inner_kept = s->keeps ? s->kept[a.outer_kept] : one;
    a.inner = s->reduces ? s->reduced[a.outer] : one;
    if (!plan_way(&a) || !block_plan_forms(&a)) return 0;
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
    a.tile = tile_elements(&a);
    if (a.parts > 1)
        a.kept = aligned_alloc(64, (a.total * a.parts * block_words(&a) * 8 + 63) / 64 * 64);
    if ((a.parts > 1 && !a.kept) || !blocks_make_workers(&a, d->threads))
        *status = fail(TALLY_ENOMEM, "no memory for a reduction in parts");
    else {
        TALLY_PATH_OF_VALUE(across_paths, a.p, (unsigned)a.way);
        exact = a;
        if (blocks_want_moments(&a)) {
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
    blocks_finish(&a, d->threads, absence, status);
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
static int can_fill(const struct blocks *a) {
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
    struct blocks a = {0};
    struct problem p;
    const char *why = never_in_forms(at[1], at[2], &p);
    (void)t;
    if (why) return why;
    if (problem_has(&p, MONOID_PRODUCTS)) return "two arrays are folded row by row";
    a.p = &p;
    a.forms = block_forms_of(&p, p.value[0].op, p.value[0].type);
    a.k = cpu_columns_named(cpu_kernels_best()->isa);
    if (at[0] != EVEN && at[0] != EMPTY_ONES && sums_only(&a) && !type_is_float(p.type))
        return "running totals of integers are exact";
    return can_fill(&a) ? NULL : "such states cannot be filled up";
}
PATH_TABLE(segments_paths, "segments", never_segments, &segments_axis, &path_ops, &path_types);
#endif

/* Adds up to COLUMN_STEP segments, none of them empty, as columns from `at` on. */
static void add_step(const struct blocks *a, struct block_worker *h, size_t at, const size_t *start,
                     const size_t *length, size_t count, size_t longest) {
    const int keys = (a->forms & KEY_FORMS) != 0, floating = type_is_float(a->p->type);
    const ptrdiff_t pitch = (ptrdiff_t)(COLUMN_STEP * a->element);
    const uint64_t zero = floating ? UINT64_C(1) << (8 * a->element - 1) : 0; /* adds nothing */
    char *tile = room_for(h->tile, block_tile_bytes(a, longest + GATHER_MORE, COLUMN_STEP));
    a->k->gather[a->element](a->s->x, start, length, count, longest, keys, zero, tile);
    const struct column_rows in = {tile, NULL, pitch, pitch, longest, 0, 1, 1};
    block_add_rows(a, h->planes, a->width + COLUMN_STEP, at, &in, COLUMN_STEP);
}

/* Adds segments of one length that lie one behind another: rows that are transposed. */
static void add_equal(const struct blocks *a, struct block_worker *h, const char *x, size_t n,
                      size_t count) {
    const ptrdiff_t pitch = (ptrdiff_t)(a->width * a->element);
    TALLY_PATH_OF_VALUE(segments_paths, a->p, EVEN);
    for (size_t m, at = 0; at < n; at += m) {
        m = n - at < ACROSS_TILE_ROWS ? n - at : ACROSS_TILE_ROWS;
        char *tile = room_for(h->tile, block_tile_bytes(a, m, a->width));
        a->k->transpose[a->element](x + at * a->element, (ptrdiff_t)(n * a->element), count, m,
                                    a->width, tile);
        const struct column_rows in = {tile, NULL, pitch, pitch, m, at, 1, at == 0};
        block_add_rows(a, h->planes, a->width + COLUMN_STEP, 0, &in, count);
    }
}

/* What is to be done with a segment: 1 ... SEGMENTS_SHORT: it is that long; then longer ones; then those that are no
 * column, as they have no elements, or so many that they are left. */
#define KEYS (SEGMENTS_SHORT + 3)
static unsigned char key_of(const struct blocks *a, size_t length) {
    if (length == 0 || length * a->element >= LONG_BYTES) return KEYS - 1;
    return (unsigned char)(length <= SEGMENTS_SHORT ? length : SEGMENTS_SHORT + 1);
}

/* Sorts segments by their keys, to order[], and returns how many become columns: these come first, and of them the
 * *shorts that are short. */
static size_t sort_segments(const struct blocks *a, const size_t *length, size_t count,
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
static void add_sorted(const struct blocks *a, struct block_worker *h, const size_t *start,
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
            block_add_folded(a, h->fold, i * a->fold, a->s->x + from[i] * a->element, NULL, n[i], 0,
                             1);
        merge_batch(a, h, m);
        block_copy_columns(a, h->planes, a->width + COLUMN_STEP, c, h->transposed, FOLD_STRIDE, 0,
                           m);
    }
}

/* Writes the results of segments without elements. */
static void lower_empty(const struct blocks *a, struct block_worker *h, size_t first,
                        const size_t *start, size_t count) {
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
static void lower_none(const struct blocks *a, struct block_worker *h, const struct block *block) {
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
static void fold_sorted(struct blocks *a, struct block_worker *h, const size_t *start, size_t count,
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
        h->value[3][i] = (double)(int64_t)length[block_result_of(h, i)];
    if (block->width > 0) block_lower(a, h, h->planes, a->width + COLUMN_STEP, block);
    h->order = NULL;
    if (least == 0) lower_empty(a, h, block->row, start, count);
    for (size_t i = 0; i < count && most * a->element >= LONG_BYTES; i++)
        if (length[i] * a->element >= LONG_BYTES) {
            TALLY_PATH_OF_VALUE(segments_paths, a->p, TOO_LONG);
            block_mark(a, block->row + i);
        }
}

/* Folds and lowers segments of one length up to TRANSPOSED_BEST and returns 1; or does nothing and returns 0. */
static int fold_even(struct blocks *a, struct block_worker *h, const struct block *block) {
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
    block_lower(a, h, h->planes, a->width + COLUMN_STEP, block);
    return 1;
}

/* Folds and lowers segments [block->row, block->row + block->width). */
static void fold_segments(struct blocks *a, struct block_worker *h, struct block *block) {
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
    block_lower(a, h, h->planes, a->width + COLUMN_STEP, block);
    if (a->divides) lower_empty(a, h, block->row, start, count);
}

static void segments_task(void *context, size_t task, unsigned worker) {
    struct blocks *a = context;
    const size_t each = a->group * SEGMENTS_BLOCK, begin = task * each, all = a->s->results;
    const size_t end = all - begin < each ? all : begin + each;
    for (size_t at = begin; at < end; at += SEGMENTS_BLOCK) {
        struct block block = {.x = a->s->x, .out = (ptrdiff_t)at, .number = at, .row = at};
        block.width = end - at < SEGMENTS_BLOCK ? end - at : SEGMENTS_BLOCK;
        fold_segments(a, &a->workers[worker], &block);
    }
    block_finish_writing();
}

int cpu_segments(struct cpu_device *d, const struct shaped *s, unsigned char **todo,
                 struct absence *absence, tally_status *status) {
    struct blocks a = {.s = s,
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
    if (!block_plan_forms(&a) || !can_fill(&a)) return 0;
    a.inner_kept = (struct extent){.length = s->results, .out = 1, .number = 1};
    a.total = (s->results + SEGMENTS_BLOCK - 1) / SEGMENTS_BLOCK;
    a.group = blocks_of_task(a.total, s->n * a.element / a.total, d->threads);
    a.tile = tile_elements(&a);
    if (!blocks_make_workers(&a, d->threads))
        *status = fail(TALLY_ENOMEM, "no memory for a reduction in parts");
    else
        *status = cpu_share(d, s->n * a.element + s->results * 8, (a.total + a.group - 1) / a.group,
                            segments_task, &a);
    blocks_finish(&a, d->threads, absence, status);
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
