/*
 * across.c - see across.h.
 *
 * Results are taken in blocks, whose states are planes of columns (columns.h). A block's elements become
 * rows of columns in one of four ways:
 *   DIRECT   results lie side by side in memory: rows are read where they are.
 *   FOLDED   the elements of one result, or of few results together, lie side by side: they are read as an
 *            array of some dozens of columns, which are merged at the end.
 *   TRANSPOSED   as FOLDED, but rows are short: blocks of them are transposed in the cache.
 *   COPIED   any strides: elements are copied one by one to a tile of such rows.
 * Sums of rows that lie one behind another are first tried by running totals, as those of segments are (segments.c).
 * A block with many elements is cut into parts for several threads. Results of a few elements each are mostly done
 * without states (few_rows.c), block by block; a block where that is not certain is done again with
 * states.
 */
#include "cpu/across.h"

#include "base/paths.h"
#include "base/status.h"
#include "base/stop.h"
#include "base/types.h"
#include "base/unaligned.h"
#include "cpu/blocks.h"
#include "cpu/few_results.h"
#include "cpu/kernels.h"
#include "cpu/rows.h"
#include "cpu/running.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(ACROSS_STOP_ELEMENTS / ACROSS_WIDTH >= ACROSS_STOP_ROWS, "a piece has rows");

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

/* Chooses the way; returns 0 if the results are to be reduced row by row (rows.h). */
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
    if (s->y) /* both arrays must have the same strides */
        for (unsigned i = 0; i < s->keeps + s->reduces; i++) {
            const struct extent *e = i < s->keeps ? &s->kept[i] : &s->reduced[i - s->keeps];
            if (e->x != e->y) return 0;
        }
    return 1;
}

/* ---- Adding --------------------------------------------------------------------------------- */

/* Adds n elements of the innermost reduced dimension, from x on, of each of `width` results. `first` is the index of
 * the first of them; `starts` is 1 if the planes hold no elements of these results yet. */
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

/* ---- Running totals --------------------------------------------------------------------------- */

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

/* Adds elements [from, to) of the outermost reduced dimension, of a block's results or of one unit of them, to
 * columns from `column` on. */
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

/* ---- Tasks ---------------------------------------------------------------------------------- */

static void add_block(const struct blocks *a, struct block_worker *h, uint64_t *planes,
                      const struct block *at, size_t from, size_t to) {
    const size_t stride = a->width + COLUMN_STEP;
    const ptrdiff_t step = a->inner_kept.x * (ptrdiff_t)a->element;
    if (a->runs) {
        if (block_halts(a, h, at->width * a->s->each)) return;
        if (block_may_try(h)) {
            const int is_done = add_rows_running(a, h, at->x, at->width);
            block_note_try(h, is_done);
            if (is_done) return;
        }
    }
    if (a->way != FOLDED) {
        add_part(a, h, planes, stride, 0, at->x, at->y, at->width, from, to);
        return;
    }
    const size_t most = block_has_batches(a) ? COLUMN_STEP : a->unit;
    for (size_t m, i = 0; i < at->width; i += m) {
        m = at->width - i < most ? at->width - i : most;
        for (size_t j = 0; j < m; j += a->unit) {
            const ptrdiff_t move = (ptrdiff_t)(i + j) * step;
            add_part(a, h, h->fold, FOLD_STRIDE, j * a->fold, at->x + move,
                     at->y ? at->y + move : NULL, a->unit, from, to);
        }
        if (block_has_batches(a))
            block_merge_batch(a, h, m);
        else
            block_merge_folded(a, h->fold);
        block_copy_columns(a, planes, stride, i, block_has_batches(a) ? h->transposed : h->fold,
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
        block_merge(a, first, first + part * block_words(a), stride, 0, at.width);
    if (!block_lower(a, &a->workers[worker], first, stride, &at)) {
        TALLY_PATH("again");
        __atomic_store_n(&a->again, 1, __ATOMIC_RELAXED);
    }
    block_finish_writing();
}

/* Returns how many elements a tile has room for: the largest product of rows and pitch of the functions that write
 * one. */
static size_t tile_elements(const struct blocks *a) {
    const size_t rows = a->way == TRANSPOSED || a->way == COPIED ? ACROSS_TILE_ROWS * a->width : 0;
    return a->few && rows < FEW_TILE ? FEW_TILE : rows;
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

/* Reduces all blocks. If blocks are cut, reduces their parts first, and then merges these. */
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
    struct blocks a = {.s = s, .p = s->p, .k = d->kernels->columns, .halt = &halt}, exact;
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
    if (a.width > a.inner_kept.length) /* whole steps of columns */
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
