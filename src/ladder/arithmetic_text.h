/*
 * arithmetic_text.h - the arithmetic of one type and operator.
 *
 * The build makes arithmetic_texts.h, which includes this file once for each type and operator. Before each inclusion
 * it defines TYPE_x and OP_y, and their tally_type and tally_op as OF_TYPE and OF_OP. OWN(word) makes a name that only
 * this type and operator have.
 */
#undef TALLY_OPERATORS_H
#define element            OWN(element)
#define accumulator        OWN(accumulator)
#define word               OWN(word)
#define load               OWN(load)
#define to_word            OWN(to_word)
#define from_word          OWN(from_word)
#define is_nan             OWN(is_nan)
#define rank               OWN(rank)
#define neutral            OWN(neutral)
#define apply              OWN(apply)
#define combine            OWN(combine)
#define settle             OWN(settle)
#define fetch              OWN(fetch)
#define combine_atomically OWN(combine_atomically)
#define deliver            OWN(deliver)
#include "kernels/operators.h"

static void OWN(host_neutral)(void *a) {
    *(accumulator *)a = neutral();
}

static void OWN(host_fetch)(void *a, const void *e) {
    *(accumulator *)a = load(*(const element *)e);
}

static void OWN(host_combine)(void *a, const void *b) {
    *(accumulator *)a = combine(*(accumulator *)a, *(const accumulator *)b);
}

static void OWN(host_to_word)(void *w, const void *a) {
    *(word *)w = to_word(*(const accumulator *)a);
}

static void OWN(host_from_word)(void *a, const void *w) {
    *(accumulator *)a = from_word(*(const word *)w);
}

static void OWN(reduce)(const void *array, uint64_t n, void *result) {
    const element *x = array;
    accumulator acc = neutral();
    for (u64 i = 0; i < n; i++)
        acc = combine(acc, load(x[i]));
    *(accumulator *)result = acc;
}

#if ARITHMETIC && defined(FLOATING) && defined(OP_SUM)
static double OWN(magnitude)(const void *array, u64 n) {
    const element *x = array;
    double sum = 0;
    for (u64 i = 0; i < n; i++) {
        const double v = load(x[i]);
        sum += v < 0 ? -v : v;
    }
    return sum;
}
#endif

#undef element
#undef accumulator
#undef word
#undef load
#undef to_word
#undef from_word
#undef is_nan
#undef rank
#undef neutral
#undef apply
#undef combine
#undef settle
#undef fetch
#undef combine_atomically
#undef deliver

#if ARITHMETIC && defined(FLOATING) && !defined(TYPE_F64)
#define ACCUMULATOR_TYPE TALLY_F32
#elif ARITHMETIC && defined(SIGNED_TYPE)
#define ACCUMULATOR_TYPE TALLY_I64
#elif ARITHMETIC && defined(UNSIGNED_TYPE)
#define ACCUMULATOR_TYPE TALLY_U64
#else
#define ACCUMULATOR_TYPE OF_TYPE
#endif

static const ladder_arithmetic OWN(arithmetic) = {
    .type = OF_TYPE,
    .op = OF_OP,
    .accumulator_type = ACCUMULATOR_TYPE,
    .element_size = sizeof(OWN(element)),
    .accumulator_size = sizeof(OWN(accumulator)),
    .word_size = sizeof(OWN(word)),
    .neutral = OWN(host_neutral),
    .fetch = OWN(host_fetch),
    .combine = OWN(host_combine),
    .to_word = OWN(host_to_word),
    .from_word = OWN(host_from_word),
    .reduce = OWN(reduce),
};

#undef ACCUMULATOR_TYPE
