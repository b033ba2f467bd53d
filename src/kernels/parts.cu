/*
 * parts - reductions in parts: along axes, by segment, by group (parts.h); every monoid but the canonical tree, of
 * every type.
 *
 * fold: each block takes pieces of equal work, however rows lie in them. A row that lies in one piece is lowered at
 * once. Of a row that is cut, each piece leaves its record on an edge, and `join` merges these and lowers the row. So
 * neither a giant row nor a million empty ones hold up the other blocks, and nothing depends on which block came
 * first.
 *
 * quick: a thread takes short rows or columns, and a warp rows of middle length, if all values are simple. A
 * double-double that loses nothing is the exact sum, and is rounded once without a superaccumulator. Some rows are
 * left to `fold` and `join`: a long one, one with a sum that a double-double does not hold, with an infinity, or with
 * a value that does not exist.
 *
 * few: reduces few elements, of shapes for which no other kernels are made. A block folds a row, and tries to lower
 * its sums from double-doubles. Only if these do not determine the values, it adds them to superaccumulators, and
 * lowers those.
 *
 * A block of `fold` folds one row at a time. Each thread keeps a sum of floats in two doubles, whose additions lose
 * nothing: what the second one cannot hold goes, exactly, to the block's superaccumulator in shared memory (limbs.h).
 *
 * The type and the parts are read from the plan, so that this is one program for all problems.
 *
 * starts: finds where rows begin, of elements that lie in the order of their groups or have been brought into it
 * (sort.cu).
 */
#define BLOCKS_A_UNIT GPU_PRODUCT_BLOCKS_A_UNIT
#define OP_OR
#define TYPE_U64 /* the headers need an element type; the plan has the real one */
#include "tuning.h"

#include "operators.h"

#include "half.h"

#include "plan.h"

#define HAS_VECTORS
#include "parts.h"

#define WORDS PARTS_WORDS

#include "records.h"

#define RECORD_SPACE SHARED
#include "lower.h"

#include "limbs.h"

#include "doubles.h"

#include "spots.h"

#include "state/cells.h"

#include "schedule/parts_values.h"

#include "schedule/parts_range.h"

#include "schedule/starts.h"

BEGINS_EARLY

KERNEL quick(const GLOBAL u8 *x, const GLOBAL u8 *mask, const GLOBAL u8 *offsets, GLOBAL u64 *work,
             GLOBAL u8 *out, const parts_plan plan) {
    __shared__ u64 exchange[EXCHANGE];
    wait_for_earlier();
    const u32 is_good = plan.ignore_errors || read_word(&work[PARTS_BAD]) == ~(u64)0;
    const u32 team = BLOCK == 1 ? 1 : plan.team, teams = BLOCK / team;
    const u32 lane = threadIdx.x % team;
    for (u64 group = (u64)blockIdx.x * teams; group < plan.rows.count;
         group += (u64)gridDim.x * teams) {
        const u64 row = group + threadIdx.x / team;
        const u32 is_there = row < plan.rows.count && is_good;
        u64 n = 0;
        row_sum b = {0, 0, 0, 0, 0};
        cell c;
        for (u32 k = 0; k < WORDS; k++)
            c.word[k] = 0;
        if (is_there) {
            n = row_start(offsets, plan.rows, row + 1) - row_start(offsets, plan.rows, row);
            if (n <= plan.quick_most)
                add_row(x, mask, work, &plan, origin_of_row(offsets, &plan, row), n, lane, team, &b,
                        &c);
        }
#if BLOCK > 1
        if (UNIFORM(team > 1)) reduce_row_sums(&plan, &b, c.word, exchange);
#endif
        if (is_there && lane == 0) {
            const u32 done = n <= plan.quick_most && put_row(out, &plan, row, &b, c.word);
            if (!done) {
                TALLY_PATH("left to fold");
                leave_row(work, plan.left, row);
            } else
                TALLY_PATH("put");
        }
    }
}

/* ---- Kernels ---------------------------------------------------------------------------------------- */

/* Writes the sums of a block's record to an edge; limbs hand on their carries first, so that edges can be added up. */
__device__ void leave_sums(const parts_plan *p, const SHARED u64 *rec, GLOBAL u64 *edge) {
    for (u32 k = 0; k < SUMS; k++) {
        if (!HAS(p, k)) continue;
        const limb_layout s = limb_layout_of(p->lower.type, k);
        const u32 words = s.limbs + (is_float(p->lower.type) ? FLOAT_COUNTS : 0);
        const u32 at = p->lower.at[k];
        for (u32 i = threadIdx.x; i < words; i += BLOCK) {
            u64 own = rec[at + i];
            if (i + 1 < s.limbs) own &= 0xffffffffu;
            if (i > 0 && i < s.limbs) own += (u64)((i64)rec[at + i - 1] >> 32); /* floor */
            edge[WORDS + at + i] = own;
        }
    }
}

KERNEL fold(const GLOBAL u8 *x, const GLOBAL u8 *y, const GLOBAL u8 *mask, const GLOBAL u8 *offsets,
            const GLOBAL u64 *means, GLOBAL u64 *work, GLOBAL u8 *out, const parts_plan plan) {
    __shared__ u64 rec[PARTS_SUMS + PARTS_REST];
    __shared__ u64 warps[WARPS * WORDS];
    __shared__ u64 exchange[EXCHANGE];
    SHARED_LOWER_SCRATCH numbers;
    wait_for_earlier();
    const u32 works = has_work(work, &plan);
    const u64 origin = works ? row_start(offsets, plan.rows, 0) : 0;
    for (u64 piece = blockIdx.x; piece < plan.pieces && works; piece += gridDim.x) {
        const u64 begin = piece * plan.piece, end = begin + plan.piece;
        u64 row = row_of(offsets, plan.rows, 1, PARTS_ROW_WEIGHT, begin);
        const u64 last = row_of(offsets, plan.rows, 1, PARTS_ROW_WEIGHT, end - 1) + 1;
        for (; row < last; row++) {
            row = next_left(work, &plan, row, last);
            if (row >= last) break;
            const u64 start = row_start(offsets, plan.rows, row);
            const u64 at = start - origin + row * PARTS_ROW_WEIGHT;
            const u64 length = row_start(offsets, plan.rows, row + 1) - start;
            if (at >= end) break;
            const u64 from = at < begin ? begin - at : 0,
                      to = end - at < length ? end - at : length;
            if (at < begin && from >= length) continue;
            cell c;
            clear_cell(&c);
            for (u32 k = threadIdx.x; k < plan.sums; k += BLOCK)
                rec[k] = 0;
            __syncthreads();
            fold_range(x, y, mask, offsets, work, &plan, row, from, to, &c, rec);
            merge_block(c.word, warps, exchange);
            __syncthreads();
            if (from == 0 && to == length) {
                if (threadIdx.x == 0) {
                    TALLY_PATH("a whole row");
                    lower_row(offsets, means, work, out, &plan, row, c.word, rec, &numbers);
                }
            } else {
                GLOBAL u64 *edge =
                    work + plan.edges + (2 * piece + (from == 0)) * (WORDS + plan.sums);
                if (threadIdx.x == 0)
                    for (u32 k = 0; k < WORDS; k++)
                        edge[k] = c.word[k];
                leave_sums(&plan, rec, edge);
            }
            __syncthreads();
        }
    }
}

/* Reduces all rows of an array of few elements in a single launch. The problem has no canonical
 * tree, and the caller wants no outcome (`ignore_errors`). */
KERNEL few(const GLOBAL u8 *x, const GLOBAL u8 *y, const GLOBAL u8 *mask, const GLOBAL u64 *means,
           GLOBAL u8 *out, const parts_plan plan) {
    __shared__ u64 rec[PARTS_SUMS + PARTS_REST];
    __shared__ u64 warps[WARPS * WORDS];
    __shared__ u64 exchange[EXCHANGE];
    __shared__ u32 is_left;
    SHARED_LOWER_SCRATCH numbers;
    wait_for_earlier();
    const GLOBAL u8 *nowhere = x; /* for arguments that the functions below do not read here */
    const u32 of_floats = is_float(plan.lower.type) && (plan.monoids & ((1u << SUMS) - 1)) != 0;
    for (u64 row = blockIdx.x; row < plan.rows.count; row += gridDim.x) {
        cell c;
        sum whole[SUMS];
        clear_cell(&c);
        for (u32 k = threadIdx.x; k < plan.sums; k += BLOCK)
            rec[k] = 0;
        __syncthreads();
        add_range(x, y, mask, (const GLOBAL u64 *)nowhere, &plan,
                  origin_of_row(nowhere, &plan, row), 0, plan.rows.each, &c, rec);
        merge_block(c.word, warps, exchange);
        u32 lost = c.beyond;
        for (u32 k = 0; k < SUMS; k++) {
            whole[k] = c.sums[k];
            if (UNIFORM(of_floats && HAS(&plan, k)))
                reduce_block_sum(&whole[k], &lost, warps, exchange);
        }
        if (threadIdx.x == 0)
            is_left = !of_floats || !put_sums(out, &plan, row, c.word, whole, lost);
        __syncthreads();
        if (UNIFORM(is_left)) {
            if (is_left) flush_sums(&plan, &c, rec);
            __syncthreads();
            if (threadIdx.x == 0) TALLY_PATH("by digits");
            if (is_left && threadIdx.x == 0)
                lower_row(nowhere, means, (GLOBAL u64 *)out, out, &plan, row, c.word, rec,
                          &numbers);
        }
        __syncthreads();
    }
}

/* Merges the edges of each row that was cut, and lowers it. A piece has at most one such row that begins in it and
 * ends in a later one. */
KERNEL join(const GLOBAL u8 *offsets, const GLOBAL u64 *means, GLOBAL u64 *work, GLOBAL u8 *out,
            const parts_plan plan) {
    __shared__ u64 rec[PARTS_SUMS + PARTS_REST];
    __shared__ u64 warps[WARPS * WORDS];
    __shared__ u64 exchange[EXCHANGE];
    SHARED_LOWER_SCRATCH numbers;
    wait_for_earlier();
    const u32 works = has_work(work, &plan);
    const u64 origin = works ? row_start(offsets, plan.rows, 0) : 0, size = WORDS + plan.sums;
    for (u64 piece = blockIdx.x; piece + 1 < plan.pieces && works; piece += gridDim.x) {
        const u64 cut = (piece + 1) * plan.piece;
        const u64 row = row_of(offsets, plan.rows, 1, PARTS_ROW_WEIGHT, cut);
        const u64 start = row_start(offsets, plan.rows, row);
        const u64 at = start - origin + row * PARTS_ROW_WEIGHT;
        const u64 length = row_start(offsets, plan.rows, row + 1) - start;
        if (at >= cut || cut - at >= length || at / plan.piece != piece) continue;
        if (next_left(work, &plan, row, row + 1) != row) continue;
        const u64 parts = (at + length - 1) / plan.piece - piece + 1;
        const GLOBAL u64 *edges = work + plan.edges + 2 * piece * size;
        u64 known[WORDS];
        for (u32 k = 0; k < WORDS; k++)
            known[k] = 0;
        for (u64 i = threadIdx.x; i < parts; i += BLOCK) {
            const GLOBAL u64 *edge = edges + (2 * i + (i == 0)) * size;
            u64 other[WORDS];
            for (u32 k = 0; k < WORDS; k++)
                other[k] = edge[k];
            merge(known, other);
        }
        merge_block(known, warps, exchange);
        for (u32 k = threadIdx.x; k < plan.sums; k += BLOCK) {
            u64 total = 0;
            for (u64 i = 0; i < parts; i++)
                total += edges[(2 * i + (i == 0)) * size + WORDS + k];
            rec[k] = total;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            TALLY_PATH("");
            lower_row(offsets, means, work, out, &plan, row, known, rec, &numbers);
        }
        __syncthreads();
    }
}

/* Notes in work[PARTS_BAD] the first offset that falls, or lies outside. */
KERNEL check(const GLOBAL u8 *offsets, GLOBAL u64 *work, const parts_plan plan) {
    wait_for_earlier();
    for (u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x; i <= plan.rows.count;
         i += (u64)gridDim.x * BLOCK) {
        const i64 at = (i64)row_start(offsets, plan.rows, i);
        const i64 before = i > 0 ? (i64)row_start(offsets, plan.rows, i - 1) : 0;
        if (at < before || at < 0 || (u64)at > plan.n) note_least(&work[PARTS_BAD], i);
    }
}

/* Writes where rows begin: work[to + i] is the first place that belongs to row i or a later one. Groups' ids, in
 * order, are at `ids`, from byte `first` on. Places count elements, or, with plan.shown, only the elements that a
 * mask shows. */
KERNEL starts(const GLOBAL u8 *ids, const GLOBAL u8 *offsets, GLOBAL u64 *work, u64 first, u64 to,
              const parts_plan plan) {
    wait_for_earlier();
    const u64 n = plan.ordered ? work[PARTS_TOTAL] : plan.n;
    if (!plan.row_starts) {
        sorted_starts(ids + first, work, to, n, &plan);
        return;
    }
    for (u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x; i <= plan.rows.count;
         i += (u64)gridDim.x * BLOCK) {
        const u64 start = row_start(offsets, plan.rows, i);
        work[to + i] = plan.shown ? first_not_below(ids, work, &plan, n, start) : start;
    }
}

/* Copies elements of all rows, or those that a mask shows, side by side to the byte `to` of the workspace: for the
 * canonical tree. */
KERNEL gather(const GLOBAL u8 *x, const GLOBAL u8 *offsets, GLOBAL u64 *work, u64 to,
              const parts_plan plan) {
    wait_for_earlier();
    const u32 width = width_of(plan.lower.type), is_bad = read_word(&work[PARTS_BAD]) != ~(u64)0;
    const u64 first = plan.shown || is_bad ? 0 : row_start(offsets, plan.rows, 0);
    const u64 end = is_bad       ? 0
                    : plan.shown ? work[PARTS_TOTAL]
                                 : row_start(offsets, plan.rows, plan.rows.count);
    for (u64 j = first + (u64)blockIdx.x * BLOCK + threadIdx.x; j < end;
         j += (u64)gridDim.x * BLOCK) {
        const u64 nth = plan.shown ? number_in_order(work, plan.shown, plan.wide_shown, j) : j;
        const u64 bits = load_bits(x, width, numbered_spot(offsets, work, &plan, nth).x);
        store_bits((GLOBAL u8 *)work + to, width, (i64)j, bits);
    }
}

/* Writes a reduction's tally_outcome to outcome[0] and outcome[1]. */
KERNEL report(const GLOBAL u64 *work, GLOBAL u64 *outcome) {
    wait_for_earlier();
    const u64 absent = work[PARTS_ABSENT], bad = work[PARTS_BAD];
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    const u32 status = bad != ~(u64)0      ? RESULT_NONE
                       : absent == ~(u64)0 ? RESULT_OK
                       : absent & 1        ? RESULT_NONE
                                           : RESULT_RANGE;
    const u32 value = bad != ~(u64)0 || absent == ~(u64)0 ? ~0u : (u32)(absent % 64 / 2);
    outcome[0] = bad != ~(u64)0 ? bad : absent == ~(u64)0 ? 0 : absent / 64;
    outcome[1] = (u64)value << 32 | status;
}
