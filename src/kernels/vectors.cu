/*
 * vectors - arrays reduced by segment or by id along an axis: vectors of neighbouring columns (vectors.h).
 *
 * A team of neighbouring threads goes through the rows of its piece, which lie one behind another or where an order
 * says. Each thread keeps states of its columns in registers (column_states.h). Its part of some tiles of rows is on the
 * way to shared memory while it adds an earlier one: tiles go on across the ends of parts. Where a part ends, its states
 * are lowered. Teams need nothing of each other, so no barrier stands in the loop, and parts of any length keep all
 * threads at work.
 *
 * wide: a thread has VECTOR neighbouring columns. narrow: one. join_vectors: merges the states of parts that were cut,
 * and lowers them; it returns at once if none was.
 *
 * Results that a state does not determine are marked, and left to parts.cu, and so are indices of no elements.
 */
#if defined(FOLD_MOMENTS)
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

#include "copies.h"

#include "store.h"

#include "vectors.h"

#define GATHERS
#define VARIES
#define STRANDS(p) 1u
#define FLIP(p)    ((key)(p)->values.flip)
#include "column_states.h"

BEGINS_EARLY

/* ---- Rows on their way ----------------------------------------------------------------------------------- */

/* A thread's columns of the rows of a piece. Tiles of places [next, last) have not begun; the next one goes to the rows
 * from `to` on of the thread's ring. */
typedef struct row_stream {
    const GLOBAL element *at; /* in row 0 */
    const GLOBAL u32 *order;  /* or NULL: a place is the row's number */
    i64 step;
    u32 next, last, to;
} row_stream;

/* Begins the copy of the next tile; behind the last one there is nothing to copy. */
INLINED void begin_rows(row_stream *s, SHARED u8 *ring, u32 vector, u32 rows, u32 packed) {
    const u32 bytes = vector * (u32)sizeof(element);
    if (s->next < s->last) {
        const u32 there = s->last - s->next < rows ? s->last - s->next : rows;
        u32 row[ELEMENTS];
        UNROLL
        for (u32 k = 0; k < rows; k++) {
            const u32 place = s->next + (k < there ? k : 0);
            row[k] = s->order ? s->order[place] : place;
        }
        UNROLL
        for (u32 k = 0; k < rows; k++) {
            const GLOBAL element *from = s->at + (i64)row[k] * s->step;
            SHARED u8 *to = ring + (s->to + k) * BLOCK * bytes;
            if (k >= there) continue;
            if (packed)
                begin_copy(to, from, bytes);
            else
                UNROLL
            for (u32 v = 0; v < vector; v++)
                begin_copy(to + v * (u32)sizeof(element), from + v, (u32)sizeof(element));
        }
        s->next += there;
    }
    end_copies();
    s->to = s->to + rows < STAGES * rows ? s->to + rows : 0;
}

#if TESTS_EXPONENTS || TESTS_LATER
/* Returns where rows from a place on are read again. */
INLINED row_source source_of(const row_stream *s, u32 place) {
    const row_source from = {s->order ? s->at : s->at + (i64)place * s->step, s->step,
                             s->order ? s->order + place : s->order};
    return from;
}
#endif

/* ---- Pieces ----------------------------------------------------------------------------------------------- */

/* A piece: parts [part, end), and places [from, to). The first part begins at `start`, before `from` if it was cut. */
typedef struct piece_place {
    u64 part, end;
    u32 start, from, to;
} piece_place;

/* Returns the weight at which a part begins that starts at a place. */
PURE u64 weight_at(u64 start, u64 origin, u64 part) {
    return start - origin + part * VECTORS_PART;
}

__device__ piece_place piece_at(const GLOBAL u8 *offsets, const vectors_plan *p, u64 piece) {
    const u64 begin = piece * p->piece, end = begin + p->piece;
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
    piece_place place = {part, part, (u32)start, (u32)from, (u32)from};
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
    place.end = low + 1;
    place.to = (u32)(stop - last > p->whole && at + (stop - last) > end ? last + (end - at) : stop);
    return place;
}

/* ---- Values ----------------------------------------------------------------------------------------------- */

/* Returns the value of no elements; *lost is set where there is none. */
PURE u64 vector_of_nothing(const vectors_plan *p, u32 op, u32 to, u32 *lost) {
#if defined(INDEXED)
    *lost = 1;
    return 0;
#elif defined(FOLD_END) || defined(FOLD_ENDS)
#if defined(FLOATING)
    return float_infinity_bits(format_of(ELEMENT_TYPE), op == MAX);
#else
    state none;
    clear_state(&none);
    return state_value(&none, &p->values, 0, op, to, lost);
#endif
#else
    return value_of_nothing(op, to);
#endif
}

/* Writes the values of neighbouring columns of a part of n rows, which begins at the place `start`. A column whose value
 * is lost is left to parts.cu. */
INLINED void lower_vectors(GLOBAL u64 *work, GLOBAL u8 *out, const vectors_plan *p, u64 part,
                           u32 start, u32 n, u64 slab, u64 column, u32 vector, const state *a) {
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
            bits[v] = n == 0 ? vector_of_nothing(p, op, to, &lost[v])
                             : state_value(&a[v], values, n, op, to, &lost[v]);
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
            leave_row(work, p->left, (part * p->slabs + slab) * p->columns + column + v);
        } else
            TALLY_PATH("put");
}

/* Returns the word of an edge's k-th words of all slabs and columns. */
PURE u64 edge_word(const vectors_plan *p, u64 edge, u32 k) {
    return p->edges + (k * 2 * p->pieces + edge) * p->slabs * p->columns;
}

/* ---- A team's piece ------------------------------------------------------------------------------------------- */

/* Adds the rows of a piece to the states of columns [column, column + vector) of a slab, part by part, and lowers these
 * or leaves them on an edge. In `ring` each thread has room for STAGES tiles. There is one place where rows are added:
 * it is long, and compilers take long for each copy of it. */
INLINED void fold_piece(const GLOBAL element *x, const GLOBAL u8 *offsets, GLOBAL u64 *work,
                        GLOBAL u8 *out, const vectors_plan *p, u64 piece, u64 slab, u64 column,
                        u32 vector, u32 rows, SHARED u8 *ring) {
    const piece_place at = piece_at(offsets, p, piece);
    const u32 bytes = vector * (u32)sizeof(element);
    u64 part = at.part;
    u64 head = NO_PART;
    if (part < at.end) {
        row_stream stream = {x + (p->x + (i64)slab * p->slab_step + (i64)column),
                             p->order ? (const GLOBAL u32 *)(work + p->order)
                                      : (const GLOBAL u32 *)0,
                             p->row_step,
                             at.from,
                             at.to,
                             0};
        const u32 packed = (size_t)stream.at % sizeof(unit) == 0 || vector == 1;
        u32 start = at.start, row = at.from, tile = row, tile_end = row, slot = 0, from = row;
        u32 stop = (u32)row_start(offsets, p->parts, part + 1), end = stop < at.to ? stop : at.to;
        u32 next_stop = part + 1 < at.end ? (u32)row_start(offsets, p->parts, part + 2)
                                          : stop; /* the next part's */
        element e[ELEMENTS];
        state a[VECTOR];
#if TESTS_EXPONENTS
        batch b;
        state whole[VECTOR];
        b.before = 0;
        begin_batch(&b, vector);
#else
        UNROLL
        for (u32 v = 0; v < vector; v++)
            clear_state(&a[v]);
#if TESTS_LATER
        state whole[VECTOR]; /* in memory, as add_slowly() is called seldom */
        u32 large[VECTOR], before = 0, tested = row, tiles = 0;
        u64 wrong = 0;
        UNROLL
        for (u32 v = 0; v < vector; v++)
            large[v] = 0;
#endif
#endif
        ring += threadIdx.x * bytes;
        UNROLL
        for (u32 i = 0; i + 1 < STAGES; i++)
            begin_rows(&stream, ring, vector, rows, packed);
        UNROLL_NOT
        while (part < at.end) {
            if (row == end) {
#if TESTS_EXPONENTS
                end_batch(&b, vector, whole, a);
#elif TESTS_LATER
                if (wrong != 0 || before)
                    check_batch(source_of(&stream, tested), row - tested, vector, wrong, before,
                                large, a, whole);
                if (wrong != 0 || before) UNROLL
                for (u32 v = 0; v < vector; v++)
                    a[v] = whole[v];
#endif
                if (from == start && end == stop) {
                    TALLY_PATH("a part that is whole");
                    lower_vectors(work, out, p, part, start, stop - start, slab, column, vector, a);
                } else {
                    TALLY_PATH("a part that is cut");
                    const u64 edge = 2 * piece + (from == start);
                    UNROLL
                    for (u32 k = 0; k < STATE_WORDS; k++)
                        UNROLL
                    for (u32 v = 0; v < vector; v++)
                        work[edge_word(p, edge, k) + slab * p->columns + column + v] =
                            state_word(&a[v], k);
                    if (from == start) head = part;
                }
                part++;
                start = from = row = stop;
                stop = next_stop;
                end = stop < at.to ? stop : at.to;
                if (part + 1 < at.end) next_stop = (u32)row_start(offsets, p->parts, part + 2);
#if TESTS_EXPONENTS
                b.before = 0;
                begin_batch(&b, vector);
#else
                UNROLL
                for (u32 v = 0; v < vector; v++)
                    clear_state(&a[v]);
#if TESTS_LATER
                before = tiles = 0;
                wrong = 0;
                tested = row;
                UNROLL
                for (u32 v = 0; v < vector; v++)
                    large[v] = 0;
#endif
#endif
                continue;
            }
            if (row == tile_end) {
                slot = stream.to + rows < STAGES * rows ? stream.to + rows : 0;
                begin_rows(&stream, ring, vector, rows, packed);
                wait_for_copies(STAGES - 1);
                tile = row;
                tile_end = at.to - row < rows ? at.to : row + rows;
            }
            const u32 there = (end < tile_end ? end : tile_end) - row, first = slot + (row - tile);
            UNROLL
            for (u32 k = 0; k < rows; k++)
                read_unit(ring + (k < there ? first + k : first) * BLOCK * bytes, vector,
                          e + k * vector);
#if PAD
            UNROLL
            for (u32 k = 1; k < rows; k++)
                UNROLL
            for (u32 v = 0; v < vector; v++)
                if (k >= there) e[k * vector + v] = pad();
#endif
#if TESTS_EXPONENTS
            add_tile(&b, whole, e, vector, rows, there, source_of(&stream, row));
#elif TESTS_LATER
            wrong |= ADD_TILE(e, row - start);
            if (++tiles == BATCH) {
                check_batch(source_of(&stream, tested), row + there - tested, vector, wrong, before,
                            large, a, whole);
                before = 1;
                tiles = 0;
                wrong = 0;
                tested = row + there;
            }
#else
            ADD_TILE(e, row - start);
#endif
            row += there;
        }
        wait_for_copies(0);
    }
    if (slab == 0 && column == 0) {
        work[p->heads + piece] = head;
        if (head != NO_PART) write_word(&work[p->is_cut], p->left);
    }
}

/* Has each team take its pieces, one after another. */
INLINED void fold_pieces(const GLOBAL element *x, const GLOBAL u8 *offsets, GLOBAL u64 *work,
                         GLOBAL u8 *out, const vectors_plan *p, u32 vector, u32 rows,
                         SHARED u8 *ring) {
    wait_for_earlier();
    const u32 teams = BLOCK / p->width, team = threadIdx.x / p->width;
    const u64 tasks = p->pieces * p->tiles * p->slabs;
    if (team >= teams || read_word(&work[PARTS_BAD]) != ~(u64)0) return;
    for (u64 task = (u64)blockIdx.x * teams + team; task < tasks; task += (u64)gridDim.x * teams) {
        const u64 tile = task % p->tiles, rest = task / p->tiles;
        const u64 column = (tile * p->width + threadIdx.x % p->width) * vector;
        if (column < p->columns)
            fold_piece(x, offsets, work, out, p, rest % p->pieces, rest / p->pieces, column, vector,
                       rows, ring);
    }
}

#define RING_ROOM(vector, rows) (STAGES * (rows) * (vector) * (u32)sizeof(element) * BLOCK)

KERNEL wide(const GLOBAL element *x, const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
            const vectors_plan plan) {
    __shared__ uint4 space[(RING_ROOM(VECTOR, WIDE_ROWS) + 15) / 16];
    fold_pieces(x, offsets, work, out, &plan, VECTOR, WIDE_ROWS, (SHARED u8 *)space);
}

KERNEL narrow(const GLOBAL element *x, const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
              const vectors_plan plan) {
    __shared__ u64 space[(RING_ROOM(1, NARROW_ROWS) + 7) / 8];
    fold_pieces(x, offsets, work, out, &plan, 1, NARROW_ROWS, (SHARED u8 *)space);
}

/* ---- Parts that were cut ----------------------------------------------------------------------------------- */

#define JOIN_WIDTH (BLOCK < 8 ? BLOCK : 8u) /* columns that a block joins at a time */

/* Merges the edges of the part that begins in a piece and is cut, if there is one, and lowers it: for each piece
 * `slices` blocks, each with a share of the columns. */
KERNEL join_vectors(const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
                    const vectors_plan plan) {
    __shared__ u64 scratch[STATE_WORDS * BLOCK];
    wait_for_earlier();
    const u32 works =
        read_word(&work[PARTS_BAD]) == ~(u64)0 && read_word(&work[plan.is_cut]) == plan.left;
    const u32 strands = BLOCK / JOIN_WIDTH, strand = threadIdx.x / JOIN_WIDTH;
    const u64 vectors = plan.slabs * plan.columns, tasks = works ? plan.pieces * plan.slices : 0;
    const u64 share = (vectors + plan.slices - 1) / plan.slices;
    for (u64 task = blockIdx.x; task < tasks; task += gridDim.x) {
        const u64 piece = task / plan.slices, part = work[plan.heads + piece];
        const u64 begin = task % plan.slices * share;
        const u64 end = begin + share < vectors ? begin + share : vectors;
        if (part == NO_PART) continue;
        const u64 origin = row_start(offsets, plan.parts, 0);
        const u64 start = row_start(offsets, plan.parts, part);
        const u64 length = row_start(offsets, plan.parts, part + 1) - start;
        const u64 count = (weight_at(start, origin, part) + length - 1) / plan.piece - piece + 1;
        for (u64 first = begin; first < end; first += JOIN_WIDTH) {
            const u64 nth = first + threadIdx.x % JOIN_WIDTH;
            const u32 is_there = nth < end && strand < strands;
            state a[VECTOR];
            clear_state(&a[0]);
            for (u64 i = strand; is_there && i < count; i += JOINED * strands) {
                u64 words[JOINED][STATE_WORDS];
                UNROLL
                for (u32 j = 0; j < JOINED; j++) {
                    const u64 one = i + j * strands < count ? i + j * strands : i;
                    const u64 edge = 2 * (piece + one) + (one == 0);
                    UNROLL
                    for (u32 k = 0; k < STATE_WORDS; k++)
                        words[j][k] = work[edge_word(&plan, edge, k) + nth];
                }
                UNROLL
                for (u32 j = 0; j < JOINED; j++) {
                    const state b = state_of_words(words[j]);
                    if (i + j * strands < count) merge_states(&a[0], &b);
                }
            }
            reduce_strands(JOIN_WIDTH, strands, strand, 1, 1, a, scratch);
            if (is_there && strand == 0)
                lower_vectors(work, out, &plan, part, (u32)start, (u32)length, nth / plan.columns,
                              nth % plan.columns, 1, a);
            __syncthreads(); /* `scratch` has been read */
        }
    }
}
