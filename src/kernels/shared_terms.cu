/*
 * shared_terms - arrays that are added up over ranks, element by element (terms.h), where every rank's device can read
 * and write the memory of all others: no words are made, and nothing is sent.
 *
 * rank_barrier: waits for all ranks (mailbox.h), and says whether one of them has failed. One block.
 * add_up: adds up this rank's share of the elements, from the arrays of all ranks into the sums of all
 * ranks. It runs between two barriers: after the first all arrays are there, after the second all sums.
 *
 * Sums. Terms are added up as two doubles without any error (two_sum.h), which are then rounded once. Where two doubles
 * do not hold a sum, and for infinities and NaNs, the term is cut into digits, which are added up in limbs (terms.h).
 */
#define BLOCKS_A_UNIT GPU_SHARED_TERMS_BLOCKS_A_UNIT

#include "tuning.h"

#include "kernel.h"

#include "rounding.h"

#include "half.h"

#include "terms.h"

#include "certain/two_sum.h"

#include "plan.h"

#include "words.h"

#include "mailbox.h"

#include "request.h"

#include "shared_terms.h"

/* ---- The barrier ---------------------------------------------------------------------------- */

/* Waits for all ranks: a barrier. Every rank then sees this rank's earlier writes. The outcome
 * becomes that of the first rank that says it has failed, TALLY_EINVAL if the ranks mean different
 * arrays, or TALLY_ELOST if the wait was stopped. A `later` barrier keeps an outcome other than
 * TALLY_OK. */
KERNEL rank_barrier(GLOBAL u64 *mailbox, const shared_terms_plan plan, u32 later,
                    GLOBAL u64 *outcome) {
    __shared__ u64 answers[MAILBOX_RANKS];
    __shared__ u32 lost[1];
    const u64 turn = mailbox[MAILBOX_TURN], flag = mailbox_flag(turn);
    const u64 mine = (u64)plan.arrays << 32 | (later ? 0 : plan.failure);
    if (threadIdx.x == 0) lost[0] = 0;
    __syncthreads();
    for (u32 rank = threadIdx.x; rank < plan.ranks; rank += BLOCK) {
        answers[rank] = mine;
        if (rank == plan.mine) continue;
        u32 stopped = 0;
        GLOBAL u64 *theirs = (GLOBAL u64 *)(size_t)mailbox[MAILBOX_ADDRESSES + rank];
        __threadfence_system();
        send_word(mailbox_slot(theirs, plan.ranks, turn, plan.mine, 0), flag, mine);
        answers[rank] =
            receive_word(mailbox_slot(mailbox, plan.ranks, turn, rank, 0), mailbox, flag, &stopped);
        __threadfence_system();
        if (stopped) atomicAdd(lost, 1u);
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    mailbox[MAILBOX_TURN] = turn + 1;
    u32 status = later ? (u32)outcome[1] : 0;
    for (u32 rank = 0; rank < plan.ranks && status == 0; rank++)
        status = (u32)answers[rank];
    for (u32 rank = 0; rank < plan.ranks && status == 0; rank++)
        if (answers[rank] != mine) status = RESULT_NONE;
    outcome[0] = 0;
    outcome[1] = lost[0] ? RESULT_LOST : status;
}

/* ---- Sums ----------------------------------------------------------------------------------- */

/* The sum of an element's terms so far, a double-double. */
typedef struct running {
    double s, e;
} running;

PURE double double_of(const terms_plan *p, u32 bits) {
    if (p->mantissa == 23) return (double)float_from(bits);
    if (p->mantissa == 7) return (double)float_from(bits << 16);
    return (double)float_from(half_bits_widened(bits));
}

/* Adds a term to *r. Returns 1 if the double-double cannot hold the sum, which is then lost. */
PURE u32 take_term(const terms_plan *p, running *r, u32 bits) {
    return pair_add(double_of(p, bits), &r->s, &r->e) != 0;
}

PURE running no_terms(void) {
    const running r = {-0.0, 0}; /* stays -0 while all terms are */
    return r;
}

/* Returns the bits of the sum r, divided by the divisor; sets *lost if this way does not give them.
 * A double rounded to odd has 53 bits, so that a second rounding to 24 bits or fewer is the only
 * one in effect. A quotient is a double with the sign of its remainder, which fused() gives, for a
 * sum that is one double. */
PURE u32 value_of(const terms_plan *p, const running *r, u32 *lost) {
    const float_format f = {p->mantissa, p->bias}, wide = {52, 1023};
    double low, odd;
    const double high = two_sum(r->s, r->e, &low);
    if (high == 0) return double_bits(r->s) == (u64)1 << 63 ? 1u << (p->element - 1) : 0;
    odd = pair_to_odd(high, low);
    if (p->divisor > 1) {
        const double n = (double)p->divisor, q = high / n;
        odd = pair_to_odd(q, fused(-q, n, high));
        *lost |= low != 0;
    }
    return (u32)round_float(f, wide, double_bits(odd));
}

__device__ u32 bits_at(const GLOBAL u8 *x, u32 width, u64 i) {
    return width == 32 ? ((const GLOBAL u32 *)x)[i] : ((const GLOBAL u16 *)x)[i];
}

__device__ const GLOBAL u8 *array_of(u64 address) {
    return (const GLOBAL u8 *)(size_t)address;
}

/* Returns the bits of the sum of element i, by digits. */
__device__ u32 value_by_digits(const terms_plan *p, const shared_terms_plan *r, u64 i) {
    const terms_layout l =
        terms_layout_of(p, p->bias + 1, p->bias + p->mantissa - 1, NOTES_SPECIAL);
    i64 limb[TERMS_LIMBS];
    for (u32 k = 0; k < TERMS_LIMBS; k++)
        limb[k] = 0;
    for (u32 rank = 0; rank < r->ranks; rank++) {
        const u32 bits = bits_at(array_of(r->x[rank]), p->element, i);
        for (u32 j = 0; j < l.digits; j++)
            terms_add(p, terms_word(p, l, bits, j), j, limb);
    }
    return (u32)terms_value_of_limbs(p, l, limb);
}

/* Returns the bits of the sum of element i. */
__device__ u32 value_at(const terms_plan *p, const shared_terms_plan *r, u64 i) {
    running sum = no_terms();
    u32 lost = 0;
    for (u32 rank = 0; rank < r->ranks; rank++)
        lost |= take_term(p, &sum, bits_at(array_of(r->x[rank]), p->element, i));
    const u32 bits = value_of(p, &sum, &lost);
    return lost ? value_by_digits(p, r, i) : bits;
}

/* A pack is 16 bytes, of PACK_MOST elements at most. A thread loads the packs of PACK_TOGETHER ranks at once. */
typedef union pack {
    uint4 all;
    u32 word[4];
} pack;
#define PACK_MOST     8u
#define PACK_TOGETHER 4u

/* Adds the terms of a pack to the sums. Returns a bit for each element whose sum two doubles do not hold. */
INLINED u32 add_pack(const terms_plan *p, running *sum, pack bits, u32 width) {
    const u32 each = 128 / width, halves = 32 / width;
    u32 wrong = 0;
    UNROLL
    for (u32 k = 0; k < PACK_MOST; k++)
        if (k < each) {
            const u32 w = bits.word[k / halves % 4];
            const u32 term = width == 32 ? w : w >> (k % halves * 16) % 32 & 0xffffu;
            wrong |= take_term(p, &sum[k], term) << k;
        }
    return wrong;
}

/* Returns the sums of pack i of the arrays. Each rank begins with its own array and goes on with
 * its neighbours', so that the ranks do not all read one memory at once. Sums without errors do not
 * depend on the order. */
INLINED pack pack_values(const terms_plan *p, const shared_terms_plan *r, u64 i, u32 width) {
    const u32 each = 128 / width, halves = 32 / width;
    running sum[PACK_MOST];
    u32 rank = r->mine, wrong = 0;
    pack made, bits[PACK_TOGETHER];
    UNROLL
    for (u32 k = 0; k < PACK_MOST; k++)
        sum[k] = no_terms();
    UNROLL
    for (u32 w = 0; w < 4; w++)
        made.word[w] = 0;
    UNROLL_NOT
    for (u32 turn = 0; turn < r->ranks; turn += PACK_TOGETHER) {
        UNROLL
        for (u32 k = 0; k < PACK_TOGETHER; k++)
            if (turn + k < r->ranks) {
                bits[k].all = ((const GLOBAL uint4 *)array_of(r->x[rank]))[i];
                rank = rank + 1 < r->ranks ? rank + 1 : 0;
            }
        UNROLL
        for (u32 k = 0; k < PACK_TOGETHER; k++)
            if (turn + k < r->ranks) wrong |= add_pack(p, sum, bits[k], width);
    }
    UNROLL
    for (u32 k = 0; k < PACK_MOST; k++)
        if (k < each) {
            u32 lost = 0;
            const u32 value = value_of(p, &sum[k], &lost);
            made.word[k / halves % 4] |= value << (k % halves * 16) % 32;
            wrong |= lost << k;
        }
    UNROLL_NOT
    for (u32 k = 0; wrong != 0; k++, wrong >>= 1)
        if (wrong & 1) {
            const u32 value = value_by_digits(p, r, i * each + k), at = k % halves * 16 % 32;
            const u32 mask = width == 32 ? ~0u : 0xffffu << at;
            UNROLL
            for (u32 w = 0; w < 4; w++)
                if (k / halves == w) made.word[w] = (made.word[w] & ~mask) | value << at;
        }
    return made;
}

/* Writes the sums of packs [first, first + count) of the arrays, which begin at pack `to`. */
INLINED void add_packs(const terms_plan *p, const shared_terms_plan *r, u64 first, u64 count,
                       u64 to, u32 width) {
    for (u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x; i < count; i += (u64)gridDim.x * BLOCK) {
        const pack made = pack_values(p, r, first + i, width);
        for (u32 k = 0; k < r->outs; k++)
            ((GLOBAL uint4 *)(size_t)r->out[k])[to + i] = made.all;
    }
}

KERNEL add_up(const terms_plan terms, const shared_terms_plan plan, const GLOBAL u64 *outcome) {
    const u32 each = 128 / terms.element;
    if (outcome && (u32)outcome[1] != 0) return;
    const u64 packs = plan.in_packs ? terms.count / each : 0;
    if (terms.element == 32)
        add_packs(&terms, &plan, terms.first / each, packs, plan.to / each, 32);
    else
        add_packs(&terms, &plan, terms.first / each, packs, plan.to / each, 16);
    for (u64 i = packs * each + (u64)blockIdx.x * BLOCK + threadIdx.x; i < terms.count;
         i += (u64)gridDim.x * BLOCK) {
        const u32 bits = value_at(&terms, &plan, terms.first + i);
        for (u32 k = 0; k < plan.outs; k++) {
            GLOBAL u8 *out = (GLOBAL u8 *)(size_t)plan.out[k];
            if (terms.element == 32)
                ((GLOBAL u32 *)out)[plan.to + i] = bits;
            else
                ((GLOBAL u16 *)out)[plan.to + i] = (u16)bits;
        }
    }
}
