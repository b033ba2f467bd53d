/*
 * float_chain_sum.h - a lane's batch of one sum of elements, or of magnitudes, in chains of floats (float_chains.h).
 *
 * A schedule looks at some elements and opens a window for them. It adds those that fit to the chains, at most 2^CHAIN_LOG
 * to one of them. Then the chains begin anew: what they have taken goes to integers. Where elements do not fit the window,
 * the integers' sum goes to a double, and another window is opened. Where there is none, they are added to the double
 * themselves, and its errors are added up plainly. So the batch is exact where compensated sums are
 * (certain/batch.h): each addition of errors comes from a window's sum or from an element, which are fewer than the batch has
 * elements.
 *
 * While all elements are 0, the double keeps the sign of their sum: zeros do not fit the chains before one has been +0.
 *
 * Before including this header, define IN_FLOATS and include float_sum.h, which includes it.
 */
#ifndef TALLY_STATE_FLOAT_CHAIN_SUM_H
#define TALLY_STATE_FLOAT_CHAIN_SUM_H

#define CHAIN_LOG         7
#define CHAINS_OF_SQUARES 0
#define ABREAST           2u
#include "float_chains.h"

#define LOOKS_FIRST 1
/* Times that chains begin anew: a chain has at most 2^22 units, those abreast 2^23, and integers at most 2^30. */
#define TURNS_MOST 128u

typedef struct batch {
    chains c;
    i32 units[CHAINS]; /* what the chains have taken before they began anew */
    double sum, rest;  /* the sum of what has left the chains or never was there; its errors */
    magnitudes all;    /* of all elements */
    magnitudes noted;  /* of elements that have been looked at, but not added */
    u32 turns;         /* times that the chains have begun anew */
    u32 used;          /* the chains have something */
} batch;

PURE void begin(batch *k, u32 at) {
    begin_shut(&k->c, ABREAST);
    UNROLL
    for (u32 i = 0; i < CHAINS; i++)
        k->units[i] = 0;
    k->sum = -0.0;
    k->rest = 0;
    k->all.most = 0;
    k->all.least = NO_LEAST;
    k->noted = nothing_noted();
    k->turns = k->used = 0;
}

/* Looks at a pack, or at one element. */
INLINED void look(batch *k, const pack *p) {
    note_elements(&k->noted, p->e, p->pair, PACK);
}
INLINED void look_at_one(batch *k, element e) {
#if defined(TYPE_F32)
    note_elements(&k->noted, &e, 0, 1);
#else
    const u32 twice = (u32)e * 0x10001u;
    note_elements(&k->noted, &e, &twice, 2);
#endif
}

/* Begins the chains anew, with the same window. */
INLINED void turn_chains(batch *k) {
    UNROLL
    for (u32 i = 0; i < CHAINS; i++)
        UNROLL
    for (u32 v = 0; v < ABREAST; v++)
        k->units[i] += chain_units(&k->c, i, v);
    begin_chains(&k->c, ABREAST, k->c.exponent);
    k->turns++;
}

/* Adds to the double what the chains have taken. */
INLINED void empty_chains(batch *k) {
    i64 units[CHAINS];
    double high, low, error;
    turn_chains(k);
    UNROLL
    for (u32 i = 0; i < CHAINS; i++) {
        units[i] = k->units[i];
        k->units[i] = 0;
    }
    sum_of_units(units, k->c.exponent, &high, &low);
    k->sum = two_sum(k->sum, high, &error);
    k->rest += error + low;
    k->used = 0;
}

/* Opens a window for the elements that were looked at, if they do not fit the one that is open. Returns 0 where they fit
 * none. */
INLINED u32 open_for_noted(batch *k) {
    const magnitudes m = noted_magnitudes(k->noted);
    k->noted = nothing_noted();
    k->all.most = m.most > k->all.most ? m.most : k->all.most;
    k->all.least = m.least < k->all.least ? m.least : k->all.least;
    if (!FITS(&k->c, m)) {
        if (k->used) empty_chains(k);
        if ((k->all.most == 0 && double_bits(k->sum) != 0) || !open_chains(&k->c, ABREAST, m)) {
            k->c.end = 0;
            return 0;
        }
    }
    k->used = 1;
    return 1;
}

/* Adds an element that fits to the chains at v. */
INLINED void add_fitting(batch *k, element e, u32 v) {
    const float x = widen(e);
    add_to_chains(&k->c, 0, v, OF_MAGNITUDES ? float_from(float_bits(x) & 0x7fffffffu) : x);
}

/* Adds an element to the double, and the error of that to the other errors, plainly. */
INLINED void add_compensated(batch *k, element e, u32 inside) {
    double error;
    const float x = taken(e, inside);
    k->sum = two_sum(k->sum, lifted(x), &error);
    k->rest += error;
    if (!inside) return;
#if defined(TYPE_F32)
    const u32 magnitude = float_bits(x) & 0x7fffffffu;
#else
    const u32 magnitude = e & 0x7fffu;
#endif
    k->all.most = magnitude > k->all.most ? magnitude : k->all.most;
    if (magnitude != 0 && magnitude < k->all.least) k->all.least = magnitude;
}

/* Returns a magnitude's bits as those of an f32. */
PURE u32 widened_magnitude(u32 magnitude) {
#if defined(TYPE_F32)
    return magnitude;
#else
    return float_bits(widen((element)magnitude));
#endif
}
/* Returns the batch's bounds, as certain/batch.h has them. */
PURE magnitudes bounds_of(const batch *k) {
    const magnitudes m = {widened_magnitude(k->all.most),
                          k->all.least == NO_LEAST ? NO_LEAST
                                                   : 2 * widened_magnitude(k->all.least) - 1};
    return m;
}

/* Returns whether additions of at most 2^power elements give the right sum. */
PURE u32 compensated_sum_is_exact(const batch *k, u32 power) {
    const magnitudes m = bounds_of(k);
    return compensated_sums_are_exact(spread_of(m.most, m.least, OF_ONE_SUM), (i32)power);
}
PURE u32 plain_sum_is_exact(const batch *k, u32 power) {
    return compensated_sum_is_exact(k, power);
}

/* Returns the state of a batch whose chains are empty, right if compensated_sum_is_exact(). */
PURE state finish_compensated(const batch *k) {
    return state_of_sum(k->sum, k->rest, bounds_of(k).most);
}
PURE state finish(const batch *k, u64 start) {
    batch own = *k;
    if (own.used) empty_chains(&own);
    if (!(own.sum - own.sum == 0)) own.rest = 0;
    return finish_compensated(&own);
}

#endif
