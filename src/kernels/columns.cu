/*
 * columns - arrays reduced along an outer dimension: many results side by side (columns.h).
 *
 * A thread reads its columns row by row, as neighbouring threads do theirs, and keeps a state for each in registers.
 * A block merges its strands' states through shared memory. Where rows are cut into chunks, `join` merges the chunks'
 * states as the other kernels add elements. column_states.h has the states.
 *
 * wide: each thread has VECTOR neighbouring columns, which it loads at once. narrow: each thread has one column.
 *
 * A result is lost if two doubles do not hold its sum, if its bound does not decide the rounding, or if its integer
 * does not fit the type. Lost results are marked, and left to parts.cu. But the sum of few short floats is added
 * again by a warp (schedule/lost_sums.h), and no launch of parts.cu follows.
 *
 * A thread's columns are added up side by side and without branches: additions of doubles have a latency of 8 cycles
 * and more, and each waits for the one before it in its column. The loop's values must stay in registers: a load from
 * local memory would be waited for together with the tile that is on its way.
 */
#if defined(FOLD_MOMENTS) || (defined(FOLD_SQUARES) && !defined(IN_FLOATS) && !defined(NEAR))
#define BLOCKS_A_UNIT GPU_PRODUCT_BLOCKS_A_UNIT
#else
#define BLOCKS_A_UNIT GPU_COLUMN_BLOCKS_A_UNIT
#endif
#include "tuning.h"

#include "operators.h"

#include "half.h"

#include "kernel.h"

#include "widen.h"

#include "result.h"

#define RECORD_SPACE SHARED
#include "lower.h"

#include "parts.h"

#include "doubles.h"

#include "columns.h"

#include "copies.h"

#include "store.h"

BEGINS_EARLY

#define STRANDS(p) ((p)->strands)
#define FLIP(p)    ((key)(p)->flip)
#define TILE_ROWS  WIDE_ROWS
#include "column_states.h"

/* ---- A thread's part of a tile ------------------------------------------------------------------------ */

/* Begins to copy a thread's part of a tile: `rows` rows of `bytes` bytes, `step` elements apart, to every BLOCK *
 * bytes bytes from `to` on. */
INLINED void begin_tile(SHARED u8 *to, const GLOBAL element *from, i64 step, u32 rows, u32 bytes) {
    UNROLL
    for (u32 k = 0; k < rows; k++)
        begin_copy(to + k * BLOCK * bytes, from + (i64)k * step, bytes);
}

/* Loads `there` rows of a tile from `at` on; `packed` as in load_unit(). For each of the other rows it loads the row
 * at `at` again, so that all loads start without a branch. */
INLINED void load_rows(const GLOBAL element *at, i64 step, u32 vector, u32 rows, u32 there,
                       u32 packed, tile_part *t) {
    UNROLL
    for (u32 k = 0; k < rows; k++)
        load_unit(k < there ? at + (i64)k * step : at, vector, packed, t, k);
    pad_rows(t, vector, rows, there);
}

/* A thread's ring of STAGES tiles: one is added while the others are on their way. */
typedef struct tile_ring {
    SHARED u8 *room;
    const GLOBAL element *ahead; /* the next tile to copy; `coming` tiles are left */
    u32 coming, to,
        from; /* rows of the ring: the next copied tile goes to `to`, the next tile to add is at `from` */
} tile_ring;

/* Begins to copy the next tile to the ring, if one is left. Ends a group of copies even if none is, since
 * wait_for_copies() counts groups. */
INLINED void bring_tile(tile_ring *r, i64 step, u32 rows, u32 bytes) {
    if (r->coming > 0) {
        begin_tile(r->room + r->to * BLOCK * bytes, r->ahead, step, rows, bytes);
        r->ahead += (i64)rows * step;
        r->coming--;
    }
    end_copies();
    r->to = r->to + rows < STAGES * rows ? r->to + rows : 0;
}

/* Begins to copy one more tile to the ring. Then waits for the ring's oldest tile, and loads it to *t. */
INLINED void next_tile(tile_ring *r, i64 step, u32 vector, u32 rows, u32 bytes, tile_part *t) {
    bring_tile(r, step, rows, bytes);
    wait_for_copies(STAGES - 1);
    UNROLL
    for (u32 k = 0; k < rows; k++)
        read_unit(r->room + (r->from + k) * BLOCK * bytes, vector, t, k);
    r->from = r->from + rows < STAGES * rows ? r->from + rows : 0;
}

/* Makes a[] the states of rows first, first + strands, ... below `last` of the columns that stand at `at` in row
 * `first`. `ring` has room for STAGES tiles of each thread. Adding a tile of exact sums or squares is long code, so
 * it stands in one place only: compilers take long for each copy of it. Short code (ADDS_BRIEFLY) has a loop of its
 * own, where each instruction counts. */
INLINED void add_rows(const GLOBAL element *at, const columns_plan *p, u32 vector, u32 rows,
                      u32 first, u32 last, SHARED u8 *ring, state *a) {
    const u32 packed = (size_t)at % sizeof(unit) == 0, bytes = vector * (u32)sizeof(element);
    const i64 step = (i64)p->strands * p->row_step, tile = (i64)rows * step;
    u32 left = (last - first + p->strands - 1) / p->strands; /* of the thread's rows */
    /* Tiles that go through the ring. load_rows() loads all other rows, with a test for each. */
    u32 tiles = left > rows && (packed || vector == 1) ? left / rows : 0;
    tile_ring r = {ring + threadIdx.x * bytes, at, tiles, 0, 0};
    const row_source from = row_source_of(at, step);
    tile_rows of = {from, first, p->strands, p->values.flip};
    tile_part t;
    adding k;
    state whole[VECTOR];
    begin_columns(&k, vector);
    UNROLL
    for (u32 i = 0; i + 1 < STAGES; i++)
        bring_tile(&r, step, rows, bytes);
    if (ADDS_BRIEFLY) {
        left -= tiles * rows;
        of.from.at += (i64)tiles * tile;
        UNROLL_NOT
        for (; tiles > 0; tiles--) {
            next_tile(&r, step, vector, rows, bytes, &t);
            add_columns(&k, whole, &t, vector, rows, rows, of);
            of.first += rows * p->strands;
        }
    }
    UNROLL_NOT
    while (left > 0) {
        u32 turn = tiles > TILES_A_TEST ? TILES_A_TEST : tiles > 0 ? tiles : 1;
        u32 there = rows;
        UNROLL_NOT
        for (; turn > 0; turn--) {
            if (tiles > 0) {
                next_tile(&r, step, vector, rows, bytes, &t);
                tiles--;
            } else {
                there = left < rows ? left : rows;
                load_rows(of.from.at, step, vector, rows, there, packed, &t);
            }
            left -= there;
            add_columns(&k, whole, &t, vector, rows, there, of);
            of.first += rows * p->strands;
        }
        if (left == 0) break;
        const i64 count = TILES_A_TEST > 1 ? untested_rows(&k) : there;
        test_columns(&k, whole, vector, of.from);
        of.from.at += count * step;
    }
    end_columns(&k, whole, vector, of.from, a);
}

/* ---- A block's tile ------------------------------------------------------------------------------------ */

/* A thread's place in a tile: its unit of columns, its strand of rows and its slab (columns.h). */
typedef struct tile_place {
    u32 unit, strand, slab;
} tile_place;

PURE tile_place find_tile_place(const columns_plan *p) {
    const u32 t = threadIdx.x;
    const tile_place s = {t % p->width, t / p->width % p->strands, t / p->width / p->strands};
    return s;
}

/* Returns the number of a column's result. */
PURE i64 result_place(const columns_plan *p, u64 slab, u64 column) {
    return p->out_first + (i64)slab * p->out_slab + (i64)column * p->out_column;
}

#if defined(FOLD_SUM) && TESTS_EXPONENTS && !LONG && !defined(IN_FLOATS) && HAS_SHUFFLES
#define ADDS_AGAIN 1 /* columns that kernels can add again: as in schedule/row_results.h */
#include "schedule/warps.h"

#include "schedule/lost_sums.h"

/* Adds lost columns again, and writes their values. If bit k of a lane's `lost` is set, column + k of `slab` is lost.
 * All lanes of the warp call this. */
INLINED void add_lost_columns(const GLOBAL element *x, GLOBAL u8 *out, const columns_plan *p,
                              u64 slab, u64 column, u32 lost) {
    const column_values *values = &p->values;
    if (!p->leaves_none) return; /* then a block may have no whole warp to vote */
    UNROLL_NOT
    for (u32 votes = warp_votes(lost != 0); votes != 0;) {
        const u32 source = lowest_bit(votes),
                  nth = lowest_bit(__shfl_sync(FULL_WARP, lost, source));
        const u64 own_slab = __shfl_sync(FULL_WARP, slab, source);
        const u64 own = __shfl_sync(FULL_WARP, column, source) + nth;
        const lost_sum sum = add_again(x + (p->x + (i64)own_slab * p->slab_step + (i64)own),
                                       p->row_step, (u32)p->rows);
        for (u32 i = 0; i < values->count; i++) {
            const u32 op = values->value[i] & 255, to = values->value[i] >> 8, width = width_of(to);
            const u64 bits = lost_sum_value(sum, op == MEAN ? (u32)p->rows : 1, to);
            if (threadIdx.x % WARP == source)
                store_unit(out + values->out[i] + result_place(p, own_slab, own) * (i64)(width / 8),
                           width, p->out_column, 1, &bits);
        }
        if (threadIdx.x % WARP == source) lost &= lost - 1;
        votes = warp_votes(lost != 0);
    }
}
#else
#define ADDS_AGAIN 0
INLINED void add_lost_columns(const GLOBAL element *x, GLOBAL u8 *out, const columns_plan *p,
                              u64 slab, u64 column, u32 lost) {}
#endif

/* Writes the values of `vector` neighbouring columns, from `column` of `slab` on. Leaves a column whose values are
 * lost to parts.cu. If no launch of parts.cu follows (leaves_none), returns a word with a bit set for each lost
 * column instead, for which the caller has to call add_lost_columns(). */
INLINED u32 lower_states(GLOBAL u64 *work, GLOBAL u8 *out, const columns_plan *p, u64 slab,
                         u64 column, u32 vector, const state *a) {
    const i64 place = result_place(p, slab, column);
    u32 lost[VECTOR], again = 0;
    u64 n[VECTOR];
    UNROLL
    for (u32 v = 0; v < vector; v++) {
        lost[v] = 0;
        n[v] = IS_FILLED(&p->values) && p->counts != 0
                   ? count_of_row(work, p->counts, p->wide_counts, slab * p->columns + column + v)
                   : p->rows;
    }
    const column_values *values = &p->values;
    for (u32 i = 0; i < values->count; i++) {
        const u32 op = values->value[i] & 255, to = values->value[i] >> 8, width = width_of(to);
        u64 bits[VECTOR];
        UNROLL
        for (u32 v = 0; v < vector; v++) {
            const u32 is_none = IS_FILLED(values) && n[v] == 0;
            if (IS_FILLED(values) && !is_none) lost[v] |= may_be_filled(&a[v]);
            bits[v] = is_none ? value_of_none(values, op, to, &lost[v])
                              : state_value(&a[v], values, n[v], 0, op, to, &lost[v]);
        }
        store_unit(out + values->out[i] + place * (i64)(width / 8), width, p->out_column, vector,
                   bits);
    }
    UNROLL
    for (u32 v = 0; v < vector; v++)
        if (lost[v]) {
            TALLY_PATH_UNLESS("lost", NULL, NEVER_LOST);
            if (ADDS_AGAIN && p->leaves_none)
                again |= 1u << v;
            else
                leave_row(work, p->left, slab * p->columns + column + v);
        } else
            TALLY_PATH("put");
    return again;
}

/* Folds the block's tiles, one after another. */
INLINED void fold_tiles(const GLOBAL element *x, GLOBAL u64 *work, GLOBAL u8 *out,
                        const columns_plan *p, u32 vector, u32 rows, SHARED u64 *scratch) {
    const tile_place s = find_tile_place(p);
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
            a[v] = none();
        if (p->strands > 1) __syncthreads(); /* `scratch` has been read */
        if (is_there && first < last)
            add_rows(x + (p->x + (i64)slab * p->slab_step + (i64)column + (i64)first * p->row_step),
                     p, vector, rows, first, last, (SHARED u8 *)scratch, a);
        reduce_strands(p->width, p->strands, s.strand, s.slab < p->depth, vector, a, scratch);
        const u32 has_states = is_there && s.strand == 0;
        if (p->chunks == 1) {
            const u32 lost = has_states ? lower_states(work, out, p, slab, column, vector, a) : 0;
            add_lost_columns(x, out, p, slab, column, lost);
            continue;
        }
        if (!has_states) continue;
        const u64 results = p->slabs * p->columns;
        GLOBAL u64 *to = work + p->states + chunk * results + slab * p->columns + column;
        UNROLL
        for (u32 v = 0; v < vector; v++)
            UNROLL
        for (u32 k = 0; k < STATE_WORDS; k++)
            to[(u64)k * p->chunks * results + v] = state_word(&a[v], k);
    }
}

/* A block's shared memory: a ring of tiles while it adds, then the scratch of reduce_strands(). */
#define RING_BYTES(vector, rows) (STAGES * (rows) * (vector) * (u32)sizeof(element))
#define SCRATCH_BYTES(vector)    (STATE_WORDS * 8u * REDUCED_AT_ONCE(vector))
#define COLUMN_ROOM(vector, rows)                                                                  \
    ((RING_BYTES(vector, rows) > SCRATCH_BYTES(vector) ? RING_BYTES(vector, rows)                  \
                                                       : SCRATCH_BYTES(vector)) *                  \
     BLOCK / 8)

KERNEL wide(const GLOBAL element *x, GLOBAL u64 *work, GLOBAL u8 *out, const columns_plan plan) {
    __shared__ uint4 space[COLUMN_ROOM(VECTOR, WIDE_ROWS) / 2];
    wait_for_earlier();
    fold_tiles(x, work, out, &plan, VECTOR, WIDE_ROWS, (SHARED u64 *)space);
}

KERNEL narrow(const GLOBAL element *x, GLOBAL u64 *work, GLOBAL u8 *out, const columns_plan plan) {
    __shared__ u64 space[COLUMN_ROOM(1, NARROW_ROWS)];
    wait_for_earlier();
    fold_tiles(x, work, out, &plan, 1, NARROW_ROWS, space);
}

/* Merges the chunks' states of each result, and lowers them. A tile has results side by side, and
 * chunks one below another. */
KERNEL join(const GLOBAL element *x, GLOBAL u64 *work, GLOBAL u8 *out, const columns_plan plan) {
    __shared__ u64 scratch[STATE_WORDS * BLOCK];
    const u64 results = plan.slabs * plan.columns;
    const tile_place s = find_tile_place(&plan);
    wait_for_earlier();
    for (u32 tile = blockIdx.x; tile < plan.tiles; tile += gridDim.x) {
        const u64 nth = (u64)tile * plan.width + s.unit;
        const u32 is_there = s.slab == 0 && nth < results;
        state a[VECTOR];
        a[0] = none();
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
                if (c + i * plan.strands < plan.chunks) a[0] = merge(a[0], b);
            }
        }
        reduce_strands(plan.width, plan.strands, s.strand, s.slab < plan.depth, 1, a, scratch);
        const u64 slab = nth / plan.columns, column = nth % plan.columns;
        const u32 lost =
            is_there && s.strand == 0 ? lower_states(work, out, &plan, slab, column, 1, a) : 0;
        add_lost_columns(x, out, &plan, slab, column, lost);
    }
}

/* ---- Few rows ------------------------------------------------------------------------------------------ */

/* The kernel `few` folds columns of at most WIDE_ROWS elements, a unit for each thread. Sums of f64 are faster by
 * `wide`. */
#define HAS_FEW (!TESTS_LATER)
#if HAS_FEW
#if !defined(FOLD_MOMENTS) && !defined(FOLD_SQUARES) && !defined(FOLD_SUM)
#undef BLOCKS_A_UNIT
#define BLOCKS_A_UNIT GPU_BLOCKS_A_UNIT
#endif
KERNEL few(const GLOBAL element *x, GLOBAL u64 *work, GLOBAL u8 *out, const columns_plan plan) {
    const u64 column = ((u64)blockIdx.x * BLOCK + threadIdx.x) * VECTOR;
    const u32 count = (u32)plan.rows;
    wait_for_earlier();
    u32 lost = 0;
    if (column < plan.columns) {
        const GLOBAL element *at = x + (plan.x + (i64)column);
        const u32 packed = (size_t)at % sizeof(unit) == 0;
        tile_part t;
        adding k;
        state a[VECTOR], whole[VECTOR];
        const row_source from = row_source_of(at, plan.row_step);
        const tile_rows of = {from, 0, plan.strands, plan.values.flip};
        load_rows(at, plan.row_step, VECTOR, WIDE_ROWS, count, packed, &t);
        begin_columns(&k, VECTOR);
        add_columns(&k, whole, &t, VECTOR, WIDE_ROWS, count, of);
        end_columns(&k, whole, VECTOR, of.from, a);
        lost = lower_states(work, out, &plan, 0, column, VECTOR, a);
    }
    add_lost_columns(x, out, &plan, 0, column, lost);
}
#endif
