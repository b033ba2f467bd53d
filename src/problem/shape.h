/*
 * shape.h - plans of reductions in parts: which elements belong to which result, in the simplest form.
 *
 * A tally_shape is checked and planned once. Dimensions of length 1 are dropped. Two dimensions are merged if the outer
 * one continues where the inner one ends. Kept dimensions are sorted by stride and turned so that they go upwards;
 * reduced ones, too, where the order of a result's elements does not matter (it does for an index and for the
 * canonical tree). Segments of equal length become two dimensions. Few cases are left for a device to be fast at.
 * Other segments, and groups, keep the axis that is cut: the kept dimensions count the vectors along this axis.
 */
#ifndef TALLY_SHAPE_H
#define TALLY_SHAPE_H

#include "base/scratch.h"
#include "base/unaligned.h"
#include "problem/monoid.h"

/* A dimension. Strides are in elements. */
struct extent {
    size_t length;
    ptrdiff_t x, y, mask;
    ptrdiff_t
        out; /* of a kept dimension, or of the axis of segments and groups: the stride of results */
    size_t
        number; /* and that of the results' numbers, which are in C order of the caller's dimensions */
};

/* The first result with a value that does not exist. */
struct absence {
    uint64_t number; /* UINT64_MAX: none */
    tally_status status;
    unsigned value; /* which value of the problem */
};

/* A planned shape. It borrows the problem and the arrays. */
struct shaped {
    const struct problem *p;
    tally_cut cut; /* segments of equal length are TALLY_AXES */
    const char *x, *y;
    const unsigned char *mask;
    void *const *out;
    size_t results;

    /* TALLY_AXES: the dimensions from the outermost to the innermost, of lengths above 1; `each` elements a
     * result. The first result lies at out[v][out_first] and is number number_first. */
    unsigned keeps, reduces;
    struct extent kept[TALLY_DIMS_MAX], reduced[TALLY_DIMS_MAX];
    size_t each;
    ptrdiff_t out_first;
    size_t number_first;

    /* TALLY_SEGMENTS and TALLY_GROUPS: `count` parts of each of `vectors` vectors, which the kept dimensions count:
     * results == count * vectors. reduced[0] is the axis along which the parts lie; it has n elements, is never turned,
     * and has any length. Without dimensions the array is one vector, whose elements lie side by side. */
    size_t n, count, vectors;
    const void *offsets, *ids; /* NULL where n is 0 */
    tally_type offsets_type, ids_type;
    int skip_outside, sorted;

    const double *
        means; /* the given mean of each of the caller's results, by number; two numbers each for complex elements.
                          * NULL: the problem's mean */
    size_t means_count;

    int filled; /* a GPU's copy, in which a neutral element stands for each that a mask hid (gpu/filled.h) */
};

/* Plans the shape, or says with TALLY_EINVAL or TALLY_ETYPE why it makes no sense. Arrays are not read: offsets and
 * ids are checked by the device. An `out` of NULL is not looked at. */
tally_status shape_plan(const struct problem *p, const tally_shape *shape, const void *x,
                        const void *y, void *const out[], struct shaped *s);

/* Returns whether segments or groups are those of one vector, all whose arrays and results lie side by side. */
static inline int shape_is_flat(const struct shaped *s) {
    const struct extent *axis = &s->reduced[0];
    return s->keeps == 0 && axis->x == 1 && (!s->y || axis->y == 1) &&
           (!s->mask || axis->mask == 1) && axis->out == 1;
}

/* Checks the only offset of a shape without segments. Devices check the offsets of other shapes. */
tally_status shape_check_last_offset(const tally_shape *shape);

static inline int64_t offset_at(const void *offsets, tally_type type, size_t i) {
    return type == TALLY_I32 ? ((const unaligned_i32 *)offsets)[i]
                             : ((const unaligned_i64 *)offsets)[i];
}

/* Returns the i-th id as an unsigned number; a negative one is at least 2^63. */
static inline uint64_t id_at(const void *ids, tally_type type, size_t i) {
    switch (type) {
    case TALLY_I8:
        return (uint64_t)((const unaligned_i8 *)ids)[i];
    case TALLY_I16:
        return (uint64_t)((const unaligned_i16 *)ids)[i];
    case TALLY_I32:
        return (uint64_t)((const unaligned_i32 *)ids)[i];
    case TALLY_U8:
        return ((const unaligned_u8 *)ids)[i];
    case TALLY_U16:
        return ((const unaligned_u16 *)ids)[i];
    case TALLY_U32:
        return ((const unaligned_u32 *)ids)[i];
    default:
        return ((const unaligned_u64 *)ids)[i];
    }
}

/* Elements in the order of their groups: group g is x[start[g]..start[g + 1]), and y alike. Where no index is wanted
 * `position` is NULL. */
struct sorted {
    const char *x, *y;
    int64_t *start;     /* [groups + 1] */
    uint64_t *position; /* each element's index in the caller's array; NULL: as they lie */
    struct scratch starts, copies; /* of start[]; of x, y and position[], where they are copies */
};
/* Makes *sorted empty, with room for the start[] of `groups` groups. Returns 0 if there is no
 * memory. */
int sorted_begin(struct sorted *sorted, size_t groups);
void sorted_free(struct sorted *sorted);

/* Return TALLY_EINVAL with the line about the i-th offset, or id, which lies outside or falls. */
tally_status shape_bad_offset(const struct shaped *s, size_t i);
tally_status shape_bad_id(const struct shaped *s, size_t i);

/* Lowers a result's state to out[v][place], for each value v; notes a value that does not exist under the result's
 * number. *root is the canonical tree's value, where there is one. */
void shaped_lower(const struct shaped *s, const struct state *state, const tally_value *root,
                  ptrdiff_t place, size_t number, struct absence *absence);
/* Writes the v-th value, given by its bits, to out[v][place]. */
void shaped_put(const struct shaped *s, unsigned v, ptrdiff_t place, uint64_t bits);
/* Notes in *known that a value of a result does not exist, if that result comes before the noted
 * one. */
void shaped_absent(struct absence *known, uint64_t number, tally_status status, unsigned value);
/* Returns the noted status, with its line; TALLY_OK if nothing is noted. */
tally_status shaped_outcome(const struct problem *p, const struct absence *absence);

#endif
