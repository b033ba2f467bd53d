/*
 * filled - makes dense copies of strided or masked arrays, counts what masks let pass, and makes masks of NaNs.
 *
 * In a copy, elements lie side by side. A neutral element, which changes no result, stands in the place of each that
 * a mask hides. So a kernel that reads the copy needs no mask and no strides (src/gpu/filled.h).
 *
 * fill_in: makes the copy. A thread makes packs of 16 bytes where their elements lie side by side in the array, too;
 * else it makes one element after another.
 *
 * count_there: counts the elements of each row that the mask lets pass. A thread counts a short row, or four columns
 * side by side; a warp counts a long row. Where rows are few, they are cut into chunks, whose counts are added up in
 * memory; the chunks of columns are interleaved.
 *
 * show: makes a mask that hides the elements that are NaNs, and what the array's own mask hides (src/gpu/shown.h). A
 * thread makes the bytes for whole packs of 16 bytes of the array, where these lie side by side; else one byte after
 * another.
 */
#define BLOCKS_A_UNIT GPU_BLOCKS_A_UNIT
#define OP_OR
#define TYPE_U64 /* the headers need an element type; the plan has the real one */
#include "tuning.h"

#include "operators.h"

#include "half.h"

#include "plan.h"

#include "kernel.h"

#include "result.h"

#define RECORD_SPACE SHARED
#include "lower.h"

#include "parts.h"

#include "filled.h"

#include "spots.h"

BEGINS_EARLY

typedef union pack {
    uint4 all;
    u64 two[2];
    u32 word[4];
} pack;

/* Divides by numbers of more than 32 bits, which few arrays need. It is a call, to keep its
 * registers out of the loops. */
SELDOM u64 divided_wide(u64 a, u64 b) {
    return a / b;
}

/* Returns a / b, and the rest of that at *rest. */
PURE u64 divided(u64 a, u64 b, u64 *rest) {
    const u64 q = (a | b) >> 32 == 0 ? (u32)a / (u32)b : divided_wide(a, b);
    *rest = a - q * b;
    return q;
}

/* The place of a copy's element in the arrays and in the mask. */
typedef struct source {
    i64 x, y, mask;
} source;

PURE source source_of(const filled_plan *p, u64 j) {
    u64 inner = j, outer = 0;
    if (p->dims > 1) outer = divided(j, p->dim[0].length, &inner);
    source s = {p->x + (i64)inner * p->dim[0].x, p->y + (i64)inner * p->dim[0].y,
                p->mask + (i64)inner * p->dim[0].mask};
    UNROLL_NOT
    for (u32 d = 1; d < p->dims; d++) {
        u64 at = outer;
        if (d + 1 < p->dims) outer = divided(outer, p->dim[d].length, &at);
        s.x += (i64)at * p->dim[d].x;
        s.y += (i64)at * p->dim[d].y;
        s.mask += (i64)at * p->dim[d].mask;
    }
    return s;
}

/* Returns a word with a byte of 1 for each byte of w that is not 0. */
PURE u32 ones_of(u32 w) {
    w |= w >> 4;
    w |= w >> 2;
    w |= w >> 1;
    return w & 0x01010101u;
}

/* Returns how many bytes of a word are not 0. */
PURE u32 bytes_set(u32 w) {
    return ones_of(w) * 0x01010101u >> 24;
}

/* Returns a mask of the bits of a pack's word i whose elements the bytes of `m` show. */
PURE u32 passed(const pack *m, u32 width, u32 i) {
    if (width == 8) return ones_of(m->word[i]) * 255;
    if (width == 16) {
        const u32 two = m->word[i / 2] >> 16 * (i % 2) & 0xffff;
        return ((two & 255) != 0 ? 0xffffu : 0) | (two > 255 ? 0xffff0000u : 0);
    }
    return (m->word[0] >> 8 * (width == 32 ? i : i / 2) & 255) != 0 ? ~0u : 0;
}

/* Loads the mask's bytes for a pack of elements of `width` bits. */
INLINED pack load_mask(const GLOBAL u8 *from, u32 width) {
    pack m;
    if (width == 8)
        m.all = *(const GLOBAL uint4 *)from;
    else if (width == 16)
        m.two[0] = *(const GLOBAL u64 *)from;
    else
        m.word[0] = width == 32 ? *(const GLOBAL u32 *)from : *(const GLOBAL u16 *)from;
    return m;
}

/* The packs that a thread loads at once: of x, where there are `pairs` also of y, and the mask's bytes for their
 * elements. */
typedef struct masked_packs {
    pack x[FILLED_AT_ONCE], y[FILLED_AT_ONCE], mask[FILLED_AT_ONCE];
} masked_packs;

/* Loads packs number first, first + BLOCK, ... of `packs`. In the place of a pack behind the last one it loads the
 * first of them again, so that all loads start without a branch. */
INLINED void load_masked_packs(masked_packs *to, const GLOBAL u8 *x, const GLOBAL u8 *y,
                               const GLOBAL u8 *mask, const filled_plan *p, u32 width, u32 pairs,
                               u64 first, u64 packs) {
    UNROLL
    for (u32 k = 0; k < FILLED_AT_ONCE; k++) {
        const u64 q = first + k * BLOCK < packs ? first + k * BLOCK : first;
        const source s = source_of(p, q * (128 / width));
        to->x[k].all = *(const GLOBAL uint4 *)(x + s.x * (i64)(width / 8));
        if (pairs) to->y[k].all = *(const GLOBAL uint4 *)(y + s.y * (i64)(width / 8));
        if (p->masked) to->mask[k] = load_mask(mask + s.mask, width);
    }
}

/* Makes the copy's whole packs of 16 bytes, FILLED_AT_ONCE of them at a time. The elements of a pack lie side by side
 * in the array, too. Returns how many elements the packs have. */
INLINED u64 fill_packs(const GLOBAL u8 *x, const GLOBAL u8 *mask, GLOBAL u64 *to,
                       const filled_plan *p, u32 width) {
    const u32 each = 128 / width;
    const u64 packs = p->n / each, step = (u64)gridDim.x * BLOCK * FILLED_AT_ONCE;
    UNROLL_NOT
    for (u64 first = (u64)blockIdx.x * BLOCK * FILLED_AT_ONCE + threadIdx.x; first < packs;
         first += step) {
        masked_packs t;
        load_masked_packs(&t, x, x, mask, p, width, 0, first, packs);
        UNROLL
        for (u32 k = 0; k < FILLED_AT_ONCE; k++) {
            if (p->masked) UNROLL
            for (u32 i = 0; i < 4; i++) {
                const u32 keep = passed(&t.mask[k], width, i);
                t.x[k].word[i] =
                    (t.x[k].word[i] & keep) | ((u32)(p->neutral >> 32 * (i % 2)) & ~keep);
            }
            if (first + k * BLOCK < packs) ((GLOBAL uint4 *)to)[first + k * BLOCK] = t.x[k].all;
        }
    }
    return packs * each;
}

/* Makes the elements of the copy from number `begin` on, one by one, wherever they lie in the array. Neighbouring
 * threads make neighbouring elements. */
INLINED void fill_singly(const GLOBAL u8 *x, const GLOBAL u8 *mask, GLOBAL u64 *to,
                         const filled_plan *p, u32 width, u64 begin) {
    const u64 step = (u64)gridDim.x * BLOCK * FILLED_AT_ONCE;
    UNROLL_NOT
    for (u64 first = begin + (u64)blockIdx.x * BLOCK * FILLED_AT_ONCE + threadIdx.x; first < p->n;
         first += step) {
        u64 bits[FILLED_AT_ONCE];
        u8 is_there[FILLED_AT_ONCE];
        UNROLL
        for (u32 k = 0; k < FILLED_AT_ONCE; k++) {
            const u64 j = first + k * BLOCK < p->n ? first + k * BLOCK : first;
            const source s = source_of(p, j);
            bits[k] = load_bits(x, width, s.x);
            is_there[k] = p->masked ? mask[s.mask] : 1;
        }
        UNROLL
        for (u32 k = 0; k < FILLED_AT_ONCE; k++)
            if (first + k * BLOCK < p->n)
                store_bits((GLOBAL u8 *)to, width, (i64)(first + k * BLOCK),
                           is_there[k] ? bits[k] : p->neutral);
    }
}

INLINED void fill(const GLOBAL u8 *x, const GLOBAL u8 *mask, GLOBAL u64 *work, const filled_plan *p,
                  u32 width) {
    GLOBAL u64 *to = work + p->to;
    const size_t first = (size_t)(x + p->x * (i64)(width / 8)) | (size_t)to;
    const u32 is_packed = p->in_packs && first % 16 == 0 &&
                          (!p->masked || (size_t)(mask + p->mask) % (128 / width) == 0);
    u64 begin = 0;
    if (is_packed) begin = fill_packs(x, mask, to, p, width);
    fill_singly(x, mask, to, p, width, begin);
    /* The last pack is filled up with zeros, since packs are read as a whole. */
    if (blockIdx.x == 0 && threadIdx.x == 0)
        for (u64 j = p->n; j * width % 128 != 0; j++)
            store_bits((GLOBAL u8 *)to, width, (i64)j, 0);
}

KERNEL fill_in(const GLOBAL u8 *x, const GLOBAL u8 *mask, GLOBAL u64 *work,
               const filled_plan plan) {
    wait_for_earlier();
    if (plan.width == 32)
        fill(x, mask, work, &plan, 32);
    else if (plan.width == 64)
        fill(x, mask, work, &plan, 64);
    else if (plan.width == 16)
        fill(x, mask, work, &plan, 16);
    else
        fill(x, mask, work, &plan, 8);
}

/* Returns how many of the mask's bytes from..to-1 are not 0, among those that thread `own` of
 * `team` looks at. The bytes lie side by side. */
__device__ u64 count_bytes(const GLOBAL u8 *mask, u64 from, u64 to, u32 own, u32 team) {
    u64 count = 0;
    const u64 into = (size_t)(mask + from) % 4, head = into == 0 ? from : from + 4 - into;
    const u64 begin = head < to ? head : to, words = (to - begin) / 4, tail = begin + 4 * words;
    const GLOBAL u32 *fours = (const GLOBAL u32 *)(mask + begin);
    for (u64 i = from + own; i < begin; i += team)
        count += mask[i] != 0;
    UNROLL_NOT
    for (u64 i = own; i < words; i += FILLED_AT_ONCE * team) {
        u32 w[FILLED_AT_ONCE];
        UNROLL
        for (u32 k = 0; k < FILLED_AT_ONCE; k++)
            w[k] = i + k * team < words ? fours[i + k * team] : 0;
        UNROLL
        for (u32 k = 0; k < FILLED_AT_ONCE; k++)
            count += bytes_set(w[k]);
    }
    for (u64 i = tail + own; i < to; i += team)
        count += mask[i] != 0;
    return count;
}

/* Adds count[v] to the count of row `row` + v, for `columns` rows. */
__device__ void add_counts(GLOBAL u64 *work, const parts_plan *p, u64 row, u32 columns,
                           const u64 *count) {
    GLOBAL u32 *narrow = (GLOBAL u32 *)(work + p->counts);
    for (u32 v = 0; v < columns; v++)
        if (p->wide_counts)
            atomicAdd(&work[p->counts + row + v], count[v]);
        else
            atomicAdd(&narrow[row + v], (u32)count[v]);
}

/* Counts every `step`th element from `from` on in four rows that lie side by side in the mask; the first row begins
 * at `first`. `by_steps`: a row's elements are equally far apart in the mask, since only one axis is reduced. */
INLINED void count_columns(const GLOBAL u8 *mask, const parts_plan *p, spot first, u64 from,
                           u64 step, u32 by_steps, u64 *count) {
    const u64 end = p->rows.each;
    for (u32 v = 0; v < 4; v++)
        count[v] = 0;
    UNROLL_NOT
    while (from < end) {
        u32 ones = 0;
        UNROLL_NOT
        for (u32 turn = 0; turn < 255 / COUNTED_AT_ONCE && from < end;
             turn++) { /* a byte of `ones` counts to 255 */
            u32 w[COUNTED_AT_ONCE];
            UNROLL
            for (u32 k = 0; k < COUNTED_AT_ONCE; k++) {
                const u64 e = from + k * step < end ? from + k * step : from;
                const i64 at = by_steps ? first.mask + (i64)e * p->reduced[0].mask
                                        : element_spot(p, first, e).mask;
                w[k] = *(const GLOBAL u32 *)(mask + at);
            }
            UNROLL
            for (u32 k = 0; k < COUNTED_AT_ONCE; k++)
                ones += from + k * step < end ? ones_of(w[k]) : 0;
            from += COUNTED_AT_ONCE * step;
        }
        for (u32 v = 0; v < 4; v++)
            count[v] += ones >> 8 * v & 255;
    }
}

KERNEL count_there(const GLOBAL u8 *mask, GLOBAL u64 *work, const parts_plan plan,
                   const filled_plan filled) {
    wait_for_earlier();
    const u32 team = filled.team, own = threadIdx.x % team;
    const u32 is_aligned = (size_t)(mask + plan.mask) % 4 == 0;
    const u32 columns = filled.in_fours && is_aligned ? 4 : 1;
    const u64 rows = plan.rows.count / columns, teams = (u64)gridDim.x * BLOCK / team;
    const u64 tasks = rows * filled.chunks;
    UNROLL_NOT
    for (u64 task = ((u64)blockIdx.x * BLOCK + threadIdx.x) / team; task < tasks; task += teams) {
        u64 row, count[4] = {0, 0, 0, 0};
        const u64 chunk = divided(task, rows, &row), from = chunk * filled.chunk;
        const u64 to = from + filled.chunk < plan.rows.each ? from + filled.chunk : plan.rows.each;
        const spot first = row_spot(&plan, row * columns);
        u32 tells = 1;
        if (columns == 4 && plan.reduces == 1)
            count_columns(mask, &plan, first, chunk * team + own, filled.chunks * team, 1, count);
        else if (columns == 4)
            count_columns(mask, &plan, first, chunk * team + own, filled.chunks * team, 0, count);
        else if (plan.reduces == 1 && plan.reduced[0].mask == 1)
            count[0] = count_bytes(mask + first.mask, from, to, own, team);
        else
            for (u64 i = from + own; i < to; i += team)
                count[0] += mask[element_spot(&plan, first, i).mask] != 0;
#if WARP_AT_ONCE
        if (team > 1) {
            for (u32 v = 0; v < columns; v++)
                count[v] = warp_sum(count[v]);
            tells = own == 0;
        }
#endif
        if (tells) add_counts(work, &plan, row * columns, columns, count);
    }
}

/* ---- Masks of NaNs ---------------------------------------------------------------------------- */

/* Returns whether the bits are those of a float of `width` bits that is no NaN. */
PURE u32 is_number(u64 bits, u32 width, u64 infinity) {
    return (bits & (((u64)1 << (width - 1)) - 1)) <= infinity;
}

/* Returns the mask's bytes for a pack: 1 for each float that is no NaN. */
PURE u64 numbers_of(const pack *t, u32 width, u64 infinity) {
    u64 bytes = 0;
    UNROLL
    for (u32 i = 0; i < 128 / width; i++) {
        const u64 bits = width == 64   ? t->two[i % 2]
                         : width == 32 ? t->word[i % 4]
                                       : t->word[i / 2 % 4] >> 16 * (i % 2) & 0xffff;
        bytes |= (u64)is_number(bits, width, infinity) << 8 * i;
    }
    return bytes;
}

/* Makes the new mask's bytes for the elements of whole packs. Returns how many elements the packs have. */
INLINED u64 show_packs(const GLOBAL u8 *x, const GLOBAL u8 *y, const GLOBAL u8 *mask, GLOBAL u8 *to,
                       const filled_plan *p, u32 width) {
    const u32 each = 128 / width;
    const u64 packs = p->n / each, step = (u64)gridDim.x * BLOCK * FILLED_AT_ONCE;
    UNROLL_NOT
    for (u64 first = (u64)blockIdx.x * BLOCK * FILLED_AT_ONCE + threadIdx.x; first < packs;
         first += step) {
        masked_packs t;
        load_masked_packs(&t, x, y, mask, p, width, p->paired != 0, first, packs);
        UNROLL
        for (u32 k = 0; k < FILLED_AT_ONCE; k++) {
            u64 bytes = numbers_of(&t.x[k], width, p->infinity);
            if (p->paired) bytes &= numbers_of(&t.y[k], width, p->infinity);
            if (p->masked) {
                const u64 low =
                    ones_of(width == 64 ? t.mask[k].word[0] & 0xffff : t.mask[k].word[0]);
                bytes &= width == 16 ? low | (u64)ones_of(t.mask[k].word[1]) << 32 : low;
            }
            const u64 q = first + k * BLOCK;
            if (q < packs) store_bits(to, 8 * each, (i64)q, bytes);
        }
    }
    return packs * each;
}

/* Makes the new mask's bytes from number `begin` on, one by one. */
INLINED void show_singly(const GLOBAL u8 *x, const GLOBAL u8 *y, const GLOBAL u8 *mask,
                         GLOBAL u8 *to, const filled_plan *p, u32 width, u64 begin) {
    const u64 step = (u64)gridDim.x * BLOCK;
    UNROLL_NOT
    for (u64 j = begin + (u64)blockIdx.x * BLOCK + threadIdx.x; j < p->n; j += step) {
        const source s = source_of(p, j);
        u32 is_there = is_number(load_bits(x, width, s.x), width, p->infinity);
        if (p->paired) is_there &= is_number(load_bits(y, width, s.y), width, p->infinity);
        if (p->masked) is_there &= mask[s.mask] != 0;
        to[j] = (u8)is_there;
    }
}

INLINED void show_all(const GLOBAL u8 *x, const GLOBAL u8 *y, const GLOBAL u8 *mask,
                      GLOBAL u64 *work, const filled_plan *p, u32 width) {
    GLOBAL u8 *to = (GLOBAL u8 *)(work + p->to);
    size_t first = (size_t)(x + p->x * (i64)(width / 8)) | (size_t)to;
    if (p->paired) first |= (size_t)(y + p->y * (i64)(width / 8));
    const u32 is_packed = p->in_packs && first % 16 == 0 &&
                          (!p->masked || (size_t)(mask + p->mask) % (128 / width) == 0);
    u64 begin = 0;
    if (is_packed) begin = show_packs(x, y, mask, to, p, width);
    show_singly(x, y, mask, to, p, width, begin);
}

KERNEL show(const GLOBAL u8 *x, const GLOBAL u8 *y, const GLOBAL u8 *mask, GLOBAL u64 *work,
            const filled_plan plan) {
    wait_for_earlier();
    if (plan.width == 32)
        show_all(x, y, mask, work, &plan, 32);
    else if (plan.width == 64)
        show_all(x, y, mask, work, &plan, 64);
    else
        show_all(x, y, mask, work, &plan, 16);
}

/* Writes the values of a whole array as results (request.h): those of its only row, which lie in the workspace from word
 * `values` on, a word each. */
KERNEL tell(const GLOBAL u64 *work, GLOBAL u64 *results, u64 values, const lower_plan plan) {
    wait_for_earlier();
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    for (u32 v = 0; v < plan.values; v++) {
        const u32 op = plan.value[v] & 255, is_index = op == ARGMIN || op == ARGMAX;
        const u32 to = plan.value[v] >> 8;
        const u64 bits = load_bits((const GLOBAL u8 *)(work + values + v), width_of(to), 0);
        const u32 is_absent =
            is_index && (plan.values > 1 ? bits == ~(u64)0 : work[PARTS_ABSENT] != ~(u64)0);
        put_result(results + 2 * v, to, is_absent ? 0 : bits, is_absent ? RESULT_NONE : RESULT_OK);
    }
}
