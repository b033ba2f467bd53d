/*
 * vectors - arrays reduced by segment or by id along an axis: vectors of neighbouring columns (vectors.h).
 *
 * A team of neighbouring threads goes through the rows of its piece, which lie one behind another or where an order
 * says, a tile of some rows at a time. Each thread keeps states of its columns in registers (column_states.h). Where a
 * part ends, its states are lowered. Teams are independent of each other. Only the teams of one warp keep step, as
 * lanes that diverge would wait for memory one after another.
 *
 * While a thread adds a tile, the rows of the next two are copied to its ring buffer in shared memory (copies.h), and
 * the numbers of the rows behind those to a ring buffer of the team. Threads of single columns have no rings: they
 * begin all loads of a tile at once, and other warps hide the latency, so such a tile has many rows.
 *
 * wide: each thread has VECTOR neighbouring columns. narrow: each thread has one column. join_vectors: merges the
 * states of parts that were cut, and lowers them; it returns at once if none was. Parts of few edges are joined by a
 * warp each, others by blocks.
 *
 * Results that a state does not determine are marked, and left to parts.cu, and so are indices of no elements.
 */
#ifndef BLOCK
#define BLOCK GPU_VECTORS_BLOCK
#endif
#define BLOCKS_A_UNIT (BLOCK < GPU_VECTORS_THREADS_A_UNIT ? GPU_VECTORS_THREADS_A_UNIT / BLOCK : 1)
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

/* These kernels do not begin early (kernel.h): `wide` often has fewer blocks than there is room for, and while a launch before it
 * still holds most multiprocessors, they would crowd on a few. (H200, 10^6 x 32 in segments: 74 to 68 us.) */

/* SOME_LANE() is 1 if a condition holds for some lane of the warp; on machines whose lanes need not keep step, for
 * this thread. */
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

/* Sets row_at[0..rows) to the numbers of the rows at `place` and the places behind it. There are `many` > 0 rows; the
 * last one's number is repeated for the rest. */
INLINED void number_rows(const GLOBAL u64 *work, const vectors_plan *p, u32 place, u32 many,
                         u32 rows, u32 *row_at) {
    UNROLL
    for (u32 k = 0; k < rows; k++)
        row_at[k] = place + (k < many ? k : many - 1);
    if (p->order) UNROLL
    for (u32 k = 0; k < rows; k++)
        row_at[k] = order_of(work, p)[row_at[k]];
}

/* Loads the units of the `there` rows with the numbers row_at[], and the first one again for each other row of the
 * tile. `at` is the unit of row 0; `packed` as in load_unit(). */
INLINED void load_tile(const GLOBAL element *at, const vectors_plan *p, u32 vector, u32 rows,
                       u32 packed, const u32 *row_at, u32 there, tile_part *t) {
    const GLOBAL u8 *first = (const GLOBAL u8 *)at;
    UNROLL
    for (u32 k = 0; k < rows; k++) {
        if (NO_ROWS_FROM(k, rows, there)) break;
        const u32 row = k < there ? row_at[k] : row_at[0];
        load_unit((const GLOBAL element *)(first + (u64)row * p->row_bytes), vector, packed, t, k);
    }
}

/* Slots of a thread's ring of units: room for two tiles, with the numbers of twice as many rows. More slots are no
 * faster. There are none in blocks whose rings would be larger than RING_MOST, and on machines without such copies:
 * threads then load each tile when they need it. */
#define RING_MOST  (48u << 10) /* bytes of static shared memory */
#define SLOTS_MOST (2 * TILE_ROWS)
#define SLOTS                                                                                      \
    (COPIES_AHEAD && SLOTS_MOST * BLOCK * ((u32)sizeof(unit) + 8u) <= RING_MOST ? SLOTS_MOST : 0u)

/* A thread's ring buffer of units of rows that are being copied or have arrived; and its team's ring buffer of the
 * numbers of the rows behind those. The row at place k has slot k % slots; its number has slot k % (2 * slots). With
 * 0 slots the thread loads each tile when it needs it: for units of a few bytes that is faster than to copy them. */
typedef struct unit_ring {
    SHARED u8 *room;     /* the thread's own unit of slot 0 */
    SHARED u32 *numbers; /* the number of slot 0 */
    u32 slots, bytes;    /* `bytes`: of a unit */
} unit_ring;

PURE SHARED u8 *slot_of(const unit_ring *r, u32 place) {
    return r->room + place % r->slots * (BLOCK * r->bytes);
}
PURE SHARED u32 *number_slot(const unit_ring *r, u32 place) {
    return r->numbers + place % (2 * r->slots) * BLOCK; /* rings of teams lie side by side */
}

/* Begins to copy the rows at places place + k to their slots, for first <= k < last and k < many. row_at[k] is the
 * row's number, `at` the unit of row 0; `packed` as in load_unit(). */
INLINED void bring_rows(const GLOBAL element *at, const vectors_plan *p, const unit_ring *r,
                        u32 vector, u32 packed, const u32 *row_at, u32 place, u32 first, u32 last,
                        u32 many) {
    const GLOBAL u8 *base = (const GLOBAL u8 *)at;
    const u32 size = (u32)sizeof(element);
    if (packed) UNROLL
    for (u32 k = first; k < last; k++) {
        if (k < many)
            begin_copy(slot_of(r, place + k), base + (u64)row_at[k] * p->row_bytes, vector * size);
    }
    else UNROLL for (u32 i = first * vector; i < last * vector; i++) if (i / vector < many)
        begin_copy(slot_of(r, place + i / vector) + i % vector * size,
                   base + (u64)row_at[i / vector] * p->row_bytes + i % vector * size, size);
}

/* Begins to copy the numbers of `many` rows from a place on to the ring, as far as they are before `to`. */
INLINED void bring_numbers(const GLOBAL u64 *work, const vectors_plan *p, const unit_ring *r,
                           u32 place, u32 many, u32 to) {
    if (!p->order) return;
    many = places_before(to, place, many);
    UNROLL_NOT
    for (u32 k = threadIdx.x % p->readers; k < many; k += p->readers)
        begin_copy((SHARED u8 *)number_slot(r, place + k), order_of(work, p) + place + k, 4);
}

/* Begins to copy a piece's first rows to all slots, and the numbers of as many rows behind them. Each tile is a group
 * of copies. The numbers of the first rows are loaded together, as one load takes as long as all. */
INLINED void fill_ring(const GLOBAL element *at, const GLOBAL u64 *work, const vectors_plan *p,
                       const unit_ring *r, u32 vector, u32 rows, u32 packed, u32 place, u32 to) {
    u32 row_at[SLOTS_MOST];
    const u32 all = places_before(to, place, SLOTS_MOST);
    if (all > 0) number_rows(work, p, place, all, SLOTS_MOST, row_at);
    UNROLL
    for (u32 i = 0; i < SLOTS_MOST; i += rows) {
        bring_rows(at, p, r, vector, packed, row_at + i, place + i, 0, rows,
                   places_before(to, place + i, rows));
        bring_numbers(work, p, r, place + i + r->slots, rows, to);
        end_copies();
    }
}

/* Waits for a tile's rows, and for the numbers of the rows that will be copied to the tile's slots. All lanes of a
 * warp call this. Each tile ends a group of copies: of rows that come two tiles behind it, and of numbers of rows
 * that come four tiles behind it. So the tile needs nothing of the last group. */
INLINED void wait_for_rows(const vectors_plan *p) {
    wait_for_copies(1);
#if COPIES_AHEAD
    if (p->readers > 1) sync_warp(); /* the team sees its numbers */
#endif
}

/* Loads rows `first` to last - 1 of a tile from the ring. The tile has `there` rows, from `place` on; the last of
 * them is loaded again for each other row. Then begins to copy rows to the slots of these rows, as far as their
 * numbers in the tile are below `next`. */
INLINED void take_rows(const GLOBAL element *at, const vectors_plan *p, const unit_ring *r,
                       u32 vector, u32 packed, u32 place, u32 there, u32 next, u32 first, u32 last,
                       tile_part *t) {
    const u32 end = place + there;
    u32 row_at[ELEMENTS];
    UNROLL
    for (u32 k = first; k < last; k++) {
        const u32 row = place + k < end ? place + k : end - 1;
        read_unit(slot_of(r, row), vector, t, k);
        row_at[k] = place + r->slots + k;
    }
    if (p->order) UNROLL
    for (u32 k = first; k < last; k++)
        if (k < next) row_at[k] = *number_slot(r, row_at[k]);
    bring_rows(at, p, r, vector, packed, row_at, place + r->slots, first, last, next);
}

/* Returns the source from which rows from `place` on can be read again. */
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
    u64 part = row_between(offsets, p->parts, origin, 1, VECTORS_PART, begin, 0, p->parts.count);
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
    if (part >= p->parts.count || (from == start && weight_at(start, origin, part) >= end))
        return place;
    const u64 most = part + p->piece / VECTORS_PART + 1; /* each part weighs VECTORS_PART or more */
    const u64 nth = row_between(offsets, p->parts, origin, 1, VECTORS_PART, end - 1, part,
                                most < p->parts.count ? most : p->parts.count);
    const u64 last = row_start(offsets, p->parts, nth),
              stop = row_start(offsets, p->parts, nth + 1);
    const u64 at = weight_at(last, origin, nth);
    place.end = (u32)nth + 1;
    place.to = (u32)(stop - last > p->whole && at + (stop - last) > end ? last + (end - at) : stop);
    return place;
}

/* ---- Values ----------------------------------------------------------------------------------------------- */

#if defined(HAS_PLAIN_VALUES)
/* Writes the sums or means of neighbouring columns of a part of n rows to `out`, if nothing else is wanted, in the
 * elements' type, and plain sums determine them for all columns. Returns whether it has written them. Parts of few
 * rows need this fast path: the code for all values takes longer than the additions. */
INLINED u32 put_plain_values(GLOBAL u8 *out, const vectors_plan *p, i64 place, u32 n, u32 vector,
                             const state *a) {
    const u32 wanted = p->values.value[0], op = wanted & 255, mean = op == MEAN;
    u64 bits[VECTOR];
    u32 all = n > 0;
    if (p->values.count != 1 || wanted >> 8 != ELEMENT_TYPE || !(mean || op == SUM)) return 0;
    UNROLL
    for (u32 v = 0; v < vector; v++)
        all &= plain_value(&a[v], n, mean, &bits[v]);
    if (!all) return 0;
    TALLY_PATH("plain values");
    store_unit(out + p->values.out[0] + place * (i64)sizeof(element), ELEMENT_WIDTH, p->out_column,
               vector, bits);
    return 1;
}
#else
INLINED u32 put_plain_values(GLOBAL u8 *out, const vectors_plan *p, i64 place, u32 n, u32 vector,
                             const state *a) {
    return 0;
}
#endif

/* Writes the values of neighbouring columns of a part of n rows, which begins at the place `start`. A column whose value
 * is lost is left to parts.cu. */
INLINED void lower_vectors(GLOBAL u64 *work, GLOBAL u8 *out, const vectors_plan *p, u32 part,
                           u32 start, u32 n, u32 slab, u32 column, u32 vector, const state *a) {
    const column_values *values = &p->values;
    const i64 place = p->out_first + (i64)slab * p->out_slab + (i64)part * p->out_part +
                      (i64)column * p->out_column;
    u32 lost[VECTOR];
    if (put_plain_values(out, p, place, n, vector, a)) return;
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
    u32 some = 0;
    UNROLL
    for (u32 v = 0; v < vector; v++)
        some |= lost[v];
    if (!some) {
        TALLY_PATH("put");
        return;
    }
    UNROLL
    for (u32 v = 0; v < vector; v++)
        if (lost[v]) {
            TALLY_PATH_UNLESS("left to fold", NULL, NEVER_LOST);
            leave_row(work, p->left, ((u64)part * p->slabs + slab) * p->columns + column + v);
        }
}

/* Returns the word of the workspace where word k of an edge's states begins; those of all slabs and columns lie side
 * by side. */
PURE u64 edge_word(const vectors_plan *p, u64 edge, u32 k) {
    return p->edges + (k * 2 * (u64)p->pieces + edge) * p->slabs * p->columns;
}

/* ---- A team's piece ------------------------------------------------------------------------------------------- */

/* A part that was cut. It has `count` edges: the second one of the piece in which it begins, and the first ones of
 * the pieces behind that. */
typedef union cut_part {
    struct {
        u32 part, start, length, count;
    } of;
    uint4 bits;
} cut_part;

/* Leaves the states of a part that was cut on an edge of the piece: the second one if the part begins in the piece
 * (`is_begun`). The piece's head then says which part that is. */
INLINED void leave_vectors(const GLOBAL u8 *offsets, GLOBAL u64 *work, const vectors_plan *p,
                           team_task task, u32 part, u32 start, u32 stop, u32 is_begun, u32 vector,
                           const state *a) {
    const u64 nth = (u64)task.slab * p->columns + task.column;
    UNROLL
    for (u32 k = 0; k < STATE_WORDS; k++)
        UNROLL
    for (u32 v = 0; v < vector; v++)
        work[edge_word(p, 2 * (u64)task.piece + is_begun, k) + nth + v] = state_word(&a[v], k);
    if (is_begun && nth == 0) {
        const u64 weight = weight_at(start, row_start(offsets, p->parts, 0), part);
        cut_part c;
        c.of.part = part;
        c.of.start = start;
        c.of.length = stop - start;
        c.of.count = (u32)((weight + c.of.length - 1) / p->piece - task.piece) + 1;
        ((GLOBAL cut_part *)(work + p->heads))[task.piece].bits = c.bits;
        write_word(&work[p->is_cut + (c.of.count > JOIN_FEW)], p->left);
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

/* Loads the `there` rows of a tile from `place` on. With a ring, begins to copy `next` rows to it, and the numbers of
 * rows behind those, as far as they are before `to`. Without a ring, row_at[] has the numbers of the tile's rows, and
 * then gets those of the next rows. */
INLINED void load_rows(const GLOBAL element *at, const GLOBAL u64 *work, const vectors_plan *p,
                       const unit_ring *ring, u32 vector, u32 rows, u32 packed, u32 place,
                       u32 there, u32 next, u32 to, u32 *row_at, tile_part *t) {
    const u32 part = rows >= 8 ? rows / 2 : rows; /* a tile often ends with its first half */
    if (ring->slots > 0) {
        take_rows(at, p, ring, vector, packed, place, there, next, 0, part, t);
        if (there > part) take_rows(at, p, ring, vector, packed, place, there, next, part, rows, t);
        bring_numbers(work, p, ring, place + 2 * ring->slots, there, to);
        end_copies(); /* an empty group counts, too */
    } else {
        const u32 later = places_before(to, place + there, rows);
        load_tile(at, p, vector, rows, packed, row_at, there, t);
        if (later > 0) number_rows(work, p, place + there, later, rows, row_at);
    }
}

/* Full tiles of UNASKED_ROWS rows have code of their own, without conditions. For smaller tiles a second copy of the
 * code costs more than it saves, and larger ones have no ring. */
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
        if (ring->slots > 0)
            fill_ring(at, work, p, ring, vector, rows, packed, now.row, to);
        else if (now.row < to)
            number_rows(work, p, now.row, places_before(to, now.row, rows), rows, row_at);
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
                leave_vectors(offsets, work, p, task, now.part, now.start, now.stop, now.is_begun,
                              vector, a);
            }
            next_part(&now, offsets, p, parts_end);
            end = now.stop < to ? now.stop : to;
            begin_columns(&k, vector);
        }
        const u32 is_there = now.part < parts_end && now.row < end;
        const u32 left = end - now.row, there = left < rows ? left : rows;
        const u32 next = now.row + ring->slots;
        const u32 is_full = packed && there == rows && next + rows <= to;
        const u32 is_ragged = rows != UNASKED_ROWS || SOME_LANE(is_there && !is_full);
        if (ring->slots > 0) wait_for_rows(p);
        if (is_there) {
            if (!is_ragged)
                load_rows(at, work, p, ring, vector, rows, 1, now.row, rows, rows, to, row_at, &t);
            else {
                load_rows(at, work, p, ring, vector, rows, packed, now.row, there,
                          places_before(to, next, there), to, row_at, &t);
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
                ((GLOBAL cut_part *)(work + p->heads))[task.piece].of.count = 0;
        }
        fold_piece(x, offsets, work, out, p, task, piece, vector, rows, ring);
    }
}

#define ROOM_OF(s) ((s) ? (s)*BLOCK : 1u)

KERNEL wide(const GLOBAL element *x, const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
            const GRID_CONSTANT vectors_plan plan) {
    __shared__ unit room[ROOM_OF(SLOTS)];
    __shared__ u32 numbers[ROOM_OF(2 * SLOTS)];
    const unit_ring ring = {(SHARED u8 *)(room + threadIdx.x), numbers + threadIdx.x / plan.readers,
                            SLOTS, (u32)sizeof(unit)};
    fold_pieces(x, offsets, work, out, &plan, VECTOR, TILE_ROWS, &ring);
}

KERNEL narrow(const GLOBAL element *x, const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
              const GRID_CONSTANT vectors_plan plan) {
    const unit_ring ring = {0, 0, 0, sizeof(element)};
    fold_pieces(x, offsets, work, out, &plan, 1, NARROW_ROWS, &ring);
}

/* ---- Parts that were cut ----------------------------------------------------------------------------------- */

#define JOIN_TEAM                                                                                  \
    (BLOCK < WARP ? BLOCK : WARP) /* threads that join a part of few edges, a column each */
#define JOIN_LEAST (BLOCK < 4 ? BLOCK : 4u) /* columns that a block joins at a time, at least */

/* Returns the part that begins in a piece and is cut: of no edges if there is none. */
__device__ cut_part cut_part_of(const GLOBAL u64 *work, const vectors_plan *p, u64 piece) {
    const GLOBAL cut_part *heads = (const GLOBAL cut_part *)(work + p->heads);
    cut_part c;
    c.bits = heads[piece < p->pieces ? piece : 0].bits;
    if (piece >= p->pieces) c.of.count = 0;
    return c;
}

/* Returns edges `first`, first + step, ... of a part, merged, of a slab's column, which is the nth of all. */
INLINED state merge_edges(const GLOBAL u64 *work, const vectors_plan *p, const cut_part *c,
                          u64 piece, u64 nth, u32 first, u32 step) {
    state a = none();
    for (u32 k = first; k < c->of.count; k += JOINED * step) {
        u64 words[JOINED][STATE_WORDS];
        UNROLL
        for (u32 j = 0; j < JOINED; j++) {
            const u32 one = k + j * step < c->of.count ? k + j * step : k;
            const u64 edge = 2 * (piece + one) + (one == 0);
            UNROLL
            for (u32 w = 0; w < STATE_WORDS; w++)
                words[j][w] = work[edge_word(p, edge, w) + nth];
        }
        UNROLL
        for (u32 j = 0; j < JOINED; j++) {
            const state b = state_of_words(words[j]);
            if (k + j * step < c->of.count) a = merge(a, b);
        }
    }
    return a;
}

INLINED void lower_column(GLOBAL u64 *work, GLOBAL u8 *out, const vectors_plan *p,
                          const cut_part *c, u64 nth, const state *a) {
    lower_vectors(work, out, p, c->of.part, c->of.start, c->of.length, (u32)(nth / p->columns),
                  (u32)(nth % p->columns), 1, a);
}

/* Joins parts of few edges. A team takes the part that begins in its piece, and of that part a share of the
 * columns. */
INLINED void join_few(GLOBAL u64 *work, GLOBAL u8 *out, const vectors_plan *p, u64 task) {
    const u64 vectors = (u64)p->slabs * p->columns;
    const u64 piece = task / p->shares * (BLOCK / JOIN_TEAM) + threadIdx.x / JOIN_TEAM;
    const cut_part c = cut_part_of(work, p, piece);
    if (c.of.count == 0 || c.of.count > JOIN_FEW) return;
    TALLY_PATH("few edges");
    for (u64 nth = task % p->shares * JOIN_TEAM + threadIdx.x % JOIN_TEAM; nth < vectors;
         nth += (u64)p->shares * JOIN_TEAM) {
        const state a = merge_edges(work, p, &c, piece, nth, 0, 1);
        lower_column(work, out, p, &c, nth, &a);
    }
}

/* Returns how many columns a block joins at a time: fewer where `count` edges are more than a thread should merge. */
PURE u32 join_width(u32 count) {
    u32 width = BLOCK;
    while (width > JOIN_LEAST && BLOCK / width * JOINED < count)
        width /= 2;
    return width;
}

/* Joins the parts of many edges that begin in one of BLOCK pieces, by the whole block: of each part a share of the
 * columns. */
INLINED void join_many(GLOBAL u64 *work, GLOBAL u8 *out, const vectors_plan *p, u64 task,
                       SHARED u32 *list, SHARED u64 *scratch) {
    const u64 vectors = (u64)p->slabs * p->columns, first = task / p->slices * BLOCK;
    __syncthreads(); /* the list has been read */
    if (threadIdx.x == 0) list[BLOCK] = 0;
    __syncthreads();
    if (cut_part_of(work, p, first + threadIdx.x).of.count > JOIN_FEW)
        list[atomicAdd(&list[BLOCK], 1u)] = threadIdx.x;
    __syncthreads();
    for (u32 i = 0; i < list[BLOCK]; i++) {
        const u64 piece = first + list[i];
        const cut_part c = cut_part_of(work, p, piece);
        TALLY_PATH("many edges");
        const u32 width = join_width(c.of.count), strands = BLOCK / width;
        const u32 strand = threadIdx.x / width;
        for (u64 begin = task % p->slices * width; begin < vectors;
             begin += (u64)p->slices * width) {
            const u64 nth = begin + threadIdx.x % width;
            const u32 is_there = nth < vectors && strand < strands;
            state a[VECTOR];
            a[0] = is_there ? merge_edges(work, p, &c, piece, nth, strand, strands) : none();
            reduce_strands(width, strands, strand, 1, 1, a, scratch);
            if (is_there && strand == 0) lower_column(work, out, p, &c, nth, a);
            __syncthreads(); /* `scratch` has been read */
        }
    }
}

/* Merges the edges of the parts that were cut, and lowers them. */
#undef BLOCKS_A_UNIT
#define BLOCKS_A_UNIT (BLOCK < GPU_VECTORS_JOINERS_A_UNIT ? GPU_VECTORS_JOINERS_A_UNIT / BLOCK : 1)
KERNEL join_vectors(GLOBAL u64 *work, GLOBAL u8 *out, const GRID_CONSTANT vectors_plan plan) {
    __shared__ u64 scratch[STATE_WORDS * BLOCK];
    __shared__ u32 list[BLOCK + 1];
    wait_for_earlier();
    const u64 bad = read_word(&work[PARTS_BAD]), has_few = read_word(&work[plan.is_cut]),
              has_many = read_word(&work[plan.is_cut + 1]); /* all are under way at once */
    if (bad != ~(u64)0) return;
    const u64 few = has_few == plan.left ? JOIN_FEW_TASKS(plan.pieces, BLOCK, plan.shares) : 0;
    const u64 many = has_many == plan.left ? JOIN_MANY_TASKS(plan.pieces, BLOCK, plan.slices) : 0;
    for (u64 task = blockIdx.x; task < few + many; task += gridDim.x) {
        if (task < few)
            join_few(work, out, &plan, task);
        else
            join_many(work, out, &plan, task - few, list, scratch);
    }
}
