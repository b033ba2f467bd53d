/*
 * count.c - counts what the hardware would have to do for the accesses of a warp, and adds up the counts of steps.
 */
#include "model/machine.h"

#include <string.h>

/* Sorts the distinct values of at[0..count) to its front and returns how many they are. Most warps access
 * ascending addresses, for which this takes one pass. */
static unsigned distinct(uintptr_t *at, unsigned count) {
    unsigned kept = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned j = kept;
        if (kept == 0 || at[i] <= at[kept - 1])
            for (j = 0; j < kept && at[j] != at[i]; j++)
                ;
        if (j == kept) {
            uintptr_t value = at[i];
            /* Keep them sorted, so that the test above stays true. */
            for (; j > 0 && at[j - 1] > value; j--)
                at[j] = at[j - 1];
            at[j] = value;
            kept++;
        }
    }
    return kept;
}

static void count_global(model_warp_step *warp, const warp_access *a) {
    uintptr_t at[MODEL_WARP];
    unsigned count = 0;
    for (uint32_t lanes = a->global; lanes; lanes &= lanes - 1)
        at[count++] = a->address[__builtin_ctz(lanes)];
    const uint64_t asked = (uint64_t)count * a->size;
    if (a->kind & ACCESS_READ) warp->bytes_read += asked;
    if (a->kind & ACCESS_WRITE) warp->bytes_written += asked;
    if ((a->kind & ACCESS_ATOMIC) == ACCESS_ATOMIC) warp->atomics += count;

    /* No access crosses a line, as all are aligned. */
    count = distinct(at, count);
    warp->fewest_transactions += (count * a->size + MODEL_LINE - 1) / MODEL_LINE;
    for (unsigned i = 0; i < count; i++)
        at[i] /= MODEL_LINE;
    warp->transactions += distinct(at, count);
}

static void count_shared(model_warp_step *warp, const warp_access *a) {
    /* A pass serves 4 bytes of each lane of a warp, or 8 of half the lanes, or 16 of a quarter. */
    const unsigned words = a->size > 4 ? a->size / 4 : 1, together = MODEL_WARP / words;
    if ((a->kind & ACCESS_ATOMIC) == ACCESS_ATOMIC)
        warp->atomics += (unsigned)__builtin_popcount(a->shared);
    for (unsigned first = 0; first < MODEL_WARP; first += together) {
        uintptr_t at[MODEL_WARP];
        unsigned in_bank[MODEL_BANKS] = {0}, count = 0, passes = 0;
        for (unsigned l = first; l < first + together; l++)
            if (a->shared >> l & 1)
                for (unsigned w = 0; w < words; w++)
                    at[count++] = a->address[l] / 4 + w;
        count = distinct(at, count);
        for (unsigned i = 0; i < count; i++) {
            unsigned queue = ++in_bank[at[i] % MODEL_BANKS];
            if (queue > passes) passes = queue;
        }
        if (passes > 1) warp->bank_conflicts += passes - 1;
    }
}

void count_accesses(struct model_device *d) {
    for (unsigned k = 0; k < d->access_count; k++) {
        warp_access *a = &d->accesses[k];
        const bool traced = d->launch->accesses;
        const model_warp_step before = *d->warp;
        if (a->global) count_global(d->warp, a);
        if (traced && a->global) trace_access(d, a, false, &before);
        if (a->shared) count_shared(d->warp, a);
        if (traced && a->shared) trace_access(d, a, true, &before);
        if (traced && a->applied) trace_apply(d, a);
        a->global = a->shared = a->applied = 0;
    }
    d->access_count = 0;
}

void count_step(struct model_device *d, bool barrier) {
    const unsigned warps = (d->launch->block + MODEL_WARP - 1) / MODEL_WARP;
    model_counts *all = &d->counts;
    uint64_t rounds = 0;

    for (unsigned w = 0; w < warps; w++) {
        const model_warp_step *s = &d->warps[w];
        all->operations += s->operations;
        all->slots += s->operations ? MODEL_WARP : 0;
        all->issued += (uint64_t)s->rounds * MODEL_WARP;
        all->divergent += s->divergent;
        all->transactions += s->transactions;
        all->fewest_transactions += s->fewest_transactions;
        all->bank_conflicts += s->bank_conflicts;
        all->bytes_read += s->bytes_read;
        all->bytes_written += s->bytes_written;
        all->atomics += s->atomics;
        if (s->rounds > rounds) rounds = s->rounds;
    }
    d->block_steps += rounds > 0;
    d->block_barriers += barrier;
    d->block_rounds += rounds;

    memory_settle_guesses(d);
    if (d->launch->accesses) trace_finish(d);
    if (d->launch->on_step) {
        const model_step step = {.block = d->numbers[d->block],
                                 .step = d->step,
                                 .barrier = barrier,
                                 .stride = d->strides_differ ? 0 : d->stride,
                                 .warps = warps,
                                 .warp = d->warps,
                                 .accesses = d->trace_count,
                                 .access = d->trace};
        device_tell(d, &step);
    }
    d->trace_count = 0;
    memset(d->warps, 0, warps * sizeof *d->warps);
    d->stride = 0;
    d->strides_differ = false;
    d->step++;
    d->epoch++;
}

void model_counts_add(model_counts *counts, const model_counts *more) {
    counts->launches += more->launches;
    counts->blocks += more->blocks;
    counts->steps += more->steps;
    counts->barriers += more->barriers;
    counts->rounds += more->rounds;
    counts->all_steps += more->all_steps;
    counts->all_barriers += more->all_barriers;
    counts->all_rounds += more->all_rounds;
    counts->operations += more->operations;
    counts->slots += more->slots;
    counts->issued += more->issued;
    counts->divergent += more->divergent;
    counts->transactions += more->transactions;
    counts->fewest_transactions += more->fewest_transactions;
    counts->bank_conflicts += more->bank_conflicts;
    counts->bytes_read += more->bytes_read;
    counts->bytes_written += more->bytes_written;
    counts->atomics += more->atomics;
}
