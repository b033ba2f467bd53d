/*
 * types.h - kinds and sizes of the element types, and a value from its bits.
 */
#ifndef TALLY_TYPES_H
#define TALLY_TYPES_H

#include "base/table.h"
#include "tally.h"

enum kind { KIND_SIGNED, KIND_UNSIGNED, KIND_FLOATING };

struct type_row {
    const char *name;
    enum kind kind;
    unsigned bits;
};

#define TYPE_ROW(NAME, name, kind, bits) +1
enum { TYPE_ROWS = 1 + (0 TALLY_TYPES(TYPE_ROW)) };
#undef TYPE_ROW
extern const struct type_row type_rows[TYPE_ROWS]; /* by tally_type; row 0 is none */

/* The following take an element type; type_is_known() takes any number. */

static inline int type_is_float(tally_type type) {
    return type_rows[type].kind == KIND_FLOATING;
}
static inline int type_is_signed(tally_type type) {
    return type_rows[type].kind == KIND_SIGNED;
}
/* Return the bits of an element, and its bytes. */
static inline unsigned type_bits(tally_type type) {
    return type_rows[type].bits;
}
static inline size_t type_size(tally_type type) {
    return type_rows[type].bits / 8;
}
/* Returns whether it is a float shorter than f32, which holds all its values exactly. */
static inline int type_is_short_float(tally_type type) {
    return type_is_float(type) && type_bits(type) < 32;
}
/* Returns the type of exact integer results. */
static inline tally_type type_wide(tally_type type) {
    return type_is_signed(type) ? TALLY_I64 : TALLY_U64;
}
/* Returns whether `type` is an element type. */
static inline int type_is_known(tally_type type) {
    return (size_t)type >= 1 && (size_t)type < TYPE_ROWS;
}

/* Returns the value of any type with these bits; bits above the type's are dropped. */
tally_value value_of_bits(tally_type type, uint64_t bits);
/* Returns a word whose lowest `bits` bits, 1 to 64, are set. */
static inline uint64_t low_bits(unsigned bits) {
    return ~UINT64_C(0) >> (64 - bits);
}
/* Returns the magnitude of an element, from its bits. A float's magnitude is its bits without the
 * sign: they sort as magnitudes do, NaNs on top. */
static inline uint64_t type_magnitude(tally_type type, uint64_t bits) {
    const unsigned width = type_bits(type);
    if (type_is_float(type)) return bits & low_bits(width - 1);
    return type_is_signed(type) && bits >> (width - 1) ? (0 - bits) & low_bits(width) : bits;
}

#endif
