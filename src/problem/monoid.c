/* monoid.c - see monoid.h. */
#include "problem/monoid.h"

#include "base/invariant.h"
#include "base/types.h"
#include "exact/kernel_words.h"
#include "exact/round.h"

#include <string.h>

/* ---- Exact sums --------------------------------------------------------------------------- */

/* The limbs of the superaccumulator that a sum can reach, `limbs` of them from `first` on. Each of
 * its terms is below 2^highest in magnitude, and a multiple of 2^lowest. All floating types share
 * one form, so that their states can be merged. */
struct reach {
    int first, limbs;
    int lowest, highest;
};

static struct reach reach_of(const struct problem *p, int factors) {
    const int zero = -SUPERACC_LOWEST / 32; /* the limb of 2^0 */
    if (type_is_float(p->type)) {
        if (factors == 2) return (struct reach){0, SUPERACC_LIMBS, 2 * -1074, 2 * 1024};
        return (struct reach){zero - 34, 68, -1074, 1024};
    }
    /* n < 2^64 terms below 2^64, or 2^128, in magnitude: a state's last word lies in [-2^32, 2^32), so that the
     * words of 2^31 states can be added up. */
    return factors == 2 ? (struct reach){zero, 6, 0, 128} : (struct reach){zero, 4, 0, 64};
}

enum { AT_NANS, AT_PLUS, AT_MINUS, AT_MIXED, SUM_HEAD };

static void sum_clear(const struct problem *p, void *state) {
    (void)p;
    exact_sum_clear(state);
}

static void sum_merge(const struct problem *p, void *into, const void *from, uint64_t shift) {
    (void)p, (void)shift;
    exact_sum_merge(into, from);
}

static int sum_subtract(const struct problem *p, void *state, const void *from) {
    (void)p;
    return exact_sum_subtract(state, from);
}

static void sum_negate(void *state) {
    exact_sum_negate(state);
}

static unsigned sum_words(const struct problem *p) {
    return SUM_HEAD + (unsigned)reach_of(p, 1).limbs;
}

static unsigned square_words(const struct problem *p) {
    return SUM_HEAD + (unsigned)reach_of(p, 2).limbs;
}

static void pack_sum(const struct exact_sum *s, struct reach r, uint64_t *word) {
    struct superacc pending;
    const struct superacc *a = s->spread ? &s->limbs : &pending;
    if (!s->spread) {
        superacc_clear(&pending);
        superacc_add(&pending, s->pending, s->pending_exponent);
    }
    word[AT_NANS] = s->nans;
    word[AT_PLUS] = s->plus;
    word[AT_MINUS] = s->minus;
    word[AT_MIXED] = s->mixed || s->nans || s->plus || s->minus;
    /* Outside [low, high) all limbs are 0: nothing is carried into those below, and only a sign into those above. */
    const int low = a->low < a->high ? a->low - r.first : 0,
              high = a->low < a->high ? a->high - r.first : 0;
    int64_t carry = 0;
    word += SUM_HEAD;
    memset(word, 0, (size_t)r.limbs * sizeof *word);
    for (int i = low < 0 ? 0 : low; i < r.limbs && (i < high || carry != 0); i++) {
        const int64_t sum = superacc_limb(a, r.first + i) + carry; /* |limb| <= 2^61 */
        const int last = i == r.limbs - 1;
        word[i] = last ? (uint64_t)sum : (uint64_t)sum & 0xffffffff;
        carry = sum >> 32; /* floor */
    }
}

/* Returns whether the limbs, whose carries are settled, hold a number that n terms can add up to:
 * below n * 2^highest in magnitude, and a multiple of 2^lowest. Two such numbers, of n and m terms,
 * add up to such a one of n + m. */
static int is_reachable(const struct superacc *a, struct reach r, uint64_t n) {
    const int edge = (r.highest - SUPERACC_LOWEST) / 32; /* the limb of 2^highest */
    struct superacc negative;
    if (a->low == a->high) return 1;
    if (a->limb[a->high - 1] < 0) {
        superacc_clear(&negative);
        superacc_merge(&negative, a);
        superacc_negate(&negative);
        superacc_normalise(&negative);
        a = &negative;
    }
    int bottom = a->low;
    while (bottom < a->high && a->limb[bottom] == 0)
        bottom++;
    if (bottom == a->high) return 1;
    for (int i = edge + 2; i < a->high; i++)
        if (a->limb[i] != 0) return 0;
    const uint64_t below = (uint64_t)superacc_limb(a, edge),
                   above = (uint64_t)superacc_limb(a, edge + 1);
    const int low = SUPERACC_LOWEST + 32 * bottom + __builtin_ctzll((uint64_t)a->limb[bottom]);
    return (above << 32 | below) < n && below >> 32 == 0 && above >> 32 == 0 && low >= r.lowest;
}

static int eight_are_zero(const uint64_t *word) {
    uint64_t any = 0;
    for (int i = 0; i < 8; i++)
        any |= word[i];
    return any == 0;
}

static int unpack_sum(const uint64_t *word, struct reach r, uint64_t n, struct exact_sum *s) {
    exact_sum_clear(s);
    s->nans = word[AT_NANS];
    s->plus = word[AT_PLUS];
    s->minus = word[AT_MINUS];
    s->mixed = word[AT_MIXED] != 0;
    /* Carries are settled from the first word that is not 0 to the last, and on as far as something is carried: only
     * these limbs are touched, and later work on the sum goes through no others. The highest of them keeps
     * the sign, which then need not be carried up to the last limb. */
    struct superacc *a = exact_sum_limbs(s);
    int64_t carry = 0, any = 0;
    int i = 0, end = r.limbs;
    word += SUM_HEAD;
    while (end > i + 8 && eight_are_zero(word + i))
        i += 8;
    while (i < end - 1 && word[i] == 0)
        i++;
    while (end > i + 8 && eight_are_zero(word + end - 8))
        end -= 8;
    while (end > i + 1 && word[end - 1] == 0)
        end--;
    a->low = r.first + i;
    do {
        int64_t sum;
        if (i == r.limbs || __builtin_add_overflow(i < end ? (int64_t)word[i] : 0, carry, &sum))
            return 0;
        const int is_highest = i >= end - 1 && (sum >> 32 == 0 || sum >> 32 == -1);
        a->limb[r.first + i] = is_highest ? sum : sum & 0xffffffff;
        any |= a->limb[r.first + i];
        carry = is_highest ? 0 : sum >> 32;
        i++;
    } while (i < end || carry != 0);
    a->high = r.first + i;
    a->used = 1;
    word -= SUM_HEAD;
    while (a->high > a->low + 1 && a->limb[a->high - 1] == 0)
        a->high--;
    while (a->high > a->low + 1 && a->limb[a->high - 1] == -1) {
        a->high--;
        a->limb[a->high - 1] -= INT64_C(1) << 32;
    }
    while (a->low < a->high - 1 && a->limb[a->low] == 0)
        a->low++;
    if (s->nans > n || s->plus > n - s->nans || s->minus > n - s->nans - s->plus) return 0;
    if ((int64_t)word[AT_MIXED] < 0 || word[AT_MIXED] > n) return 0;
    if (!s->mixed && (any || s->nans || s->plus || s->minus)) return 0;
    return is_reachable(a, r, n);
}

static void sum_pack(const struct problem *p, const void *state, uint64_t *word) {
    pack_sum(state, reach_of(p, 1), word);
}

static void square_pack(const struct problem *p, const void *state, uint64_t *word) {
    pack_sum(state, reach_of(p, 2), word);
}

static int sum_unpack(const struct problem *p, const uint64_t *word, uint64_t n, void *state) {
    return unpack_sum(word, reach_of(p, 1), n, state);
}

/* Returns whether an unpacked sum can be that of n squares or magnitudes: no term is -0 or -inf,
 * and the sum is not below 0. */
static int is_positive(const struct exact_sum *s, uint64_t n) {
    const struct superacc *a = &s->limbs;
    return s->minus == 0 && (n == 0 || s->mixed) &&
           (a->low == a->high || a->limb[a->high - 1] >= 0);
}

static int magnitude_unpack(const struct problem *p, const uint64_t *word, uint64_t n,
                            void *state) {
    /* Of complex elements these are sums of the imaginary parts, of either sign. */
    return sum_unpack(p, word, n, state) && (p->is_complex || is_positive(state, n));
}

static int product_unpack(const struct problem *p, const uint64_t *word, uint64_t n, void *state) {
    return unpack_sum(word, reach_of(p, 2), n, state);
}

static int square_unpack(const struct problem *p, const uint64_t *word, uint64_t n, void *state) {
    return product_unpack(p, word, n, state) && is_positive(state, n);
}

/* ---- Words of their own: a fast sum, bits, a count ------------------------------------------ */

static unsigned one_word(const struct problem *p) {
    (void)p;
    return 1;
}

static void word_clear(const struct problem *p, void *state) {
    (void)p;
    *(uint64_t *)state = 0;
}

static void word_pack(const struct problem *p, const void *state, uint64_t *word) {
    (void)p;
    memcpy(word, state, sizeof *word);
}

static void fast_clear(const struct problem *p, void *state) {
    (void)p;
    *(double *)state = 0;
}

static void fast_merge(const struct problem *p, void *into, const void *from, uint64_t shift) {
    (void)p, (void)shift;
    *(double *)into += *(const double *)from;
}

static int fast_unpack(const struct problem *p, const uint64_t *word, uint64_t n, void *state) {
    (void)p;
    memcpy(state, word, sizeof *word);
    return n != 0 || *word == 0;
}

static void bits_clear(const struct problem *p, void *state) {
    *(uint64_t *)state = p->bits_op == TALLY_AND ? low_bits(type_bits(p->type)) : 0;
}

static void bits_merge(const struct problem *p, void *into, const void *from, uint64_t shift) {
    uint64_t *bits = into;
    const uint64_t more = *(const uint64_t *)from;
    (void)shift;
    *bits = p->bits_op == TALLY_AND  ? *bits & more
            : p->bits_op == TALLY_OR ? *bits | more
                                     : *bits ^ more;
}

static int bits_unpack(const struct problem *p, const uint64_t *word, uint64_t n, void *state) {
    uint64_t identity;
    bits_clear(p, &identity);
    *(uint64_t *)state = *word;
    return (*word & ~low_bits(type_bits(p->type))) == 0 && (n != 0 || *word == identity);
}

/* Takes elements away. Xor undoes itself; "and" and "or" cannot be undone. */
static int bits_subtract(const struct problem *p, void *state, const void *from) {
    if (p->bits_op != TALLY_XOR) return 0;
    bits_merge(p, state, from, 0);
    return 1;
}

static void count_merge(const struct problem *p, void *into, const void *from, uint64_t shift) {
    (void)p, (void)shift;
    *(uint64_t *)into += *(const uint64_t *)from;
}

static int count_subtract(const struct problem *p, void *state, const void *from) {
    (void)p;
    if (*(const uint64_t *)from > *(uint64_t *)state) return 0;
    *(uint64_t *)state -= *(const uint64_t *)from;
    return 1;
}

static int count_unpack(const struct problem *p, const uint64_t *word, uint64_t n, void *state) {
    (void)p;
    *(uint64_t *)state = *word;
    return *word <= n;
}

/* ---- Products of integers ------------------------------------------------------------------ */

enum { NEGATIVE = 1, ZERO = 2, OVERFLOW = 4 };

static void factors_clear(const struct problem *p, void *state) {
    (void)p;
    *(struct factors *)state = (struct factors){.magnitude = 1};
}

static void factors_merge(const struct problem *p, void *into, const void *from, uint64_t shift) {
    struct factors *a = into;
    const struct factors b = *(const struct factors *)from;
    (void)p, (void)shift;
    a->negative ^= b.negative;
    a->zero |= b.zero;
    a->overflow |= b.overflow;
    if (__builtin_mul_overflow(a->magnitude, b.magnitude, &a->magnitude)) a->overflow = 1;
}

static unsigned factors_words(const struct problem *p) {
    (void)p;
    return 2;
}

/* Packs the state; insignificant words become 0. If a factor is 0 only ZERO is significant, and
 * after an overflow only OVERFLOW. So no code needs the sign of a product that has overflowed. */
static void factors_pack(const struct problem *p, const void *state, uint64_t *word) {
    const struct factors *a = state;
    (void)p;
    word[0] = a->zero || a->overflow ? 0 : a->magnitude;
    word[1] = a->zero ? ZERO : a->overflow ? OVERFLOW : a->negative ? NEGATIVE : 0u;
}

static int factors_unpack(const struct problem *p, const uint64_t *word, uint64_t n, void *state) {
    struct factors *a = state;
    const uint64_t flags = word[1];
    *a = (struct factors){.magnitude = flags & (ZERO | OVERFLOW) ? 1 : word[0],
                          .negative = flags & NEGATIVE,
                          .zero = (flags & ZERO) != 0,
                          .overflow = (flags & OVERFLOW) != 0};
    if (flags != 0 && flags != NEGATIVE && flags != ZERO && flags != OVERFLOW) return 0;
    if ((flags & (ZERO | OVERFLOW)) != 0 ? word[0] != 0 : word[0] == 0) return 0;
    if (flags & NEGATIVE && !type_is_signed(p->type)) return 0;
    return n != 0 || (word[0] == 1 && flags == 0);
}

/* ---- Extremes ------------------------------------------------------------------------------ */

ORDER_KEYS(u64)

static unsigned order_kind(tally_type type) {
    return type_is_float(type) ? ORDER_FLOAT : type_is_signed(type) ? ORDER_SIGNED : ORDER_UNSIGNED;
}

uint64_t order_key(tally_type type, uint64_t bits) {
    return key_of_bits(bits, type_bits(type), order_kind(type));
}

uint64_t order_bits(tally_type type, uint64_t key) {
    return bits_of_key(key, type_bits(type), order_kind(type));
}

/* Returns the least element of no elements: the type's greatest value, or +inf. If `greatest`, returns the greatest of
 * no elements: the type's least value, or -inf. */
static uint64_t far_end(tally_type type, int greatest) {
    if (type_is_float(type)) {
        const tally_value infinity = float_infinity(type, greatest);
        return tally_value_bits(&infinity);
    }
    return order_bits(type, greatest ? 0 : low_bits(type_bits(type)));
}

static void extremes_clear(const struct problem *p, void *state) {
    *(struct extremes *)state = (struct extremes){.least = far_end(p->type, 0),
                                                  .greatest = far_end(p->type, 1),
                                                  .at_least = NO_INDEX,
                                                  .at_greatest = NO_INDEX,
                                                  .at_nan = NO_INDEX};
}

static uint64_t shifted(uint64_t index, uint64_t shift) {
    return index == NO_INDEX ? NO_INDEX : index + shift;
}

static void extremes_merge(const struct problem *p, void *into, const void *from, uint64_t shift) {
    struct extremes *a = into;
    const struct extremes b = *(const struct extremes *)from;
    uint64_t mine = order_key(p->type, a->least), other = order_key(p->type, b.least);
    if (problem_counts_skipped(p)) {
        shift += a->skipped;
        a->skipped += b.skipped;
    }
    uint64_t at = shifted(b.at_least, shift);
    if (other < mine || (other == mine && at < a->at_least)) {
        a->least = b.least;
        a->at_least = at;
    }
    mine = order_key(p->type, a->greatest);
    other = order_key(p->type, b.greatest);
    at = shifted(b.at_greatest, shift);
    if (other > mine || (other == mine && at < a->at_greatest)) {
        a->greatest = b.greatest;
        a->at_greatest = at;
    }
    at = shifted(b.at_nan, shift);
    if (at < a->at_nan) a->at_nan = at;
    a->nan |= b.nan;
}

enum {
    AT_LEAST,
    AT_GREATEST,
    AT_LEAST_INDEX,
    AT_GREATEST_INDEX,
    AT_NAN_INDEX,
    AT_NAN,
    AT_SKIPPED, /* only where indices count what is skipped */
    EXTREMES_WORDS
};

static unsigned extremes_words(const struct problem *p) {
    return problem_counts_skipped(p) ? EXTREMES_WORDS : AT_SKIPPED;
}

/* Packs the state; unwanted words become 0. After a NaN the least and the greatest are
 * insignificant: they are packed as those of no elements. */
static void extremes_pack(const struct problem *p, const void *state, uint64_t *word) {
    const struct extremes *a = state;
    struct extremes none;
    if (a->nan) {
        extremes_clear(p, &none);
        none.nan = 1;
        none.at_nan = a->at_nan;
        a = &none;
    }
    const int least = (p->extremes & WANT_LEAST) != 0,
              greatest = (p->extremes & WANT_GREATEST) != 0;
    const int index = (p->extremes & WANT_INDEX) != 0;
    word[AT_LEAST] = least ? a->least : 0;
    word[AT_GREATEST] = greatest ? a->greatest : 0;
    word[AT_LEAST_INDEX] = least && index ? a->at_least : 0;
    word[AT_GREATEST_INDEX] = greatest && index ? a->at_greatest : 0;
    word[AT_NAN_INDEX] = index ? a->at_nan : 0;
    word[AT_NAN] = a->nan;
    if (problem_counts_skipped(p)) word[AT_SKIPPED] = a->skipped;
}

static int is_number(tally_type type, uint64_t bits) {
    if (bits & ~low_bits(type_bits(type))) return 0;
    if (!type_is_float(type)) return 1;
    const uint64_t key = order_key(type, bits);
    return key >= order_key(type, far_end(type, 1)) && key <= order_key(type, far_end(type, 0));
}

/* Returns whether an extreme and its index can be those of n elements and `skipped` others; `end` is the extreme of
 * none. */
static int is_extreme(const struct problem *p, int wanted, uint64_t bits, uint64_t index,
                      uint64_t end, uint64_t n, uint64_t skipped, int nan) {
    const int indexed = wanted && p->extremes & WANT_INDEX;
    if (!wanted) return bits == 0 && index == 0;
    if (!is_number(p->type, bits)) return 0;
    if (!indexed) return index == 0 && (n != 0 || bits == end);
    if (index == NO_INDEX) return bits == end && (n == 0 || nan);
    return n > 0 && index < n + skipped;
}

static int extremes_unpack(const struct problem *p, const uint64_t *word, uint64_t n, void *state) {
    struct extremes *a = state;
    const int index = (p->extremes & WANT_INDEX) != 0, nan = word[AT_NAN] == 1;
    extremes_clear(p, a);
    if (p->extremes & WANT_LEAST) a->least = word[AT_LEAST];
    if (p->extremes & WANT_GREATEST) a->greatest = word[AT_GREATEST];
    if (index && p->extremes & WANT_LEAST) a->at_least = word[AT_LEAST_INDEX];
    if (index && p->extremes & WANT_GREATEST) a->at_greatest = word[AT_GREATEST_INDEX];
    if (index) a->at_nan = word[AT_NAN_INDEX];
    a->nan = (unsigned char)nan;
    if (problem_counts_skipped(p)) a->skipped = word[AT_SKIPPED];
    if (a->skipped > UINT64_MAX - n || (nan && p->skip_nan)) return 0;
    if (word[AT_NAN] > 1 || (nan && (n == 0 || !type_is_float(p->type)))) return 0;
    if (index ? (a->at_nan < n) != nan || (a->at_nan >= n && a->at_nan != NO_INDEX)
              : word[AT_NAN_INDEX] != 0)
        return 0;
    return is_extreme(p, (p->extremes & WANT_LEAST) != 0, word[AT_LEAST], word[AT_LEAST_INDEX],
                      far_end(p->type, 0), n, a->skipped, nan) &&
           is_extreme(p, (p->extremes & WANT_GREATEST) != 0, word[AT_GREATEST],
                      word[AT_GREATEST_INDEX], far_end(p->type, 1), n, a->skipped, nan);
}

/* ---- The table ----------------------------------------------------------------------------- */

#define AT(monoid) offsetof(struct state, monoid)

const struct monoid monoids[MONOID_TREE] = {
    [MONOID_SUM] = {"sum", AT(sum), sum_clear, sum_merge, sum_subtract, sum_negate, sum_words, 1,
                    sum_pack, sum_unpack},
    [MONOID_SQUARES] = {"squares", AT(squares), sum_clear, sum_merge, sum_subtract, NULL,
                        square_words, 1, square_pack, square_unpack},
    [MONOID_PRODUCTS] = {"products", AT(products), sum_clear, sum_merge, sum_subtract, sum_negate,
                         square_words, 1, square_pack, product_unpack},
    [MONOID_MAGNITUDES] = {"magnitudes", AT(magnitudes), sum_clear, sum_merge, sum_subtract, NULL,
                           sum_words, 1, sum_pack, magnitude_unpack},
    [MONOID_FAST] = {"fast", AT(fast), fast_clear, fast_merge, NULL, NULL, one_word, 0, word_pack,
                     fast_unpack},
    [MONOID_FACTORS] = {"factors", AT(factors), factors_clear, factors_merge, NULL, NULL,
                        factors_words, 0, factors_pack, factors_unpack},
    [MONOID_EXTREMES] = {"extremes", AT(extremes), extremes_clear, extremes_merge, NULL, NULL,
                         extremes_words, 0, extremes_pack, extremes_unpack},
    [MONOID_BITS] = {"bits", AT(bits), bits_clear, bits_merge, bits_subtract, NULL, one_word, 0,
                     word_pack, bits_unpack},
    [MONOID_NONZERO] = {"nonzero", AT(nonzero), word_clear, count_merge, count_subtract, NULL,
                        one_word, 1, word_pack, count_unpack},
};

void state_clear(const struct problem *p, struct state *s) {
    s->n = 0;
    for_monoids(monoid, p) monoids[monoid].clear(p, monoid_state(s, monoid));
}

void state_merge(const struct problem *p, struct state *into, const struct state *from,
                 uint64_t shift) {
    const uint64_t more = from->n;
    TALLY_ASSERT(into->n + more >= more);
    TALLY_ASSERT(state_extent(p, from) <= UINT64_MAX - state_extent(p, into));
    for_monoids(monoid, p) monoids[monoid].merge(p, monoid_state(into, monoid),
                                                 monoid_state_of(from, monoid), shift);
    into->n += more;
}

void state_settle(const struct problem *p, struct state *s) {
    if (!problem_has(p, MONOID_NONZERO) || problem_asks(p, TALLY_NONZERO)) return;
    const int any = problem_asks(p, TALLY_ANY), all = problem_asks(p, TALLY_ALL);
    if (s->nonzero == s->n && all) return;
    s->nonzero = any && s->nonzero > 0;
}

/* Returns whether the states of monoids agree: the sums count the same NaNs and infinities, and the extremes
 * know of a NaN if the sums do. */
int monoid_states_agree(const struct problem *p, const struct state *s) {
    static const enum monoid_id sums[] = {MONOID_SUM, MONOID_SQUARES, MONOID_MAGNITUDES};
    const struct exact_sum *first = NULL;
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
        if (!problem_has(p, sums[i]) || (p->is_complex && sums[i] == MONOID_MAGNITUDES)) continue;
        const struct exact_sum *each = monoid_state_of(s, sums[i]);
        if (!first) first = each;
        if (each->nans != first->nans) return 0;
        if (each->plus + each->minus != first->plus + first->minus) return 0;
    }
    return !first || !problem_has(p, MONOID_EXTREMES) || (first->nans != 0) == s->extremes.nan;
}

int state_is_possible(const struct problem *p, const struct state *s) {
    uint64_t word[STATE_WORDS_MAX];
    struct state copy;
    for_monoids(monoid, p) {
        monoids[monoid].pack(p, monoid_state_of(s, monoid), word);
        if (!monoids[monoid].unpack(p, word, s->n, monoid_state(&copy, monoid))) return 0;
    }
    return monoid_states_agree(p, s);
}

int state_is_additive(const struct problem *p) {
    if (problem_has(p, MONOID_TREE)) return 0;
    for_monoids(monoid, p) if (!monoids[monoid].additive) return 0;
    return 1;
}
