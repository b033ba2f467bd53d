/*
 * shape.h - a reduction in parts, planned: which elements belong to which result, in the plainest form.
 *
 * A tally_shape is checked and planned once. Dimensions of length 1 are dropped, neighbours that lie behind one
 * another are merged, kept dimensions are sorted by stride and turned so that they go upwards; reduced ones,
 * too, where the order of a result's elements does not matter (it does for an index and for the canonical
 * tree). Segments of equal length become two dimensions. What is left are few cases for a device to be fast at.
 */
#ifndef TALLY_SHAPE_H
#define TALLY_SHAPE_H

#include "monoid.h"

/* A dimension. Strides are in elements. */
struct extent {
    size_t length;
    ptrdiff_t x, y, mask;
    ptrdiff_t out; /* of kept ones: where its results lie, */
    size_t number; /* and how they are counted: in C order of the caller's dimensions */
};

/* The first result that does not exist. */
struct absence {
    uint64_t number; /* UINT64_MAX: none */
    tally_status status;
    unsigned value; /* which value of the problem */
};

struct shaped {
    const struct problem *p;
    tally_cut cut; /* segments of equal length are TALLY_AXES */
    const char *x, *y;
    const unsigned char *mask;
    void *const *out;
    size_t results;

    /* TALLY_AXES: the dimensions from the outermost to the innermost, of lengths above 1; `each` elements a
     * result. The first result lies at out_first and is number number_first. */
    unsigned keeps, reduces;
    struct extent kept[TALLY_DIMS_MAX], reduced[TALLY_DIMS_MAX];
    size_t each;
    ptrdiff_t out_first;
    size_t number_first;

    /* The others. */
    size_t n;
    const void *offsets, *ids; /* NULL where n is 0 */
    tally_type offsets_type, ids_type;
    int skip_outside, sorted;
};

/* Plans the shape, or says with TALLY_EINVAL or TALLY_ETYPE why it makes no sense. The offsets are not read
 * yet. */
tally_status shape_plan(const struct problem *p, const tally_shape *shape, const void *x,
                        const void *y, void *const out[], struct shaped *s);

static inline int64_t offset_at(const void *offsets, tally_type type, size_t i) {
    return type == TALLY_I32 ? ((const int32_t *)offsets)[i] : ((const int64_t *)offsets)[i];
}

/* The i-th id, as an unsigned number that is at least 2^63 where it is negative. */
static inline uint64_t id_at(const void *ids, tally_type type, size_t i) {
    switch (type) {
    case TALLY_I8:
        return (uint64_t)((const int8_t *)ids)[i];
    case TALLY_I16:
        return (uint64_t)((const int16_t *)ids)[i];
    case TALLY_I32:
        return (uint64_t)((const int32_t *)ids)[i];
    case TALLY_U8:
        return ((const uint8_t *)ids)[i];
    case TALLY_U16:
        return ((const uint16_t *)ids)[i];
    case TALLY_U32:
        return ((const uint32_t *)ids)[i];
    default:
        return ((const uint64_t *)ids)[i];
    }
}

/* Elements in the order of their groups: group g is x[start[g]..start[g + 1]), and y alike. */
struct sorted {
    const char *x, *y;
    int64_t *start;     /* [count + 1] */
    uint64_t *position; /* NULL: x is the caller's array; else where each element stood in it */
    void *owned;        /* x and y, or NULL */
};
void sorted_free(struct sorted *sorted);

/* The line about the first offset that is wrong, about an id that lies outside or falls. */
tally_status shape_bad_offset(const struct shaped *s, size_t i);
tally_status shape_bad_id(const struct shaped *s, size_t i);

/* Lowers a result's state to its place; notes what does not exist. `root` is the tree's value, where there is
 * one. */
void shaped_lower(const struct shaped *s, const struct state *state, const tally_value *root,
                  ptrdiff_t place, size_t number, struct absence *absence);
/* Writes the v-th value's bits to a place. */
void shaped_put(const struct shaped *s, unsigned v, ptrdiff_t place, uint64_t bits);
/* Notes an absence, if it comes before the one that is known. */
void shaped_absent(struct absence *known, uint64_t number, tally_status status, unsigned value);
/* What they come to: TALLY_OK where there is none. */
tally_status shaped_outcome(const struct problem *p, const struct absence *absence);

#endif
