/*
 * groups - exact sums by group, of elements whose ids come in any order (groups.h).
 *
 * Record. A group's record is words in global memory, to which plain 64-bit additions add all terms, in any order. A
 * term is an integer of LENGTH bits (of integer types, of an element's bits) times 2^position. Word k counts
 * multiples of 2^(k * APART). Where APART is 32 (types of 64 bits) a term goes digit by digit to three words; else it
 * goes to one word as a whole. So every finite element has its place. Behind these words stand a word that notes
 * infinities, NaNs and -0, and, for means, the number of the group's elements. Word k of all groups lies side by
 * side.
 *
 * many: each element goes to its group's record.
 *
 * few: a block adds in shared memory. An integer has DIGITS digits of 16 bits. A cell of 32 bits holds a digit of a
 * group. Where there is room a group has several copies of its cells, so that lanes seldom add to the same one. Cells
 * are signed. A copy settles its carries after CARRY elements at the latest. Then its digits are below 2^16, or for
 * the highest one HANDED. Until the next time each gets at most CARRY additions of less than 2^16: CARRY * 2^16 +
 * HANDED < 2^31. When carries are settled, a highest digit that has reached HANDED goes to the record. In the end all
 * digits do.
 *
 * Floats have as many digits as there is room for. These digits are a window of positions, chosen for the block's
 * first tile. A float has ELEMENT_DIGITS digits, from the one on in which its lowest bit lies. A float that does not
 * fit the window goes to the record directly. All floats of up to 32 bits fit 18 digits, however far apart their
 * exponents are.
 *
 * slices: where there is no room for digits of 16 bits, a group has WIDE cells, which hold 32 bits each. An atomic
 * addition returns the cell's old value, and so shows whether the next higher cell gets a carry. Highest cells have
 * room for WIDE_CARRY additions. If there is no room for these cells either, the groups are shared out over a few
 * blocks, each of which reads all elements and adds those of its own groups.
 *
 * lower_groups: turns records into values. A value that two doubles do not determine is rounded from the
 * sum's digits, also correctly. An integer that does not fit its type is noted as an error.
 *
 * zeros: a sum of 0 with a -0 among its terms is -0 if all terms are. lower_groups writes -0 for a sum of 0 with a -0
 * among its terms, and marks the group; zeros looks whether a marked group has another term, and makes the value +0.
 * Where no group is marked it does nothing.
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

#include "ids.h"

#define CARRY      32000u
#define WIDE_CARRY 500000u
#define HANDED     (1 << 24) /* highest digits of this magnitude go to the record */

#if defined(TYPE_F64)
#define APART         32u
#define LENGTH        53u
#define LOWEST        (-1074)
#define POSITION_MOST 2045u
#elif defined(FLOATING)
#define APART         8u
#define LENGTH        24u
#define LOWEST        (-149)
#define POSITION_MOST 253u
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
#define DIGITS GROUPS_DIGITS(8 * sizeof(element))
/* How far above a window's position a float may begin, so that its LENGTH bits end within the window's digits. */
#define BELOW(digits)  (16 * (digits)-LENGTH)
#define ELEMENT_DIGITS (sizeof(element) == 8 ? 5u : 3u) /* digits of a float */
/* An element adds less than 2^12 to the highest cell of 32 bits, as WIDE_BELOW leaves 20 bits free, and a carry adds
 * 1: WIDE_CARRY * 2^12 + HANDED < 2^31. */
#define WIDE       GROUPS_WIDE(8 * sizeof(element))
#define WIDE_BELOW (32 * WIDE - LENGTH - 20)
#define SPECIAL    RECORD        /* the word with PAIR_... bits */
#define COUNTED    (RECORD + 1u) /* the word with the number of elements */
#define MINUS_ZERO 32u /* in SPECIAL, too: some term is -0; PAIR_MIXED: `zeros` found another */

/* ---- Terms -------------------------------------------------------------------------------------------- */

/* An element as magnitude * 2^position, in units of 2^LOWEST (integers: of 1). If `special` is not 0 there is nothing
 * to add. */
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
        t.special = t.negative ? MINUS_ZERO : 0;
    t.position = field ? field - 1 : 0;
#elif defined(FLOATING)
    const u32 bits = float_bits(widen(e)), field = bits >> 23 & 255u;
    t.negative = bits >> 31;
    t.magnitude = (bits & 0x7fffffu) | (u32)(field != 0) << 23;
    if (field == 255u)
        t.special = bits << 9 ? PAIR_NAN : t.negative ? PAIR_MINUS : PAIR_PLUS;
    else if (bits << 1 == 0)
        t.special = t.negative ? MINUS_ZERO : 0;
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

/* Adds magnitude * 2^position to a group's record, or takes it away where `negative`. A magnitude has at most 40 bits,
 * or 64 where APART is 32 or more. */
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

/* Notes an element's special value in a group's record, unless the record has it. */
__device__ void note_special(GLOBAL u64 *work, const groups_plan *p, u32 group, u32 special) {
    GLOBAL u64 *known = work + p->records + SPECIAL * p->count + group;
    if (!(read_word(known) & special)) atomicOr(known, (u64)special);
}

/* ---- Kernels ------------------------------------------------------------------------------------------ */

/* Adds an element to its group's record, and counts it there where `counted`. */
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

/* A block's cells: those of groups [first, first + count), each with `copies` copies of `digits` digits. Copy c of
 * group first + g is number i = g * copies + c, and its digit d is in cell i * step + d * plane. Digits stand side by
 * side if they are a float's digits of 16 bits, or three of 32 bits; copies are then an odd number of cells apart,
 * and so begin in different banks. Otherwise each digit has a plane of its own. Counts stand behind all digits. */
typedef struct cells {
    u32 first, count, copies, digits, step, plane;
    u32 window,
        below; /* the position where the lowest digit begins; and how far above it numbers may begin */
    u32 bits; /* of a digit: 16, or 32 */
} cells;

PURE cells cells_of(const groups_plan *p, u32 slice, u32 wide) {
    cells c;
    c.first = slice * p->each;
    c.count = (u32)p->count - c.first < p->each ? (u32)p->count - c.first : p->each;
    c.copies = p->copies;
    c.digits = wide ? WIDE : p->digits;
    c.step = (wide ? WIDE == 3 : IS_FLOAT) ? c.digits | 1 : 1;
    c.plane = c.step > 1 ? 1 : c.count * c.copies;
    c.bits = wide ? 32 : 16;
    c.window = 0;
#if IS_FLOAT
    c.below = wide ? WIDE_BELOW : BELOW(c.digits);
#else
    c.below = 0;
#endif
    return c;
}

/* Returns the index of the first count in the block's cells. */
PURE u32 counts_of(const cells *c) {
    return c->count * c->copies * (c->step > 1 ? c->step : c->digits);
}

#if !IS_FLOAT
/* Returns digit d of an integer, in [0, 2^16); the highest digit of a signed one has the sign. */
PURE u32 digit_of(u64 value, u32 d) {
#if defined(TYPE_U64) || defined(TYPE_U32)
    return (u32)(value >> 16 * d) & 0xffffu;
#else
    return d + 1 < DIGITS ? (u32)(value >> 16 * d) & 0xffffu : (u32)((i64)value >> 16 * d);
#endif
}
#endif

/* Returns an element as an integer in units of its lowest bit, which lies *shift above the window's
 * lowest; a negative one gains 2^64. Returns 0 if the element is not `wanted`, or does not fit the
 * window. The latter sets *outside: +0 always fits; -0, subnormal numbers, infinities and NaNs
 * never do. */
INLINED u64 integer_of(element e, const cells *c, u32 wanted, u32 *shift, u32 *outside) {
#if defined(TYPE_F64)
    const u64 bits = double_bits(e), sign = 0 - (bits >> 63);
    const u64 magnitude = (bits & (((u64)1 << 52) - 1)) | (u64)1 << 52;
    *shift = ((u32)(bits >> 52) & 2047u) - 1 - c->window;
    *outside = *shift > c->below && bits != 0;
    return *shift > c->below || !wanted ? 0 : (magnitude ^ sign) - sign;
#elif IS_FLOAT
    const u32 bits = float_bits(widen(e)), sign = 0 - (bits >> 31);
    const u32 magnitude = (bits & 0x7fffffu) | 0x800000u;
    *shift = (bits >> 23 & 255u) - 1 - c->window;
    *outside = *shift > c->below && bits != 0;
    return (u64)(i64)(i32)(*shift > c->below || !wanted ? 0 : (magnitude ^ sign) - sign);
#else
    *shift = *outside = 0;
    return wanted ? (u64)e : 0;
#endif
}

/* Adds an element, if it is `wanted`, to a copy of a group's cells. Returns not 0 where it does not fit the window. */
INLINED u32 add_cells(SHARED u32 *at, element e, const cells *c, u32 wanted) {
    u32 shift, outside;
    const u64 value = integer_of(e, c, wanted, &shift, &outside);
#if IS_FLOAT
    const u32 most = c->digits - ELEMENT_DIGITS, first = shift / 16 < most ? shift / 16 : most;
    const u32 up = (shift - 16 * first) & 31;
    const u64 low = value << up;
    at += first;
    UNROLL
    for (u32 d = 0; d < ELEMENT_DIGITS; d++)
        atomicAdd(at + d, d + 1 < ELEMENT_DIGITS ? (u32)(low >> 16 * d) & 0xffffu
                          : ELEMENT_DIGITS == 5  ? (u32)((i64)value >> 1 >> (63 - up))
                                                 : (u32)((i64)low >> 32));
#else
    /* An element that is not wanted has digits of 0, the lowest of which is not added. To test the others, too, would
     * cost more than to add 0. */
    if (digit_of(value, 0)) atomicAdd(at, digit_of(value, 0));
    UNROLL
    for (u32 d = 1; d < DIGITS; d++)
        atomicAdd(at + d * c->plane, digit_of(value, d));
#endif
    return outside;
}

#define SOME 4u /* additions of a thread under way at once */

/* Adds SOME elements to cells of 32 bits: those of group[k] < c->count. Returns not 0 where one does not fit the
 * window. */
INLINED u32 add_wide(SHARED u32 *cell, const element *e, const u32 *group, const cells *c) {
    u32 digit[SOME][WIDE], carry[SOME] = {0}, any = 0;
    UNROLL
    for (u32 k = 0; k < SOME; k++) {
        u32 shift, outside;
        const u64 value = integer_of(e[k], c, group[k] < c->count, &shift, &outside);
        const u64 low = value << (shift & 31);
        digit[k][0] = (u32)low;
        digit[k][1] = (u32)(low >> 32);
        any |= outside && group[k] < c->count;
#if defined(TYPE_U64)
        digit[k][WIDE - 1] = 0;
#elif IS_FLOAT || defined(SIGNED_TYPE)
        if (WIDE == 3) digit[k][WIDE - 1] = (u32)((i64)value >> 1 >> (63 - (shift & 31)));
#endif
    }
    UNROLL
    for (u32 d = 0; d < WIDE; d++)
        UNROLL
    for (u32 k = 0; k < SOME; k++) {
        const u32 own = digit[k][d] + carry[k];
        u32 sum = own;
        if (own != 0 && group[k] < c->count)
            sum += atomicAdd(cell + group[k] * (c->copies * c->step) + d * c->plane, own);
        carry[k] = own < carry[k] || sum < own;
    }
    return any;
}

/* Returns whether an element does not fit the window. */
PURE u32 is_outside(element e, const cells *c) {
    u32 shift, outside;
    (void)integer_of(e, c, 1, &shift, &outside);
    return outside;
}

/* Passes the carries in each copy of a group's cells from digit to digit. A highest digit that has
 * reached HANDED goes to the record. All threads of the block call this, between barriers. */
__device__ void carry_cells(SHARED u32 *cell, GLOBAL u64 *work, const groups_plan *p,
                            const cells *c) {
    for (u32 i = threadIdx.x; i < c->count * c->copies; i += BLOCK) {
        SHARED u32 *at = cell + i * c->step;
        i32 carry = 0;
        if (c->bits == 32) at += (WIDE - 1) * c->plane;
        for (u32 d = 0; d + 1 < c->digits && c->bits == 16; d++) {
            const i32 own = (i32)*at + carry;
            carry = own >> 16; /* floor */
            *at = (u32)own & 0xffffu;
            at += c->plane;
        }
        i32 top = (i32)*at + carry;
        if (top >= HANDED || top <= -HANDED) {
            add_record(work, p, c->first + i / c->copies, (u64)(top < 0 ? -(i64)top : (i64)top),
                       c->window + c->bits * (c->digits - 1), top < 0);
            top = 0;
        }
        *at = (u32)top;
    }
}

/* Adds all that the cells hold to the records; by all threads of the block, after a barrier. */
__device__ void deliver_cells(const SHARED u32 *cell, GLOBAL u64 *work, const groups_plan *p,
                              const cells *c) {
    for (u32 i = threadIdx.x; i < (c->digits + p->counted) * c->count; i += BLOCK) {
        const u32 digit = i / c->count, group = i % c->count;
        i64 total = 0;
        const u32 step = digit == c->digits ? 1 : c->step;
        const u32 plain = c->bits == 32 && digit + 1 < c->digits; /* no sign */
        const SHARED u32 *at = cell + (digit == c->digits ? counts_of(c) : digit * c->plane) +
                               group * c->copies * step;
        for (u32 k = 0; k < c->copies; k++)
            total += plain ? (i64)at[k * step] : (i64)(i32)at[k * step];
        if (digit == c->digits)
            atomicAdd(work + p->records + COUNTED * p->count + c->first + group, (u64)total);
        else if (total != 0)
            add_record(work, p, c->first + group, (u64)(total < 0 ? -total : total),
                       c->window + c->bits * digit, total < 0);
    }
}

/* Returns the position at which the block's window begins. The greatest number of the block's first tile then begins
 * c->below / 4 under the highest position that fits, so that larger numbers fit, too. All threads of the block call
 * this, which overwrites the cells. */
__device__ u32 choose_window(const tile *t, const cells *c, SHARED u32 *cell) {
#if defined(FLOATING)
    u32 most = 0;
    UNROLL
    for (u32 k = 0; k < TILE; k++) {
        const term own = term_of(t->e[k]);
        if (t->group[k] - c->first < c->count && !own.special && own.position > most)
            most = own.position;
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
    most += c->below / 4;
    if (most > POSITION_MOST) most = POSITION_MOST;
    return most > c->below ? most - c->below : 0;
#else
    return 0;
#endif
}

/* Adds the elements of the thread's tile from element `first` on that do not fit the window to the
 * records. It reads them again, one by one, so that the calling loop keeps its registers. */
INLINED void add_outside(const GLOBAL element *x, const GLOBAL u8 *ids, const GLOBAL u8 *mask,
                         GLOBAL u64 *work, const groups_plan *p, const cells *c, u64 first) {
    UNROLL_NOT
    for (u32 k = 0; k < TILE; k++) {
        const u64 i = first + k * BLOCK;
        if (i >= p->n || (p->masked && !mask[p->mask + (i64)i])) continue;
        const element e = x[p->x + (i64)i];
        const u32 group = load_group(ids, p->ids, i);
        if (group - c->first < c->count && is_outside(e, c)) add_element(work, p, group, e, 0);
    }
}

/* Adds the block's tiles from element `first` on, `step` apart; `next` is the first. */
INLINED void add_tiles(const GLOBAL element *x, const GLOBAL u8 *ids, const GLOBAL u8 *mask,
                       GLOBAL u64 *work, const groups_plan *p, const cells *c, u64 first, u64 step,
                       tile next, SHARED u32 *cell, u32 wide) {
    const u32 copy = threadIdx.x % c->copies;
    /* A block of fewer threads than copies uses as many copies as it has threads. */
    const u64 most = (wide ? WIDE_CARRY : CARRY) * (c->copies < BLOCK ? c->copies : BLOCK);
    u32 added = 0;
    for (u64 base = first - threadIdx.x; base < p->n; base += step) {
        const tile t = next; /* the next one is on its way while this one is added */
        u32 any = 0;
        first += step;
        if (base + step < p->n) load_tile(x, ids, mask, work, p, first, &next);
        UNROLL
        for (u32 k = 0; k < TILE; k += wide ? SOME : 1) {
            u32 group[SOME];
            UNROLL
            for (u32 i = 0; i < SOME; i++)
                group[i] = t.group[(k + i) % TILE] - c->first;
            const u32 wanted = group[0] < c->count;
            any |= wide ? add_wide(cell + copy * c->step, t.e + k, group, c)
                        : add_cells(cell + ((wanted ? group[0] : 0) * c->copies + copy) * c->step,
                                    t.e[k], c, wanted);
        }
        if (p->counted) UNROLL
        for (u32 k = 0; k < TILE; k++)
            if (t.group[k] - c->first < c->count)
                atomicAdd(cell + counts_of(c) + (t.group[k] - c->first) * c->copies + copy, 1u);
        if (any) add_outside(x, ids, mask, work, p, c, base + threadIdx.x);
        added += BLOCK * TILE;
        if (added + BLOCK * TILE > most && base + step < p->n) {
            __syncthreads();
            carry_cells(cell, work, p, c);
            __syncthreads();
            added = 0;
        }
    }
}

/* Folds the block's slice of the groups in its share of the tiles: blocks whose numbers are equal modulo p->slices have
 * the same slice. `wide`: cells are of 32 bits. */
INLINED void fold_share(const GLOBAL element *x, const GLOBAL u8 *ids, const GLOBAL u8 *mask,
                        GLOBAL u64 *work, const groups_plan *p, SHARED u32 *cell, u32 wide) {
    const u64 step = (u64)(gridDim.x / p->slices) * (BLOCK * TILE);
    const u64 first = (u64)(blockIdx.x / p->slices) * (BLOCK * TILE) + threadIdx.x;
    cells c = cells_of(p, blockIdx.x % p->slices, wide);
    tile next;
    load_tile(x, ids, mask, work, p, first, &next);
    c.window = choose_window(&next, &c, cell);
#if IS_FLOAT
    /* Infinities and NaNs must never fit. */
    if (c.below > POSITION_MOST - c.window) c.below = POSITION_MOST - c.window;
#endif
    for (u32 i = threadIdx.x; i < GROUPS_CELLS; i += BLOCK)
        cell[i] = 0;
    __syncthreads();
    add_tiles(x, ids, mask, work, p, &c, first, step, next, cell, wide);
    __syncthreads();
    deliver_cells(cell, work, p, &c);
}

KERNEL few(const GLOBAL element *x, const GLOBAL u8 *ids, const GLOBAL u8 *mask, GLOBAL u64 *work,
           const groups_plan plan) {
    __shared__ u32 cell[GROUPS_CELLS];
    fold_share(x, ids, mask, work, &plan, cell, 0);
}

KERNEL slices(const GLOBAL element *x, const GLOBAL u8 *ids, const GLOBAL u8 *mask,
              GLOBAL u64 *work, const groups_plan plan) {
    __shared__ u32 cell[GROUPS_CELLS];
    fold_share(x, ids, mask, work, &plan, cell, 1);
}

/* ---- From records to values --------------------------------------------------------------------------- */

#if defined(FLOATING)

/* Digits of 32 bits of a record's sum: those of its words, two for what the last word has above its digit, and one
 * for the sign. */
#define NUMBER_WORDS (RECORD * APART / 32 + 3)

/* Returns x * 2^k, which is a double, or too large. */
PURE double scaled(u64 x, i32 k) {
    const i32 first = k / 2;
    return (double)x * double_from((u64)(first + 1023) << 52) *
           double_from((u64)(k - first + 1023) << 52);
}

/* Loads the magnitude of a record's sum as digits of 32 bits. Returns whether the sum is negative;
 * *top is the highest digit that is not 0, or -1. */
__device__ u32 load_digits(const GLOBAL u64 *record, u64 count, u32 *digit, i32 *top) {
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
    u64 one = negative;
    *top = -1;
    for (u32 i = 0; i < NUMBER_WORDS; i++) {
        if (negative) {
            one += (u64)(~digit[i]);
            digit[i] = (u32)one;
            one >>= 32;
        }
        if (digit[i]) *top = (i32)i;
    }
    return negative;
}

/* Makes *out the digits as two doubles. Returns not 0 if there are bits below the second one, which
 * is then rounded to odd. */
PURE u32 digits_pair(const u32 *digit, i32 top, u32 negative, pair *out) {
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

/* Returns the bits of the digits' quotient by n < 2^31, rounded once to the type `to`. Below the digits there are
 * QUOTIENT_WORDS more of the quotient, which then has 65 bits at least; of the remainder it only matters whether it
 * is 0. */
#define QUOTIENT_WORDS 3
PURE u64 digits_mean(const u32 *digit, i32 top, u32 negative, u64 n, u32 to) {
    u32 quotient[NUMBER_WORDS + QUOTIENT_WORDS];
    u64 rest = 0;
    for (i32 i = top + QUOTIENT_WORDS; i >= 0; i--) {
        const u64 part = rest << 32 | (i < QUOTIENT_WORDS ? 0 : digit[i - QUOTIENT_WORDS]);
        quotient[i] = (u32)(part / n);
        rest = part % n;
    }
    return round_digits(format_of(to), negative, quotient, top + 1 + QUOTIENT_WORDS,
                        LOWEST - 32 * QUOTIENT_WORDS, rest != 0);
}

#endif

/* The reasons why no call takes certain paths of lower_groups and zeros, or NULL where some call does. */
#if defined(TYPE_F64)
#define NEVER_HUGE NULL
#else
#define NEVER_HUGE "fewer than 2^64 numbers below 2^128 add up to less than 2^1000"
#endif
#if defined(FLOATING)
#define NEVER_ZEROS NULL
#else
#define NEVER_ZEROS "integers have no negative zeros"
#endif

KERNEL lower_groups(GLOBAL u64 *work, GLOBAL u8 *out, const groups_plan plan) {
    const u64 step = (u64)gridDim.x * BLOCK;
    if (read_word(&work[PARTS_BAD]) != ~(u64)0) return;
    for (u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x; i < plan.count; i += step) {
        const GLOBAL u64 *record = work + plan.records + i;
#if defined(FLOATING)
        u32 digit[NUMBER_WORDS];
        i32 top;
        pair sum;
        const u32 special = (u32)record[SPECIAL * plan.count];
        const u32 negative = load_digits(record, plan.count, digit, &top);
        const u32 rest = digits_pair(digit, top, negative, &sum);
        const u64 n = plan.counted ? record[COUNTED * plan.count] : 1;
        sum.seen = special & (PAIR_NAN | PAIR_PLUS | PAIR_MINUS);
        if (top >= 0 || sum.seen != 0 || (special & (MINUS_ZERO | PAIR_MIXED)) != MINUS_ZERO)
            sum.seen |= PAIR_MIXED;
        else {
            TALLY_PATH("left to zeros");
            leave_row(work, plan.left, i);
        }
#else
        const u64 low = record[0];
#endif
        for (u32 v = 0; v < plan.values; v++) {
            const u32 mean = (plan.value[v] & 255) == MEAN, to = plan.value[v] >> 8;
#if defined(FLOATING)
            u32 lost = 0;
            u64 bits = pair_value(&sum, n, mean, to, &lost);
            if (mean && (lost || rest) && !(sum.seen & (PAIR_NAN | PAIR_PLUS | PAIR_MINUS))) {
                TALLY_PATH("a mean by digits");
                bits = digits_mean(digit, top, negative, n, to);
            } else if (lost) { /* an f64's sum of 2^1000 or more */
                TALLY_PATH_UNLESS("a sum by digits", NULL, NEVER_HUGE);
                bits = round_digits(format_of(to), negative, digit, top + 1, LOWEST, 0);
            } else
                TALLY_PATH("by a pair");
#elif APART == 32
            const u64 above = record[plan.count];
            u64 bits = low + (above << 32);
            const i64 high =
                ((i64)low >> 63) + ((i64)above >> 32) + (bits < low) + (i64)record[2 * plan.count];
            const u32 lost = !mean && (is_signed(to) ? high != (i64)bits >> 63 : high != 0);
            if (lost) {
                note_least(&work[PARTS_ABSENT],
                           (i + plan.number_first) * 64 + (plan.first_value + v) * 2);
                bits = 0;
            }
#else
            const u64 bits = mean ? 0 : low; /* there are no means of integers here */
#endif
            store_bits(out + plan.out[v] + (plan.out_first + (i64)i) * (width_of(to) / 8),
                       width_of(to), bits);
        }
    }
}

/* Makes the values of marked groups +0. The thread that first finds a term other than -0 in such a
 * group writes them; see the head of this file. */
KERNEL zeros(const GLOBAL element *x, const GLOBAL u8 *ids, const GLOBAL u8 *mask, GLOBAL u64 *work,
             GLOBAL u8 *out, const groups_plan plan) {
    if (read_word(&work[plan.left]) == 0 || read_word(&work[PARTS_BAD]) != ~(u64)0) return;
    for (u64 first = (u64)blockIdx.x * (BLOCK * TILE) + threadIdx.x; first < plan.n;
         first += (u64)gridDim.x * (BLOCK * TILE)) {
        tile t;
        load_tile(x, ids, mask, work, &plan, first, &t);
        for (u32 k = 0; k < TILE; k++) {
            const u32 group = t.group[k];
            if (group >= (u32)plan.count ||
                !(work[plan.left + 1 + group / 64] >> (group % 64) & 1) ||
                term_of(t.e[k]).special == MINUS_ZERO)
                continue;
            GLOBAL u64 *special = work + plan.records + SPECIAL * plan.count + group;
            if (read_word(special) & PAIR_MIXED || atomicOr(special, (u64)PAIR_MIXED) & PAIR_MIXED)
                continue;
            TALLY_PATH_UNLESS("", NULL, NEVER_ZEROS);
            for (u32 v = 0; v < plan.values; v++) {
                const u32 width = width_of(plan.value[v] >> 8);
                store_bits(out + plan.out[v] + (plan.out_first + (i64)group) * (width / 8), width,
                           0);
            }
        }
    }
}
