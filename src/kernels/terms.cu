/*
 * terms - arrays that are added up over ranks, element by element (terms.h), on a device.
 *
 * bounds: finds the bounds of blocks of elements. words: turns elements into words. values: turns words that have
 * been added up into values. In all three a team of threads - a warp, or all of a smaller block - takes a block of
 * elements (terms.h) at a time.
 *
 * rows, offsets: a block of threads takes a chunk of TERMS_CHUNK blocks of elements. `rows` counts the spare rows
 * that the chunk needs. `offsets` finds where each block's spare rows begin, from the counts of the chunks before.
 */
#include "tuning.h"

#include "kernel.h"

#include "rounding.h"

#include "terms.h"

__device__ u32 element_at(const GLOBAL u8 *x, u32 width, u64 i) {
    return width == 32 ? ((const GLOBAL u32 *)x)[i] : ((const GLOBAL u16 *)x)[i];
}

__device__ i64 word_at(const GLOBAL u8 *words, u32 width, u64 i) {
    return width == 32 ? ((const GLOBAL i32 *)words)[i] : ((const GLOBAL i64 *)words)[i];
}

__device__ void put_word(GLOBAL u8 *words, u32 width, u64 i, i64 w) {
    if (width == 32)
        ((GLOBAL i32 *)words)[i] = (i32)w;
    else
        ((GLOBAL i64 *)words)[i] = w;
}

__device__ terms_layout layout_at(const terms_plan *p, const GLOBAL i32 *bounds, u64 block) {
    const GLOBAL i32 *b = bounds + BOUND_WORDS * block;
    return terms_layout_of(p, b[BOUND_TOP], b[BOUND_LOW], b[BOUND_NOTES]);
}

/* Threads of a team, teams of a block, and elements that a thread loads at once. */
#define TEAM     (BLOCK < WARP ? BLOCK : WARP)
#define TEAMS    (BLOCK / TEAM)
#define TOGETHER 4

#define MY_PLACE      (threadIdx.x % TEAM)
#define MY_FIRST      ((u64)blockIdx.x * TEAMS + threadIdx.x / TEAM)
#define BLOCKS_A_TURN ((u64)gridDim.x * TEAMS)

/* Returns whether a block's elements may be taken two at a time. They have 16 bits, the block is
 * whole, `elements`, the address of the first, is a multiple of 4, and `words`, that of its words
 * of 32 bits, is a multiple of 8. */
PURE u32 goes_in_pairs(const terms_plan *p, terms_range r, u64 elements, u64 words) {
    return p->element == 16 && r.end - r.start == TERMS_BLOCK && elements % 4 == 0 &&
           words % 8 == 0;
}

/* ---- Bounds --------------------------------------------------------------------------------- */

/* Adds an element to a thread's bounds: seen[BOUND_TOP] is the bits of the greatest finite
 * magnitude, the others are as in bounds. */
__device__ void see(const terms_plan *p, u32 bits, i32 *seen) {
    const u32 infinity = (2 * (u32)p->bias + 1) << p->mantissa;
    const u32 all = bits & ((1u << (p->element - 1)) - 1), magnitude = all < infinity ? all : 0;
    const u32 field = magnitude >> p->mantissa, from = field ? field : 1;
    const u32 m = magnitude - ((from - 1) << p->mantissa);
    const i32 lowest = (i32)(from + 31 - leading_zeros(m ? m & (0 - m) : 1));
    const i32 low = p->bias + p->mantissa - lowest;
    const i32 notes = all >= infinity ? NOTES_SPECIAL : all == 0 && bits != 0 ? NOTES_ZERO : 0;
    terms_raise(&seen[BOUND_TOP], (i32)magnitude);
    terms_raise(&seen[BOUND_LOW], m ? low : TERMS_NONE);
    terms_raise(&seen[BOUND_NOTES], notes);
}

/* Merges the bounds of a team's threads into its first thread's. */
__device__ void merge_team(i32 *seen, SHARED u32 *exchange) {
    (void)exchange;
#if WARP_AT_ONCE && BLOCK >= 32
    for (u32 k = 0; k < BOUND_WORDS; k++)
        seen[k] = (i32)warp_most((u32)(seen[k] - TERMS_NONE)) + TERMS_NONE;
#else
    for (u32 apart = TEAM / 2; apart > 0; apart /= 2)
        for (u32 k = 0; k < BOUND_WORDS; k++)
            terms_raise(&seen[k], (i32)__shfl_down_sync(FULL_WARP, (u32)seen[k], apart));
#endif
}

/* Returns the exponent above all bits of numbers whose greatest magnitude has these bits. */
PURE i32 top_of(const terms_plan *p, u32 magnitude) {
    i32 exponent;
    const u32 m = terms_split(p, magnitude, &exponent);
    return m ? exponent + 32 - (i32)leading_zeros(m) : TERMS_NONE;
}

KERNEL bounds(const GLOBAL u8 *x, const terms_plan plan, GLOBAL i32 *out) {
    __shared__ u32 exchange[EXCHANGE];
    const u64 ahead = threadIdx.x / TEAM;
    for (u64 block = MY_FIRST; block - ahead < plan.blocks; block += BLOCKS_A_TURN) {
        i32 seen[BOUND_WORDS] = {0, TERMS_NONE, NOTES_NONE};
        if (block < plan.blocks) {
            const terms_range r = terms_range_of(&plan, block);
            const u32 pairs = goes_in_pairs(&plan, r, (u64)x + 2 * r.start, 0);
            const u64 end = pairs ? r.start + TERMS_BLOCK / 2 : r.end;
            for (u64 i = r.start + MY_PLACE; i < end; i += TOGETHER * TEAM) {
                u32 bits[TOGETHER];
                for (u32 k = 0; k < TOGETHER; k++) { /* a zero changes no bounds */
                    const u64 at = i + k * TEAM;
                    bits[k] = pairs      ? ((const GLOBAL u32 *)(x + 2 * r.start))[at - r.start]
                              : at < end ? element_at(x, plan.element, at)
                                         : 0;
                }
                for (u32 k = 0; k < TOGETHER; k++) {
                    see(&plan, pairs ? bits[k] & 0xffff : bits[k], seen);
                    if (pairs) see(&plan, bits[k] >> 16, seen);
                }
            }
        }
        merge_team(seen, exchange);
        if (MY_PLACE == 0 && block < plan.blocks) {
            out[BOUND_WORDS * block + BOUND_TOP] = top_of(&plan, (u32)seen[BOUND_TOP]);
            out[BOUND_WORDS * block + BOUND_LOW] = seen[BOUND_LOW];
            out[BOUND_WORDS * block + BOUND_NOTES] = seen[BOUND_NOTES];
        }
    }
}

/* ---- Rows ----------------------------------------------------------------------------------- */

/* Makes known[0..BLOCK) its running sums; by all threads of the block. */
__device__ void running_sums(SHARED u64 *known) {
    for (u32 apart = 1; apart < BLOCK; apart *= 2) {
        __syncthreads();
        const u64 before = threadIdx.x >= apart ? known[threadIdx.x - apart] : 0;
        __syncthreads();
        known[threadIdx.x] += before;
    }
    __syncthreads();
}

PURE u64 chunk_end(const terms_plan *p, u64 chunk) {
    const u64 end = (chunk + 1) * TERMS_CHUNK;
    return end < p->blocks ? end : p->blocks;
}

/* Writes to the workspace how many spare rows each chunk needs. */
KERNEL rows(const GLOBAL i32 *bounds, const terms_plan plan, GLOBAL u64 *out) {
    __shared__ u64 known[BLOCK];
    const u64 chunk = blockIdx.x, end = chunk_end(&plan, chunk);
    u64 mine = 0;
    for (u64 block = chunk * TERMS_CHUNK + threadIdx.x; block < end; block += BLOCK)
        mine += layout_at(&plan, bounds, block).digits - 1;
    known[threadIdx.x] = mine;
    running_sums(known);
    if (threadIdx.x == BLOCK - 1) out[TERMS_CHUNKS_AT(plan) + chunk] = known[threadIdx.x];
}

/* Writes where each block's spare rows begin, and how many all need. */
KERNEL offsets(const GLOBAL i32 *bounds, const terms_plan plan, GLOBAL u64 *out) {
    __shared__ u64 known[BLOCK];
    const u64 chunk = blockIdx.x, end = chunk_end(&plan, chunk);
    const u64 each = (TERMS_CHUNK + BLOCK - 1) / BLOCK;
    u64 from = chunk * TERMS_CHUNK + threadIdx.x * each, past = from + each, mine = 0;
    if (from > end) from = end;
    if (past > end) past = end;
    for (u64 c = threadIdx.x; c < chunk; c += BLOCK)
        mine += out[TERMS_CHUNKS_AT(plan) + c];
    known[threadIdx.x] = mine;
    running_sums(known);
    const u64 earlier = known[BLOCK - 1];
    __syncthreads(); /* all have read before it is written again */
    mine = 0;
    for (u64 block = from; block < past; block++)
        mine += layout_at(&plan, bounds, block).digits - 1;
    known[threadIdx.x] = mine;
    running_sums(known);
    u64 row = earlier + known[threadIdx.x] - mine;
    for (u64 block = from; block < past; block++) {
        out[block] = row;
        row += layout_at(&plan, bounds, block).digits - 1;
    }
    if (chunk == gridDim.x - 1 && threadIdx.x == BLOCK - 1) out[plan.blocks] = row;
}

/* ---- Words ---------------------------------------------------------------------------------- */

/* Writes the words of a plain block (terms_is_plain()). */
__device__ void plain_words(const GLOBAL u8 *x, const terms_plan *p, terms_layout l, terms_range r,
                            GLOBAL u8 *out) {
    if (p->word == 32 && goes_in_pairs(p, r, (u64)x + 2 * r.start, (u64)out + 4 * r.start)) {
        const GLOBAL u32 *from = (const GLOBAL u32 *)(x + 2 * r.start);
        GLOBAL u64 *to = (GLOBAL u64 *)(out + 4 * r.start);
        for (u32 first = MY_PLACE; first < TERMS_BLOCK / 2; first += TOGETHER * TEAM) {
            u32 two[TOGETHER];
            for (u32 k = 0; k < TOGETHER; k++)
                two[k] = from[first + k * TEAM];
            for (u32 k = 0; k < TOGETHER; k++)
                to[first + k * TEAM] = terms_plain_word_32(p, l, two[k] & 0xffff) |
                                       (u64)terms_plain_word_32(p, l, two[k] >> 16) << 32;
        }
        return;
    }
    for (u64 first = r.start + MY_PLACE; first < r.end; first += TOGETHER * TEAM) {
        u32 bits[TOGETHER];
        for (u32 k = 0; k < TOGETHER; k++)
            bits[k] = first + k * TEAM < r.end ? element_at(x, p->element, first + k * TEAM) : 0;
        for (u32 k = 0; k < TOGETHER; k++) {
            const u64 i = first + k * TEAM;
            if (i >= r.end) continue;
            if (p->word == 32)
                ((GLOBAL u32 *)out)[i] = terms_plain_word_32(p, l, bits[k]);
            else
                ((GLOBAL u64 *)out)[i] = terms_plain_word_64(p, l, bits[k]);
        }
    }
}

KERNEL words(const GLOBAL u8 *x, const GLOBAL i32 *bounds, const GLOBAL u64 *offsets,
             const terms_plan plan, GLOBAL u8 *out, GLOBAL u8 *spare) {
    for (u64 block = MY_FIRST; block < plan.blocks; block += BLOCKS_A_TURN) {
        const terms_layout l = layout_at(&plan, bounds, block);
        const terms_range r = terms_range_of(&plan, block);
        if (terms_is_plain(&plan, l)) {
            plain_words(x, &plan, l, r, out);
            continue;
        }
        const u64 row = offsets[block];
        for (u64 first = r.start + MY_PLACE; first < r.end; first += TOGETHER * TEAM) {
            u32 bits[TOGETHER];
            for (u32 k = 0; k < TOGETHER; k++)
                bits[k] =
                    first + k * TEAM < r.end ? element_at(x, plan.element, first + k * TEAM) : 0;
            for (u32 k = 0; k < TOGETHER; k++) {
                const u64 i = first + k * TEAM;
                if (i >= r.end) continue;
                put_word(out, plan.word, i, terms_word(&plan, l, bits[k], 0));
                for (u32 j = 1; j < l.digits && row + j <= plan.spare; j++)
                    put_word(spare, plan.word, (row + j - 1) * TERMS_BLOCK + (i - r.start),
                             terms_word(&plan, l, bits[k], j));
            }
        }
    }
}

/* ---- Values --------------------------------------------------------------------------------- */

__device__ void put_bits(GLOBAL u8 *out, u32 width, u64 i, u32 bits) {
    if (width == 32)
        ((GLOBAL u32 *)out)[i] = bits;
    else
        ((GLOBAL u16 *)out)[i] = (u16)bits;
}

/* Writes the values of elements [begin, end) of a plain block from their words. `in` and `out` begin with element
 * p->first. */
__device__ void plain_values(const GLOBAL u8 *in, const terms_plan *p, terms_layout l, u64 begin,
                             u64 end, GLOBAL u8 *out) {
    const terms_range r = {begin - p->first, end - p->first};
    if (p->word == 32 && goes_in_pairs(p, r, (u64)out + 2 * r.start, (u64)in + 4 * r.start)) {
        const GLOBAL u64 *from = (const GLOBAL u64 *)(in + 4 * r.start);
        GLOBAL u32 *to = (GLOBAL u32 *)(out + 2 * r.start);
        for (u32 first = MY_PLACE; first < TERMS_BLOCK / 2; first += TOGETHER * TEAM) {
            u64 two[TOGETHER];
            for (u32 k = 0; k < TOGETHER; k++)
                two[k] = from[first + k * TEAM];
            for (u32 k = 0; k < TOGETHER; k++)
                to[first + k * TEAM] = terms_plain_value_32(p, l, (i32)(u32)two[k]) |
                                       terms_plain_value_32(p, l, (i32)(two[k] >> 32)) << 16;
        }
        return;
    }
    for (u64 first = r.start + MY_PLACE; first < r.end; first += TOGETHER * TEAM) {
        i64 word[TOGETHER];
        for (u32 k = 0; k < TOGETHER; k++)
            word[k] = first + k * TEAM < r.end ? word_at(in, p->word, first + k * TEAM) : 0;
        for (u32 k = 0; k < TOGETHER; k++) {
            const u64 i = first + k * TEAM;
            if (i >= r.end) continue;
            put_bits(out, p->element, i,
                     p->word == 32 ? terms_plain_value_32(p, l, (i32)word[k])
                                   : terms_plain_value_64(p, l, word[k]));
        }
    }
}

/* Returns the value of an element whose sum has several words: `word`, and those in its block's spare rows, from `row`
 * on. */
__device__ u64 value_of_words(const terms_plan *p, terms_layout l, i64 word, const GLOBAL u8 *spare,
                              u64 row, u64 in_block) {
    i64 limb[TERMS_LIMBS];
    for (u32 k = 0; k < TERMS_LIMBS; k++)
        limb[k] = 0;
    terms_add(p, word, 0, limb);
    for (u32 j = 1; j < l.digits; j++)
        terms_add(p, word_at(spare, p->word, (row + j - 1) * TERMS_BLOCK + in_block), j, limb);
    return terms_value_of_limbs(p, l, limb);
}

/* Writes values of words. `in` begins with the first word of element plan.first, `out` with its
 * value. The outcome is a tally_outcome, or NULL; `failed` is a word with the number of failed
 * ranks, or NULL. */
KERNEL values(const GLOBAL u8 *in, const GLOBAL u8 *spare, const GLOBAL u8 *failed,
              const GLOBAL i32 *bounds, const GLOBAL u64 *offsets, const terms_plan plan,
              GLOBAL u8 *out, GLOBAL u64 *outcome) {
    const i64 failures = failed ? word_at(failed, plan.word, 0) : 0;
    const u64 needs =
        failures ? 0 : offsets[plan.blocks]; /* where a rank has failed there may be no offsets */
    const u64 past = plan.first + plan.count;
    const u32 status = terms_status(&plan, needs, failures);
    if (blockIdx.x == 0 && threadIdx.x == 0 && outcome) {
        outcome[0] = status && !failures ? needs : 0;
        outcome[1] = status;
    }
    if (status || plan.count == 0) return;
    const u64 last = terms_block_of(&plan, past - 1);
    for (u64 block = terms_block_of(&plan, plan.first) + MY_FIRST; block <= last;
         block += BLOCKS_A_TURN) {
        const terms_layout l = layout_at(&plan, bounds, block);
        const terms_range r = terms_range_of(&plan, block);
        const u64 row = offsets[block], end = r.end < past ? r.end : past;
        if (plan.divisor == 1 && terms_is_plain(&plan, l)) {
            plain_values(in, &plan, l, r.start > plan.first ? r.start : plan.first, end, out);
            continue;
        }
        for (u64 first = r.start + MY_PLACE; first < end; first += TOGETHER * TEAM) {
            i64 word[TOGETHER];
            for (u32 k = 0; k < TOGETHER; k++) {
                const u64 i = first + k * TEAM;
                word[k] = i >= plan.first && i < end ? word_at(in, plan.word, i - plan.first) : 0;
            }
            for (u32 k = 0; k < TOGETHER; k++) {
                const u64 i = first + k * TEAM;
                if (i < plan.first || i >= end) continue;
                const u64 bits = l.digits == 1
                                     ? terms_value(&plan, l, word[k])
                                     : value_of_words(&plan, l, word[k], spare, row, i - r.start);
                put_bits(out, plan.element, i - plan.first, (u32)bits);
            }
        }
    }
}
