/* record.c - see record.h. */
#include "gpu/record.h"

#include "exact/round.h"

size_t record_words(const struct reduction *r) {
    switch (r->method) {
    case METHOD_FLOAT_SUM:
        return RECORD_MAX;
    case METHOD_INTEGER_SUM:
        return 3;
    case METHOD_INTEGER_PROD:
    case METHOD_ORDER:
        return 2;
    default:
        return 1;
    }
}

/* The inverse of order_key(). */
static uint64_t key_bits(tally_type type, uint64_t key) {
    unsigned width = 8 * (unsigned)tally_type_size(type);
    uint64_t top = UINT64_C(1) << (width - 1), all = top | (top - 1);
    if (type_is_float(type)) return key & top ? key ^ top : key ^ all;
    return type_is_signed(type) ? key ^ top : key;
}

static void decode_sum(const uint64_t *word, size_t n, struct partial *p) {
    struct superacc *limbs = float_sum_limbs(&p->u.sum);
    for (int i = 0; i < SUPERACC_LIMBS; i++)
        limbs->limb[i] = (int64_t)word[i];
    superacc_normalise(limbs);
    uint64_t seen = word[SUPERACC_LIMBS];
    p->u.sum.specials = seen & (SEEN_NAN | SEEN_PLUS_INF | SEEN_MINUS_INF);
    p->u.sum.mixed = (seen & 8) != 0;
    p->u.sum.count = n;
}

static void decode_order(const struct reduction *r, const uint64_t *word, struct partial *p) {
    unsigned width = 8 * (unsigned)tally_type_size(r->type);
    uint64_t all = ~UINT64_C(0) >> (64 - width), most = word[0], least = all ^ word[1];
    p->u.order.bits = key_bits(r->type, r->op == TALLY_MIN ? least : most);
    if (!type_is_float(r->type)) return;
    tally_value up = float_infinity(r->type, 0), down = float_infinity(r->type, 1);
    p->u.order.nan = most > order_key(r->type, tally_value_bits(&up)) ||
                     least < order_key(r->type, tally_value_bits(&down));
}

static double fast_value(tally_type type, uint64_t bits) {
    tally_value v = float_from_bits(type == TALLY_F64 ? TALLY_F64 : TALLY_F32, bits);
    return type == TALLY_F64 ? v.as.f64 : (double)v.as.f32;
}

/* The record of n elements as a partial. */
void record_decode(const struct reduction *r, const uint64_t *word, size_t n, struct partial *p) {
    partial_clear(r, p);
    switch (r->method) {
    case METHOD_FLOAT_SUM:
        decode_sum(word, n, p);
        break;
    case METHOD_FAST_SUM:
        p->u.fast = fast_value(r->type, word[0]);
        break;
    case METHOD_INTEGER_SUM:
        p->u.integer = (__int128)((unsigned __int128)word[2] << 64) +
                       ((__int128)(int64_t)word[1] * ((__int128)1 << 32)) + (int64_t)word[0];
        break;
    case METHOD_INTEGER_PROD:
        p->u.product.magnitude = word[0] ^ 1;
        p->u.product.negative = word[1] & 1;
        p->u.product.zero = word[1] >> 1 & 1;
        p->u.product.overflow = word[1] >> 2 & 1;
        break;
    case METHOD_ORDER:
        decode_order(r, word, p);
        break;
    case METHOD_BITS:
        p->u.bits = r->op == TALLY_AND ? p->u.bits & ~word[0] : word[0];
        break;
    case METHOD_TREE:
        break;
    }
}
