/* terms.c - see terms.h. */
#include "exact/terms.h"

#include "base/status.h"
#include "exact/round.h"

#include <string.h>

_Static_assert(TALLY_EINVAL == 1 && TALLY_ENOMEM == 4, "kernels/terms.h");

#define RANKS_MOST  (1u << 20) /* the most ranks that TERMS_LIMBS limbs have room for */
#define SMALL_RANKS 16         /* the most ranks with words of 32 bits, and so digits of 27 */

/* Returns the bits of a word: twice an element's, but for elements of 16 bits and many ranks, whose
 * words have 64. */
static unsigned word_bits(const tally_terms *t) {
    return t->type != TALLY_F32 && t->ranks <= SMALL_RANKS ? 32 : 64;
}

static uint64_t blocks_of(uint64_t n) {
    return n / TERMS_BLOCK + (n % TERMS_BLOCK != 0);
}

tally_status terms_plan_of(const tally_terms *t, terms_plan *plan, tally_terms_sizes *sizes) {
    if (!t) return fail(TALLY_EINVAL, "the array's description is NULL");
    if (t->type != TALLY_F32 && t->type != TALLY_F16 && t->type != TALLY_BF16)
        return fail(TALLY_ETYPE, "arrays are added up over ranks in f32, f16 and bf16");
    if (t->ranks < 1 || t->ranks > RANKS_MOST)
        return fail(TALLY_EINVAL, "%u ranks, where there may be 1 to %u", t->ranks, RANKS_MOST);
    if (t->n > SIZE_MAX / 64 || t->spare > SIZE_MAX / 64 / TERMS_BLOCK)
        return fail(TALLY_EINVAL, "n = %zu elements and %zu rows are more than memory can hold",
                    t->n, t->spare);
    const float_format f = format_of(t->type);
    uint32_t log = 0, counter = 1;
    while ((uint64_t)1 << log < t->ranks)
        log++;
    while ((uint64_t)1 << counter <= t->ranks)
        counter++;
    *plan = (terms_plan){.n = t->n,
                         .shard = t->shard,
                         .in_shards = t->shard ? t->n / t->shard * t->shard : 0,
                         .per_shard = blocks_of(t->shard),
                         .spare = t->spare,
                         .count = t->n,
                         .mantissa = f.mantissa,
                         .bias = f.bias,
                         .element = t->type == TALLY_F32 ? 32 : 16,
                         .word = word_bits(t),
                         .counter = counter,
                         .divisor = t->divisor ? t->divisor : 1};
    plan->digit = plan->word - 1 - log;
    plan->blocks = blocks_of(t->n - plan->in_shards);
    if (t->shard) plan->sharded = t->n / t->shard * plan->per_shard;
    plan->blocks += plan->sharded;
    /* The most bits of a term: from a subnormal's lowest bit to the greatest number's highest, and three counters. */
    const uint32_t widest = (uint32_t)(2 * f.bias + f.mantissa) + 3 * counter;
    *sizes =
        (tally_terms_sizes){.word = plan->word == 32 ? TALLY_I32 : TALLY_I64,
                            .bounds = BOUND_WORDS * (size_t)plan->blocks,
                            .words = t->n,
                            .spare = TERMS_BLOCK * t->spare,
                            .workspace_bytes = 8 * (size_t)terms_work_words(plan),
                            .rows = plan->blocks * ((widest + plan->digit - 1) / plan->digit - 1)};
    return TALLY_OK;
}

/* ---- Elements and words, at any address --------------------------------------------------- */

static uint32_t element_at(const terms_plan *p, const void *x, uint64_t i) {
    uint32_t wide;
    uint16_t narrow;
    if (p->element == 32) {
        memcpy(&wide, (const char *)x + 4 * i, 4);
        return wide;
    }
    memcpy(&narrow, (const char *)x + 2 * i, 2);
    return narrow;
}

static void put_element(const terms_plan *p, void *x, uint64_t i, uint64_t bits) {
    const uint32_t wide = (uint32_t)bits;
    const uint16_t narrow = (uint16_t)bits;
    if (p->element == 32)
        memcpy((char *)x + 4 * i, &wide, 4);
    else
        memcpy((char *)x + 2 * i, &narrow, 2);
}

static int64_t word_at(const terms_plan *p, const void *words, uint64_t i) {
    return p->word == 32 ? ((const int32_t *)words)[i] : ((const int64_t *)words)[i];
}

static void put_word(const terms_plan *p, void *words, uint64_t i, int64_t w) {
    if (p->word == 32)
        ((int32_t *)words)[i] = (int32_t)w;
    else
        ((int64_t *)words)[i] = w;
}

static terms_layout layout_at(const terms_plan *p, const int32_t *bounds, uint64_t block) {
    const int32_t *b = bounds + BOUND_WORDS * block;
    return terms_layout_of(p, b[BOUND_TOP], b[BOUND_LOW], b[BOUND_NOTES]);
}

/* ---- The steps ------------------------------------------------------------------------------ */

static void to_bounds(const terms_plan *p, const tally_terms_call *c) {
    for (uint64_t block = 0; block < p->blocks; block++) {
        int32_t *known = (int32_t *)c->bounds + BOUND_WORDS * block;
        const terms_range r = terms_range_of(p, block);
        terms_no_bounds(known);
        for (uint64_t i = r.start; i < r.end; i++)
            terms_bound(p, element_at(p, c->x, i), known);
    }
}

static void to_words(const terms_plan *p, const tally_terms_call *c) {
    uint64_t *offsets = c->workspace, row = 0;
    if (p->spare > 0) memset(c->spare, 0, p->spare * TERMS_BLOCK * p->word / 8);
    for (uint64_t block = 0; block < p->blocks; block++) {
        const terms_layout l = layout_at(p, c->bounds, block);
        const terms_range r = terms_range_of(p, block);
        offsets[block] = row;
        for (uint64_t i = r.start; i < r.end; i++) {
            const uint32_t bits = element_at(p, c->x, i);
            put_word(p, c->words, i, terms_word(p, l, bits, 0));
            for (uint32_t j = 1; j < l.digits && row + j <= p->spare; j++)
                put_word(p, c->spare, (row + j - 1) * TERMS_BLOCK + (i - r.start),
                         terms_word(p, l, bits, j));
        }
        row += l.digits - 1;
    }
    offsets[p->blocks] = row;
}

static uint64_t value_of(const terms_plan *p, const tally_terms_call *c, terms_layout l, uint64_t i,
                         uint64_t row, uint64_t in_block) {
    const int64_t word = word_at(p, c->words, i - p->first);
    int64_t limb[TERMS_LIMBS] = {0};
    if (l.digits == 1) return terms_value(p, l, word);
    terms_add(p, word, 0, limb);
    for (uint32_t j = 1; j < l.digits; j++)
        terms_add(p, word_at(p, c->spare, (row + j - 1) * TERMS_BLOCK + in_block), j, limb);
    return terms_value_of_limbs(p, l, limb);
}

static void to_values(const terms_plan *p, const tally_terms_call *c) {
    const int64_t failed = c->failed ? word_at(p, c->failed, 0) : 0;
    const uint64_t *offsets = c->workspace, past = p->first + p->count;
    const uint64_t needs = failed ? 0 : offsets[p->blocks];
    const tally_status status = (tally_status)terms_status(p, needs, failed);
    const tally_outcome outcome = {.at = status == TALLY_ENOMEM ? needs : 0, .status = status};
    if (c->outcome) memcpy(c->outcome, &outcome, sizeof outcome);
    if (status != TALLY_OK || p->count == 0) return;
    const uint64_t last = terms_block_of(p, past - 1);
    for (uint64_t block = terms_block_of(p, p->first); block <= last; block++) {
        const terms_layout l = layout_at(p, c->bounds, block);
        const terms_range r = terms_range_of(p, block);
        for (uint64_t i = r.start > p->first ? r.start : p->first; i < r.end && i < past; i++)
            put_element(p, c->out, i - p->first, value_of(p, c, l, i, offsets[block], i - r.start));
    }
}

void terms_run(enum terms_step step, const terms_plan *plan, const tally_terms_call *call) {
    if (step == TERMS_TO_BOUNDS)
        to_bounds(plan, call);
    else if (step == TERMS_TO_WORDS)
        to_words(plan, call);
    else
        to_values(plan, call);
}
