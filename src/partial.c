/* partial.c - see partial.h. */
#include "partial.h"

#include "exact/round.h"
#include "status.h"

#include <string.h>

/* The type of a result nobody asked to be otherwise. */
static tally_type natural_type(tally_op op, tally_type type) {
    if (type_is_float(type) || (op != TALLY_SUM && op != TALLY_PROD)) return type;
    return type_is_signed(type) ? TALLY_I64 : TALLY_U64;
}

tally_status reduction_plan(tally_op op, tally_type type, const tally_options *options,
                            struct reduction *out) {
    if (!tally_op_name(op)) return fail(TALLY_EINVAL, "%d is no operator", (int)op);
    if (!tally_type_name(type)) return fail(TALLY_ETYPE, "%d is no element type", (int)type);
    struct reduction r = {.op = op, .type = type, .out = natural_type(op, type)};
    int fast = options && options->fast, floats = type_is_float(type);
    tally_type wanted = options ? options->out : 0;
    if (wanted && !tally_type_name(wanted))
        return fail(TALLY_ETYPE, "%d is no result type", (int)wanted);
    if (wanted && wanted != r.out) {
        int allowed =
            op == TALLY_SUM && floats && (fast ? wanted == TALLY_F64 : type_is_float(wanted));
        if (!allowed)
            return fail(TALLY_ETYPE, "%s of %s comes back as %s, not as %s", tally_op_name(op),
                        tally_type_name(type), tally_type_name(r.out), tally_type_name(wanted));
        r.out = wanted;
    }
    switch (op) {
    case TALLY_SUM:
        r.method = !floats ? METHOD_INTEGER_SUM : fast ? METHOD_FAST_SUM : METHOD_FLOAT_SUM;
        break;
    case TALLY_PROD:
        r.method = floats ? METHOD_TREE : METHOD_INTEGER_PROD;
        break;
    case TALLY_MIN:
    case TALLY_MAX:
        r.method = METHOD_ORDER;
        break;
    default:
        r.method = METHOD_BITS;
    }
    *out = r;
    return TALLY_OK;
}

static uint64_t low_bits(unsigned bits) {
    return bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1;
}

/* What min or max starts from: the other end of the type. */
static uint64_t order_identity(tally_op op, tally_type type) {
    unsigned bits = 8 * (unsigned)tally_type_size(type);
    uint64_t top = UINT64_C(1) << (bits - 1);
    if (type_is_float(type)) {
        tally_value infinity = float_infinity(type, op == TALLY_MAX);
        return tally_value_bits(&infinity);
    }
    if (type_is_signed(type)) return op == TALLY_MIN ? top - 1 : top;
    return op == TALLY_MIN ? low_bits(bits) : 0;
}

void partial_clear(const struct reduction *r, struct partial *p) {
    switch (r->method) {
    case METHOD_FLOAT_SUM:
        float_sum_clear(&p->u.sum);
        break;
    case METHOD_FAST_SUM:
        p->u.fast = 0;
        break;
    case METHOD_INTEGER_SUM:
        p->u.integer = 0;
        break;
    case METHOD_INTEGER_PROD:
        p->u.product.magnitude = 1;
        p->u.product.negative = p->u.product.zero = p->u.product.overflow = 0;
        break;
    case METHOD_ORDER:
        p->u.order.bits = order_identity(r->op, r->type);
        p->u.order.nan = 0;
        break;
    case METHOD_BITS:
        p->u.bits = r->op == TALLY_AND ? low_bits(8 * (unsigned)tally_type_size(r->type)) : 0;
        break;
    case METHOD_TREE:
        break;
    }
}

uint64_t order_key(tally_type type, uint64_t bits) {
    unsigned width = 8 * (unsigned)tally_type_size(type);
    uint64_t top = UINT64_C(1) << (width - 1);
    if (type_is_float(type)) return bits & top ? ~bits & low_bits(width) : bits | top;
    return type_is_signed(type) ? (bits ^ top) & low_bits(width) : bits;
}

void partial_merge(const struct reduction *r, struct partial *p, const struct partial *from) {
    switch (r->method) {
    case METHOD_FLOAT_SUM:
        float_sum_merge(&p->u.sum, &from->u.sum);
        break;
    case METHOD_FAST_SUM:
        p->u.fast += from->u.fast;
        break;
    case METHOD_INTEGER_SUM:
        p->u.integer += from->u.integer;
        break;
    case METHOD_INTEGER_PROD:
        p->u.product.negative ^= from->u.product.negative;
        p->u.product.zero |= from->u.product.zero;
        p->u.product.overflow |= from->u.product.overflow;
        if (__builtin_mul_overflow(p->u.product.magnitude, from->u.product.magnitude,
                                   &p->u.product.magnitude))
            p->u.product.overflow = 1;
        break;
    case METHOD_ORDER: {
        uint64_t mine = order_key(r->type, p->u.order.bits);
        uint64_t other = order_key(r->type, from->u.order.bits);
        if (r->op == TALLY_MIN ? other < mine : other > mine) p->u.order.bits = from->u.order.bits;
        p->u.order.nan |= from->u.order.nan;
        break;
    }
    case METHOD_BITS:
        if (r->op == TALLY_AND)
            p->u.bits &= from->u.bits;
        else if (r->op == TALLY_OR)
            p->u.bits |= from->u.bits;
        else
            p->u.bits ^= from->u.bits;
        break;
    case METHOD_TREE:
        break;
    }
}

static tally_status does_not_fit(const struct reduction *r) {
    return fail(TALLY_ERANGE, "the exact %s of these %s elements does not fit %s",
                tally_op_name(r->op), tally_type_name(r->type), tally_type_name(r->out));
}

static tally_status integer_sum_value(const struct reduction *r, __int128 sum, tally_value *out) {
    if (r->out == TALLY_I64) {
        if (sum < INT64_MIN || sum > INT64_MAX) return does_not_fit(r);
        *out = (tally_value){.type = TALLY_I64, .as.i64 = (int64_t)sum};
    } else {
        if (sum > (__int128)UINT64_MAX) return does_not_fit(r);
        *out = (tally_value){.type = TALLY_U64, .as.u64 = (uint64_t)sum};
    }
    return TALLY_OK;
}

static tally_status integer_prod_value(const struct reduction *r, const struct partial *p,
                                       tally_value *out) {
    uint64_t magnitude = p->u.product.zero ? 0 : p->u.product.magnitude;
    int negative = p->u.product.negative && magnitude != 0;
    if (p->u.product.overflow && !p->u.product.zero) return does_not_fit(r);
    if (r->out == TALLY_U64) {
        *out = (tally_value){.type = TALLY_U64, .as.u64 = magnitude};
        return TALLY_OK;
    }
    if (magnitude > (uint64_t)INT64_MAX + negative) return does_not_fit(r);
    *out =
        (tally_value){.type = TALLY_I64, .as.i64 = (int64_t)(negative ? 0 - magnitude : magnitude)};
    return TALLY_OK;
}

static tally_value value_of_bits(tally_type type, uint64_t bits) {
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

tally_status partial_value(const struct reduction *r, const struct partial *p, tally_value *out) {
    switch (r->method) {
    case METHOD_FLOAT_SUM:
        *out = float_sum_round(&p->u.sum, r->out);
        return TALLY_OK;
    case METHOD_FAST_SUM:
        *out = round_double(r->out, p->u.fast);
        return TALLY_OK;
    case METHOD_INTEGER_SUM:
        return integer_sum_value(r, p->u.integer, out);
    case METHOD_INTEGER_PROD:
        return integer_prod_value(r, p, out);
    case METHOD_ORDER:
        *out = p->u.order.nan ? float_nan(r->type) : value_of_bits(r->type, p->u.order.bits);
        return TALLY_OK;
    case METHOD_BITS:
        *out = value_of_bits(r->type, p->u.bits);
        return TALLY_OK;
    case METHOD_TREE:
        break;
    }
    return fail(TALLY_EINVAL, "a tree has no partial");
}

tally_status partial_result(const struct reduction *r, uint64_t bits, int range, tally_value *out) {
    if (range) return does_not_fit(r);
    *out = value_of_bits(r->out, bits);
    return TALLY_OK;
}
