/*
 * vectors - arrays reduced by segment or by id along an axis: vectors of neighbouring columns (vectors.h).
 *
 * A team of neighbouring threads goes through the rows of its piece, which lie one behind another or where an order
 * says, a tile of some rows at a time. Each thread keeps states of its columns in registers (column_states.h). Where a
 * part ends, its states are lowered. Teams need nothing of each other. The teams of a warp only keep step, as lanes that
 * take turns would wait for memory one after another.
 *
 * While a thread adds a tile, the next rows are copied to its ring buffer in shared memory (copies.h), and it reads the
 * numbers of the rows after those. Threads of single columns have no ring: they begin all loads of a tile at once, and
 * other warps hide the latency, so such a tile has many rows.
 *
 * wide: a thread has VECTOR neighbouring columns. narrow: one. join_vectors: merges the states of parts that were cut,
 * and lowers them; it returns at once if none was. Parts of few edges are joined by a warp each, others by blocks.
 *
 * Results that a state does not determine are marked, and left to parts.cu, and so are indices of no elements.
 */
#define BLOCKS_A_UNIT GPU_VECTORS_BLOCKS_A_UNIT
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

#include "copies.h"

#include "store.h"

#include "vectors.h"

#define GATHERS
#define VARIES
#define STRANDS(p) 1u
#define FLIP(p)    ((key)(p)->flip)
/* Rows of a tile: 128 bytes of a thread where a state has few registers. */
#if defined(FOLD_MOMENTS) || defined(FOLD_SQUARES)
#define TILE_ROWS 4u
#else
#define TILE_ROWS 8u
#endif
#include "column_states.h"

BEGINS_EARLY

/* Whether a condition holds for some lane of the warp; where lanes need not keep step, for this thread. */
#if HAS_BALLOT
#define SOME_LANE(condition) __any_sync(FULL_WARP, condition)
#else
#define SOME_LANE(condition) (condition)
#endif

/* Returns the row's number for each place, or NULL where a place is the row's number. */
__device__ const GLOBAL u32 *order_of(const GLOBAL u64 *work, const vectors_plan *p) {
    return (const GLOBAL u32 *)(p->order ? work + p->order : 0);
}

/* Returns how many of `rows` places from a place on are before `end`. */
PURE u32 places_before(u32 end, u32 place, u32 rows) {
    const u32 left = place < end ? end - place : 0;
    return left < rows ? left : rows;
}

/* Sets row_at[] to the numbers of `many` > 0 rows, from a place on, and of the last of these for each of `rows` behind it. */
INLINED void number_rows(const GLOBAL u64 *work, const vectors_plan *p, u32 place, u32 many,
                         u32 rows, u32 *row_at) {
    UNROLL
    for (u32 k = 0; k < rows; k++)
        row_at[k] = place + (k < many ? k : many - 1);
    if (p->order) UNROLL
    for (u32 k = 0; k < rows; k++)
        row_at[k] = order_of(work, p)[row_at[k]];
}

/* Loads the units of the rows with these numbers, `there` of them, and the first one again for each other row. `at` is the
 * unit of row 0; `packed` as in load_unit(). */
INLINED void load_tile(const GLOBAL element *at, const vectors_plan *p, u32 vector, u32 rows,
                       u32 packed, const u32 *row_at, u32 there, tile_part *t) {
    const GLOBAL u8 *first = (const GLOBAL u8 *)at;
    UNROLL
    for (u32 k = 0; k < rows; k++) {
        const u32 row = k < there ? row_at[k] : row_at[0];
        load_unit((const GLOBAL element *)(first + (u64)row * p->row_bytes), vector, packed, t, k);
    }
}

/* A thread's ring buffer: units of rows that are being copied or have arrived. The row at place k has slot k % slots. With
 * 0 slots the thread loads each tile when it needs it: for units of a few bytes that is faster than to copy them. */
typedef struct unit_ring {
    SHARED u8 *room;  /* the thread's own unit of slot 0 */
    u32 slots, bytes; /* `bytes`: of a unit */
} unit_ring;

PURE unit_ring ring_of(SHARED uint4 *room, u32 vector, u32 slots) {
    const u32 bytes = vector * (u32)sizeof(element);
    const unit_ring r = {(SHARED u8 *)room + threadIdx.x * bytes, slots, bytes};
    return r;
}

PURE SHARED u8 *slot_of(const unit_ring *r, u32 place) {
    return r->room + place % r->slots * (BLOCK * r->bytes);
}

/* Begins to copy rows to the ring: row row_at[k] to the slot of place first + k, for k < many <= rows. `at` is the unit of
 * row 0; `packed` as in load_unit(). */
INLINED void bring_rows(const GLOBAL element *at, const vectors_plan *p, const unit_ring *r,
                        u32 vector, u32 rows, u32 packed, const u32 *row_at, u32 first, u32 many) {
    const GLOBAL u8 *base = (const GLOBAL u8 *)at;
    const u32 size = (u32)sizeof(element);
    if (packed) UNROLL
    for (u32 k = 0; k < rows; k++) {
        if (k < many)
            begin_copy(slot_of(r, first + k), base + (u64)row_at[k] * p->row_bytes, vector * size);
    }
    else UNROLL for (u32 i = 0; i < rows * vector; i++) if (i / vector < many)
        begin_copy(slot_of(r, first + i / vector) + i % vector * size,
                   base + (u64)row_at[i / vector] * p->row_bytes + i % vector * size, size);
    end_copies(); /* an empty group counts, too: take_rows() waits for all but the last */
}

/* Waits for a tile's rows and loads them from the ring: `there` of them from a place on, and the first one again for each
 * other row. With room for two tiles, the last group of copies is of rows behind this tile, so it may still be under way:
 * rows of the tile + rows of the last group <= 2 * rows <= slots. */
INLINED void take_rows(const unit_ring *r, u32 vector, u32 rows, u32 place, u32 there,
                       tile_part *t) {
    if (r->slots >= 2 * rows)
        wait_for_copies(1);
    else
        wait_for_copies(0);
    UNROLL
    for (u32 k = 0; k < rows; k++)
        read_unit(slot_of(r, k < there ? place + k : place), vector, t, k);
}

/* Returns where rows from a place on are read again. */
INLINED row_source source_of(const GLOBAL element *at, u32 place, const GLOBAL u64 *work,
                             const vectors_plan *p) {
    const GLOBAL u32 *order = order_of(work, p);
    const i64 step = p->row_bytes / (u32)sizeof(element);
    const row_source from = {order ? at : at + (i64)place * step, step,
                             order ? order + place : order};
    return from;
}

/* ---- Pieces ----------------------------------------------------------------------------------------------- */

/* A piece: parts [part, end), and places [from, to). The first part begins at `start`, before `from` if it was cut. */
typedef struct piece_place {
    u32 part, end, start, from, to;
} piece_place;

/* What a team folds: a piece of a slab. Its threads' columns begin at `column`. */
typedef struct team_task {
    u32 piece, slab, column;
} team_task;

/* Returns the weight at which a part begins that starts at a place. */
PURE u64 weight_at(u64 start, u64 origin, u64 part) {
    return start - origin + part * VECTORS_PART;
}

__device__ piece_place piece_at(const GLOBAL u8 *offsets, const vectors_plan *p, u32 piece) {
    const u64 begin = (u64)piece * p->piece, end = begin + p->piece;
    const u64 origin = row_start(offsets, p->parts, 0);
    u64 part = row_of(offsets, p->parts, 1, VECTORS_PART, begin);
    u64 start = row_start(offsets, p->parts, part), from = start;
    const u64 weight = weight_at(start, origin, part);
    if (weight < begin) {
        const u64 stop = row_start(offsets, p->parts, part + 1), length = stop - start;
        from = start + (begin - weight);
        if (length <= p->whole || begin - weight >= length) {
            part++;
            start = from = stop;
        }
    }
    piece_place place = {(u32)part, (u32)part, (u32)start, (u32)from, (u32)from};
    /* The last part that begins before the end. */
    u64 low = part, high = part + p->piece / VECTORS_PART + 1;
    if (high > p->parts.count) high = p->parts.count;
    if (part >= p->parts.count || (from == start && weight_at(start, origin, part) >= end))
        return place;
    while (high - low > 1) {
        const u64 middle = low + (high - low) / 2;
        if (weight_at(row_start(offsets, p->parts, middle), origin, middle) < end)
            low = middle;
        else
            high = middle;
    }
    const u64 last = row_start(offsets, p->parts, low),
              stop = row_start(offsets, p->parts, low + 1);
    const u64 at = weight_at(last, origin, low);
    place.end = (u32)low + 1;
    place.to = (u32)(stop - last > p->whole && at + (stop - last) > end ? last + (end - at) : stop);
    return place;
}

/* ---- Values ----------------------------------------------------------------------------------------------- */

/* Writes the values of neighbouring columns of a part of n rows, which begins at the place `start`. A column whose value
 * is lost is left to parts.cu. */
INLINED void lower_vectors(GLOBAL u64 *work, GLOBAL u8 *out, const vectors_plan *p, u32 part,
                           u32 start, u32 n, u32 slab, u32 column, u32 vector, const state *a) {
    const column_values *values = &p->values;
    const i64 place = p->out_first + (i64)slab * p->out_slab + (i64)part * p->out_part +
                      (i64)column * p->out_column;
    u32 lost[VECTOR];
    UNROLL
    for (u32 v = 0; v < vector; v++)
        lost[v] = 0;
    for (u32 i = 0; i < values->count; i++) {
        const u32 op = values->value[i] & 255, to = values->value[i] >> 8, width = width_of(to);
        u64 bits[VECTOR];
        UNROLL
        for (u32 v = 0; v < vector; v++) {
            bits[v] = n == 0 ? value_of_none(values, op, to, &lost[v])
                             : state_value(&a[v], values, n, 0, op, to, &lost[v]);
#if defined(INDEXED)
            if (p->absolute && n > 0 && (op == ARGMIN || op == ARGMAX))
                bits[v] = p->order ? ((const GLOBAL u32 *)(work + p->order))[start + (u32)bits[v]]
                                   : start + bits[v];
#endif
        }
        store_unit(out + values->out[i] + place * (i64)(width / 8), width, p->out_column, vector,
                   bits);
    }
    UNROLL
    for (u32 v = 0; v < vector; v++)
        if (lost[v]) {
            TALLY_PATH_UNLESS("left to fold", NULL, NEVER_LOST);
            leave_row(work, p->left, ((u64)part * p->slabs + slab) * p->columns + column + v);
        } else
            TALLY_PATH("put");
}

/* Returns the word of an edge's k-th words of all slabs and columns. */
PURE u64 edge_word(const vectors_plan *p, u64 edge, u32 k) {
    return p->edges + (k * 2 * (u64)p->pieces + edge) * p->slabs * p->columns;
}

/* ---- A team's piece ------------------------------------------------------------------------------------------- */

/* Leaves the states of a part that was cut on the piece's edge: the second one if the part `is_begun` in the piece, which
 * its head then says. */
INLINED void leave_vectors(GLOBAL u64 *work, const vectors_plan *p, team_task task, u32 part,
                           u32 is_begun, u32 vector, const state *a) {
    const u64 nth = (u64)task.slab * p->columns + task.column;
    UNROLL
    for (u32 k = 0; k < STATE_WORDS; k++)
        UNROLL
    for (u32 v = 0; v < vector; v++)
        work[edge_word(p, 2 * (u64)task.piece + is_begun, k) + nth + v] = state_word(&a[v], k);
    if (is_begun && nth == 0) {
        ((GLOBAL u32 *)(work + p->heads))[task.piece] = part;
        write_word(&work[p->is_cut], p->left);
    }
}

/* A part that a thread is at: its number, the place where it begins, the next place, and where it and the one after it
 * end. */
typedef struct part_place {
    u32 part, start, row, stop, next_stop;
    u32 is_begun; /* it begins in this piece */
} part_place;

/* Goes on to the next part of the piece. */
INLINED void next_part(part_place *at, const GLOBAL u8 *offsets, const vectors_plan *p, u32 end) {
    at->part++;
    at->start = at->row = at->stop;
    at->stop = at->next_stop;
    at->is_begun = 1;
    if (at->part + 1 < end) at->next_stop = (u32)row_start(offsets, p->parts, at->part + 2);
}

/* Goes on to the next tile: takes the `there` rows from a place on, begins to copy `next` rows, which row_at[] has, in their
 * stead, and reads the numbers of `later` rows behind these. */
INLINED void go_on(const GLOBAL element *at, const GLOBAL u64 *work, const vectors_plan *p,
                   const unit_ring *ring, u32 vector, u32 rows, u32 packed, u32 place, u32 there,
                   u32 next, u32 later, u32 *row_at, tile_part *t) {
    if (ring->slots > 0) {
        take_rows(ring, vector, rows, place, there, t);
        bring_rows(at, p, ring, vector, rows, packed, row_at, place + ring->slots, next);
    } else
        load_tile(at, p, vector, rows, packed, row_at, there, t);
    if (later > 0) number_rows(work, p, place + ring->slots + there, later, rows, row_at);
}

/* Rows of the tiles that go on without conditions if they are full: of smaller ones the second text costs more than it
 * saves, and larger ones have no ring. */
#define UNASKED_ROWS 8u

/* Adds the rows of a piece to the states of a thread's columns, part by part, and lowers these or leaves them on an edge.
 * All lanes of a warp call this; those with nothing to do have no part. There is one place where rows are added: it is
 * long, and compilers take long for each copy of it. */
INLINED void fold_piece(const GLOBAL element *x, const GLOBAL u8 *offsets, GLOBAL u64 *work,
                        GLOBAL u8 *out, const vectors_plan *p, team_task task, piece_place piece,
                        u32 vector, u32 rows, const unit_ring *ring) {
    const GLOBAL element *at = x + (p->x + (i64)task.slab * p->slab_step + (i64)task.column);
    const u32 packed = vector == 1 || (size_t)at % sizeof(unit) == 0;
    const u32 to = piece.to, parts_end = piece.end;
    part_place now = {piece.part, piece.start, piece.from,
                      piece.from, piece.from,  piece.from == piece.start};
    u32 row_at[ELEMENTS];
    tile_part t;
    adding k;
    state a[VECTOR], whole[VECTOR];
    begin_columns(&k, vector);
    if (now.part < parts_end) {
        now.stop = (u32)row_start(offsets, p->parts, now.part + 1);
        now.next_stop = (u32)row_start(offsets, p->parts,
                                       now.part + 1 < parts_end ? now.part + 2 : now.part + 1);
        for (u32 i = 0; i <= ring->slots; i += rows) {
            const u32 many = places_before(to, now.row + i, rows);
            if (many > 0) number_rows(work, p, now.row + i, many, rows, row_at);
            if (i < ring->slots)
                bring_rows(at, p, ring, vector, rows, packed, row_at, now.row + i, many);
        }
    }
    UNROLL_NOT
    while (SOME_LANE(now.part < parts_end)) {
        u32 end = now.stop < to ? now.stop : to;
        if (now.part < parts_end && now.row == end) {
            end_columns(&k, whole, vector, source_of(at, now.row - untested_rows(&k), work, p), a);
            if (now.is_begun && end == now.stop) {
                TALLY_PATH("a part that is whole");
                lower_vectors(work, out, p, now.part, now.start, now.stop - now.start, task.slab,
                              task.column, vector, a);
            } else {
                TALLY_PATH("a part that is cut");
                leave_vectors(work, p, task, now.part, now.is_begun, vector, a);
            }
            next_part(&now, offsets, p, parts_end);
            end = now.stop < to ? now.stop : to;
            begin_columns(&k, vector);
        }
        const u32 is_there = now.part < parts_end && now.row < end;
        const u32 left = end - now.row, there = left < rows ? left : rows;
        const u32 next = now.row + ring->slots;
        const u32 is_full = packed && there == rows && next + 2 * rows <= to;
        const u32 is_ragged = rows != UNASKED_ROWS || SOME_LANE(is_there && !is_full);
        if (is_there) {
            if (!is_ragged)
                go_on(at, work, p, ring, vector, rows, 1, now.row, rows, rows, rows, row_at, &t);
            else {
                go_on(at, work, p, ring, vector, rows, packed, now.row, there,
                      places_before(to, next, there), places_before(to, next + there, rows), row_at,
                      &t);
                if (there < rows) pad_rows(&t, vector, rows, there);
            }
            const tile_rows of = {source_of(at, now.row, work, p), now.row - now.start, STRANDS(p),
                                  p->values.flip};
            add_columns(&k, whole, &t, vector, rows, there, of);
            now.row += there;
            if (are_to_be_tested(&k))
                test_columns(&k, whole, vector,
                             source_of(at, now.row - untested_rows(&k), work, p));
        }
    }
}

/* Has each team take its pieces, one after another. */
INLINED void fold_pieces(const GLOBAL element *x, const GLOBAL u8 *offsets, GLOBAL u64 *work,
                         GLOBAL u8 *out, const vectors_plan *p, u32 vector, u32 rows,
                         const unit_ring *ring) {
    wait_for_earlier();
    const u32 teams = BLOCK / p->width, team = threadIdx.x / p->width;
    const u64 tasks = (u64)p->pieces * p->tiles * p->slabs;
    if (read_word(&work[PARTS_BAD]) != ~(u64)0) return;
    for (u64 first = (u64)blockIdx.x * teams; first < tasks; first += (u64)gridDim.x * teams) {
        const u64 nth = first + team, rest = nth / p->tiles;
        const u32 tile = (u32)(nth % p->tiles);
        const team_task task = {(u32)(rest % p->pieces), (u32)(rest / p->pieces),
                                (tile * p->width + threadIdx.x % p->width) * vector};
        piece_place piece = {0, 0, 0, 0, 0};
        if (team < teams && nth < tasks && task.column < p->columns) {
            piece = piece_at(offsets, p, task.piece);
            if (task.slab == 0 && task.column == 0)
                ((GLOBAL u32 *)(work + p->heads))[task.piece] = NO_PART;
        }
        fold_piece(x, offsets, work, out, p, task, piece, vector, rows, ring);
    }
}

/* Slots of a ring of units of several columns: the most that fit the ring's share of shared memory, of which static
 * arrays have 48 KB. Blocks that are too large even for 8 slots, and machines without such copies, load each tile. */
#define RING_MOST  (32u << 10) /* bytes */
#define FIT(slots) ((slots)*BLOCK * (u32)sizeof(unit) <= RING_MOST)
#define SLOTS      (!COPIES_AHEAD ? 0u : FIT(16u) ? 16u : FIT(8u) ? 8u : 0u)
#define RING_PACKS (SLOTS ? SLOTS * BLOCK * (u32)sizeof(unit) / 16u : 1u)

KERNEL wide(const GLOBAL element *x, const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
            const vectors_plan plan) {
    __shared__ uint4 room[RING_PACKS];
    const unit_ring ring = ring_of(room, VECTOR, SLOTS);
    fold_pieces(x, offsets, work, out, &plan, VECTOR, TILE_ROWS, &ring);
}

KERNEL narrow(const GLOBAL element *x, const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
              const vectors_plan plan) {
    const unit_ring ring = {0, 0, sizeof(element)};
    fold_pieces(x, offsets, work, out, &plan, 1, NARROW_ROWS, &ring);
}

/* ---- Parts that were cut ----------------------------------------------------------------------------------- */

#define JOIN_TEAM                                                                                  \
    (BLOCK < WARP ? BLOCK : WARP) /* threads that join a part of few edges, a column each */
#define JOIN_LEAST (BLOCK < 8 ? BLOCK : 8u) /* columns that a block joins at a time, at least */

/* A part that was cut: its edges are the second one of a piece and the first ones of those behind it, `count` in all. */
typedef struct cut_part {
    u32 part, start, length;
    u64 piece, count;
} cut_part;

/* Returns the part that begins in a piece and is cut; of no edges if there is none. */
__device__ cut_part cut_part_of(const GLOBAL u8 *offsets, const GLOBAL u64 *work,
                                const vectors_plan *p, u64 piece) {
    cut_part c = {piece < p->pieces ? ((const GLOBAL u32 *)(work + p->heads))[piece] : NO_PART, 0,
                  0, piece, 0};
    if (c.part == NO_PART) return c;
    const u64 origin = row_start(offsets, p->parts, 0),
              start = row_start(offsets, p->parts, c.part);
    c.start = (u32)start;
    c.length = (u32)(row_start(offsets, p->parts, (u64)c.part + 1) - start);
    c.count = (weight_at(start, origin, c.part) + c.length - 1) / p->piece - piece + 1;
    return c;
}

/* Returns edges `first`, first + step, ... of a part, merged, of a slab's column, which is the nth of all. */
INLINED state merge_edges(const GLOBAL u64 *work, const vectors_plan *p, const cut_part *c, u64 nth,
                          u32 first, u32 step) {
    state a = none();
    for (u64 k = first; k < c->count; k += JOINED * step) {
        u64 words[JOINED][STATE_WORDS];
        UNROLL
        for (u32 j = 0; j < JOINED; j++) {
            const u64 one = k + j * step < c->count ? k + j * step : k;
            const u64 edge = 2 * (c->piece + one) + (one == 0);
            UNROLL
            for (u32 w = 0; w < STATE_WORDS; w++)
                words[j][w] = work[edge_word(p, edge, w) + nth];
        }
        UNROLL
        for (u32 j = 0; j < JOINED; j++) {
            const state b = state_of_words(words[j]);
            if (k + j * step < c->count) a = merge(a, b);
        }
    }
    return a;
}

INLINED void lower_column(GLOBAL u64 *work, GLOBAL u8 *out, const vectors_plan *p,
                          const cut_part *c, u64 nth, const state *a) {
    lower_vectors(work, out, p, c->part, c->start, c->length, (u32)(nth / p->columns),
                  (u32)(nth % p->columns), 1, a);
}

/* Each team joins the part of few edges that begins in a piece of its own, a share of its columns. */
INLINED void join_few(const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
                      const vectors_plan *p, u64 task) {
    const u64 vectors = (u64)p->slabs * p->columns;
    const u64 piece = task / p->shares * (BLOCK / JOIN_TEAM) + threadIdx.x / JOIN_TEAM;
    const cut_part c = cut_part_of(offsets, work, p, piece);
    if (c.count > JOIN_FEW) return;
    if (c.count > 0) TALLY_PATH("few edges");
    for (u64 nth = task % p->shares * JOIN_TEAM + threadIdx.x % JOIN_TEAM;
         c.count > 0 && nth < vectors; nth += (u64)p->shares * JOIN_TEAM) {
        const state a = merge_edges(work, p, &c, nth, 0, 1);
        lower_column(work, out, p, &c, nth, &a);
    }
}

/* Returns how many columns a block joins at a time: fewer where `count` edges are more than a thread should merge. */
PURE u32 join_width(u64 count) {
    u32 width = BLOCK;
    while (width > JOIN_LEAST && BLOCK / width * JOINED < count)
        width /= 2;
    return width;
}

/* A block joins the parts of many edges that begin in one of BLOCK pieces, a share of their columns. */
INLINED void join_many(const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
                       const vectors_plan *p, u64 task, SHARED u32 *list, SHARED u64 *scratch) {
    const u64 vectors = (u64)p->slabs * p->columns, first = task / p->slices * BLOCK;
    __syncthreads(); /* the list has been read */
    if (threadIdx.x == 0) list[BLOCK] = 0;
    __syncthreads();
    if (cut_part_of(offsets, work, p, first + threadIdx.x).count > JOIN_FEW)
        list[atomicAdd(&list[BLOCK], 1u)] = threadIdx.x;
    __syncthreads();
    for (u32 i = 0; i < list[BLOCK]; i++) {
        const cut_part c = cut_part_of(offsets, work, p, first + list[i]);
        TALLY_PATH("many edges");
        const u32 width = join_width(c.count), strands = BLOCK / width;
        const u32 strand = threadIdx.x / width;
        for (u64 begin = task % p->slices * width; begin < vectors;
             begin += (u64)p->slices * width) {
            const u64 nth = begin + threadIdx.x % width;
            const u32 is_there = nth < vectors && strand < strands;
            state a[VECTOR];
            a[0] = is_there ? merge_edges(work, p, &c, nth, strand, strands) : none();
            reduce_strands(width, strands, strand, 1, 1, a, scratch);
            if (is_there && strand == 0) lower_column(work, out, p, &c, nth, a);
            __syncthreads(); /* `scratch` has been read */
        }
    }
}

/* Merges the edges of the parts that were cut, and lowers them. */
KERNEL join_vectors(const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
                    const vectors_plan plan) {
    __shared__ u64 scratch[STATE_WORDS * BLOCK];
    __shared__ u32 list[BLOCK + 1];
    wait_for_earlier();
    const u32 works =
        read_word(&work[PARTS_BAD]) == ~(u64)0 && read_word(&work[plan.is_cut]) == plan.left;
    const u64 few = works ? JOIN_FEW_TASKS(plan.pieces, BLOCK, plan.shares) : 0;
    const u64 many = works ? JOIN_MANY_TASKS(plan.pieces, BLOCK, plan.slices) : 0;
    for (u64 task = blockIdx.x; task < few + many; task += gridDim.x) {
        if (task < few)
            join_few(offsets, work, out, &plan, task);
        else
            join_many(offsets, work, out, &plan, task - few, list, scratch);
    }
}
