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

/* Returns the place of the element with number `nth`. */
PURE spot numbered_spot(const parts_plan *p, u64 nth) {
    const spot plain = {p->x + (i64)nth, p->y + (i64)nth, p->mask + (i64)nth};
    if (p->cut != PARTS_AXES) return plain;
    return element_spot(p, row_spot(p, nth / p->rows.each), nth % p->rows.each);
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
