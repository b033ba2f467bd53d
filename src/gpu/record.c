/* record.c - see record.h. */
#include "gpu/record.h"

#include "exact/round.h"
#include "types.h"

#include <string.h>

#define SUM_LIMBS 68 /* kernels/limbs.h */
_Static_assert(RECORD_MAX == SUM_LIMBS + 1, "limbs, and what was seen");

size_t record_words(const struct problem *p, enum part part) {
    switch (part) {
    case PART_SUM:
        return type_is_float(p->type) ? RECORD_MAX : 3;
    case PART_FACTORS:
    case PART_EXTREMES:
        return 2;
    default:
        return 1;
    }
}

/* The limbs of a floating sum, and flags of what was seen. */
static void decode_floats(const uint64_t *word, struct exact_sum *s) {
    enum { NAN_SEEN = 1, PLUS_SEEN = 2, MINUS_SEEN = 4, MIXED_SEEN = 8 }; /* kernels/window.h */
    const uint64_t seen = word[SUM_LIMBS];
    struct superacc *a = exact_sum_limbs(s);
    a->low = (-1088 - SUPERACC_LOWEST) / 32;
    a->high = a->low + SUM_LIMBS;
    memcpy(&a->limb[a->low], word, SUM_LIMBS * sizeof *word);
    superacc_normalise(a);
    s->nans = (seen & NAN_SEEN) != 0;
    s->plus = (seen & PLUS_SEEN) != 0;
    s->minus = (seen & MINUS_SEEN) != 0;
    s->mixed = (seen & MIXED_SEEN) != 0;
}

static void decode_integers(const uint64_t *word, struct exact_sum *s) {
    exact_sum_add(s,
                  (__int128)((unsigned __int128)word[2] << 64) +
                      ((__int128)(int64_t)word[1] * ((__int128)1 << 32)) + (int64_t)word[0],
                  0);
    s->mixed = 1;
}

static void decode_extremes(const struct problem *p, const uint64_t *word, struct extremes *e) {
    const uint64_t all = low_bits(type_bits(p->type)), most = word[0], least = all ^ word[1];
    if (type_is_float(p->type)) {
        const tally_value up = float_infinity(p->type, 0), down = float_infinity(p->type, 1);
        e->nan = most > order_key(p->type, tally_value_bits(&up)) ||
                 least < order_key(p->type, tally_value_bits(&down));
        if (e->nan) return;
    }
    e->least = order_bits(p->type, least);
    e->greatest = order_bits(p->type, most);
}

static double fast_value(tally_type type, uint64_t bits) {
    const tally_value v = float_from_bits(type == TALLY_F64 ? TALLY_F64 : TALLY_F32, bits);
    return type == TALLY_F64 ? v.as.f64 : (double)v.as.f32;
}

void record_merge(const struct problem *p, enum part part, const uint64_t *word,
                  struct state *into) {
    struct state mine;
    monoids[part].clear(p, state_part(&mine, part));
    switch (part) {
    case PART_SUM:
        if (type_is_float(p->type))
            decode_floats(word, &mine.sum);
        else
            decode_integers(word, &mine.sum);
        break;
    case PART_FAST:
        mine.fast = fast_value(p->type, word[0]);
        break;
    case PART_FACTORS:
        mine.factors = (struct factors){.magnitude = word[0] ^ 1,
                                        .negative = word[1] & 1,
                                        .zero = word[1] >> 1 & 1,
                                        .overflow = word[1] >> 2 & 1};
        break;
    case PART_EXTREMES:
        decode_extremes(p, word, &mine.extremes);
        break;
    case PART_BITS:
        mine.bits = p->bits_op == TALLY_AND ? mine.bits & ~word[0] : word[0];
        break;
    default:
        break;
    }
    monoids[part].merge(p, state_part(into, part), state_part(&mine, part), 0);
}
