/*
 * batches.h - the functions that all kinds of batches share (float_batches.h, float_chain_sums.h): a batch's states are
 * merged into the whole ones, and a tile that fits no batch is added to these element by element.
 *
 * A kind of batches defines `batch`, with `room`, `used` and `before`, begin_batch(), batch_state() and add_tile(). It
 * includes this header behind batch_state(), and its add_tile() may use what is in here.
 *
 * Before including this header, include what comes before it in float_batches.h, or in the other kind.
 */
#ifndef TALLY_STATE_BATCHES_H
#define TALLY_STATE_BATCHES_H

/* Merges the batch's states of all columns into the whole states, and clears the batch. */
INLINED void flush_batch(batch *b, u32 columns, state *whole) {
    UNROLL
    for (u32 v = 0; v < columns; v++) {
        state more;
        batch_state(b, columns, v, &more);
        if (b->before)
            whole[v] = merge(whole[v], more);
        else
            whole[v] = more;
    }
    b->before = 1;
    begin_batch(b, columns);
}

/* Makes a[] the columns' final states, of the whole and the last batch. */
INLINED void end_batch(batch *b, u32 columns, state *whole, state *a) {
    if (b->before && b->used) flush_batch(b, columns, whole);
    UNROLL
    for (u32 v = 0; v < columns; v++) {
        if (b->before)
            a[v] = whole[v];
        else
            batch_state(b, columns, v, &a[v]);
    }
}

/* Adds a tile that fits no batch to the whole. */
INLINED void add_all_slowly(batch *b, state *whole, u32 columns, u32 count, row_source from) {
    UNROLL
    for (u32 v = 0; v < columns; v++) {
        if (!b->before) whole[v] = none();
        add_slowly(column_of(from, v), count, &whole[v]);
    }
    b->before = 1;
    begin_batch(b, columns);
}

/* Notes that a tile of `rows` rows is in the batch. */
PURE void count_tile(batch *b, u32 rows) {
    b->room -= rows;
    b->used = 1;
}

#endif
