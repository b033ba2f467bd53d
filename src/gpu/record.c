/* record.c - see record.h. */
#include "gpu/record.h"

#include "base/types.h"
#include "exact/round.h"
#include "kernels/plan.h"

#include <string.h>

/* The limbs of a sum, of which limb i weighs 2^(32 i + lowest); floats have FLOAT_COUNTS counts behind them. */
struct limb_layout {
    int lowest, limbs;
};

static struct limb_layout limb_layout_of(const struct problem *p, enum monoid_id monoid) {
    const int two = monoid == MONOID_SQUARES || monoid == MONOID_PRODUCTS;
    if (p->type == TALLY_F64 && two) return (struct limb_layout){-2176, WIDE_FLOAT_LIMBS};
    if (type_is_float(p->type)) return (struct limb_layout){-1088, FLOAT_LIMBS};
    return (struct limb_layout){0, !two ? 3 : type_bits(p->type) == 64 ? 6 : 4};
}

size_t record_words(const struct problem *p, enum monoid_id monoid) {
    switch (monoid) {
    case MONOID_SUM:
    case MONOID_SQUARES:
    case MONOID_PRODUCTS:
    case MONOID_MAGNITUDES:
        return (size_t)limb_layout_of(p, monoid).limbs +
               (type_is_float(p->type) ? FLOAT_COUNTS : 0);
    case MONOID_EXTREMES:
        return p->extremes & WANT_INDEX ? 5 : 2;
    case MONOID_FACTORS:
        return 2;
    default:
        return 1;
    }
}

static void decode_sum(const struct problem *p, enum monoid_id monoid, const uint64_t *word,
                       struct exact_sum *s) {
    const struct limb_layout limb_layout = limb_layout_of(p, monoid);
    exact_sum_clear(s);
    s->mixed = 1;
    if (!type_is_float(p->type)) {
        for (int i = 0; i < limb_layout.limbs; i++)
            exact_sum_add(s, (int64_t)word[i], limb_layout.lowest + 32 * i);
        return;
    }
    struct superacc *a = exact_sum_limbs(s);
    a->low = (limb_layout.lowest - SUPERACC_LOWEST) / 32;
    a->high = a->low + limb_layout.limbs;
    a->used = SUPERACC_USED_MAX; /* |limb| < 2^61, as each block left it below 2^33 */
    memcpy(&a->limb[a->low], word, (size_t)limb_layout.limbs * sizeof *word);
    superacc_normalise(a);
    word += limb_layout.limbs;
    s->nans = word[0];
    s->plus = word[1];
    s->minus = word[2];
    s->mixed = word[3] != 0;
}

static void decode_extremes(const struct problem *p, const uint64_t *word, struct extremes *e) {
    const uint64_t all = low_bits(type_bits(p->type)), most = word[0], least = all ^ word[1];
    const int indexed = (p->extremes & WANT_INDEX) != 0;
    if (type_is_float(p->type)) {
        const tally_value up = float_infinity(p->type, 0), down = float_infinity(p->type, 1);
        e->nan = indexed ? word[4] != 0
                         : most > order_key(p->type, tally_value_bits(&up)) ||
                               least < order_key(p->type, tally_value_bits(&down));
        if (indexed) e->at_nan = ~word[4];
        if (e->nan) return;
    }
    e->least = order_bits(p->type, least);
    e->greatest = order_bits(p->type, most);
    if (!indexed) return;
    e->at_greatest = ~word[2];
    e->at_least = ~word[3];
}

static double fast_value(tally_type type, uint64_t bits) {
    const tally_value v = float_from_bits(type == TALLY_F64 ? TALLY_F64 : TALLY_F32, bits);
    return type == TALLY_F64 ? v.as.f64 : (double)v.as.f32;
}

void record_merge(const struct problem *p, enum monoid_id monoid, const uint64_t *word,
                  struct state *into) {
    struct state mine;
    monoids[monoid].clear(p, monoid_state(&mine, monoid));
    switch (monoid) {
    case MONOID_SUM:
    case MONOID_SQUARES:
    case MONOID_PRODUCTS:
    case MONOID_MAGNITUDES:
        decode_sum(p, monoid, word, monoid_state(&mine, monoid));
        break;
    case MONOID_FAST:
        mine.fast = fast_value(p->type, word[0]);
        break;
    case MONOID_FACTORS:
        mine.factors = (struct factors){.magnitude = word[0] ^ 1,
                                        .negative = word[1] & 1,
                                        .zero = word[1] >> 1 & 1,
                                        .overflow = word[1] >> 2 & 1};
        break;
    case MONOID_EXTREMES:
        decode_extremes(p, word, &mine.extremes);
        break;
    case MONOID_BITS:
        mine.bits = p->bits_op == TALLY_AND ? mine.bits & ~word[0] : word[0];
        break;
    case MONOID_NONZERO:
        mine.nonzero = word[0];
        break;
    default:
        break;
    }
    monoids[monoid].merge(p, monoid_state(into, monoid), monoid_state(&mine, monoid), 0);
}
