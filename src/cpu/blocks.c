/* cpu/blocks.c - see blocks.h. */
#include "cpu/blocks.h"

#include "base/paths.h"
#include "base/status.h"
#include "base/types.h"
#include "base/unaligned.h"
#include "exact/lower.h"
#include "exact/round.h"

#include <stdlib.h>
#include <string.h>

/* ---- What is needed ------------------------------------------------------------------------- */

unsigned block_forms_of(const struct problem *p, tally_op op, tally_type out) {
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
        if (wide || p->about || p->is_complex || p->ddof > 0x1p20 ||
            p->ddof != (double)(uint64_t)p->ddof)
            return 0;
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

const char *never_in_forms(unsigned op, unsigned type, struct problem *p) {
    const char *why = problem_path(op, type, p);
    return why                                                                       ? why
           : problem_has(p, MONOID_TREE) || !block_forms_of(p, op, p->value[0].type) ? no_form
                                                                                     : NULL;
}

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
    if (block_forms_of(&p, p.value[0].op, p.value[0].type) & FORM_BIT(FORM_WIDE))
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

int block_plan_forms(struct blocks *a) {
    const struct problem *p = a->p;
    for (unsigned v = 0; v < p->values; v++) {
        const tally_op op = p->value[v].op;
        const unsigned forms = block_forms_of(p, op, p->value[v].type);
        if (forms == 0) return 0;
        if (op != TALLY_COUNT) a->forms |= forms;
        a->counts |= op == TALLY_MEAN || op == TALLY_VAR || op == TALLY_STD || op == TALLY_COUNT ||
                     op == TALLY_ALL;
    }
    if (a->forms == 0) a->forms = FORM_BIT(FORM_NANS); /* counts need no form, a block does */
    if (a->forms & FORM_BIT(FORM_SUM2)) a->forms &= ~FORM_BIT(FORM_SUM1);
    for (unsigned f = 0; f < FORMS; f++) {
        if (!(a->forms & FORM_BIT(f))) continue;
        a->plane_of[f] = a->planes;
        a->planes += a->k->form[f][p->type].planes;
    }
    return 1;
}

int blocks_want_moments(const struct blocks *a) {
    for (unsigned v = 0; v < a->p->values; v++)
        if (a->p->value[v].op != TALLY_VAR && a->p->value[v].op != TALLY_STD) return 0;
    return a->k->form[FORM_MOMENTS][a->p->type].planes == a->planes;
}

/* ---- Adding --------------------------------------------------------------------------------- */

/* Returns the address of column `at` in a form's first plane. */
static uint64_t *column_at(const struct blocks *a, unsigned f, uint64_t *planes, size_t stride,
                           size_t at) {
    return (uint64_t *)(void *)((char *)(planes + a->plane_of[f] * stride) +
                                at * form_of(a, f)->lane);
}

void block_clear(const struct blocks *a, uint64_t *planes, size_t stride, size_t at, size_t width,
                 uint64_t first) {
    for_forms(f, a) form_of(a, f)->clear(column_at(a, f, planes, stride, at), stride, width, first);
}

void block_add_rows(const struct blocks *a, uint64_t *planes, size_t stride, size_t at,
                    const struct column_rows *in, size_t width) {
    for_forms(f, a) {
        const struct column_form *form = form_of(a, f);
        uint64_t *into = column_at(a, f, planes, stride, at);
        if (in->starts && !form->starts) form->clear(into, stride, width, in->first);
        form->add(into, stride, in, width);
    }
}

void block_copy_columns(const struct blocks *a, uint64_t *into, size_t into_stride, size_t to,
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

void block_merge(const struct blocks *a, uint64_t *into, const uint64_t *from, size_t stride,
                 size_t at, size_t width) {
    for_forms(f, a) {
        const size_t plane = a->plane_of[f] * stride;
        form_of(a, f)->merge(into + plane, at, from + plane, at, stride, width);
    }
}

void block_add_folded(const struct blocks *a, uint64_t *planes, size_t at, const char *x,
                      const char *y, size_t n, uint64_t first, int starts) {
    const size_t width = a->fold * a->unit, rows = n / a->fold, rest = n % a->fold;
    const ptrdiff_t pitch = (ptrdiff_t)(width * a->element), done = pitch * (ptrdiff_t)rows;
    struct column_rows in = {x, y, pitch, pitch, rows, first, a->fold, starts};
    if (rows > 0)
        block_add_rows(a, planes, FOLD_STRIDE, at, &in, width);
    else if (starts)
        block_clear(a, planes, FOLD_STRIDE, at, width, first);
    if (rest == 0) return;
    in = (struct column_rows){x + done, y ? y + done : NULL,    pitch, pitch,
                              1,        first + rows * a->fold, 1,     0};
    block_add_rows(a, planes, FOLD_STRIDE, at, &in, rest * a->unit);
}

void block_merge_folded(const struct blocks *a, uint64_t *planes) {
    for (unsigned f = FORM_LEAST; f <= FORM_GREATEST;
         f++) { /* adds an element's index in its folded row */
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

void block_merge_batch(const struct blocks *a, struct block_worker *h, size_t count) {
    for_forms(f, a) {
        const struct column_form *form = form_of(a, f);
        const size_t lane = form->lane, first = a->plane_of[f];
        uint64_t *at = h->transposed + first * FOLD_STRIDE;
        for (size_t k = 0; k < form->planes; k++)
            a->k->transpose[lane]((const char *)(h->fold + (first + k) * FOLD_STRIDE),
                                  (ptrdiff_t)(COLUMN_STEP * lane), count, COLUMN_STEP, COLUMN_STEP,
                                  (char *)(at + k * FOLD_STRIDE));
        if (f == FORM_LEAST || f == FORM_GREATEST) /* adds an element's index in its folded row */
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

/* ---- Lowering ------------------------------------------------------------------------------- */

/* Return the number of the unit that column i belongs to, and the column's number in this unit. */
static size_t unit_of(const struct block *at, size_t i) {
    return at->unit ? i / at->unit : 0;
}
static size_t column_of(const struct block_worker *h, const struct block *at, size_t i) {
    return at->unit ? i % at->unit : block_result_of(h, i);
}

/* Return the number of column i's result, its row, and its place from the block's first one. */
static size_t number_of(const struct blocks *a, const struct block_worker *h,
                        const struct block *at, size_t i) {
    return at->number + unit_of(at, i) * at->unit_number +
           column_of(h, at, i) * a->inner_kept.number;
}
static size_t row_of(const struct block_worker *h, const struct block *at, size_t i) {
    return at->row + unit_of(at, i) * at->unit_row + column_of(h, at, i);
}
static ptrdiff_t place_of(const struct blocks *a, const struct block_worker *h,
                          const struct block *at, size_t i) {
    return (ptrdiff_t)unit_of(at, i) * at->unit_out +
           (ptrdiff_t)column_of(h, at, i) * a->inner_kept.out;
}

/* Returns how many elements column i has. */
static uint64_t elements_of(const struct block_worker *h, size_t i) {
    return (uint64_t)h->value[3][i];
}

/* Returns the index along the axis of the element that has the number `index` in column i. */
static uint64_t absolute_index(const struct blocks *a, const struct block *at, size_t i,
                               uint64_t index) {
    const size_t place = at->start[unit_of(at, i)] + (size_t)index;
    return a->order ? a->order[place] : place;
}

static uint64_t lane_of(const uint64_t *plane, unsigned lane, size_t i) {
    return lane == 4 ? (uint64_t)(int64_t)((const int32_t *)plane)[i] : plane[i];
}

static void lower_order(const struct blocks *a, struct block_worker *h, const uint64_t *planes,
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

/* Lowers the greatest magnitude, which is that of the least or of the greatest element. */
static void lower_magnitude(const struct blocks *a, struct block_worker *h, const uint64_t *planes,
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
            shaped_absent(&h->absence, number_of(a, h, at, i), TALLY_ERANGE, v);
        }
    }
}

/* Lowers the sums of 64-bit integers, or their means if `mean`. */
static void lower_wide(const struct blocks *a, struct block_worker *h, const uint64_t *planes,
                       size_t stride, size_t width, tally_type out, int mean,
                       const struct block *at, unsigned v) {
    const uint64_t *low = planes + a->plane_of[FORM_WIDE] * stride, *high = low + stride;
    const int is_signed = a->p->type == TALLY_I64;
    for (size_t i = 0; i < width; i++) {
        const __int128 upper = is_signed ? (__int128)(int64_t)high[i] : (__int128)high[i];
        const uint64_t each = elements_of(h, i);
        struct exact_sum sum;
        exact_sum_clear(&sum);
        sum.mixed = 1;
        exact_sum_add(&sum, upper * ((__int128)1 << 32) + (__int128)low[i], 0);
        tally_value value;
        if (mean)
            value = exact_quotient(&sum, each, 0, each, out);
        else if (type_is_float(out)) {
            TALLY_PATH("to a float");
            value = exact_round(&sum, each, out);
        } else if (!exact_integer(&sum, out, &value)) {
            TALLY_PATH("an integer that does not fit");
            value = value_of_bits(out, 0);
            shaped_absent(&h->absence, number_of(a, h, at, i), TALLY_ERANGE, v);
        }
        h->bits[i] = tally_value_bits(&value);
    }
}

/* Lowers sums of integers that are kept as doubles. Sums that are too large, or not exact, are not certain. */
static void lower_integers(struct block_worker *h, const double *s, const double *e,
                           const double *b, size_t width, int is_signed) {
    h->certain = 0; /* ok[] says which are */
    for (size_t i = 0; i < width; i++) {
        h->ok[i] = b[i] == 0 && s[i] < 0x1p62 && s[i] > -0x1p62 && (is_signed || s[i] >= 0);
        h->bits[i] = h->ok[i] ? (uint64_t)((int64_t)s[i] + (int64_t)e[i]) : 0;
        if (!h->ok[i]) TALLY_PATH("an integer that is left");
    }
}

/* Sets the variances of columns with n <= 1 or n <= ddof elements, for which the rounding test always fails. Such a
 * variance is 0 if n > ddof and the element is finite, else NaN. sum[] has the columns' sums, and h->value[3] their
 * n. */
static void lower_lone_variances(const struct blocks *a, struct block_worker *h, const double *sum,
                                 size_t width, tally_type out) {
    const tally_value nan = float_nan(out);
    for (size_t i = 0; i < width; i++) {
        const double n = h->value[3][i];
        if (n > 1 && n > a->p->ddof) continue;
        TALLY_PATH("a lone element");
        h->bits[i] = n > a->p->ddof && sum[i] - sum[i] == 0 ? 0 : tally_value_bits(&nan);
        h->ok[i] = 1;
    }
}

static void lower_real(const struct blocks *a, struct block_worker *h, const uint64_t *planes,
                       size_t stride, size_t width, tally_op op, tally_type out) {
    const enum form form = op == TALLY_NORM1                ? FORM_MAGNITUDES
                           : op == TALLY_SUMSQ              ? FORM_SQUARES
                           : op == TALLY_NORM2              ? FORM_SQUARES
                           : op == TALLY_DOT                ? FORM_PRODUCTS
                           : a->forms & FORM_BIT(FORM_SUM2) ? FORM_SUM2
                                                            : FORM_SUM1;
    const int near = (a->forms & FORM_BIT(FORM_MOMENTS)) != 0;
    const double *s = (const double *)planes + a->plane_of[near ? FORM_MOMENTS : form] * stride,
                 *e = s + stride, *b = e + stride, *const sum = s;
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
    if (op == TALLY_VAR || op == TALLY_STD) lower_lone_variances(a, h, sum, width, out);
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
static void lower_value(const struct blocks *a, struct block_worker *h, const uint64_t *planes,
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
        const unsigned f = (unsigned)__builtin_ctz(block_forms_of(a->p, op, out)),
                       lane = form_of(a, f)->lane;
        const int index = op == TALLY_ARGMIN || op == TALLY_ARGMAX;
        const uint64_t *plane = planes + (a->plane_of[f] + (unsigned)index) * stride;
        for (size_t i = 0; i < width; i++) {
            h->bits[i] = lane_of(plane, lane, i);
            if (op == TALLY_ANY) h->bits[i] = h->bits[i] != 0;
            if (op == TALLY_ALL) h->bits[i] = h->bits[i] == elements_of(h, i);
            if (index && a->absolute) h->bits[i] = absolute_index(a, at, i, h->bits[i]);
        }
        return;
    }
    case TALLY_COUNT:
        for (size_t i = 0; i < width; i++)
            h->bits[i] = elements_of(h, i);
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
            to[place_of(a, h, at, i)] = (type)h->bits[i];                                          \
    } while (0)

/* Writes the bits of one value. */
static void put(const struct blocks *a, const struct block_worker *h, const struct block *at,
                unsigned v) {
    const size_t size = type_size(a->p->value[v].type);
    if (!h->order && a->inner_kept.out == 1 &&
        (at->unit == 0 || at->width <= at->unit || at->unit_out == (ptrdiff_t)at->unit)) {
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

void block_finish_writing(void) {
#if defined(__x86_64__)
    __builtin_ia32_sfence(); /* elsewhere nothing is written past the caches */
#endif
}

void block_mark(struct blocks *a, size_t row) {
    unsigned char *todo = __atomic_load_n(&a->todo, __ATOMIC_ACQUIRE);
    if (!todo) { /* the first row that is marked */
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

int block_lower(struct blocks *a, struct block_worker *h, const uint64_t *planes, size_t stride,
                const struct block *at) {
    for (unsigned v = 0; v < a->p->values; v++) {
        lower_value(a, h, planes, stride, at, v);
        put(a, h, at, v);
        if (h->certain || memchr(h->ok, 0, at->width) == NULL) continue;
        if (a->exact) return 0;
        for (size_t i = 0; i < at->width; i++)
            if (!h->ok[i]) block_mark(a, row_of(h, at, i));
    }
    return 1;
}

void block_lower_nothing(const struct blocks *a, struct block_worker *h, const struct block *at) {
    const struct shaped *s = a->s;
    const struct extent *inner = &a->inner_kept;
    /* The kept dimension may have been turned: then its last result has the lowest number. */
    const size_t last = at->number + (at->width - 1) * inner->number;
    struct state nothing;
    const tally_value root = {.type = 0};
    struct absence absence = {.number = UINT64_MAX};
    state_clear(s->p, &nothing);
    shaped_lower(s, &nothing, &root, at->out, at->number < last ? at->number : last, &absence);
    if (absence.number != UINT64_MAX)
        shaped_absent(&h->absence, absence.number, absence.status, absence.value);
    for (unsigned v = 0; v < s->p->values; v++) {
        const ptrdiff_t size = (ptrdiff_t)type_size(s->p->value[v].type);
        char *out = (char *)s->out[v] + at->out * size;
        for (size_t i = 1; i < at->width; i++)
            memcpy(out + (ptrdiff_t)i * inner->out * size, out, (size_t)size);
    }
}

/* ---- Workers -------------------------------------------------------------------------------- */

/* Lays out a worker's arrays. Kernels read and write whole steps of columns, also behind a block's
 * last column. */
static void lay_out(const struct blocks *a, struct block_worker *h) {
    struct scratch *s = &h->scratch;
    const size_t fold = FOLD_STRIDE * a->planes, tile = a->tile;
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

int blocks_make_workers(struct blocks *a, unsigned threads) {
    a->workers = calloc(threads, sizeof *a->workers);
    if (!a->workers) return 0;
    for (unsigned i = 0; i < threads; i++) {
        struct block_worker *h = &a->workers[i];
        h->absence.number = UINT64_MAX;
        lay_out(a, h);
        if (!scratch_create(&h->scratch, 1)) return 0;
        lay_out(a, h);
    }
    return 1;
}

void blocks_finish(struct blocks *a, unsigned threads, struct absence *absence,
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

size_t blocks_of_task(size_t total, size_t bytes, unsigned threads) {
    const size_t group = ACROSS_GROUP_BYTES / (bytes + 1) + 1,
                 most = total / ((size_t)threads * 8) + 1;
    return group < most ? group : most;
}
