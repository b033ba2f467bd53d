/* running.c - see running.h. */
#include "cpu/running.h"

#include "base/paths.h"
#include "base/types.h"
#include "cpu/kernels.h"

#include <math.h>
#include <string.h>

int sums_only(const struct blocks *a) {
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
    if (!cpu_kernels_best()->columns->segments[at[3]])
        return "such elements have no running totals";
    if (at[2] != TALLY_SUM && at[2] != TALLY_MEAN) return "running totals are of sums";
    return !at[1] && !type_is_float(p.type) ? "those of integers are exact" : NULL;
}
PATH_TABLE(run_paths, "running totals", never_run, &run_axis, &exact_axis, &path_ops, &path_types);
#endif

/* Folds segments which[0..count) of a block, which are too long for running totals, to the block's columns of the
 * same numbers. count <= COLUMN_STEP. */
static void add_long(const struct blocks *a, struct block_worker *h, const char *x,
                     const size_t *start, const unsigned char *which, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const size_t at = start[which[i]], n = start[which[i] + 1] - at;
        block_add_folded(a, h->fold, i * a->fold, x + at * a->element, NULL, n, 0, 1);
    }
    block_merge_batch(a, h, count);
    for (size_t i = 0; i < count; i++)
        block_copy_columns(a, h->planes, a->width + COLUMN_STEP, which[i], h->transposed,
                           FOLD_STRIDE, i, 1);
}

int add_running(const struct blocks *a, struct block_worker *h, const char *x, const size_t *start,
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
