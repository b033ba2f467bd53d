/*
 * types.c - names, sizes and kinds of the element types, from the list in table.h.
 */
#include "base/types.h"

#include "base/status.h"

#include <string.h>

const struct type_row type_rows[TYPE_ROWS] = {
#define TYPE(NAME, name, kind, bits) [TALLY_##NAME] = {#name, KIND_##kind, bits},
    TALLY_TYPES(TYPE)
#undef TYPE
};

const char *tally_type_name(tally_type type) {
    return type_is_known(type) ? type_rows[type].name : NULL;
}

size_t tally_type_size(tally_type type) {
    return type_is_known(type) ? type_size(type) : 0;
}

tally_status tally_type_parse(const char *name, tally_type *out) {
    if (!name || !out) return fail(TALLY_EINVAL, "tally_type_parse: an argument is NULL");
    for (size_t t = 1; t < TYPE_ROWS; t++)
        if (strcmp(name, type_rows[t].name) == 0) {
            *out = (tally_type)t;
            return TALLY_OK;
        }
    return fail(TALLY_ETYPE,
                "'%.40s' is no element type; the types are i8 i16 i32 i64 u8 u16 u32 u64 "
                "f16 bf16 f32 f64",
                name);
}

tally_value value_of_bits(tally_type type, uint64_t bits) {
    tally_value v = {.type = type};
    switch (tally_type_size(type)) {
    case 1:
        v.as.u8 = (uint8_t)bits;
        break;
    case 2:
        v.as.u16 = (uint16_t)bits;
        break;
    case 4:
        v.as.u32 = (uint32_t)bits;
        break;
    default:
        v.as.u64 = bits;
    }
    return v;
}
