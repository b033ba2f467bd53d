/* shape.c - see shape.h; and the public calls for reductions in parts. */
#include "problem/shape.h"

#include "base/status.h"
#include "base/types.h"
#include "problem/lower.h"

#include <stdlib.h>
#include <string.h>

/* ---- Checks -------------------------------------------------------------------------------- */

/* Makes *out = a * b. Returns whether a size_t can count that many elements, and their bytes. */
static int multiply(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out) && *out <= SIZE_MAX / 16;
}

static tally_status check_dims(const tally_shape *shape) {
    size_t total = 1;
    if (shape->dims > TALLY_DIMS_MAX)
        return fail(TALLY_EINVAL, "%u dimensions; an array has %d at most", shape->dims,
                    TALLY_DIMS_MAX);
    if (shape->dims > 0 && !shape->length)
        return fail(TALLY_EINVAL, "the shape has %u dimensions, but length is NULL", shape->dims);
    if (shape->axes >> shape->dims)
        return fail(TALLY_EINVAL, "axis %d is to be reduced, but there are %u dimensions",
                    31 - __builtin_clz(shape->axes), shape->dims);
    for (unsigned d = 0; d < shape->dims; d++)
        if (shape->length[d] == 0) return TALLY_OK; /* the others may have any length */
    for (unsigned d = 0; d < shape->dims; d++)
        if (!multiply(total, shape->length[d], &total))
            return fail(TALLY_EINVAL, "the lengths up to dimension %u are more than can be counted",
                        d);
    return TALLY_OK;
}

/* Returns the axis that offsets or ids cut. Needs dims > 0 and one bit in axes. */
static unsigned cut_axis(const tally_shape *shape) {
    return (unsigned)__builtin_ctz(shape->axes);
}

/* Returns how many elements segments and groups have along their axis. */
static size_t cut_length(const tally_shape *shape) {
    return shape->dims > 0 ? shape->length[cut_axis(shape)] : shape->n;
}

/* Checks the dimensions of segments and groups. */
static tally_status check_cut(const tally_shape *shape) {
    const tally_status s = shape->dims > 0 ? check_dims(shape) : TALLY_OK;
    if (s != TALLY_OK || shape->dims == 0) return s;
    if (__builtin_popcount(shape->axes) != 1)
        return fail(TALLY_EINVAL, "segments and groups lie along one axis; %d are given",
                    __builtin_popcount(shape->axes));
    if (shape->n != 0 && shape->n != cut_length(shape))
        return fail(TALLY_EINVAL, "n is %zu, but axis %u has %zu elements", shape->n,
                    cut_axis(shape), cut_length(shape));
    return TALLY_OK;
}

static tally_status check_segments(const tally_shape *shape) {
    const tally_type type = shape->offsets_type;
    const size_t n = cut_length(shape);
    if (shape->count == SIZE_MAX)
        return fail(TALLY_EINVAL, "%zu segments are too many", shape->count);
    if (!shape->offsets) {
        if (shape->count == 0 ? n != 0 : n % shape->count != 0)
            return fail(TALLY_EINVAL, "%zu elements are not %zu segments of equal length", n,
                        shape->count);
    } else if (type != 0 && type != TALLY_I32 && type != TALLY_I64)
        return fail(TALLY_ETYPE, "offsets are i32 or i64, not %s",
                    tally_type_name(type) ? tally_type_name(type) : "of an unknown type");
    return TALLY_OK;
}

static tally_status check_groups(const tally_shape *shape) {
    const tally_type type = shape->ids_type;
    const size_t n = cut_length(shape);
    if (type != 0 && (!type_is_known(type) || type_is_float(type)))
        return fail(TALLY_ETYPE, "ids are integers, not %s",
                    tally_type_name(type) ? tally_type_name(type) : "of an unknown type");
    if (n > 0 && !shape->ids) return fail(TALLY_EINVAL, "ids is NULL but n is %zu", n);
    return TALLY_OK;
}

static tally_status check_shape(const tally_shape *shape) {
    if (!shape) return fail(TALLY_EINVAL, "the shape is NULL");
    if (shape->cut == TALLY_AXES) return check_dims(shape);
    if (shape->cut != TALLY_SEGMENTS && shape->cut != TALLY_GROUPS)
        return fail(TALLY_EINVAL, "%d is no way to cut an array", (int)shape->cut);
    tally_status s = check_cut(shape);
    if (s != TALLY_OK) return s;
    s = shape->cut == TALLY_SEGMENTS ? check_segments(shape) : check_groups(shape);
    const size_t n = cut_length(shape);
    if (s == TALLY_OK && (n > SIZE_MAX / 16 || shape->count > SIZE_MAX / 16))
        s = fail(TALLY_EINVAL, "n = %zu elements, or %zu results, are more than memory can hold", n,
                 shape->count);
    return s;
}

/* Sets *count to the product of the kept dimensions' lengths. Returns whether a size_t can count so many results. */
static int count_kept(const tally_shape *shape, size_t *count) {
    *count = 1;
    for (unsigned d = 0; d < shape->dims; d++)
        if (!(shape->axes >> d & 1) && shape->length[d] == 0) *count = 0;
    for (unsigned d = 0; d < shape->dims && *count; d++)
        if (!(shape->axes >> d & 1) && !multiply(*count, shape->length[d], count)) return 0;
    return 1;
}

tally_status tally_shape_results(const tally_shape *shape, size_t *count) {
    if (!count) return fail(TALLY_EINVAL, "tally_shape_results: count is NULL");
    tally_status s = check_shape(shape);
    if (s != TALLY_OK) return s;
    size_t results;
    if (!count_kept(shape, &results) ||
        (shape->cut != TALLY_AXES && !multiply(results, shape->count, &results)))
        return fail(TALLY_EINVAL, "these are more results than can be counted");
    *count = results;
    return TALLY_OK;
}

/* ---- Dimensions in their plainest form ------------------------------------------------------ */

/* Makes stride[] the strides in C order of an array with only the dimensions in the mask
 * `which`. */
static void c_order(const size_t *length, unsigned dims, uint32_t which, ptrdiff_t *stride) {
    ptrdiff_t next = 1;
    for (unsigned d = dims; d-- > 0;) {
        stride[d] = next;
        if (which >> d & 1) next *= (ptrdiff_t)length[d];
    }
}

static size_t distance(ptrdiff_t stride) {
    return stride < 0 ? 0 - (size_t)stride : (size_t)stride;
}

/* Sorts dimensions so that the innermost has the least stride in x; those of equal strides stay in order. */
static void sort_extents(struct extent *e, unsigned count) {
    for (unsigned i = 1; i < count; i++)
        for (unsigned j = i; j > 0 && distance(e[j - 1].x) < distance(e[j].x); j--) {
            const struct extent t = e[j];
            e[j] = e[j - 1];
            e[j - 1] = t;
        }
}

/* Returns whether the outer dimension goes on where the inner one ends. */
static int is_behind(const struct extent *outer, const struct extent *inner) {
    const ptrdiff_t n = (ptrdiff_t)inner->length;
    return outer->x == inner->x * n && outer->y == inner->y * n && outer->mask == inner->mask * n &&
           outer->out == inner->out * n && outer->number == inner->number * inner->length;
}

static unsigned merge_extents(struct extent *e, unsigned count) {
    unsigned left = 0;
    for (unsigned i = 0; i < count; i++) {
        if (left > 0 && is_behind(&e[left - 1], &e[i])) {
            const size_t length = e[left - 1].length * e[i].length;
            e[left - 1] = e[i];
            e[left - 1].length = length;
        } else
            e[left++] = e[i];
    }
    return left;
}

/* Turns dimensions whose stride in x is negative, so that all go upwards in x. */
static void flip_extents(struct shaped *s, struct extent *e, unsigned count) {
    const ptrdiff_t size = (ptrdiff_t)type_size(s->p->type);
    for (unsigned i = 0; i < count; i++) {
        const ptrdiff_t last = (ptrdiff_t)e[i].length - 1;
        if (e[i].x >= 0) continue;
        s->x += last * e[i].x * size;
        if (s->y) s->y += last * e[i].y * size;
        if (s->mask) s->mask += last * e[i].mask;
        s->out_first += last * e[i].out;
        s->number_first += (size_t)last * e[i].number;
        e[i].x = -e[i].x;
        e[i].y = -e[i].y;
        e[i].mask = -e[i].mask;
        e[i].out = -e[i].out;
        e[i].number = 0 - e[i].number;
    }
}

/* Returns whether the order of a result's elements matters. */
static int is_ordered(const struct problem *p) {
    return problem_has(p, MONOID_TREE) || (p->extremes & WANT_INDEX) != 0;
}

/* The most dimensions of a plan: segments of equal length turn their axis into two. */
#define PLAN_DIMS (TALLY_DIMS_MAX + 1)

/* The strides of all dimensions. */
struct strides {
    ptrdiff_t x[PLAN_DIMS], y[PLAN_DIMS], mask[PLAN_DIMS], out[PLAN_DIMS], number[PLAN_DIMS];
};

/* Sets the strides to the shape's, and to those of C order where it gives none. If `empty`, no array is read, and the
 * strides of the arrays are 0. */
static void read_strides(const tally_shape *shape, int empty, struct strides *to) {
    const uint32_t all = ((uint32_t)1 << shape->dims) - 1;
    const size_t bytes = shape->dims * sizeof *to->x;
    size_t length[PLAN_DIMS]; /* of the results */
    memset(to, 0, sizeof *to);
    if (bytes == 0) return;
    memcpy(length, shape->length, shape->dims * sizeof *length);
    if (!empty) {
        c_order(length, shape->dims, all, to->x);
        memcpy(to->y, to->x, bytes);
        memcpy(to->mask, to->x, bytes);
        if (shape->x_stride) memcpy(to->x, shape->x_stride, bytes);
        if (shape->y_stride) memcpy(to->y, shape->y_stride, bytes);
        if (shape->mask_stride) memcpy(to->mask, shape->mask_stride, bytes);
    }
    if (shape->cut != TALLY_AXES) length[cut_axis(shape)] = shape->count;
    c_order(length, shape->dims, shape->cut == TALLY_AXES ? all & ~shape->axes : all, to->number);
    memcpy(to->out, shape->out_stride ? shape->out_stride : to->number, bytes);
}

/* Returns dimension d. It has strides of results only if it is kept. */
static struct extent extent_of(const struct shaped *s, const tally_shape *shape,
                               const struct strides *from, unsigned d, int kept) {
    struct extent e = {.length = shape->length[d], .x = from->x[d]};
    if (s->y) e.y = from->y[d];
    if (s->mask) e.mask = from->mask[d];
    if (!kept) return e;
    e.out = from->out[d];
    e.number = (size_t)from->number[d];
    return e;
}

/* Brings the kept dimensions into their plainest form. */
static void plan_kept(struct shaped *s) {
    flip_extents(s, s->kept, s->keeps);
    sort_extents(s->kept, s->keeps);
    s->keeps = merge_extents(s->kept, s->keeps);
}

static int has_length_0(const tally_shape *shape) {
    for (unsigned d = 0; d < shape->dims; d++)
        if (shape->length[d] == 0) return 1;
    return 0;
}

static void plan_axes(const tally_shape *shape, struct shaped *s) {
    struct strides strides;
    const int empty = has_length_0(shape);
    s->each = 1;
    for (unsigned d = 0; d < shape->dims; d++)
        if (shape->axes >> d & 1 && shape->length[d] == 0) s->each = 0;
    if (empty) { /* nothing is read: one result after another, each of no elements */
        s->keeps = s->results > 1;
        s->kept[0] = (struct extent){.length = s->results, .out = 1, .number = 1};
        s->each = 0;
        if (!shape->out_stride || s->results == 0) return;
    }
    read_strides(shape, empty, &strides);
    s->keeps = s->reduces = 0;
    for (unsigned d = 0; d < shape->dims; d++) {
        const int reduce = shape->axes >> d & 1;
        const struct extent e = extent_of(s, shape, &strides, d, !reduce);
        if (e.length <= 1) continue;
        if (reduce) {
            s->reduced[s->reduces++] = e;
            if (s->each) s->each *= e.length;
        } else
            s->kept[s->keeps++] = e;
    }
    if (s->each == 0) s->reduces = 0;
    if (!is_ordered(s->p)) {
        flip_extents(s, s->reduced, s->reduces);
        sort_extents(s->reduced, s->reduces);
    }
    plan_kept(s);
    s->reduces = merge_extents(s->reduced, s->reduces);
}

/* Plans segments between offsets, and groups. An array without dimensions has one axis: its n elements, side by
 * side. */
static void plan_cut(const tally_shape *shape, struct shaped *s) {
    struct strides strides;
    if (shape->dims == 0) {
        s->reduced[0] = (struct extent){.length = s->n,
                                        .x = 1,
                                        .y = s->y != NULL,
                                        .mask = s->mask != NULL,
                                        .out = 1,
                                        .number = 1};
        return;
    }
    const unsigned axis = cut_axis(shape);
    read_strides(shape, has_length_0(shape), &strides);
    for (unsigned d = 0; d < shape->dims; d++) {
        const struct extent e = extent_of(s, shape, &strides, d, 1);
        if (d == axis)
            s->reduced[0] = e;
        else if (e.length != 1)
            s->kept[s->keeps++] = e;
    }
    plan_kept(s);
}

/* Plans segments of equal length: their axis becomes two, and the inner one is reduced. */
static void plan_rows(const tally_shape *shape, struct shaped *s) {
    const tally_shape flat = {.dims = 1, .length = &s->n, .axes = 1};
    const tally_shape *from = shape->dims > 0 ? shape : &flat;
    tally_shape given = *from;
    struct strides strides;
    size_t length[PLAN_DIMS];
    const size_t each = s->n / shape->count;
    const unsigned axis = cut_axis(from);
    given.cut = TALLY_SEGMENTS;
    given.count = shape->count;
    read_strides(&given, 0, &strides);
    for (unsigned d = from->dims + 1; d-- > 0;) {
        const unsigned f = d > axis ? d - 1 : d;
        length[d] = from->length[f];
        strides.x[d] = strides.x[f];
        strides.y[d] = strides.y[f];
        strides.mask[d] = strides.mask[f];
        strides.out[d] = strides.out[f];
    }
    length[axis] = shape->count;
    length[axis + 1] = each;
    strides.x[axis] *= (ptrdiff_t)each;
    strides.y[axis] *= (ptrdiff_t)each;
    strides.mask[axis] *= (ptrdiff_t)each;
    const tally_shape rows = {.cut = TALLY_AXES,
                              .dims = from->dims + 1,
                              .length = length,
                              .axes = (uint32_t)2 << axis,
                              .x_stride = strides.x,
                              .y_stride = strides.y,
                              .mask_stride = strides.mask,
                              .out_stride = from->out_stride ? strides.out : NULL};
    s->cut = TALLY_AXES;
    plan_axes(&rows, s);
}

tally_status shape_plan(const struct problem *p, const tally_shape *shape, const void *x,
                        const void *y, void *const out[], struct shaped *s) {
    const int two = problem_has(p, MONOID_PRODUCTS);
    memset(s, 0, sizeof *s);
    s->p = p;
    tally_status status = tally_shape_results(shape, &s->results);
    if (status != TALLY_OK) return status;
    s->cut = shape->cut;
    s->x = x;
    s->y = two ? y : NULL;
    s->mask = shape->mask;
    s->out = out;
    s->n = shape->cut == TALLY_AXES ? shape->n : cut_length(shape);
    s->count = shape->cut == TALLY_AXES ? 0 : shape->count;
    if (shape->cut != TALLY_AXES) (void)count_kept(shape, &s->vectors);
    if (!two && y) return fail(TALLY_EINVAL, "a second array is for dot and complex elements only");
    int reads = s->n != 0 && s->vectors != 0;
    if (s->cut == TALLY_AXES) {
        plan_axes(shape, s);
        reads = s->each != 0 && s->results != 0;
    } else if (s->cut == TALLY_SEGMENTS && !shape->offsets && shape->count > 0)
        plan_rows(shape, s);
    else
        plan_cut(shape, s);
    if (reads && !x) return fail(TALLY_EINVAL, "the array is NULL but has elements");
    if (reads && two && !y)
        return fail(TALLY_EINVAL,
                    "dot and complex elements need two arrays, and the second is NULL");
    if (s->results > 0 && out)
        for (unsigned v = 0; v < p->values; v++)
            if (!out[v]) return fail(TALLY_EINVAL, "out[%u] is NULL", v);
    s->offsets = shape->offsets;
    s->offsets_type = shape->offsets_type ? shape->offsets_type : TALLY_I64;
    s->ids = shape->ids;
    s->ids_type = shape->ids_type ? shape->ids_type : TALLY_I64;
    s->skip_outside = shape->skip_outside;
    s->sorted = shape->sorted;
    if (p->about) s->means = shape->means;
    s->means_count = p->is_complex ? 2 * s->results : s->results;
    return TALLY_OK;
}

static void lay_out_starts(struct sorted *sorted, size_t groups) {
    sorted->start = scratch_array(&sorted->starts, groups + 1, sizeof *sorted->start);
}

int sorted_begin(struct sorted *sorted, size_t groups) {
    *sorted = (struct sorted){0};
    lay_out_starts(sorted, groups);
    if (!scratch_create(&sorted->starts, 0)) return 0;
    lay_out_starts(sorted, groups);
    return 1;
}

void sorted_free(struct sorted *sorted) {
    scratch_destroy(&sorted->starts);
    scratch_destroy(&sorted->copies);
}

static tally_status offset_is_outside(size_t i, int64_t at, size_t n) {
    return fail(TALLY_EINVAL, "offset %zu is %lld, outside of the array's %zu elements", i,
                (long long)at, n);
}

tally_status shape_bad_offset(const struct shaped *s, size_t i) {
    const int64_t at = offset_at(s->offsets, s->offsets_type, i);
    if (at < 0 || (uint64_t)at > s->n) return offset_is_outside(i, at, s->n);
    return fail(TALLY_EINVAL, "offset %zu falls: it is %lld, behind %lld", i, (long long)at,
                (long long)offset_at(s->offsets, s->offsets_type, i - 1));
}

tally_status shape_check_last_offset(const tally_shape *shape) {
    const tally_type type = shape->offsets_type ? shape->offsets_type : TALLY_I64;
    if (shape->cut != TALLY_SEGMENTS || shape->count > 0 || !shape->offsets) return TALLY_OK;
    const int64_t at = offset_at(shape->offsets, type, 0);
    const size_t n = cut_length(shape);
    return at < 0 || (uint64_t)at > n ? offset_is_outside(0, at, n) : TALLY_OK;
}

tally_status shape_bad_id(const struct shaped *s, size_t i) {
    const uint64_t id = id_at(s->ids, s->ids_type, i);
    if (id < s->count)
        return fail(TALLY_EINVAL, "the ids are said to be sorted, but id %zu falls", i);
    if (type_is_signed(s->ids_type))
        return fail(TALLY_EINVAL, "id %zu is %lld, outside of the %zu groups", i, (long long)id,
                    s->count);
    return fail(TALLY_EINVAL, "id %zu is %llu, outside of the %zu groups", i,
                (unsigned long long)id, s->count);
}

/* ---- Results ------------------------------------------------------------------------------- */

void shaped_put(const struct shaped *s, unsigned v, ptrdiff_t place, uint64_t bits) {
    const tally_type type = s->p->value[v].type;
    const ptrdiff_t size = (ptrdiff_t)type_size(type);
    const tally_value value = value_of_bits(type, bits);
    memcpy((char *)s->out[v] + place * size, &value.as, (size_t)size);
}

void shaped_absent(struct absence *known, uint64_t number, tally_status status, unsigned value) {
    if (number < known->number || (number == known->number && value < known->value))
        *known = (struct absence){number, status, value};
}

void shaped_lower(const struct shaped *s, const struct state *state, const tally_value *root,
                  ptrdiff_t place, size_t number, struct absence *absence) {
    tally_value value[TALLY_VALUES_MAX];
    struct problem own;
    const struct problem *p = s->p;
    if (s->means) {
        own = *p;
        const size_t parts = p->is_complex ? 2 : 1;
        memcpy(own.mean, s->means + parts * number, parts * sizeof *own.mean);
        p = &own;
    }
    const tally_status status = lower_values(p, state, root, value);
    if (status != TALLY_OK) {
        value[0] = (tally_value){.type = 0};
        shaped_absent(absence, number, status, 0);
    }
    for (unsigned v = 0; v < p->values; v++) {
        const tally_op op = p->value[v].op;
        uint64_t bits = 0;
        if (value[v].type)
            bits = tally_value_bits(&value[v]);
        else if (p->values > 1 && (op == TALLY_ARGMIN || op == TALLY_ARGMAX))
            bits = UINT64_MAX;
        else if (status == TALLY_OK)
            shaped_absent(absence, number, TALLY_ERANGE, v);
        shaped_put(s, v, place, bits);
    }
}

tally_status shaped_outcome(const struct problem *p, const struct absence *absence) {
    if (absence->number == UINT64_MAX) return TALLY_OK;
    const unsigned v = absence->value;
    const char *name = tally_op_name(p->value[v].op);
    if (absence->status == TALLY_EINVAL)
        return fail_result(TALLY_EINVAL, (size_t)absence->number,
                           " has no elements, so there is no %s", name);
    return fail_result(TALLY_ERANGE, (size_t)absence->number, ": the exact %s does not fit %s",
                       name, tally_type_name(p->value[v].type));
}
