/*
 * groups - exact sums by group, of elements whose ids come in any order (groups.h).
 *
 * Record. Each group has words in global memory, to which plain 64-bit additions add whatever there is, in any order: a
 * term is an integer of so many bits at a position, and word k holds what stands from position k * APART on. A term
 * goes to one word where APART is less than its length, else digit by digit to several. So every finite element has
 * its place. Behind these words stand what is special about the group's elements and, for means, how many they are. Word k
 * of all groups lies side by side.
 *
 * many: each element goes there.
 *
 * few: a block adds in shared memory what fits its window: DIGITS digits of 16 bits, of which the highest begins at the
 * greatest position among the elements that it sees first. A cell of 32 bits holds a digit of a group; there are several
 * copies where there is room, so that lanes meet less often. Cells are signed. After CARRY elements a copy hands on
 * carries: before that, no digit has had more than 2^14 additions of less than 2^16, which is 2^30. What the highest
 * digit then has above 2^30 goes to the record, where everything goes in the end. What does not fit goes there
 * directly.
 *
 * lower: from records to values. A sum that needs more than two doubles is rounded right all the same; a mean of one, an
 * integer that does not fit, and a sum of 0 with a -0 among its terms, is left to parts.cu, marked.
 */
#define BLOCKS_A_UNIT GPU_SUM_BLOCKS_A_UNIT
#include "tuning.h"

#include "operators.h"

#include "half.h"

#include "kernel.h"

#include "widen.h"

#include "result.h"

#define RECORD_SPACE SHARED
#include "lower.h"

#include "parts.h"

#include "pair.h"

#include "groups.h"

#define TILE  8u /* elements of a thread that are on their way at once */
#define CARRY 16384u

#if defined(TYPE_F64)
#define APART  32u
#define LENGTH 53u
#define LOWEST (-1074)
#elif defined(FLOATING)
#define APART  8u
#define LENGTH 24u
#define LOWEST (-149)
#elif defined(TYPE_I64) || defined(TYPE_U64)
#define APART 32u
#else
#define APART 64u
#endif
#if defined(FLOATING)
#define IS_FLOAT 1
#else
#define IS_FLOAT 0
#endif
#define RECORD GROUPS_RECORD(IS_FLOAT, 8 * sizeof(element))
#define DIGITS GROUPS_DIGITS(IS_FLOAT, 8 * sizeof(element))
#define BELOW                                                                                      \
    (16 * DIGITS - LENGTH -                                                                        \
     (DIGITS == 4))              /* positions of a window below its greatest number's; 63 bits do */
#define SPECIAL    RECORD        /* the word with PAIR_...s, */
#define COUNTED    (RECORD + 1u) /* and that with the count */
#define MINUS_ZERO 32u           /* beside them: some term is -0; PAIR_MIXED: some is +0 */

/* ---- Terms -------------------------------------------------------------------------------------------- */

/* magnitude * 2^position, in units of the least there is; or, where `special`, none. */
typedef struct term {
    u64 magnitude;
    u32 position, negative, special;
} term;

PURE term term_of(element e) {
    term t = {0, 0, 0, 0};
#if defined(TYPE_F64)
    const u64 bits = double_bits(e);
    const u32 field = (u32)(bits >> 52) & 2047u;
    t.negative = (u32)(bits >> 63);
    t.magnitude = (bits & (((u64)1 << 52) - 1)) | (u64)(field != 0) << 52;
    if (field == 2047u)
        t.special = e != e ? PAIR_NAN : t.negative ? PAIR_MINUS : PAIR_PLUS;
    else if (bits << 1 == 0)
        t.special = t.negative ? MINUS_ZERO : PAIR_MIXED;
    t.position = field ? field - 1 : 0;
#elif defined(FLOATING)
    const u32 bits = float_bits(widen(e)), field = bits >> 23 & 255u;
    t.negative = bits >> 31;
    t.magnitude = (bits & 0x7fffffu) | (u32)(field != 0) << 23;
    if (field == 255u)
        t.special = bits << 9 ? PAIR_NAN : t.negative ? PAIR_MINUS : PAIR_PLUS;
    else if (bits << 1 == 0)
        t.special = t.negative ? MINUS_ZERO : PAIR_MIXED;
    t.position = field ? field - 1 : 0;
#else
    const u64 x = (u64)e; /* a negative one gains 2^64 */
#if defined(SIGNED_TYPE)
    t.negative = (u32)(x >> 63);
#endif
    t.magnitude = t.negative ? 0 - x : x;
#endif
    return t;
}

/* ---- Records ------------------------------------------------------------------------------------------ */

/* Adds magnitude * 2^position, or takes it away. A magnitude has 40 bits, or 64 where APART is 32 or more. */
__device__ void add_record(GLOBAL u64 *work, const groups_plan *p, u32 group, u64 magnitude,
                           u32 position, u32 negative) {
    GLOBAL u64 *record = work + p->records + group;
#if APART == 32
    const u32 shift = position % 32;
    const u64 rest = magnitude >> (32 - shift);
    const u64 digit[3] = {(magnitude << shift) & 0xffffffffu, rest & 0xffffffffu, rest >> 32};
    UNROLL
    for (u32 k = 0; k < 3; k++)
        if (digit[k] != 0)
            atomicAdd(&record[(position / 32 + k) * p->count], negative ? 0 - digit[k] : digit[k]);
#else
    const u64 value = magnitude << position % APART;
    if (value != 0) atomicAdd(&record[position / APART * p->count], negative ? 0 - value : value);
#endif
}

/* Notes what is special about an element, unless that is known. */
__device__ void note_special(GLOBAL u64 *work, const groups_plan *p, u32 group, u32 special) {
    GLOBAL u64 *known = work + p->records + SPECIAL * p->count + group;
    if (!(read_word(known) & special)) atomicOr(known, (u64)special);
}

/* ---- Elements ----------------------------------------------------------------------------------------- */

#define NO_GROUP (~0u)

/* A thread's elements of a tile, every BLOCK-th, and their groups; NO_GROUP, or any number from the count on, where an
 * element belongs to none. */
typedef struct tile {
    element e[TILE];
    u32 group[TILE];
} tile;

/* An id of any type as the number of a group. */
PURE u32 group_of(i64 id) {
    return (u64)id >> 32 ? NO_GROUP : (u32)id;
}

/* Ids of less than 64 bits are extended by their sign, so that negative ones are beyond all counts. */
#define LOAD_IDS(type, GROUP)                                                                      \
    UNROLL                                                                                         \
    for (u32 k = 0; k < TILE; k++)                                                                 \
    t->group[k] = GROUP(((const GLOBAL type *)ids)[first + k * BLOCK])

__device__ u32 load_group(const GLOBAL u8 *ids, u32 type, u64 i) {
    switch (type) {
    case I8:
        return (u32)(i32)((const GLOBAL i8 *)ids)[i];
    case U8:
        return ids[i];
    case I16:
        return (u32)(i32)((const GLOBAL i16 *)ids)[i];
    case U16:
        return ((const GLOBAL u16 *)ids)[i];
    case I32:
    case U32:
        return ((const GLOBAL u32 *)ids)[i];
    default:
        return group_of(((const GLOBAL i64 *)ids)[i]);
    }
}

/* Loads a tile of which the thread's first element is number `first`. In the work it says which id, if one is wrong. */
INLINED void load_tile(const GLOBAL element *x, const GLOBAL u8 *ids, const GLOBAL u8 *mask,
                       GLOBAL u64 *work, const groups_plan *p, u64 first, tile *t) {
    const GLOBAL element *from = x + (p->x + (i64)first);
    u32 outside = 0;
    if (first + (TILE - 1) * BLOCK < p->n && !p->masked) {
        UNROLL
        for (u32 k = 0; k < TILE; k++)
            t->e[k] = from[k * BLOCK];
        if (p->ids == I32 || p->ids == U32)
            LOAD_IDS(u32, (u32));
        else if (p->ids == I64 || p->ids == U64)
            LOAD_IDS(i64, group_of);
        else
            UNROLL
        for (u32 k = 0; k < TILE; k++)
            t->group[k] = load_group(ids, p->ids, first + k * BLOCK);
    } else
        UNROLL
    for (u32 k = 0; k < TILE; k++) {
        const u64 i = first + k * BLOCK;
        t->e[k] = 0;
        t->group[k] = NO_GROUP;
        if (i >= p->n || (p->masked && !mask[p->mask + (i64)i])) continue;
        t->e[k] = from[k * BLOCK];
        t->group[k] = load_group(ids, p->ids, i);
        if (t->group[k] >= p->count && !p->skip_outside) note_least(&work[PARTS_BAD], i);
    }
    if (p->skip_outside || p->masked) return;
    UNROLL
    for (u32 k = 0; k < TILE; k++)
        outside |= t->group[k] >= (u32)p->count;
    if (outside) UNROLL
    for (u32 k = 0; k < TILE; k++)
        if (t->group[k] >= (u32)p->count && first + k * BLOCK < p->n)
            note_least(&work[PARTS_BAD], first + k * BLOCK);
}

/* ---- Kernels ------------------------------------------------------------------------------------------ */

/* Adds an element to its group's record; and counts it, unless somebody else does. */
__device__ void add_element(GLOBAL u64 *work, const groups_plan *p, u32 group, element e,
                            u32 counted) {
    const term t = term_of(e);
    if (t.special)
        note_special(work, p, group, t.special);
    else
        add_record(work, p, group, t.magnitude, t.position, t.negative);
    if (counted) atomicAdd(work + p->records + COUNTED * p->count + group, (u64)1);
}

KERNEL many(const GLOBAL element *x, const GLOBAL u8 *ids, const GLOBAL u8 *mask, GLOBAL u64 *work,
            const groups_plan plan) {
    for (u64 first = (u64)blockIdx.x * (BLOCK * TILE) + threadIdx.x; first < plan.n;
         first += (u64)gridDim.x * (BLOCK * TILE)) {
        tile t;
        load_tile(x, ids, mask, work, &plan, first, &t);
        UNROLL
        for (u32 k = 0; k < TILE; k++)
            if (t.group[k] < (u32)plan.count)
                add_element(work, &plan, t.group[k], t.e[k], plan.counted);
    }
}

/* An element as an integer in the window, whose lowest bit is at that position. Where it does not fit, it is 0 and
 * *outside not: a zero, a subnormal number, an infinity and a NaN never do. */
PURE u64 in_window(element e, u32 window, u32 *outside) {
#if defined(TYPE_F64)
    const u64 bits = double_bits(e);
    const u32 shift = ((u32)(bits >> 52) & 2047u) - 1 - window;
    const u64 value = ((bits & (((u64)1 << 52) - 1)) | (u64)1 << 52) << (shift & 31);
    *outside = shift > BELOW;
    return shift > BELOW ? 0 : bits >> 63 ? 0 - value : value;
#elif defined(FLOATING)
    const u32 bits = float_bits(widen(e)), shift = (bits >> 23 & 255u) - 1 - window;
    const u64 value = (u64)((bits & 0x7fffffu) | 0x800000u) << (shift & 31);
    *outside = shift > BELOW;
    return shift > BELOW ? 0 : bits >> 31 ? 0 - value : value;
#else
    *outside = 0;
    return (u64)e;                           /* a negative one gains 2^64 */
#endif
}

/* Digit d of such an integer: from 0 up to 2^16 - 1, and the highest as its sign is. */
PURE u32 digit_of(u64 value, u32 d) {
#if defined(TYPE_U64) || defined(TYPE_U32)
    return (u32)(value >> 16 * d) & 0xffffu;
#else
    return d + 1 < DIGITS ? (u32)(value >> 16 * d) & 0xffffu : (u32)((i64)value >> 16 * d);
#endif
}

/* Each copy of a group's cells hands on its carries. */
__device__ void carry_cells(SHARED u32 *cell, GLOBAL u64 *work, const groups_plan *p, u32 window) {
    const u32 cells = (u32)p->count * p->copies;
    for (u32 i = threadIdx.x; i < cells; i += BLOCK) {
        i32 carry = 0;
        UNROLL
        for (u32 d = 0; d + 1 < DIGITS; d++) {
            const i32 own = (i32)cell[d * cells + i] + carry;
            carry = own >> 16; /* floor */
            cell[d * cells + i] = (u32)own & 0xffffu;
        }
        i32 top = (i32)cell[(DIGITS - 1) * cells + i] + carry;
        if (top >= 1 << 29 || top <= -(1 << 29)) {
            add_record(work, p, i / p->copies, (u64)(top < 0 ? -(i64)top : (i64)top),
                       window + 16 * (DIGITS - 1), top < 0);
            top = 0;
        }
        cell[(DIGITS - 1) * cells + i] = (u32)top;
    }
}

/* All that the cells hold goes to the records. */
__device__ void deliver_cells(const SHARED u32 *cell, GLOBAL u64 *work, const groups_plan *p,
                              u32 window) {
    const u32 count = (u32)p->count, cells = count * p->copies;
    for (u32 i = threadIdx.x; i < (DIGITS + p->counted) * count; i += BLOCK) {
        const u32 digit = i / count, group = i % count;
        i64 total = 0;
        for (u32 c = 0; c < p->copies; c++)
            total += (i32)cell[digit * cells + group * p->copies + c];
        if (digit == DIGITS)
            atomicAdd(work + p->records + COUNTED * p->count + group, (u64)total);
        else
            add_record(work, p, group, (u64)(total < 0 ? -total : total), window + 16 * digit,
                       total < 0);
    }
}

/* Where the block's window begins: so that the greatest number of its first tile is just below its end. */
__device__ u32 choose_window(const tile *t, u64 count, SHARED u32 *cell) {
#if defined(FLOATING)
    u32 most = 0;
    UNROLL
    for (u32 k = 0; k < TILE; k++) {
        const term own = term_of(t->e[k]);
        if (t->group[k] < (u32)count && !own.special && own.position > most) most = own.position;
    }
    cell[threadIdx.x] = most;
    __syncthreads();
    for (u32 distance = BLOCK / 2; distance > 0; distance /= 2) {
        const u32 other = cell[(threadIdx.x + distance) % BLOCK];
        most = other > most ? other : most;
        __syncthreads();
        cell[threadIdx.x] = most;
        __syncthreads();
    }
    most = cell[0];
    __syncthreads();
    return most > BELOW ? most - BELOW : 0;
#else
    return 0;
#endif
}

KERNEL few(const GLOBAL element *x, const GLOBAL u8 *ids, const GLOBAL u8 *mask, GLOBAL u64 *work,
           const groups_plan plan) {
    __shared__ u32 cell[GROUPS_CELLS];
    const u32 count = (u32)plan.count, cells = count * plan.copies;
    SHARED u32 *own = cell + threadIdx.x % plan.copies;
    const u64 step = (u64)gridDim.x * (BLOCK * TILE);
    u64 first = (u64)blockIdx.x * (BLOCK * TILE) + threadIdx.x;
    u32 added = 0;
    tile next; /* on its way while another is added */
    load_tile(x, ids, mask, work, &plan, first, &next);
    const u32 window = choose_window(&next, plan.count, cell);
    for (u32 i = threadIdx.x; i < GROUPS_CELLS; i += BLOCK)
        cell[i] = 0;
    __syncthreads();
    for (u64 base = first - threadIdx.x; base < plan.n; base += step) {
        const tile t = next;
        u32 any = 0;
        first += step;
        if (base + step < plan.n) load_tile(x, ids, mask, work, &plan, first, &next);
        UNROLL
        for (u32 k = 0; k < TILE; k++) {
            u32 outside;
            const u64 value = in_window(t.e[k], window, &outside);
            SHARED u32 *at = own + t.group[k] * plan.copies;
            any |= outside;
            if (t.group[k] >= count) continue;
            UNROLL
            for (u32 d = 0; d < DIGITS; d++) {
                const u32 digit = digit_of(value, d);
                if (digit) atomicAdd(at + d * cells, digit);
            }
            if (plan.counted) atomicAdd(at + DIGITS * cells, 1u);
        }
        if (any) UNROLL
        for (u32 k = 0; k < TILE; k++) {
            u32 outside;
            in_window(t.e[k], window, &outside);
            if (outside && t.group[k] < count) add_element(work, &plan, t.group[k], t.e[k], 0);
        }
        added += BLOCK * TILE;
        if (added + BLOCK * TILE > CARRY * plan.copies && base + step < plan.n) {
            __syncthreads();
            carry_cells(cell, work, &plan, window);
            __syncthreads();
            added = 0;
        }
    }
    __syncthreads();
    deliver_cells(cell, work, &plan, window);
}

/* ---- From records to values --------------------------------------------------------------------------- */

#if defined(FLOATING)

/* Digits of 32 bits of a number of either sign; two more for what is above the record's words. */
#define NUMBER_WORDS (RECORD * APART / 32 + 3)

/* x * 2^k, which is a double, or too large. */
PURE double scaled(u64 x, i32 k) {
    const i32 first = k / 2;
    return (double)x * double_from((u64)(first + 1023) << 52) *
           double_from((u64)(k - first + 1023) << 52);
}

/* A record as two doubles, of which the second is rounded to odd, and the return value then not 0. */
__device__ u32 load_pair(const GLOBAL u64 *record, u64 count, pair *out) {
    u32 digit[NUMBER_WORDS];
    i64 carry = 0;
    for (u32 i = 0; i < RECORD * APART / 32; i++) {
        u32 own = 0;
        UNROLL
        for (u32 k = 0; k < 32 / APART; k++) {
            const i64 sum = carry + (i64)record[(i * (32 / APART) + k) * count];
            own |= (u32)(sum & (i64)(~0u >> (32 - APART))) << k * APART % 32;
            carry = sum >> APART; /* floor */
        }
        digit[i] = own;
    }
    for (u32 i = RECORD * APART / 32; i < NUMBER_WORDS; i++) {
        digit[i] = (u32)carry;
        carry >>= 32;
    }
    const u32 negative = digit[NUMBER_WORDS - 1] >> 31;
    i32 top = -1;
    u64 one = negative;
    for (u32 i = 0; i < NUMBER_WORDS; i++) {
        if (negative) {
            one += (u64)(~digit[i]);
            digit[i] = (u32)one;
            one >>= 32;
        }
        if (digit[i]) top = (i32)i;
    }
    out->s = out->e = 0;
    if (top < 0) return 0;
    const u64 d0 = digit[top], d1 = top > 0 ? digit[top - 1] : 0;
    const u64 d2 = top > 1 ? digit[top - 2] : 0, d3 = top > 2 ? digit[top - 3] : 0;
    const u32 zeros = leading_zeros((u32)d0);
    u64 high = d0 << 32 | d1, low = d2 << 32 | d3;
    if (zeros) {
        high = high << zeros | low >> (64 - zeros);
        low <<= zeros;
    }
    u32 rest = (low & (((u64)1 << 22) - 1)) != 0;
    for (i32 i = 0; i < top - 3; i++)
        rest |= digit[i] != 0;
    const i32 unit = 32 * (top - 3) - (i32)zeros + LOWEST; /* of low's last bit */
    const double s = scaled(high >> 11, unit + 75);
    const double e = scaled((high & 2047) << 42 | low >> 22 | rest, unit + 22);
    out->s = negative ? -s : s;
    out->e = negative ? 0 - e : e;
    return rest;
}

#endif

__device__ void store_bits(GLOBAL u8 *to, u32 width, i64 i, u64 bits) {
    if (width == 64)
        ((GLOBAL u64 *)to)[i] = bits;
    else if (width == 32)
        ((GLOBAL u32 *)to)[i] = (u32)bits;
    else
        ((GLOBAL u16 *)to)[i] = (u16)bits;
}

KERNEL lower(GLOBAL u64 *work, GLOBAL u8 *out, const groups_plan plan) {
    const u64 step = (u64)gridDim.x * BLOCK;
    if (read_word(&work[PARTS_BAD]) != ~(u64)0) return;
    for (u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x; i < plan.count; i += step) {
        const GLOBAL u64 *record = work + plan.records + i;
        u32 left = 0;
#if defined(FLOATING)
        pair sum;
        const u32 special = (u32)record[SPECIAL * plan.count];
        const u32 rest = load_pair(record, plan.count, &sum);
        const u64 n = plan.counted ? record[COUNTED * plan.count] : 1;
        sum.seen = (special & (PAIR_NAN | PAIR_PLUS | PAIR_MINUS)) | PAIR_MIXED;
        if (sum.s == 0 && (special & (MINUS_ZERO | PAIR_MIXED)) == MINUS_ZERO) left = 1;
#else
        const u64 low = record[0];
#endif
        for (u32 v = 0; v < plan.values; v++) {
            const u32 mean = (plan.value[v] & 255) == MEAN, to = plan.value[v] >> 8;
            u32 lost = 0;
#if defined(FLOATING)
            const u64 bits = pair_value(&sum, n, mean, to, &lost);
            lost |= mean && rest && !(sum.seen & (PAIR_NAN | PAIR_PLUS | PAIR_MINUS));
#elif APART == 32
            const u64 above = record[plan.count], bits = low + (above << 32);
            const i64 high =
                ((i64)low >> 63) + ((i64)above >> 32) + (bits < low) + (i64)record[2 * plan.count];
            lost = !mean && (is_signed(to) ? high != (i64)bits >> 63 : high != 0);
#else
            const u64 bits = mean ? 0 : low; /* there are no means of integers here */
#endif
            left |= lost;
            store_bits(out + plan.out[v], width_of(to), plan.out_first + (i64)i, bits);
        }
        if (left) leave_row(work, plan.left, i);
    }
}
