/*
 * spots.h - where elements lie that the general kernels read (parts.cu, sort.cu), and their bits, of whatever type the
 * plan says (parts.h).
 *
 * Before including this header, include operators.h, lower.h and parts.h.
 */
#ifndef TALLY_SPOTS_H
#define TALLY_SPOTS_H

/* An element's place: its index in x, in y and in the mask. */
typedef struct spot {
    i64 x, y, mask;
} spot;

/* Returns the place of the first element of an array's row. */
PURE spot row_spot(const parts_plan *p, u64 row) {
    spot at = {p->x, p->y, p->mask};
    for (u32 d = p->keeps; d-- > 0;) {
        const i64 i = (i64)(d > 0 ? row % p->kept[d].length : row);
        if (d > 0) row /= p->kept[d].length;
        at.x += i * p->kept[d].x;
        at.y += i * p->kept[d].y;
        at.mask += i * p->kept[d].mask;
    }
    return at;
}

/* Returns how far the result of an array's row lies behind the first one. */
PURE i64 result_spot(const parts_plan *p, u64 row) {
    i64 at = 0;
    for (u32 d = p->keeps; d-- > 0;) {
        const i64 i = (i64)(d > 0 ? row % p->kept[d].length : row);
        if (d > 0) row /= p->kept[d].length;
        at += i * p->kept[d].out;
    }
    return at;
}

/* Returns the place of the k-th element of the row that begins at `at`. */
PURE spot element_spot(const parts_plan *p, spot at, u64 k) {
    for (u32 d = p->reduces; d-- > 0;) {
        const i64 i = (i64)(d > 0 ? k % p->reduced[d].length : k);
        if (d > 0) k /= p->reduced[d].length;
        at.x += i * p->reduced[d].x;
        at.y += i * p->reduced[d].y;
        at.mask += i * p->reduced[d].mask;
    }
    return at;
}

/* Returns the part that a row of segments or groups is of, and sets *vector to the vector. */
PURE u64 part_of(const parts_plan *p, u64 row, u64 *vector) {
    *vector = 0;
    if (p->rows.vectors <= 1) return row;
    *vector = row % p->rows.vectors;
    return row / p->rows.vectors;
}

/* The origin of a row. Its elements lie along an axis, or in the order that a sort gave: `first` is the place of number 0 there,
 * and `start` is the number of the row's first element. */
typedef struct row_origin {
    spot first;
    u64 start;
} row_origin;

__device__ row_origin origin_of_row(const GLOBAL u8 *offsets, const parts_plan *p, u64 row) {
    u64 vector;
    row_origin o = {{0, 0, 0}, 0};
    if (p->cut == PARTS_AXES) {
        o.first = row_spot(p, row);
    } else {
        o.start = part_start(offsets, p->rows, part_of(p, row, &vector));
        o.first = row_spot(p, vector);
    }
    return o;
}

/* Returns number j of an order that begins at a word of the workspace. */
__device__ u64 number_in_order(const GLOBAL u64 *work, u64 order, u32 is_wide, u64 j) {
    return is_wide ? work[order + j] : ((const GLOBAL u32 *)(work + order))[j];
}

/* Returns the number of a row's k-th element along the axis, or within its row of an array. */
__device__ u64 number_along(const GLOBAL u64 *work, const parts_plan *p, const row_origin *o,
                            u64 k) {
    return p->order ? number_in_order(work, p->order, p->wide_order, o->start + k) : o->start + k;
}

/* Returns the place of the element with a number along the axis, or within its row of an array. */
PURE spot spot_along(const parts_plan *p, const row_origin *o, u64 nth) {
    const spot plain = {o->first.x + (i64)nth, o->first.y + (i64)nth, o->first.mask + (i64)nth};
    return p->is_flat ? plain : element_spot(p, o->first, nth);
}

/* Returns the place of element number j of all rows. */
__device__ spot numbered_spot(const GLOBAL u8 *offsets, const GLOBAL u64 *work, const parts_plan *p,
                              u64 j) {
    row_origin o = {{p->x, p->y, p->mask}, 0};
    if (p->cut == PARTS_AXES)
        return element_spot(p, row_spot(p, j / p->rows.each), j % p->rows.each);
#if defined(HAS_VECTORS)
    if (p->rows.vectors > 1) {
        const u64 row = row_of(offsets, p->rows, 1, 0, j - row_start(offsets, p->rows, 0));
        j -= row_start(offsets, p->rows, row);
        o = origin_of_row(offsets, p, row);
    }
#endif
    return element_spot(p, o.first, number_along(work, p, &o, j));
}

__device__ u64 load_bits(const GLOBAL u8 *x, u32 width, i64 i) {
    return width == 64   ? ((const GLOBAL u64 *)x)[i]
           : width == 32 ? ((const GLOBAL u32 *)x)[i]
           : width == 16 ? ((const GLOBAL u16 *)x)[i]
                         : x[i];
}

__device__ void store_bits(GLOBAL u8 *x, u32 width, i64 i, u64 bits) {
    if (width == 64)
        ((GLOBAL u64 *)x)[i] = bits;
    else if (width == 32)
        ((GLOBAL u32 *)x)[i] = (u32)bits;
    else if (width == 16)
        ((GLOBAL u16 *)x)[i] = (u16)bits;
    else
        x[i] = (u8)bits;
}

PURE u64 extended(u64 bits, u32 width, u32 is_signed_type) {
    const u64 sign = (u64)1 << (width - 1);
    return is_signed_type ? (bits ^ sign) - sign : bits;
}

/* Returns an id as an unsigned number; a negative one is 2^63 or more. */
__device__ u64 id_of(const GLOBAL u8 *ids, const parts_plan *p, u64 nth) {
    const u32 width = width_of(p->ids);
    return extended(load_bits(ids, width, (i64)nth), width, is_signed(p->ids));
}

#endif
