/* few_results.c - see few_results.h. */
#include "cpu/few_results.h"

#include "base/paths.h"
#include "base/types.h"
#include "cpu/kernels.h"

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
    if (at[2] > TALLY_ARGMAX || !cpu_kernels_best()->columns->few[at[2]][at[3]])
        return "no kernel does a few elements";
    return !at[1] && p.monoids == MONOID_BIT(MONOID_EXTREMES) ? "comparisons are certain" : NULL;
}
PATH_TABLE(few_paths, "results of a few elements", never_few, &few_axis, &success_axis, &path_ops,
           &path_types);
#endif

few_kernel *plan_few(const struct blocks *a, size_t each) {
    const struct problem *p = a->p;
    const tally_op op = p->value[0].op;
    const int index = op == TALLY_ARGMIN || op == TALLY_ARGMAX;
    const int divides = op == TALLY_VAR || op == TALLY_STD;
    if (p->values != 1 || op > TALLY_ARGMAX || each < 2 || each > FEW_ROWS) return NULL;
    if (index ? type_size(p->value[0].type) != 8 : p->value[0].type != p->type) return NULL;
    if (divides && (p->about || p->is_complex || p->ddof >= (double)each)) return NULL;
    return a->k->few[op][p->type];
}

int reduce_few(const struct blocks *a, struct block_worker *h, few_kernel *few, const char *x,
               ptrdiff_t row, ptrdiff_t column, size_t each, size_t width, char *out) {
    const size_t size = type_size(a->p->value[0].type);
    char *bits = (char *)h->bits;
    struct few_rows in = {.x = x, .row = row, .rows = each, .ahead = 4096, .ddof = a->p->ddof};
    if (!few || width < COLUMN_STEP) return 0;
    if (!block_may_try(h)) {
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
    block_note_try(h, certain);
    TALLY_PATH_OF_VALUE(few_paths, a->p,
                        a->s->cut == TALLY_SEGMENTS ? FEW_SEGMENTS
                        : a->way == DIRECT          ? FEW_DIRECT
                                                    : FEW_TRANSPOSED,
                        (unsigned)certain);
    return certain;
}
