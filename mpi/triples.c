/* triples.c - see triples.h. */
#include "triples.h"

#include "blocks.h"
#include "keys.h"

enum { NEGATIVE = 1, ZERO = 2, OVERFLOW = 4 };

static int is_product(const tally_problem *p) {
    return p->op == TALLY_PROD;
}

int has_triple(const tally_problem *p) {
    if (p->op != TALLY_ARGMIN && p->op != TALLY_ARGMAX && !is_product(p)) return 0;
    return !p->also[0] && !p->fast && !has_tree(p);
}

/* ---- Made of a state's saved form (docs/states.md) -------------------------------------------- */

tally_status triple_of(const tally_problem *p, const tally_state *state, struct triple *out) {
    enum { LEAST, GREATEST, AT_LEAST, AT_GREATEST, AT_NAN, HAS_NAN, WORDS };
    unsigned char bytes[SAVED_HEAD + 8 * (WORDS + 1)];
    const tally_status s = tally_state_save(state, bytes, sizeof bytes);
    if (s != TALLY_OK) return s;
    uint64_t word[WORDS] = {0};
    for (size_t i = 0; i < (is_product(p) ? 2 : WORDS); i++)
        word[i] = saved_word(bytes, SAVED_HEAD + 8 * i);
    out->n = (int64_t)saved_word(bytes, SAVED_N);
    out->a = (int64_t)word[0];
    out->b = (int64_t)word[1];
    if (is_product(p)) return s;
    const int greatest = p->op == TALLY_ARGMAX;
    tally_value end = {.type = p->type};
    set_bits(&end, word[greatest ? GREATEST : LEAST]);
    out->a = word[HAS_NAN] ? NAN_KEY : order_key(&end, greatest);
    out->b = (int64_t)word[word[HAS_NAN] ? AT_NAN : greatest ? AT_GREATEST : AT_LEAST];
    return s;
}

/* ---- Merged ----------------------------------------------------------------------------------- */

static void merge_ends(struct triple *left, const struct triple *right) {
    if (right->n > 0 && (left->n == 0 || right->a < left->a)) {
        left->a = right->a;
        left->b = right->b + left->n;
    }
    left->n += right->n;
}

static void merge_products(struct triple *left, const struct triple *right) {
    uint64_t product;
    left->b = (left->b ^ (right->b & NEGATIVE)) | (right->b & (ZERO | OVERFLOW));
    if (__builtin_mul_overflow((uint64_t)left->a, (uint64_t)right->a, &product))
        left->b |= OVERFLOW;
    else
        left->a = (int64_t)product;
    left->n += right->n;
}

void triple_merge(const tally_problem *p, struct triple *left, const struct triple *right) {
    if (is_product(p))
        merge_products(left, right);
    else
        merge_ends(left, right);
}

/* ---- Values ----------------------------------------------------------------------------------- */

/* Lowers a product. Its type is that of the problem's identity. */
static tally_status product_value(const tally_problem *p, const struct triple *all,
                                  tally_value *out) {
    tally_value one;
    const tally_status s = tally_reduce(NULL, p, NULL, NULL, 0, &one);
    if (s != TALLY_OK) return s;
    const int bits = 8 * (int)tally_type_size(one.type);
    const int is_signed = one.type == TALLY_I8 || one.type == TALLY_I16 || one.type == TALLY_I32 ||
                          one.type == TALLY_I64;
    const uint64_t magnitude = all->b & ZERO ? 0 : (uint64_t)all->a;
    const int negative = (all->b & NEGATIVE) && magnitude != 0;
    const uint64_t most = is_signed  ? (UINT64_MAX >> (65 - bits)) + (uint64_t)negative
                          : negative ? 0
                                     : UINT64_MAX >> (64 - bits);
    if ((!(all->b & ZERO) && (all->b & OVERFLOW)) || magnitude > most) return TALLY_ERANGE;
    set_bits(&one, negative ? 0 - magnitude : magnitude);
    *out = one;
    return TALLY_OK;
}

tally_status triple_value(const tally_problem *p, const struct triple *all, tally_value *out) {
    if (is_product(p)) return product_value(p, all, out);
    if (all->n == 0) return tally_reduce(NULL, p, NULL, NULL, 0, out);
    *out = (tally_value){.type = TALLY_U64, .as.u64 = (uint64_t)all->b};
    return TALLY_OK;
}
