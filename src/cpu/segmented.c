/*
 * segmented.c - see segmented.h.
 *
 * Segments are columns of a block (blocks.h). Sums of all segments of a block are taken from running totals where
 * these are exact (segments.c), unless all have one length up to TRANSPOSED_BEST. Else short ones are copied,
 * sixteen at a time, and filled up to the longest of them with elements that do not change their results. Longer ones
 * are folded one by one. The segments of a block are sorted by length first. If all have one short length, they are
 * transposed instead.
 */
#include "cpu/segmented.h"

#include "base/paths.h"
#include "base/status.h"
#include "base/types.h"
#include "base/unaligned.h"
#include "cpu/blocks.h"
#include "cpu/few_results.h"
#include "cpu/kernels.h"
#include "cpu/rows.h"
#include "cpu/running.h"

#include <stdlib.h>
#include <string.h>

#define SUM_FORMS                                                                                  \
    (FORM_BIT(FORM_SUM1) | FORM_BIT(FORM_SUM2) | FORM_BIT(FORM_MAGNITUDES) |                       \
     FORM_BIT(FORM_SQUARES) | FORM_BIT(FORM_WIDE))
#define KEY_FORMS (FORM_BIT(FORM_ORDER) | FORM_BIT(FORM_LEAST) | FORM_BIT(FORM_GREATEST))

/* Returns whether segments can be filled up: sums by zeros, keys by a segment's own first key. (Means of
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
    a.k = cpu_kernels_best()->columns;
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

/* A segment's key sorts it to those that are reduced alike: keys 1 ... SEGMENTS_SHORT are the segments of that length;
 * the next key is the longer ones; the last those that become no column: they have no elements, or so many that another
 * kernel reduces them. */
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
        block_merge_batch(a, h, m);
        block_copy_columns(a, h->planes, a->width + COLUMN_STEP, c, h->transposed, FOLD_STRIDE, 0,
                           m);
    }
}

/* Writes the results of segments without elements. */
static void lower_empty(const struct blocks *a, struct block_worker *h, size_t first,
                        const size_t *start, size_t count) {
    struct state nothing;
    const tally_value root = {.type = 0};
    size_t known = SIZE_MAX; /* an empty segment whose results have been written */
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
    for (size_t i = 0; i < block->width && a->counts; i++)
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
    for (size_t i = 0; i < count && a->counts; i++)
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
    for (size_t i = 0; i < count && a->counts; i++)
        h->value[3][i] = (double)(int64_t)(start[i + 1] - start[i]);
    block_lower(a, h, h->planes, a->width + COLUMN_STEP, block);
    if (a->counts) lower_empty(a, h, block->row, start, count);
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

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

int cpu_segments(struct cpu_device *d, const struct shaped *s, unsigned char **todo,
                 struct absence *absence, tally_status *status) {
    struct blocks a = {.s = s,
                       .p = s->p,
                       .k = d->kernels->columns,
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
    a.tile = larger(ACROSS_TILE_ROWS * a.width,
                    larger(FEW_TILE, (size_t)(SEGMENTS_SHORT + GATHER_MORE) * COLUMN_STEP));
    if (!blocks_make_workers(&a, d->threads))
        *status = fail(TALLY_ENOMEM, "no memory for a reduction in parts");
    else
        *status = cpu_share(d, s->n * a.element + s->results * 8, (a.total + a.group - 1) / a.group,
                            segments_task, &a);
    blocks_finish(&a, d->threads, absence, status);
    *todo = a.todo;
    return 1;
}
