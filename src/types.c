/*
 * types.c - names, sizes and kinds of the element types and operators, from the table.
 */
#include "partial.h"
#include "status.h"
#include "table.h"

#include <string.h>

enum kind { KIND_SIGNED, KIND_UNSIGNED, KIND_FLOATING };

static const struct {
    const char *name;
    enum kind kind;
    unsigned bits;
} types[] = {
#define TYPE(NAME, name, kind, bits) [TALLY_##NAME] = {#name, KIND_##kind, bits},
    TALLY_TYPES(TYPE)
#undef TYPE
};

static const char *const ops[] = {
#define OP(NAME, name, family) [TALLY_##NAME] = #name,
    TALLY_OPS(OP)
#undef OP
};

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static int known(tally_type type) {
    return (size_t)type >= 1 && (size_t)type < COUNT(types);
}

const char *tally_type_name(tally_type type) {
    return known(type) ? types[type].name : NULL;
}

size_t tally_type_size(tally_type type) {
    return known(type) ? types[type].bits / 8 : 0;
}

int type_is_float(tally_type type) {
    return known(type) && types[type].kind == KIND_FLOATING;
}

int type_is_signed(tally_type type) {
    return known(type) && types[type].kind == KIND_SIGNED;
}

const char *tally_op_name(tally_op op) {
    return (size_t)op >= 1 && (size_t)op < COUNT(ops) ? ops[op] : NULL;
}

tally_status tally_type_parse(const char *name, tally_type *out) {
    if (!name || !out) return fail(TALLY_EINVAL, "tally_type_parse: an argument is NULL");
    for (size_t t = 1; t < COUNT(types); t++)
        if (strcmp(name, types[t].name) == 0) {
            *out = (tally_type)t;
            return TALLY_OK;
        }
    return fail(TALLY_ETYPE,
                "'%.40s' is no element type; the types are i8 i16 i32 i64 u8 u16 u32 u64 "
                "f16 bf16 f32 f64",
                name);
}

tally_status tally_op_parse(const char *name, tally_op *out) {
    if (!name || !out) return fail(TALLY_EINVAL, "tally_op_parse: an argument is NULL");
    for (size_t o = 1; o < COUNT(ops); o++)
        if (strcmp(name, ops[o]) == 0) {
            *out = (tally_op)o;
            return TALLY_OK;
        }
    return fail(TALLY_EINVAL,
                "'%.40s' is no operator; the operators are sum prod min max and or xor", name);
}
