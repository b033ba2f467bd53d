/*
 * group_ends - extremes, and counts, by group, of elements whose ids come in any order (groups.h).
 *
 * A group's state is one word or two, in global memory: word k of all groups lies side by side. A define says which:
 *
 *   FOLD_END    the greatest key (end_keys.h). Where INDEXED is defined, the complement of the element's index stands
 *               below the key, so that of equal keys the first one's word is the greatest. Keys of 64 bits leave no
 *               room for an index: it has a word of its own, which a second sweep finds (TWICE)
 *   FOLD_ENDS   the greatest key, and that of the complements of keys, which is the least
 *   FOLD_COUNT  how many elements are not zero, and how many there are
 *
 * A word of no elements is 0. A word of an extreme only rises: a thread writes its own word if it finds a lesser one
 * there. Few elements of random data do. Words of counts are added to.
 *
 * many: each element goes to the words in global memory. few: each goes to cells in the block's shared memory, and in
 * the end these go to the words.
 * indices: the second sweep. Elements whose keys are their groups' greatest raise the complements of indices.
 * lower_groups: turns words into values.
 */
#define BLOCKS_A_UNIT GPU_SUM_BLOCKS_A_UNIT
#include "tuning.h"

#include "operators.h"

#include "kernel.h"

#include "result.h"

#define RECORD_SPACE SHARED
#include "lower.h"

#include "parts.h"

#include "groups.h"

#include "ids.h"

#include "end_keys.h"

#if defined(FOLD_COUNT)
typedef u32 cell; /* a block has fewer than 2^28 elements */
#define STATE_WORDS 2
#elif defined(INDEXED)
typedef u64 cell;
#define STATE_WORDS 1
#if ELEMENT_WIDTH == 64
#define TWICE
#endif
#elif defined(FOLD_ENDS)
typedef key cell;
#define STATE_WORDS 2
#else
typedef key cell;
#define STATE_WORDS 1
#endif
#define CELLS (GROUPS_CELLS * 4 / (u32)sizeof(cell))

/* ---- Words -------------------------------------------------------------------------------------------- */

#if defined(__OPENCL_VERSION__)
OVERLOADED u32 atomicCAS(__local u32 *p, u32 expected, u32 v) {
    return atomic_cmpxchg(p, expected, v);
}
OVERLOADED u64 atomicCAS(__local u64 *p, u64 expected, u64 v) {
    return atom_cmpxchg(p, expected, v);
}
#endif
#if HAS_ATOMIC_MAX
#define read_cell(p) (*(volatile const cell *)(p))
#else
#define read_cell(p) atomicCAS(p, (cell)0, (cell)0)
#endif

/* Make *p the greater of itself and v. raise_cell() is for a cell in the block's shared memory, raise_word() for a
 * word of the workspace. */
#if HAS_ATOMIC_MAX
__device__ void raise_cell(SHARED cell *p, cell v) {
    atomicMax(p, v);
}

__device__ void raise_word(GLOBAL u64 *p, u64 v) {
    if (v > read_word(p)) atomicMax(p, v);
}
#else
__device__ void raise_cell(SHARED cell *p, cell v) {
    cell known = read_cell(p);
    while (v > known) {
        const cell found = atomicCAS(p, known, v);
        known = found == known ? v : found;
    }
}

__device__ void raise_word(GLOBAL u64 *p, u64 v) {
    u64 known = read_word(p);
    while (v > known) {
        const u64 found = atomicCAS(p, known, v);
        known = found == known ? v : found;
    }
}
#endif

/* Returns an element's contribution to word k of its group. */
PURE cell lift(element e, u64 index, u32 k, key flip) {
#if defined(FOLD_COUNT)
    if (k == 1) return 1;
#if defined(FLOATING)
    return (element)(e << 1) != 0;
#else
    return e != 0;
#endif
#else
#if defined(INDEXED) && !defined(TWICE)
    return (u64)first_nan(key_of(e, flip)) << 32 | (u32) ~(u32)index;
#elif defined(INDEXED)
    return first_nan(key_of(e, flip));
#else
    const key own = key_of(e, flip);
    return k == 0 ? own : other_key(own);
#endif
#endif
}

/* Raises a copy of the groups' cells for word w by a tile's elements; `first` is the number of the
 * thread's first element. It reads all cells before it raises any. So there is one branch, taken
 * only if some cell must rise. */
INLINED void join_cells(SHARED cell *own, const tile *t, const groups_plan *p, u64 first, u32 w) {
    cell v[TILE];
    u32 place[TILE];
    UNROLL
    for (u32 k = 0; k < TILE; k++) {
        const u32 wanted = t->group[k] < (u32)p->count;
        v[k] = wanted ? lift(t->e[k], first + k * BLOCK, w, (key)p->flip) : 0;
        place[k] = (wanted ? t->group[k] : 0) * p->copies;
    }
#if defined(FOLD_COUNT)
    UNROLL
    for (u32 k = 0; k < TILE; k++)
        if (v[k] != 0) atomicAdd(own + place[k], v[k]);
#else
    u32 any = 0;
    UNROLL
    for (u32 k = 0; k < TILE; k++)
        any |= v[k] > read_cell(own + place[k]);
    if (any) UNROLL
    for (u32 k = 0; k < TILE; k++)
        raise_cell(own + place[k], v[k]);
#endif
}

__device__ void join_word(GLOBAL u64 *p, u64 v) {
#if defined(FOLD_COUNT)
    if (v != 0) atomicAdd(p, v);
#else
    raise_word(p, v);
#endif
}

/* ---- Kernels ------------------------------------------------------------------------------------------ */

KERNEL many(const GLOBAL element *x, const GLOBAL u8 *ids, const GLOBAL u8 *mask, GLOBAL u64 *work,
            const groups_plan plan) {
    for (u64 first = (u64)blockIdx.x * (BLOCK * TILE) + threadIdx.x; first < plan.n;
         first += (u64)gridDim.x * (BLOCK * TILE)) {
        tile t;
        load_tile(x, ids, mask, work, &plan, first, &t);
        UNROLL
        for (u32 k = 0; k < TILE; k++)
            if (t.group[k] < (u32)plan.count) UNROLL
        for (u32 w = 0; w < STATE_WORDS; w++)
            join_word(work + plan.records + w * plan.count + t.group[k],
                      lift(t.e[k], first + k * BLOCK, w, (key)plan.flip));
    }
}

KERNEL few(const GLOBAL element *x, const GLOBAL u8 *ids, const GLOBAL u8 *mask, GLOBAL u64 *work,
           const groups_plan plan) {
    __shared__ cell own[CELLS];
    const u32 count = (u32)plan.count, copies = plan.copies, copy = threadIdx.x % copies;
    const u64 step = (u64)gridDim.x * (BLOCK * TILE);
    u64 first = (u64)blockIdx.x * (BLOCK * TILE) + threadIdx.x;
    tile next; /* on its way while another is added */
    load_tile(x, ids, mask, work, &plan, first, &next);
    for (u32 i = threadIdx.x; i < STATE_WORDS * count * copies; i += BLOCK)
        own[i] = 0;
    __syncthreads();
    for (; first - threadIdx.x < plan.n; first += step) {
        const tile t = next;
        if (first - threadIdx.x + step < plan.n)
            load_tile(x, ids, mask, work, &plan, first + step, &next);
        UNROLL
        for (u32 w = 0; w < STATE_WORDS; w++)
            join_cells(own + w * count * copies + copy, &t, &plan, first, w);
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < STATE_WORDS * count; i += BLOCK) {
        cell all = 0;
        for (u32 c = 0; c < copies; c++) {
            const cell one = own[i * copies + (c + threadIdx.x) % copies];
#if defined(FOLD_COUNT)
            all += one;
#else
            all = one > all ? one : all;
#endif
        }
        if (all != 0) join_word(work + plan.records + i, all);
    }
}

#if defined(TWICE)

KERNEL indices(const GLOBAL element *x, const GLOBAL u8 *ids, const GLOBAL u8 *mask,
               GLOBAL u64 *work, const groups_plan plan) {
    __shared__ key known[CELLS];
    const u32 count = (u32)plan.count;
    const GLOBAL u64 *greatest = work + plan.records;
    const u64 step = (u64)gridDim.x * (BLOCK * TILE);
    u64 first = (u64)blockIdx.x * (BLOCK * TILE) + threadIdx.x;
    tile next; /* on its way while another is looked at */
    load_tile(x, ids, mask, work, &plan, first, &next);
    for (u32 i = threadIdx.x; i < CELLS && i < count; i += BLOCK)
        known[i] = greatest[i];
    __syncthreads();
    for (; first - threadIdx.x < plan.n; first += step) {
        const tile t = next;
        u32 same = 0;
        if (first - threadIdx.x + step < plan.n)
            load_tile(x, ids, mask, work, &plan, first + step, &next);
        UNROLL
        for (u32 k = 0; k < TILE; k++) {
            const u32 group = t.group[k];
            const key most = group >= count ? 0 : count > CELLS ? greatest[group] : known[group];
            if (group < count && first_nan(key_of(t.e[k], (key)plan.flip)) == most) same |= 1u << k;
        }
        if (same) UNROLL
        for (u32 k = 0; k < TILE; k++)
            if (same >> k & 1)
                raise_word(work + plan.records + plan.count + t.group[k],
                           ~(u64)(first + k * BLOCK));
    }
}

#endif

/* Returns the bits of a group's value; sets *absent if there is none. `state` is the group's word
 * 0. */
PURE u64 value_of(const GLOBAL u64 *state, const groups_plan *p, u32 op, u32 *absent) {
#if defined(FOLD_COUNT)
    const u64 others = state[0], n = state[p->count];
    return op == COUNT ? n : op == NONZERO ? others : op == ANY ? others != 0 : others == n;
#elif defined(INDEXED)
    if (op == ARGMIN || op == ARGMAX) {
#if defined(TWICE)
        const u64 found = state[p->count], index = ~found;
#else
        const u64 found = state[0], index = ~(u32)found;
#endif
        *absent = found == 0;
        return found == 0 ? 0 : index;
    }
    return state[0] == 0 && HAS_NANS
               ? float_infinity_bits(format_of(ELEMENT_TYPE), op == MAX)
               : key_bits((key)(state[0] >> (64 - 8 * sizeof(key))), (key)p->flip);
#else
    const u32 is_other = STATE_WORDS == 2 && op == MIN;
    const key own = (key)state[is_other * p->count];
    if (own == 0 && HAS_NANS) return float_infinity_bits(format_of(ELEMENT_TYPE), op == MAX);
    return key_bits(own, (key)p->flip ^ (is_other ? KEY_MASK : 0));
#endif
}

KERNEL lower_groups(GLOBAL u64 *work, GLOBAL u8 *out, const groups_plan plan) {
    if (read_word(&work[PARTS_BAD]) != ~(u64)0) return;
    for (u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x; i < plan.count; i += (u64)gridDim.x * BLOCK)
        for (u32 v = 0; v < plan.values; v++) {
            const u32 width = width_of(plan.value[v] >> 8);
            u32 absent = 0;
            u64 bits = value_of(work + plan.records + i, &plan, plan.value[v] & 255, &absent);
            if (absent && plan.several)
                bits = ~(u64)0;
            else if (absent)
                note_least(&work[PARTS_ABSENT],
                           (i + plan.number_first) * 64 + (plan.first_value + v) * 2 + 1);
            store_bits(out + plan.out[v] + (plan.out_first + (i64)i) * (width / 8), width, bits);
        }
}
