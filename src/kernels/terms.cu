/*
 * terms - arrays that are added up over ranks, element by element (terms.h), on a device: from elements to bounds of
 * blocks, to words, and from words that have been added up to values.
 *
 * bounds, words, values: a team of threads - a warp, or all of a smaller block - takes a block of elements at a time.
 * rows, offsets: a block of threads finds for TERMS_CHUNK blocks how many rows they need, and then, from what the chunks
 * before need, where each one's begin.
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

/* Teams, and how many elements a thread asks memory for at once. */
#define TEAM     (BLOCK < WARP ? BLOCK : WARP)
#define TEAMS    (BLOCK / TEAM)
#define TOGETHER 4

#define MY_PLACE      (threadIdx.x % TEAM)
#define MY_FIRST      ((u64)blockIdx.x * TEAMS + threadIdx.x / TEAM)
#define BLOCKS_A_TURN ((u64)gridDim.x * TEAMS)

/* The bounds of a team's first thread become those of all. */
__device__ void meet(i32 *mine, SHARED u32 *exchange) {
    (void)exchange;
    for (u32 apart = TEAM / 2; apart > 0; apart /= 2)
        for (u32 k = 0; k < BOUND_WORDS; k++)
            terms_raise(&mine[k], (i32)__shfl_down_sync(FULL_WARP, (u32)mine[k], apart));
}

KERNEL bounds(const GLOBAL u8 *x, const terms_plan plan, GLOBAL i32 *out) {
    __shared__ u32 exchange[EXCHANGE];
    const u64 ahead = threadIdx.x / TEAM;
    for (u64 block = MY_FIRST; block - ahead < plan.blocks; block += BLOCKS_A_TURN) {
        i32 mine[BOUND_WORDS];
        terms_no_bounds(mine);
        if (block < plan.blocks) {
            const terms_range r = terms_range_of(&plan, block);
            for (u64 i = r.start + MY_PLACE; i < r.end; i += TOGETHER * TEAM) {
                u32 bits[TOGETHER];
                for (u32 k = 0; k < TOGETHER; k++) /* a zero bounds nothing */
                    bits[k] = i + k * TEAM < r.end ? element_at(x, plan.element, i + k * TEAM) : 0;
                for (u32 k = 0; k < TOGETHER; k++)
                    terms_bound(&plan, bits[k], mine);
            }
        }
        meet(mine, exchange);
        if (MY_PLACE == 0 && block < plan.blocks)
            for (u32 k = 0; k < BOUND_WORDS; k++)
                out[BOUND_WORDS * block + k] = mine[k];
    }
}

/* known[0..BLOCK) becomes its running sums. */
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

/* The workspace: where each block's rows begin, how many there are, and then how many each chunk needs. */
#define CHUNKS_AT(plan) ((plan).blocks + 1)

/* The chunks' part of the workspace. */
KERNEL rows(const GLOBAL i32 *bounds, const terms_plan plan, GLOBAL u64 *out) {
    __shared__ u64 known[BLOCK];
    const u64 chunk = blockIdx.x, end = chunk_end(&plan, chunk);
    u64 mine = 0;
    for (u64 block = chunk * TERMS_CHUNK + threadIdx.x; block < end; block += BLOCK)
        mine += layout_at(&plan, bounds, block).digits - 1;
    known[threadIdx.x] = mine;
    running_sums(known);
    if (threadIdx.x == BLOCK - 1) out[CHUNKS_AT(plan) + chunk] = known[threadIdx.x];
}

/* The rest of it. */
KERNEL offsets(const GLOBAL i32 *bounds, const terms_plan plan, GLOBAL u64 *out) {
    __shared__ u64 known[BLOCK];
    const u64 chunk = blockIdx.x, end = chunk_end(&plan, chunk);
    const u64 each = (TERMS_CHUNK + BLOCK - 1) / BLOCK;
    u64 from = chunk * TERMS_CHUNK + threadIdx.x * each, past = from + each, mine = 0;
    if (from > end) from = end;
    if (past > end) past = end;
    for (u64 c = threadIdx.x; c < chunk; c += BLOCK)
        mine += out[CHUNKS_AT(plan) + c];
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

KERNEL words(const GLOBAL u8 *x, const GLOBAL i32 *bounds, const GLOBAL u64 *offsets,
             const terms_plan plan, GLOBAL u8 *out, GLOBAL u8 *spare) {
    for (u64 block = MY_FIRST; block < plan.blocks; block += BLOCKS_A_TURN) {
        const terms_layout l = layout_at(&plan, bounds, block);
        const terms_range r = terms_range_of(&plan, block);
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

/* The value of an element whose sum has several words. */
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
    for (u64 block = terms_block_of(&plan, plan.first) + MY_FIRST; block <= last;
         block += BLOCKS_A_TURN) {
        const terms_layout l = layout_at(&plan, bounds, block);
        const terms_range r = terms_range_of(&plan, block);
        const u64 row = offsets[block], end = r.end < past ? r.end : past;
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
                if (plan.element == 32)
                    ((GLOBAL u32 *)out)[i - plan.first] = (u32)bits;
                else
                    ((GLOBAL u16 *)out)[i - plan.first] = (u16)bits;
            }
        }
    }
}
