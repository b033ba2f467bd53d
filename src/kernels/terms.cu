/*
 * terms - arrays that are added up over ranks, element by element (terms.h), on a device: from elements to bounds of
 * blocks, to words, and from words that have been added up to values.
 *
 * bounds:  a block of threads takes a block of elements at a time.
 * offsets: one block of threads counts the rows that blocks need before each other.
 * words, values: as bounds; a thread has an element at a time.
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

KERNEL bounds(const GLOBAL u8 *x, const terms_plan plan, GLOBAL i32 *out) {
    __shared__ i32 known[BOUND_WORDS * BLOCK];
    for (u64 block = blockIdx.x; block < plan.blocks; block += gridDim.x) {
        const u64 end = terms_end(&plan, block);
        i32 mine[BOUND_WORDS];
        terms_no_bounds(mine);
        for (u64 i = terms_start(&plan, block) + threadIdx.x; i < end; i += BLOCK)
            terms_bound(&plan, element_at(x, plan.element, i), mine);
        for (u32 k = 0; k < BOUND_WORDS; k++)
            known[k * BLOCK + threadIdx.x] = mine[k];
        for (u32 apart = BLOCK / 2; apart > 0; apart /= 2) {
            __syncthreads();
            if (threadIdx.x < apart)
                for (u32 k = 0; k < BOUND_WORDS; k++) {
                    terms_raise(&mine[k], known[k * BLOCK + threadIdx.x + apart]);
                    known[k * BLOCK + threadIdx.x] = mine[k];
                }
        }
        if (threadIdx.x == 0)
            for (u32 k = 0; k < BOUND_WORDS; k++)
                out[BOUND_WORDS * block + k] = mine[k];
        __syncthreads(); /* all have read before the next ones are written */
    }
}

/* offsets[b] becomes the number of rows that the blocks before b need, offsets[blocks] that of all. */
KERNEL offsets(const GLOBAL i32 *bounds, const terms_plan plan, GLOBAL u64 *out) {
    __shared__ u64 rows[BLOCK];
    const u64 each = (plan.blocks + BLOCK - 1) / BLOCK, from = threadIdx.x * each;
    const u64 end = from + each < plan.blocks ? from + each : plan.blocks;
    u64 mine = 0;
    for (u64 block = from; block < end; block++)
        mine += layout_at(&plan, bounds, block).digits - 1;
    rows[threadIdx.x] = mine;
    __syncthreads();
    u64 before = 0;
    for (u32 t = 0; t < threadIdx.x; t++)
        before += rows[t];
    if (threadIdx.x == BLOCK - 1) out[plan.blocks] = before + mine;
    for (u64 block = from; block < end; block++) {
        out[block] = before;
        before += layout_at(&plan, bounds, block).digits - 1;
    }
}

KERNEL words(const GLOBAL u8 *x, const GLOBAL i32 *bounds, const GLOBAL u64 *offsets,
             const terms_plan plan, GLOBAL u8 *out, GLOBAL u8 *spare) {
    for (u64 block = blockIdx.x; block < plan.blocks; block += gridDim.x) {
        const terms_layout l = layout_at(&plan, bounds, block);
        const u64 start = terms_start(&plan, block), end = terms_end(&plan, block);
        const u64 row = offsets[block];
        for (u64 i = start + threadIdx.x; i < end; i += BLOCK) {
            const u32 bits = element_at(x, plan.element, i);
            put_word(out, plan.word, i, terms_word(&plan, l, bits, 0));
            for (u32 j = 1; j < l.digits && row + j <= plan.spare; j++)
                put_word(spare, plan.word, (row + j - 1) * TERMS_BLOCK + (i - start),
                         terms_word(&plan, l, bits, j));
        }
    }
}

/* `in` begins with the first word of element plan.first, `out` with its value. The outcome is a tally_outcome; `failed`
 * a word, or NULL. */
KERNEL values(const GLOBAL u8 *in, const GLOBAL u8 *spare, const GLOBAL u8 *failed,
              const GLOBAL i32 *bounds, const GLOBAL u64 *offsets, const terms_plan plan,
              GLOBAL u8 *out, GLOBAL u64 *outcome) {
    const i64 failures = failed ? word_at(failed, plan.word, 0) : 0;
    const u64 needs =
        failures ? 0 : offsets[plan.blocks]; /* a rank that has failed may have none */
    const u64 past = plan.first + plan.count;
    const u32 status = terms_status(&plan, needs, failures);
    if (blockIdx.x == 0 && threadIdx.x == 0 && outcome) {
        outcome[0] = status && !failures ? needs : 0;
        outcome[1] = status;
    }
    if (status || plan.count == 0) return;
    const u64 last = terms_block_of(&plan, past - 1);
    for (u64 block = terms_block_of(&plan, plan.first) + blockIdx.x; block <= last;
         block += gridDim.x) {
        const terms_layout l = layout_at(&plan, bounds, block);
        const u64 start = terms_start(&plan, block), end = terms_end(&plan, block);
        const u64 row = offsets[block];
        for (u64 i = start + threadIdx.x; i < end; i += BLOCK) {
            if (i < plan.first || i >= past) continue;
            const i64 word = word_at(in, plan.word, i - plan.first);
            u64 bits;
            if (l.digits == 1) {
                bits = terms_value(&plan, l, word);
            } else {
                i64 limb[TERMS_LIMBS];
                for (u32 k = 0; k < TERMS_LIMBS; k++)
                    limb[k] = 0;
                terms_add(&plan, word, 0, limb);
                for (u32 j = 1; j < l.digits; j++)
                    terms_add(&plan,
                              word_at(spare, plan.word, (row + j - 1) * TERMS_BLOCK + (i - start)),
                              j, limb);
                bits = terms_value_of_limbs(&plan, l, limb);
            }
            if (plan.element == 32)
                ((GLOBAL u32 *)out)[i - plan.first] = (u32)bits;
            else
                ((GLOBAL u16 *)out)[i - plan.first] = (u16)bits;
        }
    }
}
