/*
 * columns - arrays reduced along an outer dimension: many results side by side (columns.h).
 *
 * A thread reads its columns row by row, as neighbouring threads do theirs, and keeps a state for each in registers. The
 * states of a block's strands meet in shared memory. Where rows are cut into chunks, `join` does with their states what
 * the others do with elements. Which states these are, a define says:
 *
 *   FOLD_SUM    the exact sum: of floats as two doubles (pair.h), of integers as one of 64 bits, or of 128 for those
 *               of 64
 *   FOLD_FAST   the sum of floats in any order, as a double
 *   FOLD_END    the greatest key (keys.h), or that of the complements of keys, which is the least; where INDEXED is
 *               defined also the first row that has it. A NaN has a key above all others
 *   FOLD_ENDS   both
 *
 * wide: a thread has VECTOR neighbouring columns, which it loads at once. narrow: one.
 *
 * A tile of floats shorter than f64 is first added up in one double, as if that lost nothing: three additions an
 * element. Where it did lose something, the thread adds the tile once more, to two doubles, and looks for infinities
 * and NaNs. What two doubles do not hold, and an integer that does not fit, is left to parts.cu, marked.
 */
#define BLOCKS_A_UNIT GPU_COLUMN_BLOCKS_A_UNIT
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

#include "columns.h"

#if defined(TYPE_F64)
#define ELEMENT_TYPE F64
#elif defined(TYPE_F32)
#define ELEMENT_TYPE F32
#elif defined(TYPE_F16)
#define ELEMENT_TYPE F16
#else
#define ELEMENT_TYPE BF16
#endif
#define ELEMENT_BITS (8 * (u32)sizeof(element))
#if defined(TYPE_F64) || defined(TYPE_I64) || defined(TYPE_U64)
#define LONG   1
#define VECTOR 2u
#else
#define LONG   0
#define VECTOR 4u
#endif
/* Rows that are on their way before one is added. */
#define WIDE_ROWS   4u
#define NARROW_ROWS (LONG ? 8u : 16u)
#define ROWS_MOST   4u /* of a strip that is added slowly */
#define JOINED      4u /* states that are on their way at once */
#define ELEMENTS    (WIDE_ROWS * VECTOR > NARROW_ROWS ? WIDE_ROWS * VECTOR : NARROW_ROWS)

/* ---- States ------------------------------------------------------------------------------------------- */

/* clear_state, merge_states; add_tile adds elements e[0], e[apart], ... of rows `row`, row + strands, ... below `last`,
 * of which those that are not there are pad()s or, where PAD is 0, the thread's last row's again; state_word and state_of_words are
 * how states travel; state_value gives the bits of a value. */

#if defined(FOLD_SUM) && defined(FLOATING)

typedef pair state;
#define STATE_WORDS 3
#define PAD         1

PURE void clear_state(state *a) {
    a->s = a->e = 0;
    a->seen = 0;
}

PURE element pad(void) {
#if defined(TYPE_F64) || defined(TYPE_F32)
    return -(element)0;
#else
    return (element)SIGN;
#endif
}

/* Not 0 if the element is anything but -0. */
PURE u32 not_minus_zero(element e) {
#if defined(TYPE_F64)
    const u64 bits = double_bits(e) ^ SIGN;
    return (u32)bits | (u32)(bits >> 32);
#elif defined(TYPE_F32)
    return float_bits(e) ^ SIGN;
#else
    return e ^ SIGN;
#endif
}

/* The element, without what has been worked out from it before being kept in registers for this. */
#if defined(TYPE_F32)
#define AGAIN(e) float_from(anew(float_bits(e)))
#elif defined(TYPE_F64)
#define AGAIN(e) (e)
#else
#define AGAIN(e) ((element)anew(e))
#endif

/* The element as a double, and -0 as 0. */
PURE double plain(element e) {
#if defined(TYPE_F64)
    return e;
#else
    return (double)(widen(e) + 0.0f);
#endif
}

/* Elements of a column, one below the other. */
typedef struct strip {
    element e[ROWS_MOST];
} strip;

/* Adds elements to two doubles, or if that loses something, one by one. */
SELDOM state add_slowly(state a, strip t) {
    double s = a.s, rest = a.e;
    u64 wrong = 0;
    UNROLL
    for (u32 k = 0; k < ROWS_MOST; k++)
        wrong |= pair_add(plain(t.e[k]), &s, &rest);
    if (wrong == 0) {
        a.s = s;
        a.e = rest;
    } else
        for (u32 k = 0; k < ROWS_MOST; k++)
            pair_add_any(&a, plain(t.e[k]));
    return a;
}

INLINED void add_tile(state *a, const element *e, u32 apart, u32 rows, u32 row, u32 strands,
                      u32 last) {
    double s = a->s;
    u64 wrong = 0;
    u32 other = 0;
    UNROLL
    for (u32 k = 0; k < rows; k++)
        other |= not_minus_zero(e[k * apart]);
    if (other) a->seen |= PAIR_MIXED;
#if LONG
    double rest = a->e;
    UNROLL
    for (u32 k = 0; k < rows; k++)
        wrong |= pair_add(plain(e[k * apart]), &s, &rest);
#else
    UNROLL
    for (u32 k = 0; k < rows; k++) {
        /* t = s + x is exact where t - s is x and t - x is s: the larger of s and x, whichever it is, is then taken
         * from t without an error (Dekker). */
        const double x = plain(e[k * apart]), t = s + x, back = t - s;
        wrong |= (double_bits(back) ^ double_bits(x)) | (double_bits(t - back) ^ double_bits(s));
        s = t;
    }
#endif
    if (wrong != 0) {
        UNROLL
        for (u32 from = 0; from < rows; from += ROWS_MOST) {
            strip t;
            UNROLL
            for (u32 k = 0; k < ROWS_MOST; k++)
                t.e[k] = AGAIN(e[(from + k) * apart]);
            *a = add_slowly(*a, t);
        }
        return;
    }
    a->s = s;
#if LONG
    a->e = rest;
#endif
}

PURE void merge_states(state *a, const state *b) {
    pair_merge(a, b);
}

PURE u64 state_word(const state *a, u32 k) {
    return k == 0 ? double_bits(a->s) : k == 1 ? double_bits(a->e) : a->seen;
}

PURE state state_of_words(const u64 *words) {
    const state a = {double_from(words[0]), double_from(words[1]), (u32)words[2]};
    return a;
}

/* A value's bits, and whether they could not be had. */
typedef struct lowered {
    u64 bits;
    u32 lost;
} lowered;

SELDOM lowered lower_pair(state a, u64 n, u32 mean, u32 to) {
    lowered r = {0, 0};
    r.bits = pair_value(&a, n, mean, to, &r.lost);
    return r;
}

PURE u64 state_value(const state *a, const columns_plan *p, u32 op, u32 to, u32 *lost) {
#if defined(TYPE_F32)
    if (a->seen == PAIR_MIXED && a->e == 0 && a->s != 0 && op == SUM && to == F32 &&
        exponent_field(a->s) < HUGE_FIELD)
        return float_bits((float)a->s); /* most sums */
#endif
    const lowered r = lower_pair(*a, p->rows, op == MEAN, to);
    *lost |= r.lost;
    return r.bits;
}

#elif defined(FOLD_SUM) /* integers */

typedef struct state {
    u64 low, high;
} state;
#define STATE_WORDS (1 + LONG)
#define PAD         1

PURE void clear_state(state *a) {
    a->low = a->high = 0;
}

PURE element pad(void) {
    return 0;
}

PURE void add_wide(state *a, u64 low, u64 high) {
    a->low += low;
    if (LONG) a->high += high + (a->low < low);
}

INLINED void add_tile(state *a, const element *e, u32 apart, u32 rows, u32 row, u32 strands,
                      u32 last) {
    UNROLL
    for (u32 k = 0; k < rows; k++) {
        const u64 x = (u64)e[k * apart]; /* a negative one gains 2^64 */
#if defined(TYPE_I64)
        add_wide(a, x, 0 - (x >> 63));
#else
        add_wide(a, x, 0);
#endif
    }
}

PURE void merge_states(state *a, const state *b) {
    add_wide(a, b->low, b->high);
}

PURE u64 state_word(const state *a, u32 k) {
    return k == 0 ? a->low : a->high;
}

PURE state state_of_words(const u64 *words) {
    const state a = {words[0], LONG ? words[STATE_WORDS - 1] : 0};
    return a;
}

/* Fewer than 2^31 integers of 32 bits fit 64 in any case. */
PURE u64 state_value(const state *a, const columns_plan *p, u32 op, u32 to, u32 *lost) {
#if defined(TYPE_I64)
    *lost |= a->high != 0 - (a->low >> 63);
#elif defined(TYPE_U64)
    *lost |= a->high != 0;
#endif
    return a->low;
}

#elif defined(FOLD_FAST)

typedef struct state {
    double s;
} state;
#define STATE_WORDS 1
#define PAD         1

PURE void clear_state(state *a) {
    a->s = -0.0; /* adds nothing to -0 */
}

PURE element pad(void) {
#if defined(TYPE_F64) || defined(TYPE_F32)
    return -(element)0;
#else
    return (element)SIGN;
#endif
}

INLINED void add_tile(state *a, const element *e, u32 apart, u32 rows, u32 row, u32 strands,
                      u32 last) {
    UNROLL
    for (u32 k = 0; k < rows; k++)
        a->s += (double)widen(e[k * apart]);
}

PURE void merge_states(state *a, const state *b) {
    a->s += b->s;
}

PURE u64 state_word(const state *a, u32 k) {
    return double_bits(a->s);
}

PURE state state_of_words(const u64 *words) {
    const state a = {double_from(words[0])};
    return a;
}

PURE u64 state_value(const state *a, const columns_plan *p, u32 op, u32 to, u32 *lost) {
    const double value = op == MEAN ? a->s / (double)p->rows : a->s;
    return value == value ? pair_shorter(value, to) : float_nan_bits(format_of(to));
}

#else /* extremes */

#if LONG
typedef u64 key;
#else
typedef u32 key;
#endif
#define KEY_MASK (~(key)0 >> (8 * sizeof(key) - ELEMENT_BITS))
#define KEY_NAN  (~(key)0)
#define PAD      0
#if defined(FLOATING)
#define FLOATS 1
#else
#define FLOATS 0
#endif

/* The key of an element, or its complement where `flip` is KEY_MASK. */
PURE key key_of(element e, key flip) {
#if defined(FLOATING)
    const key negative = (key)0 - (key)(e >> (ELEMENT_BITS - 1));
    const key k = ((key)e ^ (negative | SIGN) ^ flip) & KEY_MASK;
    return (e & (SIGN - 1)) > INFINITE ? KEY_NAN : k;
#else
    return (key)e ^ flip;
#endif
}

/* The bits that have a key. `flip`: as key_of() took it, which for signed integers turns the sign over, too. */
PURE u64 key_bits(key k, key flip) {
#if defined(FLOATING)
    if (k == KEY_NAN) return float_nan_bits(format_of(ELEMENT_TYPE));
    return bits_of_key(k ^ flip, ELEMENT_BITS, ORDER_FLOAT);
#else
    return (u64)(k ^ flip);
#endif
}

typedef struct state {
    key most;
#if defined(FOLD_ENDS)
    key least;
#endif
#if defined(INDEXED)
    u32 at;
#endif
} state;
#if defined(FOLD_ENDS) || defined(INDEXED)
#define STATE_WORDS 2
#else
#define STATE_WORDS 1
#endif

PURE void clear_state(state *a) {
    a->most = 0;
#if defined(FOLD_ENDS)
    a->least = 0;
#endif
#if defined(INDEXED)
    a->at = ~0u;
#endif
}

PURE void merge_states(state *a, const state *b) {
#if defined(INDEXED)
    if (b->most > a->most || (b->most == a->most && b->at < a->at)) *a = *b;
#else
    a->most = b->most > a->most ? b->most : a->most;
#endif
#if defined(FOLD_ENDS)
    a->least = b->least > a->least ? b->least : a->least;
#endif
}

INLINED void add_tile(state *a, const element *e, u32 apart, u32 rows, u32 row, u32 strands,
                      u32 last, key flip) {
    UNROLL
    for (u32 k = 0; k < rows; k++) {
        const key own = key_of(e[k * apart], flip);
#if defined(INDEXED)
        /* A thread's rows rise, so that the first of equals stays, whatever is loaded again after the last. The first
         * of all comes in the place of none. */
        const u32 at = row + k * strands;
        if (own > a->most || (k == 0 && a->at == ~0u)) {
            a->most = own;
            a->at = at;
        }
#else
        a->most = own > a->most ? own : a->most;
#endif
#if defined(FOLD_ENDS)
        const key other = own == KEY_NAN && FLOATS ? own : own ^ KEY_MASK;
        a->least = other > a->least ? other : a->least;
#endif
    }
}

PURE u64 state_word(const state *a, u32 k) {
#if defined(FOLD_ENDS)
    if (k == 1) return a->least;
#elif defined(INDEXED)
    if (k == 1) return a->at;
#endif
    return a->most;
}

PURE state state_of_words(const u64 *words) {
    state a;
    a.most = (key)words[0];
#if defined(FOLD_ENDS)
    a.least = (key)words[1];
#elif defined(INDEXED)
    a.at = (u32)words[1];
#endif
    return a;
}

PURE u64 state_value(const state *a, const columns_plan *p, u32 op, u32 to, u32 *lost) {
#if defined(INDEXED)
    return op == ARGMIN || op == ARGMAX ? a->at : key_bits(a->most, (key)p->flip);
#elif defined(FOLD_ENDS)
    return op == MIN ? key_bits(a->least, (key)p->flip ^ KEY_MASK)
                     : key_bits(a->most, (key)p->flip);
#else
    return key_bits(a->most, (key)p->flip);
#endif
}

#endif

#if PAD
#define ADD_TILE(k) add_tile(&a[k], e + (k), vector, rows, r, p->strands, last)
#else
#define ADD_TILE(k) add_tile(&a[k], e + (k), vector, rows, r, p->strands, last, (key)p->flip)
#endif

/* ---- A thread's part of a tile ------------------------------------------------------------------------ */

/* What a thread loads at once: `vector` neighbouring columns' elements. */
typedef union unit {
#if LONG || defined(TYPE_F32) || defined(TYPE_U32) || defined(TYPE_I32)
    uint4 bits;
#elif defined(TYPE_U8) || defined(TYPE_I8)
    u32 bits;
#else
    u64 bits;
#endif
    element e[VECTOR];
} unit;

/* `packed`: units lie at multiples of their size. */
__device__ void load_unit(const GLOBAL element *from, u32 vector, u32 packed, element *to) {
    if (vector > 1 && packed) {
        unit u;
        u.bits = ((const GLOBAL unit *)from)->bits;
        UNROLL
        for (u32 v = 0; v < VECTOR; v++)
            to[v] = u.e[v];
    } else {
        UNROLL
        for (u32 v = 0; v < vector; v++)
            to[v] = from[v];
    }
}

/* Loads rows r, r + strands, ... below `last` of the columns that stand at `at` in row r. */
INLINED void load_rows(const GLOBAL element *at, const columns_plan *p, u32 vector, u32 rows, u32 r,
                       u32 last, element *e) {
    const i64 step = (i64)p->strands * p->row_step;
    const u32 packed = (size_t)at % sizeof(unit) == 0;
    if (packed && r + (rows - 1) * p->strands < last) {
        UNROLL
        for (u32 k = 0; k < rows; k++)
            load_unit(at + (i64)k * step, vector, 1, e + k * vector);
        return;
    }
#if !PAD
    const GLOBAL element *end = at + (i64)((last - 1 - r) / p->strands) * step;
#endif
    UNROLL
    for (u32 k = 0; k < rows; k++) {
        const u32 is_there = r + k * p->strands < last;
#if PAD
        if (is_there)
            load_unit(at + (i64)k * step, vector, packed, e + k * vector);
        else
            UNROLL
        for (u32 v = 0; v < vector; v++)
            e[k * vector + v] = pad();
#else
        load_unit(is_there ? at + (i64)k * step : end, vector, packed, e + k * vector);
#endif
    }
}

/* Adds rows first, first + strands, ... below `last` of the columns that stand at `at` in row `first`. */
INLINED void add_rows(const GLOBAL element *at, const columns_plan *p, u32 vector, u32 rows,
                      u32 first, u32 last, state *a) {
    element next[ELEMENTS]; /* on their way while others are added */
    load_rows(at, p, vector, rows, first, last, next);
    for (u32 r = first; r < last; r += rows * p->strands) {
        element e[ELEMENTS];
        UNROLL
        for (u32 k = 0; k < rows * vector; k++)
            e[k] = next[k];
        at += (i64)(rows * p->strands) * p->row_step;
        if (r + rows * p->strands < last)
            load_rows(at, p, vector, rows, r + rows * p->strands, last, next);
        UNROLL
        for (u32 v = 0; v < vector; v++)
            ADD_TILE(v);
    }
}

/* ---- A block's tile ------------------------------------------------------------------------------------ */

/* A thread's place in a tile. */
typedef struct seat {
    u32 unit, strand, slab;
} seat;

PURE seat find_seat(const columns_plan *p) {
    const u32 t = threadIdx.x;
    const seat s = {t % p->width, t / p->width % p->strands, t / p->width / p->strands};
    return s;
}

/* Strand 0 of each unit learns what all strands know: half of those that are left tell the other half. All threads of
 * the block call this. `told`: a state for each thread and column. */
INLINED void meet_strands(const columns_plan *p, seat s, u32 vector, state *a, SHARED u64 *told) {
    u32 kept;
    for (u32 left = p->strands; left > 1; left = kept) {
        kept = (left + 1) / 2;
        __syncthreads();
        if (s.slab < p->depth && s.strand >= kept && s.strand < left) {
            UNROLL
            for (u32 v = 0; v < vector; v++)
                UNROLL
            for (u32 k = 0; k < STATE_WORDS; k++)
                told[(v * STATE_WORDS + k) * BLOCK + threadIdx.x] = state_word(&a[v], k);
        }
        __syncthreads();
        if (s.slab < p->depth && s.strand + kept < left) {
            UNROLL
            for (u32 v = 0; v < vector; v++) {
                u64 words[STATE_WORDS];
                UNROLL
                for (u32 k = 0; k < STATE_WORDS; k++)
                    words[k] = told[(v * STATE_WORDS + k) * BLOCK + threadIdx.x + kept * p->width];
                const state b = state_of_words(words);
                merge_states(&a[v], &b);
            }
        }
    }
}

__device__ void store_bits(GLOBAL u8 *to, u32 width, u64 bits) {
    if (width == 64)
        *(GLOBAL u64 *)to = bits;
    else if (width == 32)
        *(GLOBAL u32 *)to = (u32)bits;
    else if (width == 16)
        *(GLOBAL u16 *)to = (u16)bits;
    else
        *to = (u8)bits;
}

/* Neighbouring columns' bits of a value, as stores of 16 bytes where they lie in such a way. */
INLINED void store_unit(GLOBAL u8 *to, u32 width, i64 step, u32 vector, const u64 *bits) {
    const u32 bytes = width / 8;
    if (vector > 1 && step == 1 && bytes * vector % 16 == 0 && (size_t)to % 16 == 0) {
        UNROLL
        for (u32 part = 0; part < VECTOR / 2; part++) {
            union {
                uint4 all;
                u32 word[4];
            } u;
            if (part >= bytes * vector / 16) continue;
            UNROLL
            for (u32 k = 0; k < 4; k++)
                u.word[k] = width == 64 ? (u32)(bits[2 * part + k / 2] >> 32 * (k % 2))
                                        : (u32)bits[k % VECTOR];
            ((GLOBAL uint4 *)to)[part] = u.all;
        }
        return;
    }
    UNROLL
    for (u32 v = 0; v < vector; v++)
        store_bits(to + (i64)v * step * bytes, width, bits[v]);
}

/* Writes the values of neighbouring columns, from `column` of `slab` on, or leaves them. */
INLINED void lower_states(GLOBAL u64 *work, GLOBAL u8 *out, const columns_plan *p, u64 slab,
                          u64 column, u32 vector, const state *a) {
    const i64 place = p->out_first + (i64)slab * p->out_slab + (i64)column * p->out_column;
    u32 lost[VECTOR];
    UNROLL
    for (u32 v = 0; v < vector; v++)
        lost[v] = 0;
    for (u32 i = 0; i < p->values; i++) {
        const u32 to = p->value[i] >> 8, width = width_of(to);
        u64 bits[VECTOR];
        UNROLL
        for (u32 v = 0; v < vector; v++)
            bits[v] = state_value(&a[v], p, p->value[i] & 255, to, &lost[v]);
        store_unit(out + p->out[i] + place * (i64)(width / 8), width, p->out_column, vector, bits);
    }
    UNROLL
    for (u32 v = 0; v < vector; v++)
        if (lost[v]) leave_row(work, p->left, slab * p->columns + column + v);
}

/* The block's tiles, one after another. */
INLINED void fold_tiles(const GLOBAL element *x, GLOBAL u64 *work, GLOBAL u8 *out,
                        const columns_plan *p, u32 vector, u32 rows, SHARED u64 *told) {
    const seat s = find_seat(p);
    const u32 tasks = p->tiles * p->chunks * p->groups;
    for (u32 task = blockIdx.x; task < tasks; task += gridDim.x) {
        const u32 tile = task % p->tiles, chunk = task / p->tiles % p->chunks;
        const u64 slab = (u64)(task / p->tiles / p->chunks) * p->depth + s.slab;
        const u64 column = ((u64)tile * p->width + s.unit) * vector;
        const u32 is_there = s.slab < p->depth && slab < p->slabs && column < p->columns;
        const u32 first = chunk * p->chunk + s.strand, end = (chunk + 1) * p->chunk;
        const u32 last = end < p->rows ? end : (u32)p->rows;
        state a[VECTOR];
        UNROLL
        for (u32 v = 0; v < vector; v++)
            clear_state(&a[v]);
        if (is_there && first < last)
            add_rows(x + (p->x + (i64)slab * p->slab_step + (i64)column + (i64)first * p->row_step),
                     p, vector, rows, first, last, a);
        meet_strands(p, s, vector, a, told);
        if (!is_there || s.strand != 0) continue;
        if (p->chunks == 1) {
            lower_states(work, out, p, slab, column, vector, a);
            continue;
        }
        const u64 results = p->slabs * p->columns;
        GLOBAL u64 *to = work + p->states + chunk * results + slab * p->columns + column;
        UNROLL
        for (u32 v = 0; v < vector; v++)
            UNROLL
        for (u32 k = 0; k < STATE_WORDS; k++)
            to[(u64)k * p->chunks * results + v] = state_word(&a[v], k);
    }
}

KERNEL wide(const GLOBAL element *x, GLOBAL u64 *work, GLOBAL u8 *out, const columns_plan plan) {
    __shared__ u64 told[STATE_WORDS * VECTOR * BLOCK];
    fold_tiles(x, work, out, &plan, VECTOR, WIDE_ROWS, told);
}

KERNEL narrow(const GLOBAL element *x, GLOBAL u64 *work, GLOBAL u8 *out, const columns_plan plan) {
    __shared__ u64 told[STATE_WORDS * BLOCK];
    fold_tiles(x, work, out, &plan, 1, NARROW_ROWS, told);
}

/* The states of chunks are added up, and lowered. A tile is results by strands of chunks. */
KERNEL join(GLOBAL u64 *work, GLOBAL u8 *out, const columns_plan plan) {
    __shared__ u64 told[STATE_WORDS * BLOCK];
    const u64 results = plan.slabs * plan.columns;
    const seat s = find_seat(&plan);
    for (u32 tile = blockIdx.x; tile < plan.tiles; tile += gridDim.x) {
        const u64 nth = (u64)tile * plan.width + s.unit;
        const u32 is_there = s.slab == 0 && nth < results;
        state a[VECTOR];
        clear_state(&a[0]);
        for (u32 c = s.strand; is_there && c < plan.chunks; c += JOINED * plan.strands) {
            u64 words[JOINED][STATE_WORDS];
            UNROLL
            for (u32 i = 0; i < JOINED; i++) {
                const u32 chunk = c + i * plan.strands < plan.chunks ? c + i * plan.strands : c;
                UNROLL
                for (u32 k = 0; k < STATE_WORDS; k++)
                    words[i][k] =
                        work[plan.states + (k * (u64)plan.chunks + chunk) * results + nth];
            }
            UNROLL
            for (u32 i = 0; i < JOINED; i++) {
                const state b = state_of_words(words[i]);
                if (c + i * plan.strands < plan.chunks) merge_states(&a[0], &b);
            }
        }
        meet_strands(&plan, s, 1, a, told);
        if (is_there && s.strand == 0)
            lower_states(work, out, &plan, nth / plan.columns, nth % plan.columns, 1, a);
    }
}
