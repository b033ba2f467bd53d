/*
 * rows - reductions of rows, and segments, whose elements lie side by side (parts.h): sums and means, the least and the
 * greatest element, or with INDEXED the index of one of them; compiled for one type and operator.
 *
 * Pieces. A block has a piece of the work: so many elements and ends of rows. It goes through its elements in tiles,
 * from a multiple of 16 bytes on, and takes with it what it knows of the row that a tile leaves open. Of a row that
 * pieces cut, each leaves its state on an edge; `join` merges these.
 *
 * A tile within one row: each thread adds up what it loads, until the row, or the piece, ends.
 *
 * Any other tile goes through shared memory, where each thread has a run of neighbouring cells. A word of bits says
 * which of them begin a row. A thread knows the results of rows that lie in its run, and puts each into the cell in
 * which the row begins; what it knows of a row that it ends only, its head, goes to the threads before it, by a suffix
 * scan over the block. The thread in whose run the row begins has the total then. At last neighbouring threads
 * copy neighbouring rows' results from their cells to where the caller wants them.
 *
 * Sums of floats of up to 32 bits. A thread adds its run's elements as doubles, plainly, and notes the largest and the
 * smallest exponent. If 32 elements' exponents are at most 24 apart, all partial sums are multiples of the smallest
 * one's last bit, and below 2^53 of these: exact. If they are not, the run is added again with the errors kept (doubles.h),
 * as doubles always are. What two doubles cannot hold is left to `fold`.
 *
 * Indices. An element becomes a rank, a number that grows with it, or falls for argmin; every NaN has the highest one. So
 * the first element of the highest rank is what is looked for.
 */
#if defined(OP_SUM) && !defined(FAST)
#define BLOCKS_A_UNIT GPU_SUM_BLOCKS_A_UNIT
#else
#define BLOCKS_A_UNIT GPU_BLOCKS_A_UNIT
#endif

#include "widen.h"

#include "result.h"

#include "plan.h"

#include "parts.h"

#define RECORD_SPACE SHARED
#include "lower.h"

#include "doubles.h"

#if defined(OP_SUM) && defined(FAST)
#define KIND_FAST 1
#elif defined(OP_SUM) && defined(FLOATING)
#define KIND_FLOATS 1
#elif defined(OP_SUM)
#define KIND_INTEGERS 1
#elif defined(INDEXED)
#define KIND_INDEX 1
#else
#define KIND_ENDS 1
#endif

/* ---- Elements and cells ------------------------------------------------------------------------------ */

#if defined(TYPE_I64) || defined(TYPE_U64) || defined(TYPE_F64) || defined(KIND_INTEGERS)
typedef u64 cell;
#define CELL 8u
#elif defined(TYPE_I32) || defined(TYPE_U32) || defined(TYPE_F32)
typedef u32 cell;
#define CELL 4u
#else
typedef u16 cell;
#define CELL 2u
#endif

#define PACK       (16 / (u32)sizeof(element)) /* elements of a load */
#define CELLS      (16 / CELL)                 /* cells of a unit of 16 bytes */
#define RUN        (CELL == 8 ? 16u : 32u)     /* cells of a thread */
#define UNITS      (RUN / CELLS)
#define LOADS      (RUN / PACK)
#define SPREAD     (PACK / CELLS) /* units of a load */
#define TILE       (BLOCK * RUN)
#define WARPS      ((BLOCK + WARP - 1) / WARP)
#define ROWS_AHEAD 4 /* rows whose offsets a thread loads at once */
#define NOWHERE    (~0u)

typedef union pack {
    uint4 all;
    element e[16 / sizeof(element)];
} pack;

typedef union unit {
    uint4 all;
    cell c[CELLS];
} unit;

/* Where a unit lies: so that neither neighbouring units nor the same unit of neighbouring runs are in one bank. */
PURE u32 placed(u32 u) {
    return u ^ (u >> 3 & 7);
}

/* ---- What is known of some elements ----------------------------------------------------------------------- */

#if defined(KIND_FLOATS)
#define STATE                                                                                      \
    3 /* high and low of a pair; how many elements, and from bit 32 on whether something was lost */
#elif defined(KIND_INTEGERS) || defined(KIND_INDEX)
#define STATE 2 /* the sum, and the same; the rank, and the element's number */
#elif defined(KIND_ENDS) && CELL == 8
#define STATE 2 /* the greatest rank and the least */
#else
#define STATE 1 /* both in one word; a sum's bits */
#endif

typedef struct state {
    u64 w[STATE];
} state;

#define LOST ((u64)1 << 32)

/* How many elements a state is of, if it knows. */
#if defined(KIND_FLOATS) || defined(KIND_INTEGERS)
#define STATE_COUNT(s) ((u32)(s).w[STATE - 1])
#else
#define STATE_COUNT(s) 0
#endif

#if defined(KIND_INDEX) || defined(KIND_ENDS)

#if CELL == 8
typedef u64 rank_word;
#else
typedef u32 rank_word;
#endif
#define RANK_ALL (~(rank_word)0 >> (8 * sizeof(rank_word) - 8 * sizeof(element)))

#if defined(KIND_INDEX) && defined(OP_MIN)
#define FALLS 1
#else
#define FALLS 0
#endif

#if defined(FLOATING)
#define RANK_SIGN ((rank_word)SIGN)
#define RANK_BASE                                                                                  \
    ((((rank_word)INFINITE | RANK_SIGN) ^ (RANK_SIGN - 1)) & RANK_ALL) /* of -infinity */
#define RANK_MOST (((rank_word)INFINITE - RANK_BASE) & RANK_ALL)       /* of +infinity */
/* -infinity has rank 0, and NaNs have those above +infinity's. */
PURE rank_word rank_of(element e) {
    const rank_word b = (rank_word)e ^ (FALLS ? RANK_SIGN : 0);
    return ((b & RANK_SIGN ? b ^ (RANK_SIGN - 1) : b) - RANK_BASE) & RANK_ALL;
}
ORDER_UNUSED PURE u64 ranked(rank_word r) {
    const rank_word b = (r + RANK_BASE) & RANK_ALL;
    return b & RANK_SIGN ? b ^ (RANK_SIGN - 1) : b;
}
#define LOWEST ((element)((INFINITE | SIGN) ^ (FALLS ? SIGN : 0)))
#else
#if defined(SIGNED_TYPE)
#define RANK_FLIP (((rank_word)SIGN & RANK_ALL) ^ (FALLS ? RANK_ALL : 0))
#else
#define RANK_FLIP (FALLS ? RANK_ALL : (rank_word)0)
#endif
PURE rank_word rank_of(element e) {
    return ((rank_word)e & RANK_ALL) ^ RANK_FLIP;
}
ORDER_UNUSED PURE u64 ranked(rank_word r) {
    return r ^ RANK_FLIP;
}
#define LOWEST ((element)RANK_FLIP)
#endif

#endif

/* `add` adds the element in a cell of the tile; `finish` makes a state of what has been added; `merge` one of two, of
 * which the first comes before the second. */

#if defined(KIND_FLOATS)

/* Two pairs; `lost` where two doubles do not hold all. */
PURE state merge(state a, state b) {
    double e, f, g;
    const double high = two_sum(double_from(a.w[0]), double_from(b.w[0]), &e);
    const double both = two_sum(double_from(a.w[1]), double_from(b.w[1]), &f);
    const double low = two_sum(both, e, &g);
    const double sum = high + low;
    state s;
    s.w[0] = double_bits(low == 0 ? high : sum);
    s.w[1] = double_bits(low == 0 ? low : low - (sum - high));
    s.w[2] = ((a.w[2] | b.w[2]) & LOST) + (u32)a.w[2] + (u32)b.w[2];
    if (!(f == 0 && g == 0)) s.w[2] |= LOST;
    return s;
}

PURE state neutral_state(void) {
    const state s = {{double_bits(-0.0), 0, 0}};
    return s;
}

/* Adds without an error, or notes that there was one. */
PURE void add_wide(double x, state *s) {
    double e, f;
    const double high = two_sum(double_from(s->w[0]), x, &e);
    const double low = two_sum(double_from(s->w[1]), e, &f);
    s->w[0] = double_bits(high);
    s->w[1] = double_bits(low);
    if (!(f == 0)) s->w[2] |= LOST;
}

#define PADDING (-(real)0)
#if defined(TYPE_F64)
PURE element element_of(cell c) {
    return double_from(c);
}
#define cell_of(e) double_bits(e)
typedef state known;
PURE void begin(known *k, u32 at) {
    *k = neutral_state();
}
INLINED void add(known *k, element e, u32 at) {
    add_wide(e, k);
}
#else
#if defined(TYPE_F32)
#define element_of(c) float_from(c)
#define cell_of(e)    float_bits(e)
#undef PADDING
#define PADDING float_from(0x80000000u)
#else
#define element_of(c) (c)
#define cell_of(e)    (e)
#undef PADDING
#define PADDING SIGN
#endif
typedef struct known {
    double sum;
    u32 least, most; /* 2 |x| - 1 of those that are not 0, and |x|, both as bits */
} known;
PURE void begin(known *k, u32 at) {
    k->sum = -0.0;
    k->least = ~0u;
    k->most = 0;
}
INLINED void add(known *k, element e, u32 at) {
    const real x = widen(e);
    const u32 bits = float_bits(x), magnitude = bits & 0x7fffffffu, twice = 2 * bits - 1;
    k->sum += (double)x;
    k->least = twice < k->least ? twice : k->least;
    k->most = magnitude > k->most ? magnitude : k->most;
}
/* Whether the sum of at most 32 elements is exact: |x| < 2^(24 + their largest field) units, 32 of them less than
 * 2^(29 + that), and all are multiples of 2^(the smallest field) of these. Infinities and NaNs give what they should. */
PURE u32 is_sure(const known *k) {
    const u32 high = k->most >> 23, low = (k->least + 1) >> 24;
    return high <= low + 24 || high == 255;
}
#endif

#elif defined(KIND_FAST)

#define PADDING 0
#if defined(TYPE_F64)
#define element_of(c) double_from(c)
#define cell_of(e)    double_bits(e)
#define SUM_BITS(x)   double_bits(x)
#define SUM_FROM(w)   double_from(w)
#elif defined(TYPE_F32)
#define element_of(c) float_from(c)
#define cell_of(e)    float_bits(e)
#define SUM_BITS(x)   ((u64)float_bits(x))
#define SUM_FROM(w)   float_from((u32)(w))
#else
#define element_of(c) (c)
#define cell_of(e)    (e)
#define SUM_BITS(x)   ((u64)float_bits(x))
#define SUM_FROM(w)   float_from((u32)(w))
#endif
typedef real known;
PURE void begin(known *k, u32 at) {
    *k = 0;
}
INLINED void add(known *k, element e, u32 at) {
    *k += widen(e);
}
PURE state merge(state a, state b) {
    const state s = {{SUM_BITS(SUM_FROM(a.w[0]) + SUM_FROM(b.w[0]))}};
    return s;
}
PURE state neutral_state(void) {
    const state s = {{0}};
    return s;
}

#elif defined(KIND_INTEGERS)

#define PADDING       0
#define element_of(c) ((element)(c))
#define cell_of(e)    ((u64)(e))
typedef state known; /* all but the count */
PURE state neutral_state(void) {
    const state s = {{0, 0}};
    return s;
}
PURE void begin(known *k, u32 at) {
    *k = neutral_state();
}
/* a + b; LOST where that is no 64-bit number of the type. */
PURE u64 add_checked(u64 a, u64 b, u64 *flags) {
    const u64 sum = a + b;
#if defined(TYPE_U64)
    if (sum < a) *flags |= LOST;
#elif defined(TYPE_I64)
    if (((a ^ sum) & (b ^ sum)) >> 63) *flags |= LOST;
#endif
    return sum;
}
INLINED void add(known *k, element e, u32 at) {
    k->w[0] = add_checked(k->w[0], (u64)e, &k->w[1]);
}
PURE state merge(state a, state b) {
    state s;
    s.w[1] = ((a.w[1] | b.w[1]) & LOST) + (u32)a.w[1] + (u32)b.w[1];
    s.w[0] = add_checked(a.w[0], b.w[0], &s.w[1]);
    return s;
}

#elif defined(KIND_ENDS)

#define element_of(c) ((element)(c))
#define cell_of(e)    ((cell)(e))
typedef struct known {
    rank_word most, least;
} known;
PURE void begin(known *k, u32 at) {
    k->most = 0;
    k->least = ~(rank_word)0;
}
INLINED void add(known *k, element e, u32 at) {
    const rank_word r = rank_of(e);
    k->most = r > k->most ? r : k->most;
    k->least = r < k->least ? r : k->least;
}
PURE known known_of(state s) {
    known k;
#if CELL == 8
    k.most = s.w[0];
    k.least = s.w[1];
#else
    k.most = (u32)(s.w[0] >> 32);
    k.least = (u32)s.w[0];
#endif
    return k;
}
PURE state state_of(known k) {
    state s;
#if CELL == 8
    s.w[0] = k.most;
    s.w[1] = k.least;
#else
    s.w[0] = (u64)k.most << 32 | k.least;
#endif
    return s;
}
PURE state merge(state a, state b) {
    known k = known_of(a);
    const known l = known_of(b);
    k.most = l.most > k.most ? l.most : k.most;
    k.least = l.least < k.least ? l.least : k.least;
    return state_of(k);
}
PURE state neutral_state(void) {
    known k;
    begin(&k, 0);
    return state_of(k);
}

#else /* KIND_INDEX */

#define PADDING       LOWEST
#define element_of(c) ((element)(c))
#define cell_of(e)    ((cell)(e))
typedef struct known {
    rank_word best;
    u32 at;
} known;
PURE void begin(known *k, u32 at) {
    k->best = 0;
    k->at = at;
}
INLINED void add(known *k, element e, u32 at) {
    rank_word r = rank_of(e);
#if defined(FLOATING)
    r = r > RANK_MOST ? RANK_MOST + 1 : r; /* the first NaN is as good as any */
#endif
    k->at = r > k->best ? at : k->at;
    k->best = r > k->best ? r : k->best;
}
PURE state merge(state a, state b) {
    return b.w[0] > a.w[0] || (b.w[0] == a.w[0] && b.w[1] < a.w[1]) ? b : a;
}
PURE state neutral_state(void) {
    const state s = {{0, ~(u64)0}};
    return s;
}

#endif

/* The state of n elements that a thread knows; `start` is the number of the tile's first one. Sums of floats may have to
 * be added again (again()). */
PURE state finish(const known *k, u32 n, u64 start) {
#if defined(KIND_FLOATS) && defined(TYPE_F64)
    state s = *k;
    s.w[2] += n;
#elif defined(KIND_FLOATS)
    const state s = {{double_bits(k->sum), 0, n}};
#elif defined(KIND_FAST)
    const state s = {{SUM_BITS(*k)}};
#elif defined(KIND_INTEGERS)
    state s = *k;
    s.w[1] += n;
#elif defined(KIND_ENDS)
    const state s = state_of(*k);
#else
    const state s = {{k->best, start + k->at}};
#endif
    return s;
}

/* A result's bits as they fit a cell, of the v-th value. An index is that of the element's cell, or within the row. */
PURE u64 lower_state(const parts_plan *p, state s, u64 n, u32 v, u32 *lost) {
#if defined(KIND_FLOATS) || defined(KIND_INTEGERS) || defined(KIND_ENDS)
    const u32 op = p->lower.value[v] & 255;
#endif
#if defined(KIND_FLOATS) || defined(KIND_FAST) || (defined(KIND_ENDS) && defined(FLOATING))
    const u32 to = p->lower.value[v] >> 8;
#endif
#if defined(KIND_FLOATS)
    *lost |= (s.w[2] & LOST) != 0;
    const u64 zero = s.w[0] == double_bits(-0.0) ? float_sign(format_of(to)) : 0;
#if !defined(TYPE_F64)
    const double sum = double_from(s.w[0]);
    if (s.w[1] == 0 && op == SUM && to == F32)
        return float_bits(sum == sum ? (float)sum : float_from(0x7fc00000u));
#endif
    return doubles_value(double_from(s.w[0]), double_from(s.w[1]), n, op == MEAN, to, zero, lost);
#elif defined(KIND_FAST)
#if defined(TYPE_F64)
    const float_format mine = {52, 1023};
#else
    const float_format mine = {23, 127};
#endif
    return round_float(format_of(to), mine, s.w[0]);
#elif defined(KIND_INTEGERS)
    *lost |= (s.w[1] & LOST) != 0;
    if (op == SUM) return s.w[0];
#if defined(SIGNED_TYPE)
    const double sum = (double)(i64)s.w[0];
#else
    const double sum = (double)s.w[0];
#endif
    *lost |= n >> 53 != 0 || sum > 0x1p53 || sum < -0x1p53;
    return double_bits(sum / (double)n);
#elif defined(KIND_ENDS)
    const known k = known_of(s);
#if defined(FLOATING)
    if (k.most > RANK_MOST) return float_nan_bits(format_of(to));
#endif
    return ranked(op == MAX ? k.most : k.least);
#else
    return s.w[1];
#endif
}

/* The result of a row without elements. */
PURE u64 lower_nothing(const parts_plan *p, u32 v, u32 *lost) {
#if defined(KIND_INDEX)
    *lost = 1;
    return 0;
#else
    const u32 op = p->lower.value[v] & 255;
#if defined(KIND_ENDS) && defined(FLOATING)
    return float_infinity_bits(format_of(p->lower.value[v] >> 8), op == MAX);
#elif defined(KIND_ENDS)
    return ranked(op == MAX ? 0 : RANK_ALL);
#else
    return op == MEAN ? float_nan_bits(format_of(p->lower.value[v] >> 8)) : 0;
#endif
#endif
}

/* ---- Results ---------------------------------------------------------------------------------------------- */

__device__ void put(GLOBAL u8 *out, const parts_plan *p, u32 v, u64 row, u64 bits) {
    const u32 width = width_of(p->lower.value[v] >> 8);
    const i64 at = p->out_first + (i64)row * (p->keeps ? p->kept[0].out : 1);
    out += p->out[v];
    if (width == 64)
        ((GLOBAL u64 *)out)[at] = bits;
    else if (width == 32)
        ((GLOBAL u32 *)out)[at] = (u32)bits;
    else
        ((GLOBAL u16 *)out)[at] = (u16)bits;
}

#if defined(KIND_INDEX)
/* An element's number as an index. */
PURE u64 index_of(const parts_plan *p, u64 at, u64 start) {
    return p->absolute ? at : at - start;
}
#endif

/* Writes the results of a row from its state. */
__device__ void put_state(GLOBAL u64 *work, GLOBAL u8 *out, const parts_plan *p, u64 row, u64 start,
                          u64 n, state s) {
    u32 lost = 0;
    for (u32 v = 0; v < p->lower.values; v++) {
        u64 bits = lower_state(p, s, n, v, &lost);
#if defined(KIND_INDEX)
        bits = index_of(p, bits, start);
#endif
        if (!lost) put(out, p, v, row, bits);
    }
    if (lost) leave_row(work, p->left, row);
}

/* ---- A block -------------------------------------------------------------------------------------------------- */

/* What the threads of a block share. */
typedef struct block {
    unit tile[BLOCK * UNITS];
    u32 starts[BLOCK]; /* bit i: a row begins in cell i of the thread's run */
    u32 lost[BLOCK];   /* bit i: the result of the row that begins there could not be had */
    state carry
        [2]; /* what is known of the row that is open where the tile begins, and where it ends */
    state warp[WARPS]; /* the heads of each warp's runs up to the first in which a row begins ... */
    u32 begins[WARPS]; /* ... and whether there is one */
    u64 row;           /* the first row that begins behind the tile, ... */
    u64 next;          /* ... and the number of the element where it does */
    u32 last;          /* the cell in which the last row of the tile begins; NOWHERE: none does */
    u32 open;          /* it goes on behind the tile */
    u32 crosses;       /* a row goes on from one run to the next */
    u32 any_lost;
    u32 count[2];
} block;

PURE cell get_cell(const SHARED block *b, u32 c) {
    return b->tile[placed(c / CELLS)].c[c % CELLS];
}

__device__ void set_cell(SHARED block *b, u32 c, cell value) {
    b->tile[placed(c / CELLS)].c[c % CELLS] = value;
}

#if defined(KIND_FLOATS) && !defined(TYPE_F64)
/* The sum of cells [from, to) of the tile, with errors kept. */
__device__ state again(const SHARED block *b, u32 from, u32 to) {
    state s = neutral_state();
    UNROLL_NOT
    for (u32 c = from; c < to; c++)
        add_wide((double)widen(element_of(b->tile[placed(c / CELLS)].c[c % CELLS])), &s);
    s.w[2] += to - from;
    return s;
}
#endif

/* Puts the results of a row that begins in cell `from` and has n elements there. */
__device__ void put_cells(SHARED block *b, const parts_plan *p, state s, u32 from, u64 n, u64 start,
                          u32 *lost) {
    u32 bad = 0;
    for (u32 v = 0; v < p->lower.values; v++) {
        const u64 bits = lower_state(p, s, n, v, &bad);
#if defined(KIND_INDEX)
        set_cell(b, from, (cell)(bits - start));
#else
        if (v == 0 || n > 1) set_cell(b, from + v, (cell)bits);
#endif
    }
    if (bad) *lost |= 1u << (from % RUN);
}

/* Which tile a thread is in. */
typedef struct place {
    const GLOBAL element *
        x; /* a multiple of 16 bytes; here elements are counted from it, so that element number 0 ... */
    u64 skew;     /* ... is this one */
    u64 start;    /* the tile's first cell's element, */
    u64 from, to; /* and those of its elements that there are */
} place;

/* The thread's k-th load of the tile, of which only [from, to) is there. */
__device__ pack load_some(place at, u32 k) {
    const u64 w = at.start / PACK + k * BLOCK + threadIdx.x, first = w * PACK;
    pack t;
    if (first >= at.from && first + PACK <= at.to) {
        t.all = ((const GLOBAL uint4 *)at.x)[w];
    } else {
        UNROLL
        for (u32 i = 0; i < PACK; i++) {
            const u64 j = first + i;
#if defined(KIND_ENDS)
            t.e[i] = at.x[j < at.from ? at.from : j >= at.to ? at.to - 1 : j];
#else
            t.e[i] = j >= at.from && j < at.to ? at.x[j] : (element)PADDING;
#endif
        }
    }
    return t;
}

INLINED void load_tile(pack *t, place at) {
    if (at.from == at.start && at.to == at.start + TILE) {
        const GLOBAL uint4 *packs = (const GLOBAL uint4 *)(at.x + at.start) + threadIdx.x;
        UNROLL
        for (u32 i = 0; i < LOADS; i++)
            t[i].all = packs[i * BLOCK];
    } else {
        UNROLL
        for (u32 i = 0; i < LOADS; i++)
            t[i] = load_some(at, i);
    }
}

/* The thread's part of a tile within one row. *wide: the thread does not even try to add floats without their errors,
 * as this has failed before. */
INLINED state add_loads(place at, u32 *wide) {
    pack t[LOADS];
#if defined(KIND_FLOATS) && !defined(TYPE_F64)
    if (!*wide)
#endif
    {
        known k;
        load_tile(t, at);
        begin(&k, at.from > at.start + threadIdx.x * PACK ? (u32)(at.from - at.start)
                                                          : threadIdx.x * PACK);
        UNROLL
        for (u32 i = 0; i < LOADS; i++)
            UNROLL
        for (u32 e = 0; e < PACK; e++)
            add(&k, t[i].e[e], (i * BLOCK + threadIdx.x) * PACK + e);
#if defined(KIND_FLOATS) && !defined(TYPE_F64)
        *wide = !is_sure(&k);
        if (!*wide)
#endif
            return finish(&k, 0, at.start - at.skew);
    }
#if defined(KIND_FLOATS) && !defined(TYPE_F64)
    state s = neutral_state();
    load_tile(t, at);
    UNROLL
    for (u32 i = 0; i < LOADS; i++)
        UNROLL
    for (u32 e = 0; e < PACK; e++)
        add_wide((double)widen(t[i].e[e]), &s);
    return s;
#endif
}

/* Brings the tile into shared memory. */
INLINED void load_cells(SHARED block *b, place at) {
    pack t[LOADS];
    load_tile(t, at);
    UNROLL
    for (u32 i = 0; i < LOADS; i++)
        UNROLL
    for (u32 q = 0; q < SPREAD; q++) {
        unit u;
        UNROLL
        for (u32 c = 0; c < CELLS; c++)
            u.c[c] = (cell)cell_of(t[i].e[q * CELLS + c]);
        b->tile[placed((i * BLOCK + threadIdx.x) * SPREAD + q)].all = u.all;
    }
}

/* What a thread finds in its run. */
typedef struct found {
    state head; /* of the cells before the first in which a row begins */
    state tail; /* of those from the last such one on, ... */
    u32 last;   /* ... which this is */
} found;

/* Goes through the thread's run, and puts the results of the rows that lie in it. `starts`: where rows begin; the tile has
 * cells [lead, cells), and others before and behind that change nothing. */
INLINED void walk(SHARED block *b, const parts_plan *p, u64 start, u32 lead, u32 cells, u32 starts,
                  found *f, u32 *lost) {
    const u32 base = threadIdx.x * RUN;
    u32 from = base, own = 0;
    known k;
    begin(&k, base < lead ? lead : base);
    UNROLL_NOT
    for (u32 u = 0; u <= UNITS; u++) {
        const u32 bits = u == UNITS ? 1 : starts >> (u * CELLS) & ((1u << CELLS) - 1);
        const unit t = b->tile[placed(threadIdx.x * UNITS + (u < UNITS ? u : 0))];
        if (bits == 0) {
            UNROLL
            for (u32 e = 0; e < CELLS; e++)
                add(&k, element_of(t.c[e]), base + u * CELLS + e);
            continue;
        }
        UNROLL
        for (u32 e = 0; e < CELLS; e++) {
            const u32 here = base + u * CELLS + e;
            if (bits >> e & 1) {
                const u32 to = here < cells ? here : cells;
                state s = finish(&k, to - from, start);
#if defined(KIND_FLOATS) && !defined(TYPE_F64)
                if (!is_sure(&k)) s = again(b, from, to);
#endif
                if (u == UNITS) {
                    if (own)
                        f->tail = s;
                    else
                        f->head = s;
                    f->last = from;
                    break;
                }
                if (own)
                    put_cells(b, p, s, from, here - from, start, lost);
                else
                    f->head = s;
                from = here;
                own = 1;
                begin(&k, here);
            }
            if (u < UNITS) add(&k, element_of(t.c[e]), here);
        }
    }
}

INLINED state shuffle_down_state(state s, u32 delta, SHARED u64 *exchange) {
    state t;
    UNROLL
    for (u32 i = 0; i < STATE; i++)
        t.w[i] = __shfl_down_sync(FULL_WARP, s.w[i], delta);
    return t;
}

/* Behind each thread: of the runs that follow, up to and with the first in which a row begins, the heads. *first, of
 * thread 0: the same with its own. */
INLINED state heads_behind(SHARED block *b, state head, u32 begins, state *first,
                           SHARED u64 *exchange) {
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    state s = head;
    u32 over = begins;
    for (u32 delta = 1; delta < WARP; delta *= 2) {
        const state other = shuffle_down_state(s, delta, exchange);
        const u32 other_over = __shfl_down_sync(FULL_WARP, over, delta);
        if (lane + delta < WARP && !over) {
            s = merge(s, other);
            over = other_over;
        }
    }
    if (lane == 0) {
        b->warp[warp] = s;
        b->begins[warp] = over;
    }
    __syncthreads();
    state behind = shuffle_down_state(s, 1, exchange);
    u32 behind_over = __shfl_down_sync(FULL_WARP, over, 1);
    if (lane == WARP - 1) {
        behind = neutral_state();
        behind_over = 0;
    }
    for (u32 w = warp + 1; w < WARPS && !behind_over; w++) {
        behind = merge(behind, b->warp[w]);
        behind_over = b->begins[w];
    }
    *first = s;
    for (u32 w = 1; w < WARPS && threadIdx.x == 0 && !over; w++) {
        *first = merge(*first, b->warp[w]);
        over = b->begins[w];
    }
    return behind;
}

/* Thread 0 learns what all threads of the block know. */
INLINED state merge_all(SHARED block *b, state s, SHARED u64 *exchange) {
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (u32 delta = 1; delta < WARP; delta *= 2) {
        const state other = shuffle_down_state(s, delta, exchange);
        if (lane + delta < WARP) s = merge(s, other);
    }
    __syncthreads();
    if (lane == 0) b->warp[warp] = s;
    __syncthreads();
    for (u32 w = 1; w < WARPS && threadIdx.x == 0; w++)
        s = merge(s, b->warp[w]);
    return s;
}

/* ---- Rows of a tile --------------------------------------------------------------------------------------------- */

/* Finds the rows from `row` on that begin in the tile: sets their bits, and what the block shares of the last. */
__device__ void find_starts(SHARED block *b, const GLOBAL u8 *offsets, const parts_plan *p, u64 row,
                            u64 end, place at, u32 window) {
    for (u64 first = row;; first += window) {
        u64 s[ROWS_AHEAD], e[ROWS_AHEAD];
        UNROLL
        for (u32 i = 0; i < ROWS_AHEAD; i++) {
            const u32 k = i * BLOCK + threadIdx.x;
            const u32 is_there = k < window && first + k < end;
            s[i] = is_there ? row_start(offsets, p->rows, first + k) + at.skew : ~(u64)0;
            e[i] = is_there ? row_start(offsets, p->rows, first + k + 1) + at.skew : ~(u64)0;
        }
        const u64 behind =
            first + window < end ? row_start(offsets, p->rows, first + window) + at.skew : ~(u64)0;
        UNROLL
        for (u32 i = 0; i < ROWS_AHEAD; i++) {
            if (s[i] >= at.to) continue;
            const u32 c = (u32)(s[i] - at.start);
            const u64 r = first + i * BLOCK + threadIdx.x;
            atomicOr(&b->starts[c / RUN], 1u << (c % RUN));
            if (e[i] < at.to && r + 1 < end) continue;
            b->last = c;
            b->open = e[i] > at.to;
            b->row = r + 1;
            b->next = e[i];
        }
        if (behind >= at.to) break;
    }
}

/* Writes the results of rows [row, until) of the tile. */
__device__ void put_rows(const SHARED block *b, const GLOBAL u8 *offsets, GLOBAL u64 *work,
                         GLOBAL u8 *out, const parts_plan *p, u64 row, u64 until, place at) {
    for (u64 first = row; first < until; first += ROWS_AHEAD * BLOCK) {
        u64 s[ROWS_AHEAD], e[ROWS_AHEAD];
        UNROLL
        for (u32 i = 0; i < ROWS_AHEAD; i++) {
            const u64 r = first + i * BLOCK + threadIdx.x;
            s[i] = r < until ? row_start(offsets, p->rows, r) + at.skew : ~(u64)0;
            e[i] = r < until ? row_start(offsets, p->rows, r + 1) + at.skew : ~(u64)0;
        }
        UNROLL
        for (u32 i = 0; i < ROWS_AHEAD; i++) {
            const u64 r = first + i * BLOCK + threadIdx.x;
            if (r >= until || e[i] > at.to) continue;
            const u32 c = (u32)(s[i] - at.start);
            u32 lost = s[i] != e[i] && b->any_lost && b->lost[c / RUN] >> (c % RUN) & 1;
            for (u32 v = 0; v < p->lower.values && !lost; v++) {
                u64 bits;
                if (s[i] == e[i]) {
                    bits = lower_nothing(p, v, &lost);
                } else {
                    const u32 from = v > 0 && e[i] - s[i] > 1 ? c + v : c;
                    bits = get_cell(b, from);
#if defined(KIND_INDEX)
                    bits = index_of(p, at.start + bits - at.skew, s[i] - at.skew);
#endif
                }
                if (!lost) put(out, p, v, r, bits);
            }
            if (lost) leave_row(work, p->left, r);
        }
    }
}

/* ---- Pieces --------------------------------------------------------------------------------------------------------- */

/* Where a piece begins: at the element `at` of row `row`; `whole` where that row begins in it. */
typedef struct bound {
    u64 row, at;
    u32 whole;
} bound;

/* A search for the last row whose elements and ends of rows before it are at most u. */
typedef struct search {
    u64 u, low, high, step;
} search;

/* The thread's guess: whether such a row is `step` times so many rows on as its number says. */
__device__ u32 probe(const search *s, const GLOBAL u8 *offsets, part_rows r, u64 origin) {
    const u64 row = s->low + s->step * (threadIdx.x + 1);
    return row < s->high && row_start(offsets, r, row) - origin + row * PARTS_ROW_END <= s->u;
}

PURE void narrow(search *s, u32 count) {
    s->low += s->step * count;
    s->high = s->low + s->step < s->high ? s->low + s->step : s->high;
}

/* Finds the first row of the piece and that of the next one, at the same time; all threads of the block call it. */
__device__ void find_both(SHARED u32 *count, const GLOBAL u8 *offsets, part_rows r, search *a,
                          search *b) {
    const u64 origin = row_start(offsets, r, 0);
    while (a->high - a->low > 1 || b->high - b->low > 1) {
        a->step = (a->high - a->low + BLOCK - 1) / BLOCK;
        b->step = (b->high - b->low + BLOCK - 1) / BLOCK;
        if (threadIdx.x == 0) count[0] = count[1] = 0;
        const u32 in_a = probe(a, offsets, r, origin), in_b = probe(b, offsets, r, origin);
        __syncthreads();
        if (in_a) atomicAdd(&count[0], 1u);
        if (in_b) atomicAdd(&count[1], 1u);
        __syncthreads();
        narrow(a, count[0]);
        narrow(b, count[1]);
        __syncthreads();
    }
}

__device__ bound bound_of(const search *s, const GLOBAL u8 *offsets, part_rows r) {
    const u64 origin = row_start(offsets, r, 0), start = row_start(offsets, r, s->low);
    const u64 end = row_start(offsets, r, s->low + 1);
    const u64 into = s->u - (start - origin + s->low * PARTS_ROW_END);
    const bound b = {s->low, into < end - start ? start + into : end, into == 0};
    return b;
}

/* The bounds of a piece. */
__device__ void find_bounds(SHARED u32 *count, const GLOBAL u8 *offsets, const parts_plan *p,
                            u64 piece, bound *from, bound *until) {
    const u64 rows = p->rows.count, weight = p->rows.each + PARTS_ROW_END;
    search a = {piece * p->piece, 0, rows, 0}, b = {(piece + 1) * p->piece, 0, rows, 0};
    if (p->rows.kind == 0) {
        a.low = a.u / weight;
        b.low = b.u / weight < rows ? b.u / weight : rows - 1;
    } else {
        find_both(count, offsets, p->rows, &a, &b);
    }
    *from = bound_of(&a, offsets, p->rows);
    *until = bound_of(&b, offsets, p->rows);
    if (piece + 1 == p->pieces) {
        until->row = rows;
        until->at = row_start(offsets, p->rows, rows);
        until->whole = 1;
    }
}

/* The edges of a piece: the state of a row that began before it, and of one that ends behind it, with that row's number + 1,
 * or 0. */
#define EDGE (2 * STATE + 1)

__device__ u32 may_begin(const GLOBAL u64 *work) {
    return read_word(&work[PARTS_BAD]) == ~(u64)0;
}

/* How many elements a row has that begins in cell `c` and ends in the tile; of the ends, whether it has one or more. */
#if defined(KIND_ENDS)
#define COUNT_OF(s, c)                                                                             \
    ((c) + 1 < cells && !(b.starts[((c) + 1) / RUN] >> (((c) + 1) % RUN) & 1) ? 2u : 1u)
#else
#define COUNT_OF(s, c) STATE_COUNT(s)
#endif

KERNEL rows(const GLOBAL u8 *x, const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
            const parts_plan plan) {
    __shared__ block b;
    __shared__ u64 exchange[EXCHANGE];
    if (!may_begin(work)) return;
    bound begin_at, end_at;
    find_bounds(b.count, offsets, &plan, blockIdx.x, &begin_at, &end_at);

    place at;
    const GLOBAL element *first = (const GLOBAL element *)x + plan.x;
    const u64 skew = (u64)(size_t)first % 16 / sizeof(element);
    at.skew = skew;
    at.x = first - skew;
    u64 row = begin_at.row + !begin_at.whole; /* the next that begins */
    const u64 end_row = end_at.row + !end_at.whole, end = end_at.at + skew;
    u64 p = begin_at.at + skew;
    u64 next = row_start(offsets, plan.rows, row) + skew; /* where it does */
    u32 carried = !begin_at.whole && p < next, began = 0, side = 0;
    const u64 mean = plan.n / plan.rows.count;
    const u64 guess = TILE / (mean + 1) + TILE / (4 * mean + 4) + WARP;
    const u32 window = guess < ROWS_AHEAD * BLOCK ? (u32)guess : ROWS_AHEAD * BLOCK;
    GLOBAL u64 *edge = work + plan.edges + blockIdx.x * EDGE;
    if (threadIdx.x == 0) {
        b.carry[0] = neutral_state();
        edge[2 * STATE] = 0;
    }

    while (p < end || row < end_row) {
        at.start = p - p % PACK;
        at.from = p;
        at.to = at.start + TILE < end ? at.start + TILE : end;

        /* A row that begins here and fills the tile is open as those are that begin before it. */
        if (!carried && mean >= TILE && row < end_row) {
            const u64 after = row_start(offsets, plan.rows, row + 1) + skew;
            if (after >= at.start + TILE && at.to == at.start + TILE) {
                carried = began = 1;
                row++;
                next = after;
                if (threadIdx.x == 0) b.carry[side] = neutral_state();
            }
        }

        if (carried && next >= at.start + TILE && at.to == at.start + TILE) {
            state mine = neutral_state();
            u32 wide = 0;
            while (next >= at.start + TILE && end >= at.start + TILE) {
                at.to = at.start + TILE;
                mine = merge(mine, add_loads(at, &wide));
                at.from = at.start = at.to;
            }
            p = at.start;
            const state all = merge_all(&b, mine, exchange);
            if (threadIdx.x == 0) {
                const state s = merge(b.carry[side], all);
                b.carry[side] = s;
                if (next <= p) {
                    if (began) {
                        const u64 start = row_start(offsets, plan.rows, row - 1);
                        put_state(work, out, &plan, row - 1, start, next - skew - start, s);
                    } else {
                        for (u32 i = 0; i < STATE; i++)
                            edge[i] = s.w[i];
                    }
                }
            }
            if (next <= p) carried = 0;
            continue;
        }

        b.starts[threadIdx.x] = 0;
        b.lost[threadIdx.x] = 0;
        if (threadIdx.x == 0) {
            b.row = row;
            b.next = next;
            b.last = NOWHERE;
            b.open = b.crosses = b.any_lost = 0;
        }
        __syncthreads();
        if (at.from < at.to) load_cells(&b, at);
        find_starts(&b, offsets, &plan, row, end_row, at, window);
        __syncthreads();

        const u32 starts = b.starts[threadIdx.x], mine = threadIdx.x * RUN;
        const u32 cells = (u32)(at.to - at.start);
        found f;
        f.head = f.tail = neutral_state();
        f.last = NOWHERE;
        u32 lost = 0;
        if (at.from < at.to && mine < cells) {
            walk(&b, &plan, at.start - skew, (u32)(at.from - at.start), cells, starts, &f, &lost);
            if (mine + RUN < cells && !(b.starts[threadIdx.x + 1] & 1)) atomicOr(&b.crosses, 1u);
        }
        __syncthreads();

        state behind = neutral_state(), whole = f.head;
        if (b.crosses) behind = heads_behind(&b, f.head, starts != 0, &whole, exchange);
        const u32 closes = carried && next <= at.to, opens = b.open;
        if (starts != 0) {
            const state s = merge(f.tail, behind);
            if (opens && f.last == b.last)
                b.carry[!side] = s;
            else
                put_cells(&b, &plan, s, f.last, COUNT_OF(s, f.last), at.start - skew, &lost);
        }
        if (lost) {
            b.lost[threadIdx.x] = lost;
            atomicOr(&b.any_lost, 1u);
        }
        if (threadIdx.x == 0 && carried) {
            const state s = merge(b.carry[side], whole);
            if (!closes) {
                b.carry[!side] = s;
            } else if (began) {
                const u64 start = row_start(offsets, plan.rows, row - 1);
                put_state(work, out, &plan, row - 1, start, next - skew - start, s);
            } else {
                for (u32 i = 0; i < STATE; i++)
                    edge[i] = s.w[i];
            }
        }
        __syncthreads();

        const u64 until = at.to == end ? end_row : b.row;
        const u64 after = b.next;
        put_rows(&b, offsets, work, out, &plan, row, until, at);
        if (opens) began = 1;
        carried = opens || (carried && !closes);
        side = !side;
        row = until;
        next = after;
        p = at.to;
        __syncthreads();
    }

    if (threadIdx.x == 0 && carried) {
        if (began) edge[2 * STATE] = row;
        for (u32 i = 0; i < STATE; i++)
            edge[(began ? STATE : 0) + i] = b.carry[side].w[i];
    }
}

/* Rows that were cut: block b's begin in pieces b, b + grid ... and end in later ones. */
KERNEL join_rows(const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
                 const parts_plan plan) {
    __shared__ block b;
    __shared__ u64 exchange[EXCHANGE];
    if (!may_begin(work)) return;
    const u64 origin = row_start(offsets, plan.rows, 0);
    for (u64 piece = blockIdx.x; piece + 1 < plan.pieces; piece += gridDim.x) {
        const GLOBAL u64 *edge = work + plan.edges + piece * EDGE;
        if (edge[2 * STATE] == 0) continue;
        const u64 row = edge[2 * STATE] - 1, start = row_start(offsets, plan.rows, row);
        const u64 n = row_start(offsets, plan.rows, row + 1) - start;
        const u64 last = (start - origin + row * PARTS_ROW_END + n - 1) / plan.piece;
        state s = neutral_state();
        for (u64 i = piece + threadIdx.x; i <= last; i += BLOCK) {
            const GLOBAL u64 *from = work + plan.edges + i * EDGE + (i == piece ? STATE : 0);
            state other;
            for (u32 k = 0; k < STATE; k++)
                other.w[k] = from[k];
            s = merge(s, other);
        }
        s = merge_all(&b, s, exchange);
        if (threadIdx.x == 0) put_state(work, out, &plan, row, start, n, s);
        __syncthreads();
    }
}
